/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* From the last rank's letter to the last grant, with the real controller and the real ocsd and
 * emulator: an operation of all ranks, whose circuits stand.  First with connections of nodes, eight
 * ranks each, that this program holds (on a cluster each node has its own processor; here all agents
 * would share this one); then with real agents and mailboxes, a process for each of at most 8 nodes.
 * The state lies in DIRECTORY.
 * Usage: bench_rails_control BUILD-DIRECTORY DIRECTORY [ROUNDS [PAUSE-US]] */

#include "tests/bench/rails_job.h"

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
#include "src/util/net.h"
#include "src/util/text.h"

#define ROUNDS_MAX 100000
#define SECOND INT64_C(1000000000)

static double values[ROUNDS_MAX];
static const char *build;

static int compare(const void *a, const void *b)
{
	double p = *(const double *)a, q = *(const double *)b;

	return (p > q) - (p < q);
}

static void show(const char *what, int ranks, int n)
{
	qsort(values, (size_t)n, sizeof(*values), compare);
	printf("%-34s %5d ranks  min %6.3f  p50 %6.3f  p99 %6.3f ms\n", what, ranks, values[0],
	       values[n / 2], values[n * 99 / 100]);
	fflush(stdout);
}

/* ---- connections of nodes ---- */

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
	nodes_close(count);
	job_end(d, controller);
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

	if (argc < 3 || rounds < 1 || rounds > ROUNDS_MAX) {
		fputs("usage: bench_rails_control BUILD-DIRECTORY DIRECTORY [ROUNDS [PAUSE-US]]\n",
		      stderr);
		return 2;
	}
	setrlimit(RLIMIT_NOFILE, &files);
	d.build = build = argv[1];
	d.folder = argv[2];
	meet.job = 100;
	job_daemons(&d, "0");
	connections_run(&d, 64, rounds, pause_us);
	connections_run(&d, 512, rounds, pause_us);
	connections_run(&d, 2048, rounds, pause_us);
	agents_run(&d, 8 * PER_NODE, rounds, pause_us);
	daemons_stop(&d);
	return 0;
}
