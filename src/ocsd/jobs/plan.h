/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_JOBS_PLAN_H
#define OCS_OCSD_JOBS_PLAN_H

/* Jobs on switched servers: plan, then circuits. */

#include "src/ocsd/state/ocsd.h"

struct ocs_plan;
struct ocs_plan_circuit;

/* The switch port of interface INTERFACE of the SERVER-th node of JOB; -1 with ERR. */
int ocsd_direct_port(struct ocsd *d, const struct ocsd_job *job, int server, int interface,
		     struct ocs_port *port, struct ocs_error *err);

/* Makes the plan of a job in a direct section and its circuits. */
int ocsd_direct_plan(struct ocsd *d, struct ocsd_job *job, struct ocs_error *err);

/* Whether JOB can be planned without the ports that are out of service; -1 with ERR
 * (OCS_NOT_NOW) names one of them. */
int ocsd_direct_possible(struct ocsd *d, const struct ocsd_job *job, struct ocs_error *err);

/* A plan for JOB without the interfaces of FAILED (per server a mask, or NULL).
 * ocs_plan_destroy, or NULL with ERR. */
struct ocs_plan *ocsd_direct_make(struct ocsd *d, const struct ocsd_job *job,
				  const uint64_t *failed, struct ocs_error *err);

/* JOB's plan for a reply (the caller's reference), NULL if it has none. */
struct json_object *ocsd_direct_plan_json(struct ocsd_job *job);

/* PLAN is JOB's from now on (its text; the caller tells the store). */
void ocsd_direct_keep(struct ocsd_job *job, const struct ocs_plan *plan);

/* The switch ports of a circuit of JOB's plan, both on one switch; -1 with ERR. */
int ocsd_direct_ports(struct ocsd *d, const struct ocsd_job *job,
		      const struct ocs_plan_circuit *circuit, struct ocs_port *a,
		      struct ocs_port *b, struct ocs_error *err);

/* Adds to the masks of JOB's servers the interfaces whose ports have failed (or
 * carry a patch that is not ours), and those that are drained; both masks may be
 * the same array. */
void ocsd_direct_unusable(struct ocsd *d, const struct ocsd_job *job, uint64_t *failed,
			  uint64_t *drained);

#endif
