/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSCTL_OUTPUT_REGION_PICTURE_H
#define OCS_OCSCTL_OUTPUT_REGION_PICTURE_H

#include <stdbool.h>
#include <stdio.h>

#include "src/moe/circuits.h"

/* A moment of a region: heat maps of what goes from server to server. */
struct ocs_region_picture {
	const char *caption;
	const struct ocs_moe_demand *demand; /* NULL: not known */
	const struct ocs_moe_circuits *circuits;
	const struct ocs_moe_demand *achieved; /* a rate for each pair; NULL: not known */
};

/* Columns of the terminal that standard output is, or what fits paper. */
int ocs_region_picture_width(void);

/* Heat maps beside each other if they fit in WIDTH columns, in 256 colours or as plain text. */
void ocs_region_picture_print(const struct ocs_region_picture *picture, int width, bool colour,
			      FILE *out);

/* N pictures below each other as SVG; the caller frees it. */
char *ocs_region_picture_svg(const struct ocs_region_picture *pictures, int n);

#endif
