/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "src/config/config.h"
#include "src/policy/policy.h"
#include "src/util/error.h"

static uint64_t state = 88172645463325252ULL;

static int random_below(int n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (int)((state >> 33) % (uint64_t)n);
}

struct rig {
	struct ocs_fabric *fabric;
	const struct ocs_section *section;
	struct ocs_policy *policy;
	struct ocs_occupancy *occupancy;
};

static void rig_open(struct rig *r, const char *fabric, const char *policy, bool lenient)
{
	struct ocs_error err = { 0 };

	r->fabric = ocs_config_take_fabric(ocs_config_open(fabric, &err));
	assert_non_null(r->fabric);
	r->section = &r->fabric->sections[0];
	r->policy = ocs_policy_create(r->fabric, r->section, policy, lenient, &err);
	assert_non_null(r->policy);
	r->occupancy = ocs_occupancy_create(r->section);
}

static void rig_close(struct rig *r)
{
	ocs_occupancy_destroy(r->occupancy);
	ocs_policy_destroy(r->policy);
	ocs_fabric_destroy(r->fabric);
}

static struct ocs_shape shape_of(const char *text)
{
	struct ocs_shape shape;

	assert_int_equal(ocs_shape_parse(text, NULL, &shape, NULL), 0);
	return shape;
}

static bool shape_takes(struct rig *r, const char *text)
{
	struct ocs_shape shape = shape_of(text);

	return ocs_policy_possible(r->policy, &shape);
}

#define CUBES "torus cubes:4x4x2 cube:4x4x4 tile:1x1x1"
#define STATIC "static:16x16x16 tile:1x1x1"

/* Placements of every policy are placements, on machines that fill and empty. */
static void test_verified(void **unused)
{
	static const struct {
		const char *fabric, *policy;
	} runs[] = {
		{ CUBES, "best" },
		{ CUBES, "reconfig" },
		{ CUBES, "rfold" },
		{ "torus cubes:2x2x2 cube:8x8x8 tile:2x2x1", "reconfig" },
		{ "torus cubes:2x2x2 cube:8x8x8 tile:2x2x1", "rfold" },
		{ "torus cubes:4x4x4 cube:2x2x2 tile:1x1x1", "rfold" },
		{ STATIC, "firstfit" },
		{ STATIC, "folding" },
		{ STATIC, "best" },
	};
	static const char *const shapes[] = {
		"4",	 "8",	  "12",	   "18",    "36",      "64",	 "100",	   "2x2",
		"4x6",	 "6x6",	  "8x8",   "2x10",  "16x8",    "12x6",	 "4x8x2",  "2x2x6",
		"2x6x2", "4x4x4", "8x4x6", "8x8x4", "16x16x2", "2x2x32", "6x10x2",
	};
	size_t i;
	int lenient, n;

	(void)unused;
	for (i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
		for (lenient = 0; lenient < 2; lenient++) {
			struct rig r;
			int placed = 0;

			rig_open(&r, runs[i].fabric, runs[i].policy, lenient);
			assert_true(ocs_policy_verifiable(r.policy));
			for (n = 0; n < 400; n++) {
				struct ocs_shape shape = shape_of(
					shapes[random_below(sizeof(shapes) / sizeof(shapes[0]))]);
				struct ocs_error err = { 0 };
				struct ocs_placement *p =
					ocs_policy_place(r.policy, r.occupancy, &shape, &err);
				int j;

				if (!p) {
					assert_int_equal(err.code,
							 ocs_policy_possible(r.policy, &shape) ?
								 OCS_NOT_NOW :
								 OCS_NEVER);
					if (err.code == OCS_NOT_NOW)
						ocs_occupancy_reset(r.occupancy);
					continue;
				}
				placed++;
				if (ocs_placement_verify(r.fabric, r.occupancy, p, &err))
					fail_msg("%s on %s: %s", runs[i].policy, runs[i].fabric,
						 err.text);
				assert_memory_equal(p->shape.extent, shape.extent,
						    (size_t)shape.ndim * sizeof(int));
				for (j = 0; j < shape.ndim && !lenient; j++)
					assert_false(p->shape.mesh[j]);
				for (j = 0; j < p->nnodes; j++)
					ocs_occupancy_node_set(r.occupancy, r.fabric, p->nodes[j],
							       false);
				ocs_placement_destroy(p);
			}
			assert_true(placed > 20);
			rig_close(&r);
		}
	}
}

static void test_rules(void **unused)
{
	struct rig r;

	(void)unused;
	rig_open(&r, STATIC, "firstfit", true);
	assert_true(shape_takes(&r, "16x12x2"));
	assert_false(shape_takes(&r, "18"));
	assert_false(shape_takes(&r, "2x18"));
	rig_close(&r);
	rig_open(&r, STATIC, "firstfit", false);
	assert_true(shape_takes(&r, "16x16x2"));
	assert_false(shape_takes(&r, "12x2")); /* its ring of 12 cannot close */
	rig_close(&r);
	rig_open(&r, STATIC, "folding", true);
	assert_true(shape_takes(&r, "64"));
	assert_true(shape_takes(&r, "30x16")); /* 15 x 2 around, 16 straight */
	assert_false(shape_takes(&r, "34x16"));
	assert_false(shape_takes(&r, "148")); /* 2 x 2 x 37 fills no box */
	rig_close(&r);
	rig_open(&r, CUBES, "reconfig", false);
	assert_true(shape_takes(&r, "4x8x2"));
	assert_false(shape_takes(&r, "6x4"));
	rig_close(&r);
	rig_open(&r, CUBES, "rfold", false);
	assert_true(shape_takes(&r, "6x4"));
	assert_true(shape_takes(&r, "6x6")); /* 3 x 3 x 4, the axis of four is two bits */
	assert_true(shape_takes(&r, "2x2x6"));
	assert_false(shape_takes(&r, "6x6x6"));
	rig_close(&r);
}

/* 4x8x2 without folding needs two cubes, folded one. */
static void test_rfold_saves(void **unused)
{
	struct ocs_shape shape = shape_of("4x8x2");
	struct ocs_placement *p;
	struct rig r;

	(void)unused;
	rig_open(&r, CUBES, "reconfig", false);
	p = ocs_policy_place(r.policy, r.occupancy, &shape, NULL);
	assert_int_equal(p->ncubes, 2);
	ocs_placement_destroy(p);
	rig_close(&r);
	rig_open(&r, CUBES, "rfold", false);
	p = ocs_policy_place(r.policy, r.occupancy, &shape, NULL);
	assert_int_equal(p->ncubes, 1);
	ocs_placement_destroy(p);
	rig_close(&r);
}

/* An extent of 1 that somebody wrote, as published traces do, is no dimension. */
static void test_written_ones(void **unused)
{
	static const char *const policies[] = { "best",	    "rfold",
						"reconfig", "published-reconfig",
						"folding",  "firstfit" };
	static const char *const shapes[][3] = {
		{ "72", "72x1x1", "1x72x1x1" },
		{ "2", "1x1x2", "2x1" },
		{ "18", "18x1x1", "1x18" },
		{ "4x6", "4x6x1", "4x1x1x6" },
		{ "6x6", "1x6x6", "6x1x6x1" },
		{ "1", "1x1x1", "1x1x1x1x1" },
		{ "4x4x4", "1x4x4x4", "4x4x1x4x1x1" },
		{ "2x2x6", "2x1x2x6", "1x1x1x2x2x6" },
		{ "16x16", "16x1x16", "16x16x1x1" },
	};
	size_t i, k;
	int form;

	(void)unused;
	for (i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
		struct rig r;

		rig_open(&r, i < 4 ? CUBES : STATIC, policies[i], false);
		for (k = 0; k < sizeof(shapes) / sizeof(shapes[0]); k++) {
			int cubes = 0, circuits = 0;

			for (form = 0; form < 3; form++) {
				struct ocs_shape shape = shape_of(shapes[k][form]);
				struct ocs_error err = { 0 };
				struct ocs_placement *p =
					ocs_policy_place(r.policy, r.occupancy, &shape, &err);

				if (!p != !shape_takes(&r, shapes[k][0]))
					fail_msg("%s %s: %s", policies[i], shapes[k][form],
						 err.text);
				if (!p)
					continue;
				if (ocs_policy_verifiable(r.policy))
					assert_int_equal(ocs_placement_verify(r.fabric, r.occupancy,
									      p, &err),
							 0);
				if (!form) {
					cubes = p->ncubes;
					circuits = p->ncircuits;
				}
				assert_int_equal(p->ncubes, cubes);
				assert_int_equal(p->ncircuits, circuits);
				assert_int_equal(p->shape.ndim, shape.ndim);
				ocs_placement_destroy(p);
			}
		}
		rig_close(&r);
	}
	/* without rotation a dimension keeps its axis */
	for (form = 0; form < 2; form++) {
		struct ocs_shape shape = shape_of(form ? "1x1x4x1" : "1x1x1x4");
		struct rig r;

		rig_open(&r, "torus cubes:1x1x1 cube:4x4x4 tile:1x1x1", "reconfig", false);
		shape.no_rotate = true;
		assert_int_equal(ocs_policy_possible(r.policy, &shape), form);
		rig_close(&r);
	}
}

/* A policy that may keep little answers as one that may keep all. */
static void test_little_memory(void **unused)
{
	static const char *const policies[] = { "best", "best-effort", "scratch" };
	struct ocs_shape shape = shape_of("2");
	struct rig little, much;
	size_t i;
	int n;

	(void)unused;
	for (i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
		rig_open(&little, CUBES, policies[i], true);
		rig_open(&much, CUBES, policies[i], true);
		ocs_policy_bytes_set(little.policy, 1);
		for (n = 0; n < 200; n++) {
			struct ocs_placement *p, *q;

			shape.ndim = 1 + random_below(3);
			shape.extent[0] = 2 * (1 + random_below(6));
			shape.extent[1] = 2 * (1 + random_below(4));
			shape.extent[2] = 2 * (1 + random_below(4));
			shape.xpus = (long)shape.extent[0] *
				     (shape.ndim > 1 ? shape.extent[1] : 1) *
				     (shape.ndim > 2 ? shape.extent[2] : 1);
			p = ocs_policy_place(little.policy, little.occupancy, &shape, NULL);
			q = ocs_policy_place(much.policy, much.occupancy, &shape, NULL);
			assert_int_equal(!p, !q);
			ocs_routes_destroy(ocs_policy_routes_take(little.policy));
			ocs_routes_destroy(ocs_policy_routes_take(much.policy));
			if (!p) {
				if (random_below(4))
					continue;
				ocs_occupancy_reset(little.occupancy);
				ocs_occupancy_reset(much.occupancy);
				continue;
			}
			assert_memory_equal(p->xpus, q->xpus,
					    (size_t)p->shape.xpus * sizeof(p->xpus[0]));
			for (int j = 0; j < p->nnodes; j++) {
				ocs_occupancy_node_set(little.occupancy, little.fabric, p->nodes[j],
						       false);
				ocs_occupancy_node_set(much.occupancy, much.fabric, q->nodes[j],
						       false);
			}
			ocs_placement_destroy(p);
			ocs_placement_destroy(q);
		}
		rig_close(&little);
		rig_close(&much);
	}
}

/* Best, lenient: lines only where rings cannot be, and as few as possible. */
static void test_best_lenient(void **unused)
{
	struct ocs_shape closes = shape_of("6x6"), opens = shape_of("6x6x2");
	struct ocs_placement *p;
	struct rig r;

	(void)unused;
	rig_open(&r, CUBES, "best", true);
	p = ocs_policy_place(r.policy, r.occupancy, &closes, NULL);
	assert_non_null(p);
	assert_false(p->shape.mesh[0] || p->shape.mesh[1]);
	ocs_placement_destroy(p);
	p = ocs_policy_place(r.policy, r.occupancy, &opens, NULL);
	assert_non_null(p);
	assert_int_equal(p->shape.mesh[0] + p->shape.mesh[1] + p->shape.mesh[2], 1);
	ocs_placement_destroy(p);
	rig_close(&r);
}

/* What the published program takes is seen to be none by the judge. */
static void test_published(void **unused)
{
	struct ocs_shape shape = shape_of("4x4x6");
	struct ocs_placement *p;
	int at[OCS_AXES] = { 0, 0, 0 }, cube;
	struct rig r;

	(void)unused;
	rig_open(&r, "torus cubes:2x1x1 cube:4x4x4 tile:1x1x1", "published-reconfig", true);
	assert_false(ocs_policy_verifiable(r.policy));
	p = ocs_policy_place(r.policy, r.occupancy, &shape, NULL);
	assert_non_null(p);
	assert_int_equal(p->nnodes, 96);
	ocs_placement_destroy(p);
	for (cube = 0; cube < 2; cube++)
		ocs_occupancy_node_set(r.occupancy, r.fabric,
				       ocs_section_node_at(r.section, cube, at), false);
	assert_null(ocs_policy_place(r.policy, r.occupancy, &shape, NULL));
	/* 96 XPUs, but a piece in each of three cubes: never, rather than the end of the queue */
	assert_true(shape_takes(&r, "4x8x3"));
	assert_false(shape_takes(&r, "2x4x12"));
	assert_false(shape_takes(&r, "2x2x2x12"));
	rig_close(&r);
	rig_open(&r, "torus cubes:2x1x1 cube:4x4x4 tile:1x1x1", "unconstrained", true);
	for (cube = 0; cube < 2; cube++)
		ocs_occupancy_node_set(r.occupancy, r.fabric,
				       ocs_section_node_at(r.section, cube, at), false);
	p = ocs_policy_place(r.policy, r.occupancy, &shape, NULL);
	assert_non_null(p);
	ocs_placement_destroy(p);
	rig_close(&r);
}

/* Two halves of cubes that lie in the way are brought together. */
static void test_scratch(void **unused)
{
	struct ocs_shape line = shape_of("2x4"), cube = shape_of("4x4x4"), rest;
	struct ocs_placement *p[16], *all;
	struct ocs_error err = { 0 };
	struct rig r;
	int i, k;

	(void)unused;
	rig_open(&r, "torus cubes:2x1x1 cube:4x4x4 tile:1x1x1", "scratch", true);
	assert_false(ocs_policy_verifiable(r.policy));
	for (i = 0; i < 16; i++) {
		p[i] = ocs_policy_place(r.policy, r.occupancy, &line, &err);
		assert_non_null(p[i]);
		for (k = 0; k < p[i]->nnodes; k++)
			ocs_occupancy_node_set(r.occupancy, r.fabric, p[i]->nodes[k], false);
	}
	assert_null(ocs_policy_place(r.policy, r.occupancy, &line, &err));
	assert_int_equal(err.code, OCS_NOT_NOW);
	/* each cube keeps four jobs */
	for (i = 0; i < 16; i += 2)
		for (k = 0; k < p[i]->nnodes; k++)
			ocs_occupancy_node_set(r.occupancy, r.fabric, p[i]->nodes[k], true);
	all = ocs_policy_place(r.policy, r.occupancy, &cube, &err);
	assert_non_null(all);
	assert_int_equal(all->nnodes, 64);
	for (k = 0; k < all->nnodes; k++)
		ocs_occupancy_node_set(r.occupancy, r.fabric, all->nodes[k], false);
	ocs_placement_destroy(all);
	rest = shape_of("2");
	assert_null(ocs_policy_place(r.policy, r.occupancy, &rest, &err));
	for (i = 0; i < 16; i++)
		ocs_placement_destroy(p[i]);
	rig_close(&r);
}

static void test_refused(void **unused)
{
	static const struct {
		const char *fabric, *policy, *says;
	} wrong[] = {
		{ CUBES, "firstfit", "static" },
		{ CUBES, "folding", "static" },
		{ STATIC, "rfold", "cubes" },
		{ STATIC, "reconfig", "cubes" },
		{ CUBES, "worst", "no policy 'worst'" },
		{ "direct servers:12 degree:4", "best", "servers" },
	};
	size_t i;

	(void)unused;
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct ocs_fabric *fabric =
			ocs_config_take_fabric(ocs_config_open(wrong[i].fabric, NULL));
		struct ocs_error err = { 0 };

		assert_null(ocs_policy_create(fabric, &fabric->sections[0], wrong[i].policy, false,
					      &err));
		assert_int_equal(err.code, OCS_USAGE);
		assert_non_null(strstr(err.text, wrong[i].says));
		ocs_fabric_destroy(fabric);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_verified),      cmocka_unit_test(test_rules),
		cmocka_unit_test(test_rfold_saves),   cmocka_unit_test(test_written_ones),
		cmocka_unit_test(test_little_memory), cmocka_unit_test(test_best_lenient),
		cmocka_unit_test(test_published),     cmocka_unit_test(test_scratch),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests_name("policy", tests, NULL, NULL);
}
