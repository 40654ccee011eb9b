/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/config/config.h"
#include "src/scheduler/state.h"
#include "src/rails/layout.h"
#include "src/util/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct ocs_state ocs_state = { .lock = PTHREAD_MUTEX_INITIALIZER, .wake_fd = -1 };

static void fabric_drop(void)
{
	struct ocs_state *s = &ocs_state;

	if (!s->fabric)
		return;
	while (s->allocations)
		ocs_allocation_remove(s->allocations);
	ocs_forgotten_clear_all();
	ocs_waiting_clear_all();
	ocs_near_clear_all();
	ocs_faults_reset();
	for (int i = 0; i < s->fabric->nsections; i++) {
		ocs_placer_destroy(s->sections[i].placer);
		ocs_placer_destroy(s->sections[i].near);
		ocs_occupancy_destroy(s->sections[i].scratch);
	}
	free(s->sections);
	free(s->holds);
	free(s->switches);
	free(s->node_states);
	free(s->node_jobs);
	s->nodes_known = false;
	s->sections = NULL;
	s->holds = NULL;
	s->switches = NULL;
	ocs_config_destroy(s->config);
	s->config = NULL;
	s->fabric = NULL;
}

/* With the lock held; FAULT is NULL for none. */
static void fault_set(const char *fault)
{
	char *copy = fault ? ocs_strdup(fault) : NULL;

	free(ocs_state.fault);
	ocs_state.fault = copy;
}

/* With the lock held; TEXT, taken over, is NULL for unknown. */
static void partitions_set(char *text)
{
	free(ocs_state.partitions);
	ocs_state.partitions = text;
}

/* CONFIG (NULL: it could not be opened) takes the place of the one before.  0, or -1. */
static int config_take(struct ocs_config *config, const char *fault)
{
	struct ocs_state *s = &ocs_state;
	const struct ocs_fabric *fabric;

	if (!config)
		return -1;
	fabric = config->fabric;
	pthread_mutex_lock(&s->lock);
	fabric_drop();
	fault_set(fault);
	partitions_set(NULL);
	s->config = config;
	s->fabric = fabric;
	ocs_fabric_digest(fabric, s->digest);
	s->sections = ocs_calloc((size_t)fabric->nsections + 1, sizeof(*s->sections));
	s->holds = ocs_calloc((size_t)fabric->nnodes + 1, sizeof(*s->holds));
	s->switches = ocs_calloc((size_t)fabric->nswitches + 1, sizeof(*s->switches));
	s->node_states = ocs_calloc((size_t)fabric->nnodes + 1, sizeof(*s->node_states));
	s->node_jobs = ocs_calloc((size_t)fabric->nnodes + 1, sizeof(*s->node_jobs));
	s->nholds = 0;
	for (int i = 0; i < fabric->nsections; i++) {
		const struct ocs_section *section = &fabric->sections[i];

		if (section->kind != OCS_TORUS && section->kind != OCS_STATIC)
			continue;
		s->sections[i].placer = ocs_placer_create(fabric, section);
		s->sections[i].scratch = ocs_occupancy_create(section);
	}
	pthread_mutex_unlock(&s->lock);
	return 0;
}

int ocs_controller_open(const char *spec, struct ocs_error *err)
{
	return config_take(ocs_config_open(spec, err), NULL);
}

int ocs_controller_open_kept(const char *path, const char *fault, struct ocs_error *err)
{
	return config_take(ocs_config_kept(path, err), fault);
}

void ocs_controller_fault_set(const char *fault)
{
	pthread_mutex_lock(&ocs_state.lock);
	fault_set(fault);
	pthread_mutex_unlock(&ocs_state.lock);
}

int ocs_controller_close_kept(const char *path, const char *fault, struct ocs_error *err)
{
	char *text = ocs_config_partitions_kept(path, err);

	pthread_mutex_lock(&ocs_state.lock);
	fault_set(fault);
	partitions_set(text);
	pthread_mutex_unlock(&ocs_state.lock);
	return text ? 0 : -1;
}

void ocs_controller_close(void)
{
	pthread_mutex_lock(&ocs_state.lock);
	fabric_drop();
	fault_set(NULL);
	partitions_set(NULL);
	pthread_mutex_unlock(&ocs_state.lock);
}

const struct ocs_config *ocs_controller_config(void)
{
	return ocs_state.config;
}

const struct ocs_fabric *ocs_controller_fabric(void)
{
	return ocs_state.fabric;
}

int ocs_controller_node(const char *name)
{
	const struct ocs_fabric *fabric = ocs_state.fabric;
	const struct ocs_node *node = fabric ? ocs_fabric_node(fabric, name) : NULL;

	return node ? (int)(node - fabric->nodes) : -1;
}

const char *ocs_controller_node_unit(int node)
{
	return ocs_fabric_node_unit(ocs_state.fabric, node);
}

bool ocs_controller_unit_agrees(int node, const char *topology)
{
	return ocs_fabric_unit_agrees(ocs_state.fabric, node, topology);
}

int ocs_controller_copy(const char *path, const char *partitions, struct ocs_error *err)
{
	/* The names first: they stand for whatever part of the copy is missing later. */
	if (ocs_config_partitions_keep(ocs_state.fabric, partitions, err))
		return -1;
	return ocs_config_keep(ocs_state.config, path, err);
}

int ocs_controller_keeps(const char *spec, const struct ocs_holding *jobs, int count,
			 struct ocs_error *err)
{
	struct ocs_error unread;
	struct ocs_fabric *before = ocs_config_take_fabric(ocs_config_open(spec, &unread));
	int rc = 0;

	for (int i = 0; before && i < count && !rc; i++)
		rc = ocs_fabric_keeps(before, ocs_state.fabric, &jobs[i], err);
	ocs_fabric_destroy(before);
	return rc;
}

void ocs_controller_hook_set(ocs_controller_hook hook)
{
	ocs_state.hook = hook;
}

ocs_controller_hook ocs_controller_hook_get(void)
{
	return ocs_state.hook;
}

void ocs_controller_log_set(void (*log)(bool problem, const char *text))
{
	ocs_state.log = log;
}

void ocs_controller_say(bool problem, const char *format, ...)
{
	char text[OCS_ERROR_TEXT];
	va_list arguments;

	if (!ocs_state.log)
		return;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	ocs_state.log(problem, text);
}

/* Without ocs.yaml: what a job waits for that has a shape, or is in a PARTITION whose jobs all get
 * circuits.  0: for nothing. */
static int request_unread(bool shaped, const char *partition, struct ocs_error *err)
{
	char text[OCS_ERROR_TEXT];
	bool waits = shaped;

	pthread_mutex_lock(&ocs_state.lock);
	if (!waits && ocs_state.partitions)
		waits = ocs_config_partitions_have(ocs_state.partitions, partition);
	snprintf(text, sizeof(text), "%s",
		 ocs_state.fault ? ocs_state.fault : "no ocs.yaml is loaded");
	pthread_mutex_unlock(&ocs_state.lock);
	if (!waits)
		return 0;
	/* Which may be another day; it is no fault of the job's. */
	ocs_error_set(err, OCS_NOT_NOW, "%s", text);
	return shaped ? ocs_error_prefix(err, "no shape is served until ocs.yaml can be read") :
			ocs_error_prefix(err,
					 "no job of partition %s starts until ocs.yaml can be read",
					 partition);
}

bool ocs_controller_partitions_known(void)
{
	bool known;

	pthread_mutex_lock(&ocs_state.lock);
	known = ocs_state.fabric || ocs_state.partitions;
	pthread_mutex_unlock(&ocs_state.lock);
	return known;
}

/* What job_submit/ocs has refused may come by another way, or ocs.yaml has changed since. */
static int rails_fit(struct ocs_controller_request *request, struct ocs_error *err)
{
	struct ocs_rails_layout layout;

	if (ocs_rails_layout_make(&request->shape, request->section->server_xpus,
				  request->section->nic_ports, &layout, err) < 0) {
		err->code = OCS_NEVER;
		return -1;
	}
	request->servers = ocs_rails_layout_nodes(&layout);
	return 0;
}

static int region_fit(struct ocs_controller_request *request, struct ocs_error *err)
{
	const struct ocs_section *section = request->section;

	if (!request->shape.moe) {
		request->servers = ocs_region_servers(section, &request->shape, err);
		return request->servers < 0 ? -1 : 0;
	}
	if (ocs_region_layout_make(section, &request->shape, &request->groups, err) < 0) {
		err->code = OCS_NEVER;
		return -1;
	}
	request->servers = request->groups.groups * request->groups.servers;
	return 0;
}

int ocs_controller_request(uint32_t job, const char *partition, const char *extra,
			   struct ocs_controller_request *request, struct ocs_error *err)
{
	const struct ocs_fabric *fabric = ocs_state.fabric;
	int shaped;

	memset(request, 0, sizeof(*request));
	request->job = job;
	shaped = extra ? ocs_shape_extra_parse(extra, &request->shape, err) : 0;
	if (shaped < 0)
		return -1;
	request->shaped = shaped > 0;
	if (!fabric)
		return request_unread(request->shaped, partition, err);
	request->section = ocs_fabric_section(fabric, partition);
	if (!request->section) {
		if (request->shaped)
			return ocs_error_set(err, OCS_NEVER, "no section of %s serves partition %s",
					     fabric->source, partition ? partition : "?");
		return 0;
	}
	switch (request->section->kind) {
	case OCS_TORUS:
	case OCS_STATIC:
		return request->shaped;
	case OCS_RAILS:
		return request->shaped && rails_fit(request, err) < 0 ? -1 : 1;
	case OCS_DIRECT:
		request->servers = request->shaped ? (int)request->shape.xpus : 0;
		return 1;
	case OCS_REGION:
		return request->shaped && region_fit(request, err) < 0 ? -1 : 1;
	}
	return 0;
}
