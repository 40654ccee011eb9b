/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* What is known of a job that waits, for people and for programs. */

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/ocsctl/output/table.h"
#include "src/ocsctl/slurm/waiting.h"
#include "src/ocsctl/slurm/slurm_time.h"

#define AHEAD_PRINTED 8

static const char *const kinds[] = {
	[OCS_BY_JOB] = "job",	  [OCS_BY_HIDDEN] = "hidden", [OCS_BY_RESERVATION] = "reservation",
	[OCS_BY_NODES] = "nodes", [OCS_BY_CUBE] = "cube",     [OCS_BY_SWITCH] = "switch",
};

static void print_ends(const struct ocs_ctl_waiting *w)
{
	const struct ocs_ctl_answer *a = &w->answer;
	struct ocs_text_table *table = ocs_text_table_create("BY|USER|ENDS|NODES|STATE");
	char when[OCS_CTL_WHEN_TEXT];

	for (int i = 0; i < a->nends; i++) {
		const struct ocs_ctl_obstacle *one = &w->obstacles.list[a->ends[i]];
		char *nodes = ocs_ctl_obstacle_nodes(&w->obstacles, one);

		if (one->kind == OCS_BY_JOB)
			ocs_text_table_format(table, "job %ld", one->job);
		else if (one->kind == OCS_BY_RESERVATION)
			ocs_text_table_format(table, "reservation %s", one->name);
		else
			ocs_text_table_add(table, "jobs not shown to you");
		ocs_text_table_add(table, one->kind == OCS_BY_JOB ? one->name : NULL);
		ocs_text_table_add(
			table,
			ocs_ctl_moment_format(one->end,
					      one->kind == OCS_BY_JOB ? "no time limit" : "unknown",
					      when));
		ocs_text_table_add(table, nodes);
		ocs_text_table_add(table, one->why);
		free(nodes);
	}
	printf("held up:  by %d that %s; %s\n\n", a->nends,
	       a->nends == 1 ? "must end" : "must all end",
	       a->complete ? "no fewer would do" : "fewer might do");
	ocs_text_table_print(table, stdout);
	ocs_text_table_destroy(table);
}

static void print_list(const struct ocs_ctl_waiting *w, const char *label, const int *list, int n)
{
	for (int i = 0; i < n; i++) {
		const struct ocs_ctl_obstacle *one = &w->obstacles.list[list[i]];

		printf("%-9s %s %s (%s)\n", i ? "" : label, kinds[one->kind], one->name, one->why);
	}
}

static void print_room(const struct ocs_ctl_waiting *w)
{
	const struct ocs_ctl_answer *a = &w->answer;

	if (a->now) {
		bool ocsd = w->ours && !strncmp(w->ours, "ocsd ", 5);

		/* So are hierarchical resources asked for, which keep nodes from it. */
		if (*w->job->licences) {
			printf("room:     its nodes are free now; what it asks for besides (%s) Slurm counts\n",
			       w->job->licences);
			return;
		}
		/* Drained ports and XPUs are not seen here. */
		printf("room:     there is room for it now%s\n",
		       ocsd	 ? "; it waits for ocsd" :
		       w->nahead ? "; it waits for its turn" :
		       !w->ours	 ? "; slurmctld will try it again shortly" :
				   ", but for ports and XPUs that may be drained");
		return;
	}
	if (!a->possible) {
		printf("room:     none, even if all jobs ended and all faults were mended: look at its"
		       " partition, --nodelist, --exclude, --constraint and --reservation\n");
		return;
	}
	print_list(w, "lacks:", a->lasting, a->nlasting);
	if (a->ninstead && a->nends)
		print_list(w, "at once:", a->instead, a->ninstead);
	if (a->nends)
		print_ends(w);
}

void ocs_ctl_waiting_print(const struct ocs_ctl_waiting *w)
{
	char when[OCS_CTL_WHEN_TEXT];

	if (w->slurm && w->ours)
		printf("Slurm:    %s\n", w->slurm);
	if (*w->job->planned || w->job->start)
		printf("planned:  %s%s%s\n", ocs_ctl_moment_format(w->job->start, "-", when),
		       *w->job->planned ? " on " : "", w->job->planned);
	if (w->nahead) {
		printf("ahead:    %d job%s:", w->nahead, w->nahead == 1 ? "" : "s");
		for (int i = 0; i < w->nahead && i < AHEAD_PRINTED; i++)
			printf(" %ld", w->ahead[i]);
		puts(w->nahead > AHEAD_PRINTED ? " ..." : "");
	}
	if (w->asked)
		print_room(w);
}

static struct json_object *one_json(const struct ocs_ctl_waiting *w, int index)
{
	const struct ocs_ctl_obstacle *one = &w->obstacles.list[index];
	struct json_object *out = json_object_new_object();
	char *nodes = ocs_ctl_obstacle_nodes(&w->obstacles, one);

	json_object_object_add(out, "kind", json_object_new_string(kinds[one->kind]));
	if (one->kind == OCS_BY_JOB) {
		json_object_object_add(out, "job", json_object_new_int64(one->job));
		json_object_object_add(out, "user", json_object_new_string(one->name));
	} else if (one->kind != OCS_BY_HIDDEN) {
		json_object_object_add(out, "name", json_object_new_string(one->name));
	}
	if (one->end)
		json_object_object_add(out, "end", json_object_new_int64(one->end));
	if (*one->why)
		json_object_object_add(out, "reason", json_object_new_string(one->why));
	if (one->nnodes)
		json_object_object_add(out, "nodes", json_object_new_string(nodes));
	free(nodes);
	return out;
}

static void list_json(const struct ocs_ctl_waiting *w, struct json_object *out, const char *name,
		      const int *list, int n)
{
	struct json_object *array = json_object_new_array();

	for (int i = 0; i < n; i++)
		json_object_array_add(array, one_json(w, list[i]));
	json_object_object_add(out, name, array);
}

void ocs_ctl_waiting_json(const struct ocs_ctl_waiting *w, struct json_object *out)
{
	struct json_object *ahead = json_object_new_array();

	json_object_object_add(out, "slurm_reason", json_object_new_string(w->job->reason));
	if (*w->job->licences)
		json_object_object_add(out, "licences", json_object_new_string(w->job->licences));
	if (w->slurm)
		json_object_object_add(out, "slurm", json_object_new_string(w->slurm));
	if (w->job->start)
		json_object_object_add(out, "start", json_object_new_int64(w->job->start));
	if (*w->job->planned)
		json_object_object_add(out, "planned_nodes",
				       json_object_new_string(w->job->planned));
	for (int i = 0; i < w->nahead; i++)
		json_object_array_add(ahead, json_object_new_int64(w->ahead[i]));
	json_object_object_add(out, "ahead", ahead);
	if (!w->asked)
		return;
	json_object_object_add(out, "room_now", json_object_new_boolean(w->answer.now));
	json_object_object_add(out, "possible", json_object_new_boolean(w->answer.possible));
	list_json(w, out, "held_up_by", w->answer.ends, w->answer.nends);
	json_object_object_add(out, "complete", json_object_new_boolean(w->answer.complete));
	list_json(w, out, "lacks", w->answer.lasting, w->answer.nlasting);
	list_json(w, out, "at_once_without", w->answer.instead, w->answer.ninstead);
}
