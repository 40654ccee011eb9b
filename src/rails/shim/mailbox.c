/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The agent of the node: its socket, and letters in the memory that it shares. */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "src/rails/shim/gate_internal.h"

int64_t ocs_gate_now_ms(void)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	return (int64_t)at.tv_sec * 1000 + at.tv_nsec / 1000000;
}

void ocs_gate_futex_wait(_Atomic uint32_t *word, uint32_t value, int ms, bool shared)
{
	struct timespec limit = { ms / 1000, ms % 1000 * 1000000L };

	syscall(SYS_futex, word, shared ? FUTEX_WAIT : FUTEX_WAIT_PRIVATE, value,
		ms < 0 ? NULL : &limit, NULL, 0);
}

void ocs_gate_futex_wake(_Atomic uint32_t *word, bool shared)
{
	syscall(SYS_futex, word, shared ? FUTEX_WAKE : FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/* An agent may start a moment later than the tasks. */
static int agent_connect(const char *path, int64_t until)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
	struct ucred peer;
	int sock;

	if (strlen(path) >= sizeof(address.sun_path))
		return ocs_gate_fail("the path of the agent is too long: %s", path);
	memcpy(address.sun_path, path, strlen(path));
	if (*path == '@')
		address.sun_path[0] = '\0'; /* an abstract name */
	else
		size++;
	sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (sock < 0)
		return ocs_gate_fail("no socket: %s", strerror(errno));
	while (connect(sock, (struct sockaddr *)&address, size) < 0) {
		if ((errno != ENOENT && errno != ECONNREFUSED && errno != EINTR &&
		     errno != EAGAIN) ||
		    ocs_gate_now_ms() >= until) {
			ocs_gate_fail("the agent at %s: %s", path, strerror(errno));
			close(sock);
			return -1;
		}
		poll(NULL, 0, 20);
	}
	/* Anybody may take an abstract name. */
	size = sizeof(peer);
	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 || peer.uid != geteuid()) {
		close(sock);
		return ocs_gate_fail("who listens at %s is another user", path);
	}
	return sock;
}

/* The answer to the hello with its descriptors; -1 with the text. */
static int welcome_receive(struct ocs_gate *gate, int64_t until, int fds[2])
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(4 * sizeof(int))];
	} control;
	struct ocs_rails_word word = { 0 };
	struct iovec part = { &word, sizeof(word) };
	struct msghdr message = { .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof(control) };
	struct pollfd wait = { gate->sock, POLLIN, 0 };
	int64_t left = until - ocs_gate_now_ms();
	size_t count = 0;
	ssize_t got;

	while (poll(&wait, 1, left > 0 ? (int)left : 0) < 0 && errno == EINTR)
		left = until - ocs_gate_now_ms();
	got = recvmsg(gate->sock, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	if (got < 0)
		return ocs_gate_fail("the agent does not answer");
	for (struct cmsghdr *head = CMSG_FIRSTHDR(&message); head;
	     head = CMSG_NXTHDR(&message, head)) {
		size_t bytes = head->cmsg_len - CMSG_LEN(0);
		int fd;

		if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < bytes / sizeof(int); i++) {
			memcpy(&fd, CMSG_DATA(head) + i * sizeof(int), sizeof(int));
			if (count < 2)
				fds[count++] = fd;
			else
				close(fd);
		}
	}
	if (got == 0)
		return ocs_gate_fail("the agent has closed the connection");
	if (got < (ssize_t)sizeof(word) || word.kind != OCS_RAILS_WELCOME)
		return ocs_gate_fail("the agent's answer makes no sense");
	if (word.version != OCS_RAILS_AGENT_VERSION)
		return ocs_gate_fail("the agent has version %u, this library %u", word.version,
				     OCS_RAILS_AGENT_VERSION);
	if (word.error)
		return ocs_gate_fail("the agent refuses this task: %s",
				     ocs_gate_reason(word.error));
	if (count < 2)
		return ocs_gate_fail("the agent gave no mailbox");
	return 0;
}

/* Memory that the agent could cut off would end this process. */
static int mailbox_map(struct ocs_gate *gate, int fd)
{
	struct stat file;
	int seals = fcntl(fd, F_GET_SEALS);
	void *box;

	if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(fd, &file) < 0 ||
	    file.st_size < (off_t)sizeof(struct ocs_rails_mailbox))
		return ocs_gate_fail("the agent's mailbox is none");
	box = mmap(NULL, sizeof(struct ocs_rails_mailbox), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		   0);
	if (box == MAP_FAILED)
		return ocs_gate_fail("no memory for the agent's mailbox: %s", strerror(errno));
	madvise(box, sizeof(struct ocs_rails_mailbox), MADV_DONTFORK);
	gate->box = box;
	return 0;
}

int ocs_gate_connect(struct ocs_gate *gate, const char *path)
{
	struct ocs_rails_word hello = { .kind = OCS_RAILS_HELLO,
					.version = OCS_RAILS_AGENT_VERSION,
					.rank = (uint32_t)gate->rank,
					.ranks = (uint32_t)gate->ranks };
	int64_t until = ocs_gate_now_ms() + gate->limit_ms;
	struct timeval limit = { gate->limit_ms / 1000, 0 };
	int fds[2] = { -1, -1 }, flags;

	gate->sock = agent_connect(path, until);
	if (gate->sock < 0)
		return -1;
	setsockopt(gate->sock, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	if (send(gate->sock, &hello, sizeof(hello), MSG_NOSIGNAL) < 0)
		ocs_gate_fail("the agent: %s", strerror(errno));
	else if (!welcome_receive(gate, until, fds) && !mailbox_map(gate, fds[0])) {
		close(fds[0]);
		gate->bell = fds[1];
		/* One who rings never waits. */
		flags = fcntl(gate->bell, F_GETFL);
		if (flags >= 0 && !(flags & O_NONBLOCK))
			fcntl(gate->bell, F_SETFL, flags | O_NONBLOCK);
		return 0;
	}
	for (int i = 0; i < 2; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	close(gate->sock);
	gate->sock = -1;
	return -1;
}

static int ring_wait(struct ocs_gate *gate, struct ocs_rails_ring *ring)
{
	int64_t until = ocs_gate_now_ms() + gate->limit_ms;

	for (;;) {
		uint32_t tail = atomic_load(&ring->tail), under_way = gate->written - tail;

		if (under_way < OCS_RAILS_LETTERS)
			break;
		if (under_way > OCS_RAILS_LETTERS)
			return ocs_gate_fail("the agent has read letters that were never written");
		if (atomic_load(&gate->lost))
			return ocs_gate_fail("%s", gate->why);
		if (ocs_gate_now_ms() >= until)
			return ocs_gate_fail("the agent reads no letters");
		atomic_store(&ring->writer_waits, 1);
		if (atomic_load(&ring->tail) == tail)
			ocs_gate_futex_wait(&ring->tail, tail, 100, true);
		atomic_store(&ring->writer_waits, 0);
	}
	return 0;
}

int ocs_gate_write(struct ocs_gate *gate, uint32_t kind, uint64_t group, uint64_t idx)
{
	struct ocs_rails_ring *ring = &gate->box->to_agent;
	struct ocs_rails_letter letter = { .kind = kind, .group = group, .idx = idx };
	struct timespec at;
	uint64_t one = 1;

	if (ring_wait(gate, ring))
		return -1;
	clock_gettime(CLOCK_MONOTONIC, &at);
	letter.stamp = (uint64_t)at.tv_sec * 1000000000 + (uint64_t)at.tv_nsec;
	ring->letter[gate->written % OCS_RAILS_LETTERS] = letter;
	atomic_store_explicit(&ring->head, ++gate->written, memory_order_release);
	/* A full counter has rung already. */
	if (write(gate->bell, &one, sizeof(one)) < 0 && errno != EAGAIN)
		return ocs_gate_fail("the agent cannot be told: %s", strerror(errno));
	return 0;
}

int ocs_gate_read(struct ocs_gate *gate, struct ocs_rails_letter *letter)
{
	struct ocs_rails_ring *ring = &gate->box->to_rank;
	uint32_t head = atomic_load_explicit(&ring->head, memory_order_acquire);

	if (head - gate->read > OCS_RAILS_LETTERS)
		return -1;
	if (head == gate->read)
		return 0;
	memcpy(letter, &ring->letter[gate->read % OCS_RAILS_LETTERS], sizeof(*letter));
	atomic_store(&ring->tail, ++gate->read);
	if (atomic_exchange(&ring->writer_waits, 0))
		ocs_gate_futex_wake(&ring->tail, true);
	return 1;
}

void ocs_gate_sleep(struct ocs_gate *gate)
{
	struct ocs_rails_ring *ring = &gate->box->to_rank;

	atomic_store(&ring->reader_waits, 1);
	if (atomic_load(&ring->head) == gate->read)
		ocs_gate_futex_wait(&ring->head, gate->read, 100, true);
	atomic_store(&ring->reader_waits, 0);
}
