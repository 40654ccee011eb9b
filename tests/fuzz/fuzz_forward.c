/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Descriptions of hosts, from a file or as ocsd tells MACs: whatever is accepted ends in
 * commands that root runs, so every word of them must be a plain one. */

#include <ctype.h>
#include <json-c/json.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/config/config.h"
#include "src/forward/forward.h"
#include "src/util/error.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char yaml[] =
	"version: 1\n"
	"switches:\n"
	"  - {name: 'f-[0-1]', driver: tl1, address: '127.0.0.1:{4000 + index}', credentials: /c, size: 4}\n"
	"fabrics:\n"
	"  - name: hosts\n"
	"    kind: direct\n"
	"    nodes: f[0-3]\n"
	"    degree: 2\n"
	"    interfaces: [{name: e0}, {name: e1, forward: e1f}]\n"
	"    forwarding: {address: 10.0.0.0/24}\n"
	"    ports: {switch: 'f-{interface}', port: server + 1}\n";

static struct ocs_fabric *fabric;
static struct ocs_plan *plan;
static struct ocs_forward *forward;

static void begin(void)
{
	static char *nodes[] = { (char *)"f0", (char *)"f1", (char *)"f2", (char *)"f3" };
	struct ocs_plan_request request = {
		.servers = 4, .degree = 2, .routes = true, .nodes = nodes
	};
	struct ocs_error err;

	fabric = ocs_config_take_fabric(ocs_config_parse(yaml, sizeof(yaml) - 1, "fuzz", &err));
	plan = ocs_plan_make(&request, &err);
	forward = plan ? ocs_forward_make(plan, NULL, &err) : NULL;
	if (!fabric || !forward)
		abort();
}

static void judge(struct ocs_forward_hosts *hosts, const struct ocs_error *err)
{
	if (!hosts) {
		if (err->code != OCS_USAGE || strchr(err->text, '\n'))
			abort();
		return;
	}
	for (int host = 0; host < 4; host++) {
		struct ocs_forward_commands commands = { 0 };

		ocs_forward_apply_commands(forward, hosts, host, OCS_FORWARD_FLOWER, &commands);
		ocs_forward_remove_commands(hosts, host, &commands);
		for (size_t i = 0; i < commands.count; i++)
			for (const char *c = commands.list[i].text; *c; c++)
				if (!isalnum((unsigned char)*c) && !strchr(" ._:/=-", *c))
					abort();
		ocs_forward_commands_free(&commands);
	}
	ocs_forward_hosts_destroy(hosts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ocs_error err = { 0 };
	struct json_object *macs;
	char *text = malloc(size + 1);

	if (!text)
		return 0;
	if (!fabric)
		begin();
	memcpy(text, data, size);
	text[size] = '\0';
	judge(ocs_forward_hosts_parse(text, plan, &err), &err);
	macs = json_tokener_parse(text);
	if (json_object_is_type(macs, json_type_array))
		judge(ocs_forward_hosts_fabric(fabric, &fabric->sections[0], plan, macs, &err),
		      &err);
	json_object_put(macs);
	free(text);
	return 0;
}
