/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* A page for administrators: what ocsd and Slurm tell, as data in a page that draws it by itself. */

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/ocsctl/ocsctl.h"
#include "src/ocsctl/output/report_page.h"
#include "src/ocsctl/output/watch.h"
#include "src/ocsctl/slurm/slurm.h"
#include "src/ocsctl/slurm/state.h"
#include "src/ocsctl/what_if.h"
#include "src/protocol/client.h"
#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/util/hostlist.h"
#include "src/util/text.h"

#define CONFIG_S 10 /* for what slurm.conf keeps private */
#define NODES_MAX (1 << 20)
#define EVENTS_EACH 10	  /* of a switch, */
#define EVENTS 25	  /* and of all that are shown */
#define MODE_ALL 0644	  /* for a web server; */
#define MODE_PRIVATE 0600 /* with what others may not see */

struct report {
	const struct ocs_ctl_args *args;
	struct ocs_config *config;
	struct ocs_client *client;
	struct ocs_ctl_state state;
	struct json_object *data;
	struct json_object *notes;
	bool hide_jobs, hide_reservations;
};

static void note_add(struct report *r, const char *text)
{
	json_object_array_add(r->notes, json_object_new_string(text));
}

/* Of "PrivateData = jobs,usage" in what scontrol shows.  Both are hidden where it cannot be asked: the page
 * may stand on a web server. */
static void private_read(struct report *r)
{
	char *words[] = { "scontrol", "show", "config", NULL };
	struct ocs_error err;
	char *text = ocs_ctl_slurm_ask(words, CONFIG_S, &err), *line;

	if (!text) {
		char *why =
			ocs_asprintf("jobs and reservations are left out: whether slurm.conf keeps "
				     "them private is not known (%s)",
				     err.text);

		note_add(r, why);
		free(why);
		r->hide_jobs = r->hide_reservations = true;
		return;
	}
	line = strstr(text, "\nPrivateData");
	if (line) {
		line[1 + strcspn(line + 1, "\n")] = '\0';
		r->hide_jobs = strstr(line + 1, "jobs") != NULL;
		r->hide_reservations = strstr(line + 1, "reservations") != NULL;
	}
	if (r->hide_jobs)
		note_add(r, "jobs are left out: PrivateData of slurm.conf has \"jobs\" (--private "
			    "shows what you may see, in a file for you alone)");
	if (r->hide_reservations)
		note_add(r, "reservations are left out: PrivateData of slurm.conf has "
			    "\"reservations\"");
	free(text);
}

static void sections_add(struct report *r)
{
	struct json_object *list = json_object_new_array();
	const struct ocs_fabric *fabric = r->config->fabric;

	for (int i = 0; i < fabric->nsections; i++) {
		const struct ocs_section *section = &fabric->sections[i];
		struct json_object *one = json_object_new_object();
		struct json_object *cubes = json_object_new_array();

		for (int c = 0; c < section->ncubes; c++)
			json_object_array_add(cubes,
					      json_object_new_string(section->cube_names[c]));
		ocs_field_add_text(one, OCS_FIELD_NAME, section->name);
		ocs_field_add_text(one, OCS_FIELD_KIND, ocs_section_kind_name(section->kind));
		json_object_object_add(one, "cubes", cubes);
		json_object_array_add(list, one);
	}
	json_object_object_add(r->data, OCS_FIELD_SECTIONS, list);
}

/* One more circuit between A and B in LINKS, whatever their order. */
static void link_count(struct json_object *links, const char *section, const char *a, const char *b)
{
	struct json_object *one = NULL, *count = NULL;
	const char *low = strcmp(a, b) < 0 ? a : b, *high = low == a ? b : a;
	char *key = ocs_asprintf("%s %s %s", section, low, high);

	if (!json_object_object_get_ex(links, key, &one)) {
		one = json_object_new_object();
		ocs_field_add_text(one, OCS_FIELD_SECTION, section);
		ocs_field_add_text(one, OCS_FIELD_A, low);
		ocs_field_add_text(one, OCS_FIELD_B, high);
		ocs_field_add_number(one, "count", 0);
		json_object_object_add(links, key, one);
	}
	json_object_object_get_ex(one, "count", &count);
	json_object_set_int64(count, json_object_get_int64(count) + 1);
	free(key);
}

/* The values of LINKS, as the member of JOB. */
static void links_give(struct json_object *job, struct json_object *links)
{
	struct json_object *list = json_object_new_array();

	json_object_object_foreach (links, key, one) {
		(void)key;
		json_object_array_add(list, json_object_get(one));
	}
	json_object_object_add(job, "circuits_between", list);
}

/* Between which cubes the circuits of JOB run, by its placement. */
static int cubes_link(struct json_object *job, const struct ocs_section *section,
		      struct ocs_placer *placer, struct json_object *links, struct ocs_error *err)
{
	struct ocs_placement *p = NULL;

	if (ocs_ctl_job_placement(job, section, placer, &p, err))
		return -1;
	for (int i = 0; p && i < p->ncircuits; i++)
		link_count(links, section->name, section->cube_names[p->circuits[i].from],
			   section->cube_names[p->circuits[i].to]);
	ocs_placement_destroy(p);
	return 0;
}

/* Between which servers, by what ocsd has made: "n3 interface 1" leads to n3. */
static void servers_link(const struct report *r, struct json_object *circuits, int64_t job,
			 struct json_object *links)
{
	for (size_t i = 0; i < ocs_ctl_length(circuits); i++) {
		struct json_object *one = json_object_array_get_idx(circuits, i);
		const struct ocs_node *ends[2];
		const char *labels[2] = { ocs_ctl_string(one, OCS_FIELD_A_LABEL, ""),
					  ocs_ctl_string(one, OCS_FIELD_B_LABEL, "") };

		if (ocs_field_number(one, OCS_FIELD_JOB, 0) != job)
			continue;
		for (int k = 0; k < 2; k++) {
			char *name = ocs_asprintf("%.*s", (int)strcspn(labels[k], " "), labels[k]);

			ends[k] = ocs_fabric_node(r->config->fabric, name);
			free(name);
		}
		if (ends[0] && ends[1] && ends[0]->cube < 0 && ends[1]->cube < 0)
			link_count(links, r->config->fabric->sections[ends[0]->section].name,
				   ends[0]->name, ends[1]->name);
	}
}

static int links_add(struct report *r, struct ocs_error *err)
{
	const struct ocs_fabric *fabric = r->config->fabric;
	struct json_object *jobs = ocs_field_array(r->data, OCS_FIELD_JOBS, NULL), *reply;
	struct json_object *circuits = NULL, **links;
	size_t n = ocs_ctl_length(jobs);
	int rc = 0;

	links = ocs_calloc(n + 1, sizeof(*links));
	reply = ocs_ctl_ask(r->client, OCS_SHOW_CIRCUIT, NULL, err);
	circuits = reply ? ocs_field_array(reply, OCS_FIELD_CIRCUITS, NULL) : NULL;
	for (size_t i = 0; i < n; i++)
		links[i] = json_object_new_object();
	for (int s = 0; s < fabric->nsections && !rc; s++) {
		const struct ocs_section *section = &fabric->sections[s];
		struct ocs_placer *placer =
			section->ncubes ? ocs_placer_create(fabric, section) : NULL;

		for (size_t i = 0; placer && i < n && !rc; i++)
			rc = cubes_link(json_object_array_get_idx(jobs, i), section, placer,
					links[i], err);
		ocs_placer_destroy(placer);
	}
	for (size_t i = 0; i < n; i++) {
		struct json_object *job = json_object_array_get_idx(jobs, i);

		servers_link(r, circuits, ocs_field_number(job, OCS_FIELD_JOB, 0), links[i]);
		links_give(job, links[i]);
		json_object_put(links[i]);
	}
	json_object_put(reply);
	free(links);
	return rc;
}

/* What ocsd's plugin says of JOB, or NULL. */
static const char *reason_find(struct json_object *pending, int64_t job)
{
	for (size_t i = 0; i < ocs_ctl_length(pending); i++) {
		struct json_object *one = json_object_array_get_idx(pending, i);

		if (ocs_field_number(one, OCS_FIELD_JOB, 0) == job)
			return ocs_ctl_string(one, OCS_FIELD_REASON, NULL);
	}
	return NULL;
}

static void waiting_add(struct report *r)
{
	struct json_object *list = json_object_new_array(), *reply, *pending;
	struct ocs_ctl_queue queue = { 0 };
	struct ocs_error err;

	reply = ocs_ctl_ask(r->client, OCS_SHOW_PENDING, NULL, &err);
	pending = reply ? ocs_field_array(reply, OCS_FIELD_PENDING, NULL) : NULL;
	if (ocs_ctl_queue_read(0, &queue, &err)) {
		char *why = ocs_asprintf("jobs that wait are not known: %s", err.text);

		note_add(r, why);
		free(why);
	}
	for (int i = 0; i < queue.count; i++) {
		const struct ocs_ctl_queued *job = &queue.jobs[i];
		struct json_object *one;
		const char *why = reason_find(pending, job->job);

		if (strcmp(job->state, "PENDING") != 0)
			continue;
		one = json_object_new_object();
		ocs_field_add_number(one, OCS_FIELD_JOB, job->job);
		ocs_field_add_text(one, OCS_FIELD_USER, job->user);
		ocs_field_add_text(one, OCS_FIELD_PARTITION, job->partition);
		ocs_field_add_number(one, OCS_FIELD_NODES, job->node_count);
		ocs_field_add_text(one, "why", why ? why : job->reason);
		json_object_array_add(list, one);
	}
	ocs_ctl_queue_free(&queue);
	json_object_put(reply);
	json_object_object_add(r->data, "waiting", list);
}

static int event_compare(const void *a, const void *b)
{
	int64_t x = ocs_field_number(*(struct json_object *const *)a, OCS_FIELD_TIME, 0);
	int64_t y = ocs_field_number(*(struct json_object *const *)b, OCS_FIELD_TIME, 0);

	return x < y ? 1 : x > y ? -1 : 0;
}

/* The last events of all switches, the newest first.  Users are refused them, which is no fault. */
static void events_add(struct report *r)
{
	struct json_object *all = json_object_new_array(), *list = json_object_new_array();
	size_t n = ocs_ctl_length(r->state.switches);

	for (size_t i = 0; i < n; i++) {
		const char *name = ocs_ctl_string(json_object_array_get_idx(r->state.switches, i),
						  OCS_FIELD_NAME, "");
		struct json_object *request = ocs_request_new(OCS_OP_SHOW), *reply, *events;
		struct ocs_error err;

		ocs_field_add_text(request, OCS_FIELD_WHAT, OCS_SHOW_HISTORY);
		ocs_field_add_text(request, OCS_FIELD_NAME, name);
		ocs_field_add_number(request, OCS_FIELD_LAST, EVENTS_EACH);
		reply = ocs_client_call(r->client, request, OCS_CTL_CALL_MS, NULL, &err);
		json_object_put(request);
		if (!reply)
			break;
		events = ocs_field_array(reply, OCS_FIELD_HISTORY, NULL);
		for (size_t k = 0; k < ocs_ctl_length(events); k++) {
			struct json_object *one = json_object_array_get_idx(events, k);

			ocs_field_add_text(one, OCS_FIELD_SWITCH, name);
			json_object_array_add(all, json_object_get(one));
		}
		json_object_put(reply);
	}
	json_object_array_sort(all, event_compare);
	for (size_t i = 0; i < ocs_ctl_length(all) && i < EVENTS; i++)
		json_object_array_add(list, json_object_get(json_object_array_get_idx(all, i)));
	json_object_put(all);
	json_object_object_add(r->data, "faults", list);
}

/* Takes member NAME out of all objects of LIST. */
static void member_remove(struct json_object *list, const char *name)
{
	for (size_t i = 0; i < ocs_ctl_length(list); i++)
		json_object_object_del(json_object_array_get_idx(list, i), name);
}

/* Takes who runs what, and who asked for what, out of the data; nodes stay in use. */
static void jobs_hide(struct report *r)
{
	struct json_object *events = ocs_field_array(r->data, "faults", NULL);

	member_remove(ocs_field_array(r->data, OCS_FIELD_NODES, NULL), OCS_FIELD_JOB);
	member_remove(events, OCS_FIELD_JOB);
	member_remove(events, OCS_FIELD_WHO);
	member_remove(ocs_field_array(r->data, "reservations", NULL), "for");
	json_object_object_add(r->data, OCS_FIELD_JOBS, json_object_new_array());
	json_object_object_add(r->data, "waiting", json_object_new_array());
}

/* Their nodes stay reserved. */
static void reservations_hide(struct report *r)
{
	member_remove(ocs_field_array(r->data, OCS_FIELD_NODES, NULL), "reservation");
	json_object_object_add(r->data, "reservations", json_object_new_array());
	json_object_put(r->state.reservations);
	r->state.reservations = NULL;
}

/* What the nodes of JOB belong to, and that they are in use: slurmctld sends the states of nodes a moment
 * after the job. */
static void job_mark(struct json_object *by_name, struct json_object *job)
{
	char **names = NULL;
	int n = ocs_hostlist_expand(ocs_ctl_string(job, OCS_FIELD_NODES, ""), NODES_MAX, &names,
				    NULL);

	for (int i = 0; i < n; i++) {
		struct json_object *node = NULL;

		if (!json_object_object_get_ex(by_name, names[i], &node))
			continue;
		ocs_field_add_number(node, OCS_FIELD_JOB, ocs_field_number(job, OCS_FIELD_JOB, 0));
		if (!strcmp(ocs_ctl_string(node, OCS_FIELD_STATE, ""), "idle"))
			ocs_field_add_text(node, OCS_FIELD_STATE, "busy");
	}
	if (n > 0)
		ocs_names_free(names, (size_t)n);
}

static void nodes_mark(struct report *r)
{
	struct json_object *nodes = ocs_field_array(r->data, OCS_FIELD_NODES, NULL);
	struct json_object *jobs = ocs_field_array(r->data, OCS_FIELD_JOBS, NULL);
	struct json_object *by_name = json_object_new_object();

	for (size_t i = 0; i < ocs_ctl_length(nodes); i++) {
		struct json_object *one = json_object_array_get_idx(nodes, i);

		json_object_object_add(by_name, ocs_ctl_string(one, OCS_FIELD_NODE, ""),
				       json_object_get(one));
	}
	for (size_t i = 0; i < ocs_ctl_length(jobs); i++)
		job_mark(by_name, json_object_array_get_idx(jobs, i));
	json_object_put(by_name);
}

static void state_notes(struct report *r)
{
	char *text = NULL, *line, *rest;
	size_t length = 0;
	FILE *out = open_memstream(&text, &length);

	if (!out)
		return;
	ocs_ctl_state_notes(&r->state, "", out);
	fclose(out);
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		note_add(r, line);
	free(text);
}

static int data_collect(struct report *r, struct ocs_error *err)
{
	if (!r->args->private)
		private_read(r);
	r->data = ocs_ctl_state_json(&r->state, r->config->fabric, NULL);
	ocs_field_add_text(r->data, OCS_FIELD_SOURCE, r->config->fabric->source);
	ocs_field_add_number(r->data, OCS_FIELD_TIME, time(NULL));
	ocs_field_add_bool(r->data, "hidden", r->hide_jobs);
	if (!r->state.reservations)
		json_object_object_add(r->data, "reservations", json_object_new_array());
	if (!ocs_field_array(r->data, OCS_FIELD_DRAINS, NULL))
		json_object_object_add(r->data, OCS_FIELD_DRAINS, json_object_new_array());
	sections_add(r);
	nodes_mark(r);
	waiting_add(r);
	events_add(r);
	if (r->hide_reservations)
		reservations_hide(r);
	if (r->hide_jobs)
		jobs_hide(r);
	else if (links_add(r, err))
		return -1;
	state_notes(r);
	json_object_object_add(r->data, "notes", json_object_get(r->notes));
	return 0;
}

/* TEXT, in which no "<" can end the script that holds it. */
static char *data_text(struct json_object *data)
{
	const char *at = json_object_to_json_string_ext(
		data, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);
	struct ocs_text text = { 0 };

	while (*at) {
		int plain = (int)strcspn(at, "<");

		ocs_text_add(&text, "%.*s%s", plain, at, at[plain] ? "\\u003c" : "");
		at += plain + (at[plain] != '\0');
	}
	return text.data;
}

static int page_write(const struct report *r, struct ocs_error *err)
{
	static const char refresh[] = "@REFRESH@", here[] = "@DATA@";
	const char *first = strstr(ocs_report_page, refresh);
	const char *second = strstr(ocs_report_page, here);
	struct ocs_text page = { 0 };
	char *data = data_text(r->data);
	int rc;

	ocs_text_add(&page, "%.*s", (int)(first - ocs_report_page), ocs_report_page);
	if (r->args->watch)
		ocs_text_add(&page, "<meta http-equiv=\"refresh\" content=\"%ld\">",
			     r->args->watch);
	first += strlen(refresh);
	ocs_text_add(&page, "%.*s", (int)(second - first), first);
	ocs_text_add(&page, "%s%s", data, second + strlen(here));
	rc = ocs_file_write(r->args->html, page.data, page.length,
			    r->args->private ? MODE_PRIVATE : MODE_ALL, err);
	ocs_text_free(&page);
	free(data);
	return rc;
}

static int report_draw(void *arg, FILE *out, struct ocs_error *err)
{
	struct report r = { .args = arg };
	int rc = -1;

	r.notes = json_object_new_array();
	r.config = ocs_ctl_config_open(r.args, err);
	r.client = r.config ? ocs_ctl_connect(r.args, r.config, err) : NULL;
	if (r.client && !ocs_ctl_state_read(r.client, &r.state, err)) {
		rc = data_collect(&r, err);
		if (!rc)
			rc = page_write(&r, err);
		ocs_ctl_state_free(&r.state);
	}
	if (!rc)
		fprintf(out, "%s is written\n", r.args->html);
	ocs_client_close(r.client);
	ocs_config_destroy(r.config);
	json_object_put(r.data);
	json_object_put(r.notes);
	return rc;
}

int ocs_ctl_report(const struct ocs_ctl_args *args, struct ocs_error *err)
{
	if (!args->html)
		return ocs_error_set(err, OCS_USAGE,
				     "report needs --html FILE, where the page is to be written");
	if (args->watch)
		return ocs_ctl_watch(report_draw, (void *)args, args->watch, false, err);
	return report_draw((void *)args, stdout, err);
}
