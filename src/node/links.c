/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* NCCL drops ports that are not up when it starts, and numbers the others anew: tasks start when the
 * ports of the job's circuits have a link. */

#include "src/node/node.h"

#include <json-c/json.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/config/config.h"
#include "src/layout/lines.h"
#include "src/nccl/circuits.h"
#include "src/rails/layout.h"
#include "src/util/error.h"
#include "src/util/hostlist.h"
#include "src/util/net.h"
#include "src/util/text.h"

#define PLAN_MAX (64 << 20)
#define NODES_MAX 1000000
#define PAUSE_US 20000

/* The kernel's word for the state of an RDMA port such as mlx5_0:1, or NULL where there is none.  The
 * caller frees it. */
static char *rdma_state(const char *rdma)
{
	const char *colon = rdma ? strchr(rdma, ':') : NULL;
	char path[256];

	if (!rdma)
		return NULL;
	snprintf(path, sizeof(path), "/sys/class/infiniband/%.*s/ports/%s/state",
		 (int)strcspn(rdma, ":"), rdma, colon ? colon + 1 : "1");
	return ocs_file_read(path, 64, NULL, NULL);
}

/* What INTERFACE lacks, or NULL: it is up, or not on this machine.  The device of an InfiniBand port
 * may be down while the port works. */
static const char *interface_lacks(const struct ocs_interface *interface, int socket_fd)
{
	struct ifreq request = { 0 };
	char *state = rdma_state(interface->rdma);
	bool active = state && strstr(state, "ACTIVE");

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", interface->name);
	if (state) {
		free(state);
		return active ? NULL : "has an RDMA port that is not active";
	}
	if (ioctl(socket_fd, SIOCGIFFLAGS, &request) < 0)
		return NULL;
	return !(request.ifr_flags & IFF_UP)	  ? "is down" :
	       !(request.ifr_flags & IFF_RUNNING) ? "has no carrier" :
						    NULL;
}

int ocs_node_links_wait(const struct ocs_section *section, const bool *holds, int64_t deadline,
			int timeout_ms, struct ocs_error *err)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc = 0;

	for (int i = 0; i < section->ninterfaces && rc == 0; i++) {
		const struct ocs_interface *interface = &section->interfaces[i];
		const char *lacks;

		while (holds[i] && (lacks = interface_lacks(interface, fd)) && rc == 0) {
			if (ocs_now_ns() >= deadline)
				rc = ocs_error_set(
					err, OCS_NOT_NOW,
					"interface %s %s, though its circuit has been there for %d s",
					interface->name, lacks, timeout_ms / 1000);
			else
				usleep(PAUSE_US);
		}
	}
	if (fd >= 0)
		close(fd);
	return rc;
}

/* The ports of rails that the job of REQUEST begins with.  Without a shape nothing is made for it, and
 * what stands there is the site's; with `tcp` the ports are down then. */
static int rails_held(const struct ocs_node_request *request, const struct ocs_section *section,
		      bool *holds, struct ocs_error *err)
{
	int devices = ocs_section_devices(section), count, self = -1;
	char topology[OCS_RAILS_TOPOLOGY], **names;
	struct ocs_rails_layout layout;
	struct ocs_rails_pairs pairs;
	struct ocs_shape shape;

	if (!request->shape) {
		memset(holds, !section->management, (size_t)devices);
		return 0;
	}
	if (ocs_shape_parse(request->shape, NULL, &shape, err) < 0 ||
	    ocs_rails_layout_make(&shape, section->server_xpus, section->nic_ports, &layout, err) <
		    0)
		return -1;
	count = ocs_hostlist_expand(request->nodes ? request->nodes : "", NODES_MAX, &names, err);
	if (count < 0)
		return -1;
	for (int i = 0; i < count; i++)
		if (strcmp(names[i], request->node) == 0)
			self = i;
	ocs_names_free(names, (size_t)count);
	ocs_rails_layout_first(&layout, request->phases, topology);
	if (ocs_rails_topology_pairs(&layout, topology, &pairs, err) < 0)
		return -1;
	for (size_t i = 0; i < pairs.count; i++)
		for (int rail = 0; rail < section->degree; rail++) {
			if (pairs.items[i].a == self)
				holds[rail * section->nic_ports + pairs.items[i].a_port] = true;
			if (pairs.items[i].b == self)
				holds[rail * section->nic_ports + pairs.items[i].b_port] = true;
		}
	ocs_rails_pairs_free(&pairs);
	return 0;
}

/* The same on cubes, from the placement in the job's directory. */
static int torus_held(const struct ocs_node_request *request, const struct ocs_fabric *fabric,
		      bool *holds, struct ocs_error *err)
{
	char *path = ocs_asprintf("%s/%s", request->dir, ocs_node_names[OCS_NODE_PLACEMENT]);
	char *text = ocs_file_read(path, PLAN_MAX, NULL, err);
	struct json_object *json = text ? json_tokener_parse(text) : NULL;
	struct ocs_placement *placement = text ? ocs_placement_from_json(fabric, json, err) : NULL;
	int rc = placement ? ocs_placement_verify(fabric, NULL, placement, err) : -1;

	if (rc == 0) {
		struct ocs_links *links = ocs_links_of(placement);
		const struct ocs_node *node = ocs_fabric_node(fabric, request->node);

		ocs_dimension_lines_held(links, (int)(node - fabric->nodes), holds);
		ocs_links_destroy(links);
	}
	ocs_placement_destroy(placement);
	json_object_put(json);
	free(text);
	free(path);
	return rc;
}

/* Sets HOLDS for the interfaces that hold circuits: those of the plan in the job's directory, and on
 * rails those of the first topology. */
static int held_find(const struct ocs_node_request *request, const struct ocs_section *section,
		     bool *holds, struct ocs_error *err)
{
	char *path = ocs_asprintf("%s/%s", request->dir, ocs_node_names[OCS_NODE_PLAN]), *text;
	struct ocs_nccl_circuits circuits;
	struct json_object *plan;
	int rc = 0;

	if (section->kind == OCS_RAILS && rails_held(request, section, holds, err) < 0) {
		free(path);
		return -1;
	}
	text = access(path, F_OK) == 0 ? ocs_file_read(path, PLAN_MAX, NULL, err) : NULL;
	plan = text ? json_tokener_parse(text) : NULL;
	if (plan) {
		rc = ocs_nccl_circuits_read(plan, request->node, &circuits, err);
		for (int i = 0; i < circuits.count; i++)
			if (circuits.list[i].interface < section->ninterfaces)
				holds[circuits.list[i].interface] = true;
		ocs_nccl_circuits_free(&circuits);
	}
	json_object_put(plan);
	free(text);
	free(path);
	return rc;
}

int ocs_node_links(const struct ocs_node_request *request, int timeout_s, struct ocs_error *err)
{
	struct ocs_config *config = ocs_config_open(request->fabric, err);
	const struct ocs_node *node;
	const struct ocs_section *section;
	int64_t start = ocs_now_ns();
	int limit_ms, rc = 0;
	bool *holds;

	if (!config)
		return -1;
	node = ocs_fabric_node(config->fabric, request->node);
	section = node ? &config->fabric->sections[node->section] : NULL;
	limit_ms = config->timeouts.link_ms;
	if (limit_ms > timeout_s * 1000)
		limit_ms = timeout_s * 1000;
	if (!node) {
		rc = ocs_error_set(err, OCS_USAGE, "%s knows no node %s", request->fabric,
				   request->node);
	} else if (section->interfaces && config->timeouts.link_ms) {
		holds = ocs_calloc((size_t)section->ninterfaces + 1, sizeof(*holds));
		rc = section->kind == OCS_TORUS || section->kind == OCS_STATIC ?
			     torus_held(request, config->fabric, holds, err) :
			     held_find(request, section, holds, err);
		if (rc == 0)
			rc = ocs_node_links_wait(
				section, holds, start + limit_ms * INT64_C(1000000), limit_ms, err);
		free(holds);
	}
	ocs_config_destroy(config);
	return rc;
}
