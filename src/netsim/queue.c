/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/netsim/queue.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "src/util/text.h"

void ocs_queue_free(struct ocs_queue *queue)
{
	free(queue->heap);
	free(queue->place);
	free(queue->time);
	*queue = (struct ocs_queue){ 0 };
}

static bool number_before(const struct ocs_queue *queue, int a, int b)
{
	return queue->time[a] < queue->time[b] || (queue->time[a] == queue->time[b] && a < b);
}

static void number_put(struct ocs_queue *queue, int at, int number)
{
	queue->heap[at] = number;
	queue->place[number] = at;
}

/* Moves the number at AT to where it belongs. */
static void number_sift(struct ocs_queue *queue, int at)
{
	int number = queue->heap[at];

	while (at > 0 && number_before(queue, number, queue->heap[(at - 1) / 2])) {
		number_put(queue, at, queue->heap[(at - 1) / 2]);
		at = (at - 1) / 2;
	}
	for (int child = 2 * at + 1; child < queue->count; child = 2 * at + 1) {
		if (child + 1 < queue->count &&
		    number_before(queue, queue->heap[child + 1], queue->heap[child]))
			child++;
		if (!number_before(queue, queue->heap[child], number))
			break;
		number_put(queue, at, queue->heap[child]);
		at = child;
	}
	number_put(queue, at, number);
}

static void queue_grow(struct ocs_queue *queue, int number)
{
	int size = queue->size ? queue->size : 16;

	while (size <= number)
		size *= 2;
	if (size > queue->size) {
		queue->place = ocs_realloc(queue->place, (size_t)size * sizeof(int));
		queue->time = ocs_realloc(queue->time, (size_t)size * sizeof(double));
		queue->heap = ocs_realloc(queue->heap, (size_t)size * sizeof(int));
		for (int k = queue->size; k < size; k++)
			queue->place[k] = -1;
		queue->size = size;
	}
}

void ocs_queue_set(struct ocs_queue *queue, int number, double time)
{
	if (number >= queue->size)
		queue_grow(queue, number);
	queue->time[number] = time;
	if (queue->place[number] < 0)
		number_put(queue, queue->count++, number);
	number_sift(queue, queue->place[number]);
}

void ocs_queue_remove(struct ocs_queue *queue, int number)
{
	int at = number < queue->size ? queue->place[number] : -1;

	if (at < 0)
		return;
	queue->place[number] = -1;
	if (at < --queue->count) {
		number_put(queue, at, queue->heap[queue->count]);
		number_sift(queue, at);
	}
}

double ocs_queue_next(const struct ocs_queue *queue)
{
	return queue->count ? queue->time[queue->heap[0]] : INFINITY;
}

int ocs_queue_first(const struct ocs_queue *queue)
{
	return queue->count ? queue->heap[0] : -1;
}
