/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Ports that a switch refuses: what needs them fails or waits, the rest goes on. */

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "src/util/error.h"
#include "src/util/text.h"
#include "tests/unit/ocsd_rig.h"

#define OK "{\"ok\":true}"

static int setup_polling(void **state)
{
	struct rig *rig = ocs_calloc(1, sizeof(*rig));

	rig_prepare(rig);
	rig->poll_ms = 1000;
	rig_start(rig);
	*state = rig;
	return 0;
}

static void commit(struct ocs_client *client, unsigned int job, const char *nodes)
{
	json_object_put(rig_ask(client, "{'op':'commit','job':%u,'epoch':%u,'uid':1000,"
				"'user':'alice','section':'ring','nodes':'%s'}", job, job * 10,
				nodes));
}

static void drained(struct ocs_client *client, const char *name, const char *part)
{
	struct json_object *event = rig_event(client, "drain");

	assert_string_equal(rig_text(event, "kind"), "port");
	assert_string_equal(rig_text(event, "name"), name);
	if (!strstr(rig_text(event, "reason"), part))
		fail_msg("'%s' does not say '%s'", rig_text(event, "reason"), part);
	json_object_put(event);
}

static void emulate(struct rig *rig, const char *command)
{
	emulator_says(&rig->emulator, command, OK);
}

/* One bad port in a batch of two jobs: one job fails and names the switch, the
 * other has its circuits, and the switch stays up. */
static void refused_add(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig), *one = rig_client(rig), *two = rig_client(rig);
	struct json_object *event;

	json_object_put(rig_ask(client, "{'op':'subscribe'}"));
	commit(client, 1, "d[0-3]");
	commit(client, 2, "d[4-5]");
	emulate(rig, "port direct-0 2 refuse");
	rig_send(one, "{'op':'apply','job':1,'epoch':10,'node':'d0'}");
	rig_send(two, "{'op':'apply','job':2,'epoch':20,'node':'d4'}");
	drained(client, "direct-0:2", "quarantine: the switch refused the patch ");
	event = rig_event(client, "job_failed");
	assert_string_equal(rig_text(event, "switch"), "direct-0");
	assert_int_equal(rig_number(event, "job"), 1);
	assert_non_null(strstr(json_object_to_json_string_ext(event, JSON_C_TO_STRING_PLAIN),
			       "\"ports\":[\"direct-0:2\"]"));
	json_object_put(event);
	json_object_put(rig_reply(two));
	assert_string_equal(rig_job_state(client, 2), "realised");
	json_object_put(rig_ask(client, "{'op':'end','job':1,'epoch':10,'reason':'x'}"));
	json_object_put(rig_event(client, "released"));
	rig_until_patches(rig, 4);
	rig_until_switch(client, "direct-0", "up");
	/* It is remembered. */
	ocs_client_close(client);
	assert_int_equal(rig_stop_daemon(rig, SIGKILL), -SIGKILL);
	rig_start_daemon(rig);
	client = rig_client(rig);
	event = rig_ask(client, "{'op':'show','what':'port','name':'direct-0:2'}");
	assert_non_null(strstr(json_object_to_json_string(event), "DRAINED"));
	json_object_put(event);
	json_object_put(rig_ask(client, "{'op':'resume','kind':'port','name':'direct-0:2'}"));
	emulate(rig, "port direct-0 2 good");
	commit(client, 3, "d[0-3]");
	json_object_put(rig_ask(client, "{'op':'apply','job':3,'epoch':30,'node':'d0'}"));
	assert_int_equal(rig_patches(rig), 12);
	ocs_client_close(client);
	ocs_client_close(one);
	ocs_client_close(two);
}

/* A circuit that the switch will not cut: everything else goes, the job's nodes
 * are let go, and the poll tries again. */
static void refused_delete(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	struct json_object *reply, *list;

	json_object_put(rig_ask(client, "{'op':'subscribe'}"));
	commit(client, 1, "d[0-3]");
	json_object_put(rig_ask(client, "{'op':'apply','job':1,'epoch':10,'node':'d0'}"));
	emulate(rig, "port direct-1 18 refuse");
	reply = rig_ask(client, "{'op':'release','job':1,'epoch':10}");
	json_object_object_get_ex(reply, "pending", &list);
	assert_int_equal(json_object_array_length(list), 1);
	assert_string_equal(json_object_get_string(json_object_array_get_idx(list, 0)), "direct-1");
	json_object_put(reply);
	drained(client, "direct-1:2", "refused the patch");
	json_object_put(rig_event(client, "released"));
	assert_int_equal(rig_patches(rig), 1);
	rig_until_switch(client, "direct-1", "up");
	emulate(rig, "port direct-1 18 good");
	rig_until_patches(rig, 0);
	for (int i = 0; i < 200 && *rig_job_state(client, 1); i++)
		usleep(20000);
	assert_string_equal(rig_job_state(client, 1), "");
	ocs_client_close(client);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(refused_add, rig_setup, rig_teardown),
	cmocka_unit_test_setup_teardown(refused_delete, setup_polling, rig_teardown),
};

int main(void)
{
	return cmocka_run_group_tests_name("ocsd: ports", tests, NULL, NULL);
}
