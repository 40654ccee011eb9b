/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Somebody sets the wall clock, a year forward or a day back, while ocsd waits: nothing
 * comes early, late or never, nothing that was refused is let in, nothing is forgotten. */

#include <setjmp.h>
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

#include "src/util/error.h"
#include "src/util/net.h"
#include "src/util/secret.h"
#include "src/util/text.h"
#include "tests/unit/ocsd/ocsd_rig.h"
#include "tests/unit/ocsd/ocsd_rows.h"

#define YEAR (365 * 86400L)
#define DAY 86400L
#define CENTURY (73 * YEAR) /* from 2026 to 2099 */

static const long steps[] = { YEAR, -DAY, YEAR, 0 };
#define STEPS (sizeof(steps) / sizeof(steps[0]))

static void set_clock(struct rig *rig, long offset)
{
	rig_put(rig, "clock", "%ld\n", offset);
}

static int setup_trouble(void **state)
{
	rig_setup(state);
	if (RIG_PRELOADS)
		rig_restart_with_trouble(*state);
	return 0;
}

static void commit(struct ocs_client *client, unsigned int job, unsigned int epoch)
{
	json_object_put(rig_ask(client,
				"{'op':'commit','job':%u,'epoch':%u,'uid':1000,"
				"'user':'alice','section':'ring','nodes':'d[0-3]'}",
				job, epoch));
}

static int lines_with(struct rig *rig, const char *part)
{
	char *log = rig_daemon_log(rig), *at = log;
	int count = 0;

	while ((at = strstr(at, part))) {
		at++;
		count++;
	}
	free(log);
	return count;
}

/* A batch on a slow switch, the retry of one that failed, and a commit that is due. */
static void while_waiting(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client, *prolog;
	int64_t before_ns;

	if (!RIG_PRELOADS)
		skip();
	client = rig_client(rig);
	prolog = rig_client(rig);
	for (size_t i = 0; i < STEPS; i++) {
		unsigned int job = 10 + (unsigned int)i;
		struct json_object *reply;

		/* the apply of a job that is not committed yet waits 30 s, not a year */
		rig_send(prolog, "{'op':'apply','job':%u,'epoch':%u,'node':'d1'}", job, job);
		set_clock(rig, steps[i]);
		json_object_put(rig_ask(client, "{'op':'show','what':'fabric'}"));
		rig_silence(prolog, 200);
		/* the switch takes its time over the batch */
		rig_emulate(rig, "fault direct-0 slow 300");
		commit(client, job, job);
		set_clock(rig, -steps[i]);
		reply = rig_reply(prolog);
		assert_true(json_object_get_boolean(json_object_object_get(reply, "ok")));
		json_object_put(reply);
		assert_string_equal(rig_job_state(client, job), "realised");
		/* a switch that failed is tried again in 200 ms */
		rig_emulate(rig, "fault direct-0 refuse");
		rig_emulate(rig, "reboot direct-0 restore");
		json_object_put(rig_ask(client, "{'op':'reconcile'}"));
		rig_until_switch(client, "direct-0", "failed");
		set_clock(rig, steps[i]);
		rig_emulate(rig, "fault direct-0 none");
		before_ns = ocs_now_ns();
		rig_until_switch(client, "direct-0", "up");
		assert_true(ocs_now_ns() - before_ns < 15 * INT64_C(1000000000));
		json_object_put(rig_ask(client, "{'op':'release','job':%u,'epoch':%u}", job, job));
		rig_until_patches(rig, 0);
	}
	assert_true(lines_with(rig, "the wall clock was set 31536000 s forward") >= 1);
	assert_true(lines_with(rig, "the wall clock was set ") <= 3 * (int)STEPS);
	ocs_client_close(client);
	ocs_client_close(prolog);
}

/* The year 2099 wipes neither the audit log nor what is known of ended jobs, at a start
 * either; and what was written then is no older than the rest. */
static void far_future(void **state)
{
	static const long offsets[] = { CENTURY, -20 * YEAR, 0 };
	struct rig *rig = *state;
	struct ocs_client *client;
	int64_t rows;

	if (!RIG_PRELOADS)
		skip();
	client = rig_client(rig);
	commit(client, 7, 70);
	json_object_put(rig_ask(client, "{'op':'release','job':7,'epoch':70}"));
	json_object_put(rig_ask(client, "{'op':'drain','kind':'cube','name':'c0','reason':'x',"
					"'transaction':'once'}"));
	ocs_client_close(client);
	for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
		rows = rig_select(rig, "SELECT count(*) FROM audit");
		assert_true(rows >= 3);
		set_clock(rig, offsets[i]);
		rig_restart_with_trouble(rig);
		assert_true(rig_select(rig, "SELECT count(*) FROM audit") >= rows);
		assert_int_equal(rig_select(rig, "SELECT epoch FROM history WHERE job=7"), 70);
		client = rig_client(rig);
		/* epochs of ended allocations stay refused, and newer ones are newer */
		json_object_put(rig_refused(client, OCS_ERROR, "is not newer than 70",
					    "{'op':'commit','job':7,'epoch':70,'section':'ring',"
					    "'nodes':'d[0-3]'}"));
		json_object_put(rig_refused(client, OCS_ERROR, "has ended",
					    "{'op':'apply','job':7,'epoch':70,'node':'d0'}"));
		/* what was done once is not done again */
		json_object_put(rig_ask(client, "{'op':'drain','kind':'cube','name':'c0',"
						"'reason':'x','transaction':'once'}"));
		ocs_client_close(client);
	}
	/* the clock of ages has hardly moved */
	assert_true(rig_select(rig, "SELECT max(clock) - min(clock) FROM audit_marks") < DAY);
	assert_true(
		rig_select(rig, "SELECT abs(value - unixepoch()) FROM meta WHERE name='clock'") <
		DAY);
	assert_int_equal(rig_select(rig, "SELECT count(*) FROM audit WHERE what='drain'"), 1);
}

/* ---- remote clients ---- */

/* Says HELLO (NULL: makes one for the challenge) on a new connection and returns the
 * answer; *SENT is what was said. */
static char *say_hello(const char *address, const char *key, const char *hello, char **sent)
{
	int64_t deadline = ocs_now_ns() + INT64_C(20000000000);
	struct ocs_error err;
	struct ocs_lines lines = { .fd = ocs_net_connect(address, RIG_PATIENCE_MS, &err) };
	char *line, *answer, proof[OCS_MAC_HEX + 1];
	struct json_object *challenge;

	assert_true(lines.fd >= 0);
	line = ocs_lines_next(&lines, 1000, deadline, &err);
	challenge = json_tokener_parse(line);
	ocs_key_prove(key, strlen(key), proof, "hello", rig_text(challenge, "challenge"), "aa", "0",
		      NULL);
	*sent = hello ? ocs_strdup(hello) :
			ocs_asprintf(
				"{\"op\":\"hello\",\"id\":1,\"uid\":0,\"nonce\":\"aa\",\"proof\":\"%s\"}\n",
				proof);
	assert_int_equal(ocs_net_write(lines.fd, *sent, strlen(*sent), deadline, &err), 0);
	answer = ocs_lines_next(&lines, 1 << 20, deadline, &err);
	json_object_put(challenge);
	free(line);
	ocs_lines_free(&lines);
	close(lines.fd);
	return answer ? answer : ocs_strdup("");
}

/* A hello that was good once is refused at every time; the honest get in at every time,
 * and who is in stays in. */
static void replay(void **state)
{
	static const char key[] = "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk";
	struct rig *rig = *state;
	char *address, *path, *text, *at, *edited, *good, *answer, *unused;
	struct ocs_client *standing;
	struct ocs_error err;

	if (!RIG_PRELOADS)
		skip();
	address = ocs_asprintf("127.0.0.1:%d", rig_free_port());
	path = ocs_asprintf("%s/key", rig->emulator.folder);
	rig_put(rig, "key", "%s", key);
	text = ocs_file_read(rig->yaml, 1 << 20, NULL, &err);
	at = strstr(text, "/state\n") + strlen("/state\n");
	edited = ocs_asprintf("%.*s  listen: %s\n  key: %s\n%s", (int)(at - text), text, address,
			      path, at);
	assert_int_equal(ocs_file_write(rig->yaml, edited, strlen(edited), 0600, &err), 0);
	rig_restart_with_trouble(rig);
	standing = ocs_client_open(address, path, NULL, RIG_PATIENCE_MS, &err);
	assert_non_null(standing);
	answer = say_hello(address, key, NULL, &good);
	assert_non_null(strstr(answer, "\"ok\":true"));
	free(answer);
	for (size_t i = 0; i < STEPS; i++) {
		struct ocs_client *client;

		set_clock(rig, steps[i]);
		answer = say_hello(address, key, good, &unused);
		assert_non_null(strstr(answer, "the proof is refused"));
		free(answer);
		free(unused);
		client = ocs_client_open(address, path, NULL, RIG_PATIENCE_MS, &err);
		assert_non_null(client);
		json_object_put(rig_ask(client, "{'op':'show','what':'job'}"));
		ocs_client_close(client);
		json_object_put(rig_ask(standing, "{'op':'show','what':'job'}"));
	}
	ocs_client_close(standing);
	free(good);
	free(edited);
	free(text);
	free(path);
	free(address);
}

/* The loop's beats to systemd go on. */
static void heartbeat(void **state)
{
	struct rig *rig = *state;
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct timeval patience = { .tv_sec = 10 };
	char *path, said[256];
	int fd;

	if (!RIG_PRELOADS)
		skip();
	path = ocs_asprintf("%s/notify", rig->emulator.folder);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setenv("NOTIFY_SOCKET", path, 1);
	setenv("WATCHDOG_USEC", "200000", 1);
	rig_restart_with_trouble(rig);
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	for (size_t i = 0; i < STEPS; i++) {
		int beats = 0;

		set_clock(rig, steps[i]);
		while (beats < 4) {
			ssize_t length = recv(fd, said, sizeof(said) - 1, 0);

			assert_true(length > 0);
			said[length] = '\0';
			beats += strcmp(said, "WATCHDOG=1") == 0;
		}
	}
	close(fd);
	free(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(while_waiting, setup_trouble, rig_teardown),
		cmocka_unit_test_setup_teardown(far_future, setup_trouble, rig_teardown),
		cmocka_unit_test_setup_teardown(replay, setup_trouble, rig_teardown),
		cmocka_unit_test_setup_teardown(heartbeat, setup_trouble, rig_teardown),
	};

	rig_timeout_ms = RIG_PATIENT_MS;
	return cmocka_run_group_tests_name("ocsd: clock", tests, NULL, NULL);
}
