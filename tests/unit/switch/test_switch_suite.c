/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* One suite for every driver and dialect, against the emulator over TCP. */

#include <math.h>
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

#include "ocs_config.h"
#include "src/switch/driver.h"
#include "src/switch/switch.h"
#include "src/util/error.h"
#include "src/util/text.h"
#include "tests/unit/switch/emulator_peer.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define SIZE 32

/* One line a driver or dialect. */
struct speaker {
	const char *name, *driver, *dialect;
	bool size;		  /* can be asked for its size */
	bool status;		  /* tells the state of a port */
	const char *add, *remove; /* how its commands begin in the log */
};

static const struct speaker speakers[] = {
	{ "polatis", "tl1", "polatis", true, true, "ENT-PATCH", "DLT-PATCH" },
	{ "calient", "tl1", "calient", false, true, "ACT-CRS", "CANC-CRS" },
	{ "glimmerglass", "tl1", "glimmerglass", true, false, "ENT-CRS-FIBER", "DLT-CRS-FIBER" },
	{ "scpi", "scpi", NULL, true, true, ":oxc:swit:conn:add", ":oxc:swit:conn:sub" },
#ifdef HAVE_LIBSSH
	{ "netconf", "netconf", "polatis", true, true, "base:1.0\\\"><pair nc:operation=\\\"create",
	  "base:1.0\\\"><pair nc:operation=\\\"delete" },
	{ "netconf_ocp", "netconf", "ocp", true, true,
	  "base:1.0\\\"><connection nc:operation=\\\"create",
	  "base:1.0\\\"><connection nc:operation=\\\"delete" },
#endif
};

struct rig {
	const struct speaker *speaker;
	struct emulator emulator;
	char address[256], credentials[128], known_hosts[128];
	struct ocs_switch sw;
	struct ocs_switch_connection *connection;
	struct ocs_error err;
};

/* MORE (NULL-terminated, at most four): options of the emulator. */
static void begin_with(struct rig *rig, void **state, const char *const *more)
{
	const struct speaker *speaker = *state;
	bool ssh = !strcmp(speaker->driver, "netconf");
	char *description =
		ocs_asprintf("a=127.0.0.1:0,%d,%s%s%s", SIZE, speaker->driver,
			     speaker->dialect ? ":" : "", speaker->dialect ? speaker->dialect : "");
	const char *arguments[16] = {
		"--switch", description, "--delay", "0", "--login", "%s/login"
	};
	size_t n = 6;

	if (ssh) {
		arguments[n++] = "--known-hosts";
		arguments[n++] = "%s/known";
	}
	while (*more)
		arguments[n++] = *more++;
	memset(rig, 0, sizeof(*rig));
	rig->speaker = speaker;
	emulator_folder(&rig->emulator);
	snprintf(rig->credentials, sizeof(rig->credentials), "%s/login", rig->emulator.folder);
	snprintf(rig->known_hosts, sizeof(rig->known_hosts), "%s/known", rig->emulator.folder);
	assert_int_equal(ocs_file_write(rig->credentials, "user=admin\npassword=s3cr;t\n", 27, 0600,
					&rig->err),
			 0);
	emulator_start(&rig->emulator, arguments);
	strcpy(rig->address, emulator_address(&rig->emulator, "a"));
	rig->sw = (struct ocs_switch){ .name = (char *)"a",
				       .driver = (char *)speaker->driver,
				       .dialect = (char *)speaker->dialect,
				       .address = rig->address,
				       .size = SIZE,
				       .credentials = rig->credentials,
				       .known_hosts = ssh ? rig->known_hosts : NULL };
	free(description);
}

static void begin(struct rig *rig, void **state)
{
	static const char *const nothing[] = { NULL };

	begin_with(rig, state, nothing);
}

static void open_within(struct rig *rig, int timeout_ms)
{
	ocs_switch_close(rig->connection);
	/* what is short is meant for commands */
	rig->connection = ocs_switch_open(&rig->sw, 2000, NULL, NULL, &rig->err);
	if (!rig->connection)
		fail_msg("%s", rig->err.text);
	rig->connection->timeout_ms = timeout_ms;
}

static void end(struct rig *rig)
{
	char path[128], *output;

	ocs_switch_close(rig->connection);
	assert_int_equal(emulator_stop(&rig->emulator, SIGTERM), 0);
	snprintf(path, sizeof(path), "%s/log", rig->emulator.folder);
	assert_int_equal(emulator_run("--check-log", path, &output), 0);
	free(output);
	output = emulator_log(&rig->emulator);
	assert_null(strstr(output, "deleted-all"));
	assert_null(strstr(output, "s3cr"));
	free(output);
	emulator_remove(&rig->emulator);
}

static void control(struct rig *rig, const char *command)
{
	emulator_says(&rig->emulator, command, EMULATOR_OK);
}

static void table_is(struct rig *rig, const char *wanted)
{
	char *text = ocs_asprintf("{\"a\":%s}", wanted);

	emulator_says(&rig->emulator, "table a", text);
	free(text);
}

static int apply(struct rig *rig, const struct ocs_patch *remove, size_t nremove,
		 const struct ocs_patch *add, size_t nadd, struct ocs_table *after)
{
	return ocs_switch_apply(rig->connection, remove, nremove, add, nadd, after, &rig->err);
}

static void says(const struct rig *rig, const char *part)
{
	if (!strstr(rig->err.text, part))
		fail_msg("'%s' does not say '%s'", rig->err.text, part);
}

static const struct ocs_patch straight[] = { { 1, 33 }, { 2, 34 }, { 3, 35 }, { 4, 36 } };
static const struct ocs_patch shifted[] = { { 1, 34 }, { 2, 35 }, { 3, 36 }, { 4, 33 } };
#define STRAIGHT "[[1,33],[2,34],[3,35],[4,36]]"
#define SHIFTED "[[1,34],[2,35],[3,36],[4,33]]"

static void test_connect(void **state)
{
	struct rig rig;
	struct ocs_table table;

	begin(&rig, state);
	open_within(&rig, 2000);
	assert_true(ocs_switch_descriptor(rig.connection) >= 0);
	assert_int_equal(ocs_switch_read(rig.connection, &table, &rig.err), OCS_SWITCH_OK);
	for (int in = 1; in <= SIZE; in++)
		assert_int_equal(table.out[in], 0);
	ocs_table_free(&table);
	control(&rig, "patch a 7 64");
	control(&rig, "patch a 32 40");
	assert_int_equal(ocs_switch_read(rig.connection, &table, &rig.err), OCS_SWITCH_OK);
	for (int in = 1; in <= SIZE; in++)
		assert_int_equal(table.out[in], in == 7 ? 64 : in == 32 ? 40 : 0);
	ocs_table_free(&table);
	if (rig.speaker->size) {
		rig.sw.size = 16;
		assert_null(ocs_switch_open(&rig.sw, 2000, NULL, NULL, &rig.err));
		says(&rig, "switch a: is 32x32, but its description says 16x16");
	}
	rig.sw.address = (char *)"127.0.0.1:1";
	assert_null(ocs_switch_open(&rig.sw, 2000, NULL, NULL, &rig.err));
	assert_int_equal(rig.err.code, OCS_UNREACHABLE);
	end(&rig);
}

static void test_apply(void **state)
{
	struct rig rig;
	struct ocs_table after;
	char *log, *broken, *made;

	begin(&rig, state);
	control(&rig, "patch a 9 60");
	open_within(&rig, 2000);
	assert_int_equal(apply(&rig, NULL, 0, straight, 4, &after), OCS_SWITCH_OK);
	assert_int_equal(after.out[4], 36);
	assert_int_equal(after.out[9], 60);
	ocs_table_free(&after);
	table_is(&rig, "[[1,33],[2,34],[3,35],[4,36],[9,60]]");
	/* again: nothing is sent but the read */
	log = emulator_log(&rig.emulator);
	made = strstr(log, rig.speaker->add);
	assert_non_null(made);
	free(log);
	assert_int_equal(apply(&rig, shifted, 4, straight, 4, NULL), OCS_SWITCH_OK);
	/* delete before add, and nobody else's */
	assert_int_equal(apply(&rig, straight, 4, shifted, 4, NULL), OCS_SWITCH_OK);
	table_is(&rig, "[[1,34],[2,35],[3,36],[4,33],[9,60]]");
	assert_int_equal(apply(&rig, shifted, 4, NULL, 0, NULL), OCS_SWITCH_OK);
	table_is(&rig, "[[9,60]]");
	log = emulator_log(&rig.emulator);
	broken = strstr(log, "\"event\":\"break\",\"in\":4,\"out\":36");
	made = strstr(log, "\"event\":\"make\",\"in\":1,\"out\":34");
	assert_true(broken && made && broken < made);
	assert_null(strstr(log, "\"break\",\"in\":9"));
	free(log);
	end(&rig);
}

/* Counts lines of the log that hold PART. */
static int logged(struct rig *rig, const char *part)
{
	char *log = emulator_log(&rig->emulator);
	int count = 0;

	for (const char *at = log; (at = strstr(at, part)); at++)
		count++;
	free(log);
	return count;
}

static void test_conflict(void **state)
{
	const struct ocs_patch thief = { 7, 60 }, wild = { 7, 65 }, none = { 0, 33 };
	struct rig rig;
	struct ocs_table after;

	begin(&rig, state);
	control(&rig, "patch a 9 60");
	open_within(&rig, 2000);
	assert_int_equal(apply(&rig, NULL, 0, &thief, 1, &after), OCS_SWITCH_REJECTED);
	says(&rig, "switch a: patch 9>60 is in the way of 7>60");
	assert_int_equal(after.out[9], 60);
	ocs_table_free(&after);
	assert_int_equal(apply(&rig, NULL, 0, &wild, 1, NULL), OCS_SWITCH_REJECTED);
	assert_int_equal(apply(&rig, &none, 1, NULL, 0, NULL), OCS_SWITCH_REJECTED);
	/* a patch that is not there: nothing to do */
	assert_int_equal(apply(&rig, straight, 4, NULL, 0, NULL), OCS_SWITCH_OK);
	assert_int_equal(logged(&rig, rig.speaker->add), 0);
	assert_int_equal(logged(&rig, rig.speaker->remove), 0);
	table_is(&rig, "[[9,60]]");
	end(&rig);
}

/* One bad port: the other patches of the batch are made, and cut. */
static void test_deny(void **state)
{
	struct rig rig;
	struct ocs_table after;

	begin(&rig, state);
	open_within(&rig, 2000);
	control(&rig, "port a 34 refuse");
	assert_int_equal(apply(&rig, NULL, 0, straight, 4, &after), OCS_SWITCH_DENIED);
	says(&rig, "switch a: refused ");
	assert_int_equal(after.out[1], 33);
	assert_int_equal(after.out[2], 0);
	assert_int_equal(after.out[4], 36);
	ocs_table_free(&after);
	/* alone it is still the port, not the switch */
	assert_int_equal(apply(&rig, NULL, 0, straight, 4, NULL), OCS_SWITCH_DENIED);
	table_is(&rig, "[[1,33],[3,35],[4,36]]");
	control(&rig, "port a 34 good");
	assert_int_equal(apply(&rig, NULL, 0, straight, 4, NULL), OCS_SWITCH_OK);
	/* a delete that is refused keeps its ports; what needs them is not tried */
	control(&rig, "port a 2 refuse");
	assert_int_equal(apply(&rig, straight, 4, shifted, 4, &after), OCS_SWITCH_DENIED);
	assert_int_equal(after.out[2], 34);
	ocs_table_free(&after);
	table_is(&rig, "[[2,34],[3,36],[4,33]]");
	control(&rig, "port a 2 good");
	assert_int_equal(apply(&rig, straight, 4, shifted, 4, NULL), OCS_SWITCH_OK);
	table_is(&rig, SHIFTED);
	/* the switch as a whole */
	control(&rig, "fault a deny");
	assert_int_equal(apply(&rig, shifted, 4, straight, 4, NULL), OCS_SWITCH_REFUSED);
	table_is(&rig, SHIFTED);
	control(&rig, "fault a none");
	assert_int_equal(apply(&rig, shifted, 4, straight, 4, NULL), OCS_SWITCH_OK);
	end(&rig);
}

/* Many patches, some of them bad: as few commands as halving takes. */
static void test_deny_few_patches(void **state)
{
	static const int bad[] = { 3, 17, 30 };
	struct ocs_patch all[SIZE];
	struct ocs_table after;
	struct rig rig;

	begin(&rig, state);
	open_within(&rig, 5000);
	for (int i = 0; i < SIZE; i++)
		all[i] = (struct ocs_patch){ i + 1, i + 1 + SIZE };
	for (size_t i = 0; i < COUNT(bad); i++) {
		char *command = ocs_asprintf("port a %d refuse", bad[i]);

		control(&rig, command);
		free(command);
	}
	assert_int_equal(apply(&rig, NULL, 0, all, SIZE, &after), OCS_SWITCH_DENIED);
	for (int in = 1; in <= SIZE; in++) {
		bool refused = in == 3 || in == 17 || in == 30;

		assert_int_equal(after.out[in], refused ? 0 : in + SIZE);
	}
	ocs_table_free(&after);
	assert_in_range(logged(&rig, rig.speaker->add), 1, 64);
	end(&rig);
}

/* Each fault while a batch is under way; then a new connection puts it right. */
static void test_faults(void **state)
{
	static const struct {
		const char *fault;
		int result;
	} cases[] = {
		{ "fault a silent", OCS_SWITCH_UNKNOWN },
		{ "fault a drop", OCS_SWITCH_UNKNOWN },
		{ "fault a lost", OCS_SWITCH_UNKNOWN },
		{ "fault a slow 900", OCS_SWITCH_UNKNOWN },
		{ "fault a slow 5", OCS_SWITCH_OK },
		{ "fault a refuse", OCS_SWITCH_UNKNOWN },
		{ "reboot a restore", OCS_SWITCH_UNKNOWN },
		{ "reboot a dark", OCS_SWITCH_UNKNOWN },
	};
	struct rig rig;

	begin(&rig, state);
	for (size_t i = 0; i < COUNT(cases); i++) {
		open_within(&rig, 2000);
		assert_int_equal(apply(&rig, shifted, 4, straight, 4, NULL), OCS_SWITCH_OK);
		open_within(&rig, 600);
		control(&rig, cases[i].fault);
		if (apply(&rig, straight, 4, shifted, 4, NULL) != cases[i].result)
			fail_msg("%s: %s", cases[i].fault, rig.err.text);
		if (cases[i].result == OCS_SWITCH_UNKNOWN) {
			struct ocs_table table;

			says(&rig, "switch a: ");
			/* a lost connection stays lost */
			assert_int_equal(ocs_switch_descriptor(rig.connection), -1);
			assert_int_equal(ocs_switch_read(rig.connection, &table, &rig.err),
					 OCS_SWITCH_UNKNOWN);
			says(&rig, "lost earlier");
		}
		control(&rig, "fault a none");
		open_within(&rig, 2000);
		assert_int_equal(apply(&rig, straight, 4, shifted, 4, NULL), OCS_SWITCH_OK);
		table_is(&rig, SHIFTED);
	}
	end(&rig);
}

/* Half done, and said twice: never taken for done. */
static void test_partial_and_duplicate(void **state)
{
	static const char *const faults[] = {
		"fault a partial count 1",   "fault a duplicate",    "fault a duplicate count 1",
		"fault a duplicate count 3", "fault a deny count 1", "fault a lost count 1",
	};
	struct rig rig;

	begin(&rig, state);
	for (size_t i = 0; i < COUNT(faults); i++) {
		const struct ocs_patch *from = i % 2 ? shifted : straight;
		const struct ocs_patch *to = i % 2 ? straight : shifted;
		int rc, tries = 0;

		open_within(&rig, 600);
		control(&rig, faults[i]);
		do {
			if (ocs_switch_descriptor(rig.connection) < 0 || tries)
				open_within(&rig, 600);
			rc = apply(&rig, from, 4, to, 4, NULL);
			if (rc == OCS_SWITCH_OK)
				table_is(&rig, i % 2 ? STRAIGHT : SHIFTED);
			if (tries++ == 3)
				control(&rig, "fault a none");
			assert_true(tries < 6);
		} while (rc != OCS_SWITCH_OK);
		control(&rig, "fault a none");
	}
	end(&rig);
}

/* The peer is there, but nothing moves any more: the deadline ends it. */
static void test_half_open(void **state)
{
	struct ocs_table table;
	struct rig rig;

	begin(&rig, state);
	open_within(&rig, 500);
	kill(rig.emulator.pid, SIGSTOP);
	assert_int_equal(ocs_switch_read(rig.connection, &table, &rig.err), OCS_SWITCH_UNKNOWN);
	says(&rig, "within 500 ms");
	assert_null(ocs_switch_open(&rig.sw, 300, NULL, NULL, &rig.err));
	kill(rig.emulator.pid, SIGCONT);
	open_within(&rig, 2000);
	assert_int_equal(apply(&rig, NULL, 0, straight, 4, NULL), OCS_SWITCH_OK);
	end(&rig);
}

/* A reboot in between is noticed, and what it left is read. */
static void test_reboot(void **state)
{
	struct rig rig;

	begin(&rig, state);
	for (int dark = 0; dark < 2; dark++) {
		struct ocs_table table;
		int rc = OCS_SWITCH_OK;

		open_within(&rig, 2000);
		assert_int_equal(apply(&rig, shifted, 4, straight, 4, NULL), OCS_SWITCH_OK);
		control(&rig, dark ? "reboot a dark 200" : "reboot a restore 200");
		for (int i = 0; i < 100 && rc == OCS_SWITCH_OK; i++)
			rc = ocs_switch_listen(rig.connection, 20, &rig.err);
		assert_int_equal(rc, OCS_SWITCH_UNKNOWN);
		ocs_switch_close(rig.connection);
		rig.connection = NULL;
		for (int i = 0; i < 100 && !rig.connection; i++) {
			usleep(20000);
			rig.connection = ocs_switch_open(&rig.sw, 2000, NULL, NULL, &rig.err);
		}
		assert_non_null(rig.connection);
		assert_int_equal(ocs_switch_read(rig.connection, &table, &rig.err), OCS_SWITCH_OK);
		assert_int_equal(table.out[1], dark ? 0 : 33);
		ocs_table_free(&table);
		assert_int_equal(apply(&rig, NULL, 0, straight, 4, NULL), OCS_SWITCH_OK);
		table_is(&rig, STRAIGHT);
	}
	end(&rig);
}

static void test_health(void **state)
{
	struct ocs_health health;
	struct rig rig;
	double loss;

	begin(&rig, state);
	open_within(&rig, 2000);
	assert_int_equal(apply(&rig, NULL, 0, straight, 4, NULL), OCS_SWITCH_OK);
	assert_int_equal(ocs_switch_health(rig.connection, &health, &rig.err), OCS_SWITCH_OK);
	assert_int_equal(health.ports, 2 * SIZE);
	loss = health.port[1].dbm - health.port[33].dbm;
	assert_true(loss > 0.5 && loss < 3);
	if (rig.speaker->status)
		assert_int_equal(health.port[33].status, OCS_PORT_TUNED);
	/* no patch, no light */
	assert_false(health.port[50].dbm > -59);
	ocs_health_free(&health);
	control(&rig, "port a 33 lossy 5");
	control(&rig, "port a 2 fail");
	assert_int_equal(ocs_switch_health(rig.connection, &health, &rig.err), OCS_SWITCH_OK);
	assert_true(health.port[1].dbm - health.port[33].dbm > loss + 4.9);
	assert_false(health.port[34].dbm > -59);
	if (rig.speaker->status && strcmp(rig.speaker->name, "polatis") != 0)
		assert_int_equal(health.port[2].status, OCS_PORT_FAILED);
	assert_true(health.port[3].dbm > -10);
	ocs_health_free(&health);
	end(&rig);
}

/* Messages that nobody asked for, every few milliseconds and between the pages of
 * an answer, and no name in front of it. */
static void test_chatter(void **state)
{
	static const char *const chatty[] = { "--notices", "3", "--page", "1", "--nil-sid", NULL };
	struct rig rig;

	begin_with(&rig, state, chatty);
	open_within(&rig, 5000);
	control(&rig, "patch a 9 60");
	for (int i = 0; i < 20; i++) {
		const struct ocs_patch *from = i % 2 ? shifted : straight;
		const struct ocs_patch *to = i % 2 ? straight : shifted;

		control(&rig, "notice a FAN 1; > stopped");
		if (apply(&rig, from, 4, to, 4, NULL) != OCS_SWITCH_OK)
			fail_msg("%s", rig.err.text);
		assert_int_equal(ocs_switch_listen(rig.connection, 5, &rig.err), OCS_SWITCH_OK);
	}
	table_is(&rig, "[[1,33],[2,34],[3,35],[4,36],[9,60]]");
	end(&rig);
}

/* A caller that reads back and tries again gets its patches, whatever happens, and
 * those of others never move. */
static void test_storm(void **state)
{
	static const char *const faults[] = {
		"fault a silent count 1",
		"fault a drop count 2",
		"fault a deny count 1",
		"fault a partial count 1",
		"fault a lost count 1",
		"fault a slow 400 count 2",
		"fault a duplicate count 3",
		"reboot a restore",
		"fault a none",
		"fault a none",
	};
	unsigned int seed = 11;
	struct rig rig;

	begin(&rig, state);
	control(&rig, "patch a 9 60");
	for (int round = 0; round < 30; round++) {
		const struct ocs_patch *from = round % 2 ? shifted : straight;
		const struct ocs_patch *to = round % 2 ? straight : shifted;
		int rc = OCS_SWITCH_UNKNOWN, tries = 0;

		seed = seed * 1103515245 + 12345;
		control(&rig, faults[(seed >> 16) % COUNT(faults)]);
		while (rc != OCS_SWITCH_OK) {
			assert_true(tries++ < 20);
			ocs_switch_close(rig.connection);
			rig.connection = ocs_switch_open(&rig.sw, 250, NULL, NULL, &rig.err);
			if (rig.connection)
				rc = apply(&rig, from, 4, to, 4, NULL);
			assert_int_not_equal(rc, OCS_SWITCH_REJECTED);
		}
		control(&rig, "fault a none");
		table_is(&rig, round % 2 ? "[[1,33],[2,34],[3,35],[4,36],[9,60]]" :
					   "[[1,34],[2,35],[3,36],[4,33],[9,60]]");
	}
	assert_int_equal(logged(&rig, "\"break\",\"in\":9"), 0);
	end(&rig);
}

int main(void)
{
	static const struct {
		const char *name;
		CMUnitTestFunction run;
	} tests[] = {
		{ "connect", test_connect },
		{ "apply", test_apply },
		{ "conflict", test_conflict },
		{ "deny", test_deny },
		{ "deny_few_patches", test_deny_few_patches },
		{ "faults", test_faults },
		{ "partial_and_duplicate", test_partial_and_duplicate },
		{ "half_open", test_half_open },
		{ "reboot", test_reboot },
		{ "health", test_health },
		{ "chatter", test_chatter },
		{ "storm", test_storm },
	};
	struct CMUnitTest all[COUNT(tests) * COUNT(speakers)];
	char names[COUNT(all)][64];
	size_t n = 0;

	signal(SIGPIPE, SIG_IGN);
	for (size_t s = 0; s < COUNT(speakers); s++)
		for (size_t t = 0; t < COUNT(tests); t++, n++) {
			snprintf(names[n], sizeof(names[n]), "%s_%s", speakers[s].name,
				 tests[t].name);
			all[n] = (struct CMUnitTest){ .name = names[n],
						      .test_func = tests[t].run,
						      .initial_state = (void *)&speakers[s] };
		}
	return cmocka_run_group_tests(all, NULL, NULL);
}
