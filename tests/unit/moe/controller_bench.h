/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_TEST_CONTROLLER_BENCH_H
#define OCS_TEST_CONTROLLER_BENCH_H

/* ocs-moe-controller, and relays to it, in front of a real ocsd and emulated switches: a job of two groups of four
 * servers with two optical NICs.  What fails here ends the test. */

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "src/moe/job/ocs_moe_gate.h"
#include "tests/unit/ocsd/ocsd_rig.h"

#define SERVERS 4
#define NICS 2
#define GROUPS 2

struct bench {
	struct rig *rig;
	pid_t controller, relay;
	int parent;	       /* pidfd for --parent-fd of the controller, or 0 */
	unsigned int pause_us; /* for an all-to-all */
	struct ocs_moe_gate *gate[GROUPS][SERVERS];
	FILE *plan[GROUPS];
};

int bench_setup(void **state);
/* File NAME of the rig's folder; the caller frees it. */
char *bench_path(const struct bench *b, const char *name);
/* --ports of this run. */
const char *bench_ports(void);
void process_end(pid_t child, int number);

/* Commits the job, and writes what nodes of it have: region.json, moe.key, relay.key. */
struct ocs_client *job_start(struct bench *b);
/* The controller with its sockets in folder "sockets"; controller_start has all ranks connected to them. */
void controller_run(struct bench *b);
void controller_start(struct bench *b);
/* Closes what controller_start has connected. */
void ranks_leave(struct bench *b);
/* Hangs up all ranks, and ends it by signal NUMBER. */
void controller_stop(struct bench *b, int number);
/* A relay with its sockets in folder NAME; READY: waits until they are there. */
pid_t relay_run(struct bench *b, const char *name, bool ready);
/* Ranks of GROUP find their sockets in folder NAME. */
void ranks_connect(struct bench *b, int group, const char *name);

/* Circuits of a pair of servers of GROUP on its switch. */
int circuits_between(struct bench *b, int group, int one, int other);
/* All ranks' rows: server s sends nearly all to PARTNER[s]. */
void rows_say(struct bench *b, int group, int layer, int microbatch, const int *partner);
/* Rank 0 asks for its plan; its links between servers ONE and OTHER, *ALL: how many in all. */
int plan_ask(struct bench *b, int group, int layer, int microbatch, int backward, int second,
	     int one, int other, int *all);
/* A pass of one layer, whose circuits are to be for PARTNER.  Circuits of the pair of servers 0 and
 * PARTNER[0] in the plan of the second all-to-all. */
int pass_go(struct bench *b, int group, int microbatch, const int *partner);
/* Passes from MICROBATCH on until that has both circuits of the pair; the next microbatch. */
int passes_go(struct bench *b, int group, int microbatch, const int *partner);
extern const int bench_far[SERVERS], bench_near[SERVERS];

#endif
