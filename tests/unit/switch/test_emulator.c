/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The real emulator, spoken to in raw TL1 and by its control socket. */

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

#include "src/util/error.h"
#include "src/util/net.h"
#include "src/util/text.h"
#include "tests/unit/switch/emulator_peer.h"

static const char *const two[] = {
	"--switch", "a=unix:%s/a,32", "--switch", "b=127.0.0.1:0,16", "--delay", "0", NULL
};

static void test_commands(void **state)
{
	struct emulator e;
	int fd;

	(void)state;
	emulator_folder(&e);
	emulator_start(&e, two);
	fd = emulator_dial(&e, "a");
	emulator_answers(fd, "ACT-USER::admin:1::root;", "M  1 COMPLD\n;");
	emulator_answers(fd, "RTRV-EQPT::SYSTEM:2:::PARAMETER=SIZE;",
			 "M  2 COMPLD\n\"SYSTEM:SIZE=32x32\"\n;");
	emulator_answers(fd, "RTRV-PATCH:::6:;", "M  6 COMPLD\n;");
	emulator_answers(fd, "ENT-PATCH::1&2&3,33&34&35:4:;", "M  4 COMPLD\n;");
	emulator_answers(fd, "ent-patch:a:4&&6,36&&38:5:;", "M  5 COMPLD\n;");
	emulator_answers(fd, "RTRV-PATCH:::6:;",
			 "M  6 COMPLD\n\"1,33\"\n\"2,34\"\n\"3,35\"\n\"4,36\"\n"
			 "\"5,37\"\n\"6,38\"\n;");
	emulator_answers(fd, "RTRV-PATCH::1&35:6:;", "M  6 COMPLD\n\"1,33\"\n\"3,35\"\n;");
	emulator_answers(fd, "DLT-PATCH::1&&4:7:;", "M  7 COMPLD\n;");
	emulator_answers(fd, "RTRV-PATCH::ALL:6:;", "M  6 COMPLD\n\"5,37\"\n\"6,38\"\n;");
	emulator_answers(fd, "OPR-PORT-SHUTTER::5:8:;", "M  8 COMPLD\n;");
	emulator_answers(fd, "RTRV-PORT-SHUTTER::5&&6:8:;",
			 "M  8 COMPLD\n\"5:CLOSED\"\n\"6:OPEN\"\n;");
	emulator_answers(fd, "RTRV-PORT-POWER::37:10:;", "M  10 COMPLD\n\"37:-60.00\"\n;");
	emulator_answers(fd, "RLS-PORT-SHUTTER::5:8:;", "M  8 COMPLD\n;");
	emulator_answers(fd, "RTRV-PORT-POWER::5:10:;", "M  10 COMPLD\n\"5:-1.85\"\n;");
	emulator_answers(fd, "RTRV-ALM-ALL::ALL:13:;", "M  13 COMPLD\n;");
	emulator_answers(fd, "OPR-ARC-EQPT::REPMGR:12::IND;", "M  12 COMPLD\n;");
	emulator_answers(fd, "CANC-USER::admin:17:;", "M  17 COMPLD\n;");
	close(fd);
	assert_int_equal(emulator_stop(&e, SIGTERM), 0);
	emulator_remove(&e);
}

static void test_denials(void **state)
{
	struct emulator e;
	char *big = ocs_calloc(1, 6000);
	int fd;

	(void)state;
	emulator_folder(&e);
	emulator_start(&e, two);
	fd = emulator_dial(&e, "b");
	emulator_answers(fd, "ENT-PATCH::1,17:1:;", "M  1 COMPLD\n;");
	emulator_denies(fd, "ENT-PATCH::1000,17:4:;", "4", "IDNV", "Invalid OXC port: 1000");
	emulator_denies(fd, "ENT-PATCH::0,17:4:;", "4", "IDNV", "Invalid OXC port: 0");
	emulator_denies(fd, "ENT-PATCH::17,2:4:;", "4", "IDNV", "Port on the wrong side: 17");
	emulator_denies(fd, "ENT-PATCH::2,3:4:;", "4", "IDNV", "Port on the wrong side: 3");
	emulator_denies(fd, "ENT-PATCH::2&2,18&19:4:;", "4", "IDNV", "Port named twice: 2");
	emulator_denies(fd, "ENT-PATCH::2&3,18&18:4:;", "4", "IDNV", "Port named twice: 18");
	emulator_denies(fd, "ENT-PATCH::2&3,18:4:;", "4", "IIAC", "The lists differ in length");
	emulator_denies(fd, "ENT-PATCH::2:4:;", "4", "IIAC", "Two lists of ports are needed");
	emulator_denies(fd, "ENT-PATCH::2,x:4:;", "4", "IICT", "Not a list of ports");
	emulator_denies(fd, "ENT-PATCH::3&&2,18&&19:4:;", "4", "IICT", "Not a list of ports");
	emulator_denies(fd, "DLT-PATCH::1&:4:;", "4", "IICT", "Not a list of ports");
	emulator_denies(fd, "DLT-PATCH::33:4:;", "4", "IDNV", "Invalid OXC port: 33");
	emulator_denies(fd, "RTRV-PATCH:x:ALL:6:;", "6", "IITA", "Not the name of this switch");
	emulator_denies(fd, "MAKE-TEA:::6:;", "6", "IICT", "Unknown command");
	emulator_denies(fd, "RTRV-PATCH;", "0", "IICT", "Parse error");
	emulator_denies(fd, "RTRV-EQPT::SYSTEM:2:::;", "2", "IPMS", "PARAMETER is missing");
	emulator_denies(fd, "RTRV-EQPT::SYSTEM:2:::PARAMETER=AGE;", "2", "IPNV",
			"Unknown parameter");
	/* one peer for a port, on either side */
	emulator_denies(fd, "ENT-PATCH::1,18:4:;", "4", "SSTP", "Port is already patched: 1");
	emulator_denies(fd, "ENT-PATCH::2,17:4:;", "4", "SSTP", "Port is already patched: 17");
	/* refused as a whole */
	emulator_denies(fd, "ENT-PATCH::5&1,21&22:4:;", "4", "SSTP", "Port is already patched: 1");
	emulator_answers(fd, "ENT-PATCH::1,17:5:;", "M  5 COMPLD\n;");
	emulator_answers(fd, "RTRV-PATCH:::6:;", "M  6 COMPLD\n\"1,17\"\n;");
	memset(big, '1', 5990);
	memcpy(big, "ENT-PATCH::", 11);
	strcpy(big + 5990, ",17:4:;");
	emulator_denies(fd, big, "0", "IICT", "Command line too long");
	emulator_answers(fd, "RTRV-PATCH:::6:;", "M  6 COMPLD\n\"1,17\"\n;");
	close(fd);
	free(big);
	emulator_says(&e, "quit", EMULATOR_OK);
	assert_int_equal(emulator_stop(&e, 0), 0);
	emulator_remove(&e);
}

static void test_login(void **state)
{
	static const char *const arguments[] = { "--switch", "a=unix:%s/a,32", "--delay", "0",
						 "--login",  "%s/login",       NULL };
	struct emulator e;
	struct ocs_error err = { 0 };
	char path[128], *log;
	int fd;

	(void)state;
	emulator_folder(&e);
	snprintf(path, sizeof(path), "%s/login", e.folder);
	assert_int_equal(ocs_file_write(path, "user=admin\npassword=s3;c:ret\n", 29, 0600, &err),
			 0);
	emulator_start(&e, arguments);
	fd = emulator_dial(&e, "a");
	emulator_denies(fd, "RTRV-PATCH:::6:;", "6", "PICC", "Not logged in");
	emulator_denies(fd, "DLT-PATCH::ALL:6:;", "6", "PICC", "Not logged in");
	emulator_denies(fd, "ACT-USER::admin:1::root;", "1", "PICC", "Invalid user or password");
	emulator_answers(fd, "ACT-USER::admin:1::\"s3;c:ret\";", "M  1 COMPLD\n;");
	emulator_answers(fd, "RTRV-PATCH:::6:;", "M  6 COMPLD\n;");
	emulator_answers(fd, "CANC-USER::admin:17:;", "M  17 COMPLD\n;");
	emulator_denies(fd, "RTRV-PATCH:::6:;", "6", "PICC", "Not logged in");
	close(fd);
	assert_int_equal(emulator_stop(&e, SIGTERM), 0);
	log = emulator_log(&e);
	assert_non_null(strstr(log, "ACT-USER::admin:1::********"));
	assert_null(strstr(log, "c:ret"));
	assert_null(strstr(log, "root"));
	free(log);
	emulator_remove(&e);
}

static void test_control_errors(void **state)
{
	static const char *const bad[] = {
		"",
		"dance",
		"fault",
		"fault x none",
		"fault a",
		"fault a sulk",
		"fault a slow",
		"fault a slow x",
		"fault a slow -1",
		"fault a deny count",
		"fault a deny count 0",
		"fault a deny twice",
		"fault a refuse count 2",
		"patch a 1",
		"patch a 33 1",
		"patch a 1 65",
		"unpatch a",
		"unpatch a 0",
		"reboot a",
		"reboot a gently",
		"reboot a dark x",
		"delay",
		"delay x",
		"delay z 3",
		"table x",
		"notice x hello",
	};
	struct emulator e;

	(void)state;
	emulator_folder(&e);
	emulator_start(&e, two);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char *answer = emulator_control(&e, bad[i]);

		if (strncmp(answer, "{\"error\":", 9))
			fail_msg("'%s' was answered with %s", bad[i], answer);
		free(answer);
	}
	emulator_says(&e, "table", "{\"a\":[],\"b\":[]}");
	assert_int_equal(emulator_stop(&e, SIGTERM), 0);
	emulator_remove(&e);
	assert_int_equal(emulator_run("--switch", "a=b", NULL), OCS_USAGE);
	assert_int_equal(emulator_run("--switch", "a=unix:/tmp/x,0", NULL), OCS_USAGE);
	assert_int_equal(emulator_run("--delay", "soon", NULL), OCS_USAGE);
	assert_int_equal(emulator_run("--page", "1", NULL), OCS_USAGE);
	assert_int_not_equal(emulator_run("--fabric", "/nonexistent.yaml", NULL), 0);
	assert_int_equal(emulator_run("--dance", "1", NULL), OCS_USAGE);
}

/* Two clients at once: one command after the other, each with its own delay. */
static void test_serial(void **state)
{
	struct emulator e;
	int first, second;
	int64_t start, took;
	bool gone = false;
	char *log;

	(void)state;
	emulator_folder(&e);
	emulator_start(&e, two);
	emulator_says(&e, "delay a 100", EMULATOR_OK);
	first = emulator_dial(&e, "a");
	second = emulator_dial(&e, "a");
	start = ocs_now_ns();
	assert_int_equal(write(first, "ENT-PATCH::1&2,33&34:1:;", 24), 24);
	usleep(20000);
	emulator_answers(second, "ENT-PATCH::3,35:2:;RTRV-PATCH:::3:;", "M  2 COMPLD\n;");
	took = (ocs_now_ns() - start) / 1000000;
	assert_true(took >= 195);
	log = emulator_ask(second, "", 1);
	assert_non_null(strstr(log, "\"1,33\"\n\"2,34\"\n\"3,35\"\n"));
	free(log);
	/* whoever hangs up is obeyed all the same */
	assert_int_equal(write(first, "DLT-PATCH::1:4:;", 16), 16);
	close(first);
	for (int i = 0; i < 100 && !gone; i++) {
		char *table = emulator_control(&e, "table a");

		gone = !strcmp(table, "{\"a\":[[2,34],[3,35]]}");
		free(table);
		usleep(10000);
	}
	assert_true(gone);
	close(second);
	assert_int_equal(emulator_stop(&e, SIGTERM), 0);
	log = emulator_log(&e);
	assert_non_null(strstr(log, "\"event\":\"connect\""));
	assert_non_null(strstr(log, "\"event\":\"command\",\"text\":\"ENT-PATCH::3,35:2:\""));
	assert_non_null(strstr(log, "\"event\":\"make\",\"in\":3,\"out\":35,\"by\":\"command\""));
	assert_non_null(strstr(log, "\"event\":\"break\",\"in\":1,\"out\":33,\"by\":\"command\""));
	assert_non_null(strstr(log, "\"event\":\"reply\",\"text\":\"2 COMPLD\""));
	free(log);
	emulator_remove(&e);
}

/* A hand that is quicker than the mirrors wins. */
static void test_hand_meanwhile(void **state)
{
	struct emulator e;
	int fd;

	(void)state;
	emulator_folder(&e);
	emulator_start(&e, two);
	emulator_says(&e, "delay 1000", EMULATOR_OK);
	fd = emulator_dial(&e, "a");
	assert_int_equal(write(fd, "ENT-PATCH::1&2,33&34:1:;", 24), 24);
	usleep(30000);
	emulator_says(&e, "patch a 9 34", EMULATOR_OK);
	/* the notice, then the answer */
	emulator_answers(fd, "", "A  1 REPT EVT SYSTEM\n\"PATCH:9,34:CHANGED BY HAND\"\n;");
	emulator_answers(fd, "", "M  1 DENY\nSSTP\n/* Port is already patched: 34 */\n;");
	emulator_says(&e, "table a", "{\"a\":[[9,34]]}");
	close(fd);
	assert_int_equal(emulator_stop(&e, SIGTERM), 0);
	emulator_remove(&e);
}

/* With --state the patches survive even a kill; without, they do not.  The log of
 * both lives is one story without contradiction. */
static void test_state_and_check(void **state)
{
	static const char *const kept[] = { "--switch", "a=unix:%s/a,32", "--delay", "0",
					    "--state",	"%s/state",	  NULL };
	struct emulator e;
	char path[128], *output;
	int fd;

	(void)state;
	emulator_folder(&e);
	snprintf(path, sizeof(path), "%s/log", e.folder);
	emulator_start(&e, kept);
	fd = emulator_dial(&e, "a");
	emulator_answers(fd, "ENT-PATCH::1&2,33&34:4:;", "M  4 COMPLD\n;");
	assert_int_equal(emulator_stop(&e, SIGKILL), -1);
	close(fd);
	emulator_start(&e, kept);
	emulator_says(&e, "table", "{\"a\":[[1,33],[2,34]]}");
	emulator_says(&e, "unpatch a 1", EMULATOR_OK);
	assert_int_equal(emulator_stop(&e, SIGTERM), 0);
	assert_int_equal(emulator_run("--check-log", path, &output), 0);
	assert_string_equal(output, "{\"a\":[[2,34]]}\n");
	free(output);
	emulator_start(&e, two);
	emulator_says(&e, "table", "{\"a\":[],\"b\":[]}");
	assert_int_equal(emulator_stop(&e, SIGTERM), 0);
	assert_int_equal(emulator_run("--check-log", path, &output), 0);
	assert_string_equal(output, "{\"a\":[],\"b\":[]}\n");
	free(output);
	emulator_remove(&e);
}

#define START "{\"switch\":\"a\",\"event\":\"start\",\"text\":\"8x8\"}\n"
#define MAKE(in, out) "{\"switch\":\"a\",\"event\":\"make\",\"in\":" in ",\"out\":" out "}\n"
#define BREAK(in, out) "{\"switch\":\"a\",\"event\":\"break\",\"in\":" in ",\"out\":" out "}\n"

static void test_check_finds(void **state)
{
	static const struct {
		const char *log;
		int status;
		const char *says;
	} cases[] = {
		{ START MAKE("1", "9") BREAK("1", "9") MAKE("2", "9") MAKE("1", "10"), 0,
		  "{\"a\":[[1,10],[2,9]]}\n" },
		{ START MAKE("1", "9") MAKE("1", "10"), 1, "port 1 is joined to 9" },
		{ START MAKE("1", "9") MAKE("2", "9"), 1, "port 9 is joined to 1" },
		{ START BREAK("1", "9"), 1, "breaks 1>9, which was not joined" },
		{ START MAKE("1", "9") BREAK("1", "10"), 1, "breaks 1>10" },
		{ START MAKE("9", "1"), 1, "has no patch 9>1" },
		{ START MAKE("1", "17"), 1, "has no patch 1>17" },
		{ MAKE("1", "9"), 1, "before it starts" },
		{ START "nonsense\n", 1, "log:2: not an event" },
		/* killed in the middle of a line */
		{ START MAKE("1", "9") "{\"switch\":\"a\",\"ev", 0, "{\"a\":[[1,9]]}\n" },
		/* a restart is dark */
		{ START MAKE("1", "9") START MAKE("1", "10"), 0, "{\"a\":[[1,10]]}\n" },
	};
	struct ocs_error err;
	struct emulator e;
	char path[128], *output;

	(void)state;
	emulator_folder(&e);
	snprintf(path, sizeof(path), "%s/log", e.folder);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(
			ocs_file_write(path, cases[i].log, strlen(cases[i].log), 0600, &err), 0);
		assert_int_equal(emulator_run("--check-log", path, &output), cases[i].status);
		if (!strstr(output, cases[i].says))
			fail_msg("'%s' does not say '%s'", output, cases[i].says);
		free(output);
	}
	emulator_remove(&e);
	assert_int_equal(emulator_run("--check-log", "/nonexistent", NULL), 1);
}

/* What nobody should send: the emulator obeys, and its log tells. */
static void test_dangerous(void **state)
{
	static const char *const commands[] = { "DLT-PATCH:::7:;", "DLT-PATCH::ALL:7:;",
						"INIT-SYS:::7:;" };
	struct emulator e;
	char *log;
	int fd;

	(void)state;
	emulator_folder(&e);
	emulator_start(&e, two);
	fd = emulator_dial(&e, "a");
	for (int i = 0; i < 3; i++) {
		emulator_answers(fd, "ENT-PATCH::1&2,33&34:4:;", "M  4 COMPLD\n;");
		emulator_answers(fd, commands[i], "M  7 COMPLD\n;");
		emulator_says(&e, "table a", "{\"a\":[]}");
	}
	close(fd);
	assert_int_equal(emulator_stop(&e, SIGTERM), 0);
	log = emulator_log(&e);
	assert_non_null(strstr(log, "\"event\":\"deleted-all\""));
	free(log);
	emulator_remove(&e);
}

static void test_fabric(void **state)
{
	static const char *const arguments[] = { "--fabric", "%s/ocs.yaml", "--delay", "published",
						 "--seed",   "3",	    NULL };
	struct emulator e;
	struct ocs_error err = { 0 };
	char path[128], *text, *answer;
	int64_t start;
	int fd;

	(void)state;
	emulator_folder(&e);
	snprintf(path, sizeof(path), "%s/ocs.yaml", e.folder);
	text = ocs_asprintf("version: 1\n"
			    "switches:\n"
			    "  - {name: \"rail-[0-1]\", driver: tl1, dialect: polatis,"
			    " address: \"unix:%s/{name}\", credentials: %s/login,"
			    " size: 16, ports: duplex}\n"
			    "fabrics:\n"
			    "  - {name: rails, kind: rails, nodes: \"r[0-3]\", rails: 2,\n"
			    "     ports: {switch: \"rail-{interface}\", port: server+1}}\n",
			    e.folder, e.folder);
	assert_int_equal(ocs_file_write(path, text, strlen(text), 0600, &err), 0);
	free(text);
	snprintf(path, sizeof(path), "%s/login", e.folder);
	assert_int_equal(ocs_file_write(path, "user=u\npassword=p\n", 18, 0600, &err), 0);
	emulator_start(&e, arguments);
	answer = emulator_control(&e, "status");
	assert_non_null(strstr(answer, "\"rail-0\":{"));
	assert_non_null(strstr(answer, "\"rail-1\":{"));
	assert_non_null(strstr(answer, "\"size\":16,\"patches\":0,\"fault\":\"none\""));
	free(answer);
	/* the published delay: about 41 ms, never under 10 */
	fd = emulator_dial(&e, "rail-1");
	emulator_denies(fd, "RTRV-PATCH:::6:;", "6", "PICC", "Not logged in");
	emulator_answers(fd, "ACT-USER::u:1::p;", "M  1 COMPLD\n;");
	start = ocs_now_ns();
	for (int i = 0; i < 10; i++)
		emulator_answers(fd, i % 2 ? "DLT-PATCH::1:4:;" : "ENT-PATCH::1,17:4:;",
				 "M  4 COMPLD\n;");
	assert_in_range((ocs_now_ns() - start) / 1000000, 250, 5000);
	close(fd);
	assert_int_equal(emulator_stop(&e, SIGTERM), 0);
	emulator_remove(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_commands),	cmocka_unit_test(test_denials),
		cmocka_unit_test(test_login),		cmocka_unit_test(test_control_errors),
		cmocka_unit_test(test_serial),		cmocka_unit_test(test_hand_meanwhile),
		cmocka_unit_test(test_state_and_check), cmocka_unit_test(test_check_finds),
		cmocka_unit_test(test_dangerous),	cmocka_unit_test(test_fabric),
	};

	/* Writing to a switch that hung up must not end the test. */
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
