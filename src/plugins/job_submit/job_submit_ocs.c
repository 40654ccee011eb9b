/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* job_submit/ocs: turns the options of spank_ocs into what slurmctld schedules by:
 * words in Extra, a number of whole nodes, a number of tasks.  Refuses what can
 * never run with one line that says what would. */

#include "src/plugins/compat/compat.h"
#include "src/plugins/compat/conf.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "src/common/hostlist.h"

#include "src/plugins/job_submit/conflicts.h"
#include "src/plugins/job_submit/extra.h"
#include "src/plugins/job_submit/gpus.h"
#include "src/plugins/job_submit/nodes.h"
#include "src/plugins/job_submit/script.h"
#include "src/plugins/job_submit/site.h"
#include "src/scheduler/submit_options.h"
#include "src/util/error.h"
#include "src/util/text.h"

#define EXTRA_MAX 1024 /* Slurm refuses longer ones with an unrelated message */

#pragma GCC visibility push(default)
extern const char plugin_name[], plugin_type[];
extern const uint32_t plugin_version;
extern int init(void);
extern OCS_FINI_TYPE fini(void);
extern int job_submit(job_desc_msg_t *job_desc, uint32_t submit_uid, char **err_msg);
extern int job_modify(job_desc_msg_t *job_desc, job_record_t *job_ptr, uint32_t submit_uid,
		      char **err_msg);
const char plugin_name[] = "Shapes on optical circuit switches";
const char plugin_type[] = "job_submit/ocs";
const uint32_t plugin_version = SLURM_VERSION_NUMBER;
#pragma GCC visibility pop

/* slurmctld calls from several threads; the placers have working memory. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int init(void)
{
	if (ocs_conf_forbids()) {
		ocs_slurm_error("%s", ocs_conf_forbids());
		return SLURM_ERROR;
	}
	return SLURM_SUCCESS;
}

OCS_FINI_TYPE fini(void)
{
	pthread_mutex_lock(&lock);
	ocs_site_close();
	pthread_mutex_unlock(&lock);
	OCS_FINI_RETURN;
}

/* Shapes need both other plugins and the prologs.  0, or -1 with ERR naming what lacks. */
static int plugins_configured(struct ocs_error *err)
{
	const char *fault = ocs_conf_missing();

	return !fault ?
		       0 :
		       ocs_error_set(
			       err, OCS_ERROR,
			       "--shape cannot be served: %s; ask the administrator, or submit with -N and without --shape",
			       fault);
}

static const char *partition_of(const job_desc_msg_t *job)
{
	return job->partition ? job->partition : default_part_loc ? default_part_loc->name : "";
}

/* Tasks per node, where CPUs suffice for one per XPU. */
static bool cpus_suffice(const struct ocs_answer *answer, uint16_t cpus_per_task)
{
	node_record_t *node = find_node_record((char *)answer->some_node);
	uint32_t each = cpus_per_task && cpus_per_task != NO_VAL16 ? cpus_per_task : 1;

	return !node || !node->config_ptr ||
	       (uint64_t)answer->node_xpus * each <= node->config_ptr->cpus;
}

/* Whether N is in LIST, as Slurm writes -N 2,4-8. */
static bool count_listed(const char *list, uint32_t n)
{
	for (const char *at = list; at && *at; at += *at == ',') {
		char *end;
		unsigned long low = strtoul(at, &end, 10), high = low;

		if (*end == '-')
			high = strtoul(end + 1, &end, 10);
		if (n >= low && n <= high)
			return true;
		at = strchr(end, ',');
		if (!at)
			break;
	}
	return false;
}

/* Sets the node count; refuses one of the user's that differs. */
static int set_nodes(job_desc_msg_t *job, const struct ocs_shape *shape, int nodes,
		     struct ocs_error *err)
{
	uint32_t n = (uint32_t)nodes, min = job->min_nodes, max = job->max_nodes;
	char text[OCS_SHAPE_TEXT], words[OCS_SHAPE_TEXT];
	/* A list of nodes comes with its length as the least count. */
	bool listed = job->req_nodes && *job->req_nodes && job->max_nodes == NO_VAL;
	const char *counts = job->job_size_str && *job->job_size_str ? job->job_size_str : NULL;

	if (min == NO_VAL)
		min = 0;
	if (max == NO_VAL || !max)
		max = INFINITE;
	if (n < min || n > max || (counts && !count_listed(counts, n))) {
		if (counts)
			snprintf(words, sizeof(words), "%s", counts);
		else if (max == INFINITE || min == max)
			snprintf(words, sizeof(words), "%u", min);
		else
			snprintf(words, sizeof(words), "%u-%u", min, max);
		return ocs_error_set(err, OCS_USAGE,
				     "--shape=%s needs %u node%s, but %s asks for %s; leave %s out",
				     ocs_shape_format(shape, text), n, n == 1 ? "" : "s",
				     listed ? "-w" : "-N", words, listed ? "-w" : "-N");
	}
	if (job->req_nodes && *job->req_nodes) {
		hostlist_t *list = hostlist_create(job->req_nodes);
		int count = 0;

		if (list) {
			hostlist_uniq(list);
			count = hostlist_count(list);
			hostlist_destroy(list);
		}
		if (count > nodes)
			return ocs_error_set(
				err, OCS_USAGE,
				"--shape=%s needs %u node%s, but -w names %d; name at most %u",
				ocs_shape_format(shape, text), n, n == 1 ? "" : "s", count, n);
	}
	job->min_nodes = job->max_nodes = n;
	xfree(job->job_size_str);
	return 0;
}

/* Nodes belong to one job, whose circuits would be useless without all of them.  Not for
 * updates: Slurm lets only operators change how a job shares its nodes, and denies the rest of
 * the update after it has done half; the select plugin sees to both when the job is placed. */
static void whole_nodes(job_desc_msg_t *job)
{
	job->shared = JOB_SHARED_NONE;
	job->kill_on_node_fail = 1;
}

static void set_tasks(job_desc_msg_t *job, const struct ocs_shape *shape,
		      const struct ocs_answer *answer)
{
	bool per_node = job->ntasks_per_node != NO_VAL16 && job->ntasks_per_node;

	/* srun --ntasks-per-node=1 says one task: it does not know the nodes yet. */
	if (OCS_TASK_ON_EACH_NODE && job->num_tasks < (uint32_t)answer->nodes)
		job->num_tasks = (uint32_t)answer->nodes * (per_node ? job->ntasks_per_node : 1);
	if (job->num_tasks != NO_VAL || answer->node_xpus < 1)
		return;
	if (per_node || (job->ntasks_per_tres != NO_VAL16 && job->ntasks_per_tres))
		return;
	job->num_tasks = cpus_suffice(answer, job->cpus_per_task) ? (uint32_t)shape->xpus :
								    (uint32_t)answer->nodes;
	job->min_cpus = job->num_tasks;
	if (job->cpus_per_task != NO_VAL16 && job->cpus_per_task)
		job->min_cpus *= job->cpus_per_task;
}

/* Replaces *EXTRA by the user's words and those of SHAPE. */
static int set_extra(char **extra, const struct ocs_shape *shape, struct ocs_error *err)
{
	char *text = ocs_extra_with(*extra, shape);
	int rc = 0;

	if (strlen(text) > EXTRA_MAX) {
		rc = ocs_error_set(
			err, OCS_USAGE,
			"--extra and --shape together are %zu bytes, Slurm takes %d; shorten --extra",
			strlen(text), EXTRA_MAX);
	} else {
		xfree(*extra);
		*extra = xstrdup(text);
	}
	free(text);
	return rc;
}

/* The prolog believes OCS_* in the job's SPANK environment: only slurmctld's
 * select plugin may put it there. */
static void drop_reserved(job_desc_msg_t *job)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < job->spank_job_env_size; i++) {
		if (ocs_request_reserved(job->spank_job_env[i]))
			xfree(job->spank_job_env[i]);
		else
			job->spank_job_env[kept++] = job->spank_job_env[i];
	}
	for (uint32_t i = kept; i < job->spank_job_env_size; i++)
		job->spank_job_env[i] = NULL;
	job->spank_job_env_size = kept;
}

/* Of a job on a direct fabric, where a shape has a node for each coordinate; 0: not known. */
static int servers_of(const job_desc_msg_t *job, const struct ocs_shape *shape)
{
	if (shape)
		return (int)shape->xpus;
	return job->min_nodes != NO_VAL && job->min_nodes == job->max_nodes &&
			       job->min_nodes <= INT_MAX ?
		       (int)job->min_nodes :
		       0;
}

/* Such a job has no prolog, which would ask for its circuits.  Where it is not known whether it
 * gets any, it is refused too: nothing else would keep it from running without. */
static int external_check(const char *partitions, bool shaped, struct ocs_error *err)
{
	int ports;

	if (shaped)
		return ocs_error_set(
			err, OCS_USAGE,
			"--external and --shape contradict each other: Slurm runs no prolog for an external job, so it would have no circuits; leave one of them out");
	ports = ocs_site_ports(partitions, err);
	if (ports < 0)
		return ocs_error_prefix(
			err,
			"no external job is taken while it is not known in which partitions jobs get ports of switches");
	if (ports)
		return ocs_error_set(
			err, OCS_USAGE,
			"--external cannot run in a partition whose jobs get ports of switches: Slurm runs no prolog for an external job, so it would have no circuits; choose another partition");
	return 0;
}

/* What JOB asks for by any of the ways.  1: SHAPE, 0: none, or -1 with ERR.  *DEMAND: the name of an option
 * that only direct fabrics have, or NULL. */
static int shape_read(job_desc_msg_t *job, struct ocs_shape *shape, const char **demand,
		      struct ocs_error *err)
{
	struct ocs_request request;
	bool given = false;
	int has;

	ocs_request_read(job->spank_job_env, job->spank_job_env_size, &request);
	has = ocs_request_shape(&request, shape, err);
	*demand = request.value[OCS_OPTION_DEMAND] ? ocs_option_name(OCS_OPTION_DEMAND) :
		  request.value[OCS_OPTION_RINGS]  ? ocs_option_name(OCS_OPTION_RINGS) :
						     NULL;
	for (int o = 0; o < OCS_OPTIONS; o++)
		given |= request.value[o] != NULL;
	if (has >= 0 && request.value[OCS_OPTION_MODEL])
		has = ocs_error_set(
			err, OCS_USAGE,
			"--ocs-model arrived as it was typed: sbatch, salloc and srun turn it into a shape or a demand; give one of these");
	/* Only sbatch and its like have checked it, and there are other ways to submit. */
	if (has >= 0 && request.value[OCS_OPTION_RINGS] &&
	    ocs_rings_check(request.value[OCS_OPTION_RINGS], err) < 0)
		has = -1;
	if (has >= 0 && request.value[OCS_OPTION_DEMAND] &&
	    ocs_demand_check(request.value[OCS_OPTION_DEMAND], servers_of(job, has ? shape : NULL),
			     err) < 0)
		has = -1;
	ocs_request_free(&request);
	/* Extra may also be used directly, as scontrol update does. */
	if (!has)
		has = ocs_shape_extra_parse(job->extra ? job->extra : "", shape, err);
	/* sbatch reads the lines of the script and hands them over; others, slurmrestd too, do
	 * not.  Of a het job the first component brings the script. */
	if (!has && !given && (job->het_job_offset == NO_VAL || !job->het_job_offset) &&
	    ocs_script_check(job->script, err) < 0)
		has = -1;
	return has;
}

static int job_prepare(job_desc_msg_t *job, struct ocs_error *err)
{
	struct ocs_answer answer;
	struct ocs_shape shape = { 0 };
	const char *demand;
	int has;

	drop_reserved(job);
	has = shape_read(job, &shape, &demand, err);
	if (has < 0)
		return -1;
	if ((has || demand) && plugins_configured(err) < 0)
		return -1;
	if ((job->bitflags & OCS_EXTERNAL_JOB) && external_check(partition_of(job), has, err) < 0)
		return -1;
	if (ocs_site_ask(partition_of(job), has ? &shape : NULL, &answer, err) < 0) {
		/* Unshaped jobs run whatever has become of ocs.yaml. */
		return has || demand ? -1 : 0;
	}
	if (demand && !answer.planned)
		return ocs_error_set(err, OCS_USAGE,
				     "--%s is for partitions on a direct fabric; leave it out here",
				     demand);
	has = has || answer.planned || answer.rails;
	if (ocs_conflicts_expand(job->dependency, has, err) < 0 ||
	    (has &&
	     (ocs_conflicts_partition(partition_of(job), err) < 0 ||
	      ocs_conflicts_qos(job->qos, job->account, partition_of(job), job->user_id, err) < 0)))
		return -1;
	if (!has)
		return 0;
	whole_nodes(job);
	if (!shape.xpus)
		return 0;
	if (set_nodes(job, &shape, answer.nodes, err) < 0 ||
	    ocs_nodes_check(job, partition_of(job), &shape, &answer, err) < 0 ||
	    set_extra(&job->extra, &shape, err) < 0)
		return -1;
	set_tasks(job, &shape, &answer);
	return ocs_gpus_set(job, &shape, &answer, err);
}

/* Behind what plugins before this one say, of which Slurm keeps no copy. */
static void error_tell(char **err_msg, const struct ocs_error *err)
{
	xstrfmtcat(*err_msg, "%s%s", *err_msg ? "\n" : "", err->text);
}

int job_submit(job_desc_msg_t *job_desc, uint32_t submit_uid, char **err_msg)
{
	struct ocs_error err = { 0 };
	int rc;

	pthread_mutex_lock(&lock);
	rc = job_prepare(job_desc, &err);
	pthread_mutex_unlock(&lock);
	/* Without accounting Slurm takes what it finds in errno for the fate of a new partition. */
	errno = 0;
	if (!rc)
		return SLURM_SUCCESS;
	ocs_slurm_info("uid %u refused: %s", submit_uid, err.text);
	error_tell(err_msg, &err);
	return ESLURM_REQUESTED_TOPO_CONFIG_UNAVAILABLE;
}

static bool same_words(const struct ocs_shape *a, const struct ocs_shape *b)
{
	char *left = ocs_shape_extra_format(a), *right = ocs_shape_extra_format(b);
	bool same = !strcmp(left, right);

	free(left);
	free(right);
	return same;
}

/* A pending job gets another shape, partition or node count (RESIZED), or may have other
 * nodes or tasks than before. */
static int modify_pending(job_desc_msg_t *job, job_record_t *record, bool resized, bool had,
			  const struct ocs_shape *old, const struct ocs_shape *shape,
			  struct ocs_error *err)
{
	struct ocs_answer answer;

	if (plugins_configured(err) < 0 || ocs_conflicts_partition(job->partition, err) < 0 ||
	    ocs_site_ask(job->partition ? job->partition : record->partition, shape, &answer, err) <
		    0)
		return -1;
	if (!resized)
		return ocs_nodes_check_update(job, record, shape, &answer, err);
	if (set_nodes(job, shape, answer.nodes, err) < 0)
		return -1;
	/* The count that was derived from the old shape follows the new one. */
	if (record->details && job->num_tasks == NO_VAL && had &&
	    record->details->num_tasks == (uint32_t)old->xpus)
		set_tasks(job, shape, &answer);
	return ocs_nodes_check_update(job, record, shape, &answer, err);
}

static int job_update(job_desc_msg_t *job, job_record_t *record, struct ocs_error *err)
{
	struct ocs_shape old, shape;
	bool had, sized = job->min_nodes != NO_VAL || job->max_nodes != NO_VAL ||
			  (job->req_nodes && *job->req_nodes);
	int has = 0;

	had = ocs_shape_extra_parse(record->extra ? record->extra : "", &old, NULL) > 0;
	if (job->extra) {
		has = ocs_shape_extra_parse(job->extra, &shape, err);
		if (has < 0)
			return -1;
	}
	if (ocs_conflicts_expand(job->dependency, has || had, err) < 0)
		return -1;
	if ((record->bit_flags & OCS_EXTERNAL_JOB) && IS_JOB_PENDING(record) &&
	    (has || job->partition) &&
	    external_check(job->partition ? job->partition : record->partition, has, err) < 0)
		return -1;
	if (job->qos && (has || had || ocs_conflicts_allocated(record)) &&
	    ocs_conflicts_qos(job->qos, record->account, record->partition, record->user_id, err) <
		    0)
		return -1;
	if (!IS_JOB_PENDING(record) && sized && !had && ocs_conflicts_allocated(record))
		return ocs_error_set(
			err, OCS_USAGE,
			"job %u has circuits between its nodes: none can be added or given back; cancel it and submit it anew",
			record->job_id);
	if (!has && !had)
		return 0;
	if (!has)
		shape = old;
	if (!IS_JOB_PENDING(record)) {
		if (!had || !same_words(&old, &shape))
			return ocs_error_set(
				err, OCS_USAGE,
				"job %u has its nodes: its shape cannot change; cancel it and submit it anew",
				record->job_id);
		if (sized)
			return ocs_error_set(
				err, OCS_USAGE,
				"job %u has a shape: nodes cannot be added or given back; cancel it and submit it anew",
				record->job_id);
	} else {
		bool resized =
			(has && !(had && same_words(&old, &shape))) || sized || job->partition;

		if ((resized || ocs_nodes_updates(job)) &&
		    modify_pending(job, record, resized, had, &old, &shape, err) < 0)
			return -1;
	}
	/* Text without a shape replaces the user's words only. */
	return job->extra ? set_extra(&job->extra, &shape, err) : 0;
}

int job_modify(job_desc_msg_t *job_desc, job_record_t *job_ptr, uint32_t submit_uid, char **err_msg)
{
	struct ocs_error err = { 0 };
	int rc;

	pthread_mutex_lock(&lock);
	rc = job_update(job_desc, job_ptr, &err);
	pthread_mutex_unlock(&lock);
	/* Without accounting Slurm takes what it finds in errno for the fate of a new partition. */
	errno = 0;
	if (!rc)
		return SLURM_SUCCESS;
	ocs_slurm_info("uid %u, job %u: refused: %s", submit_uid, job_ptr->job_id, err.text);
	error_tell(err_msg, &err);
	return ESLURM_REQUESTED_TOPO_CONFIG_UNAVAILABLE;
}
