/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The NETCONF driver against switches that know less, or misbehave. */

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "src/switch/netconf/netconf.h"
#include "src/util/error.h"
#include "src/util/net.h"
#include "tests/unit/switch/netconf_peer.h"

#define NS OCS_NETCONF_NS
#define OPSW "http://www.polatis.com/yang/optical-switch"
#define C(uri) "<capability>urn:ietf:params:netconf:" uri "</capability>"
#define HELLO(capabilities)                                   \
	"<hello xmlns=\"" NS "\"><capabilities>" capabilities \
	"</capabilities><session-id>4</session-id></hello>"
#define OLD HELLO(C("base:1.0") C("capability:writable-running:1.0"))
#define NEW HELLO(C("base:1.0") C("base:1.1") C("capability:writable-running:1.0"))
#define REPLY(id, inside) "<rpc-reply xmlns=\"" NS "\" message-id=\"" id "\">" inside "</rpc-reply>"
#define OK REPLY("$", "<ok/>")
#define PORT(id) "<port><port-id>" id "</port-id></port>"
#define SIZE2                                                                             \
	REPLY("$", "<data><port-config xmlns=\"" OPSW "\">" PORT("1") PORT("2") PORT("3") \
			   PORT("4") "</port-config></data>")
#define PAIRS(inside) \
	REPLY("$", "<data><cross-connects xmlns=\"" OPSW "\">" inside "</cross-connects></data>")
#define PAIR(in, out) "<pair><ingress>" in "</ingress><egress>" out "</egress></pair>"
#define FAULT(tag)                                                          \
	REPLY("$", "<rpc-error><error-type>rpc</error-type><error-tag>" tag \
		   "</error-tag><error-severity>error</error-severity></rpc-error>")

struct rig {
	struct netconf_peer peer;
	struct ocs_switch sw;
	struct ocs_switch_connection *connection;
	struct ocs_error err;
	struct ocs_text notices;
};

static void on_notice(void *context, const char *text)
{
	ocs_text_add(&((struct rig *)context)->notices, "%s\n", text);
}

static const struct ocs_patch now[] = { { 1, 3 } }, wanted[] = { { 1, 4 } };

/* The members of PEER that say how it behaves are set. */
static void begin(struct rig *rig, int timeout_ms)
{
	netconf_peer_start(&rig->peer);
	rig->sw = (struct ocs_switch){
		.name = (char *)"s",
		.driver = (char *)"netconf",
		.address = rig->peer.address,
		.credentials = rig->peer.login,
		.host_key = rig->peer.host_key,
		.size = 2,
	};
	rig->connection = ocs_switch_open(&rig->sw, timeout_ms, on_notice, rig, &rig->err);
}

/* Then the peer has heard everything. */
static void finish(struct rig *rig)
{
	ocs_switch_close(rig->connection);
	netconf_peer_stop(&rig->peer);
	ocs_text_free(&rig->notices);
	assert_null(strstr(rig->err.text, "s3cret"));
}

static void end(struct rig *rig)
{
	finish(rig);
	netconf_peer_free(&rig->peer);
}

static void got(const struct rig *rig, const char *part, int times)
{
	int count = 0;

	for (const char *at = rig->peer.received.data; (at = strstr(at, part)); at++)
		count++;
	if (count != times)
		fail_msg("'%s' %d times instead of %d in:\n%s", part, count, times,
			 rig->peer.received.data);
}

/* Without all-or-nothing, what is asked can be repeated after half an edit. */
static void test_old_switch(void **state)
{
	static const char *const answers[] = {
		SIZE2,
		PAIRS(PAIR("1", "3")),
		FAULT("operation-not-supported"),
		OK,
		OK,
		PAIRS(PAIR("1", "4")),
		PAIRS(PAIR("1", "4")),
		OK,
		PAIRS(""),
		NULL,
	};
	struct rig rig = { .peer = { .hello = OLD, .answers = answers, .interactive = true } };

	(void)state;
	begin(&rig, 5000);
	if (!rig.connection)
		fail_msg("%s", rig.err.text);
	assert_int_equal(ocs_switch_apply(rig.connection, now, 1, wanted, 1, NULL, &rig.err),
			 OCS_SWITCH_OK);
	assert_int_equal(ocs_switch_apply(rig.connection, wanted, 1, NULL, 0, NULL, &rig.err),
			 OCS_SWITCH_OK);
	finish(&rig);
	got(&rig, "<lock>", 1); /* asked for once */
	got(&rig, "<unlock>", 0);
	got(&rig, "nc:operation=\"delete\"><ingress>1</ingress></pair>", 2);
	got(&rig, "nc:operation=\"merge\"><ingress>1</ingress><egress>4</egress></pair>", 1);
	got(&rig, "error-option", 0);
	got(&rig, "create-subscription", 0);
	got(&rig, "\n##\n", 0);
	got(&rig, "]]>]]>", 11); /* hello, nine requests, farewell */
	netconf_peer_free(&rig.peer);
}

static void test_remove(void **state)
{
	static const char *const answers[] = {
		SIZE2, PAIRS(PAIR("1", "3")), OK, OK, OK, OK, OK, OK, PAIRS(PAIR("1", "4")), NULL,
	};
	struct rig rig = { .peer = { .hello = NEW, .answers = answers, .chunked = true } };

	(void)state;
	begin(&rig, 5000);
	assert_int_equal(ocs_switch_apply(rig.connection, now, 1, wanted, 1, NULL, &rig.err),
			 OCS_SWITCH_OK);
	finish(&rig);
	got(&rig, "nc:operation=\"remove\"><ingress>1</ingress></pair>", 1);
	got(&rig, "nc:operation=\"merge\"", 1);
	got(&rig, "<lock>", 2);
	got(&rig, "<unlock>", 2);
	got(&rig, "]]>]]>", 1);
	netconf_peer_free(&rig.peer);
}

/* Late and foreign replies and notifications do no harm. */
static void test_noise(void **state)
{
#define NOTE                                                                               \
	"<notification xmlns=\"" OCS_NETCONF_NOTIFICATION_NS "\"><eventTime>x</eventTime>" \
	"<e/></notification>"
	static const char *const answers[] = {
		REPLY("99", "<ok/>") "|" NOTE "|" SIZE2 "|" SIZE2 "|" REPLY("$", "<ok/>"),
		NOTE "|" FAULT("old") "|",
		NULL,
	};
	static const char *const second[] = {
		SIZE2, REPLY("1", "<ok/>") "|" PAIRS(PAIR("1", "3")) "|" PAIRS(""), NULL
	};
	struct rig rig = { .peer = { .hello = NEW, .answers = second, .chunked = true } };
	struct ocs_table table;

	(void)state;
	begin(&rig, 5000);
	assert_int_equal(ocs_switch_read(rig.connection, &table, &rig.err), OCS_SWITCH_OK);
	assert_int_equal(table.out[1], 3);
	ocs_table_free(&table);
	end(&rig);
	memset(&rig, 0, sizeof(rig));
	rig.peer = (struct netconf_peer){ .hello = NEW, .answers = answers, .chunked = true };
	begin(&rig, 5000);
	assert_int_equal(ocs_switch_read(rig.connection, &table, &rig.err), OCS_SWITCH_DENIED);
	assert_string_equal(rig.err.text, "switch s: refused get-config: old");
	end(&rig);
}

/* The password is s3cret; ends in finish look for it as well. */
static void test_repeats_password(void **state)
{
#define TELL(text)                                                                                 \
	"<notification xmlns=\"" OCS_NETCONF_NOTIFICATION_NS "\"><eventTime>x</eventTime><e>" text \
	"</e></notification>"
#define SAYS(text)                                                                      \
	REPLY("$", "<rpc-error><error-tag>operation-failed</error-tag><error-severity>" \
		   "error</error-severity><error-message>" text "</error-message></rpc-error>")
	static const char *const answers[] = {
		SIZE2,
		TELL("ok s3cret") "|" TELL("fine") "|" SAYS("S3CRET is wrong"),
		SAYS("s&#x33;&#99;ret is wrong"),
		SAYS("this is wrong"),
		NULL,
	};
	struct rig rig = { .peer = { .hello = NEW, .answers = answers, .chunked = true } };
	struct ocs_table table;

	(void)state;
	begin(&rig, 5000);
	assert_non_null(rig.connection);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(ocs_switch_read(rig.connection, &table, &rig.err),
				 OCS_SWITCH_DENIED);
		assert_string_equal(
			rig.err.text,
			i < 2 ? "switch s: refused what it was asked; its words are not shown, as they repeat its credentials" :
				"switch s: refused get-config: operation-failed: this is wrong");
	}
	assert_non_null(strstr(rig.notices.data, "(not shown: it repeats the credentials"));
	assert_null(strstr(rig.notices.data, "s3cret"));
	assert_non_null(strstr(rig.notices.data, "e=fine"));
	end(&rig);
}

/* None of these is a session; each says what is wrong. */
static void test_no_session(void **state)
{
	static const char *const none[] = { NULL };
	static const char *const shut[] = { "!", NULL };
	static const char *const empty[] = { REPLY("$", "<data/>"), NULL };
	static const struct {
		struct netconf_peer peer;
		const char *sentence;
		int code;
	} cases[] = {
		{ { .hello = HELLO(C("base:1.0")), .answers = none },
		  "no :writable-running",
		  OCS_ERROR },
		{ { .hello = HELLO(""), .answers = none },
		  "neither NETCONF base:1.0 nor",
		  OCS_ERROR },
		{ { .hello = "<hello/>", .answers = none }, "hello was expected", OCS_ERROR },
		{ { .hello = "220 ftp ready", .answers = none }, "not well-formed", OCS_ERROR },
		{ { .hello = "<!DOCTYPE x [<!ENTITY a 'b'>]><hello>&a;</hello>", .answers = none },
		  "document type",
		  OCS_ERROR },
		{ { .answers = none }, "no NETCONF session: timed out", OCS_UNREACHABLE },
		{ { .hello = OLD, .answers = none }, "did not answer get within", OCS_UNREACHABLE },
		{ { .hello = OLD, .answers = empty },
		  "of the model " OPSW ", which its hello does not announce",
		  OCS_ERROR },
		{ { .hello = OLD, .answers = shut }, "closed the connection", OCS_UNREACHABLE },
		{ { .hello = OLD, .answers = none, .no_subsystem = true },
		  "has no SSH subsystem 'netconf'",
		  OCS_ERROR },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rig rig = { .peer = cases[i].peer };

		begin(&rig, 1500);
		assert_null(rig.connection);
		if (!strstr(rig.err.text, cases[i].sentence) || rig.err.code != cases[i].code)
			fail_msg("%zu: %d '%s'", i, rig.err.code, rig.err.text);
		end(&rig);
	}
}

/* After any of these nobody knows what the next bytes mean. */
static void test_nonsense(void **state)
{
	static const struct {
		const char *answer, *sentence;
		bool raw;
	} cases[] = {
		{ "<rpc-reply xmlns=\"" NS "\" message-id=\"$\"><ok></rpc-reply>",
		  "not well-formed", false },
		{ "\n#5\n<ok/>\n#", "did not answer", true },
		{ "hello", "no valid chunk", true },
		{ "\n#99999999999\n", "no valid chunk", true },
		{ "<rpc-reply xmlns=\"" NS "\"><rpc-error><error-tag>missing-attribute</error-tag>"
		  "</rpc-error></rpc-reply>",
		  "could not read a request: missing-attribute", false },
		{ "<rpc xmlns=\"" NS "\"><get/></rpc>", "no reply and no notification", false },
		{ "!", "closed the connection", false },
		{ PAIRS(PAIR("1", "9")), "1>9, which a 2x2 switch cannot have", false },
		{ PAIRS(PAIR("", "3")), "a pair without ingress or egress", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		static const char size_raw[] = "\n#%zu\n%s\n##\n";
		char *size = cases[i].raw ? ocs_asprintf(size_raw, strlen(SIZE2), SIZE2) :
					    ocs_strdup(SIZE2);
		const char *const answers[] = { size, cases[i].answer, NULL };
		struct rig rig = { .peer = { .hello = NEW,
					     .answers = answers,
					     .chunked = true,
					     .raw = cases[i].raw } };
		struct ocs_table table;

		begin(&rig, 1500);
		if (!rig.connection)
			fail_msg("%zu: %s", i, rig.err.text);
		assert_int_equal(ocs_switch_read(rig.connection, &table, &rig.err),
				 OCS_SWITCH_UNKNOWN);
		if (!strstr(rig.err.text, cases[i].sentence))
			fail_msg("%zu: '%s'", i, rig.err.text);
		end(&rig);
		free(size);
	}
}

/* A switch that is not done with the hello when the first request comes. */
static void test_slow_hello(void **state)
{
	static const char *const answers[] = { SIZE2, NULL };
	struct rig rig = {
		.peer = { .hello = NEW, .answers = answers, .chunked = true, .slow = true }
	};

	(void)state;
	begin(&rig, 500);
	/* on a machine that is busy the pause may be for nothing */
	for (int i = 0; i < 5 && !rig.connection; i++)
		rig.connection = ocs_switch_open(&rig.sw, 500, NULL, NULL, &rig.err);
	if (!rig.connection)
		fail_msg("%s", rig.err.text);
	end(&rig);
}

/* Notifications without end do not hold the deadline up. */
static void test_flood(void **state)
{
	static const char *const answers[] = { SIZE2, NULL };
	struct rig rig = {
		.peer = { .hello = NEW, .answers = answers, .chunked = true, .flood = true }
	};
	struct ocs_table table;
	int64_t start;

	(void)state;
	begin(&rig, 1000);
	assert_non_null(rig.connection);
	start = ocs_now_ns();
	assert_int_equal(ocs_switch_read(rig.connection, &table, &rig.err), OCS_SWITCH_UNKNOWN);
	assert_string_equal(rig.err.text, "switch s: did not answer get-config within 1000 ms");
	assert_true(ocs_now_ns() - start < 20000000000LL);
	end(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_old_switch),
		cmocka_unit_test(test_remove),
		cmocka_unit_test(test_noise),
		cmocka_unit_test(test_no_session),
		cmocka_unit_test(test_repeats_password),
		cmocka_unit_test(test_nonsense),
		cmocka_unit_test(test_flood),
		cmocka_unit_test(test_slow_hello),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
