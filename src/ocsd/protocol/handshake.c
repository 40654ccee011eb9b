/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/ocsd/protocol/handshake.h"

#include "src/ocsd/protocol/munge.h"
#include "src/ocsd/protocol/client.h"
#include "src/ocsd/protocol/log_limit.h"
#include "src/ocsd/protocol/connection.h"
#include "src/ocsd/protocol/controller.h"

#include "src/protocol/account.h"
#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/util/text.h"

#include <event2/event.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HELLO_TRIES 3

static void client_welcome(struct ocsd_client *client, uid_t uid, const char *session)
{
	struct json_object *reply = json_object_new_object();

	ocsd_client_know(client, uid);
	ocs_seal_start(&client->seal, session, true);
	event_free(client->handshake_timer);
	client->handshake_timer = NULL;
	ocs_field_add_number(reply, OCS_FIELD_UID, uid);
	ocsd_reply(client, client->hello_id, reply);
}

/* Another hello may do better, but not for ever. */
static void refuse_hello(struct ocsd_client *client, const char *why)
{
	client->asked = false;
	ocsd_log_limited(client->d, client->peer, "a remote client is refused: %s", why);
	ocsd_refuse(client, client->hello_id, OCS_ERROR, NULL, "%s", why);
	if (++client->tries == HELLO_TRIES)
		ocsd_client_finish(client);
}

/* Who holds the key may say who it is: root and daemons, as with Slurm's own key. */
static void hello_key(struct ocsd_client *client, struct json_object *request)
{
	const struct ocs_key *key = client->d->server.key;
	const char *nonce = ocs_field_text(request, OCS_FIELD_NONCE, NULL);
	const char *proof = ocs_field_text(request, OCS_FIELD_PROOF, NULL);
	char right[OCS_MAC_HEX + 1], session[OCS_MAC_HEX + 1], number[16];
	struct json_object *uid;

	if (!nonce || !proof || !json_object_object_get_ex(request, OCS_FIELD_UID, &uid)) {
		ocsd_client_lose(client);
		return;
	}
	snprintf(number, sizeof(number), "%u", (unsigned int)json_object_get_int64(uid));
	ocs_key_prove(key->bytes, key->length, right, "hello", client->challenge, nonce, number,
		      NULL);
	client->asked = false;
	if (!ocs_same_secret(right, proof)) {
		refuse_hello(client, "the proof is refused: ocsd has another key than this host");
		return;
	}
	ocs_key_prove(key->bytes, key->length, session, "session", client->challenge, nonce, number,
		      NULL);
	client_welcome(client, (uid_t)json_object_get_int64(uid), session);
	explicit_bzero(session, sizeof(session));
}

/* The controller of a job knows the job's key, and is its owner. */
static void hello_job(struct ocsd_client *client, struct json_object *request)
{
	const char *nonce = ocs_field_text(request, OCS_FIELD_NONCE, NULL);
	const char *proof = ocs_field_text(request, OCS_FIELD_PROOF, NULL);
	char session[OCS_MAC_HEX + 1];
	uid_t uid;

	if (!nonce || !proof) {
		ocsd_client_lose(client);
		return;
	}
	client->asked = false;
	if (!ocsd_controller_prove(client->d, ocs_field_job(request), ocs_field_epoch(request),
				   client->challenge, nonce, proof, session, &uid)) {
		refuse_hello(client, "the proof is refused: no job has this key");
		return;
	}
	client_welcome(client, uid, session);
	explicit_bzero(session, sizeof(session));
}

void ocsd_hello(struct ocsd_client *client, struct json_object *request)
{
	const char *op = ocs_field_text(request, OCS_FIELD_OP, NULL);
	const char *credential = ocs_field_text(request, OCS_FIELD_CREDENTIAL, NULL);
	bool by_key = client->d->server.key, by_job = ocs_field_has(request, OCS_FIELD_JOB);

	if (!op || strcmp(op, OCS_OP_HELLO) != 0 || (!by_key && !by_job && !credential) ||
	    client->asked) {
		ocsd_client_lose(client);
		return;
	}
	client->hello_id = ocs_field_number(request, OCS_FIELD_ID, 0);
	client->asked = true;
	if (by_job)
		hello_job(client, request);
	else if (by_key)
		hello_key(client, request);
	else if (ocsd_auth_ask(client->d->server.auth, client->serial, client->peer, credential))
		refuse_hello(client, "busy: too many credentials from this address wait for MUNGE");
}

/* PAYLOAD: the challenge, a blank, and the key of the session. */
void ocsd_hello_decoded(struct ocsd *d, uint64_t serial, const char *payload, uid_t uid,
			const char *error)
{
	struct ocsd_client *client = d->server.clients;
	size_t length;

	while (client && client->serial != serial)
		client = client->next;
	if (!client || client->lost)
		return;
	length = strlen(client->challenge);
	if (!payload || strlen(payload) != length + 1 + OCS_MAC_HEX || payload[length] != ' ' ||
	    strncmp(payload, client->challenge, length) != 0) {
		char *why = ocs_asprintf("the MUNGE credential is refused: %s",
					 error ? error : "it answers another challenge");

		refuse_hello(client, why);
		free(why);
		return;
	}
	client_welcome(client, uid, payload + length + 1);
}

int ocsd_hello_account(const struct ocs_config *config, struct ocs_error *err)
{
	unsigned int own = (unsigned int)geteuid();
	uid_t uid;

	/* Clients believe root anyway. */
	if (!own)
		return 0;
	if (ocs_account_uid(config->ocsd.user, &uid, err))
		return ocs_error_prefix(err, "%s", config->fabric->source);
	if (uid == own)
		return 0;
	if (config->ocsd.user)
		return ocs_error_set(err, OCS_USAGE,
				     "%s: ocsd.user is %s (uid %u), but ocsd runs as "
				     "uid %u: no client would believe it",
				     config->fabric->source, config->ocsd.user, (unsigned int)uid,
				     own);
	ocs_log(OCS_LOG_WARNING,
		"ocsd runs as uid %u: until ocs.yaml has it as ocsd.user, only clients "
		"of the same account believe it",
		own);
	return 0;
}
