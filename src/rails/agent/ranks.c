/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/rails/agent/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "src/util/net.h"
#include "src/util/text.h"

#define QUEUE_MAX 65536 /* letters of one rank that never reads */
#define WORD_MAX (sizeof(struct ocs_rails_word) + OCS_RAILS_GROUP_RANKS * sizeof(int32_t))

static void ring_wake(_Atomic uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

int agent_listen(struct agent *agent, struct ocs_error *err)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t length = strlen(agent->socket);
	socklen_t size;

	if (length >= sizeof(address.sun_path))
		return ocs_error_set(err, OCS_USAGE, "%s is too long for a socket", agent->socket);
	memcpy(address.sun_path, agent->socket, length + 1);
	size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + 1);
	if (address.sun_path[0] == '@') {
		address.sun_path[0] = '\0';
		size--;
	}
	agent->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (agent->listener < 0 || bind(agent->listener, (struct sockaddr *)&address, size) < 0 ||
	    listen(agent->listener, 1024) < 0)
		return ocs_error_set(err, OCS_ERROR, "cannot listen at %s: %s", agent->socket,
				     strerror(errno));
	return agent_watch(agent, agent->listener, EPOLLIN, EVENT_LISTENER, 0);
}

void agent_accept(struct agent *agent)
{
	struct ucred peer = { 0 };
	socklen_t size = sizeof(peer);
	int fd = ocs_net_accept(agent->listener, &agent->spare, NULL, SOCK_NONBLOCK), place = 0;

	if (fd < 0)
		return;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 || peer.uid != geteuid()) {
		close(fd);
		return;
	}
	while (place < agent->npeers && agent->peers[place].fd >= 0)
		place++;
	/* A rank and a child of it, each; whatever else there is has to wait for its turn. */
	if (place == agent->npeers || agent_watch(agent, fd, EPOLLIN, EVENT_PEER, place) < 0) {
		close(fd);
		return;
	}
	agent->peers[place] = (struct peer){ .fd = fd };
}

struct local_rank *agent_rank(struct agent *agent, int rank)
{
	int low = 0, high = (int)agent->hello.count;

	while (low < high) {
		int middle = (low + high) / 2;

		if (agent->numbers[middle] < rank)
			low = middle + 1;
		else
			high = middle;
	}
	return low < (int)agent->hello.count && agent->numbers[low] == rank ? &agent->ranks[low] :
									      NULL;
}

/* ---- words ---- */

static int word_send(int fd, const struct ocs_rails_word *word, const void *more, size_t length,
		     const int *fds, int count)
{
	struct iovec parts[2] = {
		{ .iov_base = (void *)(uintptr_t)word, .iov_len = sizeof(*word) },
		{ .iov_base = (void *)(uintptr_t)more, .iov_len = length },
	};
	char control[CMSG_SPACE(2 * sizeof(int))] = { 0 };
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = length ? 2 : 1 };

	if (count) {
		struct cmsghdr *header;

		message.msg_control = control;
		message.msg_controllen = CMSG_SPACE((size_t)count * sizeof(int));
		header = CMSG_FIRSTHDR(&message);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN((size_t)count * sizeof(int));
		memcpy(CMSG_DATA(header), fds, (size_t)count * sizeof(int));
	}
	return sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -1 : 0;
}

/* A mailbox for RANK: the descriptor of its memory, or -1. */
static int mailbox_make(struct local_rank *rank)
{
	int fd = memfd_create("ocs-rails", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	void *box;

	rank->bell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (fd < 0 || rank->bell < 0 || ftruncate(fd, sizeof(*rank->box)) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		goto failed;
	box = mmap(NULL, sizeof(*rank->box), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (box == MAP_FAILED)
		goto failed;
	rank->box = box;
	rank->read = rank->written = 0;
	return fd;
failed:
	if (fd >= 0)
		close(fd);
	return -1;
}

static void rank_welcome(struct agent *agent, struct local_rank *rank, int32_t error)
{
	struct ocs_rails_word word = {
		.kind = OCS_RAILS_WELCOME,
		.version = OCS_RAILS_AGENT_VERSION,
		.rank = (uint32_t)rank->rank,
		.ranks = agent->hello.total,
		.error = error,
	};
	static const char note[] =
		"another step of this job has its circuits: this one runs without gates";
	int fds[2] = { -1, -1 };

	if (!error) {
		fds[0] = mailbox_make(rank);
		fds[1] = rank->bell;
		if (fds[0] < 0 || agent_watch(agent, rank->bell, EPOLLIN, EVENT_BELL,
					      (int)(rank - agent->ranks)) < 0)
			word.error = OCS_RAILS_ERROR_AGENT;
	}
	rank->state = LOCAL_HERE;
	word_send(rank->fd, &word, NULL, 0, fds, word.error ? 0 : 2);
	if (fds[0] >= 0)
		close(fds[0]);
	if (agent->free_run && !word.error && rank->rank == 0)
		agent_note(agent, note, sizeof(note) - 1);
}

void agent_welcome(struct agent *agent, int32_t error)
{
	for (uint32_t i = 0; i < agent->hello.count; i++)
		if (agent->ranks[i].state == LOCAL_GREETED)
			rank_welcome(agent, &agent->ranks[i], error);
}

static void hello_take(struct agent *agent, struct peer *peer, const struct ocs_rails_word *word)
{
	struct local_rank *rank = word->rank <= INT_MAX ? agent_rank(agent, (int)word->rank) : NULL;
	struct ocs_rails_word refusal = {
		.kind = OCS_RAILS_WELCOME,
		.version = OCS_RAILS_AGENT_VERSION,
		.error = OCS_RAILS_ERROR_REFUSED,
	};

	if (peer->rank || !rank || rank->state != LOCAL_ABSENT ||
	    word->version != OCS_RAILS_AGENT_VERSION || word->ranks != agent->hello.total) {
		word_send(peer->fd, &refusal, NULL, 0, NULL, 0);
		return;
	}
	rank->state = LOCAL_GREETED;
	rank->fd = peer->fd;
	peer->rank = rank;
	if (agent->controller != CONTROLLER_SOUGHT)
		rank_welcome(agent, rank, agent->over);
}

void agent_note(struct agent *agent, const char *text, size_t length)
{
	struct local_rank *rank = agent_rank(agent, 0);
	struct ocs_rails_word word = { .kind = OCS_RAILS_NOTE, .count = (uint32_t)length };

	if (rank && rank->state == LOCAL_HERE)
		word_send(rank->fd, &word, text, length, NULL, 0);
}

void agent_word_send(const struct local_rank *rank, const struct ocs_rails_word *word,
		     const char *text, size_t length)
{
	word_send(rank->fd, word, text, length, NULL, 0);
}

static void gone_say(struct agent *agent, const struct local_rank *rank)
{
	uint32_t gone[2] = { htole32((uint32_t)rank->rank), htole32(rank->clean) };

	ocs_outbox_frame(&agent->outbox, OCS_FRAME_GONE, gone, sizeof(gone), NULL, 0);
}

void agent_ranks_ask(struct agent *agent)
{
	for (uint32_t i = 0; i < agent->hello.count; i++)
		if (agent->ranks[i].state == LOCAL_GONE)
			gone_say(agent, &agent->ranks[i]);
}

static void peer_close(struct agent *agent, struct peer *peer)
{
	struct local_rank *rank = peer->rank;

	close(peer->fd);
	*peer = (struct peer){ .fd = -1 };
	if (!rank)
		return;
	if (rank->state == LOCAL_HERE && agent->controller == CONTROLLER_FOUND && !agent->free_run)
		gone_say(agent, rank);
	/* Who leaves before anybody knew of it may come again. */
	rank->state = rank->state == LOCAL_GREETED ? LOCAL_ABSENT : LOCAL_GONE;
	rank->fd = -1;
	if (rank->box)
		munmap(rank->box, sizeof(*rank->box));
	if (rank->bell >= 0) {
		/* The rank may have it open still, and ring. */
		epoll_ctl(agent->epoll, EPOLL_CTL_DEL, rank->bell, NULL);
		close(rank->bell);
	}
	rank->box = NULL;
	rank->bell = -1;
	if (rank->queued)
		agent->nqueued--;
	rank->queued = 0;
}

void agent_peer(struct agent *agent, int number)
{
	static union {
		struct ocs_rails_word word;
		char bytes[WORD_MAX];
	} said;
	struct peer *peer = &agent->peers[number];
	struct local_rank *rank;
	ssize_t length;

	if (peer->fd < 0)
		return;
	length = recv(peer->fd, &said, sizeof(said), MSG_DONTWAIT | MSG_TRUNC);
	if (length < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	rank = peer->rank;
	if (length < (ssize_t)sizeof(said.word) || length > (ssize_t)sizeof(said)) {
		peer_close(agent, peer);
		return;
	}
	if (said.word.kind == OCS_RAILS_HELLO) {
		hello_take(agent, peer, &said.word);
	} else if (said.word.kind == OCS_RAILS_GOODBYE && rank) {
		rank->clean = true;
	} else if (said.word.kind == OCS_RAILS_GROUP && rank && rank->state == LOCAL_HERE &&
		   (size_t)length ==
			   sizeof(said.word) + (size_t)said.word.count * sizeof(int32_t)) {
		agent_group(agent, rank, &said.word, (const int32_t *)(&said.word + 1));
	} else {
		peer_close(agent, peer);
	}
}

/* ---- letters ---- */

void agent_bell(struct agent *agent, int number)
{
	struct local_rank *rank = &agent->ranks[number];
	struct ocs_rails_ring *ring;
	uint64_t rung;
	uint32_t head;

	if (!rank->box)
		return;
	while (read(rank->bell, &rung, sizeof(rung)) < 0 && errno == EINTR)
		;
	ring = &rank->box->to_agent;
	head = atomic_load_explicit(&ring->head, memory_order_acquire);
	/* A ring that cannot be so: the rank is not believed any more. */
	if (head - rank->read > OCS_RAILS_LETTERS) {
		for (int i = 0; i < agent->npeers; i++)
			if (agent->peers[i].fd >= 0 && agent->peers[i].rank == rank)
				peer_close(agent, &agent->peers[i]);
		return;
	}
	while (rank->read != head) {
		struct ocs_rails_letter letter = ring->letter[rank->read % OCS_RAILS_LETTERS];

		rank->read++;
		agent_letter_take(agent, rank, &letter);
	}
	atomic_store_explicit(&ring->tail, rank->read, memory_order_seq_cst);
	if (atomic_exchange(&ring->writer_waits, 0))
		ring_wake(&ring->tail);
}

/* Whether the ring of RANK took LETTER. */
static bool letter_put(struct local_rank *rank, const struct ocs_rails_letter *letter)
{
	struct ocs_rails_ring *ring = &rank->box->to_rank;
	uint32_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);

	if (rank->written - tail >= OCS_RAILS_LETTERS)
		return false;
	ring->letter[rank->written % OCS_RAILS_LETTERS] = *letter;
	rank->written++;
	atomic_store_explicit(&ring->head, rank->written, memory_order_seq_cst);
	if (atomic_load(&ring->reader_waits))
		ring_wake(&ring->head);
	return true;
}

void agent_letter(struct agent *agent, struct local_rank *rank,
		  const struct ocs_rails_letter *letter)
{
	if (!rank->box || (!rank->queued && letter_put(rank, letter)))
		return;
	if (rank->queued == QUEUE_MAX)
		return;
	if (rank->queued == rank->room) {
		rank->room = rank->room ? rank->room * 2 : 64;
		rank->queue = ocs_realloc(rank->queue, rank->room * sizeof(*rank->queue));
	}
	agent->nqueued += !rank->queued;
	rank->queue[rank->queued++] = *letter;
}

void agent_queue_flush(struct agent *agent)
{
	for (uint32_t i = 0; agent->nqueued && i < agent->hello.count; i++) {
		struct local_rank *rank = &agent->ranks[i];
		size_t sent = 0;

		if (!rank->queued)
			continue;
		while (sent < rank->queued && letter_put(rank, &rank->queue[sent]))
			sent++;
		rank->queued -= sent;
		memmove(rank->queue, rank->queue + sent, rank->queued * sizeof(*rank->queue));
		agent->nqueued -= !rank->queued;
	}
}

bool agent_done(const struct agent *agent)
{
	for (uint32_t i = 0; i < agent->hello.count; i++)
		if (agent->ranks[i].state != LOCAL_GONE)
			return false;
	return true;
}

void agent_ranks_free(struct agent *agent)
{
	for (int i = 0; i < agent->npeers; i++)
		if (agent->peers[i].fd >= 0)
			peer_close(agent, &agent->peers[i]);
	for (uint32_t i = 0; i < agent->hello.count; i++)
		free(agent->ranks[i].queue);
	free(agent->ranks);
	free(agent->peers);
}
