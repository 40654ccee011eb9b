/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_STATE_OCSD_H
#define OCS_OCSD_STATE_OCSD_H

/* The daemon.  One thread (libevent) owns all state and the database; one
 * worker thread per switch does the talking.  After every pass of the loop
 * ocsd_settle() decides what the switches have to do, commits the database,
 * and only then lets replies and batches out: nothing is said or sent that a
 * crash could forget.
 *
 * Here is what it keeps; the headers beside this one tell what each part does. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "src/config/config.h"
#include "src/fabric/fabric.h"
#include "src/ocsd/state/counters.h"
#include "src/ocsd/state/job_states.h"
#include "src/switch/switch.h"
#include "src/util/error.h"
#include "src/util/log.h"

struct event;
struct event_base;
struct ocs_key;
struct json_object;
struct ocs_placer;
struct ocsd;
struct ocsd_client;
struct ocsd_limited_user;
struct ocsd_menu;
struct ocsd_heard;
struct ocsd_http;
struct ocsd_operation_entry;
struct ocsd_pending_reply;
struct ocsd_store;
struct ocsd_transaction;
struct ocsd_transition;
struct ocsd_worker;

enum ocsd_circuit_state {
	OCSD_PLANNED,	     /* committed; no node has asked yet */
	OCSD_CONNECTING,     /* must come to be */
	OCSD_CONNECTED,	     /* seen in a read-back */
	OCSD_DELETING,	     /* must go */
	OCSD_CIRCUIT_FAILED, /* lost, and a foreign patch is in the way */
	OCSD_GONE,	     /* seen gone, or never made */
};

struct ocsd_circuit {
	struct ocsd_job *job;
	int sw, a, b;  /* logical ports */
	bool directed; /* only from A's transmitter to B's receiver */
	struct ocs_patch patches[2];
	int npatches;
	int rail; /* whose menu has it (jobs/menu.h), from 1 on: its state is on the
				 * switch and not in the database; 0: of no menu */
	enum ocsd_circuit_state state;
	bool wanted;			    /* while a topology is compared with what is there */
	bool sent;			    /* the switch may have it */
	int64_t made_ns;		    /* when it was; 0: before ocsd was started */
	bool lit;			    /* its light was seen */
	int dark;			    /* looks since then that did not see it */
	int64_t dark_since_ns;		    /* the first of them */
	bool outcome_unknown;		    /* an attempt at a batch with it had no answer */
	struct ocsd_transition *transition; /* that changes it, or NULL */
	bool postponed; /* the switch will not cut it, or may yet make or cut it;
				 * tried again at every poll */
};

/* A plan that has to do without a port (jobs/replan.h). */
struct ocsd_repair {
	char *why;   /* it has to be repaired, or NULL */
	bool lost;   /* a circuit is gone for good: repair or fail */
	int changed; /* circuits of the last repair */
};

/* What ocsd and slurmctld have said to each other of the end of a job (jobs/lifecycle.h). */
struct ocsd_farewell {
	bool gone;     /* slurmctld: no epilog will come any more */
	bool released; /* ocsd: event `released`, since then */
};

/* What the nodes of a job have said in their prologs (jobs/node_presence.h, forwarding.h). */
struct ocsd_prolog {
	bool *asked; /* nodes that have asked for circuits; NULL: none */
	size_t nasked;
	bool met;		    /* all of them, and the circuits were verified */
	struct json_object **hosts; /* forwarding: the MACs that each node told, or
					 * NULL; the array too */
	size_t nhosts;		    /* nodes that have */
	int64_t committed_ns;	    /* 0: before this ocsd was started, or it ran already */
	int napplies;		    /* requests that wait for its circuits */
};

/* What the commit of a job said; text or NULL. */
struct ocsd_job_request {
	char *user, *partition, *shape, *conn;
	char *placement, *demand;
	char *section; /* its name */
};

/* The nodes of a job. */
struct ocsd_job_nodes {
	char **names;
	size_t count;
	char ***sorted; /* NAMES by name, NULL: not yet needed */
	bool *released;
	size_t nreleased;
};

/* The ports that a job owns or waits for. */
struct ocsd_job_ports {
	struct ocs_port *list;
	size_t count, nwaiting;
};

/* The circuits of a job (jobs/circuits.h). */
struct ocsd_job_circuits {
	struct ocsd_circuit **list;
	size_t count, ngone;
	struct ocsd_transition *transitions; /* under way; jobs/transition.h */
	int64_t started_ns;		     /* they were first asked for, 0: not yet */
	int unwritten; /* all were seen, which the store is still to be told: 1, after a
			* pass 2; else 0 */
};

/* The plan of a job on a direct fabric (jobs/plan.h). */
struct ocsd_job_plan {
	char *text;
	struct json_object *object; /* the same, read; NULL: not yet */
	int revision;		    /* 0: none */
	int set;		    /* its port set, in sections with look-ahead */
};

/* Why a job failed; realised: why it is degraded. */
struct ocsd_job_failure {
	char *sw, *host; /* names, or NULL */
	char *error;
};

/* One allocation: what (job, epoch) holds until its teardown is verified. */
struct ocsd_job {
	struct ocsd_job *next;
	uint32_t job;
	uint64_t epoch;
	uid_t uid;
	const struct ocs_section *section; /* NULL: no longer described */
	struct ocsd_job_request request;
	struct ocsd_job_nodes nodes;
	int *cubes;
	int ncubes;
	struct ocsd_job_ports ports;
	struct ocsd_job_circuits circuits;
	struct ocsd_job_plan plan;
	struct ocsd_menu *menu; /* on rails, with a shape: topologies that it may have; or NULL */
	enum ocsd_job_state state; /* only jobs/job_state.c changes it */
	bool adopt_running;	   /* it ran when it was committed: realise it unasked */
	struct ocsd_farewell farewell;
	struct ocsd_repair repair;
	struct ocsd_prolog prolog;
	struct ocsd_job_failure failure;
};

/* A logical port. */
struct ocsd_port {
	struct ocsd_job *owner; /* holds it now */
	struct ocsd_job *next;	/* living; waits until OWNER's circuit is cut */
	bool foreign;		/* a patch that is not ours is on it */
	bool drained;		/* by an administrator */
	bool failed;		/* drained, and whatever is on it is dark */
	bool quarantine;	/* drained, until a self-test or somebody says it is good */
};

enum ocsd_switch_state { OCSD_STARTING, OCSD_UP, OCSD_SWITCH_FAILED };

enum ocsd_work { OCSD_IDLE, OCSD_READ, OCSD_APPLY, OCSD_TEST };

/* A self-test, for the worker. */
struct ocsd_test {
	struct ocs_patch patches[2];
	int npatches;	 /* made, measured, and cut; 0: only REMOVE */
	double limit[2]; /* dB that they may lose */
	struct ocs_patch remove[2];
	int nremove;
};

/* The batch of a switch that is prepared or on its way (switches/scheduler.h). */
struct ocsd_batch {
	struct ocsd_circuit **adding, **removing;
	size_t nadding, nremoving;
	int64_t sent_ns;
	bool split;   /* after a refusal: one job a batch */
	bool quick;   /* topologies of running jobs alone: nothing is audited, nor read before */
	int rejected; /* refusals in a row */
};

/* When the table of a switch is read. */
struct ocsd_poll {
	bool read_wanted;      /* at once */
	int64_t next_ns;       /* next poll or retry */
	int64_t heard_ns;      /* what it said wants it read then, 0: nothing */
	int64_t read_ns;       /* when it was last asked for */
	int64_t due_ns;	       /* when the poll was due that waits for a read-out; or 0 */
	int64_t late_until_ns; /* until then the switch may do what nobody waits for any
					 * more, INT64_MAX: it has not answered since */
	double last_read;      /* wall clock, 0: never */
};

/* What a switch said of itself, in the audit log (switches/notification.h). */
struct ocsd_notice {
	int64_t kept_ns; /* when ... */
	int kept;	 /* ... and how much lately */
};

/* Whether a switch may be used (switches/status.h, state/switch_state.h). */
struct ocsd_switch_status {
	enum ocsd_switch_state state;
	bool answers;	 /* not up yet, but its table was read */
	char *reason;	 /* why it failed */
	char *said;	 /* the reason in the last event of it, or NULL, */
	int64_t said_ns; /* and when that was sent, 0: never */
	bool drained;
	char *drain_reason;
};

/* The self-tests of a switch (ports/selftest.h). */
struct ocsd_switch_tests {
	struct ocsd_selftest *queue; /* waiting or under way, the first first */
	struct ocsd_test current;    /* under way if BUSY says so */
	bool over;		     /* this read-back ends a test: what it could not
				      * cut waits for the next */
};

struct ocsd_switch {
	const struct ocs_switch *description;
	int index;
	struct ocsd_switch_status status;
	struct ocsd_port *ports;       /* 1 .. 2 * size */
	struct ocsd_circuit **by_in;   /* 1 .. size: circuit with that ingress, */
	struct ocsd_circuit **leaving; /* and the one that goes in one batch with it, or NULL */
	struct ocsd_worker *worker;
	enum ocsd_work busy;
	bool prepared; /* BUSY, but not handed over yet */
	bool dirty;    /* circuits may have to be made or cut */
	struct ocsd_batch batch;
	struct ocsd_poll poll;
	struct ocsd_notice notice;
	bool reconciling;	  /* a reconcile waits for its read-back */
	struct ocs_health health; /* as read last; no port: never */
	int64_t *suspect_since;	  /* 1 .. size: since when no reading of the path
				   * from that ingress was good, 0: it is */
	struct ocsd_switch_tests selftest;
	size_t npatches; /* of the last read-back */
};

/* How a self-test ended; kept until those who wait for it are answered. */
struct ocsd_test_result {
	struct ocsd_test_result *next;
	uint64_t number; /* of d->replies.ntested */
	char *name;	 /* of the port */
	bool passed;
	char *text; /* what was measured, or what is wrong */
};

struct ocsd_drain {
	struct ocsd_drain *next;
	char *kind, *name, *reason;
};

struct ocsd_pending {
	struct ocsd_pending *next;
	uint32_t job;
	int64_t uid; /* -1: slurmctld does not say it */
	char *user, *shape, *reason;
	double since;
};

#define OCSD_NEVER_MAX 64
struct ocsd_pair {
	uint32_t job;
	uint64_t epoch;
};

/* Which slurmctld: its place in SlurmctldHost, and the last 63 bits of the boot id of its
 * machine (0: unknown).  Whoever moves one to another machine leaves its place as it is. */
struct ocsd_controller {
	int place;
	int64_t boot;
};

#define OCSD_LIMITED_USER_BUCKETS 256

/* Connections, and what is between a line and its operation (protocol/). */
struct ocsd_server {
	struct ocsd_client *clients;
	size_t nclients;
	size_t nlost;			 /* of them */
	int64_t quota_logged_ns;	 /* when it was logged that there are too many, 0: never */
	struct ocsd_quota *users;	 /* clients who are no administrators, */
	struct ocsd_quota *unidentified; /* and of whom nothing is known */
	int arrivals;			 /* clients since the last flush */
	struct ocsd_log_limit *log_limit;
	struct ocsd_limited_user
		*limited_users[OCSD_LIMITED_USER_BUCKETS]; /* users with clients, who are no
							 * administrators */
	struct ocsd_transaction *transactions;		   /* whose answers are due */
	struct ocsd_transaction *transaction;		   /* of the request at hand, or NULL, */
	const char *transaction_name;			   /* and its name if it has one */
	struct ocsd_auth *auth;
	struct ocs_key *key; /* of remote clients, NULL: MUNGE */
	uid_t *admins;
	size_t nadmins;
	struct evconnlistener *listeners[2];
	const struct ocsd_operation_entry *operations;
};

/* What slurmctld has said. */
struct ocsd_slurmctld {
	struct ocsd_pending *pending;
	struct json_object *nodes; /* as pushed, or NULL */
	uint64_t max_epoch;
	uint64_t term;			   /* the newest that a slurmctld was given, */
	struct ocsd_controller controller; /* and which one that was */
	struct json_object *yaml;	   /* which ocs.yaml that one has read, or NULL */
	uint32_t *unknown;		   /* running jobs that have to be committed again */
	size_t nunknown;
	/* The last allocations that ended without having been known here: their commit was
	 * refused. */
	struct ocsd_pair never[OCSD_NEVER_MAX];
	size_t nnever;
};

/* What is still to be said, and what it is made of. */
struct ocsd_replies {
	struct ocsd_pending_reply *first; /* that are due later */
	bool due;			  /* something has changed that one of them may wait for */
	struct json_object *events;	  /* posted, not yet among the lines of clients; or NULL */
	struct json_object *to_controllers; /* the same, for the controllers of their jobs */
	struct json_object *drift; /* for the reconcile requests that wait, NULL: none does */
	size_t nreconciles;
	struct ocsd_test_result *test_results; /* the last first */
	uint64_t ntested;		       /* self-tests that have ended */
};

/* The event loop. */
struct ocsd_loop {
	struct event_base *base;
	struct event *timer;
	struct event *pruner; /* of the audit log, while the loop turns */
	bool changes_due;     /* a transition may have a step to take, or a repair is asked for */
	int nleaving;	      /* rails that wait for routes (jobs/routes.h) */
};

/* How far this life of the daemon has come (main.c, degraded_mode.h). */
struct ocsd_life {
	bool ready; /* every switch answered or failed once */
	bool stopping, failed;
	bool reload;	       /* stopping in order to start over */
	const char *standby;   /* why everything is refused, or NULL */
	uint64_t store_losses; /* how often the database was lost */
	int ready_fd;	       /* tells the waiting parent, or -1 */
};

/* The file that describes the fabric, and what is wrong with it, or NULL. */
struct ocsd_yaml {
	const char *path;
	char *fault;
};

struct ocsd {
	struct ocs_config *config;
	const struct ocs_fabric *fabric; /* of config */
	struct ocsd_yaml yaml;
	struct ocs_placer **placers; /* one per section, made when needed */
	struct ocsd_loop loop;
	struct ocsd_life life;
	struct ocsd_store *store;
	double clock_offset; /* of the wall clock from the monotonic one, 0: not yet */
	struct ocsd_switch *switches;
	struct ocsd_results *results; /* from the workers */
	struct ocsd_job *jobs;
	struct ocsd_drain *drains;
	struct ocsd_server server;
	const char *socket;
	struct ocsd_slurmctld slurmctld;
	struct ocsd_replies replies;
	struct ocsd_counters counters;
	struct ocsd_http *metrics; /* answers collectors, or NULL */
	struct ocsd_heard *heard;  /* of each node of ocs.yaml; NULL: nothing */
};

#endif
