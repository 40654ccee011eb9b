/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_JOBS_NODE_PRESENCE_H
#define OCS_OCSD_JOBS_NODE_PRESENCE_H

/* Which nodes have asked for the circuits of a job, and which nodes ask at all: slurmctld
 * holds the launch of a job until its circuits are verified and all of its nodes have asked. */

#include "src/ocsd/state/ocsd.h"

/* How the reason of a drained node begins that ended a prolog without having asked. */
#define OCSD_UNHEARD "unheard: "

/* Node INDEX of JOB has asked for its circuits. */
void ocsd_heard_apply(struct ocsd *d, struct ocsd_job *job, int index);

/* Tells slurmctld, once it is durable, if JOB is realised and all of its nodes have asked. */
void ocsd_heard_check(struct ocsd *d, struct ocsd_job *job);

/* [{job, epoch}...] of the living jobs of which that is so. */
struct json_object *ocsd_heard_ready(const struct ocsd *d);

/* Adds to ROW which nodes of JOB have not asked yet, while it is in its prolog. */
void ocsd_heard_show(const struct ocsd_job *job, struct json_object *row);

/* Nodes of ocs.yaml that were never heard of, a host list. */
struct json_object *ocsd_heard_never(struct ocsd *d);

/* The slurmd of a node has started with spank_ocs. */
void ocsd_op_present(struct ocsd *d, struct ocsd_client *client, int64_t id,
		     struct json_object *request);

/* slurmctld asks which nodes of a job have not asked, though prologs have ended. */
void ocsd_op_unheard(struct ocsd *d, struct ocsd_client *client, int64_t id,
		     struct json_object *request);

/* ocsd stops: keeps which nodes have asked for jobs that are not ready yet, since those that were
 * answered do not ask again.  (They are in memory only, so that no answer waits for a disk.) */
void ocsd_heard_save(struct ocsd *d);

/* From the database: NAME was heard of before; JOB had all it needs; node NAME had asked for its
 * circuits, and so had every other that was answered. */
void ocsd_heard_load_node(struct ocsd *d, const char *name);
void ocsd_heard_load_job(struct ocsd_job *job);
void ocsd_heard_load_asked(struct ocsd_job *job, const char *name);

#endif
