/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Connections from the network that never say who they are, more than ocsd has descriptors
 * for: who is honest comes in, switches are reached, and the loop does not spin. */

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "src/util/error.h"
#include "src/util/net.h"
#include "src/util/text.h"
#include "tests/unit/ocsd/ocsd_rig.h"

#define DESCRIPTORS 300
#define HOLDERS 4
#define SILENT 150    /* connections of one process */
#define PATIENCE_S 20 /* of ocsd, as its protocol says */
#define SECOND_NS INT64_C(1000000000)

static char key[64], listening[64], metrics[64], *key_path;

static int setup(void **state)
{
	const struct rlimit low = { .rlim_cur = DESCRIPTORS, .rlim_max = DESCRIPTORS };
	struct ocs_error err;
	char *text, *at, *edited;
	struct rig *rig;

	rig_setup(state);
	rig = *state;
	snprintf(listening, sizeof(listening), "127.0.0.1:%d", rig_free_port());
	snprintf(metrics, sizeof(metrics), "127.0.0.1:%d", rig_free_port());
	memset(key, 'a', sizeof(key));
	key_path = ocs_asprintf("%s/key", rig->emulator.folder);
	assert_int_equal(ocs_file_write(key_path, key, sizeof(key), 0600, &err), 0);
	text = ocs_file_read(rig->yaml, 1 << 20, NULL, &err);
	at = strstr(text, "/state\n") + strlen("/state\n");
	edited = ocs_asprintf("%.*s  listen: %s\n  key: %s\n  metrics: %s\n%s", (int)(at - text),
			      text, listening, key_path, metrics, at);
	assert_int_equal(ocs_file_write(rig->yaml, edited, strlen(edited), 0600, &err), 0);
	free(edited);
	free(text);
	rig_stop_daemon(rig, SIGTERM);
	rig_start_daemon(rig);
	assert_int_equal(prlimit(rig->daemon, RLIMIT_NOFILE, &low, NULL), 0);
	return 0;
}

static int teardown(void **state)
{
	free(key_path);
	return rig_teardown(state);
}

/* A process that holds SILENT connections to ADDRESS and says nothing; *READY can be read
 * when they are open. */
static pid_t lines_hold(const char *address, int *ready)
{
	int ends[2];
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	if (pid == 0) {
		struct ocs_error err;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (int i = 0; i < SILENT; i++)
			ocs_net_connect(address, RIG_PATIENCE_MS, &err);
		if (write(ends[1], "x", 1) == 1)
			pause();
		_exit(0);
	}
	close(ends[1]);
	*ready = ends[0];
	return pid;
}

/* CPU time of a process in seconds. */
static double cpu_seconds(pid_t pid)
{
	char *path = ocs_asprintf("/proc/%d/stat", (int)pid), *text;
	unsigned long user = 0, kernel = 0;

	text = ocs_file_read(path, 4096, NULL, NULL);
	assert_non_null(text);
	assert_int_equal(sscanf(strrchr(text, ')'),
				") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
				&kernel),
			 2);
	free(text);
	free(path);
	return (double)(user + kernel) / (double)sysconf(_SC_CLK_TCK);
}

static void more_than_descriptors(void **state)
{
	struct rig *rig = *state;
	pid_t pids[HOLDERS];
	struct ocs_client *client;
	struct ocs_error err;
	double before;
	size_t lines = 0;
	char *log;

	for (int i = 0; i < HOLDERS; i++) {
		int ready;
		char byte;

		pids[i] = lines_hold(i % 2 ? metrics : listening, &ready);
		assert_int_equal(read(ready, &byte, 1), 1);
		close(ready);
	}
	before = cpu_seconds(rig->daemon);
	usleep(1000000);
	before = cpu_seconds(rig->daemon) - before;
	if (before > 0.5)
		fail_msg("ocsd spins: %.2f s of CPU in a second", before);
	/* an administrator, a job, the switches */
	client = rig_client(rig);
	json_object_put(rig_ask(client, "{'op':'commit','job':1,'epoch':10,'uid':0,"
					"'section':'ring','nodes':'d[0-1]'}"));
	json_object_put(rig_ask(client, "{'op':'apply','job':1,'epoch':10,'node':'d1'}"));
	rig_emulate(rig, "reboot direct-0 restore");
	json_object_put(rig_ask(client, "{'op':'reconcile'}"));
	rig_until_switch(client, "direct-0", "up");
	ocs_client_close(client);
	/* somebody on another host who has the key */
	client = ocs_client_open(listening, key_path, NULL, RIG_PATIENCE_MS, &err);
	if (!client)
		fail_msg("%s", err.text);
	json_object_put(rig_ask(client, "{'op':'release','job':1,'epoch':10}"));
	ocs_client_close(client);
	for (int i = 0; i < HOLDERS; i++) {
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
	log = rig_daemon_log(rig);
	assert_non_null(strstr(log, "clients are too many"));
	for (const char *at = log; (at = strstr(at, "have to")); at++)
		lines++;
	if (lines >= 100)
		fail_msg("%zu lines of the log say that clients wait", lines);
	free(log);
}

/* Says TEXT, COUNT times, with a pause between; seconds until ocsd hung up, or -1. */
static double hung_up(const char *text, int count, int pause_ms)
{
	struct ocs_error err;
	int fd = ocs_net_connect(listening, RIG_PATIENCE_MS, &err);
	int64_t start_ns = ocs_now_ns();
	char reply[4096];
	long got = 1;

	if (fd < 0)
		fail_msg("%s", err.text);
	for (int i = 0; i < count && got != 0; i++) {
		if (ocs_net_write(fd, text, strlen(text), ocs_now_ns() + SECOND_NS, &err))
			break;
		do {
			got = ocs_net_read(fd, reply, sizeof(reply),
					   ocs_now_ns() + pause_ms * (SECOND_NS / 1000), &err);
		} while (got > 0);
		if (got < 0 && errno != ETIMEDOUT)
			got = 0;
	}
	close(fd);
	return got < 0 && count > 0 ? -1 : (double)(ocs_now_ns() - start_ns) / 1e9;
}

static void unauthenticated_clients(void **state)
{
	static const char guess[] =
		"{\"op\":\"hello\",\"id\":1,\"uid\":0,\"nonce\":\"aa\",\"proof\":\"bb\"}\n";
	char *block = ocs_calloc(1, 32 << 10);

	(void)state;
	/* a line that is no hello, however long it will be */
	memset(block, 'x', (32 << 10) - 1);
	assert_true(hung_up(block, 1, 5000) >= 0);
	free(block);
	/* guesses */
	assert_true(hung_up(guess, 20, 200) >= 0);
	/* a byte now and then does not buy time */
	assert_true(hung_up("x", 10 * (PATIENCE_S + 20), 100) < PATIENCE_S + 10);
}

/* ---- users who are known, and have too many ---- */

#define USERS 40
#define HELD 20 /* 800 together, of 300 */
#define FIRST_UID 60000
#define HONEST_UID 61000
#define SECONDS_MAX 10.0 /* a busy machine; alone it is a few milliseconds */

static void become(uid_t uid)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (setgid(uid) || setuid(uid))
		_exit(99);
}

/* Asks for its jobs; false: the connection is gone. */
static bool served(int fd)
{
	static const char line[] = "{\"op\":\"show\",\"what\":\"job\",\"id\":1}\n";
	int64_t deadline = ocs_now_ns() + 5 * SECOND_NS;
	char reply[4096];
	struct ocs_error err;

	return ocs_net_write(fd, line, sizeof(line) - 1, deadline, &err) == 0 &&
	       ocs_net_read(fd, reply, sizeof(reply), deadline, &err) > 0;
}

/* As user UID: holds HELD connections that ocsd has answered on; AGAIN: then opens and closes
 * one after the other for ever. */
static pid_t user(const char *address, uid_t uid, bool again, int *ready)
{
	int ends[2];
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	if (pid == 0) {
		struct ocs_error err;

		become(uid);
		for (int i = 0; i < HELD; i++) {
			int fd = ocs_net_connect(address, RIG_PATIENCE_MS, &err);

			if (fd < 0 || !served(fd))
				_exit(98);
		}
		if (write(ends[1], "x", 1) != 1)
			_exit(97);
		while (again)
			close(ocs_net_connect(address, RIG_PATIENCE_MS, &err));
		pause();
	}
	close(ends[1]);
	*ready = ends[0];
	return pid;
}

/* Somebody with one connection; one byte each way is one question. */
static pid_t honest(const char *address, int *line)
{
	int ends[2];
	pid_t pid;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	pid = fork();
	if (pid == 0) {
		struct ocs_error err;
		char byte = 'n';
		int fd;

		become(HONEST_UID);
		fd = ocs_net_connect(address, RIG_PATIENCE_MS, &err);
		do {
			byte = served(fd) ? 'y' : 'n';
		} while (write(ends[1], &byte, 1) == 1 && read(ends[1], &byte, 1) == 1);
		_exit(0);
	}
	close(ends[1]);
	*line = ends[0];
	return pid;
}

static char heard(int fd)
{
	char byte = '?';

	assert_int_equal(read(fd, &byte, 1), 1);
	return byte;
}

static void administrators_come_in(struct rig *rig, uint32_t job)
{
	int64_t start_ns = ocs_now_ns();
	struct ocs_client *client = rig_client(rig);
	struct ocs_error err;
	double seconds;

	json_object_put(rig_ask(client, "{'op':'show','what':'fabric'}"));
	json_object_put(rig_ask(client,
				"{'op':'commit','job':%u,'epoch':%u,'uid':0,"
				"'section':'ring','nodes':'d[0-1]'}",
				job, 10 * job));
	json_object_put(
		rig_ask(client, "{'op':'apply','job':%u,'epoch':%u,'node':'d1'}", job, 10 * job));
	ocs_client_close(client);
	client = ocs_client_open(listening, key_path, NULL, RIG_PATIENCE_MS, &err);
	if (!client)
		fail_msg("%s", err.text);
	json_object_put(rig_ask(client, "{'op':'release','job':%u,'epoch':%u}", job, 10 * job));
	ocs_client_close(client);
	seconds = (double)(ocs_now_ns() - start_ns) / 1e9;
	print_message("          show, commit, apply and release took %.3f s\n", seconds);
	assert_true(seconds < SECONDS_MAX);
}

static void lines_of_several_users(void **state)
{
	struct rig *rig = *state;
	pid_t pids[USERS + 2];
	int ready, line;

	if (geteuid() != 0)
		skip();
	assert_int_equal(chmod(rig->emulator.folder, 0755), 0);
	pids[0] = honest(rig->address, &line);
	assert_int_equal(heard(line), 'y');
	for (int i = 0; i < USERS; i++) {
		pids[i + 1] = user(rig->address, (uid_t)(FIRST_UID + i), false, &ready);
		assert_int_equal(heard(ready), 'x');
		close(ready);
	}
	administrators_come_in(rig, 1);
	/* who has one connection keeps it, though it was silent longest */
	assert_int_equal(write(line, "?", 1), 1);
	assert_int_equal(heard(line), 'y');
	pids[USERS + 1] = user(rig->address, FIRST_UID + USERS, true, &ready);
	assert_int_equal(heard(ready), 'x');
	close(ready);
	administrators_come_in(rig, 2);
	assert_int_equal(write(line, "?", 1), 1);
	assert_int_equal(heard(line), 'y');
	for (int i = 0; i < USERS + 2; i++) {
		int status;

		assert_int_equal(waitpid(pids[i], &status, WNOHANG), 0);
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
	close(line);
}

/* A log that others fill is not filled. */
static void quiet_log(void **state)
{
	static const char guess[] =
		"{\"op\":\"hello\",\"id\":1,\"uid\":0,\"nonce\":\"aa\",\"proof\":\"bb\"}\n";
	struct rig *rig = *state;
	size_t lines = 0;
	char *log;

	for (int i = 0; i < 200; i++)
		hung_up(guess, 3, 20);
	rig_stop_daemon(rig, SIGTERM);
	log = rig_daemon_log(rig);
	for (const char *at = log; (at = strstr(at, "a remote client is refused")); at++)
		lines++;
	/* a minute may end between */
	assert_in_range(lines, 1, 50);
	assert_non_null(strstr(log, "address 127.0.0.1: a remote client is refused"));
	assert_non_null(strstr(log, " more such lines"));
	free(log);
	rig_start_daemon(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(lines_of_several_users, setup, teardown),
		cmocka_unit_test_setup_teardown(quiet_log, setup, teardown),
		cmocka_unit_test_setup_teardown(more_than_descriptors, setup, teardown),
		cmocka_unit_test_setup_teardown(unauthenticated_clients, setup, teardown),
	};

	return cmocka_run_group_tests_name("ocsd: connections", tests, NULL, NULL);
}
