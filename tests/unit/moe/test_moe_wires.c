/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* NICs for circuits: none twice, parallel circuits spread over NUMA nodes, what is kept stays. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/moe/allocate.h"
#include "src/moe/wires.h"
#include "src/util/error.h"
#include "tests/unit/moe/gates.h"

#define PORTS 6
#define WIRES 512

static struct ocs_moe_circuits *circuits_make(int n, int seed)
{
	struct ocs_moe_demand *demand = gate_demand(seed % GATES, n, seed);
	struct ocs_moe_region *region = ocs_moe_region_create(n, PORTS, 2);
	struct ocs_moe_circuits *circuits = ocs_moe_allocate(&(struct ocs_moe_request){
		.demand = demand, .region = region, .policy = OCS_MOE_BEST });

	ocs_moe_region_destroy(region);
	ocs_moe_demand_destroy(demand);
	return circuits;
}

/* NIC p of PORTS lies on NUMA node p / (PORTS / NODES). */
static struct ocs_moe_numa numa_make(int n, int nodes)
{
	struct ocs_moe_numa numa = { .ports = PORTS, .node = calloc(n * PORTS, sizeof(int)) };

	for (int k = 0; k < n * PORTS; k++)
		numa.node[k] = k % PORTS / (PORTS / nodes);
	return numa;
}

/* Every circuit has a wire, no NIC has two. */
static void wires_check(const struct ocs_moe_circuits *circuits, const struct ocs_moe_wire *wires,
			int count)
{
	int *left = malloc(circuits->n * circuits->n * sizeof(int));
	char *used = calloc(circuits->n, PORTS);

	memcpy(left, circuits->count, circuits->n * circuits->n * sizeof(int));
	for (int k = 0; k < count; k++) {
		assert_true(wires[k].a < wires[k].b);
		assert_true(wires[k].a_port >= 0 && wires[k].a_port < PORTS);
		assert_true(wires[k].b_port >= 0 && wires[k].b_port < PORTS);
		assert_false(used[wires[k].a * PORTS + wires[k].a_port]++);
		assert_false(used[wires[k].b * PORTS + wires[k].b_port]++);
		left[wires[k].a * circuits->n + wires[k].b]--;
	}
	for (int i = 0; i < circuits->n; i++)
		for (int j = i + 1; j < circuits->n; j++)
			assert_int_equal(left[i * circuits->n + j], 0);
	free(left);
	free(used);
}

/* How unevenly the circuits of a pair lie on the NUMA nodes of A: most less fewest. */
static int pair_spread(const struct ocs_moe_numa *numa, int nodes, const struct ocs_moe_wire *wires,
		       int count, int a, int b)
{
	int on[PORTS] = { 0 }, most = 0, fewest = PORTS;

	for (int k = 0; k < count; k++) {
		if (wires[k].a == a && wires[k].b == b)
			on[numa->node[a * numa->ports + wires[k].a_port]]++;
		if (wires[k].b == a && wires[k].a == b)
			on[numa->node[a * numa->ports + wires[k].b_port]]++;
	}
	for (int node = 0; node < nodes; node++) {
		most = on[node] > most ? on[node] : most;
		fewest = on[node] < fewest ? on[node] : fewest;
	}
	return most - fewest;
}

static void parallel_circuits_use_all_numa_nodes(void **state)
{
	static struct ocs_moe_wire wires[WIRES];
	struct ocs_error err;

	(void)state;
	for (int seed = 0; seed < 200; seed++) {
		int n = 2 + seed % 12;
		struct ocs_moe_circuits *circuits = circuits_make(n, seed);
		struct ocs_moe_numa numa = numa_make(n, 2);
		int count = ocs_moe_wires_make(circuits, &numa, NULL, 0, wires, &err);

		wires_check(circuits, wires, count);
		for (int a = 0; a < n; a++)
			for (int b = 0; b < n; b++)
				assert_true(pair_spread(&numa, 2, wires, count, a, b) <= 1);
		free(numa.node);
		ocs_moe_circuits_destroy(circuits);
	}
}

static void kept_wires_stay(void **state)
{
	static struct ocs_moe_wire before[WIRES], after[WIRES];
	struct ocs_error err;

	(void)state;
	for (int seed = 0; seed < 100; seed++) {
		int n = 4 + seed % 8, nbefore, nafter, stayed = 0, common = 0;
		struct ocs_moe_circuits *first = circuits_make(n, seed);
		struct ocs_moe_circuits *second = circuits_make(n, seed + 3);
		struct ocs_moe_numa numa = numa_make(n, seed % 2 ? 2 : 3);

		nbefore = ocs_moe_wires_make(first, &numa, NULL, 0, before, &err);
		nafter = ocs_moe_wires_make(second, &numa, before, nbefore, after, &err);
		wires_check(second, after, nafter);
		for (int k = 0; k < nafter; k++)
			for (int b = 0; b < nbefore; b++)
				stayed += !memcmp(&after[k], &before[b], sizeof(*after));
		for (int i = 0; i < n; i++)
			for (int j = i + 1; j < n; j++)
				common += first->count[i * n + j] < second->count[i * n + j] ?
						  first->count[i * n + j] :
						  second->count[i * n + j];
		assert_int_equal(stayed, common);
		free(numa.node);
		ocs_moe_circuits_destroy(first);
		ocs_moe_circuits_destroy(second);
	}
}

static void refusals_name_the_server(void **state)
{
	struct ocs_moe_circuits *circuits = ocs_moe_circuits_create(3);
	struct ocs_moe_numa numa = numa_make(3, 2);
	struct ocs_moe_wire keep[2] = { { 0, 1, 1, 1 }, { 0, 1, 1, 2 } }, wires[WIRES];
	struct ocs_error err;

	(void)state;
	ocs_moe_circuits_add(circuits, 0, 1, 4);
	numa.node[0] = numa.node[3] = numa.node[4] = -1;
	assert_int_equal(ocs_moe_wires_make(circuits, &numa, NULL, 0, wires, &err), -1);
	assert_string_equal(err.text, "server 0 has 4 circuits and fewer optical NICs");
	assert_int_equal(ocs_moe_wires_make(circuits, &numa, keep, 2, wires, &err), -1);
	assert_string_equal(err.text, "two circuits are kept on NIC 1 of server 0");
	keep[0].a_port = 3;
	assert_int_equal(ocs_moe_wires_make(circuits, &numa, keep, 1, wires, &err), -1);
	assert_string_equal(err.text, "a circuit is kept on NIC 3 of server 0, which is not there");
	free(numa.node);
	ocs_moe_circuits_destroy(circuits);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parallel_circuits_use_all_numa_nodes),
		cmocka_unit_test(kept_wires_stay),
		cmocka_unit_test(refusals_name_the_server),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
