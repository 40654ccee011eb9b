/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_PROTOCOL_FENCING_H
#define OCS_OCSD_PROTOCOL_FENCING_H

#include "src/ocsd/state/ocsd.h"

struct json_object;
struct ocsd_client;

/* One slurmctld at a time: who takes charge asks with term 0 and gets one that is newer
 * than all before.  Sets TERM to that of CLIENT, whose subscription ID is REQUEST; 0 for who
 * has none: it only watches.  0, or -1: refused and answered, it is not in charge any more. */
int ocsd_term_take(struct ocsd *d, struct ocsd_client *client, int64_t id,
		   struct json_object *request, uint64_t *term);

/* The newest term of a slurmctld that is connected, 0: none is. */
uint64_t ocsd_term_newest(const struct ocsd *d);

#endif
