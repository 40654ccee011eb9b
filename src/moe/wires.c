/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/moe/wires.h"

#include <stdbool.h>
#include <stdlib.h>

#include "src/util/error.h"
#include "src/util/text.h"

#define FREE (-1)

/* Each end of a circuit finds its NIC for itself: the switch joins any two. */
struct wiring {
	const struct ocs_moe_circuits *circuits;
	const struct ocs_moe_numa *numa;
	int n;
	int *partner; /* [n x ports] the server at the other end; FREE */
	int *peer;    /* [n x ports] the NIC there, of wires that are kept; FREE */
};

/* How many NICs of server I lead to J; NODE >= 0: of those on this NUMA node. */
static int partner_count(const struct wiring *w, int i, int j, int node)
{
	const int *numa = w->numa->node + (size_t)i * w->numa->ports;
	const int *partner = w->partner + (size_t)i * w->numa->ports;
	int count = 0;

	for (int p = 0; p < w->numa->ports; p++)
		count += numa[p] >= 0 && partner[p] == j && (node < 0 || numa[p] == node);
	return count;
}

/* The NIC of server I for one more circuit to J: on the NUMA node that has fewest of them, and of
 * those on the one with most NICs left.  -1: none is free. */
static int port_choose(const struct wiring *w, int i, int j)
{
	const int *numa = w->numa->node + (size_t)i * w->numa->ports;
	const int *partner = w->partner + (size_t)i * w->numa->ports;
	int best = -1, fewest = 0, most = 0;

	for (int p = 0; p < w->numa->ports; p++) {
		int have, left;

		if (numa[p] < 0 || partner[p] != FREE)
			continue;
		have = partner_count(w, i, j, numa[p]);
		left = partner_count(w, i, FREE, numa[p]);
		if (best < 0 || have < fewest || (have == fewest && left > most)) {
			best = p;
			fewest = have;
			most = left;
		}
	}
	return best;
}

/* Ends of server I: partners with many circuits choose first. */
static int server_wire(struct wiring *w, int i, struct ocs_error *err)
{
	for (;;) {
		int next = -1, most = 0, missing = 0, port;

		for (int j = 0; j < w->n; j++) {
			int count = w->circuits->count[i * w->n + j];
			int left = count - partner_count(w, i, j, -1);

			if (left > 0 && count > most) {
				most = count;
				missing = left;
				next = j;
			}
		}
		if (next < 0)
			return 0;
		while (missing--) {
			port = port_choose(w, i, next);
			if (port < 0)
				return ocs_error_set(err, OCS_USAGE,
						     "server %d has %d circuits and fewer optical "
						     "NICs",
						     i, ocs_moe_circuits_degree(w->circuits, i));
			w->partner[(size_t)i * w->numa->ports + port] = next;
		}
	}
}

static int end_keep(struct wiring *w, int i, int port, int partner, int peer, struct ocs_error *err)
{
	size_t at = (size_t)i * w->numa->ports + port;

	if (i < 0 || i >= w->n || port < 0 || port >= w->numa->ports || w->numa->node[at] < 0)
		return ocs_error_set(err, OCS_USAGE,
				     "a circuit is kept on NIC %d of server %d, which is not there",
				     port, i);
	if (w->partner[at] != FREE)
		return ocs_error_set(err, OCS_USAGE, "two circuits are kept on NIC %d of server %d",
				     port, i);
	w->partner[at] = partner;
	w->peer[at] = peer;
	return 0;
}

static int wires_keep(struct wiring *w, const struct ocs_moe_wire *keep, int nkeep,
		      struct ocs_error *err)
{
	for (int k = 0; k < nkeep; k++) {
		const struct ocs_moe_wire *wire = &keep[k];

		if (wire->a < 0 || wire->b < 0 || wire->a >= w->n || wire->b >= w->n ||
		    wire->a == wire->b)
			return ocs_error_set(err, OCS_USAGE,
					     "a circuit is kept between servers %d and %d of %d",
					     wire->a, wire->b, w->n);
		if (partner_count(w, wire->a, wire->b, -1) >=
		    w->circuits->count[wire->a * w->n + wire->b])
			continue;
		if (end_keep(w, wire->a, wire->a_port, wire->b, wire->b_port, err) ||
		    end_keep(w, wire->b, wire->b_port, wire->a, wire->a_port, err))
			return -1;
	}
	return 0;
}

/* The next NIC of B that leads to A, has no wire yet and is not kept for another NIC. */
static int peer_take(struct wiring *w, int b, int a)
{
	for (int p = 0; p < w->numa->ports; p++) {
		size_t at = (size_t)b * w->numa->ports + p;

		if (w->partner[at] == a && w->peer[at] == FREE) {
			w->peer[at] = a;
			return p;
		}
	}
	return -1; /* not reached: both ends have as many */
}

static int wires_list(struct wiring *w, struct ocs_moe_wire *wires)
{
	int found = 0;

	for (int a = 0; a < w->n; a++) {
		for (int b = a + 1; b < w->n; b++) {
			for (int p = 0; p < w->numa->ports; p++) {
				size_t at = (size_t)a * w->numa->ports + p;

				if (w->partner[at] != b)
					continue;
				wires[found].a = a;
				wires[found].a_port = p;
				wires[found].b = b;
				wires[found++].b_port =
					w->peer[at] != FREE ? w->peer[at] : peer_take(w, b, a);
			}
		}
	}
	return found;
}

int ocs_moe_wires_make(const struct ocs_moe_circuits *circuits, const struct ocs_moe_numa *numa,
		       const struct ocs_moe_wire *keep, int nkeep, struct ocs_moe_wire *wires,
		       struct ocs_error *err)
{
	size_t ends = (size_t)circuits->n * numa->ports;
	struct wiring w = {
		.circuits = circuits,
		.numa = numa,
		.n = circuits->n,
		.partner = ocs_calloc(ends + 1, sizeof(int)),
		.peer = ocs_calloc(ends + 1, sizeof(int)),
	};
	int found = -1;

	for (size_t k = 0; k < ends; k++)
		w.partner[k] = w.peer[k] = FREE;
	if (wires_keep(&w, keep, nkeep, err))
		goto out;
	for (int i = 0; i < w.n; i++)
		if (server_wire(&w, i, err))
			goto out;
	found = wires_list(&w, wires);
out:
	free(w.partner);
	free(w.peer);
	return found;
}
