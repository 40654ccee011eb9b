/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSCTL_CMD_REGION_H
#define OCS_OCSCTL_CMD_REGION_H

struct ocs_ctl_args;
struct ocs_error;
struct ocs_moe_demand;
struct ocs_moe_circuits;

/* The parts of 'ocsctl region', like the other commands of ocsctl.h. */
int ocs_ctl_region_plan(const struct ocs_ctl_args *args, struct ocs_error *err);
int ocs_ctl_region_predict(const struct ocs_ctl_args *args, struct ocs_error *err);
int ocs_ctl_region_replay(const struct ocs_ctl_args *args, struct ocs_error *err);
int ocs_ctl_region_check(const struct ocs_ctl_args *args, struct ocs_error *err);
int ocs_ctl_region_show(const struct ocs_ctl_args *args, struct ocs_error *err);

/* region_svg.c: a picture of what servers send and of their circuits; the caller frees it. */
char *ocs_ctl_region_svg(const struct ocs_moe_demand *demand,
			 const struct ocs_moe_circuits *circuits);

/* 'ocsctl show region [JOB]'; -1 with ERR. */
int ocs_ctl_show_region(const struct ocs_ctl_args *args, struct ocs_error *err);

/* FIRST or FIRST,EACH of --switching. */
int ocs_ctl_region_switching(const char *text, double *first, double *each, struct ocs_error *err);

#endif
