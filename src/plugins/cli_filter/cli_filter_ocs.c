/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* cli_filter/ocs: starts the tasks of a step in the order of the job's coordinates, gives
 * a direct srun --shape one task per XPU, and keeps jobs submitted from inside a
 * shaped one from inheriting anything. */

#include "src/plugins/compat/compat.h"

#include <stdlib.h>
#include <string.h>

#include "src/common/slurm_opt.h"

#include "src/layout/task_map.h"
#include "src/plugins/cli_filter/model.h"
#include "src/plugins/cli_filter/ring.h"
#include "src/scheduler/submit_options.h"
#include "src/util/error.h"
#include "src/util/text.h"

#define UNSET ((int)NO_VAL) /* of options that are plain numbers */

/* srun's; other commands do not have it */
#pragma weak local_het_step
extern bool local_het_step;

#pragma GCC visibility push(default)
extern const char plugin_name[], plugin_type[];
extern const uint32_t plugin_version;
extern int init(void);
extern OCS_FINI_TYPE fini(void);
extern int cli_filter_p_setup_defaults(slurm_opt_t *opt, bool early);
extern int cli_filter_p_pre_submit(slurm_opt_t *opt, int offset);
extern void cli_filter_p_post_submit(int offset, uint32_t jobid, uint32_t stepid);
const char plugin_name[] = "Task order on optical circuit switches";
const char plugin_type[] = "cli_filter/ocs";
const uint32_t plugin_version = SLURM_VERSION_NUMBER;
#pragma GCC visibility pop

int init(void)
{
	return SLURM_SUCCESS;
}

OCS_FINI_TYPE fini(void)
{
	OCS_FINI_RETURN;
}

int cli_filter_p_setup_defaults(slurm_opt_t *opt, bool early)
{
	if (!opt->srun_opt && getenv("SLURM_JOB_ID"))
		ocs_inherited_drop(true);
	return SLURM_SUCCESS;
}

void cli_filter_p_post_submit(int offset, uint32_t jobid, uint32_t stepid)
{
}

static bool tasks_given(slurm_opt_t *opt)
{
	return opt->ntasks_set || opt->ntasks_per_node != UNSET || opt->ntasks_per_tres != UNSET ||
	       opt->ntasks_per_gpu != UNSET;
}

/* srun --shape that makes its own allocation: one task per XPU, as for sbatch.  With
 * -c, Slurm starts as many as the CPUs allow. */
static void new_allocation(slurm_opt_t *opt, const char *asked)
{
	struct ocs_shape shape;

	if (tasks_given(opt) || opt->cpus_set || ocs_shape_parse(asked, NULL, &shape, NULL) < 0)
		return;
	opt->ntasks = (int)shape.xpus;
	opt->ntasks_set = true;
}

/* srun --jobid=N --shape=...: spank_ocs compares only inside the job. */
static int other_job(uint32_t job, const char *asked)
{
	char want[OCS_SHAPE_TEXT], *have;
	struct ocs_error err = { 0 };
	struct ocs_shape shape;
	int rc = SLURM_SUCCESS;

	if (ocs_shape_parse(asked, NULL, &shape, &err) < 0) {
		error("%s", err.text);
		return SLURM_ERROR;
	}
	have = ocs_ring_shape(job, &err);
	if (!have) {
		error("--shape: %s", err.text);
		return SLURM_ERROR;
	}
	if (strcmp(have, ocs_shape_format(&shape, want))) {
		error("--shape=%s: job %u has %s%s, and a step cannot have another; leave --shape out",
		      want, job, *have ? "the shape " : "no shape", have);
		rc = SLURM_ERROR;
	}
	free(have);
	return rc;
}

/* Where the user chose nodes or an order, ours does not interfere. */
static bool free_to_order(slurm_opt_t *opt, const struct ocs_ranks *ranks)
{
	if (opt->distribution != SLURM_DIST_UNKNOWN || opt->nodelist || opt->exclude ||
	    opt->srun_opt->relative != UNSET || opt->srun_opt->no_alloc)
		return false;
	if (!ranks || !slurm_option_set_by_cli(opt, 'N'))
		return true;
	return opt->min_nodes == ranks->nnodes &&
	       (!opt->max_nodes || opt->max_nodes == ranks->nnodes);
}

/* Whether srun knows VARIABLE only from the first part of a heterogeneous job: sbatch tells
 * the others apart by what was typed, and what follows from a shape was not typed. */
static bool of_another_part(const char *variable, int offset)
{
	char name[64];

	if (offset <= 0)
		return false;
	snprintf(name, sizeof(name), "%s_HET_GROUP_%d", variable, offset);
	return !getenv(name);
}

/* The number of tasks the step will have: what the command line says, then what the job
 * says (TASKS, if slurmctld was asked), then one per XPU. */
static int count_tasks(slurm_opt_t *opt, const struct ocs_ranks *ranks, int offset, int tasks)
{
	if (slurm_option_set_by_cli(opt, 'n'))
		return opt->ntasks;
	if (slurm_option_set_by_cli(opt, LONG_OPT_NTASKSPERNODE))
		return opt->ntasks_per_node * ranks->nnodes;
	if (opt->ntasks_set && !of_another_part("SLURM_NTASKS", offset))
		return opt->ntasks;
	if (opt->ntasks_per_node != UNSET && !of_another_part("SLURM_NTASKS_PER_NODE", offset))
		return opt->ntasks_per_node * ranks->nnodes;
	return tasks ? tasks : ranks->nxpus;
}

/* The job that component OFFSET of the step runs in, and its directory if this is one
 * of its nodes.  NO_VAL if there is nothing to ask about. */
static uint32_t step_job(slurm_opt_t *opt, int offset, const char **dir)
{
	const char *here = getenv("SLURM_JOB_ID"), *size = getenv("SLURM_HET_SIZE");
	uint32_t job = opt->srun_opt->jobid;
	char name[64];

	*dir = NULL;
	if (offset > 0 && size && atoi(size) > 1) {
		const char *part;

		snprintf(name, sizeof(name), "SLURM_JOB_ID_HET_GROUP_%d", offset);
		part = getenv(name);
		return part ? strtoul(part, NULL, 10) : NO_VAL;
	}
	/* Seen from outside: which job that part is cannot be known here. */
	if (offset > 0)
		return NO_VAL;
	if (!here || strtoul(here, NULL, 10) != job)
		return job;
	*dir = getenv(OCS_ENV_DIR);
	/* On a node of the job, a shape would have left its mark. */
	if (!*dir && getenv("SLURMD_NODENAME"))
		return NO_VAL;
	return job;
}

/* What the job asked of GPUs as a whole or per task comes to its steps in the environment.
 * A shape's job has all GPUs of its nodes and so have its steps, unless the user types
 * otherwise: which device a task uses follows from its coordinate. */
static void inherit_all_gpus(slurm_opt_t *opt)
{
	if (slurm_option_set_by_env(opt, 'G'))
		slurm_option_reset(opt, "gpus");
	if (slurm_option_set_by_env(opt, LONG_OPT_GPUS_PER_TASK))
		slurm_option_reset(opt, "gpus-per-task");
	if (slurm_option_set_by_env(opt, LONG_OPT_TRES_PER_TASK) &&
	    xstrcasestr(opt->tres_per_task, "gpu"))
		slurm_option_reset(opt, "tres-per-task");
	/* what --gpus-per-task of the job implied */
	if (slurm_option_set_by_env(opt, LONG_OPT_TRES_BIND) &&
	    xstrcasestr(opt->tres_bind, "gpu:per_task"))
		slurm_option_reset(opt, "tres-bind");
}

/* With one of TASKS for each XPU of the step's nodes: Slurm would give each the GPU of its local
 * number, and cgroups lock it in there; which one it has follows from its coordinate. */
static void bind_no_gpu(slurm_opt_t *opt, const struct ocs_ranks *ranks, int tasks)
{
	long nodes = slurm_option_set_by_cli(opt, 'N') ? opt->min_nodes : ranks->nnodes;
	bool each = !xstrcmp(opt->gpus_per_task, "1");

	if (opt->tres_bind || (long)tasks * ranks->nnodes != nodes * ranks->nxpus)
		return;
	/* all of its nodes', also where the shape has a node in part */
	if (each)
		slurm_option_reset(opt, "gpus-per-task");
	else if (opt->ntasks_per_gpu == 1)
		opt->tres_bind = xstrdup("gres/gpu:none");
}

static void order_step(slurm_opt_t *opt, int offset)
{
	struct ocs_error err = { 0 };
	struct ocs_ranks *ranks;
	char *path, *hosts;
	const char *dir;
	uint32_t job;
	int tasks;

	/* The parts of a step within one job have nodes of their own. */
	if (&local_het_step && local_het_step)
		return;
	/* on its nodes a job with cubes says so, and is asked at no cost */
	if (opt->srun_opt->interactive ||
	    (offset <= 0 && !free_to_order(opt, NULL) && !getenv(OCS_ENV_PREFIX "CUBES")))
		return;
	job = step_job(opt, offset, &dir);
	if (job == NO_VAL)
		return;
	path = get_extra_conf_path((char *)"ocs.yaml");
	ranks = ocs_ring_ranks(job, dir, path, &tasks, &err);
	xfree(path);
	if (!ranks) {
		if (err.code)
			verbose("cli_filter/ocs: tasks stay in Slurm's order: %s", err.text);
		return;
	}
	if (ranks->nxpus > ranks->nnodes)
		inherit_all_gpus(opt);
	tasks = count_tasks(opt, ranks, offset, tasks);
	if (ranks->nxpus > ranks->nnodes)
		bind_no_gpu(opt, ranks, tasks);
	if (offset > 0 && opt->ntasks_set)
		opt->ntasks = tasks;
	if (free_to_order(opt, ranks) && (hosts = ocs_ring_hosts(ranks, tasks, &err))) {
		opt->ntasks = tasks;
		opt->ntasks_set = true;
		opt->distribution = SLURM_DIST_ARBITRARY;
		opt->nodes_set = false;
		opt->nodelist = xstrdup(hosts);
		free(hosts);
	} else {
		debug("cli_filter/ocs: tasks stay in Slurm's order: %s", err.text);
	}
	ocs_ranks_destroy(ranks);
}

/* The one partition of the job.  The caller frees it.  NULL with ERR. */
static char *partition_of(const slurm_opt_t *opt, struct ocs_error *err)
{
	partition_info_msg_t *reply = NULL;
	char *name = NULL;

	if (opt->partition && !strchr(opt->partition, ','))
		return ocs_strdup(opt->partition);
	if (opt->partition) {
		ocs_error_set(err, OCS_USAGE, "give one partition, not %.80s", opt->partition);
		return NULL;
	}
	if (slurm_load_partitions(0, &reply, SHOW_ALL)) {
		ocs_error_set(err, OCS_ERROR, "cannot ask for the default partition: %s",
			      slurm_strerror(errno));
		return NULL;
	}
	for (uint32_t i = 0; i < reply->record_count && !name; i++)
		if (reply->partition_array[i].flags & PART_FLAG_DEFAULT)
			name = ocs_strdup(reply->partition_array[i].name);
	slurm_free_partition_info_msg(reply);
	if (!name)
		ocs_error_set(err, OCS_USAGE, "there is no default partition; give -p");
	return name;
}

/* Whether --ocs-model makes sense with the other options.  0, or -1 with ERR. */
static int model_check(const slurm_opt_t *opt, bool shaped, struct ocs_error *err)
{
	if (opt->scron_opt)
		return ocs_error_set(
			err, OCS_USAGE,
			"scrontab does not hand it on to its jobs; run 'ocsctl optimise' and write #SCRON --extra=shape=...");
	if (opt->srun_opt && opt->srun_opt->jobid != NO_VAL)
		return ocs_error_set(
			err, OCS_USAGE,
			"a step has the circuits of its job; give it to sbatch or salloc");
	if (shaped)
		return ocs_error_set(err, OCS_USAGE,
				     "the shape follows from the model; leave --shape out");
	if (!opt->nodes_set || opt->min_nodes < 1 ||
	    (opt->max_nodes && opt->max_nodes != opt->min_nodes))
		return ocs_error_set(
			err, OCS_USAGE,
			"give the number of nodes to spread the model over, one number: -N 16");
	return 0;
}

/* --ocs-model=MODEL: its shape or demand for spank_ocs, which comes after this. */
static int model_answer(slurm_opt_t *opt, const char *model, bool shaped, struct ocs_error *err)
{
	struct ocs_model_answer answer;
	char *partition, *path;
	int rc;

	if (model_check(opt, shaped, err))
		return -1;
	partition = partition_of(opt, err);
	if (!partition)
		return -1;
	path = get_extra_conf_path((char *)"ocs.yaml");
	rc = ocs_model_ask(path, partition, model, opt->min_nodes, &answer, err);
	xfree(path);
	free(partition);
	if (rc)
		return -1;
	info("--ocs-model: %s", answer.told);
	setenv(answer.shape ? OCS_ENV_MODEL_SHAPE : OCS_ENV_MODEL_DEMAND,
	       answer.shape ? answer.shape : answer.demand, 1);
	if (answer.shape)
		setenv(OCS_ENV_ASKED, answer.shape, 1);
	setenv(OCS_ENV_STRATEGY, answer.strategy, 1);
	setenv(OCS_ENV_STRATEGY_KEPT, answer.strategy, 1);
	ocs_model_answer_free(&answer);
	return 0;
}

int cli_filter_p_pre_submit(slurm_opt_t *opt, int offset)
{
	const char *asked = getenv(OCS_ENV_ASKED), *model = getenv(OCS_ENV_MODEL);
	struct ocs_error err = { 0 };

	if (model && model_answer(opt, model, asked, &err)) {
		error("--ocs-model: %s", err.text);
		return SLURM_ERROR;
	}
	asked = getenv(OCS_ENV_ASKED);

	if (opt->scron_opt && asked) {
		error("scrontab does not hand --shape on to its jobs; write #SCRON --extra=shape=%s",
		      asked);
		unsetenv(OCS_ENV_ASKED); /* it may be edited and tried again */
		return SLURM_ERROR;
	}
	if (!opt->srun_opt)
		return SLURM_SUCCESS;
	if (opt->srun_opt->jobid == NO_VAL) {
		if (asked)
			new_allocation(opt, asked);
		return SLURM_SUCCESS;
	}
	if (asked && !getenv("SLURM_JOB_ID") &&
	    other_job(opt->srun_opt->jobid, asked) != SLURM_SUCCESS)
		return SLURM_ERROR;
	if (getenv(OCS_ENV_PREFIX "CUBES"))
		inherit_all_gpus(opt);
	order_step(opt, offset);
	return SLURM_SUCCESS;
}
