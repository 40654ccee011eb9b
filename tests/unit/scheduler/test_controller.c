/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The state behind the topology and select plugins: what jobs ask, decisions,
 * pictures. */

#include <json-c/json.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/scheduler/controller_peer.h"

static void test_request(void **state)
{
	struct ocs_controller_request request;
	struct ocs_error err;

	(void)state;
	assert_int_equal(ocs_controller_request(1, "tpu", NULL, &request, &err), 0);
	assert_int_equal(ocs_controller_request(1, "tpu", "user words", &request, &err), 0);
	assert_int_equal(ocs_controller_request(1, "tpu", "words shape=4x4x4", &request, &err), 1);
	assert_true(request.shaped);
	assert_string_equal(request.section->name, "pod");
	assert_int_equal(ocs_controller_request(1, "direct", NULL, &request, &err), 1);
	assert_false(request.shaped);
	assert_int_equal(ocs_controller_request(1, "cpu", NULL, &request, &err), 0);
	assert_int_equal(ocs_controller_request(1, "cpu", "shape=4", &request, &err), -1);
	assert_non_null(strstr(err.text, "cpu"));
	assert_int_equal(ocs_controller_request(1, "tpu", "shape=4x", &request, &err), -1);
}

/* Of a shape on rails the last dimensions stay inside the nodes. */
static void test_rails_request(void **state)
{
	struct ocs_controller_request request;
	struct ocs_error err;

	(void)state;
	assert_int_equal(ocs_controller_open("rails servers:8 rails:2 xpus:4 ports:2", &err), 0);
	assert_int_equal(ocs_controller_request(1, "p", NULL, &request, &err), 1);
	assert_int_equal(request.servers, 0);
	assert_int_equal(ocs_controller_request(1, "p", "shape=pp:2,dp:3,tp:4 phases=on-demand",
						&request, &err),
			 1);
	assert_int_equal(request.servers, 6);
	assert_int_equal(request.shape.phases, OCS_PHASES_ON_DEMAND);
	assert_int_equal(ocs_controller_request(1, "p", "shape=dp:3,tp:3", &request, &err), -1);
	assert_int_equal(err.code, OCS_NEVER);
	assert_int_equal(ocs_controller_open("rails servers:8 rails:2 xpus:4", &err), 0);
	assert_int_equal(ocs_controller_request(1, "p", "shape=dp:3,tp:4", &request, &err), -1);
	assert_non_null(strstr(err.text, "two ports per NIC"));
}

static void test_without_ocsd(void **state)
{
	struct ocs_controller_request request = ask(1, "tpu", "shape=4x4x4");
	int chosen[38];
	struct ocs_error err;
	bool help;

	(void)state;
	ocs_controller_link_start(0, NULL, NULL);
	assert_int_equal(choose(&request, OCS_TEST_ONLY, chosen, &help, &err), 16);
	assert_int_equal(choose(&request, OCS_FORECAST, chosen, &help, &err), 16);
	assert_int_equal(choose(&request, OCS_RUN_NOW, chosen, &help, &err), -1);
	assert_int_equal(err.code, OCS_UNREACHABLE);
	assert_false(help);
	assert_non_null(strstr(err.text, "ocsd is not reachable since 20"));
	assert_int_equal(choose(&request, OCS_WILL_RUN, chosen, &help, &err), -1);
}

static void test_choice_is_stable(void **state)
{
	static const char *const shapes[] = { "shape=4x4x4", "shape=2x2x2", "shape=18",
					      "shape=6x4",   "shape=8x4x4", "shape=1" };
	struct ocs_error err;
	bool help;

	(void)state;
	for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++) {
		struct ocs_controller_request request = ask(10 + (uint32_t)i, "tpu", shapes[i]);
		int chosen[38], again[38], count;
		uint64_t usable[2] = { 0 };

		count = choose(&request, OCS_RUN_NOW, chosen, &help, &err);
		if (count < 0)
			fail_msg("%s: %s", shapes[i], err.text);
		for (int j = 0; j < count; j++)
			mark(usable, chosen[j], 1);
		request.job = 100; /* not remembered for this one */
		assert_int_equal(ocs_controller_choose(&request, OCS_RUN_NOW, usable, NULL, 0,
						       count, count, again, &help, &err),
				 count);
		assert_memory_equal(chosen, again, (size_t)count * sizeof(*chosen));
		ocs_controller_pending_clear(100);
	}
}

static void test_required_nodes(void **state)
{
	struct ocs_controller_request request = ask(1, "tpu", "shape=2x2x2");
	int required[2] = { 29, 31 }, chosen[38], count;
	uint64_t usable[2] = { 0 };
	struct ocs_error err;
	bool help, found = false;

	(void)state;
	mark(usable, 0, 32);
	for (int node = 0; node < 32; node++) {
		count = ocs_controller_choose(&request, OCS_RUN_NOW, usable, &node, 1, 0, 0, chosen,
					      &help, &err);
		if (count < 0)
			fail_msg("node %d: %s", node, err.text);
		found = false;
		for (int i = 0; i < count; i++)
			found = found || chosen[i] == node;
		assert_true(found);
	}
	/* Two nodes of one cube that no 2x2x2 holds. */
	required[0] = 16;
	count = ocs_controller_choose(&request, OCS_RUN_NOW, usable, required, 2, 0, 0, chosen,
				      &help, &err);
	assert_int_equal(count, -1);
	assert_int_equal(err.code, OCS_NOT_NOW);
}

static void test_node_counts_that_contradict(void **state)
{
	struct ocs_controller_request request = ask(1, "tpu", "shape=4x4x4");
	uint64_t usable[2] = { 0 };
	struct ocs_error err;
	int chosen[38];
	bool help;

	(void)state;
	mark(usable, 0, 32);
	assert_int_equal(ocs_controller_choose(&request, OCS_TEST_ONLY, usable, NULL, 0, 20, 20,
					       chosen, &help, &err),
			 -1);
	assert_int_equal(err.code, OCS_NEVER);
	assert_non_null(strstr(err.text, "takes 16 nodes"));
	assert_int_equal(ocs_controller_choose(&request, OCS_TEST_ONLY, usable, NULL, 0, 1, 2,
					       chosen, &help, &err),
			 -1);
	assert_int_equal(err.code, OCS_NEVER);
}

static void test_direct(void **state)
{
	struct ocs_controller_request request = ask(3, "direct", NULL);
	struct ocs_controller_request shaped = ask(4, "direct", "shape=2x2");
	struct ocs_controller_allocation *made;
	struct json_object *line;
	uint64_t usable[2] = { 0 };
	struct ocs_error err;
	int chosen[38], nodes[3];
	bool help;

	(void)state;
	mark(usable, 0, 38);
	assert_int_equal(ocs_controller_choose(&request, OCS_RUN_NOW, usable, NULL, 0, 3, 3, chosen,
					       &help, &err),
			 6);
	assert_int_equal(chosen[0], ocs_controller_node("d0"));
	assert_int_equal(ocs_controller_choose(&shaped, OCS_RUN_NOW, usable, NULL, 0, 1, 3, chosen,
					       &help, &err),
			 -1);
	assert_int_equal(err.code, OCS_NEVER);
	nodes[0] = ocs_controller_node("d4");
	nodes[1] = ocs_controller_node("d1");
	nodes[2] = ocs_controller_node("d2");
	assert_int_equal(ocs_controller_begin(&request, nodes, 3, 1, "ada", "direct", &made, &err),
			 0);
	line = peer_hear("commit");
	assert_string_equal(text_in(line, "nodes"), "d[4,1-2]");
	assert_null(json_object_object_get(line, "placement"));
	peer_answer(line, "\"ok\":true");
	json_object_put(line);
	ocs_controller_allocation_free(made);
	/* A port of d0 is drained: it is passed over. */
	peer_say(
		"{\"event\":\"drain\",\"kind\":\"port\",\"name\":\"direct-1:1\",\"reason\":\"\",\"drained\":true}");
	for (int i = 0; i < 5000; i++) {
		if (ocs_controller_choose(&request, OCS_RUN_NOW, usable, NULL, 0, 3, 3, chosen,
					  &help, &err) == 5)
			break;
		usleep(1000);
	}
	assert_int_equal(chosen[0], ocs_controller_node("d1"));
}

static void test_report(void **state)
{
	struct ocs_controller_allocation *made = begin(7, "shape=4x4x4");
	struct ocs_controller_record *records;
	uint8_t states[38];
	bool failed;
	char *text;
	int count;

	(void)state;
	peer_confirm("commit");
	memset(states, OCS_NODE_IDLE, sizeof(states));
	states[1] = OCS_NODE_DOWN;
	states[2] = OCS_NODE_DRAINED;
	memset(states + 16, OCS_NODE_ABSENT, 16);
	count = ocs_controller_report(states, true, &records);
	assert_int_equal(count, 2 + 2 + 50);
	text = ocs_controller_report_print(records, count, "c0");
	assert_string_equal(text, "Cube=c0 Section=pod Nodes=n[0-15] Idle=14 Busy=0 Down=1 "
				  "Drained=1 State=UP Jobs=7\n");
	free(text);
	text = ocs_controller_report_print(records, count, "n3");
	assert_non_null(strstr(text, "Section=pod"));
	assert_non_null(strstr(text, "Cube=c0"));
	assert_null(strstr(text, "Cube=c1"));
	assert_null(strstr(text, "Switch="));
	free(text);
	text = ocs_controller_report_print(records, count, "d[0-1],n17");
	assert_non_null(strstr(text, "Section=ring"));
	assert_non_null(strstr(text, "Cube=c1"));
	assert_non_null(strstr(text, "Unconfigured=16"));
	free(text);
	text = ocs_controller_report_print(records, count, "ocs-z-3-3");
	assert_string_equal(text, "Switch=ocs-z-3-3 Size=16 State=UP\n");
	free(text);
	text = ocs_controller_report_print(records, count, "nobody");
	assert_string_equal(text, "");
	free(text);
	text = ocs_controller_report_print(records, count, NULL);
	assert_non_null(strstr(text, "Switch=direct-1"));
	assert_null(strstr(text, "127.0.0.1"));
	free(text);
	ocs_controller_report_free(records, count);
	/* PrivateData=jobs, and a reason that names the address */
	peer_say("{\"event\":\"switch\",\"name\":\"ocs-x-0-0\",\"state\":\"failed\",\"reason\":"
		 "\"cannot connect to 127.0.0.1:3100: refused (127.0.0.11, 127.0.0.1)\"}");
	peer_say(
		"{\"event\":\"switch\",\"name\":\"ocs-x-0-1\",\"state\":\"failed\",\"reason\":\"x\"}");
	do {
		count = ocs_controller_report(states, false, &records);
		text = ocs_controller_report_print(records, count, "ocs-x-0-1");
		failed = strstr(text, "FAILED");
		free(text);
		if (!failed)
			ocs_controller_report_free(records, count);
	} while (!failed);
	text = ocs_controller_report_print(records, count, "ocs-x-0-0");
	assert_string_equal(text,
			    "Switch=ocs-x-0-0 Size=16 State=FAILED Reason=\"cannot connect to "
			    "its address: refused (127.0.0.11, its address)\"\n");
	free(text);
	text = ocs_controller_report_print(records, count, NULL);
	assert_non_null(strstr(text, "Cube=c0"));
	assert_null(strstr(text, "Jobs="));
	free(text);
	ocs_controller_report_free(records, count);
	ocs_controller_allocation_free(made);
}

/* ocsd hears of every node of the fabric, those that Slurm does not have included. */
static void test_nodes(void **state)
{
	uint8_t states[38];
	uint32_t jobs[38] = { [3] = 7 };
	struct json_object *line, *nodes, *node;

	(void)state;
	memset(states, OCS_NODE_IDLE, sizeof(states));
	states[3] = OCS_NODE_BUSY;
	states[17] = OCS_NODE_ABSENT;
	ocs_controller_nodes(states, jobs);
	line = peer_hear("nodes");
	nodes = json_object_object_get(line, "nodes");
	assert_int_equal(json_object_object_length(nodes), 38);
	node = json_object_object_get(nodes, "n3");
	assert_string_equal(text_in(node, "state"), "busy");
	assert_int_equal(json_object_get_int(json_object_object_get(node, "job")), 7);
	assert_string_equal(text_in(json_object_object_get(nodes, "n17"), "state"), "absent");
	assert_string_equal(text_in(json_object_object_get(nodes, "d0"), "state"), "idle");
	json_object_put(line);
}

static void test_bad_file(void **state)
{
	const struct ocs_fabric *fabric = ocs_controller_fabric();
	struct ocs_error err;

	(void)state;
	assert_int_equal(ocs_controller_open("/nonexistent/ocs.yaml", &err), -1);
	assert_non_null(strstr(err.text, "/nonexistent/ocs.yaml"));
	assert_ptr_equal(ocs_controller_fabric(), fabric);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_request, start, finish),
		cmocka_unit_test_setup_teardown(test_rails_request, start, finish),
		cmocka_unit_test_setup_teardown(test_without_ocsd, start, finish),
		cmocka_unit_test_setup_teardown(test_bad_file, start, finish),
		cmocka_unit_test_setup_teardown(test_choice_is_stable, start_joined, finish),
		cmocka_unit_test_setup_teardown(test_required_nodes, start_joined, finish),
		cmocka_unit_test_setup_teardown(test_node_counts_that_contradict, start, finish),
		cmocka_unit_test_setup_teardown(test_direct, start_joined, finish),
		cmocka_unit_test_setup_teardown(test_report, start_joined, finish),
		cmocka_unit_test_setup_teardown(test_nodes, start_joined, finish),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
