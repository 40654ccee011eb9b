/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Starts the program that changes the circuits of a job on rails (controller= in plugstack.conf): as
 * the user, on the job's first node, in the first step there that finds none.  It is in the job's
 * cgroup, and ends with its step at the latest. */

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "src/config/config.h"
#include "src/plugins/compat/slurm_api.h"
#include "src/plugins/spank/job_program.h"
#include "src/plugins/spank/nodeside.h"
#include "src/plugins/spank/settings.h"
#include "src/scheduler/submit_options.h"
#include "src/util/error.h"
#include "src/util/text.h"

/* Where ocsd is, and its account: as plugstack.conf says, else ocs.yaml, which users may read. */
static void ocsd_locate(const struct ocs_settings *settings, char **address, char **user)
{
	char *fabric = ocs_settings_fabric(settings);
	struct ocs_config *config = settings->ocsd ? NULL : ocs_config_open(fabric, NULL);
	const char *where = settings->ocsd ? settings->ocsd : config ? config->ocsd.address : NULL;
	const char *whose = settings->ocsd_user ? settings->ocsd_user :
			    config		? config->ocsd.user :
						  NULL;

	*address = where ? ocs_strdup(where) : NULL;
	*user = whose ? ocs_strdup(whose) : NULL;
	ocs_config_destroy(config);
	free(fabric);
}

static void controller_start(spank_t spank, const struct ocs_settings *settings, const char *dir,
			     int lock)
{
	char *address, *user, number[16], epoch[24];
	const char *argv[14] = { settings->controller, "--job", number, "--epoch", epoch };
	uint32_t job;
	int n = 5;

	if (spank_get_item(spank, S_JOB_ID, &job) != ESPANK_SUCCESS)
		return;
	ocsd_locate(settings, &address, &user);
	snprintf(number, sizeof(number), "%u", job);
	snprintf(epoch, sizeof(epoch), "%" PRIu64, ocs_job_epoch(dir));
	if (address)
		argv[n++] = "--ocsd", argv[n++] = address;
	if (user)
		argv[n++] = "--ocsd-user", argv[n++] = user;
	if (settings->ports)
		argv[n++] = "--ports", argv[n++] = settings->ports;
	argv[n++] = "--syslog";
	ocs_job_program_start(spank, argv, lock);
	free(address);
	free(user);
}

/* The same of a job with experts in a region, which has its sockets in a folder of the user's that ocs-node has
 * named. */
static void moe_controller_start(spank_t spank, const struct ocs_settings *settings,
				 const char *dir, int lock)
{
	char *region = ocs_asprintf("%s/region.json", dir), *key = ocs_asprintf("%s/moe.key", dir);
	char *address, *user, sockets[128] = "";
	const char *argv[18] = {
		settings->moe_controller, "--region", region, "--key", key, "--sockets", sockets
	};
	int n = 7;

	ocsd_locate(settings, &address, &user);
	if (address)
		argv[n++] = "--ocsd", argv[n++] = address;
	if (user)
		argv[n++] = "--ocsd-user", argv[n++] = user;
	if (settings->ports)
		argv[n++] = "--ports", argv[n++] = settings->ports;
	if (spank_getenv(spank, OCS_ENV_MOE_SOCKETS, sockets, sizeof(sockets)) == ESPANK_SUCCESS)
		ocs_job_program_start(spank, argv, lock);
	free(address);
	free(user);
	free(region);
	free(key);
}

/* Starts a controller where DIR has its key KEY: that is so on the first node of the job, if its circuits change
 * while it runs. */
static void key_start(spank_t spank, const struct ocs_settings *settings, const char *dir,
		      const char *key,
		      void (*start)(spank_t, const struct ocs_settings *, const char *, int),
		      bool waits)
{
	char *path = ocs_asprintf("%s/%s", dir, key);
	int lock = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	free(path);
	if (lock < 0)
		return;
	/* The program keeps the lock as long as it lives: one at a time.  That of an earlier step may be about to end,
	 * or end with its step before this one does: ours waits for its turn. */
	if (flock(lock, LOCK_EX | LOCK_NB) == 0 || waits)
		start(spank, settings, dir, lock);
	close(lock);
}

/* Our program waits for its turn at the lock; any other one is started where it has the lock alone. */
static bool turn_waits(const char *program)
{
	const char *slash = strrchr(program, '/');

	return strcmp(slash ? slash + 1 : program, "ocs-rails-controller") == 0;
}

void ocs_controller_start(spank_t spank, const struct ocs_settings *settings, const char *dir)
{
	if (settings->controller)
		key_start(spank, settings, dir, "rails.key", controller_start,
			  turn_waits(settings->controller));
	if (settings->moe_controller)
		key_start(spank, settings, dir, "moe.key", moe_controller_start, false);
}
