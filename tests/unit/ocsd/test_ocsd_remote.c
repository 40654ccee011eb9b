/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Remote clients that hold a key, that hold another one, and somebody in between. */

#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "src/util/error.h"
#include "src/util/net.h"
#include "src/util/text.h"
#include "tests/unit/ocsd/ocsd_rig.h"
#include "tests/unit/ocsd/topo_rig.h"

static char *make_key(struct rig *rig, const char *name, int byte)
{
	char *path = ocs_asprintf("%s/%s", rig->emulator.folder, name), data[64];
	struct ocs_error err;

	memset(data, byte, sizeof(data));
	assert_int_equal(ocs_file_write(path, data, sizeof(data), 0600, &err), 0);
	return path;
}

/* Starts ocsd again with a key for remote clients. */
static char *listen_with_key(struct rig *rig, char **key)
{
	char *address = ocs_asprintf("127.0.0.1:%d", rig_free_port());
	struct ocs_error err;
	char *text = ocs_file_read(rig->yaml, 1 << 20, NULL, &err), *at, *edited;

	*key = make_key(rig, "key", 'a');
	at = strstr(text, "/state\n") + strlen("/state\n");
	edited = ocs_asprintf("%.*s  listen: %s\n  key: %s\n%s", (int)(at - text), text, address,
			      *key, at);
	assert_int_equal(ocs_file_write(rig->yaml, edited, strlen(edited), 0600, &err), 0);
	free(edited);
	free(text);
	rig_stop_daemon(rig, SIGTERM);
	rig_start_daemon(rig);
	return address;
}

static void with_key(void **state)
{
	struct rig *rig = *state;
	char *key, *address = listen_with_key(rig, &key), *other = make_key(rig, "other", 'b');
	struct ocs_client *client;
	struct ocs_error err;

	client = ocs_client_open(address, key, NULL, RIG_PATIENCE_MS, &err);
	if (!client)
		fail_msg("%s", err.text);
	json_object_put(rig_ask(client, "{'op':'subscribe','jobs':[]}"));
	json_object_put(rig_ask(client, "{'op':'commit','job':1,'epoch':10,'uid':0,"
					"'section':'ring','nodes':'d[0-1]'}"));
	/* an event and a reply on one connection, both sealed */
	json_object_put(rig_ask(client, "{'op':'drain','kind':'cube','name':'c1','reason':'x'}"));
	json_object_put(rig_event(client, "drain"));
	json_object_put(rig_ask(client, "{'op':'apply','job':1,'epoch':10,'node':'d1'}"));
	assert_string_equal(rig_job_state(client, 1), "realised");
	ocs_client_close(client);

	assert_null(ocs_client_open(address, other, NULL, RIG_PATIENCE_MS, &err));
	assert_int_equal(err.code, OCS_UNREACHABLE);
	assert_non_null(strstr(err.text, "another key"));
	assert_null(ocs_client_open(address, NULL, NULL, RIG_PATIENCE_MS, &err));
	assert_non_null(strstr(err.text, "shared key"));
	assert_null(ocs_client_open(address, "/nonexistent", NULL, RIG_PATIENCE_MS, &err));
	assert_non_null(strstr(err.text, "/nonexistent"));
	free(address);
	free(other);
	free(key);
}

/* The controller of a job has no key but that of the job. */
static void with_key_of_job(void **state)
{
	struct rig *rig = *state;
	char *key, *address = listen_with_key(rig, &key);
	struct ocs_job_key job = { 1, 10, NULL }, wrong = { 1, 10, "0123456789abcdef" };
	struct ocs_client *client = ocs_client_open(address, key, NULL, RIG_PATIENCE_MS, NULL);
	struct json_object *reply;
	struct tenant t = { 1, 0, "" };
	struct ocs_error err;

	assert_non_null(client);
	json_object_put(rig_ask(client, "{'op':'subscribe','jobs':[]}"));
	topo_start(client, &t, "provisioned");
	job.key = t.key;
	ocs_client_close(client);
	client = ocs_client_open_job(address, &job, NULL, RIG_PATIENCE_MS, &err);
	if (!client)
		fail_msg("%s", err.text);
	topo_change(client, &t, 1, "000");
	/* as its owner, who is no administrator */
	json_object_put(rig_refused(client, OCS_ERROR, "", "{'op':'end','job':1,'epoch':10}"));
	reply = rig_ask(client, "{'op':'show','what':'phases','name':'1'}");
	assert_int_equal(json_object_array_length(json_object_object_get(reply, "phases")), 1);
	json_object_put(reply);
	ocs_client_close(client);
	assert_null(ocs_client_open_job(address, &wrong, NULL, RIG_PATIENCE_MS, &err));
	assert_non_null(strstr(err.text, "no job has this key"));
	job.epoch = 9;
	assert_null(ocs_client_open_job(address, &job, NULL, RIG_PATIENCE_MS, &err));
	free(address);
	free(key);
}

/* Passes lines on between one client and ocsd, as its MODE says. */
enum meddling { HONEST, CHANGE, REPEAT, REFLECT };

struct between {
	pthread_t thread;
	int listener;
	const char *target;
	enum meddling mode;
	char address[32];
};

static bool pass(const struct between *b, struct ocs_lines *from, int to, bool upward, int number)
{
	int64_t deadline = ocs_now_ns() + INT64_C(10000000000);
	struct ocs_error err;
	char *line = ocs_lines_next(from, 1 << 20, deadline, &err), *sent;
	int times = 1;
	bool ok;

	if (!line)
		return false;
	/* line 0 upward is the hello; line 1 the first request */
	if (upward && number == 1 && b->mode == CHANGE) {
		char *digit = strstr(line, "\"c1\"");

		if (digit)
			digit[2] = '2';
	}
	if (upward && number == 1 && b->mode == REPEAT)
		times = 2;
	if (upward && number == 1 && b->mode == REFLECT)
		to = from->fd;
	sent = ocs_asprintf("%s\n", line);
	for (ok = true; times > 0 && ok; times--)
		ok = ocs_net_write(to, sent, strlen(sent), deadline, &err) == 0;
	free(sent);
	free(line);
	return ok;
}

static void *meddle(void *context)
{
	struct between *b = context;
	struct pollfd wait = { .fd = b->listener, .events = POLLIN };
	struct ocs_lines client = { 0 }, daemon = { 0 };
	struct ocs_error err;
	int number = 0;

	if (poll(&wait, 1, 10000) != 1)
		return NULL;
	client.fd = accept(b->listener, NULL, NULL);
	daemon.fd = ocs_net_connect(b->target, RIG_PATIENCE_MS, &err);
	for (;;) {
		struct pollfd ends[2] = { { .fd = client.fd, .events = POLLIN },
					  { .fd = daemon.fd, .events = POLLIN } };

		if (poll(ends, 2, 10000) <= 0)
			break;
		if (ends[0].revents && !pass(b, &client, daemon.fd, true, number++))
			break;
		if (ends[1].revents && !pass(b, &daemon, client.fd, false, 0))
			break;
	}
	close(client.fd);
	close(daemon.fd);
	ocs_lines_free(&client);
	ocs_lines_free(&daemon);
	return NULL;
}

static void start_between(struct between *b, const char *target, enum meddling mode)
{
	struct ocs_error err;

	memset(b, 0, sizeof(*b));
	b->target = target;
	b->mode = mode;
	snprintf(b->address, sizeof(b->address), "127.0.0.1:%d", rig_free_port());
	b->listener = ocs_net_listen(b->address, &err);
	assert_true(b->listener >= 0);
	assert_int_equal(pthread_create(&b->thread, NULL, meddle, b), 0);
}

static void stop_between(struct between *b)
{
	pthread_join(b->thread, NULL);
	close(b->listener);
}

static bool is_drained(struct rig *rig, const char *cube)
{
	struct ocs_client *client = rig_client(rig);
	struct json_object *reply = rig_ask(client, "{'op':'show','what':'fabric'}");
	struct json_object *drains = json_object_object_get(reply, "drains");
	bool found = false;

	assert_true(json_object_is_type(drains, json_type_array));
	for (size_t i = 0; i < json_object_array_length(drains); i++)
		found |= !strcmp(rig_text(json_object_array_get_idx(drains, i), "name"), cube);
	json_object_put(reply);
	ocs_client_close(client);
	return found;
}

static void in_between(void **state)
{
	static const struct {
		enum meddling mode;
		bool done; /* the first request was carried out */
		bool answered;
	} cases[] = {
		{ HONEST, true, true },
		{ CHANGE, false, false },
		{ REPEAT, true, true },
		{ REFLECT, false, false },
	};
	struct rig *rig = *state;
	char *key, *address = listen_with_key(rig, &key);

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct json_object *request = rig_json("{'op':'drain','kind':'cube','name':'c1',"
						       "'reason':'drained by %d'}",
						       (int)i);
		struct json_object *reply;
		struct ocs_client *client;
		struct ocs_error err;
		struct between b;

		start_between(&b, address, cases[i].mode);
		client = ocs_client_open(b.address, key, NULL, RIG_PATIENCE_MS, &err);
		if (!client)
			fail_msg("%s", err.text);
		reply = ocs_client_call(client, request, 5000, NULL, &err);
		/* of a repeated line the answer may be lost with the connection */
		if (cases[i].mode != REPEAT)
			assert_int_equal(reply != NULL, cases[i].answered);
		json_object_put(reply);
		json_object_put(request);
		/* a repeated line ends the connection: nothing more can be asked */
		if (cases[i].mode == REPEAT) {
			request = rig_json("{'op':'show','what':'fabric'}");
			assert_null(ocs_client_call(client, request, 5000, NULL, &err));
			json_object_put(request);
		}
		ocs_client_close(client);
		stop_between(&b);
		assert_int_equal(is_drained(rig, "c1"), cases[i].done);
		assert_false(is_drained(rig, "c2"));
		client = rig_client(rig);
		if (cases[i].done)
			json_object_put(
				rig_ask(client, "{'op':'resume','kind':'cube','name':'c1'}"));
		ocs_client_close(client);
	}
	free(address);
	free(key);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(with_key, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(with_key_of_job, topo_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(in_between, rig_setup, rig_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
