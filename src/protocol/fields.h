/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_PROTOCOL_FIELDS_H
#define OCS_PROTOCOL_FIELDS_H

/* Members of the JSON objects on the wire, by their names in names.h.  An object may come from
 * any process: what is missing, or of another type, is never an error of the program. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_object;
struct ocs_error;

/* ---- what has arrived ---- */

bool ocs_field_has(struct json_object *object, const char *name);

/* The member of any type, borrowed; NULL where it is missing or null. */
struct json_object *ocs_field(struct json_object *object, const char *name);

/* A string member, or OTHERWISE.  Control characters in it are replaced: it may be shown later,
 * by programs that print it as it is.  Lives as long as OBJECT. */
const char *ocs_field_text(struct json_object *object, const char *name, const char *otherwise);

/* A member as a number, as json-c converts it; OTHERWISE where it is missing or null. */
int64_t ocs_field_number(struct json_object *object, const char *name, int64_t otherwise);

/* Which allocation an object is about; 0 where it does not say. */
uint32_t ocs_field_job(struct json_object *object);
uint64_t ocs_field_epoch(struct json_object *object);

bool ocs_field_true(struct json_object *object, const char *name);

/* An array member, borrowed, and its LENGTH (may be NULL); NULL and 0 where there is none. */
struct json_object *ocs_field_array(struct json_object *object, const char *name, size_t *length);

/* Whether there is an integer member from 0 to MAX; VALUE is left alone if not. */
bool ocs_field_within(struct json_object *object, const char *name, int64_t max, int64_t *value);

/* The job (from 1 on) and the epoch of a request.  0, or -1 with ERR (OCS_USAGE). */
int ocs_field_need_job(struct json_object *request, uint32_t *job, uint64_t *epoch,
		       struct ocs_error *err);

/* ---- what is to be sent ---- */

/* Each adds a member to OBJECT, or replaces it; TEXT is copied, NULL becomes null. */
void ocs_field_add_text(struct json_object *object, const char *name, const char *text);
void ocs_field_add_number(struct json_object *object, const char *name, int64_t value);
void ocs_field_add_bool(struct json_object *object, const char *name, bool value);

/* A request of operation OP, and one about an allocation.  The caller puts it. */
struct json_object *ocs_request_new(const char *op);
struct json_object *ocs_request_job(const char *op, uint32_t job, uint64_t epoch);

/* An event of KIND, and one about an allocation.  The caller puts it. */
struct json_object *ocs_event_new(const char *kind);
struct json_object *ocs_event_job(const char *kind, uint32_t job, uint64_t epoch);

#endif
