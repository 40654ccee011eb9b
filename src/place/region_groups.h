/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_PLACE_REGION_GROUPS_H
#define OCS_PLACE_REGION_GROUPS_H

/* Jobs with experts on regions: the dimension ep of a shape, and all behind it, make a group; what
 * stands before it counts the groups.  A group takes whole servers of one region. */

#include <stdbool.h>

struct ocs_error;
struct ocs_section;
struct ocs_shape;

struct ocs_region_layout {
	int groups, servers; /* servers of each group */
	int node_xpus;	     /* of a server that are used */
};

/* What SHAPE, whose `moe` is set, takes in SECTION.  0, or -1 with ERR: OCS_USAGE, it has no dimension
 * ep; OCS_NEVER, groups do not fill servers, or no region is large enough. */
int ocs_region_layout_make(const struct ocs_section *section, const struct ocs_shape *shape,
			   struct ocs_region_layout *layout, struct ocs_error *err);

/* WISH of a job in SECTION: with circuits that stay where changes take too long. */
int ocs_region_wish(const struct ocs_section *section, int wish);

/* The servers of SECTION that SHAPE takes without `moe`: any, filled one after the other.  -1 with ERR
 * (OCS_NEVER): it does not fill them, or there are not so many. */
int ocs_region_servers(const struct ocs_section *section, const struct ocs_shape *shape,
		       struct ocs_error *err);

/* Chooses servers of SECTION for LAYOUT: IDLE and REQUIRED (NULL: none) have an entry for each, and what
 * is required is idle.  Regions are filled as far as can be: of all choices it is one that leaves the
 * fewest free servers in the regions that it takes, and of these one that takes the fewest regions.
 * SERVERS gets groups x servers of them, ascending: consecutive ones are a group.  Returns how
 * many, or -1 with ERR: OCS_NOT_NOW, or OCS_NEVER where not even an empty section would do. */
int ocs_region_place(const struct ocs_section *section, const struct ocs_region_layout *layout,
		     const bool *idle, const bool *required, int *servers, struct ocs_error *err);

/* Whether an empty SECTION has room for LAYOUT: 0, or -1 with ERR (OCS_NEVER). */
int ocs_region_possible(const struct ocs_section *section, const struct ocs_region_layout *layout,
			struct ocs_error *err);

/* Whether the COUNT SERVERS in their order are groups of LAYOUT, each in one region: 0, or -1 with
 * ERR. */
int ocs_region_check(const struct ocs_section *section, const struct ocs_region_layout *layout,
		     const int *servers, int count, struct ocs_error *err);

#endif
