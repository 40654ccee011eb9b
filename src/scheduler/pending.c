/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/scheduler/state.h"
#include "src/util/text.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

struct ocs_waiting *ocs_waiting_find(uint32_t job, bool create)
{
	struct ocs_waiting **bucket = &ocs_state.waiting[job % OCS_WAITING_BUCKETS];
	struct ocs_waiting *waiting;

	for (waiting = *bucket; waiting; waiting = waiting->next) {
		if (waiting->job == job)
			return waiting;
	}
	if (!create)
		return NULL;
	waiting = ocs_calloc(1, sizeof(*waiting));
	waiting->job = job;
	waiting->next = *bucket;
	*bucket = waiting;
	return waiting;
}

static void waiting_free(struct ocs_waiting *waiting)
{
	free(waiting->user);
	free(waiting->shape);
	free(waiting->reason);
	free(waiting->near);
	free(waiting->chosen);
	free(waiting);
}

/* The reason with what would fit instead; NULL if there is none.  The caller frees it. */
static char *reason_whole(const struct ocs_waiting *waiting)
{
	return waiting->reason ?
		       ocs_asprintf("%s%s", waiting->reason, waiting->near ? waiting->near : "") :
		       NULL;
}

void ocs_waiting_push(struct ocs_waiting *waiting)
{
	struct json_object *line;
	char *reason;

	if (!ocs_state.open)
		return;
	line = ocs_request_new(OCS_OP_PENDING);
	ocs_field_add_number(line, OCS_FIELD_JOB, waiting->job);
	ocs_field_add_text(line, OCS_FIELD_USER, waiting->user ? waiting->user : "");
	ocs_field_add_number(line, OCS_FIELD_UID, waiting->uid);
	ocs_field_add_text(line, OCS_FIELD_SHAPE, waiting->shape ? waiting->shape : "");
	reason = reason_whole(waiting);
	ocs_field_add_text(line, OCS_FIELD_REASON, reason);
	free(reason);
	ocs_link_send(line);
	waiting->pushed = waiting->reason;
}

static bool text_same(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

bool ocs_controller_pending(uint32_t job, uid_t uid, const char *user, const char *shape,
			    const char *reason, bool blocked)
{
	struct ocs_waiting *waiting;
	bool had;

	pthread_mutex_lock(&ocs_state.lock);
	waiting = ocs_waiting_find(job, true);
	had = waiting->reason;
	waiting->blocked = blocked;
	if (!text_same(waiting->reason, reason) || (reason && !waiting->pushed)) {
		free(waiting->user);
		free(waiting->shape);
		free(waiting->reason);
		waiting->uid = uid;
		waiting->user = user ? ocs_strdup(user) : NULL;
		waiting->shape = shape ? ocs_strdup(shape) : NULL;
		waiting->reason = reason ? ocs_strdup(reason) : NULL;
		if (!reason)
			ocs_near_drop(job);
		if (reason || waiting->pushed)
			ocs_waiting_push(waiting);
	}
	pthread_mutex_unlock(&ocs_state.lock);
	return had;
}

void ocs_controller_pending_clear(uint32_t job)
{
	struct ocs_waiting **at = &ocs_state.waiting[job % OCS_WAITING_BUCKETS];

	pthread_mutex_lock(&ocs_state.lock);
	while (*at && (*at)->job != job)
		at = &(*at)->next;
	if (*at) {
		struct ocs_waiting *waiting = *at;

		*at = waiting->next;
		if (waiting->pushed) {
			free(waiting->reason);
			waiting->reason = NULL;
			ocs_waiting_push(waiting);
		}
		waiting_free(waiting);
	}
	pthread_mutex_unlock(&ocs_state.lock);
}

void ocs_waiting_push_all(void)
{
	for (int i = 0; i < OCS_WAITING_BUCKETS; i++) {
		for (struct ocs_waiting *at = ocs_state.waiting[i]; at; at = at->next) {
			if (at->reason)
				ocs_waiting_push(at);
		}
	}
}

void ocs_waiting_clear_all(void)
{
	for (int i = 0; i < OCS_WAITING_BUCKETS; i++) {
		while (ocs_state.waiting[i]) {
			struct ocs_waiting *waiting = ocs_state.waiting[i];

			ocs_state.waiting[i] = waiting->next;
			waiting_free(waiting);
		}
	}
}

int ocs_controller_waiting(struct ocs_controller_waiting *waiting, int max)
{
	int count = 0;

	pthread_mutex_lock(&ocs_state.lock);
	for (int i = 0; i < OCS_WAITING_BUCKETS && count < max; i++) {
		for (struct ocs_waiting *at = ocs_state.waiting[i]; at && count < max;
		     at = at->next) {
			waiting[count].job = at->job;
			waiting[count].blocked = at->blocked;
			waiting[count++].reason = reason_whole(at);
		}
	}
	pthread_mutex_unlock(&ocs_state.lock);
	return count;
}

struct ocs_failure *ocs_failure_add(uint32_t job, uint64_t epoch, const char *name, bool again,
				    const char *text)
{
	struct ocs_failure *failure = ocs_calloc(1, sizeof(*failure));

	failure->pub.job = job;
	failure->pub.epoch = epoch;
	failure->pub.name = name && *name ? ocs_strdup(name) : NULL;
	failure->pub.again = again;
	failure->pub.text = ocs_strdup(text && *text ? text : "its circuits failed");
	if (!ocs_state.failures)
		ocs_state.failures_end = &ocs_state.failures;
	*ocs_state.failures_end = failure;
	ocs_state.failures_end = &failure->next;
	return failure;
}

bool ocs_controller_failure(struct ocs_controller_failure *out)
{
	struct ocs_failure *failure;
	bool found;

	pthread_mutex_lock(&ocs_state.lock);
	failure = ocs_state.failures;
	found = failure;
	if (found) {
		ocs_state.failures = failure->next;
		*out = failure->pub;
		free(failure);
	}
	pthread_mutex_unlock(&ocs_state.lock);
	return found;
}

bool ocs_controller_failures(void)
{
	bool any;

	pthread_mutex_lock(&ocs_state.lock);
	any = ocs_state.failures;
	pthread_mutex_unlock(&ocs_state.lock);
	return any;
}

bool ocs_controller_changed(void)
{
	bool changed;

	pthread_mutex_lock(&ocs_state.lock);
	changed = ocs_state.changed;
	ocs_state.changed = false;
	pthread_mutex_unlock(&ocs_state.lock);
	return changed;
}
