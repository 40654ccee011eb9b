/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Fabrics in use: random jobs come and go, nodes and ports fail and come back, and every
 * placement is verified against what is free.  Prints how many.
 * Usage: test_traffic [PLACEMENTS [SEED]] */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/place/place_check.h"
#include "tests/unit/place/place_random.h"

#define SHAPES 60 /* of one fabric: their catalogues are kept */
#define JOBS 512  /* running at once */

static long wanted = 20000;
static uint64_t seed = 1;

struct traffic {
	struct setup s;
	struct ocs_shape shape[SHAPES];
	int nshapes;
	struct ocs_placement *job[JOBS];
	int njobs;
	long placed, refused, failures;
};

static void shapes_draw(struct traffic *m, int most)
{
	struct ocs_error err;
	int tries;

	m->nshapes = 0;
	for (tries = 0; tries < 1000 && m->nshapes < SHAPES; tries++) {
		struct ocs_shape *shape = &m->shape[m->nshapes];

		random_shape(shape, 3, most);
		m->nshapes += ocs_place_node_count(m->s.placer, shape, &err) > 0;
	}
	assert_true(m->nshapes > SHAPES / 4);
}

static void xpus_hold(struct traffic *m, const struct ocs_placement *p, bool is_free)
{
	int i;

	for (i = 0; i < p->nnodes; i++)
		ocs_occupancy_node_set(m->s.occupancy, m->s.fabric, p->nodes[i], is_free);
}

static void job_end(struct traffic *m)
{
	int gone;

	if (!m->njobs)
		return;
	gone = (int)random_next((uint32_t)m->njobs);
	xpus_hold(m, m->job[gone], true);
	ocs_placement_destroy(m->job[gone]);
	m->job[gone] = m->job[--m->njobs];
}

/* A port of a face fails, or all are repaired. */
static void port_fail(struct traffic *m)
{
	struct ocs_occupancy *o = m->s.occupancy;
	const struct ocs_section *s = m->s.section;
	int dim = (int)random_next(3);
	uint32_t bit = random_next((uint32_t)(s->edge[dim == 0] * s->edge[dim == 2 ? 1 : 2]));
	uint64_t *words;

	if (s->kind != OCS_TORUS)
		return;
	m->failures++;
	if (!random_next(4)) {
		memset(o->blocked, 0,
		       (size_t)s->ncubes * 6 * (size_t)o->face_words * sizeof(uint64_t));
		o->any_blocked = false;
		return;
	}
	words = (uint64_t *)(uintptr_t)ocs_occupancy_blocked(
		o, (int)random_next((uint32_t)s->ncubes), dim, (int)random_next(2));
	words[bit / 64] |= 1ULL << bit % 64;
	o->any_blocked = true;
}

static long traffic_run(const char *line, int most, long count)
{
	struct traffic *m = calloc(1, sizeof(*m));
	long placed;

	open_fabric(&m->s, line);
	shapes_draw(m, most);
	while (m->placed < count) {
		struct ocs_placement *p;
		struct ocs_error err;

		if (m->njobs == JOBS)
			job_end(m);
		if (!random_next(50))
			port_fail(m);
		p = ocs_place(m->s.placer, m->s.occupancy,
			      &m->shape[random_next((uint32_t)m->nshapes)], 0, &err);
		if (!p) {
			assert_int_equal(err.code, OCS_NOT_NOW);
			m->refused++;
			job_end(m);
			continue;
		}
		if (ocs_placement_verify(m->s.fabric, m->s.occupancy, p, &err))
			fail_msg("%s, placement %ld, %s: %s", line, m->placed, p->compact,
				 err.text);
		xpus_hold(m, p, false);
		m->job[m->njobs++] = p;
		m->placed++;
	}
	printf("# %s: %ld placements verified, %ld refused, %ld changes of ports\n", line,
	       m->placed, m->refused, m->failures);
	assert_true(m->refused > 0);
	while (m->njobs)
		job_end(m);
	placed = m->placed;
	close_fabric(&m->s);
	free(m);
	return placed;
}

static void test_traffic(void **state)
{
	static const struct {
		const char *line;
		int most;
		int share; /* tenths of the placements */
	} fabrics[] = {
		{ "torus cubes:2x2x1 cube:4x4x4 tile:1x1x1", 8, 2 },
		{ "torus cubes:2x2x2 cube:4x4x4 tile:2x2x1", 8, 2 },
		{ "torus cubes:3x2x1 cube:3x3x3 tile:1x1x1", 6, 1 },
		{ "torus cubes:4x2x1 cube:2x2x2 tile:1x1x1", 5, 1 },
		{ "torus cubes:2x2x1 cube:4x4x4 tile:2x2x1 threading", 8, 1 },
		{ "torus cubes:2x1x1 cube:3x3x3 tile:1x1x1", 4, 1 },
		{ "static:8x6x5 tile:1x1x1", 7, 1 },
		{ "static:8x8x4 tile:2x2x1", 8, 1 },
	};
	long placed = 0;
	size_t i;

	(void)state;
	random_state = seed * 0x9e3779b97f4a7c15ULL + 1;
	for (i = 0; i < sizeof(fabrics) / sizeof(fabrics[0]); i++)
		placed += traffic_run(fabrics[i].line, fabrics[i].most,
				      wanted * fabrics[i].share / 10);
	printf("# %ld placements verified\n", placed);
	assert_int_equal(placed, wanted / 10 * 10);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_traffic),
	};

	if (argc > 1)
		wanted = atol(argv[1]) / 10 * 10;
	if (argc > 2)
		seed = (uint64_t)atol(argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
