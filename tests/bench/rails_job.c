/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "tests/bench/rails_job.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/util/net.h"
#include "src/util/text.h"

#define SECOND INT64_C(1000000000)

static const char yaml[] = "version: 1\n"
			   "ocsd: {socket: \"unix:%1$s/ocsd.sock\", state: %1$s/state}\n"
			   "limits: {topologies_per_second: 100000}\n"
			   "timeouts: {switch: 20s, retry: 1s, poll: 60m, prolog: 2m}\n"
			   "switches:\n"
			   "  - name: rail-0\n"
			   "    driver: tl1\n"
			   "    address: \"unix:%1$s/{name}\"\n"
			   "    credentials: %1$s/credentials\n"
			   "    size: 1024\n"
			   "fabrics:\n"
			   "  - name: rails\n"
			   "    kind: rails\n"
			   "    partitions: [rails]\n"
			   "    nodes: n[0-255]\n"
			   "    rails: 1\n"
			   "    ports_per_nic: 2\n"
			   "    ports: {switch: \"rail-{interface}\", port: 2*server+nic_port+1}\n";

struct ocs_error err;
struct ocs_rendezvous meet;
struct node nodes[NODES_MAX];
int polled;
static char key[65];

void fail(const char *what)
{
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what,
		err.text[0] ? err.text : strerror(errno));
	exit(1);
}

int key_fd(const char *text)
{
	int fd = memfd_create("key", 0);

	if (fd < 0 || dprintf(fd, "%s\n", text) < 0)
		fail("key");
	return fd;
}

pid_t program_start(const char *const *argv, int fd)
{
	pid_t child = fork();

	if (!child) {
		int null = open("/dev/null", O_WRONLY);

		dup2(fd, 3);
		if (null > 3)
			dup2(null, 1);
		if (null > 3)
			dup2(null, 2);
		execv(argv[0], (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	close(fd);
	return child;
}

void program_stop(pid_t child)
{
	kill(child, SIGTERM);
	waitpid(child, NULL, 0);
}

/* A job over COUNT nodes in so many STAGES, and its controller. */
pid_t job_start(struct daemons *d, int count, int stages, const char *mode)
{
	char *program = ocs_asprintf("%s/src/rails/ocs-rails-controller", d->build);
	char *socket = ocs_asprintf("unix:%s/ocsd.sock", d->folder);
	char job[16], epoch[24];
	const char *argv[] = { program, "--job", job, "--epoch", epoch, "--ocsd", socket, NULL };
	struct json_object *reply;
	const char *text;
	char *request;
	pid_t child;

	meet.job++;
	meet.epoch = meet.job * 10;
	snprintf(job, sizeof(job), "%u", meet.job);
	snprintf(epoch, sizeof(epoch), "%llu", (unsigned long long)meet.epoch);
	request = ocs_asprintf("{\"op\":\"commit\",\"job\":%s,\"epoch\":%s,\"uid\":0,"
			       "\"section\":\"rails\",\"nodes\":\"n[0-%d]\","
			       "\"shape\":\"pp:%d,dp:%d\",\"phases\":\"%s\"}",
			       job, epoch, count - 1, stages, count / stages, mode);
	json_object_put(daemons_ask(d, request));
	free(request);
	request = ocs_asprintf("{\"op\":\"apply\",\"job\":%s,\"epoch\":%s,\"node\":\"n0\"}", job,
			       epoch);
	reply = daemons_ask(d, request);
	free(request);
	text = json_object_get_string(json_object_object_get(reply, "key"));
	if (!text)
		fail("no key");
	snprintf(key, sizeof(key), "%s", text);
	json_object_put(reply);
	ocs_rendezvous_derive(&meet, key);
	child = program_start(argv, key_fd(key));
	free(socket);
	free(program);
	return child;
}

void job_end(struct daemons *d, pid_t child)
{
	program_stop(child);
	for (int i = 0; i < 2; i++) {
		char *request = ocs_asprintf("{\"op\":\"%s\",\"job\":%u,\"epoch\":%llu}",
					     i ? "release" : "end", meet.job,
					     (unsigned long long)meet.epoch);

		json_object_put(daemons_ask(d, request));
		free(request);
	}
}

/* Node NUMBER of a step of TOTAL ranks, PER of them on each node. */
void node_connect(int number, int total, int per)
{
	struct ocs_frame_hello hello = {
		.node = (uint32_t)number,
		.total = (uint32_t)total,
		.count = (uint32_t)per,
	};
	struct ocs_frame_welcome welcome;
	struct node *node = &nodes[number];
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = (uint32_t)number };
	int ranks[PER_NODE];

	memset(node, 0, sizeof(*node));
	for (int i = 0; i < per; i++)
		ranks[i] = number * per + i;
	for (int64_t end = ocs_now_ns() + 20 * SECOND;;) {
		node->fd = ocs_rendezvous_connect(&meet, "127.0.0.1", &hello, ranks, &welcome,
						  &node->inbox, &err);
		if (node->fd >= 0)
			break;
		if (ocs_now_ns() > end)
			fail("connect");
		usleep(10000);
	}
	epoll_ctl(polled, EPOLL_CTL_ADD, node->fd, &event);
}

/* Waits until each of COUNT nodes has a frame of KIND. */
void nodes_await(int count, unsigned int kind)
{
	struct epoll_event events[NODES_MAX];
	int left = count;

	for (int i = 0; i < count; i++)
		nodes[i].granted = false;
	while (left) {
		int got = epoll_wait(polled, events, NODES_MAX, 20000);

		if (got <= 0)
			fail("nothing is granted");
		for (int i = 0; i < got; i++) {
			struct node *node = &nodes[events[i].data.u32];
			struct ocs_frame frame;

			if (ocs_inbox_fill(&node->inbox, node->fd, 1U << 24) < 0)
				fail("the controller is gone");
			while (ocs_inbox_next(&node->inbox, &frame) > 0) {
				struct ocs_frame_grant grant = { 0 };

				if (frame.kind == OCS_FRAME_GRANTS)
					ocs_frame_grant_at(&frame, 0, &grant);
				if (frame.kind != kind || grant.error)
					fail("another frame");
				left -= !node->granted;
				node->granted = true;
			}
		}
	}
}

void node_flush(struct node *node)
{
	int64_t end = ocs_now_ns() + 20 * SECOND;

	while (ocs_outbox_flush(&node->outbox, node->fd) != 1)
		if (ocs_now_ns() > end)
			fail("send");
}

void job_daemons(struct daemons *d, const char *delay)
{
	char *text = ocs_asprintf(yaml, d->folder);

	ocs_rendezvous_ports(&meet, OCS_RENDEZVOUS_PORTS, NULL);
	daemons_start(d, text, delay);
	free(text);
	daemons_start_ocsd(d);
	json_object_put(daemons_ask(d, "{\"op\":\"subscribe\",\"jobs\":[]}"));
}

void nodes_close(int count)
{
	for (int i = 0; i < count; i++) {
		close(nodes[i].fd);
		ocs_inbox_free(&nodes[i].inbox);
		ocs_outbox_free(&nodes[i].outbox);
	}
	close(polled);
}
