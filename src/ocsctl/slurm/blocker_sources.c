/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/ocsctl/slurm/blocker_sources.h"

#include <stdlib.h>
#include <string.h>

#include "src/util/hostlist.h"
#include "src/util/text.h"

static void name_it(struct ocs_ctl_obstacle *one, const char *name, const char *why, time_t end)
{
	if (!one)
		return;
	one->name = ocs_strdup(name);
	one->why = ocs_strdup(why);
	one->end = end;
}

void ocs_ctl_around_jobs(struct ocs_ctl_obstacles *all, const struct ocs_ctl_queue *queue,
			 time_t from)
{
	for (int i = 0; i < queue->count; i++) {
		const struct ocs_ctl_queued *job = &queue->jobs[i];
		struct ocs_ctl_obstacle *one;

		if (!ocs_ctl_queued_runs(job) ||
		    (from && ((job->end && job->end <= from) || !strcmp(job->state, "COMPLETING"))))
			continue;
		one = ocs_ctl_obstacle_add(all, OCS_BY_JOB, job->nodes);
		name_it(one, job->user, strcmp(job->state, "RUNNING") ? job->state : "", job->end);
		if (one)
			one->job = job->job;
	}
}

/* Of one that recurs, the first that ends after FROM.  Weekdays count as days: rather one too
 * many. */
static void next_occurrence(const struct ocs_ctl_reservation *r, time_t from, time_t *start,
			    time_t *end)
{
	long step = strstr(r->flags, "HOURLY") ? 3600 :
		    strstr(r->flags, "WEEKLY") ? 7 * 86400 :
		    strstr(r->flags, "DAILY") || strstr(r->flags, "WEEKDAY") ||
				    strstr(r->flags, "WEEKEND") ?
						 86400 :
						 0;
	long times = step && *end <= from ? (from - *end) / step + 1 : 0;

	*start += times * step;
	*end += times * step;
}

void ocs_ctl_around_reservations(struct ocs_ctl_obstacles *all,
				 const struct ocs_ctl_reservations *list, const char *own,
				 time_t from, time_t until)
{
	for (int i = 0; i < list->count; i++) {
		const struct ocs_ctl_reservation *r = &list->list[i];
		struct ocs_ctl_obstacle *one;
		time_t start = r->start, end = r->end;

		next_occurrence(r, from, &start, &end);
		if (!strcmp(r->name, own) || end <= from || (until && start >= until))
			continue;
		one = ocs_ctl_obstacle_add(all, OCS_BY_RESERVATION, r->nodes);
		name_it(one, r->name, start > time(NULL) ? "not begun" : "", end);
		if (one)
			one->start = start;
	}
}

/* Nodes of one state that no job on the list has; the caller frees the host list. */
static char *nodes_unowned(const struct ocs_ctl_obstacles *all, const struct ocs_ctl_nodes *group)
{
	char **left = ocs_calloc((size_t)group->nnames + 1, sizeof(*left)), *list;
	size_t kept = 0;
	bool *held = ocs_calloc((size_t)all->fabric->nnodes + 1, sizeof(bool));

	for (int i = 0; i < all->count; i++) {
		for (int k = 0; k < all->list[i].nnodes; k++)
			held[all->list[i].nodes[k]] = true;
	}
	for (int i = 0; i < group->nnames; i++) {
		const struct ocs_node *node = ocs_fabric_node(all->fabric, group->names[i]);

		if (node && !held[node - all->fabric->nodes])
			left[kept++] = group->names[i];
	}
	list = ocs_hostlist_compress(left, kept);
	free(left);
	free(held);
	return list;
}

/* ocs.yaml may describe what slurm.conf does not have yet. */
static void add_absent(struct ocs_ctl_obstacles *all, const struct ocs_ctl_groups *groups)
{
	const struct ocs_fabric *fabric = all->fabric;
	bool *known = ocs_calloc((size_t)fabric->nnodes + 1, sizeof(bool));
	char **absent = ocs_calloc((size_t)all->section->nnodes + 1, sizeof(*absent)), *list;
	size_t count = 0;

	for (int i = 0; i < groups->count; i++) {
		for (int k = 0; k < groups->list[i].nnames; k++) {
			const struct ocs_node *node =
				ocs_fabric_node(fabric, groups->list[i].names[k]);

			if (node)
				known[node - fabric->nodes] = true;
		}
	}
	for (int i = 0; groups->count && i < all->section->nnodes; i++) {
		int node = all->section->first_node + i;

		if (!known[node])
			absent[count++] = fabric->nodes[node].name;
	}
	list = ocs_hostlist_compress(absent, count);
	if (count)
		name_it(ocs_ctl_obstacle_add(all, OCS_BY_NODES, list), list, "not in slurm.conf",
			0);
	free(list);
	free(absent);
	free(known);
}

void ocs_ctl_around_nodes(struct ocs_ctl_obstacles *all, bool hidden)
{
	struct ocs_ctl_groups groups;

	if (ocs_ctl_groups_read(&groups, NULL))
		return;
	for (int i = 0; i < groups.count; i++) {
		const struct ocs_ctl_nodes *one = &groups.list[i];

		if (ocs_ctl_nodes_out(one)) {
			char *why =
				ocs_asprintf("%s%s%s", one->silent ? "not responding" : one->state,
					     *one->reason ? ": " : "", one->reason);

			name_it(ocs_ctl_obstacle_add(all, OCS_BY_NODES, one->nodes), one->nodes,
				why, 0);
			free(why);
		} else if (hidden && ocs_ctl_nodes_used(one)) {
			/* A job has them that squeue does not show to this user. */
			char *nodes = nodes_unowned(all, one);

			name_it(ocs_ctl_obstacle_add(all, OCS_BY_HIDDEN, nodes), nodes, "", 0);
			free(nodes);
		}
	}
	add_absent(all, &groups);
	ocs_ctl_groups_free(&groups);
}

static void add_fault(struct ocs_ctl_obstacles *all, const struct ocs_ctl_part *part)
{
	bool failed = !strcmp(part->state, "FAILED");
	struct ocs_ctl_obstacle *one = NULL;
	char *why;

	if (!failed && strcmp(part->state, "DRAINED") != 0)
		return;
	if (part->cube && !failed && !strcmp(part->section, all->section->name))
		one = ocs_ctl_obstacle_add(all, OCS_BY_CUBE, part->nodes);
	else if (part->sw && all->section->ncubes)
		one = ocs_ctl_obstacle_add(all, OCS_BY_SWITCH, NULL);
	why = ocs_asprintf("%s%s%s", failed ? "failed" : "drained", *part->reason ? ": " : "",
			   part->reason);
	name_it(one, part->cube ? part->cube : part->sw, why, 0);
	free(why);
	if (one && part->sw)
		one->sw = ocs_fabric_switch(all->fabric, part->sw);
}

void ocs_ctl_around_faults(struct ocs_ctl_obstacles *all)
{
	struct ocs_ctl_parts parts;

	if (ocs_ctl_parts_read(&parts, NULL))
		return;
	for (int i = 0; i < parts.count; i++)
		add_fault(all, &parts.list[i]);
	ocs_ctl_parts_free(&parts);
}
