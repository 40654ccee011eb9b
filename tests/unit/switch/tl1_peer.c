/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/unit/switch/tl1_peer.h"

/* The fourth field of the command. */
static void take_ctag(const char *command, char *ctag, size_t size)
{
	for (int i = 0; i < 3 && command; i++) {
		command = strchr(command, ':');
		command = command ? command + 1 : NULL;
	}
	snprintf(ctag, size, "%.*s", command ? (int)strcspn(command, ":;") : 0,
		 command ? command : "");
}

static bool say(struct tl1_peer *peer, int fd, const char *answer, const char *command)
{
	struct ocs_text text = { 0 };
	bool stay = true;
	char ctag[32];

	take_ctag(command, ctag, sizeof(ctag));
	for (; *answer && stay; answer++) {
		if (*answer == '!')
			stay = false;
		else if (*answer == '$')
			ocs_text_add(&text, "%s", ctag);
		else
			ocs_text_add(&text, "%c", *answer);
	}
	for (size_t i = 0; peer->bytewise && i < text.length; i++) {
		send(fd, text.data + i, 1, MSG_NOSIGNAL);
		usleep(20);
	}
	if (!peer->bytewise && text.length)
		send(fd, text.data, text.length, MSG_NOSIGNAL);
	ocs_text_free(&text);
	return stay;
}

static void serve(struct tl1_peer *peer, int fd, size_t *step)
{
	struct ocs_text command = { 0 };
	bool quote = false, stay = true;
	char c;

	while (stay && read(fd, &c, 1) == 1) {
		ocs_text_add(&peer->received, "%c", c);
		ocs_text_add(&command, "%c", c);
		if (c == '"')
			quote = !quote;
		if (c != ';' || quote)
			continue;
		/* The list ends with an empty string. */
		if (!peer->answers[*step] || *peer->answers[*step]) {
			const char *answer = peer->answers[(*step)++];

			stay = !answer || say(peer, fd, answer, command.data);
		}
		ocs_text_free(&command);
	}
	ocs_text_free(&command);
	close(fd);
}

static void *run(void *context)
{
	struct tl1_peer *peer = context;
	size_t step = 0;
	int fd;

	while ((fd = accept(peer->listener, NULL, NULL)) >= 0) {
		peer->connections++;
		serve(peer, fd, &step);
	}
	return NULL;
}

void tl1_peer_start(struct tl1_peer *peer, const char *const *answers, bool bytewise)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	memset(peer, 0, sizeof(*peer));
	peer->answers = answers;
	peer->bytewise = bytewise;
	strcpy(peer->folder, "/tmp/ocs-peer-XXXXXX");
	if (!mkdtemp(peer->folder))
		abort();
	snprintf(peer->address, sizeof(peer->address), "unix:%s/s", peer->folder);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/s", peer->folder);
	peer->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (peer->listener < 0 ||
	    bind(peer->listener, (struct sockaddr *)&address, sizeof(address)) != 0 ||
	    listen(peer->listener, 8) != 0 || pthread_create(&peer->thread, NULL, run, peer) != 0)
		abort();
}

void tl1_peer_stop(struct tl1_peer *peer)
{
	/* Wakes accept; a connection that is served now ends by itself. */
	shutdown(peer->listener, SHUT_RDWR);
	pthread_join(peer->thread, NULL);
	close(peer->listener);
	unlink(peer->address + 5);
	rmdir(peer->folder);
}

void tl1_peer_free(struct tl1_peer *peer)
{
	ocs_text_free(&peer->received);
}
