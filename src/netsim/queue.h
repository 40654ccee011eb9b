/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_NETSIM_QUEUE_H
#define OCS_NETSIM_QUEUE_H

/* A queue of numbers by time: each number is in it at most once, and its time may change.  Equal
 * times come out by number, so that every run is the same. */

struct ocs_queue {
	int *heap;    /* numbers */
	int *place;   /* of each number in the heap, -1: not in it */
	double *time; /* of each number */
	int count, size;
};

/* Zero-initialise; ocs_queue_free frees what it holds. */
void ocs_queue_free(struct ocs_queue *queue);
/* Puts NUMBER, at least 0, into the queue, or changes its time. */
void ocs_queue_set(struct ocs_queue *queue, int number, double time);
/* Takes NUMBER out; nothing happens where it is not in the queue. */
void ocs_queue_remove(struct ocs_queue *queue, int number);
/* The time of the first, INFINITY where there is none. */
double ocs_queue_next(const struct ocs_queue *queue);
/* The first, which stays; -1 where there is none. */
int ocs_queue_first(const struct ocs_queue *queue);

#endif
