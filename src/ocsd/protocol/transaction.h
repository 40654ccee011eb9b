/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_PROTOCOL_TRANSACTION_H
#define OCS_OCSD_PROTOCOL_TRANSACTION_H

/* Requests that expect a revision, or carry an id. */

#include "src/ocsd/state/ocsd.h"

/* Whether REQUEST may be done: false if it was refused, or answered as it was before.
 * TELLS: its answer has the revision even if the request says nothing of one. */
bool ocsd_transaction_begin(struct ocsd *d, struct ocsd_client *client, int64_t id,
			    struct json_object *request, bool tells);

/* REQUEST was handled; its answer may be due later. */
void ocsd_transaction_end(struct ocsd *d);

/* CLIENT's request ID gets REPLY, which receives what transactions add, and is kept. */
void ocsd_transaction_answer(struct ocsd *d, const struct ocsd_client *client, int64_t id,
			     struct json_object *reply);

/* Answers to CLIENT are not due any more. */
void ocsd_transactions_lost(struct ocsd *d, const struct ocsd_client *client);

#endif
