/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef TEST_NCCL_SHIM_RECORD_H
#define TEST_NCCL_SHIM_RECORD_H

#include "stand_in.h"

#define RANKS_MAX 8
#define EVENTS_MAX 4096
#define GROUPS_MAX 64
#define OPERATIONS_MAX 64

/* Shared by all ranks of a case. */
struct record {
	_Atomic int lock, events, groups;
	struct event event[EVENTS_MAX];
	struct record_group {
		int members[RANKS_MAX], count, from;
		uint32_t tag;
		bool pair;
		uint32_t arrived[OPERATIONS_MAX]; /* a bit for each rank */
		bool granted[OPERATIONS_MAX];
	} group[GROUPS_MAX];
	_Atomic int refuse_group, refuse_idx, lost; /* what the agent does not grant */
	_Atomic int marks[8];			    /* of the cases */
};

extern struct record *record;
extern int own_rank, all_ranks, nodes_of; /* ranks of one node */

/* The place of the K-th (from 0) event that EVENT fits; -1 in a number, 0 in the kind and an empty text
 * fit all.  -1: there is none. */
int event_find(struct event event, int k);
int event_count(struct event event);
struct event event_any(enum event_kind kind);
/* The number of the group of COUNT members; -1: there is none. */
int group_find(const int *members, int count);
int pair_find(int from, int to);
void record_print(void);

#endif
