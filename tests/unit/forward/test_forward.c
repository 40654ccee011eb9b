/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The generated commands, and where packets go by them. */

#include <json-c/json.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/util/error.h"
#include "src/util/text.h"
#include "tests/unit/forward/forward_machine.h"

static bool is_planned(const struct ocs_plan *plan, const int *path, int count)
{
	for (int i = 0; i < plan->nroutes; i++) {
		const struct ocs_plan_route *route = &plan->routes[i];

		if (route->src != path[0] || route->dst != path[count - 1])
			continue;
		for (int p = 0; p < route->npaths; p++)
			if (route->lengths[p] == count &&
			    !memcmp(route->paths[p], path, count * sizeof(*path)))
				return true;
	}
	return false;
}

/* Every pair: the packet arrives, on the path that was promised, which is one of
 * the plan's unless it was counted as adjusted. */
static void all_pairs(const struct ocs_plan_request *request, bool split,
		      enum ocs_forward_backend backend)
{
	int path[64], promised[64], ports[64], adjusted = 0;
	struct net net;

	net_open(&net, request, split, backend);
	for (int s = 0; s < request->servers; s++)
		for (int t = 0; t < request->servers; t++) {
			int count, want;

			if (s == t)
				continue;
			count = send_packet(&net, s, t, path, 64);
			want = ocs_forward_path(net.forward, s, t, 64, promised, ports);
			if (count < 2 || count != want)
				fail_msg("%d to %d: %d servers instead of %d", s, t, count, want);
			assert_memory_equal(path, promised, count * sizeof(*path));
			adjusted += !is_planned(net.plan, path, count);
		}
	assert_int_equal(adjusted, net.forward->adjusted);
	net_close(&net);
}

static void test_all_pairs(void **state)
{
	static const struct {
		int servers, degree;
		bool directed, best;
	} cases[] = {
		{ 12, 4, false, false }, { 12, 4, true, false }, { 12, 4, false, true },
		{ 12, 8, false, false }, { 2, 4, false, false }, { 13, 6, false, false },
		{ 16, 6, true, true },	 { 32, 4, false, true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (int any = 0; any < 2; any++) {
			struct ocs_plan_request request = {
				.servers = cases[i].servers,
				.degree = cases[i].degree,
				.directed = cases[i].directed,
				.best = cases[i].best,
				.routes = true,
				.any_port = any,
			};

			all_pairs(&request, true, OCS_FORWARD_FLOWER);
			all_pairs(&request, false, OCS_FORWARD_FLOWER);
			all_pairs(&request, true, OCS_FORWARD_ROUTES);
			all_pairs(&request, false, OCS_FORWARD_ROUTES);
		}
}

/* The published figure for 12 hosts at degree 4. */
static void test_counts(void **state)
{
	struct ocs_plan_request request = { .servers = 12, .degree = 4, .routes = true };
	size_t neighbours = 0, filters = 0;
	struct net net;

	(void)state;
	net_open(&net, &request, true, OCS_FORWARD_FLOWER);
	for (int s = 0; s < 12; s++)
		for (size_t i = 0; i < net.machines[s].count; i++) {
			neighbours += net.machines[s].facts[i].kind == NEIGHBOUR;
			filters += net.machines[s].facts[i].kind == FILTER;
		}
	assert_int_equal(neighbours, 132);
	assert_in_range(filters, 60, 240);
	net_close(&net);
}

/* 0 - 1 - 2, from there by 3 or by 4 to 5. */
static const char fork_head[] =
	"{\"servers\":6,\"degree\":3,\"directed\":false,\"any_port\":true,\"assignment\":\"\","
	"\"groups\":[],\"circuits\":[{\"a\":[0,0],\"b\":[1,0],\"ocs\":0},"
	"{\"a\":[1,1],\"b\":[2,0],\"ocs\":0},{\"a\":[2,1],\"b\":[3,0],\"ocs\":0},"
	"{\"a\":[2,2],\"b\":[4,0],\"ocs\":0},{\"a\":[3,1],\"b\":[5,0],\"ocs\":0},"
	"{\"a\":[4,1],\"b\":[5,1],\"ocs\":0}],\"nodes\":[],\"diameter\":4,"
	"\"average_hops\":1.9333333333333333,\"max_link_load\":10,\"routes\":[";

/* The way of FROM to TO in that graph, with VIA (3 or 4) where there is a choice. */
static void fork_path(struct ocs_text *text, int from, int to, int via)
{
	static const int line[] = { 0, 1, 2, 0, 5 };
	int place[] = { 0, 1, 2, 3, 3, 4 }, step = place[from] < place[to] ? 1 : -1;

	ocs_text_add(text, "[%d", from);
	if (place[from] == 3 && place[to] == 3) { /* 3 and 4 meet in 2 */
		ocs_text_add(text, ",2,%d]", to);
		return;
	}
	for (int at = place[from] + step; at != place[to]; at += step)
		ocs_text_add(text, ",%d", at == 3 ? via : line[at]);
	ocs_text_add(text, ",%d]", to);
}

/* Puts the load that its routes make into PLAN. */
static void load_plan(struct ocs_plan *plan)
{
	double load[6][6] = { 0 };

	plan->max_link_load = 0;
	for (int i = 0; i < plan->nroutes; i++)
		for (int p = 0; p < plan->routes[i].npaths; p++)
			for (int at = 0; at + 1 < plan->routes[i].lengths[p]; at++) {
				const int *path = plan->routes[i].paths[p];
				double *link = &load[path[at]][path[at + 1]];

				*link += plan->routes[i].weights[p];
				if (*link > plan->max_link_load)
					plan->max_link_load = *link;
			}
}

/* Routes by 3; those to 5 from 0 by 4 and, with BOTH, from 1 either way. */
static struct ocs_plan *fork_plan(bool both)
{
	struct ocs_text text = { 0 };
	struct ocs_error err = { 0 };
	struct json_object *json;
	struct ocs_plan *plan;

	ocs_text_add(&text, "%s", fork_head);
	for (int s = 0; s < 6; s++)
		for (int t = 0; t < 6; t++) {
			bool two = both && s == 1 && t == 5;

			if (s == t)
				continue;
			ocs_text_add(&text, "%s{\"src\":%d,\"dst\":%d,\"paths\":[",
				     s || t > 1 ? "," : "", s, t);
			fork_path(&text, s, t, s == 0 && t == 5 ? 4 : 3);
			if (two) {
				ocs_text_add(&text, ",");
				fork_path(&text, s, t, 4);
			}
			ocs_text_add(&text, "],\"weights\":[%s]}", two ? "0.6,0.4" : "1");
		}
	ocs_text_add(&text, "]}");
	json = json_tokener_parse(text.data);
	plan = ocs_plan_from_json(json, &err);
	if (!plan)
		fail_msg("%s", err.text);
	json_object_put(json);
	ocs_text_free(&text);
	load_plan(plan);
	return plan;
}

/* What 0 and what 1 send to 5 comes to 2 by the same port; the plan wants them to
 * part there, which no filter can do: the second follows the first. */
static void test_conflict(void **state)
{
	static const int by_four[] = { 1, 2, 4, 5 }, by_three[] = { 2, 3, 5 };

	(void)state;
	for (int both = 0; both < 2; both++) {
		struct ocs_error err = { 0 };
		struct ocs_plan *plan = fork_plan(both);
		struct ocs_forward *forward = ocs_forward_make(plan, NULL, &err);
		int path[8], ports[8];

		if (!forward)
			fail_msg("%s", err.text);
		/* where the plan allows either there is nothing to adjust */
		assert_int_equal(forward->adjusted, both ? 0 : 1);
		assert_int_equal(ocs_forward_path(forward, 0, 5, 8, path, ports), 5);
		assert_int_equal(path[3], 4);
		assert_int_equal(ocs_forward_path(forward, 1, 5, 8, path, ports), 4);
		assert_memory_equal(path, by_four, sizeof(by_four));
		/* 2 itself is a source and goes as planned */
		assert_int_equal(ocs_forward_path(forward, 2, 5, 8, path, ports), 3);
		assert_memory_equal(path, by_three, sizeof(by_three));
		/* nothing comes past 2 by port 1 for 5 */
		assert_int_equal(ocs_forward_out(forward, 2, 1, 5), OCS_FORWARD_NONE);
		ocs_forward_destroy(forward);
		ocs_plan_destroy(plan);
	}
}

/* Without the circuit 2-4 all goes by 3, without both there is no way. */
static void test_failed(void **state)
{
	struct ocs_plan *plan = fork_plan(false);
	struct ocs_error err = { 0 };
	struct ocs_forward *forward;
	bool failed[18] = { false };
	int path[8], ports[8];

	(void)state;
	failed[4 * 3 + 0] = true;
	forward = ocs_forward_make(plan, failed, &err);
	assert_non_null(forward);
	assert_int_equal(ocs_forward_path(forward, 0, 5, 8, path, ports), 5);
	assert_int_equal(path[3], 3);
	assert_int_equal(ocs_forward_path(forward, 1, 4, 8, path, ports), 5);
	ocs_forward_destroy(forward);
	failed[2 * 3 + 1] = true;
	assert_null(ocs_forward_make(plan, failed, &err));
	assert_int_equal(err.code, OCS_NEVER);
	ocs_plan_destroy(plan);
}

static void test_refused(void **state)
{
	struct ocs_plan_request request = { .servers = 4, .degree = 2 };
	struct ocs_error err = { 0 };
	struct ocs_plan *plan = ocs_plan_make(&request, &err);
	static const char *const bad[] = {
		"",
		"[]",
		"{\"hosts\":[]}",
		"{\"hosts\":[{}]}",
		"{\"hosts\":[{\"node\":\"a\",\"address\":\"224.0.0.1\",\"ports\":[]}]}",
		"{\"hosts\":[{\"node\":\"a\",\"address\":\"10.0.0.1\",\"ports\":[]}]}",
		"{\"hosts\":[{\"node\":\"a\",\"address\":\"10.0.0.1; reboot\",\"ports\":[]}]}",
		"{\"hosts\":[{\"node\":\"a\",\"address\":\"10.0.0.1\",\"ports\":"
		"[{\"name\":\"-f\",\"mac\":\"02:00:00:00:00:01\"},"
		"{\"name\":\"b\",\"mac\":\"02:00:00:00:00:02\"}]}]}",
		"{\"hosts\":[{\"node\":\"a\",\"address\":\"10.0.0.1\",\"ports\":"
		"[{\"name\":\"a\",\"mac\":\"03:00:00:00:00:01\"},"
		"{\"name\":\"b\",\"mac\":\"02:00:00:00:00:02\"}]}]}",
	};

	(void)state;
	assert_non_null(plan);
	assert_null(ocs_forward_make(plan, NULL, &err));
	assert_int_equal(err.code, OCS_USAGE);
	assert_non_null(strstr(err.text, "no routes"));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_null(ocs_forward_hosts_parse(bad[i], plan, &err));
		assert_int_equal(err.code, OCS_USAGE);
		assert_int_equal(strncmp(err.text, "hosts: ", 7), 0);
	}
	ocs_plan_destroy(plan);
}

/* Whatever apply makes, remove takes away: by table, preference, device. */
static void test_removal(void **state)
{
	struct ocs_plan_request request = { .servers = 12, .degree = 4, .routes = true };
	struct ocs_forward_commands commands = { 0 };
	struct ocs_text all = { 0 };
	struct net net;

	(void)state;
	net_open(&net, &request, true, OCS_FORWARD_ROUTES);
	ocs_forward_remove_commands(net.hosts, 5, &commands);
	for (size_t i = 0; i < commands.count; i++) {
		assert_true(commands.list[i].may_fail);
		ocs_text_add(&all, "%s;", commands.list[i].text);
	}
	for (size_t i = 0; i < net.machines[5].count; i++) {
		const struct fact *fact = &net.machines[5].facts[i];
		char want[80];

		if (fact->kind == ROUTE)
			snprintf(want, sizeof(want), "route flush table all proto 77;");
		else if (fact->kind == RULE)
			snprintf(want, sizeof(want), "rule flush protocol 77;");
		else if (fact->kind == NEIGHBOUR)
			snprintf(want, sizeof(want),
				 "neigh flush dev %s nud permanent protocol 77;", fact->device);
		else
			snprintf(want, sizeof(want), "addr del %s/32 dev %s;", fact->ip,
				 fact->device);
		if (!strstr(all.data, want))
			fail_msg("nothing removes '%s'", want);
	}
	ocs_text_free(&all);
	ocs_forward_commands_free(&commands);
	net_close(&net);
}

/* A plan that came without routes gets the same ones on every host. */
static void test_routes_made_here(void **state)
{
	struct ocs_plan_request request = { .servers = 24, .degree = 4, .best = true };
	struct ocs_error err = { 0 };
	struct json_object *text[2];

	(void)state;
	for (int host = 0; host < 2; host++) {
		struct ocs_plan *plan = ocs_plan_make(&request, &err);
		struct ocs_forward *forward;

		assert_non_null(plan);
		assert_null(plan->routes);
		assert_int_equal(ocs_plan_route(plan, &err), 0);
		assert_int_equal(ocs_plan_route(plan, &err), 0);
		assert_int_equal(plan->nroutes, 24 * 23);
		if (ocs_plan_verify(plan, &err))
			fail_msg("%s", err.text);
		forward = ocs_forward_make(plan, NULL, &err);
		assert_non_null(forward);
		assert_int_equal(forward->adjusted, 0);
		ocs_forward_destroy(forward);
		text[host] = ocs_plan_to_json(plan);
		ocs_plan_destroy(plan);
	}
	assert_string_equal(json_object_to_json_string(text[0]),
			    json_object_to_json_string(text[1]));
	json_object_put(text[0]);
	json_object_put(text[1]);
}

static int by_undo(const void *a, const void *b)
{
	const struct ocs_forward_command *x = a, *y = b;

	return strcmp(x->undo ? x->undo : "", y->undo ? y->undo : "");
}

/* Everything that is made can be taken away, and what takes it away names it alone. */
static void test_undo(void **state)
{
	struct ocs_plan_request request = { .servers = 12, .degree = 4, .routes = true };

	(void)state;
	for (int backend = OCS_FORWARD_FLOWER; backend <= OCS_FORWARD_ROUTES; backend++) {
		struct ocs_forward_commands commands = { 0 };
		size_t loads = 0;
		struct net net;

		net_open(&net, &request, backend != OCS_FORWARD_ROUTES, backend);
		ocs_forward_things(net.forward, net.hosts, 3, backend, &commands);
		qsort(commands.list, commands.count, sizeof(*commands.list), by_undo);
		for (size_t i = 0; i < commands.count; i++) {
			const struct ocs_forward_command *one = &commands.list[i];

			loads += one->tool == OCS_FORWARD_LOAD;
			if (!one->undo && one->tool != OCS_FORWARD_LOAD)
				fail_msg("nothing undoes '%s'", one->text);
			/* one neighbour may serve several ports */
			if (i && !by_undo(one - 1, one) && strcmp(one[-1].text, one->text))
				fail_msg("'%s' undoes '%s' and '%s'", one->undo, one[-1].text,
					 one->text);
		}
		assert_int_equal(loads, backend == OCS_FORWARD_BPF);
		ocs_forward_commands_free(&commands);
		net_close(&net);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_pairs), cmocka_unit_test(test_counts),
		cmocka_unit_test(test_conflict),  cmocka_unit_test(test_failed),
		cmocka_unit_test(test_refused),	  cmocka_unit_test(test_removal),
		cmocka_unit_test(test_undo),	  cmocka_unit_test(test_routes_made_here),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
