/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_PLUGINS_SITE_H
#define OCS_PLUGINS_SITE_H

/* ocs.yaml as job_submit/ocs sees it: read again when the file changes, kept as it
 * was if the new text is wrong.  Not thread-safe. */

#include <stdbool.h>

#include "src/fold/shape.h"

struct ocs_error;

struct ocs_answer {
	int nodes;	       /* that the shape needs */
	int node_xpus;	       /* XPUs of a node; 0 if they are no matter of shapes */
	bool planned;	       /* direct: every job gets a plan */
	bool rails;	       /* rails: every job gets its ports */
	int section_nodes;     /* nodes of the section */
	const char *some_node; /* of the section; valid until the next call */
};

/* What SHAPE (NULL: none) means in PARTITION, which may be a list ("a,b"; all must be
 * served by one section).  0, or -1 with ERR: OCS_NEVER with what would fit, or
 * OCS_USAGE, or OCS_ERROR for an ocs.yaml that cannot be used.  Without a shape a
 * partition that no section serves is no error (all members zero). */
int ocs_site_ask(const char *partition, const struct ocs_shape *shape, struct ocs_answer *answer,
		 struct ocs_error *err);

/* Whether every job gets ports in one of PARTITIONS (a list as above).  While ocs.yaml cannot be
 * used, by the names that slurmctld keeps for that.  1 or 0, or -1 with ERR: nothing is known. */
int ocs_site_ports(const char *partitions, struct ocs_error *err);

/* After ocs_site_ask.  Whether the section that serves PARTITION has NODE. */
bool ocs_site_serves(const char *partition, const char *node);
/* Whether SHAPE, which fits the section, fits those of its nodes for which MAY says yes.  0, or
 * -1 with ERR: OCS_NEVER, what is missing and what would fit. */
int ocs_site_fits(const char *partition, const struct ocs_shape *shape,
		  bool (*may)(const char *node, void *arg), void *arg, struct ocs_error *err);

void ocs_site_close(void);

#endif
