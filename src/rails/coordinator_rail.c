/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* One rail of a job: its topology, the request for the next one, and what becomes of it when that
 * does not come. */

#include <stdlib.h>
#include <string.h>

#include "src/rails/coordinator_internal.h"
#include "src/rails/rules.h"
#include "src/util/text.h"

void ocs_rail_init(struct ocs_coordinator *coordinator, struct rail *rail)
{
	ocs_rails_topology_first(&coordinator->circuits->layout, rail->topology);
	strcpy(rail->target, rail->topology);
	rail->unknown = true;
	rail->deadline = INT64_MAX;
	rail->stands = ocs_rails_set_create(coordinator->circuits);
	ocs_rails_leases_init(&rail->leases, coordinator->circuits);
}

void ocs_rail_free(struct rail *rail)
{
	free(rail->stands);
	ocs_rails_leases_free(&rail->leases);
}

bool ocs_rail_carries(const struct ocs_coordinator *coordinator, const struct rail *rail,
		      const struct group *group)
{
	/* Over the giant ring every node is reached; it stays. */
	if (rail->health == RAIL_RING)
		return !rail->changing && !rail->unknown;
	if (group->need.kind == OCS_RAILS_OUTSIDE)
		return !rail->changing && !rail->unknown && rail->health == RAIL_GOOD;
	return ocs_rails_set_within(coordinator->circuits, group->circuits, rail->stands);
}

/* What stands now: nothing for sure while it is unknown, else what a change leaves alone. */
static void stands_update(struct ocs_coordinator *coordinator, struct rail *rail)
{
	const struct ocs_rails_circuits *circuits = coordinator->circuits;
	const uint64_t *set = ocs_rails_set_of(coordinator->circuits, rail->topology);

	for (size_t i = 0; i < circuits->words; i++)
		rail->stands[i] = rail->unknown ? 0 : set[i];
	if (!rail->changing)
		return;
	set = ocs_rails_set_of(coordinator->circuits, rail->target);
	for (size_t i = 0; i < circuits->words; i++)
		rail->stands[i] &= set[i];
}

/* A request that names what differs only; never made but by a test. */
static void request_relate(const struct rail *rail, char *topology)
{
	for (int i = 0; topology[i] && rail->topology[i]; i++)
		if (topology[i] == rail->topology[i])
			topology[i] = '=';
}

static void request_send(struct ocs_coordinator *coordinator, struct rail *rail, int64_t now)
{
	struct ocs_coordinator_output *output =
		ocs_coordinator_emit(coordinator, OCS_COORDINATOR_REQUEST);

	/* The same request is repeated under its number: ocsd does not begin it again, and answers for
	 * what it did.  One that was answered needs another number, or the answer would come again. */
	if (!rail->changing || rail->answered)
		rail->seq = ++coordinator->seq;
	rail->answered = false;
	rail->changing = true;
	rail->deadline = now + coordinator->options.timeout;
	rail->tries++;
	output->rail = (int)(rail - coordinator->rails);
	output->seq = rail->seq;
	strcpy(output->topology, rail->target);
	if (!OCS_RAILS_RULE(ABSOLUTE))
		request_relate(rail, output->topology);
	stands_update(coordinator, rail);
}

void ocs_rail_request(struct ocs_coordinator *coordinator, struct rail *rail, int64_t now)
{
	uint64_t *before;
	bool allowed;

	if (rail->changing || rail->health == RAIL_FAILED ||
	    (!rail->unknown && strcmp(rail->topology, rail->target) == 0))
		return;
	before = ocs_rails_set_create(coordinator->circuits);
	memcpy(before, ocs_rails_set_of(coordinator->circuits, rail->topology),
	       coordinator->circuits->words * sizeof(*before));
	allowed = ocs_rails_leases_allow(&rail->leases, before,
					 ocs_rails_set_of(coordinator->circuits, rail->target));
	free(before);
	if (allowed) {
		rail->tries = 0;
		request_send(coordinator, rail, now);
	} else if (rail->health == RAIL_TO_RING && rail->deadline == INT64_MAX) {
		rail->deadline = now + coordinator->options.drain;
	}
}

static void rail_fail(struct ocs_coordinator *coordinator, struct rail *rail)
{
	struct ocs_coordinator_output *output =
		ocs_coordinator_emit(coordinator, OCS_COORDINATOR_RAIL_FAILED);

	output->rail = (int)(rail - coordinator->rails);
	rail->health = RAIL_FAILED;
	rail->changing = false;
	rail->deadline = INT64_MAX;
	memset(rail->stands, 0, coordinator->circuits->words * sizeof(*rail->stands));
}

/* The topology does not come: the giant ring is to serve everything, where there is one. */
static void rail_give_up(struct ocs_coordinator *coordinator, struct rail *rail)
{
	if (rail->health != RAIL_GOOD ||
	    ocs_rails_topology_check(&coordinator->circuits->layout, OCS_RAILS_RING, NULL) < 0) {
		rail_fail(coordinator, rail);
		return;
	}
	rail->health = RAIL_TO_RING;
	rail->changing = false;
	rail->unknown = true;
	rail->deadline = INT64_MAX;
	strcpy(rail->target, OCS_RAILS_RING);
	stands_update(coordinator, rail);
}

static void request_done(struct ocs_coordinator *coordinator, struct rail *rail)
{
	if (strcmp(rail->topology, rail->target) != 0) {
		coordinator->counts.changes++;
		coordinator->counts.provisioned += rail->speculative;
	}
	strcpy(rail->topology, rail->target);
	rail->changing = rail->unknown = false;
	rail->tries = 0;
	rail->deadline = INT64_MAX;
	stands_update(coordinator, rail);
	if (rail->health == RAIL_TO_RING) {
		rail->health = RAIL_RING;
		ocs_coordinator_emit(coordinator, OCS_COORDINATOR_RING)->rail =
			(int)(rail - coordinator->rails);
	}
}

void ocs_coordinator_answer(struct ocs_coordinator *coordinator, int number, uint64_t epoch,
			    uint64_t seq, bool good, int64_t now)
{
	struct rail *rail = NULL;

	if (number >= 0 && number < coordinator->options.rails)
		rail = &coordinator->rails[number];
	if (!rail || epoch != coordinator->options.epoch || !rail->changing ||
	    (OCS_RAILS_RULE(STALE) && (seq != rail->seq || rail->answered))) {
		coordinator->counts.stale++;
		return;
	}
	/* After a refusal the next try has to wait, or a switch that is busy would see them all. */
	if (good)
		request_done(coordinator, rail);
	else
		rail->answered = true;
	ocs_coordinator_serve(coordinator, now);
}

void ocs_rail_tick(struct ocs_coordinator *coordinator, struct rail *rail, int64_t now)
{
	if (now < rail->deadline)
		return;
	if (rail->changing && !OCS_RAILS_RULE(TIMEOUT)) {
		request_done(coordinator, rail);
	} else if (rail->changing && rail->tries < coordinator->options.tries) {
		coordinator->counts.retries++;
		request_send(coordinator, rail, now);
	} else {
		rail_give_up(coordinator, rail);
	}
}

void ocs_coordinator_topo_lost(struct ocs_coordinator *coordinator, int number, int64_t now)
{
	struct rail *rail;

	if (number < 0 || number >= coordinator->options.rails ||
	    coordinator->rails[number].health == RAIL_FAILED)
		return;
	rail = &coordinator->rails[number];
	rail->unknown = true;
	/* An answer to what is under way may tell of the time before. */
	rail->answered = true;
	if (!rail->changing && rail->health != RAIL_TO_RING)
		strcpy(rail->target, rail->topology);
	stands_update(coordinator, rail);
	ocs_coordinator_serve(coordinator, now);
}
