/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/protocol/fields.h"

#include <json-c/json.h>
#include <stdlib.h>

#include "src/protocol/names.h"
#include "src/util/error.h"
#include "src/util/text.h"

bool ocs_field_has(struct json_object *object, const char *name)
{
	return json_object_is_type(object, json_type_object) &&
	       json_object_object_get_ex(object, name, NULL);
}

struct json_object *ocs_field(struct json_object *object, const char *name)
{
	struct json_object *value = NULL;

	if (json_object_is_type(object, json_type_object))
		json_object_object_get_ex(object, name, &value);
	return value;
}

const char *ocs_field_text(struct json_object *object, const char *name, const char *otherwise)
{
	struct json_object *value = ocs_field(object, name);

	if (!json_object_is_type(value, json_type_string))
		return otherwise;
	if (!ocs_text_is_clean(json_object_get_string(value))) {
		char *clean = ocs_text_clean(ocs_strdup(json_object_get_string(value)));

		json_object_set_string(value, clean);
		free(clean);
	}
	return json_object_get_string(value);
}

int64_t ocs_field_number(struct json_object *object, const char *name, int64_t otherwise)
{
	struct json_object *value = ocs_field(object, name);

	return value ? json_object_get_int64(value) : otherwise;
}

uint32_t ocs_field_job(struct json_object *object)
{
	return (uint32_t)ocs_field_number(object, OCS_FIELD_JOB, 0);
}

uint64_t ocs_field_epoch(struct json_object *object)
{
	return (uint64_t)ocs_field_number(object, OCS_FIELD_EPOCH, 0);
}

bool ocs_field_true(struct json_object *object, const char *name)
{
	return json_object_get_boolean(ocs_field(object, name));
}

struct json_object *ocs_field_array(struct json_object *object, const char *name, size_t *length)
{
	struct json_object *value = ocs_field(object, name);

	if (!json_object_is_type(value, json_type_array))
		value = NULL;
	if (length)
		*length = value ? json_object_array_length(value) : 0;
	return value;
}

bool ocs_field_within(struct json_object *object, const char *name, int64_t max, int64_t *value)
{
	struct json_object *member = ocs_field(object, name);
	int64_t number;

	if (!json_object_is_type(member, json_type_int))
		return false;
	number = json_object_get_int64(member);
	if (number < 0 || number > max)
		return false;
	*value = number;
	return true;
}

int ocs_field_need_job(struct json_object *request, uint32_t *job, uint64_t *epoch,
		       struct ocs_error *err)
{
	int64_t value;

	if (!ocs_field_within(request, OCS_FIELD_JOB, UINT32_MAX, &value) || value == 0)
		return ocs_error_set(err, OCS_USAGE, "the request needs a job number");
	*job = (uint32_t)value;
	if (!ocs_field_within(request, OCS_FIELD_EPOCH, INT64_MAX, &value))
		return ocs_error_set(err, OCS_USAGE, "the request needs an epoch");
	*epoch = (uint64_t)value;
	return 0;
}

void ocs_field_add_text(struct json_object *object, const char *name, const char *text)
{
	json_object_object_add(object, name, text ? json_object_new_string(text) : NULL);
}

void ocs_field_add_number(struct json_object *object, const char *name, int64_t value)
{
	json_object_object_add(object, name, json_object_new_int64(value));
}

void ocs_field_add_bool(struct json_object *object, const char *name, bool value)
{
	json_object_object_add(object, name, json_object_new_boolean(value));
}

static struct json_object *line_new(const char *field, const char *name)
{
	struct json_object *line = json_object_new_object();

	ocs_field_add_text(line, field, name);
	return line;
}

static void add_allocation(struct json_object *line, uint32_t job, uint64_t epoch)
{
	ocs_field_add_number(line, OCS_FIELD_JOB, job);
	ocs_field_add_number(line, OCS_FIELD_EPOCH, (int64_t)epoch);
}

struct json_object *ocs_request_new(const char *op)
{
	return line_new(OCS_FIELD_OP, op);
}

struct json_object *ocs_request_job(const char *op, uint32_t job, uint64_t epoch)
{
	struct json_object *request = ocs_request_new(op);

	add_allocation(request, job, epoch);
	return request;
}

struct json_object *ocs_event_new(const char *kind)
{
	return line_new(OCS_FIELD_EVENT, kind);
}

struct json_object *ocs_event_job(const char *kind, uint32_t job, uint64_t epoch)
{
	struct json_object *event = ocs_event_new(kind);

	add_allocation(event, job, epoch);
	return event;
}
