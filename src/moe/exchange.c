/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/moe/exchange.h"

#include <stdlib.h>
#include <string.h>

#include "src/util/text.h"

void ocs_moe_search_init(struct ocs_moe_search *s, const struct ocs_moe_request *request,
			 const struct ocs_moe_circuits *circuits)
{
	int n = circuits->n;
	size_t sides = 2 * (size_t)n;

	*s = (struct ocs_moe_search){
		.request = request,
		.circuits = ocs_moe_circuits_create(n),
		.n = n,
		.sent = request->demand->tokens,
		.received = ocs_calloc((size_t)n * n, sizeof(double)),
		.ports = ocs_calloc((size_t)n, sizeof(int)),
		.need = ocs_calloc(sides, sizeof(double)),
		.carry = ocs_calloc(sides, sizeof(double)),
		.weight = ocs_calloc(sides, sizeof(double)),
		.end = ocs_calloc(sides, sizeof(*s->end)),
	};
	for (int i = 0; i < n; i++)
		for (int j = 0; j < n; j++)
			s->received[(size_t)j * n + i] = s->sent[(size_t)i * n + j];
	ocs_moe_search_restore(s, circuits);
}

void ocs_moe_search_free(struct ocs_moe_search *s)
{
	ocs_moe_circuits_destroy(s->circuits);
	free(s->received);
	free(s->ports);
	free(s->need);
	free(s->carry);
	free(s->weight);
	free(s->end);
}

void ocs_moe_search_restore(struct ocs_moe_search *s, const struct ocs_moe_circuits *circuits)
{
	memcpy(s->circuits->count, circuits->count, (size_t)s->n * s->n * sizeof(*circuits->count));
	for (int i = 0; i < s->n; i++)
		s->ports[i] =
			s->request->region->ports[i] - ocs_moe_circuits_degree(s->circuits, i);
	s->cut = s->request->keep ? ocs_moe_circuits_cut(s->request->keep, s->circuits) : 0;
}

void ocs_moe_search_time(struct ocs_moe_search *s, double t)
{
	s->t = t;
	for (int side = 0; side < 2 * s->n; side++) {
		int i = side / 2;
		const double *tokens = (side % 2 ? s->received : s->sent) + (size_t)i * s->n;
		const int *count = s->circuits->count + (size_t)i * s->n;
		double all = 0, carried = 0;

		for (int j = 0; j < s->n; j++) {
			double most = t * count[j];

			all += tokens[j];
			carried += tokens[j] < most ? tokens[j] : most;
		}
		s->need[side] = all - s->request->region->packets * t;
		s->carry[side] = carried;
		s->weight[side] = 1;
	}
}

double ocs_moe_circuit_value(double d, int c, double t)
{
	double left = d - t * (c - 1);

	return left <= 0 ? 0 : left < t ? left : t;
}

double ocs_moe_side_lack(const struct ocs_moe_search *s, int side, double carry)
{
	double lack = s->need[side] - carry;

	return lack > 0 ? s->weight[side] * lack : 0;
}

/* One circuit more between I and J, or one less: BY is 1 or -1.  Adds to the sides of both. */
static void circuit_weigh(const struct ocs_moe_search *s, int i, int j, int by,
			  struct ocs_moe_sides *of_i, struct ocs_moe_sides *of_j)
{
	size_t there = (size_t)i * s->n + j;
	int c = s->circuits->count[there] + (by > 0);
	double go = by * ocs_moe_circuit_value(s->sent[there], c, s->t);
	double come = by * ocs_moe_circuit_value(s->received[there], c, s->t);

	of_i->sent += go;
	of_i->received += come;
	of_j->sent += come;
	of_j->received += go;
}

static double server_gain(const struct ocs_moe_search *s, int i, const struct ocs_moe_sides *sides)
{
	return ocs_moe_side_lack(s, 2 * i, s->carry[2 * i]) -
	       ocs_moe_side_lack(s, 2 * i, s->carry[2 * i] + sides->sent) +
	       ocs_moe_side_lack(s, 2 * i + 1, s->carry[2 * i + 1]) -
	       ocs_moe_side_lack(s, 2 * i + 1, s->carry[2 * i + 1] + sides->received);
}

/* What END gains for I, and does to the other server, once OF_I has come to the sides of I. */
static void end_weigh(const struct ocs_moe_search *s, int i, const struct ocs_moe_sides *of_i,
		      struct ocs_moe_end *end)
{
	struct ocs_moe_sides mine = *of_i;

	end->far = (struct ocs_moe_sides){ 0 };
	if (end->server != OCS_MOE_NOBODY)
		circuit_weigh(s, i, end->server, -1, &mine, &end->far);
	end->gain = server_gain(s, i, &mine);
}

/* Sets e->gain, of the circuits with the ends K and L, which have been weighed; costs one of s->effort. */
static void ends_join(struct ocs_moe_search *s, const struct ocs_moe_end *k,
		      const struct ocs_moe_end *l, struct ocs_moe_exchange *e)
{
	struct ocs_moe_sides of_k = k->far, of_l = l->far;

	s->effort--;
	e->gain = k->gain + l->gain;
	if (e->k == e->l) {
		of_k.sent += of_l.sent;
		of_k.received += of_l.received;
	} else if (e->k != OCS_MOE_NOBODY && e->l != OCS_MOE_NOBODY) {
		circuit_weigh(s, e->k, e->l, 1, &of_k, &of_l);
	}
	if (e->k != OCS_MOE_NOBODY)
		e->gain += server_gain(s, e->k, &of_k);
	if (e->l != OCS_MOE_NOBODY && e->l != e->k)
		e->gain += server_gain(s, e->l, &of_l);
}

void ocs_moe_exchange_judge(struct ocs_moe_search *s, struct ocs_moe_exchange *e)
{
	struct ocs_moe_end k = { .server = e->k }, l = { .server = e->l };
	struct ocs_moe_sides of_i = { 0 }, of_j = { 0 };

	circuit_weigh(s, e->i, e->j, 1, &of_i, &of_j);
	end_weigh(s, e->i, &of_i, &k);
	end_weigh(s, e->j, &of_j, &l);
	ends_join(s, &k, &l, e);
}

/* The circuits of I that may go for one to J: into s->end from FIRST on; returns how many. */
static int ends_find(struct ocs_moe_search *s, int i, int j, int first)
{
	const int *count = s->circuits->count + (size_t)i * s->n;
	int found = first;

	if (s->ports[i])
		s->end[found++] = (struct ocs_moe_end){ .server = OCS_MOE_NOBODY };
	for (int k = 0; k < s->n && !s->ports[i]; k++)
		if (count[k] && k != j)
			s->end[found++] = (struct ocs_moe_end){ .server = k };
	return found - first;
}

void ocs_moe_exchange_best(struct ocs_moe_search *s, int i, int j, struct ocs_moe_exchange *best)
{
	int of_one = ends_find(s, i, j, 0), all = of_one + ends_find(s, j, i, of_one);
	struct ocs_moe_sides of_i = { 0 }, of_j = { 0 };

	circuit_weigh(s, i, j, 1, &of_i, &of_j);
	for (int k = 0; k < of_one; k++)
		end_weigh(s, i, &of_i, &s->end[k]);
	for (int l = of_one; l < all; l++)
		end_weigh(s, j, &of_j, &s->end[l]);
	for (int k = 0; k < of_one; k++) {
		for (int l = of_one; l < all; l++) {
			struct ocs_moe_exchange e = {
				.i = i, .j = j, .k = s->end[k].server, .l = s->end[l].server
			};

			if (!ocs_moe_exchange_allowed(s, &e))
				continue;
			ends_join(s, &s->end[k], &s->end[l], &e);
			if (e.gain > best->gain)
				*best = e;
		}
	}
}

/* A circuit that is to go (BY -1) or to come between I and J: what that adds to the circuits of
 * request->keep that are cut. */
static int circuit_cuts(const struct ocs_moe_search *s, int i, int j, int by)
{
	size_t at = (size_t)i * s->n + j;
	int left = s->request->keep->count[at] - s->circuits->count[at];

	return by < 0 ? left >= 0 : -(left > 0);
}

static int exchange_cuts(const struct ocs_moe_search *s, const struct ocs_moe_exchange *e)
{
	int cut = 0;

	if (!s->request->keep)
		return 0;
	cut += circuit_cuts(s, e->i, e->j, 1);
	if (e->k != OCS_MOE_NOBODY)
		cut += circuit_cuts(s, e->i, e->k, -1);
	if (e->l != OCS_MOE_NOBODY)
		cut += circuit_cuts(s, e->j, e->l, -1);
	if (e->k != OCS_MOE_NOBODY && e->l != OCS_MOE_NOBODY && e->k != e->l)
		cut += circuit_cuts(s, e->k, e->l, 1);
	return cut;
}

bool ocs_moe_exchange_allowed(const struct ocs_moe_search *s, const struct ocs_moe_exchange *e)
{
	return !s->request->keep || s->cut + exchange_cuts(s, e) <= s->request->change;
}

static void circuit_change(struct ocs_moe_search *s, int i, int j, int by)
{
	struct ocs_moe_sides of_i = { 0 }, of_j = { 0 };

	circuit_weigh(s, i, j, by, &of_i, &of_j);
	s->carry[2 * i] += of_i.sent;
	s->carry[2 * i + 1] += of_i.received;
	s->carry[2 * j] += of_j.sent;
	s->carry[2 * j + 1] += of_j.received;
	ocs_moe_circuits_add(s->circuits, i, j, by);
	s->ports[i] -= by;
	s->ports[j] -= by;
}

void ocs_moe_exchange_make(struct ocs_moe_search *s, const struct ocs_moe_exchange *e)
{
	s->cut += exchange_cuts(s, e);
	circuit_change(s, e->i, e->j, 1);
	if (e->k != OCS_MOE_NOBODY)
		circuit_change(s, e->i, e->k, -1);
	if (e->l != OCS_MOE_NOBODY)
		circuit_change(s, e->j, e->l, -1);
	if (e->k != OCS_MOE_NOBODY && e->l != OCS_MOE_NOBODY && e->k != e->l)
		circuit_change(s, e->k, e->l, 1);
}

int ocs_moe_side_worst(const struct ocs_moe_search *s)
{
	double most = s->t * OCS_MOE_LACK;
	int worst = -1;

	for (int side = 0; side < 2 * s->n; side++) {
		double lack = ocs_moe_side_lack(s, side, s->carry[side]);

		if (lack > most) {
			most = lack;
			worst = side;
		}
	}
	return worst;
}
