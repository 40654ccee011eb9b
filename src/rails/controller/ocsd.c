/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The controller as a client of ocsd. */

#include "src/rails/controller/controller.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "src/protocol/client.h"
#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/rails/rails_log.h"
#include "src/util/net.h"
#include "src/util/text.h"

#define CONNECT_MS 5000
#define PAUSE_NS INT64_C(200000000)
#define BUSY_NS INT64_C(20000000) /* until a request is made again that ocsd could not take */

/* ---- the connection ---- */

/* In a thread of its own: connects, and asks what the job is. */
static void *ocsd_connect(void *data)
{
	struct controller *controller = data;
	struct json_object *request;
	uint64_t one = 1;
	struct ocs_job_key key = { controller->meet.job, controller->meet.epoch, controller->key };

	controller->arrived = ocs_client_open_job(controller->address, &key, controller->user,
						  CONNECT_MS, &controller->missed);
	if (controller->arrived) {
		char *job = ocs_asprintf("%u", controller->meet.job);

		request = ocs_request_new(OCS_OP_SHOW);
		ocs_field_add_text(request, OCS_FIELD_WHAT, OCS_SHOW_PHASES);
		ocs_field_add_text(request, OCS_FIELD_NAME, job);
		controller->description = ocs_client_call(controller->arrived, request, CONNECT_MS,
							  NULL, &controller->missed);
		json_object_put(request);
		free(job);
	}
	if (controller->arrived && !controller->description) {
		ocs_client_close(controller->arrived);
		controller->arrived = NULL;
	}
	if (write(controller->found, &one, sizeof(one)) < 0)
		perror("ocs-rails-controller");
	return NULL;
}

int ocsd_seek(struct controller *controller)
{
	int code;

	if (controller->seeking || controller->client || controller->revoked)
		return 0;
	code = pthread_create(&controller->seeker, NULL, ocsd_connect, controller);
	if (code) {
		controller->seek_at = ocs_now_ns() + PAUSE_NS;
		return ocs_error_set(&controller->err, OCS_ERROR, "no thread: %s", strerror(code));
	}
	controller->seeking = true;
	return 0;
}

static void ocsd_lose(struct controller *controller)
{
	ocs_client_close(controller->client);
	controller->client = NULL;
	controller->absent = ocs_now_ns();
	controller->seek_at = controller->absent + PAUSE_NS;
	for (int r = 0; r < OCS_RAILS_RAILS; r++)
		controller->requests[r].sent = false;
}

static void revoked_take(struct controller *controller, const char *why)
{
	if (controller->revoked)
		return;
	ocs_rails_log("%s", why);
	controller->revoked = true;
	if (controller->step && controller->step->coordinator)
		ocs_coordinator_revoked(controller->step->coordinator, step_now(controller));
}

/* The job's row of DESCRIPTION, with what its rails are.  -1 with ERR. */
static int description_read(struct controller *controller, struct json_object *description)
{
	size_t count, extents, rails;
	struct json_object *rows = ocs_field_array(description, OCS_FIELD_PHASES, &count), *row;
	struct ocs_rails_layout *layout = &controller->layout;
	struct json_object *list;
	int64_t value = 0;

	row = count == 1 ? json_object_array_get_idx(rows, 0) : NULL;
	if (!row || ocs_field_epoch(row) != controller->meet.epoch)
		return ocs_error_set(&controller->err, OCS_ERROR, "ocsd knows no phases of job %u",
				     controller->meet.job);
	list = ocs_field_array(row, OCS_FIELD_EXTENTS, &extents);
	ocs_field_array(row, OCS_FIELD_RAILS, &rails);
	*layout = (struct ocs_rails_layout){
		.ndim = (int)extents,
		.asymmetric = (int)ocs_field_number(row, OCS_FIELD_ASYMMETRIC, -1),
		.ports = (int)ocs_field_number(row, OCS_FIELD_NIC_PORTS, 1),
	};
	if (!extents || extents > OCS_RAILS_DIMS || !rails || rails > OCS_RAILS_RAILS ||
	    layout->asymmetric < -1 || layout->asymmetric >= layout->ndim)
		return ocs_error_set(&controller->err, OCS_ERROR, "job %u has no rails",
				     controller->meet.job);
	for (size_t d = 0; d < extents; d++) {
		value = json_object_get_int64(json_object_array_get_idx(list, d));
		if (value < 1 || value > 1 << 20)
			return ocs_error_set(&controller->err, OCS_ERROR, "job %u has no shape",
					     controller->meet.job);
		layout->extent[d] = (int)value;
	}
	controller->rails = (int)rails;
	controller->provisioned =
		strcmp(ocs_field_text(row, OCS_FIELD_MODE, ""), "provisioned") == 0;
	list = ocs_field_array(row, OCS_FIELD_RAILS, &rails);
	/* Another controller of this job may have been there before. */
	for (size_t r = 0; r < rails; r++) {
		value = ocs_field_number(json_object_array_get_idx(list, r), OCS_FIELD_SEQ, 0);
		if (value > (int64_t)controller->seq)
			controller->seq = (uint64_t)value;
	}
	return 0;
}

void ocsd_found(struct controller *controller)
{
	uint64_t rung;

	if (read(controller->found, &rung, sizeof(rung)) < 0 || !controller->seeking)
		return;
	pthread_join(controller->seeker, NULL);
	controller->seeking = false;
	controller->client = controller->arrived;
	controller->arrived = NULL;
	if (!controller->client) {
		controller->err = controller->missed;
		controller->seek_at = ocs_now_ns() + PAUSE_NS;
		if (!controller->sought)
			ocs_rails_log("%s", controller->err.text);
		controller->sought = true;
		return;
	}
	controller->sought = false;
	if (!controller->known && description_read(controller, controller->description) == 0)
		controller->known = true;
	json_object_put(controller->description);
	controller->description = NULL;
	if (!controller->known) {
		ocs_rails_log("%s", controller->err.text);
		ocsd_lose(controller);
		return;
	}
	controller_watch(controller, ocs_client_fd(controller->client), EPOLLIN, EVENT_OCSD, NULL);
	if (controller->absent) {
		int64_t now = step_now(controller);

		controller->absent = 0;
		controller->stood = ocs_now_ns() - now;
		fault_ocsd_back(controller);
	}
	/* Events may have been missed: what stands is asked for once more. */
	if (controller->ever && controller->step && controller->step->coordinator)
		for (int r = 0; r < controller->rails; r++)
			ocs_coordinator_topo_lost(controller->step->coordinator, r,
						  step_now(controller));
	controller->ever = true;
	step_begin(controller);
}

/* ---- requests ---- */

void ocsd_forget(struct controller *controller)
{
	memset(controller->requests, 0, sizeof(controller->requests));
}

void ocsd_request(struct controller *controller, const struct ocs_coordinator_output *output)
{
	struct rail_request *request = &controller->requests[output->rail];
	/* The same once more has the same number on the wire. */
	bool again = request->seq == output->seq && request->epoch == output->epoch &&
		     strcmp(request->topology, output->topology) == 0;

	if (!again)
		request->wire = 0;
	request->asked = true;
	request->sent = false;
	request->not_before = 0;
	request->epoch = output->epoch;
	request->seq = output->seq;
	memcpy(request->topology, output->topology, sizeof(request->topology));
}

static struct json_object *topo_new(struct controller *controller, uint64_t wire)
{
	struct json_object *line =
		ocs_request_job(OCS_OP_TOPO, controller->meet.job, controller->meet.epoch);
	const struct ocs_coordinator_counts *counts =
		ocs_coordinator_counts(controller->step->coordinator);

	ocs_field_add_text(line, OCS_FIELD_KEY, controller->key);
	ocs_field_add_number(line, OCS_FIELD_SEQ, (int64_t)wire);
	ocs_field_add_number(line, OCS_FIELD_WAITED_MS, counts->waited / 1000000);
	ocs_field_add_number(line, OCS_FIELD_PROVISIONED, (int64_t)counts->provisioned);
	ocs_field_add_number(line, OCS_FIELD_MISPREDICTED, (int64_t)counts->mispredicted);
	ocs_field_add_number(line, OCS_FIELD_LAST_ARRIVALS, (int64_t)counts->late);
	return line;
}

static void topo_row(struct json_object *rows, int rail, const struct rail_request *request)
{
	struct json_object *row = json_object_new_object();

	ocs_field_add_number(row, OCS_FIELD_RAIL, rail);
	ocs_field_add_text(row, OCS_FIELD_TOPO, request->topology);
	json_object_array_add(rows, row);
}

/* One line for the rails whose request has the number WIRE and is due. */
static void topo_send(struct controller *controller, uint64_t wire, int64_t now)
{
	struct json_object *line = topo_new(controller, wire), *rows = json_object_new_array();
	struct ocs_error err;
	int64_t id;
	int rc;

	for (int r = 0; r < controller->rails; r++) {
		struct rail_request *request = &controller->requests[r];

		if (!request->asked || request->sent || request->wire != wire ||
		    request->not_before > now)
			continue;
		topo_row(rows, r, request);
		request->sent = true;
		request->id = -1;
	}
	json_object_object_add(line, OCS_FIELD_RAILS, rows);
	rc = ocs_client_send(controller->client, line, &err);
	id = ocs_field_number(line, OCS_FIELD_ID, 0);
	json_object_put(line);
	for (int r = 0; r < controller->rails; r++)
		if (controller->requests[r].id < 0)
			controller->requests[r].id = id;
	if (rc < 0)
		ocsd_lose(controller);
}

void ocsd_flush(struct controller *controller, int64_t now)
{
	uint64_t drawn = 0;

	if (!controller->client && !controller->seeking && controller->seek_at <= now)
		ocsd_seek(controller);
	if (!controller->client || controller->revoked || !controller->step ||
	    !controller->step->coordinator)
		return;
	for (int r = 0; r < controller->rails; r++) {
		struct rail_request *request = &controller->requests[r];

		if (!request->asked || request->wire || request->not_before > now)
			continue;
		/* Rails that are asked for at once share a number, and a line. */
		if (!drawn)
			drawn = ++controller->seq;
		request->wire = drawn;
	}
	for (int r = 0; r < controller->rails && controller->client; r++) {
		const struct rail_request *request = &controller->requests[r];

		if (request->asked && !request->sent && request->not_before <= now)
			topo_send(controller, request->wire, now);
	}
}

int64_t ocsd_deadline(const struct controller *controller)
{
	int64_t next = INT64_MAX;

	if (controller->revoked)
		return next;
	if (!controller->client)
		return controller->seeking ? next : controller->seek_at;
	for (int r = 0; r < controller->rails; r++) {
		const struct rail_request *request = &controller->requests[r];

		if (request->asked && !request->sent && request->not_before < next)
			next = request->not_before;
	}
	return next;
}

/* ---- answers ---- */

static void answer_give(struct controller *controller, int rail, bool good)
{
	struct rail_request *request = &controller->requests[rail];

	request->asked = false;
	if (controller->step && controller->step->coordinator)
		ocs_coordinator_answer(controller->step->coordinator, rail, request->epoch,
				       request->seq, good, step_now(controller));
}

static void row_take(struct controller *controller, struct json_object *row)
{
	struct rail_request *request;
	const char *error = ocs_field_text(row, OCS_FIELD_ERROR, NULL);
	int64_t rail, seq;

	if (!ocs_field_within(row, OCS_FIELD_RAIL, controller->rails - 1, &rail) ||
	    !ocs_field_within(row, OCS_FIELD_SEQ, INT64_MAX, &seq))
		return;
	request = &controller->requests[rail];
	if (!request->asked || !request->sent)
		return;
	if ((uint64_t)seq > request->wire) {
		/* Somebody counted further: a controller before this one. */
		if ((uint64_t)seq > controller->seq)
			controller->seq = (uint64_t)seq;
		request->wire = 0;
		request->sent = false;
	} else if ((uint64_t)seq < request->wire) {
		/* An earlier request is not answered yet. */
		request->sent = false;
		request->not_before = ocs_now_ns() + BUSY_NS;
	} else {
		answer_give(controller, (int)rail,
			    !error &&
				    strcmp(ocs_field_text(row, OCS_FIELD_STAGE, ""), "verified") ==
					    0 &&
				    strcmp(ocs_field_text(row, OCS_FIELD_TOPO, ""),
					   request->topology) == 0);
	}
}

/* The line ID was refused as a whole. */
static void refusal_take(struct controller *controller, int64_t id, struct json_object *reply)
{
	int64_t code = ocs_field_number(reply, OCS_FIELD_CODE, OCS_ERROR);
	int64_t wait = ocs_field_number(reply, OCS_FIELD_RETRY_MS, 200);

	if (code == OCS_ERROR) {
		revoked_take(controller, ocs_field_text(reply, OCS_FIELD_ERROR, "ocsd refuses"));
		return;
	}
	if (wait < 1 || wait > 60000)
		wait = 200;
	for (int r = 0; r < controller->rails; r++) {
		struct rail_request *request = &controller->requests[r];

		if (!request->asked || !request->sent || request->id != id)
			continue;
		if (code == OCS_NOT_NOW) {
			request->sent = false;
			request->not_before = ocs_now_ns() + wait * 1000000;
		} else {
			answer_give(controller, r, false);
		}
	}
}

static void event_take(struct controller *controller, struct json_object *line)
{
	const char *kind = ocs_field_text(line, OCS_FIELD_EVENT, "");
	int64_t rail;

	if (ocs_field_job(line) != controller->meet.job ||
	    ocs_field_epoch(line) != controller->meet.epoch)
		return;
	if (strcmp(kind, OCS_EVENT_REVOKED) == 0)
		revoked_take(controller, ocs_field_text(line, OCS_FIELD_REASON, "revoked"));
	else if (strcmp(kind, OCS_EVENT_TOPO_LOST) == 0 && controller->step &&
		 controller->step->coordinator &&
		 ocs_field_within(line, OCS_FIELD_RAIL, controller->rails - 1, &rail))
		ocs_coordinator_topo_lost(controller->step->coordinator, (int)rail,
					  step_now(controller));
}

static void line_take(struct controller *controller, struct json_object *line)
{
	struct json_object *rows;
	size_t count;

	if (ocs_field_has(line, OCS_FIELD_EVENT)) {
		event_take(controller, line);
		return;
	}
	rows = ocs_field_array(line, OCS_FIELD_RAILS, &count);
	for (size_t i = 0; i < count; i++)
		row_take(controller, json_object_array_get_idx(rows, i));
	if (!count && !ocs_field_true(line, OCS_FIELD_OK))
		refusal_take(controller, ocs_field_number(line, OCS_FIELD_ID, 0), line);
}

void ocsd_read(struct controller *controller)
{
	struct json_object *line;
	struct ocs_error err = { 0 };

	while (controller->client && (line = ocs_client_next(controller->client, 0, &err))) {
		line_take(controller, line);
		json_object_put(line);
	}
	if (controller->client && err.code == OCS_UNREACHABLE)
		ocsd_lose(controller);
}

void ocsd_close(struct controller *controller)
{
	if (controller->seeking)
		pthread_join(controller->seeker, NULL);
	ocs_client_close(controller->arrived);
	ocs_client_close(controller->client);
	json_object_put(controller->description);
}
