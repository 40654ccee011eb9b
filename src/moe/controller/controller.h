/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_MOE_CONTROLLER_H
#define OCS_MOE_CONTROLLER_H

/* The controller of a job with experts in a region: takes what gates say (job/ocs_moe_gate.h), decides by
 * src/moe/control.h, asks ocsd for circuits (doc/protocol.md, operation region), and tells rank 0 of a
 * group the plan of the all-to-all that it is about to begin (job/ocs_moe.h, ocs_moe_plan). */

#include <stdbool.h>
#include <stdint.h>

#include "src/moe/control.h"
#include "src/moe/controller/sockets.h"
#include "src/moe/job/ocs_moe_gate.h"
#include "src/place/region_circuits.h"
#include "src/rails/rendezvous.h"
#include "src/util/error.h"

struct json_object;
struct ocs_client;
struct ocs_text;

struct link;
struct pollfd;

#define CLOSED 16 /* steps that are remembered */

/* An expert-parallel group. */
struct group {
	struct controller *controller;
	int number;
	char **address;			  /* [servers * nics], "" where ocs.yaml has none */
	struct ocs_region_circuits stand; /* verified */
	uint32_t *id; /* [servers * nics] of the circuit that begins there, for ranks; 0: none */
	int *peer;    /* [servers * nics] at which it ends */
	struct sockets sockets;
	/* once a rank has said how many there are: */
	int ranks, each; /* each: of a server */
	struct ocs_moe_control *control;
	struct ocs_moe_step current; /* the all-to-all that ranks are in */
	bool open;
	struct ocs_moe_step closed[CLOSED]; /* the last ones before it */
	unsigned int nclosed;
	double begun;		  /* when its first rank said so; < 0: none has */
	struct ocs_moe_step seen; /* the last one that is over, for people, */
	double took;		  /* s, -1: not known */
	bool seen_new;		  /* ocsd was not told */
	int *ended;		  /* [servers] ranks that are over with it, */
	int over;		  /* and servers */
	/* the order under way: */
	long order;	 /* 0: none */
	bool sent;	 /* to the ocsd of this connection */
	int64_t id_sent; /* of the line */
	struct ocs_region_circuits target;
	struct ocs_moe_wire *cut;
	int ncut;
};

struct controller {
	/* of the job: */
	uint32_t job;
	uint64_t epoch;
	int servers, nics, ngroups;
	double packets; /* packet NICs of a server */
	double speed;	/* of a NIC, Mb/s */
	int *numa;	/* [nics] */
	int wish;	/* enum ocs_moe_wish */
	struct group *groups;
	/* of the command: */
	char *key;
	const char *address, *ocsd_key, *user;
	int layers, port;
	double token_bytes, timeout;
	double first, each; /* s that an exchange takes; first < 0: as region.json has it */
	/* ocsd: */
	struct ocs_client *client;
	double seek_at;
	bool revoked;
	int64_t seq;
	uint32_t last_id; /* of circuits */
	double report_at;
	int report_next; /* group */
	/* relays of other nodes: */
	struct ocs_rendezvous meet;
	int listener;	  /* -1: there are none */
	double listen_at; /* after it took no connection */
	struct link *links;
	int nlinks;
};

/* Seconds of a clock that never goes back. */
double controller_now(void);

/* ---- region.c ---- */

/* Reads what ocs-node wrote for the job.  0, or -1 with ERR. */
int region_read(struct controller *controller, const char *path, struct ocs_error *err);
void region_free(struct controller *controller);
/* "circuits" of ROW as in the protocol.  0, or -1 with ERR. */
int region_circuits_read(const struct controller *controller, struct json_object *row,
			 struct ocs_region_circuits *circuits, struct ocs_error *err);

/* ---- group.c ---- */

/* Tokens that a NIC carries in a second. */
double controller_rate(const struct controller *controller);
/* HEAD and COUNTS are what a rank said. */
void group_gate(struct group *group, const struct ocs_moe_gate_head *head, const int64_t *counts,
		double now);
/* Takes the datagrams that are there. */
void group_gates(struct group *group, double now);
/* Rank 0 asks for the plan of STEP, which is about to begin: those before are over. */
void group_ask(struct group *group, const struct ocs_moe_step *step, double now);
/* Orders of the control go to ocsd. */
void group_orders(struct group *group, double now);
/* The order is carried out; or nothing of it, or it is not known what. */
void group_done(struct group *group, double now);
void group_failed(struct group *group, bool nothing, double now);
/* The plan of STEP, asked for at SINCE, as text, empty where it is long overdue; false: it is still to come. */
bool group_answer(struct group *group, const struct ocs_moe_step *step, double since, double now,
		  struct ocs_text *text);
/* CIRCUITS stand: before the first all-to-all. */
void group_adopt(struct group *group, struct ocs_region_circuits *circuits);
void group_tick(struct group *group, double now);
void group_free(struct group *group);

/* ---- relays.c ---- */

/* At the ports of the job.  Where none is free, ranks of other nodes get no plans: a line says so. */
void relays_listen(struct controller *controller);
/* How many of POLLS it fills; at most RELAYS_POLLS. */
#define RELAYS_MAX 4096
#define RELAYS_POLLS (1 + RELAYS_MAX)
int relays_poll(struct controller *controller, struct pollfd *polls, double now);
/* Takes what has come in of what POLLS says. */
void relays_read(struct controller *controller, const struct pollfd *polls, double now);
/* Answers, sends, and forgets those that are gone. */
void relays_flush(struct controller *controller, double now);
void relays_free(struct controller *controller);

/* ---- relay.c ---- */

/* The same program on another node.  CONTROLLER has what region_read reads, MEET but for the secret, and TIMEOUT.
 * Returns on SIGTERM, 0, or -1 with ERR. */
int relay_run(struct controller *controller, const char *host, int node, const char *key,
	      const char *folder, struct ocs_error *err);

/* ---- main.c ---- */

/* SIGTERM and SIGINT end what runs, from now on. */
void stop_catch(void);
bool stop_wanted(void);

/* ---- report.c ---- */

/* group->current is over after TOOK s (-1: not known). */
void report_note(struct group *group, double took);
/* ocsd hears of it, at most once a second. */
void report_send(struct controller *controller, double now);

/* ---- ocsd.c ---- */

void ocsd_seek(struct controller *controller, double now);
void ocsd_read(struct controller *controller, double now);
/* Asks for the target of GROUP, if it was not sent yet. */
void ocsd_ask(struct group *group);

#endif
