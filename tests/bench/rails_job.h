/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_BENCH_RAILS_JOB_H
#define OCS_BENCH_RAILS_JOB_H

/* A job on one rail for benchmarks: the real ocsd, emulator and controller; its nodes are connections
 * that the benchmark holds.  What goes wrong ends the program with a line. */

#include "src/rails/rendezvous.h"
#include "tests/bench/daemons.h"

#define PER_NODE 8
#define NODES_MAX 256

struct node {
	int fd;
	struct ocs_inbox inbox;
	struct ocs_outbox outbox;
	bool granted;
};

extern struct ocs_error err;
extern struct ocs_rendezvous meet;
extern struct node nodes[NODES_MAX];
extern int polled; /* an epoll of their connections; its events have numbers of nodes */

void fail(const char *what) __attribute__((noreturn));

/* A descriptor that TEXT and a newline are read from; it goes with the next program_start. */
int key_fd(const char *text);
/* Starts ARGV with FD as its descriptor 3, silent. */
pid_t program_start(const char *const *argv, int fd);
void program_stop(pid_t child);

/* Starts ocsd and a switch of 1024 ports, DELAY ms for each of the two commands of a change. */
void job_daemons(struct daemons *d, const char *delay);
/* A job over COUNT nodes in so many STAGES, and its controller. */
pid_t job_start(struct daemons *d, int count, int stages, const char *mode);
void job_end(struct daemons *d, pid_t child);

/* Node NUMBER of a step of TOTAL ranks, PER of them on each node, at most PER_NODE. */
void node_connect(int number, int total, int per);
/* Waits until each of COUNT nodes has a frame of KIND. */
void nodes_await(int count, unsigned int kind);
void node_flush(struct node *node);
/* Closes the connections of COUNT nodes, and POLLED. */
void nodes_close(int count);

#endif
