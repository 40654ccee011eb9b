/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_SCHEDULER_SCHEDULER_H
#define OCS_SCHEDULER_SCHEDULER_H

/* What topology/ocs and select/cons_tres_ocs share inside slurmctld: the fabric,
 * who holds what, why jobs wait, and the connection to ocsd.  Knows nothing of
 * Slurm: nodes are indexes into ocs_fabric.nodes, jobs are numbers.  There is one
 * of it in a process.  Every function may be called from every thread and touches
 * only memory: input and output happen in a thread of its own, which never
 * waits for a caller. */

#include "src/config/config.h"
#include "src/fabric/fabric.h"
#include "src/fold/shape.h"
#include "src/place/region_groups.h"
#include "src/util/error.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#pragma GCC visibility push(default)

/* Reads the fabric (SPEC as for ocs_config_open).  0, or -1 with ERR; the one that
 * was open before stays then. */
int ocs_controller_open(const char *spec, struct ocs_error *err);
/* The same with the copy PATH that ocs_controller_copy made, because of FAULT (one sentence), which
 * is what is wrong with the file that should have been read. */
int ocs_controller_open_kept(const char *path, const char *fault, struct ocs_error *err);
/* What is open, if anything, stays open in spite of FAULT. */
void ocs_controller_fault_set(const char *fault);
/* Nothing is open because of FAULT, and PATH says which partitions ocs_controller_copy knew, all of
 * whose jobs get circuits: they wait.  -1 with ERR: that is not known either. */
int ocs_controller_close_kept(const char *path, const char *fault, struct ocs_error *err);
void ocs_controller_close(void);
/* NULL before ocs_controller_open. */
const struct ocs_config *ocs_controller_config(void);
const struct ocs_fabric *ocs_controller_fabric(void);

/* Keeps a copy of what was read as the file PATH, and the names of the partitions whose jobs all get
 * circuits as PARTITIONS, for later starts.  0, or -1 with ERR. */
int ocs_controller_copy(const char *path, const char *partitions, struct ocs_error *err);
/* Whether JOBS, COUNT of them, which started under SPEC, keep what they have under what
 * was read last (ocs_fabric_keeps).  0, also if SPEC cannot be read; or -1 with ERR. */
int ocs_controller_keeps(const char *spec, const struct ocs_holding *jobs, int count,
			 struct ocs_error *err);

/* Index in ocs_fabric.nodes of the node NAME, or -1. */
int ocs_controller_node(const char *name);

/* ocs_fabric_node_unit and ocs_fabric_unit_agrees for node NODE. */
const char *ocs_controller_node_unit(int node);
bool ocs_controller_unit_agrees(int node, const char *topology);

/* Where lines for the log go (any thread, no locks held); none by default. */
void ocs_controller_log_set(void (*log)(bool problem, const char *text));

/* The evaluation that the select plugin registers and the topology plugin calls
 * (with its topology_eval_t).  Returns a Slurm error code. */
typedef int (*ocs_controller_hook)(void *evaluation);
void ocs_controller_hook_set(ocs_controller_hook hook);
ocs_controller_hook ocs_controller_hook_get(void);

/* ---- what a job asks ---- */

struct ocs_controller_request {
	uint32_t job;
	const struct ocs_section *section;
	bool shaped; /* shape is set */
	struct ocs_shape shape;
	int servers;			 /* of the shape in a section of servers, else 0 */
	struct ocs_region_layout groups; /* with --ocs-moe; else 0 */
	bool tentative;			 /* a choice that fails is followed by another one: what
					 * would fit instead need not be looked for */
	const char *rings;  /* of --ocs-rings, or NULL: as the demand or ocs.yaml says */
	const char *name;   /* of the job, or NULL.  For ocs_controller_begin */
	const char *demand; /* of --ocs-demand, base64; NULL: none.  For
					 * ocs_controller_begin */
};

/* What a job of PARTITION with EXTRA asks of the fabric.  1: a shape, or (direct,
 * rail) ports of its nodes; 0: nothing; -1 with ERR: a shape that cannot be served
 * (malformed, or no section for that partition). */
int ocs_controller_request(uint32_t job, const char *partition, const char *extra,
			   struct ocs_controller_request *request, struct ocs_error *err);

/* Whether it is known in which partitions every job gets ports: by ocs.yaml, or by the names that
 * are kept of it. */
bool ocs_controller_partitions_known(void);

/* ---- decisions ---- */

enum ocs_controller_mode {
	OCS_TEST_ONLY, /* could it ever start: a healthy fabric, ocsd not asked */
	OCS_FORECAST,  /* when could it start, for a user who asks: faults count */
	OCS_WILL_RUN,  /* the same to plan by: ocsd must be there as well */
	OCS_RUN_NOW,   /* also what is not torn down yet counts */
};

/* Chooses nodes.  USABLE: a bit per node of the fabric that the job may take.
 * REQUIRED: NREQUIRED nodes that must be among them.  MIN and MAX bound the count.
 * Sets CHOSEN (room for fabric->nnodes, ascending) and returns the count.
 * -1 with ERR: OCS_NEVER; OCS_NOT_NOW; OCS_UNREACHABLE (ocsd is down).  *NODES_HELP
 * then says whether other nodes of this section becoming idle could help: false
 * for a job that waits for a repair or for ocsd.
 * Stable: choosing among exactly the nodes of a choice gives the same choice. */
int ocs_controller_choose(const struct ocs_controller_request *request,
			  enum ocs_controller_mode mode, const uint64_t *usable,
			  const int *required, int nrequired, int min, int max, int *chosen,
			  bool *nodes_help, struct ocs_error *err);

/* ---- preemption ---- */

/* A running job that may be preempted.  NODES: those of the fabric that it is on. */
struct ocs_controller_preemptable {
	int rank; /* see ocs_preemption_find */
	double cost;
	const int *nodes;
	int nnodes;
};

struct ocs_controller_preemption {
	const uint64_t *usable; /* a bit per node of the fabric that may be used once it is idle */
	const int *users;	/* per node of the fabric: jobs on it, whether or not they may
				 * be preempted */
	const struct ocs_controller_preemptable *jobs;
	int njobs;
	const int *required; /* this and the rest as for ocs_controller_choose */
	int nrequired, min, max;
};

/* The fewest and cheapest jobs (see ocs_preemption_find) that must go so that REQUEST gets nodes.
 * Sets SET (room for njobs) and the nodes that it gets then, CHOSEN (room for fabric->nnodes)
 * and *COUNT, and returns how many jobs; 0: it fits without; -1 with ERR: it does not fit
 * though all go.  Nodes whose circuits are not taken down yet count as usable if USABLE says
 * so. */
int ocs_controller_victims(const struct ocs_controller_request *request,
			   const struct ocs_controller_preemption *preemption, int *set,
			   int *chosen, int *count, struct ocs_error *err);
/* Whether the circuits of an ended job on NODE are not taken down yet. */
bool ocs_controller_held(int node);

/* ---- allocations ---- */

/* What is published about a started job. */
struct ocs_controller_allocation {
	uint32_t job;
	uint64_t epoch;
	uid_t uid;
	char *user, *partition;
	char *section, *shape, *conn; /* shape and conn are NULL without a shape */
	char *placement;	      /* compact, or NULL */
	char *nodes;		      /* host list: placement's nodes, or servers in
					 * rank order */
	char *demand;		      /* base64, or NULL */
	char *rings;		      /* of --ocs-rings, or NULL */
	char *phases;		      /* of --ocs-phases, or NULL */
	char *moe;		      /* of --ocs-moe, or NULL */
	char *name;		      /* of the job; NULL: not kept */
	bool planned;		      /* its circuits are, by ocsd, which counts them */
	int cubes, circuits;
	long xpus, idle; /* of the shape on cubes or rails, and left over on its nodes */
};
void ocs_controller_allocation_free(struct ocs_controller_allocation *allocation);

/* Commits JOB on exactly NODES (COUNT of them, in Slurm's order): places it,
 * verifies the placement against who holds what, makes its epoch, tells ocsd.
 * Fills *OUT (free with ocs_controller_allocation_free).  0, or -1 with ERR and
 * nothing changed. */
int ocs_controller_begin(const struct ocs_controller_request *request, const int *nodes, int count,
			 uid_t uid, const char *user, const char *partition,
			 struct ocs_controller_allocation **out, struct ocs_error *err);

/* JOB has left its allocation (of EPOCH; 0: whichever it has; no-op if none): its
 * nodes stay closed to shapes until ocsd says that its circuits are gone. */
void ocs_controller_end(uint32_t job, uint64_t epoch, const char *reason);
/* NODE has left the allocation of JOB, which lives on. */
void ocs_controller_node_lost(uint32_t job, int node);
/* No epilog of (JOB, EPOCH) will come any more. */
void ocs_controller_gone(uint32_t job, uint64_t epoch);

/* After a restart: makes a running (LIVING) or completing job known again, from
 * what ocs_controller_begin published.  No-op if it is known. */
void ocs_controller_restore(const struct ocs_controller_allocation *allocation, const int *nodes,
			    int count, bool living);

/* Whether every node of (JOB, EPOCH) has asked for its circuits, which are verified: until then
 * nothing of it may run. */
bool ocs_controller_ready(uint32_t job, uint64_t epoch);
/* Whether a job has become so since the last call. */
bool ocs_controller_readied(void);
/* Prologs of (JOB, EPOCH) have ended on NODES (a host list), and it is not ready: has ocsd say who
 * has not asked.  Then it becomes ready, or fails (ocs_controller_failure); such nodes get no
 * shapes until ocsd hears of them. */
void ocs_controller_unheard(uint32_t job, uint64_t epoch, const char *nodes);

/* Allocations to watch.  Copies up to MAX (job, epoch, living), returns the count. */
struct ocs_controller_holder {
	uint32_t job;
	uint64_t epoch;
	bool living;
	bool gone; /* ocs_controller_gone was called */
};
int ocs_controller_holders(struct ocs_controller_holder *holders, int max);

/* ---- why jobs wait ---- */

/* REASON (NULL: none, but the job is not forgotten) is kept and pushed to ocsd.
 * BLOCKED: it waits for no node, so slurmctld does not hold others back.
 * Returns whether the job had a reason before. */
bool ocs_controller_pending(uint32_t job, uid_t uid, const char *user, const char *shape,
			    const char *reason, bool blocked);
/* The job waits no longer: forgets its reason and its last choice. */
void ocs_controller_pending_clear(uint32_t job);
/* Looks for shapes that would fit now instead of some that wait, and adds them to their
 * reasons; some of them, until tens of milliseconds have passed.  From one thread only, without any lock. */
void ocs_controller_near(void);
/* A copy of up to MAX waiting jobs; each reason (may be NULL) is to be freed.
 * Returns the count. */
struct ocs_controller_waiting {
	uint32_t job;
	bool blocked;
	char *reason;
};
int ocs_controller_waiting(struct ocs_controller_waiting *waiting, int max);

/* ---- ocsd ---- */

/* Starts the thread that talks to ocsd, for the slurmctld that is number CONTROLLER of those
 * in slurm.conf and has just read the jobs that it goes by.  WAKE (any thread, no locks held)
 * is called when there is something to do for the caller; SUPERSEDED (that thread, no locks
 * held) when another one has taken charge since: what this one knows is out of date.  No-op
 * if it runs. */
void ocs_controller_link_start(int controller, void (*wake)(void), void (*superseded)(void));
void ocs_controller_link_stop(void);
bool ocs_controller_link_runs(void);
/* Milliseconds without ocsd; 0 if it is connected. */
int64_t ocs_controller_down_ms(void);

/* Jobs that lost circuits, or never got them. */
enum ocs_controller_kind {
	OCS_NO_CIRCUITS,    /* it must leave its nodes */
	OCS_DEGRADED,	    /* it runs on with what it has and is only notified */
	OCS_CIRCUIT_FAILED, /* under a running job: what policies say */
	OCS_SWITCH_SILENT,  /* its circuits may be gone, too */
	OCS_CIRCUIT_RESTORED,
	OCS_REALISED, /* no failure: its planned circuits are there */
};
struct ocs_controller_failure {
	enum ocs_controller_kind kind;
	uint32_t job;
	uint64_t epoch;
	char *name;   /* the switch to blame, or NULL */
	bool again;   /* it would fail again elsewhere, or a host that the sentence names is to
			 * blame: such attempts are counted, as those with a switch are */
	char *text;   /* one sentence */
	int circuits; /* OCS_REALISED: how many */
};
bool ocs_controller_failures(void);
/* Takes the oldest; false if there is none.  The caller frees name and text. */
bool ocs_controller_failure(struct ocs_controller_failure *failure);

/* Jobs that started, but not as far as slurmctld knows: it died before it had saved that.
 * Their nodes stay closed to shapes until some seconds after ocs_controller_forgotten.
 * Whether there are any that it has not given yet; to be called now and then. */
bool ocs_controller_forgotten_any(void);
/* Takes one, whose NODES (the caller frees them) are to stop JOB: their count, or -1. */
int ocs_controller_forgotten(uint32_t *job, int **nodes);

/* Once after each connection: the greatest number of a job that ocsd has heard of, which may
 * be one that slurmctld has forgotten; else 0. */
uint32_t ocs_controller_max_job(void);

/* True once after each change that could let a waiting job start. */
bool ocs_controller_changed(void);

/* Node states for pictures; STATES has fabric->nnodes entries (NULL: not in
 * slurm.conf), JOBS the job on each node or 0. */
enum ocs_controller_node {
	OCS_NODE_ABSENT,
	OCS_NODE_IDLE,
	OCS_NODE_BUSY,
	OCS_NODE_DOWN,
	OCS_NODE_DRAINED,
	OCS_NODE_RESERVED
};
void ocs_controller_nodes(const uint8_t *states, const uint32_t *jobs);

/* ---- pictures ---- */

/* One line of `scontrol show topology`. */
struct ocs_controller_record {
	char *name;  /* of the section, cube or switch */
	char *nodes; /* host list it stands for, or "" */
	char *text;  /* the line */
};
/* STATES as above; JOBS: with the numbers of jobs.  All users may see the rest.  Returns the
 * count; free with ocs_controller_report_free. */
int ocs_controller_report(const uint8_t *states, bool jobs, struct ocs_controller_record **records);
void ocs_controller_report_free(struct ocs_controller_record *records, int count);
/* Lines of RECORDS that NAME selects: a name, or nodes of a host list (NULL: all).
 * The caller frees the text; empty if nothing matches. */
char *ocs_controller_report_print(const struct ocs_controller_record *records, int count,
				  const char *name);

#pragma GCC visibility pop

#endif
