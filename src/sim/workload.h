/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_SIM_WORKLOAD_H
#define OCS_SIM_WORKLOAD_H

/* Where jobs come from: built-in workloads, files of durations and gaps, traces. */

#include <stdbool.h>

#include "src/fold/shape.h"
#include "src/sim/random.h"

struct ocs_error;

struct ocs_sim_job {
	long id;
	double arrival;	 /* seconds */
	double duration; /* seconds, above zero */
	int priority;	 /* larger goes first with --order priority; 0 */
	struct ocs_shape shape;
};

struct ocs_sim_trace {
	struct ocs_sim_job *jobs; /* in the order of their arrival */
	long njobs;
	long room;
	long left_out; /* jobs of the file that take no time */
};

/* A distribution over values with weights; sampled by binary search. */
struct ocs_sim_values {
	double *value;
	double *sum; /* running sum of the weights */
	int n;
};

enum ocs_sim_shapes {
	OCS_SIM_RFOLD_2025,
	OCS_SIM_RFOLD_2025B,
	OCS_SIM_TPU_V4,
};

/* One job size and the shapes it may have. */
struct ocs_sim_size {
	int xpus;
	int first[4]; /* of its 1D, 2D and 3D shapes in shapes */
};

struct ocs_sim_workload {
	enum ocs_sim_shapes kind;
	struct ocs_sim_size *sizes; /* ascending; the TPU mix has none */
	int nsizes;
	struct ocs_shape *shapes;
	int nshapes;
	struct ocs_sim_values mix; /* TPU: weights of shapes */
	struct ocs_sim_values durations;
	struct ocs_sim_values gaps;
	bool fitted_durations; /* no file was given: the built-in quantiles */
	bool fitted_gaps;      /* no file was given: exponential */
	double gap_mean;       /* of the exponential */
};

/* NAME: rfold-2025, rfold-2025b or tpu-v4.  DURATIONS: a trace whose last column is
 * the duration; GAPS: lines "seconds,probability"; SIZES (tpu-v4 only): lines "id,
 * topology,shape,size,duration,probability"; NULL: built in.  Returns 0, or -1 with
 * ERR naming file and line.  Free with ocs_sim_workload_free, also after a failure. */
int ocs_sim_workload_open(struct ocs_sim_workload *workload, const char *name,
			  const char *durations, const char *gaps, const char *sizes,
			  struct ocs_error *err);
void ocs_sim_workload_free(struct ocs_sim_workload *workload);

/* Draws the next job (shape and duration) and returns the seconds until the one after
 * it arrives. */
double ocs_sim_workload_draw(const struct ocs_sim_workload *workload, struct ocs_random *random,
			     struct ocs_sim_job *job);
/* The probability of shape INDEX. */
double ocs_sim_workload_probability(const struct ocs_sim_workload *workload, int index);

/* Reads "job id,arrival time (sec),topology,shape,size,duration (sec)[,priority]"; lines
 * starting with # are comments; topology T3D_NT, or T3D_T for twisted.  Jobs of zero seconds
 * are left out and counted.  Returns 0, or -1 with ERR naming file and line. */
int ocs_sim_trace_read(struct ocs_sim_trace *trace, const char *path, struct ocs_error *err);
/* Writes the same (atomically). */
int ocs_sim_trace_write(const struct ocs_sim_trace *trace, const char *path, struct ocs_error *err);
void ocs_sim_trace_add(struct ocs_sim_trace *trace, const struct ocs_sim_job *job);
void ocs_sim_trace_free(struct ocs_sim_trace *trace);

void ocs_sim_values_add(struct ocs_sim_values *values, double value, double weight);
int ocs_sim_values_pick(const struct ocs_sim_values *values, struct ocs_random *random);
void ocs_sim_values_free(struct ocs_sim_values *values);

#endif
