/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Somebody who owns nothing means harm: half lines, thousands of connections, a line
 * without end, zero bytes, answers that are never read, lines stolen from others.  The
 * administrator is answered all the while, and the job that runs is not touched. */

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "src/util/error.h"
#include "src/util/net.h"
#include "src/util/secret.h"
#include "src/util/text.h"
#include "tests/unit/ocsd/ocsd_rig.h"

#define STRANGER 65534
#define PATCHES 8 /* of a ring of four servers on two switches */
#define SECOND_NS INT64_C(1000000000)
#define MEMORY_KB 600000

/* Runs HARM as somebody else, while the administrator asks; the exit status. */
static int meanwhile(struct rig *rig, int (*harm)(struct rig *rig))
{
	struct ocs_client *client = rig_client(rig);
	int status = -1;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		if (geteuid() == 0 && (setgid(STRANGER) || setuid(STRANGER)))
			_exit(99);
		_exit(harm(rig));
	}
	while (waitpid(pid, &status, WNOHANG) == 0) {
		int64_t asked_ns = ocs_now_ns();

		assert_string_equal(rig_job_state(client, 1), "realised");
		assert_true(ocs_now_ns() - asked_ns < 10 * SECOND_NS);
		usleep(10000);
	}
	ocs_client_close(client);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int dial(struct rig *rig)
{
	struct ocs_error err;

	return ocs_net_connect(rig->address, RIG_PATIENCE_MS, &err);
}

/* Writes; false once ocsd has hung up (or takes nothing for ten seconds). */
static bool push(int fd, const void *data, size_t length)
{
	struct ocs_error err;

	return ocs_net_write(fd, data, length, ocs_now_ns() + 10 * SECOND_NS, &err) == 0;
}

static int half_lines(struct rig *rig)
{
	static const char half[] = "{\"op\":\"show\",\"what\":";
	int fds[20];

	for (int i = 0; i < 20; i++)
		fds[i] = dial(rig);
	for (int i = 0; i < 10000; i++)
		if (fds[i % 20] >= 0)
			push(fds[i % 20], half, strlen(half));
	for (int i = 0; i < 20; i++)
		close(fds[i]);
	return 0;
}

static int connections(struct rig *rig)
{
	struct rlimit limit;
	int opened = 0, fd;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	for (int i = 0; i < 5000; i++) {
		fd = dial(rig);
		if (fd < 0)
			break;
		opened++;
	}
	/* they stay open until this process ends */
	return opened > 100 ? 0 : 1;
}

static int endless_line(struct rig *rig)
{
	static char block[1 << 16];
	size_t sent = 0;
	int fd = dial(rig);

	memset(block, 'x', sizeof(block));
	if (fd < 0)
		return 1;
	while (sent < (size_t)1 << 30 && push(fd, block, sizeof(block)))
		sent += sizeof(block);
	close(fd);
	return sent < (size_t)64 << 20 ? 0 : 2;
}

static int zero_bytes(struct rig *rig)
{
	static const char lines[] = "{\"op\":\"show\",\"id\":1,\0\"what\":\"job\"}\n\0\0\0\n"
				    "\0{\"op\":\"reconcile\",\"id\":2}\n";
	int64_t deadline = ocs_now_ns() + 10 * SECOND_NS;
	struct ocs_lines answers = { .fd = dial(rig) };
	struct ocs_error err;
	char *answer;
	int rc;

	if (answers.fd < 0 || !push(answers.fd, lines, sizeof(lines) - 1))
		return 1;
	answer = ocs_lines_next(&answers, 1 << 20, deadline, &err);
	/* what stands behind a zero byte is no part of a request */
	rc = answer && strstr(answer, "\"ok\":false") ? 0 : 2;
	free(answer);
	ocs_lines_free(&answers);
	close(answers.fd);
	return rc;
}

static int never_reads(struct rig *rig)
{
	static const char ask[] = "{\"op\":\"show\",\"id\":1,\"what\":\"job\"}\n";
	int64_t end_ns = ocs_now_ns() + 2 * SECOND_NS;
	struct ocs_error err;
	int fd = dial(rig);

	while (fd >= 0 && ocs_now_ns() < end_ns)
		if (ocs_net_write(fd, ask, strlen(ask), end_ns, &err))
			break;
	close(fd);
	return 0;
}

static long memory_kb(pid_t pid)
{
	char *path = ocs_asprintf("/proc/%d/status", (int)pid), line[256];
	FILE *stream = fopen(path, "r");
	long kb = 0;

	while (stream && fgets(line, sizeof(line), stream))
		sscanf(line, "VmRSS: %ld", &kb);
	if (stream)
		fclose(stream);
	free(path);
	return kb;
}

static void start_job(struct rig *rig)
{
	struct ocs_client *client = rig_client(rig);

	assert_int_equal(chmod(rig->emulator.folder, 0711), 0);
	json_object_put(rig_ask(client,
				"{'op':'commit','job':1,'epoch':10,'uid':1000,'user':'alice',"
				"'section':'ring','nodes':'d[0-3]'}"));
	json_object_put(rig_ask(client, "{'op':'apply','job':1,'epoch':10,'node':'d0'}"));
	ocs_client_close(client);
}

static void floods(void **state)
{
	static int (*const harms[])(struct rig *) = {
		half_lines, connections, endless_line, zero_bytes, never_reads,
	};
	struct rig *rig = *state;
	struct ocs_client *client;

	start_job(rig);
	for (size_t i = 0; i < sizeof(harms) / sizeof(harms[0]); i++) {
		int status = meanwhile(rig, harms[i]);

		if (status)
			fail_msg("harm %zu: %d", i, status);
	}
	if (RIG_PRELOADS)
		assert_true(memory_kb(rig->daemon) < MEMORY_KB);
	assert_int_equal(rig_patches(rig), PATCHES);
	client = rig_client(rig);
	/* another job's ports are not to be had by naming them */
	json_object_put(
		rig_refused(client, OCS_NOT_NOW, "belongs to job 1",
			    "{'op':'commit','job':2,'epoch':20,'uid':65534,'section':'ring',"
			    "'nodes':'d[3-5]'}"));
	json_object_put(rig_refused(client, OCS_USAGE, "is not in the allocation of job 1",
				    "{'op':'apply','job':1,'epoch':10,'node':'d5'}"));
	ocs_client_close(client);
}

/* ---- a line that was stolen ---- */

struct session {
	struct ocs_lines lines;
	struct ocs_seal seal;
};

static void session_open(struct session *s, const char *address, const char *key)
{
	int64_t deadline = ocs_now_ns() + 20 * SECOND_NS;
	char *line, *hello, proof[OCS_MAC_HEX + 1], secret[OCS_MAC_HEX + 1];
	struct json_object *challenge;
	struct ocs_error err;
	const char *said;

	memset(s, 0, sizeof(*s));
	s->lines.fd = ocs_net_connect(address, RIG_PATIENCE_MS, &err);
	assert_true(s->lines.fd >= 0);
	line = ocs_lines_next(&s->lines, 1000, deadline, &err);
	challenge = json_tokener_parse(line);
	said = rig_text(challenge, "challenge");
	ocs_key_prove(key, strlen(key), proof, "hello", said, "aa", "0", NULL);
	ocs_key_prove(key, strlen(key), secret, "session", said, "aa", "0", NULL);
	hello = ocs_asprintf(
		"{\"op\":\"hello\",\"id\":1,\"uid\":0,\"nonce\":\"aa\",\"proof\":\"%s\"}\n", proof);
	assert_true(push(s->lines.fd, hello, strlen(hello)));
	ocs_seal_start(&s->seal, secret, false);
	free(line);
	line = ocs_lines_next(&s->lines, 1 << 20, deadline, &err);
	assert_non_null(ocs_seal_open(&s->seal, line));
	free(line);
	free(hello);
	json_object_put(challenge);
}

static void session_close(struct session *s)
{
	close(s->lines.fd);
	ocs_lines_free(&s->lines);
}

/* TEXT as S would send it. */
static char *sealed(struct session *s, const char *text)
{
	char prefix[OCS_MAC_HEX + 2];

	ocs_seal_prefix(&s->seal, text, strlen(text), prefix);
	return ocs_asprintf("%s%s\n", prefix, text);
}

/* Whether ocsd hangs up on LINE. */
static bool thrown_out(struct session *s, const char *line)
{
	struct ocs_error err;
	char *answer = NULL;

	if (push(s->lines.fd, line, strlen(line)))
		answer = ocs_lines_next(&s->lines, 1 << 20, ocs_now_ns() + 10 * SECOND_NS, &err);
	free(answer);
	return !answer;
}

static void stolen_line(void **state)
{
	static const char key[] = "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk";
	static const char release[] = "{\"op\":\"release\",\"id\":5,\"job\":1,\"epoch\":10}";
	struct rig *rig = *state;
	char *address = ocs_asprintf("127.0.0.1:%d", rig_free_port());
	char *path = ocs_asprintf("%s/key", rig->emulator.folder), *text, *at, *edited, *line,
	     *other;
	struct session victim, thief;
	struct ocs_client *client;
	struct ocs_error err;

	rig_put(rig, "key", "%s", key);
	text = ocs_file_read(rig->yaml, 1 << 20, NULL, &err);
	at = strstr(text, "/state\n") + strlen("/state\n");
	edited = ocs_asprintf("%.*s  listen: %s\n  key: %s\n%s", (int)(at - text), text, address,
			      path, at);
	assert_int_equal(ocs_file_write(rig->yaml, edited, strlen(edited), 0600, &err), 0);
	rig_stop_daemon(rig, SIGTERM);
	rig_start_daemon(rig);
	start_job(rig);
	/* sealed by one connection, said on another: it is the first line of both */
	session_open(&victim, address, key);
	session_open(&thief, address, key);
	line = sealed(&victim, release);
	assert_true(thrown_out(&thief, line));
	session_close(&thief);
	/* turned to another job on the way */
	other = ocs_asprintf("%s", line);
	*strstr(other, "\"job\":1") = ' ';
	session_open(&thief, address, key);
	assert_true(thrown_out(&thief, other));
	session_close(&thief);
	/* with no seal, with a seal of zeros */
	session_open(&thief, address, key);
	assert_true(thrown_out(&thief, strchr(line, '{')));
	session_close(&thief);
	session_open(&thief, address, key);
	memset(line, '0', OCS_MAC_HEX);
	assert_true(thrown_out(&thief, line));
	session_close(&thief);
	session_close(&victim);
	client = rig_client(rig);
	assert_string_equal(rig_job_state(client, 1), "realised");
	ocs_client_close(client);
	assert_int_equal(rig_patches(rig), PATCHES);
	free(other);
	free(line);
	free(edited);
	free(text);
	free(path);
	free(address);
}

/* A switch comes back dark, and with what somebody else made meanwhile: what is ours is
 * made again, the foreign one is left alone and reported. */
static void reboot_with_foreign_patches(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client;
	struct json_object *reply;

	start_job(rig);
	client = rig_client(rig);
	rig_emulate(rig, "fault direct-0 refuse");
	rig_emulate(rig, "reboot direct-0 dark");
	rig_emulate(rig, "patch direct-0 5 22");
	json_object_put(rig_ask(client, "{'op':'reconcile'}"));
	rig_until_switch(client, "direct-0", "failed");
	rig_emulate(rig, "fault direct-0 none");
	rig_until_switch(client, "direct-0", "up");
	rig_until_patches(rig, PATCHES + 1);
	assert_string_equal(rig_job_state(client, 1), "realised");
	reply = rig_ask(client, "{'op':'show','what':'fabric'}");
	assert_non_null(strstr(json_object_to_json_string(reply), "direct-0:5"));
	assert_non_null(strstr(json_object_to_json_string(reply), "a patch that is not ours"));
	json_object_put(reply);
	json_object_put(rig_ask(client, "{'op':'release','job':1,'epoch':10}"));
	rig_until_patches(rig, 1);
	ocs_client_close(client);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(floods, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(stolen_line, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(reboot_with_foreign_patches, rig_setup,
						rig_teardown),
	};

	rig_timeout_ms = RIG_PATIENT_MS;
	return cmocka_run_group_tests_name("ocsd: saboteur", tests, NULL, NULL);
}
