/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_JOBS_NODE_PRESENCE_H
#define OCS_OCSD_JOBS_NODE_PRESENCE_H

/* Which nodes have asked for the circuits of a job, and which nodes ask at all: slurmctld
 * holds the launch of a job until its circuits are verified and all of its nodes have asked. */

#include "src/ocsd/state/ocsd.h"

/* Node INDEX of JOB has asked for its circuits; false: that was known. */
bool ocsd_heard_asked(struct ocsd_job *job, int index);

/* Nodes of JOB that have not asked: the count; NAMES has room for all. */
size_t ocsd_heard_missing(const struct ocsd_job *job, char **names);

/* NAMES as a host list. */
struct json_object *ocsd_heard_list(char **names, size_t count);

/* NAME talks to ocsd; false: ocs.yaml does not have it.  And when it did so last, 0: never, -1:
 * ocs.yaml does not have it. */
bool ocsd_heard_node(struct ocsd *d, const char *name);
int64_t ocsd_heard_when(struct ocsd *d, const char *name);

/* Tells slurmctld, once it is durable, if JOB is realised and all of its nodes have asked. */
void ocsd_heard_check(struct ocsd *d, struct ocsd_job *job);

/* [{job, epoch}...] of the living jobs of which that is so. */
struct json_object *ocsd_heard_ready(const struct ocsd *d);

/* Adds to ROW which nodes of JOB have not asked yet, while it is in its prolog. */
void ocsd_heard_show(const struct ocsd_job *job, struct json_object *row);

/* Nodes of ocs.yaml that were never heard of, a host list. */
struct json_object *ocsd_heard_never(struct ocsd *d);

/* ocsd stops: keeps which nodes have asked for jobs that are not ready yet, since those that were
 * answered do not ask again.  (They are in memory only, so that no answer waits for a disk.) */
void ocsd_heard_save(struct ocsd *d);

/* From the database: NAME was heard of before; JOB had all it needs; node NAME had asked for its
 * circuits, and so had every other that was answered. */
void ocsd_heard_load_node(struct ocsd *d, const char *name);
void ocsd_heard_load_job(struct ocsd_job *job);
void ocsd_heard_load_asked(struct ocsd_job *job, const char *name);

#endif
