/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* From the last rank's letter to the last grant, with the real controller and the real ocsd and
 * emulator: an operation of all ranks, whose circuits stand.  First with connections of nodes, eight
 * ranks each, that this program holds (on a cluster each node has its own processor; here all agents
 * would share this one); then with real agents and mailboxes, a process for each of at most 8 nodes.
 * The state lies in DIRECTORY.  With TABLES, the phase tables of ocs-replay(1): their operations one after
 * the other, on switches that need no time.
 * Usage: bench_rails_control BUILD-DIRECTORY DIRECTORY [ROUNDS [PAUSE-US [TABLES]]] */

#include "tests/bench/daemons.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/rails/mailbox.h"
#include "src/rails/phase_table.h"
#include "src/rails/rendezvous.h"
#include "src/util/net.h"
#include "src/util/text.h"

#define PER_NODE 8
#define NODES_MAX 256
#define ROUNDS_MAX 100000
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

static struct ocs_error err;
static double values[ROUNDS_MAX];
static struct ocs_rendezvous meet;
static char key[65];
static const char *build, *directory;

static int compare(const void *a, const void *b)
{
	double p = *(const double *)a, q = *(const double *)b;

	return (p > q) - (p < q);
}

static void fail(const char *what)
{
	fprintf(stderr, "bench_rails_control: %s: %s\n", what,
		err.text[0] ? err.text : strerror(errno));
	exit(1);
}

static void show(const char *what, int ranks, int n)
{
	qsort(values, (size_t)n, sizeof(*values), compare);
	printf("%-34s %5d ranks  min %6.3f  p50 %6.3f  p99 %6.3f ms\n", what, ranks, values[0],
	       values[n / 2], values[n * 99 / 100]);
	fflush(stdout);
}

static int key_fd(const char *text)
{
	int fd = memfd_create("key", 0);

	if (fd < 0 || dprintf(fd, "%s\n", text) < 0)
		fail("key");
	return fd;
}

static pid_t program_start(const char *const *argv, int fd)
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

static void program_stop(pid_t child)
{
	kill(child, SIGTERM);
	waitpid(child, NULL, 0);
}

/* A job over COUNT nodes in so many STAGES, and its controller. */
static pid_t job_start(struct daemons *d, int count, int stages, const char *mode)
{
	char *program = ocs_asprintf("%s/src/rails/ocs-rails-controller", build);
	char *socket = ocs_asprintf("unix:%s/ocsd.sock", directory);
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

static void job_end(struct daemons *d, pid_t child)
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

/* ---- connections of nodes ---- */

struct node {
	int fd;
	struct ocs_inbox inbox;
	struct ocs_outbox outbox;
	bool granted;
};

static struct node nodes[NODES_MAX];
static int polled;

/* Node NUMBER of a step of TOTAL ranks, PER of them on each node. */
static void node_connect(int number, int total, int per)
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
static void nodes_await(int count, unsigned int kind)
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

static void node_group(struct node *node, uint64_t group, int total)
{
	struct ocs_frame_group frame = { .group = group, .count = (uint32_t)total };
	uint32_t *ranks = ocs_calloc((size_t)total, sizeof(*ranks));

	for (int i = 0; i < total; i++)
		ranks[i] = (uint32_t)i;
	ocs_frame_group_swap(&frame);
	ocs_outbox_frame(&node->outbox, OCS_FRAME_GROUP, &frame, sizeof(frame), ranks,
			 (size_t)total * sizeof(*ranks));
	free(ranks);
}

/* Letters of the ranks of node NUMBER about operation IDX. */
static void node_letters(int number, uint64_t group, uint64_t idx, uint32_t kind)
{
	for (int i = 0; i < PER_NODE; i++) {
		struct ocs_frame_letter letter = {
			.group = group,
			.idx = idx,
			.rank = (uint32_t)(number * PER_NODE + i),
			.kind = kind,
		};

		ocs_frame_letter_swap(&letter);
		ocs_outbox_record(&nodes[number].outbox, OCS_FRAME_LETTERS, &letter,
				  sizeof(letter));
	}
}

static void node_flush(struct node *node)
{
	int64_t end = ocs_now_ns() + 20 * SECOND;

	while (ocs_outbox_flush(&node->outbox, node->fd) != 1)
		if (ocs_now_ns() > end)
			fail("send");
}

/* A round: all but the last node arrive, and after PAUSE the last one.  The time is the last node's. */
static double round_take(int count, uint64_t group, uint64_t idx, int pause_us)
{
	int64_t start;

	for (int i = 0; i < count - 1; i++) {
		node_letters(i, group, idx, OCS_RAILS_ARRIVE);
		node_flush(&nodes[i]);
	}
	usleep((useconds_t)pause_us);
	node_letters(count - 1, group, idx, OCS_RAILS_ARRIVE);
	start = ocs_now_ns();
	node_flush(&nodes[count - 1]);
	nodes_await(count, OCS_FRAME_GRANTS);
	for (int i = 0; i < count; i++)
		node_letters(i, group, idx, OCS_RAILS_END);
	return (double)(ocs_now_ns() - start) / 1e6;
}

static void connections_run(struct daemons *d, int total, int rounds, int pause_us)
{
	int count = total / PER_NODE;
	pid_t controller = job_start(d, count, 2, "on-demand");
	uint64_t group = 77;

	polled = epoll_create1(0);
	for (int i = 0; i < count; i++)
		node_connect(i, total, PER_NODE);
	for (int i = 0; i < count; i++) {
		node_group(&nodes[i], group, total);
		node_flush(&nodes[i]);
	}
	nodes_await(count, OCS_FRAME_KNOWN);
	for (int i = 0; i < rounds; i++)
		values[i] = round_take(count, group, (uint64_t)i, pause_us);
	show("connections of nodes", total, rounds);
	for (int i = 0; i < count; i++) {
		close(nodes[i].fd);
		ocs_inbox_free(&nodes[i].inbox);
		ocs_outbox_free(&nodes[i].outbox);
	}
	close(polled);
	job_end(d, controller);
}

/* ---- phase tables ---- */

/* The letter KIND of RANK about OPERATION. */
static void replay_letter(struct node *node, int rank, const struct ocs_phase_operation *operation,
			  uint32_t kind)
{
	struct ocs_frame_letter letter = {
		.group = (uint64_t)operation->group,
		.idx = operation->idx,
		.rank = (uint32_t)rank,
		.kind = kind,
	};

	ocs_frame_letter_swap(&letter);
	ocs_outbox_record(&node->outbox, OCS_FRAME_LETTERS, &letter, sizeof(letter));
}

/* RANK goes on to its next operation. */
static void replay_next(const struct ocs_phase_tables *tables, int rank, size_t *at)
{
	const struct ocs_phase_rank *row = &tables->ranks[rank];
	struct node *node = &nodes[rank / tables->rails];

	if (*at)
		replay_letter(node, rank, &row->operations[*at - 1], OCS_RAILS_END);
	if (*at < row->count)
		replay_letter(node, rank, &row->operations[*at], OCS_RAILS_ARRIVE);
	++*at;
}

/* Ranks of node NUMBER that wait for GRANT. */
static void replay_grant(const struct ocs_phase_tables *tables, int number,
			 const struct ocs_frame_grant *grant, size_t *at, int *left)
{
	for (int i = 0; i < tables->rails; i++) {
		int rank = number * tables->rails + i;
		const struct ocs_phase_rank *row = &tables->ranks[rank];
		const struct ocs_phase_operation *operation;

		if (!at[rank] || at[rank] > row->count)
			continue;
		operation = &row->operations[at[rank] - 1];
		if ((uint64_t)operation->group != grant->group || operation->idx != grant->idx ||
		    (grant->rank >= 0 && grant->rank != rank))
			continue;
		replay_next(tables, rank, &at[rank]);
		*left -= at[rank] > row->count;
	}
}

static void replay_read(const struct ocs_phase_tables *tables, int number, size_t *at, int *left)
{
	struct node *node = &nodes[number];
	struct ocs_frame frame;

	if (ocs_inbox_fill(&node->inbox, node->fd, 1U << 24) < 0)
		fail("the controller is gone");
	while (ocs_inbox_next(&node->inbox, &frame) > 0)
		for (long i = 0; i < ocs_frame_records(&frame, OCS_FRAME_GRANTS); i++) {
			struct ocs_frame_grant grant;

			ocs_frame_grant_at(&frame, (size_t)i, &grant);
			if (grant.error)
				fail("an operation");
			replay_grant(tables, number, &grant, at, left);
		}
	node_flush(node);
}

/* All groups of TABLES, by the nodes of their members. */
static void replay_groups(const struct ocs_phase_tables *tables, int total)
{
	for (int g = 0; g < tables->ngroups; g++) {
		const struct ocs_phase_group *group = &tables->groups[g];
		struct ocs_frame_group frame = { .group = (uint64_t)g,
						 .count = (uint32_t)group->count };
		uint32_t *ranks = ocs_calloc((size_t)total, sizeof(*ranks));
		int last = -1;

		for (int i = 0; i < group->count; i++)
			ranks[i] = (uint32_t)group->ranks[i];
		ocs_frame_group_swap(&frame);
		for (int i = 0; i < group->count; i++) {
			int number = group->ranks[i] / tables->rails;

			if (number != last)
				ocs_outbox_frame(&nodes[number].outbox, OCS_FRAME_GROUP, &frame,
						 sizeof(frame), ranks,
						 (size_t)group->count * sizeof(*ranks));
			last = number;
		}
		free(ranks);
	}
}

/* The operations of FOLDER's tables one after the other, without a moment of work between them: what
 * remains is the control plane. */
static void replay_run(struct daemons *d, const char *folder, const char *mode, int rounds)
{
	struct ocs_phase_tables *tables = ocs_phase_tables_read(folder, 0, &err);
	struct epoll_event events[NODES_MAX];
	int stages, total, left;
	size_t *at;

	if (!tables)
		fail(folder);
	stages = ocs_rails_layout_stages(&tables->layout);
	total = tables->nodes * tables->rails;
	at = ocs_calloc((size_t)total, sizeof(*at));
	for (int round = 0; round < rounds; round++) {
		pid_t controller = job_start(d, tables->nodes, stages, mode);
		int64_t start;

		polled = epoll_create1(0);
		for (int i = 0; i < tables->nodes; i++)
			node_connect(i, total, tables->rails);
		replay_groups(tables, total);
		for (int i = 0; i < tables->nodes; i++)
			node_flush(&nodes[i]);
		nodes_await(tables->nodes, OCS_FRAME_KNOWN);
		start = ocs_now_ns();
		left = total;
		memset(at, 0, (size_t)total * sizeof(*at));
		for (int rank = 0; rank < total; rank++)
			replay_next(tables, rank, &at[rank]);
		for (int i = 0; i < tables->nodes; i++)
			node_flush(&nodes[i]);
		while (left) {
			int got = epoll_wait(polled, events, NODES_MAX, 20000);

			if (got <= 0)
				fail("nothing is granted");
			for (int i = 0; i < got; i++)
				replay_read(tables, (int)events[i].data.u32, at, &left);
		}
		values[round] = (double)(ocs_now_ns() - start) / 1e6;
		for (int i = 0; i < tables->nodes; i++) {
			close(nodes[i].fd);
			ocs_inbox_free(&nodes[i].inbox);
			ocs_outbox_free(&nodes[i].outbox);
		}
		close(polled);
		job_end(d, controller);
	}
	show(mode, total, rounds);
	free(at);
	ocs_phase_tables_free(tables);
}

/* ---- agents and mailboxes ---- */

struct mail {
	int fd, bell;
	struct ocs_rails_mailbox *box;
	uint32_t written, read;
};

static struct mail mails[8 * PER_NODE];

static pid_t agent_start(int number, int total)
{
	char *program = ocs_asprintf("%s/src/rails/ocs-rails-agent", build);
	char job[16], epoch[24], node[16], ranks[32], all[16], socket[64];
	const char *argv[] = { program, "--job",  job,	       "--epoch",  epoch,  "--step",
			       "0",	"--node", node,	       "--ranks",  ranks,  "--total",
			       all,	"--host", "127.0.0.1", "--socket", socket, NULL };
	pid_t child;

	snprintf(job, sizeof(job), "%u", meet.job);
	snprintf(epoch, sizeof(epoch), "%llu", (unsigned long long)meet.epoch);
	snprintf(node, sizeof(node), "%d", number);
	snprintf(ranks, sizeof(ranks), "%d-%d", number * PER_NODE,
		 number * PER_NODE + PER_NODE - 1);
	snprintf(all, sizeof(all), "%d", total);
	snprintf(socket, sizeof(socket), "@ocs-bench-%d-%d", (int)getpid(), number);
	child = program_start(argv, key_fd(meet.secret));
	free(program);
	return child;
}

static void mail_open(struct mail *mail, int rank, int total)
{
	struct ocs_rails_word word = {
		.kind = OCS_RAILS_HELLO,
		.version = OCS_RAILS_AGENT_VERSION,
		.rank = (uint32_t)rank,
		.ranks = (uint32_t)total,
	};
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	char control[CMSG_SPACE(2 * sizeof(int))];
	struct iovec part = { &word, sizeof(word) };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	int fds[2], length = snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1,
				      "ocs-bench-%d-%d", (int)getpid(), rank / PER_NODE);
	int64_t end = ocs_now_ns() + 20 * SECOND;

	mail->fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	while (connect(mail->fd, (struct sockaddr *)&address,
		       (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length)) <
	       0)
		if (ocs_now_ns() > end)
			fail("agent");
	message.msg_control = control;
	if (send(mail->fd, &word, sizeof(word), 0) < 0)
		fail("hello");
	message.msg_controllen = sizeof(control);
	if (recvmsg(mail->fd, &message, 0) < (ssize_t)sizeof(word) || word.error)
		fail("welcome");
	memcpy(fds, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fds));
	mail->bell = fds[1];
	mail->box = mmap(NULL, sizeof(*mail->box), PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
	mail->written = mail->read = 0;
	close(fds[0]);
}

static void mail_group(struct mail *mail, uint64_t group, int total)
{
	size_t length = sizeof(struct ocs_rails_word) + (size_t)total * sizeof(int32_t);
	struct ocs_rails_word *word = ocs_calloc(1, length);
	int32_t *ranks = (int32_t *)(word + 1);

	word->kind = OCS_RAILS_GROUP;
	word->group = group;
	word->count = (uint32_t)total;
	for (int i = 0; i < total; i++)
		ranks[i] = i;
	if (send(mail->fd, word, length, 0) < 0 ||
	    recv(mail->fd, word, sizeof(*word), MSG_TRUNC) < 0 || word->error)
		fail("group");
	free(word);
}

static void mail_write(struct mail *mail, uint32_t kind, uint64_t group, uint64_t idx)
{
	struct ocs_rails_ring *ring = &mail->box->to_agent;
	struct ocs_rails_letter letter = { .kind = kind, .group = group, .idx = idx };
	uint64_t one = 1;

	ring->letter[mail->written++ % OCS_RAILS_LETTERS] = letter;
	atomic_store(&ring->head, mail->written);
	if (write(mail->bell, &one, sizeof(one)) < 0)
		fail("bell");
}

static void mail_read(struct mail *mail)
{
	struct ocs_rails_ring *ring = &mail->box->to_rank;

	while (atomic_load(&ring->head) == mail->read)
		sched_yield();
	if (ring->letter[mail->read % OCS_RAILS_LETTERS].error)
		fail("an operation");
	atomic_store(&ring->tail, ++mail->read);
}

static void agents_run(struct daemons *d, int total, int rounds, int pause_us)
{
	int count = total / PER_NODE;
	pid_t controller = job_start(d, count, 2, "on-demand"), agents[8];
	uint64_t group = 78;

	for (int i = 0; i < count; i++)
		agents[i] = agent_start(i, total);
	for (int i = 0; i < total; i++)
		mail_open(&mails[i], i, total);
	for (int i = 0; i < total; i++)
		mail_group(&mails[i], group, total);
	for (int i = 0; i < rounds; i++) {
		int64_t start;

		for (int k = 0; k < total - 1; k++)
			mail_write(&mails[k], OCS_RAILS_ARRIVE, group, (uint64_t)i);
		usleep((useconds_t)pause_us);
		start = ocs_now_ns();
		mail_write(&mails[total - 1], OCS_RAILS_ARRIVE, group, (uint64_t)i);
		for (int k = 0; k < total; k++)
			mail_read(&mails[k]);
		values[i] = (double)(ocs_now_ns() - start) / 1e6;
		for (int k = 0; k < total; k++)
			mail_write(&mails[k], OCS_RAILS_END, group, (uint64_t)i);
	}
	show("agents and mailboxes", total, rounds);
	for (int i = 0; i < total; i++) {
		close(mails[i].fd);
		close(mails[i].bell);
		munmap(mails[i].box, sizeof(*mails[i].box));
	}
	for (int i = 0; i < count; i++)
		program_stop(agents[i]);
	job_end(d, controller);
}

int main(int argc, char **argv)
{
	int rounds = argc > 3 ? atoi(argv[3]) : 1000;
	int pause_us = argc > 4 ? atoi(argv[4]) : 2000;
	struct rlimit files = { 65536, 65536 };
	struct daemons d = { 0 };
	char *text;

	if (argc < 3 || rounds < 1 || rounds > ROUNDS_MAX) {
		fputs("usage: bench_rails_control BUILD-DIRECTORY DIRECTORY [ROUNDS [PAUSE-US [TABLES]]]\n",
		      stderr);
		return 2;
	}
	setrlimit(RLIMIT_NOFILE, &files);
	d.build = build = argv[1];
	d.folder = directory = argv[2];
	ocs_rendezvous_ports(&meet, OCS_RENDEZVOUS_PORTS, NULL);
	meet.job = 100;
	text = ocs_asprintf(yaml, d.folder);
	daemons_start(&d, text, "0");
	free(text);
	daemons_start_ocsd(&d);
	json_object_put(daemons_ask(&d, "{\"op\":\"subscribe\",\"jobs\":[]}"));
	if (argc > 5) {
		replay_run(&d, argv[5], "on-demand", rounds);
		replay_run(&d, argv[5], "provisioned", rounds);
		daemons_stop(&d);
		return 0;
	}
	connections_run(&d, 64, rounds, pause_us);
	connections_run(&d, 512, rounds, pause_us);
	connections_run(&d, 2048, rounds, pause_us);
	agents_run(&d, 8 * PER_NODE, rounds, pause_us);
	daemons_stop(&d);
	return 0;
}
