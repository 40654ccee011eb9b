/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Operations topo and region: the controller of a job names the topology that each of some rails is to
 * have, or the circuits of some groups of a region. */

#include "src/ocsd/jobs/allocation.h"
#include "src/ocsd/state/menus.h"
#include "src/ocsd/jobs/topology.h"
#include "src/ocsd/ops/operations.h"
#include "src/ocsd/protocol/connection.h"
#include "src/ocsd/protocol/controller.h"
#include "src/ocsd/protocol/dispatch.h"
#include "src/ocsd/protocol/pending_reply.h"

#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/util/text.h"

#include <json-c/json.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* One entry of the request. */
struct wanted {
	int rail;			     /* in a region: group */
	const char *topo;		     /* of the request */
	char digest[OCS_REGION_DIGEST];	     /* in a region TOPO, */
	struct ocs_region_circuits circuits; /* of these */
	bool taken;			     /* else ERROR says why not */
	int code;
	char *error;
};

struct topo_reply {
	struct ocsd_pending_reply reply;
	struct ocsd_job *allocation;
	uint64_t seq;
	struct wanted *wanted;
	size_t count;
};

static void wanted_free(struct wanted *wanted, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		free(wanted[i].error);
		ocs_region_circuits_free(&wanted[i].circuits);
	}
	free(wanted);
}

/* ---- the answer ---- */

/* What became of the request SEQ for RAIL. */
static struct json_object *rail_row(const struct ocsd_menu *menu, const struct wanted *wanted)
{
	const struct ocsd_rail *rail = &menu->rails[wanted->rail];
	bool region = ocsd_menu_region(menu);
	struct json_object *row = json_object_new_object();
	const char *error = wanted->taken ? rail->error : wanted->error;

	ocs_field_add_number(row, region ? OCS_FIELD_GROUP : OCS_FIELD_RAIL, wanted->rail);
	ocs_field_add_number(row, OCS_FIELD_SEQ, (int64_t)rail->seq);
	ocs_field_add_text(row, region ? OCS_FIELD_DIGEST : OCS_FIELD_TOPO, rail->topo);
	ocs_field_add_text(row, OCS_FIELD_STAGE,
			   wanted->taken ? ocsd_stage_name(rail->stage) :
					   ocsd_stage_name(OCSD_STAGE_NONE));
	if (error) {
		ocs_field_add_number(row, OCS_FIELD_CODE,
				     wanted->taken ? rail->code : wanted->code);
		ocs_field_add_text(row, OCS_FIELD_ERROR, error);
	}
	return row;
}

static void topo_send(struct ocsd_client *client, int64_t id, const struct ocsd_job *job,
		      uint64_t seq, const struct wanted *wanted, size_t count)
{
	struct json_object *reply = json_object_new_object(), *rows = json_object_new_array();
	const char *error = NULL;
	size_t failed = 0;
	int code = 0;

	for (size_t i = 0; i < count; i++) {
		const struct ocsd_rail *rail = &job->menu->rails[wanted[i].rail];
		const char *why = wanted[i].taken ? rail->error : wanted[i].error;

		json_object_array_add(rows, rail_row(job->menu, &wanted[i]));
		if (!why)
			continue;
		if (!failed++) {
			error = why;
			code = wanted[i].taken ? rail->code : wanted[i].code;
		}
	}
	ocs_field_add_number(reply, OCS_FIELD_SEQ, (int64_t)seq);
	json_object_object_add(
		reply, ocsd_menu_region(job->menu) ? OCS_FIELD_GROUPS : OCS_FIELD_RAILS, rows);
	if (failed < count)
		ocsd_reply(client, id, reply);
	else
		ocsd_refuse(client, id, code, reply, "%s", error);
}

static bool topo_due(struct ocsd *d, const struct ocsd_pending_reply *reply, int64_t now_ns)
{
	const struct topo_reply *wait = (const struct topo_reply *)reply;

	(void)d;
	(void)now_ns;
	for (size_t i = 0; i < wait->count; i++) {
		const struct ocsd_rail *rail = &wait->allocation->menu->rails[wait->wanted[i].rail];

		if (wait->wanted[i].taken && rail->waits)
			return false;
	}
	return true;
}

static void topo_answer(struct ocsd *d, struct ocsd_pending_reply *reply)
{
	const struct topo_reply *wait = (const struct topo_reply *)reply;

	(void)d;
	topo_send(reply->client, reply->id, wait->allocation, wait->seq, wait->wanted, wait->count);
}

static void topo_drop(struct ocsd *d, struct ocsd_pending_reply *reply)
{
	struct topo_reply *wait = (struct topo_reply *)reply;

	(void)d;
	wanted_free(wait->wanted, wait->count);
}

/* ---- the request ---- */

/* "[a, NIC of a, b, NIC of b]" of the circuits at LIST, COUNT entries. */
static int circuits_read(const struct ocsd_menu *menu, struct json_object *list, size_t count,
			 struct ocs_region_circuits *circuits, struct ocs_error *err)
{
	for (size_t i = 0; i < count; i++) {
		struct json_object *row = json_object_array_get_idx(list, i);
		int numbers[4] = { -1, -1, -1, -1 };

		for (size_t n = 0; n < 4 && json_object_is_type(row, json_type_array); n++) {
			struct json_object *one = json_object_array_get_idx(row, n);
			int64_t value = json_object_is_type(one, json_type_int) ?
						json_object_get_int64(one) :
						-1;

			numbers[n] = value < 0 || value > INT_MAX ? -1 : (int)value;
		}
		if (!json_object_is_type(row, json_type_array) ||
		    json_object_array_length(row) != 4)
			return ocs_error_set(
				err, OCS_USAGE,
				"a circuit is a list of four numbers: server, its NIC, server, its NIC");
		ocs_region_circuits_add(circuits, numbers[0], numbers[1], numbers[2], numbers[3]);
	}
	return ocs_region_circuits_check(circuits, menu->groups.servers, menu->nics, err);
}

/* The circuits of an entry of a region. */
static int group_read(const struct ocsd_menu *menu, struct json_object *entry,
		      struct wanted *wanted, struct ocs_error *err)
{
	size_t count, most = (size_t)menu->groups.servers * (size_t)menu->nics / 2;
	struct json_object *list = ocs_field_array(entry, OCS_FIELD_CIRCUITS, &count);

	if (!list || count > most)
		return ocs_error_set(err, OCS_USAGE,
				     "group %d needs circuits, a list of at most %zu", wanted->rail,
				     most);
	if (circuits_read(menu, list, count, &wanted->circuits, err))
		return -1;
	ocs_region_circuits_digest(&wanted->circuits, wanted->digest);
	wanted->topo = wanted->digest;
	return 0;
}

static int entry_read(const struct ocsd_job *job, struct json_object *entry, bool *named,
		      struct wanted *wanted, struct ocs_error *err)
{
	bool region = ocsd_menu_region(job->menu);
	int64_t rail;

	if (!json_object_is_type(entry, json_type_object) ||
	    !ocs_field_within(entry, region ? OCS_FIELD_GROUP : OCS_FIELD_RAIL,
			      job->menu->nrails - 1, &rail))
		return ocs_error_set(err, OCS_USAGE, "job %u has the %s 0 to %d", job->job,
				     region ? "groups" : "rails", job->menu->nrails - 1);
	wanted->rail = (int)rail;
	if (named[rail])
		return ocs_error_set(err, OCS_USAGE, "%s %d is named twice",
				     region ? "group" : "rail", wanted->rail);
	named[rail] = true;
	if (region)
		return group_read(job->menu, entry, wanted, err);
	wanted->topo = ocs_field_text(entry, OCS_FIELD_TOPO, NULL);
	if (!wanted->topo)
		return ocs_error_set(err, OCS_USAGE, "rail %d needs topo, a string", wanted->rail);
	return ocs_rails_topology_check(&job->menu->layout, wanted->topo, err);
}

/* The rails that REQUEST names: at least one, each once.  NULL with ERR. */
static struct wanted *wanted_read(const struct ocsd_job *job, struct json_object *request,
				  size_t *count, struct ocs_error *err)
{
	bool region = ocsd_menu_region(job->menu);
	struct json_object *list =
		ocs_field_array(request, region ? OCS_FIELD_GROUPS : OCS_FIELD_RAILS, count);
	struct wanted *wanted;
	bool *named;
	int rc = 0;

	if (!*count || *count > (size_t)job->menu->nrails) {
		ocs_error_set(
			err, OCS_USAGE,
			region ?
				"region needs groups: [{group, circuits}...], each of %d at most once" :
				"topo needs rails: [{rail, topo}...], each of %d at most once",
			job->menu->nrails);
		return NULL;
	}
	wanted = ocs_calloc(*count, sizeof(*wanted));
	named = ocs_calloc((size_t)job->menu->nrails, sizeof(*named));
	for (size_t i = 0; i < *count && !rc; i++)
		rc = entry_read(job, json_object_array_get_idx(list, i), named, &wanted[i], err);
	free(named);
	if (!rc)
		return wanted;
	wanted_free(wanted, *count);
	return NULL;
}

/* What was added to the count BEFORE, which begins anew with each step; MOST is what can have been. */
static uint64_t count_grown(int64_t before, int64_t now, uint64_t most)
{
	uint64_t grown = (uint64_t)(now < before ? now : now - before);

	return grown < most ? grown : most;
}

/* What the controller says of itself.  It is the user's: what it adds to the counts of all is bounded. */
static void report_take(struct ocsd *d, struct ocsd_menu *menu, struct json_object *request)
{
	int64_t provisioned = menu->provisioned, mispredicted = menu->mispredicted;
	uint64_t most = menu->total.changes - menu->reported;

	ocs_field_within(request, OCS_FIELD_WAITED_MS, INT64_MAX, &menu->waited_ms);
	ocs_field_within(request, OCS_FIELD_PROVISIONED, INT64_MAX, &menu->provisioned);
	ocs_field_within(request, OCS_FIELD_MISPREDICTED, INT64_MAX, &menu->mispredicted);
	ocs_field_within(request, OCS_FIELD_LAST_ARRIVALS, INT64_MAX, &menu->last_arrivals);
	menu->reported = menu->total.changes;
	if (ocsd_menu_region(menu))
		return;
	d->counters.topologies_provisioned += count_grown(provisioned, menu->provisioned, most);
	d->counters.topologies_mispredicted += count_grown(mispredicted, menu->mispredicted, most);
}

static void topo_wait(struct ocsd *d, struct ocsd_client *client, int64_t id, struct ocsd_job *job,
		      uint64_t seq, struct wanted *wanted, size_t count)
{
	static const struct ocsd_reply_kind kind = { topo_due, topo_answer, topo_drop };
	struct topo_reply *wait = ocs_calloc(1, sizeof(*wait));

	wait->allocation = job;
	wait->seq = seq;
	wait->wanted = wanted;
	wait->count = count;
	ocsd_reply_later(d, &wait->reply, &kind, client, id);
	d->replies.due = true;
}

/* Whether the request may be made now; refuses if not. */
static bool rate_allows(struct ocsd *d, struct ocsd_client *client, int64_t id,
			struct ocsd_job *job)
{
	int ms = ocsd_controller_wait_ms(d, job);
	struct json_object *extra;

	if (!ms)
		return true;
	extra = json_object_new_object();
	ocs_field_add_number(extra, OCS_FIELD_RETRY_MS, ms);
	ocsd_topology_refused(d, job, "more requests than limits.topologies_per_second");
	ocsd_refuse(client, id, OCS_NOT_NOW, extra, "busy, try again in %d ms", ms);
	return false;
}

static void change_ask(struct ocsd *d, struct ocsd_client *client, int64_t id,
		       struct json_object *request, bool region)
{
	uint32_t number = ocs_field_job(request);
	struct ocsd_job *job = ocsd_job_find(d, number, ocs_field_epoch(request));
	struct wanted *wanted;
	struct ocs_error err;
	size_t count;
	int64_t seq = 0;

	if (ocsd_menu_region(job->menu) != region) {
		ocsd_refuse(client, id, OCS_USAGE, NULL, "job %u is %s", number,
			    region ? "not in a region" : "in a region");
		return;
	}
	if (!rate_allows(d, client, id, job))
		return;
	if (!ocs_field_within(request, OCS_FIELD_SEQ, INT64_MAX, &seq) || !seq) {
		ocsd_refuse(client, id, OCS_USAGE, NULL, "%s needs seq, a number from 1 on",
			    region ? "region" : "topo");
		return;
	}
	wanted = wanted_read(job, request, &count, &err);
	if (!wanted) {
		ocsd_refuse(client, id, err.code, NULL, "%s", err.text);
		return;
	}
	report_take(d, job->menu, request);
	for (size_t i = 0; i < count; i++) {
		wanted[i].taken =
			!ocsd_topology_ask(d, job, wanted[i].rail, (uint64_t)seq, wanted[i].topo,
					   region ? &wanted[i].circuits : NULL, &err);
		if (wanted[i].taken)
			continue;
		wanted[i].code = err.code;
		wanted[i].error = ocs_strdup(err.text);
		ocsd_topology_refused(d, job, err.text);
	}
	topo_wait(d, client, id, job, (uint64_t)seq, wanted, count);
}

void ocsd_op_topo(struct ocsd *d, struct ocsd_client *client, int64_t id,
		  struct json_object *request)
{
	change_ask(d, client, id, request, false);
}

void ocsd_op_region(struct ocsd *d, struct ocsd_client *client, int64_t id,
		    struct json_object *request)
{
	change_ask(d, client, id, request, true);
}
