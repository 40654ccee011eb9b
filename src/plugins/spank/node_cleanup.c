/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* When slurmd starts. */

#include <slurm/spank.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/plugins/spank/subprocess.h"
#include "src/plugins/spank/nodeside.h"
#include "src/plugins/spank/settings.h"
#include "src/util/error.h"
#include "src/util/text.h"

/* How long ocsd is looked for; the first job tells it as well. */
#define PRESENT_S "3600"

void ocs_helper_line(const char *text)
{
	slurm_info("spank_ocs: %s", text);
}

static void run_helper(const struct ocs_settings *settings, const char **argv, int n)
{
	struct ocs_error err;

	if (settings->ocsd)
		argv[n++] = "--ocsd", argv[n++] = settings->ocsd;
	if (settings->ocsd_key)
		argv[n++] = "--key", argv[n++] = settings->ocsd_key;
	if (settings->ocsd_user)
		argv[n++] = "--ocsd-user", argv[n++] = settings->ocsd_user;
	argv[n] = NULL;
	if (ocs_child_run((char *const *)argv, settings->helper_s * 1000, ocs_helper_line, &err) <
	    0)
		slurm_error("spank_ocs: %s", err.text);
}

void ocs_node_start(const struct ocs_settings *settings)
{
	const char *node = getenv("SLURMD_NODENAME");
	char name[256] = "", *fabric = ocs_settings_fabric(settings), *dir, *note;
	const char *sweep[16] = {
		settings->helper, "sweep", "--fabric", fabric, "--dir", NULL, "--node",
	};
	const char *present[16] = {
		settings->helper, "present", "--fabric", fabric, "--timeout", PRESENT_S, "--node",
	};

	if (!node && gethostname(name, sizeof(name) - 1) == 0) {
		name[strcspn(name, ".")] = '\0';
		node = name;
	}
	dir = ocs_settings_job_dir(settings, node, 0);
	*strrchr(dir, '/') = '\0';
	note = ocs_asprintf("%s/forward.json", dir);
	sweep[5] = dir;
	sweep[7] = present[7] = node;
	if (node && access(note, F_OK) == 0)
		run_helper(settings, sweep, 8);
	/* A machine without the helper or ocs.yaml is reported by its first job. */
	if (node && access(settings->helper, X_OK) == 0 && access(fabric, R_OK) == 0)
		run_helper(settings, present, 8);
	free(fabric);
	free(note);
	free(dir);
}
