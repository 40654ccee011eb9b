/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/config/config.h"

#include <signal.h>
#include <stdlib.h>

#include "src/config/load.h"
#include "src/util/hostlist.h"
#include "src/util/text.h"

struct ocs_config *ocs_config_new(const char *source)
{
	struct ocs_config *config = ocs_calloc(1, sizeof(*config));

	config->fabric = ocs_fabric_new(source);
	config->ocsd = (struct ocs_config_ocsd){
		.socket = ocs_strdup("unix:/run/ocsd/ocsd.sock"),
		.address = ocs_strdup("unix:/run/ocsd/ocsd.sock"),
		.state = ocs_strdup(OCS_STATE_DEFAULT),
		.audit_days = 400,
	};
	config->limits = (struct ocs_config_limits){
		.topologies_per_second = 200,
		.requests_per_second = 20,
		.burst = 60,
		.connections = 64,
	};
	config->timeouts = (struct ocs_config_timeouts){
		.switch_ms = 5000,
		.retry_ms = 5000,
		.poll_ms = 30000,
		.prolog_ms = 300000,
		.ocsd_down_ms = 60000,
		.dark_ms = 10000,
		.link_ms = 30000,
		.routes_ms = 1000,
	};
	config->policies = (struct ocs_config_policies){
		.requeue_limit = 3,
		.keep_cubes_whole = true,
		.circuit_failed = OCS_ON_FAILURE_REQUEUE,
		.switch_failed = OCS_ON_FAILURE_IGNORE,
		.signal = SIGUSR1,
	};
	return config;
}

static void ocsd_clear(struct ocs_config_ocsd *ocsd)
{
	free(ocsd->socket);
	free(ocsd->listen);
	free(ocsd->address);
	free(ocsd->key);
	free(ocsd->metrics);
	free(ocsd->state);
	free(ocsd->user);
	ocs_names_free(ocsd->admins, ocsd->nadmins);
}

static void nccl_clear(struct ocs_config_nccl *nccl)
{
	free(nccl->hwloc_xml);
	free(nccl->management);
	ocs_names_free(nccl->env, nccl->nenv);
}

struct ocs_fabric *ocs_config_take_fabric(struct ocs_config *config)
{
	struct ocs_fabric *fabric;

	if (!config)
		return NULL;
	fabric = config->fabric;
	ocsd_clear(&config->ocsd);
	nccl_clear(&config->nccl);
	free(config);
	return fabric;
}

void ocs_config_destroy(struct ocs_config *config)
{
	ocs_fabric_destroy(ocs_config_take_fabric(config));
}

char *ocs_config_describe(const struct ocs_config *config)
{
	const struct ocs_config_ocsd *ocsd = &config->ocsd;
	struct ocs_text text = { 0 };
	char *fabric = ocs_fabric_describe(config->fabric);

	ocs_text_add(&text, "%s", fabric);
	free(fabric);
	if (!config->fabric->nswitches)
		return ocs_text_take(&text);
	ocs_text_add(&text, "ocsd: socket %s, ", ocsd->socket);
	if (ocsd->listen)
		ocs_text_add(&text, "listens on %s, ", ocsd->listen);
	ocs_text_add(&text, "reached at %s, state in %s\n", ocsd->address, ocsd->state);
	return ocs_text_take(&text);
}
