/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_PLACE_LINKS_H
#define OCS_PLACE_LINKS_H

/* Which XPUs of a placement are joined by a link: a fixed one of their cube (or of the static
 * torus), or a circuit.  All that exist, whether the shape needs them or not. */

#include "src/place/place.h"

struct ocs_links {
	const struct ocs_placement *placement; /* borrowed */
	long *peer;			       /* [rank * OCS_LINKS + axis * 2 + sign] */
};

/* Of PLACEMENT, which is valid.  Free with ocs_links_destroy (NULL is fine). */
struct ocs_links *ocs_links_of(const struct ocs_placement *placement);
void ocs_links_destroy(struct ocs_links *links);

/* The rank of the XPU at the other end of the link that leaves XPU RANK along AXIS in direction
 * SIGN, where it arrives along the same axis from the other direction; -1: no link to an XPU of the
 * placement. */
long ocs_links_peer(const struct ocs_links *links, long rank, int axis, int sign);

#endif
