/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/ocsd/protocol/pending_reply.h"

#include <stdlib.h>

void ocsd_reply_later(struct ocsd *d, struct ocsd_pending_reply *reply,
		      const struct ocsd_reply_kind *kind, struct ocsd_client *client, int64_t id)
{
	reply->kind = kind;
	reply->client = client;
	reply->id = id;
	reply->deadline_ns = INT64_MAX;
	reply->next = d->replies.first;
	d->replies.first = reply;
}

static void reply_take(struct ocsd *d, struct ocsd_pending_reply **link, bool answers)
{
	struct ocsd_pending_reply *reply = *link;

	*link = reply->next;
	if (answers)
		reply->kind->answer(d, reply);
	reply->kind->drop(d, reply);
	free(reply);
}

void ocsd_replies_answer(struct ocsd *d, int64_t now_ns)
{
	struct ocsd_pending_reply **link = &d->replies.first;

	d->replies.due = false;
	while (*link) {
		if ((*link)->kind->due(d, *link, now_ns))
			reply_take(d, link, true);
		else
			link = &(*link)->next;
	}
}

int64_t ocsd_replies_deadline(const struct ocsd *d)
{
	int64_t first_ns = INT64_MAX;

	for (const struct ocsd_pending_reply *reply = d->replies.first; reply; reply = reply->next)
		if (reply->deadline_ns < first_ns)
			first_ns = reply->deadline_ns;
	return first_ns;
}

void ocsd_replies_drop(struct ocsd *d, const struct ocsd_client *client)
{
	struct ocsd_pending_reply **link = &d->replies.first;

	while (*link) {
		if ((*link)->client == client)
			reply_take(d, link, false);
		else
			link = &(*link)->next;
	}
}
