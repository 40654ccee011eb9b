/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "src/config/config.h"
#include "src/forward/forward.h"
#include "src/ocsctl/ocsctl.h"
#include "src/util/text.h"

static struct ocs_plan *read_plan(const char *path, struct ocs_error *err)
{
	struct json_object *json = ocs_ctl_read_json(path, err);
	struct ocs_plan *plan = json ? ocs_plan_from_json(json, err) : NULL;

	json_object_put(json);
	if (!plan)
		ocs_error_prefix(err, "forward");
	if (plan && ocs_plan_verify(plan, err)) {
		ocs_error_prefix(err, "forward: the plan is wrong");
		ocs_plan_destroy(plan);
		plan = NULL;
	}
	return plan;
}

/* The hosts as ocs.yaml describes them.  MACs are known in a job only, when the hosts have
 * told them: good enough to look at, and to take everything away. */
static struct ocs_forward_hosts *fabric_hosts(const struct ocs_ctl_args *args,
					      const struct ocs_plan *plan, struct ocs_error *err)
{
	struct ocs_forward_hosts *hosts = NULL;
	const struct ocs_node *node;
	struct ocs_fabric *fabric;

	if (!args->json && !args->dry_run && !args->remove) {
		ocs_error_set(err, OCS_USAGE,
			      "forward: ocs.yaml does not know the MACs of the"
			      " hosts; with --fabric say --dry-run, --remove or --json, or give"
			      " --hosts");
		return NULL;
	}
	fabric = ocs_config_take_fabric(ocs_config_open(args->fabric, err));
	node = fabric && plan->nodes && plan->servers ? ocs_fabric_node(fabric, plan->nodes[0]) :
							NULL;
	if (node)
		hosts = ocs_forward_hosts_fabric(fabric, &fabric->sections[node->section], plan,
						 NULL, err);
	else if (fabric)
		ocs_error_set(err, OCS_USAGE, "%s has no server %s of the plan", args->fabric,
			      plan->nodes && plan->servers ? plan->nodes[0] : "0");
	ocs_fabric_destroy(fabric);
	if (!hosts)
		ocs_error_prefix(err, "forward");
	return hosts;
}

static struct ocs_forward_hosts *read_hosts(const struct ocs_ctl_args *args,
					    const struct ocs_plan *plan, struct ocs_error *err)
{
	struct ocs_forward_hosts *hosts;
	char *text;

	if (args->hosts && args->fabric) {
		ocs_error_set(err, OCS_USAGE, "forward: give --hosts or --fabric, not both");
		return NULL;
	}
	if (args->fabric)
		return fabric_hosts(args, plan, err);
	if (!args->hosts)
		return ocs_forward_hosts_rule(plan);
	text = ocs_ctl_read(args->hosts, err);
	hosts = text ? ocs_forward_hosts_parse(text, plan, err) : NULL;
	free(text);
	return hosts;
}

/* The servers' ports that --failed lists, as ocs_forward_make wants them; NULL with
 * ERR.  The caller frees it. */
static bool *read_failed(const struct ocs_ctl_args *args, const struct ocs_plan *plan,
			 struct ocs_error *err)
{
	bool *failed = ocs_calloc((size_t)plan->servers * plan->degree, sizeof(*failed));
	char *copy = ocs_strdup(args->failed ? args->failed : ""), *rest = copy, *item;

	while ((item = strsep(&rest, ","))) {
		char *port = strchr(item, ':');
		long s, p;

		if (!*item)
			continue;
		if (port)
			*port++ = '\0';
		if (!port || ocs_number_parse(item, 0, plan->servers - 1, &s) ||
		    ocs_number_parse(port, 0, plan->degree - 1, &p)) {
			ocs_error_set(err, OCS_USAGE,
				      "forward: --failed=%s is no list of"
				      " SERVER:PORT with servers below %d and ports below %d",
				      args->failed, plan->servers, plan->degree);
			free(failed);
			failed = NULL;
			break;
		}
		failed[s * plan->degree + p] = true;
	}
	free(copy);
	return failed;
}

static int find_host(const struct ocs_ctl_args *args, const struct ocs_forward_hosts *hosts,
		     struct ocs_error *err)
{
	long number;

	for (int s = 0; s < hosts->servers; s++)
		if (!strcmp(hosts->host[s].node, args->node))
			return s;
	if (!ocs_number_parse(args->node, 0, hosts->servers - 1, &number))
		return (int)number;
	return ocs_error_set(err, OCS_USAGE, "forward: %s is none of the plan's %d servers",
			     args->node, hosts->servers);
}

static int backend_choose(const struct ocs_ctl_args *args, enum ocs_forward_backend *backend,
			  struct ocs_error *err)
{
	if (!args->backend || !strcmp(args->backend, "auto"))
		*backend = ocs_forward_backend_choose();
	else if (ocs_forward_backend_parse(args->backend, backend))
		return ocs_error_set(err, OCS_USAGE,
				     "forward: there is no backend '%s'; there are"
				     " flower, bpf, routes and auto",
				     args->backend);
	return 0;
}

static int run_host(const struct ocs_ctl_args *args, const struct ocs_forward *forward,
		    const struct ocs_forward_hosts *hosts, struct ocs_error *err)
{
	struct ocs_forward_commands commands = { 0 };
	enum ocs_forward_backend backend;
	int host = find_host(args, hosts, err);

	if (host < 0 || backend_choose(args, &backend, err))
		return -1;
	if (!args->dry_run)
		return args->remove ? ocs_forward_remove(hosts, host, err) :
				      ocs_forward_apply(forward, hosts, host, backend, err);
	if (args->remove)
		ocs_forward_remove_commands(hosts, host, &commands);
	else
		ocs_forward_apply_commands(forward, hosts, host, backend, &commands);
	ocs_forward_commands_print(&commands, stdout);
	ocs_forward_commands_free(&commands);
	return 0;
}

int ocs_ctl_forward(const struct ocs_ctl_args *args, struct ocs_error *err)
{
	struct ocs_forward_hosts *hosts = NULL;
	struct ocs_forward *forward = NULL;
	struct ocs_plan *plan;
	bool *failed;
	int rc = -1;

	if (!args->node && !args->json)
		return ocs_error_set(err, OCS_USAGE,
				     "forward: give --node NAME, or --json for all"
				     " paths");
	plan = read_plan(args->operands[0], err);
	if (!plan)
		return -1;
	hosts = read_hosts(args, plan, err);
	failed = hosts ? read_failed(args, plan, err) : NULL;
	forward = failed ? ocs_forward_make(plan, failed, err) : NULL;
	if (forward && args->json) {
		struct json_object *json = ocs_forward_to_json(forward, hosts);

		ocs_ctl_print_json(json);
		json_object_put(json);
		rc = 0;
	} else if (forward) {
		rc = run_host(args, forward, hosts, err);
	}
	free(failed);
	ocs_forward_destroy(forward);
	ocs_forward_hosts_destroy(hosts);
	ocs_plan_destroy(plan);
	return rc;
}
