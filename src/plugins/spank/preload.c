/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Has the tasks of a step load the shims of communication libraries: those of rails (doc/rails.md), or of a job with
 * experts (doc/moe.md). */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/plugins/compat/slurm_api.h"
#include "src/plugins/spank/job_nodes.h"
#include "src/plugins/spank/nodeside.h"
#include "src/plugins/spank/settings.h"
#include "src/scheduler/submit_options.h"
#include "src/util/text.h"

#define PRELOAD "LD_PRELOAD"
#define PRELOAD_MAX 65536
#define PROFILER "NCCL_PROFILER_PLUGIN"

static const struct {
	const char *files;  /* libocs-FILES-KIND.so */
	const char *choice; /* the variable with which a user names kinds */
} sets[] = {
	[OCS_SHIMS_RAILS] = { "rails", "OCS_RAILS_SHIMS" },
	[OCS_SHIMS_MOE] = { "moe", "OCS_MOE_SHIMS" },
};

bool ocs_step_of_tasks(spank_t spank, uint32_t *step)
{
	return spank_get_item(spank, S_JOB_STEPID, step) == ESPANK_SUCCESS &&
	       *step != SLURM_BATCH_SCRIPT && *step != SLURM_INTERACTIVE_STEP &&
	       *step != SLURM_EXTERN_CONT;
}

/* An NCCL that is linked into a program calls nothing that is preloaded, and loads a profiler. */
static void profiler_set(spank_t spank)
{
	char text[256];

	if (access(OCS_LIBEXEC "/libocs-rails-profiler.so", R_OK) == 0 &&
	    spank_getenv(spank, PROFILER, text, sizeof(text)) == ESPANK_ENV_NOEXIST)
		spank_setenv(spank, PROFILER, OCS_LIBEXEC "/libocs-rails-profiler.so", 1);
}

void ocs_preload_set(spank_t spank, const struct ocs_settings *settings, enum ocs_shims which)
{
	static const char *const kinds[] = { "nccl", "mpi", "gloo" };
	char before[PRELOAD_MAX] = "", chosen[256] = "";
	struct ocs_text text = { 0 };
	const char *list;

	if (spank_getenv(spank, PRELOAD, before, sizeof(before)) == ESPANK_NOSPACE)
		return;
	spank_getenv(spank, sets[which].choice, chosen, sizeof(chosen));
	list = *chosen ? chosen : settings->shims;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		char *path = ocs_asprintf("%s/libocs-%s-%s.so", OCS_LIBEXEC, sets[which].files,
					  kinds[i]);

		if ((!list || ocs_list_has(list, kinds[i], strlen(kinds[i]))) &&
		    !strstr(before, path) && access(path, R_OK) == 0)
			ocs_text_add(&text, "%s%s", text.length ? ":" : "", path);
		free(path);
	}
	/* What the user has set stays, behind. */
	if (text.length && *before)
		ocs_text_add(&text, ":%s", before);
	if (text.length)
		spank_setenv(spank, PRELOAD, text.data, 1);
	ocs_text_free(&text);
	if (which == OCS_SHIMS_RAILS && (!list || ocs_list_has(list, "nccl", 4)))
		profiler_set(spank);
}

/* The shims ask the controller, or its relay, at the sockets that ocs-node has named; circuits that stay have their plan
 * in the job's directory. */
void ocs_moe_shims_set(spank_t spank, const struct ocs_settings *settings)
{
	const char *node = getenv("SLURMD_NODENAME");
	char text[128], *address;
	bool follows =
		spank_getenv(spank, OCS_ENV_MOE_SOCKETS, text, sizeof(text)) == ESPANK_SUCCESS;
	uint32_t step;

	if (!node || !ocs_step_of_tasks(spank, &step) || (follows && !settings->moe_controller) ||
	    spank_getenv(spank, OCS_ENV_MOE_SERVERS, text, sizeof(text)) != ESPANK_SUCCESS)
		return;
	address = ocs_node_address(node);
	spank_setenv(spank, OCS_ENV_MOE_ADDRESS, address, 1);
	free(address);
	ocs_preload_set(spank, settings, OCS_SHIMS_MOE);
}
