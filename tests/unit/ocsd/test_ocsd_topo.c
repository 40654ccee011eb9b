/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Topologies of running jobs on rails: what controllers may ask for, and what comes of it. */

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "src/util/error.h"
#include "src/util/secret.h"
#include "src/util/text.h"
#include "tests/unit/ocsd/ocsd_rows.h"
#include "tests/unit/ocsd/topo_rig.h"

/* ---- tests ---- */

static void goes_round(void **state)
{
	static const char *const turns[] = {
		"000", "001", "111", "011", "000", "110", "ring", "111"
	};
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	struct tenant a = { 1, 0, "" }, b = { 2, 6, "" };
	char secret[OCS_MAC_HEX + 1];
	struct json_object *reply;
	int64_t before;

	topo_start(client, &a, "provisioned");
	topo_start(client, &b, "on-demand");
	assert_int_equal(strlen(a.key), 32);
	assert_string_not_equal(a.key, b.key);
	/* the key is for the first node, and only for its prolog */
	reply = rig_ask(client, "{'op':'apply','job':1,'epoch':10,'node':'p1'}");
	assert_null(json_object_object_get(reply, "key"));
	assert_string_equal(rig_text(json_object_object_get(reply, "phases"), "topo"), "111");
	/* that of agents, which follows from it, is for each node */
	ocs_key_prove(a.key, strlen(a.key), secret, "agents", "1", "10", NULL);
	assert_string_equal(rig_text(reply, "agent_key"), secret);
	json_object_put(reply);
	reply = rig_ask(client, "{'op':'apply','job':1,'epoch':0,'node':'p0'}");
	assert_null(json_object_object_get(reply, "key"));
	assert_null(json_object_object_get(reply, "agent_key"));
	json_object_put(reply);
	for (int sw = 0; sw < TOPO_RAILS; sw++)
		topo_table_is(rig, sw, &a, "111", &b, "111");
	before = topo_revision(client);
	for (size_t i = 0; i < sizeof(turns) / sizeof(*turns); i++) {
		print_message("# to %s\n", turns[i]);
		topo_change(client, &a, (int)i + 1, turns[i]);
		for (int sw = 0; sw < TOPO_RAILS; sw++)
			topo_table_is(rig, sw, &a, turns[i], &b, "111");
	}
	assert_int_equal(topo_revision(client), before);
	/* nothing of it is in the database but the giant rings */
	assert_int_equal(rig_select(rig, "SELECT count(*) FROM audit WHERE what='giant_ring'"),
			 TOPO_RAILS);
	assert_int_equal(rig_select(rig, "SELECT count(*) FROM circuits WHERE job=1"), 0);
	assert_int_equal(rig_select(rig, "SELECT count(*) FROM menus"), 2);
	topo_end(client, &a);
	for (int sw = 0; sw < TOPO_RAILS; sw++)
		topo_table_is(rig, sw, &a, NULL, &b, "111");
	/* circuits of B were made once, and never cut */
	assert_int_equal(rig_log_lines(rig, "\"break\"", "\"in\":13", NULL), 0);
	assert_int_equal(
		rig_select(rig, "SELECT count(*) FROM audit WHERE what='topologies' AND job=1"), 1);
	assert_int_equal(
		rig_select(rig, "SELECT count(*) FROM audit WHERE what='revoked' AND job=1"), 1);
	topo_end(client, &b);
	rig_until_patches(rig, 0);
	assert_int_equal(rig_select(rig, "SELECT count(*) FROM menus"), 0);
	ocs_client_close(client);
}

/* Where every end gets a new peer, one command on each switch makes the change. */
static void switch_that_replaces(void **state)
{
	static const char *const turns[] = { "000", "111", "ring", "011", "111" };
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	struct tenant a = { 1, 0, "" }, b = { 2, 6, "" };
	int deletes;

	topo_start(client, &a, "provisioned");
	topo_start(client, &b, "provisioned");
	deletes = rig_log_lines(rig, "\"command\"", "DLT-PATCH", NULL);
	for (int i = 0; i < 5; i++) {
		topo_change(client, &a, i + 1, turns[i]);
		for (int sw = 0; sw < TOPO_RAILS; sw++)
			topo_table_is(rig, sw, &a, turns[i], &b, "111");
		if (i < 3)
			assert_int_equal(rig_log_lines(rig, "\"command\"", "DLT-PATCH", NULL),
					 deletes);
	}
	topo_end(client, &a);
	topo_end(client, &b);
	ocs_client_close(client);
}

/* A stage that does not change keeps its circuits. */
static void touches_its_ports(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	struct tenant a = { 1, 0, "" };
	int before;

	topo_start(client, &a, "provisioned");
	before = rig_log_lines(rig, "\"break\"", NULL);
	topo_change(client, &a, 1, "001");
	/* the rings of stages 0 and 1: four circuits of two patches on each switch */
	assert_int_equal(rig_log_lines(rig, "\"break\"", NULL) - before, TOPO_RAILS * 8);
	/* of stage 2 (ports 9 to 12) none */
	for (int port = 9; port <= 12; port++) {
		char text[32];

		snprintf(text, sizeof(text), "\"in\":%d,", port);
		assert_int_equal(rig_log_lines(rig, "\"break\"", text, NULL), 0);
	}
	topo_end(client, &a);
	ocs_client_close(client);
}

static void same_and_older(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	struct tenant a = { 1, 0, "" };
	struct json_object *reply;
	int lines;

	topo_start(client, &a, "provisioned");
	topo_change(client, &a, 5, "000");
	lines = rig_log_lines(rig, "\"make\"", NULL);
	topo_change(client, &a, 5, "000");
	assert_int_equal(rig_log_lines(rig, "\"make\"", NULL), lines);
	reply = rig_refused(client, OCS_ERROR, "seq 4 is older than 5", TOPO_REQUEST, 1, 10, 4,
			    a.key, "{'rail':0,'topo':'111'}");
	assert_int_equal(rig_number(topo_row(reply, 0), "seq"), 5);
	assert_string_equal(rig_text(topo_row(reply, 0), "topo"), "000");
	json_object_put(reply);
	json_object_put(rig_refused(client, OCS_USAGE, "asked for topology 000", TOPO_REQUEST, 1,
				    10, 5, a.key, "{'rail':0,'topo':'111'}"));
	/* one rail may lag behind the other */
	reply = rig_ask(client, TOPO_REQUEST, 1, 10, 6, a.key, "{'rail':1,'topo':'111'}");
	json_object_put(reply);
	topo_table_is(rig, 0, &a, "000", NULL, NULL);
	topo_table_is(rig, 1, &a, "111", NULL, NULL);
	reply = rig_ask(client, TOPO_REQUEST, 1, 10, 5, a.key,
			"{'rail':0,'topo':'000'},{'rail':1,'topo':'000'}");
	assert_null(json_object_object_get(topo_row(reply, 0), "error"));
	assert_string_equal(rig_text(topo_row(reply, 1), "stage"), "none");
	assert_int_equal(rig_number(topo_row(reply, 1), "seq"), 6);
	json_object_put(reply);
	topo_table_is(rig, 1, &a, "111", NULL, NULL);
	topo_end(client, &a);
	ocs_client_close(client);
}

static void requests_that_are_none(void **state)
{
	static const char *const bad[] = {
		"{'op':'topo'}",
		"{'op':'topo','job':1}",
		"{'op':'topo','job':1,'epoch':10}",
		"{'op':'topo','job':1,'epoch':10,'key':'%1$s'}",
		"{'op':'topo','job':1,'epoch':10,'key':'%1$s','seq':0,'rails':[]}",
		"{'op':'topo','job':1,'epoch':10,'key':'%1$s','seq':-1,'rails':[{'rail':0,'topo':'111'}]}",
		"{'op':'topo','job':1,'epoch':10,'key':'%1$s','seq':'1','rails':[{'rail':0,'topo':'111'}]}",
		"{'op':'topo','job':1,'epoch':10,'key':'%1$s','seq':1,'rails':{'rail':0,'topo':'111'}}",
		"{'op':'topo','job':1,'epoch':10,'key':'%1$s','seq':1,'rails':[]}",
		"{'op':'topo','job':1,'epoch':10,'key':'%1$s','seq':1,'rails':[7]}",
		"{'op':'topo','job':1,'epoch':10,'key':'%1$s','seq':1,'rails':[{'rail':2,'topo':'111'}]}",
		"{'op':'topo','job':1,'epoch':10,'key':'%1$s','seq':1,'rails':[{'rail':-1,'topo':'111'}]}",
		"{'op':'topo','job':1,'epoch':10,'key':'%1$s','seq':1,'rails':[{'rail':0}]}",
		"{'op':'topo','job':1,'epoch':10,'key':'%1$s','seq':1,'rails':[{'rail':0,'topo':111}]}",
		"{'op':'topo','job':1,'epoch':10,'key':'%1$s','seq':1,'rails':[{'rail':0,'topo':'11'}]}",
		"{'op':'topo','job':1,'epoch':10,'key':'%1$s','seq':1,'rails':[{'rail':0,'topo':'112'}]}",
		"{'op':'topo','job':1,'epoch':10,'key':'%1$s','seq':1,'rails':[{'rail':0,'topo':'RING'}]}",
		("{'op':'topo','job':1,'epoch':10,'key':'%1$s','seq':1,'rails':[{'rail':0,'topo':'111'},"
		 "{'rail':0,'topo':'000'}]}"),
		("{'op':'topo','job':1,'epoch':10,'key':'%1$s','seq':1,'rails':[{'rail':0,'topo':'000'},"
		 "{'rail':1,'topo':'00'}]}"),
	};
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	struct tenant a = { 1, 0, "" };
	struct ocs_error err;
	int lines;

	topo_start(client, &a, "provisioned");
	lines = rig_log_lines(rig, "\"break\"", NULL);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		char *text = ocs_asprintf(bad[i], a.key);
		struct json_object *request = rig_json("%s", text);
		struct json_object *reply = ocs_client_call(client, request, 5000, NULL, &err);

		if (reply)
			fail_msg("%s was answered %s", text, json_object_to_json_string(reply));
		json_object_put(request);
		free(text);
	}
	assert_int_equal(rig_log_lines(rig, "\"break\"", NULL), lines);
	topo_change(client, &a, 1, "000");
	topo_end(client, &a);
	ocs_client_close(client);
}

static void keys(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	struct tenant a = { 1, 0, "" }, b = { 2, 6, "" };

	topo_start(client, &a, "provisioned");
	topo_start(client, &b, "provisioned");
	json_object_put(rig_refused(client, OCS_ERROR, "no job 1 with epoch 10 has this key",
				    TOPO_REQUEST, 1, 10, 1, "0123456789abcdef0123456789abcdef",
				    "{'rail':0,'topo':'000'}"));
	json_object_put(rig_refused(client, OCS_ERROR, "has this key", TOPO_REQUEST, 1, 10, 1, "",
				    "{'rail':0,'topo':'000'}"));
	json_object_put(rig_refused(client, OCS_ERROR, "has this key", TOPO_REQUEST, 1, 10, 1,
				    b.key, "{'rail':0,'topo':'000'}"));
	json_object_put(rig_refused(client, OCS_ERROR, "has this key", TOPO_REQUEST, 1, 9, 1, a.key,
				    "{'rail':0,'topo':'000'}"));
	json_object_put(rig_refused(client, OCS_ERROR, "has this key", TOPO_REQUEST, 7, 70, 1,
				    a.key, "{'rail':0,'topo':'000'}"));
	for (int sw = 0; sw < TOPO_RAILS; sw++)
		topo_table_is(rig, sw, &a, "111", &b, "111");
	assert_true(rig_select(rig, "SELECT count(*) FROM audit WHERE what='topology_refused'") >
		    0);
	/* a newer epoch ends the older one */
	json_object_put(rig_ask(client,
				"{'op':'commit','job':1,'epoch':11,'uid':1234,'section':'photon',"
				"'nodes':'p[0-5]','shape':'pp:3,dp:2','phases':'provisioned'}"));
	json_object_put(rig_ask(client, "{'op':'apply','job':1,'epoch':11,'node':'p0'}"));
	json_object_put(rig_refused(client, OCS_ERROR, "", TOPO_REQUEST, 1, 10, 1, a.key,
				    "{'rail':0,'topo':'000'}"));
	json_object_put(rig_refused(client, OCS_ERROR, "has this key", TOPO_REQUEST, 1, 11, 1,
				    a.key, "{'rail':0,'topo':'000'}"));
	for (int sw = 0; sw < TOPO_RAILS; sw++)
		topo_table_is(rig, sw, &a, "111", &b, "111");
	ocs_client_close(client);
}

/* The user of another job, who has got hold of the key. */
static void another_user(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client;
	struct tenant a = { 1, 0, "" };
	int status = -1;
	pid_t pid;

	if (geteuid() != 0)
		skip();
	client = rig_client(rig);
	topo_start(client, &a, "provisioned");
	assert_int_equal(chmod(rig->emulator.folder, 0711), 0);
	for (int who = 0; who < 2; who++) {
		pid = fork();
		if (pid == 0) {
			struct ocs_client *other;
			struct json_object *request, *reply;
			struct ocs_error err = { 0 };

			if (setgid(65534) || setuid(who ? TOPO_OWNER : 65534))
				_exit(99);
			other = ocs_client_open(rig->address, NULL, NULL, RIG_PATIENCE_MS, &err);
			request =
				rig_json(TOPO_REQUEST, 1, 10, 1, a.key, "{'rail':0,'topo':'000'}");
			reply = other ? ocs_client_call(other, request, 5000, NULL, &err) : NULL;
			_exit(reply ? 0 : err.code);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), who ? 0 : OCS_ERROR);
		topo_table_is(rig, 0, &a, who ? "000" : "111", NULL, NULL);
	}
	ocs_client_close(client);
}

static void two_controllers(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig), *second = rig_client(rig);
	struct tenant a = { 1, 0, "" };
	struct json_object *event;

	topo_start(client, &a, "provisioned");
	topo_change(client, &a, 1, "000");
	topo_change(second, &a, 2, "111");
	event = rig_event(client, "revoked");
	assert_int_equal(rig_number(event, "job"), 1);
	json_object_put(event);
	json_object_put(rig_refused(client, OCS_ERROR, "has taken over", TOPO_REQUEST, 1, 10, 3,
				    a.key, "{'rail':0,'topo':'000'}"));
	for (int sw = 0; sw < TOPO_RAILS; sw++)
		topo_table_is(rig, sw, &a, "111", NULL, NULL);
	/* the end reaches the one that is left */
	json_object_put(rig_ask(client, "{'op':'end','job':1,'epoch':10,'reason':'scancel'}"));
	event = rig_event(second, "revoked");
	assert_string_equal(rig_text(event, "reason"), "scancel");
	json_object_put(event);
	json_object_put(rig_refused(second, OCS_ERROR, "has ended", TOPO_REQUEST, 1, 10, 4, a.key,
				    "{'rail':0,'topo':'000'}"));
	json_object_put(rig_ask(client, "{'op':'release','job':1,'epoch':10}"));
	rig_until_patches(rig, 0);
	ocs_client_close(client);
	ocs_client_close(second);
}

/* A port of one rail does not obey: the other rail goes on, and so does all else of this one. */
static void refused_port(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	struct tenant a = { 1, 0, "" }, b = { 2, 6, "" };
	struct json_object *reply;

	topo_start(client, &a, "provisioned");
	topo_start(client, &b, "provisioned");
	topo_change(client, &a, 1, "000");
	rig_emulate(rig, "port ph-0 4 refuse");
	reply = rig_ask(client, TOPO_REQUEST, 1, 10, 2, a.key,
			"{'rail':0,'topo':'111'},{'rail':1,'topo':'111'}");
	assert_string_equal(rig_text(topo_row(reply, 0), "stage"), "sent");
	assert_non_null(json_object_object_get(topo_row(reply, 0), "error"));
	assert_string_equal(rig_text(topo_row(reply, 1), "stage"), "verified");
	json_object_put(reply);
	topo_table_is(rig, 1, &a, "111", &b, "111");
	topo_change(client, &b, 1, "000");
	rig_emulate(rig, "port ph-0 4 good");
	topo_change(client, &a, 3, "111");
	for (int sw = 0; sw < TOPO_RAILS; sw++)
		topo_table_is(rig, sw, &a, "111", &b, "000");
	assert_string_equal(rig_job_state(client, 1), "realised");
	topo_end(client, &a);
	topo_end(client, &b);
	ocs_client_close(client);
}

static void silent_switch(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	struct tenant a = { 1, 0, "" };
	struct json_object *reply;

	topo_start(client, &a, "provisioned");
	rig_emulate(rig, "fault ph-1 silent");
	reply = rig_ask(client, TOPO_REQUEST, 1, 10, 1, a.key,
			"{'rail':0,'topo':'000'},{'rail':1,'topo':'000'}");
	assert_string_equal(rig_text(topo_row(reply, 0), "stage"), "verified");
	assert_string_equal(rig_text(topo_row(reply, 1), "stage"), "sent");
	assert_int_equal(rig_number(topo_row(reply, 1), "code"), OCS_NOT_NOW);
	json_object_put(reply);
	/* while it is down the rail is refused at once */
	reply = rig_refused(client, OCS_NOT_NOW, "has failed", TOPO_REQUEST, 1, 10, 2, a.key,
			    "{'rail':1,'topo':'111'}");
	json_object_put(reply);
	rig_emulate(rig, "fault ph-1 none");
	rig_until_switch(client, "ph-1", "up");
	topo_change(client, &a, 3, "001");
	for (int sw = 0; sw < TOPO_RAILS; sw++)
		topo_table_is(rig, sw, &a, "001", NULL, NULL);
	topo_end(client, &a);
	rig_until_patches(rig, 0);
	ocs_client_close(client);
}

/* Somebody pulls a patch by hand. */
static void lost_circuit(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	struct tenant a = { 1, 0, "" };
	struct json_object *event;

	topo_start(client, &a, "provisioned");
	topo_change(client, &a, 1, "000");
	rig_emulate(rig, "unpatch ph-1 2");
	event = rig_event(client, "topo_lost");
	assert_int_equal(rig_number(event, "rail"), 1);
	assert_string_equal(rig_text(event, "switch"), "ph-1");
	json_object_put(event);
	topo_change(client, &a, 2, "000");
	topo_table_is(rig, 1, &a, "000", NULL, NULL);
	topo_change(client, &a, 3, "110");
	topo_table_is(rig, 1, &a, "110", NULL, NULL);
	topo_end(client, &a);
	ocs_client_close(client);
}

/* Changes that a switch has been sent. */
static int commands(struct rig *rig, const char *sw)
{
	return rig_log_lines(rig, "\"command\"", "-PATCH", sw, NULL);
}

static void until_sent(struct rig *rig, const char *sw, int before)
{
	for (int i = 0; i < 20000 && commands(rig, sw) == before; i++)
		usleep(5000);
}

/* The job ends while its circuits are on their way. */
static void end_in_the_middle(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig), *controller = rig_client(rig);
	struct tenant a = { 1, 0, "" }, b = { 2, 6, "" };
	struct json_object *reply;
	int sent[2];

	topo_start(client, &a, "provisioned");
	topo_start(client, &b, "provisioned");
	topo_change(controller, &a, 1, "000");
	sent[0] = commands(rig, "ph-0");
	sent[1] = commands(rig, "ph-1");
	/* so long that nothing of it is over when the job goes */
	rig_emulate(rig, "delay 1500");
	rig_send(controller, TOPO_REQUEST, 1, 10, 2, a.key,
		 "{'rail':0,'topo':'111'},{'rail':1,'topo':'ring'}");
	until_sent(rig, "ph-0", sent[0]);
	until_sent(rig, "ph-1", sent[1]);
	json_object_put(rig_ask(client, "{'op':'gone','job':1,'epoch':10,'reason':'killed'}"));
	json_object_put(rig_event(controller, "revoked"));
	reply = rig_reply(controller);
	assert_false(json_object_get_boolean(json_object_object_get(reply, "ok")));
	assert_string_equal(rig_text(topo_row(reply, 0), "stage"), "sent");
	json_object_put(reply);
	rig_until_forgotten(client, 1);
	rig_emulate(rig, "delay 2");
	for (int sw = 0; sw < TOPO_RAILS; sw++)
		topo_table_is(rig, sw, &a, NULL, &b, "111");
	/* the ports serve the next one */
	a.job = 3;
	topo_start(client, &a, "provisioned");
	topo_change(controller, &a, 1, "000");
	for (int sw = 0; sw < TOPO_RAILS; sw++)
		topo_table_is(rig, sw, &a, "000", &b, "111");
	topo_end(client, &a);
	topo_end(client, &b);
	ocs_client_close(client);
	ocs_client_close(controller);
}

/* A patch between two ports of the job that no menu has, and a late one that its menu has. */
static void stray_patches(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	struct tenant a = { 1, 0, "" };

	topo_start(client, &a, "provisioned");
	/* 001: the lines of stages 0 and 1 leave port 1 of stage 1 (nodes 2 and 3) free */
	topo_change(client, &a, 1, "001");
	rig_emulate(rig, "patch ph-0 %d %d", topo_port(&a, 2, 1), TOPO_SIZE + topo_port(&a, 3, 1));
	json_object_put(rig_ask(client, "{'op':'reconcile'}"));
	rig_until_patches(rig, 2 * 8);
	for (int sw = 0; sw < TOPO_RAILS; sw++)
		topo_table_is(rig, sw, &a, "001", NULL, NULL);
	topo_change(client, &a, 2, "111");
	topo_end(client, &a);
	ocs_client_close(client);
}

static void without_phases(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	struct tenant a = { 1, 0, "" };

	topo_start(client, &a, "off");
	assert_string_equal(a.key, "");
	for (int sw = 0; sw < TOPO_RAILS; sw++)
		topo_table_is(rig, sw, &a, "ring", NULL, NULL);
	ocs_client_close(client);
	rig_stop_daemon(rig, SIGKILL);
	rig_start_daemon(rig);
	client = rig_client(rig);
	for (int sw = 0; sw < TOPO_RAILS; sw++)
		topo_table_is(rig, sw, &a, "ring", NULL, NULL);
	/* it is made again by itself */
	rig_emulate(rig, "unpatch ph-0 2");
	rig_until_patches(rig, TOPO_RAILS * TOPO_FULL);
	topo_table_is(rig, 0, &a, "ring", NULL, NULL);
	json_object_put(rig_refused(client, OCS_ERROR, "has this key", TOPO_REQUEST, 1, 10, 1, "",
				    "{'rail':0,'topo':'000'}"));
	topo_end(client, &a);
	ocs_client_close(client);
}

static void rate(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	struct tenant a = { 1, 0, "" };
	int refused = 0;

	topo_start(client, &a, "provisioned");
	/* The burst is twice 200, and 200 come each second; the same answer again costs a token, too.  All
	 * are sent at once: one after the other they may be slower than that. */
	for (int i = 0; i < 800; i++)
		rig_send(client, TOPO_REQUEST, 1, 10, 1, a.key, "{'rail':0,'topo':'111'}");
	for (int i = 0; i < 800; i++) {
		struct json_object *reply = rig_reply(client);
		bool good = json_object_get_boolean(json_object_object_get(reply, "ok"));

		if (!good)
			assert_int_equal(rig_number(reply, "code"), OCS_NOT_NOW);
		assert_true(good || i >= 400);
		refused += !good;
		json_object_put(reply);
	}
	assert_true(refused > 0);
	topo_end(client, &a);
	ocs_client_close(client);
}

/* Requests of all nodes on one connection, sent before any answer is read: those that can be answered are, and
 * those that wait are when the job goes. */
static void routes_at_once(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig), *nodes = rig_client(rig);
	struct tenant a = { 1, 0, "" };
	int64_t revision = 0;

	topo_start(client, &a, "provisioned");
	for (int node = 0; node < 2 * TOPO_NODES; node++)
		rig_send(nodes, "{'op':'routes','job':1,'epoch':10,'node':'p%d','after':0}",
			 node % TOPO_NODES);
	for (int node = 0; node < 2 * TOPO_NODES; node++) {
		struct json_object *reply = rig_reply(nodes);

		assert_true(json_object_get_boolean(json_object_object_get(reply, "ok")));
		revision = rig_number(reply, "revision");
		json_object_put(reply);
	}
	assert_true(revision > 0);
	for (int node = 0; node < TOPO_NODES; node++)
		rig_send(nodes, "{'op':'routes','job':1,'epoch':10,'node':'p%d','after':%d}", node,
			 (int)revision);
	/* The last one of this connection: the others have been read. */
	rig_send(nodes, "{'op':'show','what':'phases'}");
	json_object_put(rig_reply(nodes));
	json_object_put(rig_ask(client, "{'op':'gone','job':1,'epoch':10}"));
	for (int node = 0; node < TOPO_NODES; node++) {
		struct json_object *reply = rig_reply(nodes);

		assert_true(json_object_get_boolean(json_object_object_get(reply, "gone")));
		json_object_put(reply);
	}
	rig_until_forgotten(client, 1);
	ocs_client_close(client);
	ocs_client_close(nodes);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, topo_setup, rig_teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(switch_that_replaces, topo_setup_replace,
						rig_teardown),
		TEST(goes_round),
		TEST(touches_its_ports),
		TEST(same_and_older),
		TEST(requests_that_are_none),
		TEST(keys),
		TEST(another_user),
		TEST(two_controllers),
		TEST(refused_port),
		TEST(silent_switch),
		TEST(lost_circuit),
		cmocka_unit_test_setup_teardown(end_in_the_middle, topo_setup_patient,
						rig_teardown),
		TEST(without_phases),
		TEST(rate),
		TEST(stray_patches),
		cmocka_unit_test_setup_teardown(routes_at_once, topo_setup_tcp, rig_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
