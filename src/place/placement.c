/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <stdlib.h>
#include <string.h>

#include "src/place/place.h"
#include "src/util/text.h"

void ocs_placement_destroy(struct ocs_placement *placement)
{
	if (!placement)
		return;
	free(placement->xpus);
	free(placement->circuits);
	free(placement->cubes);
	free(placement->nodes);
	free(placement->compact);
	free(placement);
}

static void *copy(const void *from, size_t count, size_t size)
{
	void *to = ocs_calloc(count ? count : 1, size);

	if (count)
		memcpy(to, from, count * size);
	return to;
}

struct ocs_placement *ocs_placement_copy(const struct ocs_placement *placement)
{
	struct ocs_placement *to = copy(placement, 1, sizeof(*to));

	to->xpus = copy(placement->xpus, (size_t)placement->shape.xpus, sizeof(*to->xpus));
	to->circuits = copy(placement->circuits, (size_t)placement->ncircuits,
			    sizeof(*to->circuits));
	to->cubes = copy(placement->cubes, (size_t)placement->ncubes, sizeof(*to->cubes));
	to->nodes = copy(placement->nodes, (size_t)placement->nnodes, sizeof(*to->nodes));
	to->compact = placement->compact ? ocs_strdup(placement->compact) : NULL;
	return to;
}
