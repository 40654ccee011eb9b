/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <ctype.h>
#include <json-c/json.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/protocol/client.h"
#include "src/ocsctl/ocsctl.h"
#include "src/ocsctl/cmd/free_room.h"
#include "src/ocsctl/cmd/phases.h"
#include "src/ocsctl/cmd/region.h"
#include "src/ocsctl/slurm/state.h"
#include "src/ocsctl/output/table.h"
#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/util/text.h"

/* How a list of ocsd becomes a table: one member a column. */
struct view {
	const char *what; /* of the protocol */
	const char *list; /* member of the reply */
	const char *columns;
	const char *members; /* separated by '|'; '@': a time, '!': a flag */
};

static const struct view views[] = {
	{ OCS_SHOW_SWITCH, OCS_FIELD_SWITCHES,
	  "SWITCH|STATE|ADDRESS|>SIZE|>CIRCUITS|>PATCHES|>QUARANTINE|LAST READ|REASON",
	  OCS_FIELD_NAME "|" OCS_FIELD_STATE "|" OCS_FIELD_ADDRESS "|" OCS_FIELD_SIZE
			 "|" OCS_FIELD_CIRCUITS "|" OCS_FIELD_PATCHES "|" OCS_FIELD_QUARANTINE
			 "|@" OCS_FIELD_LAST_READ "|" OCS_FIELD_REASON },
	{ OCS_SHOW_CUBE, OCS_FIELD_CUBES, "CUBE|SECTION|STATE|NODES|JOBS|REASON",
	  OCS_FIELD_NAME "|" OCS_FIELD_SECTION "|!" OCS_FIELD_DRAINED "|" OCS_FIELD_NODES
			 "|" OCS_FIELD_JOBS "|" OCS_FIELD_REASON },
	{ OCS_SHOW_PORT, OCS_FIELD_PORTS,
	  "SWITCH|>PORT|LEADS TO|STATE|>OWNER|STATUS|>IN DBM|>OUT DBM|>LOSS DB|>BASELINE|>EXCESS|REASON",
	  OCS_FIELD_SWITCH "|" OCS_FIELD_PORT "|" OCS_FIELD_LABEL "|" OCS_FIELD_STATE
			   "|" OCS_FIELD_OWNER "|" OCS_FIELD_STATUS "|" OCS_FIELD_IN_DBM
			   "|" OCS_FIELD_OUT_DBM "|" OCS_FIELD_LOSS "|" OCS_FIELD_BASELINE
			   "|" OCS_FIELD_EXCESS "|" OCS_FIELD_REASON },
	{ OCS_SHOW_JOB, OCS_FIELD_JOBS, "JOB|USER|STATE|SHAPE|CONN|SECTION|>CIRCUITS|NODES",
	  OCS_FIELD_JOB "|" OCS_FIELD_USER "|" OCS_FIELD_STATE "|" OCS_FIELD_SHAPE
			"|" OCS_FIELD_CONN "|" OCS_FIELD_SECTION "|" OCS_FIELD_CIRCUITS
			"|" OCS_FIELD_NODES },
	{ OCS_SHOW_CIRCUIT, OCS_FIELD_CIRCUITS, "JOB|SWITCH|>A|>B|A LEADS TO|B LEADS TO|STATE",
	  OCS_FIELD_JOB "|" OCS_FIELD_SWITCH "|" OCS_FIELD_A "|" OCS_FIELD_B "|" OCS_FIELD_A_LABEL
			"|" OCS_FIELD_B_LABEL "|" OCS_FIELD_STATE },
	{ OCS_SHOW_PHASES, OCS_FIELD_PHASES, NULL, NULL },
	{ OCS_SHOW_REGION, OCS_FIELD_REGION, NULL, NULL },
};
#define NVIEWS (sizeof(views) / sizeof(views[0]))

static void add_time(struct ocs_text_table *table, int64_t seconds)
{
	time_t when = seconds;
	char text[32];
	struct tm tm;

	if (seconds <= 0) {
		ocs_text_table_add(table, "never");
		return;
	}
	localtime_r(&when, &tm);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	ocs_text_table_add(table, text);
}

static void add_list(struct ocs_text_table *table, struct json_object *array)
{
	struct ocs_text text = { 0 };

	for (size_t i = 0; i < ocs_ctl_length(array); i++)
		ocs_text_add(&text, "%s%s", i ? "," : "",
			     json_object_get_string(json_object_array_get_idx(array, i)));
	ocs_text_table_add(table, text.data);
	ocs_text_free(&text);
}

static void add_member(struct ocs_text_table *table, struct json_object *row, const char *member)
{
	struct json_object *value = NULL;

	if (*member == '@') {
		add_time(table, ocs_field_number(row, member + 1, 0));
	} else if (*member == '!') {
		ocs_text_table_add(table, ocs_field_true(row, member + 1) ? member + 1 : "up");
	} else if (json_object_object_get_ex(row, member, &value) &&
		   json_object_is_type(value, json_type_array)) {
		add_list(table, value);
	} else {
		ocs_text_table_add(table, ocs_ctl_string(row, member, NULL));
	}
}

static void print_list(const struct view *view, struct json_object *list)
{
	struct ocs_text_table *table = ocs_text_table_create(view->columns);

	for (size_t i = 0; i < ocs_ctl_length(list); i++) {
		const char *member = view->members;

		while (*member) {
			size_t length = strcspn(member, "|");
			char name[32];

			snprintf(name, sizeof(name), "%.*s", (int)length, member);
			add_member(table, json_object_array_get_idx(list, i), name);
			member += length + (member[length] == '|');
		}
	}
	ocs_text_table_print(table, stdout);
	ocs_text_table_destroy(table);
}

static void print_fabric(struct json_object *reply)
{
	struct json_object *list = ocs_field_array(reply, "out_of_service", NULL);
	struct json_object *drains = ocs_field_array(reply, OCS_FIELD_DRAINS, NULL);
	static const struct view sections = { .columns = "SECTION|KIND|>CUBES|>NODES",
					      .members = "name|kind|cubes|nodes" };
	static const struct view out = { .columns = "OUT OF SERVICE|NAME|STATE|REASON",
					 .members = "kind|name|state|reason" };
	static const struct view room = { .columns = "SECTION|>XPUS|>FREE|>WHOLE CUBES|"
						     ">FRAGMENTATION %|LARGEST THAT CAN START",
					  .members = "section|xpus|free|whole_cubes|"
						     "fragmentation_percent|largest" };

	printf("fabric %s; slurmctld is %sconnected; last epoch %s; revision %s\n\n",
	       ocs_ctl_string(reply, OCS_FIELD_SOURCE, "?"),
	       ocs_field_true(reply, OCS_FIELD_SLURMCTLD) ? "" : "not ",
	       ocs_ctl_string(reply, OCS_FIELD_MAX_EPOCH, "0"),
	       ocs_ctl_string(reply, OCS_FIELD_REVISION, "0"));
	print_list(&sections, ocs_field_array(reply, OCS_FIELD_SECTIONS, NULL));
	if (ocs_ctl_length(ocs_field_array(reply, "room", NULL))) {
		putchar('\n');
		print_list(&room, ocs_field_array(reply, "room", NULL));
	}
	if (ocs_ctl_length(list ? list : drains)) {
		putchar('\n');
		print_list(&out, list ? list : drains);
	}
}

/* ocsd selects circuits by job; those of one switch are picked here. */
static void keep_switch(struct json_object *reply, const char *name)
{
	struct json_object *list = ocs_field_array(reply, OCS_FIELD_CIRCUITS, NULL);
	struct json_object *kept = json_object_new_array();

	for (size_t i = 0; i < ocs_ctl_length(list); i++) {
		struct json_object *one = json_object_array_get_idx(list, i);

		if (!strcmp(ocs_ctl_string(one, OCS_FIELD_SWITCH, ""), name))
			json_object_array_add(kept, json_object_get(one));
	}
	json_object_object_add(reply, OCS_FIELD_CIRCUITS, kept);
}

/* One switch comes with its ports and its history. */
static int add_switch(const struct ocs_ctl_args *args, struct ocs_client *client, const char *name,
		      struct json_object *reply, struct ocs_error *err)
{
	struct json_object *request = ocs_request_new(OCS_OP_SHOW), *history;
	struct json_object *ports = ocs_ctl_ask(client, OCS_SHOW_PORT, name, err);

	ocs_field_add_text(request, OCS_FIELD_WHAT, OCS_SHOW_HISTORY);
	ocs_field_add_text(request, OCS_FIELD_NAME, name);
	ocs_field_add_number(request, OCS_FIELD_LAST, args->last);
	history = ports ? ocs_client_call(client, request, OCS_CTL_CALL_MS, NULL, err) : NULL;
	json_object_put(request);
	if (history) {
		json_object_object_add(reply, OCS_FIELD_PORTS,
				       json_object_get(ocs_field(ports, OCS_FIELD_PORTS)));
		json_object_object_add(reply, OCS_FIELD_HISTORY,
				       json_object_get(ocs_field(history, OCS_FIELD_HISTORY)));
	}
	json_object_put(ports);
	json_object_put(history);
	return history ? 0 : -1;
}

/* How the events of the audit log are called. */
static const char *event_name(const char *what)
{
	static const char *const names[][2] = {
		{ "switch_failed", "failed" },	     { "switch_up", "up again" },
		{ "outcome", "batch failed" },	     { "lost", "circuit lost" },
		{ "foreign", "patched by hand" },    { "clean", "hand patch gone" },
		{ "port_failed", "port failed" },    { "job_failed", "job failed" },
		{ "selftest_outcome", "self-test" }, { "selftest", "self-test begins" },
		{ "loop_cleared", "loop cleared" },  { "notice", "says" },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(names[i][0], what))
			return names[i][1];
	return what;
}

static void add_who(struct ocs_text_table *table, struct json_object *row)
{
	int64_t uid = ocs_field_number(row, OCS_FIELD_WHO, -1);
	const struct passwd *user = uid < 0 ? NULL : getpwuid((uid_t)uid);

	if (uid < 0)
		ocs_text_table_add(table, "ocsd");
	else if (user)
		ocs_text_table_add(table, user->pw_name);
	else
		ocs_text_table_format(table, "%lld", (long long)uid);
}

static void print_history(struct json_object *list)
{
	struct ocs_text_table *table = ocs_text_table_create("TIME|WHAT|>JOB|BY|WHERE|DETAIL");

	for (size_t i = 0; i < ocs_ctl_length(list); i++) {
		struct json_object *row = json_object_array_get_idx(list, i);
		const char *after = ocs_ctl_string(row, OCS_FIELD_AFTER, "");
		const char *text = ocs_ctl_string(row, OCS_FIELD_TEXT, "");

		add_time(table, ocs_field_number(row, OCS_FIELD_TIME, 0));
		ocs_text_table_add(table, event_name(ocs_ctl_string(row, OCS_FIELD_WHAT, "?")));
		ocs_text_table_add(table, ocs_ctl_string(row, OCS_FIELD_JOB, NULL));
		add_who(table, row);
		ocs_text_table_add(table, ocs_ctl_string(row, OCS_FIELD_BEFORE, NULL));
		ocs_text_table_format(table, "%s%s%s", after, *after && *text ? ": " : "", text);
	}
	ocs_text_table_print(table, stdout);
	ocs_text_table_destroy(table);
}

/* Where there is no ocs.yaml the rest is still worth showing. */
static void add_room(const struct ocs_ctl_args *args, struct ocs_client *client,
		     struct json_object *reply)
{
	struct ocs_error why = { 0 };

	if (ocs_ctl_room_add(args, client, reply, &why))
		fprintf(stderr, "ocsctl: what is free is not shown: %s\n", why.text);
}

/* Whether ocsd has what NAME names among its WHAT. */
static bool name_known(struct ocs_client *client, const char *what, const char *list,
		       const char *name)
{
	struct ocs_error ignored = { 0 };
	struct json_object *reply = ocs_ctl_ask(client, what, name, &ignored);
	bool found = ocs_ctl_length(ocs_field_array(reply, list, NULL));

	json_object_put(reply);
	return found;
}

/* Nothing is there for NAME.  0 if it exists all the same, or -1 with ERR. */
static int nothing_shown(const struct view *view, struct ocs_client *client, const char *name,
			 struct ocs_error *err)
{
	bool job = isdigit((unsigned char)*name);

	if (!strcmp(view->what, OCS_SHOW_CIRCUIT) &&
	    name_known(client, job ? OCS_SHOW_JOB : OCS_SHOW_SWITCH,
		       job ? OCS_FIELD_JOBS : OCS_FIELD_SWITCHES, name))
		return 0;
	if (!strcmp(view->what, OCS_SHOW_PHASES))
		return ocs_error_set(
			err, OCS_ERROR,
			"show: ocsd knows no job %s with a shape on rails, or it is not"
			" yours to see",
			name);
	if (!strcmp(view->what, OCS_SHOW_JOB) || (!strcmp(view->what, OCS_SHOW_CIRCUIT) && job))
		return ocs_error_set(err, OCS_ERROR,
				     "show: ocsd knows no job %s, or it is not yours to"
				     " see; 'ocsctl explain %s' asks Slurm, too",
				     name, name);
	if (!strcmp(view->what, OCS_SHOW_PORT))
		return ocs_error_set(err, OCS_USAGE,
				     "show: ocs.yaml has no switch or port %s; write SWITCH"
				     " or SWITCH:PORT, 'ocsctl show switch' lists the switches",
				     name);
	return ocs_error_set(err, OCS_USAGE,
			     "show: ocs.yaml has no %s %s; 'ocsctl show %s' lists them",
			     strcmp(view->what, OCS_SHOW_CIRCUIT) ? view->what : "switch", name,
			     strcmp(view->what, OCS_SHOW_CIRCUIT) ? view->what : "switch");
}

static void print_view(const struct view *view, struct json_object *list, struct json_object *reply)
{
	struct json_object *ports = ocs_field_array(reply, OCS_FIELD_PORTS, NULL);

	if (!view->columns) {
		ocs_ctl_phases_print(list);
		return;
	}
	print_list(view, list);
	if (strcmp(view->what, OCS_SHOW_SWITCH) != 0 || !ocs_ctl_length(ports))
		return;
	putchar('\n');
	for (size_t i = 0; i < NVIEWS; i++)
		if (!strcmp(views[i].what, OCS_SHOW_PORT))
			print_list(&views[i], ports);
	putchar('\n');
	print_history(ocs_field_array(reply, OCS_FIELD_HISTORY, NULL));
}

int ocs_ctl_show(const struct ocs_ctl_args *args, struct ocs_error *err)
{
	const char *what = args->operands[0];
	const char *name = args->count > 1 ? args->operands[1] : NULL;
	const struct view *view = NULL;
	struct ocs_client *client;
	struct json_object *reply, *list;
	bool by_switch = name && !strcmp(what, OCS_SHOW_CIRCUIT) && !isdigit((unsigned char)*name);
	long job;
	int rc = 0;

	for (size_t i = 0; i < NVIEWS; i++)
		if (!strcmp(views[i].what, what))
			view = &views[i];
	if (!view && strcmp(what, OCS_SHOW_FABRIC) != 0)
		return ocs_error_set(err, OCS_USAGE, "show: what is a '%s'? usage: ocsctl show %s",
				     what, args->command->operands);
	if (name && !view)
		return ocs_error_set(err, OCS_USAGE,
				     "show: '%s' is too much; fabric shows all sections", name);
	if (name &&
	    (!strcmp(what, OCS_SHOW_JOB) || !strcmp(what, OCS_SHOW_PHASES) ||
	     !strcmp(what, OCS_SHOW_REGION) || (!strcmp(what, OCS_SHOW_CIRCUIT) && !by_switch)) &&
	    ocs_ctl_job_parse(name, &job, err))
		return -1;
	if (!strcmp(what, OCS_SHOW_REGION))
		return ocs_ctl_show_region(args, err);
	if (args->watch || args->svg)
		return ocs_error_set(
			err, OCS_USAGE,
			"show: only 'ocsctl show region' draws; --watch and --svg are for it");
	client = ocs_ctl_connect(args, NULL, err);
	if (!client)
		return -1;
	reply = ocs_ctl_ask(client, what, by_switch ? NULL : name, err);
	if (reply && !view)
		add_room(args, client, reply);
	if (reply && name && !strcmp(what, OCS_SHOW_SWITCH) &&
	    ocs_ctl_length(ocs_field_array(reply, OCS_FIELD_SWITCHES, NULL)) &&
	    add_switch(args, client, name, reply, err)) {
		json_object_put(reply);
		reply = NULL;
	}
	if (reply && by_switch)
		keep_switch(reply, name);
	list = reply && view ? ocs_field_array(reply, view->list, NULL) : NULL;
	if (reply && view && name && !ocs_ctl_length(list))
		rc = nothing_shown(view, client, name, err);
	ocs_client_close(client);
	if (!reply && ocs_ctl_for_administrators(err))
		ocs_error_set(err, OCS_ERROR,
			      "only administrators of ocsd may see %s; 'scontrol show"
			      " topology' shows all users cubes and switches",
			      what);
	if (!reply || rc) {
		json_object_put(reply);
		return -1;
	}
	if (args->json)
		ocs_ctl_print_reply(reply);
	else if (view)
		print_view(view, list, reply);
	else
		print_fabric(reply);
	json_object_put(reply);
	return 0;
}
