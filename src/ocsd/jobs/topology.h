/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_JOBS_TOPOLOGY_H
#define OCS_OCSD_JOBS_TOPOLOGY_H

/* Topologies of running jobs on rails: from one to another, in one batch of each switch, on the
 * word of the job's controller.  The database learns nothing of it but giant rings, failures,
 * refusals, revocations, and a row of figures now and then. */

#include "src/ocsd/state/ocsd.h"

struct ocsd_rail;
struct ocs_region_circuits;

/* Whether the controller of JOB may change its topologies now. */
bool ocsd_topology_live(const struct ocsd_job *job);

/* The first topology of JOB was seen; no-op without a menu. */
void ocsd_topologies_begin(struct ocsd *d, struct ocsd_job *job);

/* The request SEQ: RAIL of JOB is to have TOPO; in a region CIRCUITS, which were checked and whose digest
 * is TOPO (else NULL).  Older requests are left out, the same one is not
 * begun again.  Returns 0 if RAIL has (or will have: `waits`) the answer to SEQ; -1 with ERR where the
 * request was not taken. */
int ocsd_topology_ask(struct ocsd *d, struct ocsd_job *job, int rail, uint64_t seq,
		      const char *topo, const struct ocs_region_circuits *circuits,
		      struct ocs_error *err);

/* Begins the changes for which the routes are out of the way, and gives up those for which they do not
 * go in time. */
void ocsd_topologies_progress(struct ocsd *d);

/* CIRCUIT, one of a live menu, could not be made or cut because of WHY. */
void ocsd_topology_failed(struct ocsd *d, struct ocsd_circuit *circuit, const char *why);

/* CIRCUIT, which stood, is not on its switch any more; no-op for one of no menu. */
void ocsd_topology_lost(struct ocsd *d, struct ocsd_circuit *circuit);

/* SW has failed, says TEXT: who waits for it is answered. */
void ocsd_topologies_switch_failed(struct ocsd *d, const struct ocsd_switch *sw, const char *text);

/* Port WHERE of the live JOB has failed. */
void ocsd_topology_port_lost(struct ocsd *d, struct ocsd_job *job, struct ocs_port where,
			     const char *why);

/* JOB has left its allocation or failed: what waits is answered, and its controller told. */
void ocsd_topologies_revoke(struct ocsd *d, struct ocsd_job *job, const char *why);

/* A request on behalf of JOB was refused: counted, and the first in a while written down. */
void ocsd_topology_refused(struct ocsd *d, struct ocsd_job *job, const char *why);

/* Changes a second of JOB lately. */
double ocsd_topology_rate(const struct ocsd_job *job);

/* "none", "sent", "verified". */
const char *ocsd_stage_name(int stage);

#endif
