/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/protocol/client.h"
#include "src/ocsctl/cmd/advise_fabric.h"
#include "src/ocsctl/ocsctl.h"
#include "src/ocsctl/slurm/state.h"
#include "src/ocsctl/output/table.h"
#include "src/ocsctl/what_if.h"
#include "src/advice/advice.h"
#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/util/text.h"

/* What was asked, what runs, and the answer. */
struct advise {
	const struct ocs_ctl_args *args;
	struct ocs_ctl_where where; /* its occupancy: the section without the jobs */
	struct ocs_ctl_state state;
	struct ocs_advice_job *jobs;
	struct json_object **rows; /* what ocsd says of each, borrowed from the state */
	int njobs;
	struct ocs_advice *advice;
};

/* ocsd, or what `map --json` printed. */
static int state_get(struct advise *a, struct ocs_error *err)
{
	struct ocs_client *client;
	struct json_object *map;
	int rc;

	if (a->args->map) {
		map = ocs_ctl_read_json(a->args->map, err);
		if (!map)
			return -1;
		rc = ocs_ctl_state_from_map(map, &a->state, err);
		json_object_put(map);
		return rc ? ocs_error_prefix(err, "%s", a->args->map) : 0;
	}
	client = ocs_ctl_connect(a->args, a->where.config, err);
	if (!client)
		return -1;
	rc = ocs_ctl_state_read(client, &a->state, err);
	ocs_client_close(client);
	if (!rc)
		ocs_ctl_state_notes(&a->state, "ocsctl: ", stderr);
	if (!rc && a->state.by_slurm)
		fputs("ocsctl: no other jobs than yours are thought of as moved\n", stderr);
	return rc;
}

/* Jobs that failed are leaving by themselves. */
static bool job_movable(struct json_object *job)
{
	return ocs_ctl_job_lives(job) &&
	       strcmp(ocs_ctl_string(job, OCS_FIELD_STATE, ""), "failed") != 0;
}

/* Frees the nodes of job INDEX that are not out of order, nor reserved.  HOLDER: per node of the section,
 * the job that had it before (index + 1). */
static int job_leave(struct advise *a, int index, int *holder, struct ocs_error *err)
{
	struct ocs_ctl_where *w = &a->where;
	const struct ocs_placement *p = a->jobs[index].placement;

	for (int k = 0; k < p->nnodes; k++) {
		const struct ocs_node *node = &w->fabric->nodes[p->nodes[k]];
		int *had = &holder[p->nodes[k] - w->section->first_node];

		if (*had)
			return ocs_error_set(err, OCS_ERROR, "jobs %s and %s both hold node %s",
					     ocs_ctl_string(a->rows[*had - 1], OCS_FIELD_JOB, "?"),
					     ocs_ctl_string(a->rows[index], OCS_FIELD_JOB, "?"),
					     node->name);
		*had = index + 1;
		if (!ocs_ctl_state_out(&a->state, node->name) &&
		    !ocs_ctl_state_reservation(&a->state, node->name) &&
		    !w->occupancy->drained[node->cube])
			ocs_occupancy_node_set(w->occupancy, w->fabric, p->nodes[k], true);
	}
	return 0;
}

/* The jobs that could be moved; their nodes that are not out of order are free in the
 * occupancy afterwards. */
static int jobs_get(struct advise *a, struct ocs_error *err)
{
	struct ocs_ctl_where *w = &a->where;
	size_t n = ocs_ctl_length(a->state.jobs);
	int *holder, rc = 0;

	a->jobs = ocs_calloc(n + 1, sizeof(*a->jobs));
	a->rows = ocs_calloc(n + 1, sizeof(struct json_object *));
	if (ocs_ctl_state_occupy(&a->state, w->fabric, w->placer, w->occupancy, err))
		return -1;
	holder = ocs_calloc((size_t)w->section->nnodes + 1, sizeof(int));
	for (size_t i = 0; i < n && !rc; i++) {
		struct json_object *job = json_object_array_get_idx(a->state.jobs, i);
		struct ocs_placement *p = NULL;

		if (job_movable(job))
			rc = ocs_ctl_job_placement(job, w->section, w->placer, &p, err);
		if (!p)
			continue;
		a->rows[a->njobs] = job;
		a->jobs[a->njobs].placement = p;
		a->jobs[a->njobs++].cost = p->shape.xpus;
		rc = job_leave(a, a->njobs - 1, holder, err);
	}
	free(holder);
	/* nodes with a drained XPU among those that were freed */
	ocs_ctl_state_drains(&a->state, w->fabric, w->occupancy);
	return rc;
}

/* "[DAYS-][[HOURS:]MINUTES:]SECONDS" in hours, below zero if it is none. */
static double hours_of(const char *text)
{
	long part[4] = { 0 }, value;
	bool days = strchr(text, '-') != NULL;
	int n = 0;
	char word[16];

	while (n < (days ? 4 : 3)) {
		size_t length = strcspn(text, n || !days ? ":" : "-");

		if (length >= sizeof(word))
			return -1;
		memcpy(word, text, length);
		word[length] = '\0';
		if (ocs_number_parse(word, 0, 1000000, &value))
			return -1;
		part[n++] = value;
		text += length;
		if (!*text)
			break;
		text++;
	}
	if (*text || n < (days ? 4 : 2))
		return -1;
	value = part[n - 1] + 60 * part[n - 2];
	if (n > 2)
		value += 3600 * part[n - 3];
	return (double)value / 3600 + (days ? 24.0 * (double)part[0] : 0);
}

/* A restart costs what the job has done so far, and the minute that it takes. */
static void cost_set(struct advise *a, long job, double hours)
{
	for (int i = 0; i < a->njobs; i++) {
		if (ocs_field_number(a->rows[i], OCS_FIELD_JOB, 0) == job)
			a->jobs[i].cost =
				(double)a->jobs[i].placement->shape.xpus * (hours + 1 / 60.0);
	}
}

static int elapsed_read(struct advise *a, struct ocs_error *err)
{
	char *text, *line, *next;
	int number = 0, rc = 0;

	if (!a->args->elapsed)
		return 0;
	text = ocs_ctl_read(a->args->elapsed, err);
	if (!text)
		return -1;
	for (int i = 0; i < a->njobs; i++)
		a->jobs[i].cost = (double)a->jobs[i].placement->shape.xpus / 60;
	for (line = text; *line && !rc; line = next) {
		size_t length = strcspn(line, "\n"), word;
		long job;
		double hours;

		next = line + length + (line[length] == '\n');
		line[length] = '\0';
		number++;
		line += strspn(line, " \t");
		if (!*line || *line == '#')
			continue;
		word = strcspn(line, " \t");
		hours = line[word] ? hours_of(line + word + strspn(line + word, " \t")) : -1;
		line[word] = '\0';
		if (hours < 0 || ocs_number_parse(line, 1, UINT32_MAX, &job))
			rc = ocs_error_set(
				err, OCS_USAGE,
				"%s:%d: a job and the time it has run are"
				" needed, as in '17 1-02:30:00' (squeue -h -t R -o '%%A %%M')",
				a->args->elapsed, number);
		else
			cost_set(a, job, hours);
	}
	free(text);
	return rc;
}

static const char *unit_text(const struct advise *a)
{
	return a->args->elapsed ? "XPU hours" : "XPUs";
}

static struct json_object *cubes_json(const struct ocs_placement *p)
{
	struct json_object *array = json_object_new_array();

	for (int i = 0; i < p->ncubes; i++)
		json_object_array_add(array,
				      json_object_new_string(p->section->cube_names[p->cubes[i]]));
	return array;
}

static void add_text(struct json_object *object, const char *name, const char *text)
{
	json_object_object_add(object, name, json_object_new_string(text));
}

static struct json_object *move_json(const struct advise *a, const struct ocs_advice_move *move)
{
	struct json_object *one = json_object_new_object(), *row = a->rows[move->job];
	const struct ocs_placement *was = a->jobs[move->job].placement;
	char shape[OCS_SHAPE_TEXT];

	json_object_object_add(one, "job",
			       json_object_new_int64(ocs_field_number(row, OCS_FIELD_JOB, 0)));
	add_text(one, "user", ocs_ctl_string(row, OCS_FIELD_USER, ""));
	add_text(one, "shape", ocs_shape_format(&was->shape, shape));
	json_object_object_add(one, "xpus", json_object_new_int64(was->shape.xpus));
	json_object_object_add(one, "cost", json_object_new_double(a->jobs[move->job].cost));
	json_object_object_add(one, "order", json_object_new_int(move->order + 1));
	json_object_object_add(one, "from", cubes_json(was));
	json_object_object_add(one, "to", cubes_json(move->placement));
	json_object_object_add(one, "placement",
			       ocs_placement_to_json(a->where.fabric, move->placement));
	return one;
}

static void print_json(const struct advise *a)
{
	struct json_object *out = json_object_new_object(), *moves = json_object_new_array();
	char shape[OCS_SHAPE_TEXT];

	add_text(out, "shape", ocs_shape_format(&a->where.shape, shape));
	for (int i = 0; i < a->advice->nmoves; i++)
		json_object_array_add(moves, move_json(a, &a->advice->moves[i]));
	json_object_object_add(out, "moves", moves);
	json_object_object_add(out, "cost", json_object_new_double(a->advice->cost));
	add_text(out, "cost_unit", unit_text(a));
	json_object_object_add(out, "order", json_object_new_int(a->advice->order + 1));
	json_object_object_add(out, "placement",
			       ocs_placement_to_json(a->where.fabric, a->advice->placement));
	json_object_object_add(out, "complete", json_object_new_boolean(a->advice->complete));
	json_object_object_add(out, "placements_tried", json_object_new_int64(a->advice->work));
	ocs_ctl_print_json(out);
	json_object_put(out);
}

static void add_cubes(struct ocs_text_table *table, const struct ocs_placement *p)
{
	char *cubes = p ? ocs_ctl_cube_list(p) : NULL;

	ocs_text_table_add(table, cubes);
	free(cubes);
}

/* One line per job, in the order of placing. */
static void print_table(const struct advise *a)
{
	struct ocs_text_table *table =
		ocs_text_table_create("ORDER|JOB|USER|SHAPE|>XPUS|>COST|FROM|TO");
	const struct ocs_advice *advice = a->advice;
	char shape[OCS_SHAPE_TEXT];

	for (int at = 0, i = 0; at <= advice->nmoves; at++) {
		const struct ocs_advice_move *move =
			at == advice->order ? NULL : &advice->moves[i++];
		const struct ocs_shape *s = move ? &move->placement->shape : &a->where.shape;
		struct json_object *row = move ? a->rows[move->job] : NULL;

		ocs_text_table_format(table, "%d", at + 1);
		ocs_text_table_add(table,
				   row ? ocs_ctl_string(row, OCS_FIELD_JOB, "?") : "(waits)");
		ocs_text_table_add(table, row ? ocs_ctl_string(row, OCS_FIELD_USER, "?") : NULL);
		ocs_text_table_add(table, ocs_shape_format(s, shape));
		ocs_text_table_format(table, "%ld", s->xpus);
		if (move)
			ocs_text_table_format(table, "%.*f", a->args->elapsed ? 1 : 0,
					      a->jobs[move->job].cost);
		else
			ocs_text_table_add(table, NULL);
		add_cubes(table, move ? a->jobs[move->job].placement : NULL);
		add_cubes(table, move ? move->placement : advice->placement);
	}
	ocs_text_table_print(table, stdout);
	ocs_text_table_destroy(table);
}

static void print_text(const struct advise *a)
{
	const struct ocs_advice *advice = a->advice;
	char shape[OCS_SHAPE_TEXT], *nodes = ocs_ctl_node_list(a->where.fabric, advice->placement);

	ocs_shape_format(&a->where.shape, shape);
	if (!advice->nmoves) {
		printf("%s fits as things are, on nodes %s\n", shape, nodes);
		free(nodes);
		return;
	}
	printf("%s could start on nodes %s if %d job%s (%.*f %s) were restarted elsewhere:\n\n",
	       shape, nodes, advice->nmoves, advice->nmoves == 1 ? "" : "s",
	       a->args->elapsed ? 1 : 0, advice->cost, unit_text(a));
	free(nodes);
	print_table(a);
	printf("\n%s\n",
	       advice->complete ?
		       "No fewer and no cheaper jobs would do." :
		       "Not all sets of jobs were tried: fewer or cheaper ones might do.");
}

static void advise_close(struct advise *a)
{
	ocs_advice_destroy(a->advice);
	for (int i = 0; i < a->njobs; i++)
		ocs_placement_destroy((struct ocs_placement *)(uintptr_t)a->jobs[i].placement);
	free(a->jobs);
	free(a->rows);
	ocs_ctl_state_free(&a->state);
	ocs_ctl_where_close(&a->where);
}

int ocs_ctl_advise(const struct ocs_ctl_args *args, struct ocs_error *err)
{
	struct advise a = { .args = args };
	struct ocs_ctl_where *w = &a.where;
	int rc = -1;

	if (!strcmp(args->operands[0], "fabric"))
		return ocs_ctl_advise_fabric(args, err);
	if (args->count > 1)
		return ocs_error_set(err, OCS_USAGE,
				     "advise: '%s' is too much; usage: ocsctl advise %s",
				     args->operands[1], args->command->operands);
	if (!strcmp(args->operands[0], "costs"))
		return ocs_ctl_advise_costs(args, err);
	if (args->map && args->ocsd)
		return ocs_error_set(err, OCS_USAGE, "advise: give --map or --ocsd, not both");
	if (args->map && args->elapsed && !strcmp(args->map, "-") && !strcmp(args->elapsed, "-"))
		return ocs_error_set(err, OCS_USAGE,
				     "advise: only one of --map and --elapsed can be"
				     " standard input");
	if (!ocs_ctl_where_open(args, w, err) && !state_get(&a, err) && !jobs_get(&a, err) &&
	    !elapsed_read(&a, err))
		a.advice = ocs_advise(&(struct ocs_advice_request){ .place = ocs_advice_place,
								    .arg = w->placer,
								    .fabric = w->fabric,
								    .base = w->occupancy,
								    .shape = &w->shape,
								    .jobs = a.jobs,
								    .njobs = a.njobs },
				      err);
	if (a.advice) {
		rc = 0;
		if (args->json)
			print_json(&a);
		else
			print_text(&a);
	}
	advise_close(&a);
	return rc;
}
