/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <json-c/json.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "src/protocol/client.h"
#include "src/fabric/fabric.h"
#include "src/ocsctl/cmd/phases.h"
#include "src/ocsctl/ocsctl.h"
#include "src/ocsctl/slurm/state.h"
#include "src/ocsctl/output/table.h"
#include "src/ocsctl/slurm/waiting.h"
#include "src/ocsctl/slurm/slurm_time.h"
#include "src/ocsctl/what_if.h"
#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/util/text.h"

/* Everything known about one job. */
struct story {
	struct json_object *job; /* borrowed from replies */
	struct json_object *pending;
	struct json_object *circuits; /* owned: those of this job */
	struct json_object *phases;   /* borrowed; NULL: not on rails */
	struct json_object *replies[4];
	struct ocs_ctl_queue found;	   /* the job alone, as Slurm has it */
	const struct ocs_ctl_queued *self; /* in that; NULL: Slurm says nothing */
	struct ocs_ctl_queue queue;	   /* of all users, for a job that waits */
	struct ocs_ctl_waiting waiting;
	struct ocs_fabric *fabric; /* behind that, or NULL */
	bool hidden;		   /* ocsd does not tell this user what the job holds */
	bool asked;		   /* ocsd has answered */
};

static struct json_object *job_pick(struct json_object *list, long job)
{
	for (size_t i = 0; i < ocs_ctl_length(list); i++) {
		struct json_object *one = json_object_array_get_idx(list, i);

		if (ocs_field_number(one, OCS_FIELD_JOB, 0) == job)
			return one;
	}
	return NULL;
}

/* A job of another user, of which ocsd tells administrators only. */
static bool somebody_elses(struct ocs_client *client, const struct ocs_ctl_queued *self)
{
	const struct passwd *me = self ? getpwuid(geteuid()) : NULL;
	struct json_object *reply;
	struct ocs_error err = { 0 };

	if (!self || (me && !strcmp(me->pw_name, self->user)))
		return false;
	reply = ocs_ctl_ask(client, OCS_SHOW_FABRIC, NULL, &err);
	json_object_put(reply);
	return !reply && ocs_ctl_for_administrators(&err);
}

static int story_read(struct ocs_client *client, const char *name, long job, struct story *story,
		      struct ocs_error *err)
{
	struct json_object *list;

	story->replies[0] = ocs_ctl_ask(client, OCS_SHOW_JOB, name, err);
	if (!story->replies[0])
		return -1;
	story->job = job_pick(ocs_field_array(story->replies[0], OCS_FIELD_JOBS, NULL), job);
	if (story->job && !ocs_ctl_job_lives(story->job))
		story->job = NULL;
	story->replies[1] = ocs_ctl_ask(client, OCS_SHOW_PENDING, name, err);
	if (!story->replies[1])
		return -1;
	story->pending = job_pick(ocs_field_array(story->replies[1], OCS_FIELD_PENDING, NULL), job);
	if (!story->job) {
		story->hidden = somebody_elses(client, story->self);
		return 0;
	}
	story->replies[2] = ocs_ctl_ask(client, OCS_SHOW_CIRCUIT, name, err);
	if (!story->replies[2])
		return -1;
	/* An older ocsd knows no such question. */
	story->replies[3] = ocs_ctl_ask(client, OCS_SHOW_PHASES, name, NULL);
	story->phases = job_pick(ocs_field_array(story->replies[3], OCS_FIELD_PHASES, NULL), job);
	story->circuits = json_object_new_array();
	list = ocs_field_array(story->replies[2], OCS_FIELD_CIRCUITS, NULL);
	for (size_t i = 0; i < ocs_ctl_length(list); i++) {
		struct json_object *one = json_object_array_get_idx(list, i);

		if (ocs_field_number(one, OCS_FIELD_JOB, 0) == job)
			json_object_array_add(story->circuits, json_object_get(one));
	}
	return 0;
}

static void story_free(struct story *story)
{
	json_object_put(story->circuits);
	for (size_t i = 0; i < 4; i++)
		json_object_put(story->replies[i]);
	ocs_ctl_waiting_free(&story->waiting);
	ocs_fabric_destroy(story->fabric);
	ocs_ctl_queue_free(&story->queue);
	ocs_ctl_queue_free(&story->found);
}

static bool pending_reason(const struct story *story)
{
	/* squeue shows a flag of the job instead of its state */
	static const char states[] = "PENDING,REQUEUED,REQUEUE_FED,REQUEUE_HOLD,SPECIAL_EXIT,"
				     "RESV_DEL_HOLD";

	return story->self && ocs_list_has(states, story->self->state, strlen(story->self->state));
}

static void print_waiting(const struct story *story, long job)
{
	time_t since = ocs_field_number(story->pending, OCS_FIELD_SINCE, 0);
	const struct ocs_ctl_waiting *w = &story->waiting;
	const char *shape = ocs_ctl_string(story->pending, OCS_FIELD_SHAPE, "");
	const char *why = ocs_ctl_string(story->pending, OCS_FIELD_REASON, NULL);
	char when[OCS_CTL_WHEN_TEXT], text[OCS_SHAPE_TEXT];

	if (w->shaped)
		shape = ocs_shape_named_format(&w->shape, text);
	if (w->job)
		why = w->ours	? w->ours :
		      w->slurm	? w->slurm :
		      w->nahead ? "others go first" :
		      strcmp(w->job->reason, "Resources") == 0 ?
				  "there was no room when slurmctld tried last" :
				  "slurmctld has not tried to place it yet";
	printf("job %ld of %s, %s%s, waits%s%s: %s\n", job,
	       story->self ? story->self->user :
			     ocs_ctl_string(story->pending, OCS_FIELD_USER, "?"),
	       *shape ? "shape " : "without a shape", shape, since > 0 ? " since " : "",
	       ocs_ctl_moment_format(since, "", when), why ? why : "no reason was given");
	if (w->job)
		ocs_ctl_waiting_print(w);
}

/* What Slurm says of a job that ocsd does not know, or not to this user. */
static void print_plain(const struct story *story)
{
	const struct ocs_ctl_queued *self = story->self;
	char when[OCS_CTL_WHEN_TEXT];

	if (ocs_ctl_queued_runs(self))
		printf("job %ld of %s%s: %s on %s until %s\n", self->job, self->user,
		       story->hidden ? ", whose circuits are not shown to you" :
		       story->asked  ? " holds no circuits" :
				       "",
		       self->state, self->nodes, ocs_ctl_moment_format(self->end, "it ends", when));
	else
		printf("job %ld of %s has ended: %s\n", self->job, self->user, self->state);
}

/* The cubes come out of the compact placement, which needs the fabric; without
 * one the rest is still worth printing. */
static void print_cubes(const struct ocs_ctl_args *args, struct json_object *job)
{
	struct ocs_error ignored = { 0 };
	struct ocs_fabric *fabric = ocs_ctl_fabric_open(args, &ignored);
	const struct ocs_section *section = NULL;
	struct ocs_placement *placement = NULL;
	struct ocs_placer *placer = NULL;

	if (fabric)
		section = ocs_fabric_section_named(fabric,
						   ocs_ctl_string(job, OCS_FIELD_SECTION, ""));
	if (section && (section->kind == OCS_TORUS || section->kind == OCS_STATIC))
		placer = ocs_placer_create(fabric, section);
	if (placer && !ocs_ctl_job_placement(job, section, placer, &placement, &ignored) &&
	    placement) {
		char *cubes = ocs_ctl_cube_list(placement);

		printf("cubes:    %s\n", cubes);
		free(cubes);
	}
	ocs_placement_destroy(placement);
	ocs_placer_destroy(placer);
	ocs_fabric_destroy(fabric);
}

/* Jobs of direct sections have one. */
static void print_plan(struct json_object *job)
{
	struct json_object *plan = ocs_field(job, OCS_FIELD_PLAN), *hops = NULL;

	if (!plan)
		return;
	json_object_object_get_ex(plan, "average_hops", &hops);
	printf("plan:     revision %s, %s servers of degree %s, diameter %s, average hops %.3f\n",
	       ocs_ctl_string(plan, OCS_FIELD_REVISION, "1"), ocs_ctl_string(plan, "servers", "?"),
	       ocs_ctl_string(plan, "degree", "?"), ocs_ctl_string(plan, "diameter", "?"),
	       json_object_get_double(hops));
}

/* How many circuits are in which state, and those that do not carry light as they should. */
static void print_circuits(const struct story *story, long job)
{
	static const char *const members[] = {
		OCS_FIELD_SWITCH,  OCS_FIELD_A,	      OCS_FIELD_B,
		OCS_FIELD_A_LABEL, OCS_FIELD_B_LABEL, OCS_FIELD_STATE,
	};
	size_t n = ocs_ctl_length(story->circuits), bad = 0;
	long all = ocs_field_number(story->job, OCS_FIELD_CIRCUITS, 0);
	struct ocs_text_table *table =
		ocs_text_table_create("SWITCH|>A|>B|A LEADS TO|B LEADS TO|STATE");

	for (size_t i = 0; i < n; i++) {
		struct json_object *one = json_object_array_get_idx(story->circuits, i);

		if (!strcmp(ocs_ctl_string(one, OCS_FIELD_STATE, ""), "CONNECTED"))
			continue;
		bad++;
		for (size_t m = 0; m < sizeof(members) / sizeof(*members); m++)
			ocs_text_table_add(table, ocs_ctl_string(one, members[m], NULL));
	}
	printf("circuits: %ld", all);
	if (all && !n)
		printf(", none of them made yet");
	else if (n)
		printf(", %zu CONNECTED; 'ocsctl show circuit %ld' lists them", n - bad, job);
	putchar('\n');
	if (bad) {
		putchar('\n');
		ocs_text_table_print(table, stdout);
	}
	ocs_text_table_destroy(table);
}

/* It has its nodes, and Slurm waits for prologs there before it starts the script. */
static bool in_prolog(const struct story *story)
{
	return story->self && !strcmp(story->self->state, "RUNNING") &&
	       !strcmp(story->self->reason, "Prolog");
}

static void print_running(const struct ocs_ctl_args *args, const struct story *story, long job)
{
	const char *released = ocs_ctl_string(story->job, OCS_FIELD_RELEASED, NULL);
	const char *unheard = ocs_ctl_string(story->job, OCS_FIELD_UNHEARD, NULL);
	const char *failure = ocs_ctl_string(story->job, OCS_FIELD_ERROR, NULL);
	const char *shape = ocs_ctl_string(story->job, OCS_FIELD_SHAPE, NULL);
	const char *section = ocs_ctl_string(story->job, OCS_FIELD_SECTION, "-");
	char when[OCS_CTL_WHEN_TEXT];

	printf("job %ld of %s: %s, epoch %s\n", job,
	       ocs_ctl_string(story->job, OCS_FIELD_USER, "?"),
	       ocs_ctl_string(story->job, OCS_FIELD_STATE, "?"),
	       ocs_ctl_string(story->job, OCS_FIELD_EPOCH, "?"));
	if (shape)
		printf("shape:    %s (%s) in section %s\n", shape,
		       ocs_ctl_string(story->job, OCS_FIELD_CONN, "-"), section);
	else
		printf("section:  %s\n", section);
	ocs_ctl_phases_summary(story->phases);
	print_cubes(args, story->job);
	printf("nodes:    %s\n", ocs_ctl_string(story->job, OCS_FIELD_NODES, "-"));
	if (story->self && story->self->end)
		printf("ends:     %s at the latest\n",
		       ocs_ctl_moment_format(story->self->end, "-", when));
	if (in_prolog(story))
		puts("prolog:   Slurm waits until it has ended on every node, then the job starts");
	if (unheard && *unheard)
		printf("waits:    for %s to ask for circuits, before which nothing of it starts\n",
		       unheard);
	if (released && *released)
		printf("released: %s\n", released);
	print_plan(story->job);
	if (failure && *failure)
		printf("failure:  %s\n", failure);
	print_circuits(story, job);
}

static void print_json(const struct story *story, long job)
{
	struct json_object *out = json_object_new_object();
	const char *state = "pending";
	char text[OCS_SHAPE_TEXT];

	if (story->job)
		state = ocs_ctl_string(story->job, OCS_FIELD_STATE, "");
	else if (story->self && !pending_reason(story))
		state = ocs_ctl_queued_runs(story->self) ? "running" : "ended";
	json_object_object_add(out, "job", json_object_new_int64(job));
	json_object_object_add(out, "state", json_object_new_string(state));
	if (story->self) {
		json_object_object_add(out, "user", json_object_new_string(story->self->user));
		json_object_object_add(out, "slurm_state",
				       json_object_new_string(story->self->state));
	}
	if (story->hidden)
		json_object_object_add(out, "hidden", json_object_new_boolean(true));
	if (story->pending)
		json_object_object_add(out, "pending", json_object_get(story->pending));
	if (story->waiting.shaped)
		json_object_object_add(out, "shape",
				       json_object_new_string(ocs_shape_named_format(
					       &story->waiting.shape, text)));
	if (story->waiting.job)
		ocs_ctl_waiting_json(&story->waiting, out);
	if (story->self && !pending_reason(story) && story->self->end)
		json_object_object_add(out, "end", json_object_new_int64(story->self->end));
	if (in_prolog(story))
		json_object_object_add(out, "slurm_reason",
				       json_object_new_string(story->self->reason));
	if (story->job) {
		json_object_object_add(out, "allocation", json_object_get(story->job));
		json_object_object_add(out, "circuits", json_object_get(story->circuits));
		if (story->phases)
			json_object_object_add(out, OCS_FIELD_PHASES,
					       json_object_get(story->phases));
	}
	ocs_ctl_print_json(out);
	json_object_put(out);
}

/* What Slurm knows.  0, or -1 with ERR: it could not be asked. */
static int slurm_read(long job, struct story *story, struct ocs_error *err)
{
	if (ocs_ctl_queue_read(job, &story->found, err)) {
		/* It is no fault of Slurm's if there is no such job. */
		return strstr(err->text, "Invalid job id") ? 0 : -1;
	}
	story->self = ocs_ctl_queue_find(&story->found, job);
	if (!pending_reason(story))
		return 0;
	return ocs_ctl_queue_read(0, &story->queue, err);
}

static void wait_read(const struct ocs_ctl_args *args, struct story *story)
{
	struct ocs_error ignored = { 0 };
	struct ocs_fabric *fabric = story->job ? NULL : ocs_ctl_fabric_open(args, &ignored);

	story->fabric = fabric;
	ocs_ctl_waiting_read(fabric, &story->queue, story->self,
			     ocs_ctl_string(story->pending, OCS_FIELD_REASON, NULL),
			     &story->waiting);
}

static void story_tell(const struct ocs_ctl_args *args, const struct story *story, long job)
{
	if (args->json) {
		print_json(story, job);
		return;
	}
	if (story->pending || pending_reason(story))
		print_waiting(story, job);
	if (story->job)
		print_running(args, story, job);
	else if (story->self && !pending_reason(story) && !story->pending)
		print_plain(story);
}

/* What squeue shows as "42_7" or "43+1" has a number of its own. */
static int job_find(const char *shown, long *job, struct ocs_error *err)
{
	char name[64];
	char *const words[] = { "squeue", "-a", "-h", "-t", "all", "-j", name, "-o", "%A", NULL };
	size_t digits = strspn(shown, "0123456789"), length = strlen(shown);
	struct ocs_error why = { 0 };
	char *text;
	int rc;

	/* nothing else reaches the command line of squeue */
	if (!digits || digits + 1 >= length || length >= sizeof(name) ||
	    (shown[digits] != '_' && shown[digits] != '+') ||
	    shown[digits + 1 + strspn(shown + digits + 1, "0123456789")])
		return ocs_ctl_job_parse(shown, job, err);
	memcpy(name, shown, length + 1);
	text = ocs_ctl_slurm_run(words, &why);
	if (text && *text) {
		text[strcspn(text, "\n")] = '\0';
		rc = ocs_ctl_job_parse(text, job, err);
		free(text);
		return rc;
	}
	if (text || strstr(why.text, "Invalid job id"))
		ocs_error_set(err, OCS_ERROR, "there is no job %s, or it is not yours to see",
			      shown);
	else
		ocs_error_set(err, OCS_ERROR, "the number of job %s is not known: %.300s", shown,
			      why.text);
	free(text);
	return -1;
}

int ocs_ctl_explain(const struct ocs_ctl_args *args, struct ocs_error *err)
{
	struct ocs_error no_slurm = { 0 };
	struct story story = { 0 };
	struct ocs_client *client;
	bool slurm;
	char name[24];
	long job;
	int rc;

	if (job_find(args->operands[0], &job, err))
		return -1;
	snprintf(name, sizeof(name), "%ld", job);
	slurm = !slurm_read(job, &story, &no_slurm);
	client = ocs_ctl_connect(args, NULL, err);
	rc = client ? story_read(client, name, job, &story, err) : -1;
	story.asked = !rc;
	ocs_client_close(client);
	if (pending_reason(&story))
		wait_read(args, &story);
	if (!slurm && (story.job || story.pending))
		fprintf(stderr, "ocsctl: slurmctld was not asked (%s): only what ocsd knows\n",
			no_slurm.text);
	if (!story.job && !story.pending && !story.self) {
		if (!rc && slurm)
			rc = ocs_error_set(err, OCS_ERROR,
					   "there is no job %ld, or it is not yours to"
					   " see",
					   job);
		else if (!rc)
			rc = ocs_error_set(err, OCS_ERROR,
					   "ocsd knows no job %ld, and slurmctld was not"
					   " asked (%.300s)",
					   job, no_slurm.text);
	} else {
		story_tell(args, &story, job);
	}
	story_free(&story);
	return rc;
}
