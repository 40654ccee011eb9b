/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/protocol/client.h"
#include "src/ocsctl/ocsctl.h"
#include "src/ocsctl/slurm/state.h"
#include "src/ocsctl/output/watch.h"
#include "src/ocsctl/what_if.h"
#include "src/layout/diagram.h"
#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/util/hostlist.h"
#include "src/util/text.h"

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
#define LETTERS ((int)sizeof(letters) - 1)

/* From picture to picture a job keeps its letter. */
struct map_letters {
	struct {
		int64_t job;
		int letter;
		bool lives;
	} * jobs;
	int n;
	int next;
};

/* One living job: its letter is the same in every section. */
struct map_job {
	struct json_object *job;
	struct ocs_placement *placement; /* on the section being drawn, or NULL */
	char *label;
	char sign;
};

struct map {
	const struct ocs_ctl_args *args;
	struct map_letters *letters;
	struct ocs_config *config;
	const struct ocs_fabric *fabric; /* of config */
	struct ocs_ctl_state state;
	struct map_job *jobs;
	int njobs;
};

static bool on_cubes(const struct ocs_section *section)
{
	return section->kind == OCS_TORUS || section->kind == OCS_STATIC;
}

static int letter_give(struct map_letters *l, int64_t job)
{
	int i, tries, letter = l->next;

	for (i = 0; i < l->n; i++) {
		if (l->jobs[i].job == job) {
			l->jobs[i].lives = true;
			return l->jobs[i].letter;
		}
	}
	/* the next one that no job has; with more jobs than letters they go round */
	for (tries = 0; tries < LETTERS; tries++) {
		letter = (l->next + tries) % LETTERS;
		for (i = 0; i < l->n && l->jobs[i].letter != letter; i++)
			;
		if (i == l->n)
			break;
	}
	if (tries == LETTERS)
		letter = l->next;
	l->next = (letter + 1) % LETTERS;
	l->jobs = ocs_realloc(l->jobs, (size_t)(l->n + 1) * sizeof(*l->jobs));
	l->jobs[l->n].job = job;
	l->jobs[l->n].letter = letter;
	l->jobs[l->n++].lives = true;
	return letter;
}

/* Takes the letters of jobs that are gone. */
static void letters_take(struct map_letters *l)
{
	int i, kept = 0;

	for (i = 0; i < l->n; i++) {
		if (!l->jobs[i].lives)
			continue;
		l->jobs[kept] = l->jobs[i];
		l->jobs[kept++].lives = false;
	}
	l->n = kept;
}

static void list_jobs(struct map *map)
{
	size_t n = ocs_ctl_length(map->state.jobs);

	map->jobs = ocs_calloc(n ? n : 1, sizeof(*map->jobs));
	for (size_t i = 0; i < n; i++) {
		struct json_object *job = json_object_array_get_idx(map->state.jobs, i);
		struct map_job *one = &map->jobs[map->njobs];

		if (!ocs_ctl_job_lives(job))
			continue;
		one->job = job;
		map->njobs++;
		one->sign =
			letters[letter_give(map->letters, ocs_field_number(job, OCS_FIELD_JOB, 0))];
		one->label =
			ocs_asprintf("job %s, %s, %s, %s", ocs_ctl_string(job, OCS_FIELD_JOB, "?"),
				     ocs_ctl_string(job, OCS_FIELD_USER, "?"),
				     ocs_ctl_string(job, OCS_FIELD_SHAPE, "no shape"),
				     ocs_ctl_string(job, OCS_FIELD_STATE, "?"));
	}
	letters_take(map->letters);
}

static void map_close(struct map *map)
{
	for (int i = 0; i < map->njobs; i++)
		free(map->jobs[i].label);
	free(map->jobs);
	ocs_ctl_state_free(&map->state);
	ocs_config_destroy(map->config);
}

static int map_open(const struct ocs_ctl_args *args, struct map_letters *letters_kept,
		    struct map *map, struct ocs_error *err)
{
	struct ocs_client *client;
	int rc;

	memset(map, 0, sizeof(*map));
	map->args = args;
	map->letters = letters_kept;
	map->config = ocs_ctl_config_open(args, err);
	if (!map->config)
		return -1;
	map->fabric = map->config->fabric;
	if (args->section && !ocs_fabric_section_named(map->fabric, args->section))
		return ocs_ctl_no_section(map->fabric, args, err);
	client = ocs_ctl_connect(args, map->config, err);
	if (!client)
		return -1;
	rc = ocs_ctl_state_read(client, &map->state, err);
	ocs_client_close(client);
	if (rc)
		return -1;
	list_jobs(map);
	return 0;
}

/* What holds or stops a node besides shaped jobs. */
static bool node_is(const struct map *map, int node, const char *state)
{
	return !strcmp(ocs_ctl_state_node(&map->state, map->fabric->nodes[node].name), state);
}

static bool node_down(const struct map *map, int node)
{
	return ocs_ctl_state_out(&map->state, map->fabric->nodes[node].name) ||
	       ocs_ctl_state_drained(&map->state, map->fabric, node);
}

/* Users see no jobs of others, only that their nodes are taken. */
static const char *busy_label(const struct map *map, const char *otherwise)
{
	return map->state.by_slurm ? "in use by jobs not shown to you" : otherwise;
}

/* Nodes of one kind, for an item of the picture. */
struct node_set {
	int *nodes;
	int n;
};

static void add_item(struct ocs_picture_item *items, int *n, const struct node_set *set, char sign,
		     bool down, const char *label)
{
	if (!set->n)
		return;
	items[(*n)++] = (struct ocs_picture_item){
		.label = label, .sign = sign, .down = down, .nodes = set->nodes, .nnodes = set->n
	};
}

static int read_placements(struct map *map, const struct ocs_section *section,
			   struct ocs_error *err)
{
	struct ocs_placer *placer = ocs_placer_create(map->fabric, section);
	int rc = 0;

	for (int i = 0; i < map->njobs && !rc; i++)
		rc = ocs_ctl_job_placement(map->jobs[i].job, section, placer,
					   &map->jobs[i].placement, err);
	ocs_placer_destroy(placer);
	return rc;
}

static void drop_placements(struct map *map)
{
	for (int i = 0; i < map->njobs; i++) {
		ocs_placement_destroy(map->jobs[i].placement);
		map->jobs[i].placement = NULL;
	}
}

/* A picture in a report should say of when it is. */
static char *title_of(const struct ocs_section *section)
{
	time_t now = time(NULL);
	char when[32];

	strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", localtime(&now));
	return ocs_asprintf("section %s, %s", section->name, when);
}

/* Bottom to top: busy nodes, what is out of order, idle XPUs of shaped jobs' nodes,
 * and the jobs: a drained cube keeps the jobs it has. */
static char *cubes_picture(struct map *map, const struct ocs_section *section, bool svg)
{
	struct ocs_picture_item *items = ocs_calloc(map->njobs + 4, sizeof(*items));
	struct node_set busy = { 0 }, idle = { 0 }, down = { 0 }, reserved = { 0 };
	char *text, *title;
	int n = 0;

	busy.nodes = ocs_calloc(section->nnodes, sizeof(int));
	idle.nodes = ocs_calloc(section->nnodes, sizeof(int));
	down.nodes = ocs_calloc(section->nnodes, sizeof(int));
	reserved.nodes = ocs_calloc(section->nnodes, sizeof(int));
	for (int i = 0; i < section->nnodes; i++) {
		int node = section->first_node + i;

		if (node_down(map, node))
			down.nodes[down.n++] = node;
		else if (node_is(map, node, "busy"))
			busy.nodes[busy.n++] = node;
		else if (node_is(map, node, "reserved"))
			reserved.nodes[reserved.n++] = node;
	}
	for (int i = 0; i < map->njobs; i++) {
		struct ocs_placement *placement = map->jobs[i].placement;
		int tile = section->cube_xpus / section->cube_nodes;

		if (placement && (long)placement->nnodes * tile > placement->shape.xpus)
			for (int k = 0; k < placement->nnodes && idle.n < section->nnodes; k++)
				idle.nodes[idle.n++] = placement->nodes[k];
	}
	add_item(items, &n, &busy, '*', false, busy_label(map, "in use without a shape"));
	add_item(items, &n, &reserved, '=', false, OCS_CTL_RESERVED);
	add_item(items, &n, &down, '#', true, "down or drained");
	add_item(items, &n, &idle, '-', false, "left idle by the shape of a job");
	for (int i = 0; i < map->njobs; i++)
		if (map->jobs[i].placement)
			items[n++] =
				(struct ocs_picture_item){ .label = map->jobs[i].label,
							   .sign = map->jobs[i].sign,
							   .placement = map->jobs[i].placement };
	title = svg ? title_of(section) : NULL;
	text = svg ? ocs_picture_svg(map->fabric, section, items, n, title) :
		     ocs_picture(map->fabric, section, items, n, -1, ocs_ctl_columns(),
				 ocs_ctl_colour());
	free(title);
	free(busy.nodes);
	free(idle.nodes);
	free(down.nodes);
	free(reserved.nodes);
	free(items);
	return text;
}

/* The letter of the job that holds a server, or what else is to be said of it; USED: how
 * many each job has. */
static char *server_signs(struct map *map, const struct ocs_section *section, int *used)
{
	char *signs = ocs_calloc(section->nnodes + 1, 1);

	for (int i = 0; i < section->nnodes; i++) {
		int node = section->first_node + i;

		signs[i] = node_down(map, node)		  ? '#' :
			   node_is(map, node, "busy")	  ? '*' :
			   node_is(map, node, "reserved") ? '=' :
							    '.';
	}
	for (int j = 0; j < map->njobs; j++) {
		const char *list = ocs_ctl_string(map->jobs[j].job, OCS_FIELD_NODES, "");
		struct ocs_error ignored;
		char **names = NULL;
		int n = ocs_hostlist_expand(list, 1 << 20, &names, &ignored);

		for (int k = 0; k < n; k++) {
			const struct ocs_node *node = ocs_fabric_node(map->fabric, names[k]);

			if (!node || node->section != section->index)
				continue;
			signs[node - map->fabric->nodes - section->first_node] = map->jobs[j].sign;
			used[j]++;
		}
		if (n >= 0)
			ocs_names_free(names, n);
	}
	return signs;
}

static void legend_print(FILE *out, char sign, const char *label, int servers)
{
	ocs_picture_sign(sign, ocs_ctl_colour(), out);
	fprintf(out, "  %s (%d server%s)\n", label, servers, servers == 1 ? "" : "s");
}

static void print_servers(struct map *map, const struct ocs_section *section, FILE *out)
{
	int *used = ocs_calloc(map->njobs + 1, sizeof(*used)), held[256] = { 0 };
	char *signs = server_signs(map, section, used);
	int width = ocs_ctl_columns() >= 13 + 64 ? 64 : ocs_ctl_columns() >= 13 + 32 ? 32 : 16;

	for (const char *at = signs; *at; at++)
		held[(unsigned char)*at]++;
	for (int i = 0; i < section->nnodes; i += width) {
		fprintf(out, "%-12s ", map->fabric->nodes[section->first_node + i].name);
		for (int k = i; k < section->nnodes && k < i + width; k++)
			ocs_picture_sign(signs[k], ocs_ctl_colour(), out);
		fputc('\n', out);
	}
	fputc('\n', out);
	if (held['*'])
		legend_print(out, '*', busy_label(map, "in use by a job without circuits"),
			     held['*']);
	if (held['='])
		legend_print(out, '=', OCS_CTL_RESERVED, held['=']);
	if (held['#'])
		legend_print(out, '#', "down or drained", held['#']);
	for (int j = 0; j < map->njobs; j++)
		if (used[j])
			legend_print(out, map->jobs[j].sign, map->jobs[j].label, used[j]);
	ocs_picture_sign('.', ocs_ctl_colour(), out);
	fprintf(out, "  free (%d of %d servers)\n", held['.'], section->nnodes);
	free(signs);
	free(used);
}

static bool section_wanted(const struct map *map, const struct ocs_section *section)
{
	return !map->args->section || !strcmp(map->args->section, section->name);
}

static int print_text(struct map *map, FILE *out, struct ocs_error *err)
{
	bool first = true;

	for (int i = 0; i < map->fabric->nsections; i++) {
		const struct ocs_section *section = &map->fabric->sections[i];
		char *text;

		if (!section_wanted(map, section))
			continue;
		fprintf(out, "%ssection %s\n", first ? "" : "\n", section->name);
		first = false;
		if (!on_cubes(section)) {
			print_servers(map, section, out);
			continue;
		}
		if (read_placements(map, section, err)) {
			drop_placements(map);
			return -1;
		}
		text = cubes_picture(map, section, false);
		fputs(text, out);
		free(text);
		drop_placements(map);
	}
	ocs_ctl_state_notes(&map->state, "note: ", out);
	return 0;
}

static int write_svg(struct map *map, struct ocs_error *err)
{
	const struct ocs_section *section = ocs_ctl_section(map->fabric, map->args, err);
	char *svg;
	int rc;

	if (!section)
		return -1;
	if (read_placements(map, section, err)) {
		drop_placements(map);
		return -1;
	}
	svg = cubes_picture(map, section, true);
	drop_placements(map);
	rc = ocs_file_write(map->args->svg, svg, strlen(svg), 0644, err);
	free(svg);
	return rc;
}

static void print_json(struct map *map, FILE *file)
{
	struct json_object *out = ocs_ctl_state_json(&map->state, map->fabric, map->args->section);

	fprintf(file, "%s\n",
		json_object_to_json_string_ext(out, JSON_C_TO_STRING_PLAIN |
							    JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(out);
}

/* What draws: the arguments, and what lasts from picture to picture. */
struct drawing {
	const struct ocs_ctl_args *args;
	struct map_letters letters;
};

static int map_draw(void *arg, FILE *out, struct ocs_error *err)
{
	struct drawing *drawing = arg;
	const struct ocs_ctl_args *args = drawing->args;
	struct map map;
	int rc = map_open(args, &drawing->letters, &map, err);

	if (!rc && args->svg)
		rc = write_svg(&map, err);
	if (!rc && args->json) {
		print_json(&map, out);
	} else if (!rc && args->svg) {
		if (args->watch)
			fprintf(out, "%s is written\n", args->svg);
	} else if (!rc) {
		rc = print_text(&map, out, err);
	}
	map_close(&map);
	return rc;
}

int ocs_ctl_map(const struct ocs_ctl_args *args, struct ocs_error *err)
{
	struct drawing drawing = { .args = args };
	int rc = args->watch ? ocs_ctl_watch(map_draw, &drawing, args->watch,
					     !args->json && !args->svg, err) :
			       map_draw(&drawing, stdout, err);

	free(drawing.letters.jobs);
	return rc;
}
