/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Requests that expect a revision of the database, and requests with an id of their
 * own, whose answer is the same however often they are repeated. */

#include "src/ocsd/store/audit.h"
#include "src/ocsd/protocol/connection.h"
#include "src/ocsd/store/store.h"
#include "src/ocsd/protocol/transaction.h"

#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/util/text.h"

#include <inttypes.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_LENGTH 64
#define NAME_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:-"

/* A request under way whose answer is kept, or told the revision. */
struct ocsd_transaction {
	struct ocsd_transaction *next;
	const struct ocsd_client *client;
	int64_t id;
	char *name; /* NULL: it has none */
	char *op;
};

static void transaction_free(struct ocsd_transaction *open)
{
	free(open->name);
	free(open->op);
	free(open);
}

/* OPEN (NULL: none) is that of the request at hand. */
static void at_hand(struct ocsd *d, struct ocsd_transaction *open)
{
	d->server.transaction = open;
	d->server.transaction_name = open ? open->name : NULL;
}

static void add_revision(struct ocsd *d, struct json_object *reply)
{
	ocs_field_add_number(reply, OCS_FIELD_REVISION, ocsd_store_revision(d));
}

void ocsd_transaction_answer(struct ocsd *d, const struct ocsd_client *client, int64_t id,
			     struct json_object *reply)
{
	struct ocsd_transaction **link = &d->server.transactions, *open;
	struct json_object *error = NULL;

	while (*link && ((*link)->client != client || (*link)->id != id))
		link = &(*link)->next;
	open = *link;
	if (!open)
		return;
	add_revision(d, reply);
	if (open->name) {
		ocs_field_add_text(reply, OCS_FIELD_TRANSACTION, open->name);
		json_object_object_get_ex(reply, OCS_FIELD_ERROR, &error);
		ocsd_store_transaction_answer(
			d, open->name,
			json_object_to_json_string_ext(reply, JSON_C_TO_STRING_PLAIN));
		ocsd_audit(d, &(struct ocsd_audit){ .who = ocsd_client_who(client),
						    .transaction = open->name,
						    .what = "answer",
						    .before = open->op,
						    .reply = error ? json_object_get_string(error) :
								     "ok" });
	}
	*link = open->next;
	if (d->server.transaction == open)
		at_hand(d, NULL);
	transaction_free(open);
}

void ocsd_transactions_lost(struct ocsd *d, const struct ocsd_client *client)
{
	struct ocsd_transaction **link = &d->server.transactions;

	while (*link) {
		struct ocsd_transaction *open = *link;

		if (open->client != client) {
			link = &open->next;
			continue;
		}
		*link = open->next;
		if (d->server.transaction == open)
			at_hand(d, NULL);
		transaction_free(open);
	}
}

/* What the request asks for, without the number of the line; the caller frees it. */
static char *request_wording(struct json_object *request)
{
	struct json_object *copy = NULL;
	char *text;

	json_object_deep_copy(request, &copy, NULL);
	json_object_object_del(copy, OCS_FIELD_ID);
	text = ocs_strdup(json_object_to_json_string_ext(copy, JSON_C_TO_STRING_PLAIN));
	json_object_put(copy);
	return text;
}

/* A transaction that is known: answered as it was, or (false) to be taken up again. */
static bool answer_again(struct ocsd *d, struct ocsd_client *client, int64_t id, const char *name,
			 const char *asked, const char *asks, const char *answer)
{
	struct json_object *reply;

	if (strcmp(asked, asks) != 0) {
		ocsd_refuse(client, id, OCS_USAGE, NULL,
			    "transaction %s asked for something else before; nothing was done",
			    name);
		return true;
	}
	if (!answer)
		return false;
	reply = json_tokener_parse(answer);
	ocs_log(OCS_LOG_DEBUG, "transaction %s is asked for again, and answered as before", name);
	ocsd_answer(d, client, id, reply ? reply : json_object_new_object());
	return true;
}

static bool name_good(const char *name)
{
	size_t length = name ? strspn(name, NAME_LETTERS) : 0;

	return length && length <= NAME_MAX_LENGTH && !name[length];
}

static void open_transaction(struct ocsd *d, const struct ocsd_client *client, int64_t id,
			     const char *name, struct json_object *request)
{
	struct ocsd_transaction *open = ocs_calloc(1, sizeof(*open));

	open->client = client;
	open->id = id;
	open->name = name ? ocs_strdup(name) : NULL;
	open->op = ocs_strdup(ocs_field_text(request, OCS_FIELD_OP, NULL));
	open->next = d->server.transactions;
	d->server.transactions = open;
	at_hand(d, open);
}

/* Whether the revision is the expected one; refuses if not. */
static bool as_expected(struct ocsd *d, struct ocsd_client *client, int64_t id,
			struct json_object *expect)
{
	int64_t revision = ocsd_store_revision(d), expected = json_object_get_int64(expect);
	struct json_object *extra;

	if (expected == revision)
		return true;
	extra = json_object_new_object();
	ocs_field_add_number(extra, OCS_FIELD_EXPECTED, expected);
	add_revision(d, extra);
	ocsd_refuse(client, id, OCS_ERROR, extra,
		    "nothing was done: revision %" PRId64
		    " was expected, and ocsd is at revision %" PRId64 "; look again",
		    expected, revision);
	return false;
}

bool ocsd_transaction_begin(struct ocsd *d, struct ocsd_client *client, int64_t id,
			    struct json_object *request, bool tells)
{
	struct json_object *expect, *member;
	const char *name = ocs_field_text(request, OCS_FIELD_TRANSACTION, NULL);
	bool expects = json_object_object_get_ex(request, OCS_FIELD_EXPECT, &expect);
	bool named = json_object_object_get_ex(request, OCS_FIELD_TRANSACTION, &member);
	bool known = false, done = false;

	if (!expects && !named && !tells)
		return true;
	if (expects &&
	    (!json_object_is_type(expect, json_type_int) || json_object_get_int64(expect) < 0)) {
		ocsd_refuse(client, id, OCS_USAGE, NULL, "expect is the number of a revision");
		return false;
	}
	if (named && !name_good(name)) {
		ocsd_refuse(client, id, OCS_USAGE, NULL,
			    "a transaction is named by 1 to %d letters, "
			    "digits, dots, colons, dashes and underscores",
			    NAME_MAX_LENGTH);
		return false;
	}
	if (named) {
		char *asks = request_wording(request), *asked = NULL, *answer = NULL;

		known = ocsd_store_transaction_find(d, name, &asked, &answer);
		if (known)
			done = answer_again(d, client, id, name, asked, asks, answer);
		else
			ocsd_store_transaction_add(d, name, asks);
		free(asks);
		free(asked);
		free(answer);
	}
	if (done)
		return false;
	open_transaction(d, client, id, name, request);
	/* One that was taken up before, and never answered, moved the revision itself. */
	return known || !expects || as_expected(d, client, id, expect);
}

void ocsd_transaction_end(struct ocsd *d)
{
	at_hand(d, NULL);
}
