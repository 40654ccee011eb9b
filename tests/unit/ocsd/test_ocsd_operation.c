/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* What an administrator does to a daemon that runs: a new ocs.yaml, numbers, the
 * watchdog. */

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

#include "src/util/error.h"
#include "src/util/net.h"
#include "src/util/text.h"
#include "tests/unit/ocsd/ocsd_rig.h"
#include "tests/unit/ocsd/ocsd_rows.h"

#define PATIENCE_NS (20 * INT64_C(1000000000))
#define WORD "abcdefghijklmnopqrstuvwxyz0123456789_"

static void has(const char *text, const char *line)
{
	if (!strstr(text, line))
		fail_msg("no \"%s\" in: %s", line, text);
}

static char *read_all(const char *path)
{
	struct ocs_error err;
	char *text = ocs_file_read(path, 1 << 24, NULL, &err);

	if (!text)
		fail_msg("%s", err.text);
	return text;
}

/* In ocs.yaml FROM, which is there once, becomes TO. */
static void edit(struct rig *rig, const char *from, const char *to)
{
	char *text = read_all(rig->yaml), *at = strstr(text, from), *edited;
	struct ocs_error err;

	assert_non_null(at);
	edited = ocs_asprintf("%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
	assert_int_equal(ocs_file_write(rig->yaml, edited, strlen(edited), 0600, &err), 0);
	free(edited);
	free(text);
}

/* Sends SIGHUP and waits until the log has one more line with PART. */
static void reload(struct rig *rig, const char *part)
{
	char *path = ocs_asprintf("%s/ocsd.log", rig->emulator.folder), *text = read_all(path);
	size_t before = strlen(text);
	int64_t deadline = ocs_now_ns() + PATIENCE_NS;

	free(text);
	assert_int_equal(kill(rig->daemon, SIGHUP), 0);
	for (;;) {
		text = read_all(path);
		if (strstr(text + before, part))
			break;
		if (ocs_now_ns() > deadline)
			fail_msg("no \"%s\" in: %s", part, text + before);
		free(text);
		usleep(10000);
	}
	free(text);
	free(path);
}

static struct ocs_client *commit_and_apply(struct rig *rig, unsigned int job)
{
	struct ocs_client *client = rig_client(rig);
	char *nodes, *placement = rig_place(rig, "2x2x4", NULL, &nodes);

	json_object_put(
		rig_ask(client, "{'op':'subscribe','jobs':[{'job':%u,'epoch':%u}]}", job, job));
	json_object_put(rig_ask(client,
				"{'op':'commit','job':%u,'epoch':%u,'uid':1000,"
				"'user':'alice','section':'pod','partition':'tpu','nodes':'%s',"
				"'shape':'2x2x4','conn':'torus,torus,torus','placement':'%s'}",
				job, job, nodes, placement));
	json_object_put(
		rig_ask(client, "{'op':'apply','job':%u,'epoch':%u,'node':'n0'}", job, job));
	free(nodes);
	free(placement);
	return client;
}

/* Commands that made or cut circuits. */
static int changes(struct rig *rig)
{
	return rig_log_lines(rig, "\"command\"", "ENT-PATCH", NULL) +
	       rig_log_lines(rig, "\"command\"", "DLT-PATCH", NULL);
}

/* Jobs keep their circuits; what is new is there; bad news changes nothing. */
static void new_description(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client = commit_and_apply(rig, 7);
	struct json_object *reply;
	int made;

	assert_int_equal(rig_patches(rig), 16);
	ocs_client_close(client);
	edit(rig, "retry: 200ms", "retry: 300ms");
	edit(rig, "      - {name: c3, nodes: \"n[12-15]\"}\n",
	     "      - {name: c3, nodes: \"n[12-15]\"}\n      - {name: c4, nodes: \"n[16-19]\"}\n");
	made = changes(rig);
	assert_true(made > 0);
	reload(rig, "ready: ");
	client = rig_client(rig);
	assert_string_equal(rig_job_state(client, 7), "realised");
	reply = rig_ask(client, "{'op':'drain','kind':'cube','name':'c4','reason':'new'}");
	json_object_put(reply);
	assert_int_equal(rig_patches(rig), 16);
	assert_int_equal(changes(rig), made);

	/* a syntax error, a contradiction with job 7, and a setting that cannot change */
	edit(rig, "    tile: 1x1x2\n", "    tile: 1x1x3\n");
	reload(rig, "the old one stays");
	edit(rig, "    tile: 1x1x3\n", "    tile: 1x1x2\n");
	edit(rig, "{name: c0, nodes: \"n[0-3]\"}", "{name: c9, nodes: \"n[0-3]\"}");
	reload(rig, "job 7 uses");
	edit(rig, "{name: c9, nodes: \"n[0-3]\"}", "{name: c0, nodes: \"n[0-3]\"}");
	edit(rig, "port: 2*cube+sign+1", "port: 2*cube+2-sign");
	reload(rig, "job 7 uses the switch ports of");
	edit(rig, "port: 2*cube+2-sign", "port: 2*cube+sign+1");
	edit(rig, "  - name: t-[x,y,z]-[0-1]-[0-1]\n    driver: tl1\n",
	     "  - name: t-[x,y,z]-[0-1]-[0-1]\n    driver: tl1\n    bidi: true\n");
	reload(rig, "the old one stays");
	edit(rig, "    bidi: true\n", "");
	edit(rig, "/state\n", "/elsewhere\n");
	reload(rig, "ocsd.state cannot become");
	edit(rig, "/elsewhere\n", "/state\n");
	/* the daemon is the one that took the first description */
	assert_string_equal(rig_job_state(client, 7), "realised");
	json_object_put(rig_ask(client, "{'op':'resume','kind':'cube','name':'c4'}"));
	json_object_put(rig_ask(client, "{'op':'end','job':7,'epoch':7,'reason':'done'}"));
	for (int n = 0; n < 8; n++)
		json_object_put(
			rig_ask(client, "{'op':'release','job':7,'epoch':7,'node':'n%d'}", n));
	rig_until_patches(rig, 0);

	/* a cube that was drained and is gone can be resumed, once */
	json_object_put(rig_ask(client, "{'op':'drain','kind':'cube','name':'c0','reason':'old'}"));
	edit(rig, "{name: c0, nodes: \"n[0-3]\"}", "{name: c9, nodes: \"n[0-3]\"}");
	reload(rig, "ready: ");
	ocs_client_close(client);
	client = rig_client(rig);
	json_object_put(rig_ask(client, "{'op':'resume','kind':'cube','name':'c0'}"));
	json_object_put(rig_refused(client, OCS_USAGE, "ocs.yaml has no cube c0",
				    "{'op':'resume','kind':'cube','name':'c0'}"));
	ocs_client_close(client);
}

/* In place of the copy, TEXT (NULL: nothing); ocsd does not start, and says why. */
static void no_start(struct rig *rig, const char *copy, const char *text, size_t length,
		     const char *part)
{
	char *said = rig_daemon_log(rig);
	size_t before = strlen(said);
	struct ocs_error err;

	free(said);
	unlink(copy);
	if (text)
		assert_int_equal(ocs_file_write(copy, text, length, 0600, &err), 0);
	assert_int_equal(rig_run_daemon(rig, &said), OCS_USAGE);
	has(said + before, part);
	free(said);
}

/* A file that was broken while ocsd was away: it goes on with what it read before, which must
 * be all of that. */
static void broken_at_start(void **state)
{
	struct rig *rig = *state;
	char *folder = ocs_asprintf("%s/state", rig->emulator.folder);
	char *copy = ocs_asprintf("%s/ocs.yaml", folder), *good, *kept;
	struct json_object *reply, *fault;
	struct ocs_client *client;
	struct ocs_error err;

	ocs_client_close(commit_and_apply(rig, 7));
	good = read_all(rig->yaml);
	kept = read_all(copy);
	assert_true(strlen(kept) > strlen(good));
	assert_memory_equal(kept, good, strlen(good));
	rig_stop_daemon(rig, SIGTERM);
	edit(rig, "    tile: 1x1x2\n", "    tile: 1x1x3\n");
	rig->state = folder;
	rig_start_daemon(rig);
	client = rig_client(rig);
	assert_string_equal(rig_job_state(client, 7), "realised");
	reply = rig_ask(client, "{'op':'show','what':'fabric'}");
	assert_true(json_object_object_get_ex(reply, "fault", &fault));
	has(json_object_get_string(fault), "tile");
	json_object_put(reply);
	ocs_client_close(client);
	/* told again, it sees that nothing is better; and then, that it is */
	reload(rig, "the old one stays");
	assert_int_equal(ocs_file_write(rig->yaml, good, strlen(good), 0600, &err), 0);
	reload(rig, "ready: ");
	client = rig_client(rig);
	reply = rig_ask(client, "{'op':'show','what':'fabric'}");
	assert_false(json_object_object_get_ex(reply, "fault", &fault));
	json_object_put(reply);
	json_object_put(rig_ask(client, "{'op':'end','job':7,'epoch':7,'reason':'done'}"));
	for (int n = 0; n < 8; n++)
		json_object_put(
			rig_ask(client, "{'op':'release','job':7,'epoch':7,'node':'n%d'}", n));
	rig_until_patches(rig, 0);
	ocs_client_close(client);
	rig_stop_daemon(rig, SIGTERM);
	edit(rig, "    tile: 1x1x2\n", "    tile: 1x1x3\n");
	no_start(rig, copy, NULL, 0, "tile");
	no_start(rig, copy, kept, strlen(good) / 2, "cut short");
	no_start(rig, copy, good, strlen(good), "cut short");
	*strstr(kept, "n[12-15]") = 'm';
	no_start(rig, copy, kept, strlen(kept), "cut short");
	free(folder);
	free(copy);
	free(good);
	free(kept);
}

/* Where the metrics are from now on; the caller frees it. */
static char *metrics_on(struct rig *rig)
{
	char *address = ocs_asprintf("127.0.0.1:%d", rig_free_port());
	char *setting = ocs_asprintf("/state\n  metrics: %s\n", address);

	edit(rig, "/state\n", setting);
	reload(rig, "ready: ");
	free(setting);
	return address;
}

static void numbers(void **state)
{
	struct rig *rig = *state;
	char *address = metrics_on(rig), *text;
	struct ocs_client *client;

	client = commit_and_apply(rig, 8);
	text = rig_http(address, "GET /metrics HTTP/1.0\r\n\r\n");
	has(text, "200 OK");
	has(text, "text/plain; version=0.0.4");
	has(text, "\nocsd_switch_up{switch=\"t-x-0-0\"} 1\n");
	has(text, "\nocsd_switch_patches{switch=\"t-z-0-0\"} 4\n");
	has(text, "\nocsd_circuits{state=\"CONNECTED\"} 8\n");
	has(text, "\nocsd_jobs{state=\"realised\"} 1\n");
	has(text, "\nocsd_batches_total{outcome=\"done\"} 4\n");
	has(text, "\nocsd_patches_total 16\n");
	has(text, "\nocsd_batch_seconds_bucket{le=\"+Inf\"} 4\n");
	has(text, "\nocsd_job_seconds_count 1\n");
	has(text, "\nocsd_scheduler_connected 1\n");
	has(text, "\nocsd_switch_failures_total 0\n");
	free(text);
	text = rig_http(address, "GET / HTTP/1.0\r\n\r\n");
	has(text, " 404 ");
	free(text);
	text = rig_http(address, "DELETE /metrics HTTP/1.0\r\n\r\n");
	assert_null(strstr(text, "ocsd_switch_up"));
	free(text);

	rig_emulate(rig, "fault t-x-0-0 silent");
	json_object_put(rig_ask(client, "{'op':'reconcile'}"));
	rig_until_switch(client, "t-x-0-0", "failed");
	text = rig_http(address, "GET /metrics HTTP/1.0\r\n\r\n");
	has(text, "\nocsd_switch_up{switch=\"t-x-0-0\"} 0\n");
	has(text, "\nocsd_switch_failures_total 1\n");
	free(text);
	ocs_client_close(client);
	free(address);
}

/* Where WORD, or one of its derived series, stands in TEXT as a whole word; or NULL. */
static const char *find_word(const char *text, const char *word)
{
	size_t length = strlen(word);

	for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
		if ((at == text || !strchr(WORD, at[-1])) &&
		    (!at[length] || !strchr(WORD, at[length])))
			return at;
	return NULL;
}

/* Every word of TEXT that begins with ocsd_ must be the name of a metric (or of a series
 * of a histogram) of METRICS. */
static void all_exist(const char *text, const char *metrics, const char *where)
{
	static const char *const endings[] = { "", "_bucket", "_sum", "_count" };
	int names = 0;

	for (const char *at = strstr(text, "ocsd_"); at; at = strstr(at + 5, "ocsd_")) {
		char *name = ocs_asprintf("%.*s", (int)strspn(at, WORD), at);
		bool found = false;

		for (size_t i = 0; i < 4 && !found; i++) {
			size_t length = strlen(name), more = strlen(endings[i]);
			char *type;

			if (length <= more || strcmp(name + length - more, endings[i]) != 0)
				continue;
			type = ocs_asprintf("# TYPE %.*s %s", (int)(length - more), name,
					    more ? "histogram\n" : "");
			found = strstr(metrics, type) != NULL;
			free(type);
		}
		if (!found)
			fail_msg("%s names %s, which is no metric", where, name);
		free(name);
		names++;
	}
	assert_true(names > 5);
}

/* The manual page and the metrics have the same names; the dashboard asks for none
 * that is not there. */
static void numbers_documented(const char *metrics)
{
	static const char begin[] = ".Sh METRICS", type[] = "# TYPE ";
	char *page = read_all(TEST_SOURCE_DIR "/doc/man8/ocsd.8");
	char *dashboard = read_all(TEST_SOURCE_DIR "/etc/grafana-ocsd.json");
	char *section = strstr(page, begin), *end;

	assert_non_null(section);
	section += strlen(begin);
	end = strstr(section, "\n.Sh ");
	assert_non_null(end);
	*end = '\0';
	all_exist(section, metrics, "ocsd(8)");
	all_exist(dashboard, metrics, "the dashboard");
	for (const char *at = strstr(metrics, type); at; at = strstr(at + 1, type)) {
		const char *name = at + strlen(type);
		char *text = ocs_asprintf("%.*s", (int)strspn(name, WORD), name);

		if (!find_word(section, text))
			fail_msg("ocsd(8) does not name the metric %s", text);
		free(text);
	}
	free(page);
	free(dashboard);
}

/* Ports out of service, each for one reason; and what the documents say. */
static void numbers_of_ports(void **state)
{
	struct rig *rig = *state;
	struct ocs_client *client, *prolog;
	char *address = metrics_on(rig), *text;

	client = rig_client(rig);
	prolog = rig_client(rig);
	json_object_put(rig_ask(client, "{'op':'subscribe'}"));
	rig_emulate(rig, "port direct-0 2 refuse");
	json_object_put(rig_ask(client, "{'op':'commit','job':9,'epoch':90,'uid':1000,"
					"'user':'alice','section':'ring','nodes':'d[0-3]'}"));
	rig_send(prolog, "{'op':'apply','job':9,'epoch':90,'node':'d0'}");
	json_object_put(rig_event(client, "job_failed"));
	json_object_put(rig_ask(client, "{'op':'drain','kind':'port','name':'direct-0:5',"
					"'reason':'dust'}"));
	json_object_put(rig_ask(client, "{'op':'fail','kind':'port','name':'direct-1:6',"
					"'reason':'dark'}"));
	rig_emulate(rig, "patch rail-0 1 10");
	json_object_put(rig_ask(client, "{'op':'reconcile'}"));
	/* drained too: still one port */
	json_object_put(rig_ask(client, "{'op':'drain','kind':'port','name':'rail-0:1',"
					"'reason':'look at it'}"));
	text = rig_http(address, "GET /metrics HTTP/1.0\r\n\r\n");
	has(text, "\nocsd_ports_out_of_service{reason=\"quarantine\"} 1\n");
	has(text, "\nocsd_ports_out_of_service{reason=\"drained\"} 1\n");
	has(text, "\nocsd_ports_out_of_service{reason=\"failed\"} 1\n");
	has(text, "\nocsd_ports_out_of_service{reason=\"foreign\"} 2\n");
	numbers_documented(text);
	free(text);
	ocs_client_close(prolog);
	ocs_client_close(client);
	free(address);
}

/* Rows before a mark that is too old go, 5000 at a time and soon the rest, the others stay;
 * then nothing can go. */
static void forgetting(void **state)
{
	struct rig *rig = *state;
	sqlite3 *db;

	ocs_client_close(commit_and_apply(rig, 9));
	rig_stop_daemon(rig, SIGTERM);
	db = rig_database(rig);
	assert_int_equal(
		sqlite3_exec(db,
			     "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n"
			     " WHERE i < 5003) INSERT INTO audit(id, time, what) SELECT -6000 + i,"
			     " unixepoch() - 3 * 86400, 'old' FROM n;"
			     "INSERT INTO audit_marks VALUES(-997, unixepoch() - 3 * 86400)",
			     NULL, NULL, NULL),
		SQLITE_OK);
	sqlite3_close(db);
	rig_start_daemon(rig);
	assert_int_equal(rig_select(rig, "SELECT count(*) FROM audit WHERE what='old'"), 5003);
	edit(rig, "/state\n", "/state\n  audit_days: 2\n");
	reload(rig, "ready: ");
	for (int i = 0; i < 6000 && rig_select(rig, "SELECT count(*) FROM audit WHERE what='old'");
	     i++)
		usleep(20000);
	assert_int_equal(rig_select(rig, "SELECT count(*) FROM audit WHERE what='old'"), 0);
	assert_true(rig_select(rig, "SELECT count(*) FROM audit WHERE job=9") >= 3);
	db = rig_database(rig);
	assert_int_not_equal(sqlite3_exec(db, "DELETE FROM audit", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}

/* Starts the daemon anew for a service manager at FD, bound to PATH, that wants beats every
 * USEC / 2; a reload between RELOADING and READY, then as many as WANTED. */
static void await_beats(struct rig *rig, int fd, const char *path, const char *usec, int wanted)
{
	int beats = 0, ready = 0;
	char said[256];

	rig_stop_daemon(rig, SIGTERM);
	while (recv(fd, said, sizeof(said), MSG_DONTWAIT) >= 0)
		;
	setenv("NOTIFY_SOCKET", path, 1);
	setenv("WATCHDOG_USEC", usec, 1);
	rig_start_daemon(rig);
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	while (ready < 2 || beats < wanted) {
		ssize_t length = recv(fd, said, sizeof(said) - 1, 0);

		assert_true(length > 0);
		said[length] = '\0';
		if (strcmp(said, "WATCHDOG=1") == 0)
			beats++;
		else if (strcmp(said, "READY=1") == 0 && ready++ == 0)
			kill(rig->daemon, SIGHUP);
		else if (strcmp(said, "RELOADING=1") == 0)
			beats = 0;
	}
}

/* A loop that turns beats; one that ends or begins does so at once, since the last beat before
 * a reload may be nearly half an interval old (here: minutes, and nobody waits so long). */
static void watchdog(void **state)
{
	struct rig *rig = *state;
	char *path = ocs_asprintf("%s/notify", rig->emulator.folder);
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct timeval patience = { .tv_sec = 20 };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	await_beats(rig, fd, path, "200000", 3);
	await_beats(rig, fd, path, "600000000", 2);
	close(fd);
	free(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(new_description, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(broken_at_start, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(numbers, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(numbers_of_ports, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(forgetting, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(watchdog, rig_setup, rig_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
