/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSCTL_CMD_ADVISE_FABRIC_H
#define OCS_OCSCTL_CMD_ADVISE_FABRIC_H

struct ocs_compare;
struct ocs_cost_table;
struct ocs_ctl_args;
struct ocs_error;
struct ocs_optimise_request;

/* advise fabric and advise costs, as commands: see ocsctl.h. */
int ocs_ctl_advise_fabric(const struct ocs_ctl_args *args, struct ocs_error *err);
int ocs_ctl_advise_costs(const struct ocs_ctl_args *args, struct ocs_error *err);

/* output/fabric_html.c: the comparison as a page that needs nothing else; the caller frees it. */
char *ocs_ctl_fabric_html(const struct ocs_compare *compare, const char *title, const char *machine,
			  const struct ocs_cost_table *table);
/* The same file: its bars as a picture of their own, SVG; the caller frees it. */
char *ocs_ctl_fabric_svg(const struct ocs_compare *compare, const char *title);

#endif
