/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSCTL_SLURM_BLOCKER_SOURCES_H
#define OCS_OCSCTL_SLURM_BLOCKER_SOURCES_H

/* Obstacles, as Slurm's commands show them to the user. */

#include "src/ocsctl/slurm/blockers.h"
#include "src/ocsctl/slurm/slurm.h"

/* Jobs that have nodes; FROM not 0: that may still have them then. */
void ocs_ctl_around_jobs(struct ocs_ctl_obstacles *all, const struct ocs_ctl_queue *queue,
			 time_t from);
/* Reservations, but for OWN, that meet the time between FROM and UNTIL (0: for ever). */
void ocs_ctl_around_reservations(struct ocs_ctl_obstacles *all,
				 const struct ocs_ctl_reservations *list, const char *own,
				 time_t from, time_t until);
/* Nodes that are out of service or unknown to Slurm; HIDDEN: and those in use that no job added
 * before has. */
void ocs_ctl_around_nodes(struct ocs_ctl_obstacles *all, bool hidden);
/* Cubes and switches that are drained or failed; slurmctld's picture of the fabric shows
 * them to all users. */
void ocs_ctl_around_faults(struct ocs_ctl_obstacles *all);

#endif
