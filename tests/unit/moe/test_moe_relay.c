/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Ranks of nodes without the controller of their job: a relay takes what they say to it. */

#include <endian.h>
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
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "src/rails/rendezvous.h"
#include "src/util/error.h"
#include "src/util/net.h"
#include "src/util/text.h"
#include "tests/unit/moe/controller_bench.h"

/* The ranks of SERVER report at another folder. */
static void gate_move(struct bench *b, int group, int server, const char *name)
{
	char *path = bench_path(b, name), *gate = ocs_asprintf("%s/gate.%d", path, group);

	ocs_moe_gate_close(b->gate[group][server]);
	b->gate[group][server] = ocs_moe_gate_open(gate, server, SERVERS);
	free(gate);
	free(path);
}

/* All ranks of GROUP are on other nodes. */
static void group_move(struct bench *b, int group, const char *name)
{
	fclose(b->plan[group]);
	for (int s = 0; s < SERVERS; s++)
		ocs_moe_gate_close(b->gate[group][s]);
	ranks_connect(b, group, name);
}

/* Ranks of other nodes: their gates and questions reach the controller by a relay. */
static void by_relay(void **state)
{
	struct bench b = { .rig = *state };
	struct ocs_client *client = job_start(&b);
	int microbatch[GROUPS] = { 0, 0 };
	char *folder;

	controller_start(&b);
	b.relay = relay_run(&b, "relay", true);
	gate_move(&b, 0, 2, "relay");
	gate_move(&b, 0, 3, "relay");
	group_move(&b, 1, "relay");
	for (int turn = 0; turn < 2; turn++)
		for (int g = 0; g < GROUPS; g++) {
			const int *partner = (turn + g) % 2 ? bench_near : bench_far;

			microbatch[g] = passes_go(&b, g, microbatch[g], partner);
		}
	process_end(b.relay, SIGTERM);
	folder = bench_path(&b, "relay");
	assert_int_equal(access(folder, F_OK), -1);
	free(folder);
	controller_stop(&b, SIGTERM);
	ocs_client_close(client);
}

/* Asks until the plan is one of packets, which is in the end what a relay says without a controller. */
static int packets_await(struct bench *b, int group, int microbatch)
{
	int64_t deadline = ocs_now_ns() + INT64_C(60000000000);
	int all;

	do {
		plan_ask(b, group, 0, ++microbatch, 0, 0, 0, 1, &all);
		if (all)
			usleep(20000);
	} while (all && ocs_now_ns() < deadline);
	assert_int_equal(all, 0);
	return microbatch + 1;
}

/* A relay answers without its controller, before it, after it, and while it is stopped; and finds the next
 * one.  Ranks keep their connections. */
static void relay_alone(void **state)
{
	struct bench b = { .rig = *state };
	struct ocs_client *client = job_start(&b);
	int microbatch, all;

	b.relay = relay_run(&b, "relay", true);
	for (int g = 0; g < GROUPS; g++)
		ranks_connect(&b, g, "relay");
	for (int i = 0; i < 3; i++) {
		assert_int_equal(pass_go(&b, 0, i, bench_far), 0);
		plan_ask(&b, 0, 0, i, 0, 0, 0, bench_far[0], &all);
		assert_int_equal(all, 0);
	}
	controller_run(&b);
	microbatch = passes_go(&b, 0, 3, bench_far);
	kill(b.controller, SIGSTOP);
	microbatch = packets_await(&b, 0, microbatch);
	kill(b.controller, SIGCONT);
	microbatch = passes_go(&b, 0, microbatch, bench_near);
	process_end(b.controller, SIGKILL);
	microbatch = packets_await(&b, 0, microbatch);
	controller_run(&b);
	passes_go(&b, 0, microbatch, bench_far);
	controller_stop(&b, SIGKILL);
	process_end(b.relay, SIGKILL);
	ocs_client_close(client);
}

/* Until a relay takes connections in its folder. */
static void relay_await(struct bench *b)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int64_t deadline = ocs_now_ns() + INT64_C(60000000000);
	char *path = bench_path(b, "relay/plan.1");
	int fd = -1, rc;

	snprintf(at.sun_path, sizeof(at.sun_path), "%s", path);
	do {
		if (fd >= 0) {
			close(fd);
			usleep(20000);
		}
		fd = socket(AF_UNIX, SOCK_STREAM, 0);
		rc = connect(fd, (struct sockaddr *)&at, sizeof(at));
	} while (rc < 0 && ocs_now_ns() < deadline);
	assert_int_equal(rc, 0);
	close(fd);
	free(path);
}

/* A second relay of a node serves when the first one has ended, in the same folder. */
static void relay_after_relay(void **state)
{
	struct bench b = { .rig = *state };
	struct ocs_client *client = job_start(&b);
	pid_t first = relay_run(&b, "relay", true);
	int microbatch;

	b.relay = relay_run(&b, "relay", false);
	controller_start(&b);
	group_move(&b, 1, "relay");
	microbatch = passes_go(&b, 1, 0, bench_far);
	process_end(first, SIGKILL);
	/* the rank's connection ended with it */
	fprintf(b.plan[1], "plan 0 0 0 0\n");
	fflush(b.plan[1]);
	assert_int_equal(fgetc(b.plan[1]), EOF);
	relay_await(&b);
	group_move(&b, 1, "relay");
	passes_go(&b, 1, microbatch, bench_near);
	controller_stop(&b, SIGTERM);
	process_end(b.relay, SIGTERM);
	ocs_client_close(client);
}

/* ---- who is none of the job ---- */

/* A connection to the controller, whichever of its ports it took, with its first frame. */
static int controller_dial(struct ocs_inbox *inbox, struct ocs_frame_challenge *challenge)
{
	int64_t deadline = ocs_now_ns() + INT64_C(60000000000);
	int low = atoi(bench_ports()), fd = -1, got = 0;
	char *address = ocs_asprintf("127.0.0.1:%d", low + 7);
	struct ocs_frame frame;

	fd = ocs_net_connect(address, 10000, NULL);
	assert_true(fd >= 0);
	while (got == 0 && ocs_now_ns() < deadline) {
		assert_true(ocs_inbox_fill(inbox, fd, 65536) >= 0);
		got = ocs_inbox_next(inbox, &frame);
		usleep(1000);
	}
	assert_int_equal(got, 1);
	assert_int_equal(ocs_frame_challenge_read(&frame, challenge), 0);
	free(address);
	return fd;
}

/* Waits for the end of the connection, before which there comes no frame. */
static void end_await(int fd, struct ocs_inbox *inbox)
{
	int64_t deadline = ocs_now_ns() + INT64_C(60000000000);
	struct ocs_frame frame;
	int rc = 0;

	while ((rc = ocs_inbox_fill(inbox, fd, 65536)) >= 0 && ocs_now_ns() < deadline)
		usleep(1000);
	assert_int_equal(rc, -1);
	assert_int_equal(ocs_inbox_next(inbox, &frame), 0);
	close(fd);
	ocs_inbox_free(inbox);
}

/* Says hello with a proof by SECRET. */
static void hello_say(const char *secret, uint32_t version, uint64_t epoch, uint32_t node)
{
	struct {
		struct ocs_frame_hello hello;
		uint32_t rank;
	} body = { .hello = { .version = version,
			      .job = 1,
			      .epoch = epoch,
			      .node = node,
			      .total = SERVERS * GROUPS,
			      .count = 1 },
		   .rank = htole32(1) };
	struct ocs_frame_challenge challenge;
	struct ocs_outbox outbox = { 0 };
	struct ocs_inbox inbox = { 0 };
	int fd = controller_dial(&inbox, &challenge);
	size_t skip = sizeof(body.hello.proof), size = sizeof(body.hello) + sizeof(body.rank);
	uint8_t bytes[sizeof(body)];

	ocs_frame_hello_swap(&body.hello);
	memcpy(bytes, &body.hello, sizeof(body.hello));
	memcpy(bytes + sizeof(body.hello), &body.rank, sizeof(body.rank));
	ocs_frames_prove(secret, "agent", challenge.nonce, body.hello.nonce, bytes + skip,
			 size - skip, bytes);
	ocs_outbox_frame(&outbox, OCS_FRAME_HELLO, bytes, size, NULL, 0);
	assert_int_equal(ocs_outbox_flush(&outbox, fd), 1);
	ocs_outbox_free(&outbox);
	end_await(fd, &inbox);
}

/* Bytes that are no hello, and a question before it. */
static void noise_say(int kind)
{
	struct ocs_frame_challenge challenge;
	struct ocs_outbox outbox = { 0 };
	struct ocs_inbox inbox = { 0 };
	int fd = controller_dial(&inbox, &challenge);
	char noise[8192];

	memset(noise, kind, sizeof(noise));
	if (kind)
		assert_true(write(fd, noise, sizeof(noise)) > 0);
	else
		ocs_outbox_frame(&outbox, (enum ocs_frame_kind)33, noise, 32, NULL, 0);
	assert_int_equal(ocs_outbox_flush(&outbox, fd), 1);
	ocs_outbox_free(&outbox);
	end_await(fd, &inbox);
}

/* Who does not know the secret, or is of another version, job or node, is hung up on before a word of welcome, and the
 * job goes on. */
static void strangers(void **state)
{
	struct bench b = { .rig = *state };
	struct ocs_client *client = job_start(&b);
	struct ocs_frame_challenge challenge;
	struct ocs_inbox inbox = { 0 };
	char *path = bench_path(&b, "relay.key"), *secret;
	int silent, microbatch;

	secret = ocs_file_read(path, 256, NULL, NULL);
	assert_non_null(secret);
	controller_start(&b);
	b.relay = relay_run(&b, "relay", true);
	group_move(&b, 1, "relay");
	microbatch = passes_go(&b, 1, 0, bench_far);
	silent = controller_dial(&inbox, &challenge);
	hello_say("another secret of this length", OCS_FRAMES_VERSION, 10, 1);
	hello_say(secret, OCS_FRAMES_VERSION + 1, 10, 1);
	hello_say(secret, 0, 10, 1);
	hello_say(secret, OCS_FRAMES_VERSION, 9, 1);
	hello_say(secret, OCS_FRAMES_VERSION, 10, SERVERS * GROUPS);
	for (int kind = 0; kind < 3; kind++)
		noise_say(kind * 127);
	passes_go(&b, 1, microbatch, bench_near);
	close(silent);
	ocs_inbox_free(&inbox);
	process_end(b.relay, SIGTERM);
	controller_stop(&b, SIGTERM);
	ocs_client_close(client);
	free(secret);
	free(path);
}

/* What listens where the controller should, without the secret: the relay has packets, and finds the controller at
 * the next port when that comes. */
static void false_controller(void **state)
{
	struct bench b = { .rig = *state };
	struct ocs_client *client = job_start(&b);
	struct ocs_outbox outbox = { 0 };
	uint8_t nonce[OCS_FRAMES_NONCE];
	struct ocs_rendezvous meet = { .job = 1 };
	int listener, all, fd = -1;

	assert_int_equal(ocs_rendezvous_ports(&meet, bench_ports(), NULL), 0);
	listener = ocs_rendezvous_listen(&meet, NULL);
	assert_true(listener >= 0);
	assert_int_equal(ocs_rendezvous_challenge(&outbox, nonce), 0);
	b.relay = relay_run(&b, "relay", true);
	ranks_connect(&b, 0, "relay");
	for (int i = 0; fd < 0 && i < 60000; i++) {
		fd = accept(listener, NULL, NULL);
		if (fd < 0)
			usleep(1000);
	}
	assert_true(fd >= 0);
	assert_true(write(fd, outbox.data, outbox.used) > 0);
	/* it welcomes without a proof */
	outbox.used = 0;
	ocs_outbox_frame(&outbox, OCS_FRAME_WELCOME, &(struct ocs_frame_welcome){ 0 },
			 sizeof(struct ocs_frame_welcome), NULL, 0);
	assert_true(write(fd, outbox.data, outbox.used) > 0);
	plan_ask(&b, 0, 0, 0, 0, 0, 0, 1, &all);
	assert_int_equal(all, 0);
	close(fd);
	controller_run(&b);
	close(listener);
	passes_go(&b, 0, 1, bench_far);
	process_end(b.relay, SIGTERM);
	ranks_connect(&b, 1, "sockets");
	controller_stop(&b, SIGTERM);
	ocs_outbox_free(&outbox);
	ocs_client_close(client);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(by_relay, bench_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(relay_alone, bench_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(relay_after_relay, bench_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(strangers, bench_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(false_controller, bench_setup, rig_teardown),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
