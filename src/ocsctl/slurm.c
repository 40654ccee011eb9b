/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/ocsctl/slurm.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "src/ocsctl/when.h"
#include "src/util/constraint.h"
#include "src/util/error.h"
#include "src/util/hostlist.h"
#include "src/util/program.h"
#include "src/util/text.h"

#define COLUMNS 17
#define NODES_S 5		/* what people wait for the states of nodes */
#define NAMES_MAX 1000000

/* ---- running a command ---- */

/* What a user's environment would make of the output is not for us to read. */
static void environment_clean(void)
{
	static const char *const unwanted[] = {
		"SQUEUE_ACCOUNT", "SQUEUE_ALL", "SQUEUE_ARRAY", "SQUEUE_FEDERATION", "SQUEUE_FORMAT",
		"SQUEUE_FORMAT2", "SQUEUE_LICENSES", "SQUEUE_NAMES", "SQUEUE_PARTITION",
		"SQUEUE_PRIORITY", "SQUEUE_QOS", "SQUEUE_SIBLING", "SQUEUE_SORT", "SQUEUE_STATES",
		"SQUEUE_USERS", "SINFO_ALL", "SINFO_FORMAT", "SINFO_PARTITION", "SINFO_SORT",
		"SCONTROL_ALL", "SCONTROL_FEDERATION", "SCONTROL_FUTURE", "SCONTROL_SIBLING",
	};

	for (size_t i = 0; i < sizeof(unwanted) / sizeof(*unwanted); i++)
		unsetenv(unwanted[i]);
	setenv("SLURM_TIME_FORMAT", "%s", 1);
}

/* The first line of SAID that is a complaint, without the names of programs before it. */
static const char *complaint(char *said)
{
	char *line = said + strspn(said, "\n"), *mark = strstr(said, "error: ");

	if (mark)
		line = mark + strlen("error: ");
	line[strcspn(line, "\n")] = '\0';
	return *line ? line : "it says nothing";
}

/* TEXT (freed here) in lines that a terminal shows as they stand. */
static char *lines_clean(char *text)
{
	struct ocs_text clean = { 0 };
	char *rest = text, *line;

	while ((line = strsep(&rest, "\n")))
		ocs_text_add(&clean, "%s%s", ocs_text_clean(line), rest ? "\n" : "");
	free(text);
	return ocs_text_take(&clean);
}

char *ocs_ctl_slurm_run(char *const *words, struct ocs_error *err)
{
	return ocs_ctl_slurm_ask(words, 0, err);
}

char *ocs_ctl_slurm_ask(char *const *words, unsigned seconds, struct ocs_error *err)
{
	const struct ocs_program program = { .words = words, .seconds = seconds };
	char *text, *said;
	int status;

	environment_clean();
	status = ocs_program_run(&program, &text, &said);
	if (seconds && status > 0 && WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) {
		ocs_error_set(err, OCS_UNREACHABLE, "%s: Slurm does not answer within %u s", words[0],
			      seconds);
	} else if (status) {
		const char *why = complaint(said);
		bool named = !strncmp(why, "cannot run ", 11);

		ocs_error_set(err, OCS_ERROR, "%s%s%s", named ? "" : words[0], named ? "" : ": ", why);
	}
	free(said);
	/* A node's reason is what its writer made it. */
	if (!status)
		return lines_clean(text);
	free(text);
	return NULL;
}

/* ---- reading its output ---- */

/* The next line of *AT, cut off; NULL at the end. */
static char *next_line(char **at)
{
	char *line = *at, *end;

	if (!*line)
		return NULL;
	end = line + strcspn(line, "\n");
	*at = *end ? end + 1 : end;
	*end = '\0';
	return line;
}

static bool nothing(const char *text)
{
	return !*text || !strcmp(text, "(null)") || !strcmp(text, "N/A") || !strcmp(text, "n/a");
}

static char *value(const char *text)
{
	return ocs_strdup(nothing(text) ? "" : text);
}

static long number(const char *text)
{
	long n;

	return ocs_number_parse(text, 0, LONG_MAX, &n) ? 0 : n;
}

/* The value of KEY in a line of "Key=value Key=value ...", up to the next blank.  NULL if it
 * is missing, empty, "(null)" or "N/A". */
static char *field_find(const char *line, const char *key)
{
	size_t length = strlen(key);

	for (const char *at = line; (at = strstr(at, key)); at += length) {
		char *text;

		if ((at != line && at[-1] != ' ') || at[length] != '=')
			continue;
		at += length + 1;
		text = ocs_asprintf("%.*s", (int)strcspn(at, " \n"), at);
		if (!nothing(text))
			return text;
		free(text);
		return NULL;
	}
	return NULL;
}

/* The words of KEY="..." in such a line, "" if there are none. */
static char *quoted(const char *line, const char *key)
{
	char *begin = ocs_asprintf(" %s=\"", key);
	const char *at = strstr(line, begin);

	at = at ? at + strlen(begin) : "";
	free(begin);
	return ocs_asprintf("%.*s", (int)strcspn(at, "\"\n"), at);
}

static char *field(const char *line, const char *key)
{
	char *text = field_find(line, key);

	return text ? text : ocs_strdup("");
}

static time_t field_time(const char *line, const char *key)
{
	char *text = field(line, key);
	time_t when = number(text);

	free(text);
	return when;
}

/* Cuts LINE at its bars into COUNT columns; the last keeps the rest.  False if there are
 * fewer. */
static bool columns(char *line, char **at, int count)
{
	for (int i = 0; i < count; i++) {
		at[i] = line;
		if (i == count - 1)
			return true;
		line += strcspn(line, "|");
		if (!*line)
			return false;
		*line++ = '\0';
	}
	return false;
}

static void queued_fill(struct ocs_ctl_queued *job, char **at)
{
	job->job = number(at[0]);
	job->state = value(at[1]);
	job->user = value(at[2]);
	job->partition = value(at[3]);
	job->priority = number(at[4]);
	job->start = number(at[5]);
	job->end = number(at[6]);
	job->nodes = value(at[7]);
	job->dependency = value(at[8]);
	job->reservation = value(at[9]);
	job->wanted = value(at[10]);
	job->excluded = value(at[11]);
	job->planned = value(at[12]);
	job->node_count = number(at[13]);
	job->limit = ocs_ctl_duration_parse(at[14], NULL);
	if (job->limit < 0)
		job->limit = 0;
	job->licences = value(at[15]);
	job->reason = value(at[16]);
	if (!strncmp(job->planned, "(null)", 6))
		*job->planned = '\0';
}

int ocs_ctl_queue_read(long job, struct ocs_ctl_queue *queue, struct ocs_error *err)
{
	char name[24];
	char *const all[] = { "squeue", "-a", "-h", "-o",
			      "%A|%T|%u|%P|%Q|%S|%e|%N|%E|%v|%n|%x|%Y|%D|%l|%W|%r", NULL };
	char *const one[] = { "squeue", "-a", "-h", "-t", "all", "-j", name, "-o", all[4], NULL };
	char *text, *rest, *line, *at[COLUMNS];

	memset(queue, 0, sizeof(*queue));
	snprintf(name, sizeof(name), "%ld", job);
	text = rest = ocs_ctl_slurm_run(job ? one : all, err);
	if (!text)
		return -1;
	while ((line = next_line(&rest))) {
		if (!columns(line, at, COLUMNS))
			continue;
		queue->jobs = ocs_realloc(queue->jobs,
					  ((size_t)queue->count + 1) * sizeof(*queue->jobs));
		queued_fill(&queue->jobs[queue->count++], at);
	}
	free(text);
	return 0;
}

void ocs_ctl_queue_free(struct ocs_ctl_queue *queue)
{
	for (int i = 0; i < queue->count; i++) {
		struct ocs_ctl_queued *job = &queue->jobs[i];

		free(job->state);
		free(job->user);
		free(job->partition);
		free(job->nodes);
		free(job->dependency);
		free(job->reservation);
		free(job->wanted);
		free(job->excluded);
		free(job->planned);
		free(job->licences);
		free(job->reason);
	}
	free(queue->jobs);
	memset(queue, 0, sizeof(*queue));
}

const struct ocs_ctl_queued *ocs_ctl_queue_find(const struct ocs_ctl_queue *queue, long job)
{
	for (int i = 0; i < queue->count; i++) {
		if (queue->jobs[i].job == job)
			return &queue->jobs[i];
	}
	return NULL;
}

bool ocs_ctl_queued_runs(const struct ocs_ctl_queued *job)
{
	static const char *const states[] = { "RUNNING", "CONFIGURING", "COMPLETING", "SUSPENDED",
					      "SIGNALING", "STAGE_OUT", "STOPPED", "RESIZING" };

	for (size_t i = 0; i < sizeof(states) / sizeof(*states); i++) {
		if (!strcmp(job->state, states[i]))
			return *job->nodes;
	}
	return false;
}

int ocs_ctl_partitions_read(struct ocs_ctl_partitions *all, struct ocs_error *err)
{
	char *const words[] = { "scontrol", "-a", "-o", "show", "partition", NULL };
	char *text, *rest, *line;

	memset(all, 0, sizeof(*all));
	text = rest = ocs_ctl_slurm_run(words, err);
	if (!text)
		return -1;
	while ((line = next_line(&rest))) {
		struct ocs_ctl_partition *one;
		char *tier;

		if (strncmp(line, "PartitionName=", 14))
			continue;
		all->list = ocs_realloc(all->list, ((size_t)all->count + 1) * sizeof(*all->list));
		one = &all->list[all->count++];
		one->name = field(line, "PartitionName");
		one->nodes = field(line, "Nodes");
		tier = field(line, "PriorityTier");
		one->tier = number(tier);
		free(tier);
	}
	free(text);
	return 0;
}

void ocs_ctl_partitions_free(struct ocs_ctl_partitions *all)
{
	for (int i = 0; i < all->count; i++) {
		free(all->list[i].name);
		free(all->list[i].nodes);
	}
	free(all->list);
	memset(all, 0, sizeof(*all));
}

int ocs_ctl_reservations_read(struct ocs_ctl_reservations *all, unsigned seconds,
			      struct ocs_error *err)
{
	char *const words[] = { "scontrol", "-a", "-o", "show", "reservation", NULL };
	char *text, *rest, *line;

	memset(all, 0, sizeof(*all));
	text = rest = ocs_ctl_slurm_ask(words, seconds, err);
	if (!text)
		return -1;
	while ((line = next_line(&rest))) {
		struct ocs_ctl_reservation *one;

		if (strncmp(line, "ReservationName=", 16))
			continue;
		all->list = ocs_realloc(all->list, ((size_t)all->count + 1) * sizeof(*all->list));
		one = &all->list[all->count++];
		one->name = field(line, "ReservationName");
		one->nodes = field(line, "Nodes");
		one->users = field(line, "Users");
		one->accounts = field(line, "Accounts");
		one->flags = field(line, "Flags");
		one->start = field_time(line, "StartTime");
		one->end = field_time(line, "EndTime");
	}
	free(text);
	return 0;
}

void ocs_ctl_reservations_free(struct ocs_ctl_reservations *all)
{
	for (int i = 0; i < all->count; i++) {
		free(all->list[i].name);
		free(all->list[i].nodes);
		free(all->list[i].users);
		free(all->list[i].accounts);
		free(all->list[i].flags);
	}
	free(all->list);
	memset(all, 0, sizeof(*all));
}

int ocs_ctl_places_read(struct ocs_ctl_places *all, unsigned seconds, struct ocs_error *err)
{
	char *const words[] = { "scontrol", "-a", "-o", "show", "node", NULL };
	char *text, *rest, *line;

	memset(all, 0, sizeof(*all));
	text = rest = ocs_ctl_slurm_ask(words, seconds, err);
	if (!text)
		return -1;
	while ((line = next_line(&rest))) {
		char *topology = field_find(line, "Topology");

		if (!topology)
			continue;
		all->list = ocs_realloc(all->list, ((size_t)all->count + 1) * sizeof(*all->list));
		all->list[all->count].node = field(line, "NodeName");
		all->list[all->count++].topology = topology;
	}
	free(text);
	return 0;
}

void ocs_ctl_places_free(struct ocs_ctl_places *all)
{
	for (int i = 0; i < all->count; i++) {
		free(all->list[i].node);
		free(all->list[i].topology);
	}
	free(all->list);
	memset(all, 0, sizeof(*all));
}

int ocs_ctl_parts_read(struct ocs_ctl_parts *all, struct ocs_error *err)
{
	char *const words[] = { "scontrol", "show", "topology", NULL };
	char *text, *rest, *line;

	memset(all, 0, sizeof(*all));
	text = rest = ocs_ctl_slurm_run(words, err);
	if (!text)
		return -1;
	while ((line = next_line(&rest))) {
		struct ocs_ctl_part one = { .cube = field_find(line, "Cube"),
					    .sw = field_find(line, "Switch") };

		if (!one.cube && !one.sw)
			continue;
		one.section = field(line, "Section");
		one.nodes = field(line, "Nodes");
		one.state = field(line, "State");
		one.reason = quoted(line, "Reason");
		all->list = ocs_realloc(all->list, ((size_t)all->count + 1) * sizeof(*all->list));
		all->list[all->count++] = one;
	}
	free(text);
	return 0;
}

void ocs_ctl_parts_free(struct ocs_ctl_parts *all)
{
	for (int i = 0; i < all->count; i++) {
		free(all->list[i].cube);
		free(all->list[i].sw);
		free(all->list[i].section);
		free(all->list[i].nodes);
		free(all->list[i].state);
		free(all->list[i].reason);
	}
	free(all->list);
	memset(all, 0, sizeof(*all));
}

int ocs_ctl_groups_read(struct ocs_ctl_groups *all, struct ocs_error *err)
{
	char *const words[] = { "sinfo", "-a", "-h", "-o", "%T|%N|%E", NULL };
	char *text, *rest, *line, *at[3];

	memset(all, 0, sizeof(*all));
	text = rest = ocs_ctl_slurm_ask(words, NODES_S, err);
	if (!text)
		return -1;
	while ((line = next_line(&rest))) {
		struct ocs_ctl_nodes *one;

		if (!columns(line, at, 3))
			continue;
		all->list = ocs_realloc(all->list, ((size_t)all->count + 1) * sizeof(*all->list));
		one = &all->list[all->count++];
		one->silent = strchr(at[0], '*');
		at[0][strcspn(at[0], "*~#!%$@^-+")] = '\0';
		one->state = value(at[0]);
		one->nodes = value(at[1]);
		one->reason = ocs_strdup(strcmp(at[2], "none") ? at[2] : "");
		one->names = NULL;
		one->nnames = ocs_hostlist_expand(one->nodes, NAMES_MAX, &one->names, NULL);
		if (one->nnames < 0)
			one->nnames = 0;
	}
	free(text);
	return 0;
}

void ocs_ctl_groups_free(struct ocs_ctl_groups *all)
{
	for (int i = 0; i < all->count; i++) {
		free(all->list[i].state);
		free(all->list[i].nodes);
		free(all->list[i].reason);
		ocs_names_free(all->list[i].names, (size_t)all->list[i].nnames);
	}
	free(all->list);
	memset(all, 0, sizeof(*all));
}

char **ocs_ctl_nodes_with(const char *wanted, int count, struct ocs_error *err)
{
	char *const words[] = { "sinfo", "-a", "-h", "-o", "%f|%N", NULL };
	struct ocs_text *nodes;
	char *text, *rest, *line, *at[2], **lists;

	text = rest = ocs_ctl_slurm_ask(words, NODES_S, err);
	if (!text)
		return NULL;
	nodes = ocs_calloc((size_t)count, sizeof(*nodes));
	lists = ocs_calloc((size_t)count, sizeof(*lists));
	while ((line = next_line(&rest))) {
		bool whole = columns(line, at, 2);

		for (int i = 0; whole && i < count; i++) {
			if (ocs_constraint_meet(wanted, i, at[0]))
				ocs_text_add(&nodes[i], "%s%s", nodes[i].length ? "," : "", at[1]);
		}
	}
	for (int i = 0; i < count; i++)
		lists[i] = ocs_text_take(&nodes[i]);
	free(nodes);
	free(text);
	return lists;
}

bool ocs_ctl_nodes_out(const struct ocs_ctl_nodes *group)
{
	static const char *const out[] = { "down", "drain", "fail", "unknown", "inval", "future",
					   "blocked" };

	for (size_t i = 0; i < sizeof(out) / sizeof(*out); i++) {
		if (!strncmp(group->state, out[i], strlen(out[i])))
			return true;
	}
	return group->silent;
}

bool ocs_ctl_nodes_reserved(const struct ocs_ctl_nodes *group)
{
	return !strncmp(group->state, "maint", 5) || !strncmp(group->state, "reserved", 8);
}

bool ocs_ctl_nodes_used(const struct ocs_ctl_nodes *group)
{
	return !strncmp(group->state, "alloc", 5) || !strncmp(group->state, "mixed", 5) ||
	       !strncmp(group->state, "compl", 5);
}
