/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_JOBS_JOB_H
#define OCS_OCSD_JOBS_JOB_H

/* Allocations. */

#include "src/ocsd/state/ocsd.h"

struct ocsd_job *ocsd_job_find(struct ocsd *d, uint32_t job, uint64_t epoch);

/* The newest allocation of a job, or NULL. */
struct ocsd_job *ocsd_job_newest(struct ocsd *d, uint32_t job);
void ocsd_job_free(struct ocsd_job *job);
int ocsd_job_node(struct ocsd_job *job, const char *name);

/* Adds a circuit between two logical ports; -1 with ERR. */
int ocsd_job_circuit(struct ocsd *d, struct ocsd_job *job, int sw, int a, int b,
		     bool directed, enum ocsd_circuit_state state,
		     struct ocs_error *err);
void ocsd_job_port(struct ocsd_job *job, struct ocs_port port);

/* Enters JOB and takes its ports (queues for those an ended job still holds). */
void ocsd_job_enter(struct ocsd *d, struct ocsd_job *job);
void ocsd_job_end(struct ocsd *d, struct ocsd_job *job, const char *reason);
void ocsd_job_gone(struct ocsd *d, struct ocsd_job *job, const char *reason);
void ocsd_job_release(struct ocsd *d, struct ocsd_job *job, int node); /* -1: all */

/* Takes the steps that are due: start, break, announce, free. */
void ocsd_job_progress(struct ocsd *d, struct ocsd_job *job);

/* Cannot be realised, or broke: SW may be NULL. */
void ocsd_job_fail(struct ocsd *d, struct ocsd_job *job, const struct ocsd_switch *sw,
		   const char *error);
void ocsd_job_failed_event(struct ocsd *d, const struct ocsd_job *job);

/* Ports of JOB that are out of service while the switch that failed it works: they
 * alone are to blame.  An array, or NULL if there are none. */
struct json_object *ocsd_job_ports_to_blame(struct ocsd *d, const struct ocsd_job *job);
const char *ocsd_job_state_name(const struct ocsd_job *job);

/* Circuits of JOB that exist or have to. */
size_t ocsd_job_circuits(const struct ocsd_job *job);
const char *ocsd_circuit_state_name(enum ocsd_circuit_state state);

/* Switches that hold circuits of JOB and do not answer; an array. */
struct json_object *ocsd_job_pending(struct ocsd *d, const struct ocsd_job *job);
struct ocs_placer *ocsd_placer(struct ocsd *d, const struct ocs_section *section);
int ocsd_jobs_load(struct ocsd *d, struct ocs_error *err);

#endif
