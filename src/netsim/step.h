/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_NETSIM_STEP_H
#define OCS_NETSIM_STEP_H

/* Runs training steps on a fabric. */

#include "src/netsim/collective.h"
#include "src/netsim/fabric.h"
#include "src/netsim/graph.h"

struct ocs_error;

struct ocs_netsim_job {
	const struct ocs_netsim_graph *graph;
	const int *place; /* servers of the fabric by those of the graph; NULL: the same */
	double start;	  /* ms */
	int steps;	  /* training steps in a row, at least 1; the last ones are timed */
};

struct ocs_netsim_span {
	double start, end; /* ms; -1: never */
};

struct ocs_netsim_result {
	double *step_ms; /* of each job: its mean step */
	double end_ms;	 /* when the last task ended */
	double tolerance;
	struct ocs_netsim_span *spans; /* of each task, job after job, in the last step */
	int nspans;
	double *carried; /* bytes of each link of the fabric */
	double *samples; /* the same at 0, sample_ms, 2 sample_ms ...: [s * links + link] */
	int nsamples;
	double sample_ms;
	double sent;	   /* bytes that servers sent each other */
	double hops;	   /* the same times the links that left a server for them */
	double *hop_bytes; /* bytes by the number of those links, OCS_FLOW_LINKS_MAX + 1 of them */
	long changes;	   /* of circuits: how often all flows stood still */
	long events, solves;
};

/* Called at each event, after rates have been shared out and before time goes on. */
typedef void ocs_netsim_watch(void *context, struct ocs_flownet *net);

struct ocs_netsim_request {
	struct ocs_netsim_fabric *fabric;
	const struct ocs_netsim_job *jobs;
	int njobs;
	enum ocs_netsim_algorithm algorithm;
	double tolerance;	 /* flow.h */
	double sample_ms;	 /* how often to look at the links; 0: never */
	ocs_netsim_watch *watch; /* NULL: none */
	void *context;		 /* of watch */
};

/* Runs all jobs to their ends.  Graphs are ones that ocs_netsim_graph_check accepts.  Returns the
 * result (ocs_netsim_result_destroy), or NULL with ERR: OCS_NEVER (two servers that have no way
 * between them, flows that never end). */
struct ocs_netsim_result *ocs_netsim_run(const struct ocs_netsim_request *request,
					 struct ocs_error *err);
void ocs_netsim_result_destroy(struct ocs_netsim_result *result);

#endif
