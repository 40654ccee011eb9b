/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_JOBS_MENU_H
#define OCS_OCSD_JOBS_MENU_H

/* The menu of a job on rails: every circuit that a topology of its shape has, on every rail.  It is
 * derived and checked once, at commit, and is durable from then on; which of its circuits stand is
 * not: that is read from the switches, where jobs/topology.c changes it while the job runs.  All
 * circuits of the menu are among those of the job, with a `rail`; those that do not stand are GONE. */

#include "src/ocsd/state/menus.h"

/* Derives the menu of JOB, read from a commit and not entered yet, from its section, its nodes (in
 * their order) and LAYOUT; draws its key; plans its first topology.  0, or -1 with ERR. */
int ocsd_menu_create(struct ocsd *d, struct ocsd_job *job, const struct ocs_rails_layout *layout,
		     enum ocs_phases phases, struct ocs_error *err);

/* Writes it, for a job that is being entered; no-op without one. */
void ocsd_menu_store(struct ocsd *d, const struct ocsd_job *job);

/* The menu of a JOB of the database, from its row.  0, or -1 with ERR: it is not what ocs.yaml
 * says now. */
int ocsd_menu_load(struct ocsd *d, struct ocsd_job *job, const char *layout, const char *phases,
		   const char *digest, const char *key, struct ocs_error *err);

/* JOB, which ran when it was committed, has the circuits that its switches show: none is made. */
void ocsd_menu_adopt_running(struct ocsd *d, struct ocsd_job *job);

/* The circuit of PAIR on RAIL, NULL: the menu has none. */
struct ocsd_circuit *ocsd_menu_circuit(const struct ocsd_menu *menu, const struct ocsd_rail *rail,
				       const struct ocs_rails_pair *pair);

/* SW shows TABLE.  Patches between two ports of one job with a menu are its own: after a start those
 * of the menu are adopted, later ones are late, and cut, like all that no menu has. */
void ocsd_menus_adopt(struct ocsd *d, struct ocsd_switch *sw, const struct ocs_table *table);

#endif
