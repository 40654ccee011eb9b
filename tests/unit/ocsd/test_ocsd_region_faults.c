/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Switches that refuse or lose circuits of regions, and what is counted. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "src/util/error.h"
#include "tests/unit/ocsd/region_tenant.h"

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

	json_object_put(tenant_start(client, &a, "follow"));
	tenant_change(client, &a, 0, 1, "");
	tenant_change(client, &a, 0, 2, "0.0-1.0,0.1-1.1,2.0-3.0");
	tenant_change(client, &a, 0, 3, "0.0-1.0,0.1-2.1,2.0-3.0");
	rig_send(client, ASK, 1, 10, 2, a.key, "{'group':0,'circuits':[]}");
	json_object_put(rig_reply(client));
	reply = rig_ask(client, "{'op':'show','what':'region','name':'1'}");
	job = json_object_array_get_idx(json_object_object_get(reply, "region"), 0);
	assert_int_equal(rig_number(job, "changes"), 3);
	assert_int_equal(rig_number(job, "circuits"), 11);
	assert_int_equal(rig_number(job, "kept"), 2);
	assert_true(json_object_get_double(json_object_object_get(job, "change_ms")) > 0);
	assert_int_equal(rig_number(job, "provisioned"), 0);
	json_object_put(reply);
	/* What the controller says of itself. */
	rig_send(
		client,
		"{'op':'region','job':1,'epoch':10,'seq':3,'key':'%s','provisioned':7,'mispredicted':3,"
		"'groups':[{'group':0,'circuits':[[0,0,1,0],[0,1,2,1],[2,0,3,0]]}]}",
		a.key);
	json_object_put(rig_reply(client));
	reply = rig_ask(client, "{'op':'show','what':'region','name':'1'}");
	job = json_object_array_get_idx(json_object_object_get(reply, "region"), 0);
	assert_int_equal(rig_number(job, "provisioned"), 7);
	assert_int_equal(rig_number(job, "mispredicted"), 3);
	json_object_put(reply);
	tenant_end(client, &a);
	text = rig_http(address, "GET /metrics HTTP/1.0\r\n\r\n");
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		assert_non_null(strstr(text, lines[i]));
	free(text);
	free(address);
	ocs_client_close(client);
}

/* What METRICS says of the changes of section moe. */
static void metrics_have(const char *address, const char *const *lines, size_t count)
{
	char *text = rig_http(address, "GET /metrics HTTP/1.0\r\n\r\n");

	for (size_t i = 0; i < count; i++)
		if (!strstr(text, lines[i]))
			fail_msg("no %s in\n%s", lines[i], text);
	free(text);
}

/* A change that the switch refuses is counted as one that failed, leaves the circuits that it did not
 * mean to cut, and takes no place among the times of changes; the next one ends what `show` says of it. */
static void counts_failures(void **state)
{
	static const char *const before[] = {
		"\nocsd_region_changes_total{section=\"moe\"} 2\n",
		"\nocsd_region_failures_total{section=\"moe\"} 1\n",
		"\nocsd_region_refusals_total{section=\"moe\"} 0\n",
		"\nocsd_region_change_seconds_count{section=\"moe\"} 1\n",
	};
	static const char *const after[] = {
		"\nocsd_region_changes_total{section=\"moe\"} 3\n",
		"\nocsd_region_failures_total{section=\"moe\"} 1\n",
		"\nocsd_region_change_seconds_count{section=\"moe\"} 2\n",
	};
	struct rig *rig = *state;
	char *address = rig_metrics_on(rig),
	     *entry = tenant_group_json(0, "0.0-1.0,0.1-2.1,2.0-3.0");
	struct ocs_client *client = rig_client(rig);
	struct tenant a = { 1, 4, 1, "" };
	int stands[2][SIZE + 1] = { 0 }, wanted[2][SIZE + 1] = { 0 };
	struct json_object *reply, *job;

	json_object_put(tenant_start(client, &a, "follow"));
	tenant_change(client, &a, 0, 1, "0.0-1.0,2.0-3.0");
	tenant_add(&a, 0, "0.0-1.0,2.0-3.0", stands);
	rig_emulate(rig, "port rg-0 %d refuse", tenant_port(&a, 0, 0, 1));
	json_object_put(rig_refused(client, OCS_ERROR, "", ASK, 1, 10, 2, a.key, entry));
	tenant_tables_are(rig, stands);
	metrics_have(address, before, sizeof(before) / sizeof(*before));
	reply = rig_ask(client, "{'op':'show','what':'region','name':'1'}");
	job = json_object_array_get_idx(json_object_object_get(reply, "region"), 0);
	assert_int_equal(rig_number(job, "failed"), 1);
	assert_non_null(json_object_object_get(tenant_row(job, 0), "error"));
	json_object_put(reply);
	rig_emulate(rig, "port rg-0 %d good", tenant_port(&a, 0, 0, 1));
	tenant_change(client, &a, 0, 3, "0.0-1.0,0.1-2.1,2.0-3.0");
	tenant_add(&a, 0, "0.0-1.0,0.1-2.1,2.0-3.0", wanted);
	tenant_tables_are(rig, wanted);
	metrics_have(address, after, sizeof(after) / sizeof(*after));
	reply = rig_ask(client, "{'op':'show','what':'region','name':'1'}");
	job = json_object_array_get_idx(json_object_object_get(reply, "region"), 0);
	assert_null(json_object_object_get(tenant_row(job, 0), "error"));
	json_object_put(reply);
	tenant_end(client, &a);
	free(entry);
	free(address);
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

	json_object_put(tenant_start(client, &a, "follow"));
	tenant_change(client, &a, 0, 1, "2.0-3.0");
	rig_emulate(rig, "port rg-0 %d refuse", tenant_port(&a, 0, 0, 0));
	entry = tenant_group_json(0, "0.0-1.0,2.0-3.0");
	reply = rig_refused(client, OCS_ERROR, "", ASK, 1, 10, 2, a.key, entry);
	assert_string_equal(rig_text(tenant_row(reply, 0), "stage"), "sent");
	assert_non_null(json_object_object_get(tenant_row(reply, 0), "error"));
	json_object_put(reply);
	free(entry);
	tenant_change(client, &a, 1, 2, tenant_turns[1]);
	tenant_change(client, &a, 0, 3, "0.1-1.1,2.0-3.0");
	tenant_add(&a, 0, "0.1-1.1,2.0-3.0", wanted);
	tenant_add(&a, 1, tenant_turns[1], wanted);
	tenant_tables_are(rig, wanted);
	rig_emulate(rig, "port rg-0 %d good", tenant_port(&a, 0, 0, 0));
	tenant_end(client, &a);
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

	json_object_put(tenant_start(client, &a, "follow"));
	tenant_change(client, &a, 0, 1, "0.0-1.0");
	rig_emulate(rig, "unpatch rg-0 %d", tenant_port(&a, 0, 0, 0));
	event = rig_event(client, "topo_lost");
	assert_int_equal(rig_number(event, "group"), 0);
	json_object_put(event);
	tenant_add(&a, 0, "0.0-1.0", wanted);
	rig_until_patches(rig, 2);
	tenant_tables_are(rig, wanted);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(counts, tenant_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(counts_failures, tenant_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(refused_port, tenant_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(lost_circuit, tenant_setup, rig_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
