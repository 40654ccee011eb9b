/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSCTL_WHAT_IF_H
#define OCS_OCSCTL_WHAT_IF_H

/* What place and fold share: a shape, a section and the answer. */

#include "src/config/config.h"
#include "src/fabric/occupancy.h"
#include "src/place/place.h"

struct ocs_ctl_args;

struct ocs_ctl_where {
	struct ocs_shape shape;
	struct ocs_config *config;
	const struct ocs_fabric *fabric; /* of config */
	const struct ocs_section *section;
	struct ocs_placer *placer;
	struct ocs_occupancy *occupancy; /* all free */
	bool *reserved; /* nodes of the section that wait for a reservation, or NULL */
	struct ocs_placement *placement; /* after ocs_ctl_where_place */
	const char *when; /* near shapes "would fit ...": now, unless the caller sets it */
};

/* Reads the shape and the fabric that ARGS name.  0, or -1 with ERR; close in
 * both cases. */
int ocs_ctl_where_open(const struct ocs_ctl_args *args, struct ocs_ctl_where *where,
		       struct ocs_error *err);
void ocs_ctl_where_close(struct ocs_ctl_where *where);

/* Places and verifies.  0, or -1 with ERR (OCS_NEVER, OCS_NOT_NOW, ...). */
int ocs_ctl_where_place(struct ocs_ctl_where *where, struct ocs_error *err);

/* Prints the totals, cubes and nodes; the JSON of doc/placement.md, with ORDERS those of its ranks. */
void ocs_ctl_where_summary(const struct ocs_ctl_where *where);
void ocs_ctl_where_json(const struct ocs_ctl_where *where, bool orders);

/* "3,0,1", the coordinate of RANK; TEXT is OCS_COORD_TEXT bytes. */
#define OCS_COORD_TEXT 64
void ocs_ctl_coord_format(const struct ocs_shape *shape, long rank, char *text);
/* A complete SVG document of the folding; RANKS: per cube and XPU the rank that lies
 * there, or -1.  The caller frees it. */
char *ocs_ctl_fold_svg(const struct ocs_ctl_where *where, const long *ranks);

/* "n[0-15]"; the caller frees it. */
char *ocs_ctl_node_list(const struct ocs_fabric *fabric, const struct ocs_placement *placement);
/* "c[0-3]"; the caller frees it. */
char *ocs_ctl_cube_list(const struct ocs_placement *placement);

/* The terminal: its width (80 if it is none), and whether it wants colour. */
int ocs_ctl_columns(void);
bool ocs_ctl_colour(void);

#endif
