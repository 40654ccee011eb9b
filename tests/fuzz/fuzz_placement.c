/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The compact form of a placement: whatever is let through is sound and is written
 * back to the same text. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/place/place.h"
#include "src/util/error.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct ocs_fabric *fabric;
	static struct ocs_placer *placer;
	struct ocs_placement *placement;
	struct ocs_error err = { 0 };
	char *text;

	if (!fabric) {
		fabric = ocs_fabric_open("torus cubes:2x2x1 cube:4x4x4 tile:2x2x1", &err);
		if (!fabric)
			abort();
		placer = ocs_placer_create(fabric, &fabric->sections[0]);
	}
	text = malloc(size + 1);
	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	placement = ocs_placement_decode(placer, text, &err);
	if (!placement && !err.code)
		abort();
	if (placement && (ocs_placement_verify(fabric, NULL, placement, &err) ||
			  strcmp(placement->compact, text)))
		abort();
	ocs_placement_destroy(placement);
	free(text);
	return 0;
}
