/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/config/config.h"
#include "src/ocsd/state/ocsd.h"
#include "src/ocsd/protocol/handshake.h"
#include "src/ocsd/reload.h"

#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/util/net.h"
#include "src/util/text.h"

static int check_job(const struct ocsd *d, const struct ocsd_job *job,
		     const struct ocs_fabric *fabric, struct ocs_error *err)
{
	struct ocs_holding holding = {
		.job = job->job,
		.section = job->section ? job->request.section : NULL,
		.nodes = job->nodes.names,
		.nnodes = job->nodes.count,
	};
	int *switches = ocs_calloc(job->circuits.count + 1, sizeof(*switches)), rc;

	for (size_t i = 0; i < job->circuits.count; i++)
		switches[i] = job->circuits.list[i]->sw;
	holding.switches = switches;
	holding.nswitches = job->circuits.count;
	rc = ocs_fabric_keeps(d->fabric, fabric, &holding, err);
	free(switches);
	return rc;
}

/* Addresses that are new can be listened on. */
static int check_address(const char *before, const char *after, struct ocs_error *err)
{
	int fd;

	if (!after || (before && strcmp(before, after) == 0))
		return 0;
	fd = ocs_net_listen(after, err);
	if (fd < 0)
		return -1;
	close(fd);
	if (strncmp(after, "unix:", 5) == 0)
		unlink(after + 5);
	return 0;
}

static int check_settings(const struct ocsd *d, const struct ocs_config *config,
			  struct ocs_error *err)
{
	for (size_t i = 0; i < config->ocsd.nadmins; i++)
		if (!getpwnam(config->ocsd.admins[i]))
			return ocs_error_set(
				err, OCS_USAGE,
				"%s: ocsd.admins names user %s, who does not exist here",
				config->fabric->source, config->ocsd.admins[i]);
	if (ocsd_hello_account(config, err))
		return -1;
	if (strcmp(d->config->ocsd.state, config->ocsd.state) != 0)
		return ocs_error_set(err, OCS_USAGE,
				     "%s: ocsd.state cannot become %s while ocsd runs: "
				     "stop ocsd, move %s there, and start it again",
				     config->fabric->source, config->ocsd.state,
				     d->config->ocsd.state);
	if (check_address(d->config->ocsd.socket, config->ocsd.socket, err) ||
	    check_address(d->config->ocsd.listen, config->ocsd.listen, err) ||
	    check_address(d->config->ocsd.metrics, config->ocsd.metrics, err))
		return -1;
	return 0;
}

int ocsd_reload_check(const struct ocsd *d, const struct ocs_config *config, struct ocs_error *err)
{
	for (const struct ocsd_job *job = d->jobs; job; job = job->next)
		if (job->state != OCSD_JOB_CLOSED && check_job(d, job, config->fabric, err))
			return -1;
	return check_settings(d, config, err);
}

/* Where a copy of what was read last lies; the caller frees it. */
static char *kept_path(const char *folder)
{
	return ocs_asprintf("%s/ocs.yaml", folder);
}

void ocsd_reload_keep(const struct ocsd *d, const char *folder)
{
	char *path = kept_path(folder);
	struct ocs_error err;

	/* A fabric of one line has no text, and a copy need not be copied. */
	if (d->config->text_digest && strcmp(d->fabric->source, path) != 0 &&
	    ocs_config_keep(d->config, path, &err))
		ocs_log(OCS_LOG_WARNING, "no copy of %s is kept: %s", d->fabric->source, err.text);
	free(path);
}

int ocsd_reload_open(struct ocsd *d, const char *folder, struct ocs_error *err)
{
	char *path = kept_path(folder ? folder : OCS_STATE_DEFAULT);
	struct ocs_error unkept;

	d->config = ocs_config_open(d->yaml.path, err);
	if (d->config)
		goto out;
	d->config = ocs_config_kept(path, &unkept);
	if (d->config && !folder && strcmp(d->config->ocsd.state, OCS_STATE_DEFAULT) != 0) {
		/* It was left there when the database moved. */
		ocs_config_destroy(d->config);
		d->config = NULL;
	} else if (d->config) {
		d->yaml.fault = ocs_strdup(err->text);
		ocs_log(OCS_LOG_ERROR, "%s; what was read before is kept: %s", d->yaml.fault, path);
	} else if (access(path, F_OK) == 0) {
		char *why = ocs_strdup(err->text);

		ocs_error_set(err, err->code, "%s; nor is there a copy that can be used: %s", why,
			      unkept.text);
		free(why);
	}
out:
	d->fabric = d->config ? d->config->fabric : NULL;
	free(path);
	return d->config ? 0 : -1;
}
