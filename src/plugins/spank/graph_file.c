/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* NCCL_GRAPH_FILE is for tasks that use all GPUs of their node, of an NCCL that follows it: others
 * end at their start with it, or send elsewhere. */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/nccl/installed.h"
#include "src/plugins/spank/nodeside.h"
#include "src/util/release.h"
#include "src/util/text.h"

#define VALUE 4096
#define WARNINGS_MAX (1 << 20)
#define VARIABLE "NCCL_GRAPH_FILE"

static bool variable_get(spank_t spank, const char *name, char value[VALUE])
{
	return spank_getenv(spank, name, value, VALUE) == ESPANK_SUCCESS;
}

static int entries_count(const char *list)
{
	int count = *list != '\0';

	for (; *list; list++)
		count += *list == ',';
	return count;
}

/* GPUs in the first of NAMES that is set, or OTHERWISE. */
static int gpus_count(spank_t spank, const char *const *names, int otherwise)
{
	char value[VALUE];

	for (; *names; names++)
		if (variable_get(spank, *names, value))
			return entries_count(value);
	return otherwise;
}

static char *variable_copy(void *spank, const char *name)
{
	char value[VALUE];

	return variable_get(spank, name, value) ? ocs_strdup(value) : NULL;
}

/* The release of NCCL, as the environment tells it, or 0.  *PATH (caller frees): the library that does,
 * or NULL. */
static int release_find(spank_t spank, char **path)
{
	const struct ocs_nccl_places places = { .root = "",
						.variable = variable_copy,
						.arg = spank };
	char value[VALUE];
	int release = 0;

	*path = NULL;
	/* the images of NVIDIA set it */
	if (variable_get(spank, "NCCL_VERSION", value))
		release = ocs_release_parse(value, 1);
	return release ? release : ocs_nccl_installed(&places, path);
}

/* Why LOCAL tasks on a node cannot use the file, or NULL.  The caller frees it. */
static char *devices_misfit(spank_t spank, int gpus, int local)
{
	static const char *const of_step[] = { "SLURM_STEP_GPUS", "SLURM_JOB_GPUS", NULL };
	static const char *const of_task[] = { "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",
					       NULL };
	int step = gpus_count(spank, of_step, gpus);
	int task = gpus_count(spank, of_task, step);

	if (step != gpus)
		return ocs_asprintf("the step has %d of the %d GPUs of this node", step, gpus);
	if (local == 1 && task != gpus)
		return ocs_asprintf("the task sees %d of the %d GPUs of this node", task, gpus);
	if (local != 1 && local != gpus && task * local != gpus)
		return ocs_asprintf("%d tasks share the %d GPUs of this node", local, gpus);
	return NULL;
}

static char *release_misfit(spank_t spank)
{
	char since[VALUE], *path, *why = NULL;
	int release;

	if (!variable_get(spank, "SLURM_OCS_GRAPH_NCCL", since))
		return NULL;
	release = release_find(spank, &path);
	if (release < ocs_release_parse(since, 0))
		why = ocs_asprintf(
			"it takes NCCL %s, and %s%s; NCCL_VERSION says what the program loads",
			since, path ? path : "no library is found",
			!path	? "" :
			release ? " is older" :
				  " does not say what it is");
	free(path);
	return why;
}

/* Is NCCL_GRAPH_FILE the one that this plugin has set? */
static bool graph_ours(spank_t spank, const char *value)
{
	char dir[VALUE];
	size_t length;

	if (!variable_get(spank, "SLURM_OCS_DIR", dir))
		return false;
	length = strlen(dir);
	return strncmp(value, dir, length) == 0 && strcmp(value + length, "/graph.xml") == 0;
}

/* Adds to the job's warnings that the file is not set because of WHY.  False: they say so already.  The
 * task is the user's, and so is the file. */
static bool warning_add(spank_t spank, const char *why)
{
	char dir[VALUE], *path, *text, *line;
	bool said;
	int file;

	if (!variable_get(spank, "SLURM_OCS_DIR", dir))
		return true;
	path = ocs_asprintf("%s/warnings", dir);
	line = ocs_asprintf(VARIABLE " is not set in a step: %s\n", why);
	text = ocs_file_read(path, WARNINGS_MAX, NULL, NULL);
	said = text && strstr(text, line);
	file = said ? -1 : open(path, O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC);
	if (file >= 0) {
		/* the job's output has it in any case */
		if (write(file, line, strlen(line)) < 0)
			slurm_debug("spank_ocs: cannot write %s", path);
		close(file);
	}
	free(text);
	free(line);
	free(path);
	return !said;
}

void ocs_task_graph_file(spank_t spank, int local, int ntasks)
{
	char value[VALUE], *why;
	int gpus;

	if (!variable_get(spank, VARIABLE, value))
		return;
	/* a user's "none", or nothing, which NCCL would try to open */
	if (!*value || strcmp(value, "none") == 0) {
		spank_unsetenv(spank, VARIABLE);
		return;
	}
	if (!graph_ours(spank, value) || !variable_get(spank, "SLURM_OCS_GRAPH_GPUS", value))
		return;
	gpus = atoi(value);
	why = devices_misfit(spank, gpus, ntasks);
	if (!why)
		why = release_misfit(spank);
	if (!why)
		return;
	spank_unsetenv(spank, VARIABLE);
	if (local == 0 && warning_add(spank, why) && variable_get(spank, "SLURM_NODEID", value) &&
	    atoi(value) == 0)
		fprintf(stderr,
			"spank_ocs: %s is not set: %s; see warnings in $SLURM_OCS_DIR and "
			"ocs-node(8)\n",
			VARIABLE, why);
	free(why);
}
