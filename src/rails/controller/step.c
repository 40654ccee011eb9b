/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/rails/controller/controller.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/rails/mailbox.h"
#include "src/rails/rails_log.h"
#include "src/util/net.h"
#include "src/util/text.h"

#define TRIES 3
#define NODES_MAX 65536

int64_t step_now(const struct controller *controller)
{
	int64_t now = ocs_now_ns(), away = controller->absent ? now - controller->absent : 0;

	return now - controller->stood - (away < controller->gather ? away : controller->gather);
}

/* ---- who takes part ---- */

static struct step *step_find(const struct controller *controller, uint32_t number)
{
	struct step *step = controller->others;

	if (controller->step && controller->step->number == number)
		return controller->step;
	while (step && step->number != number)
		step = step->next;
	return step;
}

static struct step *step_make(struct controller *controller, const struct link *link)
{
	struct step *step = ocs_calloc(1, sizeof(*step));

	step->number = link->hello.step;
	step->total = link->hello.total;
	step->free = controller->step != NULL;
	step->next = controller->others;
	controller->others = step;
	step->by_rank = ocs_calloc(step->total, sizeof(struct link *));
	step->nodes = ocs_calloc(step->total, sizeof(*step->nodes));
	step->away = ocs_calloc(step->total, sizeof(*step->away));
	return step;
}

/* Whether another agent of LINK's node is there, or one with a rank of LINK's. */
static bool node_taken(const struct step *step, const struct link *link)
{
	for (uint32_t i = 0; i < link->hello.count; i++)
		if (step->by_rank[link->ranks[i]])
			return true;
	for (uint32_t rank = 0; rank < step->total; rank++)
		if (step->by_rank[rank] && step->by_rank[rank]->hello.node == link->hello.node)
			return true;
	return false;
}

bool step_join(struct controller *controller, struct link *link)
{
	struct step *step = step_find(controller, link->hello.step);

	if (link->hello.node >= NODES_MAX)
		return false;
	if (!step)
		step = step_make(controller, link);
	if (step->coordinator || step->over || step->total != link->hello.total ||
	    node_taken(step, link))
		return false;
	for (uint32_t i = 0; i < link->hello.count; i++) {
		step->by_rank[link->ranks[i]] = link;
		step->nodes[link->ranks[i]] = (int)link->hello.node;
	}
	step->seen += link->hello.count;
	step->nlinks++;
	link->step = step;
	return true;
}

static void group_free(void *thing)
{
	struct step_group *group = thing;

	free(group->links);
	free(group);
}

static void step_end(struct controller *controller, struct step *step)
{
	struct step **at = &controller->others;

	if (step == controller->step) {
		controller->step = NULL;
		ocsd_forget(controller);
	} else {
		while (*at != step)
			at = &(*at)->next;
		*at = step->next;
	}
	ocs_coordinator_destroy(step->coordinator);
	ocs_rails_table_free(&step->groups, group_free);
	free(step->by_rank);
	free(step->nodes);
	free(step->away);
	free(step);
}

void steps_free(struct controller *controller)
{
	if (controller->step)
		step_end(controller, controller->step);
	while (controller->others)
		step_end(controller, controller->others);
}

void step_leave(struct controller *controller, struct link *link)
{
	struct step *step = link->step;
	int64_t now = step_now(controller);

	link->step = NULL;
	for (uint32_t i = 0; i < link->hello.count; i++) {
		step->by_rank[link->ranks[i]] = NULL;
		if (step->coordinator && step->away[link->ranks[i]] == RANK_HERE)
			step->away[link->ranks[i]] = RANK_NODE_LOST;
		if (step->coordinator)
			ocs_coordinator_rank_lost(step->coordinator, link->ranks[i], now);
	}
	for (size_t i = 0; i < step->groups.size; i++) {
		struct step_group *group = step->groups.entries[i].thing;

		for (int k = 0; group && k < group->nlinks; k++)
			if (group->links[k] == link)
				group->links[k--] = group->links[--group->nlinks];
	}
	/* Before the step has begun an agent may try once more. */
	step->seen -= link->hello.count;
	if (!--step->nlinks)
		step_end(controller, step);
}

/* ---- to agents ---- */

static void lost_say(struct controller *controller, int32_t error)
{
	uint32_t lost[2] = { htole32((uint32_t)error), 0 };

	controller->step->over = error;
	for (struct link *link = controller->links; link; link = link->next) {
		if (link->step != controller->step || link->fd < 0)
			continue;
		ocs_outbox_frame(&link->outbox, OCS_FRAME_LOST, lost, sizeof(lost), NULL, 0);
		link->dirty = true;
	}
}

static void grant_say(struct link *link, const struct ocs_coordinator_output *output, int rank)
{
	struct ocs_frame_grant grant = {
		.group = output->group,
		.idx = output->idx,
		.rails = output->rails,
		.rank = rank,
		.error = (int32_t)output->error,
	};

	ocs_frame_grant_swap(&grant);
	ocs_outbox_record(&link->outbox, OCS_FRAME_GRANTS, &grant, sizeof(grant));
	link->dirty = true;
}

static void grant_send(struct step *step, const struct ocs_coordinator_output *output)
{
	struct step_group *group = ocs_rails_table_get(&step->groups, output->group);

	if (output->rank >= 0) {
		if (step->by_rank[output->rank])
			grant_say(step->by_rank[output->rank], output, output->rank);
		return;
	}
	for (int i = 0; group && i < group->nlinks; i++)
		grant_say(group->links[i], output, -1);
}

static void output_take(struct controller *controller, const struct ocs_coordinator_output *output)
{
	switch (output->kind) {
	case OCS_COORDINATOR_GRANT:
		if (output->error == OCS_COORDINATOR_RANK_LOST)
			fault_rank_lost(controller, output->group);
		grant_send(controller->step, output);
		break;
	case OCS_COORDINATOR_REQUEST:
		ocsd_request(controller, output);
		break;
	case OCS_COORDINATOR_RING:
		fault_tell(controller,
			   "rail %d: its topologies do not come, it has the giant ring from now on",
			   output->rail);
		break;
	case OCS_COORDINATOR_RAIL_FAILED:
		fault_tell(controller,
			   "rail %d has failed; its groups go over other rails, if there are any",
			   output->rail);
		break;
	case OCS_COORDINATOR_LOST:
		if (output->group)
			fault_rank_killed(controller, output->group, output->rank);
		break;
	case OCS_COORDINATOR_OVER:
		fault_tell(controller, "operations end with an error from now on: %s",
			   output->error == OCS_COORDINATOR_NO_RAIL ?
				   "no rail works" :
				   "ocsd takes no requests of this job");
		break;
	}
}

void step_outputs(struct controller *controller)
{
	struct ocs_coordinator_output output;
	int64_t now = step_now(controller);

	if (!controller->step || !controller->step->coordinator)
		return;
	if (now >= ocs_coordinator_deadline(controller->step->coordinator))
		ocs_coordinator_tick(controller->step->coordinator, now);
	while (ocs_coordinator_output(controller->step->coordinator, &output))
		output_take(controller, &output);
}

/* ---- the clock ---- */

void step_take(struct controller *controller, struct step *step)
{
	struct step **at = &controller->others;

	while (*at != step)
		at = &(*at)->next;
	*at = step->next;
	controller->step = step;
	step->deadline = ocs_now_ns() + controller->gather;
	/* A step whose ranks differ in whether they wait would never end. */
	for (struct step *other = controller->others; other; other = other->next)
		other->free = true;
	step_begin(controller);
}

void step_begin(struct controller *controller)
{
	struct step *step = controller->step;
	struct ocs_coordinator_options options = {
		.layout = controller->layout,
		.rails = controller->rails,
		.epoch = controller->meet.epoch,
		.provisioned = controller->provisioned,
		/* Packets of the job reach its addresses over circuits or another network; where
		 * they do not, this only makes world-wide operations wait. */
		.shared = true,
		.timeout = controller->timeout,
		.tries = TRIES,
		.drain = controller->drain,
	};
	struct ocs_error err;

	if (!step || step->coordinator || step->over || step->seen < step->total ||
	    !controller->known)
		return;
	options.ranks = (int)step->total;
	options.nodes = step->nodes;
	step->coordinator = ocs_coordinator_create(&options, step_now(controller), &err);
	if (!step->coordinator) {
		fault_tell(controller, "step %u has no gates: %s", step->number, err.text);
		lost_say(controller, OCS_COORDINATOR_NO_RAIL);
		return;
	}
	if (controller->revoked)
		ocs_coordinator_revoked(step->coordinator, step_now(controller));
	for (struct link *link = controller->links; link; link = link->next)
		if (link->step && link->step == controller->step)
			link_frames(controller, link);
}

void step_tick(struct controller *controller, int64_t now)
{
	struct step *step = controller->step;

	if (!step || step->coordinator || step->over || now < step->deadline)
		return;
	fault_tell(controller, "step %u cannot begin: %s", step->number,
		   controller->known ? "agents of some of its nodes have not come" :
				       controller->err.text);
	lost_say(controller, OCS_RAILS_ERROR_AGENT);
}

int64_t step_deadline(const struct controller *controller)
{
	const struct step *step = controller->step;
	int64_t next, now = ocs_now_ns();

	if (!step || step->over)
		return INT64_MAX;
	if (!step->coordinator)
		return step->deadline;
	next = ocs_coordinator_deadline(step->coordinator);
	return next == INT64_MAX ? next : now + next - step_now(controller);
}

/* ---- what agents say ---- */

/* What the nodes of RANKS need. */
static uint32_t need_of(const struct controller *controller, const int *ranks, uint32_t count)
{
	int *nodes = ocs_calloc(count, sizeof(*nodes));
	int places = ocs_rails_layout_nodes(&controller->layout), distinct = 0;
	bool *named = ocs_calloc((size_t)places, sizeof(*named)), inside = true;
	struct ocs_rails_need need = { .kind = OCS_RAILS_OUTSIDE };

	for (uint32_t i = 0; i < count && inside; i++) {
		int node = controller->step->nodes[ranks[i]];

		inside = node < places;
		if (inside && !named[node])
			nodes[distinct++] = node;
		if (inside)
			named[node] = true;
	}
	if (inside)
		need = ocs_rails_group_need(&controller->layout, nodes, distinct);
	free(named);
	free(nodes);
	return need.kind == OCS_RAILS_NOTHING ? OCS_RAILS_FREE : OCS_RAILS_GATED;
}

static struct step_group *group_link(struct step *step, uint64_t id, struct link *link)
{
	struct step_group *group = ocs_rails_table_get(&step->groups, id);

	if (!group) {
		group = ocs_calloc(1, sizeof(*group));
		ocs_rails_table_add(&step->groups, id, group);
	}
	for (int i = 0; i < group->nlinks; i++)
		if (group->links[i] == link)
			return group;
	if (group->nlinks == group->room) {
		group->room = group->room ? group->room * 2 : 4;
		group->links =
			ocs_realloc(group->links, (size_t)group->room * sizeof(*group->links));
	}
	group->links[group->nlinks++] = link;
	return group;
}

static void group_take(struct controller *controller, struct link *link,
		       const struct ocs_frame_group *asked, const int *ranks)
{
	uint64_t rails = controller->rails == OCS_RAILS_RAILS ?
				 UINT64_MAX :
				 (UINT64_C(1) << controller->rails) - 1;
	struct ocs_frame_known known = { .group = asked->group };
	struct ocs_error err;

	if (asked->count > OCS_RAILS_GROUP_RANKS ||
	    ocs_coordinator_group(controller->step->coordinator, asked->group, ranks,
				  (int)asked->count, rails, &err)) {
		known.error = OCS_RAILS_ERROR_REFUSED;
	} else {
		known.need = need_of(controller, ranks, asked->count);
		group_link(controller->step, asked->group, link);
	}
	ocs_frame_known_swap(&known);
	ocs_outbox_frame(&link->outbox, OCS_FRAME_KNOWN, &known, sizeof(known), NULL, 0);
	link->dirty = true;
}

static void letter_take(struct controller *controller, struct link *link,
			const struct ocs_frame_letter *letter, int64_t now)
{
	struct step *step = controller->step;
	struct ocs_coordinator_output refused = {
		.group = letter->group,
		.idx = letter->idx,
		.error = (enum ocs_coordinator_error)OCS_RAILS_ERROR_REFUSED,
	};
	struct ocs_error err;
	int rank = (int)letter->rank;

	if (letter->rank >= step->total || step->by_rank[rank] != link)
		return;
	if (letter->kind == OCS_RAILS_END)
		ocs_coordinator_end(step->coordinator, letter->group, letter->idx, rank, now, &err);
	else if (letter->kind == OCS_RAILS_WISH)
		ocs_coordinator_wish(step->coordinator, letter->group, rank, now);
	else if (letter->kind == OCS_RAILS_ARRIVE &&
		 ocs_coordinator_arrive(step->coordinator, letter->group, letter->idx, rank, now,
					&err))
		grant_say(link, &refused, rank);
}

static int gone_take(struct controller *controller, struct link *link,
		     const struct ocs_frame_gone *gone)
{
	struct step *step = controller->step;

	if (gone->rank >= step->total || step->by_rank[gone->rank] != link)
		return -1;
	link->gone++;
	if (step->away[gone->rank] == RANK_HERE)
		step->away[gone->rank] = gone->clean ? RANK_ENDED : RANK_KILLED;
	if (!gone->clean)
		ocs_rails_log("rank %u is gone", gone->rank);
	ocs_coordinator_rank_lost(step->coordinator, (int)gone->rank, step_now(controller));
	return 0;
}

void step_free_frame(struct link *link, const struct ocs_frame *frame)
{
	struct ocs_frame_known known = { .need = OCS_RAILS_FREE };
	struct ocs_frame_group group;
	int *ranks;

	/* Its agent was welcomed before another step had the circuits. */
	if (ocs_frame_group_read(frame, link->hello.total, &group, &ranks))
		return;
	free(ranks);
	known.group = group.group;
	ocs_frame_known_swap(&known);
	ocs_outbox_frame(&link->outbox, OCS_FRAME_KNOWN, &known, sizeof(known), NULL, 0);
	link->dirty = true;
}

int step_frame(struct controller *controller, struct link *link, const struct ocs_frame *frame)
{
	long count = ocs_frame_records(frame, OCS_FRAME_LETTERS);
	struct ocs_frame_group group;
	struct ocs_frame_gone gone;
	struct ocs_frame_letter letter;
	int *ranks;

	if (count > 0) {
		int64_t now = step_now(controller);

		for (long i = 0; i < count; i++) {
			ocs_frame_letter_at(frame, (size_t)i, &letter);
			letter_take(controller, link, &letter, now);
		}
		return 0;
	}
	if (ocs_frame_group_read(frame, controller->step->total, &group, &ranks) == 0) {
		group_take(controller, link, &group, ranks);
		free(ranks);
		return 0;
	}
	if (ocs_frame_gone_read(frame, &gone) == 0)
		return gone_take(controller, link, &gone);
	return -1;
}
