/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Jobs that slurmctld does not know to have started, because it died before it had saved
 * that.  Their nodes still have them: what is started there under the same number too soon
 * would be taken for the same job, and get no prolog. */

#include "src/scheduler/state.h"
#include "src/util/net.h"
#include "src/util/text.h"

#include <stdlib.h>

/* From when the nodes were to stop the job.  They compare whole seconds, and have to
 * clean up. */
#define HOLD_NS (INT64_C(5) * 1000000000)

static void job_drop(struct ocs_forgotten **at)
{
	struct ocs_forgotten *forgotten = *at;

	*at = forgotten->next;
	for (int i = 0; i < forgotten->nnodes; i++)
		ocs_allocation_hold(forgotten->nodes[i], false);
	free(forgotten->nodes);
	free(forgotten);
	ocs_state.changed = true;
}

void ocs_forgotten_add(uint32_t job, const char *nodes)
{
	struct ocs_forgotten *forgotten = ocs_calloc(1, sizeof(*forgotten));

	forgotten->job = job;
	forgotten->nnodes = ocs_allocation_nodes(nodes, &forgotten->nodes);
	for (int i = 0; i < forgotten->nnodes; i++)
		ocs_allocation_hold(forgotten->nodes[i], true);
	forgotten->next = ocs_state.forgotten;
	ocs_state.forgotten = forgotten;
}

void ocs_forgotten_clear_all(void)
{
	while (ocs_state.forgotten)
		job_drop(&ocs_state.forgotten);
}

bool ocs_controller_forgotten_any(void)
{
	int64_t now = ocs_now_ns();
	bool any = false;

	pthread_mutex_lock(&ocs_state.lock);
	for (struct ocs_forgotten **at = &ocs_state.forgotten; *at;) {
		any = any || !(*at)->until_ns;
		if ((*at)->until_ns && (*at)->until_ns <= now)
			job_drop(at);
		else
			at = &(*at)->next;
	}
	pthread_mutex_unlock(&ocs_state.lock);
	return any;
}

int ocs_controller_forgotten(uint32_t *job, int **nodes)
{
	struct ocs_forgotten *at;
	int count = 0;

	pthread_mutex_lock(&ocs_state.lock);
	for (at = ocs_state.forgotten; at && at->until_ns; at = at->next)
		;
	if (at) {
		at->until_ns = ocs_now_ns() + HOLD_NS;
		*job = at->job;
		*nodes = ocs_calloc((size_t)at->nnodes + 1, sizeof(**nodes));
		for (count = 0; count < at->nnodes; count++)
			(*nodes)[count] = at->nodes[count];
	}
	pthread_mutex_unlock(&ocs_state.lock);
	return at ? count : -1;
}
