/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* When slurmd starts. */

#include <slurm/spank.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/plugins/spank/child.h"
#include "src/plugins/spank/nodeside.h"
#include "src/plugins/spank/settings.h"
#include "src/util/error.h"
#include "src/util/text.h"

void ocs_helper_line(const char *text)
{
	slurm_info("spank_ocs: %s", text);
}

void ocs_node_start(const struct ocs_settings *settings)
{
	const char *node = getenv("SLURMD_NODENAME");
	char name[256] = "", *fabric = NULL, *dir, *note;
	struct ocs_error err;

	if (!node && gethostname(name, sizeof(name) - 1) == 0) {
		name[strcspn(name, ".")] = '\0';
		node = name;
	}
	dir = ocs_settings_job_dir(settings, node, 0);
	*strrchr(dir, '/') = '\0';
	note = ocs_asprintf("%s/forward.json", dir);
	if (node && access(note, F_OK) == 0) {
		const char *argv[16] = {
			settings->helper, "sweep", "--fabric", NULL, "--dir", dir, "--node", node,
		};
		int n = 8;

		argv[3] = fabric = ocs_settings_fabric(settings);
		if (settings->ocsd)
			argv[n++] = "--ocsd", argv[n++] = settings->ocsd;
		if (settings->ocsd_key)
			argv[n++] = "--key", argv[n++] = settings->ocsd_key;
		if (ocs_child_run((char *const *)argv, settings->helper_s * 1000, ocs_helper_line,
				  &err) < 0)
			slurm_error("spank_ocs: %s", err.text);
	}
	free(fabric);
	free(note);
	free(dir);
}
