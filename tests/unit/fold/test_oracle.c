/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Small static tori, where an embedding is a subgraph: the family against an
 * exhaustive search (LAD). */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <igraph/igraph.h>

#include "src/config/config.h"
#include "src/place/candidates.h"
#include "src/util/error.h"

#define PATIENCE 2 /* seconds for one search */

/* The graph of a torus with these extents (MESH: a line along that dimension). */
static void graph_make(igraph_t *graph, const int *extent, const bool *mesh, int ndim)
{
	int n = 1, v, d, stride;
	igraph_vector_int_t edges;

	for (d = 0; d < ndim; d++)
		n *= extent[d];
	igraph_vector_int_init(&edges, 0);
	for (v = 0; v < n; v++) {
		for (d = ndim - 1, stride = 1; d >= 0; stride *= extent[d--]) {
			int c = v / stride % extent[d];
			int to = c + 1 < extent[d] ? v + stride : v - c * stride;

			if (extent[d] == 1 || (c + 1 == extent[d] && (extent[d] == 2 || mesh[d])))
				continue;
			igraph_vector_int_push_back(&edges, v);
			igraph_vector_int_push_back(&edges, to);
		}
	}
	igraph_create(graph, &edges, n, IGRAPH_UNDIRECTED);
	igraph_vector_int_destroy(&edges);
}

/* 1 found, 0 there is none, -1 ran out of patience. */
static int lad_search(const struct ocs_shape *shape, const igraph_t *host)
{
	igraph_bool_t found = 0;
	igraph_t job;
	igraph_error_t code;

	graph_make(&job, shape->extent, shape->mesh, shape->ndim);
	code = igraph_subisomorphic_lad(&job, host, NULL, &found, NULL, NULL, 0, PATIENCE);
	igraph_destroy(&job);
	return code ? -1 : found;
}

static void line_compare(const char *line, int most, int *agreed, int *none)
{
	static const bool closed[OCS_AXES];
	struct ocs_fabric *fabric;
	struct ocs_error err;
	igraph_t host;
	int code;

	fabric = ocs_config_take_fabric(ocs_config_open(line, &err));
	assert_non_null(fabric);
	graph_make(&host, fabric->sections[0].edge, closed, OCS_AXES);
	for (code = 0; code < 8 * 8 * 8 * 8; code++) {
		struct ocs_shape shape = { .ndim = 3, .xpus = 1 };
		int d, exact;

		for (d = 0; d < 3; d++) {
			shape.extent[d] = 1 + (code >> 3 * d & 7);
			shape.mesh[d] = code >> (9 + d) & 1;
			shape.xpus *= shape.extent[d];
			/* each set of extents once */
			if (d && (shape.extent[d] > shape.extent[d - 1] ||
				  (shape.extent[d] == shape.extent[d - 1] &&
				   shape.mesh[d] > shape.mesh[d - 1])))
				break;
			if (shape.mesh[d] && shape.extent[d] < 3)
				break;
		}
		if (d < 3 || shape.xpus > most)
			continue;
		exact = lad_search(&shape, &host);
		if (exact < 0)
			continue;
		if (exact != ocs_catalogue_possible(&fabric->sections[0], &shape)) {
			char text[OCS_SHAPE_TEXT], conn[OCS_SHAPE_TEXT];

			fail_msg("%s %s %s: the search says %d", line,
				 ocs_shape_format(&shape, text),
				 ocs_shape_conn_format(&shape, conn), exact);
		}
		++*(exact ? agreed : none);
	}
	igraph_destroy(&host);
	ocs_fabric_destroy(fabric);
}

static void test_oracle(void **state)
{
	int agreed = 0, none = 0;

	(void)state;
	igraph_set_error_handler(igraph_error_handler_ignore);
	line_compare("static:6x5x1 tile:1x1x1", 30, &agreed, &none);
	line_compare("static:6x6x1 tile:1x1x1", 36, &agreed, &none);
	line_compare("static:8x6x1 tile:1x1x1", 48, &agreed, &none);
	line_compare("static:6x6x6 tile:1x1x1", 12, &agreed, &none);
	line_compare("static:5x6x2 tile:1x1x1", 20, &agreed, &none);
	line_compare("static:4x4x4 tile:1x1x1", 24, &agreed, &none);
	/* odd rings go round an odd side and fold */
	line_compare("static:5x3x1 tile:1x1x1", 15, &agreed, &none);
	line_compare("static:3x3x3 tile:1x1x1", 12, &agreed, &none);
	line_compare("static:7x4x1 tile:1x1x1", 28, &agreed, &none);
	assert_true(agreed > 100);
	assert_true(none > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_oracle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
