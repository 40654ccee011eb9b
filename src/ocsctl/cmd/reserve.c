/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Reservations of Slurm whose nodes fit together: those of a placement, whole cubes, or all
 * that a switch serves. */

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "src/protocol/client.h"
#include "src/ocsctl/slurm/blocker_sources.h"
#include "src/ocsctl/cmd/switch_nodes.h"
#include "src/ocsctl/ocsctl.h"
#include "src/ocsctl/slurm/state.h"
#include "src/ocsctl/slurm/slurm_time.h"
#include "src/ocsctl/what_if.h"
#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/util/hostlist.h"
#include "src/util/text.h"

#define WORDS_MAX 16
#define NAMED_MAX 4 /* of those that are in the way */
#define NAME_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

struct reserve {
	const struct ocs_ctl_args *args;
	struct ocs_ctl_where where; /* the fabric, and of a shape the rest of it */
	time_t start, end;	    /* 0: no end */
	long seconds;		    /* 0: no end */
	bool maint, ignore_jobs, overlap;
	struct ocs_ctl_queue queue;
	struct ocs_ctl_reservations others;
	struct ocs_ctl_state state; /* only what ocsd says of the fabric: its drains */
	bool *wanted;		    /* by node of the fabric */
	char *nodes;		    /* the same as a host list */
	char *name;		    /* as Slurm says, after it is made */
	char *words[WORDS_MAX];	    /* the command */
};

/* Whether the list A,B,... has WORD in any case. */
static bool has_word(const char *list, const char *word)
{
	size_t length = strlen(word);

	while (list && *list) {
		size_t n = strcspn(list, ",+");

		if (n == length && !strncasecmp(list, word, n))
			return true;
		list += n + (list[n] != '\0');
	}
	return false;
}

static int options_read(struct reserve *r, struct ocs_error *err)
{
	const struct ocs_ctl_args *a = r->args;
	time_t now = time(NULL);

	if ((a->count > 0) + (a->cubes > 0) + !!a->cube_names + !!a->switch_names != 1)
		return ocs_error_set(err, OCS_USAGE,
				     "reserve: give one of SHAPE, --cubes, --cube and"
				     " --switch");
	if (!a->duration)
		return ocs_error_set(err, OCS_USAGE,
				     "reserve: --duration is missing, for example"
				     " --duration=2:00:00");
	r->maint = has_word(a->flags, "maint");
	r->overlap = r->maint || has_word(a->flags, "overlap");
	r->ignore_jobs = has_word(a->flags, "ignore_jobs");
	if (!a->users && !a->accounts && !r->maint)
		return ocs_error_set(err, OCS_USAGE,
				     "reserve: --users or --accounts say who may run"
				     " there; --flags=maint needs neither");
	if (has_word(a->flags, "replace") || has_word(a->flags, "replace_down"))
		return ocs_error_set(err, OCS_USAGE,
				     "reserve: with --flags=replace Slurm would exchange"
				     " nodes for others that do not fit together; leave it out");
	if (a->name && (!*a->name || a->name[strspn(a->name, NAME_LETTERS)]))
		return ocs_error_set(err, OCS_USAGE,
				     "reserve: --name=%s: letters, digits and . _ - make"
				     " a name",
				     a->name);
	r->seconds = ocs_ctl_duration_parse(a->duration, err);
	if (r->seconds < 0 ||
	    ocs_ctl_moment_parse(a->start ? a->start : "now", now, &r->start, err))
		return ocs_error_prefix(err, "reserve");
	if (r->start < now - 60)
		return ocs_error_set(err, OCS_USAGE, "reserve: --start=%s is past", a->start);
	r->end = r->seconds ? r->start + r->seconds : 0;
	return 0;
}

/* What is not free on SECTION at that time. */
static void obstacles_read(const struct reserve *r, const struct ocs_section *section, time_t start,
			   struct ocs_ctl_obstacles *all)
{
	memset(all, 0, sizeof(*all));
	all->fabric = r->where.fabric;
	all->section = section;
	if (!r->ignore_jobs)
		ocs_ctl_around_jobs(all, &r->queue, start);
	if (!r->overlap)
		ocs_ctl_around_reservations(all, &r->others, "", start,
					    r->seconds ? start + r->seconds : 0);
}

/* Named nodes are reserved as they are, and so are those that are to be mended. */
static bool avoids_drained(const struct reserve *r)
{
	return !r->maint && (r->args->count || r->args->cubes);
}

/* Ports and XPUs that are drained, which only ocsd knows. */
static void drains_read(struct reserve *r)
{
	struct ocs_error err;
	struct ocs_client *client;

	if (!avoids_drained(r))
		return;
	client = ocs_ctl_connect(r->args, r->where.config, &err);
	if (client)
		r->state.fabric = ocs_ctl_ask(client, OCS_SHOW_FABRIC, NULL, &err);
	ocs_client_close(client);
}

static void faults_read(const struct reserve *r, struct ocs_ctl_obstacles *all)
{
	if (r->maint)
		return;
	ocs_ctl_around_nodes(all, false);
	ocs_ctl_around_faults(all);
}

static void obstacle_text(const struct ocs_ctl_obstacles *all, const struct ocs_ctl_obstacle *one,
			  struct ocs_text *text)
{
	char *nodes = ocs_ctl_obstacle_nodes(all, one);
	char from[OCS_CTL_WHEN_TEXT], until[OCS_CTL_WHEN_TEXT];

	if (one->kind == OCS_BY_JOB)
		ocs_text_add(text, "job %ld may run on %s %s%s", one->job, nodes,
			     one->end ? "until " : "without a time limit",
			     ocs_ctl_moment_format(one->end, "", until));
	else
		ocs_text_add(text, "reservation %s has %s from %s to %s", one->name, nodes,
			     ocs_ctl_moment_format(one->start, "now", from),
			     ocs_ctl_moment_format(one->end, "an unknown time", until));
	free(nodes);
}

/* Named nodes must be free. */
static int check_wanted(const struct reserve *r, const char *what, struct ocs_error *err)
{
	int rc = 0;

	for (int s = 0; s < r->where.fabric->nsections && !rc; s++) {
		struct ocs_ctl_obstacles all;

		obstacles_read(r, &r->where.fabric->sections[s], r->start, &all);
		for (int i = 0; i < all.count && !rc; i++) {
			const struct ocs_ctl_obstacle *one = &all.list[i];
			struct ocs_text text = { 0 };
			bool meets = false;

			for (int n = 0; n < one->nnodes; n++)
				meets |= r->wanted[one->nodes[n]];
			if (!meets)
				continue;
			obstacle_text(&all, one, &text);
			rc = ocs_error_set(err, OCS_NOT_NOW, "%s: %s; %s", what, text.data,
					   one->kind == OCS_BY_JOB ?
						   "start later, or add"
						   " --flags=ignore_jobs" :
						   "choose another time or other nodes");
			ocs_text_free(&text);
		}
		ocs_ctl_obstacles_free(&all);
	}
	return rc;
}

/* ---- a shape ---- */

static int place_from(struct reserve *r, time_t start, struct ocs_ctl_obstacles *all,
		      struct ocs_error *err)
{
	obstacles_read(r, r->where.section, start, all);
	faults_read(r, all);
	all->shaped = true;
	all->shape = r->where.shape;
	ocs_occupancy_reset(r->where.occupancy);
	ocs_ctl_obstacles_occupy(all, r->where.occupancy);
	ocs_ctl_state_drains(&r->state, r->where.fabric, r->where.occupancy);
	return ocs_ctl_where_place(&r->where, err);
}

/* Says who has what the shape would need, and a start that would do. */
static void obstacles_explain(struct reserve *r, struct ocs_ctl_obstacles *all,
			      struct ocs_error *err)
{
	struct ocs_ctl_answer answer;
	struct ocs_text text = { 0 };
	struct ocs_ctl_obstacles then;
	struct ocs_error ignored;
	char when[OCS_CTL_WHEN_TEXT];
	time_t later = r->start;
	int code = err->code;

	ocs_ctl_obstacles_ask(all, &answer);
	ocs_text_add(&text, "%s", err->text);
	for (int i = 0; i < answer.nends; i++) {
		const struct ocs_ctl_obstacle *one = &all->list[answer.ends[i]];

		if (i < NAMED_MAX) {
			ocs_text_add(&text, "; ");
			obstacle_text(all, one, &text);
		}
		later = !one->end || !later ? 0 : one->end > later ? one->end : later;
	}
	if (answer.nends > NAMED_MAX)
		ocs_text_add(&text, "; and %d more", answer.nends - NAMED_MAX);
	if (later > r->start && answer.nends) {
		if (!place_from(r, later, &then, &ignored))
			ocs_text_add(&text, "; --start=%s would do",
				     ocs_ctl_moment_format(later, "", when));
		ocs_ctl_obstacles_free(&then);
	}
	ocs_error_set(err, code, "%s", text.data);
	ocs_text_free(&text);
	ocs_ctl_answer_free(&answer);
}

static int want_shape(struct reserve *r, struct ocs_error *err)
{
	struct ocs_ctl_obstacles all;
	int rc;

	r->where.when = "then";
	rc = place_from(r, r->start, &all, err);

	if (rc && err->code == OCS_NOT_NOW)
		obstacles_explain(r, &all, err);
	ocs_ctl_obstacles_free(&all);
	for (int i = 0; !rc && i < r->where.placement->nnodes; i++)
		r->wanted[r->where.placement->nodes[i]] = true;
	return rc;
}

/* ---- cubes ---- */

static void want_cube(struct reserve *r, const struct ocs_section *section, int cube)
{
	for (int i = 0; i < section->cube_nodes; i++)
		r->wanted[section->first_node + cube * section->cube_nodes + i] = true;
}

/* A cube with a drained XPU is not whole. */
static void take_xpus(const struct reserve *r, bool *taken)
{
	struct json_object *drains = ocs_field_array(r->state.fabric, OCS_FIELD_DRAINS, NULL);

	for (size_t i = 0; i < ocs_ctl_length(drains); i++) {
		struct json_object *one = json_object_array_get_idx(drains, i);
		int node =
			ocs_ctl_drain_node(r->where.fabric, ocs_ctl_string(one, OCS_FIELD_KIND, ""),
					   ocs_ctl_string(one, OCS_FIELD_NAME, ""));

		if (node >= 0 && r->where.fabric->nodes[node].section == r->where.section->index)
			taken[r->where.fabric->nodes[node].cube] = true;
	}
}

static int want_cubes(struct reserve *r, struct ocs_error *err)
{
	const struct ocs_section *section = r->where.section;
	struct ocs_ctl_obstacles all;
	bool *taken = ocs_calloc((size_t)section->ncubes + 1, sizeof(bool));
	long found = 0;

	obstacles_read(r, section, r->start, &all);
	faults_read(r, &all);
	for (int i = 0; i < all.count; i++) {
		for (int n = 0; n < all.list[i].nnodes; n++)
			taken[r->where.fabric->nodes[all.list[i].nodes[n]].cube] = true;
	}
	take_xpus(r, taken);
	for (int cube = 0; cube < section->ncubes && found < r->args->cubes; cube++) {
		if (taken[cube])
			continue;
		want_cube(r, section, cube);
		found++;
	}
	free(taken);
	ocs_ctl_obstacles_free(&all);
	if (found == r->args->cubes)
		return 0;
	if (r->args->cubes > section->ncubes)
		return ocs_error_set(err, OCS_NEVER, "%ld cubes are asked for, section %s has %d",
				     r->args->cubes, section->name, section->ncubes);
	return ocs_error_set(err, OCS_NOT_NOW,
			     "%ld cubes are asked for, %ld will be wholly free;"
			     " ask for fewer or start later",
			     r->args->cubes, found);
}

/* The part of LIST before the next comma, and moves on; the caller frees it. */
static char *next_name(const char **list)
{
	size_t n = strcspn(*list, ",");
	char *name = ocs_asprintf("%.*s", (int)n, *list);

	*list += n + ((*list)[n] == ',');
	return name;
}

static int want_named_cube(struct reserve *r, const char *name, struct ocs_error *err)
{
	const struct ocs_fabric *fabric = r->where.fabric;

	for (int s = 0; s < fabric->nsections; s++) {
		const struct ocs_section *section = &fabric->sections[s];
		int cube = section->ncubes ? ocs_section_cube(section, name) : -1;

		if (cube < 0 || (r->args->section && strcmp(r->args->section, section->name) != 0))
			continue;
		want_cube(r, section, cube);
		return 0;
	}
	return ocs_error_set(err, OCS_USAGE, "%s has no cube '%s'; 'ocsctl show cube' lists them",
			     fabric->source, name);
}

/* ---- switches ---- */

static int want_switch(struct reserve *r, const char *name, struct ocs_error *err)
{
	int sw = ocs_fabric_switch(r->where.fabric, name);

	if (sw < 0)
		return ocs_error_set(err, OCS_USAGE,
				     "%s has no switch '%s'; 'ocsctl show switch' lists"
				     " them",
				     r->where.fabric->source, name);
	return ocs_ctl_switch_nodes(r->where.fabric, sw, r->wanted) ?
		       0 :
		       ocs_error_set(err, OCS_USAGE, "no node has a port on switch %s", name);
}

/* Cubes or switches by name. */
static int want_named(struct reserve *r, struct ocs_error *err)
{
	const char *list = r->args->cube_names ? r->args->cube_names : r->args->switch_names;
	const char *what = r->args->cube_names ? "cube" : "switch";
	char *label = ocs_asprintf("%s %s", what, list);
	int rc = *list ? 0 : ocs_error_set(err, OCS_USAGE, "reserve: --%s needs a name", what);

	while (*list && !rc) {
		char *name = next_name(&list);

		rc = r->args->cube_names ? want_named_cube(r, name, err) :
					   want_switch(r, name, err);
		free(name);
	}
	if (!rc)
		rc = check_wanted(r, label, err);
	free(label);
	return rc;
}

/* ---- the command ---- */

static int fabric_open(struct reserve *r, struct ocs_error *err)
{
	if (r->args->count)
		return ocs_ctl_where_open(r->args, &r->where, err);
	r->where.config = ocs_ctl_config_open(r->args, err);
	if (!r->where.config)
		return -1;
	r->where.fabric = r->where.config->fabric;
	if (!r->args->cubes)
		return 0;
	r->where.section = ocs_ctl_section(r->where.fabric, r->args, err);
	if (!r->where.section)
		return -1;
	if (r->where.section->kind == OCS_TORUS)
		return 0;
	return ocs_error_set(err, OCS_USAGE,
			     "section %s is one static torus: reserve a shape of it",
			     r->where.section->name);
}

static int nodes_find(struct reserve *r, struct ocs_error *err)
{
	const struct ocs_fabric *fabric = r->where.fabric;
	char **names;
	size_t n = 0;
	int rc;

	r->wanted = ocs_calloc((size_t)fabric->nnodes + 1, sizeof(bool));
	rc = r->args->count ? want_shape(r, err) :
	     r->args->cubes ? want_cubes(r, err) :
			      want_named(r, err);
	if (rc)
		return -1;
	names = ocs_calloc((size_t)fabric->nnodes + 1, sizeof(*names));
	for (int i = 0; i < fabric->nnodes; i++) {
		if (r->wanted[i])
			names[n++] = fabric->nodes[i].name;
	}
	r->nodes = ocs_hostlist_compress(names, n);
	free(names);
	return 0;
}

static void command_make(struct reserve *r)
{
	const struct ocs_ctl_args *a = r->args;
	char when[OCS_CTL_WHEN_TEXT];
	int n = 0;

	r->words[n++] = ocs_strdup("scontrol");
	r->words[n++] = ocs_strdup("create");
	r->words[n++] = ocs_strdup("reservation");
	if (a->name)
		r->words[n++] = ocs_asprintf("ReservationName=%s", a->name);
	r->words[n++] = ocs_asprintf(
		"StartTime=%s",
		r->start <= time(NULL) ? "now" : ocs_ctl_moment_format(r->start, "now", when));
	r->words[n++] = r->seconds ? ocs_asprintf("Duration=%ld", (r->seconds + 59) / 60) :
				     ocs_strdup("Duration=infinite");
	r->words[n++] = ocs_asprintf("Nodes=%s", r->nodes);
	if (a->users || !a->accounts)
		r->words[n++] = ocs_asprintf("Users=%s", a->users ? a->users : "root");
	if (a->accounts)
		r->words[n++] = ocs_asprintf("Accounts=%s", a->accounts);
	if (a->flags)
		r->words[n++] = ocs_asprintf("Flags=%s", a->flags);
}

/* 0, or -1 with ERR: what Slurm has against it. */
static int command_run(struct reserve *r, struct ocs_error *err)
{
	static const char said[] = "Reservation created: ";
	char *text = ocs_ctl_slurm_run(r->words, err), *at;

	if (!text && strstr(err->text, "Invalid user id")) {
		struct ocs_error why = *err;

		return ocs_error_set(err, OCS_ERROR,
				     "%s (a name in --users is unknown, or only"
				     " operators of Slurm may make reservations)",
				     why.text);
	}
	if (!text)
		return -1;
	at = strstr(text, said);
	if (at) {
		at += strlen(said);
		r->name = ocs_asprintf("%.*s", (int)strcspn(at, " \n"), at);
	}
	free(text);
	return r->name ? 0 :
			 ocs_error_set(err, OCS_ERROR,
				       "scontrol did not say the name of the"
				       " reservation; see scontrol show reservation");
}

static void print_command(const struct reserve *r)
{
	for (int i = 0; r->words[i]; i++)
		printf(strpbrk(r->words[i], "[]*;&|<>() '\"$`\\") ? "%s'%s'" : "%s%s", i ? " " : "",
		       r->words[i]);
	putchar('\n');
}

static void print_text(const struct reserve *r)
{
	char from[OCS_CTL_WHEN_TEXT], until[OCS_CTL_WHEN_TEXT];

	if (r->where.placement)
		ocs_ctl_where_summary(&r->where);
	else
		printf("nodes: %s\n", r->nodes);
	printf("time:  %s to %s\n", ocs_ctl_moment_format(r->start, "", from),
	       ocs_ctl_moment_format(r->end, "no end (Slurm makes it a year)", until));
	if (avoids_drained(r) && !r->state.fabric)
		puts("note:  ocsd does not say which ports and XPUs are drained: they are not avoided");
	if (r->name)
		printf("reservation: %s\n", r->name);
	else
		print_command(r);
}

static void print_json(const struct reserve *r)
{
	struct json_object *out = json_object_new_object(), *words = json_object_new_array();

	if (r->name)
		json_object_object_add(out, "reservation", json_object_new_string(r->name));
	json_object_object_add(out, "nodes", json_object_new_string(r->nodes));
	json_object_object_add(out, "start", json_object_new_int64(r->start));
	if (r->end)
		json_object_object_add(out, "end", json_object_new_int64(r->end));
	for (int i = 0; r->words[i]; i++)
		json_object_array_add(words, json_object_new_string(r->words[i]));
	json_object_object_add(out, "command", words);
	if (r->where.placement)
		json_object_object_add(out, "placement",
				       ocs_placement_to_json(r->where.fabric, r->where.placement));
	ocs_ctl_print_json(out);
	json_object_put(out);
}

int ocs_ctl_reserve(const struct ocs_ctl_args *args, struct ocs_error *err)
{
	struct reserve r = { .args = args };
	int rc = -1;

	if (!options_read(&r, err) && !fabric_open(&r, err) &&
	    !ocs_ctl_queue_read(0, &r.queue, err) &&
	    !ocs_ctl_reservations_read(&r.others, 0, err)) {
		drains_read(&r);
		rc = nodes_find(&r, err);
	}
	if (!rc) {
		command_make(&r);
		rc = args->dry_run ? 0 : command_run(&r, err);
	}
	if (!rc && args->json)
		print_json(&r);
	else if (!rc)
		print_text(&r);
	for (int i = 0; i < WORDS_MAX; i++)
		free(r.words[i]);
	free(r.name);
	free(r.nodes);
	free(r.wanted);
	ocs_ctl_state_free(&r.state);
	ocs_ctl_reservations_free(&r.others);
	ocs_ctl_queue_free(&r.queue);
	ocs_ctl_where_close(&r.where);
	return rc;
}
