/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Which slurmctld is in charge. */

#include "src/ocsd/protocol/client.h"
#include "src/ocsd/store/clock.h"
#include "src/ocsd/protocol/connection.h"
#include "src/ocsd/store/store.h"
#include "src/ocsd/protocol/fencing.h"
#include "src/protocol/names.h"

#include "src/protocol/fields.h"

#include <ctype.h>
#include <json-c/json.h>
#include <stdlib.h>

/* Whether a slurmctld that takes the place of the other is the same one started again. */
static bool same_controller(const struct ocsd_controller *one, const struct ocsd_controller *two)
{
	return one->place == two->place && (!one->boot || !two->boot || one->boot == two->boot);
}

uint64_t ocsd_term_newest(const struct ocsd *d)
{
	uint64_t newest = 0;

	for (const struct ocsd_client *client = d->server.clients; client; client = client->next)
		if (!client->lost && client->term > newest)
			newest = client->term;
	return newest;
}

/* What comes back with an older term than the newest.  Where no slurmctld of a newer one is
 * connected it is let in if it is the same controller: a try to replace it has failed.
 * Another one has missed what its successor did. */
static int check_term(const struct ocsd *d, struct ocsd_client *client, int64_t id, uint64_t term,
		      const struct ocsd_controller *controller)
{
	bool same = same_controller(controller, &d->slurmctld.controller);
	struct json_object *extra = NULL;

	if (term >= d->slurmctld.term || (same && term >= ocsd_term_newest(d)))
		return 0;
	if (!same) {
		extra = json_object_new_object();
		ocs_field_add_bool(extra, OCS_FIELD_SUPERSEDED, true);
	}
	ocsd_refuse(client, id, OCS_ERROR, extra,
		    "another slurmctld has taken over; this one starts no job with circuits");
	return -1;
}

/* A term for CONTROLLER, which has taken charge: when it read its jobs, so that of two who
 * ask the later reader has the newer one.  Older than the newest if another one has read
 * its jobs since: this one could not ask before, or its answer was lost. */
static uint64_t new_term(const struct ocsd *d, struct json_object *request,
			 const struct ocsd_controller *controller)
{
	uint64_t now = (uint64_t)(ocsd_wall_clock() * 1e6), since = now;
	int64_t age_ms = ocs_field_number(request, OCS_FIELD_AGE_MS, 0);

	if (age_ms > 0 && (uint64_t)age_ms < now / 1000)
		since -= (uint64_t)age_ms * 1000;
	if (since > d->slurmctld.term)
		return since;
	/* Where the wall clock was set back nothing follows from it. */
	return same_controller(controller, &d->slurmctld.controller) || now <= d->slurmctld.term ?
		       d->slurmctld.term + 1 :
		       since;
}

/* The hexadecimal digits of a boot id. */
static int64_t boot_number(const char *text)
{
	uint64_t number = 0;

	for (; text && *text; text++) {
		char digit[2] = { *text, '\0' };

		if (isxdigit((unsigned char)*text))
			number = number << 4 | strtoul(digit, NULL, 16);
	}
	return (int64_t)(number & INT64_MAX);
}

/* It may hang, and must know as soon as it wakes up that it is not in charge any more. */
static void slurmctld_dismiss(struct ocsd_client *client, int place)
{
	struct json_object *event = ocs_event_new(OCS_EVENT_SUPERSEDED);

	ocs_field_add_number(event, OCS_FIELD_CONTROLLER, place);
	ocsd_client_dismiss(client, event);
}

/* CLIENT is CONTROLLER, the slurmctld of TERM: those of older terms are dropped, and told so
 * unless they are the same controller. */
static void set_term(struct ocsd_client *client, uint64_t term,
		     const struct ocsd_controller *controller)
{
	client->term = term;
	client->controller = *controller;
	for (struct ocsd_client *other = client->d->server.clients; other; other = other->next) {
		if (!other->term || other->term >= term || other->lost)
			continue;
		ocs_log(OCS_LOG_WARNING,
			"another slurmctld is in charge now: the one before is dropped");
		if (same_controller(&other->controller, controller))
			ocsd_client_lose(other);
		else
			slurmctld_dismiss(other, controller->place);
	}
}

int ocsd_term_take(struct ocsd *d, struct ocsd_client *client, int64_t id,
		   struct json_object *request, uint64_t *term)
{
	struct ocsd_controller controller = { 0 };

	*term = 0;
	if (!ocs_field_has(request, OCS_FIELD_TERM))
		return 0;
	*term = (uint64_t)ocs_field_number(request, OCS_FIELD_TERM, 0);
	controller.boot = boot_number(ocs_field_text(request, OCS_FIELD_BOOT, NULL));
	controller.place = json_object_get_int(ocs_field(request, OCS_FIELD_CONTROLLER));
	if (!*term)
		*term = new_term(d, request, &controller);
	if (check_term(d, client, id, *term, &controller))
		return -1;
	if (*term > d->slurmctld.term) {
		d->slurmctld.term = *term;
		d->slurmctld.controller = controller;
		ocsd_store_term(d);
	}
	set_term(client, *term, &controller);
	json_object_put(d->slurmctld.yaml);
	d->slurmctld.yaml = json_object_get(ocs_field(request, OCS_FIELD_YAML));
	return 0;
}
