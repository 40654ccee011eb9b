/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_PROTOCOL_PENDING_REPLY_H
#define OCS_OCSD_PROTOCOL_PENDING_REPLY_H

/* Requests that are answered later.  Each says itself when it can be answered, by what it finds
 * in the state, and how: whoever changes the state knows nothing of requests.  They stand beside
 * the clients and not beside the operations because a client that is lost takes its own along. */

#include "src/ocsd/state/ocsd.h"

struct ocsd_pending_reply;

struct ocsd_reply_kind {
	/* Whether REPLY can be answered. */
	bool (*due)(struct ocsd *d, const struct ocsd_pending_reply *reply, int64_t now_ns);
	/* Answers it; it is freed then. */
	void (*answer)(struct ocsd *d, struct ocsd_pending_reply *reply);
	/* Frees what hangs on it: it was answered, or its client is lost. */
	void (*drop)(struct ocsd *d, struct ocsd_pending_reply *reply);
};

/* The first member of what an operation keeps of its request. */
struct ocsd_pending_reply {
	struct ocsd_pending_reply *next;
	const struct ocsd_reply_kind *kind;
	struct ocsd_client *client;
	int64_t id;
	int64_t deadline_ns; /* when it is due at the latest; or INT64_MAX */
};

/* CLIENT's request ID is answered once KIND says so.  REPLY (of ocs_calloc) is taken over; it has no
 * deadline, which the caller may change. */
void ocsd_reply_later(struct ocsd *d, struct ocsd_pending_reply *reply,
		      const struct ocsd_reply_kind *kind, struct ocsd_client *client, int64_t id);

/* Answers those that are due. */
void ocsd_replies_answer(struct ocsd *d, int64_t now_ns);

/* The earliest deadline, or INT64_MAX. */
int64_t ocsd_replies_deadline(const struct ocsd *d);

/* CLIENT is lost: nothing is due to it. */
void ocsd_replies_drop(struct ocsd *d, const struct ocsd_client *client);

#endif
