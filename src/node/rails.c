/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/node/rails.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <json-c/json.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/config/config.h"
#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/util/error.h"
#include "src/util/net.h"
#include "src/util/text.h"

int ocs_node_rails_address(struct ocs_node_work *work, struct ocs_error *err)
{
	const char *device = work->section->management;
	struct ifaddrs *all, *one;

	if (getifaddrs(&all) < 0)
		all = NULL;
	for (one = all; one; one = one->ifa_next)
		if (strcmp(one->ifa_name, device) == 0 && one->ifa_addr &&
		    one->ifa_addr->sa_family == AF_INET)
			break;
	if (one)
		inet_ntop(AF_INET,
			  &((const struct sockaddr_in *)(const void *)one->ifa_addr)->sin_addr,
			  work->address, sizeof(work->address));
	freeifaddrs(all);
	if (one)
		return 0;
	return ocs_error_set(err, OCS_USAGE,
			     "%s has no IPv4 address on %s, which \"management\" in ocs.yaml names",
			     work->request->node, device);
}

static int layout_read(struct ocs_node_rails *rails, struct json_object *about,
		       struct ocs_error *err)
{
	struct ocs_rails_layout *layout = &rails->layout;
	size_t ndim;
	struct json_object *extents = ocs_field_array(about, OCS_FIELD_EXTENTS, &ndim);
	const char *first = ocs_field_text(about, OCS_FIELD_TOPO, "");

	if (!about || ndim < 1 || ndim > OCS_RAILS_DIMS || strlen(first) >= sizeof(rails->first))
		return ocs_error_set(err, OCS_ERROR, "the reply of ocsd has no menu of the job");
	layout->ndim = (int)ndim;
	for (size_t i = 0; i < ndim; i++)
		layout->extent[i] = json_object_get_int(json_object_array_get_idx(extents, i));
	layout->asymmetric = json_object_get_int(ocs_field(about, OCS_FIELD_ASYMMETRIC));
	layout->ports = json_object_get_int(ocs_field(about, OCS_FIELD_NIC_PORTS));
	rails->nrails = json_object_get_int(ocs_field(about, OCS_FIELD_RAILS));
	strcpy(rails->first, first);
	return ocs_rails_layout_check(layout, err);
}

static int hosts_read(struct ocs_node_work *work, struct json_object *rows, struct ocs_error *err)
{
	struct ocs_node_rails *rails = work->rails;
	struct in_addr parsed;

	rails->hosts = ocs_forward_hosts_rails(work->fabric, work->section, rows, err);
	if (!rails->hosts)
		return -1;
	if (rails->hosts->servers != ocs_rails_layout_nodes(&rails->layout) ||
	    rails->hosts->degree != rails->nrails * rails->layout.ports)
		return ocs_error_set(err, OCS_USAGE,
				     "the menu of job %lu is not of these hosts and interfaces: is"
				     " ocs.yaml the same everywhere?",
				     work->request->job);
	rails->via = ocs_calloc((size_t)rails->hosts->servers, sizeof(*rails->via));
	rails->self = -1;
	for (int h = 0; h < rails->hosts->servers; h++) {
		const char *address = ocs_field_text(json_object_array_get_idx(rows, (size_t)h),
						     OCS_FIELD_ADDRESS, "");

		if (inet_pton(AF_INET, address, &parsed) != 1)
			return ocs_error_set(err, OCS_ERROR,
					     "%s has no address on its management network",
					     rails->hosts->host[h].node);
		inet_ntop(AF_INET, &parsed, rails->via[h], sizeof(rails->via[h]));
		if (strcmp(rails->hosts->host[h].node, work->request->node) == 0)
			rails->self = h;
	}
	return rails->self >= 0 ? 0 :
				  ocs_error_set(err, OCS_USAGE, "%s is not a node of job %lu",
						work->request->node, work->request->job);
}

int ocs_node_rails_read(struct ocs_node_work *work, struct json_object *reply,
			struct ocs_error *err)
{
	ocs_node_rails_free(work->rails);
	work->rails = ocs_calloc(1, sizeof(*work->rails));
	return layout_read(work->rails, ocs_field(reply, OCS_FIELD_PHASES), err) ||
			       hosts_read(work, ocs_field(reply, OCS_FIELD_HOSTS), err) ?
		       -1 :
		       0;
}

void ocs_node_rails_free(struct ocs_node_rails *rails)
{
	if (!rails)
		return;
	ocs_forward_hosts_destroy(rails->hosts);
	free(rails->via);
	free(rails);
}

/* The other ends of PAIRS, of which this host has one, on all rails.  The caller frees it. */
static struct ocs_forward_neighbour *neighbours_find(const struct ocs_node_rails *rails,
						     const struct ocs_rails_pairs *pairs,
						     size_t *count)
{
	int ports = rails->layout.ports;
	struct ocs_forward_neighbour *list =
		ocs_calloc(2 * pairs->count * (size_t)rails->nrails + 1, sizeof(*list));

	*count = 0;
	for (size_t i = 0; i < pairs->count; i++) {
		const struct ocs_rails_pair *pair = &pairs->items[i];

		for (int r = 0; r < rails->nrails; r++) {
			if (pair->a == rails->self)
				list[(*count)++] = (struct ocs_forward_neighbour){
					pair->b, r * ports + pair->a_port, r * ports + pair->b_port
				};
			if (pair->b == rails->self)
				list[(*count)++] = (struct ocs_forward_neighbour){
					pair->a, r * ports + pair->b_port, r * ports + pair->a_port
				};
		}
	}
	return list;
}

/* Waits until the ports of the first topology have a link. */
static int first_links_wait(const struct ocs_node_work *work, struct ocs_error *err)
{
	const struct ocs_node_rails *rails = work->rails;
	int limit_ms = work->config->timeouts.link_ms, rc;
	struct ocs_forward_neighbour *list;
	struct ocs_rails_pairs pairs;
	bool *holds;
	size_t count;

	if (!limit_ms)
		return 0;
	if (ocs_rails_topology_pairs(&rails->layout, rails->first, &pairs, err))
		return -1;
	holds = ocs_calloc((size_t)work->section->ninterfaces + 1, sizeof(*holds));
	list = neighbours_find(rails, &pairs, &count);
	for (size_t i = 0; i < count; i++)
		holds[list[i].own] = true;
	rc = ocs_node_links_wait(work->section, holds, ocs_now_ns() + limit_ms * INT64_C(1000000),
				 limit_ms, err);
	ocs_rails_pairs_free(&pairs);
	free(holds);
	free(list);
	return rc;
}

static int network_make(struct ocs_node_work *work, const struct ocs_forward_owner *owner,
			struct ocs_error *err)
{
	const struct ocs_node_rails *rails = work->rails;
	const char **via = ocs_calloc((size_t)rails->hosts->servers, sizeof(*via));
	struct ocs_forward_rails things = { .management = work->section->management };
	struct ocs_forward_neighbour *list;
	struct ocs_rails_pairs pairs;
	int rc = ocs_rails_menu_pairs(&rails->layout, &pairs, err);

	if (rc == 0) {
		list = neighbours_find(rails, &pairs, &things.count);
		for (int h = 0; h < rails->hosts->servers; h++)
			via[h] = rails->via[h];
		things.neighbours = list;
		things.via = via;
		rc = ocs_forward_hold_rails(work->folder, owner, &things, rails->hosts, rails->self,
					    err);
		ocs_rails_pairs_free(&pairs);
		free(list);
	}
	free(via);
	return rc;
}

int ocs_node_rails_hold(struct ocs_node_work *work, struct json_object *reply,
			struct ocs_error *err)
{
	const struct ocs_forward_owner owner = { .job = work->request->job,
						 .epoch = work->request->epoch };

	if (ocs_node_rails_read(work, reply, err) || network_make(work, &owner, err))
		return -1;
	if (first_links_wait(work, err) == 0)
		return 0;
	/* the port, and not the other hosts */
	err->code = OCS_ERROR;
	ocs_forward_drop(work->folder, &owner, NULL);
	return -1;
}
