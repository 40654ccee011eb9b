/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Nodes that were promised to a job when others were preempted for it.  Until it starts
 * no other job gets them, and it gets no others.  Everything here happens under
 * slurmctld's job write lock. */

#include "src/plugins/select/select_ocs.h"

#include <stdlib.h>
#include <time.h>

#define EARNEST_S 2 /* by then slurmctld has stopped the first victim, if it will at all */
#define IDLE_S 60   /* what the job does not take for so long it cannot take */

struct ocs_select_promise {
	uint32_t job;
	bitstr_t *nodes;
	uint32_t *victims;
	int nvictims;
	time_t made;
	time_t idle; /* since when the nodes wait for the job; 0: they do not */
	struct ocs_select_promise *next;
};

static struct ocs_select_promise *promises;

static void promise_drop(struct ocs_select_promise **at)
{
	struct ocs_select_promise *promise = *at;

	*at = promise->next;
	FREE_NULL_BITMAP(promise->nodes);
	xfree(promise->victims);
	xfree(promise);
}

void ocs_select_promise_drop(uint32_t job)
{
	for (struct ocs_select_promise **at = &promises; *at;) {
		if (!job || (*at)->job == job)
			promise_drop(at);
		else
			at = &(*at)->next;
	}
}

/* Whether slurmctld has begun to stop any of the victims: a limit may have kept it from that. */
static bool in_earnest(const struct ocs_select_promise *promise)
{
	for (int i = 0; i < promise->nvictims; i++) {
		job_record_t *victim = find_job_record(promise->victims[i]);

		if (!victim || !IS_JOB_RUNNING(victim) || victim->preempt_time)
			return true;
	}
	return false;
}

static bool is_victim(const struct ocs_select_promise *promise, uint32_t job)
{
	for (int i = 0; i < promise->nvictims; i++) {
		if (promise->victims[i] == job)
			return true;
	}
	return false;
}

/* Jobs besides the victims that run on promised nodes: -w, or a reservation. */
static int job_overlaps(void *element, void *arg)
{
	const struct ocs_select_promise *promise = arg;
	job_record_t *job = element;
	uint32_t id = job->het_job_id ? job->het_job_id : job->job_id;

	return (IS_JOB_RUNNING(job) || IS_JOB_SUSPENDED(job)) && job->node_bitmap &&
	       !is_victim(promise, id) && bit_overlap_any(job->node_bitmap, promise->nodes);
}

static bool promise_stands(struct ocs_select_promise *promise, time_t now)
{
	job_record_t *job = find_job_record(promise->job);
	bool idle = true;
	node_record_t *node;

	if (!job || !IS_JOB_PENDING(job) || !job->priority || !job->details ||
	    job->details->begin_time > now)
		return false;
	if (now > promise->made + EARNEST_S && !in_earnest(promise))
		return false;
	for (int i = 0; (node = next_node_bitmap(promise->nodes, &i)); i++) {
		if (IS_NODE_DOWN(node) || IS_NODE_DRAIN(node) || IS_NODE_FAIL(node))
			return false;
		if (node->run_job_cnt || IS_NODE_COMPLETING(node))
			idle = false;
	}
	if (!idle) {
		promise->idle = 0;
		return !list_find_first(job_list, job_overlaps, promise);
	}
	if (!promise->idle)
		promise->idle = now;
	return now <= promise->idle + IDLE_S;
}

static void promises_prune(void)
{
	time_t now = time(NULL);

	for (struct ocs_select_promise **at = &promises; *at;) {
		if (promise_stands(*at, now)) {
			at = &(*at)->next;
			continue;
		}
		ocs_slurm_info("job %u: what it was promised when others were preempted is void",
			       (*at)->job);
		promise_drop(at);
	}
}

void ocs_select_promise_make(job_record_t *job, bitstr_t *nodes, list_t *victims)
{
	struct ocs_select_promise *promise = xmalloc(sizeof(*promise));
	list_itr_t *iterator = list_iterator_create(victims);
	job_record_t *victim;

	ocs_select_promise_drop(job->job_id);
	promise->job = job->job_id;
	promise->nodes = bit_copy(nodes);
	promise->victims = xcalloc(list_count(victims) + 1, sizeof(*promise->victims));
	while ((victim = list_next(iterator)))
		promise->victims[promise->nvictims++] = victim->job_id;
	list_iterator_destroy(iterator);
	promise->made = time(NULL);
	promise->next = promises;
	promises = promise;
}

bitstr_t *ocs_select_promise_of(job_record_t *job)
{
	if (promises)
		promises_prune();
	for (struct ocs_select_promise *at = promises; at; at = at->next) {
		if (at->job == job->job_id)
			return at->nodes;
	}
	return NULL;
}

bool ocs_select_promise_holds(job_record_t *job, job_record_t *victim)
{
	for (struct ocs_select_promise *at = promises; at; at = at->next) {
		if (at->job == job->job_id)
			return is_victim(at, victim->job_id);
	}
	return false;
}

bool ocs_select_promise_respect(job_record_t *job, bitstr_t *nodes)
{
	bitstr_t *required = job->details ? job->details->req_node_bitmap : NULL;

	if (promises)
		promises_prune();
	for (struct ocs_select_promise *at = promises; at; at = at->next) {
		if (at->job == job->job_id)
			continue;
		if (required && bit_overlap_any(required, at->nodes))
			return false;
		bit_and_not(nodes, at->nodes);
	}
	return true;
}
