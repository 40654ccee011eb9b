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
#include <sqlite3.h>

#include "src/util/text.h"
#include "tests/unit/ocsd/ocsd_rig.h"

/* 2x2x4 over two cubes: its z rings of four use both cubes' z faces, four
 * positions with two circuits each, and x and y (extent 2) none: 8 circuits. */
#define CIRCUITS 8
#define PATCHES 16

#define SWITCHES 4 /* of one dimension */

static void commit(struct ocs_client *client, unsigned int job, unsigned int epoch,
		   const char *nodes, const char *placement)
{
	json_object_put(rig_ask(client,
				"{'op':'commit','job':%u,'epoch':%u,'uid':1000,"
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
		json_object_put(
			rig_ask(client, "{'op':'release','job':7,'epoch':70,'node':'n%d'}", n));
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
				    "'nodes':'%s','placement':'%s'}",
				    nodes, placement));
	ocs_client_close(client);
	free(nodes);
	free(placement);
}

static void apply(struct ocs_client *client, unsigned int job, unsigned int epoch, const char *node)
{
	json_object_put(rig_ask(client, "{'op':'apply','job':%u,'epoch':%u,'node':'%s'}", job,
				epoch, node));
}

static void release(struct ocs_client *client, unsigned int job)
{
	json_object_put(rig_ask(client, "{'op':'release','job':%u,'epoch':0}", job));
}

/* All nodes ask at once: one add batch a switch, later one delete batch. */
static void coalescing(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	char *nodes, *placement = rig_place(rig, "2x2x4", NULL, &nodes);

	commit(client, 7, 70, nodes, placement);
	rig_emulate(rig, "delay 50");
	for (int n = 0; n < 8; n++)
		rig_send(client, "{'op':'apply','job':7,'epoch':70,'node':'n%d'}", n);
	for (int n = 0; n < 8; n++) {
		struct json_object *reply = rig_reply(client);

		assert_int_equal(rig_number(reply, "circuits"), CIRCUITS);
		json_object_put(reply);
	}
	assert_int_equal(rig_log_lines(rig, "\"command\"", "ENT-PATCH", NULL), SWITCHES);
	assert_int_equal(rig_log_lines(rig, "\"command\"", "DLT-PATCH", NULL), 0);
	/* A late node asks again: nothing is sent. */
	apply(client, 7, 70, "n3");
	for (int n = 0; n < 8; n++)
		rig_send(client, "{'op':'release','job':7,'epoch':70,'node':'n%d'}", n);
	for (int n = 0; n < 8; n++)
		json_object_put(rig_reply(client));
	assert_int_equal(rig_patches(rig), 0);
	assert_int_equal(rig_log_lines(rig, "\"command\"", "ENT-PATCH", NULL), SWITCHES);
	assert_int_equal(rig_log_lines(rig, "\"command\"", "DLT-PATCH", NULL), SWITCHES);
	ocs_client_close(client);
	free(nodes);
	free(placement);
}

/* Two jobs that wait for the same switches share their batches. */
static void merging(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	char *nodes_a, *place_a = rig_place(rig, "2x2x4", NULL, &nodes_a);
	char *nodes_b, *place_b = rig_place(rig, "2x2x4", nodes_a, &nodes_b);

	commit(client, 1, 10, nodes_a, place_a);
	commit(client, 2, 20, nodes_b, place_b);
	/* Keeps the workers busy while both ask. */
	for (int i = 0; i < SWITCHES; i++)
		rig_emulate(rig, "fault t-z-%d-%d slow 500", i / 2, i % 2);
	rig_send(client, "{'op':'reconcile'}");
	rig_send(client, "{'op':'apply','job':1,'epoch':10,'node':'n0'}");
	rig_send(client, "{'op':'apply','job':2,'epoch':20,'node':'n8'}");
	for (int i = 0; i < 3; i++)
		json_object_put(rig_reply(client));
	assert_int_equal(rig_patches(rig), 2 * PATCHES);
	assert_int_equal(rig_log_lines(rig, "\"command\"", "ENT-PATCH", NULL), SWITCHES);
	ocs_client_close(client);
	free(nodes_a);
	free(place_a);
	free(nodes_b);
	free(place_b);
}

static void two_jobs(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	char *nodes_a, *place_a = rig_place(rig, "2x2x4", NULL, &nodes_a);
	char *nodes_b, *place_b = rig_place(rig, "2x2x4", nodes_a, &nodes_b);

	commit(client, 1, 10, nodes_a, place_a);
	apply(client, 1, 10, "n0");
	/* Its ports are taken, whoever asks. */
	json_object_put(rig_refused(client, 4, "belongs to job 1",
				    "{'op':'commit','job':2,'epoch':20,'section':'pod',"
				    "'nodes':'%s','placement':'%s'}",
				    nodes_a, place_a));
	assert_string_equal(rig_job_state(client, 2), "");
	commit(client, 2, 21, nodes_b, place_b);
	apply(client, 2, 21, "n8");
	assert_int_equal(rig_patches(rig), 2 * PATCHES);
	json_object_put(rig_refused(client, 2, "not in the allocation",
				    "{'op':'apply','job':2,'epoch':21,'node':'n0'}"));
	release(client, 1);
	assert_int_equal(rig_patches(rig), PATCHES);
	assert_string_equal(rig_job_state(client, 2), "realised");
	release(client, 2);
	assert_int_equal(rig_patches(rig), 0);
	ocs_client_close(client);
	free(nodes_a);
	free(place_a);
	free(nodes_b);
	free(place_b);
}

/* A job on ports whose last owner still has an epilog running. */
static void queueing(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig), *prolog = rig_client(rig);
	char *nodes, *placement = rig_place(rig, "2x2x4", NULL, &nodes);
	struct json_object *reply;

	commit(client, 1, 10, nodes, placement);
	apply(client, 1, 10, "n0");
	json_object_put(rig_ask(client, "{'op':'end','job':1,'epoch':10,'reason':'done'}"));
	commit(client, 2, 20, nodes, placement);
	rig_send(prolog, "{'op':'apply','job':2,'epoch':20,'node':'n0'}");
	rig_silence(prolog, 300);
	assert_string_equal(rig_job_state(client, 2), "committed");
	json_object_put(rig_ask(client, "{'op':'gone','job':1,'epoch':10}"));
	reply = rig_reply(prolog);
	assert_int_equal(rig_number(reply, "circuits"), CIRCUITS);
	json_object_put(reply);
	assert_int_equal(rig_patches(rig), PATCHES);
	/* The old circuits were broken before the new ones were made. */
	assert_int_equal(rig_log_lines(rig, "\"command\"", "DLT-PATCH", NULL), SWITCHES);
	ocs_client_close(prolog);
	ocs_client_close(client);
	free(nodes);
	free(placement);
}

static void order(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig), *prolog = rig_client(rig);
	char *nodes, *placement = rig_place(rig, "2x2x4", NULL, &nodes);
	struct json_object *reply;

	/* The prolog is faster than slurmctld's thread. */
	rig_send(prolog, "{'op':'apply','job':1,'epoch':10,'node':'n0'}");
	rig_silence(prolog, 200);
	commit(client, 1, 10, nodes, placement);
	reply = rig_reply(prolog);
	assert_true(json_object_get_boolean(json_object_object_get(reply, "ok")));
	json_object_put(reply);
	/* Requeued: a newer epoch ends the older one, whatever was heard of it. */
	commit(client, 1, 11, nodes, placement);
	json_object_put(rig_refused(client, 1, "has ended",
				    "{'op':'apply','job':1,'epoch':10,'node':'n0'}"));
	apply(client, 1, 11, "n1");
	apply(client, 1, 0, "n1"); /* whatever it holds now */
	assert_int_equal(rig_patches(rig), PATCHES);
	/* A late release of the old epoch does nothing to the new one. */
	json_object_put(rig_ask(client, "{'op':'release','job':1,'epoch':10}"));
	assert_int_equal(rig_patches(rig), PATCHES);
	/* Cancelled before its prolog: free at once. */
	release(client, 1);
	commit(client, 3, 30, nodes, placement);
	rig_send(prolog, "{'op':'subscribe'}");
	json_object_put(rig_reply(prolog));
	json_object_put(rig_ask(client, "{'op':'end','job':3,'epoch':30,'reason':'cancelled'}"));
	json_object_put(rig_event(prolog, "released"));
	assert_string_equal(rig_job_state(client, 3), "");
	ocs_client_close(prolog);
	ocs_client_close(client);
	free(nodes);
	free(placement);
}

static void servers(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	struct json_object *reply, *plan, *list;

	json_object_put(rig_ask(client, "{'op':'commit','job':1,'epoch':1,'uid':1000,"
					"'section':'ring','nodes':'d[0-3]'}"));
	reply = rig_ask(client, "{'op':'apply','job':1,'epoch':1,'node':'d2'}");
	/* Two interfaces each, all joined: four circuits, eight patches. */
	assert_int_equal(rig_number(reply, "circuits"), 4);
	assert_true(json_object_object_get_ex(reply, "plan", &plan));
	assert_int_equal(rig_number(plan, "servers"), 4);
	json_object_object_get_ex(reply, "ports", &list);
	assert_int_equal(json_object_array_length(list), 2);
	assert_string_equal(rig_text(json_object_array_get_idx(list, 1), "switch"), "direct-1");
	assert_int_equal(rig_number(json_object_array_get_idx(list, 1), "port"), 3);
	json_object_put(reply);
	assert_int_equal(rig_patches(rig), 8);
	/* All ports of its servers are its own. */
	json_object_put(
		rig_refused(client, 4, "belongs to job 1",
			    "{'op':'commit','job':2,'epoch':2,'section':'ring','nodes':'d[3-4]'}"));
	json_object_put(rig_ask(client, "{'op':'commit','job':3,'epoch':3,'uid':1000,"
					"'section':'rails','nodes':'r[1-2]'}"));
	reply = rig_ask(client, "{'op':'apply','job':3,'epoch':3,'node':'r2'}");
	assert_int_equal(rig_number(reply, "circuits"), 0);
	json_object_object_get_ex(reply, "ports", &list);
	assert_int_equal(json_object_array_length(list), 2);
	json_object_put(reply);
	json_object_put(
		rig_refused(client, 2, "not in section",
			    "{'op':'commit','job':4,'epoch':4,'section':'rails','nodes':'d0'}"));
	release(client, 1);
	release(client, 3);
	assert_int_equal(rig_patches(rig), 0);
	ocs_client_close(client);
}

/* Jobs that slurmctld does not list, since they ended while it did not reach ocsd or it has
 * forgotten them, keep their circuits until the last epilog or its word. */
static void ended_meanwhile(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	char *nodes_a, *place_a = rig_place(rig, "2x2x4", NULL, &nodes_a);
	char *nodes_b, *place_b = rig_place(rig, "2x2x4", nodes_a, &nodes_b);
	struct json_object *reply;

	commit(client, 1, 10, nodes_a, place_a);
	apply(client, 1, 10, "n0");
	commit(client, 2, 20, nodes_b, place_b);
	apply(client, 2, 20, "n8");
	json_object_put(rig_ask(client, "{'op':'end','job':2,'epoch':20,'reason':'over'}"));
	json_object_put(rig_ask(client, "{'op':'release','job':2,'epoch':20,'node':'n8'}"));
	for (int i = 0; i < 2; i++) {
		reply = rig_ask(client, "{'op':'subscribe','jobs':[],'term':0}");
		assert_int_equal(
			json_object_array_length(json_object_object_get(reply, "forgotten")), 2);
		assert_int_equal(json_object_array_length(json_object_object_get(reply, "held")),
				 2);
		json_object_put(reply);
		assert_string_equal(rig_job_state(client, 1), "ended");
		assert_int_equal(rig_patches(rig), 2 * PATCHES);
	}
	json_object_put(rig_ask(client, "{'op':'gone','job':2,'epoch':20}"));
	json_object_put(rig_event(client, "released"));
	assert_int_equal(rig_patches(rig), PATCHES);
	release(client, 1);
	assert_int_equal(rig_patches(rig), 0);
	ocs_client_close(client);
	free(nodes_a);
	free(place_a);
	free(nodes_b);
	free(place_b);
}

/* What slurmctld and ocsd tell each other when they meet. */
static void meeting(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	char *nodes_a, *place_a = rig_place(rig, "2x2x4", NULL, &nodes_a);
	char *nodes_b, *place_b = rig_place(rig, "2x2x4", nodes_a, &nodes_b);
	struct json_object *reply, *list;

	commit(client, 1, 10, nodes_a, place_a);
	apply(client, 1, 10, "n0");
	commit(client, 2, 20, nodes_b, place_b);
	apply(client, 2, 20, "n8");
	/* Job 1 lives, job 2 does not, job 5 is news to ocsd. */
	reply = rig_ask(client, "{'op':'subscribe','jobs':[{'job':1,'epoch':10},"
				"{'job':5,'epoch':50}]}");
	assert_int_equal(rig_number(reply, "max_epoch"), 20);
	assert_string_equal(rig_text(reply, "realised"), "[ 1 ]");
	assert_string_equal(rig_text(reply, "unknown"), "[ 5 ]");
	json_object_object_get_ex(reply, "held", &list);
	assert_int_equal(json_object_array_length(list), 1);
	assert_int_equal(rig_number(json_object_array_get_idx(list, 0), "job"), 2);
	assert_string_equal(rig_text(json_object_array_get_idx(list, 0), "nodes"), nodes_b);
	json_object_put(reply);
	reply = rig_event(client, "released");
	assert_int_equal(rig_number(reply, "job"), 2);
	json_object_put(reply);
	assert_int_equal(rig_patches(rig), PATCHES);
	/* Job 5 runs already: its circuits do not wait for a prolog. */
	commit(client, 5, 50, nodes_b, place_b);
	rig_until_patches(rig, 2 * PATCHES);
	reply = rig_ask(client, "{'op':'show','what':'fabric'}");
	assert_int_equal(rig_number(reply, "max_epoch"), 50);
	assert_true(json_object_get_boolean(json_object_object_get(reply, "slurmctld")));
	json_object_put(reply);
	ocs_client_close(client);
	free(nodes_a);
	free(place_a);
	free(nodes_b);
	free(place_b);
}

static void drains(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig), *watcher = rig_client(rig);
	char *nodes, *placement = rig_place(rig, "2x2x4", NULL, &nodes);
	static const char *const targets[][2] = {
		{ "switch", "direct-0" },
		{ "port", "direct-1:2" },
	};
	struct json_object *reply, *list;

	json_object_put(rig_ask(watcher, "{'op':'subscribe'}"));
	for (size_t i = 0; i < 2; i++) {
		json_object_put(rig_ask(client,
					"{'op':'drain','kind':'%s','name':'%s',"
					"'reason':'cleaning'}",
					targets[i][0], targets[i][1]));
		reply = rig_event(watcher, "drain");
		assert_string_equal(rig_text(reply, "name"), targets[i][1]);
		assert_true(json_object_get_boolean(json_object_object_get(reply, "drained")));
		json_object_put(reply);
		/* It is remembered. */
		ocs_client_close(client);
		ocs_client_close(watcher);
		assert_int_equal(rig_stop_daemon(rig, SIGTERM), 0);
		rig_start_daemon(rig);
		client = rig_client(rig);
		watcher = rig_client(rig);
		reply = rig_ask(watcher, "{'op':'subscribe'}");
		json_object_object_get_ex(reply, "drains", &list);
		assert_int_equal(json_object_array_length(list), 1);
		json_object_put(reply);
		json_object_put(rig_refused(
			client, 4, "cleaning",
			"{'op':'commit','job':1,'epoch':1,'section':'ring','nodes':'d[0-3]'}"));
		json_object_put(rig_ask(client, "{'op':'resume','kind':'%s','name':'%s'}",
					targets[i][0], targets[i][1]));
		reply = rig_event(watcher, "drain");
		assert_false(json_object_get_boolean(json_object_object_get(reply, "drained")));
		json_object_put(reply);
	}
	json_object_put(rig_ask(client, "{'op':'drain','kind':'cube','name':'c1','reason':'x'}"));
	json_object_put(rig_refused(client, 4, "cube c1 is drained",
				    "{'op':'commit','job':1,'epoch':1,'section':'pod',"
				    "'nodes':'%s','placement':'%s'}",
				    nodes, placement));
	json_object_put(rig_ask(client, "{'op':'resume','kind':'cube','name':'c1'}"));
	commit(client, 1, 2, nodes, placement);
	json_object_put(rig_refused(client, 2, "no cube c9",
				    "{'op':'drain','kind':'cube','name':'c9','reason':'x'}"));
	json_object_put(
		rig_refused(client, 2, "SWITCH:PORT",
			    "{'op':'drain','kind':'port','name':'direct-0:17','reason':'x'}"));
	ocs_client_close(watcher);
	ocs_client_close(client);
	free(nodes);
	free(placement);
}

static int64_t query(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *statement = NULL;
	int64_t value = -1;

	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
	if (sqlite3_step(statement) == SQLITE_ROW)
		value = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	return value;
}

/* Intent before, outcome after, and nobody rewrites it. */
static void audit(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	char *nodes, *placement = rig_place(rig, "2x2x4", NULL, &nodes);
	char *path = ocs_asprintf("%s/state/ocsd.db", rig->emulator.folder);
	sqlite3 *db;

	commit(client, 7, 70, nodes, placement);
	apply(client, 7, 70, "n0");
	release(client, 7);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	sqlite3_busy_timeout(db, 5000);
	assert_int_equal(query(db, "SELECT count(*) FROM audit WHERE what='batch'"), 2 * SWITCHES);
	assert_int_equal(query(db, "SELECT count(*) FROM audit WHERE what='outcome'"
				   " AND reply='ok'"),
			 2 * SWITCHES);
	assert_int_equal(query(db, "SELECT count(*) FROM audit a JOIN audit b ON"
				   " a.switch=b.switch AND a.what='batch' AND b.what='outcome'"
				   " AND a.after=b.after AND a.before=b.before AND a.id<b.id"),
			 2 * SWITCHES);
	assert_int_equal(query(db, "SELECT count(*) FROM audit WHERE job=7 AND what IN"
				   " ('commit','apply','realised','release','end','released')"),
			 6);
	assert_int_equal(query(db, "SELECT count(*) FROM jobs"), 0);
	assert_int_equal(query(db, "SELECT count(*) FROM circuits"), 0);
	assert_int_equal(query(db, "SELECT epoch FROM history WHERE job=7"), 70);
	assert_int_equal(sqlite3_exec(db, "UPDATE audit SET reply='x'", NULL, NULL, NULL),
			 SQLITE_CONSTRAINT);
	assert_int_equal(sqlite3_exec(db, "DELETE FROM audit", NULL, NULL, NULL),
			 SQLITE_CONSTRAINT);
	sqlite3_close(db);
	ocs_client_close(client);
	free(path);
	free(nodes);
	free(placement);
}

static void bad_commits(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	char *nodes, *placement = rig_place(rig, "2x2x4", NULL, &nodes);
	const char *start = "{'op':'commit','job':1,'epoch':1,'section':'pod'";

	json_object_put(
		rig_refused(client, 2, "no section",
			    "{'op':'commit','job':1,'epoch':1,'section':'nope','nodes':'n0'}"));
	json_object_put(rig_refused(client, 2, "needs nodes", "%s}", start));
	json_object_put(rig_refused(client, 2, "needs a placement", "%s,'nodes':'n0'}", start));
	json_object_put(rig_refused(client, 2, "twice", "%s,'nodes':'n0,n0','placement':'%s'}",
				    start, placement));
	json_object_put(rig_refused(client, 2, "not in section",
				    "%s,'nodes':'n[0-6],zz','placement':'%s'}", start, placement));
	json_object_put(rig_refused(client, 2, "covers 8 nodes",
				    "%s,'nodes':'n[0-6]','placement':'%s'}", start, placement));
	json_object_put(rig_refused(client, 2, "not in the placement",
				    "%s,'nodes':'n[0-6,8]','placement':'%s'}", start, placement));
	json_object_put(rig_refused(client, 1, "malformed",
				    "%s,'nodes':'%s','placement':'garbage'}", start, nodes));
	json_object_put(rig_refused(client, 1, "not newer",
				    "{'op':'commit','job':1,'epoch':0,'section':'pod'}"));
	json_object_put(rig_refused(client, 2, "job number", "{'op':'commit','epoch':1}"));
	json_object_put(rig_refused(client, 2, "epoch", "{'op':'commit','job':1,'epoch':-1}"));
	assert_string_equal(rig_job_state(client, 1), "");
	/* Nothing of it stuck. */
	commit(client, 1, 1, nodes, placement);
	ocs_client_close(client);
	free(nodes);
	free(placement);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(commit_apply_release, rig_setup, rig_teardown),
	cmocka_unit_test_setup_teardown(coalescing, rig_setup, rig_teardown),
	cmocka_unit_test_setup_teardown(merging, rig_setup, rig_teardown),
	cmocka_unit_test_setup_teardown(two_jobs, rig_setup, rig_teardown),
	cmocka_unit_test_setup_teardown(queueing, rig_setup, rig_teardown),
	cmocka_unit_test_setup_teardown(order, rig_setup, rig_teardown),
	cmocka_unit_test_setup_teardown(servers, rig_setup, rig_teardown),
	cmocka_unit_test_setup_teardown(ended_meanwhile, rig_setup, rig_teardown),
	cmocka_unit_test_setup_teardown(meeting, rig_setup, rig_teardown),
	cmocka_unit_test_setup_teardown(drains, rig_setup, rig_teardown),
	cmocka_unit_test_setup_teardown(audit, rig_setup, rig_teardown),
	cmocka_unit_test_setup_teardown(bad_commits, rig_setup, rig_teardown),
};

int main(void)
{
	rig_timeout_ms = RIG_PATIENT_MS;
	return cmocka_run_group_tests_name("ocsd: jobs", tests, NULL, NULL);
}
