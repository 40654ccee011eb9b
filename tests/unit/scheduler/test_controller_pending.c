/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* What a waiting job waits for, as slurmctld keeps it and tells ocsd. */

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

static void test_pending(void **state)
{
	struct ocs_controller_waiting waiting[4];
	struct json_object *line;

	(void)state;
	assert_false(ocs_controller_pending(5, 1000, "ada", "4x4x4", "needs a cube", false));
	line = peer_hear("pending");
	assert_string_equal(text_in(line, "reason"), "needs a cube");
	assert_string_equal(text_in(line, "user"), "ada");
	assert_string_equal(text_in(line, "shape"), "4x4x4");
	peer_answer(line, "\"ok\":true");
	json_object_put(line);
	/* No news. */
	assert_true(ocs_controller_pending(5, 1000, "ada", "4x4x4", "needs a cube", false));
	ocs_controller_pending(5, 1000, "ada", "4x4x4", "needs two", true);
	line = peer_hear("pending");
	assert_string_equal(text_in(line, "reason"), "needs two");
	peer_answer(line, "\"ok\":true");
	json_object_put(line);
	assert_int_equal(ocs_controller_waiting(waiting, 4), 1);
	assert_int_equal(waiting[0].job, 5);
	assert_true(waiting[0].blocked);
	assert_string_equal(waiting[0].reason, "needs two");
	free(waiting[0].reason);
	/* After a loss of the connection it is said again. */
	peer_hang_up();
	until(is_down);
	peer_join("\"ok\":true");
	peer_confirm("pending");
	ocs_controller_pending_clear(5);
	line = peer_hear("pending");
	assert_null(json_object_object_get(line, "reason"));
	peer_answer(line, "\"ok\":true");
	json_object_put(line);
	assert_int_equal(ocs_controller_waiting(waiting, 4), 0);
	/* What ended while ocsd was away is taken back there, too. */
	ocs_controller_pending(6, 1000, "ada", "4x4x4", "needs a cube", false);
	peer_confirm("pending");
	peer_hang_up();
	until(is_down);
	ocs_controller_pending_clear(6);
	peer_join("\"ok\":true,\"pending\":[6]");
	until(is_up);
	assert_int_equal(ocs_controller_waiting(waiting, 4), 1);
	assert_int_equal(waiting[0].job, 6);
	assert_null(waiting[0].reason);
	ocs_controller_pending_clear(6);
	line = peer_hear("pending");
	assert_int_equal(json_object_get_int64(json_object_object_get(line, "job")), 6);
	assert_null(json_object_object_get(line, "reason"));
	peer_answer(line, "\"ok\":true");
	json_object_put(line);
	assert_int_equal(ocs_controller_waiting(waiting, 4), 0);
}

/* What would fit instead is looked for behind the scheduler's back, and forgotten when the
 * reason is another one. */
static void test_pending_names_what_fits(void **state)
{
	struct ocs_controller_request request = ask(5, "tpu", "shape=4x4x4");
	struct ocs_controller_waiting waiting[4];
	uint64_t usable[2] = { 0 };
	struct json_object *line;
	struct ocs_error err;
	int chosen[38], named;
	bool help;

	(void)state;
	for (int i = 0; i < 4; i++) { /* a 2x2x4 column */
		int node = ocs_controller_node("n0") + i;

		usable[node / 64] |= UINT64_C(1) << node % 64;
	}
	/* another choice follows: nothing is looked for yet */
	request.tentative = true;
	assert_int_equal(ocs_controller_choose(&request, OCS_RUN_NOW, usable, NULL, 0, 0, 0, chosen,
					       &help, &err),
			 -1);
	request.tentative = false;
	ocs_controller_near();
	assert_int_equal(ocs_controller_waiting(waiting, 4), 0);
	for (int again = 0; again < 2; again++) {
		assert_int_equal(ocs_controller_choose(&request, OCS_RUN_NOW, usable, NULL, 0, 0, 0,
						       chosen, &help, &err),
				 -1);
		assert_string_equal(err.text, "needs a cube that is wholly free; none is free");
		ocs_controller_pending(5, 1000, "ada", "4x4x4", err.text, false);
		ocs_controller_near();
		assert_int_equal(ocs_controller_waiting(waiting, 4), 1);
		assert_string_equal(waiting[0].reason,
				    "needs a cube that is wholly free; none is free"
				    "; would fit now: 4x2x2, 4x4x1, 2x2x2");
		free(waiting[0].reason);
		if (again)
			break; /* the same question is not asked twice */
		line = peer_hear("pending");
		assert_string_equal(text_in(line, "reason"), err.text);
		peer_answer(line, "\"ok\":true");
		json_object_put(line);
		line = peer_hear("pending");
		assert_non_null(strstr(text_in(line, "reason"), "would fit now: 4x2x2"));
		peer_answer(line, "\"ok\":true");
		json_object_put(line);
	}
	/* Nodes asked for by name: nothing else is looked for. */
	named = ocs_controller_node("n9");
	assert_int_equal(ocs_controller_choose(&request, OCS_RUN_NOW, usable, &named, 1, 0, 0,
					       chosen, &help, &err),
			 -1);
	ocs_controller_pending(5, 1000, "ada", "4x4x4", "something else", false);
	ocs_controller_near();
	assert_int_equal(ocs_controller_waiting(waiting, 4), 1);
	assert_string_equal(waiting[0].reason, "something else");
	free(waiting[0].reason);
	peer_confirm("pending");
}

/* Without ocs.yaml jobs wait whose partition gave circuits to all of its jobs. */
static void test_partitions(void **state)
{
	static const char *const damages[] = { "cut short", "absent" };
	char folder[] = "/tmp/ocs-kept-XXXXXX", *copy, *names, *text;
	struct ocs_controller_request request;
	struct ocs_error err;
	size_t length;

	(void)state;
	assert_non_null(mkdtemp(folder));
	copy = ocs_asprintf("%s/ocs.yaml", folder);
	names = ocs_asprintf("%s/ocs.partitions", folder);
	assert_int_equal(ocs_controller_copy(copy, names, &err), 0);
	ocs_controller_close();
	assert_int_equal(ocs_controller_close_kept(names, "ocs.yaml:3: no", &err), 0);
	assert_true(ocs_controller_partitions_known());
	assert_int_equal(ocs_controller_request(1, "tpu", NULL, &request, &err), 0);
	assert_int_equal(ocs_controller_request(1, NULL, NULL, &request, &err), 0);
	assert_int_equal(ocs_controller_request(1, "direct", NULL, &request, &err), -1);
	assert_int_equal(err.code, OCS_NOT_NOW);
	assert_string_equal(err.text, "no job of partition direct starts until ocs.yaml can be "
				      "read: ocs.yaml:3: no");
	assert_int_equal(ocs_controller_request(1, "tpu", "shape=2x2x2", &request, &err), -1);
	assert_non_null(strstr(err.text, "no shape is served"));
	text = ocs_file_read(names, 1 << 20, &length, &err);
	for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
		assert_int_equal(i ? unlink(names) :
				     ocs_file_write(names, text, length - 30, 0600, &err),
				 0);
		assert_int_equal(ocs_controller_close_kept(names, "no", &err), -1);
		assert_false(ocs_controller_partitions_known());
		assert_int_equal(ocs_controller_request(1, "direct", NULL, &request, &err), 0);
	}
	unlink(copy);
	rmdir(folder);
	free(text);
	free(names);
	free(copy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_pending, start_joined, finish),
		cmocka_unit_test_setup_teardown(test_pending_names_what_fits, start_joined, finish),
		cmocka_unit_test_setup_teardown(test_partitions, start, finish),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
