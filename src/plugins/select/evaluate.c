/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/plugins/compat/conf.h"
#include "src/plugins/compat/spank_env.h"
#include "src/plugins/select/select_ocs.h"
#include "src/scheduler/submit_options.h"

#include <stdarg.h>
#include <stdio.h>

/* The call of cons_tres under way in this thread. */
static __thread struct {
	job_record_t *job;
	enum ocs_controller_mode mode;
	bool asks; /* something of the fabric */
	struct ocs_controller_request request;
	bitstr_t *nodes;    /* what cons_tres started from, to run now */
	bitstr_t *narrowed; /* the nodes chosen beforehand, all that it is shown */
	bool asked;	    /* about all nodes that count, and the answer is in err */
	bool refused;	    /* the hook found no nodes at least once, */
	bool chose;	    /* or found some */
	bool nodes_help;
	struct ocs_error err; /* why, the last time */
	bool reasoned;	      /* err is what the job waits for, whatever the hook says */
} call;

const struct ocs_controller_request *ocs_select_call_request(void)
{
	return &call.request;
}

bool ocs_select_call_chose(void)
{
	return call.chose;
}

/* cons_tres is called once more. */
static void call_again(void)
{
	call.refused = call.chose = call.asked = false;
	call.nodes_help = true;
	memset(&call.err, 0, sizeof(call.err));
}

void ocs_select_call_reason(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(call.err.text, sizeof(call.err.text), format, arguments);
	va_end(arguments);
	call.err.code = OCS_NOT_NOW;
	call.reasoned = call.refused = call.nodes_help = true;
	call.chose = false;
}

/* Slurm runs no prolog for an external job, so nothing would ask for its circuits.  It is refused at
 * submit and by updates, but may have been queued before ocs.yaml said so. */
static int external_check(bool ports, struct ocs_error *err)
{
	if (ports)
		return ocs_error_set(
			err, OCS_NOT_NOW,
			"does not start: Slurm runs no prolog for an external job, so it would have no circuits; cancel it, or give it a partition without switches");
	if (!ocs_controller_partitions_known())
		return ocs_error_set(
			err, OCS_NOT_NOW,
			"no external job starts until ocs.yaml can be read, which says in which partitions jobs get circuits");
	return 0;
}

int ocs_select_request(job_record_t *job, struct ocs_controller_request *request,
		       struct ocs_error *err)
{
	const char *partition = job->part_ptr ? job->part_ptr->name : job->partition;
	int rc;

	/* Reservations are tested with a fake job. */
	if (!job->job_id || !job->details)
		return 0;
	rc = ocs_controller_request(job->job_id, partition, job->extra, request, err);
	if ((rc > 0 || request->shaped) && ocs_conf_missing())
		rc = ocs_error_set(err, OCS_NEVER, "%s", ocs_conf_missing());
	/* It would run without circuits, on the nodes of its shape or any others. */
	if (rc >= 0 && !request->shaped && ocs_spank_get(job, OCS_OPTION_PREFIX "shape"))
		rc = ocs_error_set(
			err, OCS_NEVER,
			"it was submitted with --shape, but there is no shape in its Extra: JobSubmitPlugins of slurm.conf lacks ocs, or has another plugin behind it that writes Extra; list ocs last");
	if (rc >= 0 && (job->bit_flags & OCS_EXTERNAL_JOB) && external_check(rc > 0, err) < 0)
		rc = -1;
	return rc;
}

/* Once for a job, though several tests follow each other. */
static void call_complain(const char *how)
{
	static uint32_t last;

	if (last != call.job->job_id)
		ocs_slurm_info("%pJ %s%s", call.job, how, call.err.text);
	last = call.job->job_id;
}

int ocs_select_test_begin(job_record_t *job, bitstr_t *nodes, uint16_t mode, bool forecast)
{
	int rc;

	memset(&call, 0, sizeof(call));
	call.job = job;
	call.nodes_help = true;
	if (mode & SELECT_MODE_TEST_ONLY)
		call.mode = OCS_TEST_ONLY;
	else if (mode & (SELECT_MODE_WILL_RUN | SELECT_MODE_RESV))
		call.mode = forecast ? OCS_FORECAST : OCS_WILL_RUN;
	else
		call.mode = OCS_RUN_NOW;
	rc = ocs_select_request(job, &call.request, &call.err);
	/* Without ocs.yaml a shape waits: nothing is known that it could never fit. */
	if (rc < 0 && !ocs_controller_fabric() && call.mode == OCS_TEST_ONLY)
		return SLURM_SUCCESS;
	call.asks = rc != 0;
	if (rc < 0) {
		call_complain("");
		call.refused = true;
		call.nodes_help = call.err.code == OCS_NEVER;
		return call.nodes_help ? ESLURM_REQUESTED_TOPO_CONFIG_UNAVAILABLE : SLURM_ERROR;
	}
	/* Nodes of the fabric are never shared with a job that has circuits. */
	if (rc > 0) {
		job->details->whole_node |= WHOLE_NODE_REQUIRED;
		job->details->share_res = 0;
		if (call.mode == OCS_RUN_NOW)
			call.nodes = bit_copy(nodes);
	}
	return SLURM_SUCCESS;
}

/* To cons_tres the nodes of a suspended job are free, but its circuits stay. */
static uint64_t *usable_nodes(bitstr_t *map)
{
	const struct ocs_fabric *fabric = ocs_controller_fabric();
	uint64_t *usable = xcalloc((fabric->nnodes + 63) / 64 + 1, sizeof(*usable));
	node_record_t *record;

	for (int i = 0; (record = next_node_bitmap(map, &i)); i++) {
		int node = ocs_select_node_fabric(i);

		if (node >= 0 && (!record->sus_job_cnt || call.mode == OCS_TEST_ONLY))
			usable[node / 64] |= UINT64_C(1) << (node % 64);
	}
	return usable;
}

/* With preemption cons_tres starts from busy nodes, too. */
static void leave_idle(bitstr_t *map)
{
	node_record_t *node;

	for (int i = 0; (node = next_node_bitmap(map, &i)); i++) {
		if (node->run_job_cnt)
			bit_clear(map, i);
	}
}

/* Whether it was known before that the job waits. */
static bool reason_remember(job_record_t *job)
{
	char shape[OCS_SHAPE_TEXT] = "";
	bool known;

	if (call.mode != OCS_RUN_NOW)
		return false;
	if (!job->user_name)
		job->user_name = uid_to_string_or_null(job->user_id);
	if (call.request.shaped)
		ocs_shape_named_format(&call.request.shape, shape);
	known = ocs_controller_pending(job->job_id, job->user_id, job->user_name, shape,
				       call.err.text, !call.nodes_help);
	ocs_select_keeper_wake();
	return known;
}

/* What is missing is worth saying, too, if cons_tres gave up before it evaluated nodes
 * because too few were left.  And if it is not the shape that is in the way but what a
 * node has to have, the shape is not to be blamed. */
static void ask_afterwards(job_record_t *job)
{
	const struct ocs_controller_request *request = &call.request;
	int *chosen = xcalloc(ocs_controller_fabric()->nnodes + 1, sizeof(*chosen));
	uint64_t *usable;
	struct ocs_error err;
	bool nodes_help;

	leave_idle(call.nodes);
	usable = usable_nodes(call.nodes);
	if (ocs_controller_choose(request, call.mode, usable, NULL, 0, (int)job->details->min_nodes,
				  0, chosen, &nodes_help, &err) < 0) {
		call.refused = true;
		call.nodes_help = nodes_help;
		call.err = err;
	} else if (call.refused && !job->details->req_node_bitmap) {
		call.nodes_help = true;
		ocs_error_set(&call.err, OCS_NOT_NOW,
			      "the free nodes lack CPUs, memory or GRES that the job asks of each");
	}
	xfree(usable);
	xfree(chosen);
}

/* Free cubes that a reservation keeps from the job are no lack of cubes. */
static void mention_reserved(job_record_t *job)
{
	size_t length = strlen(call.err.text);
	node_record_t *node;
	int count = 0;

	if (!job->part_ptr || !job->part_ptr->node_bitmap)
		return;
	for (int i = 0; (node = next_node_bitmap(job->part_ptr->node_bitmap, &i)); i++)
		count += (IS_NODE_RES(node) || IS_NODE_MAINT(node)) && !node->run_job_cnt &&
			 !IS_NODE_COMPLETING(node) && !IS_NODE_DOWN(node) && !IS_NODE_DRAIN(node) &&
			 !bit_test(call.nodes, i);
	if (count)
		snprintf(call.err.text + length, sizeof(call.err.text) - length,
			 " (%d idle %s reserved)", count, count == 1 ? "node is" : "nodes are");
}

/* Such a job is not started, however long it waits: no job is to be held back for it. */
static int wait_for_other_mode(job_record_t *job)
{
	const slurmdb_qos_rec_t *qos = job->qos_ptr;
	bool by_qos = qos && ocs_conf_preempts_by_qos();
	bool its_own = by_qos ? qos->preempt_mode : job->part_ptr->preempt_mode != NO_VAL16;

	ocs_select_call_reason(
		"does not start: %s %s has PreemptMode=SUSPEND%s, and a suspended job would keep its circuits; give it another with scontrol update",
		by_qos ? "QOS" : "partition", by_qos ? qos->name : job->part_ptr->name,
		its_own ? "" : " (as slurm.conf says for all)");
	call.nodes_help = false;
	return SLURM_ERROR;
}

int ocs_select_test_run(const struct ocs_select_test *given)
{
	bool plans = call.mode == OCS_RUN_NOW || call.mode == OCS_WILL_RUN;
	struct ocs_select_test test = *given, *t = &test;
	list_t *left;
	int rc;

	if (plans && call.asks && ocs_select_suspends(t->job))
		return wait_for_other_mode(t->job);
	if (plans && !ocs_select_promise_respect(t->job, t->nodes)) {
		ocs_select_call_reason(
			"waits: a node that was asked for by name is promised to a job for which others were preempted");
		return SLURM_ERROR;
	}
	if (call.mode == OCS_RUN_NOW)
		ocs_select_spare_nodes(t->nodes);
	left = ocs_select_spare_jobs(t->preemptable);
	if (left)
		t->preemptable = list_count(left) ? left : NULL;
	rc = call.asks ? ocs_select_test_preempting(t) :
			 t->base(t->job, t->nodes, t->min_nodes, t->max_nodes, t->req_nodes,
				 t->mode, t->preemptable, t->preempted, t->excluded, t->will_run);
	FREE_NULL_LIST(left);
	return rc;
}

int ocs_select_test_end(job_record_t *job, int rc)
{
	bool asks = call.asks, known = false, nodes_help, refused;
	enum ocs_controller_mode mode = call.mode;

	ocs_select_steer_undo();
	if (call.nodes && rc != SLURM_SUCCESS && !call.chose && !call.reasoned && !call.asked &&
	    call.err.code != OCS_NEVER)
		ask_afterwards(job);
	if (call.nodes && call.refused && !call.chose && !call.reasoned &&
	    call.err.code == OCS_NOT_NOW)
		mention_reserved(job);
	FREE_NULL_BITMAP(call.nodes);
	refused = call.refused && !call.chose;
	nodes_help = call.nodes_help;
	/* Those it preempts have still to leave. */
	if (asks && (rc != SLURM_SUCCESS || call.reasoned) && refused && call.err.code != OCS_NEVER)
		known = reason_remember(job);
	else if (asks && mode == OCS_RUN_NOW && rc == SLURM_SUCCESS)
		ocs_controller_pending(job->job_id, job->user_id, NULL, NULL, NULL, false);
	call.job = NULL;
	if (!asks || rc == SLURM_SUCCESS || !refused)
		return rc;
	if (mode != OCS_RUN_NOW || nodes_help ||
	    xstrcasestr(slurm_conf.sched_params, "bf_licenses"))
		return rc;
	/* Nothing that runs or will end can help this job: slurmctld must not
	 * keep nodes idle for it.  Of the answers that leave a job pending, this
	 * one does not close the partition for those behind it.  But srun would
	 * print it, so at submission it is the ordinary one. */
	if (!known && time(NULL) <= job->details->submit_time) {
		ocs_select_keeper_schedule();
		return rc;
	}
	return ESLURM_LICENSES_UNAVAILABLE;
}

/* Leaves only CHOSEN in the map. */
static void map_shrink(bitstr_t *map, const int *chosen, int count)
{
	bit_clear_all(map);
	for (int i = 0; i < count; i++) {
		int index = ocs_select_node_slurm(chosen[i]);

		if (index >= 0)
			bit_set(map, index);
	}
}

/* A placement is exactly these nodes. */
static bool job_placed(void)
{
	return call.request.section->kind == OCS_TORUS ||
	       call.request.section->kind == OCS_STATIC || call.request.groups.groups;
}

/* Leaves in MAP the nodes that JOB gets of those in it.  Their number, or -1 with the
 * reason in call.err. */
static int choose_of(job_record_t *job, bitstr_t *map, uint32_t min_nodes, uint32_t max_nodes)
{
	const struct ocs_fabric *fabric = ocs_controller_fabric();
	int *required = NULL, nrequired = 0, outside = 0, count;
	int *chosen = xcalloc(fabric->nnodes + 1, sizeof(*chosen));
	uint64_t *usable = usable_nodes(map);
	int max = max_nodes >= INT32_MAX ? 0 : (int)max_nodes;

	if (job->details->req_node_bitmap)
		nrequired = ocs_select_nodes_of(job->details->req_node_bitmap, &required, &outside);
	for (int i = 0; i < nrequired && !outside; i++) {
		if (fabric->nodes[required[i]].section != call.request.section->index)
			outside = 1;
	}
	if (outside)
		count = ocs_error_set(&call.err, OCS_NEVER,
				      "a node that was asked for by name is not part of section %s",
				      call.request.section->name);
	else
		count = ocs_controller_choose(&call.request, call.mode, usable, required, nrequired,
					      (int)min_nodes, max, chosen, &call.nodes_help,
					      &call.err);
	if (count > 0)
		map_shrink(map, chosen, count);
	xfree(required);
	xfree(chosen);
	xfree(usable);
	return count;
}

/* Those of MAP that need not be powered up; NULL if that is all of them, or none. */
static bitstr_t *nodes_awake(bitstr_t *map)
{
	bitstr_t *up = NULL;
	node_record_t *node;

	for (int i = 0; (node = next_node_bitmap(map, &i)); i++) {
		if (!IS_NODE_POWERED_DOWN(node) && !IS_NODE_POWERING_UP(node))
			continue;
		if (!up)
			up = bit_copy(map);
		bit_clear(up, i);
	}
	if (up && bit_ffs(up) < 0)
		FREE_NULL_BITMAP(up);
	return up;
}

/* The same.  Nodes are powered up only if there is no placement without: cons_tres, which would
 * take them last by their weight, does not choose here. */
static int nodes_choose(job_record_t *job, bitstr_t *map, uint32_t min_nodes, uint32_t max_nodes)
{
	bitstr_t *up = job_placed() && call.mode != OCS_TEST_ONLY ? nodes_awake(map) : NULL;
	int count;

	call.request.tentative = up != NULL;
	count = up ? choose_of(job, up, min_nodes, max_nodes) : -1;
	call.request.tentative = false;
	if (count > 0)
		bit_copybits(map, up);
	else
		count = choose_of(job, map, min_nodes, max_nodes);
	FREE_NULL_BITMAP(up);
	return count;
}

static int base_test(const struct ocs_select_test *t, list_t *preemptable)
{
	call_again();
	return t->base(t->job, t->nodes, t->min_nodes, t->max_nodes, t->req_nodes, t->mode,
		       preemptable, t->preempted, t->excluded, t->will_run);
}

static int choose_at(const struct ocs_select_test *t, const struct ocs_select_future *future,
		     int moment)
{
	ocs_select_future_nodes(future, moment, t->nodes);
	return nodes_choose(t->job, t->nodes, t->min_nodes, t->max_nodes);
}

/* Leaves in the test's nodes those of the placement that is possible first.  More idle
 * nodes never make one impossible. */
static int choose_first(const struct ocs_select_test *t)
{
	struct ocs_select_future *future = ocs_select_future_create(t->nodes, t->will_run);
	int no = 0, yes = 0, at = 0, count = choose_at(t, future, 0);

	if (count < 0 && call.err.code == OCS_NOT_NOW && !(t->job->bit_flags & TEST_NOW_ONLY)) {
		at = yes = ocs_select_future_moments(future) - 1;
		if (yes)
			count = choose_at(t, future, yes);
	}
	while (count > 0 && yes - no > 1) {
		at = (no + yes) / 2;
		if (choose_at(t, future, at) > 0)
			yes = at;
		else
			no = at;
	}
	if (count > 0 && at != yes)
		count = choose_at(t, future, yes);
	ocs_select_future_destroy(future);
	return count;
}

/* The same among the nodes that are idle. */
static int choose_now(const struct ocs_select_test *t)
{
	leave_idle(t->nodes);
	return nodes_choose(t->job, t->nodes, t->min_nodes, t->max_nodes);
}

/* cons_tres weighs every node that it is shown.  Where the placement can be chosen
 * beforehand, it is shown no others, and where there is none it is not asked. */
int ocs_select_test_base(const struct ocs_select_test *t, list_t *preemptable)
{
	int rc = SLURM_ERROR, count;
	bitstr_t *all;

	if (call.mode == OCS_TEST_ONLY || preemptable || !job_placed() ||
	    t->job->details->req_node_bitmap)
		return base_test(t, preemptable);
	all = bit_copy(t->nodes);
	call_again();
	count = call.mode == OCS_RUN_NOW ? choose_now(t) : choose_first(t);
	if (count > 0) {
		call.narrowed = bit_copy(t->nodes);
		rc = base_test(t, NULL);
		FREE_NULL_BITMAP(call.narrowed);
	} else {
		call.refused = call.asked = call.err.code != OCS_NEVER;
	}
	/* Some of the nodes lack what the job asks of each: others may have it. */
	if (rc != SLURM_SUCCESS && rc != ESLURM_LICENSES_UNAVAILABLE && !call.asked) {
		bit_copybits(t->nodes, all);
		rc = base_test(t, NULL);
	}
	FREE_NULL_BITMAP(all);
	return rc;
}

/* The nodes chosen beforehand, if cons_tres left all of them. */
static int eval_confirm(const topology_eval_t *eval)
{
	int count = bit_set_count(call.narrowed);

	return bit_super_set(call.narrowed, eval->node_map) && (uint32_t)count >= eval->min_nodes &&
			       (uint32_t)count <= eval->max_nodes ?
		       count :
		       ocs_error_set(&call.err, OCS_NOT_NOW, "a chosen node does not serve");
}

int ocs_select_evaluate(void *evaluation)
{
	topology_eval_t *eval = evaluation;
	int count;

	ocs_select_steer_undo();
	/* A call that did not come through our job_test asks nothing. */
	if (call.job != eval->job_ptr)
		return SLURM_SUCCESS;
	if (!call.asks) {
		if (call.mode != OCS_TEST_ONLY)
			ocs_select_steer(eval);
		return SLURM_SUCCESS;
	}
	count = call.narrowed ? eval_confirm(eval) :
				nodes_choose(eval->job_ptr, eval->node_map, eval->min_nodes,
					     eval->max_nodes);
	if (count < 0) {
		call.refused = true;
		if (call.err.code == OCS_NEVER && call.mode == OCS_TEST_ONLY)
			call_complain("can never start: ");
		return call.err.code == OCS_NEVER ? ESLURM_REQUESTED_TOPO_CONFIG_UNAVAILABLE :
						    SLURM_ERROR;
	}
	call.chose = true;
	/* Servers are all alike, so Slurm may take its pick. */
	if (job_placed()) {
		eval->min_nodes = eval->max_nodes = eval->req_nodes = (uint32_t)count;
	} else if (call.request.shaped) {
		count = call.request.servers;
		eval->min_nodes = eval->max_nodes = eval->req_nodes = (uint32_t)count;
	}
	return SLURM_SUCCESS;
}
