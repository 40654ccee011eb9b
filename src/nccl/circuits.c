/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/nccl/circuits.h"

#include <json-c/json.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "src/util/error.h"
#include "src/util/text.h"

#define INTERFACES_MAX 1024 /* of a server */

/* A circuit of the plan: transmitter (duplex: one end) and receiver. */
struct circuit {
	int server[2], interface[2];
	int group;
};

struct plan {
	struct json_object *nodes;
	int servers;
	bool directed;
	struct circuit *circuits;
	int ncircuits;
	int *ring; /* ring +1 that this server is in, or NULL */
	int length, group;
};

static struct json_object *json_member(struct json_object *json, const char *name,
				       enum json_type type)
{
	struct json_object *found = NULL;

	if (json_object_is_type(json, json_type_object))
		json_object_object_get_ex(json, name, &found);
	return json_object_is_type(found, type) ? found : NULL;
}

/* Element INDEX of ARRAY as a number from 0 to BELOW - 1, or -1. */
static int number_at(struct json_object *array, size_t index, int below)
{
	struct json_object *json;

	if (!json_object_is_type(array, json_type_array) ||
	    index >= json_object_array_length(array))
		return -1;
	json = json_object_array_get_idx(array, index);
	if (!json_object_is_type(json, json_type_int) || json_object_get_int64(json) < 0 ||
	    json_object_get_int64(json) >= below)
		return -1;
	return json_object_get_int(json);
}

static int circuits_parse(struct plan *plan, struct json_object *list, struct ocs_error *err)
{
	size_t count = json_object_array_length(list);

	plan->circuits = ocs_calloc(count + 1, sizeof(*plan->circuits));
	for (size_t i = 0; i < count; i++) {
		struct json_object *json = json_object_array_get_idx(list, i);
		struct json_object *group = json_member(json, "group", json_type_int);
		struct circuit *circuit = &plan->circuits[plan->ncircuits++];

		for (int end = 0; end < 2; end++) {
			struct json_object *pair =
				json_member(json, end ? "b" : "a", json_type_array);

			circuit->server[end] = number_at(pair, 0, plan->servers);
			circuit->interface[end] = number_at(pair, 1, INTERFACES_MAX);
			if (circuit->server[end] < 0 || circuit->interface[end] < 0)
				return ocs_error_set(err, OCS_USAGE,
						     "the plan's circuit %zu is malformed", i);
		}
		circuit->group = group ? json_object_get_int(group) : -1;
	}
	return 0;
}

/* The first ring of the group that holds all servers, which is what NCCL's first
 * communicator goes round; else of the first group that SERVER is in. */
static void ring_find(struct plan *plan, struct json_object *groups, int server)
{
	for (size_t g = 0; groups && g < json_object_array_length(groups); g++) {
		struct json_object *rings = json_member(json_object_array_get_idx(groups, g),
							"rings", json_type_array),
				   *ring = NULL;
		bool inside = false;
		size_t length;

		if (rings && json_object_array_length(rings))
			ring = json_object_array_get_idx(rings, 0);
		if (!json_object_is_type(ring, json_type_array))
			continue;
		length = json_object_array_length(ring);
		for (size_t i = 0; i < length; i++)
			inside |= number_at(ring, i, plan->servers) == server;
		if (!inside || length < 2 || (plan->ring && length < (size_t)plan->servers))
			continue;
		free(plan->ring);
		plan->ring = ocs_calloc(length, sizeof(int));
		plan->length = (int)length;
		plan->group = (int)g;
		for (size_t i = 0; i < length; i++)
			plan->ring[i] = number_at(ring, i, plan->servers);
		if (length == (size_t)plan->servers)
			return;
	}
}

/* The circuit of number WHICH among those from FROM to TO, or NULL.  *OUT and *IN are
 * the interfaces at FROM and at TO. */
static const struct circuit *edge_find(const struct plan *plan, int from, int to, int which,
				       int *out, int *in)
{
	for (int i = 0; i < plan->ncircuits; i++) {
		const struct circuit *circuit = &plan->circuits[i];
		int end =
			circuit->server[0] == from && circuit->server[1] == to ? 0 :
			!plan->directed && circuit->server[1] == from && circuit->server[0] == to ?
										 1 :
										 -1;

		if (end < 0 || circuit->group != plan->group || which-- > 0)
			continue;
		*out = circuit->interface[end];
		*in = circuit->interface[!end];
		return circuit;
	}
	return NULL;
}

/* As many as the thinnest edge of the ring has circuits: every server has to come to
 * the same number, and circuit c of an edge is channel c at both its ends. */
static void passages_find(const struct plan *plan, int server, struct ocs_nccl_circuits *circuits)
{
	int most = INT_MAX, at = 0, out, in, far;

	for (int i = 0; i < plan->length; i++) {
		int count = 0;

		while (edge_find(plan, plan->ring[i], plan->ring[(i + 1) % plan->length], count,
				 &out, &in))
			count++;
		if (count < most)
			most = count;
		if (plan->ring[i] == server)
			at = i;
	}
	circuits->passages = ocs_calloc(most + 1, sizeof(*circuits->passages));
	for (int c = 0; c < most; c++) {
		edge_find(plan, server, plan->ring[(at + 1) % plan->length], c, &out, &far);
		edge_find(plan, plan->ring[(at + plan->length - 1) % plan->length], server, c, &far,
			  &in);
		circuits->passages[circuits->npassages++] = (struct ocs_nccl_passage){ in, out };
	}
}

/* Where each interface sends: [server * degree + interface] to the same, DARK or SILENT. */
enum { DARK = -1, SILENT = -2 /* receives only */ };

static int *peers_list(const struct plan *plan, int *degree)
{
	int *peers;

	*degree = 1;
	for (int i = 0; i < plan->ncircuits; i++)
		for (int end = 0; end < 2; end++)
			if (plan->circuits[i].interface[end] >= *degree)
				*degree = plan->circuits[i].interface[end] + 1;
	peers = ocs_calloc((size_t)plan->servers * *degree, sizeof(int));
	for (int i = 0; i < plan->servers * *degree; i++)
		peers[i] = DARK;
	for (int i = 0; i < plan->ncircuits; i++) {
		const struct circuit *circuit = &plan->circuits[i];
		int a = circuit->server[0] * *degree + circuit->interface[0];
		int b = circuit->server[1] * *degree + circuit->interface[1];

		peers[a] = b;
		if (!plan->directed)
			peers[b] = a;
		else if (peers[b] == DARK)
			peers[b] = SILENT;
	}
	return peers;
}

/* Interface number WHICH of those of SERVER that hold circuits, as index of PEERS, or -1. */
static int interface_held(const int *peers, int degree, int server, int which)
{
	for (int i = server * degree; i < (server + 1) * degree; i++)
		if (peers[i] != DARK && which-- == 0)
			return i;
	return -1;
}

/* Channel c takes interface c of those with circuits at every server. */
static void hops_count(const struct plan *plan, struct ocs_nccl_circuits *circuits)
{
	int degree, *peers = peers_list(plan, &degree);
	bool more = true;

	for (int c = 0; more; c++) {
		int astray = 0;

		for (int i = 0; i < plan->length && more; i++) {
			int out = interface_held(peers, degree, plan->ring[i], c);
			int in = interface_held(peers, degree, plan->ring[(i + 1) % plan->length],
						c);

			more = out >= 0 && in >= 0;
			astray += more && peers[out] != in;
		}
		if (more) {
			circuits->hops += plan->length;
			circuits->astray += astray;
		}
	}
	free(peers);
}

static int port_compare(const void *a, const void *b)
{
	const struct ocs_nccl_circuit *x = a, *y = b;

	return x->interface != y->interface ? x->interface - y->interface :
					      strcmp(x->peer, y->peer);
}

static void circuits_of(const struct plan *plan, int server, struct ocs_nccl_circuits *circuits)
{
	circuits->list = ocs_calloc(2 * (size_t)plan->ncircuits + 1, sizeof(*circuits->list));
	for (int i = 0; i < plan->ncircuits; i++)
		for (int end = 0; end < 2; end++) {
			const struct circuit *circuit = &plan->circuits[i];
			const char *peer = json_object_get_string(
				json_object_array_get_idx(plan->nodes, circuit->server[!end]));

			if (circuit->server[end] == server)
				circuits->list[circuits->count++] = (struct ocs_nccl_circuit){
					.interface = circuit->interface[end],
					.peer = ocs_strdup(peer ? peer : ""),
					.peer_interface = circuit->interface[!end],
				};
		}
	qsort(circuits->list, circuits->count, sizeof(*circuits->list), port_compare);
}

int ocs_nccl_circuits_read(struct json_object *json, const char *node,
			   struct ocs_nccl_circuits *circuits, struct ocs_error *err)
{
	struct json_object *list = json_member(json, "circuits", json_type_array);
	struct plan plan = { .nodes = json_member(json, "nodes", json_type_array) };
	int server = -1, rc;

	memset(circuits, 0, sizeof(*circuits));
	if (!plan.nodes || !list)
		return ocs_error_set(err, OCS_USAGE, "the plan has no list of nodes or circuits");
	plan.servers = (int)json_object_array_length(plan.nodes);
	plan.directed = json_object_get_boolean(json_member(json, "directed", json_type_boolean));
	for (int i = 0; i < plan.servers; i++) {
		const char *name = json_object_get_string(json_object_array_get_idx(plan.nodes, i));

		if (name && strcmp(name, node) == 0)
			server = i;
	}
	if (server < 0)
		return ocs_error_set(err, OCS_USAGE, "the plan has no node %s", node);
	rc = circuits_parse(&plan, list, err);
	if (rc == 0) {
		circuits_of(&plan, server, circuits);
		ring_find(&plan, json_member(json, "groups", json_type_array), server);
		if (plan.ring) {
			passages_find(&plan, server, circuits);
			hops_count(&plan, circuits);
		}
	}
	free(plan.circuits);
	free(plan.ring);
	return rc;
}

void ocs_nccl_circuits_free(struct ocs_nccl_circuits *circuits)
{
	for (int i = 0; i < circuits->count; i++)
		free(circuits->list[i].peer);
	free(circuits->list);
	free(circuits->passages);
	memset(circuits, 0, sizeof(*circuits));
}
