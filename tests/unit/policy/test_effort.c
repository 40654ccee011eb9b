/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Best effort: placements whose edges share links, and their judge. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/place/place_random.h"
#include "src/config/config.h"
#include "src/policy/policy.h"
#include "src/util/error.h"

struct rig {
	struct ocs_fabric *fabric;
	const struct ocs_section *section;
	struct ocs_policy *policy;
	struct ocs_occupancy *occupancy;
};

static void rig_open(struct rig *r, const char *fabric, int load)
{
	r->fabric = ocs_config_take_fabric(ocs_config_open(fabric, NULL));
	assert_non_null(r->fabric);
	r->section = &r->fabric->sections[0];
	r->policy = ocs_policy_create(r->fabric, r->section, "best-effort", false, NULL);
	assert_non_null(r->policy);
	ocs_policy_load_set(r->policy, load);
	r->occupancy = ocs_occupancy_create(r->section);
}

static void rig_close(struct rig *r)
{
	ocs_occupancy_destroy(r->occupancy);
	ocs_policy_destroy(r->policy);
	ocs_fabric_destroy(r->fabric);
}

static struct ocs_shape shape_of(const char *text, const char *conn)
{
	struct ocs_shape shape;

	assert_int_equal(ocs_shape_parse(text, conn, &shape, NULL), 0);
	return shape;
}

/* Leaves just the XPUs of LIST ("cube x y z" in digits) free. */
static void xpus_leave(struct rig *r, const char *const *list)
{
	ocs_occupancy_fill(r->occupancy);
	for (; *list; list++) {
		const char *t = *list;
		int at[OCS_AXES] = { t[1] - '0', t[2] - '0', t[3] - '0' };

		ocs_occupancy_node_set(r->occupancy, r->fabric,
				       ocs_section_node_at(r->section, t[0] - '0', at), true);
	}
}

#define LINE "torus cubes:2x1x1 cube:4x4x4 tile:1x1x1"

/* Four XPUs in a line, not on a face: the ring goes back the way it came. */
static void test_line(void **unused)
{
	static const char *const list[] = { "0111", "0121", "0211", "0221", "0212", "0112", NULL };
	static const char *const line[] = { "0110", "0111", "0112", "0113", NULL };
	struct ocs_shape ring = shape_of("4", NULL), six = shape_of("5", NULL);
	struct ocs_placement *p;
	struct ocs_routes *routes;
	struct ocs_error err = { 0 };
	struct rig r;

	(void)unused;
	rig_open(&r, LINE, 2);
	xpus_leave(&r, line);
	p = ocs_policy_place(r.policy, r.occupancy, &ring, &err);
	assert_non_null(p); /* closed by a circuit */
	assert_null(ocs_policy_routes_take(r.policy));
	ocs_placement_destroy(p);
	/* the port is gone: no ring of its own any more */
	ocs_occupancy_blocked(r.occupancy, 0, 2, OCS_PLUS);
	((uint64_t *)(uintptr_t)ocs_occupancy_blocked(r.occupancy, 0, 2, OCS_PLUS))[0] = ~0ULL;
	r.occupancy->any_blocked = true;
	p = ocs_policy_place(r.policy, r.occupancy, &ring, &err);
	assert_non_null(p);
	routes = ocs_policy_routes_take(r.policy);
	assert_non_null(routes);
	assert_int_equal(routes->load, 2);
	assert_int_equal(routes->nroutes, 4);
	assert_int_equal(routes->nhops, 6);
	assert_int_equal(p->ncircuits, 0);
	assert_int_equal(ocs_routes_verify(r.fabric, r.occupancy, p, routes, &err), 0);
	assert_int_not_equal(ocs_placement_verify(r.fabric, r.occupancy, p, &err), 0);
	ocs_routes_destroy(routes);
	ocs_placement_destroy(p);
	/* an odd ring on a bipartite machine */
	ocs_occupancy_reset(r.occupancy);
	xpus_leave(&r, list);
	p = ocs_policy_place(r.policy, r.occupancy, &six, &err);
	assert_non_null(p);
	routes = ocs_policy_routes_take(r.policy);
	assert_non_null(routes);
	assert_int_equal(ocs_routes_verify(r.fabric, r.occupancy, p, routes, &err), 0);
	ocs_routes_destroy(routes);
	ocs_placement_destroy(p);
	rig_close(&r);
}

/* Two pieces that nothing joins take no job; pieces at matching faces do. */
static void test_apart(void **unused)
{
	static const char *const apart[] = { "0111", "0112", "1111", "1112", NULL };
	static const char *const match[] = { "0311", "0310", "0210", "1011", "1012", "1022", NULL };
	struct ocs_shape four = shape_of("4", NULL), six = shape_of("6", NULL);
	struct ocs_placement *p;
	struct ocs_routes *routes;
	struct ocs_error err = { 0 };
	struct rig r;

	(void)unused;
	rig_open(&r, LINE, 4);
	xpus_leave(&r, apart);
	assert_null(ocs_policy_place(r.policy, r.occupancy, &four, &err));
	assert_int_equal(err.code, OCS_NOT_NOW);
	xpus_leave(&r, match);
	p = ocs_policy_place(r.policy, r.occupancy, &six, &err);
	assert_non_null(p);
	routes = ocs_policy_routes_take(r.policy);
	assert_non_null(routes);
	assert_int_equal(p->ncircuits, 1);
	assert_int_equal(routes->load, 2);
	assert_int_equal(ocs_routes_verify(r.fabric, r.occupancy, p, routes, &err), 0);
	ocs_routes_destroy(routes);
	ocs_placement_destroy(p);
	/* with a load of one it is what best does */
	ocs_policy_load_set(r.policy, 1);
	assert_null(ocs_policy_place(r.policy, r.occupancy, &six, &err));
	rig_close(&r);
}

static void assert_broken(struct rig *r, const struct ocs_placement *p,
			  const struct ocs_routes *routes, const char *says)
{
	struct ocs_error err = { 0 };

	assert_int_equal(ocs_routes_verify(r->fabric, r->occupancy, p, routes, &err), -1);
	if (!strstr(err.text, says))
		fail_msg("'%s' is not about '%s'", err.text, says);
}

/* The judge sees what is wrong. */
static void test_judge(void **unused)
{
	static const char *const match[] = { "0311", "0310", "0210", "1011",
					     "1012", "1022", "0000", NULL };
	struct ocs_shape six = shape_of("6", NULL);
	struct ocs_placement *p;
	struct ocs_routes *routes;
	struct ocs_xpu x;
	struct ocs_hop h;
	struct rig r;
	int i;

	(void)unused;
	rig_open(&r, LINE, 4);
	xpus_leave(&r, match);
	p = ocs_policy_place(r.policy, r.occupancy, &six, NULL);
	assert_non_null(p);
	routes = ocs_policy_routes_take(r.policy);
	routes->load = 1;
	assert_broken(&r, p, routes, "carries 2 edges, not 1");
	routes->load = 2;
	routes->nroutes--;
	assert_broken(&r, p, routes, "has no route");
	routes->nroutes++;
	h = routes->hops[0];
	routes->hops[0].dir ^= 1;
	assert_broken(&r, p, routes, "");
	routes->hops[0] = h;
	routes->routes[1].to = 0;
	assert_broken(&r, p, routes, "has no route");
	routes->routes[1].to = 2;
	x = p->xpus[0];
	p->xpus[0] = p->xpus[1];
	assert_broken(&r, p, routes, "used twice");
	p->xpus[0] = (struct ocs_xpu){ 1, { 3, 3, 3 } };
	assert_broken(&r, p, routes, "not free");
	p->xpus[0] = x;
	p->circuits = realloc(p->circuits, 2 * sizeof(*p->circuits));
	p->circuits[1] = (struct ocs_circuit){ 0, { 1, 1 }, 0, 1 };
	p->ncircuits = 2;
	assert_broken(&r, p, routes, "used twice");
	p->circuits[1] = (struct ocs_circuit){ 1, { 0, 0 }, 0, 0 };
	assert_broken(&r, p, routes, "not the job's");
	p->ncircuits = 0;
	assert_broken(&r, p, routes, "no link of the job");
	p->ncircuits = 1;
	i = p->nodes[0];
	p->nodes[0] = i + 1;
	assert_broken(&r, p, routes, "lists");
	p->nodes[0] = i;
	assert_int_equal(ocs_routes_verify(r.fabric, r.occupancy, p, routes, NULL), 0);
	ocs_routes_destroy(routes);
	ocs_placement_destroy(p);
	rig_close(&r);
}

/* Random machines and shapes: what is handed out is what it says, within the limit, and
 * takes nothing that best would take with links of its own. */
static void test_random(void **unused)
{
	static const char *const fabrics[] = {
		"torus cubes:4x2x1 cube:4x4x4 tile:1x1x1",
		"torus cubes:2x2x2 cube:4x4x4 tile:2x2x1",
		"torus cubes:4x4x2 cube:2x2x2 tile:1x1x1",
		"torus cubes:2x1x1 cube:8x8x8 tile:2x2x1",
		"static:8x8x8 tile:1x1x1",
		"static:6x5x2 tile:1x1x1",
	};
	size_t f;
	int shared = 0, own = 0, n;

	(void)unused;
	for (f = 0; f < sizeof(fabrics) / sizeof(fabrics[0]); f++) {
		struct ocs_policy *best;
		struct rig r;

		rig_open(&r, fabrics[f], 1 + (int)f);
		best = ocs_policy_create(r.fabric, r.section, "best", false, NULL);
		for (n = 0; n < 500; n++) {
			struct ocs_error err = { 0 };
			struct ocs_placement *p, *q;
			struct ocs_routes *routes;
			struct ocs_shape shape;

			random_shape(&shape, 3, 10);
			random_occupancy(r.occupancy, r.fabric);
			p = ocs_policy_place(r.policy, r.occupancy, &shape, &err);
			routes = ocs_policy_routes_take(r.policy);
			q = ocs_policy_place(best, r.occupancy, &shape, NULL);
			assert_true(!q == !(p && !routes));
			if (p && routes) {
				assert_in_range(routes->load, 1, 1 + (int)f);
				if (ocs_routes_verify(r.fabric, r.occupancy, p, routes, &err))
					fail_msg("%s: %s", fabrics[f], err.text);
				shared++;
			} else if (p) {
				assert_int_equal(
					ocs_placement_verify(r.fabric, r.occupancy, p, &err), 0);
				own++;
			} else if (err.code == OCS_NOT_NOW) {
				ocs_occupancy_reset(r.occupancy);
				p = ocs_policy_place(r.policy, r.occupancy, &shape, &err);
				assert_non_null(p);
			}
			ocs_routes_destroy(routes);
			ocs_placement_destroy(p);
			ocs_placement_destroy(q);
		}
		ocs_policy_destroy(best);
		rig_close(&r);
	}
	assert_in_range(shared, 100, 10000);
	assert_in_range(own, 100, 10000);
}

static void test_slowdown(void **unused)
{
	(void)unused;
	assert_true(ocs_routes_slowdown(0, 1) == 1);
	assert_true(ocs_routes_slowdown(1, 1) == 1);
	assert_true(ocs_routes_slowdown(3, .5) == 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_line),	 cmocka_unit_test(test_apart),
		cmocka_unit_test(test_judge),	 cmocka_unit_test(test_random),
		cmocka_unit_test(test_slowdown),
	};

	return cmocka_run_group_tests_name("effort", tests, NULL, NULL);
}
