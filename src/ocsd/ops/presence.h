/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_OPS_PRESENCE_H
#define OCS_OCSD_OPS_PRESENCE_H

/* Nodes that talk to ocsd. */

#include "src/ocsd/state/ocsd.h"

/* Node INDEX of JOB has asked for its circuits: it is not drained any more for want of that. */
void ocsd_node_asked(struct ocsd *d, struct ocsd_job *job, int index);

#endif
