/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* What jobs leave behind on switches that hang: patches that are made long after nobody
 * waits for them any more, which ocsd must cut all the same, and ports. */

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include <sqlite3.h>

#include "src/util/net.h"
#include "src/util/text.h"
#include "tests/unit/ocsd/ocsd_rig.h"

/* Four servers with two interfaces: a ring on each of two switches. */
#define PATCHES 8

/* What is late comes long after ocsd has read again, and long before it is sure. */
static int setup_patient(void **state)
{
	struct rig *rig = ocs_calloc(1, sizeof(*rig));

	rig_prepare(rig);
	rig->timeout_ms = 1000;
	rig_start(rig);
	*state = rig;
	return 0;
}

static void commit(struct ocs_client *client, unsigned int job)
{
	json_object_put(rig_ask(client,
				"{'op':'commit','job':%u,'epoch':%u,'uid':1000,"
				"'user':'alice','section':'ring','nodes':'d[0-3]'}",
				job, job * 10));
}

static void assert_no_foreign_patch(struct rig *rig)
{
	char *log = rig_daemon_log(rig);

	if (strstr(log, "not ours"))
		fail_msg("%s", log);
	free(log);
}

/* Commands that were done when no client waited for them. */
static int late(struct rig *rig)
{
	return rig_log_lines(rig, "\"reply\"", "no client is connected", NULL);
}

/* The switch has a batch. */
static void until_put_off(struct rig *rig, const char *sw)
{
	for (int i = 0; i < 20000 && !rig_log_lines(rig, "\"command\"", "ENT-PATCH", sw, NULL); i++)
		usleep(5000);
}

/* Both attempts of a batch are made after ocsd has read that nothing was. */
static void after_the_timeout(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig), *prolog = rig_client(rig);

	json_object_put(rig_ask(client, "{'op':'subscribe'}"));
	commit(client, 1);
	rig_emulate(rig, "fault direct-1 late 1600 count 2");
	rig_send(prolog, "{'op':'apply','job':1,'epoch':10,'node':'d0'}");
	json_object_put(rig_event(client, "job_failed"));
	json_object_put(rig_ask(client, "{'op':'end','job':1,'epoch':10,'reason':'requeued'}"));
	json_object_put(rig_ask(client, "{'op':'release','job':1,'epoch':10}"));
	json_object_put(rig_event(client, "released"));
	/* The next job on these ports is not disturbed. */
	rig_until_switch(client, "direct-1", "up");
	commit(client, 2);
	json_object_put(rig_ask(client, "{'op':'apply','job':2,'epoch':20,'node':'d0'}"));
	rig_until_forgotten(client, 1);
	assert_int_equal(late(rig), 2);
	json_object_put(rig_ask(client, "{'op':'reconcile'}"));
	assert_int_equal(rig_patches(rig), PATCHES);
	assert_string_equal(rig_job_state(client, 2), "realised");
	json_object_put(rig_ask(client, "{'op':'release','job':2,'epoch':20}"));
	assert_int_equal(rig_patches(rig), 0);
	assert_no_foreign_patch(rig);
	ocs_client_close(prolog);
	ocs_client_close(client);
}

/* What cuts a job's circuits late must not find those of the next job there. */
static void cut_late(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);

	commit(client, 1);
	json_object_put(rig_ask(client, "{'op':'apply','job':1,'epoch':10,'node':'d0'}"));
	rig_emulate(rig, "fault direct-1 late 1600 count 2");
	json_object_put(rig_ask(client, "{'op':'release','job':1,'epoch':10}"));
	rig_until_log(rig, 0, "switch direct-1 failed");
	rig_until_switch(client, "direct-1", "up");
	commit(client, 2);
	json_object_put(rig_ask(client, "{'op':'apply','job':2,'epoch':20,'node':'d0'}"));
	for (int i = 0; i < 6000 && late(rig) < 2; i++)
		usleep(20000);
	assert_int_equal(rig_log_lines(rig, "\"break\"", "direct-1", NULL), PATCHES / 2);
	assert_int_equal(rig_patches(rig), PATCHES);
	ocs_client_close(client);
}

/* The second attempt makes what the first one makes once more, long after the job has ended:
 * that is a circuit of that job still, and no stranger's. */
static void made_twice_and(struct rig *rig, bool killed)
{
	struct ocs_client *client = rig_client(rig);
	int64_t begun = ocs_now_ns();
	int early;

	commit(client, 1);
	rig_emulate(rig, "fault direct-1 late 1900 count 1");
	json_object_put(rig_ask(client, "{'op':'apply','job':1,'epoch':10,'node':'d0'}"));
	if (killed) {
		ocs_client_close(client);
		rig_stop_daemon(rig, SIGKILL);
		rig_start_daemon(rig);
		client = rig_client(rig);
	}
	json_object_put(rig_ask(client, "{'op':'release','job':1,'epoch':10}"));
	early = late(rig);
	if (ocs_now_ns() - begun < INT64_C(1900000000))
		assert_int_equal(early, 0);
	rig_until_forgotten(client, 1);
	assert_int_equal(late(rig), 1);
	json_object_put(rig_ask(client, "{'op':'reconcile'}"));
	assert_int_equal(rig_patches(rig), 0);
	assert_no_foreign_patch(rig);
	ocs_client_close(client);
}

static void made_twice(void **state)
{
	made_twice_and(*state, false);
}

static void made_twice_and_killed(void **state)
{
	made_twice_and(*state, true);
}

/* Nor does it where ocsd was killed between. */
static void cut_late_after_a_kill(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);

	commit(client, 1);
	json_object_put(rig_ask(client, "{'op':'apply','job':1,'epoch':10,'node':'d0'}"));
	rig_emulate(rig, "fault direct-1 late 500 count 1");
	rig_send(client, "{'op':'release','id':1,'job':1,'epoch':10}");
	for (int i = 0;
	     i < 20000 && !rig_log_lines(rig, "\"command\"", "DLT-PATCH", "direct-1", NULL); i++)
		usleep(5000);
	rig_stop_daemon(rig, SIGKILL);
	ocs_client_close(client);
	rig_start_daemon(rig);
	client = rig_client(rig);
	commit(client, 2);
	json_object_put(rig_ask(client, "{'op':'apply','job':2,'epoch':20,'node':'d0'}"));
	for (int i = 0; i < 6000 && late(rig) < 1; i++)
		usleep(20000);
	assert_int_equal(rig_log_lines(rig, "\"break\"", "direct-1", NULL), PATCHES / 2);
	assert_int_equal(rig_patches(rig), PATCHES);
	ocs_client_close(client);
}

/* The second attempt is refused, and the first is made after that. */
static void after_a_refusal(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig), *prolog = rig_client(rig);

	json_object_put(rig_ask(client, "{'op':'subscribe'}"));
	commit(client, 1);
	rig_emulate(rig, "fault direct-1 late 1600 count 1");
	rig_send(prolog, "{'op':'apply','job':1,'epoch':10,'node':'d0'}");
	until_put_off(rig, "direct-1");
	for (int port = 1; port <= 4; port++)
		rig_emulate(rig, "port direct-1 %d refuse", port);
	json_object_put(rig_event(client, "job_failed"));
	for (int port = 1; port <= 4; port++)
		rig_emulate(rig, "port direct-1 %d good", port);
	json_object_put(rig_ask(client, "{'op':'gone','job':1,'epoch':10}"));
	rig_until_forgotten(client, 1);
	json_object_put(rig_ask(client, "{'op':'reconcile'}"));
	assert_int_equal(rig_log_lines(rig, "\"make\"", "direct-1", NULL), PATCHES / 2);
	assert_int_equal(rig_patches(rig), 0);
	assert_no_foreign_patch(rig);
	ocs_client_close(prolog);
	ocs_client_close(client);
}

/* ocsd is killed with a batch on its way, and the job ends before the switch does it. */
static void after_a_kill(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);

	commit(client, 1);
	rig_emulate(rig, "fault direct-0 late 500 count 1");
	rig_send(client, "{'op':'apply','job':1,'epoch':10,'node':'d0'}");
	until_put_off(rig, "direct-0");
	rig_stop_daemon(rig, SIGKILL);
	ocs_client_close(client);
	rig_start_daemon(rig);
	client = rig_client(rig);
	json_object_put(rig_ask(client, "{'op':'gone','job':1,'epoch':10}"));
	rig_until_forgotten(client, 1);
	json_object_put(rig_ask(client, "{'op':'reconcile'}"));
	assert_int_equal(rig_log_lines(rig, "\"make\"", "direct-0", NULL), PATCHES / 2);
	assert_int_equal(rig_patches(rig), 0);
	assert_no_foreign_patch(rig);
	ocs_client_close(client);
}

/* Nobody listens when a job's circuits are cut but for one that is in doubt.  Who says later that
 * no epilog will come hears that its nodes are free, and need not wait for the doubt to pass. */
static void released_unheard(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	struct json_object *reply;

	commit(client, 1);
	json_object_put(rig_ask(client, "{'op':'apply','job':1,'epoch':10,'node':'d0'}"));
	rig_emulate(rig, "fault direct-1 late 1600 count 1");
	json_object_put(rig_ask(client, "{'op':'release','job':1,'epoch':10}"));
	reply = rig_ask(client, "{'op':'subscribe','jobs':[{'job':1,'epoch':10}]}");
	assert_string_equal(rig_text(reply, "held"), "[ ]");
	json_object_put(reply);
	json_object_put(rig_ask(client, "{'op':'end','job':1,'epoch':10,'reason':'over'}"));
	json_object_put(rig_ask(client, "{'op':'gone','job':1,'epoch':10}"));
	assert_int_equal(late(rig), 0);
	json_object_put(rig_event(client, "released"));
	rig_until_forgotten(client, 1);
	ocs_client_close(client);
}

/* Job 2 beside job 1: over as well, but for a switch of its own that does not answer. */
static const char second_job[] =
	"CREATE TEMP TABLE j AS SELECT * FROM jobs WHERE job=1;"
	"UPDATE j SET job=2, epoch=20; INSERT INTO jobs SELECT * FROM j;"
	"CREATE TEMP TABLE r AS SELECT * FROM releases WHERE job=1;"
	"UPDATE r SET job=2, epoch=20; INSERT INTO releases SELECT * FROM r;"
	"CREATE TEMP TABLE p AS SELECT * FROM ports WHERE job=1 AND switch='direct-0';"
	"UPDATE p SET job=2, epoch=20; INSERT INTO ports SELECT * FROM p;"
	"INSERT INTO ports VALUES(2, 20, 'rail-1', 1), (2, 20, 'rail-1', 2);"
	"INSERT INTO circuits VALUES(2, 20, 'rail-1', 1, 2, 0, 3);";

static void change_database(const struct rig *rig, const char *sql)
{
	char *path = ocs_asprintf("%s/state/ocsd.db", rig->emulator.folder), *why = NULL;
	sqlite3 *db;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	if (sqlite3_exec(db, sql, NULL, NULL, &why) != SQLITE_OK)
		fail_msg("%s", why);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
	free(path);
}

/* Jobs that are over but for switches that do not answer have given back their other
 * ports: after a restart they are not in the way of the job that has them now. */
static void ports_given_back(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);

	commit(client, 1);
	json_object_put(rig_ask(client, "{'op':'apply','job':1,'epoch':10,'node':'d0'}"));
	rig_emulate(rig, "fault direct-1 silent");
	rig_emulate(rig, "fault rail-1 silent");
	json_object_put(rig_ask(client, "{'op':'release','job':1,'epoch':10}"));
	commit(client, 3);
	ocs_client_close(client);
	rig_stop_daemon(rig, SIGKILL);
	change_database(rig, second_job);
	rig_start_daemon(rig);
	client = rig_client(rig);
	rig_emulate(rig, "fault direct-1 none");
	rig_emulate(rig, "fault rail-1 none");
	rig_until_forgotten(client, 1);
	rig_until_forgotten(client, 2);
	json_object_put(rig_ask(client, "{'op':'apply','job':3,'epoch':30,'node':'d0'}"));
	assert_int_equal(rig_patches(rig), PATCHES);
	ocs_client_close(client);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(after_the_timeout, setup_patient, rig_teardown),
		cmocka_unit_test_setup_teardown(cut_late, setup_patient, rig_teardown),
		cmocka_unit_test_setup_teardown(made_twice, setup_patient, rig_teardown),
		cmocka_unit_test_setup_teardown(made_twice_and_killed, setup_patient, rig_teardown),
		cmocka_unit_test_setup_teardown(cut_late_after_a_kill, setup_patient, rig_teardown),
		cmocka_unit_test_setup_teardown(after_a_refusal, setup_patient, rig_teardown),
		cmocka_unit_test_setup_teardown(after_a_kill, setup_patient, rig_teardown),
		cmocka_unit_test_setup_teardown(released_unheard, setup_patient, rig_teardown),
		cmocka_unit_test_setup_teardown(ports_given_back, rig_setup, rig_teardown),
	};

	return cmocka_run_group_tests_name("ocsd: late patches", tests, NULL, NULL);
}
