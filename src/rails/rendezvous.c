/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/rails/rendezvous.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/util/error.h"
#include "src/util/net.h"
#include "src/util/secret.h"
#include "src/util/text.h"

#define BACKLOG 4096
#define CONNECT_MS 2000
#define ANSWER_MS 3000
#define MILLION INT64_C(1000000)
#define SILENT_MS 30000 /* a node that is gone without a word */

int ocs_rendezvous_ports(struct ocs_rendezvous *meet, const char *ports, struct ocs_error *err)
{
	const char *dash = strchr(ports, '-');
	char *first = ocs_asprintf("%.*s", (int)(dash ? dash - ports : (long)strlen(ports)), ports);
	long low = 0, high = 0;
	int rc = ocs_number_parse(first, 1, 65535, &low) ||
		 ocs_number_parse(dash ? dash + 1 : first, low, 65535, &high);

	free(first);
	if (rc)
		return ocs_error_set(err, OCS_USAGE, "%s are no ports: write LOW-HIGH, such as %s",
				     ports, OCS_RENDEZVOUS_PORTS);
	meet->low = (int)low;
	meet->high = (int)high;
	return 0;
}

int ocs_rendezvous_secret(int fd, char *secret, size_t size, struct ocs_error *err)
{
	ssize_t count = pread(fd, secret, size - 1, 0);

	if (count <= 0)
		return ocs_error_set(err, OCS_USAGE, "descriptor %d has no key: %s", fd,
				     count < 0 ? strerror(errno) : "it is empty");
	secret[count] = '\0';
	secret[strcspn(secret, "\n")] = '\0';
	if (strlen(secret) < 16)
		return ocs_error_set(err, OCS_USAGE, "descriptor %d has no key", fd);
	return 0;
}

void ocs_rendezvous_derive(struct ocs_rendezvous *meet, const char *controller)
{
	char job[16], epoch[24];

	snprintf(job, sizeof(job), "%" PRIu32, meet->job);
	snprintf(epoch, sizeof(epoch), "%" PRIu64, meet->epoch);
	ocs_key_prove(controller, strlen(controller), meet->secret, "agents", job, epoch, NULL);
}

int ocs_rendezvous_port(const struct ocs_rendezvous *meet, int try)
{
	unsigned int count = (unsigned int)(meet->high - meet->low + 1);

	return meet->low + (int)((meet->job * 7U + (unsigned int)try) % count);
}

/* Also where connections of a controller before, in an earlier step, are still in TIME_WAIT. */
static int port_listen(int port, struct ocs_error *err)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port) };
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), no = 0, yes = 1,
	    rc = -1;

	if (fd >= 0) {
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
		rc = bind(fd, (struct sockaddr *)&six, sizeof(six));
	}
	if (fd < 0 || (rc < 0 && errno != EADDRINUSE)) {
		if (fd >= 0)
			close(fd);
		fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
		rc = fd < 0 ? -1 : bind(fd, (struct sockaddr *)&four, sizeof(four));
	}
	if (rc == 0 && listen(fd, BACKLOG) == 0)
		return fd;
	ocs_error_set(err, OCS_ERROR, "cannot listen on port %d: %s", port, strerror(errno));
	if (fd >= 0)
		close(fd);
	return -1;
}

int ocs_rendezvous_listen(const struct ocs_rendezvous *meet, struct ocs_error *err)
{
	for (int try = 0; try < OCS_RENDEZVOUS_TRIES; try++) {
		int fd = port_listen(ocs_rendezvous_port(meet, try), err);

		if (fd >= 0)
			return fd;
	}
	return -1;
}

/* The next frame of FD until DEADLINE. */
static int frame_await(int fd, struct ocs_inbox *inbox, int64_t deadline, struct ocs_frame *frame)
{
	for (;;) {
		struct pollfd wait = { .fd = fd, .events = POLLIN };
		int64_t left = (deadline - ocs_now_ns()) / MILLION;
		int got = ocs_inbox_next(inbox, frame);

		if (got)
			return got;
		if (left <= 0 || (poll(&wait, 1, (int)left + 1) < 0 && errno != EINTR) ||
		    ocs_inbox_fill(inbox, fd, OCS_FRAME_MAX) < 0)
			return -1;
	}
}

/* Says hello after the CHALLENGE; what is proven, with the nonce that this side drew. */
static int hello_send(const struct ocs_rendezvous *meet, int fd,
		      const struct ocs_frame_challenge *challenge,
		      const struct ocs_frame_hello *hello, const int *ranks,
		      uint8_t nonce[OCS_FRAMES_NONCE], struct ocs_error *err)
{
	struct ocs_frame_hello said = *hello;
	size_t skip = sizeof(said.proof), more = hello->count * sizeof(uint32_t);
	uint8_t *body = ocs_calloc(1, sizeof(said) + more);
	struct ocs_outbox outbox = { 0 };
	int rc;

	said.version = OCS_FRAMES_VERSION;
	said.job = meet->job;
	said.epoch = meet->epoch;
	memcpy(said.nonce, nonce, sizeof(said.nonce));
	ocs_frame_hello_swap(&said);
	memcpy(body, &said, sizeof(said));
	for (uint32_t i = 0; i < hello->count; i++) {
		uint32_t rank = htole32((uint32_t)ranks[i]);

		memcpy(body + sizeof(said) + i * sizeof(rank), &rank, sizeof(rank));
	}
	ocs_frames_prove(meet->secret, "agent", challenge->nonce, nonce, body + skip,
			 sizeof(said) + more - skip, body);
	ocs_outbox_frame(&outbox, OCS_FRAME_HELLO, body, sizeof(said) + more, NULL, 0);
	rc = ocs_net_write(fd, outbox.data, outbox.used, ocs_now_ns() + ANSWER_MS * MILLION, err);
	ocs_outbox_free(&outbox);
	free(body);
	return rc;
}

static int hello_exchange(const struct ocs_rendezvous *meet, int fd,
			  const struct ocs_frame_hello *hello, const int *ranks,
			  struct ocs_frame_welcome *welcome, struct ocs_inbox *inbox,
			  struct ocs_error *err)
{
	int64_t deadline = ocs_now_ns() + ANSWER_MS * MILLION;
	uint8_t nonce[OCS_FRAMES_NONCE], proof[OCS_FRAMES_PROOF];
	struct ocs_frame_challenge challenge;
	struct ocs_frame frame;

	if (frame_await(fd, inbox, deadline, &frame) != 1 ||
	    ocs_frame_challenge_read(&frame, &challenge))
		return ocs_error_set(err, OCS_UNREACHABLE, "what listens there is no controller");
	if (challenge.version != OCS_FRAMES_VERSION)
		return ocs_error_set(err, OCS_UNREACHABLE, "the controller has version %u",
				     challenge.version);
	if (ocs_frames_nonce(nonce))
		return ocs_error_set(err, OCS_ERROR, "no random numbers: %s", strerror(errno));
	if (hello_send(meet, fd, &challenge, hello, ranks, nonce, err))
		return -1;
	if (frame_await(fd, inbox, deadline, &frame) != 1 ||
	    ocs_frame_welcome_read(&frame, welcome))
		return ocs_error_set(err, OCS_UNREACHABLE,
				     "the controller there is not that of this job");
	ocs_frames_prove(meet->secret, "controller", challenge.nonce, nonce, NULL, 0, proof);
	if (!ocs_frames_same(proof, welcome->proof))
		return ocs_error_set(err, OCS_UNREACHABLE,
				     "what listens there does not know the job's secret");
	return 0;
}

int ocs_rendezvous_connect(const struct ocs_rendezvous *meet, const char *host,
			   const struct ocs_frame_hello *hello, const int *ranks,
			   struct ocs_frame_welcome *welcome, struct ocs_inbox *inbox,
			   struct ocs_error *err)
{
	bool six = strchr(host, ':') != NULL;
	int yes = 1;

	for (int try = 0; try < OCS_RENDEZVOUS_TRIES; try++) {
		char *address = ocs_asprintf(six ? "[%s]:%d" : "%s:%d", host,
					     ocs_rendezvous_port(meet, try));
		int fd = ocs_net_connect(address, CONNECT_MS, err), rc;

		free(address);
		if (fd < 0)
			continue;
		rc = hello_exchange(meet, fd, hello, ranks, welcome, inbox, err);
		if (rc == 0) {
			setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
			setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", strlen("reno"));
			return fd;
		}
		close(fd);
		ocs_inbox_free(inbox);
	}
	return -1;
}

/* ---- the controller's side ---- */

void ocs_rendezvous_tune(int fd)
{
	int yes = 1, idle = 10, interval = 5, probes = 4, silent = SILENT_MS;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	/* Every kernel has it, and it sets no timer to pace what are a few small frames. */
	setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", strlen("reno"));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof(yes));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &silent, sizeof(silent));
}

int ocs_rendezvous_challenge(struct ocs_outbox *outbox, uint8_t nonce[OCS_FRAMES_NONCE])
{
	struct ocs_frame_challenge challenge = {
		.version = htole32(OCS_FRAMES_VERSION),
	};

	if (ocs_frames_nonce(nonce))
		return -1;
	memcpy(challenge.magic, OCS_FRAMES_MAGIC, sizeof(challenge.magic));
	memcpy(challenge.nonce, nonce, sizeof(challenge.nonce));
	ocs_outbox_frame(outbox, OCS_FRAME_CHALLENGE, &challenge, sizeof(challenge), NULL, 0);
	return 0;
}

bool ocs_rendezvous_hello(const struct ocs_rendezvous *meet, const uint8_t nonce[OCS_FRAMES_NONCE],
			  const struct ocs_frame *frame, struct ocs_frame_hello *hello, int **ranks)
{
	size_t skip = sizeof(hello->proof);
	uint8_t proof[OCS_FRAMES_PROOF];

	if (ocs_frame_hello_read(frame, hello, ranks))
		return false;
	ocs_frames_prove(meet->secret, "agent", nonce, hello->nonce, frame->body + skip,
			 frame->length - skip, proof);
	return ocs_frames_same(proof, hello->proof) && hello->version == OCS_FRAMES_VERSION &&
	       hello->job == meet->job && hello->epoch == meet->epoch;
}

void ocs_rendezvous_welcome(const struct ocs_rendezvous *meet,
			    const uint8_t nonce[OCS_FRAMES_NONCE],
			    const struct ocs_frame_hello *hello, bool free,
			    struct ocs_outbox *outbox)
{
	struct ocs_frame_welcome welcome = { .free = htole32(free) };

	ocs_frames_prove(meet->secret, "controller", nonce, hello->nonce, NULL, 0, welcome.proof);
	ocs_outbox_frame(outbox, OCS_FRAME_WELCOME, &welcome, sizeof(welcome), NULL, 0);
}
