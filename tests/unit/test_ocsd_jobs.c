/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The life of allocations, with switches that behave. */

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "src/util/text.h"
#include "tests/unit/ocsd_rig.h"

/* 2x2x4 over two cubes: its z rings of four use both cubes' z faces, four
 * positions with two circuits each, and x and y (extent 2) none: 8 circuits. */
#define CIRCUITS 8
#define PATCHES 16

static void commit(struct ocs_client *client, unsigned int job, unsigned int epoch,
		   const char *nodes, const char *placement)
{
	json_object_put(rig_ask(client, "{'op':'commit','job':%u,'epoch':%u,'uid':1000,"
				"'user':'alice','section':'pod','partition':'tpu','nodes':'%s',"
				"'shape':'2x2x4','conn':'torus,torus,torus','placement':'%s'}",
				job, epoch, nodes, placement));
}

static void commit_apply_release(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	struct json_object *reply, *list;
	char *nodes, *placement = rig_place(rig, "2x2x4", NULL, &nodes);

	reply = rig_ask(client, "{'op':'subscribe','jobs':[]}");
	assert_int_equal(rig_number(reply, "max_epoch"), 0);
	json_object_object_get_ex(reply, "switches", &list);
	assert_int_equal(json_object_array_length(list), 16);
	json_object_put(reply);
	commit(client, 7, 70, nodes, placement);
	commit(client, 7, 70, nodes, placement); /* idempotent */
	assert_string_equal(rig_job_state(client, 7), "committed");
	assert_int_equal(rig_patches(rig), 0);

	reply = rig_ask(client, "{'op':'apply','job':7,'epoch':70,'node':'n0'}");
	assert_int_equal(rig_number(reply, "circuits"), CIRCUITS);
	json_object_put(reply);
	assert_int_equal(rig_patches(rig), PATCHES);
	assert_string_equal(rig_job_state(client, 7), "realised");
	reply = rig_ask(client, "{'op':'show','what':'circuit','name':'7'}");
	json_object_object_get_ex(reply, "circuits", &list);
	assert_int_equal(json_object_array_length(list), CIRCUITS);
	for (size_t i = 0; i < CIRCUITS; i++) {
		struct json_object *row = json_object_array_get_idx(list, i);

		assert_string_equal(rig_text(row, "state"), "CONNECTED");
		assert_non_null(strstr(rig_text(row, "a_label"), "+"));
		assert_non_null(strstr(rig_text(row, "b_label"), "-"));
	}
	json_object_put(reply);

	/* The end alone cuts nothing: the nodes still have their epilogs. */
	json_object_put(rig_ask(client, "{'op':'end','job':7,'epoch':70,'reason':'done'}"));
	assert_int_equal(rig_patches(rig), PATCHES);
	for (int n = 0; n < 7; n++)
		json_object_put(rig_ask(client, "{'op':'release','job':7,'epoch':70,'node':'n%d'}", n));
	assert_int_equal(rig_patches(rig), PATCHES);
	assert_string_equal(rig_job_state(client, 7), "ended");
	reply = rig_ask(client, "{'op':'release','job':7,'epoch':70,'node':'n7'}");
	json_object_object_get_ex(reply, "pending", &list);
	assert_int_equal(json_object_array_length(list), 0);
	json_object_put(reply);
	assert_int_equal(rig_patches(rig), 0);
	reply = rig_event(client, "released");
	assert_int_equal(rig_number(reply, "job"), 7);
	assert_int_equal(rig_number(reply, "epoch"), 70);
	json_object_put(reply);
	assert_string_equal(rig_job_state(client, 7), "");

	/* Late and repeated requests of an ended allocation. */
	json_object_put(rig_ask(client, "{'op':'release','job':7,'epoch':0}"));
	reply = rig_refused(client, 1, "has ended",
			    "{'op':'apply','job':7,'epoch':70,'node':'n0'}");
	assert_true(json_object_get_boolean(json_object_object_get(reply, "gone")));
	json_object_put(reply);
	json_object_put(rig_refused(client, 1, "not newer",
				    "{'op':'commit','job':7,'epoch':69,'section':'pod',"
				    "'nodes':'%s','placement':'%s'}", nodes, placement));
	ocs_client_close(client);
	free(nodes);
	free(placement);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(commit_apply_release, rig_setup, rig_teardown),
};

int main(void)
{
	return cmocka_run_group_tests_name("ocsd: jobs", tests, NULL, NULL);
}
