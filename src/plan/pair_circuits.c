/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Circuits for traffic between pairs (Algorithm 1 of the paper): on every
 * interface that the rings left, a maximum-weight matching; a pair that got a
 * circuit counts half from then on, so that others have their turn.  A matching
 * is what a switch makes, so a plane each is all the assignment there is to do. */

#include <stdlib.h>

#include "src/plan/internal.h"
#include "src/util/text.h"

#define WEIGHT_TOP 0x1p50 /* the heaviest pair, as a whole number */

static int bit_lowest(uint64_t mask)
{
	return __builtin_ctzll(mask);
}

/* The interface at which A and B (and their receivers) are free, within PLANES. */
static int free_at(const struct ocs_plan_ports *ports, int a, int b, uint64_t planes)
{
	uint64_t both = ports->tx[a] & ports->rx[a] & ports->tx[b] & ports->rx[b] & planes;

	return both ? bit_lowest(both) : -1;
}

static bool pair_add(struct ocs_plan_ports *ports, int a, int b, uint64_t planes)
{
	int plane = free_at(ports, a, b, planes), a_port = plane, b_port = plane;

	if (plane < 0 && ports->plan->any_port && !ports->plan->directed && ports->tx[a] &&
	    ports->tx[b]) {
		a_port = bit_lowest(ports->tx[a]);
		b_port = bit_lowest(ports->tx[b]);
	}
	if (a_port < 0)
		return false;
	ocs_plan_circuit_add(ports, a, a_port, b, b_port, -1);
	ports->mp++;
	if (ports->plan->directed) {
		ocs_plan_circuit_add(ports, b, b_port, a, a_port, -1);
		ports->mp++;
	}
	return true;
}

/* One matching over the servers that have an interface in PLANES free.  Returns
 * the circuits made. */
static int matching_join(struct ocs_plan_ports *ports, double *want, uint64_t planes,
			 int64_t *weight, int *mate)
{
	int n = ports->plan->servers, made = 0;
	bool any_port = ports->plan->any_port && !ports->plan->directed;
	double most = 0;

	for (size_t i = 0; i < (size_t)n * n; i++)
		most = want[i] > most ? want[i] : most;
	for (int a = 0; a < n; a++)
		for (int b = 0; b < n; b++) {
			double bytes = want[(size_t)a * n + b];
			bool open = any_port ? ports->tx[a] && ports->tx[b] :
					       free_at(ports, a, b, planes) >= 0;

			weight[(size_t)a * n + b] =
				a == b || bytes <= 0 || !open ?
					0 :
					1 + (int64_t)(bytes / most * WEIGHT_TOP);
		}
	ocs_plan_match(n, weight, mate);
	for (int a = 0; a < n; a++)
		if (mate[a] > a && pair_add(ports, a, mate[a], planes)) {
			want[(size_t)a * n + mate[a]] /= 2;
			want[(size_t)mate[a] * n + a] /= 2;
			made++;
		}
	return made;
}

void ocs_plan_mp(struct ocs_plan_ports *ports, const double *mp)
{
	struct ocs_plan *plan = ports->plan;
	int n = plan->servers, *mate = ocs_calloc(n, sizeof(int));
	double *want = ocs_calloc((size_t)n * n, sizeof(*want));
	int64_t *weight = ocs_calloc((size_t)n * n, sizeof(*weight));

	/* a duplex circuit serves both directions */
	for (int a = 0; a < n; a++)
		for (int b = 0; b < n; b++)
			want[(size_t)a * n + b] = mp[(size_t)a * n + b] + mp[(size_t)b * n + a];
	/* rings have circuits of their own, but pairs beside each other use them too */
	for (int c = 0; c < plan->ncircuits; c++) {
		int a = plan->circuits[c].a, b = plan->circuits[c].b;

		want[(size_t)a * n + b] /= 2;
		if (a != b)
			want[(size_t)b * n + a] /= 2;
	}
	for (int i = 0; i < plan->degree; i++)
		if (plan->any_port) {
			if (!matching_join(ports, want, ~UINT64_C(0), weight, mate))
				break;
		} else {
			matching_join(ports, want, UINT64_C(1) << i, weight, mate);
		}
	free(weight);
	free(want);
	free(mate);
}
