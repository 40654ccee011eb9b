/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Cubes, ports and switches that an administrator took out of service. */

#include "src/ocsd/store/audit.h"
#include "src/ocsd/jobs/degraded.h"
#include "src/ocsd/ports/drain.h"
#include "src/ocsd/ports/quarantine.h"
#include "src/ocsd/protocol/dispatch.h"
#include "src/ocsd/ports/selftest.h"
#include "src/ocsd/protocol/connection.h"
#include "src/ocsd/switches/status.h"
#include "src/ocsd/store/store.h"

#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/util/text.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BEFORE " (drained before: "

const struct ocsd_drain *ocsd_drain_find(const struct ocsd *d, const char *kind,
					 const char *name)
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
	sw->drained = reason != NULL;
	free(sw->drain_reason);
	sw->drain_reason = reason ? ocs_text_clean(ocs_strdup(reason)) : NULL;
}

/* SWITCH:PORT, or -1. */
static int parse_port(const struct ocsd *d, const char *name, struct ocs_port *port)
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
	if (port->sw < 0 ||
	    ocs_number_parse(colon + 1, 1,
			     d->fabric->switches[port->sw].size *
			     (d->fabric->switches[port->sw].bidi ? 2 : 1), &value))
		return -1;
	port->port = (int)value;
	return 0;
}

static void drain_port(struct ocsd *d, const char *name, const char *reason)
{
	struct ocs_port where;
	struct ocsd_port *port;

	if (parse_port(d, name, &where))
		return;
	port = &d->switches[where.sw].ports[where.port];
	port->drained = reason != NULL;
	port->quarantine = reason &&
			   strncmp(reason, OCSD_QUARANTINE, strlen(OCSD_QUARANTINE)) == 0;
	port->failed = port->quarantine ||
		       (reason && strncmp(reason, OCSD_PORT_FAILED, strlen(OCSD_PORT_FAILED)) == 0);
}

void ocsd_drain_set(struct ocsd *d, const char *kind, const char *name,
		    const char *reason)
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

static struct json_object *drain_json(const char *kind, const char *name,
				      const char *reason)
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
		json_object_array_add(list, drain_json("port", name,
						       "a patch that is not ours"));
	free(label);
	free(name);
}

struct json_object *ocsd_drains_json(struct ocsd *d)
{
	struct json_object *list = json_object_new_array();

	for (const struct ocsd_drain *drain = d->drains; drain; drain = drain->next)
		json_object_array_add(list, drain_json(drain->kind, drain->name,
						       drain->reason));
	for (int i = 0; i < d->fabric->nswitches; i++)
		for (int port = 1; port <= 2 * d->switches[i].description->size; port++)
			if (d->switches[i].ports[port].foreign)
				add_quarantined(d, &d->switches[i], port, list);
	return list;
}

void ocsd_drain_event(struct ocsd *d, const char *kind, const char *name,
		      const char *reason, bool drained)
{
	struct json_object *event = drain_json(kind, name, reason);

	ocs_field_add_text(event, OCS_FIELD_EVENT, OCS_EVENT_DRAIN);
	ocs_field_add_bool(event, OCS_FIELD_DRAINED, drained);
	ocsd_event_send(d, event);
}

static bool exists(struct ocsd *d, const char *kind, const char *name)
{
	struct ocs_port port;

	if (strcmp(kind, "switch") == 0)
		return ocs_fabric_switch(d->fabric, name) >= 0;
	if (strcmp(kind, "port") == 0)
		return parse_port(d, name, &port) == 0;
	if (strcmp(kind, "xpu") == 0)
		return ocs_fabric_xpu_node(d->fabric, name) >= 0;
	if (strcmp(kind, "node") == 0)
		return ocs_fabric_node(d->fabric, name);
	for (int s = 0; s < d->fabric->nsections; s++)
		if (d->fabric->sections[s].kind == OCS_TORUS &&
		    ocs_section_cube(&d->fabric->sections[s], name) >= 0)
			return true;
	return false;
}

static int read_target(struct ocsd *d, struct ocsd_client *client, int64_t id,
		       struct json_object *request, bool resumed, const char **kind,
		       const char **name)
{
	*kind = ocs_field_text(request, OCS_FIELD_KIND, NULL);
	*name = ocs_field_text(request, OCS_FIELD_NAME, NULL);
	if (!*kind || !*name || (strcmp(*kind, "cube") != 0 && strcmp(*kind, "port") != 0 &&
				 strcmp(*kind, "switch") != 0 && strcmp(*kind, "xpu") != 0 &&
				 strcmp(*kind, "node") != 0)) {
		ocsd_refuse(client, id, OCS_USAGE, NULL,
			    "the request needs kind (cube, node, port, switch or xpu) and name");
		return -1;
	}
	/* What was drained and then left ocs.yaml can be resumed, else it would stay for ever. */
	if (!exists(d, *kind, *name) && !(resumed && ocsd_drain_find(d, *kind, *name))) {
		ocsd_refuse(client, id, OCS_USAGE, NULL, "ocs.yaml has no %s %s; %s", *kind, *name,
			    strcmp(*kind, "port") == 0 ?
			    "write SWITCH:PORT; 'ocsctl show port SWITCH' lists them" :
			    strcmp(*kind, "xpu") == 0 ?
			    "write CUBE:X,Y,Z with three coordinates from 0 on" :
			    strcmp(*kind, "cube") == 0 || strcmp(*kind, "node") == 0 ?
			    "'ocsctl show cube' lists them" :
			    "'ocsctl show switch' lists them");
		return -1;
	}
	return 0;
}

static void announce(struct ocsd *d, const char *kind, const char *name,
		     const char *reason, bool drained)
{
	struct ocs_port port;

	/* A quarantined port stays out of service when its drain is taken away. */
	if (!drained && strcmp(kind, "port") == 0 && parse_port(d, name, &port) == 0 &&
	    d->switches[port.sw].ports[port.port].foreign)
		ocsd_drain_event(d, kind, name, "a patch that is not ours", true);
	else
		ocsd_drain_event(d, kind, name, reason, drained);
	if (strcmp(kind, "switch") == 0 && ocs_fabric_switch(d->fabric, name) >= 0)
		ocsd_switch_event(d, &d->switches[ocs_fabric_switch(d->fabric, name)]);
}

/* The switch that a drain is about, or NULL. */
static const struct ocsd_switch *switch_of(struct ocsd *d, const char *kind, const char *name)
{
	struct ocs_port port = { .sw = -1 };

	if (strcmp(kind, "switch") == 0)
		port.sw = ocs_fabric_switch(d->fabric, name);
	else if (strcmp(kind, "port") == 0 && parse_port(d, name, &port))
		port.sw = -1;
	return port.sw < 0 ? NULL : &d->switches[port.sw];
}

void ocsd_op_drain(struct ocsd *d, struct ocsd_client *client, int64_t id,
		   struct json_object *request)
{
	const char *reason = ocs_field_text(request, OCS_FIELD_REASON, NULL);
	const char *kind, *name;

	if (read_target(d, client, id, request, false, &kind, &name))
		return;
	if (!reason || !*reason) {
		ocsd_refuse(client, id, OCS_USAGE, NULL, "drain needs a reason");
		return;
	}
	ocsd_drain_set(d, kind, name, reason);
	ocsd_store_drain(d, kind, name, reason, ocsd_client_uid(client));
	ocsd_audit(d, &(struct ocsd_audit){ .who = client, .what = "drain",
					    .sw = switch_of(d, kind, name),
					    .before = name, .after = reason });
	ocs_log(OCS_LOG_INFO, "%s %s drained: %s", kind, name, reason);
	announce(d, kind, name, reason, true);
	ocsd_reply(client, id, NULL);
}

void ocsd_port_fail(struct ocsd *d, struct ocsd_client *who, struct ocs_port where,
		    const char *reason)
{
	const struct ocsd_switch *sw = &d->switches[where.sw];
	char *name = ocs_asprintf("%s:%d", sw->description->name, where.port);
	const struct ocsd_drain *before = who ? NULL : ocsd_drain_find(d, "port", name);
	/* What somebody has drained does not return when light does. */
	char *text = before ? ocs_asprintf(OCSD_PORT_FAILED "%s" BEFORE "%s)", reason,
					   before->reason) :
			      ocs_asprintf(OCSD_PORT_FAILED "%s", reason);
	char *why = ocs_asprintf("port %s failed: %s", name, reason);

	ocsd_drain_set(d, "port", name, text);
	ocsd_store_drain(d, "port", name, text, who ? ocsd_client_uid(who) : geteuid());
	ocsd_audit(d, &(struct ocsd_audit){ .who = who, .sw = sw, .what = "port_failed",
					    .before = name, .after = reason });
	ocs_log(OCS_LOG_ERROR, "%s", why);
	ocsd_drain_event(d, "port", name, text, true);
	ocsd_port_broken(d, where, why);
	free(why);
	free(text);
	free(name);
}

void ocsd_op_fail(struct ocsd *d, struct ocsd_client *client, int64_t id,
		  struct json_object *request)
{
	const char *reason = ocs_field_text(request, OCS_FIELD_REASON, NULL);
	const char *kind, *name;
	struct ocs_port port;

	if (read_target(d, client, id, request, false, &kind, &name))
		return;
	if (strcmp(kind, "port") != 0) {
		ocsd_refuse(client, id, OCS_USAGE, NULL, "only a port can be said to have failed, "
			    "not a %s; drain it", kind);
		return;
	}
	if (!reason || !*reason) {
		ocsd_refuse(client, id, OCS_USAGE, NULL, "fail needs a reason");
		return;
	}
	parse_port(d, name, &port);
	ocsd_port_fail(d, client, port, reason);
	ocsd_reply(client, id, NULL);
}

void ocsd_resume(struct ocsd *d, const char *kind, const char *name, uid_t who)
{
	struct ocs_port port;

	ocsd_store_drain(d, kind, name, NULL, who);
	ocs_log(OCS_LOG_INFO, "%s %s resumed", kind, name);
	ocsd_drain_set(d, kind, name, NULL);
	announce(d, kind, name, NULL, false);
	if (strcmp(kind, "port") == 0 && parse_port(d, name, &port) == 0)
		ocsd_broken_check(d, d->switches[port.sw].ports[port.port].owner);
}

bool ocsd_port_lit(struct ocsd *d, struct ocs_port where)
{
	static const char unlit[] = OCSD_PORT_FAILED OCSD_UNLIT, more[] = BEFORE;
	const struct ocsd_switch *sw = &d->switches[where.sw];
	char *name = ocs_asprintf("%s:%d", sw->description->name, where.port), *reason;
	const struct ocsd_drain *drain = ocsd_drain_find(d, "port", name);
	const char *rest = drain && strncmp(drain->reason, unlit, strlen(unlit)) == 0 ?
			   drain->reason + strlen(unlit) : NULL;
	bool again = rest && strncmp(rest, more, strlen(more)) == 0;

	if (again) {
		rest += strlen(more);
		reason = ocs_asprintf("%.*s", (int)strlen(rest) - 1, rest);
		ocsd_drain_set(d, "port", name, reason);
		ocsd_store_drain(d, "port", name, reason, geteuid());
		ocs_log(OCS_LOG_INFO, "port %s is lit again, and drained as before: %s", name, reason);
		ocsd_drain_event(d, "port", name, reason, true);
		ocsd_broken_check(d, sw->ports[where.port].owner);
		free(reason);
	} else if (rest && !*rest) {
		ocsd_resume(d, "port", name, geteuid());
		again = true;
	}
	free(name);
	return again;
}

void ocsd_op_resume(struct ocsd *d, struct ocsd_client *client, int64_t id,
		    struct json_object *request)
{
	const char *kind, *name;
	struct ocs_port port;

	if (read_target(d, client, id, request, true, &kind, &name))
		return;
	if (strcmp(kind, "port") == 0 && parse_port(d, name, &port) == 0 &&
	    ocsd_selftest_needed(d, &d->switches[port.sw], port.port)) {
		ocsd_selftest_start(d, &d->switches[port.sw], port.port, client, id);
		return;
	}
	if (ocsd_drain_find(d, kind, name)) {
		const char *reason = ocs_field_text(request, OCS_FIELD_REASON, NULL);

		ocsd_audit(d, &(struct ocsd_audit){ .who = client, .what = "resume",
						    .sw = switch_of(d, kind, name), .before = name,
						    .after = reason });
		ocsd_resume(d, kind, name, ocsd_client_uid(client));
	}
	ocsd_reply(client, id, NULL);
}
