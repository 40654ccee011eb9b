/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/switch/netconf/ssh.h"

#include <errno.h>
#include <libssh/libssh.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/switch/driver.h"
#include "src/util/error.h"
#include "src/util/net.h"
#include "src/util/text.h"

#define MS 1000000LL
#define KEY_LIMIT 65536

struct ocs_ssh {
	ssh_session session;
	ssh_channel channel;
	int64_t deadline; /* of the opening */
	struct ocs_switch_connection *connection;
};

static int ssh_failed(const struct ocs_ssh *ssh, const char *what, struct ocs_error *err)
{
	/* The peer's own words may be among it. */
	const char *why = ssh_get_error(ssh->session);

	ocs_switch_hear(ssh->connection, why);
	return ocs_error_set(err, OCS_UNREACHABLE, "%s: %.250s", what, *why ? why : "SSH failed");
}

/* Until the peer sends something, or takes what waits for it.  0, or -1: the
 * deadline has passed. */
static int wait_peer(const struct ocs_ssh *ssh, int64_t deadline)
{
	struct pollfd entry = { .fd = ssh_get_fd(ssh->session), .events = POLLIN };
	int64_t left = deadline - ocs_now_ns();

	if (left <= 0)
		return -1;
	if (ssh_get_poll_flags(ssh->session) & SSH_WRITE_PENDING)
		entry.events |= POLLOUT;
	poll(&entry, 1, left > 60000 * MS ? 60000 : (int)((left + MS - 1) / MS));
	return 0;
}

/* Whether to call the function that said SSH_AGAIN again. */
static bool ssh_retry(struct ocs_ssh *ssh, const char *what, struct ocs_error *err)
{
	if (wait_peer(ssh, ssh->deadline) == 0)
		return true;
	ocs_error_set(err, OCS_UNREACHABLE, "timed out %s", what);
	return false;
}

static int set_target(struct ocs_ssh *ssh, const struct ocs_ssh_target *target, int fd)
{
	const char *colon = strrchr(target->address, ':');
	bool local = !strncmp(target->address, "unix:", 5);
	unsigned int port = local || !colon ? 22 : (unsigned int)atoi(colon + 1);
	char *host = ocs_strdup(target->name);
	ssh_session s = ssh->session;
	int off = 0, rc;

	if (!local && colon) {
		const char *first = target->address;
		size_t length = (size_t)(colon - first);

		if (length > 1 && first[0] == '[') {
			first++;
			length -= 2;
		}
		free(host);
		host = ocs_asprintf("%.*s", (int)length, first);
	}
	/* What stands in the configuration of some user must not matter. */
	rc = ssh_options_set(s, SSH_OPTIONS_PROCESS_CONFIG, &off) ||
	     ssh_options_set(s, SSH_OPTIONS_SSH_DIR, "/nonexistent") ||
	     ssh_options_set(s, SSH_OPTIONS_GLOBAL_KNOWNHOSTS, "/dev/null") ||
	     ssh_options_set(s, SSH_OPTIONS_KNOWNHOSTS,
			     target->known_hosts ? target->known_hosts : "/dev/null") ||
	     ssh_options_set(s, SSH_OPTIONS_HOST, host) ||
	     ssh_options_set(s, SSH_OPTIONS_PORT, &port) ||
	     ssh_options_set(s, SSH_OPTIONS_USER, target->credentials->user) ||
	     ssh_options_set(s, SSH_OPTIONS_FD, &fd);
	free(host);
	return rc ? -1 : 0;
}

static char *key_fingerprint(struct ocs_ssh *ssh)
{
	unsigned char *hash = NULL;
	char *text = NULL, *copy = NULL;
	ssh_key key = NULL;
	size_t length;

	if (ssh_get_server_publickey(ssh->session, &key) == SSH_OK &&
	    ssh_get_publickey_hash(key, SSH_PUBLICKEY_HASH_SHA256, &hash, &length) == 0)
		text = ssh_get_fingerprint_hash(SSH_PUBLICKEY_HASH_SHA256, hash, length);
	if (text)
		copy = ocs_strdup(text);
	ssh_string_free_char(text);
	ssh_clean_pubkey_hash(&hash);
	ssh_key_free(key);
	return copy ? copy : ocs_strdup("unknown");
}

/* Who can write this file decides which switch we believe in. */
static int check_known_hosts(const char *path, struct ocs_error *err)
{
	struct stat st;

	if (stat(path, &st) != 0)
		return ocs_error_set(
			err, OCS_USAGE,
			"%s: %s; ssh-keyscan prints the lines that belong there, to be compared with what the switches show",
			path, strerror(errno));
	if ((st.st_uid != 0 && st.st_uid != geteuid()) || (st.st_mode & (S_IWGRP | S_IWOTH)))
		return ocs_error_set(
			err, OCS_USAGE,
			"%s: others may write it (uid %u, mode %04o); it must belong to root or to uid %u, and chmod go-w works",
			path, (unsigned int)st.st_uid, (unsigned int)(st.st_mode & 07777),
			(unsigned int)geteuid());
	return 0;
}

static int check_known_server(struct ocs_ssh *ssh, const char *path, const char *print,
			      struct ocs_error *err)
{
	switch (ssh_session_is_known_server(ssh->session)) {
	case SSH_KNOWN_HOSTS_OK:
		return 0;
	case SSH_KNOWN_HOSTS_CHANGED:
	case SSH_KNOWN_HOSTS_OTHER:
		return ocs_error_set(
			err, OCS_ERROR,
			"its host key %s is not the one in %s: another machine answers there, or the switch has a new key",
			print, path);
	case SSH_KNOWN_HOSTS_UNKNOWN:
	case SSH_KNOWN_HOSTS_NOT_FOUND:
		return ocs_error_set(
			err, OCS_ERROR,
			"its host key %s is not in %s; if the switch itself shows this fingerprint, add the key (ssh-keyscan prints the line)",
			print, path);
	default:
		return ssh_failed(ssh, "its host key could not be checked", err);
	}
}

static int check_host_key(struct ocs_ssh *ssh, const struct ocs_ssh_target *target,
			  struct ocs_error *err)
{
	char *print = key_fingerprint(ssh);
	int rc = 0;

	if (!target->host_key && !target->known_hosts)
		rc = ocs_error_set(
			err, OCS_USAGE,
			"has neither host_key nor known_hosts, so that it could be any machine");
	else if (!target->host_key)
		rc = check_known_server(ssh, target->known_hosts, print, err);
	else if (strcmp(target->host_key, print))
		rc = ocs_error_set(
			err, OCS_ERROR,
			"its host key is %s, not %s: another machine answers there, or the switch has a new key",
			print, target->host_key);
	free(print);
	return rc;
}

static int connect_session(struct ocs_ssh *ssh, struct ocs_error *err)
{
	int rc;

	while ((rc = ssh_connect(ssh->session)) == SSH_AGAIN)
		if (!ssh_retry(ssh, "agreeing on keys", err))
			return -1;
	return rc == SSH_OK ? 0 : ssh_failed(ssh, "no SSH session", err);
}

/* What a server without the method `password` asks: one hidden question. */
static int answer_questions(struct ocs_ssh *ssh, const char *password, struct ocs_error *err)
{
	int rc = SSH_AUTH_AGAIN;

	for (int rounds = 0; rounds < 8;) {
		rc = ssh_userauth_kbdint(ssh->session, NULL, NULL);
		if (rc == SSH_AUTH_AGAIN) {
			if (!ssh_retry(ssh, "logging in", err))
				return rc;
			continue;
		}
		if (rc != SSH_AUTH_INFO)
			return rc;
		rounds++;
		for (int i = 0; i < ssh_userauth_kbdint_getnprompts(ssh->session); i++)
			ssh_userauth_kbdint_setanswer(ssh->session, (unsigned int)i, password);
	}
	return SSH_AUTH_DENIED;
}

static int log_in_with_password(struct ocs_ssh *ssh, const struct ocs_credentials *credentials,
				struct ocs_error *err)
{
	int rc;

	while ((rc = ssh_userauth_password(ssh->session, NULL, credentials->password)) ==
	       SSH_AUTH_AGAIN)
		if (!ssh_retry(ssh, "logging in", err))
			return rc;
	if (rc == SSH_AUTH_DENIED &&
	    (ssh_userauth_list(ssh->session, NULL) & SSH_AUTH_METHOD_INTERACTIVE))
		rc = answer_questions(ssh, credentials->password, err);
	return rc;
}

static int log_in_with_key(struct ocs_ssh *ssh, const struct ocs_credentials *credentials,
			   struct ocs_error *err)
{
	char *text = ocs_credentials_secret(credentials->key, KEY_LIMIT, err);
	ssh_key key = NULL;
	int rc;

	if (!text)
		return SSH_AUTH_AGAIN;
	rc = ssh_pki_import_privkey_base64(text, credentials->password, NULL, NULL, &key);
	explicit_bzero(text, strlen(text));
	free(text);
	if (rc != SSH_OK) {
		ocs_error_set(err, OCS_USAGE, "%s: not a private key that can be read%s",
			      credentials->key,
			      credentials->password[0] ? " with this password" : "");
		return SSH_AUTH_AGAIN;
	}
	while ((rc = ssh_userauth_publickey(ssh->session, NULL, key)) == SSH_AUTH_AGAIN)
		if (!ssh_retry(ssh, "logging in", err))
			break;
	ssh_key_free(key);
	return rc;
}

/* SSH_AUTH_AGAIN: given up, ERR says why. */
static int log_in(struct ocs_ssh *ssh, const struct ocs_credentials *credentials,
		  struct ocs_error *err)
{
	int rc = credentials->key[0] ? log_in_with_key(ssh, credentials, err) :
				       log_in_with_password(ssh, credentials, err);

	if (rc == SSH_AUTH_SUCCESS)
		return 0;
	if (rc == SSH_AUTH_AGAIN)
		return -1;
	/* Nothing is quoted: it may repeat what it was given. */
	if (rc == SSH_AUTH_ERROR)
		return ocs_error_set(err, OCS_UNREACHABLE, "lost while logging in as %s",
				     credentials->user);
	return ocs_error_set(err, OCS_ERROR, "refused the login of %s with a %s", credentials->user,
			     credentials->key[0] ? "key" : "password");
}

static int start_subsystem(struct ocs_ssh *ssh, const char *subsystem, struct ocs_error *err)
{
	int rc;

	ssh->channel = ssh_channel_new(ssh->session);
	if (!ssh->channel)
		return ssh_failed(ssh, "no SSH channel", err);
	while ((rc = ssh_channel_open_session(ssh->channel)) == SSH_AGAIN)
		if (!ssh_retry(ssh, "opening a channel", err))
			return -1;
	while (rc == SSH_OK &&
	       (rc = ssh_channel_request_subsystem(ssh->channel, subsystem)) == SSH_AGAIN) {
		if (!ssh_retry(ssh, "asking for the subsystem", err))
			return -1;
		rc = SSH_OK;
	}
	if (rc == SSH_OK)
		return 0;
	return ocs_error_set(err, OCS_ERROR, "has no SSH subsystem '%s'", subsystem);
}

struct ocs_ssh *ocs_ssh_open(const struct ocs_ssh_target *target, int timeout_ms,
			     struct ocs_error *err)
{
	struct ocs_ssh *ssh;
	int fd;

	if (!target->host_key && target->known_hosts && check_known_hosts(target->known_hosts, err))
		return NULL;
	fd = ocs_net_connect(target->address, timeout_ms, err);
	if (fd < 0)
		return NULL;
	ocs_net_abort_on_close(fd, true);
	ssh = ocs_calloc(1, sizeof(*ssh));
	ssh->deadline = ocs_now_ns() + timeout_ms * MS;
	ssh->connection = target->connection;
	ssh->session = ssh_new();
	if (!ssh->session || set_target(ssh, target, fd)) {
		close(fd);
		ocs_error_set(err, OCS_ERROR, "libssh refuses the address %s", target->address);
		ocs_ssh_close(ssh);
		return NULL;
	}
	ssh_set_blocking(ssh->session, 0);
	if (connect_session(ssh, err) == 0 && check_host_key(ssh, target, err) == 0 &&
	    log_in(ssh, target->credentials, err) == 0 &&
	    start_subsystem(ssh, target->subsystem, err) == 0)
		return ssh;
	ocs_ssh_close(ssh);
	return NULL;
}

void ocs_ssh_close(struct ocs_ssh *ssh)
{
	if (ssh->channel)
		ssh_channel_free(ssh->channel);
	/* Closes the descriptor; ssh_disconnect would forget it without closing, as it
	 * was made by us. */
	ssh_free(ssh->session);
	free(ssh);
}

int ocs_ssh_descriptor(const struct ocs_ssh *ssh)
{
	return ssh_get_fd(ssh->session);
}

/* What libssh took but the socket did not, yet. */
static int output_flush(struct ocs_ssh *ssh, int64_t deadline, struct ocs_error *err)
{
	int64_t left = (deadline - ocs_now_ns()) / MS;
	int rc = ssh_blocking_flush(ssh->session, left > 0 ? (int)left : 0);

	if (rc == SSH_ERROR)
		return ssh_failed(ssh, "cannot send", err);
	return rc == SSH_OK ? 0 : ocs_error_set(err, OCS_UNREACHABLE, "timed out");
}

int ocs_ssh_write(struct ocs_ssh *ssh, const char *data, size_t length, int64_t deadline_ns,
		  struct ocs_error *err)
{
	while (length) {
		uint32_t part = length > 32768 ? 32768 : (uint32_t)length;
		int n = ssh_channel_write(ssh->channel, data, part);

		if (n < 0 && n != SSH_AGAIN)
			return ssh_failed(ssh, "cannot send", err);
		if (n > 0) {
			data += n;
			length -= (size_t)n;
		} else if (wait_peer(ssh, deadline_ns)) {
			return ocs_error_set(err, OCS_UNREACHABLE, "timed out");
		}
		if (n > 0 && output_flush(ssh, deadline_ns, err))
			return -1;
	}
	return 0;
}

long ocs_ssh_read(struct ocs_ssh *ssh, char *data, size_t size, int64_t deadline_ns,
		  struct ocs_error *err)
{
	for (;;) {
		char ignored[1024];
		int n;

		/* Messages for people must not fill the window.  They come first: either
		 * call may take what is for the other, after which poll sees nothing. */
		while (ssh_channel_read_nonblocking(ssh->channel, ignored, sizeof(ignored), 1) >
			       0 &&
		       ocs_now_ns() < deadline_ns)
			;
		n = ssh_channel_read_nonblocking(ssh->channel, data, (uint32_t)size, 0);
		errno = 0;
		if (n > 0)
			return n;
		if (n == SSH_EOF || (n == 0 && ssh_channel_is_eof(ssh->channel)) ||
		    ssh_channel_is_closed(ssh->channel))
			return 0;
		if (n == SSH_ERROR || !ssh_is_connected(ssh->session))
			return ssh_failed(ssh, "cannot receive", err);
		if (wait_peer(ssh, deadline_ns) == 0)
			continue;
		ocs_error_set(err, OCS_UNREACHABLE, "timed out");
		errno = ETIMEDOUT;
		return -1;
	}
}
