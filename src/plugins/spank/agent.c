/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Starts the agent of this node in a step of a job whose circuits follow its phases, and has the step's
 * tasks load the shims of communication libraries (doc/rails.md). */

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/layout/task_map.h"
#include "src/plugins/compat/slurm_api.h"
#include "src/plugins/spank/job_nodes.h"
#include "src/plugins/spank/job_program.h"
#include "src/plugins/spank/nodeside.h"
#include "src/plugins/spank/settings.h"
#include "src/rails/mailbox.h"
#include "src/util/error.h"
#include "src/util/secret.h"
#include "src/util/text.h"

static int number_compare(const void *a, const void *b)
{
	uint32_t p = *(const uint32_t *)a, q = *(const uint32_t *)b;

	return (p > q) - (p < q);
}

/* The step's tasks on this node, "0,2,4"; NULL where Slurm does not say. */
static char *ranks_text(spank_t spank, uint32_t count)
{
	uint32_t *ranks = ocs_calloc(count, sizeof(*ranks));
	struct ocs_text text = { 0 };

	for (uint32_t i = 0; i < count; i++) {
		if (spank_get_item(spank, S_JOB_LOCAL_TO_GLOBAL_ID, i, &ranks[i]) == ESPANK_SUCCESS)
			continue;
		free(ranks);
		return NULL;
	}
	qsort(ranks, count, sizeof(*ranks), number_compare);
	for (uint32_t i = 0; i < count; i++)
		ocs_text_add(&text, "%s%u", i ? "," : "", ranks[i]);
	free(ranks);
	return ocs_text_take(&text);
}

/* As KEY, a descriptor, allows.  0, or -1. */
static int agent_run(spank_t spank, const struct ocs_settings *settings, const char *dir,
		     const struct ocs_ranks *ranks, const char *node, uint32_t step, int key)
{
	char job_text[16], epoch[24], step_text[16], node_text[16], total_text[16], tag[17];
	char *list, *host, *socket;
	const char *argv[24];
	uint32_t job, total, local;
	int number = ocs_job_node_number(ranks, node), rc;

	if (number < 0 || spank_get_item(spank, S_JOB_ID, &job) != ESPANK_SUCCESS ||
	    spank_get_item(spank, S_JOB_TOTAL_TASK_COUNT, &total) != ESPANK_SUCCESS ||
	    spank_get_item(spank, S_JOB_LOCAL_TASK_COUNT, &local) != ESPANK_SUCCESS ||
	    ocs_random_hex(tag, 8, NULL))
		return -1;
	list = ranks_text(spank, local);
	if (!list)
		return -1;
	snprintf(job_text, sizeof(job_text), "%u", job);
	snprintf(epoch, sizeof(epoch), "%" PRIu64, ocs_job_epoch(dir));
	snprintf(step_text, sizeof(step_text), "%u", step);
	snprintf(node_text, sizeof(node_text), "%d", number);
	snprintf(total_text, sizeof(total_text), "%u", total);
	host = number ? ocs_node_address(ranks->nodes[0]) : ocs_strdup("127.0.0.1");
	socket = ocs_asprintf("@ocs-rails-%u.%u-%d-%s", job, step, number, tag);
	rc = 0;
#define ADD(name, value) argv[rc++] = name, argv[rc++] = value
	argv[rc++] = settings->agent;
	ADD("--job", job_text);
	ADD("--epoch", epoch);
	ADD("--step", step_text);
	ADD("--node", node_text);
	ADD("--ranks", list);
	ADD("--total", total_text);
	ADD("--host", host);
	ADD("--socket", socket);
	if (settings->ports)
		ADD("--ports", settings->ports);
#undef ADD
	argv[rc++] = "--syslog";
	argv[rc] = NULL;
	rc = ocs_job_program_start(spank, argv, key);
	if (rc == 0)
		spank_setenv(spank, OCS_RAILS_AGENT, socket, 1);
	free(socket);
	free(host);
	free(list);
	return rc;
}

void ocs_agent_start(spank_t spank, const struct ocs_settings *settings, const char *dir,
		     const struct ocs_ranks *ranks)
{
	const char *node = getenv("SLURMD_NODENAME");
	char *path;
	uint32_t step;
	int key;

	spank_unsetenv(spank, OCS_RAILS_AGENT);
	if (!settings->agent || !ranks || !node || !ocs_step_of_tasks(spank, &step))
		return;
	path = ocs_asprintf("%s/agent.key", dir);
	key = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	free(path);
	if (key < 0)
		return;
	if (agent_run(spank, settings, dir, ranks, node, step, key) == 0)
		ocs_preload_set(spank, settings, OCS_SHIMS_RAILS);
	else
		slurm_error("spank_ocs: no agent of the job's rails here; its tasks have no gates");
	close(key);
}
