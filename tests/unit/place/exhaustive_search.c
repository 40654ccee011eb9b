/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "tests/unit/place/exhaustive_search.h"

#include <stdlib.h>
#include <string.h>

#include "src/place/ring.h"
#include "src/util/text.h"

#define PORTS (2 * OCS_AXES)
#define DOMAIN_MAX (4L << 20) /* words of all domains of all levels */
#define FEW 8		      /* a domain this small is looked at again for one loss */

enum { NONE, FOUND, SPENT };

struct exhaustive *exhaustive_create(const struct ocs_section *s)
{
	struct exhaustive *e = ocs_calloc(1, sizeof(*e));
	int unit, d, a;

	e->section = s;
	e->near = ocs_calloc((size_t)s->cube_xpus * PORTS, sizeof(int));
	e->cell_of = ocs_calloc((size_t)s->cube_xpus, sizeof(int));
	for (unit = 0; unit < s->cube_xpus; unit++) {
		int at[OCS_AXES] = { unit / s->edge[2] / s->edge[1], unit / s->edge[2] % s->edge[1],
				     unit % s->edge[2] };

		for (d = 0; d < PORTS; d++)
			e->near[unit * PORTS + d] = ocs_ring_near(s, unit, d);
		for (a = 0; a < OCS_AXES; a++)
			e->cell_of[unit] =
				e->cell_of[unit] * (s->edge[a] / s->tile[a]) + at[a] / s->tile[a];
	}
	e->node_used = ocs_calloc((size_t)s->ncubes * (size_t)s->cube_nodes, sizeof(int));
	e->cube_used = ocs_calloc((size_t)s->ncubes, sizeof(int));
	e->usable = ocs_calloc((size_t)s->ncubes * (size_t)s->cube_xpus / 64 + 1, sizeof(uint64_t));
	e->ball = ocs_calloc((size_t)s->ncubes * (size_t)s->cube_xpus / 64 + 1, sizeof(uint64_t));
	e->xpus = ocs_calloc(EXHAUSTIVE_XPUS, sizeof(*e->xpus));
	return e;
}

void exhaustive_destroy(struct exhaustive *e)
{
	if (!e)
		return;
	free(e->near);
	free(e->cell_of);
	free(e->node_used);
	free(e->cube_used);
	free(e->usable);
	free(e->ball);
	free(e->xpus);
	free(e->column);
	free(e->adjacent);
	free(e->degree);
	free(e->like_first);
	free(e->domain);
	free(e->count);
	free(e->at);
	free(e->queue);
	free(e->queued);
	free(e);
}

static bool bit_get(const uint64_t *set, int i)
{
	return set[i / 64] >> i % 64 & 1;
}

static void bit_put(uint64_t *set, int i)
{
	set[i / 64] |= 1ULL << i % 64;
}

static void bit_cut(uint64_t *set, int i)
{
	set[i / 64] &= ~(1ULL << i % 64);
}

/* What XPU X meets through its port DIR: *ONE is that XPU, or -1; if a switch decides,
 * returns the set of XPUs, of which *EXCEPT (or -1) is none. */
static const uint64_t *port_reach(const struct exhaustive *e, int x, int dir, int *one, int *except)
{
	const struct ocs_section *s = e->section;
	int unit = x % s->cube_xpus, base = x - unit, near = e->near[unit * PORTS + dir];

	*one = *except = -1;
	if (!(near & 1)) {
		*one = base + near / 2;
		return NULL;
	}
	if (s->kind == OCS_STATIC) {
		/* a side of two: the wrap joins what the link joins already */
		if (s->edge[dir / 2] > 2)
			*one = base + near / 2;
		return NULL;
	}
	if (!bit_get(e->column + (size_t)(unit * PORTS + dir) * (size_t)e->words, x))
		return NULL;
	if (s->edge[dir / 2] == 2)
		*except = base + near / 2;
	return e->column + (size_t)(near / 2 * PORTS + (dir ^ 1)) * (size_t)e->words;
}

/* Whether port DIR of X leads into SET. */
static bool port_leads(const struct exhaustive *e, int x, int dir, const uint64_t *set)
{
	int one, except, w;
	const uint64_t *column = port_reach(e, x, dir, &one, &except);

	if (!column)
		return one >= 0 && bit_get(set, one);
	for (w = 0; w < e->words; w++) {
		uint64_t both = column[w] & set[w];

		if (except >= 0 && w == except / 64)
			both &= ~(1ULL << except % 64);
		if (both)
			return true;
	}
	return false;
}

/* Sets or clears in SET what port DIR of X meets. */
static void port_meets(const struct exhaustive *e, int x, int dir, uint64_t *set, bool add)
{
	int one, except, w;
	const uint64_t *column = port_reach(e, x, dir, &one, &except);

	if (one >= 0 && add)
		bit_put(set, one);
	else if (one >= 0)
		bit_cut(set, one);
	for (w = 0; column && w < e->words; w++) {
		uint64_t met = column[w];

		if (except >= 0 && w == except / 64)
			met &= ~(1ULL << except % 64);
		set[w] = add ? set[w] | met : set[w] & ~met;
	}
}

/* Port of X that Y is met through, or -1. */
static int port_to(const struct exhaustive *e, int x, int y)
{
	int dir, one, except;

	for (dir = 0; dir < PORTS; dir++) {
		const uint64_t *column = port_reach(e, x, dir, &one, &except);

		if (one == y || (column && y != except && bit_get(column, y)))
			return dir;
	}
	return -1;
}

static uint64_t *vertex_domain(const struct exhaustive *e, int level, int v)
{
	return e->domain + ((size_t)level * (size_t)e->vertices + (size_t)v) * (size_t)e->words;
}

static int *vertex_count(const struct exhaustive *e, int level, int v)
{
	return e->count + (size_t)level * (size_t)e->vertices + v;
}

static void vertex_push(struct exhaustive *e, int v)
{
	if (e->queued[v])
		return;
	e->queued[v] = true;
	e->queue[(e->head + e->pending++) % e->vertices] = v;
}

/* Counts the domain of V anew; false: it is empty. */
static bool vertex_recount(struct exhaustive *e, int level, int v)
{
	const uint64_t *set = vertex_domain(e, level, v);
	int n = 0, w;

	for (w = 0; w < e->words; w++)
		n += __builtin_popcountll(set[w]);
	if (n != *vertex_count(e, level, v)) {
		*vertex_count(e, level, v) = n;
		vertex_push(e, v);
	}
	return n > 0;
}

/* Whether V can be at X: each of its neighbours through a port of its own. */
static bool vertex_supported(struct exhaustive *e, int level, int v, int x)
{
	int degree = e->degree[v], i, dir, some;
	unsigned int mask[PORTS], all[1 << PORTS];

	e->work += 1 + e->words / 8;
	for (i = 0; i < degree; i++) {
		const uint64_t *set = vertex_domain(e, level, e->adjacent[v * PORTS + i]);

		mask[i] = 0;
		for (dir = 0; dir < PORTS; dir++)
			mask[i] |= (unsigned int)port_leads(e, x, dir, set) << dir;
		if (!mask[i])
			return false;
	}
	/* Hall: any some of the neighbours have as many ports between them */
	all[0] = 0;
	for (some = 1; some < 1 << degree; some++) {
		int low = __builtin_ctz((unsigned int)some);

		all[some] = all[some & (some - 1)] | mask[low];
		if (__builtin_popcount(all[some]) < __builtin_popcount((unsigned int)some))
			return false;
	}
	return true;
}

/* Takes out what has lost its support until nothing changes; false: some vertex has no
 * XPU left. */
static bool losses_propagate(struct exhaustive *e, int level)
{
	int i, w;

	while (e->pending) {
		int changed = e->queue[e->head];

		e->head = (e->head + 1) % e->vertices;
		e->pending--;
		e->queued[changed] = false;
		for (i = 0; i < e->degree[changed]; i++) {
			int v = e->adjacent[changed * PORTS + i];
			uint64_t *set = vertex_domain(e, level, v);
			bool lost = false;

			for (w = 0; w < e->words; w++) {
				uint64_t left = set[w];

				for (; left; left &= left - 1) {
					int x = w * 64 + __builtin_ctzll(left);

					if (!vertex_supported(e, level, v, x)) {
						bit_cut(set, x);
						lost = true;
					}
				}
			}
			if (lost && !vertex_recount(e, level, v))
				return false;
		}
	}
	return true;
}

/* The port between X and the XPU of a neighbour is taken: no other neighbour of V goes
 * through it. */
static bool port_taken(struct exhaustive *e, int level, int v, int x, int dir, int neighbour)
{
	int i;

	for (i = 0; i < e->degree[v]; i++) {
		int w = e->adjacent[v * PORTS + i];

		if (w == neighbour)
			continue;
		port_meets(e, x, dir, vertex_domain(e, level, w), false);
		if (!vertex_recount(e, level, w))
			return false;
	}
	return true;
}

static bool vertex_assign(struct exhaustive *e, int level, int v, int x)
{
	int i, w, dir;

	memset(vertex_domain(e, level, v), 0, (size_t)e->words * sizeof(uint64_t));
	bit_put(vertex_domain(e, level, v), x);
	*vertex_count(e, level, v) = 1;
	vertex_push(e, v);
	for (w = 0; w < e->vertices; w++) {
		if (w == v || !bit_get(vertex_domain(e, level, w), x))
			continue;
		bit_cut(vertex_domain(e, level, w), x);
		if (!--*vertex_count(e, level, w))
			return false;
		if (*vertex_count(e, level, w) <= FEW)
			vertex_push(e, w);
	}
	memset(e->ball, 0, (size_t)e->words * sizeof(uint64_t));
	for (dir = 0; dir < PORTS; dir++)
		port_meets(e, x, dir, e->ball, true);
	for (i = 0; i < e->degree[v]; i++) {
		int to = e->adjacent[v * PORTS + i], k;
		uint64_t *set = vertex_domain(e, level, to);

		for (k = 0; k < e->words; k++)
			set[k] &= e->ball[k];
		if (!vertex_recount(e, level, to))
			return false;
	}
	for (i = 0; i < e->degree[v]; i++) {
		int to = e->adjacent[v * PORTS + i], y = e->at[to];

		if (y < 0)
			continue;
		dir = port_to(e, x, y);
		if (!port_taken(e, level, v, x, dir, to) ||
		    !port_taken(e, level, to, y, dir ^ 1, v))
			return false;
	}
	return true;
}

static int *node_of(const struct exhaustive *e, int x)
{
	int unit = x % e->section->cube_xpus;

	return &e->node_used[x / e->section->cube_xpus * e->section->cube_nodes + e->cell_of[unit]];
}

static void xpu_hold(struct exhaustive *e, int v, int x, int by)
{
	int *node = node_of(e, x);

	e->nused += by > 0 ? !*node : *node == 1 ? -1 : 0;
	*node += by;
	e->cube_used[x / e->section->cube_xpus] += by;
	e->at[v] = by > 0 ? x : -1;
}

/* XPUs are tried in nodes begun, then in cubes begun, then in the order of the cubes. */
static int xpu_rank(const struct exhaustive *e, int x)
{
	return *node_of(e, x) ? 0 : e->cube_used[x / e->section->cube_xpus] ? 1 : 2;
}

/* The unset vertex with the fewest XPUs. */
static int vertex_choose(const struct exhaustive *e, int level)
{
	int best = -1, v;

	for (v = 0; v < e->vertices; v++) {
		if (e->at[v] < 0 &&
		    (best < 0 || *vertex_count(e, level, v) < *vertex_count(e, level, best)))
			best = v;
	}
	return best;
}

static int search_step(struct exhaustive *e, int level);

static int xpu_try(struct exhaustive *e, int level, int v, int x)
{
	size_t vertices = (size_t)e->vertices;
	int result = NONE;

	if (e->nused + !*node_of(e, x) > e->nodes)
		return NONE;
	e->work += e->vertices * e->words / 64;
	memcpy(vertex_domain(e, level + 1, 0), vertex_domain(e, level, 0),
	       vertices * (size_t)e->words * sizeof(uint64_t));
	memcpy(vertex_count(e, level + 1, 0), vertex_count(e, level, 0), vertices * sizeof(int));
	memset(e->queued, 0, vertices);
	e->head = e->pending = 0;
	xpu_hold(e, v, x, 1);
	if (vertex_assign(e, level + 1, v, x) && losses_propagate(e, level + 1))
		result = search_step(e, level + 1);
	if (result != FOUND)
		xpu_hold(e, v, x, -1);
	return result;
}

static int search_step(struct exhaustive *e, int level)
{
	int v, x, w, r, result;

	if (level == e->vertices)
		return e->nused == e->nodes ? FOUND : NONE;
	if (e->budget >= 0 && e->work > e->budget)
		return SPENT;
	v = level ? vertex_choose(e, level) : 0;
	for (r = 0; r < 3; r++) {
		for (w = 0; w < e->words; w++) {
			uint64_t left = vertex_domain(e, level, v)[w];

			for (; left; left &= left - 1) {
				x = w * 64 + __builtin_ctzll(left);
				if (xpu_rank(e, x) != r)
					continue;
				result = xpu_try(e, level, v, x);
				if (result != NONE)
					return result;
				bit_cut(vertex_domain(e, level, v), x);
				/* no ring goes through X, wherever it starts */
				for (int u = 1; !level && u < e->vertices; u++) {
					if (e->like_first[u] &&
					    bit_get(vertex_domain(e, 0, u), x)) {
						bit_cut(vertex_domain(e, 0, u), x);
						--*vertex_count(e, 0, u);
					}
				}
			}
		}
	}
	return NONE;
}

static bool port_sound(const struct exhaustive *e, int cube, int unit, int dir)
{
	const struct ocs_section *s = e->section;
	int at[OCS_AXES] = { unit / s->edge[2] / s->edge[1], unit / s->edge[2] % s->edge[1],
			     unit % s->edge[2] };
	int axis = dir / 2;

	return !e->fit->blocked ||
	       !ocs_occupancy_port_blocked(e->fit->blocked, e->fit->cube[cube], axis,
					   at[axis ? 0 : 1], at[axis == 2 ? 1 : 2],
					   dir % 2 ? OCS_MINUS : OCS_PLUS);
}

/* The free XPUs, and which ports may be used. */
static void machine_load(struct exhaustive *e)
{
	const struct ocs_section *s = e->section;
	int h, unit, dir;

	memset(e->usable, 0, (size_t)e->words * sizeof(uint64_t));
	memset(e->column, 0, (size_t)s->cube_xpus * PORTS * (size_t)e->words * sizeof(uint64_t));
	for (h = 0; h < e->cubes; h++) {
		for (unit = 0; unit < s->cube_xpus; unit++) {
			int x = h * s->cube_xpus + unit;

			if (!bit_get(e->fit->words + h * s->words, unit))
				continue;
			bit_put(e->usable, x);
			for (dir = 0; dir < PORTS; dir++) {
				if (e->near[unit * PORTS + dir] & 1 && port_sound(e, h, unit, dir))
					bit_put(e->column + (size_t)(unit * PORTS + dir) *
								    (size_t)e->words,
						x);
			}
		}
	}
}

/* Leaves out XPUs with too few neighbours, again and again; returns how many stay. */
static int machine_prune(struct exhaustive *e, int degree)
{
	int n, w, dir;
	bool lost = true;

	while (lost) {
		lost = false;
		for (w = 0, n = 0; w < e->words; w++) {
			uint64_t left = e->usable[w];

			for (; left; left &= left - 1) {
				int x = w * 64 + __builtin_ctzll(left), ports = 0;

				for (dir = 0; dir < PORTS; dir++)
					ports += port_leads(e, x, dir, e->usable);
				n += ports >= degree;
				if (ports >= degree)
					continue;
				bit_cut(e->usable, x);
				lost = true;
			}
		}
	}
	return n;
}

/* Room for the job and the machine; false: they are too large. */
static bool room_make(struct exhaustive *e)
{
	const struct ocs_section *s = e->section;
	long levels = (long)e->vertices * (e->vertices + 1);
	size_t need;

	e->cubes = e->fit->n;
	if (levels * ((e->cubes * (long)s->cube_xpus + 63) / 64) > DOMAIN_MAX)
		e->cubes = (int)(DOMAIN_MAX / levels * 64 / s->cube_xpus);
	e->words = (e->cubes * s->cube_xpus + 63) / 64;
	if (!e->cubes)
		return false;
	if (e->vertices > e->vertex_room) {
		size_t v = (size_t)e->vertices;

		e->vertex_room = e->vertices;
		e->adjacent = ocs_realloc(e->adjacent, v * PORTS * sizeof(int));
		e->degree = ocs_realloc(e->degree, v * sizeof(int));
		e->like_first = ocs_realloc(e->like_first, v);
		e->count = ocs_realloc(e->count, v * (v + 1) * sizeof(int));
		e->at = ocs_realloc(e->at, v * sizeof(int));
		e->queue = ocs_realloc(e->queue, v * sizeof(int));
		e->queued = ocs_realloc(e->queued, v);
	}
	need = (size_t)levels * (size_t)e->words;
	if (need > e->domain_room) {
		e->domain_room = need;
		e->domain = ocs_realloc(e->domain, need * sizeof(uint64_t));
	}
	need = (size_t)s->cube_xpus * PORTS * (size_t)e->words;
	if (need > e->column_room) {
		e->column_room = need;
		e->column = ocs_realloc(e->column, need * sizeof(uint64_t));
	}
	return true;
}

/* The graph of the job; returns its least degree, or -1 if an XPU has too few ports. */
static int job_load(struct exhaustive *e)
{
	const struct ocs_shape *shape = e->shape;
	int list[2 * OCS_SHAPE_DIMS], v, d, stride, n, least = PORTS;

	for (v = 0; v < e->vertices; v++) {
		n = exhaustive_neighbours(shape, v, list);
		if (n > PORTS)
			return -1;
		memcpy(e->adjacent + v * PORTS, list, (size_t)n * sizeof(int));
		e->degree[v] = n;
		least = n < least ? n : least;
		e->like_first[v] = true;
		for (d = shape->ndim - 1, stride = 1; d >= 0; stride *= shape->extent[d--]) {
			if (shape->mesh[d] && shape->extent[d] > 2 && v / stride % shape->extent[d])
				e->like_first[v] = false;
		}
		e->at[v] = -1;
	}
	return least;
}

bool exhaustive_search(struct exhaustive *e, const struct ocs_shape *shape, int nodes,
		       const struct ocs_box_search *fit, long budget)
{
	const struct ocs_section *s = e->section;
	int least, n, v, a, found;

	e->work = 0;
	e->spent = false;
	if (shape->xpus > EXHAUSTIVE_XPUS || shape->twisted || shape->no_fold || shape->no_rotate)
		return false;
	for (a = 0; a < OCS_AXES; a++) {
		if (s->kind == OCS_TORUS && s->edge[a] == 1)
			return false;
	}
	e->shape = shape;
	e->fit = fit;
	e->budget = budget;
	e->nodes = nodes;
	e->vertices = (int)shape->xpus;
	if (!room_make(e))
		return false;
	least = job_load(e);
	machine_load(e);
	if (least < 0)
		return false;
	n = machine_prune(e, least);
	if (n < e->vertices)
		return false;
	memset(e->node_used, 0, (size_t)(e->cubes * s->cube_nodes) * sizeof(int));
	memset(e->cube_used, 0, (size_t)e->cubes * sizeof(int));
	e->nused = 0;
	for (v = 0; v < e->vertices; v++) {
		memcpy(vertex_domain(e, 0, v), e->usable, (size_t)e->words * sizeof(uint64_t));
		*vertex_count(e, 0, v) = n;
	}
	found = search_step(e, 0);
	e->spent = found == SPENT;
	if (found != FOUND)
		return false;
	for (v = 0; v < e->vertices; v++) {
		int unit = e->at[v] % s->cube_xpus;

		e->xpus[v].cube = fit->cube[e->at[v] / s->cube_xpus];
		e->xpus[v].at[0] = unit / s->edge[2] / s->edge[1];
		e->xpus[v].at[1] = unit / s->edge[2] % s->edge[1];
		e->xpus[v].at[2] = unit % s->edge[2];
	}
	return true;
}
