/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_OPS_PENDING_REPLY_H
#define OCS_OCSD_OPS_PENDING_REPLY_H

/* Requests whose answers are due later. */

#include "src/ocsd/state/ocsd.h"

struct ocsd_waiter *ocsd_wait_add(struct ocsd *d, struct ocsd_client *client,
				  int64_t id, enum ocsd_wait kind,
				  struct ocsd_job *job, const char *node);
void ocsd_wait_client_lost(struct ocsd *d, struct ocsd_client *client);
bool ocsd_wait_applies(const struct ocsd *d, const struct ocsd_job *job);

/* Binds the waiters of a job that was not committed when they asked. */
void ocsd_wait_bind(struct ocsd *d, struct ocsd_job *job);

/* Answers the applies of JOB that its plan satisfies: success. */
void ocsd_wait_realised(struct ocsd *d, struct ocsd_job *job);

/* Answers the applies of JOB with gone. */
void ocsd_wait_gone(struct ocsd *d, struct ocsd_job *job);

/* (JOB, EPOCH), which is not known here, has ended: its applies get gone, those that come
 * later, too (ocsd_wait_is_never). */
void ocsd_wait_never(struct ocsd *d, uint32_t job, uint64_t epoch);
bool ocsd_wait_is_never(const struct ocsd *d, uint32_t job, uint64_t epoch);

/* Answers the releases of JOB: nothing of it is left on a working switch. */
void ocsd_wait_released(struct ocsd *d, struct ocsd_job *job);

/* Answers those who wait for the self-test of port NAME: with REPLY (put here), or
 * with WRONG. */
void ocsd_wait_tested(struct ocsd *d, const char *name, struct json_object *reply,
		      const char *wrong);

/* Answers those whose commit did not arrive in time. */
void ocsd_wait_expire(struct ocsd *d, int64_t now_ns);
struct json_object *ocsd_gone_extra(const struct ocsd_job *job);

#endif
