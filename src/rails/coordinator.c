/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/rails/coordinator.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/rails/coordinator_internal.h"
#include "src/rails/rules.h"
#include "src/util/error.h"
#include "src/util/text.h"

static int options_check(const struct ocs_coordinator_options *options, struct ocs_error *err)
{
	int nodes = ocs_rails_layout_nodes(&options->layout);

	if (options->rails < 1 || options->rails > OCS_RAILS_RAILS)
		return ocs_error_set(err, OCS_USAGE, "a job has 1 to %d rails, not %d",
				     OCS_RAILS_RAILS, options->rails);
	if (options->ranks < 1 || options->timeout < 1 || options->tries < 1 || options->drain < 1)
		return ocs_error_set(err, OCS_USAGE,
				     "ranks, timeout, tries and drain have to be above 0");
	for (int rank = 0; rank < options->ranks; rank++)
		if (options->nodes[rank] < 0 || options->nodes[rank] >= nodes)
			return ocs_error_set(err, OCS_USAGE,
					     "rank %d is on node %d of a job with %d nodes", rank,
					     options->nodes[rank], nodes);
	return 0;
}

struct ocs_coordinator *ocs_coordinator_create(const struct ocs_coordinator_options *options,
					       int64_t now, struct ocs_error *err)
{
	struct ocs_rails_circuits *circuits = ocs_rails_circuits_create(&options->layout, err);
	struct ocs_coordinator *coordinator;

	if (!circuits)
		return NULL;
	if (options_check(options, err) < 0) {
		ocs_rails_circuits_destroy(circuits);
		return NULL;
	}
	coordinator = ocs_calloc(1, sizeof(*coordinator));
	coordinator->options = *options;
	coordinator->options.nodes = NULL;
	coordinator->circuits = circuits;
	coordinator->predict = ocs_rails_predict_create(ocs_rails_layout_stages(&options->layout));
	coordinator->nodes = ocs_calloc(options->ranks, sizeof(int));
	memcpy(coordinator->nodes, options->nodes, options->ranks * sizeof(int));
	coordinator->last = ocs_calloc(options->ranks, sizeof(*coordinator->last));
	coordinator->lost = ocs_calloc(options->ranks, sizeof(*coordinator->lost));
	TAILQ_INIT(&coordinator->demanded);
	for (int r = 0; r < options->rails; r++)
		ocs_rail_init(coordinator, &coordinator->rails[r]);
	ocs_coordinator_serve(coordinator, now);
	return coordinator;
}

static void operation_free(struct operation *operation)
{
	free(operation->arrived);
	free(operation->ended);
	free(operation);
}

static void group_free(struct group *group)
{
	struct operation *operation;

	while ((operation = TAILQ_FIRST(&group->operations))) {
		TAILQ_REMOVE(&group->operations, operation, of_group);
		operation_free(operation);
	}
	free(group->ranks);
	free(group->newest);
	free(group->circuits);
	free(group->phases);
	free(group);
}

void ocs_coordinator_destroy(struct ocs_coordinator *coordinator)
{
	if (!coordinator)
		return;
	for (size_t i = 0; i < coordinator->ngroups; i++)
		group_free(coordinator->groups[i]);
	for (int r = 0; r < coordinator->options.rails; r++)
		ocs_rail_free(&coordinator->rails[r]);
	ocs_rails_predict_destroy(coordinator->predict);
	ocs_rails_circuits_destroy(coordinator->circuits);
	free(coordinator->groups);
	free(coordinator->nodes);
	free(coordinator->last);
	free(coordinator->lost);
	free(coordinator->outputs);
	free(coordinator);
}

struct ocs_coordinator_output *ocs_coordinator_emit(struct ocs_coordinator *coordinator,
						    enum ocs_coordinator_kind kind)
{
	struct ocs_coordinator_output *output;

	if (coordinator->noutputs == coordinator->room) {
		coordinator->room = coordinator->room * 2 + 16;
		coordinator->outputs =
			ocs_realloc(coordinator->outputs, coordinator->room * sizeof(*output));
	}
	output = &coordinator->outputs[coordinator->noutputs++];
	memset(output, 0, sizeof(*output));
	output->kind = kind;
	output->rank = -1;
	output->epoch = coordinator->options.epoch;
	return output;
}

bool ocs_coordinator_output(struct ocs_coordinator *coordinator,
			    struct ocs_coordinator_output *output)
{
	if (coordinator->first_output == coordinator->noutputs) {
		coordinator->first_output = coordinator->noutputs = 0;
		return false;
	}
	*output = coordinator->outputs[coordinator->first_output++];
	return true;
}

bool ocs_group_waits(const struct ocs_coordinator *coordinator, const struct group *group)
{
	return group->need.kind == OCS_RAILS_STAGE || group->need.kind == OCS_RAILS_LINE ||
	       (group->need.kind == OCS_RAILS_OUTSIDE && coordinator->options.shared);
}

void ocs_operation_answer(struct ocs_coordinator *coordinator, const struct operation *operation,
			  int rank)
{
	struct ocs_coordinator_output *output =
		ocs_coordinator_emit(coordinator, OCS_COORDINATOR_GRANT);
	bool packets = operation->group->need.kind == OCS_RAILS_OUTSIDE;

	output->group = operation->group->id;
	output->idx = operation->idx;
	output->rank = rank;
	output->error = operation->error;
	output->seq = operation->seq;
	output->rails = packets ? 0 : operation->rails;
}

void ocs_operation_grant(struct ocs_coordinator *coordinator, struct operation *operation,
			 uint64_t rails, int64_t now)
{
	const struct group *group = operation->group;
	int64_t waited = now - operation->since;

	if (operation->state == OPERATION_DEMANDED)
		TAILQ_REMOVE(&coordinator->demanded, operation, by_age);
	operation->state = OPERATION_OPEN;
	operation->rails = rails;
	operation->seq = ++coordinator->grants;
	if (operation->error) {
		coordinator->counts.failed++;
	} else {
		coordinator->counts.barriers++;
		coordinator->counts.waited += waited;
		if (waited > coordinator->counts.waited_max)
			coordinator->counts.waited_max = waited;
	}
	for (int r = 0; r < coordinator->options.rails; r++) {
		struct rail *rail = &coordinator->rails[r];

		if (!(rails >> r & 1))
			continue;
		if (group->need.kind == OCS_RAILS_OUTSIDE)
			ocs_rails_leases_freeze(&rail->leases, group->circuits);
		else if (rail->health == RAIL_GOOD)
			ocs_rails_leases_open(&rail->leases, group->circuits);
		else
			continue;
		operation->leased |= UINT64_C(1) << r;
	}
	ocs_operation_answer(coordinator, operation, -1);
	if (operation->error)
		ocs_operation_remove(coordinator, operation);
}

void ocs_operation_close(struct ocs_coordinator *coordinator, struct operation *operation)
{
	const struct group *group = operation->group;

	for (int r = 0; r < coordinator->options.rails; r++) {
		struct ocs_rails_leases *leases = &coordinator->rails[r].leases;

		if (!(operation->leased >> r & 1))
			continue;
		if (group->need.kind == OCS_RAILS_OUTSIDE)
			ocs_rails_leases_thaw(leases, group->circuits);
		else
			ocs_rails_leases_close(leases, group->circuits);
	}
	operation->leased = 0;
}

void ocs_operation_remove(struct ocs_coordinator *coordinator, struct operation *operation)
{
	if (operation->state == OPERATION_DEMANDED)
		TAILQ_REMOVE(&coordinator->demanded, operation, by_age);
	ocs_operation_close(coordinator, operation);
	TAILQ_REMOVE(&operation->group->operations, operation, of_group);
	operation_free(operation);
}

void ocs_coordinator_fail(struct ocs_coordinator *coordinator, enum ocs_coordinator_error error,
			  int64_t now)
{
	struct operation *operation, *next;

	coordinator->over = error;
	for (size_t i = 0; i < coordinator->ngroups; i++) {
		for (operation = TAILQ_FIRST(&coordinator->groups[i]->operations); operation;
		     operation = next) {
			next = TAILQ_NEXT(operation, of_group);
			if (operation->state == OPERATION_OPEN)
				continue;
			operation->error = error;
			ocs_operation_grant(coordinator, operation, 0, now);
		}
	}
	ocs_coordinator_emit(coordinator, OCS_COORDINATOR_OVER)->error = error;
}

void ocs_coordinator_revoked(struct ocs_coordinator *coordinator, int64_t now)
{
	if (!coordinator->over)
		ocs_coordinator_fail(coordinator, OCS_COORDINATOR_REVOKED, now);
}

void ocs_coordinator_tick(struct ocs_coordinator *coordinator, int64_t now)
{
	for (int r = 0; r < coordinator->options.rails; r++)
		ocs_rail_tick(coordinator, &coordinator->rails[r], now);
	ocs_coordinator_serve(coordinator, now);
}

int64_t ocs_coordinator_deadline(const struct ocs_coordinator *coordinator)
{
	int64_t first = INT64_MAX;

	for (int r = 0; r < coordinator->options.rails; r++)
		if (coordinator->rails[r].deadline < first)
			first = coordinator->rails[r].deadline;
	return first;
}

const struct ocs_coordinator_counts *ocs_coordinator_counts(
	const struct ocs_coordinator *coordinator)
{
	return &coordinator->counts;
}

const char *ocs_coordinator_topology(const struct ocs_coordinator *coordinator, int rail,
				     bool *settled)
{
	const struct rail *at = &coordinator->rails[rail];

	*settled = !at->changing && !at->unknown && at->health != RAIL_FAILED;
	return at->topology;
}

uint64_t ocs_coordinator_last(const struct ocs_coordinator *coordinator, int rank)
{
	return coordinator->last[rank];
}
