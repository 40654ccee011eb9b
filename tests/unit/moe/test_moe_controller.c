/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The controller of a job with experts, in front of a real ocsd and emulated switches: circuits follow what
 * gates say, plans name those that stand, and what dies leaves the circuits as they are. */

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "src/util/error.h"
#include "src/util/net.h"
#include "src/util/text.h"
#include "tests/unit/moe/controller_bench.h"

static void follows(void **state)
{
	struct bench b = { .rig = *state };
	struct ocs_client *client = job_start(&b);
	int microbatch[GROUPS] = { 0, 0 };

	controller_start(&b);
	for (int turn = 0; turn < 3; turn++)
		for (int g = 0; g < GROUPS; g++) {
			const int *partner = (turn + g) % 2 ? bench_near : bench_far;

			microbatch[g] = passes_go(&b, g, microbatch[g], partner);
			assert_int_equal(circuits_between(&b, g, 0, partner[0]), NICS);
		}
	/* what one group wanted last stands while the other one changes */
	assert_int_equal(circuits_between(&b, 0, 0, bench_far[0]), NICS);
	assert_int_equal(circuits_between(&b, 1, 0, bench_near[0]), NICS);
	controller_stop(&b, SIGTERM);
	ocs_client_close(client);
}

/* What the controller of the job has said of GROUP to ocsd so far, with the time that an all-to-all took; the
 * caller puts it.  NULL: nothing yet. */
static struct json_object *seen_ask(struct ocs_client *client, int group)
{
	struct json_object *reply = rig_ask(client, "{'op':'show','what':'region','name':'1'}");
	struct json_object *one =
		json_object_array_get_idx(json_object_object_get(reply, "region"), 0);
	struct json_object *row =
		json_object_array_get_idx(json_object_object_get(one, "groups"), (size_t)group);
	struct json_object *seen = json_object_get(json_object_object_get(row, "seen"));

	json_object_put(reply);
	if (seen && json_object_object_get(seen, "took_ms") &&
	    json_object_array_length(json_object_object_get(seen, "layers")))
		return seen;
	json_object_put(seen);
	return NULL;
}

/* ocsd hears of the last all-to-all: its matrix, how long it took, and how well its layer was foretold. */
static void tells_what_it_saw(void **state)
{
	struct bench b = { .rig = *state };
	struct ocs_client *client = job_start(&b);
	int64_t deadline = ocs_now_ns() + INT64_C(60000000000);
	struct json_object *seen = NULL, *row, *layer, *top;

	controller_start(&b);
	for (int microbatch = 0; !seen && ocs_now_ns() < deadline; microbatch++) {
		pass_go(&b, 1, microbatch, bench_far);
		seen = seen_ask(client, 1);
	}
	assert_non_null(seen);
	row = json_object_array_get_idx(json_object_object_get(seen, "tokens"), 1);
	assert_int_equal(json_object_array_length(row), SERVERS);
	assert_int_equal(json_object_get_int(json_object_array_get_idx(row, 3)), 1000000);
	assert_int_equal(json_object_get_int(json_object_array_get_idx(row, 0)), 10);
	assert_true(json_object_get_double(json_object_object_get(seen, "took_ms")) >= 0);
	assert_true(json_object_get_double(json_object_object_get(seen, "rate")) > 0);
	assert_int_equal(json_object_array_length(json_object_object_get(seen, "layers")), 1);
	layer = json_object_array_get_idx(json_object_object_get(seen, "layers"), 0);
	assert_int_equal(json_object_get_int(json_object_object_get(layer, "layer")), 0);
	/* it is always the same: foretold from the first pass on */
	assert_true(json_object_get_double(json_object_object_get(layer, "difference")) < 0.01);
	top = json_object_object_get(layer, "top");
	assert_int_equal(json_object_array_length(top), 4);
	assert_float_equal(json_object_get_double(json_object_array_get_idx(top, 0)), 1, 1e-9);
	/* the other group has said nothing */
	assert_null(seen_ask(client, 0));
	json_object_put(seen);
	controller_stop(&b, SIGTERM);
	ocs_client_close(client);
}

/* Without ocsd the circuits stay, and every plan has them; then they follow again. */
static void without_ocsd(void **state)
{
	struct bench b = { .rig = *state };
	struct ocs_client *client = job_start(&b);
	int microbatch, all;

	controller_start(&b);
	microbatch = passes_go(&b, 0, 0, bench_far);
	rig_stop_daemon(b.rig, SIGKILL);
	for (int i = 0; i < 3; i++)
		assert_int_equal(pass_go(&b, 0, microbatch++, bench_near), 0);
	assert_int_equal(plan_ask(&b, 0, 0, microbatch, 0, 0, 0, bench_far[0], &all), NICS);
	assert_int_equal(all, SERVERS * NICS / 2);
	assert_int_equal(circuits_between(&b, 0, 0, bench_far[0]), NICS);
	ocs_client_close(client);
	rig_start_daemon(b.rig);
	passes_go(&b, 0, microbatch + 1, bench_near);
	assert_int_equal(circuits_between(&b, 0, 0, bench_near[0]), NICS);
	controller_stop(&b, SIGKILL);
}

/* A controller that takes the place of one that died finds the circuits that stand. */
static void another_controller(void **state)
{
	struct bench b = { .rig = *state };
	struct ocs_client *client = job_start(&b);
	int breaks, microbatch;

	controller_start(&b);
	passes_go(&b, 0, 0, bench_far);
	controller_stop(&b, SIGKILL);
	assert_int_equal(circuits_between(&b, 0, 0, bench_far[0]), NICS);
	breaks = rig_log_lines(b.rig, "\"break\"", NULL);
	controller_start(&b);
	/* Its plans have them as soon as it has found ocsd. */
	microbatch = passes_go(&b, 0, 100000, bench_far);
	assert_int_equal(rig_log_lines(b.rig, "\"break\"", NULL), breaks);
	passes_go(&b, 0, microbatch, bench_near);
	controller_stop(&b, SIGTERM);
	ocs_client_close(client);
}

/* Datagrams with numbers that no run has leave no mark, also as the first ones. */
static void strange_say(const struct bench *b)
{
	char *path = bench_path(b, "sockets/gate.0");
	struct ocs_moe_gate *gate = ocs_moe_gate_open(path, 0, INT32_MAX / SERVERS * SERVERS);

	ocs_moe_gate_step(gate, 0, 0, 0, 0, 0);
	ocs_moe_gate_close(gate);
	ocs_moe_gate_step(b->gate[0][0], 0, INT64_MAX, 0, 0, 0);
	free(path);
}

/* Lost rows, rubbish, and ranks that contradict each other: plans go on. */
static void lost_rows(void **state)
{
	struct bench b = { .rig = *state };
	struct ocs_client *client = job_start(&b);
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0), all, microbatch;
	int64_t row[SERVERS] = { 1, 2, 3, 4 };

	controller_start(&b);
	strange_say(&b);
	microbatch = passes_go(&b, 0, 0, bench_far);
	snprintf(at.sun_path, sizeof(at.sun_path), "%s/sockets/gate.0", b.rig->emulator.folder);
	for (int i = 0; i < 50; i++) {
		char noise[200];

		for (size_t k = 0; k < sizeof(noise); k++)
			noise[k] = (char)(i * 31 + (int)k * 7);
		sendto(fd, noise, (size_t)i * 4, 0, (struct sockaddr *)&at, sizeof(at));
	}
	for (int i = 0; i < 5; i++, microbatch++) {
		/* three rows of four, and one that says something else the second time */
		plan_ask(&b, 0, 0, microbatch, 0, 0, 0, bench_far[0], &all);
		for (int s = 0; s < SERVERS - 1; s++)
			ocs_moe_gate(b.gate[0][s], 0, microbatch, row, SERVERS);
		row[0]++;
		ocs_moe_gate(b.gate[0][0], 0, microbatch, row, SERVERS);
		assert_int_equal(plan_ask(&b, 0, 0, microbatch, 0, 1, 0, bench_far[0], &all), NICS);
	}
	assert_int_equal(circuits_between(&b, 0, 0, bench_far[0]), NICS);
	passes_go(&b, 0, microbatch, bench_near);
	close(fd);
	controller_stop(&b, SIGTERM);
	ocs_client_close(client);
}

/* It ends with the process that --parent-fd names, in good order, and not before. */
static void parent_ends(void **state)
{
	struct bench b = { .rig = *state };
	struct ocs_client *client = job_start(&b);
	char *sockets = bench_path(&b, "sockets");
	pid_t parent = fork();
	int status = -1;

	if (!parent) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	b.parent = (int)syscall(SYS_pidfd_open, parent, 0);
	assert_true(b.parent > 0);
	assert_int_equal(fcntl(b.parent, F_SETFD, 0), 0);
	controller_start(&b);
	close(b.parent);
	passes_go(&b, 0, 0, bench_far);
	assert_int_equal(waitpid(b.controller, &status, WNOHANG), 0);
	process_end(parent, SIGKILL);
	assert_int_equal(waitpid(b.controller, &status, 0), b.controller);
	assert_int_equal(status, 0);
	assert_int_equal(access(sockets, F_OK), -1);
	ranks_leave(&b);
	free(sockets);
	ocs_client_close(client);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(follows, bench_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(tells_what_it_saw, bench_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(without_ocsd, bench_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(another_controller, bench_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(lost_rows, bench_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(parent_ends, bench_setup, rig_teardown),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
