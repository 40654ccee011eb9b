/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <stdlib.h>

#include "src/place/place.h"

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
