/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSCTL_CMD_PLACE_REGION_H
#define OCS_OCSCTL_CMD_PLACE_REGION_H

struct ocs_config;
struct ocs_ctl_args;
struct ocs_error;
struct ocs_fabric;
struct ocs_section;
struct ocs_shape;

/* The section of regions that `place` with ARGS asks about, or NULL: with --section that one, else
 * the only one where the fabric has no cubes. */
const struct ocs_section *ocs_ctl_region_section(const struct ocs_fabric *fabric,
						 const struct ocs_ctl_args *args);

/* `place SHAPE` there: the servers that the groups of SHAPE get.  0, or -1 with ERR. */
int ocs_ctl_place_region(const struct ocs_ctl_args *args, const struct ocs_config *config,
			 const struct ocs_section *section, const struct ocs_shape *shape,
			 struct ocs_error *err);

#endif
