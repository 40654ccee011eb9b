/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/advice/reason.h"
#include "src/place/region_groups.h"
#include "src/scheduler/state.h"
#include "src/util/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Attempts to bend a placement towards required nodes. */
#define BEND_ATTEMPTS 256

/* One decision. */
struct choice {
	const struct ocs_controller_request *request;
	const struct ocs_section *section;
	struct ocs_section_state *state;
	enum ocs_controller_mode mode;
	const uint64_t *usable;
	const int *required;
	int nrequired;
	int count;
	bool ignore_holds, ignore_faults;
	bool noted; /* what else might fit is being looked for */
};

static bool mask_bit(const uint64_t *mask, int index)
{
	return mask[index / 64] >> (index % 64) & 1;
}

static bool node_free(const struct choice *choice, int node)
{
	if (choice->usable && !mask_bit(choice->usable, node))
		return false;
	return choice->mode != OCS_RUN_NOW || choice->ignore_holds || !ocs_state.holds[node];
}

/* The occupancy this decision sees. */
static void occupancy_fill(const struct choice *choice)
{
	struct ocs_occupancy *occupancy = choice->state->scratch;
	int first = choice->section->first_node;

	ocs_occupancy_reset(occupancy);
	ocs_occupancy_fill(occupancy);
	for (int node = first; node < first + choice->section->nnodes; node++) {
		if (node_free(choice, node))
			ocs_occupancy_node_set(occupancy, ocs_state.fabric, node, true);
	}
	if (choice->mode != OCS_TEST_ONLY && !choice->ignore_faults)
		ocs_faults_apply(occupancy);
}

static struct ocs_placement *shape_place(const struct choice *choice, struct ocs_error *err)
{
	return ocs_reason_place(choice->state->placer, choice->state->scratch,
				&choice->request->shape, choice->count, err);
}

static bool has_node(const struct ocs_placement *placement, int node)
{
	int low = 0, high = placement->nnodes - 1;

	while (low <= high) {
		int middle = (low + high) / 2;

		if (placement->nodes[middle] == node)
			return true;
		if (placement->nodes[middle] < node)
			low = middle + 1;
		else
			high = middle - 1;
	}
	return false;
}

static bool has_required(const struct choice *choice, const struct ocs_placement *placement)
{
	for (int i = 0; i < choice->nrequired; i++) {
		if (!has_node(placement, choice->required[i]))
			return false;
	}
	return true;
}

static bool is_required(const struct choice *choice, int node)
{
	for (int i = 0; i < choice->nrequired; i++) {
		if (choice->required[i] == node)
			return true;
	}
	return false;
}

/* Only the cubes that hold a required node stay free. */
static void keep_required_cubes(const struct choice *choice)
{
	const struct ocs_node *nodes = ocs_state.fabric->nodes;
	int first = choice->section->first_node;

	for (int node = first; node < first + choice->section->nnodes; node++) {
		bool keep = false;

		for (int i = 0; i < choice->nrequired && !keep; i++)
			keep = nodes[choice->required[i]].cube == nodes[node].cube;
		if (!keep)
			ocs_occupancy_node_set(choice->state->scratch, ocs_state.fabric, node,
					       false);
	}
}

/* A placement that holds every required node: first within their own cubes, then
 * anywhere, each time taking away one node that led elsewhere. */
static struct ocs_placement *place_required(const struct choice *choice, struct ocs_error *err)
{
	for (int wide = 0; wide < 2; wide++) {
		occupancy_fill(choice);
		if (!wide)
			keep_required_cubes(choice);
		for (int attempt = 0; attempt < BEND_ATTEMPTS; attempt++) {
			struct ocs_placement *placement = shape_place(choice, err);
			int drop = -1;

			if (!placement)
				break;
			if (has_required(choice, placement))
				return placement;
			for (int i = 0; i < placement->nnodes && drop < 0; i++) {
				if (!is_required(choice, placement->nodes[i]))
					drop = placement->nodes[i];
			}
			ocs_placement_destroy(placement);
			if (drop < 0)
				break;
			ocs_occupancy_node_set(choice->state->scratch, ocs_state.fabric, drop,
					       false);
		}
	}
	ocs_error_set(err, OCS_NOT_NOW,
		      "no placement with the nodes that were asked for by name is free");
	return NULL;
}

/* The choice of an earlier test, if it is still possible: a job for which others
 * are being preempted must not move on to a different cube. */
static struct ocs_placement *place_again(const struct choice *choice)
{
	struct ocs_waiting *waiting = ocs_waiting_find(choice->request->job, false);
	struct ocs_placement *placement;

	if (choice->mode != OCS_RUN_NOW || !waiting || waiting->nchosen != choice->count)
		return NULL;
	for (int i = 0; i < waiting->nchosen; i++) {
		if (!node_free(choice, waiting->chosen[i]))
			return NULL;
	}
	ocs_occupancy_reset(choice->state->scratch);
	ocs_occupancy_fill(choice->state->scratch);
	for (int i = 0; i < waiting->nchosen; i++)
		ocs_occupancy_node_set(choice->state->scratch, ocs_state.fabric, waiting->chosen[i],
				       true);
	ocs_faults_apply(choice->state->scratch);
	placement = shape_place(choice, NULL);
	if (placement && !has_required(choice, placement)) {
		ocs_placement_destroy(placement);
		return NULL;
	}
	return placement;
}

/* Whether there would be room but for what has failed or is drained. */
static bool faults_hinder(struct choice *choice)
{
	struct ocs_placement *placement;
	bool room;

	choice->ignore_faults = true;
	occupancy_fill(choice);
	choice->ignore_faults = false;
	placement = shape_place(choice, NULL);
	room = placement;
	ocs_placement_destroy(placement);
	return room;
}

/* Whether the placement fails for faults alone, or for allocations that are still
 * being torn down; completes the reason.  Faults are no part of it where there is no room anyway. */
static void refusal_explain(struct choice *choice, bool *nodes_help, struct ocs_error *err)
{
	struct ocs_placement *placement;
	char *faults = ocs_faults_describe();

	*nodes_help = true;
	if (ocs_state.nholds && choice->mode == OCS_RUN_NOW) {
		choice->ignore_holds = true;
		occupancy_fill(choice);
		choice->ignore_holds = false;
		placement = shape_place(choice, NULL);
		if (placement) {
			ocs_placement_destroy(placement);
			if (!choice->request->tentative)
				ocs_near_drop(choice->request->job);
			ocs_error_set(err, OCS_NOT_NOW,
				      "waits until the circuits of an ended job are taken down");
			free(faults);
			return;
		}
	}
	if (faults) {
		ocs_occupancy_reset(choice->state->scratch);
		ocs_faults_apply(choice->state->scratch);
		placement = shape_place(choice, NULL);
		*nodes_help = placement;
		ocs_placement_destroy(placement);
		if (!*nodes_help || faults_hinder(choice))
			snprintf(err->text + strlen(err->text), OCS_ERROR_TEXT - strlen(err->text),
				 " (%s)", faults);
	}
	free(faults);
}

static int torus_choose(struct choice *choice, int min, int max, int *chosen, bool *nodes_help,
			struct ocs_error *err)
{
	struct ocs_placement *placement;
	char shape[OCS_SHAPE_TEXT];
	int count;

	choice->count = ocs_reason_node_count(choice->state->placer, &choice->request->shape, err);
	if (choice->count < 0)
		return -1;
	if (choice->count < min || (max > 0 && choice->count > max) ||
	    choice->nrequired > choice->count) {
		ocs_shape_format(&choice->request->shape, shape);
		return ocs_error_set(
			err, OCS_NEVER, "shape %s takes %d nodes, but the job asks for %s %d",
			shape, choice->count,
			choice->count < min || choice->nrequired > choice->count ? "at least" :
										   "at most",
			choice->count < min		  ? min :
			choice->nrequired > choice->count ? choice->nrequired :
							    max);
	}
	placement = place_again(choice);
	if (!placement) {
		occupancy_fill(choice);
		placement = shape_place(choice, err);
	}
	if (placement && !has_required(choice, placement)) {
		ocs_placement_destroy(placement);
		placement = place_required(choice, err);
	}
	if (!placement) {
		/* Its text is too long for a job even on an empty machine. */
		if (err->code == OCS_ERROR && choice->mode == OCS_TEST_ONLY)
			err->code = OCS_NEVER;
		if (err->code == OCS_NOT_NOW && choice->mode == OCS_RUN_NOW && !choice->nrequired &&
		    !choice->request->tentative) {
			ocs_near_ask(choice->request->job, &choice->request->shape,
				     choice->state->scratch);
			choice->noted = true;
		}
		if (err->code == OCS_NOT_NOW && choice->mode != OCS_TEST_ONLY)
			refusal_explain(choice, nodes_help, err);
		return -1;
	}
	count = placement->nnodes;
	memcpy(chosen, placement->nodes, (size_t)count * sizeof(*chosen));
	ocs_placement_destroy(placement);
	return count;
}

enum fitness { FIT, PARTLY_FIT, UNFIT };

/* Direct and rail sections: every server is as good as any other, as long as its
 * own ports work.  A plan can do without some of them. */
static enum fitness server_fitness(const struct choice *choice, int node)
{
	const struct ocs_section *section = choice->section;
	int server = ocs_state.fabric->nodes[node].server, working = 0, described = 0;

	if (!ocs_faults_node_usable(node))
		return UNFIT;
	for (int i = 0; i < ocs_section_devices(section); i++) {
		struct ocs_port port, before;
		bool usable;

		if (ocs_section_nic_port(section, server, i / section->nic_ports,
					 i % section->nic_ports, &port))
			continue;
		described++;
		if (!ocs_faults_switch_usable(port.sw))
			return UNFIT;
		usable = ocs_faults_port_usable(port);
		/* its 1x2 switch */
		if (!ocs_section_select_port(section, server, i, &before)) {
			if (!ocs_faults_switch_usable(before.sw))
				return UNFIT;
			usable = usable && ocs_faults_port_usable(before);
		}
		working += usable;
	}
	if (working == described)
		return FIT;
	/* a ring passes a server by two duplex circuits, or in and out */
	if (section->kind != OCS_DIRECT || working < (section->directed ? 1 : 2))
		return UNFIT;
	return is_required(choice, node) ? FIT : PARTLY_FIT;
}

static int servers_choose(const struct choice *choice, int min, int max, int *chosen,
			  bool *nodes_help, struct ocs_error *err)
{
	int first = choice->section->first_node, count = 0, need = min > 1 ? min : 1;
	int faulty = 0;
	bool check = choice->mode != OCS_TEST_ONLY && ocs_faults_any();
	char shape[OCS_SHAPE_TEXT];

	if (choice->request->shaped) {
		int product = choice->request->servers;

		if (product < min || (max > 0 && product > max)) {
			ocs_shape_format(&choice->request->shape, shape);
			return ocs_error_set(
				err, OCS_NEVER,
				"shape %s takes %d servers, but the job asks for %s %d", shape,
				product, product < min ? "at least" : "at most",
				product < min ? min : max);
		}
		if (product > choice->section->nnodes) {
			ocs_shape_format(&choice->request->shape, shape);
			return ocs_error_set(
				err, OCS_NEVER, "shape %s takes %d servers; section %s has %d",
				shape, product, choice->section->name, choice->section->nnodes);
		}
		need = product;
	}
	/* Servers with a failed port only where others do not suffice. */
	for (int pass = FIT; pass <= (check ? PARTLY_FIT : FIT) && count < need; pass++) {
		faulty = 0;
		for (int node = first; node < first + choice->section->nnodes; node++) {
			int fitness = FIT;

			if (!node_free(choice, node))
				continue;
			if (check)
				fitness = server_fitness(choice, node);
			if (fitness == pass)
				chosen[count++] = node;
			else
				faulty += fitness > pass;
		}
	}
	if (count >= need)
		return count;
	*nodes_help = faulty == 0;
	return ocs_error_set(
		err, OCS_NOT_NOW, "needs %d servers; %d %s free%s", need, count,
		count == 1 ? "is" : "are",
		faulty ? ", others are drained or have ports on failed or drained switches" : "");
}

/* Nodes for the groups of a mixture of experts, each inside one region. */
static int groups_choose(const struct choice *choice, int min, int max, int *chosen,
			 bool *nodes_help, struct ocs_error *err)
{
	const struct ocs_section *section = choice->section;
	size_t size = (size_t)section->nservers + 1;
	bool *idle = ocs_calloc(size, sizeof(*idle)), *wanted = ocs_calloc(size, sizeof(*wanted));
	bool check = choice->mode != OCS_TEST_ONLY && ocs_faults_any();
	int first = section->first_node, count = choice->request->servers, faulty = 0;

	if (count < min || (max > 0 && count > max) || choice->nrequired > count)
		count = ocs_error_set(
			err, OCS_NEVER, "the shape takes %d servers, but the job asks for %s %d",
			count, count < min ? "at least" : "other than", count < min ? min : count);
	for (int s = 0; s < section->nservers; s++) {
		idle[s] = node_free(choice, first + s);
		if (!idle[s] || !check || server_fitness(choice, first + s) == FIT)
			continue;
		idle[s] = false;
		faulty++;
	}
	for (int i = 0; i < choice->nrequired && count > 0; i++) {
		int server = choice->required[i] - first;

		if (server < 0 || server >= section->nservers || !idle[server])
			count = ocs_error_set(err, OCS_NOT_NOW,
					      "a node that was asked for by name cannot be used");
		else
			wanted[server] = true;
	}
	if (count > 0) {
		count = ocs_region_place(section, &choice->request->groups, idle, wanted, chosen,
					 err);
		*nodes_help = faulty == 0;
	}
	for (int i = 0; i < count; i++)
		chosen[i] += first;
	free(idle);
	free(wanted);
	return count;
}

int ocs_controller_choose(const struct ocs_controller_request *request,
			  enum ocs_controller_mode mode, const uint64_t *usable,
			  const int *required, int nrequired, int min, int max, int *chosen,
			  bool *nodes_help, struct ocs_error *err)
{
	struct ocs_state *s = &ocs_state;
	struct choice choice = {
		.request = request,
		.section = request->section,
		.mode = mode,
		.usable = usable,
		.required = required,
		.nrequired = nrequired,
	};
	int count;

	*nodes_help = true;
	pthread_mutex_lock(&s->lock);
	choice.state = &s->sections[request->section->index];
	if (mode >= OCS_WILL_RUN && !s->up) {
		char since[32];
		struct tm local;

		strftime(since, sizeof(since), "%Y-%m-%dT%H:%M:%S",
			 localtime_r(&s->down_since, &local));
		*nodes_help = false;
		count = ocs_error_set(err, OCS_UNREACHABLE, "ocsd is not reachable since %s",
				      since);
	} else if (mode >= OCS_WILL_RUN && s->config_mismatch) {
		*nodes_help = false;
		count = ocs_error_set(err, OCS_UNREACHABLE, OCS_STRANGER);
	} else if (mode >= OCS_WILL_RUN && s->mute) {
		*nodes_help = false;
		count = ocs_error_set(err, OCS_UNREACHABLE, OCS_MUTE);
	} else if (choice.state->placer) {
		count = torus_choose(&choice, min, max, chosen, nodes_help, err);
	} else if (request->groups.groups) {
		count = groups_choose(&choice, min, max, chosen, nodes_help, err);
	} else {
		count = servers_choose(&choice, min, max, chosen, nodes_help, err);
	}
	if (count < 0 && mode == OCS_RUN_NOW && !choice.noted && !request->tentative)
		ocs_near_drop(request->job);
	if (count > 0 && mode == OCS_RUN_NOW && choice.state->placer) {
		struct ocs_waiting *waiting = ocs_waiting_find(request->job, true);

		waiting->chosen = ocs_realloc(waiting->chosen, (size_t)count * sizeof(*chosen));
		memcpy(waiting->chosen, chosen, (size_t)count * sizeof(*chosen));
		waiting->nchosen = count;
	}
	pthread_mutex_unlock(&s->lock);
	return count;
}
