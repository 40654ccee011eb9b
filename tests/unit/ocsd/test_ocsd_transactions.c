/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Requests that expect a revision of the database, and requests that are repeated. */

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
#include "tests/unit/ocsd/ocsd_rig.h"
#include "tests/unit/ocsd/ocsd_rows.h"

static int64_t revision(struct ocs_client *client)
{
	struct json_object *reply = rig_ask(client, "{'op':'show','what':'fabric'}");
	int64_t number = rig_number(reply, "revision");

	json_object_put(reply);
	return number;
}

static size_t drains(struct ocs_client *client)
{
	struct json_object *reply = rig_ask(client, "{'op':'show','what':'fabric'}");
	struct json_object *list = NULL;
	size_t count;

	json_object_object_get_ex(reply, "drains", &list);
	count = json_object_array_length(list);
	json_object_put(reply);
	return count;
}

static struct ocs_client *restart(struct rig *rig, struct ocs_client *client)
{
	ocs_client_close(client);
	assert_int_equal(rig_stop_daemon(rig, SIGKILL), -SIGKILL);
	rig_start_daemon(rig);
	return rig_client(rig);
}

static void commit(struct ocs_client *client, unsigned int job)
{
	json_object_put(rig_ask(client,
				"{'op':'commit','job':%u,'epoch':%u,'uid':1000,"
				"'user':'alice','section':'ring','nodes':'d[0-3]'}",
				job, job));
}

/* What has moved on is refused with both numbers, and nothing is done. */
static void expected_revision(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	int64_t begin = revision(client), next;
	struct json_object *reply;
	char *both;

	assert_int_equal(revision(client), begin); /* looking changes nothing */
	reply = rig_ask(client,
			"{'op':'drain','kind':'cube','name':'c0','reason':'x','expect':%lld}",
			(long long)begin);
	next = rig_number(reply, "revision");
	json_object_put(reply);
	assert_true(next > begin);
	assert_int_equal(revision(client), next);
	both = ocs_asprintf("revision %lld was expected, and ocsd is at revision %lld",
			    (long long)begin, (long long)next);
	reply = rig_refused(client, OCS_ERROR, both,
			    "{'op':'drain','kind':'cube','name':'c1',"
			    "'reason':'x','expect':%lld}",
			    (long long)begin);
	assert_int_equal(rig_number(reply, "expected"), begin);
	assert_int_equal(rig_number(reply, "revision"), next);
	json_object_put(reply);
	free(both);
	assert_int_equal(drains(client), 1);
	assert_int_equal(revision(client), next);
	json_object_put(rig_refused(client, OCS_USAGE, "expect is the number",
				    "{'op':'drain',"
				    "'kind':'cube','name':'c1','reason':'x','expect':-1}"));
	json_object_put(rig_refused(client, OCS_USAGE, "expect is the number",
				    "{'op':'drain',"
				    "'kind':'cube','name':'c1','reason':'x','expect':'1'}"));

	/* Neither a restart nor a crash sets it back. */
	client = restart(rig, client);
	assert_int_equal(revision(client), next);
	json_object_put(rig_refused(client, OCS_ERROR, "was expected",
				    "{'op':'resume',"
				    "'kind':'cube','name':'c0','expect':%lld}",
				    (long long)begin));
	assert_int_equal(drains(client), 1);
	json_object_put(rig_ask(client, "{'op':'resume','kind':'cube','name':'c0','expect':%lld}",
				(long long)next));
	assert_int_equal(drains(client), 0);
	assert_true(revision(client) > next);
	assert_int_equal(rig_select(rig, "SELECT revision FROM audit WHERE what='drain'"), next);
	ocs_client_close(client);
}

/* Of several that expect the same revision one is done. */
static void one_of_several(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *clients[4], *client = rig_client(rig);
	long long begin = revision(client);
	int done = 0;

	for (int i = 0; i < 4; i++) {
		clients[i] = rig_client(rig);
		rig_send(clients[i],
			 "{'op':'drain','kind':'cube','name':'c%d','reason':'x',"
			 "'expect':%lld}",
			 i, begin);
	}
	for (int i = 0; i < 4; i++) {
		struct json_object *reply = rig_reply(clients[i]), *ok = NULL;

		json_object_object_get_ex(reply, "ok", &ok);
		done += json_object_get_boolean(ok);
		json_object_put(reply);
		ocs_client_close(clients[i]);
	}
	assert_int_equal(done, 1);
	assert_int_equal(drains(client), 1);
	ocs_client_close(client);
}

/* Circuits, too: a stale apply makes none, a stale release cuts none. */
static void expected_circuits(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	long long before = revision(client), realised;
	struct json_object *reply;

	commit(client, 1);
	json_object_put(rig_refused(client, OCS_ERROR, "nothing was done",
				    "{'op':'apply','job':1,"
				    "'epoch':1,'node':'d0','expect':%lld}",
				    before));
	assert_int_equal(rig_patches(rig), 0);
	reply = rig_ask(client, "{'op':'apply','job':1,'epoch':1,'node':'d0','expect':%lld}",
			(long long)revision(client));
	realised = rig_number(reply, "revision");
	json_object_put(reply);
	assert_true(rig_patches(rig) > 0);
	json_object_put(rig_refused(client, OCS_ERROR, "nothing was done",
				    "{'op':'release','job':1,"
				    "'epoch':1,'expect':%lld}",
				    before));
	assert_string_equal(rig_job_state(client, 1), "realised");
	json_object_put(
		rig_ask(client, "{'op':'release','job':1,'epoch':1,'expect':%lld}", realised));
	rig_until_patches(rig, 0);
	ocs_client_close(client);
}

/* The same id answers the same, whatever happened since, and does nothing again. */
static void repeated(void **state)
{
	static const char drain[] = "{'op':'drain','kind':'port','name':'direct-0:1',"
				    "'reason':'x','transaction':'change-1.a','expect':%lld}";
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	long long begin = revision(client);
	struct json_object *first = rig_ask(client, drain, begin), *second;

	assert_string_equal(rig_text(first, "transaction"), "change-1.a");
	json_object_put(rig_ask(client, "{'op':'resume','kind':'port','name':'direct-0:1'}"));
	for (int round = 0; round < 2; round++) {
		second = rig_ask(client, drain, begin);
		assert_int_equal(rig_number(first, "revision"), rig_number(second, "revision"));
		json_object_put(second);
		assert_int_equal(drains(client), 0);
		client = restart(rig, client);
	}
	json_object_put(first);
	/* with other words it is refused */
	json_object_put(rig_refused(client, OCS_USAGE,
				    "transaction change-1.a asked for something "
				    "else",
				    "{'op':'drain','kind':'port','name':'direct-0:2',"
				    "'reason':'x','transaction':'change-1.a'}"));
	assert_int_equal(drains(client), 0);
	/* a refusal stays one */
	for (int round = 0; round < 2; round++) {
		json_object_put(rig_refused(client, OCS_ERROR, "was expected",
					    "{'op':'drain',"
					    "'kind':'port','name':'direct-0:2','reason':'x',"
					    "'transaction':'b','expect':%lld}",
					    begin));
		json_object_put(
			rig_ask(client, "{'op':'drain','kind':'cube','name':'c0','reason':'x'}"));
	}
	json_object_put(rig_refused(client, OCS_USAGE, "a transaction is named",
				    "{'op':'resume',"
				    "'kind':'cube','name':'c0','transaction':'a b'}"));
	json_object_put(rig_refused(client, OCS_USAGE, "a transaction is named",
				    "{'op':'resume',"
				    "'kind':'cube','name':'c0','transaction':7}"));
	assert_int_equal(
		rig_select(rig,
			   "SELECT count(*) FROM audit WHERE txn='change-1.a' AND what='drain'"),
		1);
	assert_int_equal(
		rig_select(rig,
			   "SELECT count(*) FROM audit WHERE txn='change-1.a' AND what='answer'"
			   " AND reply='ok' AND revision IS NOT NULL"),
		1);
	ocs_client_close(client);
}

/* The answer did not arrive: the request was lost with its connection, or ocsd with the
 * request.  Repeated, it is done once, though its own beginning moved the revision. */
static void answer_lost(void **state)
{
	static const char apply[] = "{'op':'apply','job':1,'epoch':1,'node':'d0',"
				    "'transaction':'prolog-1','expect':%lld}";
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig), *prolog = rig_client(rig);
	struct json_object *reply;
	long long committed;

	commit(client, 1);
	committed = revision(client);
	rig_emulate(rig, "fault direct-0 slow 300");
	rig_send(prolog, apply, committed);
	while (revision(client) == committed)
		usleep(10000);
	ocs_client_close(prolog);
	prolog = rig_client(rig);
	rig_send(prolog, apply, committed);
	while (strcmp(rig_job_state(client, 1), "applying") != 0 &&
	       strcmp(rig_job_state(client, 1), "realised") != 0)
		usleep(10000);
	ocs_client_close(prolog);
	rig_emulate(rig, "fault direct-0 none");
	client = restart(rig, client);
	reply = rig_ask(client, apply, committed);
	assert_true(rig_number(reply, "circuits") > 0);
	json_object_put(reply);
	assert_int_equal(rig_patches(rig), 8);
	ocs_client_close(client);
}

/* A database of before ocsd noted which nodes have asked, without a note of its last revision. */
static void old_database(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	sqlite3 *db;
	char *error = NULL, *lock;

	json_object_put(rig_ask(client, "{'op':'drain','kind':'cube','name':'c0','reason':'x'}"));
	ocs_client_close(client);
	rig_stop_daemon(rig, SIGTERM);
	db = rig_database(rig);
	if (sqlite3_exec(db, "DROP TABLE met; DROP TABLE asked; DROP TABLE heard", NULL, NULL,
			 &error) != SQLITE_OK)
		fail_msg("%s", error);
	sqlite3_close(db);
	lock = ocs_asprintf("%s/state/ocsd.lock", rig->emulator.folder);
	assert_int_equal(unlink(lock), 0);
	free(lock);
	rig_start_daemon(rig);
	client = rig_client(rig);
	assert_int_equal(drains(client), 1);
	json_object_put(rig_ask(client, "{'op':'resume','kind':'cube','name':'c0','expect':%lld}",
				(long long)revision(client)));
	assert_int_equal(drains(client), 0);
	assert_int_equal(
		rig_select(rig, "SELECT count(*) FROM audit WHERE what IN ('drain', 'resume')"), 2);
	ocs_client_close(client);
}

/* That the circuits of an answered job were seen is written after the answer, and is no
 * revision of its own; an end that comes first finds them all. */
static void circuits_after_answer(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	int64_t begin;
	int polls = 0;

	commit(client, 7);
	json_object_put(rig_ask(client, "{'op':'apply','job':7,'epoch':7,'node':'d0'}"));
	begin = revision(client);
	while (rig_select(rig, "SELECT count(*) FROM circuits WHERE state<>2") && polls++ < 1000)
		usleep(10000);
	assert_int_equal(rig_select(rig, "SELECT count(*) FROM circuits WHERE state<>2"), 0);
	assert_true(rig_select(rig, "SELECT count(*) FROM circuits") > 0);
	assert_int_equal(revision(client), begin);
	for (int job = 7; job < 12; job++) {
		json_object_put(rig_ask(client, "{'op':'release','job':%d,'epoch':%d}", job, job));
		assert_int_equal(rig_select(rig, "SELECT count(*) FROM circuits"), 0);
		commit(client, (unsigned int)job + 1);
		json_object_put(rig_ask(client, "{'op':'apply','job':%d,'epoch':%d,'node':'d0'}",
					job + 1, job + 1));
	}
	ocs_client_close(client);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(expected_revision, rig_setup, rig_teardown),
	cmocka_unit_test_setup_teardown(one_of_several, rig_setup, rig_teardown),
	cmocka_unit_test_setup_teardown(expected_circuits, rig_setup, rig_teardown),
	cmocka_unit_test_setup_teardown(repeated, rig_setup, rig_teardown),
	cmocka_unit_test_setup_teardown(answer_lost, rig_setup, rig_teardown),
	cmocka_unit_test_setup_teardown(old_database, rig_setup, rig_teardown),
	cmocka_unit_test_setup_teardown(circuits_after_answer, rig_setup, rig_teardown),
};

int main(void)
{
	rig_timeout_ms = RIG_PATIENT_MS;
	return cmocka_run_group_tests_name("ocsd: transactions", tests, NULL, NULL);
}
