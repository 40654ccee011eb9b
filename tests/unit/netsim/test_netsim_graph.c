/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Task graphs: what is written is read back the same, what cannot be run is refused with a
 * sentence, an order has each task after those it waits for. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <json-c/json.h>

#include "src/netsim/graph.h"
#include "src/util/error.h"
#include "src/util/text.h"

static struct ocs_netsim_graph *graph_make(void)
{
	struct ocs_netsim_graph *graph = ocs_netsim_graph_create(3, 2);
	int group = ocs_netsim_group_add(graph, (int[]){ 2, 0, 1 }, 3);
	int pair = ocs_netsim_group_add(graph, (int[]){ 0, 2 }, 2);
	int first = ocs_netsim_compute_add(graph, 0, 1, 1.25);
	int second = ocs_netsim_transfer_add(graph, 0, 2, 1e9 / 3);
	int reduce = ocs_netsim_collective_add(graph, OCS_NETSIM_ALLREDUCE, group, 4e6);
	int all = ocs_netsim_alltoall_add(graph, pair, (double[]){ 7, 1, 2, 0 });
	int end = ocs_netsim_barrier_add(graph);

	graph->tasks[reduce].ms = 0.1;
	graph->tasks[reduce].label = (short)ocs_netsim_label(graph, "d\"p");
	graph->tasks[first].label = (short)ocs_netsim_label(graph, "forward");
	ocs_netsim_depend(graph, end, first);
	ocs_netsim_depend(graph, first, second);
	ocs_netsim_depend(graph, first, reduce);
	ocs_netsim_depend(graph, reduce, all);
	ocs_netsim_depend(graph, second, all);
	return graph;
}

static char *graph_text(const struct ocs_netsim_graph *graph)
{
	struct ocs_text text = { 0 };

	ocs_netsim_graph_write(graph, &text);
	return ocs_text_take(&text);
}

static void test_round_trip(void **state)
{
	struct ocs_netsim_graph *graph = graph_make(), *back;
	struct ocs_error err = { 0 };
	char *text = graph_text(graph), *again;
	struct json_object *json = json_tokener_parse(text);

	(void)state;
	assert_int_equal(ocs_netsim_graph_check(graph, &err), 0);
	assert_non_null(json);
	back = ocs_netsim_graph_from_json(json, &err);
	assert_string_equal(err.text, "");
	assert_non_null(back);
	again = graph_text(back);
	assert_string_equal(text, again);
	assert_int_equal(back->ntasks, 5);
	assert_true(back->tasks[1].bytes == 1e9 / 3);
	assert_true(back->tasks[3].bytes == 10);
	assert_int_equal(back->groups[0].members[0], 2);
	assert_string_equal(back->labels[back->tasks[2].label], "d\"p");
	json_object_put(json);
	free(text);
	free(again);
	ocs_netsim_graph_destroy(graph);
	ocs_netsim_graph_destroy(back);
}

static void test_order(void **state)
{
	struct ocs_netsim_graph *graph = graph_make();
	int *order = ocs_netsim_graph_order(graph), place[5] = { -1, -1, -1, -1, -1 };

	(void)state;
	for (int k = 0; k < 5; k++) {
		assert_int_equal(place[order[k]], -1);
		place[order[k]] = k;
	}
	for (int k = 0; k < graph->nedges; k++)
		assert_true(place[graph->edges[k].before] < place[graph->edges[k].after]);
	free(order);
	ocs_netsim_graph_destroy(graph);
}

static void refuse_expect(struct ocs_netsim_graph *graph, const char *words)
{
	struct ocs_error err = { 0 };

	assert_int_equal(ocs_netsim_graph_check(graph, &err), -1);
	assert_int_equal(err.code, OCS_USAGE);
	if (!strstr(err.text, words))
		fail_msg("\"%s\" does not say \"%s\"", err.text, words);
	ocs_netsim_graph_destroy(graph);
}

static void test_refused(void **state)
{
	struct ocs_netsim_graph *graph = graph_make();

	(void)state;
	ocs_netsim_depend(graph, 3, 4);
	refuse_expect(graph, "waits for itself in a circle");
	graph = graph_make();
	ocs_netsim_depend(graph, 3, 9);
	refuse_expect(graph, "task 9 waits for task 3");
	graph = graph_make();
	ocs_netsim_compute_add(graph, 0, 2, 1);
	refuse_expect(graph, "task 5 names device 2");
	graph = graph_make();
	ocs_netsim_transfer_add(graph, 0, 3, 1);
	refuse_expect(graph, "task 5 names server 3");
	graph = graph_make();
	ocs_netsim_transfer_add(graph, 0, 1, -1);
	refuse_expect(graph, "task 5 moves -1 bytes");
	graph = graph_make();
	ocs_netsim_compute_add(graph, 0, 0, 0.0 / 0.0);
	refuse_expect(graph, "task 5 takes");
	graph = graph_make();
	ocs_netsim_group_add(graph, (int[]){ 1, 1 }, 2);
	refuse_expect(graph, "group 2 has server 1 twice");
	graph = graph_make();
	ocs_netsim_group_add(graph, NULL, 0);
	refuse_expect(graph, "group 2 has 0 members");
	graph = graph_make();
	graph->tasks[ocs_netsim_collective_add(graph, OCS_NETSIM_ALLTOALL, 0, 1)].matrix = 0;
	refuse_expect(graph, "has a matrix that does not fit");
	graph = graph_make();
	graph->matrices[0][1] = -1;
	refuse_expect(graph, "row 0, column 1");
	refuse_expect(ocs_netsim_graph_create(0, 1), "0 servers");
	refuse_expect(ocs_netsim_graph_create(1, 0), "0 devices");
}

static void test_json_refused(void **state)
{
	static const struct {
		const char *text, *words;
	} bad[] = {
		{ "[]", "an object with" },
		{ "{\"devices\":1}", "\"servers\" is missing" },
		{ "{\"servers\":1e300,\"devices\":1}", "\"servers\" is not a whole number" },
		{ "{\"servers\":2.5,\"devices\":1}", "\"servers\" is not a whole number" },
		{ "{\"servers\":70000,\"devices\":1}", "70000 servers" },
		{ "{\"servers\":1,\"devices\":1,\"tasks\":7}", "\"tasks\" is not a list" },
		{ "{\"servers\":1,\"devices\":1,\"tasks\":[{}]}", "task 0: \"kind\" is missing" },
		{ "{\"servers\":1,\"devices\":1,\"tasks\":[{\"kind\":\"x\"}]}", "is none of" },
		{ "{\"servers\":1,\"devices\":1,\"tasks\":[{\"kind\":\"compute\"}]}",
		  "\"server\" is missing" },
		{ "{\"servers\":1,\"devices\":1,\"groups\":[[0]],\"tasks\":[{\"kind\":"
		  "\"alltoall\",\"group\":0,\"matrix\":0}]}",
		  "there are 0" },
		{ "{\"servers\":1,\"devices\":1,\"groups\":[[0]],\"matrices\":[[[1,2]]],"
		  "\"tasks\":[{\"kind\":\"alltoall\",\"group\":0,\"matrix\":0}]}",
		  "row 0 of its matrix" },
		{ "{\"servers\":1,\"devices\":1,\"groups\":[[0,1]]}", "group 0 is not a list" },
		{ "{\"servers\":1,\"devices\":1,\"tasks\":[{\"kind\":\"barrier\",\"after\":[0]}]}",
		  "task 0 waits for itself" },
		{ "{\"servers\":1,\"devices\":1,\"tasks\":[{\"kind\":\"barrier\",\"after\":[\"0\"]"
		  "}]}",
		  "waits for task -2" },
		{ "{\"servers\":1,\"devices\":1,\"tasks\":[{\"kind\":\"barrier\",\"label\":7}]}",
		  "\"label\" is not a word" },
	};

	(void)state;
	for (size_t k = 0; k < sizeof(bad) / sizeof(*bad); k++) {
		struct json_object *json = json_tokener_parse(bad[k].text);
		struct ocs_error err = { 0 };

		assert_non_null(json);
		assert_null(ocs_netsim_graph_from_json(json, &err));
		assert_int_equal(err.code, OCS_USAGE);
		if (!strstr(err.text, bad[k].words))
			fail_msg("%s: \"%s\" does not say \"%s\"", bad[k].text, err.text,
				 bad[k].words);
		json_object_put(json);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_json_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
