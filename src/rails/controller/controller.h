/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_RAILS_CONTROLLER_H
#define OCS_RAILS_CONTROLLER_H

/* The controller of a job on rails: agents of the nodes connect to it (src/rails/frames.h), it asks ocsd
 * for topologies (doc/protocol.md), and src/rails/coordinator.h decides.  One step of the job has the
 * circuits, from the first group that a rank of it names until its agents have gone; steps that begin
 * meanwhile run without gates. */

#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>

#include "src/rails/coordinator.h"
#include "src/rails/frames.h"
#include "src/rails/rendezvous.h"
#include "src/rails/table.h"
#include "src/util/error.h"

struct json_object;
struct ocs_client;
struct senders;

/* One agent, from its connection on. */
struct link {
	struct in6_addr from;
	int fd; /* -1: it is gone; its memory goes when events have been dealt with */
	bool proven;
	struct step *step; /* of its agent, once it is proven */
	bool writing;	   /* EPOLLOUT is asked for */
	bool dirty;	   /* there may be something to send */
	int sent;	   /* what became of that: as ocs_outbox_flush returns it */
	int64_t deadline;  /* of its hello */
	uint8_t nonce[OCS_FRAMES_NONCE];
	struct ocs_frame_hello hello;
	int *ranks;
	uint32_t gone; /* of them */
	struct ocs_inbox inbox;
	struct ocs_outbox outbox;
	struct link *next;
};

/* Which agents have ranks of a group that named it. */
struct step_group {
	struct link **links;
	int nlinks, room;
};

enum step_away {
	RANK_HERE,
	RANK_ENDED, /* it said goodbye */
	RANK_KILLED,
	RANK_NODE_LOST,
	RANK_TOLD, /* the others know */
};

struct step {
	uint32_t number, total;
	bool free;     /* another one has, or had, the circuits: it runs without gates to its end */
	uint32_t seen; /* ranks whose agents have come */
	struct link **by_rank;
	int *nodes;
	enum step_away *away; /* of each rank */
	int told;	      /* ranks that are away */
	bool stalled;	      /* a rank keeps others waiting, and they know */
	int64_t look_at;      /* whether one does */
	int nlinks;
	int64_t deadline; /* until which all have to be there, if it has the circuits */
	struct ocs_coordinator
		*coordinator; /* NULL: not all are there, or ocsd was not heard yet */
	struct ocs_rails_table groups;
	int32_t over; /* no step will come of it: error */
	struct step *next;
};

/* What ocsd is asked for one rail. */
struct rail_request {
	bool asked; /* by the coordinator, and not answered */
	bool sent;  /* to the ocsd of this connection */
	int64_t not_before;
	uint64_t epoch, seq; /* of the coordinator */
	uint64_t wire;	     /* seq of the protocol; 0: none drawn yet */
	int64_t id;	     /* of the line */
	char topology[OCS_RAILS_TOPOLOGY];
};

struct controller {
	struct ocs_rendezvous meet;
	char key[129]; /* the job's, for ocsd */
	const char *address, *user;
	int64_t timeout, drain, gather, stall; /* ns */
	int epoll, listener, stop;
	int parent; /* pidfd of the process with which this one ends, or -1 */
	bool syslog;
	int key_fd; /* of the key, which is the lock of this job's controllers, too */
	struct link *links;
	int nlinks, nunproven;
	int spare; /* descriptor */
	struct senders *senders;
	bool again;	     /* a link was lost: what follows is to be done before the next wait */
	struct step *step;   /* that has the circuits: a rank of it has named a group */
	struct step *others; /* FREE all of them while there is one that has the circuits */
	/* Of the job, as ocsd says: */
	bool known;
	struct ocs_rails_layout layout;
	int rails;
	bool provisioned;
	/* ocsd: */
	struct ocs_client *client;
	bool seeking, revoked;
	bool sought;	/* in vain, which is in the log */
	bool missing;	/* for so long that the job knows */
	int64_t absent; /* since when it is not there, or 0; */
	int64_t stood;	/* how long the coordinator's clock stood still for that so far */
	bool ever;	/* it was there before: topologies are asked for again */
	int64_t seek_at;
	pthread_t seeker;
	int found;
	struct ocs_client *arrived;	 /* of the thread, */
	struct json_object *description; /* with what the job is, */
	struct ocs_error missed;	 /* or why not */
	struct ocs_error err;
	uint64_t seq; /* drawn last */
	struct rail_request requests[OCS_RAILS_RAILS];
};

enum controller_event { EVENT_STOP, EVENT_LISTENER, EVENT_FOUND, EVENT_OCSD, EVENT_LINK };

/* Waits for EVENTS of FD; its event has KIND, or is LINK. */
int controller_watch(struct controller *controller, int fd, uint32_t events,
		     enum controller_event kind, struct link *link);

/* ---- links.c ---- */

void links_accept(struct controller *controller);
void link_read(struct controller *controller, struct link *link);
/* Sends what there is, frees those that are gone, closes those that never said hello. */
void links_flush(struct controller *controller);
void link_lose(struct controller *controller, struct link *link, const char *why);
/* Takes what it said after its hello, once its step has begun. */
void link_frames(struct controller *controller, struct link *link);
void links_free(struct controller *controller);

/* ---- senders.c ---- */

struct senders *senders_create(void);
void senders_destroy(struct senders *senders);
/* LINK has something to send, and a descriptor, until the next senders_run. */
void senders_add(struct senders *senders, struct link *link);
/* Sends what was added, with the help of other threads where that is much; sets SENT of each. */
void senders_run(struct senders *senders);

/* ---- faults.c ---- */

/* A fault: the step that has the circuits is told, and the log. */
void fault_tell(struct controller *controller, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* RANK is gone while an operation of GROUP was under way: those that are in it may end of an error of their own, and
 * never ask for circuits again.  One that said goodbye is not news. */
void fault_rank_killed(struct controller *controller, uint64_t group, int rank);
/* An operation of GROUP failed since ranks of it are gone: which ones, once each. */
void fault_rank_lost(struct controller *controller, uint64_t group);
void fault_ocsd_back(struct controller *controller);
/* Says what has lasted too long; to be called at faults_deadline at the latest. */
void faults_tick(struct controller *controller, int64_t now);
int64_t faults_deadline(const struct controller *controller);

/* ---- step.c ---- */

/* LINK has proven itself.  False: it contradicts what is known of its step. */
bool step_join(struct controller *controller, struct link *link);
void step_leave(struct controller *controller, struct link *link);
/* Gives STEP the circuits, which no step has; others that are there run without gates. */
void step_take(struct controller *controller, struct step *step);
/* Begins the step that has them, where all of it are there. */
void step_begin(struct controller *controller);
int step_frame(struct controller *controller, struct link *link, const struct ocs_frame *frame);
/* What an agent of a step without gates says. */
void step_free_frame(struct link *link, const struct ocs_frame *frame);
/* The coordinator's clock: it stands still while ocsd is away, for that is no fault of a switch; but
 * not longer than steps wait for their agents. */
int64_t step_now(const struct controller *controller);
/* Sends on what the coordinator wants, and looks at the clock. */
void step_outputs(struct controller *controller);
void step_tick(struct controller *controller, int64_t now);
int64_t step_deadline(const struct controller *controller);
void steps_free(struct controller *controller);

/* ---- ocsd.c ---- */

int ocsd_seek(struct controller *controller);
void ocsd_found(struct controller *controller);
void ocsd_read(struct controller *controller);
/* Asks for what is wanted and not asked for yet. */
void ocsd_flush(struct controller *controller, int64_t now);
int64_t ocsd_deadline(const struct controller *controller);
void ocsd_request(struct controller *controller, const struct ocs_coordinator_output *output);
/* No request of the step before counts any more. */
void ocsd_forget(struct controller *controller);
void ocsd_close(struct controller *controller);

#endif
