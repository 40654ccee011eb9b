/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/ocsctl/slurm/slurm.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "src/ocsctl/slurm/slurm_time.h"
#include "src/util/constraint.h"
#include "src/util/error.h"
#include "src/util/hostlist.h"
#include "src/util/program.h"
#include "src/util/text.h"

#define COLUMNS 17
#define NODES_S 5 /* what people wait for the states of nodes */
#define NAMES_MAX 1000000

/* ---- running a command ---- */

/* What a user's environment would make of the output is not for us to read. */
static void environment_clean(void)
{
	static const char *const unwanted[] = {
		"SQUEUE_ACCOUNT",      "SQUEUE_ALL",	  "SQUEUE_ARRAY",     "SQUEUE_FEDERATION",
		"SQUEUE_FORMAT",       "SQUEUE_FORMAT2",  "SQUEUE_LICENSES",  "SQUEUE_NAMES",
		"SQUEUE_PARTITION",    "SQUEUE_PRIORITY", "SQUEUE_QOS",	      "SQUEUE_SIBLING",
		"SQUEUE_SORT",	       "SQUEUE_STATES",	  "SQUEUE_USERS",     "SINFO_ALL",
		"SINFO_FORMAT",	       "SINFO_PARTITION", "SINFO_SORT",	      "SCONTROL_ALL",
		"SCONTROL_FEDERATION", "SCONTROL_FUTURE", "SCONTROL_SIBLING",
	};

	for (size_t i = 0; i < sizeof(unwanted) / sizeof(*unwanted); i++)
		unsetenv(unwanted[i]);
	setenv("SLURM_TIME_FORMAT", "%s", 1);
}

/* The first line of SAID that is a complaint, without the names of programs before it. */
static const char *complaint_text(char *said)
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
		ocs_error_set(err, OCS_UNREACHABLE, "%s: Slurm does not answer within %u s",
			      words[0], seconds);
	} else if (status) {
		const char *why = complaint_text(said);
		bool named = !strncmp(why, "cannot run ", 11);

		ocs_error_set(err, OCS_ERROR, "%s%s%s", named ? "" : words[0], named ? "" : ": ",
			      why);
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

static bool text_nothing(const char *text)
{
	return !*text || !strcmp(text, "(null)") || !strcmp(text, "N/A") || !strcmp(text, "n/a");
}

static char *value_copy(const char *text)
{
	return ocs_strdup(text_nothing(text) ? "" : text);
}

static long number_parse(const char *text)
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
		if (!text_nothing(text))
			return text;
		free(text);
		return NULL;
	}
	return NULL;
}

/* The words of KEY="..." in such a line, "" if there are none. */
static char *field_quoted(const char *line, const char *key)
{
	char *begin = ocs_asprintf(" %s=\"", key);
	const char *at = strstr(line, begin);

	at = at ? at + strlen(begin) : "";
	free(begin);
	return ocs_asprintf("%.*s", (int)strcspn(at, "\"\n"), at);
}

static char *field_copy(const char *line, const char *key)
{
	char *text = field_find(line, key);

	return text ? text : ocs_strdup("");
}

static time_t field_time(const char *line, const char *key)
{
	char *text = field_copy(line, key);
	time_t when = number_parse(text);

	free(text);
	return when;
}

/* Cuts LINE at its bars into COUNT columns; the last keeps the rest.  False if there are
 * fewer. */
static bool columns_split(char *line, char **at, int count)
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

/* Room for one more behind COUNT elements of LIST. */
#define LIST_GROW(list, count) \
	((list) = ocs_realloc((list), ((size_t)(count) + 1) * sizeof(*(list))))

/* Runs WORDS (SECONDS as in ocs_ctl_slurm_ask) and gives each line that they print to TAKE, with
 * ALL.  Returns 0, or -1 with ERR. */
static int lines_read(char *const *words, unsigned seconds, void (*take)(char *line, void *all),
		      void *all, struct ocs_error *err)
{
	char *text = ocs_ctl_slurm_ask(words, seconds, err), *rest = text, *line;

	if (!text)
		return -1;
	while ((line = next_line(&rest)))
		take(line, all);
	free(text);
	return 0;
}

static void queued_fill(struct ocs_ctl_queued *job, char **at)
{
	job->job = number_parse(at[0]);
	job->state = value_copy(at[1]);
	job->user = value_copy(at[2]);
	job->partition = value_copy(at[3]);
	job->priority = number_parse(at[4]);
	job->start = number_parse(at[5]);
	job->end = number_parse(at[6]);
	job->nodes = value_copy(at[7]);
	job->dependency = value_copy(at[8]);
	job->reservation = value_copy(at[9]);
	job->wanted = value_copy(at[10]);
	job->excluded = value_copy(at[11]);
	job->planned = value_copy(at[12]);
	job->node_count = number_parse(at[13]);
	job->limit = ocs_ctl_duration_parse(at[14], NULL);
	if (job->limit < 0)
		job->limit = 0;
	job->licences = value_copy(at[15]);
	job->reason = value_copy(at[16]);
	if (!strncmp(job->planned, "(null)", 6))
		*job->planned = '\0';
}

static void queued_take(char *line, void *all)
{
	struct ocs_ctl_queue *queue = all;
	char *at[COLUMNS];

	if (!columns_split(line, at, COLUMNS))
		return;
	LIST_GROW(queue->jobs, queue->count);
	queued_fill(&queue->jobs[queue->count++], at);
}

int ocs_ctl_queue_read(long job, struct ocs_ctl_queue *queue, struct ocs_error *err)
{
	char name[24];
	char *const all[] = {
		"squeue", "-a", "-h", "-o", "%A|%T|%u|%P|%Q|%S|%e|%N|%E|%v|%n|%x|%Y|%D|%l|%W|%r",
		NULL
	};
	char *const one[] = { "squeue", "-a", "-h", "-t", "all", "-j", name, "-o", all[4], NULL };

	memset(queue, 0, sizeof(*queue));
	snprintf(name, sizeof(name), "%ld", job);
	return lines_read(job ? one : all, 0, queued_take, queue, err);
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
	static const char *const states[] = {
		"RUNNING",   "CONFIGURING", "COMPLETING", "SUSPENDED",
		"SIGNALING", "STAGE_OUT",   "STOPPED",	  "RESIZING"
	};

	for (size_t i = 0; i < sizeof(states) / sizeof(*states); i++) {
		if (!strcmp(job->state, states[i]))
			return *job->nodes;
	}
	return false;
}

static void partition_take(char *line, void *all)
{
	struct ocs_ctl_partitions *partitions = all;
	struct ocs_ctl_partition *one;
	char *tier;

	if (strncmp(line, "PartitionName=", 14))
		return;
	LIST_GROW(partitions->list, partitions->count);
	one = &partitions->list[partitions->count++];
	one->name = field_copy(line, "PartitionName");
	one->nodes = field_copy(line, "Nodes");
	tier = field_copy(line, "PriorityTier");
	one->tier = number_parse(tier);
	free(tier);
}

int ocs_ctl_partitions_read(struct ocs_ctl_partitions *all, struct ocs_error *err)
{
	char *const words[] = { "scontrol", "-a", "-o", "show", "partition", NULL };

	memset(all, 0, sizeof(*all));
	return lines_read(words, 0, partition_take, all, err);
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

static void reservation_take(char *line, void *all)
{
	struct ocs_ctl_reservations *reservations = all;
	struct ocs_ctl_reservation *one;

	if (strncmp(line, "ReservationName=", 16))
		return;
	LIST_GROW(reservations->list, reservations->count);
	one = &reservations->list[reservations->count++];
	one->name = field_copy(line, "ReservationName");
	one->nodes = field_copy(line, "Nodes");
	one->users = field_copy(line, "Users");
	one->accounts = field_copy(line, "Accounts");
	one->flags = field_copy(line, "Flags");
	one->start = field_time(line, "StartTime");
	one->end = field_time(line, "EndTime");
}

int ocs_ctl_reservations_read(struct ocs_ctl_reservations *all, unsigned seconds,
			      struct ocs_error *err)
{
	char *const words[] = { "scontrol", "-a", "-o", "show", "reservation", NULL };

	memset(all, 0, sizeof(*all));
	return lines_read(words, seconds, reservation_take, all, err);
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

static void place_take(char *line, void *all)
{
	char *topology = field_find(line, "Topology");
	struct ocs_ctl_places *places = all;

	if (!topology)
		return;
	LIST_GROW(places->list, places->count);
	places->list[places->count].node = field_copy(line, "NodeName");
	places->list[places->count++].topology = topology;
}

int ocs_ctl_places_read(struct ocs_ctl_places *all, unsigned seconds, struct ocs_error *err)
{
	char *const words[] = { "scontrol", "-a", "-o", "show", "node", NULL };

	memset(all, 0, sizeof(*all));
	return lines_read(words, seconds, place_take, all, err);
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

static void part_take(char *line, void *all)
{
	struct ocs_ctl_part one = { .cube = field_find(line, "Cube"),
				    .sw = field_find(line, "Switch") };
	struct ocs_ctl_parts *parts = all;

	if (!one.cube && !one.sw)
		return;
	one.section = field_copy(line, "Section");
	one.nodes = field_copy(line, "Nodes");
	one.state = field_copy(line, "State");
	one.reason = field_quoted(line, "Reason");
	LIST_GROW(parts->list, parts->count);
	parts->list[parts->count++] = one;
}

int ocs_ctl_parts_read(struct ocs_ctl_parts *all, struct ocs_error *err)
{
	char *const words[] = { "scontrol", "show", "topology", NULL };

	memset(all, 0, sizeof(*all));
	return lines_read(words, 0, part_take, all, err);
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

static void group_take(char *line, void *all)
{
	struct ocs_ctl_groups *groups = all;
	struct ocs_ctl_nodes *one;
	char *at[3];

	if (!columns_split(line, at, 3))
		return;
	LIST_GROW(groups->list, groups->count);
	one = &groups->list[groups->count++];
	one->silent = strchr(at[0], '*');
	at[0][strcspn(at[0], "*~#!%$@^-+")] = '\0';
	one->state = value_copy(at[0]);
	one->nodes = value_copy(at[1]);
	one->reason = ocs_strdup(strcmp(at[2], "none") ? at[2] : "");
	one->names = NULL;
	one->nnames = ocs_hostlist_expand(one->nodes, NAMES_MAX, &one->names, NULL);
	if (one->nnames < 0)
		one->nnames = 0;
}

int ocs_ctl_groups_read(struct ocs_ctl_groups *all, struct ocs_error *err)
{
	char *const words[] = { "sinfo", "-a", "-h", "-o", "%T|%N|%E", NULL };

	memset(all, 0, sizeof(*all));
	return lines_read(words, NODES_S, group_take, all, err);
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

struct wanted {
	const char *features;
	struct ocs_text *nodes; /* that have them, for each of COUNT */
	int count;
};

static void features_take(char *line, void *all)
{
	struct wanted *wanted = all;
	char *at[2];

	if (!columns_split(line, at, 2))
		return;
	for (int i = 0; i < wanted->count; i++) {
		struct ocs_text *nodes = &wanted->nodes[i];

		if (ocs_constraint_meet(wanted->features, i, at[0]))
			ocs_text_add(nodes, "%s%s", nodes->length ? "," : "", at[1]);
	}
}

char **ocs_ctl_nodes_with(const char *wanted, int count, struct ocs_error *err)
{
	char *const words[] = { "sinfo", "-a", "-h", "-o", "%f|%N", NULL };
	struct wanted all = { .features = wanted,
			      .count = count,
			      .nodes = ocs_calloc((size_t)count + 1, sizeof(*all.nodes)) };
	char **lists = NULL;

	if (lines_read(words, NODES_S, features_take, &all, err) == 0) {
		lists = ocs_calloc((size_t)count + 1, sizeof(*lists));
		for (int i = 0; i < count; i++)
			lists[i] = ocs_text_take(&all.nodes[i]);
	}
	free(all.nodes);
	return lists;
}

bool ocs_ctl_nodes_out(const struct ocs_ctl_nodes *group)
{
	static const char *const out[] = { "down",  "drain",  "fail",	"unknown",
					   "inval", "future", "blocked" };

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
