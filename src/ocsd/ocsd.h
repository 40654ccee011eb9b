/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_OCSD_H
#define OCS_OCSD_OCSD_H

/* The daemon.  One thread (libevent) owns all state and the database; one
 * worker thread per switch does the talking.  After every pass of the loop
 * ocsd_settle() decides what the switches have to do, commits the database,
 * and only then lets replies and batches out: nothing is said or sent that a
 * crash could forget. */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "src/fabric/fabric.h"
#include "src/switch/switch.h"
#include "src/util/error.h"
#include "src/util/log.h"

struct event;
struct event_base;
struct ocs_key;
struct json_object;
struct ocs_placer;
struct ocs_plan;
struct ocs_plan_circuit;
struct ocsd;
struct ocsd_client;
struct ocsd_guest;
struct ocsd_metrics;
struct ocsd_store;
struct ocsd_transaction;
struct ocsd_worker;

enum ocsd_circuit_state {
	OCSD_PLANNED,	 /* committed; no node has asked yet */
	OCSD_CONNECTING, /* must come to be */
	OCSD_CONNECTED,	 /* seen in a read-back */
	OCSD_DELETING,	 /* must go */
	OCSD_BROKEN,	 /* lost, and a foreign patch is in the way */
	OCSD_GONE,	 /* seen gone, or never made */
};

struct ocsd_circuit {
	struct ocsd_job *job;
	int sw, a, b;		/* logical ports */
	bool directed;		/* only from A's transmitter to B's receiver */
	struct ocs_patch patches[2];
	int npatches;
	enum ocsd_circuit_state state;
	bool sent;		/* the switch may have it */
	bool lit;		/* its light was seen */
	int dark;		/* looks since then that did not see it */
	int64_t dark_since_ns;	/* the first of them */
	bool refused;		/* the switch will not cut it; tried again at every poll */
};

enum ocsd_job_state {
	OCSD_COMMITTED, OCSD_APPLYING, OCSD_REALISED, OCSD_FAILED, OCSD_ENDED,
};

/* One allocation: what (job, epoch) holds until its teardown is verified. */
struct ocsd_job {
	struct ocsd_job *next;
	uint32_t job;
	uint64_t epoch;
	uid_t uid;
	char *user, *partition, *shape, *conn;
	char *placement, *demand, *plan;	/* text or NULL */
	char *section_name;
	const struct ocs_section *section;	/* NULL: no longer described */
	char **nodes;
	size_t nnodes;
	bool *released;
	size_t nreleased;
	int *cubes;
	int ncubes;
	struct ocs_port *ports;			/* what it owns or waits for */
	size_t nports, nwaiting;
	struct ocsd_circuit **circuits;
	size_t ncircuits;
	enum ocsd_job_state state;
	bool ended;		/* left its allocation */
	bool gone;		/* no epilog will come any more */
	bool breaking;		/* its circuits are being cut */
	bool rolled_back;	/* failed before any node was told yes */
	bool wanted;		/* realise without a node asking: it is running */
	bool announced;		/* `released` was sent */
	bool dead;		/* to be freed at the next settle */
	struct json_object *plan_object;	/* the same, read; NULL: not yet */
	int revision;		/* of its plan, 0: none */
	int set;		/* its port set, in sections with look-ahead */
	bool prepared;		/* not committed: waits for its nodes (epoch 0) */
	char *repair;		/* why its plan has to be repaired, or NULL */
	bool lost;		/* a circuit is gone for good: repair or fail */
	bool mending;		/* circuits of a repair are on their way */
	int changed;		/* circuits of the last repair */
	int64_t started_ns;	/* its circuits were first asked for, 0: not yet */
	struct json_object **hosts;	/* forwarding: the MACs that each node told, or
					 * NULL; the array too */
	size_t nhosts;			/* nodes that have */
	char *failed_switch, *failed_host;
	char *error;		/* why it failed; realised: why it is degraded */
};

/* A logical port. */
struct ocsd_port {
	struct ocsd_job *owner;	/* holds it now */
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
	int npatches;		/* made, measured, and cut; 0: only REMOVE */
	double limit[2];	/* dB that they may lose */
	struct ocs_patch remove[2];
	int nremove;
};

struct ocsd_switch {
	const struct ocs_switch *description;
	int index;
	enum ocsd_switch_state state;
	char *reason;			/* why it failed */
	bool drained;
	char *drain_reason;
	struct ocsd_port *ports;	/* 1 .. 2 * size */
	struct ocsd_circuit **by_in;	/* 1 .. size: circuit with that ingress */
	struct ocsd_worker *worker;
	enum ocsd_work busy;
	bool prepared;			/* BUSY, but not handed over yet */
	bool dirty;			/* circuits may have to be made or cut */
	bool answers;			/* not up yet, but its table was read */
	struct ocsd_circuit **adding, **removing; /* of the batch on its way */
	size_t nadding, nremoving;
	bool split;			/* after a refusal: one job a batch */
	int rejected;			/* refusals here in a row */
	bool read_wanted;
	bool reconciling;		/* a reconcile waits for its read-back */
	int64_t next_ns;		/* next poll or retry */
	int64_t heard_ns;		/* what it said wants it read then, 0: nothing */
	int64_t read_ns;		/* when its table was last asked for */
	int64_t kept_ns;		/* what it said, in the audit log: when ... */
	int kept;			/* ... and how much lately */
	int64_t sent_ns;		/* the batch on its way */
	double last_read;		/* wall clock, 0: never */
	struct ocs_health health;	/* as read last; no port: never */
	int64_t *doubts;		/* 1 .. size: since when no reading of the path
					 * from that ingress was good, 0: it is */
	struct ocsd_selftest *tests;	/* waiting or under way, the first first */
	struct ocsd_test test;		/* under way if BUSY says so */
	bool tested;			/* this read-back ends a test: what it could not
					 * cut waits for the next */
	size_t ncircuits;		/* patches of the last read-back */
};

enum ocsd_wait {
	OCSD_WAIT_APPLY, OCSD_WAIT_RELEASE, OCSD_WAIT_RECONCILE, OCSD_WAIT_TEST,
};

/* A request whose answer is due later. */
struct ocsd_waiter {
	struct ocsd_waiter *next;
	enum ocsd_wait kind;
	struct ocsd_client *client;
	int64_t id;
	uint32_t job;
	uint64_t epoch;
	struct ocsd_job *allocation;	/* NULL: not committed yet */
	char *node;
	bool meets;			/* apply: the MACs of all hosts are wanted */
	int64_t after;			/* apply: a plan of a later revision is wanted */
	int64_t deadline_ns;		/* while not committed */
	struct json_object *drift;	/* reconcile */
};

struct ocsd_drain {
	struct ocsd_drain *next;
	char *kind, *name, *reason;
};

struct ocsd_pending {
	struct ocsd_pending *next;
	uint32_t job;
	char *user, *shape, *reason;
	double since;
};

struct ocsd {
	struct ocs_fabric *fabric;
	struct ocs_placer **placers;	/* one per section, made when needed */
	struct event_base *base;
	struct event *timer;
	struct ocsd_store *store;
	struct ocsd_switch *switches;
	struct ocsd_results *results;	/* from the workers */
	struct ocsd_job *jobs;
	struct ocsd_waiter *waiters;
	struct ocsd_drain *drains;
	struct ocsd_pending *pending;
	struct json_object *nodes;	/* as pushed, or NULL */
	struct ocsd_client *clients;
	size_t nclients;
	struct ocsd_guest *guests;	/* users with clients, who are no administrators */
	struct ocsd_transaction *transactions;	/* whose answers are due */
	struct ocsd_transaction *transaction;	/* of the request at hand, or NULL */
	struct ocsd_auth *auth;
	struct ocs_key *key;		/* of remote clients, NULL: MUNGE */
	struct ocsd_metrics *metrics;
	uid_t *admins;
	size_t nadmins;
	uint64_t max_epoch;
	uint64_t term;		/* the newest that a slurmctld was given */
	uint32_t *unknown;		/* running jobs that have to be committed again */
	size_t nunknown;
	struct evconnlistener *listeners[2];
	bool ready;			/* every switch answered or failed once */
	bool stopping, failed;
	bool reload;			/* stopping in order to start over */
	const char *standby;		/* why everything is refused, or NULL */
	double clock_offset;		/* of the wall clock from the monotonic one, 0: not yet */
	uint64_t store_losses;		/* how often the database was lost */
	int ready_fd;			/* tells the waiting parent, or -1 */
	const char *socket;
};

/* ---- server.c: clients and their lines; after a remote hello each is sealed ---- */
int ocsd_server_listen(struct ocsd *d, struct ocs_error *err);
void ocsd_server_close(struct ocsd *d);
/* Adds "id" and "ok", queues the line and puts REPLY (NULL: nothing to add). */
void ocsd_reply(struct ocsd_client *client, int64_t id, struct json_object *reply);
/* The same for a refusal with CODE and a sentence; EXTRA (put here) may be NULL. */
void ocsd_refuse(struct ocsd_client *client, int64_t id, int code,
		 struct json_object *extra, const char *format, ...)
	__attribute__((format(printf, 5, 6)));
/* Queues REPLY, which says all but the id, and puts it. */
void ocsd_answer(struct ocsd *d, struct ocsd_client *client, int64_t id,
		 struct json_object *reply);
/* To all subscribers; puts EVENT. */
void ocsd_event_send(struct ocsd *d, struct json_object *event);
/* Lets queued lines out (after the database commit). */
void ocsd_server_flush(struct ocsd *d);
uid_t ocsd_client_uid(const struct ocsd_client *client);
void ocsd_client_subscribe(struct ocsd_client *client);
bool ocsd_admin(const struct ocsd *d, uid_t uid);
bool ocsd_subscribed(const struct ocsd *d);
/* The newest term of a slurmctld that is connected, 0: none is. */
uint64_t ocsd_term_newest(const struct ocsd *d);
/* CLIENT is the slurmctld of TERM: those of older terms are dropped. */
void ocsd_term_set(struct ocsd_client *client, uint64_t term);

/* ---- limit.c: how much those who are no administrators may ask ---- */
/* One more client of UID; NULL: it may ask what it likes.  ocsd_guest_leave. */
struct ocsd_guest *ocsd_guest_enter(struct ocsd *d, uid_t uid);
void ocsd_guest_leave(struct ocsd_guest *guest);
/* How many connections more than it may have; 0 or less: none. */
int ocsd_guest_surplus(const struct ocsd *d, const struct ocsd_guest *guest);
/* 0: the next request may be done, and is counted; else when to try again, in ms. */
int ocsd_guest_wait_ms(struct ocsd *d, struct ocsd_guest *guest);
void ocsd_guests_free(struct ocsd *d);

/* ---- auth.c: MUNGE credentials, decoded in a thread of their own ---- */
typedef void (*ocsd_auth_done)(struct ocsd *d, uint64_t serial, const char *payload,
			       uid_t uid, const char *error);
struct ocsd_auth *ocsd_auth_start(struct ocsd *d, ocsd_auth_done done,
				  struct ocs_error *err);
void ocsd_auth_ask(struct ocsd_auth *auth, uint64_t serial, const char *credential);
void ocsd_auth_stop(struct ocsd_auth *auth);

/* ---- request.c, commit.c, drain.c, show.c: operations ---- */
typedef void (*ocsd_operation)(struct ocsd *d, struct ocsd_client *client, int64_t id,
			       struct json_object *request);
void ocsd_request(struct ocsd *d, struct ocsd_client *client,
		  struct json_object *request);
/* Forgets what slurmctld said of waiting jobs. */
void ocsd_pending_clear(struct ocsd *d);
void ocsd_op_commit(struct ocsd *d, struct ocsd_client *client, int64_t id,
		    struct json_object *request);
/* What REQUEST says about an allocation (not entered; ocsd_job_free), and whether
 * something it needs is drained; NULL or -1 with ERR. */
struct ocsd_job *ocsd_commit_read(struct ocsd *d, struct json_object *request,
				  uint32_t number, uint64_t epoch, struct ocs_error *err);
int ocsd_commit_drained(struct ocsd *d, const struct ocsd_job *job, struct ocs_error *err);
void ocsd_op_subscribe(struct ocsd *d, struct ocsd_client *client, int64_t id,
		       struct json_object *request);
void ocsd_op_drain(struct ocsd *d, struct ocsd_client *client, int64_t id,
		   struct json_object *request);
void ocsd_op_resume(struct ocsd *d, struct ocsd_client *client, int64_t id,
		    struct json_object *request);
void ocsd_op_fail(struct ocsd *d, struct ocsd_client *client, int64_t id,
		  struct json_object *request);
void ocsd_op_show(struct ocsd *d, struct ocsd_client *client, int64_t id,
		  struct json_object *request);
/* Members of REQUEST: 0, or -1 after having refused it. */
int ocsd_member_job(struct ocsd_client *client, int64_t id,
		    struct json_object *request, uint32_t *job, uint64_t *epoch);
/* A string member, or NULL. */
const char *ocsd_member(struct json_object *request, const char *name);

/* ---- transaction.c: requests that expect a revision, or carry an id ---- */
/* Whether REQUEST may be done: false if it was refused, or answered as it was before.
 * TELLS: its answer has the revision even if the request says nothing of one. */
bool ocsd_transaction_begin(struct ocsd *d, struct ocsd_client *client, int64_t id,
			    struct json_object *request, bool tells);
/* REQUEST was handled; its answer may be due later. */
void ocsd_transaction_end(struct ocsd *d);
/* CLIENT's request ID gets REPLY, which receives what transactions add, and is kept. */
void ocsd_transaction_answer(struct ocsd *d, const struct ocsd_client *client, int64_t id,
			     struct json_object *reply);
/* Answers to CLIENT are not due any more. */
void ocsd_transactions_lost(struct ocsd *d, const struct ocsd_client *client);
/* The id of the request at hand, or NULL. */
const char *ocsd_transaction_name(const struct ocsd *d);

/* ---- drain.c ---- */
/* Puts a drain into memory (REASON NULL: takes it away). */
void ocsd_drain_set(struct ocsd *d, const char *kind, const char *name,
		    const char *reason);
const struct ocsd_drain *ocsd_drain_find(const struct ocsd *d, const char *kind,
					 const char *name);
/* A port carries no light any more: drained, and circuits of a running job on a
 * direct fabric move off it.  WHO asked (NULL: ocsd itself). */
void ocsd_port_fail(struct ocsd *d, struct ocsd_client *who, struct ocs_port where,
		    const char *reason);
/* All drains and quarantined ports, for subscribe and show. */
struct json_object *ocsd_drains_json(struct ocsd *d);
/* Takes a drain away, in memory and in the database, and announces it. */
void ocsd_resume(struct ocsd *d, const char *kind, const char *name, uid_t who);
void ocsd_drain_event(struct ocsd *d, const char *kind, const char *name,
		      const char *reason, bool drained);

/* ---- job.c: allocations ---- */
struct ocsd_job *ocsd_job_find(struct ocsd *d, uint32_t job, uint64_t epoch);
/* The newest allocation of a job, or NULL. */
struct ocsd_job *ocsd_job_newest(struct ocsd *d, uint32_t job);
void ocsd_job_free(struct ocsd_job *job);
int ocsd_job_node(const struct ocsd_job *job, const char *name);
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

/* ---- wait.c: answers that are due later ---- */
struct ocsd_waiter *ocsd_wait_add(struct ocsd *d, struct ocsd_client *client,
				  int64_t id, enum ocsd_wait kind,
				  struct ocsd_job *job, const char *node);
void ocsd_wait_client_lost(struct ocsd *d, struct ocsd_client *client);
bool ocsd_wait_applies(const struct ocsd *d, const struct ocsd_job *job);
/* Binds the waiters of a job that was not committed when they asked. */
void ocsd_wait_bind(struct ocsd *d, struct ocsd_job *job);
/* Answers the applies of JOB that its plan satisfies: success. */
void ocsd_wait_realised(struct ocsd *d, struct ocsd_job *job);
/* Answers the applies of JOB with gone. */
void ocsd_wait_gone(struct ocsd *d, struct ocsd_job *job);
/* Answers the releases of JOB: nothing of it is left on a working switch. */
void ocsd_wait_released(struct ocsd *d, struct ocsd_job *job);
/* Answers those who wait for the self-test of port NAME: with REPLY (put here), or
 * with WRONG. */
void ocsd_wait_tested(struct ocsd *d, const char *name, struct json_object *reply,
		      const char *wrong);
/* Answers those whose commit did not arrive in time. */
void ocsd_wait_expire(struct ocsd *d, int64_t now_ns);
struct json_object *ocsd_gone_extra(const struct ocsd_job *job);

/* ---- realise.c: from intent to batches and back ---- */
void ocsd_realise_start(struct ocsd *d, struct ocsd_job *job);
void ocsd_realise_abandon(struct ocsd *d, struct ocsd_job *job);
/* Puts CIRCUIT into STATE in memory (the caller tells the store). */
void ocsd_circuit_set(struct ocsd *d, struct ocsd_circuit *circuit,
		      enum ocsd_circuit_state state);
/* APPLYING becomes REALISED when every circuit was seen. */
void ocsd_realise_check(struct ocsd *d, struct ocsd_job *job);
/* Sends what a repair has planned for the running JOB, once everything that it cuts
 * is gone.  Returns 0, or -1: not yet, or not possible (then JOB has failed). */
int ocsd_realise_more(struct ocsd *d, struct ocsd_job *job);

/* ---- loop.c: switches from one state to the next ---- */
void ocsd_settle(struct ocsd *d);
void ocsd_switch_result(struct ocsd *d, struct ocsd_switch *sw, int result,
			const struct ocs_table *table, const struct ocs_error *err);

void ocsd_switch_event(struct ocsd *d, const struct ocsd_switch *sw);
const char *ocsd_switch_state_name(const struct ocsd_switch *sw);

/* ---- notice.c ---- */
/* SW said TEXT without being asked, or (NULL) closed its idle connection. */
void ocsd_switch_heard(struct ocsd *d, struct ocsd_switch *sw, const char *text);

/* ---- examine.c: what a read-back means ---- */
void ocsd_examine(struct ocsd *d, struct ocsd_switch *sw, const struct ocs_table *table);
/* Whether all patches of CIRCUIT are in TABLE. */
bool ocsd_circuit_seen(const struct ocsd_circuit *circuit,
		       const struct ocs_table *table);

/* Tells the waiting reconcile requests, if SW's read-back is for them. */
void ocsd_drift(struct ocsd *d, const struct ocsd_switch *sw, int in, int out,
		const char *what);

/* ---- quarantine.c: ports that are out of service until somebody looked ---- */
/* How the reasons of these drains begin. */
#define OCSD_QUARANTINE "quarantine: "
/* And so of one that does not carry light any more. */
#define OCSD_PORT_FAILED "failed: "
/* Drains PORT of SW because of WHY, unless it is drained already. */
void ocsd_port_quarantine(struct ocsd *d, const struct ocsd_switch *sw, int port,
			  const char *why);
/* The logical port of an ingress or egress. */
int ocsd_port_logical(const struct ocsd_switch *sw, int fibre);
/* The switch refused patches: their ports go to quarantine. */
void ocsd_port_refused(struct ocsd *d, const struct ocsd_switch *sw,
		       const struct ocs_refusal *refusals, size_t count, const char *reply);

/* ---- broken.c: circuits that fail under running jobs ---- */
/* %s: a switch, %s: what it did. */
#define OCSD_SWITCH_SILENT "switch %s failed: %s; whether its circuits still carry light is not known"
/* A circuit of the running JOB is lost or dark and no plan can do without it; SW may be
 * NULL.  No-op for jobs that do not run or were told before. */
void ocsd_job_broken(struct ocsd *d, struct ocsd_job *job, const struct ocsd_switch *sw,
		     const char *why);
/* The same for the job that uses port WHERE; on direct fabrics its plan is repaired. */
void ocsd_port_broken(struct ocsd *d, struct ocs_port where, const char *why);
/* Tells that JOB (NULL: no-op) has all of its circuits again, if it has. */
void ocsd_broken_check(struct ocsd *d, struct ocsd_job *job);
/* Circuits of SW that could not be restored get another chance. */
void ocsd_broken_retry(struct ocsd *d, struct ocsd_switch *sw);
/* SW does not answer because of WHY, or (NULL) does again: tells of the running jobs
 * with circuits on it. */
void ocsd_broken_switch(struct ocsd *d, const struct ocsd_switch *sw, const char *why);
/* Says again, to a new subscriber, what is broken. */
void ocsd_broken_tell(struct ocsd *d);

/* Less is no light. */
#define OCSD_DARK_DBM (-50.0)
/* ---- power.c: optical power and what it says of paths ---- */
/* Takes over HEALTH: baselines for new paths, doubts and quarantine for bad ones. */
void ocsd_power_read(struct ocsd *d, struct ocsd_switch *sw, struct ocs_health *health);
/* The most dB that the path IN>OUT may lose; INFINITY: any. */
double ocsd_power_limit(struct ocsd *d, const struct ocsd_switch *sw, int in, int out);
/* Members of a port for show: power, status, loss and baseline. */
void ocsd_power_show(struct ocsd *d, const struct ocsd_switch *sw, int port,
		      struct json_object *row);

/* ---- selftest.c: a port in quarantine on a spare loop port ---- */
/* Whether the drain NAME of a port of SW ends only with a self-test. */
bool ocsd_selftest_needed(struct ocsd *d, const struct ocsd_switch *sw, int port);
/* Queues the test of PORT for CLIENT, who gets the answer to ID; or refuses. */
void ocsd_selftest_start(struct ocsd *d, struct ocsd_switch *sw, int port,
			 struct ocsd_client *client, int64_t id);
/* A patch on a loop port that no test knows: left by an ocsd that ended. */
void ocsd_selftest_leftover(struct ocsd_switch *sw, int in, int out);
/* The next test of SW into TEST; false: there is none. */
bool ocsd_selftest_next(struct ocsd *d, struct ocsd_switch *sw, struct ocsd_test *test);
/* Its end; TEXT: what was measured, or what is wrong. */
void ocsd_selftest_done(struct ocsd *d, struct ocsd_switch *sw, int result,
			const char *text);
void ocsd_selftests_free(struct ocsd_switch *sw);

/* ---- standby.c: while the database cannot be used ---- */
/* Refuses whatever is asked with the sentence d->standby and tries the database in
 * FOLDER, first after DELAY_MS, until it can be opened and has room, or a signal ends the
 * daemon (d->stopping).  D needs its fabric, switches and administrators. */
void ocsd_standby(struct ocsd *d, const char *folder, int delay_ms);

/* ---- main.c ---- */
/* The sockets are open: tells systemd and the parent. */
void ocsd_ready(struct ocsd *d);

/* ---- direct.c ---- */
/* The switch port of interface INTERFACE of the SERVER-th node of JOB; -1 with ERR. */
int ocsd_direct_port(struct ocsd *d, const struct ocsd_job *job, int server, int interface,
		     struct ocs_port *port, struct ocs_error *err);
/* Makes the plan of a job in a direct section and its circuits. */
int ocsd_direct_plan(struct ocsd *d, struct ocsd_job *job, struct ocs_error *err);
/* Whether JOB can be planned without the ports that are out of service; -1 with ERR
 * (OCS_NOT_NOW) names one of them. */
int ocsd_direct_possible(struct ocsd *d, const struct ocsd_job *job, struct ocs_error *err);
/* A plan for JOB without the interfaces of FAILED (per server a mask, or NULL).
 * ocs_plan_destroy, or NULL with ERR. */
struct ocs_plan *ocsd_direct_make(struct ocsd *d, const struct ocsd_job *job,
				  const uint64_t *failed, struct ocs_error *err);
/* JOB's plan for a reply (the caller's reference), NULL if it has none. */
struct json_object *ocsd_direct_plan_json(struct ocsd_job *job);
/* PLAN is JOB's from now on (its text; the caller tells the store). */
void ocsd_direct_keep(struct ocsd_job *job, const struct ocs_plan *plan);
/* The switch ports of a circuit of JOB's plan, both on one switch; -1 with ERR. */
int ocsd_direct_ports(struct ocsd *d, const struct ocsd_job *job,
		      const struct ocs_plan_circuit *circuit, struct ocs_port *a,
		      struct ocs_port *b, struct ocs_error *err);
/* Adds to the masks of JOB's servers the interfaces whose ports have failed (or
 * carry a patch that is not ours), and those that are drained; both masks may be
 * the same array. */
void ocsd_direct_unusable(struct ocsd *d, const struct ocsd_job *job, uint64_t *failed,
			  uint64_t *drained);

/* ---- health.c: ports that go dark under running jobs of direct sections ---- */
/* What a poll told (empty: nothing). */
void ocsd_health_look(struct ocsd *d, struct ocsd_switch *sw, const struct ocs_health *health);

/* ---- forward.c: hosts that forward for each other ---- */
/* Whether the hosts of JOB forward. */
bool ocsd_forward_wanted(const struct ocsd_job *job);
/* Takes the members macs and forward_macs of NODE's REQUEST.  0, or -1 with ERR. */
int ocsd_forward_announce(struct ocsd_job *job, const char *node, struct json_object *request,
			  struct ocs_error *err);
/* Whether every node has told its MACs, and what they told. */
bool ocsd_forward_met(const struct ocsd_job *job);
struct json_object *ocsd_forward_hosts(const struct ocsd_job *job);
void ocsd_forward_free(struct ocsd_job *job);
/* A host cannot do its part: the job fails. */
void ocsd_op_unable(struct ocsd *d, struct ocsd_client *client, int64_t id,
		    struct json_object *request);

/* ---- ahead.c: the next job's circuits behind 1x2 switches ---- */
/* Whether JOB's section has two port sets. */
bool ocsd_ahead_has(const struct ocsd_job *job);
/* Whether CIRCUIT is a position of a 1x2 switch. */
bool ocsd_ahead_circuit(struct ocsd *d, const struct ocsd_circuit *circuit);
/* Chooses the port set of a new job; finds it out for one of the database. */
void ocsd_ahead_choose(struct ocsd *d, struct ocsd_job *job);
void ocsd_ahead_recall(struct ocsd *d, struct ocsd_job *job);
/* Adds the positions of the 1x2 switches to JOB's circuits; -1 with ERR. */
int ocsd_ahead_circuits(struct ocsd *d, struct ocsd_job *job, struct ocs_error *err);
/* The position that the job in line wants of the 1x2 switch whose position CIRCUIT is
 * to go, so that both are one batch; or NULL. */
struct ocsd_circuit *ocsd_ahead_successor(struct ocsd *d, const struct ocsd_circuit *circuit);
/* GONE has left its 1x2 switch: who was sent there meanwhile is entered. */
void ocsd_ahead_inherit(struct ocsd *d, const struct ocsd_circuit *gone);
/* A prepared job that will not come stands in line no longer. */
void ocsd_ahead_leave_line(struct ocsd *d, struct ocsd_job *job);
/* Prepared jobs give up what the committed JOB needs. */
void ocsd_ahead_give_way(struct ocsd *d, const struct ocsd_job *job);
/* Plans a prepared job and makes what its own ports allow. */
void ocsd_ahead_start(struct ocsd *d, struct ocsd_job *job);
/* The prepared job that JOB (read from a commit, not entered) continues, made an
 * ordinary one; NULL if there is none.  JOB stays the caller's. */
struct ocsd_job *ocsd_ahead_adopt(struct ocsd *d, struct ocsd_job *job);
void ocsd_op_prepare(struct ocsd *d, struct ocsd_client *client, int64_t id,
		     struct json_object *request);

/* ---- repair.c: ports that fail under running jobs of direct sections ---- */
/* JOB's plan must do without a port.  WHY: a clause for the log.  LOST: a circuit is
 * cut and cannot be made again, so the job fails unless it is repaired; otherwise
 * it keeps what it has and is called degraded.  Done at the next settle; other
 * kinds of jobs (NULL too) are left alone. */
void ocsd_repair_want(struct ocsd *d, struct ocsd_job *job, const char *why, bool lost);
/* Takes the steps that are due. */
void ocsd_repair_progress(struct ocsd *d, struct ocsd_job *job);

/* ---- worker.c ---- */
int ocsd_workers_start(struct ocsd *d, struct ocs_error *err);
void ocsd_workers_stop(struct ocsd *d);
/* Hands work over; a read asks for the health of the ports too.  The arrays become
 * the worker's.  Only when sw->busy is idle. */
void ocsd_worker_read(struct ocsd *d, struct ocsd_switch *sw);
void ocsd_worker_test(struct ocsd *d, struct ocsd_switch *sw, const struct ocsd_test *test);
void ocsd_worker_apply(struct ocsd *d, struct ocsd_switch *sw,
		       struct ocs_patch *remove, size_t nremove,
		       struct ocs_patch *add, size_t nadd);

/* ---- store.c, open.c: SQLite, the single home of state.  From the first write or read
 * that fails on the store is lost: nothing more is written or read, and what is in
 * memory must be thrown away (nothing may be sent that is not in the journal). ---- */
/* The database in FOLDER; waits PATIENCE_MS for others who hold it.  One that is not
 * certainly whole and ours is refused with what to do, and not touched. */
struct ocsd_store *ocsd_store_open(const char *folder, int patience_ms, struct ocs_error *err);
void ocsd_store_close(struct ocsd_store *store);
/* Why the store is lost, a sentence; or NULL. */
const char *ocsd_store_lost(const struct ocsd_store *store);
void ocsd_store_commit(struct ocsd_store *store);	/* ends the open transaction */
int ocsd_store_load(struct ocsd *d, struct ocs_error *err);
void ocsd_store_job_add(struct ocsd *d, const struct ocsd_job *job);
void ocsd_store_job_update(struct ocsd *d, const struct ocsd_job *job);
void ocsd_store_job_remove(struct ocsd *d, const struct ocsd_job *job);
void ocsd_store_circuit_add(struct ocsd *d, const struct ocsd_circuit *circuit);
void ocsd_store_circuit(struct ocsd *d, const struct ocsd_circuit *circuit);
/* All circuits of JOB (on SW unless NULL) in state FROM are now in state TO. */
void ocsd_store_circuits(struct ocsd *d, const struct ocsd_job *job,
			 const struct ocsd_switch *sw, enum ocsd_circuit_state from,
			 enum ocsd_circuit_state to);
void ocsd_store_release(struct ocsd *d, const struct ocsd_job *job, const char *node);
void ocsd_store_drain(struct ocsd *d, const char *kind, const char *name,
		      const char *reason, uid_t who);
void ocsd_store_max_epoch(struct ocsd *d);
/* How often allocations, circuits, releases and drains were written since the database
 * was made. */
int64_t ocsd_store_revision(const struct ocsd *d);
/* The transaction NAME: what it ASKED, and the ANSWER if there was one (the caller frees
 * both); false if it is not known. */
bool ocsd_store_transaction_find(struct ocsd *d, const char *name, char **asked, char **answer);
void ocsd_store_transaction_add(struct ocsd *d, const char *name, const char *asked);
void ocsd_store_transaction_answer(struct ocsd *d, const char *name, const char *answer);
/* Forgets those that are old. */
void ocsd_store_transaction_trim(struct ocsd_store *store);
/* The newest epoch of JOB whose teardown is finished, 0: none known. */
uint64_t ocsd_store_last_epoch(struct ocsd *d, uint32_t job);
/* The loss of the path IN>OUT that was stored first, NAN: none. */
double ocsd_store_baseline(struct ocsd *d, const struct ocsd_switch *sw, int in, int out);
void ocsd_store_baseline_add(struct ocsd *d, const struct ocsd_switch *sw, int in, int out,
			     double loss);
/* One row of the audit log; any text may be NULL. */
struct ocsd_audit {
	const struct ocsd_client *who;	/* NULL: ocsd itself */
	const struct ocsd_job *job;
	const struct ocsd_switch *sw;
	const char *what, *before, *after, *reply;
	const char *transaction;	/* NULL: that of the request at hand */
};
void ocsd_audit(struct ocsd *d, const struct ocsd_audit *row);

/* ---- history.c ---- */
/* The LAST events (0: as many as usual) of the switch NAME, the newest last. */
struct json_object *ocsd_history(struct ocsd *d, const char *name, int64_t last);

/* ---- audit.c ---- */
/* Forgets rows older than ocsd.audit_days, now and from time to time; event_free the
 * result. */
struct event *ocsd_audit_prune(struct ocsd *d);

/* ---- clock.c ---- */
/* For what is shown; nothing waits by it. */
double ocsd_wall_clock(void);
/* Says in the log, and in the audit log, that the wall clock was set. */
void ocsd_clock_watch(struct ocsd *d);

#endif
