/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/emulator/ssh.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <libssh/callbacks.h>
#include <libssh/libssh.h>
#include <libssh/server.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/emulator/emulator.h"
#include "src/util/error.h"
#include "src/util/log.h"

#define LOGIN_SECONDS 30

struct ocs_emu_ssh {
	ssh_bind bind;
	ssh_key key;
	struct front *fronts;
};

struct front {
	struct front *next;
	struct ocs_emu_switch *sw;
	ssh_session session;
	ssh_channel channel;
	ssh_event poll; /* what libssh waits for, of this session alone */
	struct ssh_server_callbacks_struct server;
	struct ssh_channel_callbacks_struct events;
	struct event *network;	    /* the connection can be read, or written */
	struct event *login;	    /* its time is over */
	struct bufferevent *inside; /* plain bytes to and from server.c */
	bool started;		    /* the subsystem runs */
	bool ended;		    /* the client has sent its last byte */
};

static void free_front(struct front *front)
{
	struct front **at = &front->sw->emu->ssh->fronts;

	while (*at != front)
		at = &(*at)->next;
	*at = front->next;
	event_free(front->network);
	event_free(front->login);
	bufferevent_free(front->inside);
	ssh_event_remove_session(front->poll, front->session);
	ssh_event_free(front->poll);
	if (front->channel)
		ssh_channel_free(front->channel);
	ssh_disconnect(front->session);
	ssh_free(front->session);
	free(front);
}

static int on_password(ssh_session session, const char *user, const char *password, void *context)
{
	const struct front *front = context;
	const struct ocs_emu_switch *sw = front->sw;

	(void)session;
	if (sw->fault == OCS_EMU_LOGIN)
		return SSH_AUTH_DENIED;
	return !sw->user || (!strcmp(user, sw->user) && !strcmp(password, sw->password)) ?
		       SSH_AUTH_SUCCESS :
		       SSH_AUTH_DENIED;
}

static int on_none(ssh_session session, const char *user, void *context)
{
	const struct front *front = context;

	(void)session;
	(void)user;
	return front->sw->user || front->sw->fault == OCS_EMU_LOGIN ? SSH_AUTH_DENIED :
								      SSH_AUTH_SUCCESS;
}

static int on_data(ssh_session session, ssh_channel channel, void *data, uint32_t length,
		   int is_stderr, void *context)
{
	struct front *front = context;

	(void)session;
	(void)channel;
	if (!is_stderr && front->started)
		bufferevent_write(front->inside, data, length);
	return (int)length;
}

static void on_end(ssh_session session, ssh_channel channel, void *context)
{
	struct front *front = context;

	(void)session;
	(void)channel;
	front->ended = true;
}

static int on_subsystem(ssh_session session, ssh_channel channel, const char *subsystem,
			void *context)
{
	struct front *front = context;

	(void)session;
	(void)channel;
	if (strcmp(subsystem, "netconf"))
		return 1;
	front->started = true;
	evtimer_del(front->login);
	return 0;
}

static ssh_channel on_channel(ssh_session session, void *context)
{
	struct front *front = context;

	if (front->channel)
		return NULL;
	front->channel = ssh_channel_new(session);
	ssh_set_channel_callbacks(front->channel, &front->events);
	return front->channel;
}

/* Answers wait where they are while the client's window is full. */
static void pump_out(struct front *front)
{
	struct evbuffer *input = bufferevent_get_input(front->inside);
	size_t length;

	while (front->started && !front->ended && (length = evbuffer_get_length(input))) {
		size_t part = length > 32768 ? 32768 : length;
		const unsigned char *data = evbuffer_pullup(input, (ev_ssize_t)part);
		int n = ssh_channel_write(front->channel, data, (uint32_t)part);

		if (n <= 0)
			return;
		evbuffer_drain(input, (size_t)n);
	}
}

/* After anything happened.  May free the front. */
static void front_settle(struct front *front)
{
	short wanted = EV_READ | EV_PERSIST;

	pump_out(front);
	if (front->ended || ssh_get_status(front->session) & (SSH_CLOSED | SSH_CLOSED_ERROR)) {
		/* What it asked for last is done all the same. */
		evbuffer_write(bufferevent_get_output(front->inside),
			       bufferevent_getfd(front->inside));
		free_front(front);
		return;
	}
	if (ssh_get_poll_flags(front->session) & SSH_WRITE_PENDING)
		wanted |= EV_WRITE;
	if (event_get_events(front->network) != wanted) {
		event_del(front->network);
		event_assign(front->network, front->sw->emu->base, ssh_get_fd(front->session),
			     wanted, event_get_callback(front->network), front);
		event_add(front->network, NULL);
	}
}

static void on_network(evutil_socket_t fd, short what, void *context)
{
	struct front *front = context;

	(void)fd;
	(void)what;
	ssh_event_dopoll(front->poll, 0);
	front_settle(front);
}

static void on_login_timeout(evutil_socket_t fd, short what, void *context)
{
	(void)fd;
	(void)what;
	free_front(context);
}

static void on_inside(struct bufferevent *events, void *context)
{
	(void)events;
	front_settle(context);
}

static void on_inside_end(struct bufferevent *events, short what, void *context)
{
	struct front *front = context;

	(void)events;
	if (!(what & (BEV_EVENT_EOF | BEV_EVENT_ERROR)))
		return;
	pump_out(front);
	if (front->channel && front->started) {
		ssh_channel_send_eof(front->channel);
		ssh_channel_close(front->channel);
		ssh_blocking_flush(front->session, 0);
	}
	free_front(front);
}

static int front_begin(struct front *front, int fd)
{
	struct event_base *base = front->sw->emu->base;

	front->server = (struct ssh_server_callbacks_struct){
		.userdata = front,
		.auth_password_function = on_password,
		.auth_none_function = on_none,
		.channel_open_request_session_function = on_channel,
	};
	front->events = (struct ssh_channel_callbacks_struct){
		.userdata = front,
		.channel_data_function = on_data,
		.channel_eof_function = on_end,
		.channel_close_function = on_end,
		.channel_subsystem_request_function = on_subsystem,
	};
	ssh_callbacks_init(&front->server);
	ssh_callbacks_init(&front->events);
	front->network = event_new(base, fd, EV_READ | EV_PERSIST, on_network, front);
	front->login = evtimer_new(base, on_login_timeout, front);
	event_add(front->network, NULL);
	event_add(front->login, &(struct timeval){ LOGIN_SECONDS, 0 });
	ssh_set_blocking(front->session, 0);
	ssh_set_server_callbacks(front->session, &front->server);
	ssh_set_auth_methods(front->session, SSH_AUTH_METHOD_PASSWORD);
	/* Sends the banner; the rest follows in answer to what comes in. */
	if (ssh_handle_key_exchange(front->session) == SSH_ERROR)
		return -1;
	return ssh_event_add_session(front->poll, front->session) == SSH_OK ? 0 : -1;
}

int ocs_emu_ssh_secure(struct ocs_emu_switch *sw, int fd)
{
	struct ocs_emu_ssh *ssh = sw->emu->ssh;
	struct front *front;
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0) {
		ocs_log(OCS_LOG_ERROR, "switch %s: socketpair: %s", sw->name, strerror(errno));
		close(fd);
		return -1;
	}
	front = ocs_calloc(1, sizeof(*front));
	front->sw = sw;
	front->session = ssh_new();
	front->poll = ssh_event_new();
	front->inside = bufferevent_socket_new(sw->emu->base, ends[0], BEV_OPT_CLOSE_ON_FREE);
	bufferevent_setcb(front->inside, on_inside, NULL, on_inside_end, front);
	bufferevent_enable(front->inside, EV_READ | EV_WRITE);
	front->next = ssh->fronts;
	ssh->fronts = front;
	if (ssh_bind_accept_fd(ssh->bind, front->session, fd) != SSH_OK || front_begin(front, fd)) {
		ocs_log(OCS_LOG_INFO, "switch %s: SSH: %s", sw->name,
			ssh_get_error(front->session));
		free_front(front);
		close(ends[1]);
		return -1;
	}
	return ends[1];
}

static int host_key_generate(ssh_key *key)
{
#if LIBSSH_VERSION_INT >= SSH_VERSION_INT(0, 12, 0)
	return ssh_pki_generate_key(SSH_KEYTYPE_ED25519, NULL, key);
#else
	return ssh_pki_generate(SSH_KEYTYPE_ED25519, 0, key);
#endif
}

static int load_key(struct ocs_emu_ssh *ssh, const char *path, struct ocs_error *err)
{
	if (path && access(path, F_OK) == 0) {
		if (ssh_pki_import_privkey_file(path, NULL, NULL, NULL, &ssh->key) == SSH_OK)
			return 0;
		return ocs_error_set(err, OCS_USAGE, "%s: not a private key that can be read",
				     path);
	}
	if (host_key_generate(&ssh->key) != SSH_OK)
		return ocs_error_set(err, OCS_ERROR, "no SSH host key could be made");
	if (path && ssh_pki_export_privkey_file(ssh->key, NULL, NULL, NULL, path) != SSH_OK)
		return ocs_error_set(err, OCS_ERROR, "%s: the host key cannot be written there",
				     path);
	return 0;
}

static bool speaks_ssh(const struct ocs_emu_switch *sw)
{
	return sw->protocol->secure == ocs_emu_ssh_secure;
}

int ocs_emu_ssh_open(struct ocs_emu *emu, const char *host_key, struct ocs_error *err)
{
	ssh_key key;
	int off = 0, i;

	for (i = 0; i < emu->nswitches && !speaks_ssh(&emu->switches[i]); i++)
		;
	if (i == emu->nswitches)
		return 0;
	emu->ssh = ocs_calloc(1, sizeof(*emu->ssh));
	if (load_key(emu->ssh, host_key, err))
		return -1;
	emu->ssh->bind = ssh_bind_new();
	key = ssh_key_dup(emu->ssh->key); /* goes with the bind */
	if (!key || ssh_bind_options_set(emu->ssh->bind, SSH_BIND_OPTIONS_PROCESS_CONFIG, &off) ||
	    ssh_bind_options_set(emu->ssh->bind, SSH_BIND_OPTIONS_IMPORT_KEY, key))
		return ocs_error_set(err, OCS_ERROR, "libssh: %s", ssh_get_error(emu->ssh->bind));
	return 0;
}

void ocs_emu_ssh_close(struct ocs_emu *emu)
{
	if (!emu->ssh)
		return;
	while (emu->ssh->fronts)
		free_front(emu->ssh->fronts);
	if (emu->ssh->bind)
		ssh_bind_free(emu->ssh->bind);
	ssh_key_free(emu->ssh->key);
	free(emu->ssh);
	emu->ssh = NULL;
}

int ocs_emu_ssh_known_hosts(const struct ocs_emu *emu, const char *path, struct ocs_error *err)
{
	struct ocs_text text = { 0 };
	char *base64 = NULL;
	int rc;

	if (emu->ssh && ssh_pki_export_pubkey_base64(emu->ssh->key, &base64) != SSH_OK)
		return ocs_error_set(err, OCS_ERROR, "the host key cannot be exported");
	for (int i = 0; base64 && i < emu->nswitches; i++) {
		const struct ocs_emu_switch *sw = &emu->switches[i];
		const char *colon = strrchr(sw->address, ':');

		if (!speaks_ssh(sw))
			continue;
		if (!strncmp(sw->address, "unix:", 5))
			ocs_text_add(&text, "%s", sw->name);
		else if (sw->address[0] == '[')
			ocs_text_add(&text, "%s", sw->address);
		else
			ocs_text_add(&text, "[%.*s]:%s", (int)(colon - sw->address), sw->address,
				     colon + 1);
		ocs_text_add(&text, " %s %s\n", ssh_key_type_to_char(ssh_key_type(emu->ssh->key)),
			     base64);
	}
	ssh_string_free_char(base64);
	rc = ocs_file_write(path, text.data ? text.data : "", text.length, 0644, err);
	ocs_text_free(&text);
	return rc;
}
