/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_PLUGINS_NODES_H
#define OCS_PLUGINS_NODES_H

/* What a job says about nodes and tasks besides its shape, and cannot have with it. */

#include "src/plugins/compat/compat.h"
#include "src/plugins/job_submit/site.h"

/* -w, -x, -C, -n and the nodes of PARTITION (a list), against SHAPE and what it needs.  0, or
 * -1 with ERR, one line instead of "Requested node configuration is not available". */
int ocs_nodes_check(job_desc_msg_t *job, const char *partition, const struct ocs_shape *shape,
		    const struct ocs_answer *answer, struct ocs_error *err);

#endif
