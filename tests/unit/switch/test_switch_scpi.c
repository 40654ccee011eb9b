/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* SCPI: what is written, what is read, and a peer that says one line too many, too
 * few, half of one, or something else. */

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>

#include "src/switch/driver.h"
#include "src/switch/scpi/scpi.h"
#include "src/util/error.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void test_lines(void **state)
{
	const struct ocs_patch patches[] = { { 1, 17 }, { 2, 18 }, { 3, 19 } };
	const struct ocs_patch wild[] = { { 0, 17 }, { 17, 18 }, { 1, 16 }, { 1, 33 }, { -1, -1 } };
	struct ocs_error err;
	size_t used;
	char *line;
	int count = 3;

	(void)state;
	line = ocs_scpi_change(true, 16, patches, 3, &used, &err);
	assert_string_equal(line, ":oxc:swit:conn:add (@1,2,3),(@17,18,19);*opc?");
	assert_int_equal(used, 3);
	free(line);
	line = ocs_scpi_change(false, 16, patches, 1, &used, &err);
	assert_string_equal(line, ":oxc:swit:conn:sub (@1),(@17);*opc?");
	free(line);
	line = ocs_scpi_ask(":oxc:swit:port:stat?", 2, &count);
	assert_string_equal(line, ":oxc:swit:port:stat? (@2,3,4)");
	free(line);
	assert_null(ocs_scpi_change(false, 16, patches, 0, &used, &err));
	assert_int_equal(err.code, OCS_USAGE);
	for (size_t i = 0; i < COUNT(wild); i++)
		assert_null(ocs_scpi_change(true, 16, &wild[i], 1, &used, &err));
}

/* Lines stay short, and every port is named once. */
static void test_long(void **state)
{
	struct ocs_patch patches[2000];
	size_t done = 0, used;
	int asked = 0, lines = 0;
	struct ocs_error err;

	(void)state;
	for (int i = 0; i < 2000; i++)
		patches[i] = (struct ocs_patch){ i + 1, 4000 - i };
	while (done < 2000) {
		char *line = ocs_scpi_change(true, 2000, patches + done, 2000 - done, &used, &err);

		assert_non_null(line);
		assert_true(strlen(line) < OCS_SCPI_LINE && ++lines < 6);
		assert_false(ocs_scpi_dangerous(line));
		done += used;
		free(line);
	}
	assert_int_equal(done, 2000);
	while (asked < 4000) {
		int count = 4000 - asked;
		char *line = ocs_scpi_ask(":opm:pow?", asked + 1, &count);

		assert_true(strlen(line) < OCS_SCPI_LINE && ++lines < 12);
		assert_false(ocs_scpi_dangerous(line));
		asked += count;
		free(line);
	}
}

static void test_dangerous(void **state)
{
	static const char *const bad[] = {
		"",
		"*rst",
		"*RST",
		":oxc:swit:disc:all",
		":OXC:SWIT:DISC:ALL",
		":oxc:swit:conn:only (@1),(@17);*opc?",
		":oxc:swit:conn:sub (@),(@);*opc?",
		":oxc:swit:conn:sub (@1),(@17)",
		":oxc:swit:conn:sub (@1),(@17);*rst",
		":oxc:swit:conn:sub (@1),(@17);*opc?;:oxc:swit:disc:all",
		":oxc:swit:conn:sub (@1,2),(@17);*opc?",
		":oxc:swit:conn:sub (@1:16),(@17:32);*opc?",
		":oxc:swit:conn:sub (@1,),(@17,);*opc?",
		":oxc:swit:conn:sub (@0),(@17);*opc?",
		":oxc:swit:conn:add (@1),(@17);*opc?\n*rst",
		"*opc?\n*rst",
		"*opc?;*rst",
		":oxc:swit:port:stat? (@1);*rst",
		":oxc:swit:port:dis (@1)",
		"*sav 1",
	};
	static const char *const good[] = {
		"*idn?",
		"*opc?",
		"*cls",
		":syst:err:all?",
		":oxc:swit:size?",
		":oxc:swit:conn:stat?",
		":oxc:swit:conn:sub (@1,2),(@17,18);*opc?",
		":oxc:swit:port:stat? (@1,2)",
		":opm:pow? (@1)",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++)
		if (!ocs_scpi_dangerous(bad[i]))
			fail_msg("not seen as dangerous: '%s'", bad[i]);
	for (size_t i = 0; i < COUNT(good); i++)
		if (ocs_scpi_dangerous(good[i]))
			fail_msg("seen as dangerous: '%s'", good[i]);
}

static void test_tables(void **state)
{
	static const char *const bad[] = {
		"",
		"1",
		"(@1)",
		"(@1),(@17",
		"(@1),(@17),",
		"(@1,2),(@17)",
		"(@1,1),(@17,18)",
		"(@1,2),(@17,17)",
		"(@17),(@1)",
		"(@1),(@16)",
		"(@1),(@33)",
		"(@0),(@17)",
		"(@1;2),(@17;18)",
		"(@1),(@17) 5",
		"(@a),(@b)",
		"(@1,),(@17,18)",
		"(@99999999),(@17)",
	};
	struct ocs_error err;
	struct ocs_table table;

	(void)state;
	ocs_table_init(&table, 16);
	assert_int_equal(ocs_scpi_parse_table("(@1,2,3),(@19,18,22)", &table, &err), 0);
	for (int in = 1; in <= 16; in++)
		assert_int_equal(table.out[in], in == 1 ? 19 : in == 2 ? 18 : in == 3 ? 22 : 0);
	ocs_table_free(&table);
	ocs_table_init(&table, 16);
	assert_int_equal(ocs_scpi_parse_table(" (@ ) , (@ ) ", &table, &err), 0);
	ocs_table_free(&table);
	for (size_t i = 0; i < COUNT(bad); i++) {
		ocs_table_init(&table, 16);
		if (ocs_scpi_parse_table(bad[i], &table, &err) != -1)
			fail_msg("'%s' was taken for a table", bad[i]);
		ocs_table_free(&table);
	}
}

static void test_values(void **state)
{
	static const char *const no_size[] = {
		"", "16", "16,8", "0,0", "16,16,16", "a,b", "16x16"
	};
	static const char *const no_errors[] = { "1",	  "(@),(@)",  "0",	 "0,No error",
						 "0,\"x", "0,\"x\",", "\"x\",0", "0,\"x\"y" };
	struct ocs_scpi_error error;
	struct ocs_health health;
	struct ocs_error err;
	int size;

	(void)state;
	assert_int_equal(ocs_scpi_parse_size("16,16", &size, &err), 0);
	assert_int_equal(size, 16);
	for (size_t i = 0; i < COUNT(no_size); i++)
		assert_int_equal(ocs_scpi_parse_size(no_size[i], &size, &err), -1);
	assert_int_equal(ocs_scpi_parse_errors("0,\"No error\"", &error), 0);
	assert_int_equal(error.code, 0);
	assert_int_equal(
		ocs_scpi_parse_errors("-222,\"Data \"\"out\"\" of range\",-113,\"x\"", &error), 0);
	assert_int_equal(error.code, -222);
	assert_string_equal(error.text, "Data \"out\" of range");
	for (size_t i = 0; i < COUNT(no_errors); i++)
		assert_int_equal(ocs_scpi_parse_errors(no_errors[i], &error), -1);
	ocs_health_init(&health, 4);
	assert_int_equal(ocs_scpi_parse_status("(D,E,F)", &health, 2, 3, &err), 0);
	assert_int_equal(health.port[2].status, OCS_PORT_BLOCKED);
	assert_int_equal(health.port[3].status, OCS_PORT_TUNED);
	assert_int_equal(health.port[4].status, OCS_PORT_FAILED);
	assert_int_equal(health.port[5].status, OCS_PORT_UNKNOWN);
	assert_int_equal(ocs_scpi_parse_power("(-2.31, -60.00, n/a)", &health, 6, 3, &err), 0);
	assert_true(health.port[6].dbm == -2.31 && health.port[7].dbm == -60);
	assert_true(isnan(health.port[8].dbm));
	assert_int_equal(ocs_scpi_parse_status("(D,E)", &health, 2, 3, &err), -1);
	assert_int_equal(ocs_scpi_parse_status("(D,E,F,E)", &health, 2, 3, &err), -1);
	assert_int_equal(ocs_scpi_parse_status("D,E,F", &health, 2, 3, &err), -1);
	assert_int_equal(ocs_scpi_parse_status("(D,,F)", &health, 2, 3, &err), -1);
	ocs_health_free(&health);
}

/* ---- a peer that answers line by line ---- */

struct peer {
	char folder[64], address[96];
	const char *const *answers; /* one a line; "": none; "!...": and hangs up */
	int listener;
	pthread_t thread;
	struct ocs_switch sw;
};

static void *peer_main(void *context)
{
	struct peer *peer = context;
	int fd = accept(peer->listener, NULL, NULL);
	const char *const *answer = peer->answers;
	char c;

	while (fd >= 0 && read(fd, &c, 1) == 1) {
		if (c != '\n' || !*answer)
			continue;
		send(fd, *answer + (**answer == '!'), strlen(*answer) - (**answer == '!'),
		     MSG_NOSIGNAL);
		if (**answer++ == '!')
			break;
	}
	close(fd);
	return NULL;
}

static struct ocs_switch_connection *peer_open(struct peer *peer, const char *const *answers,
					       struct ocs_error *err)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	memset(peer, 0, sizeof(*peer));
	peer->answers = answers;
	strcpy(peer->folder, "/tmp/ocs-scpi-XXXXXX");
	assert_non_null(mkdtemp(peer->folder));
	snprintf(peer->address, sizeof(peer->address), "unix:%s/s", peer->folder);
	strcpy(address.sun_path, peer->address + 5);
	peer->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(peer->listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(peer->listener, 1), 0);
	assert_int_equal(pthread_create(&peer->thread, NULL, peer_main, peer), 0);
	peer->sw = (struct ocs_switch){
		.name = (char *)"s", .driver = (char *)"scpi", .address = peer->address, .size = 4
	};
	return ocs_switch_open(&peer->sw, 300, NULL, NULL, err);
}

static void peer_end(struct peer *peer, struct ocs_switch_connection *connection)
{
	ocs_switch_close(connection);
	pthread_join(peer->thread, NULL);
	close(peer->listener);
	unlink(peer->address + 5);
	rmdir(peer->folder);
}

#define NONE "0,\"No error\"\n"
#define EMPTY "1\n", "(@),(@)\n"

/* A change of 1>5 against each conversation; what came of it. */
static void test_conversations(void **state)
{
	static const struct {
		const char *answers[16]; /* size, *opc?, table, *cls, change, errors, ... */
		int result;
		const char *says;
	} cases[] = {
		{ { "4,4\n", EMPTY, "", "1\n", NONE, "1\n", "(@1),(@5)\n" }, OCS_SWITCH_OK, NULL },
		/* carriage returns, and an answer in pieces with the next */
		{ { "4,4\r\n", "1\r\n", "(@),(@)\r\n", "", "1\r\n0,\"No", " error\"\r\n", "1\r\n",
		    "(@1),(@5)\r\n" },
		  OCS_SWITCH_OK,
		  NULL },
		/* nothing is answered to the change itself, but an error is known */
		{ { "4,4\n", EMPTY, "", "", "-113,\"Undefined header\"\n", EMPTY },
		  OCS_SWITCH_REFUSED,
		  "refused conn:add: -113, Undefined header" },
		{ { "4,4\n", EMPTY, "", "1\n", "-222,\"Data out of range\"\n", EMPTY },
		  OCS_SWITCH_DENIED,
		  "-222, Data out of range" },
		{ { "4,4\n", EMPTY, "", "1\n", "-300,\"Port 5 is stuck\"\n", EMPTY },
		  OCS_SWITCH_DENIED,
		  "Port 5 is stuck" },
		{ { "4,4\n", EMPTY, "", "1\n", "-300,\"Try later\"\n", EMPTY },
		  OCS_SWITCH_REFUSED,
		  "Try later" },
		/* neither done nor refused */
		{ { "4,4\n", EMPTY, "", "", NONE }, OCS_SWITCH_UNKNOWN, "knows of no error" },
		{ { "4,4\n", EMPTY, "", "", "" }, OCS_SWITCH_UNKNOWN, "did not answer" },
		{ { "4,4\n", EMPTY, "", "1\n", "" },
		  OCS_SWITCH_UNKNOWN,
		  "did not answer :syst:err" },
		{ { "4,4\n", EMPTY, "", "2\n", NONE }, OCS_SWITCH_UNKNOWN, "answered '2'" },
		/* one line too many, here and there */
		{ { "4,4\n", "1\n1\n", "(@),(@)\n" }, OCS_SWITCH_UNKNOWN, "answered '1'" },
		{ { "4,4\n4,4\n", EMPTY }, OCS_SWITCH_UNKNOWN, "" },
		{ { "4,4\n", "1\n", "(@),(@)\n(@),(@)\n" }, OCS_SWITCH_UNKNOWN, "not asked for" },
		{ { "4,4\n", EMPTY, "", "1\n1\n", NONE }, OCS_SWITCH_UNKNOWN, "answered '1'" },
		/* said to be done, but it is not */
		{ { "4,4\n", EMPTY, "", "1\n", NONE, EMPTY },
		  OCS_SWITCH_UNKNOWN,
		  "ingress 1 has egress 0 instead of 5" },
		{ { "4,4\n", EMPTY, "", "1\n", NONE, "1\n", "(@1,2),(@5,6)\n" },
		  OCS_SWITCH_UNKNOWN,
		  "ingress 2 has egress 6 instead of 0" },
		/* hangs up: at once, in a line */
		{ { "4,4\n", "!" }, OCS_SWITCH_UNKNOWN, "lost while waiting for *opc?" },
		{ { "4,4\n", "1\n", "!(@1),(" }, OCS_SWITCH_UNKNOWN, "in the middle of a line" },
		{ { "4,4\n", EMPTY, "", "!1\n" }, OCS_SWITCH_UNKNOWN, "lost while waiting" },
		/* no table */
		{ { "4,4\n", "1\n", "(@1,2),(@5)\n" }, OCS_SWITCH_UNKNOWN, "two lists of ports" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct ocs_error err = { 0 };
		struct peer peer;
		struct ocs_switch_connection *connection = peer_open(&peer, cases[i].answers, &err);
		int rc;

		if (!connection)
			fail_msg("case %zu: %s", i, err.text);
		/* what was not asked for has to be there */
		usleep(20000);
		rc = ocs_switch_apply(connection, NULL, 0, &(struct ocs_patch){ 1, 5 }, 1, NULL,
				      &err);
		if (rc != cases[i].result || (cases[i].says && !strstr(err.text, cases[i].says)))
			fail_msg("case %zu: %d, %s", i, rc, err.text);
		if (rc == OCS_SWITCH_UNKNOWN && !strstr(err.text, "instead of"))
			assert_int_equal(ocs_switch_descriptor(connection), -1);
		peer_end(&peer, connection);
	}
}

static void test_health_unknown(void **state)
{
	/* a switch that can be asked neither for status nor for power */
	static const char *const answers[] = { "4,4\n",
					       "",
					       "",
					       "-113,\"Undefined header\"\n",
					       "",
					       "",
					       "-113,\"Undefined header\"\n",
					       NULL };
	struct ocs_error err = { 0 };
	struct ocs_health health;
	struct peer peer;
	struct ocs_switch_connection *connection = peer_open(&peer, answers, &err);

	(void)state;
	assert_non_null(connection);
	if (ocs_switch_health(connection, &health, &err) != OCS_SWITCH_OK)
		fail_msg("%s", err.text);
	assert_int_equal(health.port[1].status, OCS_PORT_UNKNOWN);
	assert_true(isnan(health.port[8].dbm));
	ocs_health_free(&health);
	peer_end(&peer, connection);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),	       cmocka_unit_test(test_long),
		cmocka_unit_test(test_dangerous),      cmocka_unit_test(test_tables),
		cmocka_unit_test(test_values),	       cmocka_unit_test(test_conversations),
		cmocka_unit_test(test_health_unknown),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
