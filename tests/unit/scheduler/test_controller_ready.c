/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Whether a job may start: its circuits are verified and all of its nodes have asked for them. */

#include <json-c/json.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/scheduler/controller_peer.h"

static uint64_t watched;

static bool is_ready(void)
{
	return ocs_controller_ready(7, watched);
}

/* Which jobs may start, from an event, after a reconnection, and in answer to a question. */
static void test_ready(void **state)
{
	struct ocs_controller_allocation *job = begin(7, "shape=2x2x2");
	struct ocs_controller_failure failure;
	struct json_object *line;
	char text[256];

	(void)state;
	watched = job->epoch;
	peer_confirm("commit");
	assert_false(ocs_controller_readied() || is_ready() || ocs_controller_ready(8, 1));
	/* n1 is to blame, n0 is not. */
	ocs_controller_unheard(7, job->epoch, "n[0-1]");
	line = peer_hear("unheard");
	assert_string_equal(text_in(line, "ended"), "n[0-1]");
	peer_say("{\"event\":\"drain\",\"kind\":\"node\",\"name\":\"n1\",\"reason\":\"unheard: x\","
		 "\"drained\":true}");
	peer_answer(line, "\"ok\":true,\"ready\":false,\"uncertain\":false,\"missing\":\"n1\"");
	json_object_put(line);
	until(ocs_controller_failures);
	assert_true(ocs_controller_failure(&failure));
	assert_true(failure.job == 7 && failure.again && failure.kind == OCS_NO_CIRCUITS);
	assert_non_null(strstr(failure.text, "n1 did not ask ocsd for circuits"));
	free(failure.name);
	free(failure.text);
	{
		struct ocs_controller_request request = ask(9, "tpu", "shape=4x4x4");
		uint64_t usable[2] = { 0 };
		struct ocs_error err;
		int chosen[38];
		bool help;

		mark(usable, 0, 16);
		assert_int_equal(ocs_controller_choose(&request, OCS_RUN_NOW, usable, NULL, 0, 0, 0,
						       chosen, &help, &err),
				 -1);
		assert_non_null(strstr(err.text, "node n1 drained: unheard: x"));
	}
	/* An ocsd that stands by says nothing of the job; one that has seen it end does. */
	ocs_controller_unheard(7, job->epoch, "n[0-1]");
	line = peer_hear("unheard");
	peer_answer(line, "\"ok\":false,\"code\":4,\"error\":\"the disk is full\"");
	json_object_put(line);
	ocs_controller_unheard(7, job->epoch, "n[0-1]");
	line = peer_hear("unheard");
	peer_answer(line, "\"ok\":false,\"code\":1,\"error\":\"job 7 has no living allocation\"");
	json_object_put(line);
	until(ocs_controller_failures);
	assert_true(ocs_controller_failure(&failure));
	assert_true(failure.job == 7 && !failure.again && failure.kind == OCS_NO_CIRCUITS);
	assert_string_equal(failure.text, "job 7 has no living allocation");
	free(failure.name);
	free(failure.text);
	assert_false(ocs_controller_failures());
	/* An event that is older than the job; the right one; nothing is told twice. */
	peer_say("{\"event\":\"ready\",\"job\":7,\"epoch\":5}");
	snprintf(text, sizeof(text), "{\"event\":\"ready\",\"job\":7,\"epoch\":%llu}",
		 (unsigned long long)job->epoch);
	peer_say(text);
	until(is_ready);
	assert_true(ocs_controller_readied());
	assert_false(ocs_controller_readied());
	ocs_controller_allocation_free(job);
}

static void test_ready_is_told_again(void **state)
{
	struct ocs_controller_allocation *job = begin(7, "shape=2x2x2");
	struct ocs_controller_request request = ask(9, "tpu", "shape=2x2x2");
	struct ocs_error err;
	char text[256];
	int chosen[38];
	bool help;

	(void)state;
	watched = job->epoch;
	peer_confirm("commit");
	peer_hang_up();
	until(is_down);
	snprintf(text, sizeof(text), "\"ok\":true,\"ready\":[{\"job\":7,\"epoch\":%llu}]",
		 (unsigned long long)job->epoch);
	peer_join(text);
	until(is_ready);
	assert_true(ocs_controller_readied());
	assert_true(choose(&request, OCS_RUN_NOW, chosen, &help, &err) > 0);
	ocs_controller_allocation_free(job);
}

static void test_ocsd_that_never_tells(void **state)
{
	struct ocs_controller_request request = ask(9, "tpu", "shape=2x2x2");
	struct json_object *line;
	struct ocs_error err;
	int chosen[38];
	bool help;

	(void)state;
	peer_hang_up();
	until(is_down);
	peer_accept();
	line = peer_hear("subscribe");
	peer_answer(line, "\"ok\":true,\"max_epoch\":0");
	json_object_put(line);
	until(is_up);
	assert_int_equal(choose(&request, OCS_RUN_NOW, chosen, &help, &err), -1);
	assert_int_equal(err.code, OCS_UNREACHABLE);
	assert_non_null(strstr(err.text, "upgrade ocsd"));
	assert_true(choose(&request, OCS_TEST_ONLY, chosen, &help, &err) > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_ready, start_joined, finish),
		cmocka_unit_test_setup_teardown(test_ready_is_told_again, start_joined, finish),
		cmocka_unit_test_setup_teardown(test_ocsd_that_never_tells, start_joined, finish),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
