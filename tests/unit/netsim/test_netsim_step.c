/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Random steps on every kind of fabric, watched at each event: no link has carried more than its
 * rate allows, shares are fair, and each server has sent and received exactly the bytes that the
 * step says, whatever ways they took. */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/netsim/step.h"
#include "src/util/error.h"
#include "src/util/text.h"

#define SERVERS 8
#define SEEDS 12
#define LINKS_MAX 4096

/* All kinds, with each word that changes how bytes go. */
static const char *const fabrics[] = {
	"ideal",
	"fat-tree leaf:4",
	"oversubscribed leaf:2 oversub:4",
	"rail degree:3",
	"expander degree:3",
	"expander degree:3 paths:1",
	"topoopt degree:4",
	"topoopt degree:3 strategy:best",
	"ocs-reconfig degree:2 interval:2ms pause:1ms",
	"ocs-reconfig degree:2 interval:1ms pause:1us forward:no",
	"ocs-reconfig degree:2 interval:2ms pause:1ms estimate:clock",
	"sip-ml degree:2 interval:1ms",
	"opus shape:2x4 change:1ms frontend:10G",
	"opus shape:2x4 change:1ms phases:provisioned frontend:10G",
	"opus shape:2x4 phases:off frontend:10G",
	"region degree:4 optical:3 region:4 change:1ms",
	"region degree:4 optical:2 region:4 change:1ms relays:no when:always",
	"region degree:3 optical:2 region:4 policy:paper when:ahead change:1ms",
	"torus cube:2 shape:2x2x2",
	"torus cube:2 servers:64 links:shared",
};

struct watched {
	const char *name;
	double time, rate[LINKS_MAX], carried[LINKS_MAX];
	int links;
	long events;
};

static void event_watch(void *context, struct ocs_flownet *net)
{
	struct watched *seen = context;
	double now = ocs_flownet_now(net);
	struct ocs_error err = { 0 };

	if (ocs_flownet_check(net, true, &err))
		fail_msg("%s at %g ms: %s", seen->name, now, err.text);
	if (now < seen->time) /* rails run twice: what is provisioned was seen on demand */
		memset(seen->carried, 0, sizeof(seen->carried));
	for (int k = 0; k < ocs_flownet_links(net); k++) {
		double carried = ocs_flownet_link_carried(net, k);
		double most = now < seen->time ? 0 : seen->rate[k] * (now - seen->time);

		if (carried - seen->carried[k] > most + 1e-9 * (carried + 1) ||
		    carried < seen->carried[k] * (1 - 1e-9))
			fail_msg("%s, %g to %g ms: link %d carried %g of at most %g", seen->name,
				 seen->time, now, k, carried - seen->carried[k], most);
		seen->carried[k] = carried;
		seen->rate[k] = ocs_flownet_link_rate(net, k);
	}
	seen->links = ocs_flownet_links(net);
	seen->time = now;
	seen->events++;
}

/* What server s sends and does not receive again: BALANCE[s] grows by it. */
static void moved(double *balance, int from, int to, double bytes)
{
	balance[from] += bytes;
	balance[to] -= bytes;
}

/* A step of tasks of each kind; members of groups send as much as they receive in all collectives
 * but all-to-alls with a matrix. */
static struct ocs_netsim_graph *graph_draw(unsigned seed, double *balance)
{
	static const enum ocs_netsim_kind kinds[] = { OCS_NETSIM_ALLREDUCE, OCS_NETSIM_ALLGATHER,
						      OCS_NETSIM_REDUCE_SCATTER };
	struct ocs_netsim_graph *graph = ocs_netsim_graph_create(SERVERS, 1);
	int groups[2] = { ocs_netsim_group_add(graph, (int[]){ 0, 1, 2, 3 }, 4),
			  ocs_netsim_group_add(graph, (int[]){ 4, 5, 6, 7 }, 4) };

	srand(seed);
	for (int k = 0; k < 24; k++) {
		int half = rand() % 2, task;
		double bytes = 1e6 * (1 + rand() % 100);

		if (k % 4 == 0) {
			double matrix[16];

			for (int i = 0; i < 16; i++) {
				matrix[i] = rand() % 3 ? 1e6 * (rand() % 50) : 0;
				if (i / 4 != i % 4)
					moved(balance, 4 * half + i / 4, 4 * half + i % 4,
					      matrix[i]);
			}
			task = ocs_netsim_alltoall_add(graph, groups[half], matrix);
		} else if (k % 4 == 1) {
			int src = rand() % SERVERS,
			    dst = (src + 1 + rand() % (SERVERS - 1)) % SERVERS;

			moved(balance, src, dst, bytes);
			task = ocs_netsim_transfer_add(graph, src, dst, bytes);
		} else if (k % 4 == 2) {
			task = ocs_netsim_compute_add(graph, rand() % SERVERS, 0, rand() % 4);
		} else {
			task = ocs_netsim_collective_add(graph, kinds[rand() % 3], groups[half],
							 bytes);
		}
		for (int before = rand() % 4 ? rand() % (k + 1) : k; before < k; before += 7)
			ocs_netsim_depend(graph, before, task);
	}
	return graph;
}

/* Out of each vertex less into it, over all links. */
static void balance_check(const char *name, const struct ocs_netsim_fabric *fabric,
			  const struct ocs_netsim_result *result, const double *balance)
{
	double *out = ocs_calloc((size_t)fabric->vertices, sizeof(*out)), all = 1;

	for (int k = 0; k < fabric->nlinks; k++) {
		moved(out, fabric->links[k].from, fabric->links[k].to, result->carried[k]);
		all += result->carried[k];
	}
	for (int s = 0; s < SERVERS; s++)
		out[s] -= balance[s];
	for (int v = 0; v < fabric->vertices; v++) {
		if (fabs(out[v]) > 1e-9 * all)
			fail_msg("%s: %g bytes too many leave vertex %d", name, out[v], v);
	}
	free(out);
}

static void step_watch(const char *line, unsigned seed, enum ocs_netsim_algorithm algorithm)
{
	static struct watched seen;
	double balance[SERVERS] = { 0 };
	struct ocs_netsim_graph *graph = graph_draw(seed, balance);
	struct ocs_netsim_spec spec;
	struct ocs_error err = { 0 };
	struct ocs_netsim_job job = { .graph = graph, .steps = 1 };
	struct ocs_netsim_fabric *fabric;
	struct ocs_netsim_result *result;
	int *places[] = { NULL };

	memset(&seen, 0, sizeof(seen));
	seen.name = line;
	if (ocs_netsim_spec_parse(line, &spec, &err))
		fail_msg("%s: %s", line, err.text);
	fabric = ocs_netsim_fabric_create(&spec, (const struct ocs_netsim_graph *const[]){ graph },
					  places, 1, seed, &err);
	if (!fabric)
		fail_msg("%s: %s", line, err.text);
	assert_true(fabric->nlinks <= LINKS_MAX);
	result = ocs_netsim_run(&(struct ocs_netsim_request){ .fabric = fabric,
							      .jobs = &job,
							      .njobs = 1,
							      .algorithm = algorithm,
							      .watch = event_watch,
							      .context = &seen },
				&err);
	if (!result)
		fail_msg("%s, seed %u: %s", line, seed, err.text);
	assert_true(seen.events > 8);
	balance_check(line, fabric, result, balance);
	ocs_netsim_result_destroy(result);
	ocs_netsim_fabric_destroy(fabric);
	ocs_netsim_spec_free(&spec);
	ocs_netsim_graph_destroy(graph);
}

static void test_every_fabric(void **state)
{
	bool tried[OCS_NETSIM_FABRICS] = { false };

	(void)state;
	for (size_t i = 0; i < sizeof(fabrics) / sizeof(fabrics[0]); i++) {
		struct ocs_netsim_spec spec;
		struct ocs_error err;

		for (unsigned seed = 1; seed <= SEEDS; seed++)
			step_watch(fabrics[i], seed, seed % OCS_NETSIM_ALGORITHMS);
		assert_int_equal(ocs_netsim_spec_parse(fabrics[i], &spec, &err), 0);
		tried[spec.kind] = true;
		ocs_netsim_spec_free(&spec);
	}
	for (int kind = 0; kind < OCS_NETSIM_FABRICS; kind++) {
		if (!tried[kind])
			fail_msg("no case has %s", ocs_netsim_fabric_name(kind));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_fabric),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
