/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The state behind the topology and select plugins, against a peer that plays
 * ocsd: decisions, allocations, faults, reasons, reconnection. */

#include <errno.h>
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

#include "src/plugins/controller/controller.h"
#include "src/util/net.h"
#include "src/util/text.h"

#define PATIENCE_NS INT64_C(10000000000)

static const char yaml[] =
	"version: 1\n"
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

static void peer_hang_up(void)
{
	if (peer >= 0)
		close(peer);
	peer = -1;
	ocs_lines_free(&lines);
	memset(&lines, 0, sizeof(lines));
}

static void peer_accept(void)
{
	struct pollfd wait = { .fd = listener, .events = POLLIN };

	peer_hang_up();
	assert_int_equal(poll(&wait, 1, 10000), 1);
	peer = accept(listener, NULL, NULL);
	assert_true(peer >= 0);
	lines.fd = peer;
}

static void peer_say(const char *text)
{
	assert_int_equal(write(peer, text, strlen(text)), (long)strlen(text));
	assert_int_equal(write(peer, "\n", 1), 1);
}

static void peer_answer(struct json_object *request, const char *members)
{
	char *text = ocs_asprintf("{\"id\":%lld,%s}",
				  (long long)json_object_get_int64(
					  json_object_object_get(request, "id")), members);

	peer_say(text);
	free(text);
}

static const char *text_in(struct json_object *object, const char *key)
{
	return json_object_get_string(json_object_object_get(object, key));
}

/* The next request OP; pictures and signs of life on the way are answered. */
static struct json_object *peer_hear(const char *op)
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
			fail_msg("waiting for %s, got %s", op,
				 json_object_to_json_string(request));
		peer_answer(request, "\"ok\":true");
		json_object_put(request);
	}
}

static void peer_confirm(const char *op)
{
	struct json_object *request = peer_hear(op);

	peer_answer(request, "\"ok\":true");
	json_object_put(request);
}

static void until(bool (*condition)(void))
{
	int64_t end = ocs_now_ns() + PATIENCE_NS;

	while (!condition()) {
		assert_true(ocs_now_ns() < end);
		usleep(1000);
	}
}

static bool is_up(void)
{
	return ocs_controller_down_since() == 0;
}

static bool is_down(void)
{
	return ocs_controller_down_since() != 0;
}

/* Connects, with MEMBERS as the answer to the subscription. */
static void peer_join(const char *members)
{
	struct json_object *request;

	peer_accept();
	request = peer_hear("subscribe");
	peer_answer(request, members);
	json_object_put(request);
	until(is_up);
}

static int start(void **state)
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

static int start_joined(void **state)
{
	start(state);
	ocs_controller_link_start(NULL);
	peer_join("\"ok\":true,\"max_epoch\":0");
	return 0;
}

static int finish(void **state)
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

static struct ocs_controller_request ask(uint32_t job, const char *partition,
					 const char *extra)
{
	struct ocs_controller_request request;
	struct ocs_error err;

	assert_int_equal(ocs_controller_request(job, partition, extra, &request, &err), 1);
	return request;
}

static void mark(uint64_t *usable, int first, int count)
{
	for (int i = first; i < first + count; i++)
		usable[i / 64] |= UINT64_C(1) << (i % 64);
}

/* Everything of the torus is usable. */
static int choose(const struct ocs_controller_request *request, enum ocs_controller_mode mode,
		  int *chosen, bool *help, struct ocs_error *err)
{
	uint64_t usable[2] = { 0 };

	mark(usable, 0, 38);
	return ocs_controller_choose(request, mode, usable, NULL, 0, 0, 0, chosen, help, err);
}

/* Starts JOB on some of the 16 nodes of CUBE. */
static struct ocs_controller_allocation *begin_in(uint32_t job, const char *shape, int cube)
{
	struct ocs_controller_request request = ask(job, "tpu", shape);
	struct ocs_controller_allocation *made;
	struct ocs_error err;
	uint64_t usable[2] = { 0 };
	int chosen[38], count;
	bool help;

	mark(usable, 16 * cube, 16);
	count = ocs_controller_choose(&request, OCS_RUN_NOW, usable, NULL, 0, 0, 0, chosen,
				      &help, &err);
	if (count < 0)
		fail_msg("%s", err.text);
	if (ocs_controller_begin(&request, chosen, count, 1000, "ada", "tpu", &made, &err))
		fail_msg("%s", err.text);
	return made;
}

static struct ocs_controller_allocation *begin(uint32_t job, const char *shape)
{
	return begin_in(job, shape, 0);
}

static int held(uint32_t job)
{
	struct ocs_controller_holder holders[16];
	int count = ocs_controller_holders(holders, 16);

	for (int i = 0; i < count; i++) {
		if (holders[i].job == job)
			return holders[i].living ? 1 : 2;
	}
	return 0;
}

static bool released_7(void)
{
	return held(7) == 0;
}

/* ---- tests ---- */

static void test_request(void **state)
{
	struct ocs_controller_request request;
	struct ocs_error err;

	(void)state;
	assert_int_equal(ocs_controller_request(1, "tpu", NULL, &request, &err), 0);
	assert_int_equal(ocs_controller_request(1, "tpu", "user words", &request, &err), 0);
	assert_int_equal(ocs_controller_request(1, "tpu", "words shape=4x4x4", &request, &err), 1);
	assert_true(request.shaped);
	assert_string_equal(request.section->name, "pod");
	assert_int_equal(ocs_controller_request(1, "direct", NULL, &request, &err), 1);
	assert_false(request.shaped);
	assert_int_equal(ocs_controller_request(1, "cpu", NULL, &request, &err), 0);
	assert_int_equal(ocs_controller_request(1, "cpu", "shape=4", &request, &err), -1);
	assert_non_null(strstr(err.text, "cpu"));
	assert_int_equal(ocs_controller_request(1, "tpu", "shape=4x", &request, &err), -1);
}

static void test_without_ocsd(void **state)
{
	struct ocs_controller_request request = ask(1, "tpu", "shape=4x4x4");
	int chosen[38];
	struct ocs_error err;
	bool help;

	(void)state;
	ocs_controller_link_start(NULL);
	assert_int_equal(choose(&request, OCS_TEST_ONLY, chosen, &help, &err), 16);
	assert_int_equal(choose(&request, OCS_FORECAST, chosen, &help, &err), 16);
	assert_int_equal(choose(&request, OCS_RUN_NOW, chosen, &help, &err), -1);
	assert_int_equal(err.code, OCS_UNREACHABLE);
	assert_false(help);
	assert_non_null(strstr(err.text, "ocsd is not reachable since 20"));
	assert_int_equal(choose(&request, OCS_WILL_RUN, chosen, &help, &err), -1);
}

static void test_choice_is_stable(void **state)
{
	static const char *const shapes[] = { "shape=4x4x4", "shape=2x2x2", "shape=18",
					      "shape=6x4", "shape=8x4x4", "shape=1" };
	struct ocs_error err;
	bool help;

	(void)state;
	for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++) {
		struct ocs_controller_request request = ask(10 + (uint32_t)i, "tpu", shapes[i]);
		int chosen[38], again[38], count;
		uint64_t usable[2] = { 0 };

		count = choose(&request, OCS_RUN_NOW, chosen, &help, &err);
		if (count < 0)
			fail_msg("%s: %s", shapes[i], err.text);
		for (int j = 0; j < count; j++)
			mark(usable, chosen[j], 1);
		request.job = 100;	/* not remembered for this one */
		assert_int_equal(ocs_controller_choose(&request, OCS_RUN_NOW, usable, NULL, 0,
						       count, count, again, &help, &err), count);
		assert_memory_equal(chosen, again, (size_t)count * sizeof(*chosen));
		ocs_controller_pending_clear(100);
	}
}

static void test_required_nodes(void **state)
{
	struct ocs_controller_request request = ask(1, "tpu", "shape=2x2x2");
	int required[2] = { 29, 31 }, chosen[38], count;
	uint64_t usable[2] = { 0 };
	struct ocs_error err;
	bool help, found = false;

	(void)state;
	mark(usable, 0, 32);
	for (int node = 0; node < 32; node++) {
		count = ocs_controller_choose(&request, OCS_RUN_NOW, usable, &node, 1, 0, 0,
					      chosen, &help, &err);
		if (count < 0)
			fail_msg("node %d: %s", node, err.text);
		found = false;
		for (int i = 0; i < count; i++)
			found = found || chosen[i] == node;
		assert_true(found);
	}
	/* Two nodes of one cube that no 2x2x2 holds. */
	required[0] = 16;
	count = ocs_controller_choose(&request, OCS_RUN_NOW, usable, required, 2, 0, 0, chosen,
				      &help, &err);
	assert_int_equal(count, -1);
	assert_int_equal(err.code, OCS_NOT_NOW);
}

static void test_node_counts_that_contradict(void **state)
{
	struct ocs_controller_request request = ask(1, "tpu", "shape=4x4x4");
	uint64_t usable[2] = { 0 };
	struct ocs_error err;
	int chosen[38];
	bool help;

	(void)state;
	mark(usable, 0, 32);
	assert_int_equal(ocs_controller_choose(&request, OCS_TEST_ONLY, usable, NULL, 0, 20, 20,
					       chosen, &help, &err), -1);
	assert_int_equal(err.code, OCS_NEVER);
	assert_non_null(strstr(err.text, "takes 16 nodes"));
	assert_int_equal(ocs_controller_choose(&request, OCS_TEST_ONLY, usable, NULL, 0, 1, 2,
					       chosen, &help, &err), -1);
	assert_int_equal(err.code, OCS_NEVER);
}

static void test_commit_end_release(void **state)
{
	struct ocs_controller_request request = ask(8, "tpu", "shape=8x4x4");
	struct ocs_controller_allocation *made = begin(7, "shape=4x4x4");
	struct json_object *line = peer_hear("commit");
	struct ocs_error err;
	char *members;
	int chosen[38];
	bool help;

	(void)state;
	assert_int_equal(json_object_get_int64(json_object_object_get(line, "job")), 7);
	assert_int_equal(json_object_get_int64(json_object_object_get(line, "epoch")),
			 made->epoch);
	assert_true(made->epoch > UINT64_C(1700000000000000));
	assert_string_equal(text_in(line, "user"), "ada");
	assert_string_equal(text_in(line, "section"), "pod");
	assert_string_equal(text_in(line, "shape"), "4x4x4");
	assert_string_equal(text_in(line, "conn"), "torus,torus,torus");
	assert_string_equal(text_in(line, "placement"), made->placement);
	assert_int_equal(made->cubes, 1);
	assert_int_equal(made->circuits, 48);
	peer_answer(line, "\"ok\":true");
	json_object_put(line);
	assert_int_equal(held(7), 1);

	ocs_controller_end(7, 0, "done");
	line = peer_hear("end");
	assert_int_equal(json_object_get_int64(json_object_object_get(line, "epoch")),
			 made->epoch);
	peer_answer(line, "\"ok\":true");
	json_object_put(line);
	assert_int_equal(held(7), 2);
	/* The whole machine has to wait for the teardown, and is told so; a plan
	 * for later does not. */
	assert_int_equal(choose(&request, OCS_RUN_NOW, chosen, &help, &err), -1);
	assert_non_null(strstr(err.text, "taken down"));
	assert_true(help);
	assert_int_equal(choose(&request, OCS_WILL_RUN, chosen, &help, &err), 32);

	ocs_controller_gone(7, made->epoch);
	peer_confirm("gone");
	members = ocs_asprintf("{\"event\":\"released\",\"job\":7,\"epoch\":%llu}",
			       (unsigned long long)made->epoch);
	peer_say(members);
	until(released_7);
	assert_int_equal(choose(&request, OCS_RUN_NOW, chosen, &help, &err), 32);
	free(members);
	ocs_controller_allocation_free(made);
}

static void test_begin_refuses_taken_nodes(void **state)
{
	struct ocs_controller_request request = ask(2, "tpu", "shape=4x4x4");
	struct ocs_controller_allocation *first, *second = NULL;
	int nodes[16];
	struct ocs_error err;

	(void)state;
	first = begin(1, "shape=4x4x4");
	peer_confirm("commit");
	for (int i = 0; i < 16; i++)
		nodes[i] = (ocs_controller_node("n0") + i);
	if (strcmp(first->nodes, "n[0-15]") != 0)
		fail_msg("the first cube is expected, not %s", first->nodes);
	assert_int_equal(ocs_controller_begin(&request, nodes, 16, 0, "ada", "tpu", &second,
					      &err), -1);
	assert_non_null(strstr(err.text, "belongs to job 1"));
	/* Fifteen nodes are no cube. */
	for (int i = 0; i < 16; i++)
		nodes[i] += 16;
	assert_int_equal(ocs_controller_begin(&request, nodes, 15, 0, "ada", "tpu", &second,
					      &err), -1);
	assert_int_equal(ocs_controller_begin(&request, nodes, 16, 0, "ada", "tpu", &second,
					      &err), 0);
	assert_true(second->epoch > first->epoch);
	peer_confirm("commit");
	ocs_controller_allocation_free(first);
	ocs_controller_allocation_free(second);
}

static struct ocs_controller_request probe_request;
static bool cube_fits(void)
{
	struct ocs_error err;
	int chosen[38];
	bool help;

	return choose(&probe_request, OCS_WILL_RUN, chosen, &help, &err) > 0;
}

static bool cube_does_not_fit(void)
{
	return !cube_fits();
}

static void test_faults(void **state)
{
	struct ocs_error err;
	int chosen[38];
	bool help;

	(void)state;
	probe_request = ask(1, "tpu", "shape=4x4x4");
	assert_true(cube_fits());
	peer_say("{\"event\":\"switch\",\"name\":\"ocs-x-1-2\",\"state\":\"failed\",\"reason\":\"silent\"}");
	until(cube_does_not_fit);
	assert_int_equal(choose(&probe_request, OCS_RUN_NOW, chosen, &help, &err), -1);
	assert_int_equal(err.code, OCS_NOT_NOW);
	assert_false(help);
	assert_non_null(strstr(err.text, "switch ocs-x-1-2 failed"));
	/* At submit a broken switch is no reason. */
	assert_int_equal(choose(&probe_request, OCS_TEST_ONLY, chosen, &help, &err), 16);
	peer_say("{\"event\":\"switch\",\"name\":\"ocs-x-1-2\",\"state\":\"up\",\"reason\":\"\"}");
	until(cube_fits);
	peer_say("{\"event\":\"drain\",\"kind\":\"cube\",\"name\":\"c0\",\"reason\":\"dust\",\"drained\":true}");
	peer_say("{\"event\":\"drain\",\"kind\":\"port\",\"name\":\"ocs-z-0-0:3\",\"reason\":\"dust\",\"drained\":true}");
	until(cube_does_not_fit);
	assert_int_equal(choose(&probe_request, OCS_RUN_NOW, chosen, &help, &err), -1);
	assert_false(help);
	peer_say("{\"event\":\"drain\",\"kind\":\"port\",\"name\":\"ocs-z-0-0:3\",\"reason\":\"\",\"drained\":false}");
	until(cube_fits);
	assert_int_equal(choose(&probe_request, OCS_RUN_NOW, chosen, &help, &err), 16);
	assert_int_equal(chosen[0], ocs_controller_node("n16"));
}

static bool failure_there(void)
{
	return ocs_controller_failures();
}

static void test_job_failed(void **state)
{
	struct ocs_controller_allocation *made = begin(7, "shape=4x4x4");
	struct ocs_controller_failure failure;
	char *line;

	(void)state;
	peer_confirm("commit");
	probe_request = ask(9, "tpu", "shape=4x4x4");
	/* A stranger's epoch is nobody's failure. */
	peer_say("{\"event\":\"job_failed\",\"job\":7,\"epoch\":5,\"switch\":\"ocs-y-0-0\",\"error\":\"denied\"}");
	line = ocs_asprintf("{\"event\":\"job_failed\",\"job\":7,\"epoch\":%llu,\"switch\":\"ocs-y-0-0\",\"error\":\"denied\"}",
			    (unsigned long long)made->epoch);
	peer_say(line);
	until(failure_there);
	/* The switch is avoided before anybody hears of the failure. */
	assert_true(cube_does_not_fit());
	assert_true(ocs_controller_failure(&failure));
	assert_int_equal(failure.job, 7);
	assert_int_equal(failure.epoch, made->epoch);
	assert_string_equal(failure.name, "ocs-y-0-0");
	assert_string_equal(failure.text, "denied");
	assert_false(ocs_controller_failure(&failure));
	free(failure.name);
	free(failure.text);
	free(line);
	ocs_controller_allocation_free(made);
}

static void test_refused_commit(void **state)
{
	struct ocs_controller_allocation *made = begin(7, "shape=2x2x2");
	struct ocs_controller_failure failure;
	struct json_object *line = peer_hear("commit");

	(void)state;
	peer_answer(line, "\"ok\":false,\"code\":1,\"error\":\"port 3 belongs to job 4\"");
	json_object_put(line);
	until(failure_there);
	assert_true(ocs_controller_failure(&failure));
	assert_null(failure.name);
	assert_string_equal(failure.text, "port 3 belongs to job 4");
	free(failure.text);
	ocs_controller_allocation_free(made);
}

static bool all_held(void)
{
	return held(55) == 2;
}

static void test_reconnect(void **state)
{
	struct ocs_controller_allocation *living = begin(7, "shape=2x2x2");
	struct ocs_controller_allocation *ended, *later;
	struct json_object *line, *jobs;
	struct ocs_controller_request request = ask(9, "tpu", "shape=4x4x4");
	struct ocs_error err;
	int chosen[38];
	bool help;

	(void)state;
	peer_confirm("commit");
	ended = begin_in(8, "shape=2x2x2", 1);
	peer_confirm("commit");
	ocs_controller_end(8, 5, "not this one");
	assert_int_equal(held(8), 1);
	ocs_controller_end(8, ended->epoch, "done");
	peer_confirm("end");
	peer_hang_up();
	until(is_down);
	assert_true(ocs_controller_down_ms() > 0);
	assert_int_equal(choose(&request, OCS_RUN_NOW, chosen, &help, &err), -1);

	peer_accept();
	line = peer_hear("subscribe");
	jobs = json_object_object_get(line, "jobs");
	assert_int_equal(json_object_array_length(jobs), 1);
	assert_int_equal(json_object_get_int64(json_object_object_get(
		json_object_array_get_idx(jobs, 0), "epoch")), living->epoch);
	/* It forgot job 7, is done with 8, still has circuits of an unknown 55, and
	 * has seen an epoch from the future. */
	peer_answer(line, "\"ok\":true,\"max_epoch\":4000000000000000,\"unknown\":[7],"
		    "\"held\":[{\"job\":55,\"epoch\":12}],"
		    "\"switches\":[{\"name\":\"ocs-x-0-0\",\"state\":\"up\",\"reason\":\"\"}]");
	json_object_put(line);
	line = peer_hear("gone");
	assert_int_equal(json_object_get_int64(json_object_object_get(line, "job")), 55);
	peer_answer(line, "\"ok\":true");
	json_object_put(line);
	line = peer_hear("show");
	assert_string_equal(text_in(line, "what"), "job");
	assert_string_equal(text_in(line, "name"), "55");
	peer_answer(line, "\"ok\":true,\"jobs\":[{\"job\":55,\"epoch\":12,\"nodes\":\"n[16-31]\"}]");
	json_object_put(line);
	line = peer_hear("commit");
	assert_int_equal(json_object_get_int64(json_object_object_get(line, "job")), 7);
	assert_string_equal(text_in(line, "placement"), living->placement);
	peer_answer(line, "\"ok\":true");
	json_object_put(line);
	until(all_held);
	assert_int_equal(held(8), 0);
	/* c0 has job 7 on it, c1 is held for 55. */
	{
		uint64_t usable[2] = { 0 };

		mark(usable, 16, 16);
		assert_int_equal(ocs_controller_choose(&request, OCS_RUN_NOW, usable, NULL, 0,
						       0, 0, chosen, &help, &err), -1);
	}
	peer_say("{\"event\":\"released\",\"job\":55,\"epoch\":12}");
	while (held(55))
		usleep(1000);
	later = begin_in(10, "shape=1", 1);
	assert_true(later->epoch > UINT64_C(4000000000000000));
	peer_confirm("commit");
	ocs_controller_allocation_free(living);
	ocs_controller_allocation_free(ended);
	ocs_controller_allocation_free(later);
}

static void test_restore(void **state)
{
	struct ocs_controller_allocation *made = begin(7, "shape=4x4x4");
	struct ocs_controller_allocation known = *made;
	struct json_object *line;
	int nodes[16];

	(void)state;
	peer_confirm("commit");
	known.job = 21;
	known.epoch = made->epoch + 5;
	for (int i = 0; i < 16; i++)
		nodes[i] = 16 + i;
	ocs_controller_restore(&known, nodes, 16, false);
	ocs_controller_restore(&known, nodes, 16, true);	/* known already */
	assert_int_equal(held(21), 2);
	ocs_controller_gone(21, known.epoch);
	line = peer_hear("gone");
	assert_int_equal(json_object_get_int64(json_object_object_get(line, "job")), 21);
	peer_answer(line, "\"ok\":true");
	json_object_put(line);
	ocs_controller_allocation_free(made);
}

static void test_node_lost(void **state)
{
	struct ocs_controller_allocation *made = begin(7, "shape=4x4x4");
	struct ocs_controller_request request = ask(8, "tpu", "shape=8x4x4");
	struct ocs_error err;
	int chosen[38];
	bool help;

	(void)state;
	peer_confirm("commit");
	ocs_controller_node_lost(7, ocs_controller_node("n3"));
	/* Slurm offers the node again, but circuits still end there. */
	assert_int_equal(choose(&request, OCS_RUN_NOW, chosen, &help, &err), -1);
	assert_int_equal(held(7), 1);
	ocs_controller_allocation_free(made);
}

static void test_pending(void **state)
{
	struct ocs_controller_waiting waiting[4];
	struct json_object *line;

	(void)state;
	assert_false(ocs_controller_pending(5, "ada", "4x4x4", "needs a cube", false));
	line = peer_hear("pending");
	assert_string_equal(text_in(line, "reason"), "needs a cube");
	assert_string_equal(text_in(line, "user"), "ada");
	assert_string_equal(text_in(line, "shape"), "4x4x4");
	peer_answer(line, "\"ok\":true");
	json_object_put(line);
	/* No news. */
	assert_true(ocs_controller_pending(5, "ada", "4x4x4", "needs a cube", false));
	ocs_controller_pending(5, "ada", "4x4x4", "needs two", true);
	line = peer_hear("pending");
	assert_string_equal(text_in(line, "reason"), "needs two");
	peer_answer(line, "\"ok\":true");
	json_object_put(line);
	assert_int_equal(ocs_controller_waiting(waiting, 4), 1);
	assert_int_equal(waiting[0].job, 5);
	assert_true(waiting[0].blocked);
	assert_string_equal(waiting[0].reason, "needs two");
	free(waiting[0].reason);
	/* After a loss of the connection it is said again. */
	peer_hang_up();
	until(is_down);
	peer_join("\"ok\":true");
	peer_confirm("pending");
	ocs_controller_pending_clear(5);
	line = peer_hear("pending");
	assert_null(json_object_object_get(line, "reason"));
	peer_answer(line, "\"ok\":true");
	json_object_put(line);
	assert_int_equal(ocs_controller_waiting(waiting, 4), 0);
}

static void test_direct(void **state)
{
	struct ocs_controller_request request = ask(3, "direct", NULL);
	struct ocs_controller_request shaped = ask(4, "direct", "shape=2x2");
	struct ocs_controller_allocation *made;
	struct json_object *line;
	uint64_t usable[2] = { 0 };
	struct ocs_error err;
	int chosen[38], nodes[3];
	bool help;

	(void)state;
	mark(usable, 0, 38);
	assert_int_equal(ocs_controller_choose(&request, OCS_RUN_NOW, usable, NULL, 0, 3, 3,
					       chosen, &help, &err), 6);
	assert_int_equal(chosen[0], ocs_controller_node("d0"));
	assert_int_equal(ocs_controller_choose(&shaped, OCS_RUN_NOW, usable, NULL, 0, 1, 3,
					       chosen, &help, &err), -1);
	assert_int_equal(err.code, OCS_NEVER);
	nodes[0] = ocs_controller_node("d4");
	nodes[1] = ocs_controller_node("d1");
	nodes[2] = ocs_controller_node("d2");
	assert_int_equal(ocs_controller_begin(&request, nodes, 3, 1, "ada", "direct", &made,
					      &err), 0);
	line = peer_hear("commit");
	assert_string_equal(text_in(line, "nodes"), "d[4,1-2]");
	assert_null(json_object_object_get(line, "placement"));
	peer_answer(line, "\"ok\":true");
	json_object_put(line);
	ocs_controller_allocation_free(made);
	/* A port of d0 is drained: it is passed over. */
	peer_say("{\"event\":\"drain\",\"kind\":\"port\",\"name\":\"direct-1:1\",\"reason\":\"\",\"drained\":true}");
	for (int i = 0; i < 5000; i++) {
		if (ocs_controller_choose(&request, OCS_RUN_NOW, usable, NULL, 0, 3, 3, chosen,
					  &help, &err) == 5)
			break;
		usleep(1000);
	}
	assert_int_equal(chosen[0], ocs_controller_node("d1"));
}

static void test_report(void **state)
{
	struct ocs_controller_allocation *made = begin(7, "shape=4x4x4");
	struct ocs_controller_record *records;
	uint8_t states[38];
	char *text;
	int count;

	(void)state;
	peer_confirm("commit");
	memset(states, OCS_NODE_IDLE, sizeof(states));
	states[1] = OCS_NODE_DOWN;
	states[2] = OCS_NODE_DRAINED;
	memset(states + 16, OCS_NODE_ABSENT, 16);
	count = ocs_controller_report(states, &records);
	assert_int_equal(count, 2 + 2 + 50);
	text = ocs_controller_report_print(records, count, "c0");
	assert_string_equal(text, "Cube=c0 Section=pod Nodes=n[0-15] Idle=14 Busy=0 Down=1 "
			    "Drained=1 State=UP Jobs=7\n");
	free(text);
	text = ocs_controller_report_print(records, count, "n3");
	assert_non_null(strstr(text, "Section=pod"));
	assert_non_null(strstr(text, "Cube=c0"));
	assert_null(strstr(text, "Cube=c1"));
	assert_null(strstr(text, "Switch="));
	free(text);
	text = ocs_controller_report_print(records, count, "d[0-1],n17");
	assert_non_null(strstr(text, "Section=ring"));
	assert_non_null(strstr(text, "Cube=c1"));
	assert_non_null(strstr(text, "Unconfigured=16"));
	free(text);
	text = ocs_controller_report_print(records, count, "ocs-z-3-3");
	assert_non_null(strstr(text, "State=UP"));
	free(text);
	text = ocs_controller_report_print(records, count, "nobody");
	assert_string_equal(text, "");
	free(text);
	text = ocs_controller_report_print(records, count, NULL);
	assert_non_null(strstr(text, "Switch=direct-1"));
	free(text);
	ocs_controller_report_free(records, count);
	ocs_controller_allocation_free(made);
}

static void test_bad_file(void **state)
{
	const struct ocs_fabric *fabric = ocs_controller_fabric();
	struct ocs_error err;

	(void)state;
	assert_int_equal(ocs_controller_open("/nonexistent/ocs.yaml", &err), -1);
	assert_non_null(strstr(err.text, "/nonexistent/ocs.yaml"));
	assert_ptr_equal(ocs_controller_fabric(), fabric);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_request, start, finish),
		cmocka_unit_test_setup_teardown(test_without_ocsd, start, finish),
		cmocka_unit_test_setup_teardown(test_bad_file, start, finish),
		cmocka_unit_test_setup_teardown(test_choice_is_stable, start_joined, finish),
		cmocka_unit_test_setup_teardown(test_required_nodes, start_joined, finish),
		cmocka_unit_test_setup_teardown(test_node_counts_that_contradict, start, finish),
		cmocka_unit_test_setup_teardown(test_commit_end_release, start_joined, finish),
		cmocka_unit_test_setup_teardown(test_begin_refuses_taken_nodes, start_joined,
						finish),
		cmocka_unit_test_setup_teardown(test_faults, start_joined, finish),
		cmocka_unit_test_setup_teardown(test_job_failed, start_joined, finish),
		cmocka_unit_test_setup_teardown(test_refused_commit, start_joined, finish),
		cmocka_unit_test_setup_teardown(test_reconnect, start_joined, finish),
		cmocka_unit_test_setup_teardown(test_restore, start_joined, finish),
		cmocka_unit_test_setup_teardown(test_node_lost, start_joined, finish),
		cmocka_unit_test_setup_teardown(test_pending, start_joined, finish),
		cmocka_unit_test_setup_teardown(test_direct, start_joined, finish),
		cmocka_unit_test_setup_teardown(test_report, start_joined, finish),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
