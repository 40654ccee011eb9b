/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_PLUGINS_SELECT_SELECT_OCS_H
#define OCS_PLUGINS_SELECT_SELECT_OCS_H

/* The parts of select/cons_tres_ocs. */

#include "src/plugins/compat/compat.h"

/* nodes.c: between Slurm's node table and the fabric's. */

/* Builds both maps anew (node write lock). */
void ocs_select_nodes_map(void);
/* The fabric's index of node INDEX of Slurm's table, or -1. */
int ocs_select_node_fabric(int index);
/* The reverse. */
int ocs_select_node_slurm(int node);
/* XPUs of a node of the fabric (1 if ocs.yaml does not say). */
int ocs_select_node_xpus(int node);
/* Nodes of the fabric among BITMAP, in Slurm's order: the count; the caller
 * xfrees *NODES.  OUTSIDE, if not NULL, is the number of others. */
int ocs_select_nodes_of(bitstr_t *bitmap, int **nodes, int *outside);

/* evaluate.c: choosing nodes. */

/* A call of select_p_job_test, to be passed on to BASE. */
struct ocs_select_test {
	job_record_t *job;
	bitstr_t *nodes;
	uint32_t min_nodes, max_nodes, req_nodes;
	uint16_t mode;
	list_t *preemptable, **preempted;
	resv_exc_t *excluded;
	will_run_data_t *will_run;
	int (*base)(job_record_t *, bitstr_t *, uint32_t, uint32_t, uint32_t, uint16_t, list_t *,
		    list_t **, resv_exc_t *, will_run_data_t *);
};

/* Frames a call of cons_tres: the hook below belongs to this job and mode; NODES are
 * those that cons_tres starts from.  FORECAST: nothing will be started by the answer (`sbatch --test-only`).  An error
 * means that the job cannot be served and the call is to be left out. */
int ocs_select_test_begin(job_record_t *job, bitstr_t *nodes, uint16_t mode, bool forecast);
/* Runs the call.  Nodes that were promised to other jobs are left out. */
int ocs_select_test_run(const struct ocs_select_test *test);
/* RC of the call; turns it into what slurmctld should hear. */
int ocs_select_test_end(job_record_t *job, int rc);
/* The hook that topology/ocs calls; EVALUATION is a topology_eval_t. */
int ocs_select_evaluate(void *evaluation);
/* What JOB asks of the fabric (see ocs_controller_request). */
int ocs_select_request(job_record_t *job, struct ocs_controller_request *request,
		       struct ocs_error *err);

/* The call of cons_tres that is under way, for preempt.c.  What the job asks: */
const struct ocs_controller_request *ocs_select_call_request(void);
/* Whether the hook found nodes in it. */
bool ocs_select_call_chose(void);
/* cons_tres once more, with PREEMPTABLE (or NULL) instead of the test's. */
int ocs_select_test_base(const struct ocs_select_test *test, list_t *preemptable);
/* What the job waits for is known better than the hook knows it. */
void ocs_select_call_reason(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* preempt.c: which jobs are preempted. */

/* Runs TEST for a job that asks something of the fabric: the fewest and cheapest are preempted. */
int ocs_select_test_preempting(const struct ocs_select_test *test);

/* availability.c: when nodes become idle (job read lock). */

struct ocs_select_future;

/* What is known of NODES in SPAN (NULL: at any time): jobs that end before its start have
 * gone, those that end after its end stay. */
struct ocs_select_future *ocs_select_future_create(bitstr_t *nodes, const will_run_data_t *span);
void ocs_select_future_destroy(struct ocs_select_future *future);
/* How many moments there are at which more of them become idle; the first, 0, is now. */
int ocs_select_future_moments(const struct ocs_select_future *future);
/* Those that are idle from MOMENT on. */
void ocs_select_future_nodes(const struct ocs_select_future *future, int moment, bitstr_t *nodes);

/* node_weights.c: which nodes jobs without a shape get (job and node write locks). */

/* Changes the scheduling weights of the nodes of EVALUATION, a topology_eval_t, so that whole
 * cubes stay whole (see ocs.yaml, keep_cubes_whole), */
void ocs_select_steer(void *evaluation);
/* and gives them back those that they had. */
void ocs_select_steer_undo(void);

/* preemption_hold.c: nodes promised to jobs for which others were preempted (job write lock). */

void ocs_select_promise_make(job_record_t *job, bitstr_t *nodes, list_t *victims);
/* JOB 0: all of them. */
void ocs_select_promise_drop(uint32_t job);
/* What JOB was promised and can still get, or NULL; valid until the next call. */
bitstr_t *ocs_select_promise_of(job_record_t *job);
/* Whether VICTIM is being preempted for what JOB was promised. */
bool ocs_select_promise_holds(job_record_t *job, job_record_t *victim);
/* Takes from NODES what others than JOB were promised; false if JOB requires such a node. */
bool ocs_select_promise_respect(job_record_t *job, bitstr_t *nodes);

/* suspend.c: jobs with circuits are not suspended for others (job write lock). */

/* Whether JOB is one that others have suspended. */
bool ocs_select_suspends(job_record_t *job);
/* PREEMPTABLE (may be NULL) without those that would be suspended with their circuits; the
 * caller destroys it.  NULL: there are none. */
list_t *ocs_select_spare_jobs(list_t *preemptable);
/* Takes the nodes of such jobs from NODES. */
void ocs_select_spare_nodes(bitstr_t *nodes);

/* job_record.c: what a started job carries. */

void ocs_select_publish(job_record_t *job, const struct ocs_controller_allocation *made);
/* The circuits that were planned for JOB are there: CIRCUITS of them. */
void ocs_select_publish_circuits(job_record_t *job, int circuits);
/* Takes away what is for running jobs only. */
void ocs_select_unpublish(job_record_t *job);
/* Takes away all of it. */
void ocs_select_forget(job_record_t *job);
/* How AdminComment speaks of circuits of the running job. */
#define OCS_SELECT_RUNNING_PREFIX "ocs circuits: "
/* Where spank_ocs leaves --ocs-demand, for ocs_spank_get. */
#define OCS_SELECT_DEMAND "_SLURM_SPANK_OPTION_spank_ocs_ocs_demand"
#define OCS_SELECT_RINGS "_SLURM_SPANK_OPTION_spank_ocs_ocs_rings" /* --ocs-rings */
/* Sets NAME in the job's SPANK environment; VALUE NULL removes it. */
void ocs_select_spank_set(job_record_t *job, const char *name, const char *value);
/* Replaces the part of *COMMENT that starts with PREFIX (parts are separated by
 * "; ") by TEXT; NULL removes it. */
void ocs_select_comment_set(char **comment, const char *prefix, const char *text);
uint64_t ocs_select_epoch(job_record_t *job);
/* Makes running and completing jobs known again, and holds those that were (job write lock). */
void ocs_select_restore_all(void);

/* config_guard.c */

/* Takes the ocs.yaml that was read, unless it was changed under running jobs: then ends
 * the process or goes back to the one before, as ocs.yaml(5) says (job write lock). */
void ocs_select_accept(void);

/* failure.c: jobs that must leave their nodes (job write lock). */

void ocs_select_fail(const struct ocs_controller_failure *failure);
/* The next start of jobs requeued here need not wait as long as Slurm thinks. */
void ocs_select_requeued_hasten(void);
bool ocs_select_requeued_any(void);
/* Whether its prologs have not all finished. */
bool ocs_select_in_prolog(job_record_t *job);

/* Whether it has prologs that have not finished, our hold aside. */
bool ocs_select_prologs_run(job_record_t *job);

/* hold.c: nothing of a job starts before its circuits are verified and all of its nodes have
 * asked for them (job write lock, unless they say otherwise). */

/* JOB has begun: holds it.  Again: after a restart, if it was held. */
void ocs_select_hold(job_record_t *job);
void ocs_select_hold_again(job_record_t *job);
/* JOB leaves its nodes: nothing is started. */
void ocs_select_hold_drop(job_record_t *job);
/* Whether JOB is held (job read lock). */
bool ocs_select_held(job_record_t *job);
/* Whether there is something to do (job read lock); sets *SOON if there will be at a moment
 * that Slurm does not tell. */
bool ocs_select_hold_any(bool *soon);
/* Lets jobs go that are ready, and asks who is missing. */
void ocs_select_hold_tend(void);

/* lost_prolog.c: jobs of which a node's slurmd was killed in their prolog. */

/* JOB is let go, and may still have prologs (job write lock, node read lock). */
void ocs_select_prologs_watch(job_record_t *job);
/* Whether there is something to do (job and node read lock, the keeper alone). */
bool ocs_select_prologs_lost_any(void);
/* Requeues those that wait for a prolog which will not end (job write lock, node read lock). */
void ocs_select_prologs_lost_requeue(void);

/* orphaned_batch.c: batch jobs that were in their prolog when slurmctld was restarted. */

/* Notes JOB if it is one (job read lock, before the keeper runs or from it). */
void ocs_select_lost_note(job_record_t *job);
/* Whether there is something to do (job read lock). */
bool ocs_select_lost_any(void);
/* Requeues those whose prologs have ended since: their scripts are not started by Slurm,
 * which forgets them (job write lock). */
void ocs_select_lost_requeue(void);

/* background_thread.c: the thread that works under slurmctld's locks. */

void ocs_select_keeper_start(void);
void ocs_select_keeper_stop(void);
/* There is something to do (any thread). */
void ocs_select_keeper_wake(void);
/* Connects to ocsd as this slurmctld, which is in charge. */
void ocs_select_keeper_join(void);
/* The scheduler should look at its queue again soon (any thread). */
void ocs_select_keeper_schedule(void);

#endif
