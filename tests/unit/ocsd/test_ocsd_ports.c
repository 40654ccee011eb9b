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
#include "src/util/net.h"
#include "src/util/text.h"
#include "tests/unit/ocsd/ocsd_rig.h"

static int setup_polling(void **state)
{
	return rig_setup_with(state, NULL, NULL, 1000);
}

static int setup_quick(void **state)
{
	return rig_setup_with(state, NULL, NULL, 100);
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

/* One bad port in a batch of two jobs: one job fails and names the switch, the
 * other has its circuits, and the switch stays up. */
static void refused_add(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig), *one = rig_client(rig), *two = rig_client(rig);
	struct json_object *event;

	json_object_put(rig_ask(client, "{'op':'subscribe'}"));
	rig_commit(client, 1, "ring", "d[0-3]");
	rig_commit(client, 2, "ring", "d[4-5]");
	rig_emulate(rig, "port direct-0 2 refuse");
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
	rig_emulate(rig, "port direct-0 2 good");
	rig_commit(client, 3, "ring", "d[0-3]");
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
	rig_commit(client, 1, "ring", "d[0-3]");
	json_object_put(rig_ask(client, "{'op':'apply','job':1,'epoch':10,'node':'d0'}"));
	rig_emulate(rig, "port direct-1 18 refuse");
	reply = rig_ask(client, "{'op':'release','job':1,'epoch':10}");
	json_object_object_get_ex(reply, "pending", &list);
	assert_int_equal(json_object_array_length(list), 1);
	assert_string_equal(json_object_get_string(json_object_array_get_idx(list, 0)), "direct-1");
	json_object_put(reply);
	drained(client, "direct-1:2", "refused the patch");
	json_object_put(rig_event(client, "released"));
	assert_int_equal(rig_patches(rig), 1);
	rig_until_switch(client, "direct-1", "up");
	rig_emulate(rig, "port direct-1 18 good");
	rig_until_patches(rig, 0);
	rig_until_forgotten(client, 1);
	ocs_client_close(client);
}

/* Two switches that can be asked for power, with loop ports. */
static const char switches[] =
	"  - {name: loop-0, driver: scpi, address: \"unix:%1$s/loop-0\", size: 16,\n"
	"     loop_ports: [15, 16], loss_budget: 1.0, loss_max: 3.5}\n"
	"  - {name: loop-1, driver: tl1, dialect: calient, address: \"unix:%1$s/loop-1\", size: 16,\n"
	"     credentials: \"%1$s/credentials\", loop_ports: [15, 16], loss_budget: 1.0}\n";
static const char fabrics[] =
	"  - {name: spare, kind: direct, partitions: [spare], nodes: 'e[0-3]', degree: 2,\n"
	"     ports: {switch: \"loop-{interface}\", port: server+1}}\n";

static int setup_loops(void **state)
{
	return rig_setup_with(state, switches, fabrics, 100);
}

/* A port as ocsd shows it; the caller puts it. */
static struct json_object *port_of(struct ocs_client *client, const char *name)
{
	struct json_object *reply =
		rig_ask(client, "{'op':'show','what':'port','name':'%s'}", name);
	struct json_object *list = NULL, *row;

	json_object_object_get_ex(reply, "ports", &list);
	assert_int_equal(json_object_array_length(list), 1);
	row = json_object_get(json_object_array_get_idx(list, 0));
	json_object_put(reply);
	return row;
}

/* A number that a port is shown with, waited for (20 s). */
static double number_of(struct ocs_client *client, const char *name, const char *member)
{
	for (int i = 0; i < 6000; i++) {
		struct json_object *row = port_of(client, name), *value = NULL;
		double number = 0;
		bool there = json_object_object_get_ex(row, member, &value);

		if (there)
			number = json_object_get_double(value);
		json_object_put(row);
		if (there)
			return number;
		usleep(20000);
	}
	fail_msg("port %s is shown without %s", name, member);
	return 0;
}

static void spare_job(struct ocs_client *client, unsigned int job)
{
	json_object_put(rig_ask(client,
				"{'op':'commit','job':%u,'epoch':%u,'uid':1000,"
				"'user':'alice','section':'spare','nodes':'e[0-3]'}",
				job, job * 10));
	json_object_put(
		rig_ask(client, "{'op':'apply','job':%u,'epoch':%u,'node':'e0'}", job, job * 10));
}

static void power_shown(void **state)
{
	static const char *const names[] = { "loop-0:1", "loop-1:1", "loop-0:4", "loop-1:4" };
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	struct json_object *row;

	spare_job(client, 1);
	for (int i = 0; i < 4; i++) {
		double loss = number_of(client, names[i], "loss");

		assert_true(loss > 0.5 && loss < 2);
		assert_true(number_of(client, names[i], "in_dbm") > -5);
		assert_true(number_of(client, names[i], "out_dbm") > -5);
		assert_true(number_of(client, names[i], "baseline") == loss);
		row = port_of(client, names[i]);
		assert_string_equal(rig_text(row, "state"), "CONNECTED");
		assert_string_equal(rig_text(row, "status"), "TUNED");
		json_object_put(row);
	}
	/* what it loses more than at first */
	rig_emulate(rig, "port loop-0 17 lossy 0.5");
	for (int i = 0;; i++) {
		bool more = false;

		for (int port = 1; port <= 4; port++) {
			char *name = ocs_asprintf("loop-0:%d", port);

			more |= number_of(client, name, "excess") > 0.4;
			free(name);
		}
		if (more)
			break;
		if (i == 1000)
			fail_msg("no port loses more than its baseline");
		usleep(20000);
	}
	ocs_client_close(client);
}

/* A path that loses too much: its ports are drained, the job goes on; the bad port
 * does not pass its self-test, the good one does. */
static void lossy_path(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig), *events = rig_client(rig);
	struct json_object *reply, *event;
	char *bad = NULL, *good = NULL;

	json_object_put(rig_ask(events, "{'op':'subscribe'}"));
	spare_job(client, 1);
	number_of(client, "loop-0:1", "baseline");
	/* egress 17: what port 1 hears */
	rig_emulate(rig, "port loop-0 17 lossy 5");
	for (int i = 0; i < 2; i++) {
		event = rig_event(events, "drain");
		assert_non_null(strstr(rig_text(event, "reason"), "quarantine: the path "));
		assert_non_null(strstr(rig_text(event, "reason"), "are allowed"));
		if (strcmp(rig_text(event, "name"), "loop-0:1") == 0)
			bad = ocs_strdup(rig_text(event, "name"));
		else
			good = ocs_strdup(rig_text(event, "name"));
		json_object_put(event);
	}
	assert_non_null(bad);
	assert_non_null(good);
	assert_string_equal(rig_job_state(client, 1), "realised");
	json_object_put(rig_refused(client, OCS_NOT_NOW, "needs a self-test, and is in use",
				    "{'op':'resume','kind':'port','name':'%s'}", bad));
	json_object_put(rig_ask(client, "{'op':'release','job':1,'epoch':10}"));
	rig_until_patches(rig, 0);
	json_object_put(rig_refused(client, OCS_ERROR, "stays in quarantine: ",
				    "{'op':'resume','kind':'port','name':'%s'}", bad));
	reply = rig_ask(client, "{'op':'resume','kind':'port','name':'%s'}", good);
	assert_non_null(strstr(rig_text(reply, "tested"), "loses 1."));
	json_object_put(reply);
	event = port_of(client, good);
	assert_string_equal(rig_text(event, "state"), "FREE");
	json_object_put(event);
	rig_emulate(rig, "port loop-0 17 good");
	json_object_put(rig_ask(client, "{'op':'resume','kind':'port','name':'%s'}", bad));
	assert_int_equal(rig_patches(rig), 0);
	spare_job(client, 2);
	assert_string_equal(rig_job_state(client, 2), "realised");
	free(bad);
	free(good);
	ocs_client_close(client);
	ocs_client_close(events);
}

/* The self-test itself goes wrong; and what an ocsd that ended left on a loop port
 * is cut. */
static void selftest_fails(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig), *prolog = rig_client(rig);
	struct json_object *reply;

	rig_emulate(rig, "port loop-1 18 refuse");
	json_object_put(rig_ask(client, "{'op':'subscribe'}"));
	json_object_put(rig_ask(client, "{'op':'commit','job':1,'epoch':10,'uid':1000,"
					"'user':'alice','section':'spare','nodes':'e[0-3]'}"));
	rig_send(prolog, "{'op':'apply','job':1,'epoch':10,'node':'e0'}");
	drained(client, "loop-1:2", "refused the patch");
	json_object_put(rig_ask(client, "{'op':'end','job':1,'epoch':10,'reason':'x'}"));
	rig_until_patches(rig, 0);
	rig_until_forgotten(client, 1);
	json_object_put(rig_refused(client, OCS_ERROR, "stays in quarantine: ",
				    "{'op':'resume','kind':'port','name':'loop-1:2'}"));
	/* the loop ports themselves are not blamed */
	assert_int_equal(rig_log_lines(rig, "quarantine", NULL), 0);
	rig_emulate(rig, "patch loop-0 5 31");
	rig_emulate(rig, "patch loop-0 16 24");
	rig_until_patches(rig, 0);
	rig_emulate(rig, "fault loop-1 silent");
	/* the test or a poll is first to find it */
	rig_send(client, "{'op':'resume','kind':'port','name':'loop-1:2'}");
	reply = rig_reply(client);
	assert_non_null(strstr(rig_text(reply, "error"), "loop-1:2"));
	json_object_put(reply);
	rig_until_switch(client, "loop-1", "failed");
	json_object_put(rig_refused(client, OCS_NOT_NOW, "does not answer",
				    "{'op':'resume','kind':'port','name':'loop-1:2'}"));
	rig_emulate(rig, "fault loop-1 none");
	rig_emulate(rig, "port loop-1 18 good");
	rig_until_switch(client, "loop-1", "up");
	json_object_put(rig_ask(client, "{'op':'resume','kind':'port','name':'loop-1:2'}"));
	assert_int_equal(rig_patches(rig), 0);
	ocs_client_close(client);
	ocs_client_close(prolog);
}

/* On cubes, with its circuits made. */
static void pod_job(struct ocs_client *client, unsigned int job, const char *nodes,
		    const char *placement, const char *first)
{
	json_object_put(rig_ask(client,
				"{'op':'commit','job':%u,'epoch':%u,'uid':1000,"
				"'user':'alice','section':'pod','partition':'tpu','nodes':'%s',"
				"'shape':'2x2x4','conn':'torus,torus,torus','placement':'%s'}",
				job, job * 10, nodes, placement));
	json_object_put(rig_ask(client, "{'op':'apply','job':%u,'epoch':%u,'node':'%s'}", job,
				job * 10, first));
}

/* The next failure of a port of job 1, and what the job is told. */
static void goes_dark(struct ocs_client *events, const char *reason)
{
	drained(events, "t-z-0-0:1", reason);
	json_object_put(rig_event(events, "circuit_failed"));
}

/* A job without a plan hears when its light is there again, and when it is lost once more,
 * whoever has drained its port. */
static void dark_and_drained(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig), *events = rig_client(rig);
	char *nodes, *placement = rig_place(rig, "2x2x4", NULL, &nodes);

	json_object_put(rig_ask(events, "{'op':'subscribe'}"));
	pod_job(client, 1, nodes, placement, "n0");
	for (int i = 0; i < 2; i++)
		json_object_put(rig_ask(client, "{'op':'reconcile'}"));
	/* dark, then drained */
	rig_emulate(rig, "port t-z-0-0 1 lossy 70");
	goes_dark(events, "failed: no light comes in");
	assert_string_equal(rig_job_state(client, 1), "degraded");
	json_object_put(rig_ask(client, "{'op':'drain','kind':'port','name':'t-z-0-0:1',"
					"'reason':'dust'}"));
	drained(events, "t-z-0-0:1", "dust");
	rig_emulate(rig, "port t-z-0-0 1 good");
	json_object_put(rig_event(events, "circuit_restored"));
	/* drained, then dark */
	rig_emulate(rig, "port t-z-0-0 1 lossy 70");
	goes_dark(events, "failed: no light comes in (drained before: dust)");
	rig_emulate(rig, "port t-z-0-0 1 good");
	drained(events, "t-z-0-0:1", "dust");
	json_object_put(rig_event(events, "circuit_restored"));
	assert_string_equal(rig_job_state(client, 1), "realised");
	/* The light comes in again, and is lost behind the port. */
	rig_emulate(rig, "port t-z-0-0 1 lossy 70");
	goes_dark(events, "drained before: dust");
	rig_emulate(rig, "port t-z-0-0 %d lossy 70", 16 + 4); /* where that of port 1 goes */
	rig_emulate(rig, "port t-z-0-0 1 good");
	drained(events, "t-z-0-0:1", "dust");
	goes_dark(events, "its light does not come out");
	ocs_client_close(client);
	ocs_client_close(events);
	free(placement);
	free(nodes);
}

/* However a port or an XPU is written, it is drained and resumed by one name. */
static void one_name(void **state)
{
	static const char *const names[][3] = {
		{ "port", "direct-0:02", "direct-0:2" },
		{ "xpu", "c0:00,+1, 1", "c0:0,1,1" },
	};
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig), *events = rig_client(rig);

	json_object_put(rig_ask(events, "{'op':'subscribe'}"));
	for (int i = 0; i < 2; i++) {
		for (int back = 0; back < 2; back++) {
			struct json_object *event;

			json_object_put(rig_ask(
				client, "{'op':'%s','kind':'%s','name':'%s','reason':'x'}",
				back ? "resume" : "drain", names[i][0], names[i][back ? 2 : 1]));
			event = rig_event(events, "drain");
			assert_string_equal(rig_text(event, "name"), names[i][2]);
			assert_int_equal(
				json_object_get_boolean(json_object_object_get(event, "drained")),
				!back);
			json_object_put(event);
		}
	}
	ocs_client_close(client);
	ocs_client_close(events);
}

/* Batches end with a full read-back, but do not look at the light: polls come between them,
 * however close they follow each other. */
static void dark_on_a_busy_switch(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	int64_t end_ns = ocs_now_ns() + INT64_C(30000000000);
	char *nodes[2], *placement[2];
	bool seen = false;

	placement[0] = rig_place(rig, "2x2x4", NULL, &nodes[0]);
	placement[1] = rig_place(rig, "2x2x4", nodes[0], &nodes[1]);
	for (unsigned int job = 1; ocs_now_ns() < end_ns && !seen; job++) {
		int k = job > 1;

		pod_job(client, job, nodes[k], placement[k], k ? "n8" : "n0");
		if (k)
			json_object_put(rig_ask(client, "{'op':'release','job':%u,'epoch':%u}", job,
						job * 10));
		if (job == 1) {
			for (int i = 0; i < 2; i++)
				json_object_put(rig_ask(client, "{'op':'reconcile'}"));
			rig_emulate(rig, "port t-z-0-0 1 lossy 70");
		}
		seen = strcmp(rig_job_state(client, 1), "degraded") == 0;
	}
	assert_true(seen);
	for (int k = 0; k < 2; k++) {
		free(placement[k]);
		free(nodes[k]);
	}
	ocs_client_close(client);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(refused_add, rig_setup, rig_teardown),
	cmocka_unit_test_setup_teardown(refused_delete, setup_polling, rig_teardown),
	cmocka_unit_test_setup_teardown(power_shown, setup_loops, rig_teardown),
	cmocka_unit_test_setup_teardown(lossy_path, setup_loops, rig_teardown),
	cmocka_unit_test_setup_teardown(selftest_fails, setup_loops, rig_teardown),
	cmocka_unit_test_setup_teardown(dark_and_drained, setup_quick, rig_teardown),
	cmocka_unit_test_setup_teardown(one_name, setup_quick, rig_teardown),
	cmocka_unit_test_setup_teardown(dark_on_a_busy_switch, setup_polling, rig_teardown),
};

int main(void)
{
	return cmocka_run_group_tests_name("ocsd: ports", tests, NULL, NULL);
}
