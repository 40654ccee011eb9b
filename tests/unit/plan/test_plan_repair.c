/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Plans without failed interfaces, and repairs of plans. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "src/plan/plan.h"
#include "src/util/error.h"
#include "tests/unit/plan/plan_check.h"

static uint64_t seed = 7;

static int draw(int below)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (int)((seed >> 33) % (uint64_t)below);
}

static bool uses(const struct ocs_plan *plan, int server, int port)
{
	for (int i = 0; i < plan->ncircuits; i++)
		if ((plan->circuits[i].a == server && plan->circuits[i].a_port == port) ||
		    (plan->circuits[i].b == server && plan->circuits[i].b_port == port))
			return true;
	return false;
}

static bool same(const struct ocs_plan *plan, const struct ocs_plan_circuit *a,
		 const struct ocs_plan_circuit *b)
{
	if (a->a == b->a && a->a_port == b->a_port && a->b == b->b && a->b_port == b->b_port)
		return true;
	return !plan->directed && a->a == b->b && a->a_port == b->b_port && a->b == b->a &&
	       a->b_port == b->a_port;
}

/* Circuits of A that B has not. */
static int missing(const struct ocs_plan *a, const struct ocs_plan *b)
{
	int count = 0;

	for (int i = 0; i < a->ncircuits; i++) {
		bool found = false;

		for (int j = 0; j < b->ncircuits && !found; j++)
			found = same(a, &a->circuits[i], &b->circuits[j]);
		count += !found;
	}
	return count;
}

/* Failed interfaces are left out of new plans; the others are still used. */
static void test_failed(void **state)
{
	(void)state;
	for (int round = 0; round < 120; round++) {
		uint64_t failed[40] = { 0 };
		struct ocs_plan_request request = {
			.servers = 4 + draw(30),
			.degree = 4 + draw(4),
			.best = round % 2,
			.directed = round / 2 % 2,
			.any_port = round / 4 % 2,
			.routes = true,
			.failed = failed,
		};
		int n = request.servers, d = request.degree, count = 1 + draw(3);
		struct ocs_plan *plan;

		for (int i = 0; i < count; i++)
			failed[draw(n)] |= UINT64_C(1) << draw(d);
		plan = plan_make(&request);
		for (int s = 0; s < n; s++)
			for (int p = 0; p < d; p++)
				assert_false(failed[s] >> p & 1 && uses(plan, s, p));
		assert_true(plan->groups[0].nrings >= 1);
		/* an odd server stays alone on every switch */
		if (request.best && plan->ncircuits * 2 < (n - 1) * (d - 1) - 2 * count)
			fail_msg("round %d: %d circuits for %d servers, degree %d: %s", round,
				 plan->ncircuits, n, d, plan->assignment);
		ocs_plan_destroy(plan);
	}
}

/* Two interfaces a server, of which one failed: no ring, and a sentence. */
static void test_hopeless(void **state)
{
	uint64_t failed[8] = { [3] = 1 };
	struct ocs_plan_request request = { .servers = 8, .degree = 2, .failed = failed };
	struct ocs_error err = { 0 };

	(void)state;
	assert_null(ocs_plan_make(&request, &err));
	assert_int_equal(err.code, OCS_NEVER);
	assert_non_null(strstr(err.text, "failed"));
}

/* Where servers miss different interfaces no two switches serve a whole ring; the
 * ring changes switches on the way. */
static void test_mixed(void **state)
{
	uint64_t failed[6] = { 1, 2, 4, 1, 2, 4 };

	(void)state;
	for (int directed = 0; directed < 2; directed++) {
		struct ocs_plan_request request = {
			.servers = 6,
			.degree = 3,
			.failed = failed,
			.directed = directed,
		};
		struct ocs_error err = { 0 };
		struct ocs_plan *plan = ocs_plan_make(&request, &err);

		/* servers 0 and 1 share interface 2 alone, 1 and 2 interface 0 alone, 2
		 * and 3 interface 1 alone: every server uses both of its own */
		assert_non_null(plan);
		assert_int_equal(ocs_plan_verify(plan, &err), 0);
		assert_non_null(strstr(plan->assignment, "change switches on the way"));
		ocs_plan_destroy(plan);
	}
}

/* One failed interface under an expander: the ring's edge borrows, a handful of
 * circuits change, everything is verified. */
static void test_repair_expander(void **state)
{
	(void)state;
	for (int directed = 0; directed < 2; directed++)
		for (int n = 20; n <= 64; n += 22) {
			struct ocs_plan_request request = {
				.servers = n,
				.degree = 4,
				.best = true,
				.routes = true,
				.directed = directed,
			};
			struct ocs_plan *plan = plan_make(&request);

			for (int fault = 0; fault < 12; fault++) {
				struct ocs_plan_fault one = { draw(n), fault % 4 };
				struct ocs_error err = { 0 };
				struct ocs_plan *next = ocs_plan_repair(plan, &one, 1, &err);

				if (!next)
					fail_msg("%s", err.text);
				if (ocs_plan_verify(next, &err) < 0)
					fail_msg("%s", err.text);
				assert_false(uses(next, one.server, one.port));
				assert_int_equal(next->groups[0].nrings, plan->groups[0].nrings);
				assert_non_null(next->routes);
				assert_non_null(strstr(next->assignment, "repaired: "));
				/* duplex: the failed circuit, and two that lend their ends; twice
				 * that where receiver and transmitter fail together */
				assert_in_range(missing(plan, next), 0, directed ? 6 : 3);
				assert_in_range(missing(next, plan), 0, directed ? 6 : 3);
				ocs_plan_destroy(next);
			}
			ocs_plan_destroy(plan);
		}
}

/* Rings on every interface: one is given up, the first stays whole. */
static void test_repair_rings(void **state)
{
	struct ocs_plan_request request = { .servers = 16, .degree = 4, .routes = true };
	struct ocs_plan *plan = plan_make(&request);

	(void)state;
	assert_int_equal(plan->groups[0].nrings, 2);
	for (int port = 0; port < 4; port++) {
		struct ocs_plan_fault one = { 5, port };
		struct ocs_error err = { 0 };
		struct ocs_plan *next = ocs_plan_repair(plan, &one, 1, &err);

		assert_non_null(next);
		if (ocs_plan_verify(next, &err) < 0)
			fail_msg("port %d: %s", port, err.text);
		assert_int_equal(next->groups[0].nrings, 1);
		assert_int_equal(next->groups[0].steps[0], 1);
		assert_non_null(strstr(next->assignment, "1 rings given up"));
		assert_true(missing(plan, next) <= 3);
		ocs_plan_destroy(next);
	}
	ocs_plan_destroy(plan);
}

/* Faults upon faults, until the servers fall apart: never a wrong plan. */
static void test_repair_random(void **state)
{
	int repaired = 0, refused = 0;

	(void)state;
	for (int round = 0; round < 60; round++) {
		struct ocs_plan_request request = {
			.servers = 3 + draw(14),
			.degree = 3 + draw(3),
			.best = round % 2,
			.directed = round / 2 % 2,
			.any_port = round / 4 % 2,
			.routes = round % 3,
		};
		struct ocs_plan *plan = plan_make(&request);
		struct ocs_plan_fault faults[30];

		for (int step = 0; step < 30; step++) {
			struct ocs_error err = { 0 };
			struct ocs_plan *next;

			faults[step].server = draw(request.servers);
			faults[step].port = draw(request.degree);
			next = ocs_plan_repair(plan, faults, step + 1, &err);
			if (!next) {
				assert_int_equal(err.code, OCS_NEVER);
				refused++;
				break;
			}
			if (ocs_plan_verify(next, &err) < 0)
				fail_msg("round %d step %d: %s", round, step, err.text);
			for (int f = 0; f <= step; f++)
				assert_false(uses(next, faults[f].server, faults[f].port));
			repaired++;
			ocs_plan_destroy(plan);
			plan = next;
		}
		ocs_plan_destroy(plan);
	}
	assert_true(repaired > 100);
	assert_true(refused > 10);
}

static void test_bad_fault(void **state)
{
	struct ocs_plan_request request = { .servers = 4, .degree = 4 };
	struct ocs_plan *plan = plan_make(&request);
	struct ocs_plan_fault bad[] = { { -1, 0 }, { 4, 0 }, { 0, -1 }, { 0, 4 } };

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct ocs_error err = { 0 };

		assert_null(ocs_plan_repair(plan, &bad[i], 1, &err));
		assert_int_equal(err.code, OCS_USAGE);
	}
	ocs_plan_destroy(plan);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_failed),	     cmocka_unit_test(test_hopeless),
		cmocka_unit_test(test_mixed),	     cmocka_unit_test(test_repair_expander),
		cmocka_unit_test(test_repair_rings), cmocka_unit_test(test_repair_random),
		cmocka_unit_test(test_bad_fault),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
