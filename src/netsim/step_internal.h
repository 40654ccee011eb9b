/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_NETSIM_STEP_INTERNAL_H
#define OCS_NETSIM_STEP_INTERNAL_H

#include "src/netsim/queue.h"
#include "src/netsim/step.h"

/* A task while it runs. */
struct step_task {
	int waits;   /* tasks before it that have not ended */
	int pending; /* flows of its phase that have not ended */
	int phase;   /* of a collective; -1: not begun */
	int next;    /* in the line for its device; -1: the last */
	int hops;    /* in a row of its phase, whose time comes after the flows */
	bool held;   /* a controller has been asked */
};

/* A device: what it does, and who waits for it. */
struct step_device {
	int task, first, last; /* -1: none */
};

struct step_job {
	const struct ocs_netsim_job *job;
	int tasks, devices; /* its first task and device among all */
	int *first, *next;  /* tasks after task k: next[first[k]] to next[first[k + 1]] */
	int *waits;	    /* tasks before task k */
	int left;	    /* tasks of this step */
	int step;
	double timed; /* when the steps that count began */
};

/* A flow between two servers, by its number in the flownet. */
struct step_flow {
	int src, dst, task;
	bool on;
};

struct step_run {
	const struct ocs_netsim_request *request;
	struct ocs_netsim_fabric *fabric;
	struct ocs_flownet *net;
	struct step_job *jobs;
	struct step_task *tasks;
	int *job_of; /* of each task */
	int ntasks;
	struct step_device *devices;
	struct step_flow *flows;
	int flows_size;
	struct ocs_queue queue; /* tasks that compute or wait; number ntasks: circuits change */
	int current;		/* the task that sends */
	int left;		/* jobs that are not done */
	bool failed;
	struct ocs_error *err;
	struct ocs_netsim_result *result;
	struct step_circuits *circuits; /* fabrics whose circuits change, or NULL */
	struct step_rails *rails;	/* opus, or NULL */
	struct step_region *region;	/* region, or NULL */
	/* Opus: in which groups the servers of each job send, one after the other; NULL: unknown. */
	struct ocs_netsim_sequence *sequences;
	bool recording; /* they are written now, and read in the next run */
};

struct ocs_netsim_sequence {
	struct ocs_netsim_sequence_row {
		int *groups, count, size;
	} * rows; /* of each server */
};

/* step.c: TASK, which was held, sends from now on. */
void ocs_step_task_send(struct step_run *run, int task);
/* Sends BYTES for TASK over PATH. */
void ocs_step_path_send(struct step_run *run, int task, int src, int dst,
			const struct ocs_netsim_path *path, double bytes);

/* step_circuits.c: fabrics whose circuits change while a step runs. */
struct step_circuits *ocs_step_circuits_create(struct step_run *run);
void ocs_step_circuits_destroy(struct step_circuits *circuits);
/* There is something to send. */
void ocs_step_circuits_want(struct step_run *run);
/* The time that was put into the queue has come. */
void ocs_step_circuits_event(struct step_run *run);

/* step_rails.c: rails whose circuits follow the phases of jobs.  Sets run->rails, or run->failed where
 * a job cannot run on them. */
void ocs_step_rails_create(struct step_run *run);
void ocs_step_rails_destroy(struct step_rails *rails);
/* TASK could send now.  Whether it is held: ocs_step_task_send comes when its circuits stand. */
bool ocs_step_rails_arrive(struct step_run *run, int task);
/* All that TASK sent has arrived. */
void ocs_step_rails_end(struct step_run *run, int task);
/* The time that was put into the queue has come. */
void ocs_step_rails_event(struct step_run *run);
/* How bytes of TASK go from SRC to DST. */
void ocs_step_rails_path(const struct step_run *run, int task, int src, int dst,
			 struct ocs_netsim_path *path);

/* step_region.c: circuits of regions that follow all-to-alls. */
struct step_region *ocs_step_region_create(struct step_run *run);
void ocs_step_region_destroy(struct step_region *region);
/* TASK could send now.  Returns how many ms later it does; from now on its bytes take the circuits
 * that are chosen for it. */
double ocs_step_region_arrive(struct step_run *run, int task);
void ocs_step_region_end(struct step_run *run, int task);
/* Sends BYTES of TASK from SRC to DST. */
void ocs_step_region_send(struct step_run *run, int task, int src, int dst, double bytes);

#endif
