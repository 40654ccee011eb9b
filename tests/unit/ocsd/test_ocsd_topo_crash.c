/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* ocsd dies while topologies change: at any moment, and at every call that writes or sends.  Whatever
 * it finds on the switches then, the next word of the controller counts, a job that ends leaves nothing,
 * and the circuits of another job stay untouched. */

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
#include "src/util/text.h"
#include "tests/unit/ocsd/topo_rig.h"

/* ocsd dies at a moment of AFTER_US within a change of A; the controller says again what it wants. */
static void die_in_change(struct rig *rig, const struct tenant *a, const struct tenant *b,
			  useconds_t after_us, const char *to)
{
	struct ocs_client *client = rig_client(rig);
	char *both = ocs_asprintf(TOPO_BOTH, to, to);
	struct json_object *reply;
	int wanted[TOPO_SIZE + 1] = { 0 }, out[TOPO_SIZE + 1];

	rig_send(client, TOPO_REQUEST, a->job, a->job * 10, 2, a->key, both);
	usleep(after_us);
	rig_stop_daemon(rig, SIGKILL);
	ocs_client_close(client);
	rig_start_daemon(rig);
	client = rig_client(rig);
	assert_string_equal(rig_job_state(client, a->job), "realised");
	topo_add(b, "111", wanted);
	for (int sw = 0; sw < TOPO_RAILS; sw++) {
		topo_table(rig, sw, out);
		for (int in = topo_port(b, 0, 0); in <= topo_port(b, TOPO_NODES - 1, 1); in++)
			assert_int_equal(out[in], wanted[in]);
	}
	/* whatever stands, the next word counts */
	reply = rig_ask(client, TOPO_REQUEST, a->job, a->job * 10, 3, a->key, both);
	json_object_put(reply);
	for (int sw = 0; sw < TOPO_RAILS; sw++)
		topo_table_is(rig, sw, a, to, b, "111");
	reply = rig_ask(client, "{'op':'show','what':'port'}");
	for (size_t i = 0; i < json_object_array_length(json_object_object_get(reply, "ports"));
	     i++)
		assert_string_not_equal(rig_text(json_object_array_get_idx(
							 json_object_object_get(reply, "ports"), i),
						 "state"),
					"INVALID");
	json_object_put(reply);
	free(both);
	ocs_client_close(client);
}

static void crash_in_the_middle(void **state)
{
	static const char *const turns[] = { "000", "111", "ring", "001" };
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	struct tenant a = { 1, 0, "" }, b = { 2, 6, "" };

	topo_start(client, &a, "provisioned");
	topo_start(client, &b, "provisioned");
	ocs_client_close(client);
	rig_emulate(rig, "delay 10");
	for (int i = 0; i < 12; i++)
		die_in_change(rig, &a, &b, (useconds_t)i * 3000, turns[i % 4]);
	client = rig_client(rig);
	topo_end(client, &a);
	topo_end(client, &b);
	rig_until_patches(rig, 0);
	ocs_client_close(client);
}

/* ocsd dies in the middle of a change, and the job has ended before it is back. */
static void crash_and_end(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	struct tenant a = { 1, 0, "" }, b = { 2, 6, "" };

	topo_start(client, &a, "provisioned");
	topo_start(client, &b, "provisioned");
	rig_emulate(rig, "delay 40");
	rig_send(client, TOPO_REQUEST, 1, 10, 1, a.key,
		 "{'rail':0,'topo':'000'},{'rail':1,'topo':'000'}");
	usleep(30000);
	/* the end is durable, but its cut is not begun */
	rig_send(client, "{'op':'end','job':1,'epoch':10}");
	rig_send(client, "{'op':'gone','job':1,'epoch':10}");
	usleep(15000);
	rig_stop_daemon(rig, SIGKILL);
	ocs_client_close(client);
	rig_start_daemon(rig);
	client = rig_client(rig);
	json_object_put(rig_ask(client, "{'op':'gone','job':1,'epoch':10}"));
	rig_until_forgotten(client, 1);
	for (int sw = 0; sw < TOPO_RAILS; sw++)
		topo_table_is(rig, sw, &a, NULL, &b, "111");
	topo_end(client, &b);
	ocs_client_close(client);
}

/* A switch is away when the job ends and when ocsd starts: its ports stay the old job's until it is
 * back, and those of the other switch serve the next one. */
static void away_at_the_end(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	struct tenant a = { 1, 0, "" };

	topo_start(client, &a, "provisioned");
	topo_change(client, &a, 1, "000");
	rig_emulate(rig, "fault ph-1 refuse");
	rig_stop_daemon(rig, SIGKILL);
	ocs_client_close(client);
	rig_start_daemon(rig);
	client = rig_client(rig);
	json_object_put(rig_ask(client, "{'op':'gone','job':1,'epoch':10}"));
	rig_until_patches(rig, TOPO_FULL);
	usleep(300000);
	assert_string_not_equal(rig_job_state(client, 1), "");
	topo_table_is(rig, 0, &a, NULL, NULL, NULL);
	topo_table_is(rig, 1, &a, "000", NULL, NULL);
	rig_emulate(rig, "fault ph-1 none");
	rig_until_forgotten(client, 1);
	topo_table_is(rig, 1, &a, NULL, NULL, NULL);
	ocs_client_close(client);
}

/* The database is lost while jobs run: slurmctld commits them again, and what stands is theirs. */
static void lost_database(void **state)
{
	static const char *const files[] = { "ocsd.db", "ocsd.db-wal", "ocsd.db-shm", "ocsd.lock" };
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	struct tenant a = { 1, 0, "" }, b = { 2, 6, "" };
	char before[64];

	topo_start(client, &a, "provisioned");
	topo_start(client, &b, "off");
	topo_change(client, &a, 1, "001");
	snprintf(before, sizeof(before), "%s", a.key);
	ocs_client_close(client);
	rig_stop_daemon(rig, SIGKILL);
	for (size_t i = 0; i < 4; i++) {
		char *path = ocs_asprintf("%s/state/%s", rig->emulator.folder, files[i]);

		unlink(path);
		free(path);
	}
	rig_start_daemon(rig);
	client = rig_client(rig);
	json_object_put(rig_ask(client, "{'op':'subscribe','jobs':[{'job':1,'epoch':10},"
					"{'job':2,'epoch':20}]}"));
	topo_start(client, &a, "provisioned");
	topo_start(client, &b, "off");
	assert_string_not_equal(a.key, before);
	for (int sw = 0; sw < TOPO_RAILS; sw++)
		topo_table_is(rig, sw, &a, "001", &b, "ring");
	assert_int_equal(rig_log_lines(rig, "\"make\"", "\"ph-", "\"in\":13,", NULL), TOPO_RAILS);
	topo_change(client, &a, 1, "011");
	for (int sw = 0; sw < TOPO_RAILS; sw++)
		topo_table_is(rig, sw, &a, "011", &b, "ring");
	topo_end(client, &a);
	topo_end(client, &b);
	rig_until_patches(rig, 0);
	ocs_client_close(client);
}

/* ---- at every call ---- */

/* Asks for TOPO; false: ocsd died before it answered. */
static bool topo_said(struct rig *rig, const struct tenant *t, int seq, const char *topo)
{
	struct ocs_error err = { 0 };
	struct ocs_client *client =
		ocs_client_open(rig->address, NULL, NULL, RIG_PATIENCE_MS, &err);
	char *both = ocs_asprintf(TOPO_BOTH, topo, topo);
	struct json_object *request =
		rig_json(TOPO_REQUEST, t->job, t->job * 10, seq, t->key, both);
	struct json_object *reply =
		client ? ocs_client_call(client, request, RIG_PATIENCE_MS, NULL, &err) : NULL;
	bool said = reply != NULL;

	json_object_put(request);
	json_object_put(reply);
	free(both);
	ocs_client_close(client);
	return said;
}

/* A life of ocsd that ends at call AT; false: it did not come to that. */
static bool die_at_call(struct rig *rig, const struct tenant *a, const struct tenant *b, int at)
{
	static const char *const ways[] = { "half", "after", "before" };
	char number[16];
	bool died;

	snprintf(number, sizeof(number), "%d", at);
	setenv("OCS_CRASH_AT", number, 1);
	setenv("OCS_CRASH_HOW", ways[at % 3], 1);
	setenv("LD_PRELOAD", TEST_BUILD_DIR "/tests/unit/.libs/crash_preload.so", 1);
	died = !rig_try_daemon(rig);
	unsetenv("LD_PRELOAD");
	if (!died) {
		died = !topo_said(rig, a, 1, "000") || !topo_said(rig, a, 2, "ring") ||
		       !topo_said(rig, a, 3, "011");
		if (died)
			rig_reap_daemon(rig);
		else
			rig_stop_daemon(rig, SIGKILL);
	}
	rig_start_daemon(rig);
	assert_true(topo_said(rig, a, 1, at % 2 ? "111" : "001"));
	for (int sw = 0; sw < TOPO_RAILS; sw++)
		topo_table_is(rig, sw, a, at % 2 ? "111" : "001", b, "111");
	rig_stop_daemon(rig, SIGTERM);
	return died;
}

static void every_call(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client;
	struct tenant a = { 1, 0, "" }, b = { 2, 6, "" };
	/* one in four, in all three ways; OCS_EVERY_CALL in the environment: all */
	int at = 1, stride = getenv("OCS_EVERY_CALL") ? 1 : 4, deaths = 0;

	if (!RIG_PRELOADS)
		skip();
	client = rig_client(rig);
	topo_start(client, &a, "provisioned");
	topo_start(client, &b, "provisioned");
	ocs_client_close(client);
	rig_stop_daemon(rig, SIGTERM);
	for (; die_at_call(rig, &a, &b, at); at += stride)
		deaths++;
	print_message("# %d deaths, at calls up to %d\n", deaths, at);
	assert_true(at > 100);
	/* circuits of B were made once, and never cut */
	for (int port = topo_port(&b, 0, 0); port <= topo_port(&b, TOPO_NODES - 1, 1); port++) {
		char text[32];

		snprintf(text, sizeof(text), "\"in\":%d,", port);
		assert_int_equal(rig_log_lines(rig, "\"break\"", "\"ph-", text, NULL), 0);
		assert_int_equal(rig_log_lines(rig, "\"make\"", "\"ph-", text, NULL), TOPO_RAILS);
	}
	rig_start_daemon(rig);
	client = rig_client(rig);
	topo_end(client, &a);
	topo_end(client, &b);
	rig_until_patches(rig, 0);
	ocs_client_close(client);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, topo_setup, rig_teardown)
	const struct CMUnitTest tests[] = {
		TEST(crash_in_the_middle), TEST(crash_and_end), TEST(away_at_the_end),
		TEST(lost_database),	   TEST(every_call),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
