/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The rings of a job, and communicators whose ranks follow them: on a direct fabric the rings of
 * its plan.json, on cubes those along each dimension of its placement.json.
 *
 *   #include <mpi.h>
 *   #include "ocs_rings.h"
 *
 *   struct ocs_rings *rings = ocs_rings_read(NULL);
 *   for (int r = 0; rings && r < rings->count; r++) {
 *           MPI_Comm ring;
 *           ocs_rings_split(rings, r, MPI_COMM_WORLD, &ring);
 *           ...             rank and rank + 1 of `ring` are on one node, or on
 *   }                       two that a circuit joins
 *   ocs_rings_free(rings);
 *
 * Ring 0 is what NCCL and MPI use by themselves when the ranks are in the order of the
 * nodes.  On cubes, with one process for each XPU:
 *
 *   struct ocs_orders *orders = ocs_orders_read(NULL);
 *   for (int o = 0; orders && o < orders->count; o++) {
 *           ncclComm_t line;
 *           ocs_orders_nccl_split(orders, o, world, &line);
 *           ...             rank and rank + 1 of `line` are joined by a link, and NCCL
 *   }                       sends by it
 *   ocs_orders_free(orders);
 *
 * Include mpi.h or nccl.h before this file for ocs_rings_split and
 * ocs_rings_nccl_split; both may be there.  Nothing else is needed. */

#ifndef OCS_RINGS_H
#define OCS_RINGS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct ocs_ring {
	int group; /* AllReduce group of the plan, from 0 */
	int step;  /* of the ring in its group; 1: the group's own order */
	int length;
	int *nodes; /* numbers of nodes, in ring order */
};

struct ocs_rings {
	int nnodes;
	char **node; /* names, as SLURMD_NODENAME has them */
	int count;
	struct ocs_ring *ring;
};

static inline const char *ocs_json_blank(const char *at)
{
	return at ? at + strspn(at, " \t\r\n") : NULL;
}

/* Behind the JSON value at AT, or NULL. */
static inline const char *ocs_json_skip(const char *at)
{
	int depth = 0;

	at = ocs_json_blank(at);
	do {
		if (!at || !*at)
			return NULL;
		if (*at == '"') {
			for (at++; *at && *at != '"'; at++)
				if (*at == '\\' && at[1])
					at++;
			if (*at++ != '"')
				return NULL;
		} else if (*at == '[' || *at == '{') {
			depth++;
			at++;
		} else if (*at == ']' || *at == '}') {
			depth--;
			at++;
		} else if (*at == ',' || *at == ':') {
			at++;
		} else {
			at += strcspn(at, ",:]}[{\" \t\r\n");
		}
		at = ocs_json_blank(at);
	} while (depth > 0);
	return at;
}

/* The first element of the array at AT, or the value of member NAME of the object at
 * AT; NULL if there is none. */
static inline const char *ocs_json_first(const char *at, const char *name)
{
	size_t length = name ? strlen(name) : 0;

	at = ocs_json_blank(at);
	if (!at || *at != (name ? '{' : '['))
		return NULL;
	at = ocs_json_blank(at + 1);
	if (!name)
		return *at && *at != ']' ? at : NULL;
	while (at && *at == '"') {
		int found = strncmp(at + 1, name, length) == 0 && at[1 + length] == '"';

		at = ocs_json_skip(at);
		if (!at || *at != ':')
			return NULL;
		if (found)
			return ocs_json_blank(at + 1);
		at = ocs_json_skip(at + 1);
		at = at && *at == ',' ? ocs_json_blank(at + 1) : NULL;
	}
	return NULL;
}

/* The element after the one at AT, or NULL. */
static inline const char *ocs_json_next(const char *at)
{
	at = ocs_json_skip(at);
	return at && *at == ',' ? ocs_json_blank(at + 1) : NULL;
}

static inline int ocs_json_count(const char *array)
{
	int count = 0;

	for (const char *at = ocs_json_first(array, NULL); at; at = ocs_json_next(at))
		count++;
	return count;
}

/* The text of PATH, or, if that is NULL, of file NAME in $SLURM_OCS_DIR; freed by the caller.  NULL if
 * there is none. */
static inline char *ocs_file_text(const char *path, const char *name)
{
	const char *dir = getenv("SLURM_OCS_DIR");
	char file[4096], *text = NULL;
	size_t length = 0, got;
	FILE *stream;

	if (!path &&
	    (!dir || snprintf(file, sizeof(file), "%s/%s", dir, name) >= (int)sizeof(file)))
		return NULL;
	stream = fopen(path ? path : file, "r");
	if (!stream)
		return NULL;
	do {
		char *more = (char *)realloc(text, length + 65537);

		if (!more)
			break;
		text = more;
		got = fread(text + length, 1, 65536, stream);
		length += got;
		text[length] = '\0';
	} while (got > 0);
	fclose(stream);
	return text;
}

static inline void ocs_rings_free(struct ocs_rings *rings)
{
	if (!rings)
		return;
	for (int i = 0; i < rings->nnodes; i++)
		free(rings->node[i]);
	for (int i = 0; i < rings->count; i++)
		free(rings->ring[i].nodes);
	free(rings->node);
	free(rings->ring);
	free(rings);
}

static inline int ocs_rings_parse(struct ocs_rings *rings, const char *plan)
{
	const char *nodes = ocs_json_first(plan, "nodes"), *groups = ocs_json_first(plan, "groups");
	int group = 0, most = 0, i = 0;

	rings->node = (char **)calloc((size_t)ocs_json_count(nodes) + 1, sizeof(char *));
	for (const char *at = ocs_json_first(nodes, NULL); rings->node && at;
	     at = ocs_json_next(at)) {
		size_t length = *at == '"' ? strcspn(at + 1, "\"") : 0;
		char *name = (char *)calloc(length + 1, 1);

		if (!name)
			return -1;
		memcpy(name, at + 1, length);
		rings->node[rings->nnodes++] = name;
	}
	for (const char *at = ocs_json_first(groups, NULL); at; at = ocs_json_next(at))
		most += ocs_json_count(ocs_json_first(at, "rings"));
	rings->ring = (struct ocs_ring *)calloc((size_t)most + 1, sizeof(*rings->ring));
	if (!rings->node || !rings->ring)
		return -1;
	for (const char *at = ocs_json_first(groups, NULL); at; at = ocs_json_next(at), group++) {
		const char *step = ocs_json_first(ocs_json_first(at, "steps"), NULL);
		const char *list = ocs_json_first(ocs_json_first(at, "rings"), NULL);

		for (; list; list = ocs_json_next(list), step = step ? ocs_json_next(step) : NULL) {
			struct ocs_ring *ring = &rings->ring[rings->count++];

			ring->group = group;
			ring->step = step ? atoi(step) : 0;
			ring->nodes = (int *)calloc((size_t)ocs_json_count(list) + 1, sizeof(int));
			if (!ring->nodes)
				return -1;
			for (const char *n = ocs_json_first(list, NULL); n; n = ocs_json_next(n)) {
				i = atoi(n);
				if (i < 0 || i >= rings->nnodes)
					return -1;
				ring->nodes[ring->length++] = i;
			}
		}
	}
	return 0;
}

/* The rings in PATH; NULL: $SLURM_OCS_DIR/plan.json.  NULL if there is no such file, or
 * it is no plan: a job of one node has none. */
static inline struct ocs_rings *ocs_rings_read(const char *path)
{
	char *text = ocs_file_text(path, "plan.json");
	struct ocs_rings *rings = text ? (struct ocs_rings *)calloc(1, sizeof(*rings)) : NULL;

	if (rings && ocs_rings_parse(rings, text) < 0) {
		ocs_rings_free(rings);
		rings = NULL;
	}
	free(text);
	return rings;
}

/* The lists of ranks along one dimension of a shape. */
struct ocs_order {
	int dim;	   /* from 0 */
	int ring;	   /* 1: a link joins the last rank to the first, too */
	int count, length; /* lists, and the ranks of each */
	int *ranks;	   /* [list * length + place] */
};

struct ocs_orders {
	int count; /* dimensions longer than 1 */
	struct ocs_order *order;
};

static inline void ocs_orders_free(struct ocs_orders *orders)
{
	for (int i = 0; orders && i < orders->count; i++)
		free(orders->order[i].ranks);
	if (orders)
		free(orders->order);
	free(orders);
}

static inline int ocs_orders_parse(struct ocs_orders *orders, const char *placement)
{
	const char *list = ocs_json_first(placement, "orders");

	orders->order = (struct ocs_order *)calloc((size_t)ocs_json_count(list) + 1,
						   sizeof(*orders->order));
	if (!list || !orders->order)
		return -1;
	for (const char *at = ocs_json_first(list, NULL); at; at = ocs_json_next(at)) {
		const char *dim = ocs_json_first(at, "dim"), *ring = ocs_json_first(at, "ring");
		const char *lines = ocs_json_first(at, "ranks");
		struct ocs_order *order = &orders->order[orders->count++];
		int filled = 0;

		if (!dim || !ring || !lines)
			return -1;
		order->dim = atoi(dim);
		order->ring = *ring == 't';
		order->count = ocs_json_count(lines);
		order->length = ocs_json_count(ocs_json_first(lines, NULL));
		order->ranks = (int *)calloc((size_t)order->count * (size_t)order->length + 1,
					     sizeof(int));
		if (!order->ranks)
			return -1;
		for (const char *l = ocs_json_first(lines, NULL); l; l = ocs_json_next(l)) {
			if (ocs_json_count(l) != order->length)
				return -1;
			for (const char *r = ocs_json_first(l, NULL); r; r = ocs_json_next(r))
				order->ranks[filled++] = atoi(r);
		}
	}
	return 0;
}

/* The orders in PATH; NULL: $SLURM_OCS_DIR/placement.json.  NULL if there is no such file, or it is no
 * placement. */
static inline struct ocs_orders *ocs_orders_read(const char *path)
{
	char *text = ocs_file_text(path, "placement.json");
	struct ocs_orders *orders = text ? (struct ocs_orders *)calloc(1, sizeof(*orders)) : NULL;

	if (orders && ocs_orders_parse(orders, text) < 0) {
		ocs_orders_free(orders);
		orders = NULL;
	}
	free(text);
	return orders;
}

/* In which list of order ORDER rank RANK is (-1: $SLURM_OCS_RANK, this task's), and its place there
 * (PLACE may be NULL); -1: in none. */
static inline int ocs_orders_list(const struct ocs_orders *orders, int order, int rank, int *place)
{
	const struct ocs_order *one = &orders->order[order];
	const char *own = getenv("SLURM_OCS_RANK");

	if (rank < 0 && own)
		rank = atoi(own);
	for (int i = 0; rank >= 0 && i < one->count * one->length; i++)
		if (one->ranks[i] == rank) {
			if (place)
				*place = i % one->length;
			return i / one->length;
		}
	return -1;
}

#if defined(_POSIX_C_SOURCE) && _POSIX_C_SOURCE >= 200112L /* not with -std=c99 alone */
/* Sets NCCL_GRAPH_FILE for a communicator of this task's list of order ORDER: NCCL reads it whenever it
 * makes a communicator.  Without such a file, as for ranks of one node, it is unset.  Returns whether
 * it is set. */
static inline int ocs_orders_graph(const struct ocs_orders *orders, int order)
{
	const char *dir = getenv("SLURM_OCS_DIR");
	int list = ocs_orders_list(orders, order, -1, NULL);
	char path[4096];
	FILE *file;

	unsetenv("NCCL_GRAPH_FILE");
	if (!dir || list < 0 ||
	    snprintf(path, sizeof(path), "%s/graph-%d-%d.xml", dir, orders->order[order].dim,
		     list) >= (int)sizeof(path))
		return 0;
	file = fopen(path, "r");
	if (!file)
		return 0;
	fclose(file);
	return setenv("NCCL_GRAPH_FILE", path, 1) == 0;
}
#endif

/* Where NODE stands in ring RING, from 0; -1: it is not in it.  NODE NULL: this one. */
static inline int ocs_rings_place(const struct ocs_rings *rings, int ring, const char *node)
{
	const struct ocs_ring *one = &rings->ring[ring];

	if (!node)
		node = getenv("SLURMD_NODENAME");
	for (int i = 0; node && i < one->length; i++)
		if (strcmp(rings->node[one->nodes[i]], node) == 0)
			return i;
	return -1;
}

#ifdef MPI_VERSION
/* The ranks of COMM that are on nodes of ring RING, in ring order; ranks of one node
 * keep their order.  Ranks elsewhere get MPI_COMM_NULL.  Collective over COMM. */
static inline int ocs_rings_split(const struct ocs_rings *rings, int ring, MPI_Comm comm,
				  MPI_Comm *out)
{
	int place = ocs_rings_place(rings, ring, NULL);

	return MPI_Comm_split(comm, place < 0 ? MPI_UNDEFINED : 0, place < 0 ? 0 : place, out);
}

/* The ranks of COMM that are in this task's list of order ORDER, in its order.  Collective over
 * COMM. */
static inline int ocs_orders_split(const struct ocs_orders *orders, int order, MPI_Comm comm,
				   MPI_Comm *out)
{
	int place = 0, list = ocs_orders_list(orders, order, -1, &place);

	return MPI_Comm_split(comm, list < 0 ? MPI_UNDEFINED : list, place, out);
}
#endif

#ifdef NCCL_MAJOR
/* The same for an NCCL communicator (NCCL 2.18 and later). */
static inline ncclResult_t ocs_rings_nccl_split(const struct ocs_rings *rings, int ring,
						ncclComm_t comm, ncclComm_t *out)
{
	int place = ocs_rings_place(rings, ring, NULL);

	return ncclCommSplit(comm, place < 0 ? NCCL_SPLIT_NOCOLOR : 0, place < 0 ? 0 : place, out,
			     NULL);
}

/* The same for an order, with the graph file of this task's list; NCCL_GRAPH_FILE is then what it was
 * before.  For blocking communicators, outside of group calls. */
static inline ncclResult_t ocs_orders_nccl_split(const struct ocs_orders *orders, int order,
						 ncclComm_t comm, ncclComm_t *out)
{
	int place = 0, list = ocs_orders_list(orders, order, -1, &place);
	const char *value = getenv("NCCL_GRAPH_FILE");
	size_t length = value ? strlen(value) + 1 : 0;
	char *before = value ? (char *)malloc(length) : NULL;
	ncclResult_t result;

	if (before)
		memcpy(before, value, length);
	ocs_orders_graph(orders, order);
	result = ncclCommSplit(comm, list < 0 ? NCCL_SPLIT_NOCOLOR : list, place, out, NULL);
	unsetenv("NCCL_GRAPH_FILE");
	if (before)
		setenv("NCCL_GRAPH_FILE", before, 1);
	free(before);
	return result;
}
#endif

#endif
