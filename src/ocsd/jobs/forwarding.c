/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Hosts that forward for each other need the MACs of each other's interfaces, and those
 * that live in a machine are known there only: each host tells its own when it asks for
 * the plan, and the answer waits until all have.  Kept in memory: a host whose connection
 * is lost asks, and tells, again. */

#include "src/ocsd/jobs/forwarding.h"
#include "src/ocsd/jobs/allocation.h"

#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/util/text.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#define MAC_LENGTH 17

bool ocsd_forward_wanted(const struct ocsd_job *job)
{
	return job->section && job->nodes.count > 1 &&
	       (job->section->forwarding != OCS_FORWARDING_NONE ||
		((job->section->management || job->section->job_addresses) && job->menu));
}

static bool mac_good(struct json_object *mac)
{
	const char *text =
		json_object_is_type(mac, json_type_string) ? json_object_get_string(mac) : "";

	if (strlen(text) != MAC_LENGTH)
		return false;
	for (int i = 0; i < MAC_LENGTH; i++)
		if (i % 3 == 2 ? text[i] != ':' : !isxdigit((unsigned char)text[i]))
			return false;
	return true;
}

/* A list of DEGREE MACs. */
static bool macs_good(struct json_object *list, int degree)
{
	if (!json_object_is_type(list, json_type_array) ||
	    json_object_array_length(list) != (size_t)degree)
		return false;
	for (int i = 0; i < degree; i++)
		if (!mac_good(json_object_array_get_idx(list, i)))
			return false;
	return true;
}

int ocsd_forward_announce(struct ocsd_job *job, const char *node, struct json_object *request,
			  struct ocs_error *err)
{
	struct json_object *macs = ocs_field(request, OCS_FIELD_MACS), *own;
	struct json_object *forward = ocs_field(request, OCS_FIELD_FORWARD_MACS);
	const char *address = ocs_field_text(request, OCS_FIELD_ADDRESS, NULL);
	int index = ocsd_job_node(job, node), devices;
	struct in_addr parsed;

	if (!ocsd_forward_wanted(job))
		return ocs_error_set(err, OCS_USAGE, "the hosts of job %u do not forward",
				     job->job);
	devices = ocs_section_devices(job->section);
	if (!macs_good(macs, devices) || (forward && !macs_good(forward, devices)))
		return ocs_error_set(err, OCS_USAGE, "macs and forward_macs are lists of %d MACs",
				     devices);
	if (job->section->management && (!address || inet_pton(AF_INET, address, &parsed) != 1))
		return ocs_error_set(
			err, OCS_USAGE,
			"address is the IPv4 address of the node on its management network");
	own = json_object_new_object();
	ocs_field_add_text(own, OCS_FIELD_NODE, node);
	json_object_object_add(own, OCS_FIELD_MACS, json_object_get(macs));
	if (job->section->management)
		ocs_field_add_text(own, OCS_FIELD_ADDRESS, address);
	if (forward)
		json_object_object_add(own, OCS_FIELD_FORWARD_MACS, json_object_get(forward));
	if (!job->prolog.hosts)
		job->prolog.hosts = ocs_calloc(job->nodes.count, sizeof(*job->prolog.hosts));
	if (!job->prolog.hosts[index])
		job->prolog.nhosts++;
	json_object_put(job->prolog.hosts[index]);
	job->prolog.hosts[index] = own;
	return 0;
}

bool ocsd_forward_met(const struct ocsd_job *job)
{
	return job->prolog.nhosts == job->nodes.count;
}

struct json_object *ocsd_forward_hosts(const struct ocsd_job *job)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < job->nodes.count; i++)
		json_object_array_add(list, json_object_get(job->prolog.hosts[i]));
	return list;
}
