/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_OPS_RECONCILE_H
#define OCS_OCSD_OPS_RECONCILE_H

/* Who lives: slurmctld's word against the database. */

#include "src/ocsd/state/ocsd.h"

/* Compares JOBS, an array of a subscribe, with what is here.  An allocation that is not listed
 * has ended and is broken; CONFIRMS: once the client has said `gone`, as slurmctld does when the
 * job has been cleaned up, and at once for all that it is told to be held and does not know.  So
 * circuits outlive the last epilog, and an answer that is lost is given again.
 * Adds to UNKNOWN and FORGOTTEN as in the reply. */
void ocsd_listed_compare(struct ocsd *d, struct json_object *jobs, bool confirms,
			 struct json_object *unknown, struct json_object *forgotten);

/* An allocation that slurmctld may not know: one that died may not have saved that it had
 * started JOB.  The caller owns it. */
struct json_object *ocsd_listed_row(const struct ocsd_job *job);

#endif
