/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Which jobs are preempted for a job that asks something of the fabric.  cons_tres takes
 * candidates away in their order until the job fits: on a fabric that stops many that were
 * not in the way.  Here the fewest and cheapest are found first; cons_tres is then
 * shown these alone, and just the nodes that they free. */

#include "src/plugins/compat/conf.h"
#include "src/plugins/select/select_ocs.h"

#include <stdlib.h>
#include <time.h>

#include "src/interfaces/preempt.h"

#pragma weak slurm_job_preempt_mode

#define SOON_S 120 /* nodes that are cleaned up for longer than this may stay so */

/* The jobs that may be preempted, as the search sees them. */
struct candidates {
	job_record_t **jobs;
	struct ocs_controller_preemptable *entries;
	int count;
	int leaving;	  /* the first of them: in their grace time, on behalf of another job */
	int *users;	  /* per node of the fabric */
	uint64_t *usable; /* nodes that may be used once they are idle, */
	uint64_t *soon;	  /* and those that become idle without preemption */
};

enum answer { NONE, SOON, THESE };

static void mask_put(uint64_t *mask, int node)
{
	mask[node / 64] |= UINT64_C(1) << (node % 64);
}

static double time_elapsed(job_record_t *job)
{
	time_t now = time(NULL);

	return job->start_time && job->start_time < now ? (double)(now - job->start_time) : 1;
}

/* The importance that Slurm's preemption plugins go by; their own word for it is not
 * the same in all releases. */
static int rank_of(job_record_t *job)
{
	const slurmdb_qos_rec_t *qos = job->qos_ptr;

	if (ocs_conf_preempts_by_qos())
		return qos ? (int)(qos->priority < 0xffff ? qos->priority : 0xffff) : 0;
	return job->part_ptr ? job->part_ptr->priority_tier : 0;
}

static void add_nodes(struct ocs_controller_preemptable *entry, job_record_t *job)
{
	int *nodes, *all, count = ocs_select_nodes_of(job->node_bitmap, &nodes, NULL);

	all = xcalloc(entry->nnodes + count + 1, sizeof(*all));
	if (entry->nnodes)
		memcpy(all, entry->nodes, (size_t)entry->nnodes * sizeof(*all));
	if (count)
		memcpy(all + entry->nnodes, nodes, (size_t)count * sizeof(*all));
	for (int i = 0; i < count; i++)
		entry->cost += time_elapsed(job) * ocs_select_node_xpus(nodes[i]);
	xfree(entry->nodes);
	xfree(nodes);
	entry->nodes = all;
	entry->nnodes += count;
}

static int add_component(void *element, void *arg)
{
	job_record_t *job = element;

	if (IS_JOB_RUNNING(job) && job->node_bitmap)
		add_nodes(arg, job);
	return 0;
}

/* Suspending frees no XPU: the circuits stay. */
static bool may_go(job_record_t *job)
{
	uint16_t mode = slurm_job_preempt_mode(job);

	return IS_JOB_RUNNING(job) && job->node_bitmap &&
	       (mode == PREEMPT_MODE_REQUEUE || mode == PREEMPT_MODE_CANCEL);
}

static void collect_those(struct candidates *c, list_t *preemptable, bool leaving)
{
	list_itr_t *iterator = list_iterator_create(preemptable);
	job_record_t *job;

	while ((job = list_next(iterator))) {
		struct ocs_controller_preemptable *entry = &c->entries[c->count];

		if (!job->preempt_time == leaving || !may_go(job))
			continue;
		entry->rank = rank_of(job);
		if (job->het_job_list)
			list_for_each(job->het_job_list, add_component, entry);
		else
			add_nodes(entry, job);
		if (entry->nnodes)
			c->jobs[c->count++] = job;
		else
			xfree(entry->nodes);
	}
	list_iterator_destroy(iterator);
}

static void candidates_collect(struct candidates *c, list_t *preemptable)
{
	c->jobs = xcalloc(list_count(preemptable) + 1, sizeof(*c->jobs));
	c->entries = xcalloc(list_count(preemptable) + 1, sizeof(*c->entries));
	collect_those(c, preemptable, true);
	c->leaving = c->count;
	collect_those(c, preemptable, false);
}

static int look_at_job(void *element, void *arg)
{
	struct candidates *c = arg;
	job_record_t *job = element;
	bool runs = IS_JOB_RUNNING(job) || IS_JOB_SUSPENDED(job);
	bool leaves = !runs && IS_JOB_COMPLETING(job) && job->end_time + SOON_S > time(NULL);

	if ((!runs && !leaves) || !job->node_bitmap)
		return 0;
	for (int i = 0; next_node_bitmap(job->node_bitmap, &i); i++) {
		int node = ocs_select_node_fabric(i);

		if (node < 0)
			continue;
		c->users[node] += runs;
		if (leaves)
			mask_put(c->soon, node);
	}
	return 0;
}

/* A node that the job may have once it is cleaned up.  Features are not looked at. */
static bool will_serve(const struct ocs_select_test *t, node_record_t *node)
{
	const job_details_t *details = t->job->details;

	return !IS_NODE_DOWN(node) && !IS_NODE_DRAIN(node) && !IS_NODE_FAIL(node) &&
	       !details->features && t->job->part_ptr && t->job->part_ptr->node_bitmap &&
	       bit_test(t->job->part_ptr->node_bitmap, node->index) &&
	       !(details->exc_node_bitmap && bit_test(details->exc_node_bitmap, node->index));
}

static void candidates_look(struct candidates *c, const struct ocs_select_test *t, bitstr_t *nodes,
			    list_t *preemptable)
{
	int count = ocs_controller_fabric()->nnodes, words = count / 64 + 1;
	uint64_t *leaving;

	memset(c, 0, sizeof(*c));
	c->users = xcalloc(count + 1, sizeof(*c->users));
	c->usable = xcalloc(words, sizeof(*c->usable));
	c->soon = leaving = xcalloc(words, sizeof(*leaving));
	list_for_each(job_list, look_at_job, c);
	c->soon = xcalloc(words, sizeof(*c->soon));
	for (int i = 0; i < count; i++) {
		int index = ocs_select_node_slurm(i);
		node_record_t *node = index >= 0 ? node_record_table_ptr[index] : NULL;
		bool given;

		if (!node || node->sus_job_cnt)
			continue;
		given = bit_test(nodes, index);
		if (given && !ocs_controller_held(i))
			mask_put(c->usable, i);
		if (!c->users[i] &&
		    (given || ((leaving[i / 64] >> (i % 64) & 1) && will_serve(t, node))))
			mask_put(c->soon, i);
	}
	xfree(leaving);
	candidates_collect(c, preemptable);
}

static void candidates_clear(struct candidates *c)
{
	for (int i = 0; c->entries && i < c->count; i++)
		xfree(c->entries[i].nodes);
	xfree(c->jobs);
	xfree(c->entries);
	xfree(c->users);
	xfree(c->usable);
	xfree(c->soon);
}

/* Candidates LIST (COUNT indexes) lose their nodes, or get them back (BY is -1 or 1). */
static void candidates_shift(struct candidates *c, const int *list, int count, int by)
{
	for (int i = 0; i < count; i++) {
		const struct ocs_controller_preemptable *entry = &c->entries[list[i]];

		for (int n = 0; n < entry->nnodes; n++)
			c->users[entry->nodes[n]] += by;
	}
}

/* One search among candidates FIRST to LAST: sets SET to those that go, as
 * ocs_controller_victims. */
static int victims_find(struct candidates *c, struct ocs_controller_preemption *p, int first,
			int last, int *set, int *nodes, int *count)
{
	int found;

	p->jobs = c->entries + first;
	p->njobs = last - first;
	found = ocs_controller_victims(ocs_select_call_request(), p, set, nodes, count, NULL);
	for (int i = 0; i < found; i++)
		set[i] += first;
	return found;
}

/* The victims in SET, or -1.  Who leaves in any case costs nothing: others go only if those
 * are not enough, and as few as if they were gone. */
static int find_victims(struct candidates *c, struct ocs_controller_preemption *p, int *set,
			int *nodes, int *count)
{
	int *leaving = xcalloc(c->leaving + 1, sizeof(*leaving)), found = -1, others;

	for (int i = 0; i < c->leaving; i++)
		leaving[i] = i;
	if (c->leaving)
		found = victims_find(c, p, 0, c->leaving, set, nodes, count);
	if (found < 0) {
		candidates_shift(c, leaving, c->leaving, -1);
		others = victims_find(c, p, c->leaving, c->count, set, nodes, count);
		candidates_shift(c, leaving, c->leaving, 1);
		if (others >= 0 && c->leaving) {
			candidates_shift(c, set, others, -1);
			found = victims_find(c, p, 0, c->leaving, set + others, nodes, count);
			candidates_shift(c, set, others, 1);
		} else {
			found = others >= 0 ? 0 : -1;
		}
		if (found >= 0)
			found += others;
	}
	xfree(leaving);
	return found;
}

/* Who has to go, and which nodes the job gets then. */
static enum answer victims_decide(const struct ocs_select_test *t, struct candidates *c,
				  list_t *victims, bitstr_t *chosen)
{
	const struct ocs_fabric *fabric = ocs_controller_fabric();
	struct ocs_controller_preemption p = {
		.usable = c->soon,
		.users = c->users,
		.min = (int)t->min_nodes,
		.max = t->max_nodes >= INT32_MAX ? 0 : (int)t->max_nodes,
	};
	int *nodes = xcalloc(fabric->nnodes + 1, sizeof(*nodes));
	int *set = xcalloc(c->count + 1, sizeof(*set)), *required = NULL, count, found;

	p.nrequired = ocs_select_nodes_of(t->job->details->req_node_bitmap, &required, NULL);
	p.required = required;
	found = victims_find(c, &p, 0, 0, set, nodes, &count);
	if (found < 0) {
		p.usable = c->usable;
		found = find_victims(c, &p, set, nodes, &count);
		for (int i = 0; i < found; i++)
			list_append(victims, c->jobs[set[i]]);
		for (int i = 0; found > 0 && i < count; i++)
			bit_set(chosen, ocs_select_node_slurm(nodes[i]));
	} else {
		found = 0;
	}
	xfree(required);
	xfree(nodes);
	xfree(set);
	return found > 0 ? THESE : found == 0 ? SOON : NONE;
}

/* "12, 15 and 3 others" */
static char *jobs_names(list_t *jobs)
{
	list_itr_t *iterator = list_iterator_create(jobs);
	int count = list_count(jobs), shown = 0;
	char *text = NULL;
	job_record_t *job;

	while (shown < 4 && (job = list_next(iterator)))
		xstrfmtcat(text, "%s%u", shown++ ? ", " : "", job->job_id);
	if (count > shown)
		xstrfmtcat(text, " and %d others", count - shown);
	list_iterator_destroy(iterator);
	return text;
}

/* Preempts VICTIMS, for just NODES.  Servers are all alike: Slurm takes its pick of those
 * that are free then. */
static int victims_preempt(const struct ocs_select_test *t, list_t *victims, bitstr_t *nodes)
{
	char *list;
	int rc;

	bit_and(t->nodes, nodes);
	rc = ocs_select_test_base(t, victims);
	if (rc != SLURM_SUCCESS || t->mode != SELECT_MODE_RUN_NOW || !t->preempted ||
	    !*t->preempted)
		return rc;
	ocs_select_promise_make(t->job, t->nodes, *t->preempted);
	list = jobs_names(*t->preempted);
	ocs_slurm_info("%pJ: preempts %s", t->job, list);
	ocs_select_call_reason(
		"waits until the jobs it preempts have left and their circuits are taken down: %s",
		list);
	xfree(list);
	return rc;
}

/* The job's nodes were promised before.  They are all it is shown. */
static int keep_promise(const struct ocs_select_test *t, bitstr_t *promised)
{
	list_t *left = list_create(NULL);
	list_itr_t *iterator;
	job_record_t *job;
	bool leaving = true;
	char *list;
	int rc = SLURM_ERROR;

	iterator = t->preemptable ? list_iterator_create(t->preemptable) : NULL;
	while (iterator && (job = list_next(iterator))) {
		if (!ocs_select_promise_holds(t->job, job) || !IS_JOB_RUNNING(job))
			continue;
		list_append(left, job);
		/* After its grace time slurmctld stops it when it is preempted once more. */
		leaving = leaving && job->preempt_time && time(NULL) < job->end_time;
	}
	if (iterator)
		list_iterator_destroy(iterator);
	if (bit_super_set(promised, t->nodes) && (!list_count(left) || !leaving)) {
		bit_and(t->nodes, promised);
		rc = ocs_select_test_base(t, list_count(left) ? left : NULL);
	}
	if (list_count(left) &&
	    (rc != SLURM_SUCCESS || (t->preempted && *t->preempted && list_count(*t->preempted)))) {
		list = jobs_names(left);
		ocs_select_call_reason("waits until the jobs it preempts have left: %s", list);
		xfree(list);
	} else if (rc != SLURM_SUCCESS) {
		ocs_select_call_reason(
			"waits until the nodes of the jobs it preempted are cleaned up and their circuits taken down");
	}
	list_destroy(left);
	return rc;
}

static int victims_search(const struct ocs_select_test *t, bitstr_t *nodes, int rc)
{
	list_t *victims = list_create(NULL);
	bitstr_t *chosen = bit_alloc(node_record_count);
	bool now = t->mode == SELECT_MODE_RUN_NOW;
	struct candidates c;

	candidates_look(&c, t, nodes, t->preemptable);
	switch (victims_decide(t, &c, victims, chosen)) {
	case THESE:
		bit_copybits(t->nodes, nodes);
		rc = victims_preempt(t, victims, chosen);
		break;
	case SOON:
		if (now && !ocs_select_call_chose())
			ocs_select_call_reason(
				"waits until the nodes of ended jobs are cleaned up and their circuits taken down, so no job is preempted");
		break;
	case NONE:
		break;
	}
	candidates_clear(&c);
	list_destroy(victims);
	FREE_NULL_BITMAP(chosen);
	return rc;
}

int ocs_select_test_preempting(const struct ocs_select_test *t)
{
	bitstr_t *promised = NULL, *nodes;
	int rc;

	if (t->mode == SELECT_MODE_RUN_NOW)
		promised = ocs_select_promise_of(t->job);
	if (promised)
		return keep_promise(t, promised);
	if (!t->preemptable || t->mode == SELECT_MODE_TEST_ONLY ||
	    (t->will_run && t->will_run->start > time(NULL)) ||
	    xstrcasestr(slurm_conf.preempt_params, "strict_order"))
		return ocs_select_test_base(t, t->preemptable);
	nodes = bit_copy(t->nodes);
	if (t->mode == SELECT_MODE_RUN_NOW) {
		rc = ocs_select_test_base(t, NULL);
		/* Not the fabric is in the way, but a licence. */
		if (rc == ESLURM_LICENSES_UNAVAILABLE) {
			bit_copybits(t->nodes, nodes);
			rc = ocs_select_test_base(t, t->preemptable);
		} else if (rc != SLURM_SUCCESS) {
			rc = victims_search(t, nodes, rc);
		}
	} else {
		rc = victims_search(t, nodes, SLURM_ERROR);
		if (rc != SLURM_SUCCESS) {
			bit_copybits(t->nodes, nodes);
			rc = ocs_select_test_base(t, t->preemptable);
		}
	}
	FREE_NULL_BITMAP(nodes);
	return rc;
}
