/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Starts the relay to the controller of a job with experts: on each node of a step but the job's first one, as the
 * user.  One of a step that is not the only one waits until the other's ends (src/moe/controller/relay.c). */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "src/layout/task_map.h"
#include "src/plugins/compat/slurm_api.h"
#include "src/plugins/spank/job_nodes.h"
#include "src/plugins/spank/job_program.h"
#include "src/plugins/spank/nodeside.h"
#include "src/plugins/spank/settings.h"
#include "src/scheduler/submit_options.h"
#include "src/util/text.h"

static void relay_run(spank_t spank, const struct ocs_settings *settings, const char *dir,
		      const char *key, const struct ocs_ranks *ranks, int number, int fd)
{
	char *region = ocs_asprintf("%s/region.json", dir);
	char *host = ocs_node_address(ranks->nodes[0]), text[16], sockets[128] = "";
	const char *argv[16] = { settings->moe_controller,
				 "--region",
				 region,
				 "--key",
				 key,
				 "--relay",
				 host,
				 "--node",
				 text,
				 "--sockets",
				 sockets };
	int n = 11;

	snprintf(text, sizeof(text), "%d", number);
	if (settings->ports)
		argv[n++] = "--ports", argv[n++] = settings->ports;
	if (spank_getenv(spank, OCS_ENV_MOE_SOCKETS, sockets, sizeof(sockets)) == ESPANK_SUCCESS)
		ocs_job_program_start(spank, argv, fd);
	free(host);
	free(region);
}

void ocs_relay_start(spank_t spank, const struct ocs_settings *settings, const char *dir,
		     const struct ocs_ranks *ranks)
{
	const char *node = getenv("SLURMD_NODENAME");
	int number = ranks && node ? ocs_job_node_number(ranks, node) : -1, fd;
	char *key;
	uint32_t step;

	if (!settings->moe_controller || number < 1 ||
	    spank_get_item(spank, S_JOB_STEPID, &step) != ESPANK_SUCCESS ||
	    step == SLURM_EXTERN_CONT)
		return;
	key = ocs_asprintf("%s/relay.key", dir);
	fd = open(key, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0) {
		relay_run(spank, settings, dir, key, ranks, number, fd);
		close(fd);
	}
	free(key);
}
