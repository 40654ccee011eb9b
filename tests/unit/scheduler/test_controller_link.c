/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The state behind the topology and select plugins, against a peer that plays ocsd:
 * allocations, faults, reconnection. */

#include <json-c/json.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/util/text.h"
#include "tests/unit/scheduler/controller_peer.h"

static bool released_7(void)
{
	return held(7) == 0;
}

static void test_commit_end_release(void **state)
{
	struct ocs_controller_request request = ask(8, "tpu", "shape=8x4x4");
	struct ocs_controller_allocation *made = begin(7, "shape=4x4x4");
	struct json_object *line = peer_hear("commit");
	struct ocs_error err;
	char *members;
	int chosen[38];
	bool help;

	(void)state;
	assert_int_equal(json_object_get_int64(json_object_object_get(line, "job")), 7);
	assert_int_equal(json_object_get_int64(json_object_object_get(line, "epoch")), made->epoch);
	assert_true(made->epoch > UINT64_C(1700000000000000));
	assert_string_equal(text_in(line, "user"), "ada");
	assert_string_equal(text_in(line, "section"), "pod");
	assert_string_equal(text_in(line, "shape"), "4x4x4");
	assert_string_equal(text_in(line, "conn"), "torus,torus,torus");
	assert_string_equal(text_in(line, "placement"), made->placement);
	assert_int_equal(made->cubes, 1);
	assert_int_equal(made->circuits, 48);
	peer_answer(line, "\"ok\":true");
	json_object_put(line);
	assert_int_equal(held(7), 1);

	ocs_controller_end(7, 0, "done");
	line = peer_hear("end");
	assert_int_equal(json_object_get_int64(json_object_object_get(line, "epoch")), made->epoch);
	peer_answer(line, "\"ok\":true");
	json_object_put(line);
	assert_int_equal(held(7), 2);
	/* The whole machine has to wait for the teardown, and is told so; a plan
	 * for later does not. */
	assert_int_equal(choose(&request, OCS_RUN_NOW, chosen, &help, &err), -1);
	assert_non_null(strstr(err.text, "taken down"));
	assert_true(help);
	assert_int_equal(choose(&request, OCS_WILL_RUN, chosen, &help, &err), 32);

	ocs_controller_gone(7, made->epoch);
	peer_confirm("gone");
	members = ocs_asprintf("{\"event\":\"released\",\"job\":7,\"epoch\":%llu}",
			       (unsigned long long)made->epoch);
	peer_say(members);
	until(released_7);
	assert_int_equal(choose(&request, OCS_RUN_NOW, chosen, &help, &err), 32);
	free(members);
	ocs_controller_allocation_free(made);
}

static void test_begin_refuses_taken_nodes(void **state)
{
	struct ocs_controller_request request = ask(2, "tpu", "shape=4x4x4");
	struct ocs_controller_allocation *first, *second = NULL;
	int nodes[16];
	struct ocs_error err;

	(void)state;
	first = begin(1, "shape=4x4x4");
	peer_confirm("commit");
	for (int i = 0; i < 16; i++)
		nodes[i] = (ocs_controller_node("n0") + i);
	if (strcmp(first->nodes, "n[0-15]") != 0)
		fail_msg("the first cube is expected, not %s", first->nodes);
	assert_int_equal(ocs_controller_begin(&request, nodes, 16, 0, "ada", "tpu", &second, &err),
			 -1);
	assert_non_null(strstr(err.text, "belongs to job 1"));
	/* Fifteen nodes are no cube. */
	for (int i = 0; i < 16; i++)
		nodes[i] += 16;
	assert_int_equal(ocs_controller_begin(&request, nodes, 15, 0, "ada", "tpu", &second, &err),
			 -1);
	assert_int_equal(ocs_controller_begin(&request, nodes, 16, 0, "ada", "tpu", &second, &err),
			 0);
	assert_true(second->epoch > first->epoch);
	peer_confirm("commit");
	ocs_controller_allocation_free(first);
	ocs_controller_allocation_free(second);
}

static struct ocs_controller_request probe_request;
static bool cube_fits(void)
{
	struct ocs_error err;
	int chosen[38];
	bool help;

	return choose(&probe_request, OCS_WILL_RUN, chosen, &help, &err) > 0;
}

static bool cube_does_not_fit(void)
{
	return !cube_fits();
}

static void test_faults(void **state)
{
	struct ocs_error err;
	int chosen[38];
	bool help;

	(void)state;
	probe_request = ask(1, "tpu", "shape=4x4x4");
	assert_true(cube_fits());
	peer_say(
		"{\"event\":\"switch\",\"name\":\"ocs-x-1-2\",\"state\":\"failed\",\"reason\":\"silent\"}");
	until(cube_does_not_fit);
	assert_int_equal(choose(&probe_request, OCS_RUN_NOW, chosen, &help, &err), -1);
	assert_int_equal(err.code, OCS_NOT_NOW);
	assert_false(help);
	assert_non_null(strstr(err.text, "switch ocs-x-1-2 failed"));
	/* At submit a broken switch is no reason. */
	assert_int_equal(choose(&probe_request, OCS_TEST_ONLY, chosen, &help, &err), 16);
	peer_say("{\"event\":\"switch\",\"name\":\"ocs-x-1-2\",\"state\":\"up\",\"reason\":\"\"}");
	until(cube_fits);
	peer_say(
		"{\"event\":\"drain\",\"kind\":\"cube\",\"name\":\"c0\",\"reason\":\"dust\",\"drained\":true}");
	peer_say(
		"{\"event\":\"drain\",\"kind\":\"port\",\"name\":\"ocs-z-0-0:3\",\"reason\":\"dust\",\"drained\":true}");
	until(cube_does_not_fit);
	assert_int_equal(choose(&probe_request, OCS_RUN_NOW, chosen, &help, &err), -1);
	assert_false(help);
	peer_say(
		"{\"event\":\"drain\",\"kind\":\"port\",\"name\":\"ocs-z-0-0:3\",\"reason\":\"\",\"drained\":false}");
	until(cube_fits);
	assert_int_equal(choose(&probe_request, OCS_RUN_NOW, chosen, &help, &err), 16);
	assert_int_equal(chosen[0], ocs_controller_node("n16"));
}

/* With so many of the 32 nodes of cubes idle, from the first on: whether faults are in the reason. */
static bool faults_told(const char *shape, int idle)
{
	struct ocs_controller_request request = ask(1, "tpu", shape);
	uint64_t usable[2] = { (UINT64_C(1) << idle) - 1 };
	struct ocs_error err;
	int chosen[38];
	bool help;

	assert_int_equal(ocs_controller_choose(&request, OCS_WILL_RUN, usable, NULL, 0, 0, 0,
					       chosen, &help, &err),
			 -1);
	assert_int_equal(err.code, OCS_NOT_NOW);
	assert_true(help);
	return strstr(err.text, "ocs-x-1-2");
}

static bool is_port_drained(void)
{
	struct ocs_controller_request request = ask(1, "tpu", "shape=4x4x8");
	int chosen[38];
	struct ocs_error err;
	bool help;

	return choose(&request, OCS_WILL_RUN, chosen, &help, &err) < 0;
}

/* A job waits for nodes: that a port is drained as well is no news for it, unless it hinders. */
static void test_faults_that_do_not_hinder(void **state)
{
	(void)state;
	peer_say(
		"{\"event\":\"drain\",\"kind\":\"port\",\"name\":\"ocs-x-1-2:1\",\"reason\":\"dust\",\"drained\":true}");
	until(is_port_drained);
	assert_false(faults_told("shape=4x4x4", 12));
	assert_true(faults_told("shape=4x4x4", 16));
}

static bool failure_there(void)
{
	return ocs_controller_failures();
}

static void test_job_failed(void **state)
{
	struct ocs_controller_allocation *made = begin(7, "shape=4x4x4");
	struct ocs_controller_failure failure;
	char *line;

	(void)state;
	peer_confirm("commit");
	probe_request = ask(9, "tpu", "shape=4x4x4");
	/* A stranger's epoch is nobody's failure. */
	peer_say(
		"{\"event\":\"job_failed\",\"job\":7,\"epoch\":5,\"switch\":\"ocs-y-0-0\",\"error\":\"denied\"}");
	line = ocs_asprintf(
		"{\"event\":\"job_failed\",\"job\":7,\"epoch\":%llu,\"switch\":\"ocs-y-0-0\",\"error\":\"denied\"}",
		(unsigned long long)made->epoch);
	peer_say(line);
	until(failure_there);
	/* The switch is avoided before anybody hears of the failure. */
	assert_true(cube_does_not_fit());
	assert_true(ocs_controller_failure(&failure));
	assert_int_equal(failure.job, 7);
	assert_int_equal(failure.epoch, made->epoch);
	assert_string_equal(failure.name, "ocs-y-0-0");
	assert_string_equal(failure.text, "denied");
	assert_false(ocs_controller_failure(&failure));
	free(failure.name);
	free(failure.text);
	free(line);
	ocs_controller_allocation_free(made);
}

/* One port of the switch is to blame, and drained: the rest of it serves. */
static void test_job_failed_at_a_port(void **state)
{
	struct ocs_controller_allocation *made = begin(7, "shape=4x4x4");
	struct ocs_controller_failure failure;
	char *line;

	(void)state;
	peer_confirm("commit");
	probe_request = ask(9, "tpu", "shape=4x4x4");
	peer_say(
		"{\"event\":\"drain\",\"kind\":\"port\",\"name\":\"ocs-y-0-0:1\",\"reason\":\"a patch "
		"that is not ours\",\"drained\":true}");
	line = ocs_asprintf(
		"{\"event\":\"job_failed\",\"job\":7,\"epoch\":%llu,\"switch\":\"ocs-y-0-0\","
		"\"error\":\"in the way\",\"ports\":[\"ocs-y-0-0:1\"]}",
		(unsigned long long)made->epoch);
	peer_say(line);
	until(failure_there);
	assert_true(cube_fits());
	assert_true(ocs_controller_failure(&failure));
	assert_string_equal(failure.name, "ocs-y-0-0");
	free(failure.name);
	free(failure.text);
	free(line);
	ocs_controller_allocation_free(made);
}

/* Whoever counts cubes differently must not be handed placements. */
static void test_other_description(void **state)
{
	struct ocs_controller_request request = ask(9, "tpu", "shape=4x4x4");
	struct ocs_error err;
	char digest[OCS_DIGEST_TEXT], *reply;
	int chosen[38];
	bool help;

	(void)state;
	assert_int_equal(choose(&request, OCS_RUN_NOW, chosen, &help, &err), 16);
	peer_hang_up();
	until(is_down);
	peer_join("\"ok\":true,\"fabric\":\"0123456789abcdef\"");
	assert_int_equal(choose(&request, OCS_RUN_NOW, chosen, &help, &err), -1);
	assert_int_equal(err.code, OCS_UNREACHABLE);
	assert_non_null(strstr(err.text, "another ocs.yaml"));
	assert_false(help);
	assert_int_equal(choose(&request, OCS_WILL_RUN, chosen, &help, &err), -1);
	assert_int_equal(choose(&request, OCS_TEST_ONLY, chosen, &help, &err), 16);
	peer_hang_up();
	until(is_down);
	ocs_fabric_digest(ocs_controller_fabric(), digest);
	reply = ocs_asprintf("\"ok\":true,\"fabric\":\"%s\"", digest);
	peer_join(reply);
	assert_int_equal(choose(&request, OCS_RUN_NOW, chosen, &help, &err), 16);
	free(reply);
}

static void test_refused_commit(void **state)
{
	struct ocs_controller_allocation *made = begin(7, "shape=2x2x2");
	struct ocs_controller_failure failure;
	struct json_object *line = peer_hear("commit");

	(void)state;
	peer_answer(line, "\"ok\":false,\"code\":1,\"error\":\"port 3 belongs to job 4\"");
	json_object_put(line);
	until(failure_there);
	assert_true(ocs_controller_failure(&failure));
	assert_null(failure.name);
	assert_string_equal(failure.text, "port 3 belongs to job 4");
	free(failure.text);
	ocs_controller_allocation_free(made);
}

static bool all_held(void)
{
	return held(55) == 2 && held(56) == 2;
}

static bool one_forgotten(void)
{
	return !held(56);
}

static void test_reconnect(void **state)
{
	struct ocs_controller_allocation *living = begin(7, "shape=2x2x2");
	struct ocs_controller_allocation *ended, *later;
	struct json_object *line, *jobs;
	struct ocs_controller_request request = ask(9, "tpu", "shape=4x4x4");
	struct ocs_error err;
	int chosen[38];
	bool help;

	(void)state;
	peer_confirm("commit");
	ended = begin_in(8, "shape=2x2x2", 1);
	peer_confirm("commit");
	ocs_controller_end(8, 5, "not this one");
	assert_int_equal(held(8), 1);
	ocs_controller_end(8, ended->epoch, "done");
	peer_confirm("end");
	peer_hang_up();
	until(is_down);
	assert_true(ocs_controller_down_ms() > 0);
	assert_int_equal(choose(&request, OCS_RUN_NOW, chosen, &help, &err), -1);

	peer_accept();
	line = peer_hear("subscribe");
	jobs = json_object_object_get(line, "jobs");
	assert_int_equal(json_object_array_length(jobs), 1);
	assert_int_equal(json_object_get_int64(json_object_object_get(
				 json_object_array_get_idx(jobs, 0), "epoch")),
			 living->epoch);
	/* It forgot job 7, is done with 8, still has circuits of the unknown 55 and 56, and
	 * has seen an epoch from the future. */
	peer_answer(line,
		    "\"ok\":true,\"max_epoch\":4000000000000000,\"unknown\":[7],\"ready\":[],"
		    "\"held\":[{\"job\":55,\"epoch\":12,\"nodes\":\"n[16-29]\"},"
		    "{\"job\":56,\"epoch\":13,\"nodes\":\"n[30-31]\"}],"
		    "\"switches\":[{\"name\":\"ocs-x-0-0\",\"state\":\"up\",\"reason\":\"\"}]");
	json_object_put(line);
	until(all_held);
	for (int job = 55; job <= 56; job++) {
		line = peer_hear("gone");
		assert_int_equal(json_object_get_int64(json_object_object_get(line, "job")), job);
		peer_answer(line, "\"ok\":true");
		json_object_put(line);
	}
	line = peer_hear("commit");
	assert_int_equal(json_object_get_int64(json_object_object_get(line, "job")), 7);
	assert_string_equal(text_in(line, "placement"), living->placement);
	peer_answer(line, "\"ok\":true");
	json_object_put(line);
	line = peer_hear("show");
	assert_string_equal(text_in(line, "what"), "job");
	assert_string_equal(text_in(line, "name"), "55");
	peer_answer(line, "\"ok\":true,\"jobs\":[{\"job\":55,\"epoch\":12}]");
	json_object_put(line);
	line = peer_hear("show");
	assert_string_equal(text_in(line, "name"), "56");
	peer_answer(line, "\"ok\":true,\"jobs\":[]");
	json_object_put(line);
	until(one_forgotten);
	assert_int_equal(held(55), 2);
	assert_int_equal(held(8), 0);
	/* c0 has job 7 on it, c1 is held for 55. */
	{
		uint64_t usable[2] = { 0 };

		mark(usable, 16, 16);
		assert_int_equal(ocs_controller_choose(&request, OCS_RUN_NOW, usable, NULL, 0, 0, 0,
						       chosen, &help, &err),
				 -1);
	}
	peer_say("{\"event\":\"released\",\"job\":55,\"epoch\":12}");
	while (held(55))
		usleep(1000);
	later = begin_in(10, "shape=1", 1);
	assert_true(later->epoch > UINT64_C(4000000000000000));
	peer_confirm("commit");
	ocs_controller_allocation_free(living);
	ocs_controller_allocation_free(ended);
	ocs_controller_allocation_free(later);
}

/* A job that ends while the answer is on its way was listed as living: that ocsd does not
 * call it held says nothing. */
static void test_end_while_joining(void **state)
{
	struct ocs_controller_allocation *made = begin(7, "shape=2x2x2");
	struct json_object *line;

	(void)state;
	peer_confirm("commit");
	peer_hang_up();
	until(is_down);
	peer_accept();
	line = peer_hear("subscribe");
	ocs_controller_end(7, made->epoch, "done");
	peer_answer(line, "\"ok\":true");
	json_object_put(line);
	peer_confirm("end");
	assert_int_equal(held(7), 2);
	ocs_controller_gone(7, made->epoch);
	peer_confirm("gone");
	ocs_controller_allocation_free(made);
}

static void test_restore(void **state)
{
	struct ocs_controller_allocation *made = begin(7, "shape=4x4x4");
	struct ocs_controller_allocation known = *made;
	struct json_object *line;
	int nodes[16];

	(void)state;
	peer_confirm("commit");
	known.job = 21;
	known.epoch = made->epoch + 5;
	for (int i = 0; i < 16; i++)
		nodes[i] = 16 + i;
	ocs_controller_restore(&known, nodes, 16, false);
	ocs_controller_restore(&known, nodes, 16, true); /* known already */
	assert_int_equal(held(21), 2);
	ocs_controller_gone(21, known.epoch);
	line = peer_hear("gone");
	assert_int_equal(json_object_get_int64(json_object_object_get(line, "job")), 21);
	peer_answer(line, "\"ok\":true");
	json_object_put(line);
	ocs_controller_allocation_free(made);
}

static void test_node_lost(void **state)
{
	struct ocs_controller_allocation *made = begin(7, "shape=4x4x4");
	struct ocs_controller_request request = ask(8, "tpu", "shape=8x4x4");
	struct ocs_error err;
	int chosen[38];
	bool help;

	(void)state;
	peer_confirm("commit");
	ocs_controller_node_lost(7, ocs_controller_node("n3"));
	/* Slurm offers the node again, but circuits still end there. */
	assert_int_equal(choose(&request, OCS_RUN_NOW, chosen, &help, &err), -1);
	assert_int_equal(held(7), 1);
	ocs_controller_allocation_free(made);
}

static int superseded_calls;

static void count_superseded(void)
{
	__atomic_add_fetch(&superseded_calls, 1, __ATOMIC_SEQ_CST);
}

static bool was_superseded(void)
{
	return __atomic_load_n(&superseded_calls, __ATOMIC_SEQ_CST) > 0;
}

static bool was_refused(void)
{
	return __atomic_load_n(&superseded_calls, __ATOMIC_SEQ_CST) > 1;
}

/* ocsd says that another slurmctld is in charge: at once, and to whoever comes back. */
static void test_superseded(void **state)
{
	struct json_object *line;
	int64_t age;

	(void)state;
	superseded_calls = 0;
	ocs_controller_link_start(3, NULL, count_superseded);
	peer_accept();
	line = peer_hear("subscribe");
	assert_int_equal(json_object_get_int(json_object_object_get(line, "controller")), 3);
	/* The first answer is lost: how old is what it knows? */
	age = json_object_get_int64(json_object_object_get(line, "age_ms"));
	json_object_put(line);
	peer_hang_up();
	peer_accept();
	line = peer_hear("subscribe");
	assert_int_equal(json_object_get_int64(json_object_object_get(line, "term")), 0);
	assert_true(age >= 0);
	assert_int_equal(strlen(text_in(line, "boot")), 36);
	assert_true(json_object_get_int64(json_object_object_get(line, "age_ms")) > age);
	peer_answer(line, "\"ok\":true,\"term\":17");
	json_object_put(line);
	until(is_up);
	peer_say("{\"event\":\"superseded\",\"controller\":1}");
	until(was_superseded);
	peer_hang_up();
	peer_accept();
	line = peer_hear("subscribe");
	assert_int_equal(json_object_get_int(json_object_object_get(line, "term")), 17);
	peer_answer(line, "\"ok\":false,\"code\":1,\"error\":\"too late\",\"superseded\":true");
	json_object_put(line);
	until(was_refused);
	assert_true(is_down());
}

/* Nodes of jobs that slurmctld forgot stay closed to shapes, also when the circuits are gone. */
static void test_forgotten(void **state)
{
	struct ocs_controller_request request = ask(9, "tpu", "shape=8x4x4");
	struct ocs_error err;
	int chosen[38], *nodes;
	uint32_t job = 0;
	struct ocs_controller_allocation *ended = begin(8, "shape=2x2x2");
	char *reply;
	bool help;

	(void)state;
	peer_confirm("commit");
	assert_false(ocs_controller_forgotten_any());
	peer_hang_up();
	until(is_down);
	/* ocsd has not heard of its end, but slurmctld has not forgotten it */
	ocs_controller_end(8, 0, "done");
	reply = ocs_asprintf("\"ok\":true,\"max_job\":42,\"forgotten\":["
			     "{\"job\":8,\"epoch\":%llu,\"nodes\":\"%s\"},"
			     "{\"job\":7,\"epoch\":3,\"nodes\":\"n[14-17],strange\"}]",
			     (unsigned long long)ended->epoch, ended->nodes);
	peer_join(reply);
	free(reply);
	ocs_controller_allocation_free(ended);
	assert_int_equal(ocs_controller_max_job(), 42);
	assert_int_equal(ocs_controller_max_job(), 0);
	assert_int_equal(choose(&request, OCS_RUN_NOW, chosen, &help, &err), -1);
	assert_int_equal(choose(&request, OCS_WILL_RUN, chosen, &help, &err), 32);
	assert_true(ocs_controller_forgotten_any());
	assert_int_equal(ocs_controller_forgotten(&job, &nodes), 4);
	assert_int_equal(job, 7);
	assert_int_equal(nodes[0], ocs_controller_node("n14"));
	free(nodes);
	assert_int_equal(ocs_controller_forgotten(&job, &nodes), -1);
	assert_false(ocs_controller_forgotten_any());
	assert_int_equal(choose(&request, OCS_RUN_NOW, chosen, &help, &err), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_commit_end_release, start_joined, finish),
		cmocka_unit_test_setup_teardown(test_begin_refuses_taken_nodes, start_joined,
						finish),
		cmocka_unit_test_setup_teardown(test_faults, start_joined, finish),
		cmocka_unit_test_setup_teardown(test_faults_that_do_not_hinder, start_joined,
						finish),
		cmocka_unit_test_setup_teardown(test_job_failed, start_joined, finish),
		cmocka_unit_test_setup_teardown(test_job_failed_at_a_port, start_joined, finish),
		cmocka_unit_test_setup_teardown(test_other_description, start_joined, finish),
		cmocka_unit_test_setup_teardown(test_refused_commit, start_joined, finish),
		cmocka_unit_test_setup_teardown(test_reconnect, start_joined, finish),
		cmocka_unit_test_setup_teardown(test_end_while_joining, start_joined, finish),
		cmocka_unit_test_setup_teardown(test_restore, start_joined, finish),
		cmocka_unit_test_setup_teardown(test_node_lost, start_joined, finish),
		cmocka_unit_test_setup_teardown(test_superseded, start, finish),
		cmocka_unit_test_setup_teardown(test_forgotten, start_joined, finish),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
