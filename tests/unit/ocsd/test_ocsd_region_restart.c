/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* What ocsd knows of the circuits of regions after a restart, and from one run of a job to the next. */

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "src/util/error.h"
#include "tests/unit/ocsd/ocsd_rows.h"
#include "tests/unit/ocsd/region_tenant.h"

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

	json_object_put(tenant_start(client, &a, "follow"));
	tenant_change(client, &a, 0, 1, tenant_turns[0]);
	tenant_end(client, &a);
	for (int i = 0; i < 3; i++) {
		struct tenant t = { runs[i].job, 0, 1, "" };
		int wanted[2][SIZE + 1] = { 0 };

		/* ocsd remembers, not its memory alone */
		rig_stop_daemon(rig, SIGKILL);
		ocs_client_close(client);
		rig_start_daemon(rig);
		client = rig_client(rig);
		json_object_put(tenant_start(client, &t, runs[i].moe));
		tenant_add(&t, 0, runs[i].first, wanted);
		tenant_tables_are(rig, wanted);
		if (strcmp(runs[i].moe, "static") == 0) {
			assert_string_equal(t.key, "");
			json_object_put(rig_refused(client, OCS_ERROR, "has this key", ASK, t.job,
						    t.job * 10, 1, "",
						    "{'group':0,'circuits':[]}"));
		}
		tenant_end(client, &t);
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

	json_object_put(tenant_start(client, &a, "follow"));
	json_object_put(tenant_start(client, &b, "follow"));
	rig_emulate(rig, "delay 10");
	for (int i = 0; i < 10; i++) {
		const char *to = tenant_turns[(size_t)i % TENANT_TURNS];
		char *entry = tenant_group_json(0, to);
		int wanted[2][SIZE + 1] = { 0 };

		rig_send(client, ASK, 1, 10, i + 1, a.key, entry);
		usleep((useconds_t)i * 4000);
		rig_stop_daemon(rig, SIGKILL);
		ocs_client_close(client);
		rig_start_daemon(rig);
		client = rig_client(rig);
		assert_string_equal(rig_job_state(client, 1), "realised");
		tenant_change(client, &a, 0, 1, to);
		tenant_add(&a, 0, to, wanted);
		tenant_add(&b, 0, BALANCED, wanted);
		tenant_tables_are(rig, wanted);
		free(entry);
	}
	assert_int_equal(rig_log_lines(rig, "\"break\"", "\"in\":13", NULL), 0);
	tenant_end(client, &a);
	tenant_end(client, &b);
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

	json_object_put(tenant_start(client, &a, "follow"));
	tenant_change(client, &a, 0, 7, tenant_turns[4]);
	cuts = rig_log_lines(rig, "\"break\"", NULL);
	rig_stop_daemon(rig, SIGTERM);
	ocs_client_close(client);
	rig_start_daemon(rig);
	client = rig_client(rig);
	tenant_change(client, &a, 0, 8, tenant_turns[4]);
	tenant_add(&a, 0, tenant_turns[4], wanted);
	tenant_tables_are(rig, wanted);
	assert_int_equal(rig_log_lines(rig, "\"break\"", NULL), cuts);
	tenant_end(client, &a);
	rig_until_patches(rig, 0);
	ocs_client_close(client);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(next_run, tenant_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(crash_in_the_middle, tenant_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(restart_keeps, tenant_setup, rig_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
