/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_JOBS_ROUTES_H
#define OCS_OCSD_JOBS_ROUTES_H

/* Routes of TCP jobs on rails (`tcp` in ocs.yaml): a packet for another node of the job takes a circuit
 * where one stands, and the management network elsewhere.  The ocs-node of each node changes them, on the
 * word of ocsd: before a circuit is cut the nodes at its ends say that no route of theirs leads there,
 * and after it was verified they are told that one may.
 *
 * The word names for each rail a topology, and the one that it goes to: routes may use the circuits that
 * both have.  It is absolute, and has a revision.  A node that does not say in `timeouts.routes` that it
 * has done it fails the change, before a byte of it goes to a switch. */

#include "src/ocsd/state/ocsd.h"

struct json_object;
struct ocsd_rail;

/* JOB has got a menu: whether its routes follow its circuits depends on its section. */
void ocsd_routes_create(struct ocsd_job *job);

/* RAIL of JOB is to go to TOPO.  False: no route is in the way, or routes are not ours.  True: the nodes
 * at the ends of what goes are told, and `leaving` counts them. */
bool ocsd_routes_leave(struct ocsd *d, struct ocsd_job *job, struct ocsd_rail *rail,
		       const char *topo);
/* RAIL does not wait for routes any more. */
void ocsd_routes_leave_end(struct ocsd *d, struct ocsd_rail *rail);
/* Who keeps RAIL of JOB waiting, a sentence; the caller frees it. */
char *ocsd_routes_late(const struct ocsd *d, const struct ocsd_job *job,
		       const struct ocsd_rail *rail);
/* When the first rail that waits gives up, or INT64_MAX. */
int64_t ocsd_routes_deadline(const struct ocsd *d);

/* What circuits JOB has is different: the nodes at the ends of what RAIL has got are told, of all rails
 * all nodes (RAIL NULL).  No-op where routes are not ours. */
void ocsd_routes_tell(struct ocsd *d, struct ocsd_job *job, const struct ocsd_rail *rail);

/* Node number NODE of JOB has done the word of REVISION (0: it is newly connected). */
void ocsd_routes_done(struct ocsd *d, struct ocsd_job *job, int node, uint64_t revision);

/* Whether there is a word for NODE beyond REVISION, and the word; the caller puts it. */
bool ocsd_routes_due(const struct ocsd_job *job, int node, uint64_t revision);
struct json_object *ocsd_routes_word(const struct ocsd_job *job);

#endif
