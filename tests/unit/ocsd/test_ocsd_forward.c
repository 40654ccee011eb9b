/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Hosts that forward tell their MACs through ocsd, or that they cannot. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "tests/unit/ocsd/ocsd_rig.h"

static const char switches[] = "  - name: f-[0-1]\n"
			       "    driver: tl1\n"
			       "    address: \"unix:%1$s/{name}\"\n"
			       "    credentials: %1$s/credentials\n"
			       "    size: 16\n";

static const char fabrics[] = "  - name: hosts\n"
			      "    kind: direct\n"
			      "    partitions: [hosts]\n"
			      "    nodes: f[0-3]\n"
			      "    degree: 2\n"
			      "    interfaces: [{name: e0}, {name: e1, forward: e1f}]\n"
			      "    forwarding: {address: 10.0.0.0/24}\n"
			      "    ports: {switch: \"f-{interface}\", port: server+1}\n"
			      "  - name: quiet\n"
			      "    kind: direct\n"
			      "    partitions: [quiet]\n"
			      "    nodes: g[0-1]\n"
			      "    degree: 2\n"
			      "    ports: {switch: \"f-{interface}\", port: server+9}\n";

static int setup(void **state)
{
	return rig_setup_with(state, switches, fabrics, 0);
}

/* NODE asks for job 7 and tells its MACs. */
static void tell(struct ocs_client *client, int node)
{
	rig_send(client,
		 "{'op':'apply','job':7,'epoch':70,'node':'f%d','macs':"
		 "['02:00:00:00:00:%02x','02:00:00:00:01:%02x'],'forward_macs':"
		 "['02:00:00:00:00:%02x','02:00:00:00:02:%02x']}",
		 node, node, node, node, node);
}

/* The answer to tell(): a row for every node of the job, in their order. */
static void assert_told(struct json_object *reply, int count)
{
	struct json_object *hosts = json_object_object_get(reply, "hosts");

	assert_true(json_object_get_boolean(json_object_object_get(reply, "ok")));
	assert_non_null(json_object_object_get(reply, "plan"));
	assert_int_equal(json_object_array_length(hosts), count);
	for (int i = 0; i < count; i++) {
		struct json_object *row = json_object_array_get_idx(hosts, i), *macs;
		char want[24];

		snprintf(want, sizeof(want), "f%d", i);
		assert_string_equal(rig_text(row, "node"), want);
		macs = json_object_object_get(row, "forward_macs");
		snprintf(want, sizeof(want), "02:00:00:00:02:%02x", i);
		assert_string_equal(json_object_get_string(json_object_array_get_idx(macs, 1)),
				    want);
	}
	json_object_put(reply);
}

/* The answer waits for the last host; whoever asks again later is answered at once. */
static void all_meet(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig), *other = rig_client(rig);
	struct json_object *reply;

	rig_commit(client, 7, "hosts", "f[0-3]");
	reply = rig_ask(client, "{'op':'apply','job':7,'epoch':70,'node':'f0'}");
	assert_true(json_object_get_boolean(json_object_object_get(reply, "forwarding")));
	assert_null(json_object_object_get(reply, "hosts"));
	json_object_put(reply);
	for (int node = 0; node < 3; node++)
		tell(client, node);
	tell(client, 1); /* once more: it is still one host */
	rig_silence(client, 300);
	tell(other, 3);
	assert_told(rig_reply(other), 4);
	for (int i = 0; i < 4; i++)
		assert_told(rig_reply(client), 4);
	tell(other, 2);
	assert_told(rig_reply(other), 4);
	ocs_client_close(other);
	ocs_client_close(client);
}

static void refusals(void **state)
{
	static const char *const bad[] = {
		"'macs':['02:00:00:00:00:01']",
		"'macs':'02:00:00:00:00:01'",
		"'macs':['02:00:00:00:00:01','02:00:00:00:00:0g']",
		"'macs':['02:00:00:00:00:01','02-00-00-00-00-02']",
		"'macs':['02:00:00:00:00:01','02:00:00:00:00:02 dev lo']",
		"'macs':['02:00:00:00:00:01',7]",
		"'macs':['02:00:00:00:00:01','02:00:00:00:00:02'],'forward_macs':[]",
	};
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);

	rig_commit(client, 7, "hosts", "f[0-3]");
	rig_commit(client, 8, "quiet", "g[0-1]");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		json_object_put(rig_refused(client, 2, "lists of 2 MACs",
					    "{'op':'apply','job':7,'epoch':70,'node':'f0',%s}",
					    bad[i]));
	json_object_put(rig_refused(client, 2, "do not forward",
				    "{'op':'apply','job':8,"
				    "'epoch':80,'node':'g0','macs':['02:00:00:00:00:01',"
				    "'02:00:00:00:00:02']}"));
	json_object_put(rig_refused(client, 4, "not known yet",
				    "{'op':'apply','job':9,"
				    "'epoch':90,'node':'f0','macs':[]}"));
	ocs_client_close(client);
}

/* A job of one host has nobody to forward for. */
static void alone(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	struct json_object *reply;

	rig_commit(client, 7, "hosts", "f2");
	reply = rig_ask(client, "{'op':'apply','job':7,'epoch':70,'node':'f2'}");
	assert_null(json_object_object_get(reply, "forwarding"));
	json_object_put(reply);
	ocs_client_close(client);
}

static void unable(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig), *node = rig_client(rig);
	struct json_object *event, *reply;

	json_object_put(rig_ask(client, "{'op':'subscribe','jobs':[]}"));
	rig_commit(client, 7, "hosts", "f[0-3]");
	json_object_put(rig_ask(node, "{'op':'apply','job':7,'epoch':70,'node':'f0'}"));
	tell(node, 0);
	json_object_put(rig_refused(client, 2, "needs a node of job 7",
				    "{'op':'unable','job':7,"
				    "'epoch':70,'node':'d0','error':'x'}"));
	json_object_put(rig_refused(client, 2, "needs a node of job 7",
				    "{'op':'unable','job':7,'epoch':70,'node':'f1'}"));
	for (int twice = 0; twice < 2; twice++)
		json_object_put(rig_ask(client, "{'op':'unable','job':7,'epoch':70,'node':'f1',"
						"'error':'no interface e0'}"));
	event = rig_event(client, "job_failed");
	assert_int_equal(rig_number(event, "job"), 7);
	assert_string_equal(rig_text(event, "host"), "f1");
	assert_string_equal(rig_text(event, "error"), "host f1 cannot forward: no interface e0");
	assert_null(json_object_object_get(event, "switch"));
	json_object_put(event);
	/* its other hosts hear when it has left its nodes */
	rig_silence(node, 200);
	json_object_put(rig_ask(client, "{'op':'end','job':7,'epoch':70,'reason':'requeued'}"));
	reply = rig_reply(node);
	assert_true(json_object_get_boolean(json_object_object_get(reply, "gone")));
	json_object_put(reply);
	/* late, and of no consequence */
	json_object_put(rig_ask(client, "{'op':'unable','job':7,'epoch':70,'node':'f1',"
					"'error':'no interface e0'}"));
	ocs_client_close(node);
	ocs_client_close(client);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(all_meet, setup, rig_teardown),
		cmocka_unit_test_setup_teardown(refusals, setup, rig_teardown),
		cmocka_unit_test_setup_teardown(alone, setup, rig_teardown),
		cmocka_unit_test_setup_teardown(unable, setup, rig_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
