/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Every byte that every driver sends, over random operations, right and wrong: each
 * command is one of a short list, its ports are those of the caller, and what
 * belongs to others stays. */

#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <regex.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>

#include "src/switch/driver.h"
#include "src/util/error.h"
#include "src/util/net.h"
#include "src/util/text.h"
#include "tests/unit/switch/emulator_peer.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define SIZE 32
#define OWN 16 /* the caller's ports: ingress 1..16, egress 33..48 */
#define ROUNDS 1000

/* The caller's ports as each switch calls them, one and a list. */
#define N "([1-9]|1[0-6])"
#define E "(3[3-9]|4[0-8])"
#define LIST(port, between) port "(" between port ")*"
#define T ":[0-9]+"
#define C "1\\.[12]\\.[1-8]"
#define GI "100(0[1-9]|1[0-6])"
#define GE "200(0[1-9]|1[0-6])"
#define LOGIN "ACT-USER::admin" T "::root|CANC-USER::admin" T ":"

static const struct speaker {
	const char *name, *driver, *dialect, *end;
	const char *commands; /* all there may be, as a regular expression */
} speakers[] = {
	{ "polatis", "tl1", "polatis", ";",
	  "^(" LOGIN "|RTRV-EQPT::SYSTEM" T ":::PARAMETER=SIZE|RTRV-PATCH::" T ":"
	  "|DLT-PATCH::" LIST(N, "&") T ":|ENT-PATCH::" LIST(N, "&") "," LIST(E, "&") T
	  ":"
	  "|RTRV-PORT-(SHUTTER|POWER)::1&&64" T ":)$" },
	{ "calient", "tl1", "calient", ";",
	  "^(" LOGIN "|RTRV-CRS::" T "::ALL|RTRV-PORT-SUM::0" T ":"
	  "|ENT-CRS::" C "," C T "::OCS,1WAY|ACT-CRS::" C "," C T "::" C ">" C ",OCS"
	  "|(CANC|DLT)-CRS::" C "," C T "::,OCS," C ">" C ")$" },
	{ "glimmerglass", "tl1", "glimmerglass", ";",
	  "^(" LOGIN "|RTRV-SYSTEM-INFO::" T ":|RTRV-CRS-FIBER::ALL" T ":"
	  "|(ENT|DLT)-CRS-FIBER::" LIST(GI, "&") "," LIST(GE, "&") T ":)$" },
	{ "scpi", "scpi", NULL, "\n",
	  "^(\\*opc\\?|\\*cls|:oxc:swit:size\\?|:oxc:swit:conn:stat\\?|:syst:err:all\\?"
	  "|:oxc:swit:conn:(add|sub) \\(@" LIST(N, ",") "\\),\\(@" LIST(
		  E, ",") "\\);\\*opc\\?"
			  "|(:oxc:swit:port:stat|:opm:pow)\\? \\(@[0-9,]+\\))$" },
};

/* Stands between driver and switch and keeps what the driver says. */
struct tap {
	char address[128];
	char to[128];
	int listener;
	pthread_t thread;
	pthread_mutex_t lock;
	struct ocs_text heard;
};

static bool pass_on(struct tap *tap, int from, int to, bool keep)
{
	char data[4096];
	ssize_t n = read(from, data, sizeof(data));

	if (n <= 0)
		return false;
	if (keep) {
		pthread_mutex_lock(&tap->lock);
		ocs_text_add(&tap->heard, "%.*s", (int)n, data);
		pthread_mutex_unlock(&tap->lock);
	}
	return send(to, data, (size_t)n, MSG_NOSIGNAL) == n;
}

static void serve(struct tap *tap, int driver)
{
	int sw = ocs_net_connect(tap->to, 1000, NULL);
	struct pollfd fds[2] = { { driver, POLLIN, 0 }, { sw, POLLIN, 0 } };

	while (sw >= 0 && poll(fds, 2, 20000) > 0) {
		if (fds[0].revents && !pass_on(tap, driver, sw, true))
			break;
		if (fds[1].revents && !pass_on(tap, sw, driver, false))
			break;
	}
	if (sw >= 0)
		close(sw);
	close(driver);
}

static void *tap_main(void *context)
{
	struct tap *tap = context;
	int fd;

	while ((fd = accept(tap->listener, NULL, NULL)) >= 0)
		serve(tap, fd);
	return NULL;
}

static void tap_start(struct tap *tap, const char *folder, const char *to)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	memset(tap, 0, sizeof(*tap));
	snprintf(tap->address, sizeof(tap->address), "unix:%s/tap", folder);
	snprintf(tap->to, sizeof(tap->to), "%s", to);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/tap", folder);
	pthread_mutex_init(&tap->lock, NULL);
	tap->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(tap->listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(tap->listener, 8), 0);
	assert_int_equal(pthread_create(&tap->thread, NULL, tap_main, tap), 0);
}

static void tap_stop(struct tap *tap)
{
	shutdown(tap->listener, SHUT_RDWR);
	pthread_join(tap->thread, NULL);
	close(tap->listener);
	pthread_mutex_destroy(&tap->lock);
}

static unsigned int number(unsigned int *seed, unsigned int below)
{
	*seed = *seed * 1103515245 + 12345;
	return (*seed >> 16) % below;
}

/* A port of the caller, now and then one that does not exist. */
static int some_port(unsigned int *seed, bool egress)
{
	static const int strange[] = { 0, -1, 65, 1000, INT_MAX, INT_MIN, -33 };

	if (number(seed, 20) == 0)
		return strange[number(seed, COUNT(strange))];
	if (number(seed, 30) == 0)
		egress = !egress;
	return (int)number(seed, OWN) + 1 + (egress ? SIZE : 0);
}

static size_t some_patches(unsigned int *seed, struct ocs_patch *patches)
{
	size_t count = number(seed, 6);

	for (size_t i = 0; i < count; i++)
		patches[i] = (struct ocs_patch){ some_port(seed, false), some_port(seed, true) };
	return count;
}

/* Operations behind the back of the diff: a driver on its own refuses as well. */
static void straight(struct ocs_switch_connection *connection, unsigned int *seed)
{
	struct ocs_patch patches[8];
	size_t count = some_patches(seed, patches), used;
	struct ocs_error err;

	if (number(seed, 4) == 0)
		count = 0;
	if (number(seed, 2))
		connection->driver->remove(connection, patches, count, &used, &err);
	else
		connection->driver->add(connection, patches, count, &used, &err);
}

static void operate(struct ocs_switch_connection *connection, unsigned int *seed)
{
	struct ocs_patch remove[8], add[8];
	size_t nremove = some_patches(seed, remove), nadd = some_patches(seed, add);
	struct ocs_table table = { 0 };
	struct ocs_health health = { 0 };
	struct ocs_error err;

	switch (number(seed, 8)) {
	case 0:
		ocs_switch_read(connection, &table, &err);
		break;
	case 1:
		ocs_switch_health(connection, &health, &err);
		break;
	case 2:
	case 3:
		straight(connection, seed);
		break;
	case 4:
		ocs_switch_listen(connection, 0, &err);
		break;
	default:
		/* half of the time something of its own is to go */
		if (number(seed, 2) && ocs_switch_read(connection, &table, &err) == OCS_SWITCH_OK) {
			nremove = 0;
			for (int in = 1; in <= OWN && nremove < 8; in++)
				if (table.out[in] && number(seed, 2))
					remove[nremove++] = (struct ocs_patch){ in, table.out[in] };
		}
		ocs_switch_apply(connection, remove, nremove, add, nadd, NULL, &err);
	}
	ocs_table_free(&table);
	ocs_health_free(&health);
}

static void storm(struct emulator *e, struct ocs_switch *sw)
{
	static const char *const faults[] = {
		"fault a deny count 2", "fault a partial count 1",   "fault a lost count 1",
		"fault a drop count 1", "fault a duplicate count 2", "reboot a restore",
		"port a 3 refuse",	"port a 40 refuse",	     "port a 3 good",
		"port a 40 good",
	};
	struct ocs_switch_connection *connection = NULL;
	struct ocs_error err = { 0 };
	unsigned int seed = 17;

	for (int round = 0; round < ROUNDS; round++) {
		if (number(&seed, 8) == 0)
			emulator_says(e, faults[number(&seed, COUNT(faults))], EMULATOR_OK);
		if (connection && ocs_switch_descriptor(connection) < 0) {
			ocs_switch_close(connection);
			connection = NULL;
		}
		if (!connection)
			connection = ocs_switch_open(sw, 200, NULL, NULL, &err);
		if (connection)
			operate(connection, &seed);
	}
	ocs_switch_close(connection);
}

/* Judges what was heard; returns how many commands it was. */
static size_t judge(const struct speaker *speaker, const char *heard)
{
	regex_t allowed;
	size_t count = 0;

	assert_int_equal(regcomp(&allowed, speaker->commands, REG_EXTENDED | REG_NOSUB), 0);
	while (*heard) {
		size_t length = strcspn(heard, speaker->end);
		char *command;

		/* In SCPI a line is sent as a whole, in TL1 a command up to its ';'. */
		command = strndup(heard, length);
		if (regexec(&allowed, command, 0, NULL, 0) != 0)
			fail_msg("%s: '%s' must not be sent", speaker->name, command);
		free(command);
		count++;
		heard += length + (heard[length] != '\0');
	}
	regfree(&allowed);
	return count;
}

static void test_every_byte(void **state)
{
	const struct speaker *speaker = *state;
	char *description =
		ocs_asprintf("a=unix:%%s/a,%d,%s%s%s", SIZE, speaker->driver,
			     speaker->dialect ? ":" : "", speaker->dialect ? speaker->dialect : "");
	const char *const arguments[] = { "--switch", description, "--delay", "0",
					  "--login",  "%s/login",  NULL };
	struct ocs_error err;
	struct emulator e;
	struct tap tap;
	char login[128], *log;
	struct ocs_switch sw = { .name = (char *)"a",
				 .driver = (char *)speaker->driver,
				 .dialect = (char *)speaker->dialect,
				 .size = SIZE };

	emulator_folder(&e);
	snprintf(login, sizeof(login), "%s/login", e.folder);
	assert_int_equal(ocs_file_write(login, "user=admin\npassword=root\n", 25, 0600, &err), 0);
	emulator_start(&e, arguments);
	/* what belongs to others */
	emulator_says(&e, "patch a 20 52", EMULATOR_OK);
	emulator_says(&e, "patch a 32 64", EMULATOR_OK);
	tap_start(&tap, e.folder, emulator_address(&e, "a"));
	sw.address = tap.address;
	sw.credentials = login;
	storm(&e, &sw);
	tap_stop(&tap);
	assert_in_range(judge(speaker, tap.heard.data), ROUNDS, 100 * ROUNDS);
	ocs_text_free(&tap.heard);
	assert_int_equal(emulator_stop(&e, SIGTERM), 0);
	log = emulator_log(&e);
	assert_null(strstr(log, "deleted-all"));
	assert_null(strstr(log, "\"break\",\"in\":20"));
	assert_null(strstr(log, "\"break\",\"in\":32"));
	free(log);
	emulator_remove(&e);
	free(description);
}

/* The judge is not blind. */
static void test_judge(void **state)
{
	static const char *const bad[] = {
		"DLT-PATCH::ALL:7:",
		"DLT-PATCH:::7:",
		"DLT-PATCH::17:7:",
		"DLT-PATCH::1&&16:7:",
		"INIT-SYS:::7:",
		"DLT-PATCH::1:7:\nDLT-PATCH::ALL:7:",
		"DLT-CRS-ALL:::1:",
		"CANC-CRS:::1::,OCS,",
		"DLT-CRS-FIBER::ALL:1:",
		":oxc:swit:disc:all",
		":oxc:swit:conn:only (@1),(@33);*opc?",
		":oxc:swit:conn:sub (@17),(@33);*opc?",
		":oxc:swit:conn:sub (@),(@);*opc?",
		"*rst",
	};

	(void)state;
	for (size_t s = 0; s < COUNT(speakers); s++) {
		regex_t allowed;

		assert_int_equal(regcomp(&allowed, speakers[s].commands, REG_EXTENDED | REG_NOSUB),
				 0);
		for (size_t i = 0; i < COUNT(bad); i++)
			assert_int_not_equal(regexec(&allowed, bad[i], 0, NULL, 0), 0);
		regfree(&allowed);
	}
}

int main(void)
{
	struct CMUnitTest tests[COUNT(speakers) + 1] = { cmocka_unit_test(test_judge) };

	signal(SIGPIPE, SIG_IGN);
	for (size_t i = 0; i < COUNT(speakers); i++)
		tests[i + 1] = (struct CMUnitTest){ .name = speakers[i].name,
						    .test_func = test_every_byte,
						    .initial_state = (void *)&speakers[i] };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
