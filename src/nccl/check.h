/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_NCCL_CHECK_H
#define OCS_NCCL_CHECK_H

/* Would NCCL read this topology or graph file, and as what is written there?
 * doc/nccl.md lists the rules. */

#include <stdbool.h>
#include <stddef.h>

struct ocs_error;

enum ocs_nccl_kind {
	OCS_NCCL_TOPOLOGY, /* NCCL_TOPO_FILE */
	OCS_NCCL_GRAPH,	   /* NCCL_GRAPH_FILE */
};

struct ocs_nccl_fault {
	int line;
	bool error; /* false: a note; NCCL guesses or ignores without harm */
	bool fatal; /* NCCL stops or crashes; else it reads something else */
	char *text; /* one sentence */
};

struct ocs_nccl_faults {
	struct ocs_nccl_fault *list; /* ascending by line */
	int count;
	int errors, fatal; /* of all, listed or not */
	int dropped;	   /* further faults that are not listed */
};

struct ocs_nccl_report {
	enum ocs_nccl_kind kind;
	int elements; /* that NCCL would store */
	struct ocs_nccl_faults faults;
};

/* Checks LENGTH bytes of TEXT.  A file whose outermost element is `graphs` is a graph
 * file, any other a topology file.  Returns the number of errors; REPORT is always
 * filled, free it with ocs_nccl_report_free. */
int ocs_nccl_check(const char *text, size_t length, struct ocs_nccl_report *report);
void ocs_nccl_report_free(struct ocs_nccl_report *report);

/* The same for a string, for those who want one sentence: 0, or -1 with ERR
 * (OCS_USAGE) naming line and fault of the first error. */
int ocs_nccl_check_text(const char *text, struct ocs_error *err);

#endif
