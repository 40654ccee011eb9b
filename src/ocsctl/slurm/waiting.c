/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/ocsctl/slurm/waiting.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/ocsctl/slurm/blocker_sources.h"
#include "src/ocsctl/slurm/slurm_time.h"
#include "src/util/constraint.h"
#include "src/util/hostlist.h"
#include "src/rails/layout.h"
#include "src/util/text.h"

/* ---- what Slurm says ---- */

static bool text_begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

/* Reasons that say no more than that nodes are missing. */
static bool for_nodes(const char *reason)
{
	static const char *const words[] = { "None",	       "Resources",	 "Priority",
					     "Nodes_required", "Nodes required", "ReqNodeNotAvail",
					     "Licenses",       "Reservation" };

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		/* a longer word is one that a later Slurm has */
		if (text_begins(reason, words[i]) &&
		    !isalnum((unsigned char)reason[strlen(words[i])]))
			return true;
	}
	return !*reason;
}

/* Slurm's words have no blanks; what the plugin wrote has. */
static bool a_sentence(const char *reason)
{
	return strchr(reason, ' ') || (strchr(reason, '_') && strchr(reason, ';'));
}

static bool a_limit(const char *reason)
{
	return text_begins(reason, "QOS") || text_begins(reason, "Assoc") ||
	       text_begins(reason, "Max");
}

/* A job that waits for a repair has that reason as well, for an instant. */
static bool for_licences(const struct ocs_ctl_queued *job)
{
	return text_begins(job->reason, "Licenses") && *job->licences;
}

/* The job's own reason, where it is not about nodes; the caller frees it. */
static char *slurm_says(const struct ocs_ctl_queued *job)
{
	char start[OCS_CTL_WHEN_TEXT];
	const char *r = job->reason;

	if (!strcmp(r, "DependencyNeverSatisfied"))
		return ocs_asprintf("it can never start: what it depends on (%s) did not happen;"
				    " scancel %ld",
				    job->dependency, job->job);
	if (text_begins(r, "Dependency"))
		return ocs_asprintf("it depends on other jobs: %s", job->dependency);
	if (text_begins(r, "JobHeldUser"))
		return ocs_asprintf("its user holds it; scontrol release %ld", job->job);
	if (text_begins(r, "JobHeldAdmin"))
		return ocs_asprintf("an administrator holds it");
	if (text_begins(r, "BeginTime"))
		return ocs_asprintf("it is not to start before %s",
				    ocs_ctl_moment_format(job->start, "its --begin", start));
	/* for a reason of Slurm's, of a failed prolog or of ours */
	if (!job->priority)
		return ocs_asprintf("it is held%s%s%s; scontrol release %ld", *r ? " (" : "", r,
				    *r ? ")" : "", job->job);
	if (text_begins(r, "PartitionTimeLimit"))
		return ocs_asprintf("its time limit is beyond that of partition %s",
				    job->partition);
	if (text_begins(r, "PartitionDown") || text_begins(r, "PartitionInactive"))
		return ocs_asprintf("partition %s starts no jobs at the moment", job->partition);
	if (text_begins(r, "Reservation"))
		return ocs_asprintf("its reservation %s has not begun", job->reservation);
	if (for_licences(job))
		return ocs_asprintf("it waits for licences: %s", job->licences);
	if (a_limit(r))
		return ocs_asprintf("a limit of its account, QOS or user: %s", r);
	if (text_begins(r, "ReqNodeNotAvail"))
		return ocs_asprintf("nodes that it asks for are not available (%s)", r);
	if (text_begins(r, "Nodes_required") || text_begins(r, "Nodes required"))
		return ocs_asprintf(
			"nodes that it needs are down, drained or kept for a partition of"
			" higher priority");
	if (for_nodes(r))
		return NULL;
	if (!a_sentence(r))
		return ocs_asprintf("Slurm's reason is %s", r);
	return NULL;
}

/* Whether free nodes would let it start. */
static bool waits_for_nodes(const struct ocs_ctl_queued *job)
{
	if (!job->priority /* held */ || for_licences(job) ||
	    (text_begins(job->reason, "Reservation") && *job->reservation))
		return false;
	return for_nodes(job->reason) || a_sentence(job->reason);
}

/* ---- what stands in the way ---- */

static bool has_partition(const struct ocs_ctl_queued *job, const struct ocs_ctl_partition *one)
{
	return ocs_list_has(job->partition, one->name, strlen(one->name));
}

/* Who goes first: what that takes. */
struct order {
	struct ocs_ctl_partitions partitions;
	bool *meets; /* by partition: it has nodes that the job could have */
};

static int by_name(const void *left, const void *right)
{
	return strcmp(*(char *const *)left, *(char *const *)right);
}

/* Adds the hosts of a list to NAMES. */
static void names_add(char ***names, size_t *count, const char *text)
{
	char **more = NULL;
	int n = *text ? ocs_hostlist_expand(text, 1000000, &more, NULL) : 0;

	if (n <= 0)
		return;
	*names = ocs_realloc(*names, (*count + (size_t)n) * sizeof(**names));
	memcpy(*names + *count, more, (size_t)n * sizeof(**names));
	*count += (size_t)n;
	free(more);
}

/* JOB's partitions, and those that share nodes with them. */
static void order_read(struct order *order, const struct ocs_ctl_queued *job)
{
	char **mine = NULL, **theirs;
	size_t count = 0, n;

	order->meets = NULL;
	if (ocs_ctl_partitions_read(&order->partitions, NULL))
		return;
	order->meets = ocs_calloc((size_t)order->partitions.count + 1, sizeof(bool));
	for (int i = 0; i < order->partitions.count; i++) {
		const struct ocs_ctl_partition *one = &order->partitions.list[i];

		order->meets[i] = has_partition(job, one);
		if (order->meets[i])
			names_add(&mine, &count, one->nodes);
	}
	if (count)
		qsort(mine, count, sizeof(*mine), by_name);
	for (int i = 0; i < order->partitions.count; i++) {
		theirs = NULL;
		n = 0;
		if (!order->meets[i])
			names_add(&theirs, &n, order->partitions.list[i].nodes);
		for (size_t k = 0; k < n && !order->meets[i]; k++)
			order->meets[i] =
				count && bsearch(&theirs[k], mine, count, sizeof(*mine), by_name);
		ocs_names_free(theirs, n);
	}
	ocs_names_free(mine, count);
}

static void order_free(struct order *order)
{
	free(order->meets);
	ocs_ctl_partitions_free(&order->partitions);
}

/* Whether JOB could take one of the nodes. */
static bool job_competes(const struct order *order, const struct ocs_ctl_queued *job)
{
	for (int i = 0; i < order->partitions.count; i++) {
		if (order->meets[i] && has_partition(job, &order->partitions.list[i]))
			return true;
	}
	return false;
}

static long tier_of(const struct order *order, const struct ocs_ctl_queued *job)
{
	long tier = 0;

	for (int i = 0; i < order->partitions.count; i++) {
		const struct ocs_ctl_partition *one = &order->partitions.list[i];

		if (one->tier > tier && has_partition(job, one))
			tier = one->tier;
	}
	return tier;
}

/* As the scheduler takes them: by tier, then by priority, then as they came. */
static bool goes_first(const struct order *order, const struct ocs_ctl_queued *a,
		       const struct ocs_ctl_queued *b)
{
	long left = tier_of(order, a), right = tier_of(order, b);

	if (left != right)
		return left > right;
	return a->priority != b->priority ? a->priority > b->priority : a->job < b->job;
}

static int in_turn(const void *left, const void *right, void *order)
{
	const struct ocs_ctl_queued *a = *(const struct ocs_ctl_queued *const *)left;
	const struct ocs_ctl_queued *b = *(const struct ocs_ctl_queued *const *)right;

	return goes_first(order, a, b) ? -1 : goes_first(order, b, a);
}

static void find_ahead(struct ocs_ctl_waiting *w, const struct ocs_ctl_queue *queue,
		       struct order *order)
{
	const struct ocs_ctl_queued **first = ocs_calloc((size_t)queue->count + 1, sizeof(*first));

	w->ahead = ocs_calloc((size_t)queue->count + 1, sizeof(*w->ahead));
	for (int i = 0; i < queue->count; i++) {
		const struct ocs_ctl_queued *one = &queue->jobs[i];

		if (strcmp(one->state, "PENDING") != 0 || one->job == w->job->job ||
		    !waits_for_nodes(one) || strcmp(one->reservation, w->job->reservation) != 0 ||
		    !job_competes(order, one))
			continue;
		if (goes_first(order, one, w->job))
			first[w->nahead++] = one;
	}
	qsort_r(first, (size_t)w->nahead, sizeof(*first), in_turn, order);
	for (int i = 0; i < w->nahead; i++)
		w->ahead[i] = first[i]->job;
	free(first);
}

/* Others' reservations that begin before the job would end. */
static void add_reservations(struct ocs_ctl_waiting *w)
{
	struct ocs_ctl_reservations all;
	time_t now = time(NULL);

	if (ocs_ctl_reservations_read(&all, 0, NULL))
		return;
	for (int i = 0; i < all.count; i++) {
		if (!strcmp(all.list[i].name, w->job->reservation))
			ocs_ctl_obstacles_only(&w->obstacles, all.list[i].nodes);
	}
	ocs_ctl_around_reservations(&w->obstacles, &all, w->job->reservation, now,
				    w->job->limit ? now + w->job->limit : 0);
	ocs_ctl_reservations_free(&all);
}

static void restrict_to_partitions(struct ocs_ctl_waiting *w, const struct order *order)
{
	struct ocs_text nodes = { 0 };

	for (int i = 0; i < order->partitions.count; i++) {
		const struct ocs_ctl_partition *one = &order->partitions.list[i];

		if (*one->nodes && has_partition(w->job, one))
			ocs_text_add(&nodes, "%s%s", nodes.length ? "," : "", one->nodes);
	}
	if (nodes.length)
		ocs_ctl_obstacles_only(&w->obstacles, nodes.data);
	ocs_text_free(&nodes);
}

static const struct ocs_section *section_of(const struct ocs_fabric *fabric, const char *partitions)
{
	const struct ocs_section *section = NULL;

	while (*partitions && !section) {
		size_t n = strcspn(partitions, ",");
		char *name = ocs_asprintf("%.*s", (int)n, partitions);

		section = ocs_fabric_section(fabric, name);
		free(name);
		partitions += n + (partitions[n] == ',');
	}
	return section;
}

/* --nodelist: the job takes those, and only them where it names all.  Which ones it would have
 * besides is not looked for: false. */
static bool restrict_to_wanted(struct ocs_ctl_waiting *w)
{
	char **names = NULL;
	int n = ocs_hostlist_expand(w->job->wanted, 1000000, &names, NULL);

	if (n >= 0)
		ocs_names_free(names, (size_t)n);
	if (n < w->job->node_count)
		return false;
	ocs_ctl_obstacles_only(&w->obstacles, w->job->wanted);
	return true;
}

/* The end of the last of those that must end. */
static time_t last_end(const struct ocs_ctl_waiting *w, const struct ocs_ctl_answer *answer)
{
	time_t last = 0;

	for (int i = 0; i < answer->nends; i++) {
		time_t end = w->obstacles.list[answer->ends[i]].end;

		if (!end)
			return LONG_MAX;
		last = end > last ? end : last;
	}
	return last;
}

static bool answer_better(const struct ocs_ctl_waiting *w, const struct ocs_ctl_answer *a,
			  const struct ocs_ctl_answer *b)
{
	if (a->now != b->now || a->possible != b->possible)
		return a->now > b->now || (a->now == b->now && a->possible > b->possible);
	if (a->nlasting != b->nlasting)
		return a->nlasting < b->nlasting;
	return last_end(w, a) < last_end(w, b);
}

/* Asks once for every alternative that the features of the job leave, and keeps the answer
 * that comes true first. */
static void question_ask(struct ocs_ctl_waiting *w)
{
	int alternatives = w->features ? ocs_constraint_alternatives(w->features) : 0;
	size_t size = (size_t)w->obstacles.section->nnodes * sizeof(bool);
	char **nodes =
		alternatives > 0 ? ocs_ctl_nodes_with(w->features, alternatives, NULL) : NULL;
	bool *eligible;

	if (!nodes) {
		ocs_ctl_obstacles_ask(&w->obstacles, &w->answer);
		return;
	}
	ocs_ctl_obstacles_without(&w->obstacles, "");
	eligible = ocs_calloc(1, size + 1);
	memcpy(eligible, w->obstacles.eligible, size);
	for (int i = 0; i < alternatives; i++) {
		struct ocs_ctl_answer answer;

		memcpy(w->obstacles.eligible, eligible, size);
		ocs_ctl_obstacles_only(&w->obstacles, nodes[i]);
		ocs_ctl_obstacles_ask(&w->obstacles, &answer);
		if (!i || answer_better(w, &answer, &w->answer)) {
			ocs_ctl_answer_free(&w->answer);
			w->answer = answer;
		} else {
			ocs_ctl_answer_free(&answer);
		}
	}
	free(eligible);
	ocs_names_free(nodes, (size_t)alternatives);
}

static void look_around(struct ocs_ctl_waiting *w, const struct ocs_fabric *fabric,
			const struct ocs_ctl_queue *queue, const struct order *order)
{
	const struct ocs_section *section = section_of(fabric, w->job->partition);

	/* Unshaped jobs may share nodes: what they need is Slurm's to say. */
	if (!section || (section->ncubes && !w->shaped))
		return;
	w->obstacles.fabric = fabric;
	w->obstacles.section = section;
	w->obstacles.shaped = w->shaped && section->ncubes;
	w->obstacles.shape = w->shape;
	w->obstacles.servers = w->shaped ? (int)w->shape.xpus : (int)w->job->node_count;
	if (w->shaped && section->kind == OCS_RAILS)
		w->obstacles.servers = ocs_rails_shape_nodes(&w->shape, section->server_xpus, NULL);
	restrict_to_partitions(w, order);
	if (*w->job->wanted && !restrict_to_wanted(w))
		return;
	if (*w->job->excluded)
		ocs_ctl_obstacles_without(&w->obstacles, w->job->excluded);
	ocs_ctl_around_jobs(&w->obstacles, queue, 0);
	ocs_ctl_around_nodes(&w->obstacles, true);
	add_reservations(w);
	ocs_ctl_around_faults(&w->obstacles);
	question_ask(w);
	w->asked = true;
}

/* The shape of the job, of its Extra, and the features. */
static void read_job(struct ocs_ctl_waiting *w)
{
	char number[24];
	char *const words[] = { "scontrol", "show", "job", number, NULL };
	char *text, *at;

	snprintf(number, sizeof(number), "%ld", w->job->job);
	text = ocs_ctl_slurm_run(words, NULL);
	/* the other parts of a heterogeneous job */
	at = text ? strstr(text, "\n\nJobId=") : NULL;
	if (at)
		*at = '\0';
	at = text ? strstr(text, "\n   Features=") : NULL;
	if (at) {
		at += strlen("\n   Features=");
		w->features = ocs_asprintf("%.*s", (int)strcspn(at, " \n"), at);
		if (!strcmp(w->features, "(null)")) {
			free(w->features);
			w->features = NULL;
		}
	}
	at = text ? strstr(text, "\n   Extra=") : NULL;
	if (at) {
		at += strlen("\n   Extra=");
		at[strcspn(at, "\n")] = '\0';
		w->shaped = ocs_shape_extra_parse(at, &w->shape, NULL) > 0;
	}
	free(text);
}

void ocs_ctl_waiting_read(const struct ocs_fabric *fabric, const struct ocs_ctl_queue *queue,
			  const struct ocs_ctl_queued *job, const char *ours,
			  struct ocs_ctl_waiting *w)
{
	struct order order = { .meets = NULL };

	memset(w, 0, sizeof(*w));
	w->job = job;
	w->slurm = slurm_says(job);
	/* What was missing when it was its turn need not be missing now. */
	if (!strcmp(job->reason, "Priority") || for_licences(job))
		ours = NULL;
	w->ours = ours ? ours : !w->slurm && a_sentence(job->reason) ? job->reason : NULL;
	read_job(w);
	if (!waits_for_nodes(job))
		return;
	order_read(&order, job);
	find_ahead(w, queue, &order);
	if (fabric)
		look_around(w, fabric, queue, &order);
	order_free(&order);
}

void ocs_ctl_waiting_free(struct ocs_ctl_waiting *w)
{
	free(w->slurm);
	free(w->features);
	free(w->ahead);
	ocs_ctl_obstacles_free(&w->obstacles);
	ocs_ctl_answer_free(&w->answer);
}
