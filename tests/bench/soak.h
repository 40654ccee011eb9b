/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_BENCH_SOAK_H
#define OCS_BENCH_SOAK_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "tests/bench/daemons.h"

#define CUBES 12
#define PORTS 32
#define JOBS_AT_ONCE 24

enum state { FREE, COMMITTING, APPLYING, RUNNING, ENDING };

struct job {
	enum state state;
	unsigned int number;
	struct ocs_placement *placement;
	int64_t commit;	     /* id of the request */
	int64_t first, last; /* ids of the applies or releases */
	int waiting;	     /* answers still due */
	bool live;	     /* the ledger says that its circuits exist */
	bool failed;
	int64_t until_ns;
};

struct soak {
	struct daemons daemons;
	struct ocs_occupancy *occupancy;
	FILE *ledger;
	struct job jobs[JOBS_AT_ONCE];
	unsigned int number, done, failed, refused, kills, faults, checkpoints;
	bool calm; /* no new jobs, no faults: a checkpoint */
	uint64_t random;
};

/* A number from 0 to BELOW - 1. */
unsigned int soak_draw(struct soak *s, unsigned int below);

/* Plays slurmctld and the nodes for MS milliseconds. */
void soak_serve(struct soak *s, int ms);
/* What slurmctld does when it finds ocsd again, and the nodes whose requests were lost. */
void soak_resume(struct soak *s);
/* Sends a request without waiting for its answer; its id, or -1. */
int64_t soak_send(struct soak *s, const char *text);

#endif
