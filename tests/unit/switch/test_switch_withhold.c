/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* A switch that repeats the password it was given, in every way that is thought of: not a
 * piece of it leaves the driver, and what repeats nothing is still quoted. */

#include <ctype.h>
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
#include "tests/unit/switch/tl1_peer.h"

#define HEAD "\r\n   OCS0 26-11-21 10:00:00\r\n"
#define DONE HEAD "M  $ COMPLD\r\n;"
#define SIZE4 HEAD "M  $ COMPLD\r\n   \"SYSTEM:SIZE=4x4\"\r\n;"
#define TABLE(lines) HEAD "M  $ COMPLD\r\n" lines ";"
#define DENIED(text) HEAD "M  $ DENY\r\n   PICC\r\n   /* " text " */\r\n;"
#define PASSWORD "Tr0ub4dor&3-zebra"
#define WITHHELD "its words are not shown, as they repeat its credentials"

struct fixture {
	struct tl1_peer peer;
	struct ocs_switch sw;
	struct ocs_switch_connection *connection;
	struct ocs_error err;
	struct ocs_text notices;
	char login[96];
};

static void on_notice(void *context, const char *text)
{
	ocs_text_add(&((struct fixture *)context)->notices, "%s\n", text);
}

static void begin(struct fixture *f, const char *const *answers, const char *password)
{
	char *text = ocs_asprintf("user=ocs\npassword=%s\n", password);

	memset(f, 0, sizeof(*f));
	tl1_peer_start(&f->peer, answers, false);
	snprintf(f->login, sizeof(f->login), "%s/login", f->peer.folder);
	assert_int_equal(ocs_file_write(f->login, text, strlen(text), 0600, &f->err), 0);
	free(text);
	f->sw = (struct ocs_switch){ .name = (char *)"a",
				     .driver = (char *)"tl1",
				     .dialect = (char *)"polatis",
				     .credentials = f->login,
				     .address = f->peer.address,
				     .size = 4 };
	f->connection = ocs_switch_open(&f->sw, 2000, on_notice, f, &f->err);
}

static void end(struct fixture *f)
{
	unlink(f->login);
	ocs_switch_close(f->connection);
	tl1_peer_stop(&f->peer);
	tl1_peer_free(&f->peer);
	ocs_text_free(&f->notices);
}

/* Not even five characters of it, and nothing that would move a cursor. */
static void keeps_secret(const char *text, const char *password)
{
	for (size_t i = 0; i + 5 <= strlen(password); i++) {
		char piece[6];

		snprintf(piece, sizeof(piece), "%.5s", password + i);
		if (strcasestr(text, piece))
			fail_msg("'%s' tells '%s'", text, piece);
	}
	for (; *text; text++)
		assert_true(*text == '\n' || (*text >= ' ' && *text <= '~'));
}

/* What a user reads of a login that is refused in these words. */
static void refused_login(const char *answer, const char *sentence)
{
	const char *const answers[] = { answer, "" };
	struct fixture f;

	begin(&f, answers, PASSWORD);
	assert_null(f.connection);
	assert_string_equal(f.err.text, sentence);
	end(&f);
}

static void test_refused_login(void **state)
{
	(void)state;
	refused_login(DENIED("Invalid user or password: ocs/" PASSWORD),
		      "switch a: refused the login of ocs: PICC, not permitted");
	refused_login(DENIED("anything at all"),
		      "switch a: refused the login of ocs: PICC, not permitted");
	refused_login(HEAD "M  $ DENY\r\n   ZEBR\r\n   \"" PASSWORD "\"\r\n;",
		      "switch a: refused the login of ocs");
	refused_login(HEAD "M  $ PRTL\r\n   /* " PASSWORD " */\r\n;",
		      "switch a: refused the login of ocs");
}

/* Everything is refused with these words; returns the sentence. */
static const char *refused_change(struct fixture *f, const char *words, const char *password)
{
	static const struct ocs_patch wanted[] = { { 1, 5 } };
	char *deny = ocs_asprintf(HEAD "M  $ DENY\r\n   SSTP\r\n   /* %s */\r\n;", words);
	const char *const answers[] = { DONE, SIZE4, TABLE(""), deny, TABLE(""), "" };

	begin(f, answers, password);
	if (!f->connection)
		fail_msg("%s", f->err.text);
	/* Some of the words look as if they named a port. */
	assert_in_range(ocs_switch_apply(f->connection, NULL, 0, wanted, 1, NULL, &f->err),
			OCS_SWITCH_DENIED, OCS_SWITCH_REFUSED);
	end(f);
	free(deny);
	return f->err.text;
}

static void test_every_form(void **state)
{
	static const char *const forms[] = {
		PASSWORD,
		"tR0UB4DOR&3-ZEBRA",
		"user ocs, password '" PASSWORD "'.",
		"T r 0 u b 4 d o r & 3 - z e b r a",
		"Tr0ub4 and then dor&3-",
		"xxor&3-zxx",
		"\\T\\r\\0\\u\\b\\4\\d\\o\\r\\&\\3",
		"\\x54\\x72\\x30\\x75\\x62\\x34\\x64",
		"%54%72%30%75b%34dor%263",
		"&#84;&#x72;0&#117;b4dor&#38;3",
		"547230756234646f72",
		"54:72:30:75:62:34:64:6f:72",
		/* base64 of it, and of ":" and "u:" before it */
		"VHIwdWI0ZG9yJjMtemVicmE=",
		"OlRyMHViNGRvciYzLXplYnJh",
		"dTpUcjB1YjRkb3ImMy16ZWJyYQ==",
	};
	struct fixture f;

	(void)state;
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		const char *text = refused_change(&f, forms[i], PASSWORD);

		if (strcmp(text, "switch a: refused what it was asked; " WITHHELD) != 0)
			fail_msg("'%s' after '%s'", text, forms[i]);
		keeps_secret(text, PASSWORD);
	}
	/* a short one, and one that is a word of every sentence */
	assert_non_null(strstr(refused_change(&f, "port 7 is stuck", "7"), WITHHELD));
	assert_non_null(strstr(refused_change(&f, "port 7 is stuck", "port"), WITHHELD));
	assert_string_equal(refused_change(&f, "port 7 is stuck", PASSWORD),
			    "switch a: refused ENT-PATCH: SSTP, state error: port 7 is stuck");
}

/* What is not understood is quoted, and cut. */
static void test_cut_quote(void **state)
{
	struct fixture f;

	(void)state;
	for (int room = 40; room < 62; room++) {
		char *line = ocs_asprintf(
			HEAD "M  $ COMPLD\r\n   \"%.*s" PASSWORD "\"\r\n;", room,
			"x ..............................................................");
		const char *const answers[] = { DONE, SIZE4, line, "" };
		struct ocs_table table;

		begin(&f, answers, PASSWORD);
		assert_non_null(f.connection);
		assert_int_equal(ocs_switch_read(f.connection, &table, &f.err), OCS_SWITCH_UNKNOWN);
		assert_string_equal(f.err.text, "switch a: said what is not understood; " WITHHELD);
		end(&f);
		free(line);
	}
}

static void test_notices(void **state)
{
#define NOTICE(text) HEAD "A  7 REPT EVT SYSTEM\r\n   \"" text "\"\r\n;"
	static const char *const answers[] = {
		NOTICE("LOGIN:ocs," PASSWORD) NOTICE("\033[2Jhello\x9b\xe2\x80\xae") DONE,
		SIZE4,
		HEAD "M  $ COMPLD\r\n;",
		"",
	};
	struct ocs_table table;
	struct fixture f;

	(void)state;
	begin(&f, answers, PASSWORD);
	assert_non_null(f.connection);
	/* What a notice repeated is no reason to say less of the rest. */
	assert_int_equal(ocs_switch_read(f.connection, &table, &f.err), OCS_SWITCH_OK);
	ocs_table_free(&table);
	keeps_secret(f.notices.data, PASSWORD);
	assert_non_null(strstr(f.notices.data, "(not shown: it repeats the credentials"));
	assert_non_null(strstr(f.notices.data, "?[2Jhello"));
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refused_login),
		cmocka_unit_test(test_every_form),
		cmocka_unit_test(test_cut_quote),
		cmocka_unit_test(test_notices),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
