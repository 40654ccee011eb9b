/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_PLAN_INTERNAL_H
#define OCS_PLAN_INTERNAL_H

/* Shared by the files of the maker; ocs_plan_verify uses none of it. */

#include <stdint.h>

#include "src/plan/plan.h"

/* Reads a demand; the groups (in the order of the file) are the caller's.
 * Returns 0, or -1 with ERR and nothing allocated. */
int ocs_plan_demand_parse(const char *text, int servers,
			  struct ocs_plan_group **groups, int *ngroups,
			  struct ocs_error *err);
/* A group over servers 0..SERVERS-1. */
void ocs_plan_group_all(struct ocs_plan_group *group, int servers);
void ocs_plan_groups_free(struct ocs_plan_group *groups, int ngroups);

/* Chooses COUNT steps (steps[0] == 1) for rings over MEMBERS servers; repeats them
 * when there are fewer co-prime steps.  paper: the geometric sequence projected
 * on the candidates.  best: a search for the fewest average hops. */
void ocs_plan_steps_paper(int members, int count, bool directed, int *steps);
void ocs_plan_steps_best(int members, int count, bool directed, int *steps);

/* Gives the rings of PLAN's groups (nrings and steps are wishes) ports and planes;
 * lowers nrings where they do not fit; uses what is left.  Fills circuits and
 * assignment.  ORDER: groups, most important first. */
void ocs_plan_assign(struct ocs_plan *plan, const int *order, bool best);

/* Fills diameter, average_hops and max_link_load, and routes if ROUTES.  BALANCE:
 * spends more time on even loads.  Returns -1 when some server cannot reach
 * another. */
int ocs_plan_measure(struct ocs_plan *plan, bool routes, bool balance);

#endif
