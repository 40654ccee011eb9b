/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Commands and answers as bytes; no sockets. */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "src/config/config.h"
#include "src/switch/driver.h"
#include "src/switch/tl1/tl1.h"
#include "src/util/error.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct ocs_tl1_dialect *polatis(void)
{
	const struct ocs_tl1_dialect *dialect = ocs_tl1_dialect_find("polatis");

	assert_non_null(dialect);
	assert_ptr_equal(dialect, ocs_tl1_dialect_find(NULL));
	assert_ptr_equal(dialect, ocs_tl1_dialect_find("Polatis"));
	assert_null(ocs_tl1_dialect_find("nobody"));
	return dialect;
}

static void expect_text(char *text, const char *wanted)
{
	assert_string_equal(text, wanted);
	free(text);
}

static void test_commands(void **state)
{
	const struct ocs_tl1_dialect *dialect = polatis();
	const struct ocs_credentials admin = { .user = "admin", .password = "root" };
	const struct ocs_credentials odd = { .user = "a b", .password = "x;y:z" };
	const struct ocs_patch patches[] = { { 1, 33 }, { 2, 34 }, { 3, 35 } };
	size_t used;

	(void)state;
	expect_text(ocs_tl1_format(dialect->login, 1, 32, &admin), "ACT-USER::admin:1::root;");
	expect_text(ocs_tl1_format(dialect->login, 1, 32, &odd), "ACT-USER::\"a b\":1::\"x;y:z\";");
	expect_text(ocs_tl1_format(dialect->logout, 17, 32, &admin), "CANC-USER::admin:17:;");
	expect_text(ocs_tl1_format(dialect->size, 2, 32, NULL),
		    "RTRV-EQPT::SYSTEM:2:::PARAMETER=SIZE;");
	expect_text(ocs_tl1_format(dialect->read, 6, 32, NULL), "RTRV-PATCH:::6:;");
	expect_text(ocs_tl1_format_batch(dialect, dialect->add[0], 4, 32, patches, 3, &used, NULL),
		    "ENT-PATCH::1&2&3,33&34&35:4:;");
	assert_int_equal(used, 3);
	expect_text(
		ocs_tl1_format_batch(dialect, dialect->remove[0], 7, 32, patches, 2, &used, NULL),
		"DLT-PATCH::1&2:7:;");
	assert_int_equal(used, 2);
	expect_text(ocs_tl1_format_batch(dialect, dialect->add[0], 1, 32, patches, 1, &used, NULL),
		    "ENT-PATCH::1,33:1:;");
}

/* Glimmerglass and Calient as the public material shows them: data only. */
static void test_other_dialects(void **state)
{
	const struct ocs_tl1_dialect *glimmerglass = ocs_tl1_dialect_find("glimmerglass");
	const struct ocs_tl1_dialect *calient = ocs_tl1_dialect_find("Calient");
	const struct ocs_patch patches[] = { { 1, 47 }, { 18, 48 } };
	struct ocs_table table;
	size_t used;

	(void)state;
	expect_text(ocs_tl1_format_batch(glimmerglass, glimmerglass->add[0], 1, 32, patches, 1,
					 &used, NULL),
		    "ENT-CRS-FIBER::10001,20015:1:;");
	expect_text(ocs_tl1_format_batch(glimmerglass, glimmerglass->remove[0], 1, 32, patches, 2,
					 &used, NULL),
		    "DLT-CRS-FIBER::10001&10018,20015&20016:1:;");
	expect_text(ocs_tl1_format_batch(calient, calient->add[0], 9, 32, patches, 2, &used, NULL),
		    "ENT-CRS::1.1.1,1.2.7:9::OCS,1WAY;");
	assert_int_equal(used, 1);
	expect_text(
		ocs_tl1_format_batch(calient, calient->add[1], 9, 32, patches + 1, 1, &used, NULL),
		"ACT-CRS::1.3.2,1.2.8:9::1.3.2>1.2.8,OCS;");
	expect_text(
		ocs_tl1_format_batch(calient, calient->remove[1], 9, 32, patches, 2, &used, NULL),
		"DLT-CRS::1.1.1,1.2.7:9::,OCS,1.1.1>1.2.7;");
	ocs_table_init(&table, 32);
	assert_int_equal(ocs_tl1_parse_table(
				 glimmerglass,
				 "GGN:IPORTID=10001,IPORTNAME=,OPORTID=20015,OPORTNAME=,CONNID=1\n"
				 "GGN:IPORTID=10002,IPORTNAME=,OPORTID=0,OPORTNAME=,CONNID=0\n"
				 "GGN:IPORTID=10003,IPORTNAME=,OPORTID=20016,OPORTNAME=,CONNID=2",
				 &table, NULL),
			 0);
	assert_int_equal(table.out[1], 47);
	assert_int_equal(table.out[2], 0);
	assert_int_equal(table.out[3], 48);
	ocs_table_free(&table);
	/* one way, and both ways */
	ocs_table_init(&table, 32);
	assert_int_equal(
		ocs_tl1_parse_table(calient,
				    "1.1.1>1.2.7:SRCPORT=1.1.1,DSTPORT=1.2.7,CONNTYPE=1WAY,OC=OK\n"
				    "1.1.2-1.1.3:SRCPORT=1.1.2,DSTPORT=1.1.3,CONNTYPE=2WAY,OC=OK",
				    &table, NULL),
		0);
	assert_int_equal(table.out[1], 47);
	assert_int_equal(table.out[2], 35);
	assert_int_equal(table.out[3], 34);
	ocs_table_free(&table);
	for (int i = 0; i < 4; i++) {
		static const char *const bad[] = { "1.1.1>1.9.1", "1.1>1.2", "1.1.1",
						   "1.5.1>1.1.1" };

		ocs_table_init(&table, 32);
		assert_int_equal(ocs_tl1_parse_table(calient, bad[i], &table, NULL), -1);
		ocs_table_free(&table);
	}
}

/* ocs.yaml knows the same dialects. */
static void test_names(void **state)
{
	const struct ocs_tl1_dialect *dialect;
	struct ocs_error err = { 0 };
	int count = 0;

	(void)state;
	for (; (dialect = ocs_tl1_dialect((size_t)count)); count++) {
		char *text = ocs_asprintf(
			"version: 1\n"
			"switches:\n"
			"  - {name: s, driver: tl1, dialect: %s, address: 'a:1', credentials: /c, size: 4}\n"
			"fabrics:\n"
			"  - {name: r, kind: rails, nodes: n, rails: 1, ports: {switch: s, port: 1}}\n",
			dialect->name);
		struct ocs_fabric *fabric =
			ocs_config_take_fabric(ocs_config_parse(text, strlen(text), "f", &err));

		if (!fabric)
			fail_msg("%s", err.text);
		assert_string_equal(fabric->switches[0].dialect, dialect->name);
		ocs_fabric_destroy(fabric);
		free(text);
	}
	assert_int_equal(count, 3);
}

static void expect_health(const char *name, const char *status, const char *power, int port,
			  enum ocs_port_status state, double dbm)
{
	const struct ocs_tl1_dialect *dialect = ocs_tl1_dialect_find(name);
	struct ocs_health health;

	ocs_health_init(&health, 32);
	assert_int_equal(health.ports, 64);
	assert_int_equal(ocs_tl1_parse_status(dialect, status, &health, NULL), 0);
	assert_int_equal(ocs_tl1_parse_power(dialect, power, &health, NULL), 0);
	assert_int_equal(health.port[port].status, state);
	if (isnan(dbm))
		assert_true(isnan(health.port[port].dbm));
	else
		assert_true(health.port[port].dbm == dbm);
	ocs_health_free(&health);
}

static void test_health(void **state)
{
	static const char crs[] = "1.1.1>1.2.7:GRPNAME=OCS,OS=RDY,OC=OK\n"
				  "1.1.2-1.1.3:GRPNAME=OCS,OS=RDY,OC=FAIL\n";
	static const char sum[] = "1.1.1:ALIAS=a,INPWR=-2.50,OUTPWR=NONE,X=1\n"
				  "1.1.2:ALIAS=b,INPWR=NONE,OUTPWR=-4.25,X=1\n";
	static const char fiber[] =
		"GGN:IPORTID=10001,IPORTNAME=,OPORTID=20002,INPWR=-3.125,"
		"OUTPWR=-4.5,PWRLOSS=1.375\n"
		"GGN:IPORTID=10002,IPORTNAME=,OPORTID=0,INPWR=-49.162,OUTPWR=0\n";
	struct ocs_health health;

	(void)state;
	expect_health("polatis", "1:OPEN\n40:CLOSED\n3:SQUINTING", "1:-2.31\n40:-60.00", 1,
		      OCS_PORT_TUNED, -2.31);
	expect_health("polatis", "1:OPEN\n40:CLOSED\n3:SQUINTING", "1:-2.31\n40:-60.00", 40,
		      OCS_PORT_BLOCKED, -60);
	expect_health("polatis", "3:SQUINTING", "3:NONE", 3, OCS_PORT_UNKNOWN, NAN);
	expect_health("calient", crs, sum, 1, OCS_PORT_TUNED, -2.5);
	expect_health("calient", crs, sum, 33, OCS_PORT_UNKNOWN, NAN);
	expect_health("calient", crs, sum, 34, OCS_PORT_FAILED, -4.25);
	expect_health("calient", crs, sum, 47, OCS_PORT_TUNED, NAN);
	expect_health("glimmerglass", "", fiber, 1, OCS_PORT_UNKNOWN, -3.125);
	expect_health("glimmerglass", "", fiber, 34, OCS_PORT_UNKNOWN, -4.5);
	expect_health("glimmerglass", "", fiber, 2, OCS_PORT_UNKNOWN, -49.162);
	ocs_health_init(&health, 32);
	assert_int_equal(ocs_tl1_parse_power(polatis(), "65:-2.31", &health, NULL), -1);
	ocs_health_free(&health);
}

/* Long batches are split at the line limit, and every patch goes out once. */
static void test_split(void **state)
{
	const struct ocs_tl1_dialect *dialect = polatis();
	struct ocs_patch patches[1024];
	const char *templates[] = { dialect->add[0], dialect->remove[0] };
	struct ocs_error err;

	(void)state;
	for (int i = 0; i < 1024; i++)
		patches[i] = (struct ocs_patch){ 1024 - i, 1025 + i };
	for (size_t t = 0; t < COUNT(templates); t++) {
		size_t done = 0, commands = 0, bytes = 0;

		while (done < 1024) {
			size_t used;
			char *command =
				ocs_tl1_format_batch(dialect, templates[t], 999999, 1024,
						     patches + done, 1024 - done, &used, &err);

			assert_non_null(command);
			assert_true(strlen(command) <= dialect->line);
			bytes += strlen(command);
			done += used;
			commands++;
			free(command);
		}
		assert_int_equal(done, 1024);
		/* no more commands than the bytes need */
		assert_int_equal(commands, bytes / dialect->line + 1);
	}
}

static void test_never_dangerous(void **state)
{
	const struct ocs_tl1_dialect *dialect = polatis();
	static const char *const bad[] = {
		"DLT-PATCH:::7:;",
		"DLT-PATCH::ALL:7:;",
		"dlt-patch::all:7:;",
		"DLT-PATCH:;",
		"DLT-PATCH;",
		"DLT-PATCH",
		" DLT-PATCH::ALL:1:;",
		"\r\nDLT-PATCH:::1:;",
		"DLT-PATCH::&:7:;",
		"DLT-PATCH::1&:7:;",
		"DLT-PATCH::&1:7:;",
		"DLT-PATCH::1&ALL:7:;",
		"DLT-PATCH::1 2:7:;",
		"INIT-SYS:::1:;",
		"init-sys::ALL:1;",
		"INIT-SYS;",
		"RTRV-PATCH:::6:;DLT-PATCH::ALL:7:;",
		"RTRV-PATCH:::6:;\n",
		"RTRV-PATCH:::6:",
		"DLT-CRS:::1:;",
		"CANC-CRS::ALL:1:;",
		"",
	};
	static const char *const good[] = {
		"DLT-PATCH::1:7:;", "DLT-PATCH::1&2&32:7:;",  "ENT-PATCH::1,33:1:;",
		"RTRV-PATCH:::6:;", "RTRV-ALM-ALL::ALL:13:;", "ACT-USER::a:1::\"b;c\";",
		"DLT-CRS::1>47:9;",
	};
	struct ocs_error err;
	size_t used;
	unsigned int seed = 7;

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++)
		if (!ocs_tl1_dangerous(bad[i]))
			fail_msg("not seen as dangerous: %s", bad[i]);
	for (size_t i = 0; i < COUNT(good); i++)
		if (ocs_tl1_dangerous(good[i]))
			fail_msg("seen as dangerous: %s", good[i]);
	assert_null(ocs_tl1_format_batch(dialect, dialect->remove[0], 1, 32, NULL, 0, &used, &err));
	assert_int_equal(err.code, OCS_USAGE);
	for (int i = 0; i < 20000; i++) {
		struct ocs_patch patches[4];
		bool exist = true;
		char *command;

		for (int j = 0; j < 4; j++) {
			seed = seed * 1103515245 + 12345;
			patches[j].in = (int)(seed >> 16) % 40 - (i % 2 ? 4 : -1);
			seed = seed * 1103515245 + 12345;
			patches[j].out = (int)(seed >> 16) % 40 + 30;
			exist &= patches[j].in >= 1 && patches[j].in <= 32 &&
				 patches[j].out >= 33 && patches[j].out <= 64;
		}
		command = ocs_tl1_format_batch(dialect, dialect->remove[0], 1, 32, patches, 4,
					       &used, &err);
		assert_int_equal(command != NULL, exist);
		assert_true(!command || !ocs_tl1_dangerous(command));
		free(command);
	}
}

/* Feeds TEXT and collects what comes out, in order, as one string. */
static char *parse(const char *text, size_t length)
{
	struct ocs_tl1_parser parser = { 0 };
	struct ocs_text seen = { 0 };

	for (size_t i = 0; i < length; i++) {
		struct ocs_tl1_message m;
		int rc = ocs_tl1_parser_byte(&parser, text[i], &m);

		if (rc < 0)
			ocs_text_add(&seen, "[endless]");
		if (rc <= 0)
			continue;
		if (m.autonomous)
			ocs_text_add(&seen, "[auto %s]", m.body.data);
		else
			ocs_text_add(&seen, "[%s %s|%s|%s|%s]", m.ctag, m.code, m.error,
				     m.body.length ? m.body.data : "",
				     m.comment.length ? m.comment.data : "");
		ocs_tl1_message_free(&m);
	}
	ocs_tl1_parser_free(&parser);
	return ocs_text_take(&seen);
}

static void test_answers(void **state)
{
	static const struct {
		const char *bytes, *seen;
	} cases[] = {
		{ "\r\n   SID 26-11-21 10:00:00\r\nM  4 DENY\r\n   IDNV\r\n"
		  "   /* Invalid OXC port: 1000 */\r\n;",
		  "[4 DENY|IDNV||Invalid OXC port: 1000]" },
		{ "\r\n   ( nil ) 26-11-21 10:00:00\r\nM  6 COMPLD\r\n   \"1,33\"\r\n   \"2,34\"\r\n;",
		  "[6 COMPLD||1,33\n2,34|]" },
		/* echo, acknowledgement and prompts around it; plain newlines */
		{ "RTRV-PATCH:::6:;\r\nIP 6\r\n<\r\n   SID 26-11-21 10:00:00\nM  6 COMPLD\n   \"1,33\"\n;\n< ",
		  "[6 COMPLD||1,33|]" },
		/* a banner; no SID line */
		{ "Welcome > to; this \"switch\r\nM  1 COMPLD\r\n;", "[1 COMPLD|||]" },
		/* continuation pages, a message between them */
		{ "\r\n   S 26-11-21 10:00:00\r\nM  6 RTRV\r\n   \"1,33\"\r\n>"
		  "\r\n   S 26-11-21 10:00:00\r\nA  3 REPT EVT PATCH\r\n   \"x\"\r\n;"
		  "\r\n   S 26-11-21 10:00:00\r\nM  6 COMPLD\r\n   \"2,34\"\r\n;",
		  "[auto A  3 REPT EVT PATCH \"x\"][6 COMPLD||1,33\n2,34|]" },
		/* a page without a header of its own */
		{ "M  6 COMPLD\r\n   \"1,33\"\r\n>\r\n   \"2,34\"\r\n;",
		  "[6 COMPLD||1,33\n2,34|]" },
		/* autonomous messages before, and within an answer, of every severity */
		{ "\r\n   S 26-11-21 10:00:00\r\n*C 12 REPT ALM EQPT\r\n   \"SYSTEM:CR\"\r\n;"
		  "\r\n   S 26-11-21 10:00:00\r\nM  8 COMPLD\r\n   \"1,33\"\r\n"
		  "\r\n   S 26-11-21 10:00:00\r\n** 13 REPT ALM EQPT\r\n   \"MJ\"\r\n;"
		  "   \"2,34\"\r\n"
		  "\r\n   S 26-11-21 10:00:00\r\n*  14 REPT ALM EQPT\r\n   \"MN\"\r\n;\r\n;",
		  "[auto *C 12 REPT ALM EQPT \"SYSTEM:CR\"][auto ** 13 REPT ALM EQPT \"MJ\"]"
		  "[auto *  14 REPT ALM EQPT \"MN\"][8 COMPLD||1,33\n2,34|]" },
		/* terminators within quotes and comments mean nothing */
		{ "M  9 PRTL\r\n   SSTP\r\n   /* a ; \r\n ; > b */\r\n   \"x;y>\\\"z\"\r\n;",
		  "[9 PRTL|SSTP|x;y>\"z|a ;   ; > b]" },
		/* all on one line */
		{ "M  9 DENY\r\n IICT /* no */ ;", "[9 DENY|IICT||no]" },
		{ "M  2 DENY\r\n   PICC\r\n   Not logged in\r\n;", "[2 DENY|PICC||Not logged in]" },
		/* the end of the first was lost */
		{ "M  1 COMPLD\r\n   \"1,33\"\r\nM  2 COMPLD\r\n   \"2,34\"\r\n;",
		  "[2 COMPLD||2,34|]" },
		/* what is no message */
		{ ";;;> < ;\r\n;", "" },
		{ "M 4\r\n;A x y\r\n;", "" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		expect_text(parse(cases[i].bytes, strlen(cases[i].bytes)), cases[i].seen);
}

static void test_endless(void **state)
{
	size_t length = 2 * 1024 * 1024;
	char *bytes = malloc(length), *seen;

	(void)state;
	memset(bytes, 'x', length);
	seen = parse(bytes, length);
	assert_non_null(strstr(seen, "[endless]"));
	free(seen);
	memcpy(bytes, "M  1 COMPLD\n", 12);
	for (size_t i = 12; i + 10 <= length; i += 10)
		memcpy(bytes + i, "\"1234567\"\n", 10);
	seen = parse(bytes, length - 8);
	assert_non_null(strstr(seen, "[endless]"));
	free(seen);
	free(bytes);
}

static void expect_table(const char *body, int rc, const char *sentence)
{
	struct ocs_error err = { 0 };
	struct ocs_table table;

	ocs_table_init(&table, 32);
	assert_int_equal(ocs_tl1_parse_table(polatis(), body, &table, &err), rc);
	if (rc)
		assert_non_null(strstr(err.text, sentence));
	ocs_table_free(&table);
}

static void test_tables(void **state)
{
	struct ocs_error err = { 0 };
	int size;

	(void)state;
	expect_table(NULL, 0, NULL);
	expect_table("", 0, NULL);
	expect_table("1,33\n32,64\n1,33\n", 0, NULL);
	expect_table("1,33\n1,34", -1, "another peer");
	expect_table("1,33\n2,33", -1, "another peer");
	expect_table("0,33", -1, "where a patch was expected");
	expect_table("33,1", -1, "cannot have");
	expect_table("1,65", -1, "cannot have");
	expect_table("1,99999999999999999999", -1, "where a patch was expected");
	expect_table("1;33", -1, "where a patch was expected");
	expect_table("1,", -1, "where a patch was expected");
	expect_table("-1,33", -1, "where a patch was expected");
	expect_table("1,33x", -1, "where a patch was expected");
	assert_int_equal(ocs_tl1_parse_size(polatis(), "SYSTEM:SIZE=32x32", &size, &err), 0);
	assert_int_equal(size, 32);
	assert_int_equal(ocs_tl1_parse_size(polatis(), "SYSTEM:SIZE=32x16", &size, &err), -1);
	assert_int_equal(ocs_tl1_parse_size(polatis(), "SYSTEM:SIZE=", &size, &err), -1);
	assert_int_equal(ocs_tl1_parse_size(polatis(), "SYSTEM:SIZE=0x0", &size, &err), -1);
	assert_int_equal(ocs_tl1_parse_size(polatis(), NULL, &size, &err), -1);
}

static int read_credentials(const char *text, mode_t mode, struct ocs_credentials *credentials,
			    struct ocs_error *err)
{
	char path[] = "/tmp/ocs-credentials-XXXXXX";
	int fd = mkstemp(path), rc;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	fchmod(fd, mode);
	close(fd);
	rc = ocs_credentials_read(path, credentials, err);
	unlink(path);
	return rc;
}

static void test_credentials(void **state)
{
	struct ocs_credentials c;
	struct ocs_error err = { 0 };
	char lines[400];

	(void)state;
	assert_int_equal(
		read_credentials("# of ocs0\nuser=admin\r\n\npassword=ro ot\n", 0600, &c, &err), 0);
	assert_string_equal(c.user, "admin");
	assert_string_equal(c.password, "ro ot");
	ocs_credentials_wipe(&c);
	assert_int_equal(c.password[0], 0);
	/* our own group may read it, nobody else */
	assert_int_equal(read_credentials("user=a\npassword=b", 0640, &c, &err), 0);
	for (int i = 0; i < 4; i++) {
		const mode_t modes[] = { 0644, 0660, 0602, 0604 };

		assert_int_equal(read_credentials("user=a\npassword=b", modes[i], &c, &err), -1);
		assert_non_null(strstr(err.text, "chmod 0600"));
		assert_int_equal(c.user[0], 0);
	}
	assert_int_equal(read_credentials("user=a\n", 0600, &c, &err), -1);
	assert_non_null(strstr(err.text, "password=... is missing"));
	assert_int_equal(read_credentials("user=a\npassword=\n", 0600, &c, &err), -1);
	/* sentences never hold the secret */
	assert_int_equal(read_credentials("user=a\npasword=hunter2\n", 0600, &c, &err), -1);
	assert_non_null(strstr(err.text, ":2:"));
	assert_null(strstr(err.text, "hunter2"));
	assert_int_equal(read_credentials("user=a\npassword=hunter\"2\n", 0600, &c, &err), -1);
	assert_null(strstr(err.text, "hunter"));
	snprintf(lines, sizeof(lines), "user=%0200d\npassword=b\n", 1);
	assert_int_equal(read_credentials(lines, 0600, &c, &err), -1);
	assert_int_equal(ocs_credentials_read("/nonexistent", &c, &err), -1);
	assert_int_equal(ocs_credentials_read("/", &c, &err), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_commands), cmocka_unit_test(test_other_dialects),
		cmocka_unit_test(test_names),	 cmocka_unit_test(test_health),
		cmocka_unit_test(test_split),	 cmocka_unit_test(test_never_dangerous),
		cmocka_unit_test(test_answers),	 cmocka_unit_test(test_endless),
		cmocka_unit_test(test_tables),	 cmocka_unit_test(test_credentials),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
