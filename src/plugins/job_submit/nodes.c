/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/plugins/job_submit/nodes.h"

#include <stdlib.h>
#include <string.h>

#include "src/common/hostlist.h"
#include "src/slurmctld/reservation.h"

#include "src/util/constraint.h"
#include "src/util/error.h"
#include "src/util/text.h"

#define PARTITIONS_MAX 64
#define RESERVATIONS_MAX 16

/* The nodes a job may have. */
struct allowed {
	part_record_t *parts[PARTITIONS_MAX];
	int nparts;
	hostlist_t *excluded; /* NULL: none */
	const char *features; /* what a node must have, NULL: nothing in particular; */
	int alternative;      /* this one of those that the features leave */
	int left;	      /* nodes that were found to be allowed, */
	int missing;	      /* not to be in slurm.conf, */
	int outside;	      /* and to be in none of the partitions */
	slurmctld_resv_t *reservations[RESERVATIONS_MAX];
	int nreservations; /* any of them will do; 0: none is asked for */
};

static bool node_reserved(const struct allowed *allowed, int node)
{
	for (int i = 0; i < allowed->nreservations; i++) {
		bitstr_t *nodes = allowed->reservations[i]->node_bitmap;

		if (nodes && bit_test(nodes, node))
			return true;
	}
	return !allowed->nreservations;
}

static bool in_partition(const struct allowed *allowed, int node)
{
	for (int i = 0; i < allowed->nparts; i++) {
		bitstr_t *nodes = allowed->parts[i]->node_bitmap;

		if (nodes && bit_test(nodes, node))
			return true;
	}
	return false;
}

static bool node_allowed(const struct allowed *allowed, const char *name)
{
	node_record_t *node = find_node_record2((char *)name);

	if (!node || (allowed->excluded && hostlist_find(allowed->excluded, name) >= 0) ||
	    !node_reserved(allowed, node->index))
		return false;
	if (allowed->features &&
	    !ocs_constraint_meet(allowed->features, allowed->alternative, node->features))
		return false;
	return in_partition(allowed, node->index);
}

static bool may_have(const char *name, void *arg)
{
	struct allowed *allowed = arg;
	node_record_t *node = find_node_record2((char *)name);
	bool may = node_allowed(allowed, name);

	allowed->left += may;
	allowed->missing += !node;
	allowed->outside += node && !in_partition(allowed, node->index);
	return may;
}

/* Names what leaves the job so few nodes: nothing that it did not ask for. */
static int refuse_nodes(const job_desc_msg_t *job, const char *partition,
			const struct allowed *allowed, const char *option,
			const struct ocs_shape *shape, const struct ocs_answer *answer,
			struct ocs_error *err)
{
	char text[OCS_SHAPE_TEXT], *reason = ocs_strdup(err->text);
	char *where = ocs_asprintf("%s %s", job->partition ? "-p" : "partition", partition);
	struct ocs_text by = { 0 };
	const char *words[5];
	int n = 0, rc;

	if (allowed->outside)
		words[n++] = where;
	if (allowed->excluded)
		words[n++] = "-x";
	if (allowed->features)
		words[n++] = option;
	if (allowed->nreservations)
		words[n++] = "--reservation";
	if (allowed->missing)
		words[n++] = "slurm.conf";
	for (int i = 0; i < n; i++)
		ocs_text_add(&by, "%s%s", !i ? "" : i == n - 1 ? " and " : ", ", words[i]);
	if (allowed->missing)
		ocs_text_add(&by, " (which lacks %d)", allowed->missing);
	rc = ocs_error_set(err, OCS_NEVER,
			   "--shape=%s does not fit the %d of %d nodes that %s leave%s it: %s",
			   ocs_shape_format(shape, text), allowed->left, answer->section_nodes,
			   n ? by.data : where, n > 1 ? "" : "s", reason);
	ocs_text_free(&by);
	free(where);
	free(reason);
	return rc;
}

/* Unknown partitions are Slurm's to refuse. */
static void partitions_find(struct allowed *allowed, const char *partition)
{
	char *copy = ocs_strdup(partition ? partition : ""), *save = NULL, *name;

	for (name = strtok_r(copy, ",", &save); name && allowed->nparts < PARTITIONS_MAX;
	     name = strtok_r(NULL, ",", &save)) {
		part_record_t *part = find_part_record(name);

		if (part)
			allowed->parts[allowed->nparts++] = part;
	}
	free(copy);
}

/* Those that do not exist are Slurm's to refuse; flexible ones leave other nodes as well. */
static void reservations_find(struct allowed *allowed, const char *names)
{
	char *copy = ocs_strdup(names ? names : ""), *save = NULL, *name;

	for (name = strtok_r(copy, ",", &save); name && allowed->nreservations < RESERVATIONS_MAX;
	     name = strtok_r(NULL, ",", &save)) {
		slurmctld_resv_t *reservation = find_resv_name(name);

		if (!reservation || (reservation->flags & RESERVE_FLAG_FLEX)) {
			allowed->nreservations = 0;
			break;
		}
		allowed->reservations[allowed->nreservations++] = reservation;
	}
	free(copy);
}

/* Whether it is worth while to look at every node. */
static bool section_restricted(const struct allowed *allowed, const struct ocs_answer *answer)
{
	if (allowed->excluded || allowed->features || allowed->nreservations)
		return true;
	for (int i = 0; i < allowed->nparts; i++) {
		if (allowed->parts[i]->total_nodes >= (uint32_t)answer->section_nodes)
			return false;
	}
	return allowed->nparts > 0;
}

static int check_required(const job_desc_msg_t *job, const char *partition,
			  const struct allowed *allowed, struct ocs_error *err)
{
	hostlist_t *list =
		job->req_nodes && *job->req_nodes ? hostlist_create(job->req_nodes) : NULL;
	int rc = 0;
	char *name;

	while (list && !rc && (name = hostlist_shift(list))) {
		if (find_node_record(name) &&
		    (!ocs_site_serves(partition, name) || !node_allowed(allowed, name)))
			rc = ocs_error_set(
				err, OCS_USAGE,
				"-w %s: a shape in partition %s cannot have that node; name others, or leave -w out",
				name, partition);
		free(name);
	}
	if (list)
		hostlist_destroy(list);
	return rc;
}

static int check_tasks(const job_desc_msg_t *job, const struct ocs_shape *shape,
		       const struct ocs_answer *answer, struct ocs_error *err)
{
	node_record_t *node =
		answer->some_node ? find_node_record((char *)answer->some_node) : NULL;
	uint32_t each =
		job->cpus_per_task && job->cpus_per_task != NO_VAL16 ? job->cpus_per_task : 1;
	char text[OCS_SHAPE_TEXT];
	uint64_t cpus;

	if (!node || !node->config_ptr || job->num_tasks == NO_VAL || job->overcommit == 1)
		return 0;
	cpus = (uint64_t)answer->nodes * node->config_ptr->cpus;
	if ((uint64_t)job->num_tasks * each <= cpus)
		return 0;
	return ocs_error_set(
		err, OCS_USAGE,
		"-n %u: --shape=%s takes %d node%s of %u CPUs, too few for that many tasks%s; at most -n %llu",
		job->num_tasks, ocs_shape_format(shape, text), answer->nodes,
		answer->nodes == 1 ? "" : "s", node->config_ptr->cpus, each > 1 ? " and -c" : "",
		(unsigned long long)(cpus / each));
}

/* What is said instead of "Requested node configuration is not available" or "Invalid feature
 * specification": cons_tres would choose the nodes of each count by themselves. */
static int refuse_counts(const char *option, const char *features, struct ocs_error *err)
{
	return ocs_error_set(
		err, OCS_USAGE,
		"%s %s: the nodes of a shape cannot be counted by feature; leave the counts out, or name alternatives of which all nodes meet the same one: %s \"[a|b]\"",
		option, features, option);
}

/* The nodes that ALLOWED leaves with FEATURES, if there are any. */
static int check_features(const job_desc_msg_t *job, const char *partition, const char *option,
			  const char *features, struct allowed *allowed,
			  const struct ocs_shape *shape, const struct ocs_answer *answer,
			  struct ocs_error *err)
{
	struct ocs_error why;
	int alternatives = features ? ocs_constraint_alternatives(features) : 1, most = -1;

	/* What cannot be read is Slurm's to refuse. */
	allowed->features = alternatives > 0 ? features : NULL;
	for (int i = 0; i == 0 || i < alternatives; i++) {
		allowed->alternative = i;
		allowed->left = allowed->missing = allowed->outside = 0;
		if (!check_required(job, partition, allowed, &why)) {
			if (!section_restricted(allowed, answer) ||
			    !ocs_site_fits(partition, shape, may_have, allowed, &why))
				return 0;
			refuse_nodes(job, partition, allowed, option, shape, answer, &why);
		}
		/* the alternative that leaves the most nodes is the one to tell of */
		if (allowed->left > most)
			*err = why;
		most = allowed->left > most ? allowed->left : most;
	}
	return -1;
}

static bool word_ignored(const char *word)
{
	return xstrcasestr(slurm_conf.sched_params, word);
}

/* Slurm tries these first, in the place of the others, and refuses or holds a job that could
 * never have them. */
static int check_preferred(const job_desc_msg_t *job, const char *partition,
			   struct allowed *allowed, const struct ocs_shape *shape,
			   const struct ocs_answer *answer, struct ocs_error *err)
{
	if (!job->prefer || !*job->prefer)
		return 0;
	if (!ocs_constraint_alternatives(job->prefer))
		return refuse_counts("--prefer", job->prefer, err);
	if (word_ignored("ignore_prefer_validation") ||
	    !check_features(job, partition, "--prefer", job->prefer, allowed, shape, answer, err))
		return 0;
	return ocs_error_prefix(err, "--prefer must be possible or be left out");
}

int ocs_nodes_check(job_desc_msg_t *job, const char *partition, const struct ocs_shape *shape,
		    const struct ocs_answer *answer, struct ocs_error *err)
{
	const char *features = job->features && *job->features ? job->features : NULL;
	struct allowed allowed = { .nparts = 0 };
	int rc;

	if (features && !ocs_constraint_alternatives(features))
		return refuse_counts("-C", features, err);
	if (word_ignored("ignore_constraint_validation"))
		features = NULL;

	partitions_find(&allowed, partition);
	reservations_find(&allowed, job->reservation);
	if (job->exc_nodes && *job->exc_nodes)
		allowed.excluded = hostlist_create(job->exc_nodes);
	rc = check_features(job, partition, "-C", features, &allowed, shape, answer, err);
	if (!rc)
		rc = check_preferred(job, partition, &allowed, shape, answer, err);
	if (!rc)
		rc = check_tasks(job, shape, answer, err);
	if (allowed.excluded)
		hostlist_destroy(allowed.excluded);
	return rc;
}

bool ocs_nodes_updates(const job_desc_msg_t *job)
{
	return job->req_nodes || job->exc_nodes || job->features || job->prefer ||
	       job->reservation || job->partition || job->num_tasks != NO_VAL ||
	       job->min_cpus != NO_VAL || (job->cpus_per_task && job->cpus_per_task != NO_VAL16);
}

/* scontrol's NumCPUs, of which sbatch knows nothing. */
static int check_cpus(const job_desc_msg_t *job, const struct ocs_shape *shape,
		      const struct ocs_answer *answer, struct ocs_error *err)
{
	node_record_t *node =
		answer->some_node ? find_node_record((char *)answer->some_node) : NULL;
	char text[OCS_SHAPE_TEXT];

	if (!node || !node->config_ptr || job->min_cpus == NO_VAL ||
	    job->min_cpus <= (uint64_t)answer->nodes * node->config_ptr->cpus)
		return 0;
	return ocs_error_set(
		err, OCS_USAGE,
		"NumCPUs=%u: --shape=%s takes %d node%s of %u CPUs, and all of them; leave it as it is",
		job->min_cpus, ocs_shape_format(shape, text), answer->nodes,
		answer->nodes == 1 ? "" : "s", node->config_ptr->cpus);
}

int ocs_nodes_check_update(const job_desc_msg_t *job, const job_record_t *record,
			   const struct ocs_shape *shape, const struct ocs_answer *answer,
			   struct ocs_error *err)
{
	const job_details_t *details = record->details;
	job_desc_msg_t after = {
		.req_nodes = job->req_nodes ? job->req_nodes : details->req_nodes,
		.exc_nodes = job->exc_nodes ? job->exc_nodes : details->exc_nodes,
		.features = job->features ? job->features : details->features,
		.prefer = job->prefer ? job->prefer : details->prefer,
		.reservation = job->reservation ? job->reservation : record->resv_name,
		.num_tasks = job->num_tasks != NO_VAL ? job->num_tasks : details->num_tasks,
		.cpus_per_task = job->cpus_per_task && job->cpus_per_task != NO_VAL16 ?
					 job->cpus_per_task :
					 details->cpus_per_task,
		.overcommit = details->overcommit,
	};

	if (check_cpus(job, shape, answer, err) < 0)
		return -1;
	return ocs_nodes_check(&after, job->partition ? job->partition : record->partition, shape,
			       answer, err);
}
