/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Cubes joined by switches, busy and with failed ports: the exhaustive search finds a placement
 * exactly when a search for subgraphs (LAD) does, and the engine only then.  Prints how often
 * the engine, and it and a bounded search, find what there is.
 * Usage: test_exhaustive [CASES [SEED]] */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <igraph/igraph.h>

#include "tests/unit/place/place_check.h"

#include "src/advice/reason.h"
#include "src/place/placement_encoding.h"
#include "tests/unit/place/exhaustive_search.h"
#include "tests/unit/place/place_random.h"
#include "tests/unit/sanitizer.h"

#define PATIENCE 2					    /* seconds for one search of LAD */
static const long budget[] = { 0, 300, 1000, 3000, 20000 }; /* of bounded searches; 0: none */
#define BUDGETS ((int)(sizeof(budget) / sizeof(budget[0])))

static int cases;
static uint64_t seed = 1;

/* The host as a graph: XPUs first, then their six ports, - and + of each axis.  Two ports
 * are joined if a link or a circuit can join them, so that what uses a port has it alone. */
struct host {
	igraph_t graph;
	igraph_vector_int_t colour; /* 0 XPU, 1 port */
	int xpus;
};

static int xpu_at(const struct ocs_section *s, int cube, int x, int y, int z)
{
	return ((cube * s->edge[0] + x) * s->edge[1] + y) * s->edge[2] + z;
}

static bool port_sound(const struct ocs_occupancy *o, int cube, int dim, const int *at, int sign)
{
	return !ocs_occupancy_port_blocked(o, cube, dim, at[dim ? 0 : 1], at[dim == 2 ? 1 : 2],
					   sign);
}

static void host_make(struct host *h, const struct setup *setup)
{
	const struct ocs_section *s = setup->section;
	const struct ocs_occupancy *o = setup->occupancy;
	int *vertex = calloc((size_t)(s->ncubes * s->cube_xpus), sizeof(int));
	int cube, other, x, y, z, d, n = 0;
	igraph_vector_int_t edges;

	igraph_vector_int_init(&edges, 0);
	igraph_vector_int_init(&h->colour, 0);
	for (cube = 0; cube < s->ncubes; cube++) {
		for (x = 0; x < s->cube_xpus; x++) {
			int at[3] = { x / s->edge[2] / s->edge[1], x / s->edge[2] % s->edge[1],
				      x % s->edge[2] };

			vertex[cube * s->cube_xpus + x] =
				ocs_occupancy_xpu_free(o, cube, at) ? n++ : -1;
		}
	}
	h->xpus = n;
	for (x = 0; x < 7 * n; x++)
		igraph_vector_int_push_back(&h->colour, x >= n);
#define PORT(v, dim, sign) (n + 6 * (v) + 2 * (dim) + (sign))
#define JOIN(a, b) (igraph_vector_int_push_back(&edges, a), igraph_vector_int_push_back(&edges, b))
	for (cube = 0; cube < s->ncubes; cube++) {
		for (x = 0; x < s->edge[0]; x++) {
			for (y = 0; y < s->edge[1]; y++) {
				for (z = 0; z < s->edge[2]; z++) {
					int at[3] = { x, y, z },
					    v = vertex[xpu_at(s, cube, x, y, z)], w;

					for (d = 0; d < 3 && v >= 0; d++) {
						int to[3] = { x, y, z };

						JOIN(v, PORT(v, d, OCS_PLUS));
						JOIN(v, PORT(v, d, OCS_MINUS));
						to[d] = at[d] + 1 < s->edge[d] ? at[d] + 1 : 0;
						if (to[d]) {
							w = vertex[xpu_at(s, cube, to[0], to[1],
									  to[2])];
							if (w >= 0)
								JOIN(PORT(v, d, OCS_PLUS),
								     PORT(w, d, OCS_MINUS));
							continue;
						}
						for (other = 0; other < s->ncubes; other++) {
							w = vertex[xpu_at(s, other, to[0], to[1],
									  to[2])];
							if (w >= 0 &&
							    port_sound(o, cube, d, at, OCS_PLUS) &&
							    port_sound(o, other, d, to, OCS_MINUS))
								JOIN(PORT(v, d, OCS_PLUS),
								     PORT(w, d, OCS_MINUS));
						}
					}
				}
			}
		}
	}
	igraph_create(&h->graph, &edges, 7 * n, IGRAPH_UNDIRECTED);
	igraph_vector_int_destroy(&edges);
	free(vertex);
}

static void host_destroy(struct host *h)
{
	igraph_destroy(&h->graph);
	igraph_vector_int_destroy(&h->colour);
}

/* The job with each edge as vertex, port, port, vertex. */
static void job_make(igraph_t *graph, igraph_vector_int_t *colour, const struct ocs_shape *shape)
{
	int n = (int)shape->xpus, v, d, i;
	igraph_vector_int_t edges;

	igraph_vector_int_init(&edges, 0);
	igraph_vector_int_init(colour, 0);
	for (v = 0; v < (int)shape->xpus; v++) {
		int stride = 1;

		for (d = shape->ndim - 1; d >= 0; stride *= shape->extent[d--]) {
			int extent = shape->extent[d], c = v / stride % extent;
			int to = c + 1 < extent ? v + stride : v - c * stride;

			if (extent == 1 || (c + 1 == extent && (extent == 2 || shape->mesh[d])))
				continue;
			JOIN(v, n);
			JOIN(n, n + 1);
			JOIN(n + 1, to);
			n += 2;
		}
	}
	for (i = 0; i < n; i++)
		igraph_vector_int_push_back(colour, i >= shape->xpus);
	igraph_create(graph, &edges, n, IGRAPH_UNDIRECTED);
	igraph_vector_int_destroy(&edges);
}

/* 1 found, 0 there is none, -1 ran out of patience. */
static int lad_search(const struct ocs_shape *shape, const struct host *host)
{
	igraph_vector_int_list_t domains;
	igraph_vector_int_t colour, set;
	igraph_bool_t found = 0;
	igraph_error_t code;
	igraph_t job;
	int v, x;

	if (shape->xpus > host->xpus)
		return 0;
	job_make(&job, &colour, shape);
	if (igraph_vcount(&job) > igraph_vcount(&host->graph)) {
		igraph_vector_int_destroy(&colour);
		igraph_destroy(&job);
		return 0;
	}
	igraph_vector_int_list_init(&domains, 0);
	for (v = 0; v < igraph_vcount(&job); v++) {
		igraph_vector_int_init(&set, 0);
		for (x = 0; x < igraph_vcount(&host->graph); x++) {
			if (VECTOR(host->colour)[x] == VECTOR(colour)[v])
				igraph_vector_int_push_back(&set, x);
		}
		igraph_vector_int_list_push_back(&domains, &set);
	}
	code = igraph_subisomorphic_lad(&job, &host->graph, &domains, &found, NULL, NULL, 0,
					PATIENCE);
	igraph_vector_int_list_destroy(&domains);
	igraph_vector_int_destroy(&colour);
	igraph_destroy(&job);
	return code ? -1 : found;
}

/* A shape of one to three dimensions with at most MOST XPUs. */
static void shape_draw(struct ocs_shape *shape, int most)
{
	do {
		random_shape(shape, 3, most);
		shape->no_rotate = shape->no_fold = false;
	} while (shape->xpus > most || shape->xpus < 2);
}

static void occupancy_draw(struct setup *s)
{
	const struct ocs_section *section = s->section;
	uint32_t busy = random_next(70);
	int node, i;

	random_occupancy(s->occupancy, s->fabric);
	if (random_next(4)) /* else whole cubes, drained ones */
		for (node = 0; node < section->nnodes; node++)
			ocs_occupancy_node_set(s->occupancy, s->fabric, section->first_node + node,
					       random_next(100) >= busy);
	if (random_next(2))
		return;
	for (i = 0; i < section->ncubes * 6 * s->occupancy->face_words; i++)
		s->occupancy->blocked[i] = 0;
	s->occupancy->any_blocked = false;
}

/* The search, and what it works with. */
struct oracle {
	struct exhaustive *search;
	struct ocs_box_search *fit;
	unsigned char *mark;
};

/* The arrangement that the search finds within BUDGET (below 0: no bound), verified; false:
 * none. */
static bool arrangement_find(const struct oracle *o, const struct setup *s,
			     const struct ocs_shape *shape, long bound)
{
	struct ocs_error err = { 0 };
	struct ocs_placement *p;

	ocs_cube_sets_load(o->fit, s->occupancy);
	if (!exhaustive_search(o->search, shape, (int)shape->xpus, o->fit, bound))
		return false;
	p = exhaustive_placement(s->section, shape, o->search->xpus, o->mark, NULL);
	if (ocs_placement_verify(s->fabric, s->occupancy, p, &err))
		fail_msg("the search: %s", err.text);
	ocs_placement_destroy(p);
	return true;
}

static void line_compare(const char *line, int most)
{
	int there = 0, none = 0, unknown = 0, found[BUDGETS] = { 0 }, i, b;
	struct oracle oracle;
	struct setup s;

	open_fabric(&s, line);
	oracle.search = exhaustive_create(s.section);
	oracle.fit = ocs_box_search_create(s.section);
	oracle.mark = calloc((size_t)s.section->nnodes, 1);
	for (i = 0; i < cases; i++) {
		char text[OCS_SHAPE_TEXT], conn[OCS_SHAPE_TEXT];
		struct ocs_error err = { 0 };
		struct ocs_placement *p;
		struct ocs_shape shape;
		struct host host;
		int exact;

		shape_draw(&shape, most);
		occupancy_draw(&s);
		ocs_shape_format(&shape, text);
		ocs_shape_conn_format(&shape, conn);
		host_make(&host, &s);
		exact = lad_search(&shape, &host);
		host_destroy(&host);
		p = ocs_reason_place(s.placer, s.occupancy, &shape, 0, &err);
		if (p)
			check(&s, p);
		if (p && !exact)
			fail_msg("%s, case %d, %s %s: LAD finds nothing, the engine %s", line, i,
				 text, conn, p->compact);
		if (exact < 0) {
			unknown++;
		} else if (arrangement_find(&oracle, &s, &shape, -1) != exact) {
			fail_msg("%s, case %d, %s %s: LAD says %d, the search the opposite", line,
				 i, text, conn, exact);
		} else if (exact) {
			there++;
			for (b = 0; b < BUDGETS; b++)
				found[b] += p ||
					    (b && arrangement_find(&oracle, &s, &shape, budget[b]));
		} else {
			none++;
		}
		ocs_placement_destroy(p);
	}
	printf("# %s, up to %d XPUs: %d do not fit, %d unknown, %d fit; found with a budget of",
	       line, most, none, unknown, there);
	for (b = 0; b < BUDGETS; b++)
		printf("%s %ld: %d", b ? "," : "", budget[b], found[b]);
	printf("\n");
	assert_true(there > cases / 10);
	for (b = 0; b < BUDGETS; b++)
		assert_in_range(found[b], b ? found[b - 1] : cases / 20, there);
	free(oracle.mark);
	ocs_box_search_destroy(oracle.fit);
	exhaustive_destroy(oracle.search);
	close_fabric(&s);
}

static void test_complete(void **state)
{
	(void)state;
	igraph_set_error_handler(igraph_error_handler_ignore);
	random_state = seed * 0x9e3779b97f4a7c15ULL + 1;
	line_compare("torus cubes:1x1x1 cube:2x2x2 tile:1x1x1", 8);
	line_compare("torus cubes:2x1x1 cube:2x2x2 tile:1x1x1", 16);
	line_compare("torus cubes:1x1x1 cube:3x3x3 tile:1x1x1", 12);
	line_compare("torus cubes:2x1x1 cube:3x3x3 tile:1x1x1", 12);
	line_compare("torus cubes:1x1x1 cube:4x4x4 tile:1x1x1", 12);
	line_compare("torus cubes:2x1x1 cube:4x4x4 tile:1x1x1", 12);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_complete),
	};

	cases = argc > 1 ? atoi(argv[1]) : cases_here(150);
	if (argc > 2)
		seed = (uint64_t)atol(argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
