/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <arpa/inet.h>
#include <libssh/libssh.h>
#include <libssh/server.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/switch/netconf_peer.h"

#define USER "admin"
#define PASSWORD "s3cret-word"
#define NOTIFICATION                                                               \
	"<notification xmlns=\"urn:ietf:params:xml:ns:netconf:notification:1.0\">" \
	"<eventTime>2026-11-21T10:00:00Z</eventTime><tick/></notification>"

static void require(bool good)
{
	if (!good)
		abort();
}

/* Whether the client is in now. */
static bool log_in(const struct netconf_peer *peer, ssh_session session, ssh_message message)
{
	const char *user = ssh_message_auth_user(message); /* NULL in an answer */
	const char *prompts[] = { "Password: " };
	char echo[] = { 0 };

	ssh_message_auth_set_methods(message, peer->interactive ? SSH_AUTH_METHOD_INTERACTIVE :
								  SSH_AUTH_METHOD_PASSWORD);
	if (user && strcmp(user, USER)) {
		ssh_message_reply_default(message);
		return false;
	}
	if (peer->interactive && ssh_message_subtype(message) == SSH_AUTH_METHOD_INTERACTIVE) {
		if (!ssh_message_auth_kbdint_is_response(message)) {
			ssh_message_auth_interactive_request(message, "", "", 1, prompts, echo);
			return false;
		}
		if (ssh_userauth_kbdint_getnanswers(session) == 1 &&
		    !strcmp(ssh_userauth_kbdint_getanswer(session, 0), PASSWORD)) {
			ssh_message_auth_reply_success(message, 0);
			return true;
		}
	} else if (!peer->interactive && ssh_message_subtype(message) == SSH_AUTH_METHOD_PASSWORD &&
		   !strcmp(ssh_message_auth_password(message), PASSWORD)) {
		ssh_message_auth_reply_success(message, 0);
		return true;
	}
	ssh_message_reply_default(message);
	return false;
}

/* Until the subsystem runs; NULL: the client has gone. */
static ssh_channel open_channel(const struct netconf_peer *peer, ssh_session session)
{
	ssh_channel channel = NULL;
	bool in = false, started = false;
	ssh_message message;

	while (!started && (message = ssh_message_get(session))) {
		int type = ssh_message_type(message), subtype = ssh_message_subtype(message);

		if (type == SSH_REQUEST_AUTH) {
			in = log_in(peer, session, message);
		} else if (in && type == SSH_REQUEST_CHANNEL_OPEN) {
			channel = ssh_message_channel_request_open_reply_accept(message);
		} else if (channel && !peer->no_subsystem && type == SSH_REQUEST_CHANNEL &&
			   subtype == SSH_CHANNEL_REQUEST_SUBSYSTEM) {
			ssh_message_channel_request_reply_success(message);
			started = true;
		} else {
			ssh_message_reply_default(message);
		}
		ssh_message_free(message);
	}
	return started ? channel : NULL;
}

static void say(ssh_channel channel, bool chunked, const char *message)
{
	char *framed = chunked ? ocs_asprintf("\n#%zu\n%s\n##\n", strlen(message), message) :
				 ocs_asprintf("%s]]>]]>", message);

	ssh_channel_write(channel, framed, (uint32_t)strlen(framed));
	free(framed);
}

/* False: the connection is to end. */
static bool answer(const struct netconf_peer *peer, ssh_channel channel, const char *answers,
		   const char *request)
{
	const char *at = strstr(request, "message-id=\"");
	struct ocs_text text = { 0 };
	bool stay = true;

	at = at ? at + strlen("message-id=\"") : "";
	for (; stay; answers++) {
		if (*answers == '$')
			ocs_text_add(&text, "%.*s", (int)strcspn(at, "\""), at);
		else if (*answers && !strchr("|!", *answers))
			ocs_text_add(&text, "%c", *answers);
		else if (text.length && peer->raw)
			ssh_channel_write(channel, text.data, (uint32_t)text.length);
		else if (text.length)
			say(channel, peer->chunked, text.data);
		if (!*answers)
			break;
		if (strchr("|!", *answers))
			ocs_text_free(&text);
		stay = *answers != '!';
	}
	ocs_text_free(&text);
	return stay;
}

/* The end of the request that starts at AT, or NULL. */
static const char *end_of_request(const char *at, bool chunked)
{
	const char *mark = chunked ? "\n##\n" : "]]>]]>", *end = strstr(at, mark);

	return end ? end + strlen(mark) : NULL;
}

/* As netconfd, which reads what came together with a hello in the framing of hellos. */
static bool was_hasty(struct netconf_peer *peer, ssh_channel channel)
{
	char data[4096];
	int n = ssh_channel_read_timeout(channel, data, sizeof(data), 0, 20);

	if (n > 0)
		ocs_text_add(&peer->received, "%.*s", n, data);
	return n > 0;
}

/* As ssh_channel_read_timeout, which from libssh 0.11 on says SSH_AGAIN where nothing came in time. */
static int read_some(ssh_channel channel, char *data, size_t size)
{
	int n = ssh_channel_read_timeout(channel, data, (uint32_t)size, 0, 10);

	return n == SSH_AGAIN ? 0 : n;
}

static void converse(struct netconf_peer *peer, ssh_channel channel, size_t *step)
{
	size_t start = peer->received.length;
	bool greeted = false, stay = true, spent = false, deaf = false;
	char data[4096];
	int n;

	if (peer->hello)
		say(channel, false, peer->hello);
	while (stay && (n = read_some(channel, data, sizeof(data))) >= 0) {
		const char *end;

		if (n == 0 && ssh_channel_is_eof(channel))
			break;
		if (n == 0 && peer->flood && spent)
			say(channel, peer->chunked, NOTIFICATION);
		ocs_text_add(&peer->received, "%.*s", n, data);
		while (stay && (end = end_of_request(peer->received.data + start,
						     greeted && peer->chunked))) {
			const char *request = peer->received.data + start;

			start = (size_t)(end - peer->received.data);
			if (!greeted && peer->slow && was_hasty(peer, channel))
				spent = deaf = true;
			if (greeted && !spent && peer->answers[*step])
				stay = answer(peer, channel, peer->answers[(*step)++], request);
			spent = deaf || !peer->answers[*step];
			greeted = true;
		}
	}
}

static void serve(struct netconf_peer *peer, int fd, size_t *step)
{
	ssh_session session = ssh_new();
	ssh_channel channel;

	if (ssh_bind_accept_fd(peer->bind, session, fd) == SSH_OK &&
	    ssh_handle_key_exchange(session) == SSH_OK) {
		channel = open_channel(peer, session);
		if (channel)
			converse(peer, channel, step);
	}
	ssh_disconnect(session);
	ssh_free(session);
}

static void *run(void *context)
{
	struct netconf_peer *peer = context;
	size_t step = 0;
	int fd;

	while ((fd = accept(peer->listener, NULL, NULL)) >= 0)
		serve(peer, fd, &step);
	return NULL;
}

static void make_key(struct netconf_peer *peer)
{
	unsigned char *hash = NULL;
	size_t length;
	ssh_key key;
	char *print;
	int off = 0;

	require(ssh_pki_generate(SSH_KEYTYPE_ED25519, 0, &key) == SSH_OK);
	require(ssh_get_publickey_hash(key, SSH_PUBLICKEY_HASH_SHA256, &hash, &length) == 0);
	print = ssh_get_fingerprint_hash(SSH_PUBLICKEY_HASH_SHA256, hash, length);
	snprintf(peer->host_key, sizeof(peer->host_key), "%s", print);
	ssh_string_free_char(print);
	ssh_clean_pubkey_hash(&hash);
	peer->bind = ssh_bind_new();
	require(peer->bind &&
		!ssh_bind_options_set(peer->bind, SSH_BIND_OPTIONS_PROCESS_CONFIG, &off));
	require(ssh_bind_options_set(peer->bind, SSH_BIND_OPTIONS_IMPORT_KEY, key) == 0);
}

void netconf_peer_start(struct netconf_peer *peer)
{
	static const char login[] = "user=" USER "\npassword=" PASSWORD "\n";
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t length = sizeof(address);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	strcpy(peer->folder, "/tmp/ocs-peer-XXXXXX");
	require(mkdtemp(peer->folder) != NULL);
	snprintf(peer->login, sizeof(peer->login), "%s/login", peer->folder);
	require(ocs_file_write(peer->login, login, strlen(login), 0600, NULL) == 0);
	make_key(peer);
	ocs_text_add(&peer->received, "%s", "");
	peer->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	require(peer->listener >= 0 &&
		bind(peer->listener, (struct sockaddr *)&address, sizeof(address)) == 0 &&
		listen(peer->listener, 8) == 0 &&
		getsockname(peer->listener, (struct sockaddr *)&address, &length) == 0);
	snprintf(peer->address, sizeof(peer->address), "127.0.0.1:%d", ntohs(address.sin_port));
	require(pthread_create(&peer->thread, NULL, run, peer) == 0);
}

void netconf_peer_stop(struct netconf_peer *peer)
{
	/* Wakes accept; a connection that is served now ends by itself. */
	shutdown(peer->listener, SHUT_RDWR);
	pthread_join(peer->thread, NULL);
	close(peer->listener);
	ssh_bind_free(peer->bind);
	unlink(peer->login);
	rmdir(peer->folder);
}

void netconf_peer_free(struct netconf_peer *peer)
{
	ocs_text_free(&peer->received);
}
