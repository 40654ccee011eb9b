/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSCTL_CMD_PLACE_RAILS_H
#define OCS_OCSCTL_CMD_PLACE_RAILS_H

/* What a shape means on rails: which dimensions stay inside nodes, and the circuits between these. */

struct ocs_ctl_args;
struct ocs_error;
struct ocs_fabric;
struct ocs_section;
struct ocs_shape;

/* The rail section that ARGS name, or the only one of a FABRIC without cubes; NULL if there is none. */
const struct ocs_section *ocs_ctl_rails_section(const struct ocs_fabric *fabric,
						const struct ocs_ctl_args *args);

/* Prints it, or as JSON.  0, or -1 with ERR: rails cannot serve SHAPE. */
int ocs_ctl_place_rails(const struct ocs_ctl_args *args, const struct ocs_section *section,
			const struct ocs_shape *shape, struct ocs_error *err);

#endif
