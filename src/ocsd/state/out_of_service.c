/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/ocsd/state/out_of_service.h"

#include "src/ocsd/state/events.h"

#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/util/text.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

const struct ocsd_drain *ocsd_drain_find(const struct ocsd *d, const char *kind, const char *name)
{
	for (const struct ocsd_drain *drain = d->drains; drain; drain = drain->next)
		if (strcmp(drain->kind, kind) == 0 && strcmp(drain->name, name) == 0)
			return drain;
	return NULL;
}

static void drain_switch(struct ocsd *d, const char *name, const char *reason)
{
	int index = ocs_fabric_switch(d->fabric, name);
	struct ocsd_switch *sw;

	if (index < 0)
		return;
	sw = &d->switches[index];
	sw->status.drained = reason != NULL;
	free(sw->status.drain_reason);
	sw->status.drain_reason = reason ? ocs_text_clean(ocs_strdup(reason)) : NULL;
}

int ocsd_port_parse(const struct ocsd *d, const char *name, struct ocs_port *port)
{
	const char *colon = strrchr(name, ':');
	char *sw;
	long value;

	if (!colon)
		return -1;
	sw = ocs_strdup(name);
	sw[colon - name] = '\0';
	port->sw = ocs_fabric_switch(d->fabric, sw);
	free(sw);
	if (port->sw < 0 || ocs_number_parse(colon + 1, 1,
					     d->fabric->switches[port->sw].size *
						     (d->fabric->switches[port->sw].bidi ? 2 : 1),
					     &value))
		return -1;
	port->port = (int)value;
	return 0;
}

static void drain_port(struct ocsd *d, const char *name, const char *reason)
{
	struct ocs_port where;
	struct ocsd_port *port;

	if (ocsd_port_parse(d, name, &where))
		return;
	port = &d->switches[where.sw].ports[where.port];
	port->drained = reason != NULL;
	port->quarantine = reason && strncmp(reason, OCSD_QUARANTINE, strlen(OCSD_QUARANTINE)) == 0;
	port->failed = port->quarantine ||
		       (reason && strncmp(reason, OCSD_PORT_FAILED, strlen(OCSD_PORT_FAILED)) == 0);
}

void ocsd_drain_set(struct ocsd *d, const char *kind, const char *name, const char *reason)
{
	struct ocsd_drain **link = &d->drains, *drain;

	if (strcmp(kind, "switch") == 0)
		drain_switch(d, name, reason);
	if (strcmp(kind, "port") == 0)
		drain_port(d, name, reason);
	while (*link && (strcmp((*link)->kind, kind) != 0 || strcmp((*link)->name, name) != 0))
		link = &(*link)->next;
	drain = *link;
	if (reason) {
		if (!drain) {
			drain = ocs_calloc(1, sizeof(*drain));
			drain->kind = ocs_strdup(kind);
			drain->name = ocs_strdup(name);
			*link = drain;
		}
		free(drain->reason);
		/* One in the database may be from before reasons were cleaned at the door. */
		drain->reason = ocs_text_clean(ocs_strdup(reason));
	} else if (drain) {
		*link = drain->next;
		free(drain->kind);
		free(drain->name);
		free(drain->reason);
		free(drain);
	}
}

static struct json_object *drain_json(const char *kind, const char *name, const char *reason)
{
	struct json_object *row = json_object_new_object();

	ocs_field_add_text(row, OCS_FIELD_KIND, kind);
	ocs_field_add_text(row, OCS_FIELD_NAME, name);
	ocs_field_add_text(row, OCS_FIELD_REASON, reason);
	return row;
}

/* A quarantined port that carries something of ours by ocs.yaml. */
static void add_quarantined(struct ocsd *d, const struct ocsd_switch *sw, int port,
			    struct json_object *list)
{
	struct ocs_port where = { .sw = sw->index, .port = port };
	char *label = ocs_fabric_port_label(d->fabric, where);
	char *name = ocs_asprintf("%s:%d", sw->description->name, port);

	if (label && strcmp(label, "unused") != 0 && !ocsd_drain_find(d, "port", name))
		json_object_array_add(list, drain_json("port", name, "a patch that is not ours"));
	free(label);
	free(name);
}

struct json_object *ocsd_drains_json(struct ocsd *d)
{
	struct json_object *list = json_object_new_array();

	for (const struct ocsd_drain *drain = d->drains; drain; drain = drain->next)
		json_object_array_add(list, drain_json(drain->kind, drain->name, drain->reason));
	for (int i = 0; i < d->fabric->nswitches; i++)
		for (int port = 1; port <= 2 * d->switches[i].description->size; port++)
			if (d->switches[i].ports[port].foreign)
				add_quarantined(d, &d->switches[i], port, list);
	return list;
}

void ocsd_drain_event(struct ocsd *d, const char *kind, const char *name, const char *reason,
		      bool drained)
{
	struct json_object *event = drain_json(kind, name, reason);

	ocs_field_add_text(event, OCS_FIELD_EVENT, OCS_EVENT_DRAIN);
	ocs_field_add_bool(event, OCS_FIELD_DRAINED, drained);
	ocsd_event_post(d, event);
}
