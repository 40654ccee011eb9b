/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <json-c/json.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/util/net.h"
#include "src/util/text.h"
#include "tests/unit/scheduler/controller_peer.h"

#define PATIENCE_NS INT64_C(10000000000)

static const char yaml[] = "version: 1\n"
			   "ocsd:\n"
			   "  socket: unix:%s/ocsd.sock\n"
			   "switches:\n"
			   "  - name: ocs-[x,y,z]-[0-3]-[0-3]\n"
			   "    driver: tl1\n"
			   "    dialect: polatis\n"
			   "    address: \"127.0.0.1:{3100+index}\"\n"
			   "    credentials: %s/cred\n"
			   "    size: 16\n"
			   "    ports: duplex\n"
			   "  - name: direct-[0-1]\n"
			   "    driver: tl1\n"
			   "    dialect: polatis\n"
			   "    address: \"127.0.0.1:{3200+index}\"\n"
			   "    credentials: %s/cred\n"
			   "    size: 16\n"
			   "    ports: duplex\n"
			   "fabrics:\n"
			   "  - name: pod\n"
			   "    kind: torus\n"
			   "    partitions: [tpu]\n"
			   "    cube: 4x4x4\n"
			   "    tile: 2x2x1\n"
			   "    cubes:\n"
			   "      - {name: c0, nodes: \"n[0-15]\"}\n"
			   "      - {name: c1, nodes: \"n[16-31]\"}\n"
			   "    ports:\n"
			   "      switch: \"ocs-{dim}-{a}-{b}\"\n"
			   "      port: 2*cube+sign+1\n"
			   "  - name: ring\n"
			   "    kind: direct\n"
			   "    partitions: [direct]\n"
			   "    nodes: d[0-5]\n"
			   "    degree: 2\n"
			   "    directed: false\n"
			   "    ports: {switch: \"direct-{interface}\", port: server+1}\n";

/* ---- the peer ---- */

static char folder[64];
static int listener = -1, peer = -1;
static struct ocs_lines lines;

void peer_hang_up(void)
{
	if (peer >= 0)
		close(peer);
	peer = -1;
	ocs_lines_free(&lines);
	memset(&lines, 0, sizeof(lines));
}

void peer_accept(void)
{
	struct pollfd wait = { .fd = listener, .events = POLLIN };

	peer_hang_up();
	assert_int_equal(poll(&wait, 1, 10000), 1);
	peer = accept(listener, NULL, NULL);
	assert_true(peer >= 0);
	lines.fd = peer;
}

void peer_say(const char *text)
{
	assert_int_equal(write(peer, text, strlen(text)), (long)strlen(text));
	assert_int_equal(write(peer, "\n", 1), 1);
}

void peer_answer(struct json_object *request, const char *members)
{
	char *text = ocs_asprintf(
		"{\"id\":%lld,%s}",
		(long long)json_object_get_int64(json_object_object_get(request, "id")), members);

	peer_say(text);
	free(text);
}

const char *text_in(struct json_object *object, const char *key)
{
	return json_object_get_string(json_object_object_get(object, key));
}

/* The next request OP; pictures and signs of life on the way are answered. */
struct json_object *peer_hear(const char *op)
{
	for (;;) {
		struct ocs_error err;
		char *line = ocs_lines_next(&lines, 1 << 20, ocs_now_ns() + PATIENCE_NS, &err);
		struct json_object *request;

		if (!line)
			fail_msg("waiting for %s: %s", op, err.text);
		request = json_tokener_parse(line);
		free(line);
		assert_non_null(request);
		if (strcmp(text_in(request, "op"), op) == 0)
			return request;
		if (strcmp(text_in(request, "op"), "show") != 0 &&
		    strcmp(text_in(request, "op"), "nodes") != 0)
			fail_msg("waiting for %s, got %s", op, json_object_to_json_string(request));
		peer_answer(request, "\"ok\":true");
		json_object_put(request);
	}
}

void peer_confirm(const char *op)
{
	struct json_object *request = peer_hear(op);

	peer_answer(request, "\"ok\":true");
	json_object_put(request);
}

void until(bool (*condition)(void))
{
	int64_t end = ocs_now_ns() + PATIENCE_NS;

	while (!condition()) {
		assert_true(ocs_now_ns() < end);
		usleep(1000);
	}
}

bool is_up(void)
{
	return ocs_controller_down_ms() == 0;
}

bool is_down(void)
{
	return ocs_controller_down_ms() != 0;
}

/* Connects, with MEMBERS as the answer to the subscription. */
void peer_join(const char *members)
{
	struct json_object *request;
	char *all;

	peer_accept();
	request = peer_hear("subscribe");
	all = ocs_asprintf("%s%s", members, strstr(members, "\"ready\"") ? "" : ",\"ready\":[]");
	peer_answer(request, all);
	free(all);
	json_object_put(request);
	until(is_up);
}

int start(void **state)
{
	char path[128];
	struct ocs_error err;
	char *text;

	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/ocs-controller-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/ocs.yaml", folder);
	text = ocs_asprintf(yaml, folder, folder, folder);
	assert_int_equal(ocs_file_write(path, text, strlen(text), 0600, &err), 0);
	free(text);
	if (ocs_controller_open(path, &err))
		fail_msg("%s", err.text);
	snprintf(path, sizeof(path), "unix:%s/ocsd.sock", folder);
	listener = ocs_net_listen(path, &err);
	assert_true(listener >= 0);
	return 0;
}

int start_joined(void **state)
{
	start(state);
	ocs_controller_link_start(0, NULL, NULL);
	peer_join("\"ok\":true,\"max_epoch\":0");
	return 0;
}

int finish(void **state)
{
	char *command = ocs_asprintf("rm -rf %s", folder);

	(void)state;
	ocs_controller_link_stop();
	peer_hang_up();
	close(listener);
	ocs_controller_close();
	assert_int_equal(system(command), 0);
	free(command);
	return 0;
}

/* ---- helpers ---- */

struct ocs_controller_request ask(uint32_t job, const char *partition, const char *extra)
{
	struct ocs_controller_request request;
	struct ocs_error err;

	assert_int_equal(ocs_controller_request(job, partition, extra, &request, &err), 1);
	return request;
}

void mark(uint64_t *usable, int first, int count)
{
	for (int i = first; i < first + count; i++)
		usable[i / 64] |= UINT64_C(1) << (i % 64);
}

/* Everything of the torus is usable. */
int choose(const struct ocs_controller_request *request, enum ocs_controller_mode mode, int *chosen,
	   bool *help, struct ocs_error *err)
{
	uint64_t usable[2] = { 0 };

	mark(usable, 0, 38);
	return ocs_controller_choose(request, mode, usable, NULL, 0, 0, 0, chosen, help, err);
}

/* Starts JOB on some of the 16 nodes of CUBE. */
struct ocs_controller_allocation *begin_in(uint32_t job, const char *shape, int cube)
{
	struct ocs_controller_request request = ask(job, "tpu", shape);
	struct ocs_controller_allocation *made;
	struct ocs_error err;
	uint64_t usable[2] = { 0 };
	int chosen[38], count;
	bool help;

	mark(usable, 16 * cube, 16);
	count = ocs_controller_choose(&request, OCS_RUN_NOW, usable, NULL, 0, 0, 0, chosen, &help,
				      &err);
	if (count < 0)
		fail_msg("%s", err.text);
	if (ocs_controller_begin(&request, chosen, count, 1000, "ada", "tpu", &made, &err))
		fail_msg("%s", err.text);
	return made;
}

struct ocs_controller_allocation *begin(uint32_t job, const char *shape)
{
	return begin_in(job, shape, 0);
}

int held(uint32_t job)
{
	struct ocs_controller_holder holders[16];
	int count = ocs_controller_holders(holders, 16);

	for (int i = 0; i < count; i++) {
		if (holders[i].job == job)
			return holders[i].living ? 1 : 2;
	}
	return 0;
}
