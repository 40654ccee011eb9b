/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* A slurmd with spank_ocs has started: ocsd is notified, so that it knows which nodes will ask for
 * the circuits of their jobs, and takes back that one did not. */

#include "src/node/node.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <unistd.h>

#include "src/protocol/client.h"
#include "src/config/config.h"
#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/util/error.h"
#include "src/util/net.h"
#include "src/util/program.h"

#define CONNECT_MS 5000
#define PAUSE_MAX_MS 30000

/* OCS_OK, or the code of what went wrong. */
static int ocsd_tell(const struct ocs_node_request *request, struct ocs_error *err)
{
	struct ocs_config *config = ocs_config_open(request->fabric, err);
	struct ocs_client *client = NULL;
	struct json_object *line, *reply = NULL;

	err->code = config ? OCS_OK : err->code;
	/* Nodes that have no circuits may run slurmds with the plugin, too. */
	if (config && !ocs_fabric_node(config->fabric, request->node)) {
		ocs_config_destroy(config);
		return OCS_OK;
	}
	if (config)
		client = ocs_node_connect(request, config, CONNECT_MS, err);
	if (client) {
		line = ocs_request_new(OCS_OP_PRESENT);
		ocs_field_add_text(line, OCS_FIELD_NODE, request->node);
		reply = ocs_client_call(client, line, CONNECT_MS, NULL, err);
		json_object_put(line);
	}
	ocs_client_close(client);
	ocs_config_destroy(config);
	json_object_put(reply);
	return reply ? OCS_OK : err->code ? err->code : OCS_ERROR;
}

int ocs_node_present(const struct ocs_node_request *request, int timeout_s)
{
	int64_t deadline = ocs_now_ns() + timeout_s * INT64_C(1000000000);
	unsigned int seed = (unsigned int)getpid(), pause_ms = 500;
	struct ocs_error err = { 0 };

	if (!ocs_program_detach())
		return OCS_OK;
	/* An older ocsd knows no such question; time cures everything else. */
	while (ocsd_tell(request, &err) != OCS_OK && err.code != OCS_USAGE &&
	       ocs_now_ns() < deadline) {
		usleep((pause_ms + (unsigned int)rand_r(&seed) % pause_ms) * 1000);
		pause_ms = pause_ms * 2 > PAUSE_MAX_MS ? PAUSE_MAX_MS : pause_ms * 2;
	}
	_exit(err.code);
}
