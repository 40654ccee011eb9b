/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Which nodes have asked for the circuits of a job, and which ask at all. */

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/ocsd/ocsd_rig.h"

#define COMMIT                                                         \
	"{'op':'commit','job':1,'epoch':%d,'uid':1000,'user':'alice'," \
	"'section':'pod','partition':'tpu','nodes':'%s','placement':'%s'}"
#define APPLY "{'op':'apply','job':1,'epoch':%d,'node':'n%d'}"
#define NODES 8

static void commit(struct rig *rig, struct ocs_client *client, int epoch)
{
	char *nodes, *placement = rig_place(rig, "2x2x4", NULL, &nodes);

	assert_string_equal(nodes, "n[0-7]");
	json_object_put(rig_ask(client, COMMIT, epoch, nodes, placement));
	free(nodes);
	free(placement);
}

static void ask_all(struct ocs_client *client, int epoch, int first, int last)
{
	for (int node = first; node <= last; node++)
		json_object_put(rig_ask(client, APPLY, epoch, node));
}

/* CLIENT's successor, after ocsd was ended with SIGNUM and started anew. */
static struct ocs_client *restarted(struct rig *rig, struct ocs_client *client, int signum)
{
	ocs_client_close(client);
	rig_stop_daemon(rig, signum);
	rig_start_daemon(rig);
	return rig_client(rig);
}

/* What `show` says of job 1's nodes that have not asked; the caller frees it. */
static char *unheard(struct ocs_client *client)
{
	struct json_object *reply = rig_ask(client, "{'op':'show','what':'job','name':'1'}");
	struct json_object *jobs = json_object_object_get(reply, "jobs");
	struct json_object *job = json_object_array_get_idx(jobs, 0);
	char *text = strdup(
		json_object_object_get_ex(job, "unheard", NULL) ? rig_text(job, "unheard") : "-");

	json_object_put(reply);
	return text;
}

static void expect_unheard(struct ocs_client *client, const char *wanted)
{
	char *text = unheard(client);

	assert_string_equal(text, wanted);
	free(text);
}

/* Jobs that a new subscriber is told to be ready. */
static size_t told_ready(struct rig *rig, const char *jobs)
{
	struct ocs_client *watcher = rig_client(rig);
	struct json_object *reply = rig_ask(watcher, "{'op':'subscribe','jobs':%s}", jobs);
	size_t count = json_object_array_length(json_object_object_get(reply, "ready"));

	json_object_put(reply);
	ocs_client_close(watcher);
	return count;
}

static void ready_when_the_last_has_asked(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig), *watcher = rig_client(rig);
	struct json_object *event;

	json_object_put(rig_ask(watcher, "{'op':'subscribe'}"));
	commit(rig, client, 5);
	expect_unheard(client, "n[0-7]");
	ask_all(client, 5, 0, NODES - 2);
	ask_all(client, 5, 0, 0);
	/* Without an epoch somebody tries by hand. */
	json_object_put(rig_ask(client, APPLY, 0, NODES - 1));
	expect_unheard(client, "n7");
	rig_silence(watcher, 100);
	assert_int_equal(told_ready(rig, "[{'job':1,'epoch':5}]"), 0);
	ask_all(client, 5, NODES - 1, NODES - 1);
	event = rig_event(watcher, "ready");
	assert_int_equal(rig_number(event, "job"), 1);
	assert_int_equal(rig_number(event, "epoch"), 5);
	json_object_put(event);
	expect_unheard(client, "-");
	ocs_client_close(client);
	ocs_client_close(watcher);
	/* It is durable before it is said. */
	rig_stop_daemon(rig, SIGKILL);
	rig_start_daemon(rig);
	assert_int_equal(told_ready(rig, "[{'job':1,'epoch':5}]"), 1);
	client = rig_client(rig);
	json_object_put(rig_ask(client, "{'op':'end','job':1,'epoch':5,'reason':'done'}"));
	assert_int_equal(told_ready(rig, "[]"), 0);
	json_object_put(rig_ask(client, "{'op':'release','job':1,'epoch':5}"));
	ocs_client_close(client);
}

/* Nodes that ask before slurmctld's commit has arrived count. */
static void early_nodes_count(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig), *early = rig_client(rig);
	struct ocs_client *watcher = rig_client(rig);

	json_object_put(rig_ask(watcher, "{'op':'subscribe'}"));
	rig_send(early, APPLY, 5, 0);
	commit(rig, client, 5);
	json_object_put(rig_reply(early));
	ask_all(client, 5, 1, NODES - 1);
	json_object_put(rig_event(watcher, "ready"));
	json_object_put(rig_ask(client, "{'op':'release','job':1,'epoch':5}"));
	ocs_client_close(early);
	ocs_client_close(client);
	ocs_client_close(watcher);
}

static void nodes_that_did_not_ask_are_closed(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig), *watcher = rig_client(rig);
	struct json_object *reply, *event;

	json_object_put(rig_ask(watcher, "{'op':'subscribe'}"));
	json_object_put(
		rig_refused(client, 1, "no allocation", "{'op':'unheard','job':1,'epoch':5}"));
	commit(rig, client, 5);
	ask_all(client, 5, 0, 3);
	/* The slurmd of n4 has been started anew with the plugin meanwhile; n5's and n6's prologs
	 * have ended, n7's has not. */
	json_object_put(rig_ask(client, "{'op':'present','node':'n4'}"));
	reply = rig_ask(client, "{'op':'unheard','job':1,'epoch':5,'ended':'n[0-6]'}");
	assert_string_equal(rig_text(reply, "missing"), "n[4-7]");
	assert_false(json_object_get_boolean(json_object_object_get(reply, "ready")));
	assert_false(json_object_get_boolean(json_object_object_get(reply, "uncertain")));
	json_object_put(reply);
	event = rig_event(watcher, "drain");
	assert_string_equal(rig_text(event, "name"), "n4");
	assert_false(json_object_get_boolean(json_object_object_get(event, "drained")));
	json_object_put(event);
	event = rig_event(watcher, "drain");
	assert_string_equal(rig_text(event, "kind"), "node");
	assert_string_equal(rig_text(event, "name"), "n5");
	assert_non_null(strstr(rig_text(event, "reason"), "unheard: its prolog for job 1 "));
	json_object_put(event);
	json_object_put(rig_event(watcher, "drain"));
	json_object_put(rig_ask(client, "{'op':'end','job':1,'epoch':5,'reason':'cancelled'}"));
	json_object_put(rig_refused(client, 1, "no living allocation",
				    "{'op':'unheard','job':1,'epoch':5}"));
	json_object_put(rig_ask(client, "{'op':'gone','job':1,'epoch':5}"));
	rig_until_forgotten(client, 1);
	/* They stay so until they are heard of, however often ocsd is restarted. */
	ocs_client_close(client);
	ocs_client_close(watcher);
	rig_stop_daemon(rig, SIGKILL);
	rig_start_daemon(rig);
	client = rig_client(rig);
	{
		char *nodes, *placement = rig_place(rig, "2x2x4", NULL, &nodes);

		json_object_put(
			rig_refused(client, 4, "is drained: unheard", COMMIT, 6, nodes, placement));
		free(nodes);
		free(placement);
	}
	json_object_put(rig_ask(client, "{'op':'present','node':'n5'}"));
	json_object_put(rig_ask(client, "{'op':'resume','kind':'node','name':'n6'}"));
	commit(rig, client, 7);
	json_object_put(rig_ask(client, "{'op':'release','job':1,'epoch':7}"));
	ocs_client_close(client);
}

/* Who asked an ocsd that is gone cannot be told. */
static void nobody_is_blamed_after_a_restart(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	struct json_object *reply;

	commit(rig, client, 5);
	ask_all(client, 5, 0, 3);
	client = restarted(rig, client, SIGKILL);
	reply = rig_ask(client, "{'op':'unheard','job':1,'epoch':5,'ended':'n[0-7]'}");
	assert_true(json_object_get_boolean(json_object_object_get(reply, "uncertain")));
	json_object_put(reply);
	reply = rig_ask(client, "{'op':'show','what':'fabric'}");
	assert_int_equal(json_object_array_length(json_object_object_get(reply, "drains")), 0);
	json_object_put(reply);
	/* All of them ask once more: it is ready. */
	ask_all(client, 5, 0, NODES - 1);
	reply = rig_ask(client, "{'op':'unheard','job':1,'epoch':5,'ended':'n[0-7]'}");
	assert_true(json_object_get_boolean(json_object_object_get(reply, "ready")));
	json_object_put(reply);
	json_object_put(rig_ask(client, "{'op':'release','job':1,'epoch':5}"));
	ocs_client_close(client);
}

/* One that is stopped or reloads keeps who has asked; one that is killed later does not. */
static void an_orderly_stop_forgets_nobody(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	struct json_object *reply;

	commit(rig, client, 5);
	ask_all(client, 5, 0, 3);
	client = restarted(rig, client, SIGTERM);
	expect_unheard(client, "n[4-7]");
	reply = rig_ask(client, "{'op':'unheard','job':1,'epoch':5,'ended':'n4'}");
	assert_false(json_object_get_boolean(json_object_object_get(reply, "uncertain")));
	json_object_put(reply);
	client = restarted(rig, client, SIGKILL);
	expect_unheard(client, "n[0-7]");
	reply = rig_ask(client, "{'op':'unheard','job':1,'epoch':5,'ended':'n[0-5]'}");
	assert_true(json_object_get_boolean(json_object_object_get(reply, "uncertain")));
	json_object_put(reply);
	/* Nor does a stop after that make it certain. */
	ask_all(client, 5, 0, 0);
	client = restarted(rig, client, SIGTERM);
	expect_unheard(client, "n[0-7]");
	json_object_put(rig_ask(client, "{'op':'gone','job':1,'epoch':5}"));
	ocs_client_close(client);
}

static void expect_never(struct ocs_client *client, const char *part, bool there)
{
	struct json_object *reply = rig_ask(client, "{'op':'show','what':'nodes'}");

	assert_true((strstr(rig_text(reply, "never_heard"), part) != NULL) == there);
	json_object_put(reply);
}

static void nodes_that_were_never_heard_of(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);

	expect_never(client, "n[0-15]", true);
	json_object_put(rig_ask(client, "{'op':'present','node':'n0'}"));
	/* One that ocs.yaml does not have may run the plugin; a name is needed. */
	json_object_put(rig_ask(client, "{'op':'present','node':'login'}"));
	json_object_put(rig_refused(client, 2, "needs the name", "{'op':'present'}"));
	expect_never(client, "n[1-15]", true);
	commit(rig, client, 5);
	ask_all(client, 5, 1, 1);
	client = restarted(rig, client, SIGTERM);
	expect_never(client, "n[2-15]", true);
	/* What an administrator has drained stays so. */
	json_object_put(rig_ask(client, "{'op':'drain','kind':'node','name':'n0','reason':'fan'}"));
	json_object_put(rig_ask(client, "{'op':'present','node':'n0'}"));
	json_object_put(rig_ask(client, "{'op':'gone','job':1,'epoch':5}"));
	{
		char *nodes, *placement = rig_place(rig, "2x2x4", NULL, &nodes);

		json_object_put(rig_refused(client, 4, "node n0 is drained: fan", COMMIT, 6, nodes,
					    placement));
		free(nodes);
		free(placement);
	}
	json_object_put(rig_refused(client, 2, "no node n99",
				    "{'op':'drain','kind':'node','name':'n99','reason':'x'}"));
	ocs_client_close(client);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
		TEST(ready_when_the_last_has_asked),	 TEST(early_nodes_count),
		TEST(nodes_that_did_not_ask_are_closed), TEST(nobody_is_blamed_after_a_restart),
		TEST(an_orderly_stop_forgets_nobody),	 TEST(nodes_that_were_never_heard_of),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
