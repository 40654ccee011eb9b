/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* What a controller says of the changes that it asked for: as ocsctl shows it, and in the metrics of all jobs, which a
 * controller that lies cannot make larger than the changes that there were; and what slurmctld hears of a giant ring. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "src/util/error.h"
#include "src/util/text.h"
#include "tests/unit/ocsd/topo_rig.h"

/* Both rails of T go to TOPO, and these are the controller's counts before. */
static void change(struct ocs_client *client, const struct tenant *t, int seq, const char *topo,
		   const char *counts)
{
	json_object_put(rig_ask(client,
				"{'op':'topo','job':%u,'epoch':%u,'seq':%d,'key':'%s',%s,"
				"'rails':[" TOPO_BOTH "]}",
				t->job, t->job * 10, seq, t->key, counts, topo, topo));
}

static void metrics_are(const char *address, int changes, int provisioned, int mispredicted)
{
	char *text = rig_http(address, "GET /metrics HTTP/1.0\r\n\r\n");
	char *wanted = ocs_asprintf("\nocsd_topology_changes_total %d\n", changes);
	char *begun = ocs_asprintf("\nocsd_topology_provisioned_total %d\n", provisioned);
	char *wrong = ocs_asprintf("\nocsd_topology_mispredicted_total %d\n", mispredicted);

	assert_non_null(strstr(text, wanted));
	assert_non_null(strstr(text, begun));
	assert_non_null(strstr(text, wrong));
	free(wrong);
	free(begun);
	free(wanted);
	free(text);
}

/* What `ocsctl show phases` prints has WANTED. */
static void ocsctl_prints(const struct rig *rig, const char *wanted)
{
	const char *build = getenv("OCS_BUILD_DIR");
	char *command = ocs_asprintf("%s/src/ocsctl/ocsctl show phases 1 --fabric %s",
				     build ? build : TEST_BUILD_DIR, rig->yaml);
	FILE *said = popen(command, "r");
	char text[4096];

	assert_non_null(said);
	text[fread(text, 1, sizeof(text) - 1, said)] = '\0';
	assert_int_equal(pclose(said), 0);
	if (!strstr(text, wanted))
		fail_msg("%s", text);
	free(command);
}

static void provisioned(void **state)
{
	struct rig *rig = *state;
	char *address = rig_metrics_on(rig);
	struct ocs_client *client = rig_client(rig);
	struct tenant t = { 1, 0, "" };
	struct json_object *reply, *job;

	topo_start(client, &t, "provisioned");
	change(client, &t, 1, "000", "'provisioned':0");
	change(client, &t, 2, "111", "'provisioned':1,'mispredicted':0");
	change(client, &t, 3, "000", "'provisioned':3,'mispredicted':1");
	metrics_are(address, 6, 3, 1);
	/* The next step counts anew, and one that says nothing changes nothing. */
	change(client, &t, 4, "111", "'provisioned':1,'mispredicted':1");
	change(client, &t, 5, "000", "'waited_ms':1500");
	reply = rig_ask(client, "{'op':'show','what':'phases','name':'1'}");
	job = json_object_array_get_idx(json_object_object_get(reply, "phases"), 0);
	assert_int_equal(rig_number(job, "provisioned"), 1);
	assert_int_equal(rig_number(job, "mispredicted"), 1);
	json_object_put(reply);
	metrics_are(address, 10, 4, 1);
	ocsctl_prints(rig, "10 changes of rails (");
	ocsctl_prints(
		rig,
		" 0 refused; waited 1.500 s, 0 times for one rank; 1 changes provisioned, 1 of them wrong\n");
	/* two changes since it said so last */
	change(client, &t, 6, "000", "'provisioned':9223372036854775807,'mispredicted':2000");
	metrics_are(address, 10, 6, 3);
	change(client, &t, 7, "000", "'provisioned':9223372036854775800,'mispredicted':2001");
	change(client, &t, 8, "000", "'provisioned':-1,'mispredicted':'x'");
	metrics_are(address, 10, 6, 3);
	topo_end(client, &t);
	free(address);
	ocs_client_close(client);
}

/* The event that says to slurmctld what rails of T had to go to; the next one. */
static void degraded_is(struct ocs_client *slurmctld, const char *wanted)
{
	struct json_object *event = rig_event(slurmctld, "degraded");

	assert_int_equal(rig_number(event, "job"), 1);
	assert_int_equal(rig_number(event, "epoch"), 10);
	assert_string_equal(rig_text(event, "error"), wanted);
	json_object_put(event);
}

/* Each rail is named once, and again to a slurmctld that connects anew. */
static void giant_ring(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig), *slurmctld = rig_client(rig);
	struct tenant t = { 1, 0, "" };
	int seq = 1;

	json_object_put(rig_ask(slurmctld, "{'op':'subscribe'}"));
	topo_start(client, &t, "on-demand");
	topo_change(client, &t, seq++, "000");
	json_object_put(
		rig_ask(client, TOPO_REQUEST, 1, 10, seq++, t.key, "{'rail':1,'topo':'ring'}"));
	degraded_is(slurmctld, "rail 1 went to the giant ring");
	for (int i = 0; i < 3; i++) {
		json_object_put(rig_ask(client, TOPO_REQUEST, 1, 10, seq++, t.key,
					"{'rail':1,'topo':'000'}"));
		json_object_put(rig_ask(client, TOPO_REQUEST, 1, 10, seq++, t.key,
					"{'rail':1,'topo':'ring'}"));
	}
	json_object_put(
		rig_ask(client, TOPO_REQUEST, 1, 10, seq++, t.key, "{'rail':0,'topo':'ring'}"));
	degraded_is(slurmctld, "rail 0 went to the giant ring, rail 1 went to the giant ring");
	ocs_client_close(slurmctld);
	slurmctld = rig_client(rig);
	json_object_put(rig_ask(slurmctld, "{'op':'subscribe'}"));
	degraded_is(slurmctld, "rail 0 went to the giant ring, rail 1 went to the giant ring");
	topo_end(client, &t);
	ocs_client_close(slurmctld);
	ocs_client_close(client);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(provisioned, topo_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(giant_ring, topo_setup, rig_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
