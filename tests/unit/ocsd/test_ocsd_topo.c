/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Topologies of jobs on rails: two jobs of six nodes (three stages, rings of two) on the same two
 * switches with two ports per NIC.  What has to be on the switches is worked out here, from the
 * names of topologies alone. */

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
#include "src/util/text.h"
#include "tests/unit/ocsd/ocsd_rig.h"
#include "tests/unit/ocsd/ocsd_rows.h"

#define SIZE 32
#define STAGES 3
#define WIDTH 2
#define NODES (STAGES * WIDTH)
#define RAILS 2
#define FULL 12 /* patches of a job on one switch in any of its topologies */
#define OWNER 1234

static const char switches[] = "  - name: ph-[0-1]\n"
			       "    driver: tl1\n"
			       "    address: \"unix:%1$s/{name}\"\n"
			       "    credentials: %1$s/credentials\n"
			       "    size: 32\n";

static const char fabrics[] =
	"  - name: photon\n"
	"    kind: rails\n"
	"    partitions: [photon]\n"
	"    nodes: p[0-11]\n"
	"    rails: 2\n"
	"    ports_per_nic: 2\n"
	"    ports: {switch: \"ph-{interface}\", port: 2*server+nic_port+1}\n";

static int setup(void **state)
{
	return rig_setup_with(state, switches, fabrics, 0);
}

/* A job whose first node is p<FIRST>. */
struct tenant {
	unsigned int job;
	int first;
	char key[64];
};

static void commit(struct ocs_client *client, const struct tenant *t, const char *phases)
{
	json_object_put(
		rig_ask(client,
			"{'op':'commit','job':%u,'epoch':%u,'uid':%d,'user':'alice',"
			"'section':'photon','nodes':'p[%d-%d]','shape':'pp:3,dp:2','phases':'%s'}",
			t->job, t->job * 10, OWNER, t->first, t->first + NODES - 1, phases));
}

static void start(struct ocs_client *client, struct tenant *t, const char *phases)
{
	struct json_object *reply;
	const char *key;

	commit(client, t, phases);
	reply = rig_ask(client, "{'op':'apply','job':%u,'epoch':%u,'node':'p%d'}", t->job,
			t->job * 10, t->first);
	key = json_object_get_string(json_object_object_get(reply, "key"));
	snprintf(t->key, sizeof(t->key), "%s", key ? key : "");
	json_object_put(reply);
}

/* ---- what has to be there ---- */

static int port_of(const struct tenant *t, int node, int nic_port)
{
	return 2 * (t->first + node) + nic_port + 1;
}

static void join(const struct tenant *t, int *out, int node, int next)
{
	int a = port_of(t, node, 1), b = port_of(t, next, 0);

	assert_int_equal(out[a], 0);
	assert_int_equal(out[b], 0);
	out[a] = SIZE + b;
	out[b] = SIZE + a;
}

/* The circuits of TOPO, by hand: a digit 1 is the ring of a stage, neighbouring zeros (the last
 * stage and the first are neighbours) are lines from stage to stage. */
static void topology_add(const struct tenant *t, const char *topo, int *out)
{
	bool ring = strcmp(topo, "ring") == 0;

	for (int node = 0; node < NODES; node++) {
		int stage = node / WIDTH, next = (stage + 1) % STAGES;

		if (ring)
			join(t, out, node, (node + 1) % NODES);
		else if (topo[stage] == '1')
			join(t, out, node, stage * WIDTH + (node + 1) % WIDTH);
		else if (topo[next] == '0')
			join(t, out, node, next * WIDTH + node % WIDTH);
	}
}

static void table_of(struct rig *rig, int sw, int *out)
{
	char *text = emulator_control(&rig->emulator, "table"), name[16];
	struct json_object *tables = json_tokener_parse(text), *list;

	snprintf(name, sizeof(name), "ph-%d", sw);
	list = json_object_object_get(tables, name);
	memset(out, 0, (SIZE + 1) * sizeof(*out));
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		struct json_object *pair = json_object_array_get_idx(list, i);

		out[json_object_get_int(json_object_array_get_idx(pair, 0))] =
			json_object_get_int(json_object_array_get_idx(pair, 1));
	}
	json_object_put(tables);
	free(text);
}

/* Switch SW has exactly the topologies of both jobs (NULL: nothing of that job). */
static void assert_table(struct rig *rig, int sw, const struct tenant *one, const char *topo,
			 const struct tenant *two, const char *other)
{
	int wanted[SIZE + 1] = { 0 }, out[SIZE + 1];

	if (topo)
		topology_add(one, topo, wanted);
	if (other)
		topology_add(two, other, wanted);
	table_of(rig, sw, out);
	for (int in = 1; in <= SIZE; in++)
		if (out[in] != wanted[in])
			fail_msg("switch ph-%d: ingress %d has egress %d instead of %d", sw, in,
				 out[in], wanted[in]);
}

/* ---- asking ---- */

#define TOPO "{'op':'topo','job':%u,'epoch':%u,'seq':%d,'key':'%s','rails':[%s]}"
#define BOTH "{'rail':0,'topo':'%s'},{'rail':1,'topo':'%s'}"

static struct json_object *row_of(struct json_object *reply, size_t index)
{
	struct json_object *rows = json_object_object_get(reply, "rails");

	assert_true(index < json_object_array_length(rows));
	return json_object_array_get_idx(rows, index);
}

/* Both rails of T go to TOPO, and say so. */
static void change(struct ocs_client *client, const struct tenant *t, int seq, const char *topo)
{
	char *rails = ocs_asprintf("{'rail':0,'topo':'%s'},{'rail':1,'topo':'%s'}", topo, topo);
	struct json_object *reply = rig_ask(client, TOPO, t->job, t->job * 10, seq, t->key, rails);

	for (int r = 0; r < RAILS; r++) {
		assert_int_equal(rig_number(row_of(reply, r), "rail"), r);
		assert_int_equal(rig_number(row_of(reply, r), "seq"), seq);
		assert_string_equal(rig_text(row_of(reply, r), "topo"), topo);
		assert_string_equal(rig_text(row_of(reply, r), "stage"), "verified");
		assert_null(json_object_object_get(row_of(reply, r), "error"));
	}
	json_object_put(reply);
	free(rails);
}

static void end_job(struct ocs_client *client, const struct tenant *t)
{
	json_object_put(rig_ask(client, "{'op':'end','job':%u,'epoch':%u}", t->job, t->job * 10));
	json_object_put(
		rig_ask(client, "{'op':'release','job':%u,'epoch':%u}", t->job, t->job * 10));
	rig_until_forgotten(client, t->job);
}

static int64_t revision(struct ocs_client *client)
{
	struct json_object *reply = rig_ask(client, "{'op':'show','what':'phases'}");
	int64_t number = rig_number(reply, "revision");

	json_object_put(reply);
	return number;
}

/* ---- tests ---- */

static void goes_round(void **state)
{
	static const char *const turns[] = {
		"000", "001", "111", "011", "000", "110", "ring", "111"
	};
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	struct tenant a = { 1, 0, "" }, b = { 2, 6, "" };
	struct json_object *reply;
	int64_t before;

	start(client, &a, "provisioned");
	start(client, &b, "on-demand");
	assert_int_equal(strlen(a.key), 32);
	assert_string_not_equal(a.key, b.key);
	/* the key is for the first node, and only for its prolog */
	reply = rig_ask(client, "{'op':'apply','job':1,'epoch':10,'node':'p1'}");
	assert_null(json_object_object_get(reply, "key"));
	assert_string_equal(rig_text(json_object_object_get(reply, "phases"), "topo"), "111");
	json_object_put(reply);
	reply = rig_ask(client, "{'op':'apply','job':1,'epoch':0,'node':'p0'}");
	assert_null(json_object_object_get(reply, "key"));
	json_object_put(reply);
	for (int sw = 0; sw < RAILS; sw++)
		assert_table(rig, sw, &a, "111", &b, "111");
	before = revision(client);
	for (size_t i = 0; i < sizeof(turns) / sizeof(*turns); i++) {
		print_message("# to %s\n", turns[i]);
		change(client, &a, (int)i + 1, turns[i]);
		for (int sw = 0; sw < RAILS; sw++)
			assert_table(rig, sw, &a, turns[i], &b, "111");
	}
	assert_int_equal(revision(client), before);
	/* nothing of it is in the database but the giant rings */
	assert_int_equal(rig_select(rig, "SELECT count(*) FROM audit WHERE what='giant_ring'"),
			 RAILS);
	assert_int_equal(rig_select(rig, "SELECT count(*) FROM circuits WHERE job=1"), 0);
	assert_int_equal(rig_select(rig, "SELECT count(*) FROM menus"), 2);
	end_job(client, &a);
	for (int sw = 0; sw < RAILS; sw++)
		assert_table(rig, sw, &a, NULL, &b, "111");
	/* circuits of B were made once, and never cut */
	assert_int_equal(rig_log_lines(rig, "\"break\"", "\"in\":13", NULL), 0);
	assert_int_equal(
		rig_select(rig, "SELECT count(*) FROM audit WHERE what='topologies' AND job=1"), 1);
	assert_int_equal(
		rig_select(rig, "SELECT count(*) FROM audit WHERE what='revoked' AND job=1"), 1);
	end_job(client, &b);
	rig_until_patches(rig, 0);
	assert_int_equal(rig_select(rig, "SELECT count(*) FROM menus"), 0);
	ocs_client_close(client);
}

/* A stage that does not change keeps its circuits. */
static void touches_its_ports(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	struct tenant a = { 1, 0, "" };
	int before;

	start(client, &a, "provisioned");
	before = rig_log_lines(rig, "\"break\"", NULL);
	change(client, &a, 1, "001");
	/* the rings of stages 0 and 1: four circuits of two patches on each switch */
	assert_int_equal(rig_log_lines(rig, "\"break\"", NULL) - before, RAILS * 8);
	/* of stage 2 (ports 9 to 12) none */
	for (int port = 9; port <= 12; port++) {
		char text[32];

		snprintf(text, sizeof(text), "\"in\":%d,", port);
		assert_int_equal(rig_log_lines(rig, "\"break\"", text, NULL), 0);
	}
	end_job(client, &a);
	ocs_client_close(client);
}

static void same_and_older(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	struct tenant a = { 1, 0, "" };
	struct json_object *reply;
	int lines;

	start(client, &a, "provisioned");
	change(client, &a, 5, "000");
	lines = rig_log_lines(rig, "\"make\"", NULL);
	change(client, &a, 5, "000");
	assert_int_equal(rig_log_lines(rig, "\"make\"", NULL), lines);
	reply = rig_refused(client, OCS_ERROR, "seq 4 is older than 5", TOPO, 1, 10, 4, a.key,
			    "{'rail':0,'topo':'111'}");
	assert_int_equal(rig_number(row_of(reply, 0), "seq"), 5);
	assert_string_equal(rig_text(row_of(reply, 0), "topo"), "000");
	json_object_put(reply);
	json_object_put(rig_refused(client, OCS_USAGE, "asked for topology 000", TOPO, 1, 10, 5,
				    a.key, "{'rail':0,'topo':'111'}"));
	/* one rail may lag behind the other */
	reply = rig_ask(client, TOPO, 1, 10, 6, a.key, "{'rail':1,'topo':'111'}");
	json_object_put(reply);
	assert_table(rig, 0, &a, "000", NULL, NULL);
	assert_table(rig, 1, &a, "111", NULL, NULL);
	reply = rig_ask(client, TOPO, 1, 10, 5, a.key,
			"{'rail':0,'topo':'000'},{'rail':1,'topo':'000'}");
	assert_null(json_object_object_get(row_of(reply, 0), "error"));
	assert_string_equal(rig_text(row_of(reply, 1), "stage"), "none");
	assert_int_equal(rig_number(row_of(reply, 1), "seq"), 6);
	json_object_put(reply);
	assert_table(rig, 1, &a, "111", NULL, NULL);
	end_job(client, &a);
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

	start(client, &a, "provisioned");
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
	change(client, &a, 1, "000");
	end_job(client, &a);
	ocs_client_close(client);
}

static void keys(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	struct tenant a = { 1, 0, "" }, b = { 2, 6, "" };

	start(client, &a, "provisioned");
	start(client, &b, "provisioned");
	json_object_put(rig_refused(client, OCS_ERROR, "no job 1 with epoch 10 has this key", TOPO,
				    1, 10, 1, "0123456789abcdef0123456789abcdef",
				    "{'rail':0,'topo':'000'}"));
	json_object_put(rig_refused(client, OCS_ERROR, "has this key", TOPO, 1, 10, 1, "",
				    "{'rail':0,'topo':'000'}"));
	json_object_put(rig_refused(client, OCS_ERROR, "has this key", TOPO, 1, 10, 1, b.key,
				    "{'rail':0,'topo':'000'}"));
	json_object_put(rig_refused(client, OCS_ERROR, "has this key", TOPO, 1, 9, 1, a.key,
				    "{'rail':0,'topo':'000'}"));
	json_object_put(rig_refused(client, OCS_ERROR, "has this key", TOPO, 7, 70, 1, a.key,
				    "{'rail':0,'topo':'000'}"));
	for (int sw = 0; sw < RAILS; sw++)
		assert_table(rig, sw, &a, "111", &b, "111");
	assert_true(rig_select(rig, "SELECT count(*) FROM audit WHERE what='topology_refused'") >
		    0);
	/* a newer epoch ends the older one */
	json_object_put(rig_ask(client,
				"{'op':'commit','job':1,'epoch':11,'uid':1234,'section':'photon',"
				"'nodes':'p[0-5]','shape':'pp:3,dp:2','phases':'provisioned'}"));
	json_object_put(rig_ask(client, "{'op':'apply','job':1,'epoch':11,'node':'p0'}"));
	json_object_put(rig_refused(client, OCS_ERROR, "", TOPO, 1, 10, 1, a.key,
				    "{'rail':0,'topo':'000'}"));
	json_object_put(rig_refused(client, OCS_ERROR, "has this key", TOPO, 1, 11, 1, a.key,
				    "{'rail':0,'topo':'000'}"));
	for (int sw = 0; sw < RAILS; sw++)
		assert_table(rig, sw, &a, "111", &b, "111");
	ocs_client_close(client);
}

/* The user of another job, who has got hold of the key. */
static void another_user(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	struct tenant a = { 1, 0, "" };
	int status = -1;
	pid_t pid;

	start(client, &a, "provisioned");
	if (geteuid() != 0)
		skip();
	assert_int_equal(chmod(rig->emulator.folder, 0711), 0);
	for (int who = 0; who < 2; who++) {
		pid = fork();
		if (pid == 0) {
			struct ocs_client *other;
			struct json_object *request, *reply;
			struct ocs_error err = { 0 };

			if (setgid(65534) || setuid(who ? OWNER : 65534))
				_exit(99);
			other = ocs_client_open(rig->address, NULL, NULL, 5000, &err);
			request = rig_json(TOPO, 1, 10, 1, a.key, "{'rail':0,'topo':'000'}");
			reply = other ? ocs_client_call(other, request, 5000, NULL, &err) : NULL;
			_exit(reply ? 0 : err.code);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), who ? 0 : OCS_ERROR);
		assert_table(rig, 0, &a, who ? "000" : "111", NULL, NULL);
	}
	ocs_client_close(client);
}

static void two_controllers(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig), *second = rig_client(rig);
	struct tenant a = { 1, 0, "" };
	struct json_object *event;

	start(client, &a, "provisioned");
	change(client, &a, 1, "000");
	change(second, &a, 2, "111");
	event = rig_event(client, "revoked");
	assert_int_equal(rig_number(event, "job"), 1);
	json_object_put(event);
	json_object_put(rig_refused(client, OCS_ERROR, "has taken over", TOPO, 1, 10, 3, a.key,
				    "{'rail':0,'topo':'000'}"));
	for (int sw = 0; sw < RAILS; sw++)
		assert_table(rig, sw, &a, "111", NULL, NULL);
	/* the end reaches the one that is left */
	json_object_put(rig_ask(client, "{'op':'end','job':1,'epoch':10,'reason':'scancel'}"));
	event = rig_event(second, "revoked");
	assert_string_equal(rig_text(event, "reason"), "scancel");
	json_object_put(event);
	json_object_put(rig_refused(second, OCS_ERROR, "has ended", TOPO, 1, 10, 4, a.key,
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

	start(client, &a, "provisioned");
	start(client, &b, "provisioned");
	change(client, &a, 1, "000");
	rig_emulate(rig, "port ph-0 4 refuse");
	reply = rig_ask(client, TOPO, 1, 10, 2, a.key,
			"{'rail':0,'topo':'111'},{'rail':1,'topo':'111'}");
	assert_string_equal(rig_text(row_of(reply, 0), "stage"), "sent");
	assert_non_null(json_object_object_get(row_of(reply, 0), "error"));
	assert_string_equal(rig_text(row_of(reply, 1), "stage"), "verified");
	json_object_put(reply);
	assert_table(rig, 1, &a, "111", &b, "111");
	change(client, &b, 1, "000");
	rig_emulate(rig, "port ph-0 4 good");
	change(client, &a, 3, "111");
	for (int sw = 0; sw < RAILS; sw++)
		assert_table(rig, sw, &a, "111", &b, "000");
	assert_string_equal(rig_job_state(client, 1), "realised");
	end_job(client, &a);
	end_job(client, &b);
	ocs_client_close(client);
}

static void silent_switch(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	struct tenant a = { 1, 0, "" };
	struct json_object *reply;

	start(client, &a, "provisioned");
	rig_emulate(rig, "fault ph-1 silent");
	reply = rig_ask(client, TOPO, 1, 10, 1, a.key,
			"{'rail':0,'topo':'000'},{'rail':1,'topo':'000'}");
	assert_string_equal(rig_text(row_of(reply, 0), "stage"), "verified");
	assert_string_equal(rig_text(row_of(reply, 1), "stage"), "sent");
	assert_int_equal(rig_number(row_of(reply, 1), "code"), OCS_NOT_NOW);
	json_object_put(reply);
	/* while it is down the rail is refused at once */
	reply = rig_refused(client, OCS_NOT_NOW, "has failed", TOPO, 1, 10, 2, a.key,
			    "{'rail':1,'topo':'111'}");
	json_object_put(reply);
	rig_emulate(rig, "fault ph-1 none");
	rig_until_switch(client, "ph-1", "up");
	change(client, &a, 3, "001");
	for (int sw = 0; sw < RAILS; sw++)
		assert_table(rig, sw, &a, "001", NULL, NULL);
	end_job(client, &a);
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

	start(client, &a, "provisioned");
	change(client, &a, 1, "000");
	rig_emulate(rig, "unpatch ph-1 2");
	event = rig_event(client, "topo_lost");
	assert_int_equal(rig_number(event, "rail"), 1);
	assert_string_equal(rig_text(event, "switch"), "ph-1");
	json_object_put(event);
	change(client, &a, 2, "000");
	assert_table(rig, 1, &a, "000", NULL, NULL);
	change(client, &a, 3, "110");
	assert_table(rig, 1, &a, "110", NULL, NULL);
	end_job(client, &a);
	ocs_client_close(client);
}

/* The job ends while its circuits are on their way. */
static void end_in_the_middle(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig), *controller = rig_client(rig);
	struct tenant a = { 1, 0, "" }, b = { 2, 6, "" };
	struct json_object *reply;

	start(client, &a, "provisioned");
	start(client, &b, "provisioned");
	change(controller, &a, 1, "000");
	rig_emulate(rig, "delay 150");
	rig_send(controller, TOPO, 1, 10, 2, a.key,
		 "{'rail':0,'topo':'111'},{'rail':1,'topo':'ring'}");
	usleep(60000);
	json_object_put(rig_ask(client, "{'op':'gone','job':1,'epoch':10,'reason':'killed'}"));
	json_object_put(rig_event(controller, "revoked"));
	reply = rig_reply(controller);
	assert_false(json_object_get_boolean(json_object_object_get(reply, "ok")));
	assert_string_equal(rig_text(row_of(reply, 0), "stage"), "sent");
	json_object_put(reply);
	rig_until_forgotten(client, 1);
	rig_emulate(rig, "delay 2");
	for (int sw = 0; sw < RAILS; sw++)
		assert_table(rig, sw, &a, NULL, &b, "111");
	/* the ports serve the next one */
	a.job = 3;
	start(client, &a, "provisioned");
	change(controller, &a, 1, "000");
	for (int sw = 0; sw < RAILS; sw++)
		assert_table(rig, sw, &a, "000", &b, "111");
	end_job(client, &a);
	end_job(client, &b);
	ocs_client_close(client);
	ocs_client_close(controller);
}

/* ocsd dies at a moment of AFTER_US within a change of A; the controller says again what it wants. */
static void die_in_change(struct rig *rig, const struct tenant *a, const struct tenant *b,
			  useconds_t after_us, const char *to)
{
	struct ocs_client *client = rig_client(rig);
	char *both = ocs_asprintf(BOTH, to, to);
	struct json_object *reply;
	int wanted[SIZE + 1] = { 0 }, out[SIZE + 1];

	rig_send(client, TOPO, a->job, a->job * 10, 2, a->key, both);
	usleep(after_us);
	rig_stop_daemon(rig, SIGKILL);
	ocs_client_close(client);
	rig_start_daemon(rig);
	client = rig_client(rig);
	assert_string_equal(rig_job_state(client, a->job), "realised");
	topology_add(b, "111", wanted);
	for (int sw = 0; sw < RAILS; sw++) {
		table_of(rig, sw, out);
		for (int in = port_of(b, 0, 0); in <= port_of(b, NODES - 1, 1); in++)
			assert_int_equal(out[in], wanted[in]);
	}
	/* whatever stands, the next word counts */
	reply = rig_ask(client, TOPO, a->job, a->job * 10, 3, a->key, both);
	json_object_put(reply);
	for (int sw = 0; sw < RAILS; sw++)
		assert_table(rig, sw, a, to, b, "111");
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

	start(client, &a, "provisioned");
	start(client, &b, "provisioned");
	ocs_client_close(client);
	rig_emulate(rig, "delay 10");
	for (int i = 0; i < 12; i++)
		die_in_change(rig, &a, &b, (useconds_t)i * 3000, turns[i % 4]);
	client = rig_client(rig);
	end_job(client, &a);
	end_job(client, &b);
	rig_until_patches(rig, 0);
	ocs_client_close(client);
}

/* ocsd dies in the middle of a change, and the job has ended before it is back. */
static void crash_and_end(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	struct tenant a = { 1, 0, "" }, b = { 2, 6, "" };

	start(client, &a, "provisioned");
	start(client, &b, "provisioned");
	rig_emulate(rig, "delay 40");
	rig_send(client, TOPO, 1, 10, 1, a.key, "{'rail':0,'topo':'000'},{'rail':1,'topo':'000'}");
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
	for (int sw = 0; sw < RAILS; sw++)
		assert_table(rig, sw, &a, NULL, &b, "111");
	end_job(client, &b);
	ocs_client_close(client);
}

/* A switch is away when the job ends and when ocsd starts: its ports stay the old job's until it is
 * back, and those of the other switch serve the next one. */
static void away_at_the_end(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	struct tenant a = { 1, 0, "" };

	start(client, &a, "provisioned");
	change(client, &a, 1, "000");
	rig_emulate(rig, "fault ph-1 refuse");
	rig_stop_daemon(rig, SIGKILL);
	ocs_client_close(client);
	rig_start_daemon(rig);
	client = rig_client(rig);
	json_object_put(rig_ask(client, "{'op':'gone','job':1,'epoch':10}"));
	usleep(700000);
	assert_string_not_equal(rig_job_state(client, 1), "");
	assert_table(rig, 0, &a, NULL, NULL, NULL);
	assert_table(rig, 1, &a, "000", NULL, NULL);
	rig_emulate(rig, "fault ph-1 none");
	rig_until_forgotten(client, 1);
	assert_table(rig, 1, &a, NULL, NULL, NULL);
	ocs_client_close(client);
}

/* A patch between two ports of the job that no menu has, and a late one that its menu has. */
static void stray_patches(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	struct tenant a = { 1, 0, "" };

	start(client, &a, "provisioned");
	/* 001: the lines of stages 0 and 1 leave port 1 of stage 1 (nodes 2 and 3) free */
	change(client, &a, 1, "001");
	rig_emulate(rig, "patch ph-0 %d %d", port_of(&a, 2, 1), SIZE + port_of(&a, 3, 1));
	json_object_put(rig_ask(client, "{'op':'reconcile'}"));
	rig_until_patches(rig, 2 * 8);
	for (int sw = 0; sw < RAILS; sw++)
		assert_table(rig, sw, &a, "001", NULL, NULL);
	change(client, &a, 2, "111");
	end_job(client, &a);
	ocs_client_close(client);
}

static void without_phases(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	struct tenant a = { 1, 0, "" };

	start(client, &a, "off");
	assert_string_equal(a.key, "");
	for (int sw = 0; sw < RAILS; sw++)
		assert_table(rig, sw, &a, "ring", NULL, NULL);
	ocs_client_close(client);
	rig_stop_daemon(rig, SIGKILL);
	rig_start_daemon(rig);
	client = rig_client(rig);
	for (int sw = 0; sw < RAILS; sw++)
		assert_table(rig, sw, &a, "ring", NULL, NULL);
	/* it is made again by itself */
	rig_emulate(rig, "unpatch ph-0 2");
	rig_until_patches(rig, RAILS * FULL);
	assert_table(rig, 0, &a, "ring", NULL, NULL);
	json_object_put(rig_refused(client, OCS_ERROR, "has this key", TOPO, 1, 10, 1, "",
				    "{'rail':0,'topo':'000'}"));
	end_job(client, &a);
	ocs_client_close(client);
}

static void rate(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	struct tenant a = { 1, 0, "" };
	struct json_object *reply = NULL;
	struct ocs_error err;
	int seq = 1;

	start(client, &a, "provisioned");
	/* the burst is twice 200; the same answer again costs a token, too */
	for (; seq < 2000; seq++) {
		struct json_object *request =
			rig_json(TOPO, 1, 10, 1, a.key, "{'rail':0,'topo':'111'}");

		reply = ocs_client_call(client, request, 5000, NULL, &err);
		json_object_put(request);
		if (!reply)
			break;
		json_object_put(reply);
	}
	assert_null(reply);
	assert_true(seq > 400);
	assert_int_equal(err.code, OCS_NOT_NOW);
	end_job(client, &a);
	ocs_client_close(client);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, rig_teardown)
	const struct CMUnitTest tests[] = {
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
		TEST(end_in_the_middle),
		TEST(without_phases),
		TEST(rate),
		TEST(crash_in_the_middle),
		TEST(crash_and_end),
		TEST(away_at_the_end),
		TEST(stray_patches),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
