/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* TopologyPlugin=topology/ocs: owns the model of the fabric (ocs.yaml, read by
 * slurmctld alone) and lets select/cons_tres_ocs choose the nodes of shaped jobs;
 * all else is Slurm's plain topology. */

#include "src/plugins/compat/compat.h"
#include "src/plugins/compat/conf.h"
#include "src/scheduler/scheduler.h"

#include <stdlib.h>

OCS_EXPORT const char plugin_name[] = "topology of optical circuit switches";
OCS_EXPORT const char plugin_type[] = "topology/ocs";
OCS_EXPORT const uint32_t plugin_id = OCS_TOPOLOGY_ID;
OCS_EXPORT const uint32_t plugin_version = SLURM_VERSION_NUMBER;

/* What `scontrol show topology` carries. */
struct report {
	struct ocs_controller_record *records;
	uint32_t count;
};

static void *ocs_compat_base(void)
{
	static void *handle;

	if (!handle)
		handle = ocs_compat_open(OCS_TOPOLOGY_BASE);
	return handle;
}

/* What was read lately, by init(). */
static bool fresh;

/* A file that cannot be read does not keep slurmctld from starting, nor jobs without a shape
 * from running: it goes on with the copy of the last one that it took, else without shapes. */
static void keep_accepted(const char *fault)
{
	char *copy = ocs_conf_accepted(), *partitions = ocs_conf_partitions();
	struct ocs_error err, unknown;

	if (!ocs_controller_open_kept(copy, fault, &err))
		ocs_slurm_error("%s; what was read before is kept: %s", fault, copy);
	else if (!ocs_controller_close_kept(partitions, fault, &unknown))
		ocs_slurm_error(
			"%s; no copy of an earlier one can be used (%s): shapes are refused, and jobs in partitions of rail and direct sections wait, until the file is mended and read with scontrol reconfigure",
			fault, err.text);
	else
		ocs_slurm_error(
			"%s; no copy of an earlier one can be used (%s), nor is it known which partitions had circuits for all of their jobs (%s): shapes are refused, and JOBS OF RAIL AND DIRECT SECTIONS RUN WITHOUT CIRCUITS, until the file is mended and read with scontrol reconfigure",
			fault, err.text, unknown.text);
	xfree(partitions);
	xfree(copy);
}

static void read_fabric(void)
{
	char *path = get_extra_conf_path("ocs.yaml");
	struct ocs_error err;

	if (!ocs_controller_open(path, &err)) {
		ocs_slurm_info("read %s", path);
	} else if (ocs_controller_fabric()) {
		ocs_controller_fault_set(err.text);
		ocs_slurm_error("%s; what was read before is kept", err.text);
	} else if (getenv("SLURMCTLD_RECONF_PARENT_FD")) {
		/* The process that reconfigures goes on. */
		ocs_slurm_fatal("%s", err.text);
	} else {
		keep_accepted(err.text);
	}
	fresh = true;
	xfree(path);
}

OCS_EXPORT int init(void)
{
	if (!ocs_compat_base())
		return SLURM_ERROR;
	if (running_in_slurmctld()) {
		if (ocs_conf_forbids())
			ocs_slurm_fatal("%s", ocs_conf_forbids());
		read_fabric();
	}
	ocs_slurm_verbose("%s loaded", plugin_name);
	return SLURM_SUCCESS;
}

OCS_EXPORT OCS_FINI_TYPE fini(void)
{
	OCS_FINI_RETURN;
}

/* Says once what Slurm knows otherwise of the nodes. */
static void compare_nodes(const struct ocs_fabric *fabric)
{
	int missing = 0, moved = 0, first_missing = 0, first_moved = 0;

	for (int i = 0; i < fabric->nnodes; i++) {
		const node_record_t *node = find_node_record2(fabric->nodes[i].name);

		if (!node && !missing++)
			first_missing = i;
		if (node && !ocs_controller_unit_agrees(i, ocs_compat_topology(node)) && !moved++)
			first_moved = i;
	}
	if (missing)
		ocs_slurm_error(
			"%d nodes of %s are not in slurm.conf (the first is %s); no shape will use them",
			missing, fabric->source, fabric->nodes[first_missing].name);
	if (moved)
		ocs_slurm_error(
			"%d nodes have a Topology= in Slurm that contradicts %s, which is what counts (the first is %s, in %s)",
			moved, fabric->source, fabric->nodes[first_moved].name,
			ocs_controller_node_unit(first_moved));
}

static void ocs_topology_build(void)
{
	const struct ocs_fabric *fabric;

	/* A backup that takes over once more has read it long ago. */
	if (running_in_slurmctld() && !fresh && !ocs_controller_link_runs())
		read_fabric();
	fresh = false;
	fabric = ocs_controller_fabric();
	if (fabric)
		compare_nodes(fabric);
}

/* Shrinks the node map of a job that asks something of the fabric. */
static int ocs_topology_eval(topology_eval_t *eval)
{
	ocs_controller_hook hook = ocs_controller_hook_get();
	struct ocs_controller_request request;
	job_record_t *job = eval->job_ptr;
	static uint32_t last;
	struct ocs_error err;

	if (hook)
		return hook(eval);
	if (!job->extra || !job->job_id)
		return SLURM_SUCCESS;
	if (ocs_controller_request(job->job_id, NULL, job->extra, &request, &err) >= 0 &&
	    !request.shaped)
		return SLURM_SUCCESS;
	if (last != job->job_id)
		ocs_slurm_error(
			"%pJ asks for a shape, but slurm.conf lacks SelectType=select/cons_tres_ocs",
			job);
	last = job->job_id;
	return ESLURM_REQUESTED_TOPO_CONFIG_UNAVAILABLE;
}

static uint8_t *node_states(void)
{
	const struct ocs_fabric *fabric = ocs_controller_fabric();
	int nnodes = fabric ? fabric->nnodes : 0;
	uint8_t *states = xcalloc(nnodes + 1, sizeof(*states));

	for (int i = 0; i < nnodes; i++) {
		node_record_t *node = find_node_record2(fabric->nodes[i].name);

		states[i] = ocs_compat_node_state(node);
	}
	return states;
}

static bool ocs_topology_get(topology_data_t type, void *data, int *rc)
{
	dynamic_plugin_data_t *wrapped;
	struct report *report;
	uint8_t *states;

	if (type != TOPO_DATA_TOPOLOGY_PTR || !running_in_slurmctld())
		return false;
	report = xmalloc(sizeof(*report));
	states = node_states();
	/* Slurm does not say who asks. */
	report->count = (uint32_t)ocs_controller_report(
		states, !(slurm_conf.private_data & PRIVATE_DATA_JOBS), &report->records);
	xfree(states);
	wrapped = xmalloc(sizeof(*wrapped));
	wrapped->data = report;
	wrapped->plugin_id = plugin_id;
	*(dynamic_plugin_data_t **)data = wrapped;
	*rc = SLURM_SUCCESS;
	return true;
}

static void ocs_topology_report_free(void *data)
{
	struct report *report = data;

	if (!report)
		return;
	ocs_controller_report_free(report->records, (int)report->count);
	xfree(report);
}

static int ocs_topology_report_pack(void *data, buf_t *buffer, uint16_t version)
{
	struct report *report = data;

	pack32(report->count, buffer);
	for (uint32_t i = 0; i < report->count; i++) {
		packstr(report->records[i].name, buffer);
		packstr(report->records[i].nodes, buffer);
		packstr(report->records[i].text, buffer);
	}
	return SLURM_SUCCESS;
}

/* Unpacks a string into the C library's memory, where records live. */
static int unpack_text(char **text, buf_t *buffer)
{
	char *unpacked = NULL;
	uint32_t length;

	if (unpackstr_xmalloc(&unpacked, &length, buffer))
		return -1;
	*text = strdup(unpacked ? unpacked : "");
	xfree(unpacked);
	return *text ? 0 : -1;
}

static int ocs_topology_report_unpack(void **data, buf_t *buffer, uint16_t version)
{
	struct report *report = xmalloc(sizeof(*report));
	uint32_t count;

	*data = report;
	/* Each record takes twelve bytes of lengths at least. */
	if (unpack32(&count, buffer) || count > remaining_buf(buffer) / 12)
		return SLURM_ERROR;
	report->records = calloc(count ? count : 1, sizeof(*report->records));
	if (!report->records)
		return SLURM_ERROR;
	report->count = count;
	for (uint32_t i = 0; i < count; i++) {
		struct ocs_controller_record *record = &report->records[i];

		if (unpack_text(&record->name, buffer) || unpack_text(&record->nodes, buffer) ||
		    unpack_text(&record->text, buffer))
			return SLURM_ERROR;
	}
	return SLURM_SUCCESS;
}

static int ocs_topology_report_print(void *data, char *names, char **out)
{
	struct report *report = data;
	char *text;

	*out = NULL;
	if (!report)
		return SLURM_SUCCESS;
	text = ocs_controller_report_print(report->records, (int)report->count, names);
	if (*text)
		*out = xstrdup(text);
	else if (names)
		error("%s is no section, cube, switch or node of the fabric", names);
	free(text);
	return SLURM_SUCCESS;
}

#include "src/plugins/compat/topology_entries.h"
