/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* What happens to circuits that are half changed: the job ends, the switch fails, ocsd is killed
 * (for repairs that is in test_ocsd_repair, for look-ahead in test_ocsd_ahead). */

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "src/util/error.h"
#include "tests/unit/ocsd/ocsd_rig.h"

static void port_fail(struct ocs_client *client, const char *port)
{
	json_object_put(rig_ask(
		client, "{'op':'fail','kind':'port','name':'%s','reason':'no light'}", port));
}

/* A job under repair, whose switch quad-0 answers nothing: what goes is not gone yet. */
static void begin_repair(struct rig *rig, struct ocs_client *client)
{
	rig_commit(client, 1, "quad", "q[0-5]");
	rig_apply(client, 1, "q0");
	rig_emulate(rig, "fault quad-0 silent");
	port_fail(client, "quad-0:1");
	rig_until_job(client, 1, "repairing");
}

/* The job ends while a repair waits for a cut: what was planned is never made. */
static void ends_within(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	struct json_object *event;

	json_object_put(rig_ask(client, "{'op':'subscribe'}"));
	begin_repair(rig, client);
	json_object_put(rig_ask(client, "{'op':'end','job':1,'epoch':10}"));
	assert_string_equal(rig_job_state(client, 1), "ended");
	rig_until_switch(client, "quad-0", "failed");
	rig_emulate(rig, "fault quad-0 none");
	rig_until_switch(client, "quad-0", "up");
	json_object_put(rig_ask(client, "{'op':'release','job':1,'epoch':10}"));
	event = rig_event(client, "released");
	assert_int_equal(rig_number(event, "job"), 1);
	json_object_put(event);
	rig_until_forgotten(client, 1);
	assert_int_equal(rig_patches(rig), 0);
	/* Its ports are free for the next one. */
	rig_commit(client, 2, "quad", "q[0-5]");
	rig_apply(client, 2, "q0");
	ocs_client_close(client);
}

/* The switch fails while a repair waits for it: the job runs on, and the repair ends when the switch
 * is back. */
static void switch_fails(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	struct json_object *event;

	json_object_put(rig_ask(client, "{'op':'subscribe'}"));
	begin_repair(rig, client);
	rig_until_switch(client, "quad-0", "failed");
	assert_string_equal(rig_job_state(client, 1), "repairing");
	rig_emulate(rig, "fault quad-0 none");
	event = rig_event(client, "plan");
	assert_int_equal(rig_number(event, "revision"), 2);
	json_object_put(event);
	assert_string_equal(rig_job_state(client, 1), "realised");
	json_object_put(rig_ask(client, "{'op':'release','job':1,'epoch':10}"));
	rig_until_patches(rig, 0);
	ocs_client_close(client);
}

/* ocsd is killed there, and the job has ended when the switch is back. */
static void killed_and_ended(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);

	begin_repair(rig, client);
	rig_stop_daemon(rig, SIGKILL);
	ocs_client_close(client);
	rig_start_daemon(rig);
	client = rig_client(rig);
	assert_string_equal(rig_job_state(client, 1), "repairing");
	json_object_put(rig_ask(client, "{'op':'gone','job':1,'epoch':10}"));
	rig_emulate(rig, "fault quad-0 none");
	rig_until_forgotten(client, 1);
	assert_int_equal(rig_patches(rig), 0);
	ocs_client_close(client);
}

/* Under a first realisation: the job fails, and what was made on the other switches is cut. */
static void first_fails(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	struct json_object *event;

	json_object_put(rig_ask(client, "{'op':'subscribe'}"));
	rig_emulate(rig, "fault quad-0 silent");
	rig_commit(client, 1, "quad", "q[0-5]");
	rig_send(client, "{'op':'apply','id':9,'job':1,'epoch':10,'node':'q0'}");
	event = rig_event(client, "job_failed");
	assert_string_equal(rig_text(event, "switch"), "quad-0");
	json_object_put(event);
	assert_string_equal(rig_job_state(client, 1), "failed");
	/* A switch that is known to have failed is not waited for. */
	rig_commit(client, 2, "quad", "q[6-7]");
	rig_send(client, "{'op':'apply','id':10,'job':2,'epoch':20,'node':'q6'}");
	json_object_put(rig_event(client, "job_failed"));
	rig_emulate(rig, "fault quad-0 none");
	rig_until_switch(client, "quad-0", "up");
	json_object_put(rig_ask(client, "{'op':'end','job':1,'epoch':10}"));
	json_object_put(rig_ask(client, "{'op':'end','job':2,'epoch':20}"));
	rig_until_forgotten(client, 1);
	rig_until_forgotten(client, 2);
	assert_int_equal(rig_patches(rig), 0);
	ocs_client_close(client);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, rig_setup_quad, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(ends_within),
		CASE(switch_fails),
		CASE(killed_and_ended),
		CASE(first_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
