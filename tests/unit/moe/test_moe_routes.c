/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Routes and the check of them: what is right passes, every single lie is named. */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "src/moe/allocate.h"
#include "src/moe/bound.h"
#include "src/moe/routes.h"
#include "src/util/error.h"
#include "tests/unit/moe/gates.h"

struct fixture {
	struct ocs_moe_demand *demand;
	struct ocs_moe_region *region;
	struct ocs_moe_circuits *circuits;
	struct ocs_moe_routes *routes;
};

static struct fixture fixture_make(enum gate gate, int n, int alpha, int seed, int relay)
{
	struct fixture f = { .demand = gate_demand(gate, n, seed),
			     .region = ocs_moe_region_create(n, alpha, 2) };

	f.circuits = ocs_moe_allocate(&(struct ocs_moe_request){
		.demand = f.demand, .region = f.region, .policy = OCS_MOE_BEST });
	f.routes = relay ? ocs_moe_routes_relay(f.demand, f.region, f.circuits, 0) :
			   ocs_moe_routes_direct(f.demand, f.region, f.circuits);
	return f;
}

static void fixture_free(struct fixture *f)
{
	ocs_moe_demand_destroy(f->demand);
	ocs_moe_region_destroy(f->region);
	ocs_moe_circuits_destroy(f->circuits);
	ocs_moe_routes_destroy(f->routes);
}

static int fixture_verify(const struct fixture *f)
{
	struct ocs_error err;

	return ocs_moe_verify(f->demand, f->region, f->circuits, f->routes, &err);
}

static void routes_are_right(void **state)
{
	(void)state;
	for (int seed = 0; seed < 120; seed++) {
		struct fixture direct =
			fixture_make(seed % GATES, 2 + seed % 17, seed % 8, seed, 0);
		struct fixture relay = fixture_make(seed % GATES, 2 + seed % 17, seed % 8, seed, 1);

		assert_int_equal(fixture_verify(&direct), 0);
		assert_int_equal(fixture_verify(&relay), 0);
		assert_true(direct.routes->relayed == 0);
		assert_true(relay.routes->time <= direct.routes->time);
		assert_true(relay.routes->time >=
			    ocs_moe_bound_ports(relay.demand, relay.region) * (1 - 1e-9));
		assert_true(relay.routes->relayed >= 0 && relay.routes->relayed <= 1);
		fixture_free(&direct);
		fixture_free(&relay);
	}
}

/* What relays are for: 64 servers, a few experts that all want. */
static void relays_come_near_the_bound(void **state)
{
	(void)state;
	for (int gate = 0; gate < GATES; gate++) {
		double sum = 0, bound;
		int cases = 3;

		for (int seed = 0; seed < cases; seed++) {
			struct fixture f = fixture_make(gate, 64, 6, 100 + seed, 1);

			bound = ocs_moe_bound_ports(f.demand, f.region);
			sum += f.routes->time / bound;
			fixture_free(&f);
		}
		assert_true(sum / cases <= 1.15);
	}
}

static void nothing_to_send(void **state)
{
	struct fixture f = { .demand = ocs_moe_demand_create(3),
			     .region = ocs_moe_region_create(3, 2, 1),
			     .circuits = ocs_moe_circuits_create(3) };

	(void)state;
	f.routes = ocs_moe_routes_relay(f.demand, f.region, f.circuits, 0);
	assert_int_equal(f.routes->n, 0);
	assert_true(f.routes->time == 0);
	assert_int_equal(fixture_verify(&f), 0);
	fixture_free(&f);
}

/* Each change of one number is one that verify must see. */
static void every_lie_is_found(void **state)
{
	(void)state;
	for (int seed = 0; seed < 30; seed++) {
		struct fixture f = fixture_make(seed % GATES, 8, 4, seed, 1);
		struct ocs_moe_route *route = f.routes->route;
		int n = 8;

		for (int k = 0; k < f.routes->n; k++) {
			struct ocs_moe_route was = route[k];

			route[k].tokens *= 1.01;
			assert_int_equal(fixture_verify(&f), -1);
			route[k] = was;
			route[k].tokens = NAN;
			assert_int_equal(fixture_verify(&f), -1);
			route[k] = was;
			route[k].to = (was.to + 1) % n;
			assert_int_equal(fixture_verify(&f), -1);
			route[k] = was;
			route[k].from = n;
			assert_int_equal(fixture_verify(&f), -1);
			route[k] = was;
			route[k].relay = was.relay < 0 ? (was.to + 1) % n : was.from;
			assert_int_equal(fixture_verify(&f), -1);
			route[k] = was;
		}
		f.routes->time *= 0.99;
		assert_int_equal(fixture_verify(&f), -1);
		f.routes->time /= 0.99;
		for (int i = 0; i < n; i++) {
			for (int j = 0; j < n; j++) {
				int *count = &f.circuits->count[i * n + j], before = *count;

				*count = i == j ? 1 : before + 1;
				assert_int_equal(fixture_verify(&f), -1);
				*count = before;
			}
			f.region->ports[i] = ocs_moe_circuits_degree(f.circuits, i) - 1;
			assert_int_equal(fixture_verify(&f), -1);
			f.region->ports[i] = 4;
		}
		assert_int_equal(fixture_verify(&f), 0);
		fixture_free(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(routes_are_right),
		cmocka_unit_test(relays_come_near_the_bound),
		cmocka_unit_test(nothing_to_send),
		cmocka_unit_test(every_lie_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
