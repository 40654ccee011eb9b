/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Operations pending and nodes: what slurmctld says of its queue and its nodes. */

#include "src/ocsd/ops/operations.h"
#include "src/ocsd/ops/queue.h"
#include "src/ocsd/protocol/connection.h"
#include "src/ocsd/store/clock.h"

#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/util/text.h"

#include <json-c/json.h>
#include <stdlib.h>

void ocsd_pending_clear(struct ocsd *d)
{
	while (d->slurmctld.pending) {
		struct ocsd_pending *entry = d->slurmctld.pending;

		d->slurmctld.pending = entry->next;
		free(entry->user);
		free(entry->shape);
		free(entry->reason);
		free(entry);
	}
}

void ocsd_op_pending(struct ocsd *d, struct ocsd_client *client, int64_t id,
		     struct json_object *request)
{
	const char *reason = ocs_field_text(request, OCS_FIELD_REASON, NULL);
	const char *user = ocs_field_text(request, OCS_FIELD_USER, NULL);
	const char *shape = ocs_field_text(request, OCS_FIELD_SHAPE, NULL);
	struct ocsd_pending **link = &d->slurmctld.pending, *entry;
	int64_t job, uid = -1;

	ocs_field_within(request, OCS_FIELD_UID, UINT32_MAX, &uid);
	if (!ocs_field_within(request, OCS_FIELD_JOB, UINT32_MAX, &job)) {
		ocsd_refuse(client, id, OCS_USAGE, NULL, "the request needs a job number");
		return;
	}
	while (*link && (*link)->job != job)
		link = &(*link)->next;
	entry = *link;
	if (!entry && reason) {
		entry = ocs_calloc(1, sizeof(*entry));
		entry->job = (uint32_t)job;
		entry->since = ocsd_wall_clock();
		*link = entry;
	}
	if (entry) {
		free(entry->user);
		free(entry->shape);
		free(entry->reason);
		if (reason) {
			entry->uid = uid;
			entry->user = user ? ocs_strdup(user) : NULL;
			entry->shape = shape ? ocs_strdup(shape) : NULL;
			entry->reason = ocs_strdup(reason);
		} else {
			*link = entry->next;
			free(entry);
		}
	}
	ocsd_reply(client, id, NULL);
}

void ocsd_op_nodes(struct ocsd *d, struct ocsd_client *client, int64_t id,
		   struct json_object *request)
{
	struct json_object *nodes = ocs_field(request, OCS_FIELD_NODES);

	if (!json_object_is_type(nodes, json_type_object)) {
		ocsd_refuse(client, id, OCS_USAGE, NULL, "nodes needs an object of node states");
		return;
	}
	json_object_put(d->slurmctld.nodes);
	d->slurmctld.nodes = json_object_get(nodes);
	ocsd_reply(client, id, NULL);
}
