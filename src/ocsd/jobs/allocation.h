/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_JOBS_ALLOCATION_H
#define OCS_OCSD_JOBS_ALLOCATION_H

/* Allocations: which there are, their nodes, ports and circuits. */

#include "src/ocsd/state/ocsd.h"

struct ocsd_job *ocsd_job_find(struct ocsd *d, uint32_t job, uint64_t epoch);

/* The newest allocation of a job, or NULL. */
struct ocsd_job *ocsd_job_newest(struct ocsd *d, uint32_t job);

/* Whether the allocation (NUMBER, EPOCH), which is not known, is one that has ended. */
bool ocsd_job_over(struct ocsd *d, uint32_t number, uint64_t epoch);
void ocsd_job_free(struct ocsd_job *job);

/* The index of node NAME, or -1. */
int ocsd_job_node(struct ocsd_job *job, const char *name);

/* Adds a circuit between two logical ports; -1 with ERR. */
int ocsd_job_circuit(struct ocsd *d, struct ocsd_job *job, int sw, int a, int b, bool directed,
		     enum ocsd_circuit_state state, struct ocs_error *err);
void ocsd_job_port(struct ocsd_job *job, struct ocs_port port);

/* Whether a circuit of JOB that may still exist uses PORT. */
bool ocsd_job_uses(const struct ocsd_job *job, struct ocs_port port);

/* Circuits of JOB that exist or have to; and those that are left on switches that answer and
 * obey (ALL: on all). */
size_t ocsd_job_circuits(const struct ocsd_job *job);
size_t ocsd_job_left(const struct ocsd *d, const struct ocsd_job *job, bool all);

/* Switches that hold circuits of JOB and do not answer; an array. */
struct json_object *ocsd_job_pending(struct ocsd *d, const struct ocsd_job *job);

/* Ports of JOB that are out of service while the switch that failed it works: they
 * alone are to blame.  An array, or NULL if there are none. */
struct json_object *ocsd_job_ports_to_blame(struct ocsd *d, const struct ocsd_job *job);

const char *ocsd_circuit_state_name(enum ocsd_circuit_state state);
struct ocs_placer *ocsd_placer(struct ocsd *d, const struct ocs_section *section);

#endif
