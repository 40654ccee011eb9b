/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The optical NICs of a job with experts: addresses, neighbours and routes while it runs. */

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "src/config/config.h"
#include "src/node/forward_work.h"
#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/util/error.h"
#include "src/util/net.h"
#include "src/util/text.h"

#define CIRCUIT 4 /* numbers of one: server, NIC, server, NIC */

bool ocs_node_section_meets(const struct ocs_section *section)
{
	return section->forwarding != OCS_FORWARDING_NONE || section->management ||
	       section->job_addresses;
}

/* Waits until the NICs of server SELF of GROUP, an object of ocsd's reply, that begin with a circuit have a link. */
static int first_links_wait(const struct ocs_node_work *work, struct json_object *group, int self,
			    struct ocs_error *err)
{
	const struct ocs_section *section = work->section;
	int limit_ms = work->config->timeouts.link_ms, rc = 0;
	bool *holds = ocs_calloc((size_t)section->ninterfaces + 1, sizeof(*holds));
	struct json_object *circuits;
	size_t count;

	circuits = ocs_field_array(group, OCS_FIELD_CIRCUITS, &count);
	for (size_t i = 0; i < count; i++) {
		struct json_object *one = json_object_array_get_idx(circuits, i);

		if (!json_object_is_type(one, json_type_array))
			continue;
		for (size_t end = 0; end < CIRCUIT; end += 2) {
			int server = json_object_get_int(json_object_array_get_idx(one, end));
			int nic = json_object_get_int(json_object_array_get_idx(one, end + 1));

			if (server == self && nic >= 0 && nic < section->ninterfaces)
				holds[nic] = true;
		}
	}
	if (limit_ms)
		rc = ocs_node_links_wait(section, holds, ocs_now_ns() + limit_ms * INT64_C(1000000),
					 limit_ms, err);
	free(holds);
	return rc;
}

/* The place of this node among HOSTS, or -1 with ERR. */
static int self_find(const struct ocs_node_work *work, const struct ocs_forward_hosts *hosts,
		     struct ocs_error *err)
{
	for (int h = 0; h < hosts->servers; h++)
		if (strcmp(hosts->host[h].node, work->request->node) == 0)
			return h;
	return ocs_error_set(err, OCS_USAGE, "%s is not a node of job %lu", work->request->node,
			     work->request->job);
}

int ocs_node_region_hold(struct ocs_node_work *work, struct json_object *reply,
			 struct ocs_error *err)
{
	const struct ocs_forward_owner owner = { .job = work->request->job,
						 .epoch = work->request->epoch };
	struct json_object *region = ocs_field(reply, OCS_FIELD_REGION);
	int64_t servers = ocs_field_number(region, OCS_FIELD_SERVERS, 0);
	struct ocs_forward_hosts *hosts = ocs_forward_hosts_rails(
		work->fabric, work->section, ocs_field(reply, OCS_FIELD_HOSTS), err);
	int self = hosts ? self_find(work, hosts, err) : -1, rc = -1, first, group;
	struct json_object *groups;
	size_t count;

	if (self >= 0 && (servers < 1 || hosts->servers % servers)) {
		ocs_error_set(err, OCS_ERROR, "the reply of ocsd has no groups of the job");
	} else if (self >= 0) {
		first = self - self % (int)servers;
		groups = ocs_field_array(region, OCS_FIELD_GROUPS, &count);
		group = first / (int)servers;
		rc = ocs_forward_hold_region(work->folder, &owner, hosts, self, first, (int)servers,
					     err);
		if (rc == 0 && (size_t)group < count &&
		    first_links_wait(work, json_object_array_get_idx(groups, (size_t)group),
				     self - first, err)) {
			/* the NIC, and not the other hosts */
			err->code = OCS_ERROR;
			ocs_forward_drop(work->folder, &owner, NULL);
			rc = -1;
		}
	}
	ocs_forward_hosts_destroy(hosts);
	return rc;
}
