/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The driver against the real emulator and all its faults. */

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

#include "src/switch/switch.h"
#include "src/util/error.h"
#include "src/util/text.h"
#include "tests/unit/switch/emulator_peer.h"

static const char *const one[] = { "--switch", "a=unix:%s/a,32", "--delay", "0", NULL };

static struct ocs_switch_connection *drive(struct emulator *e, struct ocs_switch *sw,
					   ocs_switch_notice notice, void *context)
{
	static char address[256];
	struct ocs_switch_connection *connection;
	struct ocs_error err = { 0 };

	strcpy(address, emulator_address(e, "a"));
	*sw = (struct ocs_switch){ .name = (char *)"a",
				   .driver = (char *)"tl1",
				   .address = address,
				   .size = 32,
				   .credentials = sw->credentials };
	connection = ocs_switch_open(sw, 1000, notice, context, &err);
	if (!connection)
		fail_msg("%s", err.text);
	return connection;
}

static void test_replace(void **state)
{
	static const char *const arguments[] = {
		"--switch", "a=unix:%s/a,32", "--delay", "0", "--replace", "--nil-sid", "--page",
		"1",	    "--notices",      "5",	 NULL
	};
	const struct ocs_patch thief = { 2, 33 };
	struct ocs_switch sw = { 0 };
	struct ocs_switch_connection *connection;
	struct ocs_table table;
	struct ocs_error err = { 0 };
	struct emulator e;
	int fd;

	(void)state;
	emulator_folder(&e);
	emulator_start(&e, arguments);
	fd = emulator_dial(&e, "a");
	free(emulator_ask(fd, "ENT-PATCH::1&2&3,33&34&35:1:;", 1));
	free(emulator_ask(fd, "ENT-PATCH::2,33:2:;", 1));
	close(fd);
	emulator_says(&e, "table", "{\"a\":[[2,33],[3,35]]}");
	/* pages, notices between them, no SID: the driver is not impressed */
	connection = drive(&e, &sw, NULL, NULL);
	for (int i = 0; i < 50; i++) {
		assert_int_equal(ocs_switch_read(connection, &table, &err), OCS_SWITCH_OK);
		assert_int_equal(table.out[2], 33);
		assert_int_equal(table.out[3], 35);
		ocs_table_free(&table);
	}
	/* our side refuses what this switch would do */
	assert_int_equal(
		ocs_switch_apply(connection, NULL, 0, &(struct ocs_patch){ 7, 33 }, 1, NULL, &err),
		OCS_SWITCH_REJECTED);
	assert_int_equal(ocs_switch_apply(connection, NULL, 0, &thief, 1, NULL, &err),
			 OCS_SWITCH_OK);
	ocs_switch_close(connection);
	assert_int_equal(emulator_stop(&e, SIGINT), 0);
	emulator_remove(&e);
}

/* A login with a password that has to be quoted. */
static void test_login(void **state)
{
	static const char *const arguments[] = { "--switch", "a=unix:%s/a,32", "--delay", "0",
						 "--login",  "%s/login",       NULL };
	struct ocs_switch sw = { 0 };
	struct ocs_error err = { 0 };
	struct emulator e;
	char path[128], other[128];

	(void)state;
	emulator_folder(&e);
	snprintf(path, sizeof(path), "%s/login", e.folder);
	snprintf(other, sizeof(other), "%s/other", e.folder);
	assert_int_equal(ocs_file_write(path, "user=admin\npassword=s3;c:ret\n", 29, 0600, &err),
			 0);
	assert_int_equal(ocs_file_write(other, "user=admin\npassword=s3;c:rex\n", 29, 0600, &err),
			 0);
	emulator_start(&e, arguments);
	sw.credentials = path;
	ocs_switch_close(drive(&e, &sw, NULL, NULL));
	sw.credentials = other;
	assert_null(ocs_switch_open(&sw, 500, NULL, NULL, &err));
	assert_string_equal(err.text, "switch a: refused the login of admin: PICC, not permitted");
	sw.credentials = NULL;
	assert_null(ocs_switch_open(&sw, 500, NULL, NULL, &err));
	assert_non_null(strstr(err.text, "Not logged in"));
	assert_int_equal(emulator_stop(&e, SIGTERM), 0);
	emulator_remove(&e);
}

/* Every fault, seen by the driver; afterwards the switch works again. */
static void test_faults(void **state)
{
	static const struct {
		const char *fault, *sentence;
		enum ocs_switch_result result;
		const char *table; /* afterwards */
	} cases[] = {
		{ "fault a silent", "did not answer", OCS_SWITCH_UNKNOWN, "[[1,33],[2,34]]" },
		{ "fault a drop", "closed the connection", OCS_SWITCH_UNKNOWN, "[[1,33],[2,34]]" },
		{ "fault a deny", "refused DLT-PATCH: SSTP", OCS_SWITCH_REFUSED,
		  "[[1,33],[2,34]]" },
		{ "fault a deny count 1", NULL, OCS_SWITCH_OK, "[[1,34],[2,33]]" },
		{ "fault a duplicate", NULL, OCS_SWITCH_OK, "[[1,34],[2,33]]" },
		{ "fault a partial", "only in part (PRTL", OCS_SWITCH_UNKNOWN, "[[2,34]]" },
		{ "fault a lost", "did not answer DLT-PATCH", OCS_SWITCH_UNKNOWN, "[]" },
		{ "fault a slow 1300", "did not answer", OCS_SWITCH_UNKNOWN, "[[1,33],[2,34]]" },
		{ "fault a slow 20", NULL, OCS_SWITCH_OK, "[[1,34],[2,33]]" },
		{ "fault a slow 50 count 1", NULL, OCS_SWITCH_OK, "[[1,34],[2,33]]" },
		{ "fault a refuse", "switch a: ", OCS_SWITCH_UNKNOWN, "[[1,33],[2,34]]" },
		{ "reboot a restore", "switch a: ", OCS_SWITCH_UNKNOWN, "[[1,33],[2,34]]" },
		{ "reboot a dark", "switch a: ", OCS_SWITCH_UNKNOWN, "[]" },
	};
	const struct ocs_patch straight[] = { { 1, 33 }, { 2, 34 } };
	const struct ocs_patch crossed[] = { { 1, 34 }, { 2, 33 } };
	struct emulator e;

	(void)state;
	emulator_folder(&e);
	emulator_start(&e, one);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ocs_switch sw = { 0 };
		struct ocs_switch_connection *connection;
		struct ocs_error err = { 0 };
		char *wanted = ocs_asprintf("{\"a\":%s}", cases[i].table);

		emulator_says(&e, "patch a 1 33", EMULATOR_OK);
		emulator_says(&e, "patch a 2 34", EMULATOR_OK);
		connection = drive(&e, &sw, NULL, NULL);
		emulator_says(&e, cases[i].fault, EMULATOR_OK);
		assert_int_equal(ocs_switch_apply(connection, straight, 2, crossed, 2, NULL, &err),
				 cases[i].result);
		if (cases[i].sentence && !strstr(err.text, cases[i].sentence))
			fail_msg("%s: '%s'", cases[i].fault, err.text);
		ocs_switch_close(connection);
		if (!strcmp(cases[i].fault, "fault a refuse")) {
			assert_null(ocs_switch_open(&sw, 500, NULL, NULL, &err));
			assert_int_equal(err.code, OCS_UNREACHABLE);
		}
		emulator_says(&e, "table a", wanted);
		emulator_says(&e, "fault a none", EMULATOR_OK);
		/* reconnect, read back, go on */
		connection = drive(&e, &sw, NULL, NULL);
		assert_int_equal(ocs_switch_apply(connection, straight, 2, crossed, 2, NULL, &err),
				 OCS_SWITCH_OK);
		ocs_switch_close(connection);
		emulator_says(&e, "table a", "{\"a\":[[1,34],[2,33]]}");
		free(wanted);
	}
	assert_int_equal(emulator_stop(&e, SIGTERM), 0);
	emulator_remove(&e);
}

static void collect(void *context, const char *text)
{
	ocs_text_add(context, "%s\n", text);
}

/* Somebody's hand and messages reach a client between its commands. */
static void test_notices(void **state)
{
	struct ocs_switch sw = { 0 };
	struct ocs_switch_connection *connection;
	struct ocs_text notices = { 0 };
	struct ocs_error err = { 0 };
	struct emulator e;

	(void)state;
	emulator_folder(&e);
	emulator_start(&e, one);
	connection = drive(&e, &sw, collect, &notices);
	emulator_says(&e, "patch a 3 40", EMULATOR_OK);
	emulator_says(&e, "unpatch a 3", EMULATOR_OK);
	emulator_says(&e, "notice a FAN:\"1\" ; > stopped", EMULATOR_OK);
	for (int i = 0; i < 100 && (!notices.data || !strstr(notices.data, "stopped")); i++)
		assert_int_equal(ocs_switch_listen(connection, 20, &err), OCS_SWITCH_OK);
	assert_string_equal(notices.data, "A  1 REPT EVT SYSTEM \"PATCH:3,40:CHANGED BY HAND\"\n"
					  "A  2 REPT EVT SYSTEM \"PATCH:3,0:CHANGED BY HAND\"\n"
					  "A  3 REPT EVT SYSTEM \"FAN:\\\"1\\\" ; > stopped\"\n");
	ocs_text_free(&notices);
	emulator_says(&e, "reboot a dark 1000", EMULATOR_OK);
	assert_int_equal(ocs_switch_listen(connection, 2000, &err), OCS_SWITCH_UNKNOWN);
	assert_int_equal(ocs_switch_descriptor(connection), -1);
	ocs_switch_close(connection);
	assert_null(ocs_switch_open(&sw, 500, NULL, NULL, &err));
	assert_int_equal(err.code, OCS_UNREACHABLE);
	assert_int_equal(emulator_stop(&e, SIGTERM), 0);
	emulator_remove(&e);
}

/* Whatever happens to a switch, a caller that reads back and tries again gets its
 * patches, and those of others never move. */
static void test_storm(void **state)
{
	static const char *const faults[] = {
		"fault a silent count 1",  "fault a drop count 2", "fault a deny count 1",
		"fault a partial count 1", "fault a lost count 1", "fault a slow 400 count 2",
		"reboot a restore",	   "fault a none",	   "fault a none",
	};
	const struct ocs_patch straight[] = { { 1, 33 }, { 2, 34 }, { 3, 35 }, { 4, 36 } };
	const struct ocs_patch shifted[] = { { 1, 34 }, { 2, 35 }, { 3, 36 }, { 4, 33 } };
	struct ocs_switch sw = { 0 };
	struct ocs_error err = { 0 };
	struct emulator e;
	unsigned int seed = 5;
	char path[128], *output;

	(void)state;
	emulator_folder(&e);
	emulator_start(&e, one);
	emulator_says(&e, "patch a 9 60", EMULATOR_OK);
	ocs_switch_close(drive(&e, &sw, NULL, NULL));
	for (int round = 0; round < 30; round++) {
		const struct ocs_patch *from = round % 2 ? shifted : straight;
		const struct ocs_patch *to = round % 2 ? straight : shifted;
		struct ocs_switch_connection *connection = NULL;
		int rc = OCS_SWITCH_UNKNOWN, tries = 0;

		seed = seed * 1103515245 + 12345;
		emulator_says(&e, faults[(seed >> 16) % 9], EMULATOR_OK);
		while (rc != OCS_SWITCH_OK) {
			assert_true(tries++ < 20);
			connection = ocs_switch_open(&sw, 250, NULL, NULL, &err);
			if (!connection)
				continue;
			rc = ocs_switch_apply(connection, from, 4, to, 4, NULL, &err);
			assert_int_not_equal(rc, OCS_SWITCH_REJECTED);
			ocs_switch_close(connection);
		}
		emulator_says(&e, "fault a none", EMULATOR_OK);
		emulator_says(&e, "table",
			      round % 2 ? "{\"a\":[[1,33],[2,34],[3,35],[4,36],[9,60]]}" :
					  "{\"a\":[[1,34],[2,35],[3,36],[4,33],[9,60]]}");
	}
	assert_int_equal(emulator_stop(&e, SIGTERM), 0);
	snprintf(path, sizeof(path), "%s/log", e.folder);
	assert_int_equal(emulator_run("--check-log", path, &output), 0);
	assert_string_equal(output, "{\"a\":[[1,33],[2,34],[3,35],[4,36],[9,60]]}\n");
	free(output);
	output = emulator_log(&e);
	assert_null(strstr(output, "deleted-all"));
	assert_null(strstr(output, "\"break\",\"in\":9"));
	free(output);
	emulator_remove(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_replace), cmocka_unit_test(test_login),
		cmocka_unit_test(test_faults),	cmocka_unit_test(test_notices),
		cmocka_unit_test(test_storm),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
