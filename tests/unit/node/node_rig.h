/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_TESTS_UNIT_NODE_NODE_RIG_H
#define OCS_TESTS_UNIT_NODE_NODE_RIG_H

/* The installed ocs-node, a folder to work in and a job's directory. */

extern char node_base[];       /* the folder */
extern char *node_dir;	       /* the job's directory in it */
extern char node_output[4096]; /* what the last run said */

/* Of a group of tests. */
int node_setup(void **state);
int node_teardown(void **state);

/* Runs ocs-node with the arguments up to NULL; returns its exit status. */
int node_run(const char *command, ...);

/* A file of the job's directory, freed by the caller, or NULL. */
char *node_file(const char *name);
void node_put(const char *path, const char *text);

/* Fails the test if TEXT has no line LINE, or if it has WHAT anywhere. */
void node_has_line(const char *text, const char *line);
void node_absent(const char *text, const char *what);

#endif
