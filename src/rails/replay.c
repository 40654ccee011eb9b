/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/rails/replay.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/util/error.h"
#include "src/util/text.h"

#define NS_PER_MS 1e6

struct event {
	int64_t time;
	uint64_t order; /* events of one moment keep their order */
	enum { EVENT_ARRIVE, EVENT_END, EVENT_ANSWER } kind;
	int who; /* rank or rail */
	uint64_t seq;
};

/* What stands on a rail, as the judge sees it. */
struct lightpath {
	char stands[OCS_RAILS_TOPOLOGY], coming[OCS_RAILS_TOPOLOGY];
	bool changing;
};

struct replay {
	const struct ocs_phase_tables *tables;
	const struct ocs_replay_options *options;
	struct ocs_replay_result *result;
	struct ocs_coordinator *coordinator;
	struct event *events; /* a heap */
	size_t nevents, room;
	uint64_t order;
	int64_t now, end;
	size_t *at;		      /* of each rank: its operation */
	bool *open;		      /* it is granted */
	struct ocs_rails_need *needs; /* by group */
	struct lightpath rails[OCS_RAILS_RAILS];
};

static bool event_before(const struct event *a, const struct event *b)
{
	return a->time != b->time ? a->time < b->time : a->order < b->order;
}

static void event_add(struct replay *replay, struct event event)
{
	size_t at = replay->nevents++;

	if (replay->nevents > replay->room) {
		replay->room = replay->room * 2 + 64;
		replay->events =
			ocs_realloc(replay->events, replay->room * sizeof(*replay->events));
	}
	event.order = replay->order++;
	for (; at && event_before(&event, &replay->events[(at - 1) / 2]); at = (at - 1) / 2)
		replay->events[at] = replay->events[(at - 1) / 2];
	replay->events[at] = event;
}

static struct event event_take(struct replay *replay)
{
	struct event first = replay->events[0], last = replay->events[--replay->nevents];
	size_t at = 0;

	for (;;) {
		size_t child = at * 2 + 1;

		if (child + 1 < replay->nevents &&
		    event_before(&replay->events[child + 1], &replay->events[child]))
			child++;
		if (child >= replay->nevents || !event_before(&replay->events[child], &last))
			break;
		replay->events[at] = replay->events[child];
		at = child;
	}
	replay->events[at] = last;
	return first;
}

static void violation_add(struct replay *replay, const char *what, int group, uint64_t idx)
{
	if (replay->result->nviolations < OCS_REPLAY_VIOLATIONS)
		replay->result->violations[replay->result->nviolations++] =
			ocs_asprintf("%s: group %ld, operation %" PRIu64, what,
				     replay->tables->groups[group].number, idx);
}

static const struct ocs_phase_operation *rank_operation(const struct replay *replay, int rank)
{
	const struct ocs_phase_rank *table = &replay->tables->ranks[rank];

	return replay->at[rank] < table->count ? &table->operations[replay->at[rank]] : NULL;
}

/* G2: what is requested keeps the circuits of all that is open on the rail. */
static void request_take(struct replay *replay, const struct ocs_coordinator_output *output)
{
	struct lightpath *rail = &replay->rails[output->rail];
	bool first = !rail->stands[0];

	for (int rank = 0; rank < replay->tables->nodes * replay->tables->rails; rank++) {
		const struct ocs_phase_operation *operation = rank_operation(replay, rank);

		if (replay->open[rank] && operation &&
		    replay->tables->groups[operation->group].rail == output->rail &&
		    !ocs_rails_need_met(&replay->needs[operation->group], output->topology))
			violation_add(replay, "G2: cut in flight", operation->group,
				      operation->idx);
	}
	rail->changing = true;
	strcpy(rail->coming, output->topology);
	/* the first one stands when the job starts */
	event_add(replay,
		  (struct event){
			  .time = replay->now +
				  (first ? 0 : (int64_t)(replay->options->switch_ms * NS_PER_MS)),
			  .kind = EVENT_ANSWER,
			  .who = output->rail,
			  .seq = output->seq });
}

/* G1: what is granted has its circuits. */
static void grant_take(struct replay *replay, const struct ocs_coordinator_output *output)
{
	int index = (int)output->group;
	const struct ocs_phase_group *group = &replay->tables->groups[index];
	const struct ocs_rails_need *need = &replay->needs[index];
	const struct lightpath *rail = &replay->rails[group->rail];

	if (output->error || output->rails != UINT64_C(1) << group->rail)
		violation_add(replay, "not granted on its rail", index, output->idx);
	if (!ocs_rails_need_met(need, rail->stands) ||
	    (rail->changing && !ocs_rails_need_met(need, rail->coming)))
		violation_add(replay, "G1: granted without circuits", index, output->idx);
	for (int i = 0; i < group->count; i++) {
		int rank = group->ranks[i];
		const struct ocs_phase_operation *operation = rank_operation(replay, rank);

		if (output->rank >= 0 && output->rank != rank)
			continue;
		if (!operation || operation->group != index || operation->idx != output->idx ||
		    replay->open[rank]) {
			violation_add(replay, "granted to a rank elsewhere", index, output->idx);
			continue;
		}
		replay->open[rank] = true;
		event_add(replay, (struct event){ .time = replay->now +
							  (int64_t)(replay->options->operation_ms *
								    NS_PER_MS),
						  .kind = EVENT_END,
						  .who = rank });
	}
}

static void outputs_take(struct replay *replay)
{
	struct ocs_coordinator_output output;

	while (ocs_coordinator_output(replay->coordinator, &output)) {
		if (output.kind == OCS_COORDINATOR_REQUEST)
			request_take(replay, &output);
		else if (output.kind == OCS_COORDINATOR_GRANT)
			grant_take(replay, &output);
	}
}

static void rank_arrive(struct replay *replay, int rank)
{
	const struct ocs_phase_operation *operation = rank_operation(replay, rank);

	if (ocs_coordinator_arrive(replay->coordinator, operation->group, operation->idx, rank,
				   replay->now, NULL) < 0)
		violation_add(replay, "refused", operation->group, operation->idx);
}

static void rank_end(struct replay *replay, int rank)
{
	const struct ocs_phase_operation *over = rank_operation(replay, rank), *next;
	int64_t window = 0;

	replay->open[rank] = false;
	replay->at[rank]++;
	replay->end = replay->now;
	ocs_coordinator_end(replay->coordinator, over->group, over->idx, rank, replay->now, NULL);
	next = rank_operation(replay, rank);
	if (!next)
		return;
	if (next->phase != over->phase && next->phase >= 0) {
		window = (int64_t)(replay->options->window_ms * NS_PER_MS);
		if (replay->options->provisioned)
			ocs_coordinator_wish(replay->coordinator, next->group, rank, replay->now);
	}
	event_add(
		replay,
		(struct event){ .time = replay->now + window, .kind = EVENT_ARRIVE, .who = rank });
}

static void answer_take(struct replay *replay, int number, uint64_t seq)
{
	struct lightpath *rail = &replay->rails[number];

	rail->changing = false;
	strcpy(rail->stands, rail->coming);
	ocs_coordinator_answer(replay->coordinator, number, 1, seq, true, replay->now);
}

/* The phases of each group, as its first member has them. */
static int phases_tell(struct replay *replay, struct ocs_error *err)
{
	for (int g = 0; g < replay->tables->ngroups; g++) {
		const struct ocs_phase_group *group = &replay->tables->groups[g];
		const struct ocs_phase_rank *table = &replay->tables->ranks[group->ranks[0]];
		const struct ocs_phase_operation *first = NULL, *last = NULL;

		for (size_t i = 0; i < table->count; i++) {
			const struct ocs_phase_operation *operation = &table->operations[i];

			if (operation->group != g || operation->phase < 0)
				continue;
			if (first && operation->phase != first->phase) {
				if (ocs_coordinator_phase(replay->coordinator, g, first->idx,
							  last->idx, err) < 0)
					return -1;
				first = NULL;
			}
			first = first ? first : operation;
			last = operation;
		}
		if (first &&
		    ocs_coordinator_phase(replay->coordinator, g, first->idx, last->idx, err) < 0)
			return -1;
	}
	return 0;
}

static int groups_tell(struct replay *replay, const int *nodes, struct ocs_error *err)
{
	const struct ocs_phase_tables *tables = replay->tables;
	int *members = ocs_calloc(tables->nodes, sizeof(int)), rc = 0;

	for (int g = 0; g < tables->ngroups && !rc; g++) {
		const struct ocs_phase_group *group = &tables->groups[g];

		for (int i = 0; i < group->count; i++)
			members[i] = nodes[group->ranks[i]];
		replay->needs[g] = ocs_rails_group_need(&tables->layout, members, group->count);
		rc = ocs_coordinator_group(replay->coordinator, g, group->ranks, group->count,
					   UINT64_C(1) << group->rail, err);
	}
	free(members);
	return rc ? rc : phases_tell(replay, err);
}

static void events_run(struct replay *replay)
{
	int ranks = replay->tables->nodes * replay->tables->rails;

	outputs_take(replay);
	for (int rank = 0; rank < ranks; rank++)
		if (rank_operation(replay, rank))
			event_add(replay, (struct event){ .kind = EVENT_ARRIVE, .who = rank });
	while (replay->nevents) {
		struct event event = event_take(replay);

		replay->now = event.time;
		if (event.kind == EVENT_ARRIVE)
			rank_arrive(replay, event.who);
		else if (event.kind == EVENT_END)
			rank_end(replay, event.who);
		else
			answer_take(replay, event.who, event.seq);
		outputs_take(replay);
	}
	for (int rank = 0; rank < ranks; rank++) {
		const struct ocs_phase_operation *left = rank_operation(replay, rank);

		if (left)
			violation_add(replay, "no progress: not all members come", left->group,
				      left->idx);
	}
}

int ocs_replay_run(const struct ocs_phase_tables *tables, const struct ocs_replay_options *options,
		   struct ocs_replay_result *result, struct ocs_error *err)
{
	struct replay replay = { .tables = tables, .options = options, .result = result };
	int ranks = tables->nodes * tables->rails, *nodes = ocs_calloc(ranks, sizeof(int)), rc = -1;
	struct ocs_coordinator_options job = {
		.layout = tables->layout,
		.rails = tables->rails,
		.ranks = ranks,
		.nodes = nodes,
		.epoch = 1,
		.provisioned = options->provisioned,
		.timeout = INT64_MAX / 4, /* this switch answers always */
		.tries = 1,
		.drain = INT64_MAX / 4,
	};

	memset(result, 0, sizeof(*result));
	for (int rank = 0; rank < ranks; rank++)
		nodes[rank] = rank / tables->rails;
	replay.at = ocs_calloc(ranks, sizeof(*replay.at));
	replay.open = ocs_calloc(ranks, sizeof(*replay.open));
	replay.needs = ocs_calloc(tables->ngroups + 1, sizeof(*replay.needs));
	replay.coordinator = ocs_coordinator_create(&job, 0, err);
	if (replay.coordinator && groups_tell(&replay, nodes, err) == 0) {
		events_run(&replay);
		result->counts = *ocs_coordinator_counts(replay.coordinator);
		result->step_ms = (double)replay.end / NS_PER_MS;
		rc = 0;
	}
	ocs_coordinator_destroy(replay.coordinator);
	free(replay.events);
	free(replay.needs);
	free(replay.open);
	free(replay.at);
	free(nodes);
	return rc;
}

void ocs_replay_result_free(struct ocs_replay_result *result)
{
	for (int i = 0; i < result->nviolations; i++)
		free(result->violations[i]);
	result->nviolations = 0;
}
