/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/protocol/account.h"
#include "src/protocol/client.h"
#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/util/error.h"
#include "src/util/net.h"
#include "src/util/secret.h"
#include "src/util/text.h"

#include <dlfcn.h>
#include <errno.h>
#include <json-c/json.h>
#include <limits.h>
#include <munge.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LINE_MAX_BYTES (16U << 20)     /* replies may be larger than requests */
#define UNPROVEN_MAX_BYTES (16U << 10) /* before it is known who speaks */
#define CHALLENGE_MAX 128
#define SAYS_MAX 200
#define SEND_MS 10000
#define MILLION INT64_C(1000000)

struct kept {
	struct kept *next;
	struct json_object *line;
};

struct ocs_client {
	int fd;
	int64_t next_id;
	bool proven;	      /* ocsd is there: its socket, or its seal */
	struct ocs_seal seal; /* TCP, after the hello was sent */
	char *data;	      /* bytes received that make no whole line yet */
	size_t used, size, scanned;
	struct kept *first, **last; /* lines that arrived during a call */
};

static int64_t deadline_after(int timeout_ms)
{
	return ocs_now_ns() + (int64_t)(timeout_ms < 0 ? 0 : timeout_ms) * MILLION;
}

static int left_ms(int64_t deadline_ns)
{
	int64_t left = (deadline_ns - ocs_now_ns() + MILLION - 1) / MILLION;

	if (left < 0)
		return 0;
	return left > INT_MAX ? INT_MAX : (int)left;
}

/* Cuts the first whole line off the buffer, or NULL. */
static char *buffered_line(struct ocs_client *client)
{
	char *end, *line;
	size_t length;

	if (client->used == client->scanned)
		return NULL;
	end = memchr(client->data + client->scanned, '\n', client->used - client->scanned);
	if (!end) {
		client->scanned = client->used;
		return NULL;
	}
	length = (size_t)(end - client->data);
	line = ocs_calloc(length + 1, 1);
	memcpy(line, client->data, length);
	client->used -= length + 1;
	memmove(client->data, end + 1, client->used);
	client->scanned = 0;
	return line;
}

/* Reads once what is there.  1: something came, 0: nothing, -1 with ERR. */
static int line_receive(struct ocs_client *client, struct ocs_error *err)
{
	unsigned int max = client->proven ? LINE_MAX_BYTES : UNPROVEN_MAX_BYTES;
	ssize_t count;

	if (client->size - client->used < 4096) {
		if (client->size >= max)
			return ocs_error_set(err, OCS_UNREACHABLE,
					     "ocsd sent a line longer than %u bytes", max);
		client->size = client->size ? client->size * 2 : 16384;
		client->data = ocs_realloc(client->data, client->size);
	}
	count = read(client->fd, client->data + client->used, client->size - client->used);
	if (count > 0) {
		client->used += (size_t)count;
		return 1;
	}
	if (count == 0)
		return ocs_error_set(err, OCS_UNREACHABLE, "ocsd closed the connection");
	if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)
		return 0;
	return ocs_error_set(err, OCS_UNREACHABLE, "the connection to ocsd is lost: %s",
			     strerror(errno));
}

static bool refusal_text(struct json_object *object)
{
	return ocs_field_has(object, OCS_FIELD_OK) && !ocs_field_true(object, OCS_FIELD_OK);
}

/* LINE has no seal.  Where ocsd does not know the key of the session, because it refused the
 * hello, it can only say so; and so can any other process.  Its sentence is a reason, and nothing else. */
static void line_unproven(const struct ocs_client *client, const char *line, struct ocs_error *err)
{
	struct json_object *object = client->proven ? NULL : json_tokener_parse(line);
	const char *says = refusal_text(object) ? ocs_field_text(object, OCS_FIELD_ERROR, "") : "";

	if (*says)
		ocs_error_set(err, OCS_UNREACHABLE,
			      "the hello is refused (nothing proves who says "
			      "so): %.*s",
			      SAYS_MAX, says);
	else
		ocs_error_set(err, OCS_UNREACHABLE,
			      "a line does not come from this ocsd: another "
			      "key, or a process in between");
	json_object_put(object);
}

/* The next line from the socket, parsed.  NULL with code OCS_OK: none before the
 * deadline; OCS_UNREACHABLE: the connection cannot be used any more. */
static struct json_object *read_line(struct ocs_client *client, int64_t deadline_ns,
				     struct ocs_error *err)
{
	struct json_object *object;
	const char *text;
	char *line;

	for (;;) {
		struct pollfd wait = { .fd = client->fd, .events = POLLIN };
		int got;

		line = buffered_line(client);
		if (line)
			break;
		got = poll(&wait, 1, left_ms(deadline_ns));
		if (got < 0 && errno != EINTR) {
			ocs_error_set(err, OCS_UNREACHABLE, "waiting for ocsd failed: %s",
				      strerror(errno));
			return NULL;
		}
		if (got <= 0) {
			if (ocs_now_ns() < deadline_ns)
				continue;
			ocs_error_set(err, OCS_OK, "nothing has arrived");
			return NULL;
		}
		if (line_receive(client, err) < 0)
			return NULL;
	}
	text = client->seal.on ? ocs_seal_open(&client->seal, line) : line;
	object = text ? json_tokener_parse(text) : NULL;
	if (!text)
		line_unproven(client, line, err);
	free(line);
	if (!text)
		return NULL;
	if (!json_object_is_type(object, json_type_object)) {
		json_object_put(object);
		ocs_error_set(err, OCS_UNREACHABLE, "ocsd sent a line that is not a JSON object");
		return NULL;
	}
	return object;
}

static void line_keep(struct ocs_client *client, struct json_object *line)
{
	struct kept *kept = ocs_calloc(1, sizeof(*kept));

	kept->line = line;
	*client->last = kept;
	client->last = &kept->next;
}

static struct json_object *kept_line(struct ocs_client *client)
{
	struct kept *kept = client->first;
	struct json_object *line;

	if (!kept)
		return NULL;
	client->first = kept->next;
	if (!client->first)
		client->last = &client->first;
	line = kept->line;
	free(kept);
	return line;
}

/* Adds an id, writes the line.  Returns the id or -1 with ERR. */
static int64_t request_post(struct ocs_client *client, struct json_object *request,
			    int64_t deadline_ns, struct ocs_error *err)
{
	int64_t id = client->next_id++;
	char prefix[OCS_MAC_HEX + 2] = "", *line;
	const char *text;
	size_t length;
	int rc;

	ocs_field_add_number(request, OCS_FIELD_ID, id);
	text = json_object_to_json_string_ext(request, JSON_C_TO_STRING_PLAIN |
							       JSON_C_TO_STRING_NOSLASHESCAPE);
	length = strlen(text);
	if (client->seal.on)
		ocs_seal_prefix(&client->seal, text, length, prefix);
	line = ocs_asprintf("%s%s\n", prefix, text);
	rc = ocs_net_write(client->fd, line, strlen(line), deadline_ns, err);
	free(line);
	if (rc) {
		if (err)
			err->code = OCS_UNREACHABLE;
		return -1;
	}
	return id;
}

/* libmunge is loaded when a remote daemon asks for it, so that programs and
 * plugins that use the local socket do not need it.  Only READER can decode it. */
static char *munge_credential(const char *payload, uid_t reader, struct ocs_error *err)
{
	int (*encode)(char **, munge_ctx_t, const void *, int) = NULL;
	const char *(*text)(munge_err_t) = NULL;
	munge_ctx_t (*create)(void) = NULL;
	munge_err_t (*set)(munge_ctx_t, munge_opt_t, ...) = NULL;
	void (*destroy)(munge_ctx_t) = NULL;
	char *credential = NULL;
	void *library = dlopen("libmunge.so.2", RTLD_NOW | RTLD_LOCAL);
	munge_ctx_t context;
	int rc;

	if (!library) {
		ocs_error_set(err, OCS_UNREACHABLE,
			      "ocsd over TCP needs MUNGE, or ocsd.key in ocs.yaml: %s", dlerror());
		return NULL;
	}
	*(void **)&encode = dlsym(library, "munge_encode");
	*(void **)&text = dlsym(library, "munge_strerror");
	*(void **)&create = dlsym(library, "munge_ctx_create");
	*(void **)&set = dlsym(library, "munge_ctx_set");
	*(void **)&destroy = dlsym(library, "munge_ctx_destroy");
	context = encode && text && create && set && destroy ? create() : NULL;
	if (!context) {
		ocs_error_set(err, OCS_UNREACHABLE, "libmunge.so.2 lacks munge_encode");
		/* cppcheck-suppress resourceLeak ; it stays loaded */
		return NULL;
	}
	rc = set(context, MUNGE_OPT_UID_RESTRICTION, reader);
	if (!rc)
		rc = encode(&credential, context, payload, (int)strlen(payload));
	if (rc) {
		ocs_error_set(err, OCS_UNREACHABLE,
			      "MUNGE gave no credential for ocsd (is munged running?): %s",
			      text((munge_err_t)rc));
		free(credential);
		credential = NULL;
	}
	destroy(context);
	/* The library stays loaded: a process may connect many times. */
	/* cppcheck-suppress resourceLeak */
	return credential;
}

/* The hello that answers CHALLENGE, and the key of the session.  NULL with ERR. */
static struct json_object *hello_munge(const char *challenge, uid_t reader,
				       char session[OCS_MAC_HEX + 1], struct ocs_error *err)
{
	struct json_object *hello;
	char *payload, *credential;

	if (ocs_random_hex(session, OCS_MAC_BYTES, err))
		return NULL;
	payload = ocs_asprintf("%s %s", challenge, session);
	credential = munge_credential(payload, reader, err);
	explicit_bzero(payload, strlen(payload));
	free(payload);
	if (!credential)
		return NULL;
	hello = json_object_new_object();
	ocs_field_add_text(hello, OCS_FIELD_CREDENTIAL, credential);
	free(credential);
	return hello;
}

static struct json_object *hello_key(const char *challenge, const char *path,
				     char session[OCS_MAC_HEX + 1], struct ocs_error *err)
{
	char nonce[2 * 16 + 1], proof[OCS_MAC_HEX + 1], uid[16];
	struct json_object *hello;
	struct ocs_key key;

	if (ocs_key_read(path, &key, err) || ocs_random_hex(nonce, 16, err))
		return NULL;
	snprintf(uid, sizeof(uid), "%u", (unsigned int)geteuid());
	ocs_key_prove(key.bytes, key.length, proof, "hello", challenge, nonce, uid, NULL);
	ocs_key_prove(key.bytes, key.length, session, "session", challenge, nonce, uid, NULL);
	ocs_key_wipe(&key);
	hello = json_object_new_object();
	ocs_field_add_number(hello, OCS_FIELD_UID, geteuid());
	ocs_field_add_text(hello, OCS_FIELD_NONCE, nonce);
	ocs_field_add_text(hello, OCS_FIELD_PROOF, proof);
	return hello;
}

static struct json_object *hello_job(const char *challenge, const struct ocs_job_key *key,
				     char session[OCS_MAC_HEX + 1], struct ocs_error *err)
{
	char nonce[2 * 16 + 1], proof[OCS_MAC_HEX + 1], job[16], epoch[24];
	struct json_object *hello;

	if (ocs_random_hex(nonce, 16, err))
		return NULL;
	snprintf(job, sizeof(job), "%u", key->job);
	snprintf(epoch, sizeof(epoch), "%llu", (unsigned long long)key->epoch);
	ocs_key_prove(key->key, strlen(key->key), proof, "hello of job", challenge, nonce, job,
		      epoch, NULL);
	ocs_key_prove(key->key, strlen(key->key), session, "session of job", challenge, nonce, job,
		      epoch, NULL);
	hello = ocs_request_job(OCS_OP_HELLO, key->job, key->epoch);
	ocs_field_add_text(hello, OCS_FIELD_NONCE, nonce);
	ocs_field_add_text(hello, OCS_FIELD_PROOF, proof);
	return hello;
}

/* The challenge of GREETING, or NULL: ocsd sends no such thing.  What is signed or
 * encrypted with it means one thing only if it is hexadecimal. */
static const char *challenge_of(struct json_object *greeting)
{
	struct json_object *value = ocs_field(greeting, OCS_FIELD_CHALLENGE);
	const char *text;
	size_t length;

	if (!json_object_is_type(value, json_type_string))
		return NULL;
	text = json_object_get_string(value);
	length = strspn(text, "0123456789abcdef");
	return length && length <= CHALLENGE_MAX && !text[length] &&
			       length == (size_t)json_object_get_string_len(value) ?
		       text :
		       NULL;
}

/* The hello that answers GREETING, which any process may have sent; what is said to the account
 * that it names, no other account can read. */
static struct json_object *greeting_answer(struct json_object *greeting, const char *key,
					   const char *user, char session[OCS_MAC_HEX + 1],
					   struct ocs_error *err)
{
	const char *challenge = challenge_of(greeting);
	struct json_object *reader = ocs_field(greeting, OCS_FIELD_UID), *hello;
	int64_t uid;

	if (!challenge || !json_object_is_type(reader, json_type_int)) {
		ocs_error_set(err, OCS_UNREACHABLE, "what answers there is not ocsd");
		return NULL;
	}
	if (ocs_field_true(greeting, OCS_FIELD_KEY) != (key != NULL)) {
		ocs_error_set(err, OCS_UNREACHABLE,
			      key ? "this ocsd knows its clients by MUNGE; take "
				    "ocsd.key out of this host's ocs.yaml" :
				    "this ocsd knows its clients by a "
				    "shared key; ocsd.key is missing in this host's ocs.yaml");
		return NULL;
	}
	uid = json_object_get_int64(reader);
	if (!key && (uid < 0 || uid >= UINT_MAX || ocs_account_check(user, (uid_t)uid, err))) {
		if (uid < 0 || uid >= UINT_MAX)
			ocs_error_set(err, OCS_UNREACHABLE, "what answers there is not ocsd");
		return NULL;
	}
	hello = key ? hello_key(challenge, key, session, err) :
		      hello_munge(challenge, (uid_t)uid, session, err);
	if (hello)
		ocs_field_add_text(hello, OCS_FIELD_OP, OCS_OP_HELLO);
	return hello;
}

/* Hands a reply that says ok to the caller; turns any other into ERR. */
static struct json_object *reply_judge(struct json_object *reply, struct json_object **refusal,
				       struct ocs_error *err)
{
	int64_t code = ocs_field_number(reply, OCS_FIELD_CODE, OCS_ERROR);

	if (ocs_field_true(reply, OCS_FIELD_OK))
		return reply;
	if (code <= OCS_OK || code >= OCS_UNREACHABLE)
		code = OCS_ERROR;
	ocs_error_set(err, (int)code, "%s",
		      ocs_field_text(reply, OCS_FIELD_ERROR, "ocsd refused without a reason"));
	if (refusal)
		*refusal = reply;
	else
		json_object_put(reply);
	return NULL;
}

/* By the key JOB, or else by the file KEY, or else by MUNGE. */
static int client_authenticate(struct ocs_client *client, const struct ocs_job_key *job,
			       const char *key, const char *user, int64_t deadline_ns,
			       struct ocs_error *err)
{
	struct json_object *greeting, *hello, *reply = NULL;
	const char *challenge;
	char session[OCS_MAC_HEX + 1];
	struct ocs_seal seal;
	int64_t id;

	err->code = OCS_OK;
	greeting = read_line(client, deadline_ns, err);
	if (!greeting)
		return -1;
	challenge = job ? challenge_of(greeting) : NULL;
	if (job && !challenge)
		ocs_error_set(err, OCS_UNREACHABLE, "what answers there is not ocsd");
	if (job)
		hello = challenge ? hello_job(challenge, job, session, err) : NULL;
	else
		hello = greeting_answer(greeting, key, user, session, err);
	json_object_put(greeting);
	if (!hello) {
		err->code = OCS_UNREACHABLE;
		return -1;
	}
	ocs_seal_start(&seal, session, false);
	explicit_bzero(session, sizeof(session));
	id = request_post(client, hello, deadline_ns, err);
	json_object_put(hello);
	if (id < 0)
		return -1;
	/* The answer is sealed: who is there knows the key of the session. */
	client->seal = seal;
	reply = read_line(client, deadline_ns, err);
	if (!reply)
		return -1;
	client->proven = true;
	reply = reply_judge(reply, NULL, err);
	if (!reply) {
		err->code = OCS_UNREACHABLE;
		return -1;
	}
	json_object_put(reply);
	return 0;
}

/* Whose process listens on the UNIX socket. */
static int know_local(struct ocs_client *client, const char *user, struct ocs_error *err)
{
	socklen_t size = sizeof(struct ucred);
	struct ucred who;

	if (getsockopt(client->fd, SOL_SOCKET, SO_PEERCRED, &who, &size))
		return ocs_error_set(err, OCS_UNREACHABLE, "SO_PEERCRED: %s", strerror(errno));
	if (ocs_account_check(user, who.uid, err))
		return -1;
	client->proven = true;
	return 0;
}

static struct ocs_client *client_open(const char *address, const struct ocs_job_key *job,
				      const char *key, const char *user, int timeout_ms,
				      struct ocs_error *err)
{
	int64_t deadline_ns = deadline_after(timeout_ms);
	struct ocs_client *client;
	struct ocs_error local;
	int fd, rc;

	if (!err)
		err = &local;
	fd = ocs_net_connect(address, timeout_ms, err);
	if (fd < 0) {
		err->code = OCS_UNREACHABLE;
		return NULL;
	}
	client = ocs_calloc(1, sizeof(*client));
	client->fd = fd;
	client->next_id = 1;
	client->last = &client->first;
	rc = strncmp(address, "unix:", 5) == 0 ?
		     know_local(client, user, err) :
		     client_authenticate(client, job, key, user, deadline_ns, err);
	if (rc) {
		if (err->code == OCS_OK)
			ocs_error_set(err, OCS_UNREACHABLE, "no challenge from ocsd within %d ms",
				      timeout_ms);
		ocs_error_prefix(err, "%s", address);
		ocs_client_close(client);
		return NULL;
	}
	return client;
}

struct ocs_client *ocs_client_open(const char *address, const char *key, const char *user,
				   int timeout_ms, struct ocs_error *err)
{
	return client_open(address, NULL, key, user, timeout_ms, err);
}

struct ocs_client *ocs_client_open_job(const char *address, const struct ocs_job_key *key,
				       const char *user, int timeout_ms, struct ocs_error *err)
{
	return client_open(address, key, NULL, user, timeout_ms, err);
}

void ocs_client_close(struct ocs_client *client)
{
	struct json_object *line;

	if (!client)
		return;
	while ((line = kept_line(client)))
		json_object_put(line);
	close(client->fd);
	free(client->data);
	free(client);
}

int ocs_client_fd(const struct ocs_client *client)
{
	return client->fd;
}

struct json_object *ocs_client_call(struct ocs_client *client, struct json_object *request,
				    int timeout_ms, struct json_object **refusal,
				    struct ocs_error *err)
{
	int64_t deadline_ns = deadline_after(timeout_ms);
	struct json_object *line;
	struct ocs_error local;
	int64_t id;

	if (!err)
		err = &local;
	if (refusal)
		*refusal = NULL;
	id = request_post(client, request, deadline_ns, err);
	if (id < 0)
		return NULL;
	for (;;) {
		line = read_line(client, deadline_ns, err);
		if (!line) {
			if (err->code == OCS_OK)
				ocs_error_set(err, OCS_UNREACHABLE,
					      "ocsd did not answer within %d ms", timeout_ms);
			return NULL;
		}
		if (ocs_field_number(line, OCS_FIELD_ID, 0) == id)
			return reply_judge(line, refusal, err);
		line_keep(client, line);
	}
}

int ocs_client_send(struct ocs_client *client, struct json_object *request, struct ocs_error *err)
{
	return request_post(client, request, deadline_after(SEND_MS), err) < 0 ? -1 : 0;
}

struct json_object *ocs_client_next(struct ocs_client *client, int timeout_ms,
				    struct ocs_error *err)
{
	struct json_object *line = kept_line(client);
	struct ocs_error local;

	if (line)
		return line;
	return read_line(client, deadline_after(timeout_ms), err ? err : &local);
}
