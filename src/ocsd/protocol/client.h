/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_PROTOCOL_CLIENT_H
#define OCS_OCSD_PROTOCOL_CLIENT_H

/* A connection to ocsd, for those who read its lines. */

#include "src/ocsd/state/ocsd.h"

#include "src/util/secret.h"

#include <sys/queue.h>

struct bufferevent;
struct evbuffer;
struct event;
struct json_object;

#define OCSD_CHALLENGE_BYTES 16
#define OCSD_PEER_NAME 64

struct ocsd_client {
	struct ocsd_client *next, **link; /* LINK points here */
	struct ocsd *d;
	struct bufferevent *stream;
	struct evbuffer *held; /* lines that wait for the database */
	uint64_t serial;
	uid_t uid;
	char peer[OCSD_PEER_NAME];     /* "address A" or, once it is known, "uid U" */
	bool known;		       /* uid is proven */
	bool asked;		       /* its credential is being decoded */
	int tries;		       /* hellos that were refused */
	struct event *handshake_timer; /* until it has to be known; NULL: it is */
	bool subscribed;
	uint64_t term;			   /* of a slurmctld, 0: somebody else */
	struct ocsd_controller controller; /* which of them it is */
	uint32_t controls;		   /* the job whose controller it is, 0: of none, */
	uint64_t controls_epoch;	   /* and its epoch */
	bool replaced;			   /* another client has taken its place there */
	bool lost;			   /* to be freed at the next flush, */
	bool dismissed;			   /* which tries to send what is queued */
	struct ocsd_limited_user
		*limited_user;	  /* whose tokens it spends; NULL: an administrator's */
	struct ocsd_quota *quota; /* where it is, with its party; NULL: it is an */
	struct ocsd_party *party; /* administrator's */
	TAILQ_ENTRY(ocsd_client) in_party;
	bool surplus; /* one connection too many: one answer, and it ends */
	bool paused;  /* not listened to for a while */
	struct event *resume;
	int64_t hello_id;
	char challenge[2 * OCSD_CHALLENGE_BYTES + 1];
	struct ocs_seal seal; /* remote, once it is known */
};

/* CLIENT is UID.  Who has far too many connections is not even answered. */
void ocsd_client_know(struct ocsd_client *client, uid_t uid);
/* CLIENT is heard no more; it goes when it has been told what it was answered. */
void ocsd_client_finish(struct ocsd_client *client);
/* CLIENT is freed at the next flush. */
void ocsd_client_lose(struct ocsd_client *client);
/* The same, but what its socket takes of EVENT (put here) reaches it. */
void ocsd_client_dismiss(struct ocsd_client *client, struct json_object *event);

/* Queues a line for CLIENT, unless it is lost, and puts LINE. */
void ocsd_client_line(struct ocsd_client *client, struct json_object *line);

#endif
