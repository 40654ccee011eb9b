/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "tests/unit/rails/interleave.h"

#include <stdlib.h>
#include <string.h>

#include "src/rails/coordinator.h"
#include "src/util/error.h"

enum {
	NODES = 12,
	RANKS = 24,
	RAILS = 2,
	STREAMS = 2,
	GROUPS = 24,
	PROGRAM = 14, /* operations */
	FRAMES = 512,
	QUEUE = 16,
	EPOCH = 7,
	STEPS = 100000,
};

struct frame {
	int operation, from, to, rail; /* nodes */
	int on;			       /* the rail whose circuit it takes; -1: the packet network */
	bool ring;
};

struct peer_group {
	uint64_t id;
	int count, ranks[RANKS];
	int kind; /* 0: one node, 1: neighbours over circuits, 2: packets */
	int dim;
};

struct work {
	int group;
	uint64_t idx;
	struct {
		bool arrived, granted, ended, failed, sent, drained;
		uint64_t rails;
		int awaits; /* frames */
		int unsent;
	} at[RANKS];
};

/* A switch, with ocsd before it. */
struct optics {
	struct {
		char topology[OCS_RAILS_TOPOLOGY];
		uint64_t seq;
	} requests[QUEUE];
	int nrequests;
	struct {
		uint64_t seq, epoch;
		bool good;
	} answers[QUEUE];
	int nanswers;
	int links[NODES][NODES];
	char topology[OCS_RAILS_TOPOLOGY], coming[OCS_RAILS_TOPOLOGY];
	uint64_t latest, busy; /* seq of what it does */
	bool stuck, lost_news, ring;
};

static struct world {
	uint64_t random;
	const uint8_t *data;
	size_t left;
	int extents[3], ndim, nodes, ranks, rails, node_of[RANKS], streams;
	bool shared, wraps, over;
	int faults, deaths, wishes, reboots, revokes;
	bool dead[RANKS], told[RANKS];
	bool any_dead, revoked, failed[RAILS];
	struct peer_group groups[GROUPS];
	int ngroups;
	struct work program[PROGRAM];
	int nprogram;
	struct frame frames[FRAMES];
	int nframes;
	struct optics optics[RAILS];
	struct ocs_coordinator *coordinator;
	int64_t now;
	struct interleave_result result;
} w;

static int pick(int n)
{
	if (w.data || w.left) {
		uint8_t byte = w.left ? *w.data : 0;

		w.data += w.left > 0;
		w.left -= w.left > 0;
		return byte % n;
	}
	w.random ^= w.random << 13;
	w.random ^= w.random >> 7;
	w.random ^= w.random << 17;
	return (int)((w.random >> 11) % (uint64_t)n);
}

static void violation_set(const char *what)
{
	if (!w.result.violation)
		w.result.violation = what;
}

static int node_stride(int dim)
{
	int stride = 1;

	for (int d = dim + 1; d < w.ndim; d++)
		stride *= w.extents[d];
	return stride;
}

static int node_at(int node, int dim)
{
	return node / node_stride(dim) % w.extents[dim];
}

/* The next node of NODE along DIM, around the end. */
static int node_next(int node, int dim)
{
	int at = node_at(node, dim);

	return node + ((at + 1) % w.extents[dim] - at) * node_stride(dim);
}

/* The circuits of TOPOLOGY, in words of the paper: dimension 0 is the pipeline. */
static void links_of(const char *topology, int links[NODES][NODES])
{
	memset(links, 0, sizeof(int) * NODES * NODES);
	for (int node = 0; node < w.nodes; node++) {
		int stage = node_at(node, 0), dim, next;

		if (strcmp(topology, OCS_RAILS_RING) == 0) {
			next = (node + 1) % w.nodes;
		} else {
			dim = topology[stage] - '0';
			next = node_next(node, dim);
			if (dim == 0 && topology[node_at(next, 0)] != '0')
				continue;
		}
		if (next == node)
			continue;
		links[node][next]++;
		links[next][node]++;
	}
}

/* Whether A and B are neighbours in the operations of GROUP. */
static bool group_joins(const struct peer_group *group, int a, int b)
{
	return group->kind == 1 && (node_next(a, group->dim) == b || node_next(b, group->dim) == a);
}

static bool group_has_node(const struct peer_group *group, int node)
{
	for (int i = 0; i < group->count; i++)
		if (w.node_of[group->ranks[i]] == node)
			return true;
	return false;
}

/* The place of RANK among the members of GROUP, or -1. */
static int member_of(const struct peer_group *group, int rank)
{
	for (int i = 0; i < group->count; i++)
		if (group->ranks[i] == rank)
			return i;
	return -1;
}

static bool work_open(const struct work *work)
{
	const struct peer_group *group = &w.groups[work->group];
	bool granted = false;

	for (int i = 0; i < group->count; i++) {
		int rank = group->ranks[i];

		if (w.dead[rank])
			continue;
		if (work->at[rank].granted && !work->at[rank].ended && !work->at[rank].failed)
			granted = true;
	}
	return granted;
}

/* The pair A, B loses circuits on RAIL. */
static void cut_judge(int rail, int a, int b)
{
	for (int i = 0; i < w.nframes; i++) {
		struct frame *frame = &w.frames[i];

		if (frame->on == rail &&
		    ((frame->from == a && frame->to == b) || (frame->from == b && frame->to == a)))
			violation_set("G2: a frame is on a circuit that is cut");
		if (frame->on == rail && frame->ring)
			violation_set("G2: a frame is on a ring that is cut");
	}
	for (int i = 0; i < w.nprogram; i++) {
		const struct work *work = &w.program[i];
		const struct peer_group *group = &w.groups[work->group];
		uint64_t rails = 0;

		if (!work_open(work))
			continue;
		for (int k = 0; k < group->count; k++)
			if (work->at[group->ranks[k]].granted)
				rails |= work->at[group->ranks[k]].rails;
		if (rails >> rail & 1 && !w.optics[rail].ring && group_joins(group, a, b) &&
		    group_has_node(group, a) && group_has_node(group, b))
			violation_set("G2: a circuit of an operation in flight is cut");
	}
}

static void links_cut(int rail, int next[NODES][NODES])
{
	struct optics *optics = &w.optics[rail];

	for (int a = 0; a < w.nodes; a++)
		for (int b = a + 1; b < w.nodes; b++)
			if (optics->links[a][b] > next[a][b]) {
				cut_judge(rail, a, b);
				optics->links[a][b] = optics->links[b][a] = next[a][b];
			}
}

static void answer_queue(struct optics *optics, uint64_t seq, bool good)
{
	if (optics->nanswers == QUEUE)
		return;
	optics->answers[optics->nanswers].seq = seq;
	optics->answers[optics->nanswers].epoch = EPOCH;
	optics->answers[optics->nanswers++].good = good;
}

/* Takes the first request: refuses it, loses it, or cuts what is to go. */
static void request_begin(int rail)
{
	struct optics *optics = &w.optics[rail];
	int next[NODES][NODES], fault = w.faults ? pick(8) : 7;
	uint64_t seq = optics->requests[0].seq;

	strcpy(optics->coming, optics->requests[0].topology);
	memmove(optics->requests, optics->requests + 1,
		--optics->nrequests * sizeof(optics->requests[0]));
	if (seq <= optics->latest || optics->stuck) {
		answer_queue(optics, seq, false);
		return;
	}
	w.faults -= fault < 2;
	if (fault == 0)
		return; /* lost */
	optics->latest = seq;
	if (fault == 1) {
		answer_queue(optics, seq, false);
		return;
	}
	/* where a request names differences only, they are against what stands */
	for (int i = 0; optics->coming[i]; i++)
		if (optics->coming[i] == '=')
			optics->coming[i] = optics->topology[i] == '?' ? '1' : optics->topology[i];
	links_of(optics->coming, next);
	if (strchr(optics->topology, '?') && strchr(optics->requests[0].topology, '='))
		memset(next, 0, sizeof(next));
	links_cut(rail, next);
	optics->busy = seq;
}

static void request_finish(int rail)
{
	struct optics *optics = &w.optics[rail];

	links_of(optics->coming, optics->links);
	strcpy(optics->topology, optics->coming);
	optics->ring |= strcmp(optics->topology, OCS_RAILS_RING) == 0;
	answer_queue(optics, optics->busy, true);
	optics->busy = 0;
}

/* Hands over any answer, which may be lost or come once more. */
static void answer_deliver(int rail)
{
	struct optics *optics = &w.optics[rail];
	int which = pick(optics->nanswers), fault = w.faults ? pick(8) : 7;
	uint64_t seq = optics->answers[which].seq, epoch = optics->answers[which].epoch;
	bool good = optics->answers[which].good;

	w.faults -= fault < 2;
	if (fault != 1) {
		optics->nanswers--;
		memmove(optics->answers + which, optics->answers + which + 1,
			(optics->nanswers - which) * sizeof(optics->answers[0]));
	}
	if (fault == 0)
		return;
	ocs_coordinator_answer(w.coordinator, rail, epoch, seq, good, w.now);
}

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

static bool rail_quiet(int rail)
{
	for (int i = 0; i < w.nprogram; i++)
		if (work_open(&w.program[i]))
			return false;
	return !w.optics[rail].busy && !w.nframes;
}

/* One step of a switch, if it has one to take. */
static bool optics_step(int rail)
{
	struct optics *optics = &w.optics[rail];

	switch (pick(4)) {
	case 0:
		if (!optics->busy)
			return false;
		request_finish(rail);
		return true;
	case 1:
		if (optics->busy || !optics->nrequests)
			return false;
		request_begin(rail);
		return true;
	case 2:
		if (!optics->nanswers)
			return false;
		answer_deliver(rail);
		return true;
	default:
		if (optics->lost_news) {
			optics->lost_news = false;
			ocs_coordinator_topo_lost(w.coordinator, rail, w.now);
			return true;
		}
		if (!w.reboots || !rail_quiet(rail))
			return false;
		w.reboots--;
		memset(optics->links, 0, sizeof(optics->links));
		memset(optics->topology, '?', w.extents[0]);
		/* ocsd says so before it says anything else */
		optics->nanswers = 0;
		ocs_coordinator_topo_lost(w.coordinator, rail, w.now);
		return true;
	}
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

static void group_make(int kind, int dim, const bool *nodes)
{
	struct peer_group *group = &w.groups[w.ngroups];
	uint64_t rails = 1 + pick((1 << w.rails) - 1);

	if (w.ngroups == GROUPS)
		return;
	*group = (struct peer_group){ .id = 100 + 17 * w.ngroups, .kind = kind, .dim = dim };
	for (int rank = 0; rank < w.ranks; rank++)
		if (nodes[w.node_of[rank]])
			group->ranks[group->count++] = rank;
	if (ocs_coordinator_group(w.coordinator, group->id, group->ranks, group->count, rails,
				  NULL) < 0)
		violation_set("a group is refused");
	if (kind == 1)
		/* what follows the first of the phase is the rest of it */
		ocs_coordinator_phase(w.coordinator, group->id, 0, 5, NULL);
	w.ngroups++;
}

static void groups_make(void)
{
	for (int dim = 0; dim < w.ndim; dim++) {
		for (int node = 0; node < w.nodes; node++) {
			bool members[NODES] = { false };
			int next = node_next(node, dim);

			/* along the pipeline pairs, along the others whole rings */
			if (w.extents[dim] < 2 || (dim && node_at(node, dim)))
				continue;
			if (dim == 0 && next < node)
				continue;
			members[node] = members[next] = true;
			for (int k = next; dim && k != node; k = node_next(k, dim))
				members[k] = true;
			group_make(1, dim, members);
		}
	}
	if (pick(2)) {
		bool members[NODES];

		memset(members, true, sizeof(members));
		if (w.nodes > 3 && (w.extents[0] > 1) + (w.ndim > 1 && w.extents[1] > 1) +
						   (w.ndim > 2 && w.extents[2] > 1) >
					   1)
			group_make(2, 0, members);
	}
	if (pick(4) == 0) {
		bool members[NODES] = { true };

		group_make(0, 0, members);
	}
}

static void program_make(void)
{
	uint64_t idx[GROUPS] = { 0 };

	w.nprogram = w.ngroups ? 3 + pick(PROGRAM - 2) : 0;
	/* the same few again and again, so that there is something to learn */
	for (int i = 0; i < w.nprogram; i++) {
		int group = pick(4) && i > 3 ? w.program[i - 3].group : pick(w.ngroups);

		w.program[i].group = group;
		w.program[i].idx = idx[group]++;
	}
}

static bool world_make(void)
{
	struct ocs_coordinator_options options = { 0 };

	w.ndim = 2 + pick(2);
	w.extents[0] = 1 + pick(3);
	w.extents[1] = 1 + pick(3);
	w.extents[2] = w.ndim > 2 ? 1 + pick(2) : 1;
	w.nodes = w.extents[0] * w.extents[1] * w.extents[2];
	if (w.nodes > NODES)
		w.extents[0] = 1, w.nodes = w.extents[1] * w.extents[2];
	w.ranks = w.nodes * (1 + (pick(4) == 0));
	if (w.ranks > RANKS)
		w.ranks = w.nodes;
	for (int rank = 0; rank < w.ranks; rank++)
		w.node_of[rank] = rank * w.nodes / w.ranks;
	w.rails = 1 + pick(RAILS);
	w.streams = 1 + pick(STREAMS);
	w.shared = pick(4) != 0;
	w.faults = pick(2) ? 0 : pick(8);
	w.deaths = pick(8) == 0;
	w.wishes = pick(4);
	w.reboots = pick(3) == 0 ? 1 + pick(2) : 0;
	w.revokes = pick(32) == 0;
	options.layout = (struct ocs_rails_layout){ .ndim = w.ndim, .asymmetric = 0, .ports = 2 };
	memcpy(options.layout.extent, w.extents, sizeof(w.extents));
	options.rails = w.rails;
	options.ranks = w.ranks;
	options.nodes = w.node_of;
	options.epoch = EPOCH;
	options.provisioned = pick(2);
	options.shared = w.shared;
	options.timeout = 100;
	options.tries = 1 + pick(4);
	options.drain = 1000000;
	w.coordinator = ocs_coordinator_create(&options, 0, NULL);
	if (!w.coordinator)
		return false;
	for (int rail = 0; rail < w.rails; rail++) {
		/* what it does after a fault is not known before */
		memset(w.optics[rail].topology, '?', w.extents[0]);
		w.optics[rail].stuck = w.faults && pick(16) == 0;
	}
	groups_make();
	program_make();
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
