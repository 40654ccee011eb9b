/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The environment of a job's batch script, steps and tasks. */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/layout/task_map.h"
#include "src/plugins/spank/nodeside.h"
#include "src/scheduler/submit_options.h"
#include "src/plugins/spank/settings.h"
#include "src/plugins/compat/slurm_api.h"
#include "src/util/error.h"
#include "src/util/text.h"

#define FILE_LIMIT (64 << 20)

/* Read once in slurmstepd, inherited by the tasks that it forks. */
static struct ocs_ranks *job_ranks;

static bool entry_starts(const char *entry, const char *prefix)
{
	return !strncmp(entry, prefix, strlen(prefix));
}

/* Variables that reach a job only because it was submitted from inside another, or
 * because sbatch leaves them behind. */
static bool entry_stale(const char *entry)
{
	return entry_starts(entry, OCS_ENV_PREFIX) || entry_starts(entry, OCS_ENV_SHAPE "=") ||
	       entry_starts(entry, OCS_ENV_CONN "=") || entry_starts(entry, OCS_ENV_PHASES "=") ||
	       entry_starts(entry, OCS_ENV_MOE "=") || entry_starts(entry, OCS_OPTION_PREFIX) ||
	       entry_starts(entry, OCS_OPTION_INHERITED) ||
	       entry_starts(entry, "SPANK_" OCS_OPTION_PREFIX);
}

static const char *job_env_get(char **env, const char *name)
{
	size_t length = strlen(name);

	for (; env && *env; env++)
		if (!strncmp(*env, name, length) && (*env)[length] == '=')
			return *env + length + 1;
	return NULL;
}

static void drop_stale(spank_t spank)
{
	char **env = NULL, *name, *value, *list = NULL;
	const char *rest;

	if (spank_get_item(spank, S_JOB_ENV, &env) != ESPANK_SUCCESS)
		return;
	rest = job_env_get(env, OCS_ENV_EXPORTED);
	if (rest)
		list = ocs_strdup(rest);
	rest = list;
	while (list && ocs_exported_next(&rest, &name, &value)) {
		const char *now = job_env_get(env, name);

		if (now && !strcmp(now, value)) {
			spank_unsetenv(spank, name);
			spank_get_item(spank, S_JOB_ENV, &env);
		}
		free(name);
		free(value);
	}
	free(list);
	for (size_t i = 0;
	     spank_get_item(spank, S_JOB_ENV, &env) == ESPANK_SUCCESS && env && env[i];) {
		const char *entry = env[i];

		/* Who submits without sbatch can send entries that are no variables: nothing takes
		 * those away, and no program reads them. */
		if (!entry_stale(entry) || !strchr(entry, '=')) {
			i++;
			continue;
		}
		name = ocs_asprintf("%.*s", (int)strcspn(entry, "="), entry);
		if (spank_unsetenv(spank, name) != ESPANK_SUCCESS)
			i++;
		free(name);
	}
}

/* Steps of a job that was submitted with --export=NONE get no more than SLURM_* from its script. */
static void strategy_keep(spank_t spank, const char *strategy)
{
	spank_setenv(spank, OCS_ENV_STRATEGY_KEPT, strategy, 1);
	spank_setenv(spank, OCS_ENV_STRATEGY, strategy, 0);
}

/* TEXT: lines NAME=VALUE.  What the user set wins, except SLURM_OCS_*, which
 * describes what is. */
static void export_lines(spank_t spank, char *text)
{
	char *exported = NULL, *save = NULL;

	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *value = strchr(line, '=');

		if (!value || value == line)
			continue;
		*value++ = '\0';
		if (entry_starts(line, OCS_ENV_PREFIX))
			spank_setenv(spank, line, value, 1);
		else if (spank_setenv(spank, line, value, 0) == ESPANK_SUCCESS)
			exported = ocs_exported_add(exported, line, value);
	}
	if (exported)
		spank_setenv(spank, OCS_ENV_EXPORTED, exported, 1);
	free(exported);
}

static struct ocs_ranks *load_ranks(const char *dir)
{
	char *path = ocs_asprintf("%s/ranks", dir);
	struct ocs_error err = { 0 };
	struct ocs_ranks *ranks = NULL;
	char *text = NULL;

	/* No such file: a rail job without a shape. */
	if (!access(path, F_OK))
		text = ocs_file_read(path, FILE_LIMIT, NULL, &err);
	if (text)
		ranks = ocs_ranks_parse(text, &err);
	if (!ranks && err.code)
		slurm_error("spank_ocs: %s: %s", path, err.text);
	free(text);
	free(path);
	return ranks;
}

int ocs_user_init(spank_t spank, const struct ocs_settings *settings)
{
	const char *node = getenv("SLURMD_NODENAME");
	struct ocs_error err = { 0 };
	char *dir, *path, *text, *strategy = NULL, **env = NULL;
	uint32_t job;

	if (spank_get_item(spank, S_JOB_ENV, &env) == ESPANK_SUCCESS &&
	    job_env_get(env, OCS_ENV_STRATEGY_KEPT))
		strategy = ocs_strdup(job_env_get(env, OCS_ENV_STRATEGY_KEPT));
	drop_stale(spank);
	if (strategy)
		strategy_keep(spank, strategy);
	free(strategy);
	if (spank_get_item(spank, S_JOB_ID, &job) != ESPANK_SUCCESS)
		return ESPANK_SUCCESS;
	dir = ocs_settings_job_dir(settings, node, job);
	path = ocs_asprintf("%s/env", dir);
	if (!access(path, F_OK)) {
		text = ocs_file_read(path, FILE_LIMIT, NULL, &err);
		if (text) {
			export_lines(spank, text);
			spank_setenv(spank, OCS_ENV_DIR, dir, 1);
			job_ranks = load_ranks(dir);
			ocs_controller_start(spank, settings, dir);
			ocs_agent_start(spank, settings, dir, job_ranks);
			ocs_relay_start(spank, settings, dir, job_ranks);
			ocs_moe_shims_set(spank, settings);
		} else {
			slurm_error("spank_ocs: %s", err.text);
		}
		free(text);
	}
	free(path);
	free(dir);
	return ESPANK_SUCCESS;
}

/* Entry number AT of LIST, which is changed; NULL if it has fewer. */
static char *entry_of(char *list, int at)
{
	char *save = NULL, *entry = strtok_r(list, ",", &save);

	while (entry && at-- > 0)
		entry = strtok_r(NULL, ",", &save);
	return entry;
}

/* Whether the task sees the one GPU that Slurm gave to its local number. */
static bool bound_by_number(spank_t spank)
{
	char bind[256];

	return spank_getenv(spank, "SLURMD_TRES_BIND", bind, sizeof(bind)) == ESPANK_SUCCESS &&
	       strstr(bind, "gpu:per_task:1");
}

/* Slurm lists all GPUs of the step for every task, or with --gpus-per-task one of them; the
 * order of coordinates need not be that of the devices. */
static void narrow_devices(spank_t spank, int device)
{
	static const char *const lists[] = {
		"CUDA_VISIBLE_DEVICES",
		"ROCR_VISIBLE_DEVICES",
		"ZE_AFFINITY_MASK",
	};
	bool bound = bound_by_number(spank);
	char value[1024], number[16], *entry;

	if (spank_getenv(spank, "SLURM_STEP_GPUS", value, sizeof(value)) != ESPANK_SUCCESS &&
	    spank_getenv(spank, "SLURM_JOB_GPUS", value, sizeof(value)) != ESPANK_SUCCESS)
		return;
	/* A shape has all GPUs of its nodes: their numbers are the devices. */
	snprintf(number, sizeof(number), "%d", device);
	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
		if (spank_getenv(spank, lists[i], value, sizeof(value)) != ESPANK_SUCCESS)
			continue;
		entry = bound ? number : entry_of(value, device);
		if (entry)
			spank_setenv(spank, lists[i], entry, 1);
	}
	if (bound)
		spank_setenv(spank, "SLURM_STEP_GPUS", number, 1);
}

static void set_task(spank_t spank, const char *node, int local, int ntasks)
{
	struct ocs_text coords = { 0 }, devices = { 0 };
	struct ocs_error err = { 0 };
	uint32_t total = 0, global = 0;
	char number[16];
	int *share = NULL, count, rank;

	spank_get_item(spank, S_JOB_TOTAL_TASK_COUNT, &total);
	spank_get_item(spank, S_TASK_GLOBAL_ID, &global);
	count = ocs_ranks_share(job_ranks, node, local, ntasks, &share, &err);
	/* More tasks than XPUs: the rest own none. */
	if (!count)
		goto out;
	/* One task per XPU also where nodes hold different numbers of them. */
	if (count == 1 && total == (uint32_t)job_ranks->nxpus)
		rank = share[0];
	else
		rank = count < 0 ? -1 : ocs_ranks_rank(job_ranks, node, local, ntasks, &err);
	/* Steps that no order fits: Slurm's own number. */
	if (count > 0 && rank < 0)
		rank = (int)global;
	if (rank < 0) {
		slurm_error("spank_ocs: no coordinate for task %d of node %s: %s", local, node,
			    err.text);
		goto out;
	}
	for (int i = 0; i < count; i++) {
		int coord[OCS_SHAPE_DIMS];

		ocs_shape_coord(&job_ranks->shape, share[i], coord);
		for (int d = 0; d < job_ranks->shape.ndim; d++)
			ocs_text_add(&coords, "%s%d", d ? "," : i ? ";" : "", coord[d]);
		ocs_text_add(&devices, "%s%d", i ? "," : "", job_ranks->device[share[i]]);
	}
	snprintf(number, sizeof(number), "%d", rank);
	spank_setenv(spank, "SLURM_OCS_RANK", number, 1);
	spank_setenv(spank, "SLURM_OCS_COORDS", coords.data, 1);
	spank_setenv(spank, "SLURM_OCS_DEVICES", devices.data, 1);
	if (count == 1) {
		spank_setenv(spank, "SLURM_OCS_COORD", coords.data, 1);
		/* also where a node has one XPU of a shape; not where a whole node counts as one */
		if (ntasks > 1 || job_ranks->nxpus > job_ranks->nnodes)
			narrow_devices(spank, job_ranks->device[share[0]]);
	}
out:
	ocs_text_free(&coords);
	ocs_text_free(&devices);
	free(share);
}

int ocs_task_init(spank_t spank, const struct ocs_settings *settings)
{
	const char *node = getenv("SLURMD_NODENAME");
	uint32_t step, ntasks;
	char name[256];
	int local;

	(void)settings;
	if (spank_get_item(spank, S_JOB_STEPID, &step) != ESPANK_SUCCESS ||
	    step == SLURM_BATCH_SCRIPT || step == SLURM_INTERACTIVE_STEP ||
	    step == SLURM_EXTERN_CONT)
		return ESPANK_SUCCESS;
	if (spank_get_item(spank, S_TASK_ID, &local) != ESPANK_SUCCESS ||
	    spank_get_item(spank, S_JOB_LOCAL_TASK_COUNT, &ntasks) != ESPANK_SUCCESS)
		return ESPANK_SUCCESS;
	ocs_task_graph_file(spank, local, (int)ntasks);
	if (!job_ranks)
		return ESPANK_SUCCESS;
	if (!node && spank_getenv(spank, "SLURMD_NODENAME", name, sizeof(name)) == ESPANK_SUCCESS)
		node = name;
	if (node)
		set_task(spank, node, local, (int)ntasks);
	return ESPANK_SUCCESS;
}
