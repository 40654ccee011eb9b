/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSCTL_SLURM_WAITING_H
#define OCS_OCSCTL_SLURM_WAITING_H

/* Why a job of the queue has no nodes yet: what Slurm says of it, who holds what it needs,
 * and who goes first. */

#include "src/fold/shape.h"
#include "src/ocsctl/slurm/blockers.h"
#include "src/ocsctl/slurm/slurm.h"

struct json_object;

struct ocs_ctl_waiting {
	const struct ocs_ctl_queued *job; /* borrowed */
	bool shaped;
	struct ocs_shape shape;
	char *features;	  /* that its nodes must have, or NULL */
	const char *ours; /* what is missing, as slurmctld's plugin says it; NULL: nothing
				 * was said.  Borrowed */
	char *slurm;	  /* Slurm's own reason in a sentence, or NULL */
	long *ahead;	  /* jobs that go first */
	int nahead;
	bool asked; /* the rest was looked for */
	struct ocs_ctl_obstacles obstacles;
	struct ocs_ctl_answer answer;
};

/* Fills *W for JOB of QUEUE.  FABRIC NULL: none was found, so only Slurm's part.  OURS as
 * above.  Free with ocs_ctl_waiting_free. */
void ocs_ctl_waiting_read(const struct ocs_fabric *fabric, const struct ocs_ctl_queue *queue,
			  const struct ocs_ctl_queued *job, const char *ours,
			  struct ocs_ctl_waiting *w);
void ocs_ctl_waiting_free(struct ocs_ctl_waiting *w);
void ocs_ctl_waiting_print(const struct ocs_ctl_waiting *w);
/* Adds members to OUT. */
void ocs_ctl_waiting_json(const struct ocs_ctl_waiting *w, struct json_object *out);

#endif
