/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_JOBS_REGION_H
#define OCS_OCSD_JOBS_REGION_H

/* The menu of a job in a region: any pairing of the optical NICs of the servers of each of its groups.
 * A group is a `rail` of the menu (state/menus.h); its circuits are made when they are first asked for,
 * and used again for other ports when they are gone. */

#include "src/ocsd/state/menus.h"

/* Derives the menu of JOB, read from a commit and not entered yet, whose shape has LAYOUT; draws its key
 * (unless WISH says that circuits stay); plans its first circuits, those of EARLIER (as by
 * ocsd_region_text, NULL: none) if they are of the same layout.  NAME is that of the job, or NULL.  0,
 * or -1 with ERR. */
int ocsd_region_create(struct ocsd *d, struct ocsd_job *job, const struct ocs_region_layout *layout,
		       int wish, const char *name, const char *earlier, struct ocs_error *err);

/* The layout, the first circuits (NOW: those that the controller asked for last) and the name of the job
 * as text, for the database; the caller frees it. */
char *ocsd_region_text(const struct ocsd_menu *menu, bool now);
/* Whether TEXT is one of these. */
bool ocsd_region_is_text(const char *text);
/* Makes the menu of JOB from TEXT, without a key.  0, or -1 with ERR: it is not what ocs.yaml says now. */
int ocsd_region_load(struct ocsd *d, struct ocsd_job *job, const char *text, struct ocs_error *err);

/* The first circuits of JOB are in STATE from now on. */
void ocsd_region_first_set(struct ocsd *d, struct ocsd_job *job, enum ocsd_circuit_state state);

/* Fills T with what turns the circuits of group NUMBER into CIRCUITS, which were checked; what is in both
 * is left alone.  0, or -1 with ERR. */
int ocsd_region_change_fill(struct ocsd *d, struct ocsd_job *job, int number,
			    const struct ocs_region_circuits *circuits, struct ocsd_transition *t,
			    struct ocs_error *err);

/* The circuits of group NUMBER that stand; the caller frees them. */
void ocsd_region_stand(const struct ocsd_menu *menu, int number,
		       struct ocs_region_circuits *circuits);

/* JOB, which has a name and leaves its allocation: the next one of this name begins with its circuits. */
void ocsd_region_remember(struct ocsd *d, const struct ocsd_job *job);

/* The group whose servers have ports A and B of switch SW both, or -1. */
int ocsd_region_group(const struct ocsd_menu *menu, int sw, int a, int b);
/* The circuit of group NUMBER between ports A and B: the one that is there or to come, or one that is
 * GONE.  NULL: the switch cannot join them. */
struct ocsd_circuit *ocsd_region_circuit(struct ocsd *d, struct ocsd_job *job, int number, int a,
					 int b);

#endif
