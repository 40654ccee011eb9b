/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_RELOAD_H
#define OCS_OCSD_RELOAD_H

/* SIGHUP: a new ocs.yaml for a running daemon. */

struct ocs_error;
struct ocs_fabric;
struct ocsd;

/* Whether every allocation that ocsd knows keeps its nodes, its cubes' and servers'
 * switch ports, and the switches themselves under FABRIC, and whether the daemon can
 * start with its other settings.  0, or -1 with ERR naming the job and what would
 * change, or the setting. */
int ocsd_reload_check(const struct ocsd *d, const struct ocs_fabric *fabric,
		      struct ocs_error *err);

#endif
