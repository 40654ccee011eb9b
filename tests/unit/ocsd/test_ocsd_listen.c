/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* What switches say of themselves between two commands.  The rig polls once a minute,
 * and no test waits that long: what is noticed here was said. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "ocs_config.h"
#include "src/util/net.h"
#include "src/util/text.h"
#include "tests/unit/ocsd/ocsd_rig.h"

#define PATIENCE_NS (20 * INT64_C(1000000000))

static struct ocs_client *realise(struct rig *rig, const char *section, const char *nodes,
				  const char *first)
{
	struct ocs_client *client = rig_client(rig);

	json_object_put(rig_ask(client, "{'op':'subscribe','jobs':[]}"));
	json_object_put(rig_ask(client,
				"{'op':'commit','job':1,'epoch':1,'uid':1000,"
				"'user':'alice','section':'%s','nodes':'%s'}",
				section, nodes));
	json_object_put(rig_ask(client, "{'op':'apply','job':1,'epoch':1,'node':'%s'}", first));
	return client;
}

/* The first patch of a switch. */
static void first_patch(struct rig *rig, const char *sw, int *in, int *out)
{
	char *command = ocs_asprintf("table %s", sw);
	char *table = emulator_control(&rig->emulator, command);

	assert_int_equal(sscanf(strchr(table, '['), "[[%d,%d]", in, out), 2);
	free(table);
	free(command);
}

static void hand(struct rig *rig)
{
	struct ocs_client *client = rig_client(rig);
	struct json_object *event;
	int in, out;

	rig_until_switch(client, "direct-0", "up");
	rig_until_switch(client, "direct-1", "up");
	ocs_client_close(client);
	client = realise(rig, "ring", "d[0-3]", "d0");
	/* a circuit that somebody cuts comes back */
	first_patch(rig, "direct-0", &in, &out);
	rig_emulate(rig, "unpatch direct-0 %d", in);
	rig_until_patches(rig, 8);
	/* a foreign patch is seen, and seen to go */
	rig_emulate(rig, "patch direct-1 6 21");
	for (int i = 0; i < 4; i++) {
		event = rig_event(client, "drain");
		assert_true(strcmp(rig_text(event, "name"), "direct-1:6") == 0 ||
			    strcmp(rig_text(event, "name"), "direct-1:5") == 0);
		assert_int_equal(json_object_get_boolean(json_object_object_get(event, "drained")),
				 i < 2);
		json_object_put(event);
		if (i == 1)
			rig_emulate(rig, "unpatch direct-1 6");
	}
	/* and is in the history */
	event = rig_ask(client, "{'op':'show','what':'history','name':'direct-1'}");
	assert_non_null(strstr(json_object_to_json_string(event), "\"notice\""));
	json_object_put(event);
	assert_string_equal(rig_job_state(client, 1), "realised");
	ocs_client_close(client);
}

static void by_hand(void **state)
{
	hand(*state);
}

#ifdef HAVE_LIBSSH
static int setup_netconf(void **state)
{
	struct rig *rig = ocs_calloc(1, sizeof(*rig));

	rig_prepare(rig);
	rig->netconf = true;
	rig_start(rig);
	*state = rig;
	return 0;
}
#endif

/* A switch that closes its connections, and comes back without a circuit. */
static void restarted(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = realise(rig, "ring", "d[0-3]", "d0");

	rig_emulate(rig, "reboot direct-0 dark 100");
	rig_until_patches(rig, 8);
	rig_until_switch(client, "direct-0", "up");
	assert_string_equal(rig_job_state(client, 1), "realised");
	/* one that does not come back has failed before a job asks for it */
	rig_emulate(rig, "fault direct-1 refuse");
	rig_until_switch(client, "direct-1", "failed");
	rig_emulate(rig, "fault direct-1 none");
	rig_until_switch(client, "direct-1", "up");
	ocs_client_close(client);
}

/* Two switches that can be asked for the status of their ports. */
static const char switches[] =
	"  - {name: 'duo-[0-1]', driver: tl1, address: \"unix:%1$s/{name}\", size: 16,\n"
	"     credentials: \"%1$s/credentials\", loss_max: 3.5}\n";
static const char fabrics[] =
	"  - {name: duo, kind: direct, partitions: [duo], nodes: 'e[0-3]', degree: 2,\n"
	"     ports: {switch: \"duo-{interface}\", port: server+1}}\n";

static int setup_duo(void **state)
{
	return rig_setup_with(state, switches, fabrics, 0);
}

/* An alarm about a port of a running job: it goes out of service. */
static void alarm_of_port(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = realise(rig, "duo", "e[0-3]", "e0");
	struct json_object *event;
	int in, out;

	first_patch(rig, "duo-0", &in, &out);
	rig_emulate(rig, "port duo-0 %d fail", in);
	event = rig_event(client, "drain");
	assert_string_equal(rig_text(event, "kind"), "port");
	assert_non_null(strstr(rig_text(event, "name"), "duo-0:"));
	json_object_put(event);
	ocs_client_close(client);
}

static int reads(struct rig *rig)
{
	return rig_log_lines(rig, "\"command\"", "direct-0", "RTRV-PATCH", NULL);
}

/* Talk is not followed by read-backs; and however much a switch says of its patches,
 * read-backs are a quarter of a second apart, and the audit log does not grow with it. */
static void talkative(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);
	int before = reads(rig), after;
	int64_t begin = ocs_now_ns(), elapsed_ms;
	struct json_object *reply, *list = NULL;

	for (int i = 0; i < 50; i++)
		rig_emulate(rig, "notice direct-0 SYSTEM:TEMPERATURE=%d", i);
	/* it was heard once something said later was */
	rig_emulate(rig, "patch direct-0 6 21");
	while (reads(rig) == before && ocs_now_ns() - begin < PATIENCE_NS)
		usleep(10000);
	assert_int_equal(reads(rig), before + 1);
	begin = ocs_now_ns();
	for (int i = 0; i < 300; i++)
		rig_emulate(rig, "notice direct-0 PATCH:%d,%d:NOTHING NEW", i, i);
	elapsed_ms = (ocs_now_ns() - begin) / 1000000;
	after = reads(rig) - before - 1;
	if (after > elapsed_ms / 250 + 2)
		fail_msg("%d read-backs in %lld ms", after, (long long)elapsed_ms);
	reply = rig_ask(client, "{'op':'show','what':'history','name':'direct-0','last':1000}");
	json_object_object_get_ex(reply, "history", &list);
	assert_true((int64_t)json_object_array_length(list) < 20 + elapsed_ms / 1000 + 10);
	json_object_put(reply);
	rig_emulate(rig, "unpatch direct-0 6");
	ocs_client_close(client);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(by_hand, rig_setup, rig_teardown),
#ifdef HAVE_LIBSSH
	{ "by_hand_netconf", by_hand, setup_netconf, rig_teardown, NULL },
#endif
	cmocka_unit_test_setup_teardown(restarted, rig_setup, rig_teardown),
	cmocka_unit_test_setup_teardown(alarm_of_port, setup_duo, rig_teardown),
	cmocka_unit_test_setup_teardown(talkative, rig_setup, rig_teardown),
};

int main(void)
{
	rig_timeout_ms = RIG_PATIENT_MS;
	return cmocka_run_group_tests_name("ocsd: listening", tests, NULL, NULL);
}
