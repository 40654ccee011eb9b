/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Who is in a communicator?  NCCL tells a rank its number in it and no more.  The process that makes a
 * unique id listens at the address that NCCL put into it, on a port of its own, and writes that port and
 * a secret behind NCCL's part of the id.  Members tell it their world ranks and get those of all. */

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/rails/shim/nccl_internal.h"

#define ID_OFFER 80  /* where our part of an id begins; NCCL 2.4 to 2.30 use 40 bytes or less */
#define ID_ADDRESS 8 /* where NCCL has the socket's address */
#define MEMBERS_MAX 65536
#define CONNECT_TRIES 600 /* of 100 ms */

/* Our part of an id. */
struct offer {
	char magic[8];
	uint64_t secret;
	uint16_t port; /* network byte order */
	uint16_t family;
	unsigned char address[16];
	uint32_t scope;
};

/* What a member says. */
struct question {
	uint64_t secret, name, value;
	int32_t rank, ranks;
};

struct member {
	int fd;
	size_t got;
	bool asked;
	struct question question;
};

static const char offer_magic[8] = "OCSRAIL1";
static pthread_mutex_t listener_lock = PTHREAD_MUTEX_INITIALIZER;
static int listener = -1;
static struct offer listener_offer;
/* The listener's thread. */
static struct member *members;
static size_t member_count, member_room;

_Static_assert(ID_OFFER + sizeof(struct offer) <= OCS_NCCL_ID_BYTES, "an offer fits into an id");

uint64_t ocs_nccl_hash(uint64_t seed, const void *bytes, size_t size)
{
	const unsigned char *byte = bytes;
	uint64_t hash = seed ? seed : UINT64_C(0xcbf29ce484222325);

	for (size_t k = 0; k < size; k++)
		hash = (hash ^ byte[k]) * UINT64_C(0x100000001b3);
	return hash;
}

static int bytes_send(int fd, const void *data, size_t size)
{
	const char *at = data;

	while (size) {
		ssize_t sent = send(fd, at, size, MSG_NOSIGNAL);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent <= 0)
			return -1;
		at += sent;
		size -= (size_t)sent;
	}
	return 0;
}

static int bytes_receive(int fd, void *data, size_t size)
{
	char *at = data;

	while (size) {
		ssize_t got = recv(fd, at, size, 0);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return -1;
		at += got;
		size -= (size_t)got;
	}
	return 0;
}

static void member_drop(size_t k)
{
	close(members[k].fd);
	members[k] = members[--member_count];
}

/* Answers the members of NAME once all have asked, or, where one has gone, closes at all. */
static void members_settle(uint64_t name, bool gone)
{
	int32_t ranks = 0, here = 0;
	uint64_t *values;

	for (size_t k = 0; k < member_count; k++) {
		if (members[k].asked && members[k].question.name == name) {
			ranks = members[k].question.ranks;
			here++;
		}
	}
	if (!gone && here < ranks)
		return;
	values = calloc((size_t)ranks + 1, sizeof(*values));
	for (size_t k = 0; k < member_count && values; k++)
		if (members[k].asked && members[k].question.name == name)
			values[members[k].question.rank] = members[k].question.value;
	for (size_t k = member_count; k-- > 0;) {
		if (!members[k].asked || members[k].question.name != name)
			continue;
		if (values && !gone)
			bytes_send(members[k].fd, values, (size_t)ranks * sizeof(*values));
		member_drop(k);
	}
	free(values);
}

/* Whether what was asked can be served: the secret is right and the rank has not come before. */
static bool question_fits(const struct question *question)
{
	if (question->secret != listener_offer.secret || question->ranks < 1 ||
	    question->ranks > MEMBERS_MAX || question->rank < 0 ||
	    question->rank >= question->ranks)
		return false;
	for (size_t k = 0; k < member_count; k++)
		if (members[k].asked && members[k].question.name == question->name &&
		    (members[k].question.ranks != question->ranks ||
		     members[k].question.rank == question->rank))
			return false;
	return true;
}

/* Reads of member K; it may be dropped. */
static void member_read(size_t k)
{
	struct member *member = &members[k];
	bool asked = member->asked;
	uint64_t name = member->question.name;
	ssize_t got;
	char excess;

	if (asked) { /* it has nothing more to say: it is gone */
		got = recv(member->fd, &excess, 1, MSG_DONTWAIT);
		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		members_settle(name, true);
		return;
	}
	got = recv(member->fd, (char *)&member->question + member->got,
		   sizeof(member->question) - member->got, MSG_DONTWAIT);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got <= 0) {
		member_drop(k);
		return;
	}
	member->got += (size_t)got;
	if (member->got < sizeof(member->question))
		return;
	if (!question_fits(&member->question)) {
		member_drop(k);
		return;
	}
	member->asked = true;
	members_settle(member->question.name, false);
}

static void member_accept(void)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

	if (fd < 0)
		return;
	if (member_count == member_room) {
		size_t room = member_room ? member_room * 2 : 64;
		struct member *more = realloc(members, room * sizeof(*more));

		if (!more) {
			close(fd);
			return;
		}
		members = more;
		member_room = room;
	}
	members[member_count++] = (struct member){ .fd = fd };
}

static void *listener_thread(void *unused)
{
	struct pollfd *polled = NULL;
	size_t room = 0;

	(void)unused;
	for (;;) {
		size_t count = member_count;

		if (room < count + 1) {
			struct pollfd *more = realloc(polled, (count + 64) * sizeof(*more));

			if (!more) {
				usleep(100000);
				continue;
			}
			polled = more;
			room = count + 64;
		}
		for (size_t k = 0; k < count; k++)
			polled[k] = (struct pollfd){ members[k].fd, POLLIN, 0 };
		polled[count] = (struct pollfd){ listener, POLLIN, 0 };
		if (poll(polled, count + 1, -1) < 0)
			continue;
		/* Members move when one is dropped: one event at a time, the rest is seen again. */
		for (size_t k = 0; k < count; k++) {
			if (polled[k].revents) {
				member_read(k);
				break;
			}
		}
		if (polled[count].revents)
			member_accept();
	}
	return NULL;
}

/* ADDRESS with PORT, from OFFER. */
static socklen_t offer_address(const struct offer *offer, struct sockaddr_storage *address)
{
	memset(address, 0, sizeof(*address));
	if (offer->family == AF_INET) {
		struct sockaddr_in *four = (struct sockaddr_in *)address;

		four->sin_family = AF_INET;
		four->sin_port = offer->port;
		memcpy(&four->sin_addr, offer->address, sizeof(four->sin_addr));
		return sizeof(*four);
	}
	if (offer->family == AF_INET6) {
		struct sockaddr_in6 *six = (struct sockaddr_in6 *)address;

		six->sin6_family = AF_INET6;
		six->sin6_port = offer->port;
		six->sin6_scope_id = offer->scope;
		memcpy(&six->sin6_addr, offer->address, sizeof(six->sin6_addr));
		return sizeof(*six);
	}
	return 0;
}

/* The address that NCCL has in ID. */
static int offer_read_address(const struct ocs_nccl_id *id, struct offer *offer)
{
	struct sockaddr_in four;
	struct sockaddr_in6 six;

	memcpy(&four, id->byte + ID_ADDRESS, sizeof(four));
	memcpy(&six, id->byte + ID_ADDRESS, sizeof(six));
	if (four.sin_family == AF_INET) {
		memcpy(offer->address, &four.sin_addr, sizeof(four.sin_addr));
	} else if (four.sin_family == AF_INET6) {
		memcpy(offer->address, &six.sin6_addr, sizeof(six.sin6_addr));
		offer->scope = six.sin6_scope_id;
	} else {
		return -1;
	}
	offer->family = four.sin_family;
	return 0;
}

/* Starts this process's listener; with LISTENER_LOCK held. */
static int listener_start(struct offer *offer, char why[OCS_STREAM_WHY])
{
	struct sockaddr_storage address;
	socklen_t size = offer_address(offer, &address);
	pthread_t thread;
	int fd = socket(offer->family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&address, size) || listen(fd, SOMAXCONN) ||
	    getsockname(fd, (struct sockaddr *)&address, &size) ||
	    getrandom(&offer->secret, sizeof(offer->secret), 0) != sizeof(offer->secret)) {
		snprintf(why, OCS_STREAM_WHY, "a listener for communicators: %s", strerror(errno));
		if (fd >= 0)
			close(fd);
		return -1;
	}
	offer->port = offer->family == AF_INET ? ((struct sockaddr_in *)&address)->sin_port :
						 ((struct sockaddr_in6 *)&address)->sin6_port;
	memcpy(offer->magic, offer_magic, sizeof(offer->magic));
	listener = fd;
	listener_offer = *offer;
	if (pthread_create(&thread, NULL, listener_thread, NULL)) {
		snprintf(why, OCS_STREAM_WHY, "a thread for communicators: %s", strerror(errno));
		listener = -1;
		close(fd);
		return -1;
	}
	pthread_detach(thread);
	return 0;
}

int ocs_nccl_exchange_offer(struct ocs_nccl_id *id, char why[OCS_STREAM_WHY])
{
	struct offer offer = { .port = 0 };
	int result = 0;

	for (size_t k = ID_OFFER; k < sizeof(id->byte); k++) {
		if (id->byte[k]) {
			snprintf(why, OCS_STREAM_WHY,
				 "this release of NCCL fills all of its unique ids");
			return -1;
		}
	}
	if (offer_read_address(id, &offer)) {
		snprintf(why, OCS_STREAM_WHY, "there is no address in NCCL's unique id");
		return -1;
	}
	pthread_mutex_lock(&listener_lock);
	if (listener < 0)
		result = listener_start(&offer, why);
	if (!result)
		memcpy(id->byte + ID_OFFER, &listener_offer, sizeof(listener_offer));
	pthread_mutex_unlock(&listener_lock);
	return result;
}

int ocs_nccl_exchange(const struct ocs_nccl_id *id, uint64_t name, int rank, int ranks,
		      uint64_t value, uint64_t *values, char why[OCS_STREAM_WHY])
{
	struct sockaddr_storage address;
	struct question question = { .name = name, .value = value, .rank = rank, .ranks = ranks };
	struct offer offer;
	socklen_t size;
	int fd = -1, result;

	memcpy(&offer, id->byte + ID_OFFER, sizeof(offer));
	size = memcmp(offer.magic, offer_magic, sizeof(offer.magic)) ?
		       0 :
		       offer_address(&offer, &address);
	if (!size) {
		snprintf(
			why, OCS_STREAM_WHY,
			"its unique id was made without the gates of this job (by a library that has "
			"NCCL built in?)");
		return -1;
	}
	question.secret = offer.secret;
	for (int k = 0; k < CONNECT_TRIES && fd < 0; k++) {
		fd = socket(offer.family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd >= 0 && connect(fd, (struct sockaddr *)&address, size)) {
			int error = errno;

			close(fd);
			fd = -1;
			if (error != ETIMEDOUT && error != EAGAIN && error != EINTR) {
				snprintf(why, OCS_STREAM_WHY,
					 "the process that made its unique id: %s",
					 strerror(error));
				return -1;
			}
			usleep(100000);
		}
	}
	result = fd < 0 || bytes_send(fd, &question, sizeof(question)) ||
		 bytes_receive(fd, values, (size_t)ranks * sizeof(*values));
	if (fd >= 0)
		close(fd);
	if (result)
		snprintf(why, OCS_STREAM_WHY, "a member went away before all were there");
	return result ? -1 : 0;
}
