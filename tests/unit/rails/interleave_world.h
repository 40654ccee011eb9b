/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef TESTS_UNIT_RAILS_INTERLEAVE_WORLD_H
#define TESTS_UNIT_RAILS_INTERLEAVE_WORLD_H

/* The world of the judge: ranks with programs, frames under way, switches. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/rails/coordinator.h"
#include "tests/unit/rails/interleave.h"

enum {
	NODES = 12,
	RANKS = 24,
	RAILS = 2,
	STREAMS = 2,
	GROUPS = 24,
	PROGRAM = 14, /* operations */
	FRAMES = 512,
	QUEUE = 16,
	EPOCH = 7,
	STEPS = 100000,
};

struct frame {
	int operation, from, to, rail; /* nodes */
	int on;			       /* the rail whose circuit it takes; -1: the packet network */
	bool ring;
};

struct peer_group {
	uint64_t id;
	int count, ranks[RANKS];
	int kind; /* 0: one node, 1: neighbours over circuits, 2: packets */
	int dim;
};

struct work {
	int group;
	uint64_t idx;
	struct {
		bool arrived, granted, ended, failed, sent, drained;
		uint64_t rails;
		int awaits; /* frames */
		int unsent;
	} at[RANKS];
};

/* A switch, with ocsd before it. */
struct optics {
	struct {
		char topology[OCS_RAILS_TOPOLOGY];
		uint64_t seq;
	} requests[QUEUE];
	int nrequests;
	struct {
		uint64_t seq, epoch;
		bool good;
	} answers[QUEUE];
	int nanswers;
	int links[NODES][NODES];
	char topology[OCS_RAILS_TOPOLOGY], coming[OCS_RAILS_TOPOLOGY];
	uint64_t latest, busy; /* seq of what it does */
	bool good, stuck, lost_news, ring;
};

struct interleave_world {
	uint64_t random;
	const uint8_t *data;
	size_t left;
	int extents[3], ndim, nodes, ranks, rails, node_of[RANKS], streams;
	bool shared;
	int ports;
	int faults, deaths, wishes, reboots, revokes;
	bool dead[RANKS], told[RANKS];
	bool any_dead, revoked, failed[RAILS];
	struct peer_group groups[GROUPS];
	int ngroups;
	struct work program[PROGRAM];
	int nprogram;
	struct frame frames[FRAMES];
	int nframes;
	struct optics optics[RAILS];
	struct ocs_coordinator *coordinator;
	int64_t now;
	struct interleave_result result;
};

extern struct interleave_world interleave_world;
#define w interleave_world

/* A choice from 0 to N - 1. */
int pick(int n);
/* The first one counts. */
void violation_set(const char *what);

/* Draws a job; false: its layout cannot be served. */
bool world_make(void);

int node_at(int node, int dim);
/* The next node of NODE along DIM, around the end. */
int node_next(int node, int dim);
/* Whether A and B are neighbours in the operations of GROUP. */
bool group_joins(const struct peer_group *group, int a, int b);
bool group_has_node(const struct peer_group *group, int node);
/* The place of RANK among the members of GROUP, or -1. */
int member_of(const struct peer_group *group, int rank);
/* Whether a rank that lives may send in it. */
bool work_open(const struct work *work);

/* Takes the first request of RAIL: refuses it, loses it, or cuts what is to go. */
void request_begin(int rail);
void request_finish(int rail);
/* Hands over any answer, which may be lost or come once more. */
void answer_deliver(int rail);
/* One step of a switch, if it has one to take. */
bool optics_step(int rail);

#endif
