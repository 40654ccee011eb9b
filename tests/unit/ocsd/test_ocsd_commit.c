/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* A placement that was chosen before a part of it went out of service. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "tests/unit/ocsd/ocsd_rig.h"

/* 2x2x4 over the cubes c0 and c1: its z rings take port 1 to 4 of the z switches. */
#define COMMIT                                                         \
	"{'op':'commit','job':1,'epoch':%d,'uid':1000,'user':'alice'," \
	"'section':'pod','partition':'tpu','nodes':'%s','placement':'%s'}"

static int setup(void **state)
{
	return rig_setup_with(state, NULL, NULL, 100);
}

static void refused_over_what_is_drained(void **state)
{
	static const struct {
		const char *op, *kind, *name, *says;
	} faults[] = {
		{ "drain", "xpu", "c0:0,0,1", "xpu c0:0,0,1 (node n0) is drained: burnt" },
		{ "drain", "xpu", "c1:1,1,0", "xpu c1:1,1,0 (node n7) is drained: burnt" },
		{ "drain", "cube", "c1", "cube c1 is drained: burnt" },
		{ "drain", "port", "t-z-0-1:2", "port t-z-0-1:2 is drained: burnt" },
		{ "fail", "port", "t-z-1-0:1", "port t-z-1-0:1 is drained: failed: burnt" },
		{ "drain", "switch", "t-z-1-1", "switch t-z-1-1 is drained: burnt" },
		/* The others take no part in it. */
		{ "drain", "xpu", "c2:0,0,0", NULL },
		{ "drain", "cube", "c3", NULL },
		{ "drain", "port", "t-x-0-0:1", NULL },
		{ "drain", "port", "t-z-0-0:5", NULL },
	};
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	char *nodes, *placement = rig_place(rig, "2x2x4", NULL, &nodes);
	int epoch = 1;

	assert_string_equal(nodes, "n[0-7]");
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++, epoch++) {
		json_object_put(rig_ask(client,
					"{'op':'%s','kind':'%s','name':'%s','reason':'burnt'}",
					faults[i].op, faults[i].kind, faults[i].name));
		if (faults[i].says)
			json_object_put(rig_refused(client, 4, faults[i].says, COMMIT, epoch, nodes,
						    placement));
		else
			json_object_put(rig_ask(client, COMMIT, epoch, nodes, placement));
		json_object_put(rig_ask(client, "{'op':'resume','kind':'%s','name':'%s'}",
					faults[i].kind, faults[i].name));
	}
	ocs_client_close(client);
	free(nodes);
	free(placement);
}

/* Somebody else's patch was seen on a port of it. */
static void refused_over_a_port_in_quarantine(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig), *watcher = rig_client(rig);
	char *nodes, *placement = rig_place(rig, "2x2x4", NULL, &nodes);

	json_object_put(rig_ask(watcher, "{'op':'subscribe'}"));
	rig_emulate(rig, "patch t-z-0-0 2 32");
	json_object_put(rig_event(watcher, "drain"));
	json_object_put(rig_refused(client, 4,
				    "port t-z-0-0:2 is drained: a patch that is not ours", COMMIT,
				    1, nodes, placement));
	rig_emulate(rig, "unpatch t-z-0-0 2");
	ocs_client_close(watcher);
	ocs_client_close(client);
	free(nodes);
	free(placement);
}

/* The nodes of an allocation whose commit was refused are not left waiting for it. */
static void nodes_of_a_refused_commit(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig), *early = rig_client(rig);
	char *nodes, *placement = rig_place(rig, "2x2x4", NULL, &nodes);
	struct json_object *reply;

	json_object_put(
		rig_ask(client, "{'op':'drain','kind':'xpu','name':'c0:0,0,0','reason':'x'}"));
	rig_send(early, "{'op':'apply','job':1,'epoch':5,'node':'n0'}");
	json_object_put(rig_refused(client, 4, "xpu c0:0,0,0", COMMIT, 5, nodes, placement));
	rig_silence(early, 300);
	json_object_put(rig_ask(client, "{'op':'end','job':1,'epoch':5,'reason':'requeued'}"));
	reply = rig_reply(early);
	assert_int_equal(rig_number(reply, "code"), 1);
	assert_true(json_object_get_boolean(json_object_object_get(reply, "gone")));
	json_object_put(reply);
	/* Those that come late neither; a newer epoch is another matter. */
	reply = rig_refused(client, 1, "has ended", "{'op':'apply','job':1,'epoch':5,'node':'n3'}");
	assert_true(json_object_get_boolean(json_object_object_get(reply, "gone")));
	json_object_put(reply);
	rig_send(early, "{'op':'apply','job':1,'epoch':6,'node':'n0'}");
	rig_silence(early, 300);
	json_object_put(rig_ask(client, "{'op':'resume','kind':'xpu','name':'c0:0,0,0'}"));
	json_object_put(rig_ask(client, COMMIT, 6, nodes, placement));
	reply = rig_reply(early);
	assert_int_equal(rig_number(reply, "circuits"), 8);
	json_object_put(reply);
	json_object_put(rig_ask(client, "{'op':'release','job':1,'epoch':6}"));
	ocs_client_close(early);
	ocs_client_close(client);
	free(nodes);
	free(placement);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(refused_over_what_is_drained, rig_setup, rig_teardown),
	cmocka_unit_test_setup_teardown(refused_over_a_port_in_quarantine, setup, rig_teardown),
	cmocka_unit_test_setup_teardown(nodes_of_a_refused_commit, rig_setup, rig_teardown),
};

int main(void)
{
	rig_timeout_ms = RIG_PATIENT_MS;
	return cmocka_run_group_tests_name("ocsd: commits over what went out of service", tests,
					   NULL, NULL);
}
