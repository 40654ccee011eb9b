/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_RELOAD_H
#define OCS_OCSD_RELOAD_H

/* ocs.yaml: for a running daemon (SIGHUP), and for one that starts. */

struct ocs_config;
struct ocs_error;
struct ocsd;

/* Whether every allocation that ocsd knows keeps its nodes, its cubes' and servers'
 * switch ports, and the switches themselves under CONFIG, and whether the daemon can
 * start with its other settings.  0, or -1 with ERR naming the job and what would
 * change, or the setting. */
int ocsd_reload_check(const struct ocsd *d, const struct ocs_config *config, struct ocs_error *err);

/* Opens d->yaml; where that fails, the copy of what was read last, in FOLDER (NULL: the default),
 * with the reason in d->fault.  0, or -1 with ERR. */
int ocsd_reload_open(struct ocsd *d, const char *folder, struct ocs_error *err);
/* Makes that copy of what was read. */
void ocsd_reload_keep(const struct ocsd *d, const char *folder);

#endif
