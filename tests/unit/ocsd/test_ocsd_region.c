/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Circuits of running jobs in regions: any pairing of a group's own NICs, nothing else. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "src/util/error.h"
#include "src/util/text.h"
#include "tests/unit/ocsd/ocsd_rows.h"
#include "tests/unit/ocsd/region_tenant.h"

static void follows(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	struct tenant a = { 1, 0, 1, "" }, b = { 2, 4, 2, "" };
	struct json_object *reply, *about;

	json_object_put(tenant_start(client, &b, "follow"));
	reply = tenant_start(client, &a, "follow");
	about = json_object_object_get(reply, "region");
	assert_string_equal(rig_text(about, "mode"), "follow");
	assert_int_equal(rig_number(about, "servers"), SERVERS);
	assert_int_equal(rig_number(about, "nics"), NICS);
	assert_int_equal(
		json_object_array_length(json_object_object_get(tenant_row(about, 0), "circuits")),
		6);
	json_object_put(reply);
	assert_int_equal(strlen(a.key), 32);
	reply = rig_ask(client, "{'op':'apply','job':1,'epoch':10,'node':'g1'}");
	assert_null(json_object_object_get(reply, "key"));
	json_object_put(reply);
	for (size_t i = 0; i < 2 * TENANT_TURNS; i++) {
		int wanted[2][SIZE + 1] = { 0 };

		print_message("# to %s\n", tenant_turns[i % TENANT_TURNS]);
		tenant_change(client, &a, 0, (int)i + 1, tenant_turns[i % TENANT_TURNS]);
		tenant_add(&a, 0, tenant_turns[i % TENANT_TURNS], wanted);
		tenant_add(&b, 0, BALANCED, wanted);
		tenant_add(&b, 1, BALANCED, wanted);
		tenant_tables_are(rig, wanted);
	}
	assert_int_equal(rig_select(rig, "SELECT count(*) FROM circuits"), 0);
	assert_int_equal(rig_select(rig, "SELECT count(*) FROM menus"), 2);
	/* circuits of B were made once, and never cut */
	assert_int_equal(rig_log_lines(rig, "\"break\"", "\"in\":13", NULL), 0);
	tenant_end(client, &a);
	tenant_end(client, &b);
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

	json_object_put(tenant_start(client, &a, "follow"));
	tenant_change(client, &a, 0, 1, "0.0-1.0,0.1-1.1,2.0-3.0");
	tenant_change(client, &a, 1, 1, "0.0-3.0");
	cuts = rig_log_lines(rig, "\"break\"", NULL);
	makes = rig_log_lines(rig, "\"make\"", NULL);
	tenant_change(client, &a, 0, 2, "0.0-1.0,0.1-2.1,2.0-3.0");
	assert_int_equal(rig_log_lines(rig, "\"break\"", NULL) - cuts, 2);
	assert_int_equal(rig_log_lines(rig, "\"make\"", NULL) - makes, 2);
	/* the same once more, and what stands already */
	tenant_change(client, &a, 0, 2, "0.0-1.0,0.1-2.1,2.0-3.0");
	tenant_change(client, &a, 0, 3, "2.0-3.0,0.1-2.1,0.0-1.0");
	assert_int_equal(rig_log_lines(rig, "\"break\"", NULL) - cuts, 2);
	tenant_add(&a, 0, "0.0-1.0,0.1-2.1,2.0-3.0", wanted);
	tenant_add(&a, 1, "0.0-3.0", wanted);
	tenant_tables_are(rig, wanted);
	tenant_end(client, &a);
	ocs_client_close(client);
}

/* A switch that replaces gets no command to cut what is replaced. */
static void replaces(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	struct tenant a = { 1, 0, 1, "" };
	int wanted[2][SIZE + 1] = { 0 }, deletes;

	json_object_put(tenant_start(client, &a, "follow"));
	tenant_change(client, &a, 0, 1, tenant_turns[0]);
	deletes = rig_log_lines(rig, "\"command\"", "DLT-PATCH", NULL);
	tenant_change(client, &a, 0, 2, tenant_turns[4]);
	assert_int_equal(rig_log_lines(rig, "\"command\"", "DLT-PATCH", NULL), deletes);
	tenant_add(&a, 0, tenant_turns[4], wanted);
	tenant_tables_are(rig, wanted);
	tenant_end(client, &a);
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

	json_object_put(tenant_start(client, &a, "follow"));
	json_object_put(tenant_start(client, &b, "follow"));
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
	tenant_change(client, &a, 0, 5, tenant_turns[1]);
	json_object_put(rig_refused(client, OCS_ERROR, "seq 4 is older than 5", ASK, 1, 10, 4,
				    a.key, "{'group':0,'circuits':[]}"));
	json_object_put(rig_refused(client, OCS_USAGE, "seq 5 asked for topology", ASK, 1, 10, 5,
				    a.key, "{'group':0,'circuits':[]}"));
	tenant_add(&a, 0, tenant_turns[1], wanted);
	tenant_add(&b, 0, BALANCED, wanted);
	tenant_tables_are(rig, wanted);
	tenant_end(client, &a);
	tenant_end(client, &b);
	ocs_client_close(client);
}

#define SEEN \
	"{'layer':2,'microbatch':7,'second':true,'tokens':%s,'took_ms':5,'rate':1000,'layers':[%s]}"
#define TOKENS "[[0,1,2,3],[4,0,6,7],[8,9,0,11],[12,13.4,14,0]]"
#define LAYER "{'layer':2,'method':'last','difference':0.25,'top':[1,0.5]}"

/* What TEXT, a list of groups, says of T; the answer is put by the caller. */
static struct json_object *gates_say(struct ocs_client *client, const struct tenant *t,
				     const char *text, struct ocs_error *err)
{
	struct json_object *request =
		rig_json("{'op':'gates','job':%u,'epoch':%u,'key':'%s','groups':%s}", t->job,
			 t->job * 10, t->key, text);
	struct json_object *reply = ocs_client_call(client, request, 5000, NULL, err);

	json_object_put(request);
	return reply;
}

/* Nothing of BAD is kept.  Each time the job has to wait before it may say more. */
static void gates_refused(struct ocs_client *client, const struct tenant *t, const char *bad)
{
	struct ocs_error err;
	struct json_object *reply;

	do {
		usleep(100000);
		reply = gates_say(client, t, bad, &err);
		assert_null(reply);
	} while (err.code == OCS_NOT_NOW);
	if (err.code != OCS_USAGE)
		fail_msg("%s was refused with %s", bad, err.text);
}

/* What a controller has seen is shown to the owner of the job: checked, and nothing else of it. */
static void gates_are_shown(void **state)
{
	static const char *const bad[] = {
		"[]",
		"[{'group':1,'seen':{}}]",
		"[{'group':0}]",
		"[{'group':0,'seen':{'layer':1,'microbatch':1,'tokens':[[0,1],[1,0]]}}]",
		"[{'group':0,'seen':{'layer':1,'microbatch':1,'tokens':[[0,1,2,3],[4,0,6,7],[8,9,0,11],[12,-1,14,0]]}}]",
		"[{'group':0,'seen':{'layer':-1,'microbatch':1,'tokens':" TOKENS "}}]",
		"[{'group':0,'seen':{'layer':1,'microbatch':1,'tokens':" TOKENS
		",'layers':[{'layer':0,'method':'a\\u001b[2J','difference':0,'top':[]}]}}]",
		"[{'group':0,'seen':{'layer':1,'microbatch':1,'tokens':" TOKENS
		",'layers':[{'layer':0,'method':'last','difference':3,'top':[]}]}}]",
		"[{'group':0,'seen':{'layer':1,'microbatch':1,'tokens':" TOKENS
		",'layers':[{'layer':0,'method':'last','difference':1,'top':[2]}]}}]",
	};
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	struct tenant a = { 1, 0, 1, "" };
	char *text = ocs_asprintf("[{'group':0,'seen':" SEEN "}]", TOKENS, LAYER);
	struct json_object *reply, *seen;
	struct ocs_error err;

	json_object_put(tenant_start(client, &a, "follow"));
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		gates_refused(client, &a, bad[i]);
	usleep(1000000);
	reply = gates_say(client, &a, text, &err);
	assert_non_null(reply);
	json_object_put(reply);
	/* once a second is enough */
	assert_null(gates_say(client, &a, text, &err));
	assert_int_equal(err.code, OCS_NOT_NOW);
	reply = rig_ask(client, "{'op':'show','what':'region','name':'1'}");
	seen = json_object_array_get_idx(json_object_object_get(reply, "region"), 0);
	seen = json_object_object_get(tenant_row(seen, 0), "seen");
	assert_string_equal(json_object_to_json_string_ext(json_object_object_get(seen, "tokens"),
							   JSON_C_TO_STRING_PLAIN),
			    "[[0,1,2,3],[4,0,6,7],[8,9,0,11],[12,13,14,0]]");
	assert_int_equal(rig_number(seen, "microbatch"), 7);
	assert_int_equal(rig_number(seen, "took_ms"), 5);
	seen = json_object_array_get_idx(json_object_object_get(seen, "layers"), 0);
	assert_string_equal(rig_text(seen, "method"), "last");
	json_object_put(reply);
	/* who has another key says nothing */
	strcpy(a.key, "00000000000000000000000000000000");
	assert_null(gates_say(client, &a, text, &err));
	assert_int_equal(err.code, OCS_ERROR);
	free(text);
	tenant_end(client, &a);
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
		cmocka_unit_test_setup_teardown(follows, tenant_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(least_change, tenant_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(replaces, tenant_setup_replace, rig_teardown),
		cmocka_unit_test_setup_teardown(requests_that_are_none, tenant_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(gates_are_shown, tenant_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(crooked_groups, tenant_setup, rig_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
