/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Rails whose circuits follow the phases of a job: the controller of src/rails decides, as it does in
 * a real job, and a change takes spec.change.  All rails of a job change together, so one stands for
 * them.  Where circuits are changed before they are demanded, a run on demand has shown before which
 * group each server will send in next. */

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/netsim/opus.h"
#include "src/netsim/step_internal.h"
#include "src/rails/coordinator.h"
#include "src/util/error.h"
#include "src/util/text.h"

#define NS_PER_MS 1e6
#define NEVER (INT64_MAX / 4)

/* Servers that send together. */
struct rails_group {
	int *members, count;
	struct ocs_rails_need need;
	int *tasks; /* of the job, by index of the operation */
	int ntasks, tasks_size;
};

struct rails_job {
	struct ocs_netsim_opus opus;
	struct ocs_coordinator *coordinator; /* NULL: rails that are shared out once */
	struct rails_group *groups;
	int ngroups, groups_size;
	int *group_of; /* of each task; -1: it sends nothing */
	int *idx;      /* of each task: its operation */
	int *hash;     /* of members: the first group with them + 1 */
	int hash_size;
	uint64_t seq; /* of the last request */
	double due;   /* when it is answered; INFINITY: none */
	bool begun, wished;
	int *seen; /* of each server: how many operations it has come to */
};

struct step_rails {
	struct rails_job *jobs;
	int njobs;
};

static int64_t now_ns(const struct step_run *run)
{
	return (int64_t)llround(ocs_flownet_now(run->net) * NS_PER_MS);
}

static unsigned members_hash(const int *members, int count)
{
	unsigned hash = 2166136261u;

	for (int k = 0; k < count; k++)
		hash = (hash ^ (unsigned)members[k]) * 16777619u;
	return hash;
}

static int int_compare(const void *left, const void *right)
{
	return *(const int *)left - *(const int *)right;
}

/* The group of MEMBERS, which it keeps; new ones are made known to the controller.  -1 with ERR. */
static int group_find(struct rails_job *job, int *members, int count, struct ocs_rails_need need,
		      struct ocs_error *err)
{
	int at;

	qsort(members, (size_t)count, sizeof(int), int_compare);
	at = (int)(members_hash(members, count) % (unsigned)job->hash_size);
	for (; job->hash[at]; at = (at + 1) % job->hash_size) {
		const struct rails_group *group = &job->groups[job->hash[at] - 1];

		if (group->count == count &&
		    !memcmp(group->members, members, (size_t)count * sizeof(int))) {
			free(members);
			return job->hash[at] - 1;
		}
	}
	if (job->ngroups == job->groups_size) {
		job->groups_size = job->groups_size ? 2 * job->groups_size : 16;
		job->groups =
			ocs_realloc(job->groups, (size_t)job->groups_size * sizeof(*job->groups));
	}
	job->groups[job->ngroups] =
		(struct rails_group){ .members = members, .count = count, .need = need };
	job->hash[at] = ++job->ngroups;
	if (job->coordinator && ocs_coordinator_group(job->coordinator, (uint64_t)job->ngroups - 1,
						      members, count, 1, err))
		return -1;
	return job->ngroups - 1;
}

static int groups_make(struct rails_job *job, const struct ocs_netsim_graph *graph,
		       const struct ocs_netsim_spec *spec, struct ocs_error *err)
{
	job->hash_size = 2 * (graph->ngroups + graph->ntasks) + 1;
	job->hash = ocs_calloc((size_t)job->hash_size, sizeof(int));
	job->group_of = ocs_calloc((size_t)graph->ntasks + 1, sizeof(int));
	job->idx = ocs_calloc((size_t)graph->ntasks + 1, sizeof(int));
	for (int k = 0; k < graph->ntasks; k++) {
		const struct ocs_netsim_task *task = &graph->tasks[k];
		struct ocs_rails_need need;
		int *members, count;

		job->group_of[k] = -1;
		if (!(task->bytes > 0) ||
		    (task->kind != OCS_NETSIM_TRANSFER &&
		     !ocs_netsim_kind_collective((enum ocs_netsim_kind)task->kind)))
			continue;
		need = ocs_netsim_opus_need(graph, task, &job->opus, &members, &count);
		if (need.kind == OCS_RAILS_NOTHING || count < 2) {
			free(members);
			continue;
		}
		if (need.kind == OCS_RAILS_OUTSIDE && !(spec->frontend > 0)) {
			free(members);
			return ocs_error_set(err, OCS_NEVER,
					     "opus: no topology of the rails joins the %d servers "
					     "of task %d; write frontend:RATE for a packet network "
					     "that carries it, or another shape",
					     count, k);
		}
		job->group_of[k] = group_find(job, members, count, need, err);
		if (job->group_of[k] < 0)
			return -1;
	}
	return 0;
}

static int job_create(struct step_run *run, struct rails_job *job,
		      const struct ocs_netsim_graph *graph)
{
	const struct ocs_netsim_spec *spec = &run->fabric->spec;
	struct ocs_coordinator_options options = { .rails = 1,
						   .ranks = graph->servers,
						   .epoch = 1,
						   .provisioned =
							   spec->phases == OCS_NETSIM_PROVISIONED,
						   .timeout = NEVER,
						   .tries = 1,
						   .drain = NEVER };
	int *nodes = ocs_calloc((size_t)graph->servers, sizeof(int)), rc;

	job->due = INFINITY;
	job->seen = ocs_calloc((size_t)graph->servers, sizeof(int));
	for (int k = 0; k < graph->servers; k++)
		nodes[k] = k;
	rc = ocs_netsim_opus_layout(graph, spec, &job->opus, run->err);
	options.layout = job->opus.layout;
	options.nodes = nodes;
	if (!rc && spec->phases != OCS_NETSIM_ONE_SHOT) {
		job->coordinator = ocs_coordinator_create(&options, 0, run->err);
		rc = job->coordinator ? 0 : -1;
	}
	if (!rc)
		rc = groups_make(job, graph, spec, run->err);
	free(nodes);
	return rc;
}

void ocs_step_rails_destroy(struct step_rails *rails)
{
	if (!rails)
		return;
	for (int k = 0; k < rails->njobs; k++) {
		struct rails_job *job = &rails->jobs[k];

		ocs_coordinator_destroy(job->coordinator);
		for (int g = 0; g < job->ngroups; g++) {
			free(job->groups[g].members);
			free(job->groups[g].tasks);
		}
		free(job->groups);
		free(job->group_of);
		free(job->idx);
		free(job->hash);
		free(job->seen);
	}
	free(rails->jobs);
	free(rails);
}

/* The controller's own time for the answer to what was requested last. */
static void answer_queue(struct step_run *run)
{
	double first = INFINITY;

	for (int k = 0; k < run->rails->njobs; k++)
		first = fmin(first, run->rails->jobs[k].due);
	if (isinf(first))
		ocs_queue_remove(&run->queue, run->ntasks);
	else
		ocs_queue_set(&run->queue, run->ntasks, first);
}

static void outputs_take(struct step_run *run, int number)
{
	struct rails_job *job = &run->rails->jobs[number];
	struct ocs_coordinator_output output;

	while (!run->failed && ocs_coordinator_output(job->coordinator, &output)) {
		if (output.kind == OCS_COORDINATOR_REQUEST) {
			/* the first one stands when the job begins */
			double change = job->begun ? run->fabric->spec.change : 0;

			run->result->changes += job->begun;
			job->begun = true;
			job->seq = output.seq;
			job->due = ocs_flownet_now(run->net) + change;
			answer_queue(run);
		} else if (output.kind == OCS_COORDINATOR_GRANT) {
			const struct rails_group *group = &job->groups[output.group];

			ocs_step_task_send(run, run->jobs[number].tasks + group->tasks[output.idx]);
		}
	}
}

void ocs_step_rails_create(struct step_run *run)
{
	struct step_rails *rails;

	if (run->fabric->spec.kind != OCS_NETSIM_OPUS)
		return;
	rails = ocs_calloc(1, sizeof(*rails));
	rails->njobs = run->request->njobs;
	rails->jobs = ocs_calloc((size_t)rails->njobs + 1, sizeof(*rails->jobs));
	run->rails = rails;
	for (int k = 0; k < rails->njobs && !run->failed; k++) {
		run->failed = job_create(run, &rails->jobs[k], run->request->jobs[k].graph) != 0;
		if (!run->failed && rails->jobs[k].coordinator)
			outputs_take(run, k);
	}
}

/* What an earlier run has seen server SERVER send in as operation number AT; -1: nothing. */
static int sequence_at(const struct ocs_netsim_sequence *sequence, int server, int at)
{
	const struct ocs_netsim_sequence_row *row = &sequence->rows[server];

	return row->count ? row->groups[at % row->count] : -1;
}

/* What comes first is wished as if a step had just ended. */
static void first_wish(struct step_run *run, int number)
{
	struct rails_job *job = &run->rails->jobs[number];

	for (int k = 0; k < run->jobs[number].job->graph->servers; k++) {
		int first = sequence_at(&run->sequences[number], k, 0);

		if (first >= 0)
			ocs_coordinator_wish(job->coordinator, (uint64_t)first, k, now_ns(run));
	}
}

void ocs_step_rails_event(struct step_run *run)
{
	double now = ocs_flownet_now(run->net);

	ocs_queue_remove(&run->queue, run->ntasks);
	for (int k = 0; k < run->rails->njobs; k++) {
		struct rails_job *job = &run->rails->jobs[k];

		if (job->due > now)
			continue;
		job->due = INFINITY;
		ocs_coordinator_answer(job->coordinator, 0, 1, job->seq, true, now_ns(run));
		if (!job->wished && run->sequences && !run->recording)
			first_wish(run, k);
		job->wished = true;
		outputs_take(run, k);
	}
	answer_queue(run);
}

static void sequence_add(struct ocs_netsim_sequence *sequence, int server, int group)
{
	struct ocs_netsim_sequence_row *row = &sequence->rows[server];

	if (row->count == row->size) {
		row->size = row->size ? 2 * row->size : 16;
		row->groups = ocs_realloc(row->groups, (size_t)row->size * sizeof(int));
	}
	row->groups[row->count++] = group;
}

bool ocs_step_rails_arrive(struct step_run *run, int task)
{
	int number = run->job_of[task], own = task - run->jobs[number].tasks, g;
	struct rails_job *job = &run->rails->jobs[number];
	struct ocs_netsim_sequence *shown = run->sequences ? &run->sequences[number] : NULL;
	struct rails_group *group;

	g = job->group_of[own];
	if (g < 0 || !job->coordinator || job->groups[g].need.kind == OCS_RAILS_OUTSIDE)
		return false;
	group = &job->groups[g];
	if (group->ntasks == group->tasks_size) {
		group->tasks_size = group->tasks_size ? 2 * group->tasks_size : 16;
		group->tasks = ocs_realloc(group->tasks, (size_t)group->tasks_size * sizeof(int));
	}
	job->idx[own] = group->ntasks;
	group->tasks[group->ntasks++] = own;
	for (int k = 0; k < group->count; k++) {
		int server = group->members[k];

		if (shown && run->recording && run->jobs[number].step == 0)
			sequence_add(shown, server, g);
		job->seen[server]++;
		if (ocs_coordinator_arrive(job->coordinator, (uint64_t)g, (uint64_t)job->idx[own],
					   server, now_ns(run), run->err))
			run->failed = true;
	}
	if (!run->failed)
		outputs_take(run, number);
	return true;
}

void ocs_step_rails_end(struct step_run *run, int task)
{
	int number = run->job_of[task], own = task - run->jobs[number].tasks, g;
	struct rails_job *job = &run->rails->jobs[number];
	const struct rails_group *group;

	g = job->group_of[own];
	if (g < 0 || !job->coordinator || job->groups[g].need.kind == OCS_RAILS_OUTSIDE)
		return;
	group = &job->groups[g];
	for (int k = 0; k < group->count && !run->failed; k++) {
		int server = group->members[k];

		if (ocs_coordinator_end(job->coordinator, (uint64_t)g, (uint64_t)job->idx[own],
					server, now_ns(run), run->err))
			run->failed = true;
		if (run->sequences && !run->recording) {
			int next = sequence_at(&run->sequences[number], server, job->seen[server]);

			if (next >= 0 && next != g)
				ocs_coordinator_wish(job->coordinator, (uint64_t)next, server,
						     now_ns(run));
		}
	}
	if (!run->failed)
		outputs_take(run, number);
}

/* The place of SERVER among MEMBERS. */
static int member_at(const struct rails_group *group, int server)
{
	const int *found =
		bsearch(&server, group->members, (size_t)group->count, sizeof(int), int_compare);

	return found ? (int)(found - group->members) : -1;
}

/* From member I to member J around the ring, the shorter way. */
static void ring_walk(const struct step_run *run, int hub, const struct rails_group *group,
		      const int *place, int i, int j, struct ocs_netsim_path *path)
{
	int k = group->count, ahead = (j - i + k) % k, step = 2 * ahead <= k ? 1 : k - 1;

	for (; i != j; i = (i + step) % k) {
		int from = group->members[i], to = group->members[(i + step) % k];

		from = place ? place[from] : from;
		to = place ? place[to] : to;
		path->links[path->n++] = OCS_NETSIM_OPUS_OUT(run->fabric, hub, from);
		path->links[path->n++] = OCS_NETSIM_OPUS_IN(run->fabric, hub, to);
	}
}

/* The server of the job's graph that is at SERVER of the fabric. */
static int server_back(const struct step_run *run, int number, int server)
{
	const struct ocs_netsim_job *job = &run->request->jobs[number];

	for (int k = 0; job->place && k < job->graph->servers; k++) {
		if (job->place[k] == server)
			return k;
	}
	return server;
}

void ocs_step_rails_path(const struct step_run *run, int task, int src, int dst,
			 struct ocs_netsim_path *path)
{
	int number = run->job_of[task], own = task - run->jobs[number].tasks;
	const struct rails_job *job = &run->rails->jobs[number];
	const struct ocs_netsim_task *it = &run->jobs[number].job->graph->tasks[own];
	const struct rails_group *group = &job->groups[job->group_of[own]];
	int hubs = ocs_netsim_opus_hubs(&run->fabric->spec), hub = hubs;

	if (group->need.kind == OCS_RAILS_LINE)
		hub = 0;
	else if (group->need.kind == OCS_RAILS_STAGE)
		hub = hubs > 1 ? ocs_rails_layout_dim(&job->opus.layout, group->need.digit) : 0;
	*path = (struct ocs_netsim_path){ .weight = 1 };
	if (hub < hubs && it->kind == OCS_NETSIM_ALLTOALL && group->count > 3 &&
	    group->count <= OCS_FLOW_LINKS_MAX) {
		ring_walk(run, hub, group, run->request->jobs[number].place,
			  member_at(group, server_back(run, number, src)),
			  member_at(group, server_back(run, number, dst)), path);
		return;
	}
	path->n = 2;
	path->links[0] = OCS_NETSIM_OPUS_OUT(run->fabric, hub, src);
	path->links[1] = OCS_NETSIM_OPUS_IN(run->fabric, hub, dst);
}
