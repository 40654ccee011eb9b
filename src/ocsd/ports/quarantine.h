/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_PORTS_QUARANTINE_H
#define OCS_OCSD_PORTS_QUARANTINE_H

/* Ports that are out of service until somebody looked. */

#include "src/ocsd/state/ocsd.h"

/* Drains PORT of SW because of WHY, unless it is drained already, and not only until it is
 * lit again. */
void ocsd_port_quarantine(struct ocsd *d, const struct ocsd_switch *sw, int port, const char *why);

/* The logical port of an ingress or egress. */
int ocsd_port_logical(const struct ocsd_switch *sw, int fibre);

/* The switch refused patches: their ports go to quarantine. */
void ocsd_port_refused(struct ocsd *d, const struct ocsd_switch *sw,
		       const struct ocs_refusal *refusals, size_t count, const char *reply);

#endif
