/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_NETSIM_GRAPH_H
#define OCS_NETSIM_GRAPH_H

/* The tasks of one training step: computation on devices, transfers between servers, collectives
 * of groups of servers, and what waits for what. */

#include <stdbool.h>
#include <stddef.h>

struct json_object;
struct ocs_error;
struct ocs_text;

#define OCS_NETSIM_SERVERS_MAX 65536
#define OCS_NETSIM_DEVICES_MAX 1024
#define OCS_NETSIM_TASKS_MAX (16 << 20)
#define OCS_NETSIM_EDGES_MAX (64 << 20)
#define OCS_NETSIM_LABELS_MAX 4096
#define OCS_NETSIM_MS_MAX 1e12	  /* milliseconds, 31 years */
#define OCS_NETSIM_BYTES_MAX 1e18 /* of a task */

enum ocs_netsim_kind {
	OCS_NETSIM_COMPUTE,  /* keeps one device busy for `ms`; a device does one task at a time */
	OCS_NETSIM_TRANSFER, /* `bytes` from server to peer; server == peer: takes no network */
	/* Collectives of `group`.  A group of one takes `ms` and no network. */
	OCS_NETSIM_ALLREDUCE,	   /* `bytes`: the buffer that each member has, before and after */
	OCS_NETSIM_REDUCE_SCATTER, /* `bytes`: the buffer of each member before; 1/k of it after */
	OCS_NETSIM_ALLGATHER,	   /* `bytes`: the buffer of each member after; 1/k of it before */
	OCS_NETSIM_ALLTOALL, /* `bytes`: what each member has; 1/k of it goes to each member, one
			      * part stays.  With a matrix: what it says, `bytes` is its sum */
	OCS_NETSIM_BARRIER,  /* takes `ms` and nothing else: joins dependencies */
	OCS_NETSIM_KINDS,
};

struct ocs_netsim_task {
	unsigned char kind; /* enum ocs_netsim_kind */
	short label;	    /* index of labels, or -1: what a timeline and a fabric know it by */
	int server;	    /* COMPUTE: where; TRANSFER: from where; else -1 */
	union {
		int device; /* COMPUTE: 0 to devices - 1 */
		int peer;   /* TRANSFER: to where */
		int group;  /* collectives: index of groups */
	};
	int matrix;   /* ALLTOALL: index of matrices, or -1 */
	double ms;    /* COMPUTE: how long; others: passes before the first byte, in the servers */
	double bytes; /* TRANSFER and collectives */
};

/* An ordered group of different servers; rings follow the order. */
struct ocs_netsim_group {
	int *members;
	int count;
};

/* Task `after` starts when task `before` has ended. */
struct ocs_netsim_edge {
	int before, after;
};

struct ocs_netsim_graph {
	int servers; /* 0 to servers - 1 */
	int devices; /* serial devices of each server: its accelerators, and more if a model wants
		      * to have copies or host work serial too */
	struct ocs_netsim_task *tasks; /* a task's number is its index */
	int ntasks, tasks_size;
	struct ocs_netsim_edge *edges;
	int nedges, edges_size;
	struct ocs_netsim_group *groups;
	int ngroups, groups_size;
	double **matrices; /* count x count bytes of the group of the task that has it, row-major:
			    * [i * count + j] go from member i to member j */
	int *matrix_sides; /* the count that each was added with */
	int nmatrices, matrices_size;
	char **labels; /* "forward", "dp" ... */
	int nlabels, labels_size;
};

/* A graph without tasks.  The caller destroys it. */
struct ocs_netsim_graph *ocs_netsim_graph_create(int servers, int devices);
void ocs_netsim_graph_destroy(struct ocs_netsim_graph *graph);

/* Builders.  None fails: what is wrong is found by ocs_netsim_graph_check.  Each returns the index
 * of what it added.  Times in ms, sizes in bytes. */
int ocs_netsim_compute_add(struct ocs_netsim_graph *graph, int server, int device, double ms);
int ocs_netsim_transfer_add(struct ocs_netsim_graph *graph, int src, int dst, double bytes);
int ocs_netsim_barrier_add(struct ocs_netsim_graph *graph);
/* Copies MEMBERS.  Add a group once and use its index for all of its collectives. */
int ocs_netsim_group_add(struct ocs_netsim_graph *graph, const int *members, int count);
int ocs_netsim_collective_add(struct ocs_netsim_graph *graph, enum ocs_netsim_kind kind, int group,
			      double bytes);
/* An all-to-all in which member i of GROUP sends MATRIX[i * count + j] bytes to member j; the
 * diagonal stays in the server.  Copies MATRIX. */
int ocs_netsim_alltoall_add(struct ocs_netsim_graph *graph, int group, const double *matrix);
/* Task AFTER waits for task BEFORE.  Twice the same is the same as once. */
void ocs_netsim_depend(struct ocs_netsim_graph *graph, int before, int after);
/* The index of the label NAME, added if it is new. */
int ocs_netsim_label(struct ocs_netsim_graph *graph, const char *name);

const char *ocs_netsim_kind_name(enum ocs_netsim_kind kind);
bool ocs_netsim_kind_collective(enum ocs_netsim_kind kind);

/* Whether a step can be run: all numbers in range, members of a group different, no circle of
 * dependencies.  0, or -1 with ERR (OCS_USAGE) that names the first task, group or circle that is
 * wrong. */
int ocs_netsim_graph_check(const struct ocs_netsim_graph *graph, struct ocs_error *err);

/* The numbers of the tasks of GRAPH, which ocs_netsim_graph_check accepts, each after those that it
 * waits for.  The caller frees. */
int *ocs_netsim_graph_order(const struct ocs_netsim_graph *graph);

/* {"servers":2,"devices":1,"groups":[[0,1]],"matrices":[...],"tasks":[{"kind":"compute","server":0,
 * "device":0,"ms":1.5,"label":"forward"},{"kind":"allreduce","group":0,"bytes":1e6,"after":[0]}]},
 * appended to TEXT. */
void ocs_netsim_graph_write(const struct ocs_netsim_graph *graph, struct ocs_text *text);
/* Reads the same and checks it.  The caller destroys it.  NULL with ERR (OCS_USAGE). */
struct ocs_netsim_graph *ocs_netsim_graph_from_json(struct json_object *json,
						    struct ocs_error *err);

enum ocs_netsim_format {
	OCS_NETSIM_NO_GRAPH, /* text that is no JSON object: a model, say */
	OCS_NETSIM_JSON,
	OCS_NETSIM_FLATBUFFER, /* of FlexFlow (flexflow.h) */
};
/* What the first LENGTH bytes of a file, 64 are enough, are the beginning of.  JSON begins with a brace, text
 * has no zeros, and each FlatBuffer has some. */
enum ocs_netsim_format ocs_netsim_graph_format(const char *head, size_t length);
/* The task graph in LENGTH bytes of TEXT, in either format, checked; TEXT[LENGTH] is 0.  The caller destroys
 * it.  NULL with ERR (OCS_USAGE). */
struct ocs_netsim_graph *ocs_netsim_graph_parse(const char *text, size_t length,
						struct ocs_error *err);
/* The same of the file PATH, at most 1 GiB; ERR, of the file, too, begins with PATH. */
struct ocs_netsim_graph *ocs_netsim_graph_read(const char *path, struct ocs_error *err);

#endif
