/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_PROTOCOL_CONNECTION_H
#define OCS_OCSD_PROTOCOL_CONNECTION_H

/* Clients and their lines; after a remote hello each is sealed. */

#include "src/ocsd/state/ocsd.h"

int ocsd_server_listen(struct ocsd *d, struct ocs_error *err);
void ocsd_server_close(struct ocsd *d);

/* Adds "id" and "ok", queues the line and puts REPLY (NULL: nothing to add). */
void ocsd_reply(struct ocsd_client *client, int64_t id, struct json_object *reply);

/* The same for a refusal with CODE and a sentence; EXTRA (put here) may be NULL. */
void ocsd_refuse(struct ocsd_client *client, int64_t id, int code, struct json_object *extra,
		 const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Queues REPLY, which says all but the id, and puts it. */
void ocsd_answer(struct ocsd *d, struct ocsd_client *client, int64_t id, struct json_object *reply);

/* Lets queued lines and events out (after the database commit). */
void ocsd_server_flush(struct ocsd *d);
/* Whose client it is, for the audit log. */
const uid_t *ocsd_client_who(const struct ocsd_client *client);
void ocsd_client_subscribe(struct ocsd_client *client);
bool ocsd_subscribed(const struct ocsd *d);

#endif
