/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The database cannot be used while ocsd runs: every write of it fails in turn, the disk
 * is full, the file may not grow, another process holds it locked, it is damaged.  New
 * work is refused with one sentence, circuits stay, and ocsd goes on by itself. */

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "src/util/error.h"
#include "src/util/net.h"
#include "src/util/text.h"
#include "tests/unit/ocsd/ocsd_rig.h"
#include "tests/unit/ocsd/ocsd_rows.h"

#define PATCHES 16 /* of one job: 2x2x4 over two cubes */
#define PATIENCE_NS (30 * INT64_C(1000000000))

struct pair {
	char *nodes[2], *placements[2];
};

static void place_pair(struct rig *rig, struct pair *p)
{
	p->placements[0] = rig_place(rig, "2x2x4", NULL, &p->nodes[0]);
	p->placements[1] = rig_place(rig, "2x2x4", p->nodes[0], &p->nodes[1]);
}

static void free_pair(struct pair *p)
{
	for (int i = 0; i < 2; i++) {
		free(p->nodes[i]);
		free(p->placements[i]);
	}
}

/* What became of a request: done, refused because ocsd stands by, or not answered. */
enum answer { DONE, REFUSED, LOST };

static enum answer ask(struct rig *rig, const char *format, ...)
{
	struct json_object *request, *reply;
	struct ocs_error err = { 0 };
	struct ocs_client *client = ocs_client_open(rig->address, NULL, NULL, 1000, &err);
	char *text = NULL;
	va_list args;

	if (!client)
		return LOST;
	va_start(args, format);
	assert_true(vasprintf(&text, format, args) >= 0);
	va_end(args);
	request = rig_json("%s", text);
	reply = ocs_client_call(client, request, 20000, NULL, &err);
	ocs_client_close(client);
	json_object_put(request);
	json_object_put(reply);
	if (!reply && err.code != OCS_UNREACHABLE &&
	    (err.code != OCS_NOT_NOW || !strstr(err.text, "/ocsd.db cannot be used (") ||
	     !strstr(err.text,
		     "); until it can, ocsd changes nothing and circuits stay as they are")))
		fail_msg("%s: %s", text, err.text);
	free(text);
	return reply ? DONE : err.code == OCS_UNREACHABLE ? LOST : REFUSED;
}

/* As slurmctld does after it has connected. */
static enum answer subscribe(struct rig *rig, const char *more)
{
	return ask(rig, "{'op':'subscribe','jobs':[{'job':1,'epoch':1}%s]}", more);
}

/* Step 0 to 3 in the life of job 2. */
static enum answer step(struct rig *rig, const struct pair *p, int number, unsigned int epoch)
{
	switch (number) {
	case 0:
		return ask(rig,
			   "{'op':'commit','job':2,'epoch':%u,'uid':1000,'user':'bob',"
			   "'section':'pod','nodes':'%s','shape':'2x2x4',"
			   "'conn':'torus,torus,torus','placement':'%s'}",
			   epoch, p->nodes[1], p->placements[1]);
	case 1:
		return ask(rig, "{'op':'apply','job':2,'epoch':%u,'node':'n8'}", epoch);
	case 2:
		return ask(rig, "{'op':'end','job':2,'epoch':%u,'reason':'done'}", epoch);
	default:
		return ask(rig, "{'op':'release','job':2,'epoch':%u}", epoch);
	}
}

static void start_host(struct rig *rig, const struct pair *p)
{
	assert_int_equal(ask(rig,
			     "{'op':'commit','job':1,'epoch':1,'uid':1000,'user':'alice',"
			     "'section':'pod','nodes':'%s','shape':'2x2x4',"
			     "'conn':'torus,torus,torus','placement':'%s'}",
			     p->nodes[0], p->placements[0]),
			 DONE);
	assert_int_equal(ask(rig, "{'op':'apply','job':1,'epoch':1,'node':'n0'}"), DONE);
	assert_int_equal(rig_patches(rig), PATCHES);
}

/* Tries REQUEST until ocsd refuses it (or TRIES are over: false). */
static bool until_refused(struct rig *rig, const char *request)
{
	int64_t deadline = ocs_now_ns() + PATIENCE_NS;
	enum answer answer;

	while ((answer = ask(rig, "%s", request)) != REFUSED) {
		if (ocs_now_ns() > deadline)
			return false;
		usleep(20000);
	}
	return true;
}

static void until_back(struct rig *rig, const char *more)
{
	int64_t deadline = ocs_now_ns() + PATIENCE_NS;

	while (subscribe(rig, more) != DONE) {
		if (ocs_now_ns() > deadline)
			fail_msg("ocsd does not come back: %s", rig_daemon_log(rig));
		usleep(20000);
	}
}

/* Job 2 comes and goes as if nothing had been. */
static void second_job(struct rig *rig, const struct pair *p, unsigned int epoch)
{
	for (int i = 0; i < 4; i++)
		assert_int_equal(step(rig, p, i, epoch), DONE);
	rig_until_patches(rig, PATCHES);
}

/* ---- every write in turn ---- */

/* One life of job 2 with the disk bad from the AT-th call on; false if it lived so long. */
static bool bad_from(struct rig *rig, const struct pair *p, unsigned int epoch, int number, int at)
{
	bool hit = false;
	char *more;

	rig_put(rig, "disk", "%d %d\n", number, at);
	for (int i = 0; i < 4; i++) {
		enum answer answer = step(rig, p, i, epoch);

		if (answer == DONE)
			continue;
		hit = true;
		/* what was to be done is refused, not queued */
		assert_true(until_refused(rig, "{'op':'show','what':'fabric'}"));
		assert_int_not_equal(step(rig, p, i, epoch), DONE);
		rig_put(rig, "disk", NULL);
		/* slurmctld knows whether the job lives */
		more = i < 2 ? ocs_asprintf(",{'job':2,'epoch':%u}", epoch) : ocs_strdup("");
		until_back(rig, more);
		free(more);
		for (; i < 4; i++)
			assert_int_equal(step(rig, p, i, epoch), DONE);
	}
	rig_put(rig, "disk", NULL);
	rig_until_patches(rig, PATCHES);
	return hit;
}

static void every_write(void **state)
{
	static const int numbers[] = { ENOSPC, EIO, EDQUOT };
	int stride = getenv("OCS_EVERY_WRITE") ? 1 : 9, at, hits = 0;
	struct rig *rig = *state;
	unsigned int epoch = 10;
	struct ocs_client *client;
	struct pair p;

	if (!RIG_PRELOADS)
		skip();
	rig_restart_with_trouble(rig);
	place_pair(rig, &p);
	start_host(rig, &p);
	assert_int_equal(subscribe(rig, ""), DONE);
	for (at = 1; bad_from(rig, &p, epoch, numbers[at % 3], at); at += stride) {
		epoch += 10;
		hits++;
	}
	assert_true(at > 15);
	print_message("# %d of the %d writes failed\n", hits, at - 1);
	client = rig_client(rig);
	assert_string_equal(rig_job_state(client, 1), "realised");
	ocs_client_close(client);
	/* no circuit of the other job was touched */
	assert_int_equal(rig_log_lines(rig, "\"break\"", NULL) + PATCHES,
			 rig_log_lines(rig, "\"make\"", NULL));
	free_pair(&p);
}

/* ---- a full disk ---- */

static char *metrics(const char *address)
{
	static const char request[] = "GET /metrics HTTP/1.0\r\n\r\n";
	int64_t deadline = ocs_now_ns() + PATIENCE_NS;
	char *text = ocs_calloc(1, 1 << 16);
	struct ocs_error err;
	size_t length = 0;
	ssize_t count;
	int fd = ocs_net_connect(address, 5000, &err);

	assert_true(fd >= 0);
	assert_int_equal(ocs_net_write(fd, request, strlen(request), deadline, &err), 0);
	while ((count = recv(fd, text + length, (1 << 16) - 1 - length, 0)) != 0) {
		if (count > 0)
			length += (size_t)count;
		else if (errno != EAGAIN)
			break;
		assert_true(ocs_now_ns() < deadline);
	}
	close(fd);
	return text;
}

static void has_metric(const char *address, const char *line)
{
	char *text = metrics(address);

	if (!strstr(text, line))
		fail_msg("no %s in %s", line, text);
	free(text);
}

/* Adds a line to the section ocsd of ocs.yaml. */
static void configure(struct rig *rig, const char *line)
{
	struct ocs_error err;
	char *text = ocs_file_read(rig->yaml, 1 << 20, NULL, &err), *at, *edited;

	at = strstr(text, "/state\n") + strlen("/state\n");
	edited = ocs_asprintf("%.*s  %s\n%s", (int)(at - text), text, line, at);
	assert_int_equal(ocs_file_write(rig->yaml, edited, strlen(edited), 0600, &err), 0);
	free(edited);
	free(text);
}

static void fill(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	char block[4096] = "x";

	assert_true(fd >= 0);
	while (write(fd, block, sizeof(block)) > 0)
		;
	assert_int_equal(errno, ENOSPC);
	close(fd);
}

static void full_disk(void **state)
{
	struct rig *rig = *state;
	char *folder = ocs_asprintf("%s/state", rig->emulator.folder);
	char *ballast = ocs_asprintf("%s/ballast", folder);
	char *address = ocs_asprintf("127.0.0.1:%d", rig_free_port());
	char *line = ocs_asprintf("metrics: %s", address);
	struct pair p;

	rig_stop_daemon(rig, SIGTERM);
	if (geteuid() != 0 || unshare(CLONE_NEWNS) ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("tmpfs", folder, "tmpfs", 0, "size=4m,mode=0700")) {
		print_message("# no file system of our own can be mounted here\n");
		rig_start_daemon(rig);
		skip();
	}
	configure(rig, line);
	rig_start_daemon(rig);
	place_pair(rig, &p);
	start_host(rig, &p);
	has_metric(address, "ocsd_database_usable 1\n");
	fill(ballast);
	for (unsigned int epoch = 5; step(rig, &p, 0, epoch) == DONE; epoch++)
		assert_true(epoch < 500);
	assert_true(until_refused(rig, "{'op':'drain','kind':'cube','name':'c3','reason':'x'}"));
	has_metric(address, "ocsd_database_usable 0\n");
	has_metric(address, "ocsd_database_losses_total 1\n");
	rig_until_log(rig, 0, "(its disk is full); until it can");
	rig_until_log(rig, 0, "there is no room for 1048576 bytes");
	assert_true(rig_patches(rig) >= PATCHES);
	/* a signal ends it, and it says at start what is wrong */
	assert_int_equal(rig_stop_daemon(rig, SIGTERM), 0);
	free(line);
	assert_int_equal(rig_run_daemon(rig, &line), 1);
	assert_non_null(strstr(line, "is full: make room, and start again"));
	assert_int_equal(unlink(ballast), 0);
	rig_start_daemon(rig);
	fill(ballast);
	for (unsigned int epoch = 505; step(rig, &p, 0, epoch) == DONE; epoch++)
		assert_true(epoch < 1000);
	assert_true(until_refused(rig, "{'op':'reconcile'}"));
	assert_int_equal(unlink(ballast), 0);
	until_back(rig, "");
	has_metric(address, "ocsd_database_usable 1\n");
	has_metric(address, "ocsd_database_losses_total 1\n");
	rig_until_patches(rig, PATCHES);
	second_job(rig, &p, 2000);
	rig_stop_daemon(rig, SIGTERM);
	umount2(folder, MNT_DETACH);
	free_pair(&p);
	free(line);
	free(address);
	free(ballast);
	free(folder);
}

/* As a quota of the file system, or systemd's LimitFSIZE. */
static void file_limit(void **state)
{
	struct rlimit limit = { 4096, RLIM_INFINITY };
	struct rig *rig = *state;
	struct pair p;

	place_pair(rig, &p);
	start_host(rig, &p);
	assert_int_equal(prlimit(rig->daemon, RLIMIT_FSIZE, &limit, NULL), 0);
	assert_int_not_equal(step(rig, &p, 0, 20), DONE);
	assert_true(until_refused(rig, "{'op':'show','what':'job'}"));
	limit.rlim_cur = RLIM_INFINITY;
	assert_int_equal(prlimit(rig->daemon, RLIMIT_FSIZE, &limit, NULL), 0);
	until_back(rig, "");
	second_job(rig, &p, 30);
	free_pair(&p);
}

/* ---- other processes ---- */

static void sql(sqlite3 *db, const char *text)
{
	char *wrong = NULL;

	if (sqlite3_exec(db, text, NULL, NULL, &wrong) != SQLITE_OK)
		fail_msg("%s: %s", text, wrong);
}

static void locked(void **state)
{
	struct rig *rig = *state;
	sqlite3 *db;
	struct pair p;
	char *output;

	place_pair(rig, &p);
	start_host(rig, &p);
	db = rig_database(rig);
	sql(db, "BEGIN IMMEDIATE");
	assert_int_not_equal(step(rig, &p, 0, 20), DONE);
	assert_true(until_refused(rig, "{'op':'end','job':1,'epoch':1}"));
	rig_until_log(rig, 0, "(another process holds it locked); until it can");
	assert_int_equal(rig_patches(rig), PATCHES);
	sql(db, "ROLLBACK");
	until_back(rig, "");
	second_job(rig, &p, 30);
	/* at start it says how to find out who */
	rig_stop_daemon(rig, SIGTERM);
	sql(db, "BEGIN IMMEDIATE");
	assert_int_equal(rig_run_daemon(rig, &output), 1);
	assert_non_null(strstr(output, "is locked by another process: end it ('fuser "));
	free(output);
	sql(db, "ROLLBACK");
	sqlite3_close(db);
	rig_start_daemon(rig);
	free_pair(&p);
}

/* Pages turn to garbage under the running daemon; a copy of them helps. */
static void damaged(void **state)
{
	struct rig *rig = *state;
	char *path = ocs_asprintf("%s/state/ocsd.db", rig->emulator.folder), *whole, *bad;
	struct ocs_error err;
	size_t length;
	sqlite3 *db;
	struct pair p;
	int fd;

	place_pair(rig, &p);
	start_host(rig, &p);
	db = rig_database(rig);
	/* all pages from the journal into the file, and the daemon's cache is stale */
	sql(db, "UPDATE meta SET value=value+1");
	sql(db, "PRAGMA wal_checkpoint(TRUNCATE)");
	whole = ocs_file_read(path, 1 << 24, &length, &err);
	assert_non_null(whole);
	assert_true(length > 8192);
	bad = ocs_calloc(1, length);
	memset(bad, 0x5a, length);
	fd = open(path, O_WRONLY);
	assert_int_equal(pwrite(fd, bad, length - 4096, 4096), (ssize_t)length - 4096);
	assert_int_not_equal(step(rig, &p, 0, 20), DONE);
	assert_true(until_refused(rig, "{'op':'commit','job':3,'epoch':3}"));
	rig_until_log(rig, 0, "(it is damaged); until it can");
	rig_until_log(rig, 0, "is damaged: move it (and its -wal and -shm files) away");
	assert_int_equal(rig_patches(rig), PATCHES);
	assert_int_equal(pwrite(fd, whole, length, 0), (ssize_t)length);
	close(fd);
	sqlite3_close(db);
	until_back(rig, "");
	second_job(rig, &p, 30);
	free(bad);
	free(whole);
	free(path);
	free_pair(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_write, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(file_limit, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(locked, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(damaged, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(full_disk, rig_setup, rig_teardown),
	};

	return cmocka_run_group_tests_name("ocsd: disk", tests, NULL, NULL);
}
