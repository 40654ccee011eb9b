/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSCTL_SLURM_BLOCKERS_H
#define OCS_OCSCTL_SLURM_BLOCKERS_H

/* What keeps a job from the nodes that it needs, and the least that would have to go. */

#include <stdbool.h>
#include <time.h>

#include "src/fabric/occupancy.h"
#include "src/fold/shape.h"

/* The first three end by themselves. */
enum ocs_ctl_obstacle_kind {
	OCS_BY_JOB,
	OCS_BY_HIDDEN,
	OCS_BY_RESERVATION,
	OCS_BY_NODES,
	OCS_BY_CUBE,
	OCS_BY_SWITCH
};

struct ocs_ctl_obstacle {
	enum ocs_ctl_obstacle_kind kind;
	long job;     /* of a job */
	char *name;   /* of all others; the user of a job */
	char *why;    /* state or reason, "" if none */
	time_t start; /* of a reservation */
	time_t end;   /* 0: not known */
	int *nodes;   /* in ocs_fabric.nodes, of the section */
	int nnodes;
	int sw; /* of a switch, index in the fabric */
};

/* One question.  Zero-initialise, set the first five, add, ask, free. */
struct ocs_ctl_obstacles {
	const struct ocs_fabric *fabric;
	const struct ocs_section *section;
	bool *eligible; /* by node of the section: may it be used; freed
					 * with the rest.  NULL: all */
	bool shaped;	/* shape is set */
	struct ocs_shape shape;
	int servers; /* wanted in a section without cubes */

	struct ocs_ctl_obstacle *list;
	int count;
};

/* A new one that holds those nodes of the host list NODES (NULL: none) that belong to
 * the section.  NULL if none does. */
struct ocs_ctl_obstacle *ocs_ctl_obstacle_add(struct ocs_ctl_obstacles *all,
					      enum ocs_ctl_obstacle_kind kind, const char *nodes);
/* The same for a host list that may be used: the rest of the section is not eligible. */
void ocs_ctl_obstacles_only(struct ocs_ctl_obstacles *all, const char *nodes);
/* Nodes that may not be used. */
void ocs_ctl_obstacles_without(struct ocs_ctl_obstacles *all, const char *nodes);
/* Takes from OCCUPANCY, which is all free, what they hold and block. */
void ocs_ctl_obstacles_occupy(const struct ocs_ctl_obstacles *all, struct ocs_occupancy *occupancy);
/* The host list of one; the caller frees it. */
char *ocs_ctl_obstacle_nodes(const struct ocs_ctl_obstacles *all,
			     const struct ocs_ctl_obstacle *one);
void ocs_ctl_obstacles_free(struct ocs_ctl_obstacles *all);

/* Indexes of obstacles, in the order of their ends. */
struct ocs_ctl_answer {
	bool now;		/* there is room as things are */
	bool possible;		/* there is, if nothing stood in the way */
	int *ends, nends;	/* the fewest that end by themselves whose end is enough; */
	bool complete;		/* it was proven that no fewer are */
	int *lasting, nlasting; /* what must go besides those */
	int *instead, ninstead; /* without these it could start at once */
};
void ocs_ctl_obstacles_ask(struct ocs_ctl_obstacles *all, struct ocs_ctl_answer *answer);
void ocs_ctl_answer_free(struct ocs_ctl_answer *answer);

#endif
