/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "tests/unit/rails/interleave.h"

#include <string.h>

#include "src/util/error.h"
#include "tests/unit/rails/interleave_world.h"

static struct work *work_find(uint64_t group, uint64_t idx)
{
	for (int i = 0; i < w.nprogram; i++)
		if (w.groups[w.program[i].group].id == group && w.program[i].idx == idx)
			return &w.program[i];
	return NULL;
}

static bool work_has_dead(const struct work *work)
{
	const struct peer_group *group = &w.groups[work->group];

	for (int i = 0; i < group->count; i++)
		if (w.told[group->ranks[i]])
			return true;
	return false;
}

/* Whether the members at A and B of GROUP send to each other: neighbours, and next ones in packets. */
static bool peers_talk(const struct peer_group *group, int a, int b)
{
	int from = w.node_of[group->ranks[a]], to = w.node_of[group->ranks[b]];

	if (group->kind == 1)
		return from != to && group_joins(group, from, to);
	return from != to && ((a + 1) % group->count == b || (b + 1) % group->count == a ||
			      (a + b + 1) % group->count == 0);
}

/* Frames that RANK is to send and to get; the other side of the pair has the same count. */
static void work_start(struct work *work, int rank)
{
	const struct peer_group *group = &w.groups[work->group];

	for (int i = 0; i < group->count; i++) {
		if (!peers_talk(group, member_of(group, rank), i))
			continue;
		work->at[rank].awaits++;
		work->at[rank].unsent++;
	}
}

static void grant_take(const struct ocs_coordinator_output *output)
{
	struct work *work = work_find(output->group, output->idx);
	const struct peer_group *group;

	if (!work) {
		violation_set("a grant for no operation");
		return;
	}
	group = &w.groups[work->group];
	if (output->epoch != EPOCH)
		violation_set("a grant of another epoch");
	for (int i = 0; i < group->count; i++) {
		int rank = group->ranks[i];

		if ((output->rank >= 0 && rank != output->rank) || work->at[rank].granted ||
		    work->at[rank].failed || w.dead[rank])
			continue;
		if (!work->at[rank].arrived && !output->error)
			continue; /* the node drops what its rank did not ask for */
		if (output->error) {
			w.result.errors++;
			work->at[rank].failed = true;
			if (!(output->error == OCS_COORDINATOR_RANK_LOST && work_has_dead(work)) &&
			    !(output->error == OCS_COORDINATOR_REVOKED && w.revoked) &&
			    !(output->error == OCS_COORDINATOR_NO_RAIL && w.failed[0] &&
			      (w.rails == 1 || w.failed[1])))
				violation_set("an operation fails without a reason");
			continue;
		}
		w.result.grants++;
		work->at[rank].granted = true;
		work->at[rank].rails = output->rails;
		work_start(work, rank);
	}
}

static void outputs_take(void)
{
	struct ocs_coordinator_output output;

	while (ocs_coordinator_output(w.coordinator, &output)) {
		struct optics *optics = &w.optics[output.rail];

		switch (output.kind) {
		case OCS_COORDINATOR_GRANT:
			grant_take(&output);
			break;
		case OCS_COORDINATOR_REQUEST:
			if (optics->nrequests == QUEUE)
				break; /* lost */
			optics->requests[optics->nrequests].seq = output.seq;
			strcpy(optics->requests[optics->nrequests++].topology, output.topology);
			break;
		case OCS_COORDINATOR_RING:
			w.result.rings++;
			break;
		case OCS_COORDINATOR_RAIL_FAILED:
			w.failed[output.rail] = true;
			break;
		case OCS_COORDINATOR_LOST:
			if (!w.told[output.rank])
				violation_set("a rank is lost that lives");
			break;
		case OCS_COORDINATOR_OVER:
			break;
		}
	}
}

/* The next operation of RANK in STREAM: groups are spread over streams alike at all ranks. */
static struct work *stream_next(int rank, int stream)
{
	for (int i = 0; i < w.nprogram; i++) {
		struct work *work = &w.program[i];

		if (work->group % w.streams != stream ||
		    member_of(&w.groups[work->group], rank) < 0 || work->at[rank].ended ||
		    work->at[rank].failed)
			continue;
		return work;
	}
	return NULL;
}

/* Sends the next frame of RANK in WORK. */
static void frame_send(struct work *work, int rank)
{
	const struct peer_group *group = &w.groups[work->group];
	int nth = work->at[rank].unsent - 1;

	for (int i = 0; i < group->count; i++) {
		struct frame *frame = &w.frames[w.nframes];
		int from = w.node_of[rank], to = w.node_of[group->ranks[i]], rail = 0;

		if (!peers_talk(group, member_of(group, rank), i) || nth--)
			continue;
		work->at[rank].unsent--;
		*frame = (struct frame){ .operation = (int)(work - w.program),
					 .from = from,
					 .to = group->ranks[i] };
		frame->to = to;
		frame->rail = group->ranks[i];
		frame->on = -1;
		if (group->kind == 1) {
			do
				rail = pick(w.rails);
			while (!(work->at[rank].rails >> rail & 1));
			frame->on = rail;
			frame->ring = w.optics[rail].ring;
			if (!frame->ring && !w.optics[rail].links[from][to])
				violation_set("G1: a frame is sent where no circuit stands");
		} else if (w.shared) {
			for (rail = 0; rail < w.rails; rail++)
				/* of a rail that has failed all routes lead elsewhere */
				if (w.optics[rail].links[from][to] && !w.failed[rail])
					frame->on = rail;
			if (frame->on >= 0)
				frame->ring = w.optics[frame->on].ring;
		}
		w.nframes++;
		return;
	}
	violation_set("the judge has no such peer");
}

static void frame_deliver(int which)
{
	struct frame *frame = &w.frames[which];
	struct work *work = &w.program[frame->operation];

	if (frame->on >= 0 && !frame->ring && !w.optics[frame->on].links[frame->from][frame->to])
		violation_set("G1: a frame is lost on its way");
	work->at[frame->rail].awaits--;
	w.frames[which] = w.frames[--w.nframes];
}

static bool rank_drained(const struct work *work, int rank)
{
	for (int i = 0; i < w.nframes; i++)
		if (&w.program[w.frames[i].operation] == work &&
		    w.frames[i].from == w.node_of[rank])
			return false;
	return true;
}

/* One step of a rank, if it can take one. */
static bool rank_step(int rank, int stream)
{
	struct work *work = stream_next(rank, stream);
	uint64_t id;

	if (!work || w.dead[rank])
		return false;
	id = w.groups[work->group].id;
	if (!work->at[rank].arrived) {
		work->at[rank].arrived = true;
		ocs_coordinator_arrive(w.coordinator, id, work->idx, rank, w.now, NULL);
		if (pick(16) == 0)
			ocs_coordinator_arrive(w.coordinator, id, work->idx, rank, w.now, NULL);
		return true;
	}
	if (!work->at[rank].granted)
		return false;
	if (work->at[rank].unsent && w.nframes < FRAMES) {
		frame_send(work, rank);
		return true;
	}
	/* what a rank that is gone has not sent will not come */
	if ((work->at[rank].awaits && !work_has_dead(work)) || !rank_drained(work, rank))
		return false;
	work->at[rank].ended = true;
	ocs_coordinator_end(w.coordinator, id, work->idx, rank, w.now, NULL);
	if (pick(16) == 0)
		ocs_coordinator_end(w.coordinator, id, work->idx, rank, w.now, NULL);
	return true;
}

static bool world_step(void)
{
	int rank = pick(w.ranks);

	switch (pick(16)) {
	default:
		return rank_step(rank, pick(w.streams));
	case 0:
	case 1:
	case 2:
	case 3:
	case 4:
		return optics_step(pick(w.rails));
	case 5:
	case 6:
	case 7:
		if (!w.nframes)
			return false;
		frame_deliver(pick(w.nframes));
		return true;
	case 8:
		if (pick(8) || !w.wishes)
			return false;
		w.wishes--;
		ocs_coordinator_wish(w.coordinator, w.groups[pick(w.ngroups)].id, rank, w.now);
		return true;
	case 9:
		/* a timer that runs out while the answer is under way */
		if (pick(8) || !w.faults || ocs_coordinator_deadline(w.coordinator) == INT64_MAX)
			return false;
		w.faults--;
		w.now = ocs_coordinator_deadline(w.coordinator);
		ocs_coordinator_tick(w.coordinator, w.now);
		return true;
	case 10:
		if (pick(16) || !w.deaths)
			return false;
		w.deaths--;
		w.dead[rank] = w.any_dead = true;
		return true;
	case 11:
		if (!w.dead[rank] || w.told[rank])
			return false;
		w.told[rank] = true;
		ocs_coordinator_rank_lost(w.coordinator, rank, w.now);
		return true;
	case 12:
		if (pick(16) || !w.revokes)
			return false;
		w.revokes--;
		w.revoked = true;
		ocs_coordinator_revoked(w.coordinator, w.now);
		return true;
	}
}

/* Tries everything that may be possible, in a fixed order. */
static bool world_force(void)
{
	bool moved = false;

	for (int rank = 0; rank < w.ranks && !moved; rank++) {
		for (int stream = 0; stream < w.streams && !moved; stream++)
			moved = rank_step(rank, stream);
		if (!moved && w.dead[rank] && !w.told[rank]) {
			w.told[rank] = moved = true;
			ocs_coordinator_rank_lost(w.coordinator, rank, w.now);
		}
	}
	if (!moved && w.nframes) {
		frame_deliver(0);
		moved = true;
	}
	for (int rail = 0; rail < w.rails && !moved; rail++) {
		struct optics *optics = &w.optics[rail];

		moved = optics->busy || optics->nrequests || optics->nanswers;
		if (optics->busy)
			request_finish(rail);
		else if (optics->nrequests)
			request_begin(rail);
		else if (optics->nanswers)
			answer_deliver(rail);
	}
	if (!moved && ocs_coordinator_deadline(w.coordinator) != INT64_MAX) {
		w.now = ocs_coordinator_deadline(w.coordinator);
		ocs_coordinator_tick(w.coordinator, w.now);
		moved = true;
	}
	return moved;
}

static bool world_done(void)
{
	for (int rank = 0; rank < w.ranks; rank++)
		for (int stream = 0; stream < w.streams; stream++)
			if (!w.dead[rank] && stream_next(rank, stream))
				return false;
	return true;
}

static struct interleave_result world_run(void)
{
	int idle = 0;

	if (!world_make())
		return w.result;
	while (!w.result.violation && !world_done()) {
		outputs_take();
		if (world_step()) {
			idle = 0;
		} else if (++idle > 200) {
			idle = 0;
			if (!world_force())
				violation_set(
					"no progress: nothing can move, and there is work left");
		}
		outputs_take();
		w.now++;
		if (++w.result.steps > STEPS)
			violation_set("no progress: it never ends");
	}
	w.result.changes = ocs_coordinator_counts(w.coordinator)->changes;
	w.result.retries = ocs_coordinator_counts(w.coordinator)->retries;
	w.result.provisioned = ocs_coordinator_counts(w.coordinator)->provisioned;
	ocs_coordinator_destroy(w.coordinator);
	return w.result;
}

struct interleave_result interleave_run(uint64_t seed)
{
	memset(&w, 0, sizeof(w));
	w.random = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15);
	return world_run();
}

struct interleave_result interleave_run_bytes(const uint8_t *data, size_t size)
{
	memset(&w, 0, sizeof(w));
	w.data = data;
	w.left = size;
	return world_run();
}
