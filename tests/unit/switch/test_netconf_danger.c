/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Every message that the NETCONF driver sends, over random operations, right and
 * wrong, as the emulator takes it off the wire: each is one of a short list, and its
 * ports are those of the caller. */

#include <json-c/json.h>
#include <limits.h>
#include <regex.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "src/switch/driver.h"
#include "src/util/error.h"
#include "src/util/text.h"
#include "tests/unit/switch/emulator_peer.h"

#define SIZE 32
#define OWN 16 /* the caller's ports: ingress 1..16, egress 33..48 */
#define ROUNDS 400

#define NS "urn:ietf:params:xml:ns:netconf:base:1\\.0"
#define MODEL "http://www\\.polatis\\.com/yang/optical-switch"
#define IN "<ingress>([1-9]|1[0-6])</ingress>"
#define OUT "<egress>(3[3-9]|4[0-8])</egress>"
#define RUNNING "<target><running/></target>"
#define PORTS(container, leaf)                                                                   \
	"<get><filter type=\"subtree\"><" container " xmlns=\"" MODEL "\"><port><port-id/>" leaf \
	"</port></" container "></filter></get>"

static const char allowed[] =
	"^<rpc xmlns=\"" NS "\" message-id=\"[1-9][0-9]*\">("
	"<create-subscription xmlns=\"urn:ietf:params:xml:ns:netconf:notification:1\\.0\"/>"
	"|<close-session/>|<lock>" RUNNING "</lock>|<unlock>" RUNNING "</unlock>"
	"|" PORTS("port-config", "(<status/>)?") "|" PORTS(
		"opm-power",
		"<power/>") "|<get-config><source><running/></source><filter type=\"subtree\"><cross-connects xmlns=\"" MODEL
			    "\"/></filter></get-config>"
			    "|<edit-config>" RUNNING "<default-operation>merge</default-operation>"
			    "<error-option>rollback-on-error</error-option><config>"
			    "<cross-connects xmlns=\"" MODEL "\" xmlns:nc=\"" NS "\">"
			    "((<pair nc:operation=\"delete\">" IN "</pair>)+"
			    "|(<pair nc:operation=\"create\">" IN OUT "</pair>)+)"
			    "</cross-connects></config></edit-config>)</rpc> *$";

static unsigned int seed = 7;

static int below(int limit)
{
	seed = seed * 1103515245 + 12345;
	return (int)((seed >> 16) % (unsigned int)limit);
}

/* The caller's own, now and then nonsense. */
static int port(bool egress)
{
	static const int strange[] = { 0, -1, 65, 1000, INT_MAX, INT_MIN, -33 };

	if (below(12) == 0)
		return strange[below(7)];
	return 1 + below(OWN) + (egress ? SIZE : 0);
}

static size_t patches(struct ocs_patch *list)
{
	size_t count = (size_t)below(6);

	for (size_t i = 0; i < count; i++)
		list[i] = (struct ocs_patch){ port(false), port(true) };
	return count;
}

static void operate(struct ocs_switch_connection *connection)
{
	const struct ocs_switch_driver *driver = connection->driver;
	struct ocs_patch first[8], second[8];
	size_t n = patches(first), m = patches(second), used;
	struct ocs_health health;
	struct ocs_error err;

	switch (below(5)) {
	case 0:
		driver->remove(connection, first, n, &used, &err);
		break;
	case 1:
		driver->add(connection, first, n, &used, &err);
		break;
	case 2:
		if (ocs_switch_health(connection, &health, &err) == OCS_SWITCH_OK)
			ocs_health_free(&health);
		break;
	default:
		ocs_switch_apply(connection, first, n, second, m, NULL, &err);
	}
}

/* Judges every request of the log; how many there were. */
static int judge(char *log, const regex_t *expression)
{
	char *rest = log, *line;
	int count = 0;

	while ((line = strsep(&rest, "\n"))) {
		struct json_object *entry = json_tokener_parse(line), *value;

		if (entry && json_object_object_get_ex(entry, "event", &value) &&
		    !strcmp(json_object_get_string(value), "command")) {
			const char *text;

			json_object_object_get_ex(entry, "text", &value);
			text = json_object_get_string(value);
			if (regexec(expression, text, 0, NULL, 0))
				fail_msg("sent: %s", text);
			count++;
		}
		json_object_put(entry);
	}
	return count;
}

static void test_all_messages(void **state)
{
	static const char *const faults[] = { "none", "drop count 1", "deny count 1",
					      "partial count 1", "duplicate count 2" };
	static const char *const arguments[] = {
		"--switch",
		"a=127.0.0.1:0,32,netconf",
		"--delay",
		"0",
		"--login",
		"%s/login",
		"--known-hosts",
		"%s/known",
		NULL,
	};
	struct ocs_switch sw = { .name = (char *)"a", .driver = (char *)"netconf", .size = SIZE };
	struct ocs_switch_connection *connection = NULL;
	char login[96], known[96], address[128], *log;
	struct ocs_error err = { 0 };
	struct emulator e;
	regex_t expression;
	int count;

	(void)state;
	emulator_folder(&e);
	snprintf(login, sizeof(login), "%s/login", e.folder);
	snprintf(known, sizeof(known), "%s/known", e.folder);
	assert_int_equal(ocs_file_write(login, "user=a\npassword=b\n", 18, 0600, &err), 0);
	emulator_start(&e, arguments);
	snprintf(address, sizeof(address), "%s", emulator_address(&e, "a"));
	sw.address = address;
	sw.credentials = login;
	sw.known_hosts = known;
	emulator_says(&e, "patch a 20 60", EMULATOR_OK); /* somebody else's */
	for (int i = 0; i < ROUNDS; i++) {
		if (connection && ocs_switch_descriptor(connection) < 0) {
			ocs_switch_close(connection);
			connection = NULL;
		}
		if (!connection)
			connection = ocs_switch_open(&sw, 5000, NULL, NULL, &err);
		if (!connection)
			fail_msg("%s", err.text);
		if (below(8) == 0) {
			char *command = ocs_asprintf("fault a %s", faults[below(5)]);

			emulator_says(&e, command, EMULATOR_OK);
			free(command);
		}
		operate(connection);
		if (i % 50 == 49) {
			emulator_says(&e, "fault a none", EMULATOR_OK);
			ocs_switch_close(connection);
			connection = NULL;
		}
	}
	ocs_switch_close(connection);
	log = emulator_log(&e);
	assert_null(strstr(log, "deleted-all"));
	assert_null(strstr(log, "\"break\",\"in\":20"));
	assert_int_equal(regcomp(&expression, allowed, REG_EXTENDED | REG_NOSUB), 0);
	count = judge(log, &expression);
	assert_true(count > ROUNDS);
	regfree(&expression);
	free(log);
	assert_int_equal(emulator_stop(&e, SIGTERM), 0);
	emulator_remove(&e);
}

/* The judge itself can say no. */
static void test_judge(void **state)
{
	static const char *const bad[] = {
		"<rpc xmlns=\"urn:ietf:params:xml:ns:netconf:base:1.0\" message-id=\"1\"><get/></rpc>",
		"<rpc xmlns=\"urn:ietf:params:xml:ns:netconf:base:1.0\" message-id=\"1\"><commit/></rpc>",
		("<rpc xmlns=\"urn:ietf:params:xml:ns:netconf:base:1.0\" message-id=\"1\"><lock><target>"
		 "<running/></target></lock></rpc><rpc/>"),
	};
	regex_t expression;

	(void)state;
	assert_int_equal(regcomp(&expression, allowed, REG_EXTENDED | REG_NOSUB), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_not_equal(regexec(&expression, bad[i], 0, NULL, 0), 0);
	regfree(&expression);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_judge),
		cmocka_unit_test(test_all_messages),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
