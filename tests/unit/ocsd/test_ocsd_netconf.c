/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* ocsd over switches that speak NETCONF: a job, a switch that reboots in its prolog,
 * and switches that hang.  Runs under the thread sanitizer as well. */

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
#include <cmocka.h>

#include "src/util/net.h"
#include "tests/unit/ocsd/ocsd_rig.h"

#define PATCHES 8 /* a ring of four servers on each of two switches */

static int setup(void **state)
{
	static struct rig rig;

	rig_prepare(&rig);
	rig.netconf = true;
	rig_start(&rig);
	*state = &rig;
	return 0;
}

static int teardown(void **state)
{
	rig_end(*state);
	return 0;
}

static void commit(struct ocs_client *client, unsigned int job)
{
	json_object_put(rig_ask(client,
				"{'op':'commit','job':%u,'epoch':%u,'uid':1000,"
				"'user':'alice','section':'ring','nodes':'d[0-3]'}",
				job, job));
}

static void all_up(struct ocs_client *client)
{
	rig_until_switch(client, "direct-0", "up");
	rig_until_switch(client, "direct-1", "up");
}

static void one_job(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig);

	all_up(client);
	commit(client, 1);
	json_object_put(rig_ask(client, "{'op':'apply','job':1,'epoch':1,'node':'d0'}"));
	assert_int_equal(rig_patches(rig), PATCHES);
	/* one edit on each switch, however many patches */
	assert_int_equal(rig_log_lines(rig, "direct-", "edit-config", "operation", NULL), 2);
	json_object_put(rig_ask(client, "{'op':'gone','job':1,'epoch':1}"));
	rig_until_patches(rig, 0);
	assert_int_equal(rig_log_lines(rig, "direct-", "edit-config", "operation", NULL), 4);
	ocs_client_close(client);
}

/* It is back at once, dark: the change is made anew, and the prolog knows nothing. */
static void reboot_in_prolog(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig), *prolog = rig_client(rig);
	struct json_object *reply;

	all_up(client);
	commit(client, 1);
	rig_emulate(rig, "delay direct-1 400");
	rig_send(prolog, "{'op':'apply','job':1,'epoch':1,'node':'d0'}");
	for (int i = 0; i < 6000 && !rig_log_lines(rig, "direct-1", "edit-config", NULL); i++)
		usleep(10000);
	rig_emulate(rig, "reboot direct-1 dark");
	rig_emulate(rig, "delay direct-1 2");
	reply = rig_reply(prolog);
	assert_true(json_object_get_boolean(json_object_object_get(reply, "ok")));
	json_object_put(reply);
	/* the edit may have been done just before */
	rig_until_patches(rig, PATCHES);
	ocs_client_close(prolog);
	ocs_client_close(client);
}

/* ocsd dies while it holds the lock of a switch and an edit is under way. */
static void killed_in_an_edit(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig), *prolog = rig_client(rig);

	all_up(client);
	commit(client, 1);
	rig_emulate(rig, "delay direct-1 300");
	rig_send(prolog, "{'op':'apply','job':1,'epoch':1,'node':'d0'}");
	for (int i = 0; i < 6000 && !rig_log_lines(rig, "direct-1", "edit-config", NULL); i++)
		usleep(10000);
	assert_int_equal(rig_stop_daemon(rig, SIGKILL), -SIGKILL);
	ocs_client_close(prolog);
	ocs_client_close(client);
	rig_emulate(rig, "delay direct-1 2");
	rig_start_daemon(rig);
	client = rig_client(rig);
	json_object_put(rig_ask(client, "{'op':'apply','job':1,'epoch':1,'node':'d0'}"));
	assert_int_equal(rig_patches(rig), PATCHES);
	json_object_put(rig_ask(client, "{'op':'gone','job':1,'epoch':1}"));
	rig_until_patches(rig, 0);
	ocs_client_close(client);
}

/* It stays away for longer: the job fails and is told why, and the switch serves the
 * next one when it is back. */
static void long_reboot(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig), *prolog = rig_client(rig);
	struct json_object *event;

	all_up(client);
	json_object_put(rig_ask(client, "{'op':'subscribe'}"));
	commit(client, 1);
	rig_emulate(rig, "reboot direct-1 restore 2500");
	rig_send(prolog, "{'op':'apply','job':1,'epoch':1,'node':'d0'}");
	event = rig_event(client, "job_failed");
	assert_string_equal(rig_text(event, "switch"), "direct-1");
	json_object_put(event);
	json_object_put(rig_ask(client, "{'op':'gone','job':1,'epoch':1}"));
	json_object_put(rig_reply(prolog));
	all_up(client);
	rig_until_patches(rig, 0);
	commit(client, 2);
	json_object_put(rig_ask(client, "{'op':'apply','job':2,'epoch':2,'node':'d0'}"));
	assert_int_equal(rig_patches(rig), PATCHES);
	ocs_client_close(prolog);
	ocs_client_close(client);
}

/* Every connection is half open: no answer, no end.  ocsd itself answers on. */
static void all_hang(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig), *prolog = rig_client(rig);
	int slow = 0;

	all_up(client);
	json_object_put(rig_ask(client, "{'op':'subscribe'}"));
	commit(client, 1);
	kill(rig->emulator.pid, SIGSTOP);
	rig_send(prolog, "{'op':'apply','job':1,'epoch':1,'node':'d0'}");
	for (int i = 0; i < 20; i++) {
		int64_t start = ocs_now_ns();

		assert_string_not_equal(rig_job_state(client, 1), "");
		slow += ocs_now_ns() - start > 1000000000;
		usleep(50000);
	}
	/* the machine may be busy */
	if (slow > 5)
		fail_msg("%d answers took ocsd more than a second while switches hang", slow);
	json_object_put(rig_event(client, "job_failed"));
	/* the other one fails with it, but not in the same instant */
	rig_until_switch(client, "direct-0", "failed");
	rig_until_switch(client, "direct-1", "failed");
	kill(rig->emulator.pid, SIGCONT);
	json_object_put(rig_ask(client, "{'op':'gone','job':1,'epoch':1}"));
	json_object_put(rig_reply(prolog));
	all_up(client);
	rig_until_patches(rig, 0);
	commit(client, 2);
	json_object_put(rig_ask(client, "{'op':'apply','job':2,'epoch':2,'node':'d0'}"));
	assert_int_equal(rig_patches(rig), PATCHES);
	ocs_client_close(prolog);
	ocs_client_close(client);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(one_job, setup, teardown),
		cmocka_unit_test_setup_teardown(reboot_in_prolog, setup, teardown),
		cmocka_unit_test_setup_teardown(killed_in_an_edit, setup, teardown),
		cmocka_unit_test_setup_teardown(long_reboot, setup, teardown),
		cmocka_unit_test_setup_teardown(all_hang, setup, teardown),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
