/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_PROTOCOL_CLIENT_H
#define OCS_PROTOCOL_CLIENT_H

/* A connection to ocsd: newline-delimited JSON (doc/protocol.md) over a UNIX
 * socket (SO_PEERCRED) or over TCP (MUNGE, loaded with dlopen so that nothing
 * links it, or a shared key; lines are sealed from then on).  Both sides know each other.
 * Blocking with deadlines; not shared between threads. */

#include <stdint.h>

struct ocs_error;
struct json_object;
struct ocs_client;

/* The key of one job, which its controller has (doc/protocol.md, operation topo). */
struct ocs_job_key {
	uint32_t job;
	uint64_t epoch;
	const char *key;
};

/* Connects to ADDRESS ("unix:/path" or "host:port") within TIMEOUT_MS; authenticates on
 * TCP by MUNGE, or by the key in the file KEY (NULL: MUNGE), which ocsd must have too.
 * Nothing is sent to a process of another account than USER, ocsd.user of ocs.yaml (NULL:
 * as ocs_account_uid says), except where the key proves who it is.
 * NULL with ERR code OCS_UNREACHABLE: also for whatever was said without a proof. */
struct ocs_client *ocs_client_open(const char *address, const char *key, const char *user,
				   int timeout_ms, struct ocs_error *err);
/* The same for the controller of a job, as the job's owner: KEY proves both sides on TCP, whether ocsd
 * knows others by MUNGE or by a shared key. */
struct ocs_client *ocs_client_open_job(const char *address, const struct ocs_job_key *key,
				       const char *user, int timeout_ms, struct ocs_error *err);
void ocs_client_close(struct ocs_client *client);

/* For event loops: readable means ocs_client_next has something to read. */
int ocs_client_fd(const struct ocs_client *client);

/* Sends REQUEST ("id" is added; the object stays the caller's) and returns the
 * reply (caller puts it) if it says ok.  NULL with ERR: the code and text of the
 * daemon's refusal, or OCS_UNREACHABLE for a lost connection or a timeout.  REFUSAL,
 * if not NULL, receives the refusing reply (caller puts it) for its extra members.
 * Events that arrive meanwhile are kept for ocs_client_next. */
struct json_object *ocs_client_call(struct ocs_client *client, struct json_object *request,
				    int timeout_ms, struct json_object **refusal,
				    struct ocs_error *err);

/* Sends without waiting; the reply comes through ocs_client_next.  0 or -1. */
int ocs_client_send(struct ocs_client *client, struct json_object *request, struct ocs_error *err);

/* The next event or reply within TIMEOUT_MS (0: only what is there).  NULL with
 * err->code OCS_OK if there is none, OCS_UNREACHABLE if the connection is lost. */
struct json_object *ocs_client_next(struct ocs_client *client, int timeout_ms,
				    struct ocs_error *err);

#endif
