/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Switches, with ocsd before them: circuits that come and go, answers that get lost. */

#include <string.h>

#include "tests/unit/rails/interleave_world.h"

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
		if (next == node || (w.ports < 2 && next < node))
			continue;
		links[node][next]++;
		links[next][node]++;
	}
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
void request_begin(int rail)
{
	struct optics *optics = &w.optics[rail];
	int next[NODES][NODES], fault = w.faults ? pick(8) : 7;
	uint64_t seq = optics->requests[0].seq;
	char topology[OCS_RAILS_TOPOLOGY];

	strcpy(topology, optics->requests[0].topology);
	memmove(optics->requests, optics->requests + 1,
		--optics->nrequests * sizeof(optics->requests[0]));
	/* the same one is answered for what it did, or when it is done */
	if (seq == optics->latest) {
		if (!optics->busy)
			answer_queue(optics, seq, optics->good);
		return;
	}
	if (seq < optics->latest || optics->stuck || optics->busy) {
		answer_queue(optics, seq, false);
		return;
	}
	w.faults -= fault < 2;
	if (fault == 0)
		return; /* lost */
	optics->latest = seq;
	optics->good = fault != 1;
	if (fault == 1) {
		answer_queue(optics, seq, false);
		return;
	}
	strcpy(optics->coming, topology);
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

void request_finish(int rail)
{
	struct optics *optics = &w.optics[rail];

	links_of(optics->coming, optics->links);
	strcpy(optics->topology, optics->coming);
	optics->ring |= strcmp(optics->topology, OCS_RAILS_RING) == 0;
	answer_queue(optics, optics->busy, true);
	optics->busy = 0;
}

/* Hands over any answer, which may be lost or come once more. */
void answer_deliver(int rail)
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

static bool rail_quiet(int rail)
{
	for (int i = 0; i < w.nprogram; i++)
		if (work_open(&w.program[i]))
			return false;
	return !w.optics[rail].busy && !w.nframes;
}

/* One step of a switch, if it has one to take. */
bool optics_step(int rail)
{
	struct optics *optics = &w.optics[rail];

	switch (pick(4)) {
	case 0:
		if (!optics->busy)
			return false;
		request_finish(rail);
		return true;
	case 1:
		if (!optics->nrequests)
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
