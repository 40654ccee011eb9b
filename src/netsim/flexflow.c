/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/netsim/flexflow.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/netsim/graph.h"
#include "src/util/error.h"
#include "src/util/text.h"

/* Fields by their place in the schema. */
enum {
	ROOT_GPUS,
	ROOT_NODES,
	ROOT_SWITCHES,
	ROOT_TASKS = 8,
	ROOT_DEVICES,
};
enum {
	TASK_TYPE,
	TASK_ID,
	TASK_DEVICE,
	TASK_MS,
	TASK_BYTES,
	TASK_NEXT,
};
enum {
	DEVICE_TYPE,
	DEVICE_ID,
	DEVICE_NODE,
	DEVICE_PAIR, /* between servers: from * (nodes + switches) + to */
};
enum {
	TYPE_FORWARD,
	TYPE_BACKWARD,
	TYPE_COMM,
	TYPE_UPDATE,
	TYPE_BARRIER,
	TYPE_NOMINAL_COMM,
	TYPE_ALLREDUCE,
	TYPES,
};
#define NODES_MAX 4096
/* Vectors may be shared: what is made of them is bounded by more than the size of the file. */
#define MEMBERS_MAX (4 << 20)
#define EDGES_MAX (4 << 20)

static const char *const type_labels[TYPES] = {
	"forward", "backward", "transfer", "update", "barrier", "transfer", "allreduce",
};

struct buffer {
	const unsigned char *bytes;
	size_t length;
	bool bad; /* something lay outside */
};

/* SIZE bytes at AT, little-endian; 0 and bad where they are not all inside. */
static uint64_t number_at(struct buffer *buffer, size_t at, int size)
{
	uint64_t value = 0;

	if (at > buffer->length || buffer->length - at < (size_t)size) {
		buffer->bad = true;
		return 0;
	}
	for (int k = 0; k < size; k++)
		value |= (uint64_t)buffer->bytes[at + (size_t)k] << 8 * k;
	return value;
}

/* Where field NUMBER of TABLE is; 0: it has none. */
static size_t field_at(struct buffer *buffer, size_t table, int number)
{
	int64_t back = (int32_t)number_at(buffer, table, 4);
	int64_t vtable = (int64_t)table - back;
	uint64_t size, offset;

	if (vtable < 0 || (uint64_t)vtable >= buffer->length) {
		buffer->bad = true;
		return 0;
	}
	size = number_at(buffer, (size_t)vtable, 2);
	if (4 + 2 * (uint64_t)number + 2 > size)
		return 0;
	offset = number_at(buffer, (size_t)vtable + 4 + 2 * (size_t)number, 2);
	return offset ? table + offset : 0;
}

static uint64_t field_number(struct buffer *buffer, size_t table, int number, int size)
{
	size_t at = field_at(buffer, table, number);

	return at ? number_at(buffer, at, size) : 0;
}

/* Where the COUNT entries of WIDTH bytes of vector NUMBER of TABLE begin. */
static size_t field_vector(struct buffer *buffer, size_t table, int number, size_t width,
			   size_t *count)
{
	size_t at = field_at(buffer, table, number);

	*count = 0;
	if (!at)
		return 0;
	at += number_at(buffer, at, 4);
	*count = number_at(buffer, at, 4);
	if (at > buffer->length || *count > (buffer->length - at) / width) {
		buffer->bad = true;
		*count = 0;
	}
	return at + 4;
}

/* The table to which the entry at AT points. */
static size_t table_at(struct buffer *buffer, size_t at)
{
	return at + number_at(buffer, at, 4);
}

/* Numbers that the file gives to its devices and tasks, sorted, and what each means here. */
struct name {
	uint64_t id;
	int a, b;
};

struct reader {
	struct buffer buffer;
	struct ocs_netsim_graph *graph;
	struct name *devices, *tasks;
	size_t ndevices, ntasks;
	int nodes, gpus, vertices;
	size_t members; /* of all groups */
	struct ocs_error *err;
};

static int name_compare(const void *left, const void *right)
{
	uint64_t a = ((const struct name *)left)->id, b = ((const struct name *)right)->id;

	return a < b ? -1 : a > b;
}

static const struct name *name_find(const struct name *names, size_t count, uint64_t id)
{
	return count ? bsearch(&(struct name){ .id = id }, names, count, sizeof(*names),
			       name_compare) :
		       NULL;
}

static int names_sort(struct name *names, size_t count, const char *what, struct ocs_error *err)
{
	if (count)
		qsort(names, count, sizeof(*names), name_compare);
	for (size_t k = 1; k < count; k++) {
		if (names[k].id == names[k - 1].id)
			return ocs_error_set(err, OCS_USAGE, "two %s have the number %llu", what,
					     (unsigned long long)names[k].id);
	}
	return 0;
}

/* A device is an accelerator (a: server, b: which) or the way between two servers (a, b). */
static int devices_read(struct reader *reader, size_t root)
{
	size_t at = field_vector(&reader->buffer, root, ROOT_DEVICES, 4, &reader->ndevices);

	reader->devices = ocs_calloc(reader->ndevices + 1, sizeof(*reader->devices));
	for (size_t k = 0; k < reader->ndevices; k++) {
		size_t table = table_at(&reader->buffer, at + 4 * k);
		struct name *name = &reader->devices[k];
		int type = (int)field_number(&reader->buffer, table, DEVICE_TYPE, 1);
		int pair = (int)(int32_t)field_number(&reader->buffer, table, DEVICE_PAIR, 4);

		name->id = field_number(&reader->buffer, table, DEVICE_ID, 8);
		if (type == 0) {
			name->a =
				(int)(int32_t)field_number(&reader->buffer, table, DEVICE_NODE, 4);
			name->b = reader->gpus > 0 && pair >= 0 ? pair % reader->gpus : -1;
		} else {
			name->a = pair < 0 ? -1 : pair / reader->vertices;
			name->b = pair < 0 ? -1 : pair % reader->vertices;
		}
	}
	return names_sort(reader->devices, reader->ndevices, "devices", reader->err);
}

/* Adds the AllReduce of TABLE, whose vector of what comes next has the servers of its group. */
static int allreduce_read(struct reader *reader, size_t table, double ms, double bytes)
{
	size_t count, at = field_vector(&reader->buffer, table, TASK_NEXT, 8, &count);
	int *members, task;

	reader->members += count;
	if (!count || count > (size_t)reader->nodes || reader->members > MEMBERS_MAX)
		return ocs_error_set(reader->err, OCS_USAGE, "an AllReduce has %zu servers of %d",
				     count, reader->nodes);
	members = ocs_calloc(count, sizeof(int));
	for (size_t k = 0; k < count; k++) {
		uint64_t server = number_at(&reader->buffer, at + 8 * k, 8);

		members[k] = server < NODES_MAX ? (int)server : -1;
	}
	task = ocs_netsim_collective_add(reader->graph, OCS_NETSIM_ALLREDUCE,
					 ocs_netsim_group_add(reader->graph, members, (int)count),
					 bytes);
	/* Alone it has nothing to reduce. */
	reader->graph->tasks[task].ms = count > 1 ? ms : 0;
	free(members);
	return task;
}

/* Adds the task of TABLE; its number, or -1 with the reader's error. */
static int task_read(struct reader *reader, size_t table)
{
	struct buffer *buffer = &reader->buffer;
	uint64_t type = field_number(buffer, table, TASK_TYPE, 1);
	uint64_t device = field_number(buffer, table, TASK_DEVICE, 8);
	double bytes = (double)field_number(buffer, table, TASK_BYTES, 8);
	uint32_t bits = (uint32_t)field_number(buffer, table, TASK_MS, 4);
	const struct name *name = name_find(reader->devices, reader->ndevices, device);
	float ms;
	int task;

	memcpy(&ms, &bits, sizeof(ms));
	if (type >= TYPES)
		return ocs_error_set(reader->err, OCS_USAGE,
				     "a task is of type %llu, 0 to %d are known",
				     (unsigned long long)type, TYPES - 1);
	if (!name && type != TYPE_ALLREDUCE && type != TYPE_BARRIER)
		return ocs_error_set(reader->err, OCS_USAGE,
				     "a task of type %s is on device %llu, which is not listed",
				     type_labels[type], (unsigned long long)device);
	if (type == TYPE_ALLREDUCE) {
		task = allreduce_read(reader, table, ms, bytes);
	} else if (type == TYPE_BARRIER) {
		task = ocs_netsim_barrier_add(reader->graph);
		reader->graph->tasks[task].ms = ms;
	} else if (type == TYPE_COMM || type == TYPE_NOMINAL_COMM) {
		task = ocs_netsim_transfer_add(reader->graph, name->a, name->b, bytes);
	} else {
		task = ocs_netsim_compute_add(reader->graph, name->a, name->b, ms);
	}
	if (task >= 0)
		reader->graph->tasks[task].label =
			(short)ocs_netsim_label(reader->graph, type_labels[type]);
	return task;
}

static int edges_read(struct reader *reader, size_t table, int task)
{
	size_t count, at = field_vector(&reader->buffer, table, TASK_NEXT, 8, &count);

	if (reader->graph->tasks[task].kind == OCS_NETSIM_ALLREDUCE)
		return 0;
	for (size_t k = 0; k < count; k++) {
		uint64_t id = number_at(&reader->buffer, at + 8 * k, 8);
		const struct name *name = name_find(reader->tasks, reader->ntasks, id);

		if (!name)
			return ocs_error_set(reader->err, OCS_USAGE,
					     "task %d goes on to %llu, which is not listed", task,
					     (unsigned long long)id);
		if (reader->graph->nedges >= EDGES_MAX)
			return ocs_error_set(reader->err, OCS_USAGE, "too many dependencies");
		ocs_netsim_depend(reader->graph, task, name->a);
	}
	return 0;
}

static int tasks_read(struct reader *reader, size_t root)
{
	struct buffer *buffer = &reader->buffer;
	size_t at = field_vector(buffer, root, ROOT_TASKS, 4, &reader->ntasks);

	reader->tasks = ocs_calloc(reader->ntasks + 1, sizeof(*reader->tasks));
	for (size_t k = 0; k < reader->ntasks && !buffer->bad; k++) {
		size_t table = table_at(buffer, at + 4 * k);
		int task = task_read(reader, table);

		if (task < 0)
			return -1;
		reader->tasks[k] =
			(struct name){ .id = field_number(buffer, table, TASK_ID, 8), .a = task };
	}
	if (buffer->bad)
		return 0;
	if (names_sort(reader->tasks, reader->ntasks, "tasks", reader->err))
		return -1;
	for (size_t k = 0; k < reader->ntasks && !buffer->bad; k++) {
		if (edges_read(reader, table_at(buffer, at + 4 * k), (int)k))
			return -1;
	}
	return 0;
}

static int root_read(struct reader *reader)
{
	struct buffer *buffer = &reader->buffer;
	size_t root = table_at(buffer, 0);
	int64_t nodes, gpus, switches;
	bool rc;

	nodes = (int32_t)field_number(buffer, root, ROOT_NODES, 4);
	gpus = (int32_t)field_number(buffer, root, ROOT_GPUS, 4);
	switches = (int32_t)field_number(buffer, root, ROOT_SWITCHES, 4);
	if (buffer->bad || nodes < 1 || nodes > NODES_MAX || gpus < 1 ||
	    gpus > OCS_NETSIM_DEVICES_MAX || switches < 0 || switches > NODES_MAX)
		return ocs_error_set(reader->err, OCS_USAGE,
				     "this is no task graph: it does not name 1 to %d servers",
				     NODES_MAX);
	reader->nodes = (int)nodes;
	reader->gpus = (int)gpus;
	reader->vertices = (int)(nodes + switches);
	reader->graph = ocs_netsim_graph_create(reader->nodes, reader->gpus);
	rc = devices_read(reader, root) || tasks_read(reader, root);
	if (buffer->bad)
		return ocs_error_set(reader->err, OCS_USAGE,
				     "the file of %zu bytes is cut off or damaged", buffer->length);
	return rc ? -1 : ocs_netsim_graph_check(reader->graph, reader->err);
}

struct ocs_netsim_graph *ocs_netsim_flexflow_read(const void *bytes, size_t length,
						  struct ocs_error *err)
{
	struct reader reader = { .buffer = { .bytes = bytes, .length = length }, .err = err };

	if (root_read(&reader)) {
		ocs_error_prefix(err, "graph");
		ocs_netsim_graph_destroy(reader.graph);
		reader.graph = NULL;
	}
	free(reader.devices);
	free(reader.tasks);
	return reader.graph;
}
