/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_SCHEDULER_STATE_H
#define OCS_SCHEDULER_STATE_H

/* The one state behind controller.h; everything in it is protected by its lock. */

#include "src/place/place.h"
#include "src/scheduler/scheduler.h"

#include <pthread.h>

struct json_object;

/* Cubes are numbers in placements: both must count them alike. */
#define OCS_STRANGER                                                               \
	"ocsd has read another ocs.yaml than slurmctld; give both the same file, " \
	"then: systemctl reload ocsd, scontrol reconfigure"

#define OCS_MUTE                                                                          \
	"ocsd is of an older release than slurmctld's plugins and does not say when all " \
	"nodes of a job have asked for circuits: upgrade ocsd"

struct ocs_section_state {
	struct ocs_placer *placer;
	struct ocs_placer *near; /* of ocs_controller_near alone, NULL until needed */
	struct ocs_occupancy *scratch;
};

/* NODES are held by HOLDS while they must not serve another shape: all of an ended
 * allocation, and those that a living one has lost. */
struct ocs_allocation {
	struct ocs_controller_allocation pub;
	int *nodes;
	bool *holds;
	int nnodes;
	bool living, gone;
	bool ready;  /* ocsd says: circuits verified, every node has asked */
	bool listed; /* as it is now, in the subscription under way */
	struct ocs_allocation *next;
};

/* A job that slurmctld does not know to have started; its nodes do, and are held. */
struct ocs_forgotten {
	uint32_t job;
	int *nodes;
	int nnodes;
	int64_t until_ns; /* 0: the caller does not know of it yet */
	struct ocs_forgotten *next;
};

struct ocs_waiting {
	uint32_t job;
	uid_t uid;
	char *user, *shape, *reason;
	bool blocked;
	bool pushed;	    /* ocsd knows the reason, or one from before */
	char *near;	    /* what would fit instead, the end of the reason; or NULL */
	uint64_t near_seen; /* the state of things it was asked for; 0: not asked */
	int *chosen;	    /* nodes last chosen to run now */
	int nchosen;
	struct ocs_waiting *next;
};
#define OCS_WAITING_BUCKETS 1024

struct ocs_switch_state {
	enum { OCS_SWITCH_UP, OCS_SWITCH_FAILED, OCS_SWITCH_DRAINED } state;
	char *reason;
	int64_t suspect_until_ns; /* blamed for a job though ocsd calls it up */
};

struct ocs_drain {
	char *kind, *name, *reason;
	struct ocs_drain *next;
};

struct ocs_message {
	struct json_object *line;
	struct ocs_message *next;
};

struct ocs_failure {
	struct ocs_controller_failure pub;
	struct ocs_failure *next;
};

struct ocs_state {
	pthread_mutex_t lock;
	struct ocs_config *config;
	const struct ocs_fabric *fabric; /* of config */
	char *fault;			 /* of the file that it should be, or NULL */
	char *partitions;		 /* without fabric: whose jobs all get circuits
					 * (ocs_config_partitions_have), NULL: not known */
	struct ocs_section_state *sections;
	int *holds; /* per node: allocations that hold it */
	int nholds; /* nodes held */
	struct ocs_switch_state *switches;
	struct ocs_drain *drains;
	struct ocs_allocation *allocations;
	struct ocs_forgotten *forgotten;
	struct ocs_waiting *waiting[OCS_WAITING_BUCKETS];
	struct ocs_question *questions; /* for ocs_controller_near */
	struct ocs_failure *failures, **failures_end;
	uint64_t epoch;	  /* the greatest ever heard of */
	uint32_t max_job; /* that ocsd had heard of, news; 0: no news */
	ocs_controller_hook hook;
	void (*log)(bool problem, const char *text);
	bool changed;

	/* link to ocsd */
	bool open;		      /* subscription sent: messages are queued */
	bool up;		      /* subscription answered */
	uint64_t term;		      /* as slurmctld in charge, 0: none yet */
	int controller;		      /* which of them */
	bool config_mismatch;	      /* ocsd has read another ocs.yaml */
	bool mute;		      /* ocsd is too old to say when a job is ready */
	bool readied;		      /* a job has become ready, news */
	char digest[OCS_DIGEST_TEXT]; /* of ours */
	time_t down_since;
	int64_t down_since_ns;
	struct ocs_message *out, **out_end;
	bool nodes_known; /* ocsd has these: */
	uint8_t *node_states;
	uint32_t *node_jobs;
	int wake_fd; /* wakes the thread, -1 if none */
};

extern struct ocs_state ocs_state;

/* All of these are called with the lock held, unless they say otherwise. */

/* allocation.c */
struct ocs_allocation *ocs_allocation_find(uint32_t job, uint64_t epoch);
void ocs_allocation_remove(struct ocs_allocation *allocation);
void ocs_allocation_end(struct ocs_allocation *allocation);
void ocs_allocation_hold_unknown(uint32_t job, uint64_t epoch, const char *nodes);
/* Holds NODE, or not any more; holds are counted. */
void ocs_allocation_hold(int node, bool on);
/* Indexes of those of the host list NODES that are in ocs.yaml: the count; the caller frees
 * *INDEXES. */
int ocs_allocation_nodes(const char *nodes, int **indexes);

/* lost_jobs.c */
void ocs_forgotten_add(uint32_t job, const char *nodes);
void ocs_forgotten_clear_all(void);

/* faults.c */
void ocs_faults_reset(void);
void ocs_faults_switch(const char *name, const char *state, const char *reason);
void ocs_faults_suspect(const char *name, const char *reason);
void ocs_faults_drain(const char *kind, const char *name, const char *reason, bool on);
void ocs_faults_drains_clear(void);
bool ocs_faults_switch_usable(int sw);
bool ocs_faults_port_usable(struct ocs_port port);
bool ocs_faults_node_usable(int node);
bool ocs_faults_any(void);
/* Blocks in OCCUPANCY what is failed or drained.  Apply after freeing nodes. */
void ocs_faults_apply(struct ocs_occupancy *occupancy);
/* "switch s3 failed, cube c1 drained"; the caller frees it, NULL if none. */
char *ocs_faults_describe(void);

/* pending.c */
struct ocs_waiting *ocs_waiting_find(uint32_t job, bool create);
/* Tells ocsd, for `ocsctl explain`. */
void ocs_waiting_push(struct ocs_waiting *waiting);
void ocs_waiting_push_all(void);
void ocs_waiting_clear_all(void);
struct ocs_failure *ocs_failure_add(uint32_t job, uint64_t epoch, const char *name, bool again,
				    const char *text);

/* nearest_shape.c: notes that JOB's shape does not fit OCCUPANCY, unless that is known; forgets what
 * was found for JOB; forgets all questions. */
void ocs_near_ask(uint32_t job, const struct ocs_shape *shape,
		  const struct ocs_occupancy *occupancy);
void ocs_near_drop(uint32_t job);
void ocs_near_clear_all(void);

/* link.c: queues LINE (taken over) for ocsd; dropped while there is no connection,
 * because the next subscription says it all. */
void ocs_link_send(struct json_object *line);
struct json_object *ocs_link_commit(const struct ocs_controller_allocation *allocation);

/* messages.c: what ocsd says.  The request that asks for everything, its answer,
 * any event (true: another slurmctld has taken charge), and the answer to a request (REQUEST
 * is what was sent). */
struct json_object *ocs_message_subscribe(void);
void ocs_message_subscribed(struct json_object *reply);
bool ocs_message_event(struct json_object *event);
void ocs_message_reply(struct json_object *request, struct json_object *reply);

/* Without the lock. */
void ocs_controller_say(bool problem, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
