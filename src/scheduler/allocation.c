/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/advice/reason.h"
#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/scheduler/state.h"
#include "src/util/hostlist.h"
#include "src/util/text.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static char *copy_text(const char *text)
{
	return text ? ocs_strdup(text) : NULL;
}

static void allocation_copy(struct ocs_controller_allocation *to,
			    const struct ocs_controller_allocation *from)
{
	*to = *from;
	to->user = copy_text(from->user);
	to->partition = copy_text(from->partition);
	to->section = copy_text(from->section);
	to->shape = copy_text(from->shape);
	to->conn = copy_text(from->conn);
	to->placement = copy_text(from->placement);
	to->demand = copy_text(from->demand);
	to->rings = copy_text(from->rings);
	to->phases = copy_text(from->phases);
	to->moe = copy_text(from->moe);
	to->name = copy_text(from->name);
	to->nodes = copy_text(from->nodes);
}

static void allocation_clear(struct ocs_controller_allocation *pub)
{
	free(pub->user);
	free(pub->partition);
	free(pub->section);
	free(pub->shape);
	free(pub->conn);
	free(pub->placement);
	free(pub->demand);
	free(pub->rings);
	free(pub->phases);
	free(pub->moe);
	free(pub->name);
	free(pub->nodes);
}

void ocs_controller_allocation_free(struct ocs_controller_allocation *allocation)
{
	if (!allocation)
		return;
	allocation_clear(allocation);
	free(allocation);
}

struct ocs_allocation *ocs_allocation_find(uint32_t job, uint64_t epoch)
{
	struct ocs_allocation *at;

	for (at = ocs_state.allocations; at; at = at->next) {
		if (at->pub.job == job && at->pub.epoch == epoch)
			return at;
	}
	return NULL;
}

void ocs_allocation_hold(int node, bool on)
{
	if (on && !ocs_state.holds[node]++)
		ocs_state.nholds++;
	else if (!on && !--ocs_state.holds[node])
		ocs_state.nholds--;
}

static void ports_hold(struct ocs_allocation *allocation, int i, bool on)
{
	if (allocation->holds[i] == on)
		return;
	allocation->holds[i] = on;
	ocs_allocation_hold(allocation->nodes[i], on);
}

static struct ocs_allocation *allocation_add(const struct ocs_controller_allocation *pub,
					     const int *nodes, int count, bool living)
{
	struct ocs_allocation *allocation = ocs_calloc(1, sizeof(*allocation));

	allocation_copy(&allocation->pub, pub);
	allocation->nodes = ocs_calloc((size_t)count + 1, sizeof(*nodes));
	memcpy(allocation->nodes, nodes, (size_t)count * sizeof(*nodes));
	allocation->holds = ocs_calloc((size_t)count + 1, sizeof(*allocation->holds));
	allocation->nnodes = count;
	allocation->living = true;
	allocation->next = ocs_state.allocations;
	ocs_state.allocations = allocation;
	if (!living)
		ocs_allocation_end(allocation);
	if (pub->epoch > ocs_state.epoch)
		ocs_state.epoch = pub->epoch;
	return allocation;
}

void ocs_allocation_remove(struct ocs_allocation *allocation)
{
	struct ocs_allocation **at = &ocs_state.allocations;

	while (*at != allocation)
		at = &(*at)->next;
	*at = allocation->next;
	for (int i = 0; i < allocation->nnodes; i++)
		ports_hold(allocation, i, false);
	allocation_clear(&allocation->pub);
	free(allocation->nodes);
	free(allocation->holds);
	free(allocation);
	ocs_state.changed = true;
}

void ocs_allocation_end(struct ocs_allocation *allocation)
{
	allocation->living = false;
	/* A subscription under way has called it living. */
	allocation->listed = false;
	for (int i = 0; i < allocation->nnodes; i++)
		ports_hold(allocation, i, true);
}

int ocs_allocation_nodes(const char *nodes, int **indexes)
{
	char **names;
	int count = ocs_hostlist_expand(nodes, (size_t)ocs_state.fabric->nnodes, &names, NULL);
	int used = 0;

	*indexes = ocs_calloc(count > 0 ? (size_t)count : 1, sizeof(**indexes));
	for (int i = 0; i < count; i++) {
		const struct ocs_node *node = ocs_fabric_node(ocs_state.fabric, names[i]);

		if (node)
			(*indexes)[used++] = (int)(node - ocs_state.fabric->nodes);
	}
	if (count >= 0)
		ocs_names_free(names, (size_t)count);
	return used;
}

void ocs_allocation_hold_unknown(uint32_t job, uint64_t epoch, const char *nodes)
{
	struct ocs_controller_allocation pub = { .job = job, .epoch = epoch };
	int *indexes, count;

	if (ocs_allocation_find(job, epoch))
		return;
	count = ocs_allocation_nodes(nodes, &indexes);
	allocation_add(&pub, indexes, count, false)->gone = true;
	free(indexes);
}

static uint64_t next_epoch(void)
{
	struct timespec now;
	uint64_t epoch;

	clock_gettime(CLOCK_REALTIME, &now);
	epoch = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
	if (epoch <= ocs_state.epoch)
		epoch = ocs_state.epoch + 1;
	return epoch;
}

/* No other allocation may hold any of NODES. */
static int check_free(const int *nodes, int count, struct ocs_error *err)
{
	const struct ocs_fabric *fabric = ocs_state.fabric;
	bool *mine;
	int rc = 0;

	for (int i = 0; i < count; i++) {
		if (ocs_state.holds[nodes[i]])
			return ocs_error_set(
				err, OCS_NOT_NOW,
				"the circuits of an earlier job on node %s are not taken down yet",
				fabric->nodes[nodes[i]].name);
	}
	mine = ocs_calloc((size_t)fabric->nnodes + 1, sizeof(*mine));
	for (int i = 0; i < count; i++)
		mine[nodes[i]] = true;
	for (struct ocs_allocation *at = ocs_state.allocations; at && !rc; at = at->next) {
		for (int i = 0; at->living && i < at->nnodes && !rc; i++) {
			if (mine[at->nodes[i]] && !at->holds[i])
				rc = ocs_error_set(err, OCS_NOT_NOW, "node %s belongs to job %u",
						   fabric->nodes[at->nodes[i]].name, at->pub.job);
		}
	}
	free(mine);
	return rc;
}

static int nodes_compare(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* Places on exactly NODES and verifies; fills the placement's part of PUB. */
static int shape_place(const struct ocs_controller_request *request, const int *nodes, int count,
		       struct ocs_controller_allocation *pub, struct ocs_error *err)
{
	struct ocs_section_state *state = &ocs_state.sections[request->section->index];
	struct ocs_placement *placement;
	int *sorted, rc = 0;

	ocs_occupancy_reset(state->scratch);
	ocs_occupancy_fill(state->scratch);
	for (int i = 0; i < count; i++)
		ocs_occupancy_node_set(state->scratch, ocs_state.fabric, nodes[i], true);
	ocs_faults_apply(state->scratch);
	placement = ocs_reason_place(state->placer, state->scratch, &request->shape, count, err);
	if (!placement)
		return -1;
	sorted = ocs_calloc((size_t)count + 1, sizeof(*sorted));
	memcpy(sorted, nodes, (size_t)count * sizeof(*sorted));
	qsort(sorted, (size_t)count, sizeof(*sorted), nodes_compare);
	if (placement->nnodes != count ||
	    memcmp(sorted, placement->nodes, (size_t)count * sizeof(*sorted)) != 0)
		rc = ocs_error_set(err, OCS_ERROR,
				   "the placement does not cover the nodes of the allocation");
	else
		rc = ocs_placement_verify(ocs_state.fabric, state->scratch, placement, err);
	if (rc == 0) {
		pub->placement = ocs_strdup(placement->compact);
		pub->cubes = placement->ncubes;
		pub->circuits = placement->ncircuits;
		pub->xpus = request->shape.xpus;
		pub->idle = (long)count * request->section->tile[0] * request->section->tile[1] *
				    request->section->tile[2] -
			    pub->xpus;
	}
	free(sorted);
	ocs_placement_destroy(placement);
	return rc;
}

static char *node_list(const int *nodes, int count)
{
	char **names = ocs_calloc((size_t)count + 1, sizeof(*names));
	char *list;

	for (int i = 0; i < count; i++)
		names[i] = ocs_state.fabric->nodes[nodes[i]].name;
	list = ocs_hostlist_compress(names, (size_t)count);
	free(names);
	return list;
}

/* Groups are servers in a row, in the order of ocs.yaml. */
static char *groups_list(const int *nodes, int count)
{
	int *sorted = ocs_calloc((size_t)count + 1, sizeof(*sorted));
	char *list;

	memcpy(sorted, nodes, (size_t)count * sizeof(*sorted));
	qsort(sorted, (size_t)count, sizeof(*sorted), nodes_compare);
	list = node_list(sorted, count);
	free(sorted);
	return list;
}

static int groups_check(const struct ocs_controller_request *request, const int *nodes, int count,
			struct ocs_error *err)
{
	int *servers = ocs_calloc((size_t)count + 1, sizeof(*servers)), rc;

	for (int i = 0; i < count; i++)
		servers[i] = ocs_state.fabric->nodes[nodes[i]].server;
	qsort(servers, (size_t)count, sizeof(*servers), nodes_compare);
	rc = ocs_region_check(request->section, &request->groups, servers, count, err);
	free(servers);
	return rc;
}

int ocs_controller_begin(const struct ocs_controller_request *request, const int *nodes, int count,
			 uid_t uid, const char *user, const char *partition,
			 struct ocs_controller_allocation **out, struct ocs_error *err)
{
	struct ocs_controller_allocation *pub = ocs_calloc(1, sizeof(*pub));
	char text[OCS_SHAPE_TEXT];
	int rc;

	pthread_mutex_lock(&ocs_state.lock);
	pub->job = request->job;
	pub->uid = uid;
	pub->user = ocs_strdup(user ? user : "");
	pub->partition = ocs_strdup(partition ? partition : "");
	pub->section = ocs_strdup(request->section->name);
	pub->planned = request->section->kind == OCS_DIRECT;
	if (request->shaped) {
		pub->shape = ocs_strdup(ocs_shape_named_format(&request->shape, text));
		pub->conn = ocs_strdup(ocs_shape_conn_format(&request->shape, text));
		if (request->section->kind == OCS_RAILS || request->section->kind == OCS_REGION) {
			pub->xpus = request->shape.xpus;
			pub->idle = (long)count * request->section->server_xpus - pub->xpus;
			pub->idle = pub->idle < 0 ? 0 : pub->idle; /* XPUs are not described */
		}
		if (request->shape.phases)
			pub->phases = ocs_strdup(ocs_phases_name(request->shape.phases));
		if (request->shape.moe) {
			char wish[OCS_MOE_WISH_TEXT];

			pub->moe = ocs_strdup(ocs_moe_wish_format(request->shape.moe, wish));
			pub->name = copy_text(request->name);
		}
	}
	pub->demand = request->demand ? ocs_strdup(request->demand) : NULL;
	pub->rings = request->rings ? ocs_strdup(request->rings) : NULL;
	pub->nodes = request->groups.groups ? groups_list(nodes, count) : node_list(nodes, count);
	if (!ocs_state.up)
		rc = ocs_error_set(err, OCS_UNREACHABLE, "ocsd is not reachable");
	else if (ocs_state.mute)
		rc = ocs_error_set(err, OCS_UNREACHABLE, OCS_MUTE);
	else
		rc = check_free(nodes, count, err);
	if (rc == 0 && request->groups.groups)
		rc = groups_check(request, nodes, count, err);
	if (rc == 0 && ocs_state.sections[request->section->index].placer)
		rc = shape_place(request, nodes, count, pub, err);
	if (rc == 0) {
		pub->epoch = next_epoch();
		ocs_link_send(ocs_link_commit(&allocation_add(pub, nodes, count, true)->pub));
	}
	pthread_mutex_unlock(&ocs_state.lock);
	if (rc)
		ocs_controller_allocation_free(pub);
	else
		*out = pub;
	return rc;
}

static void allocation_end(struct ocs_allocation *allocation, const char *reason)
{
	struct json_object *line;

	ocs_allocation_end(allocation);
	line = ocs_request_job(OCS_OP_END, allocation->pub.job, allocation->pub.epoch);
	ocs_field_add_text(line, OCS_FIELD_REASON, reason ? reason : "");
	ocs_link_send(line);
}

void ocs_controller_end(uint32_t job, uint64_t epoch, const char *reason)
{
	pthread_mutex_lock(&ocs_state.lock);
	for (struct ocs_allocation *at = ocs_state.allocations; at; at = at->next) {
		if (at->pub.job == job && at->living && (!epoch || at->pub.epoch == epoch))
			allocation_end(at, reason);
	}
	pthread_mutex_unlock(&ocs_state.lock);
}

bool ocs_controller_ready(uint32_t job, uint64_t epoch)
{
	const struct ocs_allocation *allocation;
	bool ready;

	pthread_mutex_lock(&ocs_state.lock);
	allocation = ocs_allocation_find(job, epoch);
	ready = allocation && allocation->ready;
	pthread_mutex_unlock(&ocs_state.lock);
	return ready;
}

bool ocs_controller_readied(void)
{
	bool any;

	pthread_mutex_lock(&ocs_state.lock);
	any = ocs_state.readied;
	ocs_state.readied = false;
	pthread_mutex_unlock(&ocs_state.lock);
	return any;
}

void ocs_controller_unheard(uint32_t job, uint64_t epoch, const char *nodes)
{
	struct json_object *line = ocs_request_job(OCS_OP_UNHEARD, job, epoch);

	ocs_field_add_text(line, OCS_FIELD_ENDED, nodes);
	pthread_mutex_lock(&ocs_state.lock);
	ocs_link_send(line);
	pthread_mutex_unlock(&ocs_state.lock);
}

void ocs_controller_node_lost(uint32_t job, int node)
{
	pthread_mutex_lock(&ocs_state.lock);
	for (struct ocs_allocation *at = ocs_state.allocations; at; at = at->next) {
		for (int i = 0; at->pub.job == job && at->living && i < at->nnodes; i++) {
			if (at->nodes[i] == node)
				ports_hold(at, i, true);
		}
	}
	pthread_mutex_unlock(&ocs_state.lock);
}

void ocs_controller_gone(uint32_t job, uint64_t epoch)
{
	struct ocs_allocation *allocation;

	pthread_mutex_lock(&ocs_state.lock);
	allocation = ocs_allocation_find(job, epoch);
	if (allocation && !allocation->gone) {
		if (allocation->living)
			allocation_end(allocation, "the job is gone");
		allocation->gone = true;
		ocs_link_send(ocs_request_job(OCS_OP_GONE, job, epoch));
	}
	pthread_mutex_unlock(&ocs_state.lock);
}

void ocs_controller_restore(const struct ocs_controller_allocation *allocation, const int *nodes,
			    int count, bool living)
{
	pthread_mutex_lock(&ocs_state.lock);
	if (!ocs_allocation_find(allocation->job, allocation->epoch))
		allocation_add(allocation, nodes, count, living);
	pthread_mutex_unlock(&ocs_state.lock);
}

int ocs_controller_holders(struct ocs_controller_holder *holders, int max)
{
	int count = 0;

	pthread_mutex_lock(&ocs_state.lock);
	for (struct ocs_allocation *at = ocs_state.allocations; at && count < max; at = at->next) {
		holders[count].job = at->pub.job;
		holders[count].epoch = at->pub.epoch;
		holders[count].living = at->living;
		holders[count++].gone = at->gone;
	}
	pthread_mutex_unlock(&ocs_state.lock);
	return count;
}

bool ocs_controller_held(int node)
{
	bool held;

	pthread_mutex_lock(&ocs_state.lock);
	held = ocs_state.holds[node] > 0;
	pthread_mutex_unlock(&ocs_state.lock);
	return held;
}
