/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* ocsd dies at every call that writes or syncs, while a job comes and goes beside one
 * that runs: at the start of the call, in the middle of its bytes, and behind it. */

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>
#include <cmocka.h>

#include "src/util/error.h"
#include "src/util/text.h"
#include "tests/unit/ocsd/ocsd_rig.h"

/* Without the preload ocsd dies at times instead of at calls. */
#define BY_CALL RIG_PRELOADS

#define PATCHES 16 /* of one job: 2x2x4 over two cubes */

struct guest {
	unsigned int job;
	const char *nodes, *placement;
	bool ended;
};

/* True if ocsd has answered at all, whatever it said. */
static bool say(struct ocs_client *client, const char *format, ...)
{
	struct json_object *request, *reply, *refusal = NULL;
	struct ocs_error err = { 0 };
	char *text = NULL;
	va_list args;

	va_start(args, format);
	assert_true(vasprintf(&text, format, args) >= 0);
	va_end(args);
	request = rig_json("%s", text);
	free(text);
	reply = ocs_client_call(client, request, RIG_PATIENCE_MS, &refusal, &err);
	json_object_put(request);
	if (refusal)
		fail_msg("%s", err.text);
	json_object_put(reply);
	return reply;
}

static bool commit(struct ocs_client *client, const struct guest *g)
{
	return say(client,
		   "{'op':'commit','job':%u,'epoch':%u,'uid':1000,'user':'alice',"
		   "'section':'pod','partition':'tpu','nodes':'%s','shape':'2x2x4',"
		   "'conn':'torus,torus,torus','placement':'%s'}",
		   g->job, g->job, g->nodes, g->placement);
}

/* As slurmctld does: which jobs live; what ocsd has not heard of is said again. */
static bool subscribe(struct ocs_client *client, const struct guest *host, const struct guest *g)
{
	struct json_object *request =
		g->ended ?
			rig_json("{'op':'subscribe','jobs':[{'job':%u,'epoch':%u}]}", host->job,
				 host->job) :
			rig_json(
				"{'op':'subscribe','jobs':[{'job':%u,'epoch':%u},{'job':%u,'epoch':%u}]}",
				host->job, host->job, g->job, g->job);
	struct ocs_error err = { 0 };
	struct json_object *reply = ocs_client_call(client, request, RIG_PATIENCE_MS, NULL, &err),
			   *unknown;
	bool good = reply;

	json_object_put(request);
	if (!reply)
		return false;
	json_object_object_get_ex(reply, "unknown", &unknown);
	for (size_t i = 0; i < json_object_array_length(unknown); i++) {
		assert_int_equal(json_object_get_int64(json_object_array_get_idx(unknown, i)),
				 g->job);
		good = commit(client, g);
	}
	json_object_put(reply);
	return good;
}

/* The life of the guest from step *STEP on; false: ocsd died in that step. */
static bool live(struct ocs_client *client, struct guest *g, int *step)
{
	for (; *step < 4; ++*step) {
		bool good = true;

		switch (*step) {
		case 0:
			good = commit(client, g);
			break;
		case 1:
			good = say(client, "{'op':'apply','job':%u,'epoch':%u,'node':'n8'}", g->job,
				   g->job);
			break;
		case 2:
			g->ended = true;
			good = say(client, "{'op':'end','job':%u,'epoch':%u,'reason':'done'}",
				   g->job, g->job);
			break;
		case 3:
			good = say(client, "{'op':'release','job':%u,'epoch':%u}", g->job, g->job);
			break;
		}
		if (!good)
			return false;
	}
	return true;
}

/* No patch of the host was ever broken. */
static void check_host(struct rig *rig, struct json_object *circuits)
{
	for (size_t i = 0; i < json_object_array_length(circuits); i++) {
		struct json_object *row = json_object_array_get_idx(circuits, i);
		int a = (int)rig_number(row, "a"), b = (int)rig_number(row, "b");
		char *sw = ocs_asprintf("\"switch\":\"%s\"", rig_text(row, "switch"));
		char *one = ocs_asprintf("\"in\":%d,\"out\":%d,", a, 16 + b);
		char *other = ocs_asprintf("\"in\":%d,\"out\":%d,", b, 16 + a);

		assert_int_equal(rig_log_lines(rig, "\"break\"", sw, one, NULL), 0);
		assert_int_equal(rig_log_lines(rig, "\"break\"", sw, other, NULL), 0);
		assert_int_equal(rig_log_lines(rig, "\"make\"", sw, one, NULL), 1);
		free(sw);
		free(one);
		free(other);
	}
}

/* Kills PID after US. */
static void kill_later(pid_t pid, useconds_t us)
{
	if (fork() == 0) {
		usleep(us);
		kill(pid, SIGKILL);
		_exit(0);
	}
}

/* One life with ocsd ending at call AT, or (HOW NULL) AT times 2 ms after its start.
 * False: it did not come to that. */
static bool crash(struct rig *rig, const struct guest *host, struct guest *g, int at,
		  const char *how)
{
	struct ocs_client *client;
	struct ocs_error err;
	char number[16];
	bool died, up;
	int step = 0;

	g->job++;
	g->ended = false;
	snprintf(number, sizeof(number), "%d", at);
	if (how) {
		setenv("OCS_CRASH_AT", number, 1);
		setenv("OCS_CRASH_HOW", how, 1);
		setenv("LD_PRELOAD", TEST_BUILD_DIR "/tests/unit/.libs/crash_preload.so", 1);
	}
	up = rig_try_daemon(rig);
	unsetenv("LD_PRELOAD");
	died = !up;
	if (up && !how)
		kill_later(rig->daemon, (useconds_t)at * 2000);
	if (up) {
		/* The call may have come since it answered first. */
		client = ocs_client_open(rig->address, NULL, NULL, RIG_PATIENCE_MS, &err);
		died = !client || !subscribe(client, host, g) || !live(client, g, &step);
		ocs_client_close(client);
		if (died)
			rig_reap_daemon(rig);
		else
			rig_stop_daemon(rig, SIGKILL);
	}
	rig_start_daemon(rig);
	client = rig_client(rig);
	assert_true(subscribe(client, host, g));
	if (step == 1 || step == 2)
		assert_true(rig_patches(rig) <= 2 * PATCHES);
	assert_true(live(client, g, &step));
	assert_string_equal(rig_job_state(client, host->job), "realised");
	ocs_client_close(client);
	rig_until_patches(rig, PATCHES);
	rig_stop_daemon(rig, SIGTERM);
	return died;
}

static void every_step(void **state)
{
	static const char *const ways[] = { "half", "after", "before" };
	struct rig *rig = *state;
	char *nodes, *other_nodes, *placement = rig_place(rig, "2x2x4", NULL, &nodes);
	char *other = rig_place(rig, "2x2x4", nodes, &other_nodes);
	struct guest host = { 1, nodes, placement, false };
	struct guest g = { 1000, other_nodes, other, false };
	struct ocs_client *client = rig_client(rig);
	struct json_object *reply, *circuits;
	int at = 1;

	assert_true(commit(client, &host));
	json_object_put(rig_ask(client, "{'op':'apply','job':1,'epoch':1,'node':'n0'}"));
	reply = rig_ask(client, "{'op':'show','what':'circuit','name':'1'}");
	json_object_object_get_ex(reply, "circuits", &circuits);
	assert_int_equal(json_object_array_length(circuits), PATCHES / 2);
	ocs_client_close(client);
	rig_stop_daemon(rig, SIGTERM);

	while (crash(rig, &host, &g, at, BY_CALL ? ways[at % 3] : NULL) || (!BY_CALL && at < 20))
		at++;
	assert_true(at > (BY_CALL ? 60 : 19));
	print_message("# %d deaths, none of %d circuits of the other job lost\n", at - 1,
		      PATCHES / 2);
	check_host(rig, circuits);
	json_object_put(reply);
	rig_start_daemon(rig);
	free(nodes);
	free(other_nodes);
	free(placement);
	free(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_step, rig_setup, rig_teardown),
	};

	/* ocsd waits as long after each of its many deaths */
	rig_timeout_ms = 600;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
