/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_FABRIC_OCCUPANCY_H
#define OCS_FABRIC_OCCUPANCY_H

/* Who holds what in a torus or static section at one moment, as bit masks that
 * the placement reads directly.  A value object: copy it, change it, ask it. */

#include "src/fabric/fabric.h"

struct ocs_occupancy {
	const struct ocs_section *section;
	/* ncubes * words; bit ocs_section_bit(at) set: that XPU is free and
	 * healthy.  An XPU is free only if its whole node is. */
	uint64_t *free;
	/* ncubes * 3 * 2 * face_words: bit a*edge[second]+b set: the face port
	 * (dim, a, b, sign) of the cube is unusable (port or switch failed or
	 * drained).  Index with ocs_occupancy_blocked(). */
	uint64_t *blocked;
	int face_words;
	bool any_blocked; /* false: skip the port test altogether */
	bool *drained;	  /* ncubes; drained cubes have no free XPU */
};

/* All free, nothing blocked. */
struct ocs_occupancy *ocs_occupancy_create(const struct ocs_section *section);
void ocs_occupancy_destroy(struct ocs_occupancy *occupancy);
void ocs_occupancy_copy(struct ocs_occupancy *to, const struct ocs_occupancy *from);
/* Back to all free, nothing blocked. */
void ocs_occupancy_reset(struct ocs_occupancy *occupancy);
/* All XPUs taken (the start of "free exactly these nodes"). */
void ocs_occupancy_fill(struct ocs_occupancy *occupancy);

/* NODE is an index into fabric->nodes, of this section. */
void ocs_occupancy_node_set(struct ocs_occupancy *occupancy, const struct ocs_fabric *fabric,
			    int node, bool free);
bool ocs_occupancy_xpu_free(const struct ocs_occupancy *occupancy, int cube,
			    const int at[OCS_AXES]);
int ocs_occupancy_cube_free(const struct ocs_occupancy *occupancy, int cube);

void ocs_occupancy_cube_drain(struct ocs_occupancy *occupancy, int cube);
/* Blocks every face port that the rule maps onto switch SW (all of it when
 * PORT is 0, else that one port). */
void ocs_occupancy_switch_block(struct ocs_occupancy *occupancy, const struct ocs_fabric *fabric,
				int sw, int port);
/* The mask of blocked ports of one face: face_words words. */
const uint64_t *ocs_occupancy_blocked(const struct ocs_occupancy *occupancy, int cube, int dim,
				      int sign);
bool ocs_occupancy_port_blocked(const struct ocs_occupancy *occupancy, int cube, int dim, int a,
				int b, int sign);

/* Reads lines `cube x y z` (each makes the XPU's whole node busy; '#' comments).
 * Returns 0, or -1 with ERR naming file and line. */
struct ocs_error;
int ocs_occupancy_read_busy(struct ocs_occupancy *occupancy, const struct ocs_fabric *fabric,
			    const char *path, struct ocs_error *err);

#endif
