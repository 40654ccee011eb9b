/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef TESTS_OCSD_TALK_H
#define TESTS_OCSD_TALK_H

/* What the tests of ocsd say to it, and what they want to hear. */

#include <json-c/json.h>
#include <stdint.h>

#include "src/protocol/client.h"

#define RIG_PATIENCE_MS 120000 /* for everything that is awaited */

struct rig;

struct ocs_client *rig_client(struct rig *rig);

/* A request from a printf-like JSON text ('...' stands for "..."). */
struct json_object *rig_json(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Sends and wants "ok"; the reply (caller puts it). */
struct json_object *rig_ask(struct ocs_client *client, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Sends and wants a refusal with CODE whose text contains PART; the reply. */
struct json_object *rig_refused(struct ocs_client *client, int code, const char *part,
				const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Sends without waiting. */
void rig_send(struct ocs_client *client, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* The next event with that name (others are dropped). */
struct json_object *rig_event(struct ocs_client *client, const char *name);
/* The next reply (a line with "id"). */
struct json_object *rig_reply(struct ocs_client *client);
/* Nothing may arrive within MS. */
void rig_silence(struct ocs_client *client, int ms);

const char *rig_text(struct json_object *object, const char *member);
int64_t rig_number(struct json_object *object, const char *member);

/* State of JOB as ocsd shows it, "" if it knows none; static. */
const char *rig_job_state(struct ocs_client *client, unsigned int job);
/* Waits until it is STATE. */
void rig_until_job(struct ocs_client *client, unsigned int job, const char *state);
/* Waits until ocsd knows none. */
void rig_until_forgotten(struct ocs_client *client, unsigned int job);
/* What ADDRESS, a port of HTTP, answers to REQUEST; the caller frees it. */
char *rig_http(const char *address, const char *request);
/* Waits for a switch to be shown in STATE. */
void rig_until_switch(struct ocs_client *client, const char *name, const char *state);

#endif
