/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Jobs without a shape need no cube.  Where slurm.conf gives nodes the same weight, they
 * are sent outside the cubes first; then to the broken cube that has just room for them,
 * since what comes together goes together; then to as few broken ones as suffice, and only
 * then to whole ones.  cons_tres chooses by weight: for the time of one evaluation the
 * weights of its nodes say so in their lowest bits. */

#include "src/plugins/select/select_ocs.h"

#define BITS \
	12 /* Slurm's own scheduling weights leave as many at the upper end; cubes
			 * have 512 nodes at most */
#define WHOLE ((UINT64_C(1) << BITS) - 1)
#define PART (WHOLE / 2) /* broken cubes without room for all of the job begin here */

static struct {
	node_record_t **nodes;
	uint64_t *weights; /* that they had */
	int count;
} steered;

void ocs_select_steer_undo(void)
{
	for (int i = 0; i < steered.count; i++)
		steered.nodes[i]->sched_weight = steered.weights[i];
	xfree(steered.nodes);
	xfree(steered.weights);
	steered.count = 0;
}

static bool in_cube(const struct ocs_fabric *fabric, int node)
{
	return node >= 0 && fabric->sections[fabric->nodes[node].section].kind == OCS_TORUS;
}

/* Idle nodes of every cube; FIRST: number of the first cube of each section. */
static int *idle_count(const struct ocs_fabric *fabric, const int *first, int cubes)
{
	int *idle = xcalloc(cubes + 1, sizeof(*idle));

	for (int i = 0; i < fabric->nnodes; i++) {
		int index = ocs_select_node_slurm(i);
		node_record_t *node = index >= 0 ? node_record_table_ptr[index] : NULL;

		if (in_cube(fabric, i) && node && !node->run_job_cnt && !node->sus_job_cnt &&
		    !IS_NODE_COMPLETING(node) && !IS_NODE_DOWN(node) && !IS_NODE_DRAIN(node))
			idle[first[fabric->nodes[i].section] + fabric->nodes[i].cube]++;
	}
	return idle;
}

static uint64_t nodes_dislike(const struct ocs_fabric *fabric, const int *first, const int *idle,
			      int node, int wanted)
{
	const struct ocs_node *at;
	int count, size;

	if (!in_cube(fabric, node))
		return 0;
	at = &fabric->nodes[node];
	count = idle[first[at->section] + at->cube];
	size = fabric->sections[at->section].cube_nodes;
	if (count >= size)
		return WHOLE;
	return count >= wanted ? (uint64_t)count : PART + (uint64_t)(size - count);
}

void ocs_select_steer(void *evaluation)
{
	const struct ocs_config *config = ocs_controller_config();
	const struct ocs_fabric *fabric = config ? config->fabric : NULL;
	topology_eval_t *eval = evaluation;
	job_record_t *job = eval->job_ptr;
	int wanted = (int)(eval->req_nodes > eval->min_nodes ? eval->req_nodes : eval->min_nodes);
	int cubes = 0, *first, *idle;
	node_record_t *node;

	if (!config || !config->policies.keep_cubes_whole || !job->job_id || !job->details ||
	    job->details->contiguous || (job->bit_flags & SPREAD_JOB))
		return;
	first = xcalloc(fabric->nsections + 1, sizeof(*first));
	for (int i = 0; i < fabric->nsections; i++) {
		first[i] = cubes;
		cubes += fabric->sections[i].kind == OCS_TORUS ? fabric->sections[i].ncubes : 0;
	}
	if (cubes) {
		int count = bit_set_count(eval->node_map);

		idle = idle_count(fabric, first, cubes);
		steered.nodes = xcalloc(count + 1, sizeof(*steered.nodes));
		steered.weights = xcalloc(count + 1, sizeof(*steered.weights));
		for (int i = 0; (node = next_node_bitmap(eval->node_map, &i)); i++) {
			steered.nodes[steered.count] = node;
			steered.weights[steered.count++] = node->sched_weight;
			node->sched_weight = node->sched_weight << BITS |
					     nodes_dislike(fabric, first, idle,
							   ocs_select_node_fabric(i), wanted);
		}
		xfree(idle);
	}
	xfree(first);
}
