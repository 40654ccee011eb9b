/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Switches that fail, strangers at the switches, and ocsd killed at any time. */

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
#include "src/util/net.h"
#include "src/util/text.h"
#include "tests/unit/ocsd/ocsd_rig.h"

/* Four servers with two interfaces: a ring on each of two switches. */
#define PATCHES 8

static void commit(struct ocs_client *client, unsigned int job, unsigned int epoch,
		   const char *nodes)
{
	json_object_put(rig_ask(client,
				"{'op':'commit','job':%u,'epoch':%u,'uid':1000,"
				"'user':'alice','section':'ring','nodes':'%s'}",
				job, epoch, nodes));
}

static void realise(struct ocs_client *client, unsigned int job, const char *nodes,
		    const char *node)
{
	commit(client, job, job * 10, nodes);
	json_object_put(rig_ask(client, "{'op':'apply','job':%u,'epoch':%u,'node':'%s'}", job,
				job * 10, node));
}

static void subscribe(struct ocs_client *client)
{
	json_object_put(rig_ask(client, "{'op':'subscribe'}"));
}

static int patches_of(struct rig *rig, const char *sw)
{
	char *command = ocs_asprintf("status %s", sw);
	char *text = emulator_control(&rig->emulator, command);
	struct json_object *all = json_tokener_parse(text), *one = NULL;
	int count;

	json_object_object_get_ex(all, sw, &one);
	count = (int)rig_number(one, "patches");
	json_object_put(all);
	free(command);
	free(text);
	return count;
}

/* An event with NAME about switch SW in STATE. */
static void switch_event(struct ocs_client *client, const char *sw, const char *state)
{
	struct json_object *event = rig_event(client, "switch");

	assert_string_equal(rig_text(event, "name"), sw);
	assert_string_equal(rig_text(event, "state"), state);
	json_object_put(event);
}

static void silent_in_prolog(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig), *prolog = rig_client(rig);
	struct json_object *event, *reply;

	subscribe(client);
	commit(client, 1, 10, "d[0-3]");
	rig_emulate(rig, "fault direct-1 silent");
	rig_send(prolog, "{'op':'apply','job':1,'epoch':10,'node':'d0'}");
	switch_event(client, "direct-1", "failed");
	event = rig_event(client, "job_failed");
	assert_int_equal(rig_number(event, "job"), 1);
	assert_int_equal(rig_number(event, "epoch"), 10);
	assert_string_equal(rig_text(event, "switch"), "direct-1");
	json_object_put(event);
	/* The node hears nothing until the job has left it. */
	rig_silence(prolog, 200);
	assert_string_equal(rig_job_state(client, 1), "failed");
	/* What the other switch had is gone already. */
	for (int i = 0; i < 6000 && patches_of(rig, "direct-0"); i++)
		usleep(20000);
	assert_int_equal(patches_of(rig, "direct-0"), 0);
	json_object_put(rig_ask(client, "{'op':'end','job':1,'epoch':10,'reason':'requeued'}"));
	reply = rig_reply(prolog);
	assert_false(json_object_get_boolean(json_object_object_get(reply, "ok")));
	assert_true(json_object_get_boolean(json_object_object_get(reply, "gone")));
	assert_string_equal(rig_text(reply, "switch"), "direct-1");
	json_object_put(reply);
	json_object_put(rig_event(client, "released"));
	/* A job that would need the switch fails at once, others go on. */
	commit(client, 2, 20, "d[4-5]");
	rig_send(prolog, "{'op':'apply','job':2,'epoch':20,'node':'d4'}");
	event = rig_event(client, "job_failed");
	assert_int_equal(rig_number(event, "job"), 2);
	json_object_put(event);
	json_object_put(rig_ask(client, "{'op':'gone','job':2,'epoch':20}"));
	json_object_put(rig_reply(prolog));
	/* It returns: up is said, and the ports can be used again. */
	rig_emulate(rig, "fault direct-1 none");
	switch_event(client, "direct-1", "up");
	assert_int_equal(rig_patches(rig), 0);
	realise(client, 3, "d[0-3]", "d0");
	assert_int_equal(rig_patches(rig), PATCHES);
	ocs_client_close(prolog);
	ocs_client_close(client);
}

/* The prolog of a failed job goes away, or asks anew: no harm. */
static void prolog_leaves(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig), *prolog = rig_client(rig);

	subscribe(client);
	commit(client, 1, 10, "d[0-3]");
	rig_emulate(rig, "fault direct-0 refuse");
	rig_send(prolog, "{'op':'apply','job':1,'epoch':10,'node':'d0'}");
	json_object_put(rig_event(client, "job_failed"));
	ocs_client_close(prolog);
	prolog = rig_client(rig);
	rig_send(prolog, "{'op':'apply','job':1,'epoch':10,'node':'d1'}");
	rig_silence(prolog, 200);
	json_object_put(rig_ask(client, "{'op':'end','job':1,'epoch':10,'reason':'x'}"));
	json_object_put(rig_reply(prolog));
	ocs_client_close(prolog);
	/* Whoever subscribes later hears of failures that nobody has handled. */
	commit(client, 2, 20, "d[0-3]");
	rig_send(client, "{'op':'apply','job':2,'epoch':20,'node':'d0'}");
	json_object_put(rig_event(client, "job_failed"));
	prolog = rig_client(rig);
	json_object_put(rig_ask(prolog, "{'op':'subscribe','jobs':[{'job':2,'epoch':20}]}"));
	json_object_put(rig_event(prolog, "job_failed"));
	ocs_client_close(prolog);
	ocs_client_close(client);
	rig_emulate(rig, "fault direct-0 none");
}

/* A change that was made but not answered is found by reading back. */
static void lost_answer(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);

	commit(client, 1, 10, "d[0-3]");
	rig_emulate(rig, "fault direct-0 lost count 1");
	rig_emulate(rig, "fault direct-1 drop count 1");
	json_object_put(rig_ask(client, "{'op':'apply','job':1,'epoch':10,'node':'d0'}"));
	assert_int_equal(rig_patches(rig), PATCHES);
	rig_emulate(rig, "fault direct-0 partial count 1");
	json_object_put(rig_ask(client, "{'op':'release','job':1,'epoch':10}"));
	assert_int_equal(rig_patches(rig), 0);
	rig_emulate(rig, "fault direct-1 partial count 1");
	realise(client, 2, "d[0-3]", "d0");
	assert_int_equal(rig_patches(rig), PATCHES);
	ocs_client_close(client);
}

static void denied(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig), *prolog = rig_client(rig);
	struct json_object *event;

	subscribe(client);
	commit(client, 1, 10, "d[0-3]");
	rig_emulate(rig, "fault direct-0 deny");
	rig_send(prolog, "{'op':'apply','job':1,'epoch':10,'node':'d0'}");
	event = rig_event(client, "job_failed");
	assert_string_equal(rig_text(event, "switch"), "direct-0");
	json_object_put(event);
	rig_emulate(rig, "fault direct-0 none");
	json_object_put(rig_ask(client, "{'op':'end','job':1,'epoch':10,'reason':'x'}"));
	json_object_put(rig_event(client, "released"));
	rig_until_patches(rig, 0);
	rig_until_switch(client, "direct-0", "up");
	realise(client, 2, "d[0-3]", "d0");
	ocs_client_close(prolog);
	ocs_client_close(client);
}

static void silent_in_epilog(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	struct json_object *reply, *list;

	subscribe(client);
	realise(client, 1, "d[0-3]", "d0");
	rig_emulate(rig, "fault direct-1 silent");
	reply = rig_ask(client, "{'op':'release','job':1,'epoch':10}");
	json_object_object_get_ex(reply, "pending", &list);
	assert_int_equal(json_object_array_length(list), 1);
	assert_string_equal(json_object_get_string(json_object_array_get_idx(list, 0)), "direct-1");
	json_object_put(reply);
	assert_int_equal(patches_of(rig, "direct-0"), 0);
	assert_int_equal(patches_of(rig, "direct-1"), 4);
	json_object_put(rig_event(client, "released"));
	/* Not even a restart forgets what must be cut. */
	ocs_client_close(client);
	assert_int_equal(rig_stop_daemon(rig, SIGKILL), -SIGKILL);
	rig_start_daemon(rig);
	client = rig_client(rig);
	subscribe(client);
	rig_until_switch(client, "direct-1", "failed");
	rig_emulate(rig, "fault direct-1 none");
	switch_event(client, "direct-1", "up");
	assert_int_equal(patches_of(rig, "direct-1"), 0);
	/* what was being cut may be cut once more */
	rig_until_forgotten(client, 1);
	ocs_client_close(client);
}

static void killed_while_running(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	int enter;

	realise(client, 1, "d[0-3]", "d0");
	realise(client, 2, "d[4-5]", "d4");
	enter = rig_log_lines(rig, "\"command\"", "ENT-PATCH", NULL);
	ocs_client_close(client);
	assert_int_equal(rig_stop_daemon(rig, SIGKILL), -SIGKILL);
	rig_start_daemon(rig);
	client = rig_client(rig);
	assert_string_equal(rig_job_state(client, 1), "realised");
	assert_string_equal(rig_job_state(client, 2), "realised");
	json_object_put(rig_ask(client, "{'op':'apply','job':1,'epoch':10,'node':'d3'}"));
	json_object_put(rig_ask(client, "{'op':'release','job':2,'epoch':20}"));
	/* Nothing was made anew, nothing but job 2 was cut. */
	assert_int_equal(rig_log_lines(rig, "\"command\"", "ENT-PATCH", NULL), enter);
	assert_int_equal(rig_patches(rig), PATCHES);
	json_object_put(rig_ask(client, "{'op':'release','job':1,'epoch':10}"));
	assert_int_equal(rig_patches(rig), 0);
	ocs_client_close(client);
}

/* Killed at ever later moments of a prolog and of an epilog. */
static void killed_anywhere(void **state)
{
	struct rig *rig = *state;

	rig_emulate(rig, "delay 10");
	for (unsigned int i = 0; i < 12; i++) {
		struct ocs_client *client = rig_client(rig);
		unsigned int job = i + 1;

		commit(client, job, job * 10, "d[0-3]");
		rig_send(client, "{'op':'apply','job':%u,'epoch':%u,'node':'d0'}", job, job * 10);
		usleep(i * 7000);
		rig_stop_daemon(rig, SIGKILL);
		ocs_client_close(client);
		rig_start_daemon(rig);
		client = rig_client(rig);
		json_object_put(rig_ask(client, "{'op':'apply','job':%u,'epoch':%u,'node':'d0'}",
					job, job * 10));
		assert_int_equal(rig_patches(rig), PATCHES);
		rig_send(client, "{'op':'release','job':%u,'epoch':%u}", job, job * 10);
		usleep(i * 7000);
		rig_stop_daemon(rig, SIGKILL);
		ocs_client_close(client);
		rig_start_daemon(rig);
		client = rig_client(rig);
		json_object_put(
			rig_ask(client, "{'op':'release','job':%u,'epoch':%u}", job, job * 10));
		assert_int_equal(rig_patches(rig), 0);
		/* what was being cut may be cut once more */
		rig_until_forgotten(client, job);
		ocs_client_close(client);
	}
}

static void drift_restored(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	struct json_object *reply, *list, *row;
	char *table = NULL;
	int in = 0, out = 0;

	realise(client, 1, "d[0-3]", "d0");
	table = emulator_control(&rig->emulator, "table direct-0");
	assert_int_equal(sscanf(strchr(table, '['), "[[%d,%d]", &in, &out), 2);
	free(table);
	table = ocs_asprintf("unpatch direct-0 %d quietly", in);
	rig_emulate(rig, "%s", table);
	free(table);
	assert_int_equal(rig_patches(rig), PATCHES - 1);
	reply = rig_ask(client, "{'op':'reconcile'}");
	json_object_object_get_ex(reply, "drift", &list);
	assert_int_equal(json_object_array_length(list), 1);
	row = json_object_array_get_idx(list, 0);
	assert_string_equal(rig_text(row, "switch"), "direct-0");
	assert_string_equal(rig_text(row, "what"), "missing");
	assert_int_equal(rig_number(row, "in"), in);
	assert_int_equal(rig_number(row, "out"), out);
	json_object_put(reply);
	assert_int_equal(rig_patches(rig), PATCHES);
	reply = rig_ask(client, "{'op':'reconcile'}");
	json_object_object_get_ex(reply, "drift", &list);
	assert_int_equal(json_object_array_length(list), 0);
	json_object_put(reply);
	ocs_client_close(client);
}

/* Found by polling alone: a switch that forgot everything. */
static void reboot_restored(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);

	subscribe(client);
	realise(client, 1, "d[0-3]", "d0");
	rig_emulate(rig, "reboot direct-0 dark 100");
	rig_until_patches(rig, PATCHES);
	rig_until_switch(client, "direct-0", "up");
	assert_string_equal(rig_job_state(client, 1), "realised");
	ocs_client_close(client);
}

static int setup_polling(void **state)
{
	return rig_setup_with(state, NULL, NULL, 100);
}

static void foreign_patch(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	struct json_object *event, *reply, *list;

	subscribe(client);
	/* Somebody joins d0 and d5 by hand: port 1 to egress 22. */
	rig_emulate(rig, "patch direct-0 1 22");
	event = rig_event(client, "drain");
	assert_string_equal(rig_text(event, "kind"), "port");
	assert_string_equal(rig_text(event, "name"), "direct-0:1");
	json_object_put(event);
	event = rig_event(client, "drain");
	assert_string_equal(rig_text(event, "name"), "direct-0:6");
	json_object_put(event);
	reply = rig_ask(client, "{'op':'show','what':'port','name':'direct-0:6'}");
	json_object_object_get_ex(reply, "ports", &list);
	assert_string_equal(rig_text(json_object_array_get_idx(list, 0), "state"), "INVALID");
	json_object_put(reply);
	reply = rig_ask(client, "{'op':'reconcile'}");
	json_object_object_get_ex(reply, "drift", &list);
	assert_int_equal(json_object_array_length(list), 1);
	assert_string_equal(rig_text(json_object_array_get_idx(list, 0), "what"), "foreign");
	json_object_put(reply);
	/* A job that needs the port is refused; its neighbour is not. */
	realise(client, 1, "d[1-4]", "d1");
	json_object_put(rig_ask(client, "{'op':'release','job':1,'epoch':10}"));
	json_object_put(rig_refused(client, 4, "not ours",
				    "{'op':'commit','job':2,'epoch':20,'uid':1000,"
				    "'user':'alice','section':'ring','nodes':'d[0-3]'}"));
	/* The stranger's patch is where it was, also after a restart. */
	ocs_client_close(client);
	assert_int_equal(rig_stop_daemon(rig, SIGTERM), 0);
	rig_start_daemon(rig);
	client = rig_client(rig);
	rig_until_patches(rig, 1);
	assert_int_equal(rig_log_lines(rig, "\"break\"", "\"in\":1,\"out\":22", NULL), 0);
	reply = rig_ask(client, "{'op':'subscribe'}");
	json_object_object_get_ex(reply, "drains", &list);
	assert_int_equal(json_object_array_length(list), 2);
	json_object_put(reply);
	rig_emulate(rig, "unpatch direct-0 1");
	event = rig_event(client, "drain");
	assert_false(json_object_get_boolean(json_object_object_get(event, "drained")));
	json_object_put(event);
	json_object_put(rig_event(client, "drain"));
	realise(client, 3, "d[0-3]", "d0");
	ocs_client_close(client);
}

/* A patch that no poll has seen yet: only the job that needs its port fails. */
static void unseen_patch(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig), *prolog = rig_client(rig);
	struct json_object *event, *reply;

	subscribe(client);
	commit(client, 1, 10, "d[0-3]");
	commit(client, 2, 20, "d[4-5]");
	rig_emulate(rig, "patch direct-0 1 32 quietly");
	rig_send(client, "{'op':'apply','job':1,'epoch':10,'node':'d0'}");
	rig_send(prolog, "{'op':'apply','job':2,'epoch':20,'node':'d4'}");
	reply = rig_reply(prolog);
	assert_true(json_object_get_boolean(json_object_object_get(reply, "ok")));
	json_object_put(reply);
	event = rig_event(client, "job_failed");
	assert_int_equal(rig_number(event, "job"), 1);
	assert_non_null(strstr(rig_text(event, "error"), "1>32"));
	json_object_put(event);
	rig_until_switch(client, "direct-0", "up");
	json_object_put(rig_ask(client, "{'op':'gone','job':1,'epoch':10}"));
	json_object_put(rig_event(client, "released"));
	json_object_put(rig_ask(client, "{'op':'release','job':2,'epoch':20}"));
	rig_until_patches(rig, 1);
	assert_int_equal(rig_log_lines(rig, "\"event\":\"disconnect\"", "direct-0", NULL), 0);
	ocs_client_close(prolog);
	ocs_client_close(client);
}

/* Somebody takes ports of a running job's two servers until it cannot be repaired:
 * slurmctld is told, the patches stay. */
static void stolen_port(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	struct json_object *event;
	char *table, *command;
	int in = 0, out = 0;

	subscribe(client);
	/* Two servers are joined by a circuit on each switch. */
	realise(client, 1, "d[0-1]", "d0");
	for (int sw = 0; sw < 2; sw++) {
		command = ocs_asprintf("table direct-%d", sw);
		table = emulator_control(&rig->emulator, command);
		free(command);
		assert_int_equal(sscanf(strchr(table, '['), "[[%d,%d]", &in, &out), 2);
		free(table);
		/* A hand at the switch breaks what is in its way. */
		rig_emulate(rig, "patch direct-%d %d 32", sw, in);
		event = rig_event(client, sw ? "circuit_failed" : "plan");
		assert_int_equal(rig_number(event, "job"), 1);
		json_object_put(event);
	}
	json_object_put(rig_ask(client, "{'op':'gone','job':1,'epoch':10}"));
	json_object_put(rig_event(client, "released"));
	assert_int_equal(rig_patches(rig), 2);
	ocs_client_close(client);
}

/* A switch that fails in another way than before: whoever listens hears of that, too, but not
 * at every retry. */
static void failed_otherwise(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	struct json_object *first, *second;
	int64_t told_ns;

	subscribe(client);
	rig_emulate(rig, "fault direct-1 silent");
	json_object_put(rig_ask(client, "{'op':'reconcile'}"));
	first = rig_event(client, "switch");
	told_ns = ocs_now_ns();
	assert_string_equal(rig_text(first, "state"), "failed");
	rig_emulate(rig, "fault direct-1 drop");
	second = rig_event(client, "switch");
	assert_string_equal(rig_text(second, "name"), "direct-1");
	assert_string_equal(rig_text(second, "state"), "failed");
	assert_string_not_equal(rig_text(first, "reason"), rig_text(second, "reason"));
	/* It is tried every 200 ms. */
	assert_true(ocs_now_ns() - told_ns > 3 * INT64_C(1000000000));
	rig_silence(client, 1000);
	rig_emulate(rig, "fault direct-1 none");
	switch_event(client, "direct-1", "up");
	json_object_put(first);
	json_object_put(second);
	ocs_client_close(client);
}

static void damaged_database(void **state)
{
	struct rig *rig = *state;
	char *path = ocs_asprintf("%s/state/ocsd.db", rig->emulator.folder), *output;
	struct ocs_client *client = rig_client(rig);
	struct ocs_error err;
	char garbage[8192];

	realise(client, 1, "d[0-3]", "d0");
	ocs_client_close(client);
	/* A second daemon on the same folder is refused. */
	{
		pid_t first = rig->daemon;

		assert_int_equal(rig_run_daemon(rig, &output), 1);
		assert_non_null(strstr(output, "another ocsd is using"));
		free(output);
		rig->daemon = first;
	}
	assert_int_equal(rig_stop_daemon(rig, SIGTERM), 0);
	memset(garbage, 'x', sizeof(garbage));
	assert_int_equal(ocs_file_write(path, garbage, sizeof(garbage), 0600, &err), 0);
	assert_int_equal(rig_run_daemon(rig, &output), 1);
	assert_non_null(strstr(output, "is damaged: move it"));
	free(output);
	/* As advised: moved away, and slurmctld tells what runs. */
	assert_int_equal(unlink(path), 0);
	rig_start_daemon(rig);
	client = rig_client(rig);
	assert_int_equal(rig_patches(rig), PATCHES);
	json_object_put(rig_ask(client, "{'op':'subscribe','jobs':[{'job':1,'epoch':10}]}"));
	commit(client, 1, 10, "d[0-3]");
	rig_until_job(client, 1, "realised");
	assert_int_equal(rig_log_lines(rig, "\"command\"", "ENT-PATCH", NULL), 2);
	json_object_put(rig_ask(client, "{'op':'release','job':1,'epoch':10}"));
	assert_int_equal(rig_patches(rig), 0);
	ocs_client_close(client);
	free(path);
}

/* The database is lost and a switch is silent: a running job is not killed. */
static void running_without_switch(void **state)
{
	struct rig *rig = *state;
	char *path = ocs_asprintf("%s/state/ocsd.db", rig->emulator.folder);
	struct ocs_client *client = rig_client(rig);

	realise(client, 1, "d[0-3]", "d0");
	ocs_client_close(client);
	assert_int_equal(rig_stop_daemon(rig, SIGTERM), 0);
	assert_int_equal(unlink(path), 0);
	rig_emulate(rig, "fault direct-1 silent");
	rig_start_daemon(rig);
	client = rig_client(rig);
	json_object_put(rig_ask(client, "{'op':'subscribe','jobs':[{'job':1,'epoch':10}]}"));
	commit(client, 1, 10, "d[0-3]");
	for (int i = 0; i < 40; i++) {
		assert_string_equal(rig_job_state(client, 1), "applying");
		usleep(20000);
	}
	rig_emulate(rig, "fault direct-1 none");
	rig_until_switch(client, "direct-1", "up");
	rig_until_job(client, 1, "realised");
	assert_int_equal(rig_log_lines(rig, "\"command\"", "ENT-PATCH", NULL), 2);
	assert_int_equal(rig_patches(rig), PATCHES);
	ocs_client_close(client);
	free(path);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(silent_in_prolog, rig_setup, rig_teardown),
	cmocka_unit_test_setup_teardown(prolog_leaves, rig_setup, rig_teardown),
	cmocka_unit_test_setup_teardown(lost_answer, rig_setup, rig_teardown),
	cmocka_unit_test_setup_teardown(denied, rig_setup, rig_teardown),
	cmocka_unit_test_setup_teardown(silent_in_epilog, rig_setup, rig_teardown),
	cmocka_unit_test_setup_teardown(killed_while_running, rig_setup, rig_teardown),
	cmocka_unit_test_setup_teardown(killed_anywhere, rig_setup, rig_teardown),
	cmocka_unit_test_setup_teardown(drift_restored, rig_setup, rig_teardown),
	cmocka_unit_test_setup_teardown(reboot_restored, setup_polling, rig_teardown),
	cmocka_unit_test_setup_teardown(foreign_patch, setup_polling, rig_teardown),
	cmocka_unit_test_setup_teardown(unseen_patch, rig_setup, rig_teardown),
	cmocka_unit_test_setup_teardown(stolen_port, setup_polling, rig_teardown),
	cmocka_unit_test_setup_teardown(failed_otherwise, rig_setup, rig_teardown),
	cmocka_unit_test_setup_teardown(damaged_database, rig_setup, rig_teardown),
	cmocka_unit_test_setup_teardown(running_without_switch, rig_setup, rig_teardown),
};

int main(void)
{
	return cmocka_run_group_tests_name("ocsd: faults", tests, NULL, NULL);
}
