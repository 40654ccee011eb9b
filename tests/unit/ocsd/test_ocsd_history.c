/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* What ocsd tells of a switch's past. */

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "src/util/text.h"
#include "tests/unit/ocsd/ocsd_rig.h"

/* The last LAST (0: as many as usual) events of direct-0, newest last; WHAT of each is
 * put into a text, separated by blanks.  The caller puts the list and frees the text. */
static struct json_object *history(struct ocs_client *client, int last, char **whats)
{
	struct json_object *reply = rig_ask(client,
					    "{'op':'show','what':'history',"
					    "'name':'direct-0','last':%d}",
					    last),
			   *list = NULL;
	struct ocs_text text = { 0 };

	json_object_object_get_ex(reply, "history", &list);
	list = json_object_get(list);
	json_object_put(reply);
	for (size_t i = 0; i < json_object_array_length(list); i++)
		ocs_text_add(&text, "%s%s", i ? " " : "",
			     rig_text(json_object_array_get_idx(list, i), "what"));
	*whats = ocs_text_take(&text);
	return list;
}

/* The history is EXPECTED from its first event on. */
static struct json_object *expect(struct ocs_client *client, const char *expected)
{
	char *whats;
	struct json_object *list = history(client, 0, &whats);

	assert_string_equal(whats, expected);
	free(whats);
	return list;
}

/* Waits (20 s) until the history has PART. */
static void until_told(struct ocs_client *client, const char *part)
{
	for (int i = 0;; i++) {
		char *whats;
		bool there;

		json_object_put(history(client, 0, &whats));
		there = strstr(whats, part) != NULL;
		if (!there && i == 1000)
			fail_msg("no '%s' in '%s'", part, whats);
		free(whats);
		if (there)
			return;
		usleep(20000);
	}
}

static void reconcile(struct ocs_client *client)
{
	json_object_put(rig_ask(client, "{'op':'reconcile'}"));
}

/* Batches that go well are no news; everything else is there, in order, and stays. */
static void history_kept(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = rig_client(rig), *prolog = rig_client(rig);
	struct json_object *list, *row;
	char *whats;

	json_object_put(rig_ask(client, "{'op':'subscribe'}"));
	json_object_put(rig_ask(client, "{'op':'commit','job':1,'epoch':1,'uid':1000,"
					"'user':'alice','section':'ring','nodes':'d[0-3]'}"));
	json_object_put(rig_ask(client, "{'op':'apply','job':1,'epoch':1,'node':'d0'}"));
	json_object_put(expect(client, ""));

	rig_emulate(rig, "patch direct-0 6 21");
	reconcile(client);
	rig_emulate(rig, "unpatch direct-0 6");
	reconcile(client);
	list = history(client, 0, &whats);
	/* what the switch says of it may stand anywhere */
	assert_non_null(strstr(whats, "foreign"));
	assert_non_null(strstr(whats, "clean"));
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		row = json_object_array_get_idx(list, i);
		if (strcmp(rig_text(row, "what"), "foreign") != 0)
			continue;
		assert_string_equal(rig_text(row, "after"), "6>21");
		assert_true(rig_number(row, "time") > 1500000000);
	}
	free(whats);
	json_object_put(list);

	rig_emulate(rig, "reboot direct-0 dark 100");
	reconcile(client);
	until_told(client, "reset lost lost");
	rig_until_switch(client, "direct-0", "up");

	json_object_put(rig_ask(client, "{'op':'drain','kind':'port','name':'direct-0:5',"
					"'reason':'dust'}"));
	json_object_put(rig_ask(client, "{'op':'resume','kind':'port','name':'direct-0:5',"
					"'reason':'cleaned'}"));
	json_object_put(rig_ask(client, "{'op':'drain','kind':'port','name':'direct-1:5',"
					"'reason':'not this switch'}"));
	list = history(client, 2, &whats);
	assert_string_equal(whats, "drain resume");
	row = json_object_array_get_idx(list, 0);
	assert_string_equal(rig_text(row, "before"), "direct-0:5");
	assert_string_equal(rig_text(row, "after"), "dust");
	assert_int_equal(rig_number(row, "who"), getuid());
	assert_string_equal(rig_text(json_object_array_get_idx(list, 1), "after"), "cleaned");
	free(whats);
	json_object_put(list);

	rig_emulate(rig, "fault direct-0 silent");
	reconcile(client);
	rig_until_switch(client, "direct-0", "failed");
	rig_emulate(rig, "fault direct-0 none");
	rig_until_switch(client, "direct-0", "up");
	json_object_put(history(client, 2, &whats));
	assert_string_equal(whats, "switch_failed switch_up");
	free(whats);

	/* what a batch could not do */
	rig_emulate(rig, "port direct-0 5 refuse");
	json_object_put(rig_ask(client, "{'op':'commit','job':2,'epoch':2,'uid':1000,"
					"'user':'alice','section':'ring','nodes':'d[4-5]'}"));
	rig_send(prolog, "{'op':'apply','job':2,'epoch':2,'node':'d4'}");
	json_object_put(rig_event(client, "job_failed"));
	list = history(client, 0, &whats);
	assert_non_null(strstr(whats, "quarantine"));
	assert_non_null(strstr(whats, "outcome"));
	assert_non_null(strstr(whats, "job_failed"));
	json_object_put(list);
	free(whats);

	ocs_client_close(prolog);
	ocs_client_close(client);
	assert_int_equal(rig_stop_daemon(rig, SIGKILL), -SIGKILL);
	rig_start_daemon(rig);
	client = rig_client(rig);
	list = history(client, 0, &whats);
	assert_non_null(strstr(whats, "switch_failed switch_up"));
	json_object_put(list);
	free(whats);
	ocs_client_close(client);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test_setup_teardown(history_kept, rig_setup, rig_teardown),
};

int main(void)
{
	return cmocka_run_group_tests_name("ocsd: history", tests, NULL, NULL);
}
