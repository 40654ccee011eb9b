/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The NETCONF driver against the real emulator, its faults, and impostors. */

#include <dirent.h>
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
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "src/switch/driver.h"
#include "src/switch/netconf/netconf.h"
#include "src/switch/netconf/ssh.h"
#include "src/util/error.h"
#include "src/util/net.h"
#include "src/util/text.h"
#include "tests/unit/switch/emulator_peer.h"

#define SECRET "s3cret-word"

static const char *const plain[] = {
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

/* The emulator, and what a client needs to know of it. */
struct rig {
	struct emulator e;
	char login[96], known[96], address[128];
	struct ocs_switch sw;
};

static void begin(struct rig *rig, const char *const *arguments)
{
	static const char login[] = "user=admin\npassword=" SECRET "\n";

	memset(rig, 0, sizeof(*rig));
	emulator_folder(&rig->e);
	snprintf(rig->login, sizeof(rig->login), "%s/login", rig->e.folder);
	snprintf(rig->known, sizeof(rig->known), "%s/known", rig->e.folder);
	assert_int_equal(ocs_file_write(rig->login, login, strlen(login), 0600, NULL), 0);
	emulator_start(&rig->e, arguments);
	snprintf(rig->address, sizeof(rig->address), "%s", emulator_address(&rig->e, "a"));
	rig->sw = (struct ocs_switch){
		.name = (char *)"a",
		.driver = (char *)"netconf",
		.address = rig->address,
		.credentials = rig->login,
		.known_hosts = rig->known,
		.size = 32,
	};
}

static void end(struct rig *rig)
{
	static const char *const never[] = { "replace",	     "copy-config", "delete-config",
					     "kill-session", "<commit",	    "discard" };
	char *log;

	assert_int_equal(emulator_stop(&rig->e, SIGTERM), 0);
	log = emulator_log(&rig->e);
	assert_null(strstr(log, SECRET));
	assert_null(strstr(log, "deleted-all"));
	/* the log holds every byte that the switch was sent */
	for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++)
		assert_null(strstr(log, never[i]));
	free(log);
	emulator_remove(&rig->e);
}

static struct ocs_switch_connection *drive(struct rig *rig)
{
	struct ocs_error err = { 0 };
	struct ocs_switch_connection *connection =
		ocs_switch_open(&rig->sw, 2000, NULL, NULL, &err);

	if (!connection)
		fail_msg("%s", err.text);
	return connection;
}

static const struct ocs_patch straight[] = { { 1, 33 }, { 2, 34 } };
static const struct ocs_patch crossed[] = { { 1, 34 }, { 2, 33 } };

static void test_change(void **state)
{
	static const char *const ocp[] = {
		"--switch",
		"a=unix:%s/a,32,netconf:ocp",
		"--delay",
		"0",
		"--login",
		"%s/login",
		"--known-hosts",
		"%s/known",
		NULL,
	};
	const char *const *const arguments[] = { plain, ocp };

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct ocs_switch_connection *connection;
		struct ocs_error err = { 0 };
		struct ocs_health health;
		struct ocs_table after;
		struct rig rig;

		begin(&rig, arguments[i]);
		rig.sw.dialect = (char *)(i ? "ocp" : "polatis");
		emulator_says(&rig.e, "patch a 9 60", EMULATOR_OK);
		emulator_says(&rig.e, "port a 34 fail", EMULATOR_OK);
		connection = drive(&rig);
		assert_int_equal(ocs_switch_apply(connection, NULL, 0, straight, 2, NULL, &err),
				 OCS_SWITCH_OK);
		assert_int_equal(
			ocs_switch_apply(connection, straight, 2, crossed, 2, &after, &err),
			OCS_SWITCH_OK);
		assert_int_equal(after.out[1], 34);
		assert_int_equal(after.out[9], 60);
		ocs_table_free(&after);
		assert_int_equal(ocs_switch_health(connection, &health, &err), OCS_SWITCH_OK);
		assert_int_equal(health.port[33].status, OCS_PORT_TUNED);
		assert_int_equal(health.port[34].status, OCS_PORT_FAILED);
		assert_true(health.port[33].dbm < 0 && health.port[33].dbm > -10);
		assert_true(health.port[34].dbm < -50);
		ocs_health_free(&health);
		ocs_switch_close(connection);
		emulator_says(&rig.e, "table", "{\"a\":[[1,34],[2,33],[9,60]]}");
		end(&rig);
	}
}

/* Opens and expects to be turned away. */
static void refuses(struct rig *rig, const char *sentence, int code)
{
	struct ocs_error err = { 0 };

	assert_null(ocs_switch_open(&rig->sw, 2000, NULL, NULL, &err));
	if (!strstr(err.text, sentence))
		fail_msg("'%s' does not say '%s'", err.text, sentence);
	assert_null(strstr(err.text, SECRET));
	assert_int_equal(err.code, code);
}

static void test_impostors(void **state)
{
	static const char wrong[] = "SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
	struct ocs_error err = { 0 };
	struct rig rig, other;
	char key[80], *known, *at;

	(void)state;
	begin(&rig, plain);
	begin(&other, plain);
	/* no key, a fingerprint that is another's, and the right one */
	rig.sw.known_hosts = NULL;
	refuses(&rig, "neither host_key nor known_hosts", OCS_USAGE);
	rig.sw.host_key = (char *)wrong;
	refuses(&rig, "another machine answers there", OCS_ERROR);
	refuses(&rig, "its host key is SHA256:", OCS_ERROR);
	assert_null(ocs_switch_open(&rig.sw, 2000, NULL, NULL, &err));
	at = strstr(err.text, "SHA256:");
	snprintf(key, sizeof(key), "%.50s", at);
	rig.sw.host_key = key;
	ocs_switch_close(drive(&rig));
	/* a file without it, with another key for the address, that others can write */
	rig.sw.host_key = NULL;
	rig.sw.known_hosts = other.known;
	refuses(&rig, "ssh-keyscan", OCS_ERROR);
	known = ocs_file_read(other.known, 4096, NULL, &err);
	at = ocs_asprintf("[127.0.0.1]:%s%s", strrchr(rig.address, ':') + 1, strchr(known, ' '));
	assert_int_equal(ocs_file_write(other.known, at, strlen(at), 0644, &err), 0);
	free(at);
	free(known);
	refuses(&rig, "is not the one in", OCS_ERROR);
	assert_int_equal(chmod(other.known, 0666), 0);
	refuses(&rig, "chmod go-w", OCS_USAGE);
	rig.sw.known_hosts = (char *)"/nonexistent/known";
	refuses(&rig, "/nonexistent/known: ", OCS_USAGE);
	end(&other);
	end(&rig);
}

static void test_login(void **state)
{
	struct ocs_error err = { 0 };
	struct rig rig;

	(void)state;
	begin(&rig, plain);
	assert_int_equal(ocs_file_write(rig.login, "user=admin\npassword=other\n", 26, 0600, &err),
			 0);
	refuses(&rig, "refused the login of admin with a password", OCS_ERROR);
	assert_int_equal(chmod(rig.login, 0644), 0);
	refuses(&rig, "lets others use it", OCS_USAGE);
	assert_int_equal(
		ocs_file_write(rig.login, "user=admin\nkey=/nonexistent/key\n", 32, 0600, &err), 0);
	refuses(&rig, "/nonexistent/key: No such file", OCS_USAGE);
	assert_int_equal(ocs_file_write(rig.login, "user=admin\nkey=secret/key\n", 26, 0600, &err),
			 0);
	refuses(&rig, "login:2: expected a line", OCS_USAGE);
	assert_int_equal(ocs_file_write(rig.login, "user=admin\n", 11, 0600, &err), 0);
	refuses(&rig, "the line password=... or key=... is missing", OCS_USAGE);
	rig.sw.credentials = NULL;
	refuses(&rig, "SSH needs a login", OCS_USAGE);
	rig.sw.credentials = rig.login;
	rig.sw.dialect = (char *)"other";
	refuses(&rig, "unknown NETCONF dialect 'other'; polatis and ocp are known", OCS_USAGE);
	end(&rig);
}

/* Every fault, seen by the driver; afterwards the switch works again. */
static void test_faults(void **state)
{
	static const struct {
		const char *fault, *sentence;
		enum ocs_switch_result result;
		const char *table; /* afterwards */
	} cases[] = {
		{ "fault a silent", "did not answer", OCS_SWITCH_UNKNOWN, "[[1,33],[2,34]]" },
		{ "fault a drop", "closed the connection", OCS_SWITCH_UNKNOWN, "[[1,33],[2,34]]" },
		{ "fault a deny",
		  "refused edit-config: operation-failed: the switch cannot do this now",
		  OCS_SWITCH_REFUSED, "[[1,33],[2,34]]" },
		{ "fault a partial", "did only in part edit-config", OCS_SWITCH_UNKNOWN,
		  "[[2,34]]" },
		{ "fault a lost", "did not answer edit-config", OCS_SWITCH_UNKNOWN, "[]" },
		{ "fault a slow 700", "did not answer", OCS_SWITCH_UNKNOWN, "[[1,33],[2,34]]" },
		{ "fault a slow 20", NULL, OCS_SWITCH_OK, "[[1,34],[2,33]]" },
		{ "fault a duplicate", NULL, OCS_SWITCH_OK, "[[1,34],[2,33]]" },
		{ "fault a refuse", "switch a: ", OCS_SWITCH_UNKNOWN, "[[1,33],[2,34]]" },
		{ "reboot a restore", "switch a: ", OCS_SWITCH_UNKNOWN, "[[1,33],[2,34]]" },
		{ "reboot a dark", "switch a: ", OCS_SWITCH_UNKNOWN, "[]" },
	};
	struct rig rig;

	(void)state;
	begin(&rig, plain);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *wanted = ocs_asprintf("{\"a\":%s}", cases[i].table);
		struct ocs_switch_connection *connection;
		struct ocs_error err = { 0 };
		int rc;

		emulator_says(&rig.e, "patch a 1 33", EMULATOR_OK);
		emulator_says(&rig.e, "patch a 2 34", EMULATOR_OK);
		connection = ocs_switch_open(&rig.sw, 2000, NULL, NULL, &err);
		assert_non_null(connection);
		connection->timeout_ms = 600;
		emulator_says(&rig.e, cases[i].fault, EMULATOR_OK);
		rc = ocs_switch_apply(connection, straight, 2, crossed, 2, NULL, &err);
		if (rc != (int)cases[i].result ||
		    (cases[i].sentence && !strstr(err.text, cases[i].sentence)))
			fail_msg("%s: %d '%s'", cases[i].fault, rc, err.text);
		ocs_switch_close(connection);
		emulator_says(&rig.e, "table a", wanted);
		free(wanted);
		emulator_says(&rig.e, "fault a none", EMULATOR_OK);
		/* reconnect, read back, go on */
		connection = drive(&rig);
		assert_int_equal(ocs_switch_apply(connection, straight, 2, crossed, 2, NULL, &err),
				 OCS_SWITCH_OK);
		ocs_switch_close(connection);
		emulator_says(&rig.e, "table a", "{\"a\":[[1,34],[2,33]]}");
	}
	end(&rig);
}

/* One bad port is named, and does not hold up the others. */
static void test_blame(void **state)
{
	const struct ocs_patch four[] = { { 1, 41 }, { 2, 42 }, { 3, 43 }, { 4, 44 } };
	struct ocs_switch_connection *connection;
	struct ocs_error err = { 0 };
	struct rig rig;

	(void)state;
	begin(&rig, plain);
	emulator_says(&rig.e, "port a 43 refuse", EMULATOR_OK);
	connection = drive(&rig);
	assert_int_equal(ocs_switch_apply(connection, NULL, 0, four, 4, NULL, &err),
			 OCS_SWITCH_DENIED);
	assert_non_null(strstr(err.text, "out of order is port 43"));
	assert_non_null(strstr(err.text, "[m:ingress='3']"));
	emulator_says(&rig.e, "table a", "{\"a\":[[1,41],[2,42],[4,44]]}");
	ocs_switch_close(connection);
	end(&rig);
}

/* A second manager, that speaks for itself. */
struct manager {
	struct ocs_ssh *ssh;
	struct ocs_netconf_framer framer;
	unsigned int id;
};

static void manager_say(struct manager *m, bool chunked, char *message)
{
	size_t length;
	char *framed = ocs_netconf_frame(chunked, message, &length);

	assert_int_equal(ocs_ssh_write(m->ssh, framed, length, ocs_now_ns() + 2000000000, NULL), 0);
	free(framed);
	free(message);
}

static char *manager_hear(struct manager *m)
{
	char data[1], *text = NULL;
	size_t length, n = 0;
	int rc = 0;

	while (rc == 0) {
		const char *at = data;

		assert_int_equal(ocs_ssh_read(m->ssh, data, 1, ocs_now_ns() + 2000000000, NULL), 1);
		n = 1;
		rc = ocs_netconf_framer_take(&m->framer, &at, &n, &text, &length, NULL);
	}
	assert_int_equal(rc, 1);
	return text;
}

static void manager_begin(struct manager *m, struct rig *rig)
{
	struct ocs_credentials credentials = { .user = "admin", .password = SECRET };
	const struct ocs_ssh_target target = {
		.address = rig->address,
		.name = "a",
		.known_hosts = rig->known,
		.credentials = &credentials,
		.subsystem = "netconf",
	};

	memset(m, 0, sizeof(*m));
	m->ssh = ocs_ssh_open(&target, 2000, NULL);
	assert_non_null(m->ssh);
	manager_say(m, false, ocs_netconf_make_hello());
	free(manager_hear(m));
	m->framer.chunked = true;
}

static void manager_does(struct manager *m, char *message, const char *answer)
{
	char *text;

	manager_say(m, true, message);
	text = manager_hear(m);
	if (!strstr(text, answer))
		fail_msg("'%s' does not hold '%s'", text, answer);
	free(text);
}

static void *unlock_later(void *context)
{
	struct manager *m = context;

	usleep(300000);
	manager_does(m, ocs_netconf_make_plain(3, "unlock"), "<ok/>");
	return NULL;
}

static void test_locks(void **state)
{
	struct ocs_switch_connection *connection;
	struct ocs_error err = { 0 };
	struct manager manager;
	pthread_t thread;
	struct rig rig;

	(void)state;
	begin(&rig, plain);
	manager_begin(&manager, &rig);
	manager_does(&manager, ocs_netconf_make_plain(1, "lock"), "<ok/>");
	manager_does(&manager, ocs_netconf_make_plain(2, "lock"), "lock-denied");
	/* it lets go in time */
	connection = drive(&rig);
	assert_int_equal(pthread_create(&thread, NULL, unlock_later, &manager), 0);
	assert_int_equal(ocs_switch_apply(connection, NULL, 0, straight, 2, NULL, &err),
			 OCS_SWITCH_OK);
	pthread_join(thread, NULL);
	/* it does not */
	manager_does(&manager, ocs_netconf_make_plain(4, "lock"), "<ok/>");
	assert_int_equal(ocs_switch_apply(connection, straight, 2, NULL, 0, NULL, &err),
			 OCS_SWITCH_REFUSED);
	assert_non_null(strstr(err.text, "refused lock: lock-denied (session 1)"));
	emulator_says(&rig.e, "table a", "{\"a\":[[1,33],[2,34]]}");
	/* it goes, and the lock with it */
	ocs_ssh_close(manager.ssh);
	ocs_netconf_framer_free(&manager.framer);
	assert_int_equal(ocs_switch_apply(connection, straight, 2, NULL, 0, NULL, &err),
			 OCS_SWITCH_OK);
	ocs_switch_close(connection);
	end(&rig);
}

static void collect(void *context, const char *text)
{
	ocs_text_add(context, "%s\n", text);
}

static void test_notices(void **state)
{
	struct ocs_switch_connection *connection;
	struct ocs_text notices = { 0 };
	struct ocs_error err = { 0 };
	struct rig rig;

	(void)state;
	begin(&rig, plain);
	connection = ocs_switch_open(&rig.sw, 2000, collect, &notices, &err);
	assert_non_null(connection);
	emulator_says(&rig.e, "patch a 3 40", EMULATOR_OK);
	emulator_says(&rig.e, "notice a <fan> & \"]]>]]>\" stopped", EMULATOR_OK);
	for (int i = 0; i < 100 && (!notices.data || !strstr(notices.data, "stopped")); i++)
		assert_int_equal(ocs_switch_listen(connection, 20, &err), OCS_SWITCH_OK);
	assert_string_equal(notices.data, "event text=PATCH:3,40:CHANGED BY HAND\n"
					  "event text=<fan> & \"]]>]]>\" stopped\n");
	ocs_text_free(&notices);
	emulator_says(&rig.e, "reboot a dark 1000", EMULATOR_OK);
	assert_int_equal(ocs_switch_listen(connection, 2000, &err), OCS_SWITCH_UNKNOWN);
	assert_int_equal(ocs_switch_descriptor(connection), -1);
	ocs_switch_close(connection);
	end(&rig);
}

static int descriptors(pid_t pid)
{
	char path[64];
	int count = 0;
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	folder = opendir(path);
	assert_non_null(folder);
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

/* A hundred connections, good ones and such that break off, leave nothing behind. */
static void test_reconnections(void **state)
{
	int before, theirs, now;
	struct rig rig;

	(void)state;
	begin(&rig, plain);
	ocs_switch_close(drive(&rig));
	before = descriptors(getpid());
	theirs = descriptors(rig.e.pid);
	for (int i = 0; i < 100; i++) {
		struct ocs_switch_connection *connection = drive(&rig);
		struct ocs_error err = { 0 };

		if (i % 4 == 1) {
			emulator_says(&rig.e, "reboot a restore", EMULATOR_OK);
			assert_int_equal(
				ocs_switch_apply(connection, NULL, 0, straight, 2, NULL, &err),
				OCS_SWITCH_UNKNOWN);
		} else if (i % 4 == 2) {
			rig.sw.credentials[strlen(rig.sw.credentials) - 1] = 'x';
			assert_null(ocs_switch_open(&rig.sw, 2000, NULL, NULL, &err));
			rig.sw.credentials[strlen(rig.sw.credentials) - 1] = 'n';
		}
		ocs_switch_close(connection);
	}
	assert_int_equal(descriptors(getpid()), before);
	for (int i = 0; i < 200 && (now = descriptors(rig.e.pid)) > theirs; i++)
		usleep(20000);
	assert_true(now <= theirs);
	end(&rig);
}

/* A switch that hangs: nothing comes, nothing is closed. */
static void test_half_open(void **state)
{
	struct ocs_switch_connection *connection;
	struct ocs_error err = { 0 };
	struct ocs_table table;
	struct rig rig;
	int64_t start;

	(void)state;
	begin(&rig, plain);
	connection = ocs_switch_open(&rig.sw, 500, NULL, NULL, &err);
	assert_non_null(connection);
	kill(rig.e.pid, SIGSTOP);
	start = ocs_now_ns();
	assert_int_equal(ocs_switch_read(connection, &table, &err), OCS_SWITCH_UNKNOWN);
	assert_non_null(strstr(err.text, "did not answer get-config within 500 ms"));
	ocs_switch_close(connection);
	assert_null(ocs_switch_open(&rig.sw, 500, NULL, NULL, &err));
	assert_non_null(strstr(err.text, "timed out agreeing on keys"));
	assert_int_equal(err.code, OCS_UNREACHABLE);
	assert_true(ocs_now_ns() - start < 10000000000LL);
	kill(rig.e.pid, SIGCONT);
	ocs_switch_close(drive(&rig));
	end(&rig);
}

#define MANY 12

struct worker {
	struct rig *rig;
	struct ocs_switch sw;
	char name[8], address[128];
	struct ocs_switch_connection *connection;
	pthread_t thread;
	int rc;
};

static void *apply(void *context)
{
	struct worker *worker = context;

	worker->rc = ocs_switch_apply(worker->connection, NULL, 0, straight, 2, NULL, NULL);
	return NULL;
}

/* Switches side by side take one delay. */
static void test_parallel(void **state)
{
	const char *arguments[2 * MANY + 9];
	char names[MANY][64];
	struct worker workers[MANY] = { 0 };
	struct ocs_error err = { 0 };
	int n = 0;
	struct rig rig;
	int64_t start, spent;

	(void)state;
	for (int i = 0; i < MANY; i++) {
		snprintf(names[i], sizeof(names[i]), "%c=127.0.0.1:0,32,netconf", 'a' + i);
		arguments[n++] = "--switch";
		arguments[n++] = names[i];
	}
	for (int i = 2; i <= 8; i++)
		arguments[n++] = i == 3 ? "500" : plain[i];
	begin(&rig, arguments);
	for (int i = 0; i < MANY; i++) {
		struct worker *worker = &workers[i];

		snprintf(worker->name, sizeof(worker->name), "%c", 'a' + i);
		snprintf(worker->address, sizeof(worker->address), "%s",
			 emulator_address(&rig.e, worker->name));
		worker->sw = rig.sw;
		worker->sw.name = worker->name;
		worker->sw.address = worker->address;
		worker->connection = ocs_switch_open(&worker->sw, 5000, NULL, NULL, &err);
		assert_non_null(worker->connection);
	}
	start = ocs_now_ns();
	for (int i = 0; i < MANY; i++)
		assert_int_equal(pthread_create(&workers[i].thread, NULL, apply, &workers[i]), 0);
	for (int i = 0; i < MANY; i++) {
		pthread_join(workers[i].thread, NULL);
		assert_int_equal(workers[i].rc, OCS_SWITCH_OK);
		ocs_switch_close(workers[i].connection);
	}
	spent = (ocs_now_ns() - start) / 1000000;
	/* one after the other they would need 6000 ms */
	if (spent < 500 || spent > 3000)
		fail_msg("%d changes of 500 ms took %lld ms", MANY, (long long)spent);
	end(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_change),	  cmocka_unit_test(test_impostors),
		cmocka_unit_test(test_login),	  cmocka_unit_test(test_faults),
		cmocka_unit_test(test_blame),	  cmocka_unit_test(test_locks),
		cmocka_unit_test(test_notices),	  cmocka_unit_test(test_reconnections),
		cmocka_unit_test(test_half_open), cmocka_unit_test(test_parallel),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
