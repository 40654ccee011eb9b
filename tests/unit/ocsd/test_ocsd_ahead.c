/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Look-ahead: four servers of degree 4 with two port sets behind 1x2 switches. */

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

#define SELECTED 32 /* patches of 16 1x2 switches */

static const char switches[] = "  - name: \"[near,ahead]-[0-3]\"\n"
			       "    driver: tl1\n"
			       "    address: \"unix:%1$s/{name}\"\n"
			       "    credentials: %1$s/credentials\n"
			       "    size: 16\n"
			       "  - name: flip-[0-3]\n"
			       "    driver: tl1\n"
			       "    address: \"unix:%1$s/{name}\"\n"
			       "    credentials: %1$s/credentials\n"
			       "    size: 16\n"
			       "    moves: true\n";

static const char fabrics[] = "  - name: two\n"
			      "    kind: direct\n"
			      "    partitions: [two]\n"
			      "    nodes: w[0-3]\n"
			      "    degree: 4\n"
			      "    ports: {switch: \"near-{interface}\", port: server+1}\n"
			      "    look_ahead:\n"
			      "      ports: {switch: \"ahead-{interface}\", port: server+1}\n"
			      "      select: {switch: \"flip-{interface}\", port: 3*server+1}\n";

static int setup(void **state)
{
	return rig_setup_with(state, switches, fabrics, 0);
}

/* Patches of the four switches called PREFIX-0 ... PREFIX-3. */
static int patches_of(struct rig *rig, const char *prefix)
{
	char *text = emulator_control(&rig->emulator, "status");
	struct json_object *all = json_tokener_parse(text);
	int count = 0;

	json_object_object_foreach (all, name, status)
		if (strncmp(name, prefix, strlen(prefix)) == 0)
			count += (int)rig_number(status, "patches");
	json_object_put(all);
	free(text);
	return count;
}

/* All 1x2 switches lead to port set SET. */
static void assert_selected(struct rig *rig, int set)
{
	for (int i = 0; i < 4; i++) {
		char *command = ocs_asprintf("table flip-%d", i);
		char *text = emulator_control(&rig->emulator, command);

		for (int server = 0; server < 4; server++) {
			int port = 3 * server + 1;
			char *pair = ocs_asprintf("[%d,%d]", port, 16 + port + 1 + set);

			if (!strstr(text, pair))
				fail_msg("flip-%d has no %s: %s", i, pair, text);
			free(pair);
		}
		free(text);
		free(command);
	}
	assert_int_equal(patches_of(rig, "flip"), SELECTED);
}

static int prepare(struct ocs_client *client, unsigned int job, const char *nodes)
{
	struct json_object *reply =
		rig_ask(client, "{'op':'prepare','job':%u,'nodes':'%s'}", job, nodes);
	int set = (int)rig_number(reply, "set");

	json_object_put(reply);
	return set;
}

static void until(struct rig *rig, const char *prefix, int count)
{
	int64_t deadline = ocs_now_ns() + INT64_C(20000000000);

	while (patches_of(rig, prefix) != count) {
		if (ocs_now_ns() > deadline)
			fail_msg("%s has %d patches, not %d", prefix, patches_of(rig, prefix),
				 count);
		usleep(10000);
	}
}

static void flipped(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	int near, enter, delete;

	rig_commit(client, 1, "two", "w[0-3]");
	rig_apply(client, 1, "w0");
	near = patches_of(rig, "near");
	assert_true(near > 0);
	assert_int_equal(patches_of(rig, "ahead"), 0);
	assert_selected(rig, 0);
	/* The next job's circuits are there while the first one runs, untouched. */
	assert_int_equal(prepare(client, 2, "w[0-3]"), 1);
	until(rig, "ahead", near);
	assert_int_equal(patches_of(rig, "near"), near);
	assert_selected(rig, 0);
	assert_string_equal(rig_job_state(client, 1), "realised");
	assert_string_equal(rig_job_state(client, 2), "prepared");
	/* Nobody else, and not twice. */
	json_object_put(rig_refused(client, 1, "prepared already",
				    "{'op':'prepare','job':2,'nodes':'w[0-3]'}"));
	json_object_put(rig_refused(client, 4, "job 2, which is prepared",
				    "{'op':'prepare','job':3,'nodes':'w[0-1]'}"));
	/* It leaves; the far side of its switches takes a while to let go. */
	for (int i = 0; i < 4; i++)
		rig_emulate(rig, "fault near-%d slow 400", i);

	enter = rig_log_lines(rig, "\"command\"", "ENT-PATCH", NULL);
	delete = rig_log_lines(rig, "\"command\"", "DLT-PATCH", "flip", NULL);
	json_object_put(rig_ask(client, "{'op':'end','job':1,'epoch':10,'reason':'done'}"));
	rig_send(client, "{'op':'release','id':1,'job':1,'epoch':10}");
	rig_commit(client, 2, "two", "w[0-3]");
	rig_apply(client, 2, "w1");
	/* One command each, that moved the 1x2 switches; nothing else was made. */
	assert_selected(rig, 1);
	assert_int_equal(rig_log_lines(rig, "\"command\"", "ENT-PATCH", NULL), enter + 4);
	assert_int_equal(rig_log_lines(rig, "\"command\"", "DLT-PATCH", "flip", NULL), delete);
	assert_string_equal(rig_job_state(client, 2), "realised");
	/* Nothing of the first job remains. */
	until(rig, "near", 0);
	assert_int_equal(patches_of(rig, "ahead"), near);
	rig_until_forgotten(client, 1);
	/* And back again. */
	for (int i = 0; i < 4; i++)
		rig_emulate(rig, "fault near-%d none", i);

	assert_int_equal(prepare(client, 3, "w[0-3]"), 0);
	until(rig, "near", near);
	json_object_put(rig_ask(client, "{'op':'release','job':2,'epoch':20}"));
	until(rig, "ahead", 0);
	rig_commit(client, 3, "two", "w[0-3]");
	rig_apply(client, 3, "w0");
	assert_selected(rig, 0);
	json_object_put(rig_ask(client, "{'op':'release','job':3,'epoch':30}"));
	rig_until_patches(rig, 0);
	ocs_client_close(client);
}

/* What was prepared in vain goes without a trace. */
static void in_vain(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	int near;

	json_object_put(rig_refused(client, 2, "has no look_ahead",
				    "{'op':'prepare','job':2,'nodes':'d[0-1]','section':'ring'}"));
	rig_commit(client, 1, "two", "w[0-3]");
	rig_apply(client, 1, "w0");
	near = patches_of(rig, "near");
	/* taken back by hand */
	prepare(client, 2, "w[0-3]");
	until(rig, "ahead", near);
	json_object_put(rig_ask(client, "{'op':'release','job':2,'epoch':0}"));
	until(rig, "ahead", 0);
	assert_string_equal(rig_job_state(client, 2), "");
	assert_selected(rig, 0);
	/* another job gets the nodes */
	prepare(client, 2, "w[0-3]");
	until(rig, "ahead", near);
	json_object_put(rig_ask(client, "{'op':'end','job':1,'epoch':10,'reason':'x'}"));
	json_object_put(rig_ask(client, "{'op':'release','job':1,'epoch':10}"));
	rig_commit(client, 3, "two", "w[0-1]");
	rig_apply(client, 3, "w0");
	rig_until_forgotten(client, 2);
	assert_string_equal(rig_job_state(client, 3), "realised");
	json_object_put(rig_ask(client, "{'op':'release','job':3,'epoch':30}"));
	rig_until_patches(rig, 0);
	/* its own job gets other nodes */
	prepare(client, 4, "w[0-3]");
	rig_commit(client, 4, "two", "w[2-3]");
	rig_apply(client, 4, "w2");
	json_object_put(rig_ask(client, "{'op':'release','job':4,'epoch':40}"));
	rig_until_patches(rig, 0);
	ocs_client_close(client);
}

/* What was prepared and taken back must be gone before the same job is prepared on other nodes:
 * it would be a second one of that number and epoch. */
static void prepared_again(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig), *second = rig_client(rig);

	prepare(client, 2, "w[0-1]");
	until(rig, "near", 8);
	for (int i = 0; i < 4; i++)
		rig_emulate(rig, "fault near-%d silent", i);
	rig_send(client, "{'op':'release','id':1,'job':2,'epoch':0}");
	rig_until_job(second, 2, "ended");
	json_object_put(rig_refused(second, 4, "not taken down yet",
				    "{'op':'prepare','job':2,'nodes':'w[2-3]'}"));
	for (int i = 0; i < 4; i++)
		rig_emulate(rig, "fault near-%d none", i);
	json_object_put(rig_reply(client));
	rig_until_forgotten(second, 2);
	for (int i = 0; i < 4; i++) {
		char name[16];

		snprintf(name, sizeof(name), "near-%d", i);
		rig_until_switch(second, name, "up");
	}
	prepare(second, 2, "w[2-3]");
	ocs_client_close(second);
	ocs_client_close(client);
}

/* Killed at ever later moments of a flip. */
static void killed_anywhere(void **state)
{
	struct rig *rig = *state;

	rig_emulate(rig, "delay 10");
	for (unsigned int i = 0; i < 10; i++) {
		struct ocs_client *client = rig_client(rig);
		unsigned int job = 2 * i + 1;

		rig_commit(client, job, "two", "w[0-3]");
		rig_apply(client, job, "w0");
		prepare(client, job + 1, "w[0-3]");
		usleep(i % 3 * 15000);
		rig_send(client, "{'op':'release','id':9,'job':%u,'epoch':%u}", job, job * 10);
		usleep(i * 6000);
		rig_stop_daemon(rig, SIGKILL);
		ocs_client_close(client);
		rig_start_daemon(rig);
		client = rig_client(rig);
		json_object_put(
			rig_ask(client, "{'op':'release','job':%u,'epoch':%u}", job, job * 10));
		rig_commit(client, job + 1, "two", "w[0-3]");
		rig_apply(client, job + 1, "w3");
		assert_string_equal(rig_job_state(client, job + 1), "realised");
		assert_int_equal(patches_of(rig, "flip"), SELECTED);
		assert_true(patches_of(rig, "near") == 0 || patches_of(rig, "ahead") == 0);
		json_object_put(rig_ask(client, "{'op':'release','job':%u,'epoch':%u}", job + 1,
					job * 10 + 10));
		rig_until_patches(rig, 0);
		/* what was being cut or made may be cut or made once more */
		rig_until_forgotten(client, job);
		rig_until_forgotten(client, job + 1);
		ocs_client_close(client);
	}
}

/* From the release of one job to the verified circuits of the next, with switches that
 * take 100 ms: prepared, it is one delay of the 1x2 switches. */
static void delays(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	double ms[2];

	rig_emulate(rig, "delay 100");
	for (unsigned int with = 0; with < 2; with++) {
		unsigned int job = 10 * with + 1;
		int64_t start;

		rig_commit(client, job, "two", "w[0-3]");
		rig_apply(client, job, "w0");
		if (with) {
			prepare(client, job + 1, "w[0-3]");
			until(rig, "ahead", patches_of(rig, "near"));
			/* seen here before ocsd has read it back */
			json_object_put(rig_ask(client, "{'op':'reconcile'}"));
		}
		start = ocs_now_ns();
		rig_send(client, "{'op':'release','id':5,'job':%u,'epoch':%u}", job, job * 10);
		rig_commit(client, job + 1, "two", "w[0-3]");
		rig_apply(client, job + 1, "w0");
		ms[with] = (double)(ocs_now_ns() - start) / 1e6;
		json_object_put(rig_ask(client, "{'op':'release','job':%u,'epoch':%u}", job + 1,
					job * 10 + 10));
		rig_until_patches(rig, 0);
	}
	print_message("# from release to verified: %.0f ms, prepared %.0f ms\n", ms[0], ms[1]);
	ocs_client_close(client);
}

/* The seconds of all jobs in the metrics of ocsd at ADDRESS. */
static double job_seconds(const char *address)
{
	static const char name[] = "ocsd_job_seconds_sum ";
	char *text = rig_http(address, "GET /metrics HTTP/1.0\r\n\r\n"), *at = strstr(text, name);
	double seconds;

	assert_non_null(at);
	seconds = atof(at + strlen(name));
	free(text);
	return seconds;
}

/* The time of a prepared job counts from when its circuits were begun, not from the boot of the
 * machine: this one is up for longer than a minute. */
static void measured(void **state)
{
	struct rig *rig = *state;
	char *address = ocs_asprintf("127.0.0.1:%d", rig_free_port()), *text, *at, *edited;
	struct ocs_client *client;
	struct ocs_error err;
	size_t length;

	text = ocs_file_read(rig->yaml, 1 << 20, &length, &err);
	assert_non_null(text);
	at = strstr(text, "/state\n");
	assert_non_null(at);
	edited = ocs_asprintf("%.*s/state\n  metrics: %s%s", (int)(at - text), text, address,
			      at + strlen("/state"));
	assert_int_equal(ocs_file_write(rig->yaml, edited, strlen(edited), 0600, &err), 0);
	free(edited);
	free(text);
	rig_stop_daemon(rig, SIGTERM);
	rig_start_daemon(rig);
	client = rig_client(rig);
	while (ocs_now_ns() < INT64_C(60000000000))
		sleep(1);
	prepare(client, 1, "w[0-3]");
	rig_commit(client, 1, "two", "w[0-3]");
	rig_apply(client, 1, "w0");
	assert_true(job_seconds(address) > 0);
	assert_true(job_seconds(address) < 60);
	json_object_put(rig_ask(client, "{'op':'release','job':1,'epoch':10}"));
	rig_until_patches(rig, 0);
	ocs_client_close(client);
	free(address);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(flipped, setup, rig_teardown),
	cmocka_unit_test_setup_teardown(in_vain, setup, rig_teardown),
	cmocka_unit_test_setup_teardown(prepared_again, setup, rig_teardown),
	cmocka_unit_test_setup_teardown(killed_anywhere, setup, rig_teardown),
	cmocka_unit_test_setup_teardown(delays, setup, rig_teardown),
	cmocka_unit_test_setup_teardown(measured, setup, rig_teardown),
};

int main(void)
{
	return cmocka_run_group_tests_name("ocsd: look-ahead", tests, NULL, NULL);
}
