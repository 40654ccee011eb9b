/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_JOBS_FORWARDING_H
#define OCS_OCSD_JOBS_FORWARDING_H

/* Hosts that forward for each other. */

#include "src/ocsd/state/ocsd.h"

/* Whether the hosts of JOB forward. */
bool ocsd_forward_wanted(const struct ocsd_job *job);

/* Takes the members macs and forward_macs of NODE's REQUEST.  0, or -1 with ERR. */
int ocsd_forward_announce(struct ocsd_job *job, const char *node, struct json_object *request,
			  struct ocs_error *err);

/* Whether every node has told its MACs, and what they told. */
bool ocsd_forward_met(const struct ocsd_job *job);
struct json_object *ocsd_forward_hosts(const struct ocsd_job *job);

#endif
