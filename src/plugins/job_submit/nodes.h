/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_PLUGINS_NODES_H
#define OCS_PLUGINS_NODES_H

/* What a job says about nodes and tasks besides its shape, and cannot have with it. */

#include "src/plugins/compat/compat.h"
#include "src/plugins/job_submit/site.h"

/* -w, -x, -C, --prefer, -n and the nodes of PARTITION (a list), against SHAPE and what it needs.
 * 0, or -1 with ERR, one line instead of "Requested node configuration is not available". */
int ocs_nodes_check(job_desc_msg_t *job, const char *partition, const struct ocs_shape *shape,
		    const struct ocs_answer *answer, struct ocs_error *err);
/* The same for the update JOB of the pending RECORD: what it does not say stays. */
int ocs_nodes_check_update(const job_desc_msg_t *job, const job_record_t *record,
			   const struct ocs_shape *shape, const struct ocs_answer *answer,
			   struct ocs_error *err);
/* Whether the update JOB says anything that ocs_nodes_check_update looks at. */
bool ocs_nodes_updates(const job_desc_msg_t *job);

#endif
