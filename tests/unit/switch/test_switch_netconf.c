/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* NETCONF without a network: frames, messages, and the last look at them. */

#include <setjmp.h>
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "src/switch/netconf/netconf.h"
#include "src/util/error.h"
#include "src/util/text.h"

#define NS OCS_NETCONF_NS
#define OPSW "http://www.polatis.com/yang/optical-switch"
#define REPLY(inside) "<rpc-reply xmlns=\"" NS "\" message-id=\"7\">" inside "</rpc-reply>"
#define DATA(inside) REPLY("<data>" inside "</data>")
#define PAIRS(inside) DATA("<cross-connects xmlns=\"" OPSW "\">" inside "</cross-connects>")
#define PAIR(in, out) "<pair><ingress>" in "</ingress><egress>" out "</egress></pair>"

/* All messages of STREAM, in pieces of STEP bytes, one a line; NULL: refused. */
static char *cut(bool chunked, const char *stream, size_t step)
{
	struct ocs_netconf_framer framer = { .chunked = chunked };
	size_t length = strlen(stream);
	struct ocs_text all = { 0 };

	for (size_t at = 0; at < length; at += step) {
		size_t left = length - at < step ? length - at : step, n;
		const char *data = stream + at;
		char *message;
		int rc;

		while ((rc = ocs_netconf_framer_take(&framer, &data, &left, &message, &n, NULL)) >
		       0) {
			assert_int_equal(strlen(message), n);
			ocs_text_add(&all, "%s|", message);
			free(message);
		}
		if (rc < 0) {
			ocs_text_free(&all);
			ocs_netconf_framer_free(&framer);
			return NULL;
		}
		assert_int_equal(left, 0);
	}
	ocs_text_add(&all, "%zu", framer.used);
	ocs_netconf_framer_free(&framer);
	return ocs_text_take(&all);
}

static void cuts(bool chunked, const char *stream, const char *wanted)
{
	for (size_t step = 1; step < 40; step++) {
		char *all = cut(chunked, stream, step);

		if (!wanted)
			assert_null(all);
		else
			assert_string_equal(all, wanted);
		free(all);
	}
}

static void test_frames(void **state)
{
	char *framed;
	size_t length;

	(void)state;
	cuts(false, "<a/>]]>]]><b>]]></b>]]>]]>]]>]]>tail", "<a/>|<b>]]></b>||4");
	cuts(true, "\n#4\n<a/>\n##\n\n#1\n<\n#3\nb/>\n##\n", "<a/>|<b/>|0");
	cuts(true, "\n#10\n]]>]]>\n##\n\n##\n", "]]>]]>\n##\n|0");
	cuts(true, "\n#4\n<a/>", "4");
	cuts(true, "\n##\n", NULL); /* a message of no chunk */
	cuts(true, "\n#04\n<a/>\n##\n", NULL);
	cuts(true, "\n#\n<a/>\n##\n", NULL);
	cuts(true, "\n#4294967296\n", NULL);
	cuts(true, "#4\n<a/>\n##\n", NULL);
	cuts(true, "\n#4 \n<a/>\n##\n", NULL);
	cuts(true, "<a/>]]>]]>", NULL);
	framed = ocs_netconf_frame(true, "<hello/>", &length);
	assert_string_equal(framed, "\n#8\n<hello/>\n##\n");
	assert_int_equal(length, strlen(framed));
	free(framed);
	framed = ocs_netconf_frame(false, "<hello/>", &length);
	assert_string_equal(framed, "<hello/>]]>]]>");
	free(framed);
}

/* What has no end is given up, not stored. */
static void test_endless(void **state)
{
	struct ocs_netconf_framer framer = { 0 };
	struct ocs_error err = { 0 };
	char block[65536], *message;
	int rc = 0, blocks = 0;
	size_t n;

	(void)state;
	memset(block, 'x', sizeof(block));
	while (!rc) {
		const char *data = block;
		size_t left = sizeof(block);

		rc = ocs_netconf_framer_take(&framer, &data, &left, &message, &n, &err);
		assert_true(++blocks <= OCS_NETCONF_MESSAGE_LIMIT / (int)sizeof(block) + 1);
	}
	assert_int_equal(rc, -1);
	assert_string_equal(err.text, "sends a message that has no end");
	ocs_netconf_framer_free(&framer);
}

static void has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("'%s' does not hold '%s'", text, part);
}

static void test_make(void **state)
{
	const struct ocs_netconf_dialect *dialect = ocs_netconf_dialect_find(NULL);
	const struct ocs_patch patches[] = { { 20, 53 }, { 21, 54 } };
	struct ocs_error err = { 0 };
	char *text;

	(void)state;
	text = ocs_netconf_make_edit(3, dialect, OCS_NETCONF_DELETE, true, 32, patches, 2, &err);
	has(text, "message-id=\"3\"");
	has(text, "<target><running/></target><default-operation>merge</default-operation>"
		  "<error-option>rollback-on-error</error-option>");
	has(text, "<cross-connects xmlns=\"" OPSW "\" xmlns:nc=\"" NS "\">"
		  "<pair nc:operation=\"delete\"><ingress>20</ingress></pair>"
		  "<pair nc:operation=\"delete\"><ingress>21</ingress></pair></cross-connects>");
	assert_false(ocs_netconf_dangerous(text, strlen(text)));
	free(text);
	text = ocs_netconf_make_edit(4, dialect, OCS_NETCONF_CREATE, false, 32, patches, 1, &err);
	has(text, "<pair nc:operation=\"create\"><ingress>20</ingress><egress>53</egress></pair>");
	assert_null(strstr(text, "error-option"));
	assert_false(ocs_netconf_dangerous(text, strlen(text)));
	free(text);
	assert_null(
		ocs_netconf_make_edit(5, dialect, OCS_NETCONF_DELETE, true, 32, patches, 0, &err));
	has(err.text, "empty batch");
	assert_null(
		ocs_netconf_make_edit(5, dialect, OCS_NETCONF_DELETE, true, 20, patches, 2, &err));
	assert_string_equal(err.text, "patch 20>53 does not exist on a 20x20 switch");
	text = ocs_netconf_make_read(6, dialect, &dialect->patches, true);
	has(text, "<get-config><source><running/></source><filter type=\"subtree\">"
		  "<cross-connects xmlns=\"" OPSW "\"/></filter></get-config>");
	assert_false(ocs_netconf_dangerous(text, strlen(text)));
	free(text);
	text = ocs_netconf_make_read(6, dialect, &dialect->power, true);
	has(text, "<opm-power xmlns=\"" OPSW "\"><port><port-id/><power/></port></opm-power>");
	free(text);
	dialect = ocs_netconf_dialect_find("OCP");
	text = ocs_netconf_make_read(6, dialect, &dialect->patches, true);
	has(text, "<get><filter type=\"subtree\"><connections xmlns=");
	free(text);
	assert_null(ocs_netconf_dialect_find("other"));
}

/* Only what names its pairs passes. */
static void test_danger(void **state)
{
#define RPC(inside) "<rpc xmlns=\"" NS "\" xmlns:nc=\"" NS "\" message-id=\"1\">" inside "</rpc>"
#define EDIT(attributes, inside)                                                              \
	RPC("<edit-config><target><running/></target>"                                        \
	    "<default-operation>merge</default-operation><config><cross-connects " attributes \
	    " xmlns=\"" OPSW "\">" inside "</cross-connects></config></edit-config>")
#define DELETE(inside) "<pair nc:operation=\"delete\">" inside "</pair>"
	static const char *const good[] = {
		EDIT("", DELETE("<ingress>1</ingress>")),
		EDIT("",
		     "<pair nc:operation=\"create\"><ingress>1</ingress><egress>40</egress></pair>"),
		RPC("<get/>"),
		RPC("<lock><target><running/></target></lock>"),
		RPC("<close-session/>"),
	};
	static const char *const bad[] = {
		"",
		"DLT-PATCH::ALL:1:;",
		RPC(""),
		RPC("<get/><get/>"),
		EDIT("", ""),
		EDIT("nc:operation=\"delete\"", DELETE("<ingress>1</ingress>")),
		EDIT("nc:operation=\"replace\"", ""),
		EDIT("", DELETE("")),
		EDIT("", DELETE("<ingress/>")),
		EDIT("", DELETE("<ingress>*</ingress>")),
		EDIT("", DELETE("<ingress>1 or 2</ingress>")),
		EDIT("", DELETE("<ingress nc:operation=\"delete\">1</ingress>")),
		EDIT("", DELETE("<ingress>1</ingress><egress>40</egress>")),
		EDIT("",
		     "<pair nc:operation=\"replace\"><ingress>1</ingress><egress>40</egress></pair>"),
		EDIT("", "<pair><ingress>1</ingress><egress>40</egress></pair>"),
		EDIT("", DELETE("<ingress>1</ingress>") DELETE("")),
		RPC("<edit-config><target><running/></target><default-operation>replace"
		    "</default-operation><config><c>" DELETE(
			    "<ingress>1</ingress>") "</c></config></edit-config>"),
		RPC("<edit-config><target><running/></target><config><c>" DELETE(
			"<ingress>1</ingress>") "</c></config></edit-config>"),
		RPC("<edit-config><target><candidate/></target><default-operation>merge"
		    "</default-operation><config><c>" DELETE(
			    "<ingress>1</ingress>") "</c></config></edit-config>"),
		RPC("<edit-config><target><running/></target><default-operation>merge"
		    "</default-operation><config><c>" DELETE(
			    "<ingress>1</ingress>") "</c>"
						    "<d nc:operation=\"delete\"/></config></edit-config>"),
		RPC("<copy-config><target><running/></target><source><startup/></source></copy-config>"),
		RPC("<delete-config><target><startup/></target></delete-config>"),
		RPC("<kill-session><session-id>3</session-id></kill-session>"),
		RPC("<commit/>"),
		RPC("<discard-changes/>"),
		RPC("<system-restart xmlns=\"" OPSW "\"/>"),
		RPC("<get xmlns=\"" OPSW "\"/>"),
	};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		if (ocs_netconf_dangerous(good[i], strlen(good[i])))
			fail_msg("taken for dangerous: %s", good[i]);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (!ocs_netconf_dangerous(bad[i], strlen(bad[i])))
			fail_msg("taken for harmless: %s", bad[i]);
}

static void test_hello(void **state)
{
#define HELLO(capabilities, rest)                                 \
	"\n<?xml version=\"1.0\"?><nc:hello xmlns:nc=\"" NS "\">" \
	"<nc:capabilities>" capabilities "</nc:capabilities>" rest "</nc:hello>"
#define C(uri) "<nc:capability> " uri "\n</nc:capability>"
#define SESSION "<nc:session-id>4</nc:session-id>"
	static const char full[] = HELLO(
		C("urn:ietf:params:netconf:base:1.0") C("urn:ietf:params:netconf:base:1.1")
			C("urn:ietf:params:netconf:capability:writable-running:1.0")
				C("urn:ietf:params:netconf:capability:rollback-on-error:1.0") C(
					"urn:ietf:params:netconf:capability:interleave:1.0")
					C(OPSW "?module=optical-switch&amp;revision=2016-01-01"),
		SESSION);
	static const char *const bad[][2] = {
		{ HELLO("", SESSION), "neither" },
		{ HELLO(C("urn:ietf:params:netconf:base:1.10"), SESSION), "neither" },
		{ HELLO(C("urn:ietf:params:netconf:base:1.0"), ""), "session-id" },
		{ REPLY("<ok/>"), "hello was expected" },
		{ "SSH-2.0", "not well-formed" },
		{ "<!DOCTYPE a [<!ENTITY b \"c\">]><hello/>", "document type" },
	};
	const struct ocs_netconf_dialect *dialect = ocs_netconf_dialect_find("polatis");
	struct ocs_netconf_hello hello;
	struct ocs_error err = { 0 };

	(void)state;
	assert_int_equal(ocs_netconf_parse_hello(dialect, full, strlen(full), &hello, &err), 0);
	assert_true(hello.base_1_0 && hello.base_1_1 && hello.writable_running && hello.rollback &&
		    hello.notifications && hello.model);
	assert_int_equal(hello.session, 4);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(ocs_netconf_parse_hello(dialect, bad[i][0], strlen(bad[i][0]),
							 &hello, &err),
				 -1);
		has(err.text, bad[i][1]);
	}
}

static void read_table(const char *dialect, const char *text, struct ocs_table *table, int *pending,
		       const char *error)
{
	struct ocs_netconf_message message;
	struct ocs_error err = { 0 };

	ocs_table_init(table, 32);
	assert_int_equal(ocs_netconf_parse(text, strlen(text), &message, &err), 0);
	assert_int_equal(message.kind, OCS_NETCONF_REPLY);
	assert_int_equal(ocs_netconf_parse_table(ocs_netconf_dialect_find(dialect), &message, table,
						 pending, &err),
			 error ? -1 : 0);
	if (error)
		has(err.text, error);
	ocs_netconf_message_free(&message);
}

static void test_table(void **state)
{
	static const char *const bad[][2] = {
		{ PAIRS(PAIR("1", "33") PAIR("2", "33")), "2>33 for a port that has another peer" },
		{ PAIRS(PAIR("1", "33") PAIR("1", "34")), "1>34 for a port that has another peer" },
		{ PAIRS(PAIR("33", "34")), "33>34, which a 32x32 switch cannot have" },
		{ PAIRS(PAIR("1", "65")), "cannot have" },
		{ PAIRS(PAIR("1", "x")), "without" },
		{ PAIRS("<pair/>"), "a pair without ingress or egress" },
		{ REPLY("<ok/>"), "without data" },
		{ REPLY(""), "without data" },
	};
	struct ocs_table table;
	int pending;

	(void)state;
	read_table(NULL, PAIRS(PAIR("1", "33") "<other/>" PAIR(" 32\n", "64")), &table, &pending,
		   NULL);
	assert_int_equal(table.out[1], 33);
	assert_int_equal(table.out[32], 64);
	assert_int_equal(table.out[2], 0);
	ocs_table_free(&table);
	read_table(NULL, DATA(""), &table, &pending, NULL);
	ocs_table_free(&table);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		read_table(NULL, bad[i][0], &table, &pending, bad[i][1]);
		ocs_table_free(&table);
	}
#define OCP(state)                                                                \
	"<connection><ingress-port>3</ingress-port><egress-port>40</egress-port>" \
	"<status>" state "</status></connection>"
#define OCPS(inside) \
	DATA("<connections xmlns=\"urn:ocp:yang:optical-circuit-switch\">" inside "</connections>")
	read_table("ocp", OCPS(OCP("CONNECTED")), &table, &pending, NULL);
	assert_int_equal(table.out[3], 40);
	assert_int_equal(pending, 0);
	ocs_table_free(&table);
	read_table("ocp", OCPS(OCP("PENDING_CONNECTION")), &table, &pending, NULL);
	assert_int_equal(pending, 1);
	ocs_table_free(&table);
}

static void test_faults(void **state)
{
#define ERROR(severity, rest)                                                              \
	"<rpc-error><error-type>application</error-type>" rest "<error-severity>" severity \
	"</error-severity></rpc-error>"
	static const char text[] = REPLY(ERROR("warning", "<error-tag>too-late</error-tag>") ERROR(
		"error", "<error-tag>lock-denied</error-tag><error-message xml:lang=\"en\">"
			 "held\n   by  \xc3\xa4 another</error-message><error-path>/a/b[c='20']"
			 "</error-path><error-info><session-id>9</session-id></error-info>")
						 ERROR("error", "<error-tag>second</error-tag>"));
	struct ocs_netconf_message message;
	struct ocs_error err = { 0 };

	(void)state;
	assert_int_equal(ocs_netconf_parse(text, strlen(text), &message, &err), 0);
	assert_true(message.failed && message.has_id);
	assert_int_equal(message.id, 7);
	assert_string_equal(message.fault.tag, "lock-denied");
	assert_string_equal(message.fault.message, "held by ?? another");
	assert_string_equal(message.fault.path, "/a/b[c='20']");
	assert_int_equal(message.fault.session, 9);
	ocs_netconf_message_free(&message);
}

static void test_notification(void **state)
{
	static const char text[] =
		"<notification xmlns=\"" OCS_NETCONF_NOTIFICATION_NS "\">"
		"<eventTime>2026-11-21T10:00:00Z</eventTime><port-changed xmlns=\"" OPSW "\">"
		"<port-id>3</port-id><status>FAILED</status></port-changed></notification>";
	struct ocs_netconf_message message;

	(void)state;
	assert_int_equal(ocs_netconf_parse(text, strlen(text), &message, NULL), 0);
	assert_int_equal(message.kind, OCS_NETCONF_NOTIFICATION);
	assert_string_equal(message.notice, "port-changed port-id=3 status=FAILED");
	ocs_netconf_message_free(&message);
}

static void test_ports(void **state)
{
#define PORT(id, rest) "<port><port-id>" id "</port-id>" rest "</port>"
#define PORTS(inside) DATA("<port-config xmlns=\"" OPSW "\">" inside "</port-config>")
	static const char text[] = PORTS(PORT("1", "<status>ENABLED</status>") PORT(
		"2", "<status>opsw:PORT_DISABLED</status>") PORT("3", "<status>FAILED</status>")
						 PORT("4", "<status>HUMMING</status>"));
	static const char power[] =
		DATA("<opm-power xmlns=\"" OPSW "\">" PORT("1", "<power>-2.31</power>")
			     PORT("2", "<power>-inf</power>")
				     PORT("3", "<power>dark</power>") "</opm-power>");
	static const char *const bad[] = {
		PORTS(PORT("1", "") PORT("2", "") PORT("4", "")),
		PORTS(PORT("1", "")),
		PORTS(""),
		PORTS(PORT("0", "") PORT("1", "")),
		DATA(""),
	};
	const struct ocs_netconf_dialect *dialect = ocs_netconf_dialect_find(NULL);
	struct ocs_netconf_message message;
	struct ocs_error err = { 0 };
	struct ocs_health health;
	int size;

	(void)state;
	ocs_health_init(&health, 2);
	assert_int_equal(ocs_netconf_parse(text, strlen(text), &message, &err), 0);
	assert_int_equal(ocs_netconf_parse_size(dialect, &message, &size, &err), 0);
	assert_int_equal(size, 2);
	assert_int_equal(ocs_netconf_parse_status(dialect, &message, &health, &err), 0);
	assert_int_equal(health.port[1].status, OCS_PORT_TUNED);
	assert_int_equal(health.port[2].status, OCS_PORT_BLOCKED);
	assert_int_equal(health.port[3].status, OCS_PORT_FAILED);
	assert_int_equal(health.port[4].status, OCS_PORT_UNKNOWN);
	ocs_netconf_message_free(&message);
	assert_int_equal(ocs_netconf_parse(power, strlen(power), &message, &err), 0);
	assert_int_equal(ocs_netconf_parse_power(dialect, &message, &health, &err), 0);
	assert_true(fabs(health.port[1].dbm + 2.31) < 1e-9);
	assert_true(isnan(health.port[2].dbm) && isnan(health.port[3].dbm) &&
		    isnan(health.port[4].dbm));
	ocs_netconf_message_free(&message);
	ocs_health_free(&health);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(ocs_netconf_parse(bad[i], strlen(bad[i]), &message, &err), 0);
		assert_int_equal(ocs_netconf_parse_size(dialect, &message, &size, &err), -1);
		ocs_netconf_message_free(&message);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frames), cmocka_unit_test(test_endless),
		cmocka_unit_test(test_make),   cmocka_unit_test(test_danger),
		cmocka_unit_test(test_hello),  cmocka_unit_test(test_table),
		cmocka_unit_test(test_faults), cmocka_unit_test(test_notification),
		cmocka_unit_test(test_ports),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
