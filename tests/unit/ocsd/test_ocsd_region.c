/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Circuits of running jobs in regions: any pairing of a group's own NICs, nothing else. */

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

#include "src/place/region_circuits.h"
#include "src/util/error.h"
#include "src/util/text.h"
#include "tests/unit/ocsd/ocsd_rig.h"
#include "tests/unit/ocsd/ocsd_rows.h"

#define SIZE 24
#define NICS 3
#define SERVERS 4 /* of a group */
#define REGION 8  /* servers of a region */

#define ASK "{'op':'region','job':%u,'epoch':%u,'seq':%d,'key':'%s','groups':[%s]}"
#define BALANCED "balanced"

static const char switches[] = "  - name: rg-[0-1]\n"
			       "    driver: tl1\n"
			       "    address: \"unix:%1$s/{name}\"\n"
			       "    credentials: %1$s/credentials\n"
			       "    size: 24\n";
static const char fabrics[] =
	"  - name: moe\n"
	"    kind: region\n"
	"    partitions: [moe]\n"
	"    nodes: g[0-15]\n"
	"    region_servers: 8\n"
	"    degree: 3\n"
	"    packet_nics: 1\n"
	"    ports: {switch: \"rg-{region}\", port: server % region_servers * degree + interface + 1}\n";

/* A job with groups of four servers in a row; the first node is g<FIRST>. */
struct tenant {
	unsigned int job;
	int first, groups;
	char key[64];
};

static int setup(void **state)
{
	return rig_setup_with(state, switches, fabrics, 0);
}

static int setup_replace(void **state)
{
	static char replacing[sizeof(switches) + 32];

	snprintf(replacing, sizeof(replacing), "%s    replace: true\n", switches);
	return rig_setup_with(state, replacing, fabrics, 0);
}

static struct json_object *start(struct ocs_client *client, struct tenant *t, const char *moe)
{
	struct json_object *reply;
	const char *key;

	json_object_put(rig_ask(
		client,
		"{'op':'commit','job':%u,'epoch':%u,'uid':1234,'user':'alice','section':'moe',"
		"'nodes':'g[%d-%d]','shape':'pp:%d,ep:%d','moe':'%s','name':'train'}",
		t->job, t->job * 10, t->first, t->first + t->groups * SERVERS - 1, t->groups,
		SERVERS, moe));
	reply = rig_ask(client, "{'op':'apply','job':%u,'epoch':%u,'node':'g%d'}", t->job,
			t->job * 10, t->first);
	key = json_object_get_string(json_object_object_get(reply, "key"));
	snprintf(t->key, sizeof(t->key), "%s", key ? key : "");
	return reply;
}

static void end(struct ocs_client *client, const struct tenant *t)
{
	json_object_put(rig_ask(client, "{'op':'end','job':%u,'epoch':%u}", t->job, t->job * 10));
	json_object_put(rig_ask(client, "{'op':'gone','job':%u,'epoch':%u}", t->job, t->job * 10));
	rig_until_forgotten(client, t->job);
}

/* ---- what has to be there ---- */

static int port_of(const struct tenant *t, int group, int server, int nic)
{
	return (t->first + group * SERVERS + server) % REGION * NICS + nic + 1;
}

static int switch_of(const struct tenant *t, int group)
{
	return (t->first + group * SERVERS) / REGION;
}

/* Enters the circuits of TEXT ("0.0-1.0,...") of GROUP into OUT of its switch. */
static void add(const struct tenant *t, int group, const char *text, int out[2][SIZE + 1])
{
	struct ocs_region_circuits circuits;
	int sw = switch_of(t, group);

	if (strcmp(text, BALANCED) == 0)
		ocs_region_circuits_balanced(SERVERS, NICS, &circuits);
	else
		assert_int_equal(ocs_region_circuits_parse(text, strlen(text), SERVERS, NICS,
							   &circuits, NULL),
				 0);
	for (size_t i = 0; i < circuits.count; i++) {
		const struct ocs_region_circuit *one = &circuits.items[i];
		int a = port_of(t, group, one->a, one->a_nic);
		int b = port_of(t, group, one->b, one->b_nic);

		assert_int_equal(out[sw][a] + out[sw][b], 0);
		out[sw][a] = SIZE + b;
		out[sw][b] = SIZE + a;
	}
	ocs_region_circuits_free(&circuits);
}

static void tables(struct rig *rig, int out[2][SIZE + 1])
{
	char *text = emulator_control(&rig->emulator, "table");
	struct json_object *json = json_tokener_parse(text);

	memset(out, 0, 2 * (SIZE + 1) * sizeof(int));
	for (int sw = 0; sw < 2; sw++) {
		struct json_object *list = json_object_object_get(json, sw ? "rg-1" : "rg-0");

		for (size_t i = 0; i < json_object_array_length(list); i++) {
			struct json_object *pair = json_object_array_get_idx(list, i);

			out[sw][json_object_get_int(json_object_array_get_idx(pair, 0))] =
				json_object_get_int(json_object_array_get_idx(pair, 1));
		}
	}
	json_object_put(json);
	free(text);
}

static void tables_are(struct rig *rig, int wanted[2][SIZE + 1])
{
	int out[2][SIZE + 1];

	tables(rig, out);
	for (int sw = 0; sw < 2; sw++)
		for (int in = 1; in <= SIZE; in++)
			if (out[sw][in] != wanted[sw][in])
				fail_msg("switch rg-%d: ingress %d has egress %d instead of %d", sw,
					 in, out[sw][in], wanted[sw][in]);
}

/* "{'group':0,'circuits':[[0,0,1,0]...]}" of TEXT; the caller frees it. */
static char *group_json(int group, const char *text)
{
	struct ocs_region_circuits circuits;
	struct ocs_text out = { 0 };

	assert_int_equal(
		ocs_region_circuits_parse(text, strlen(text), SERVERS, NICS, &circuits, NULL), 0);
	ocs_text_add(&out, "{'group':%d,'circuits':[", group);
	for (size_t i = 0; i < circuits.count; i++)
		ocs_text_add(&out, "%s[%d,%d,%d,%d]", i ? "," : "", circuits.items[i].b,
			     circuits.items[i].b_nic, circuits.items[i].a, circuits.items[i].a_nic);
	ocs_text_add(&out, "]}");
	ocs_region_circuits_free(&circuits);
	return ocs_text_take(&out);
}

static struct json_object *row_of(struct json_object *reply, size_t index)
{
	struct json_object *rows = json_object_object_get(reply, "groups");

	assert_true(index < json_object_array_length(rows));
	return json_object_array_get_idx(rows, index);
}

static void change(struct ocs_client *client, const struct tenant *t, int group, int seq,
		   const char *text)
{
	char *entry = group_json(group, text);
	struct json_object *reply = rig_ask(client, ASK, t->job, t->job * 10, seq, t->key, entry);
	struct json_object *row = row_of(reply, 0);

	assert_int_equal(rig_number(row, "group"), group);
	assert_int_equal(rig_number(row, "seq"), seq);
	assert_string_equal(rig_text(row, "stage"), "verified");
	assert_null(json_object_object_get(row, "error"));
	json_object_put(reply);
	free(entry);
}

/* ---- tests ---- */

static const char *const turns[] = {
	"0.0-1.0,0.1-1.1,0.2-1.2,2.0-3.0,2.1-3.1,2.2-3.2",
	"0.0-2.0,0.1-1.1,0.2-3.2,1.0-3.0",
	"",
	"0.2-3.1",
	"0.0-3.0,0.1-3.1,0.2-3.2,1.0-2.2,1.1-2.1,1.2-2.0",
	"0.0-1.0,0.1-2.1,0.2-3.2,1.1-2.2,1.2-3.0,2.0-3.1",
};
#define TURNS (sizeof(turns) / sizeof(*turns))

static void follows(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	struct tenant a = { 1, 0, 1, "" }, b = { 2, 4, 2, "" };
	struct json_object *reply, *about;

	json_object_put(start(client, &b, "follow"));
	reply = start(client, &a, "follow");
	about = json_object_object_get(reply, "region");
	assert_string_equal(rig_text(about, "mode"), "follow");
	assert_int_equal(rig_number(about, "servers"), SERVERS);
	assert_int_equal(rig_number(about, "nics"), NICS);
	assert_int_equal(
		json_object_array_length(json_object_object_get(row_of(about, 0), "circuits")), 6);
	json_object_put(reply);
	assert_int_equal(strlen(a.key), 32);
	reply = rig_ask(client, "{'op':'apply','job':1,'epoch':10,'node':'g1'}");
	assert_null(json_object_object_get(reply, "key"));
	json_object_put(reply);
	for (size_t i = 0; i < 2 * TURNS; i++) {
		int wanted[2][SIZE + 1] = { 0 };

		print_message("# to %s\n", turns[i % TURNS]);
		change(client, &a, 0, (int)i + 1, turns[i % TURNS]);
		add(&a, 0, turns[i % TURNS], wanted);
		add(&b, 0, BALANCED, wanted);
		add(&b, 1, BALANCED, wanted);
		tables_are(rig, wanted);
	}
	assert_int_equal(rig_select(rig, "SELECT count(*) FROM circuits"), 0);
	assert_int_equal(rig_select(rig, "SELECT count(*) FROM menus"), 2);
	/* circuits of B were made once, and never cut */
	assert_int_equal(rig_log_lines(rig, "\"break\"", "\"in\":13", NULL), 0);
	end(client, &a);
	end(client, &b);
	rig_until_patches(rig, 0);
	assert_int_equal(rig_select(rig, "SELECT count(*) FROM menus"), 0);
	ocs_client_close(client);
}

/* Two groups of one job, each on its own switch, and circuits that stay are not touched. */
static void least_change(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	struct tenant a = { 1, 4, 2, "" };
	int wanted[2][SIZE + 1] = { 0 }, cuts, makes;

	json_object_put(start(client, &a, "follow"));
	change(client, &a, 0, 1, "0.0-1.0,0.1-1.1,2.0-3.0");
	change(client, &a, 1, 1, "0.0-3.0");
	cuts = rig_log_lines(rig, "\"break\"", NULL);
	makes = rig_log_lines(rig, "\"make\"", NULL);
	change(client, &a, 0, 2, "0.0-1.0,0.1-2.1,2.0-3.0");
	assert_int_equal(rig_log_lines(rig, "\"break\"", NULL) - cuts, 2);
	assert_int_equal(rig_log_lines(rig, "\"make\"", NULL) - makes, 2);
	/* the same once more, and what stands already */
	change(client, &a, 0, 2, "0.0-1.0,0.1-2.1,2.0-3.0");
	change(client, &a, 0, 3, "2.0-3.0,0.1-2.1,0.0-1.0");
	assert_int_equal(rig_log_lines(rig, "\"break\"", NULL) - cuts, 2);
	add(&a, 0, "0.0-1.0,0.1-2.1,2.0-3.0", wanted);
	add(&a, 1, "0.0-3.0", wanted);
	tables_are(rig, wanted);
	end(client, &a);
	ocs_client_close(client);
}

/* What an administrator sees of the changes of a job, and of all jobs of the section. */
static void counts(void **state)
{
	static const char *const lines[] = {
		"\nocsd_region_circuits_total{section=\"moe\",what=\"kept\"} 2\n",
		"\nocsd_region_circuits_total{section=\"moe\",what=\"made\"} 4\n",
		"\nocsd_region_circuits_total{section=\"moe\",what=\"cut\"} 7\n",
		"\nocsd_region_refusals_total{section=\"moe\"} 1\n",
		"\nocsd_region_change_seconds_count{section=\"moe\"} 3\n",
	};
	struct rig *rig = *state;
	char *address = rig_metrics_on(rig), *text;
	struct ocs_client *client = rig_client(rig);
	struct tenant a = { 1, 4, 1, "" };
	struct json_object *reply, *job;

	json_object_put(start(client, &a, "follow"));
	change(client, &a, 0, 1, "");
	change(client, &a, 0, 2, "0.0-1.0,0.1-1.1,2.0-3.0");
	change(client, &a, 0, 3, "0.0-1.0,0.1-2.1,2.0-3.0");
	rig_send(client, ASK, 1, 10, 2, a.key, "{'group':0,'circuits':[]}");
	json_object_put(rig_reply(client));
	reply = rig_ask(client, "{'op':'show','what':'region','name':'1'}");
	job = json_object_array_get_idx(json_object_object_get(reply, "region"), 0);
	assert_int_equal(rig_number(job, "changes"), 3);
	assert_int_equal(rig_number(job, "circuits"), 11);
	assert_int_equal(rig_number(job, "kept"), 2);
	assert_true(json_object_get_double(json_object_object_get(job, "change_ms")) > 0);
	json_object_put(reply);
	end(client, &a);
	text = rig_http(address, "GET /metrics HTTP/1.0\r\n\r\n");
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		assert_non_null(strstr(text, lines[i]));
	free(text);
	free(address);
	ocs_client_close(client);
}

/* A switch that replaces gets no command to cut what is replaced. */
static void replaces(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	struct tenant a = { 1, 0, 1, "" };
	int wanted[2][SIZE + 1] = { 0 }, deletes;

	json_object_put(start(client, &a, "follow"));
	change(client, &a, 0, 1, turns[0]);
	deletes = rig_log_lines(rig, "\"command\"", "DLT-PATCH", NULL);
	change(client, &a, 0, 2, turns[4]);
	assert_int_equal(rig_log_lines(rig, "\"command\"", "DLT-PATCH", NULL), deletes);
	add(&a, 0, turns[4], wanted);
	tables_are(rig, wanted);
	end(client, &a);
	ocs_client_close(client);
}

static void requests_that_are_none(void **state)
{
#define HEAD "{'op':'region','job':1,'epoch':10,'key':'%1$s','seq':1,"
	static const char *const bad[] = {
		"{'op':'region'}",
		"{'op':'region','job':1,'epoch':10}",
		"{'op':'region','job':1,'epoch':10,'key':'%1$s','groups':[{'group':0,'circuits':[]}]}",
		"{'op':'topo','job':1,'epoch':10,'key':'%1$s','seq':1,'rails':[{'rail':0,'topo':'1'}]}",
		HEAD "'groups':[]}",
		HEAD "'groups':[7]}",
		HEAD "'groups':[{'group':1,'circuits':[]}]}",
		HEAD "'groups':[{'group':-1,'circuits':[]}]}",
		HEAD "'groups':[{'group':0}]}",
		HEAD "'groups':[{'group':0,'circuits':{}}]}",
		HEAD "'groups':[{'group':0,'circuits':[]},{'group':0,'circuits':[]}]}",
		HEAD "'groups':[{'group':0,'circuits':[0,0,1,0]}]}",
		HEAD "'groups':[{'group':0,'circuits':[[0,0,1]]}]}",
		HEAD "'groups':[{'group':0,'circuits':[[0,0,1,0,0]]}]}",
		HEAD "'groups':[{'group':0,'circuits':[[0,0,1,'0']]}]}",
		HEAD "'groups':[{'group':0,'circuits':[[0,0,0,1]]}]}",
		HEAD "'groups':[{'group':0,'circuits':[[0,0,4,0]]}]}",
		HEAD "'groups':[{'group':0,'circuits':[[0,3,1,0]]}]}",
		HEAD "'groups':[{'group':0,'circuits':[[-1,0,1,0]]}]}",
		HEAD "'groups':[{'group':0,'circuits':[[4294967296,0,1,0]]}]}",
		HEAD "'groups':[{'group':0,'circuits':[[0,0,1,0],[2,0,1,0]]}]}",
		HEAD "'groups':[{'group':0,'circuits':[[0,0,1,0],[0,0,1,0]]}]}",
		HEAD
		"'groups':[{'group':0,'circuits':[[0,0,1,0],[0,1,1,1],[0,2,1,2],[2,0,3,0],[2,1,3,1],"
		"[2,2,3,2],[0,0,2,0]]}]}",
	};
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	struct tenant a = { 1, 0, 1, "" }, b = { 2, 4, 1, "" };
	int wanted[2][SIZE + 1] = { 0 };
	struct ocs_error err;

	json_object_put(start(client, &a, "follow"));
	json_object_put(start(client, &b, "follow"));
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		char *text = ocs_asprintf(bad[i], a.key);
		struct json_object *request = rig_json("%s", text);
		struct json_object *reply = ocs_client_call(client, request, 5000, NULL, &err);

		if (reply)
			fail_msg("%s was answered %s", text, json_object_to_json_string(reply));
		json_object_put(request);
		free(text);
	}
	json_object_put(rig_refused(client, OCS_ERROR, "has this key", ASK, 1, 10, 1, b.key,
				    "{'group':0,'circuits':[]}"));
	json_object_put(rig_refused(client, OCS_ERROR, "has this key", ASK, 2, 20, 1, a.key,
				    "{'group':0,'circuits':[]}"));
	change(client, &a, 0, 5, turns[1]);
	json_object_put(rig_refused(client, OCS_ERROR, "seq 4 is older than 5", ASK, 1, 10, 4,
				    a.key, "{'group':0,'circuits':[]}"));
	json_object_put(rig_refused(client, OCS_USAGE, "seq 5 asked for topology", ASK, 1, 10, 5,
				    a.key, "{'group':0,'circuits':[]}"));
	add(&a, 0, turns[1], wanted);
	add(&b, 0, BALANCED, wanted);
	tables_are(rig, wanted);
	end(client, &a);
	end(client, &b);
	ocs_client_close(client);
}

/* The next job of the same name begins with the circuits with which the last one ended. */
static void next_run(void **state)
{
	static const struct {
		unsigned int job;
		const char *moe, *first;
	} runs[] = {
		{ 2, "follow", "0.0-1.0,0.1-1.1,0.2-1.2,2.0-3.0,2.1-3.1,2.2-3.2" },
		{ 3, "follow,balanced", BALANCED },
		{ 4, "static", BALANCED }, /* what the run before ended with */
	};
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	struct tenant a = { 1, 0, 1, "" };

	json_object_put(start(client, &a, "follow"));
	change(client, &a, 0, 1, turns[0]);
	end(client, &a);
	for (int i = 0; i < 3; i++) {
		struct tenant t = { runs[i].job, 0, 1, "" };
		int wanted[2][SIZE + 1] = { 0 };

		/* ocsd remembers, not its memory alone */
		rig_stop_daemon(rig, SIGKILL);
		ocs_client_close(client);
		rig_start_daemon(rig);
		client = rig_client(rig);
		json_object_put(start(client, &t, runs[i].moe));
		add(&t, 0, runs[i].first, wanted);
		tables_are(rig, wanted);
		if (strcmp(runs[i].moe, "static") == 0) {
			assert_string_equal(t.key, "");
			json_object_put(rig_refused(client, OCS_ERROR, "has this key", ASK, t.job,
						    t.job * 10, 1, "",
						    "{'group':0,'circuits':[]}"));
		}
		end(client, &t);
	}
	assert_int_equal(rig_select(rig, "SELECT count(*) FROM region_runs"), 1);
	ocs_client_close(client);
}

/* ocsd dies within a change: whatever it finds, the next word counts, and another job keeps its own. */
static void crash_in_the_middle(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	struct tenant a = { 1, 0, 1, "" }, b = { 2, 4, 1, "" };

	json_object_put(start(client, &a, "follow"));
	json_object_put(start(client, &b, "follow"));
	rig_emulate(rig, "delay 10");
	for (int i = 0; i < 10; i++) {
		const char *to = turns[(size_t)i % TURNS];
		char *entry = group_json(0, to);
		int wanted[2][SIZE + 1] = { 0 };

		rig_send(client, ASK, 1, 10, i + 1, a.key, entry);
		usleep((useconds_t)i * 4000);
		rig_stop_daemon(rig, SIGKILL);
		ocs_client_close(client);
		rig_start_daemon(rig);
		client = rig_client(rig);
		assert_string_equal(rig_job_state(client, 1), "realised");
		change(client, &a, 0, 1, to);
		add(&a, 0, to, wanted);
		add(&b, 0, BALANCED, wanted);
		tables_are(rig, wanted);
		free(entry);
	}
	assert_int_equal(rig_log_lines(rig, "\"break\"", "\"in\":13", NULL), 0);
	end(client, &a);
	end(client, &b);
	rig_until_patches(rig, 0);
	ocs_client_close(client);
}

/* A clean restart finds what stands and cuts nothing. */
static void restart_keeps(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	struct tenant a = { 1, 0, 1, "" };
	int wanted[2][SIZE + 1] = { 0 }, cuts;

	json_object_put(start(client, &a, "follow"));
	change(client, &a, 0, 7, turns[4]);
	cuts = rig_log_lines(rig, "\"break\"", NULL);
	rig_stop_daemon(rig, SIGTERM);
	ocs_client_close(client);
	rig_start_daemon(rig);
	client = rig_client(rig);
	change(client, &a, 0, 8, turns[4]);
	add(&a, 0, turns[4], wanted);
	tables_are(rig, wanted);
	assert_int_equal(rig_log_lines(rig, "\"break\"", NULL), cuts);
	end(client, &a);
	rig_until_patches(rig, 0);
	ocs_client_close(client);
}

/* A port that does not obey: the answer names it, the other group is served, and so is the next request
 * without it. */
static void refused_port(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	struct tenant a = { 1, 4, 2, "" };
	int wanted[2][SIZE + 1] = { 0 };
	struct json_object *reply;
	char *entry;

	json_object_put(start(client, &a, "follow"));
	change(client, &a, 0, 1, "2.0-3.0");
	rig_emulate(rig, "port rg-0 %d refuse", port_of(&a, 0, 0, 0));
	entry = group_json(0, "0.0-1.0,2.0-3.0");
	reply = rig_refused(client, OCS_ERROR, "", ASK, 1, 10, 2, a.key, entry);
	assert_string_equal(rig_text(row_of(reply, 0), "stage"), "sent");
	assert_non_null(json_object_object_get(row_of(reply, 0), "error"));
	json_object_put(reply);
	free(entry);
	change(client, &a, 1, 2, turns[1]);
	change(client, &a, 0, 3, "0.1-1.1,2.0-3.0");
	add(&a, 0, "0.1-1.1,2.0-3.0", wanted);
	add(&a, 1, turns[1], wanted);
	tables_are(rig, wanted);
	rig_emulate(rig, "port rg-0 %d good", port_of(&a, 0, 0, 0));
	end(client, &a);
	ocs_client_close(client);
}

/* A circuit that disappears from the switch is made again, and the controller told. */
static void lost_circuit(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	struct tenant a = { 1, 0, 1, "" };
	int wanted[2][SIZE + 1] = { 0 };
	struct json_object *event;

	json_object_put(start(client, &a, "follow"));
	change(client, &a, 0, 1, "0.0-1.0");
	rig_emulate(rig, "unpatch rg-0 %d", port_of(&a, 0, 0, 0));
	event = rig_event(client, "topo_lost");
	assert_int_equal(rig_number(event, "group"), 0);
	json_object_put(event);
	add(&a, 0, "0.0-1.0", wanted);
	rig_until_patches(rig, 2);
	tables_are(rig, wanted);
	json_object_put(rig_ask(client, "{'op':'end','job':1,'epoch':10,'reason':'scancel'}"));
	event = rig_event(client, "revoked");
	assert_string_equal(rig_text(event, "reason"), "scancel");
	json_object_put(event);
	json_object_put(rig_refused(client, OCS_ERROR, "has ended", ASK, 1, 10, 2, a.key,
				    "{'group':0,'circuits':[]}"));
	json_object_put(rig_ask(client, "{'op':'gone','job':1,'epoch':10}"));
	rig_until_patches(rig, 0);
	ocs_client_close(client);
}

/* Groups that are not each in one region are refused at commit. */
static void crooked_groups(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);

	json_object_put(rig_refused(
		client, OCS_USAGE, "node g8 is not in the region of its group",
		"{'op':'commit','job':1,'epoch':10,'uid':1234,'section':'moe','nodes':'g[6-9]',"
		"'shape':'ep:4','moe':'follow'}"));
	json_object_put(rig_refused(
		client, OCS_USAGE, "4 nodes, the allocation has 5",
		"{'op':'commit','job':1,'epoch':10,'uid':1234,'section':'moe','nodes':'g[0-4]',"
		"'shape':'ep:4','moe':'follow'}"));
	json_object_put(rig_refused(
		client, OCS_USAGE, "is unknown",
		"{'op':'commit','job':1,'epoch':10,'uid':1234,'section':'moe','nodes':'g[0-3]',"
		"'shape':'ep:4','moe':'fast'}"));
	ocs_client_close(client);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(follows, setup, rig_teardown),
		cmocka_unit_test_setup_teardown(least_change, setup, rig_teardown),
		cmocka_unit_test_setup_teardown(counts, setup, rig_teardown),
		cmocka_unit_test_setup_teardown(replaces, setup_replace, rig_teardown),
		cmocka_unit_test_setup_teardown(requests_that_are_none, setup, rig_teardown),
		cmocka_unit_test_setup_teardown(next_run, setup, rig_teardown),
		cmocka_unit_test_setup_teardown(crash_in_the_middle, setup, rig_teardown),
		cmocka_unit_test_setup_teardown(restart_keeps, setup, rig_teardown),
		cmocka_unit_test_setup_teardown(refused_port, setup, rig_teardown),
		cmocka_unit_test_setup_teardown(lost_circuit, setup, rig_teardown),
		cmocka_unit_test_setup_teardown(crooked_groups, setup, rig_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
