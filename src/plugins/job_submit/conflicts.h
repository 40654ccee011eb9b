/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_PLUGINS_CONFLICTS_H
#define OCS_PLUGINS_CONFLICTS_H

/* What contradicts circuits that belong to one job from its start to its end. */

#include "src/plugins/compat/compat.h"
#include "src/util/error.h"

/* Ways of sharing that the partitions of PARTITION (a list) have and a shape cannot: nodes
 * shared by force, preemption by suspension.  0, or -1 with ERR. */
int ocs_conflicts_partition(const char *partition, struct ocs_error *err);
/* Where jobs are preempted by quality of service: whether one of the QOS of NAMES (a list;
 * NULL: the usual one of ACCOUNT, PARTITION and the user UID; those may be NULL) has its jobs
 * suspended.  0, or -1 with ERR. */
int ocs_conflicts_qos(const char *names, const char *account, const char *partition, uint32_t uid,
		      struct ocs_error *err);
/* DEPENDENCY (may be NULL) of a job that is SHAPED, or not: neither it nor the job that it
 * would expand may have circuits.  0, or -1 with ERR. */
int ocs_conflicts_expand(const char *dependency, bool shaped, struct ocs_error *err);
/* Whether JOB has, or had when it last ran, an allocation of the fabric. */
bool ocs_conflicts_allocated(const job_record_t *job);

#endif
