/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Ports that go dark under running jobs: what a poll tells of the light of their
 * circuits. */

#include "src/ocsd/jobs/degraded.h"
#include "src/ocsd/ports/drain.h"
#include "src/ocsd/ports/signal_loss.h"
#include "src/ocsd/ports/optical_power.h"
#include "src/ocsd/ports/quarantine.h"
#include "src/ocsd/state/out_of_service.h"
#include "src/ocsd/store/store.h"

#include "src/util/net.h"

#include <math.h>

/* A circuit that was seen lit and then this often not, at the egress of a patch, has
 * lost its light; a read-out may lag behind a change by a second. */
#define DARK_TIMES 2
#define DARK_TOLD (1 << 20)
#define AGAIN_NS INT64_C(1000000000)

static bool circuit_watched(const struct ocsd_circuit *circuit)
{
	const struct ocsd_job *job = circuit->job;

	return circuit->state == OCSD_CONNECTED &&
	       (ocsd_job_running(job) || (ocsd_job_living(job) && ocsd_job_prepared(job)));
}

/* A plan goes around a port at little cost; a job without one is told only of what
 * lasts: links flap, and hosts reset their NICs. */
static bool darkness_lasts(const struct ocsd *d, const struct ocsd_circuit *circuit)
{
	return circuit->dark >= DARK_TIMES &&
	       (circuit->job->plan.text || ocs_now_ns() - circuit->dark_since_ns >=
						   d->config->timeouts.dark_ms * INT64_C(1000000));
}

static bool fibre_failed(const struct ocs_health *health, int fibre)
{
	return health->port[fibre].status == OCS_PORT_FAILED;
}

/* NAN, not measured, is not dark. */
static bool fibre_dark(const struct ocs_health *health, int fibre)
{
	return health->port[fibre].dbm < OCSD_DARK_DBM;
}

static void port_blame(struct ocsd *d, const struct ocsd_switch *sw, int fibre, const char *why)
{
	struct ocs_port where = { .sw = sw->index, .port = ocsd_port_logical(sw, fibre) };

	/* in quarantine already: its circuit moves all the same */
	if (sw->ports[where.port].failed)
		ocsd_port_lost(d, where, why);
	else
		ocsd_port_fail(d, NULL, where, why);
}

/* What keeps the light of PATCH from arriving: the switch says so, none comes in, or
 * it is lost between the two ports. */
static void patch_blame(struct ocsd *d, const struct ocsd_switch *sw, struct ocs_patch patch,
			const struct ocs_health *health)
{
	if (fibre_failed(health, patch.in) || fibre_failed(health, patch.out)) {
		if (fibre_failed(health, patch.in))
			port_blame(d, sw, patch.in, "the switch says that it has failed");
		if (fibre_failed(health, patch.out))
			port_blame(d, sw, patch.out, "the switch says that it has failed");
	} else if (fibre_dark(health, patch.in)) {
		port_blame(d, sw, patch.in, OCSD_UNLIT);
	} else if (fibre_dark(health, patch.out)) {
		port_blame(d, sw, patch.in, "its light does not come out");
		port_blame(d, sw, patch.out, "no light comes out");
	}
}

static bool circuit_dark(const struct ocsd_circuit *circuit, const struct ocs_health *health)
{
	for (int p = 0; p < circuit->npatches; p++)
		if (fibre_dark(health, circuit->patches[p].out) ||
		    fibre_failed(health, circuit->patches[p].in) ||
		    fibre_failed(health, circuit->patches[p].out))
			return true;
	return false;
}

/* Of a circuit that was not seen lit yet: light comes in that does not come out, on a path
 * whose loss was measured before, so that the switch is known to measure it. */
static bool light_swallowed(struct ocsd *d, const struct ocsd_switch *sw,
			    const struct ocsd_circuit *circuit, const struct ocs_health *health)
{
	for (int p = 0; p < circuit->npatches; p++) {
		struct ocs_patch patch = circuit->patches[p];

		if (health->port[patch.in].dbm >= OCSD_DARK_DBM && fibre_dark(health, patch.out) &&
		    !isnan(ocsd_store_baseline(d, sw, patch.in, patch.out)))
			return true;
	}
	return false;
}

/* By what was read last; NOW: of the switch of BUT. */
static bool another_dark(struct ocsd *d, const struct ocsd_circuit *but,
			 const struct ocs_health *now)
{
	const struct ocsd_job *job = but->job;

	for (size_t i = 0; i < job->circuits.count; i++) {
		const struct ocsd_circuit *one = job->circuits.list[i];
		const struct ocs_health *health =
			one->sw == but->sw ? now : &d->switches[one->sw].health;

		if (one != but && one->state == OCSD_CONNECTED && health->port &&
		    circuit_dark(one, health))
			return true;
	}
	return false;
}

static void seen_lit(struct ocsd *d, struct ocsd_circuit *circuit, const struct ocs_health *now)
{
	bool news = !circuit->lit || circuit->dark;

	circuit->lit = true;
	circuit->dark = 0;
	/* Its port need not have failed any more: somebody has drained it meanwhile. */
	if (news && circuit->job->failure.error && !another_dark(d, circuit, now))
		ocsd_degraded_check(d, circuit->job);
}

void ocsd_health_look(struct ocsd *d, struct ocsd_switch *sw, const struct ocs_health *health)
{
	for (int in = 1; health->port && in <= sw->description->size; in++) {
		struct ocsd_circuit *circuit = sw->by_in[in];

		/* what is dark elsewhere on the way is news then */
		if (sw->ports[in].failed && health->port[in].dbm >= OCSD_DARK_DBM &&
		    ocsd_port_lit(d, (struct ocs_port){ .sw = sw->index, .port = in }) && circuit)
			circuit->dark = 0;
		if (!circuit || circuit->patches[0].in != in || !circuit_watched(circuit))
			continue;
		if (!circuit_dark(circuit, health)) {
			seen_lit(d, circuit, health);
			continue;
		}
		/* never lit: its servers may be off, or the switch measures nothing */
		if (!circuit->lit)
			circuit->lit = light_swallowed(d, sw, circuit, health);
		if (!circuit->lit || circuit->dark == DARK_TOLD)
			continue;
		if (!circuit->dark++)
			circuit->dark_since_ns = ocs_now_ns();
		if (!darkness_lasts(d, circuit)) {
			int64_t soon_ns = ocs_now_ns() + AGAIN_NS;

			sw->poll.next_ns = sw->poll.next_ns < soon_ns ? sw->poll.next_ns : soon_ns;
			continue;
		}
		circuit->dark = DARK_TOLD;
		for (int p = 0; p < circuit->npatches; p++)
			patch_blame(d, sw, circuit->patches[p], health);
	}
}
