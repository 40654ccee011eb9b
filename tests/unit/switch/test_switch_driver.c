/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The TL1 driver against a peer that misbehaves in every way. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "src/switch/driver.h"
#include "src/util/error.h"
#include "src/util/net.h"
#include "tests/unit/switch/tl1_peer.h"

#define HEAD "\r\n   OCS0 26-11-21 10:00:00\r\n"
#define DONE HEAD "M  $ COMPLD\r\n;"
#define SIZE32 HEAD "M  $ COMPLD\r\n   \"SYSTEM:SIZE=32x32\"\r\n;"
#define TABLE(lines) HEAD "M  $ COMPLD\r\n" lines ";"
#define P(pair) "   \"" pair "\"\r\n"
#define NOTICE HEAD "A  7 REPT EVT PATCH\r\n   \"hello\"\r\n;"
#define DENIED(code, text) HEAD "M  $ DENY\r\n   " code "\r\n   /* " text " */\r\n;"
#define ASK_SIZE "RTRV-EQPT::SYSTEM:1:::PARAMETER=SIZE;"

struct fixture {
	struct tl1_peer peer;
	struct ocs_switch sw;
	struct ocs_switch_connection *connection;
	struct ocs_error err;
	struct ocs_text notices;
};

static void on_notice(void *context, const char *text)
{
	struct fixture *f = context;

	ocs_text_add(&f->notices, "%s\n", text);
}

static void begin(struct fixture *f, const char *const *answers, bool bytewise, int timeout_ms)
{
	memset(f, 0, sizeof(*f));
	tl1_peer_start(&f->peer, answers, bytewise);
	f->sw = (struct ocs_switch){ .name = (char *)"ocs0",
				     .driver = (char *)"tl1",
				     .dialect = (char *)"polatis",
				     .address = f->peer.address,
				     .size = 32 };
	f->connection = ocs_switch_open(&f->sw, timeout_ms, on_notice, f, &f->err);
}

/* Closes; then the peer must have got exactly these bytes. */
static void end(struct fixture *f, const char *received)
{
	ocs_switch_close(f->connection);
	tl1_peer_stop(&f->peer);
	if (received)
		assert_string_equal(f->peer.received.data ? f->peer.received.data : "", received);
	tl1_peer_free(&f->peer);
	ocs_text_free(&f->notices);
}

static void says(const struct fixture *f, const char *part)
{
	if (!strstr(f->err.text, part))
		fail_msg("'%s' does not say '%s'", f->err.text, part);
}

static const struct ocs_patch now[] = { { 1, 36 }, { 4, 33 } };
static const struct ocs_patch wanted[] = { { 2, 36 }, { 4, 34 } };

#define CHANGE ASK_SIZE "RTRV-PATCH:::2:;DLT-PATCH::1&4:3:;"
#define CHANGED CHANGE "ENT-PATCH::2&4,36&34:4:;RTRV-PATCH:::5:;"

static void change_with(const char *const *answers, bool bytewise, const char *notices)
{
	struct fixture f;
	struct ocs_table after;

	begin(&f, answers, bytewise, 5000);
	assert_non_null(f.connection);
	assert_true(ocs_switch_descriptor(f.connection) >= 0);
	assert_int_equal(ocs_switch_apply(f.connection, now, 2, wanted, 2, &after, &f.err),
			 OCS_SWITCH_OK);
	assert_int_equal(after.size, 32);
	for (int in = 1; in <= 32; in++)
		assert_int_equal(after.out[in], in == 2 ? 36 : in == 4 ? 34 : in == 9 ? 60 : 0);
	ocs_table_free(&after);
	assert_string_equal(f.notices.data ? f.notices.data : "", notices);
	end(&f, CHANGED);
}

static void test_change(void **state)
{
	static const char *const answers[] = {
		SIZE32, TABLE(P("1,36") P("4,33") P("9,60")), DONE,
		DONE,	TABLE(P("2,36") P("4,34") P("9,60")), "",
	};

	(void)state;
	change_with(answers, false, "");
	change_with(answers, true, "");
}

/* The same change among echoes, notices, pages and a nameless SID. */
static void test_change_in_noise(void **state)
{
	static const char *const answers[] = {
		"hello, this is a switch\r\n" NOTICE SIZE32,
		"RTRV-PATCH:::$:;\r\nIP $\r\n<" NOTICE HEAD
		"M  $ RTRV\r\n" P("1,36") ">" NOTICE HEAD
					  "M  $ RTRV\r\n" P("4,33") ">" HEAD
								    "M  $ COMPLD\r\n" P("9,60") ";",
		"\r\n   ( nil ) 26-11-21 10:00:00\r\nM  $ COMPLD\r\n   /* all; gone */\r\n;" NOTICE,
		HEAD "M  999 DENY\r\n   IDNV\r\n;" DONE HEAD "M  $ DENY\r\n;",
		HEAD "M  $ COMPLD\r\n" P("2,36") NOTICE P("4,34") P("9,60") ";",
		"",
	};
	static const char notice[] = "A  7 REPT EVT PATCH \"hello\"\n";
	char notices[5 * sizeof(notice)] = "";

	(void)state;
	for (int i = 0; i < 5; i++)
		strcat(notices, notice);
	change_with(answers, false, notices);
	change_with(answers, true, notices);
}

static void test_nothing_to_do(void **state)
{
	static const char *const answers[] = { SIZE32, TABLE(P("1,36") P("4,33")), "" };
	struct fixture f;
	struct ocs_table after;

	(void)state;
	begin(&f, answers, false, 5000);
	assert_int_equal(ocs_switch_apply(f.connection, wanted, 2, now, 2, &after, &f.err),
			 OCS_SWITCH_OK);
	assert_int_equal(after.out[1], 36);
	ocs_table_free(&after);
	end(&f, ASK_SIZE "RTRV-PATCH:::2:;");
}

/* With a table that is known nothing is read before; after a surprise it is. */
static void test_change_known(void **state)
{
	static const char *const answers[] = {
		SIZE32, TABLE(P("1,36") P("4,33")),	      DONE,
		DONE,	TABLE(P("2,36") P("4,34")),	      DONE,
		DONE,	TABLE(P("1,36") P("4,33") P("9,60")), TABLE(P("1,36") P("4,33") P("9,60")),
		"",
	};
	struct fixture f;
	struct ocs_table after;

	(void)state;
	begin(&f, answers, false, 5000);
	/* nothing is known yet */
	assert_int_equal(ocs_switch_change(f.connection, now, 2, wanted, 2, &after, &f.err),
			 OCS_SWITCH_OK);
	assert_int_equal(after.out[2], 36);
	ocs_table_free(&after);
	/* somebody made 9>60 meanwhile */
	assert_int_equal(ocs_switch_change(f.connection, wanted, 2, now, 2, NULL, &f.err),
			 OCS_SWITCH_UNKNOWN);
	assert_int_equal(ocs_switch_change(f.connection, wanted, 2, now, 2, NULL, &f.err),
			 OCS_SWITCH_OK);
	end(&f, CHANGED "DLT-PATCH::2&4:6:;ENT-PATCH::1&4,36&33:7:;RTRV-PATCH:::8:;"
			"RTRV-PATCH:::9:;");
}

/* What a new patch replaces is not deleted; what it does not is. */
static void test_change_replaces(void **state)
{
	static const char *const answers[] = {
		SIZE32, TABLE(P("1,36") P("4,33") P("9,60")), DONE,
		DONE,	TABLE(P("2,36") P("4,34")),	      "",
	};
	/* 2>36 is refused: then 1>36 has to be deleted after all */
	static const char *const refused[] = {
		SIZE32,
		TABLE(P("1,36") P("4,33") P("9,60")),
		DONE,
		DENIED("IDNV", "Invalid OXC port: 2"),
		DENIED("IDNV", "Invalid OXC port: 2"),
		DONE,
		DONE,
		TABLE(P("4,34")),
		"",
	};
	const struct ocs_patch gone[] = { { 1, 36 }, { 4, 33 }, { 9, 60 } };
	struct fixture f;
	struct ocs_table after;
	size_t count;

	(void)state;
	begin(&f, answers, false, 5000);
	f.sw.replace = true;
	assert_int_equal(ocs_switch_apply(f.connection, gone, 3, wanted, 2, &after, &f.err),
			 OCS_SWITCH_OK);
	assert_int_equal(after.out[4], 34);
	ocs_table_free(&after);
	end(&f,
	    ASK_SIZE "RTRV-PATCH:::2:;DLT-PATCH::9:3:;ENT-PATCH::2&4,36&34:4:;RTRV-PATCH:::5:;");
	begin(&f, refused, false, 5000);
	f.sw.replace = true;
	assert_int_equal(ocs_switch_apply(f.connection, gone, 3, wanted, 2, &after, &f.err),
			 OCS_SWITCH_DENIED);
	ocs_switch_refusals(f.connection, &count);
	assert_int_equal(count, 1);
	assert_int_equal(after.out[1], 0);
	ocs_table_free(&after);
	end(&f, NULL);
}

static void test_login(void **state)
{
	static const char *const answers[] = { DONE, SIZE32, "" };
	static const char *const refused[] = { DENIED("PICC", "Invalid user or password"), "" };
	char path[] = "/tmp/ocs-login-XXXXXX";
	struct fixture f;
	int fd = mkstemp(path);

	(void)state;
	assert_int_equal(write(fd, "user=admin\npassword=root\n", 25), 25);
	close(fd);
	for (int i = 0; i < 2; i++) {
		memset(&f, 0, sizeof(f));
		tl1_peer_start(&f.peer, i ? refused : answers, false);
		f.sw = (struct ocs_switch){ .name = (char *)"ocs0",
					    .driver = (char *)"tl1",
					    .address = f.peer.address,
					    .size = 32,
					    .credentials = path };
		f.connection = ocs_switch_open(&f.sw, 5000, NULL, NULL, &f.err);
		assert_int_equal(f.connection != NULL, !i);
		if (i) {
			assert_string_equal(
				f.err.text,
				"switch ocs0: refused the login of admin: PICC, not permitted");
			tl1_peer_stop(&f.peer);
			tl1_peer_free(&f.peer);
		} else {
			end(&f, "ACT-USER::admin:1::root;RTRV-EQPT::SYSTEM:2:::PARAMETER=SIZE;"
				"CANC-USER::admin:3:;");
		}
	}
	unlink(path);
}

static void test_open_refused(void **state)
{
	static const char *const small[] = { HEAD "M  $ COMPLD\r\n   \"SYSTEM:SIZE=16x16\"\r\n;",
					     "" };
	static const char *const nonsense[] = { HEAD "M  $ COMPLD\r\n   \"?\"\r\n;", "" };
	static const char *const outside[] = { DENIED("PICC", "Not logged in"), "" };
	static const struct {
		const char *const *answers;
		const char *sentence;
	} cases[] = {
		{ small, "switch ocs0: is 16x16, but its description says 32x32" },
		{ nonsense, "where a size NxN was expected" },
		{ outside, "PICC, not permitted: Not logged in" },
	};
	struct fixture f;
	struct ocs_switch nowhere = { .name = (char *)"x",
				      .driver = (char *)"tl1",
				      .size = 32,
				      .address = (char *)"unix:/nonexistent/s" };
	struct ocs_error err;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		begin(&f, cases[i].answers, false, 5000);
		assert_null(f.connection);
		assert_int_equal(f.err.code, OCS_ERROR);
		says(&f, cases[i].sentence);
		end(&f, ASK_SIZE);
	}
	assert_null(ocs_switch_open(&nowhere, 1000, NULL, NULL, &err));
	assert_int_equal(err.code, OCS_UNREACHABLE);
	nowhere.dialect = (char *)"esperanto";
	assert_null(ocs_switch_open(&nowhere, 1000, NULL, NULL, &err));
	assert_non_null(strstr(err.text, "unknown TL1 dialect 'esperanto'"));
	nowhere.driver = (char *)"telepathy";
	assert_null(ocs_switch_open(&nowhere, 1000, NULL, NULL, &err));
	assert_int_equal(err.code, OCS_USAGE);
	assert_null(ocs_switch_driver_find("telepathy"));
	assert_int_equal(ocs_switch_driver_find("tl1")->abi, OCS_DRIVER_ABI);
}

/* A conflict, and ports that do not exist: not a byte but the read. */
static void test_rejected(void **state)
{
	static const char *const answers[] = { SIZE32, TABLE(P("1,36") P("4,33")),
					       TABLE(P("1,36") P("4,33")), "" };
	const struct ocs_patch thief = { 7, 36 }, wild = { 7, 65 };
	struct fixture f;
	struct ocs_table after;
	size_t used;

	(void)state;
	begin(&f, answers, false, 5000);
	assert_int_equal(ocs_switch_apply(f.connection, NULL, 0, &thief, 1, &after, &f.err),
			 OCS_SWITCH_REJECTED);
	says(&f, "switch ocs0: patch 1>36 is in the way of 7>36");
	assert_int_equal(after.out[1], 36);
	ocs_table_free(&after);
	assert_int_equal(ocs_switch_apply(f.connection, NULL, 0, &wild, 1, NULL, &f.err),
			 OCS_SWITCH_REJECTED);
	/* Past the diff, the driver itself refuses what could mean everything. */
	assert_int_equal(f.connection->driver->remove(f.connection, now, 0, &used, &f.err),
			 OCS_SWITCH_REJECTED);
	says(&f, "empty batch");
	assert_int_equal(f.connection->driver->remove(f.connection, &(struct ocs_patch){ 0, 36 }, 1,
						      &used, &f.err),
			 OCS_SWITCH_REJECTED);
	assert_int_equal(f.connection->driver->add(f.connection, NULL, 0, &used, &f.err),
			 OCS_SWITCH_REJECTED);
	assert_int_equal(f.connection->driver->add(f.connection, &wild, 1, &used, &f.err),
			 OCS_SWITCH_REJECTED);
	end(&f, ASK_SIZE "RTRV-PATCH:::2:;RTRV-PATCH:::3:;");
}

static void change_fails(const char *const *answers, int result, const char *sentence,
			 bool read_back, const char *received)
{
	struct fixture f;
	struct ocs_table after;

	begin(&f, answers, false, strstr(sentence, "did not answer") ? 500 : 5000);
	assert_non_null(f.connection);
	assert_int_equal(ocs_switch_apply(f.connection, now, 2, wanted, 2, &after, &f.err), result);
	says(&f, "switch ocs0: ");
	says(&f, sentence);
	assert_int_equal(after.out != NULL, read_back);
	ocs_table_free(&after);
	/* A lost connection stays lost, and says so. */
	if (ocs_switch_descriptor(f.connection) < 0) {
		assert_int_equal(ocs_switch_read(f.connection, &after, &f.err), OCS_SWITCH_UNKNOWN);
		says(&f, "lost earlier");
		assert_int_equal(ocs_switch_listen(f.connection, 0, &f.err), OCS_SWITCH_UNKNOWN);
	}
	end(&f, received);
}

static void change_succeeds(const char *const *answers)
{
	struct fixture f;

	begin(&f, answers, false, 5000);
	assert_int_equal(ocs_switch_apply(f.connection, now, 2, wanted, 2, NULL, &f.err),
			 OCS_SWITCH_OK);
	end(&f, NULL);
}

#define BEFORE SIZE32, TABLE(P("1,36") P("4,33") P("9,60"))
#define SAME TABLE(P("1,36") P("4,33") P("9,60"))
#define GONE TABLE(P("9,60"))

/* The batch is halved until the refused patch stands alone; the rest is done. */
static void test_refusals(void **state)
{
	static const char *const no_delete[] = { BEFORE,
						 DENIED("IDNV", "Invalid OXC port: 1"),
						 DENIED("IDNV", "Invalid OXC port: 1"),
						 DONE,
						 DONE,
						 TABLE(P("1,36") P("4,34") P("9,60")),
						 "" };
	static const char *const no_add[] = { BEFORE,
					      DONE,
					      DENIED("SSTP", "Busy"),
					      DENIED("SSTP", "Busy"),
					      DONE,
					      TABLE(P("4,34") P("9,60")),
					      "" };
	static const char *const once[] = { BEFORE, DENIED("SSTP", "Busy"),
					    DONE,   DONE,
					    DONE,   TABLE(P("2,36") P("4,34") P("9,60")),
					    "" };
	static const char *const lie[] = {
		BEFORE, DONE, DENIED("SSTP", "Busy"), DENIED("SSTP", "Busy"), DONE, GONE, ""
	};

	(void)state;
	/* 2>36 is not tried: the delete of 1>36 was refused */
	change_fails(no_delete, OCS_SWITCH_DENIED,
		     "refused DLT-PATCH: IDNV, invalid port: Invalid OXC port: 1", true,
		     CHANGE "DLT-PATCH::1:4:;DLT-PATCH::4:5:;ENT-PATCH::4,34:6:;RTRV-PATCH:::7:;");
	change_fails(no_add, OCS_SWITCH_DENIED, "refused ENT-PATCH: SSTP, state error: Busy", true,
		     CHANGE "ENT-PATCH::2&4,36&34:4:;ENT-PATCH::2,36:5:;ENT-PATCH::4,34:6:;"
			    "RTRV-PATCH:::7:;");
	change_fails(lie, OCS_SWITCH_UNKNOWN, "ingress 4 has egress 0 instead of 34", true, NULL);
	change_succeeds(once);
}

/* It is the switch that refuses: no port is to blame. */
static void test_refuses_all(void **state)
{
	static const char *const no_code[] = {
		BEFORE, HEAD "M  $ DENY\r\n;", HEAD "M  $ DENY\r\n;", HEAD "M  $ DENY\r\n;", SAME,
		""
	};
	static const char *const no_right[] = { BEFORE, DENIED("PICC", "Read only"), SAME, "" };
	/* a number that is none of the ports in question */
	static const char *const busy[] = { BEFORE,
					    DENIED("SSTP", "Busy for 7 s"),
					    DENIED("SSTP", "Busy for 7 s"),
					    DENIED("SSTP", "Busy for 7 s"),
					    SAME,
					    "" };
	/* the same words with a port in them */
	static const char *const port[] = { BEFORE,
					    DENIED("SSTP", "Port 36 is busy"),
					    DENIED("SSTP", "Port 36 is busy"),
					    DENIED("SSTP", "Port 33 is busy"),
					    SAME,
					    "" };

	(void)state;
	change_fails(no_code, OCS_SWITCH_REFUSED, "refused DLT-PATCH: no code", true,
		     CHANGE "DLT-PATCH::1:4:;DLT-PATCH::4:5:;RTRV-PATCH:::6:;");
	change_fails(no_right, OCS_SWITCH_REFUSED,
		     "refused DLT-PATCH: PICC, not permitted: Read only", true,
		     CHANGE "RTRV-PATCH:::4:;");
	change_fails(busy, OCS_SWITCH_REFUSED, "Busy for 7 s", true, NULL);
	change_fails(port, OCS_SWITCH_DENIED, "Port 36 is busy", true, NULL);
}

static void test_partial(void **state)
{
	static const char *const partial[] = { BEFORE,
					       HEAD
					       "M  $ PRTL\r\n   SSTP\r\n   /* one of two */\r\n;",
					       TABLE(P("4,33") P("9,60")), "" };
	static const char *const strange[] = { BEFORE, HEAD "M  $ DELAY\r\n;", SAME, "" };

	(void)state;
	change_fails(partial, OCS_SWITCH_UNKNOWN,
		     "did DLT-PATCH only in part (PRTL SSTP: one of two)", true,
		     CHANGE "RTRV-PATCH:::4:;");
	change_fails(strange, OCS_SWITCH_UNKNOWN, "only in part (DELAY", true,
		     CHANGE "RTRV-PATCH:::4:;");
}

static void test_silence(void **state)
{
	static const char *const at_read[] = { SIZE32, NULL, "" };
	static const char *const at_delete[] = { BEFORE, NULL, "" };
	static const char *const at_add[] = { BEFORE, DONE, NULL, "" };
	static const char *const at_verify[] = { BEFORE, DONE, DONE, NULL, "" };
	static const char *const half[] = { BEFORE, HEAD "M  $ COM", "" };
	static const char *const chatter[] = { BEFORE, NOTICE NOTICE, "" };
	static const char *const closed[] = { BEFORE, DONE, "!", "" };
	static const char *const closed_midway[] = { BEFORE, DONE, HEAD "M  $ COMPLD\r\n!", "" };

	(void)state;
	change_fails(at_read, OCS_SWITCH_UNKNOWN, "did not answer RTRV-PATCH within 500 ms", false,
		     ASK_SIZE "RTRV-PATCH:::2:;");
	change_fails(at_delete, OCS_SWITCH_UNKNOWN, "did not answer DLT-PATCH within 500 ms", false,
		     CHANGE);
	change_fails(at_add, OCS_SWITCH_UNKNOWN, "did not answer ENT-PATCH within 500 ms", false,
		     CHANGE "ENT-PATCH::2&4,36&34:4:;");
	change_fails(at_verify, OCS_SWITCH_UNKNOWN, "did not answer RTRV-PATCH", false, CHANGED);
	change_fails(half, OCS_SWITCH_UNKNOWN, "did not answer DLT-PATCH", false, CHANGE);
	change_fails(chatter, OCS_SWITCH_UNKNOWN, "did not answer DLT-PATCH", false, CHANGE);
	change_fails(closed, OCS_SWITCH_UNKNOWN, "closed the connection instead of answering ENT",
		     false, CHANGE "ENT-PATCH::2&4,36&34:4:;");
	change_fails(closed_midway, OCS_SWITCH_UNKNOWN, "closed the connection", false,
		     CHANGE "ENT-PATCH::2&4,36&34:4:;");
}

/* The switch says that it did; its table says otherwise. */
static void test_read_back(void **state)
{
	static const char *const stale[] = { BEFORE, DONE, DONE, TABLE(P("2,36") P("9,60")), "" };
	static const char *const bystander[] = { BEFORE, DONE, DONE, TABLE(P("2,36") P("4,34")),
						 "" };
	static const char *const foreign[] = { BEFORE, DONE, DONE,
					       TABLE(P("2,36") P("4,34") P("9,60") P("20,50")),
					       "" };
	static const char *const twice[] = { BEFORE, DONE, DONE,
					     TABLE(P("2,36") P("4,36") P("9,60")), "" };

	(void)state;
	change_fails(stale, OCS_SWITCH_UNKNOWN, "ingress 4 has egress 0 instead of 34", true,
		     CHANGED);
	change_fails(bystander, OCS_SWITCH_UNKNOWN, "ingress 9 has egress 0 instead of 60", true,
		     CHANGED);
	change_fails(foreign, OCS_SWITCH_UNKNOWN, "ingress 20 has egress 50 instead of 0", true,
		     CHANGED);
	change_fails(twice, OCS_SWITCH_UNKNOWN, "another peer", false, CHANGED);
}

static void test_listen(void **state)
{
	static const char *const answers[] = { SIZE32, SAME NOTICE NOTICE, "" };
	struct fixture f;
	struct ocs_table table;
	int64_t start;

	(void)state;
	begin(&f, answers, true, 2000);
	start = ocs_now_ns();
	assert_int_equal(ocs_switch_listen(f.connection, 50, &f.err), OCS_SWITCH_OK);
	assert_true(ocs_now_ns() - start >= 45000000);
	assert_null(f.notices.data);
	assert_int_equal(ocs_switch_read(f.connection, &table, &f.err), OCS_SWITCH_OK);
	assert_int_equal(table.out[9], 60);
	ocs_table_free(&table);
	for (int i = 0; i < 100 && (!f.notices.data || !strstr(f.notices.data, "\nA")); i++)
		assert_int_equal(ocs_switch_listen(f.connection, 20, &f.err), OCS_SWITCH_OK);
	assert_string_equal(f.notices.data, "A  7 REPT EVT PATCH \"hello\"\n"
					    "A  7 REPT EVT PATCH \"hello\"\n");
	end(&f, ASK_SIZE "RTRV-PATCH:::2:;");
}

/* 512 patches do not fit in one command of 4096 bytes: split, none left out. */
static void test_long_batch(void **state)
{
	struct ocs_text before = { 0 }, after = { 0 };
	const char *answers[8];
	struct ocs_patch patches[512];
	struct fixture f;
	struct tl1_peer *peer = &f.peer;
	size_t i;

	(void)state;
	ocs_text_add(&before, HEAD "M  $ COMPLD\r\n;");
	ocs_text_add(&after, HEAD "M  $ COMPLD\r\n");
	for (i = 0; i < 512; i++) {
		patches[i] = (struct ocs_patch){ (int)i + 1, 1536 - (int)i };
		ocs_text_add(&after, "   \"%d,%d\"\r\n%s", patches[i].in, patches[i].out,
			     i % 100 == 99 ? ">" HEAD "M  $ RTRV\r\n" : "");
	}
	ocs_text_add(&after, ";");
	answers[0] = HEAD "M  $ COMPLD\r\n   \"SYSTEM:SIZE=1024x1024\"\r\n;";
	answers[1] = before.data;
	answers[2] = answers[3] = DONE;
	answers[4] = after.data;
	answers[5] = "";
	memset(&f, 0, sizeof(f));
	tl1_peer_start(peer, answers, false);
	f.sw = (struct ocs_switch){ .name = (char *)"big",
				    .driver = (char *)"tl1",
				    .address = peer->address,
				    .size = 1024 };
	f.connection = ocs_switch_open(&f.sw, 5000, NULL, NULL, &f.err);
	assert_non_null(f.connection);
	assert_int_equal(ocs_switch_apply(f.connection, NULL, 0, patches, 512, NULL, &f.err),
			 OCS_SWITCH_OK);
	end(&f, NULL);
	ocs_text_free(&before);
	ocs_text_free(&after);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_change),	      cmocka_unit_test(test_change_in_noise),
		cmocka_unit_test(test_nothing_to_do), cmocka_unit_test(test_login),
		cmocka_unit_test(test_change_known),  cmocka_unit_test(test_change_replaces),
		cmocka_unit_test(test_open_refused),  cmocka_unit_test(test_rejected),
		cmocka_unit_test(test_refusals),      cmocka_unit_test(test_refuses_all),
		cmocka_unit_test(test_partial),	      cmocka_unit_test(test_silence),
		cmocka_unit_test(test_read_back),     cmocka_unit_test(test_listen),
		cmocka_unit_test(test_long_batch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
