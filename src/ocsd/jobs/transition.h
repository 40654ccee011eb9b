/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_JOBS_TRANSITION_H
#define OCS_OCSD_JOBS_TRANSITION_H

/* Transitions: some circuits of a job are cut and seen gone, then others are made and seen, and
 * its owner is told.  A job may have several at once, on different ports.
 *
 * The states of the circuits are its durable form: ocsd_transition_begin writes PENDING_DELETION and
 * PLANNED, which like all changes of a pass are committed before a batch is sent.  After a restart
 * ocsd_transition_resume makes a transition of the circuits that the database has.  All circuits of a
 * switch that are due in one pass are one batch (switches/scheduler.c).  The cost of a step is that
 * of the circuits that it changes, not of the job.
 *
 * When a job fails or ends, its transitions end without a word to their owner; jobs/job_state.c
 * decides whether its circuits are kept or cut. */

#include "src/ocsd/state/ocsd.h"

/* Whose transition it is.  The functions are called from ocsd_transitions_run, each once at most, and
 * then the transition is gone: they may begin another one. */
struct ocsd_transition_kind {
	/* Nothing of it is on its way any more.  NFAILED: circuits that could not be made, of which
	 * ocsd_circuit_failed has been told one by one; all others were seen. */
	void (*done)(struct ocsd *d, struct ocsd_job *job, size_t nfailed);
	/* Once all that is cut was gone, a circuit cannot be sent because of WHY: a port is not the
	 * job's, another circuit is on it, or its switch SW (else NULL) has failed. */
	void (*refused)(struct ocsd *d, struct ocsd_job *job, const struct ocsd_switch *sw,
			const char *why);
	bool fails_fast; /* a switch that has failed is not waited for */
	bool at_once;	 /* what goes and what comes are one batch of each switch; only for menus */
};

struct ocsd_transition_member {
	struct ocsd_circuit *circuit;
	bool cut;   /* it goes, else it comes */
	bool fresh; /* the database does not have it yet */
	bool sent;  /* in this step */
};

struct ocsd_transition {
	struct ocsd_transition *next;  /* of the job */
	struct ocsd_transition **slot; /* becomes NULL when it is over, however it ends; or NULL */
	struct ocsd_job *job;
	const struct ocsd_transition_kind *kind;
	struct ocsd_transition_member *members;
	size_t count;
	size_t nbefore; /* circuits of the job before it was filled */
	size_t ncut;	/* still to be seen gone, */
	size_t nmake;	/* still to be seen, */
	size_t nfailed; /* not made */
	bool begun;
	bool planned; /* some are not sent yet */
	bool changed; /* since it was looked at */
};

/* The counter that a circuit in STATE is in, or NULL: it is where it is to be. */
static inline size_t *ocsd_transition_counter(struct ocsd_transition *t,
					      enum ocsd_circuit_state state)
{
	switch (state) {
	case OCSD_DELETING:
		return &t->ncut;
	case OCSD_PLANNED:
	case OCSD_CONNECTING:
		return &t->nmake;
	case OCSD_CIRCUIT_FAILED:
		return &t->nfailed;
	default:
		return NULL;
	}
}

/* A transition of JOB that is still to be filled, and begun or dropped before the pass ends. */
struct ocsd_transition *ocsd_transition_create(struct ocsd_job *job,
					       const struct ocsd_transition_kind *kind);

/* CIRCUIT, one of the job, is to go. */
void ocsd_transition_cut(struct ocsd_transition *t, struct ocsd_circuit *circuit);

/* CIRCUIT, one of the job that is planned or may be on its way, is to be made. */
void ocsd_transition_add(struct ocsd_transition *t, struct ocsd_circuit *circuit);

/* A circuit between A and B, both on one switch, is to be there: a new one of the job, or the one
 * that it has or had there.  One that is there, or on its way, stays out of T.  NULL with ERR: the
 * switch cannot make it. */
struct ocsd_circuit *ocsd_transition_make(struct ocsd *d, struct ocsd_transition *t,
					  struct ocs_port a, struct ocs_port b, bool directed,
					  struct ocs_error *err);

/* Begins T: writes what it changes.  What it sends, and its owner hears, is left for
 * ocsd_transitions_run.  -1 with ERR (OCS_NOT_NOW) if a circuit of T is in another transition, if a
 * port that it needs has a circuit that T does not cut, or if the job has failed or ended: then nothing
 * has changed and T is gone. */
int ocsd_transition_begin(struct ocsd *d, struct ocsd_transition *t, struct ocs_error *err);

/* The same for a kind that is at_once, whose members the caller has looked at: no other transition has
 * one, what is in the way of one is another, and nothing else leaves by their ingresses.  One that is
 * on its way off may be made again. */
void ocsd_transition_begin_at_once(struct ocsd *d, struct ocsd_transition *t);

/* Ends T without a word to its owner; its circuits stay in their states. */
void ocsd_transition_end(struct ocsd_transition *t);

/* Forgets T, which has not begun, and the circuits that were added to the job for it. */
void ocsd_transition_drop(struct ocsd_transition *t);

/* Begins again, after a restart, with every circuit of JOB that is planned, to come or to go. */
void ocsd_transition_resume(struct ocsd *d, struct ocsd_job *job,
			    const struct ocsd_transition_kind *kind);

/* JOB was given a port that its transitions may wait for. */
void ocsd_transitions_wake(struct ocsd *d, struct ocsd_job *job);

/* Takes the steps that are due, for all jobs: where d->loop.changes_due says that there may be some,
 * before batches are made up and replies are answered. */
void ocsd_transitions_run(struct ocsd *d);

/* JOB has ended or failed: forgets its transitions.  Its circuits stay in their states. */
void ocsd_transitions_end(struct ocsd_job *job);

/* Ends the transitions of JOB, and cuts all that a switch may have of it; the rest is gone. */
void ocsd_transition_abandon(struct ocsd *d, struct ocsd_job *job);

#endif
