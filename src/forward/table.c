/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* One path for each pair, agreeing on suffixes: the states of a packet for T are
 * (server, port it came by), and each state has at most one way on. */

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "src/forward/internal.h"
#include "src/util/error.h"
#include "src/util/text.h"

static uint8_t *entry_at(const struct ocs_forward *f, int server, int in, int dst)
{
	return &f->out[((size_t)server * (f->degree + 1) + in) * f->servers + dst];
}

uint8_t ocs_forward_out(const struct ocs_forward *forward, int server, int in, int dst)
{
	return *entry_at(forward, server, in, dst);
}

static const struct ocs_forward_link *link_at(const struct ocs_forward *f, int server, int port)
{
	return &f->link[(size_t)server * f->degree + port];
}

/* A way through the states, as ports; grows while it is looked for. */
struct way {
	int dst;
	uint8_t *ports; /* one per hop */
	long worst;	/* most routes on a link of it */
};

/* Follows PATH (LENGTH servers) from its hop AT, standing at state (path[at], in);
 * where several circuits lead on, the least loaded first. */
static bool path_follow(const struct ocs_forward *f, const int *path, int length, int at, int in,
			struct way *way)
{
	bool tried[OCS_PLAN_DEGREE_MAX] = { false };
	uint8_t set;

	if (at + 1 == length)
		return true;
	set = *entry_at(f, path[at], in, way->dst);
	for (;;) {
		int best = -1;
		long load, worst = way->worst;

		for (int p = 0; p < f->degree; p++) {
			const long *loads = &f->load[(size_t)path[at] * f->degree];

			if (!tried[p] && (set == OCS_FORWARD_NONE || set == p) &&
			    link_at(f, path[at], p)->server == path[at + 1] &&
			    (best < 0 || loads[p] < loads[best]))
				best = p;
		}
		if (best < 0)
			return false;
		tried[best] = true;
		way->ports[at] = (uint8_t)best;
		load = f->load[(size_t)path[at] * f->degree + best];
		if (load > way->worst)
			way->worst = load;
		if (path_follow(f, path, length, at + 1, link_at(f, path[at], best)->port, way))
			return true;
		way->worst = worst;
	}
}

/* The shortest way through the states from SRC's own to any of DST.  Every state
 * that has an entry leads to DST, so this fails only where no circuit leads on.
 * Returns the hops, or -1. */
static int path_search(const struct ocs_forward *f, int src, int dst, uint8_t *ports)
{
	int states = f->servers * (f->degree + 1), head = 0, tail = 0, hops = -1;
	int *from = ocs_calloc(states, sizeof(*from)), *queue = ocs_calloc(states, sizeof(*queue));
	int start = src * (f->degree + 1) + f->degree, end = -1;

	for (int i = 0; i < states; i++)
		from[i] = -1;
	from[start] = start;
	queue[tail++] = start;
	while (head < tail && end < 0) {
		int state = queue[head++], server = state / (f->degree + 1);
		uint8_t set = *entry_at(f, server, state % (f->degree + 1), dst);

		if (server == dst)
			end = state;
		for (int p = 0; p < f->degree && end < 0; p++) {
			const struct ocs_forward_link *link = link_at(f, server, p);
			int next = link->server * (f->degree + 1) + link->port;

			if (link->server < 0 || (set != OCS_FORWARD_NONE && set != p) ||
			    from[next] >= 0)
				continue;
			from[next] = state;
			queue[tail++] = next;
		}
	}
	if (end >= 0) {
		hops = 0;
		for (int state = end; state != start; state = from[state])
			hops++;
		for (int state = end, i = hops; state != start; state = from[state]) {
			int before = from[state], server = before / (f->degree + 1);

			/* which port led here */
			for (int p = 0; p < f->degree; p++) {
				const struct ocs_forward_link *link = link_at(f, server, p);

				if (link->server * (f->degree + 1) + link->port == state)
					ports[i - 1] = (uint8_t)p;
			}
			i--;
		}
	}
	free(from);
	free(queue);
	return hops;
}

/* Makes the entries of a way of HOPS ports. */
static void path_take(struct ocs_forward *f, int src, int dst, const uint8_t *ports, int hops)
{
	int server = src, in = f->degree;

	for (int i = 0; i < hops; i++) {
		const struct ocs_forward_link *link = link_at(f, server, ports[i]);

		*entry_at(f, server, in, dst) = ports[i];
		f->load[(size_t)server * f->degree + ports[i]]++;
		server = link->server;
		in = link->port;
	}
}

static int add_route(struct ocs_forward *f, const struct ocs_plan_route *route, uint8_t *ports,
		     uint8_t *best, struct ocs_error *err)
{
	double most = 0;
	long worst = 0;
	int hops = -1;

	for (int p = 0; p < route->npaths; p++)
		if (route->weights[p] > most)
			most = route->weights[p];
	for (int p = 0; p < route->npaths; p++) {
		struct way way = { .dst = route->dst, .ports = ports };

		/* One path takes all of a pair's traffic: not one that was meant for
		 * a small share of it. */
		if (route->weights[p] * 2 < most || route->lengths[p] < 2 ||
		    !path_follow(f, route->paths[p], route->lengths[p], 0, f->degree, &way))
			continue;
		if (hops >= 0 && way.worst >= worst)
			continue;
		worst = way.worst;
		hops = route->lengths[p] - 1;
		memcpy(best, ports, hops);
	}
	if (hops < 0) {
		hops = path_search(f, route->src, route->dst, best);
		f->adjusted++;
	}
	if (hops < 0)
		return ocs_error_set(err, OCS_NEVER, "no circuits lead from server %d to server %d",
				     route->src, route->dst);
	path_take(f, route->src, route->dst, best, hops);
	return 0;
}

static void add_links(struct ocs_forward *f, const struct ocs_plan *plan, const bool *failed)
{
	for (int i = 0; i < f->servers * f->degree; i++)
		f->link[i].server = -1;
	for (int i = 0; i < plan->ncircuits; i++) {
		const struct ocs_plan_circuit *c = &plan->circuits[i];

		if (failed &&
		    (failed[c->a * f->degree + c->a_port] || failed[c->b * f->degree + c->b_port]))
			continue;
		f->link[c->a * f->degree + c->a_port] =
			(struct ocs_forward_link){ c->b, c->b_port };
		if (!plan->directed)
			f->link[c->b * f->degree + c->b_port] =
				(struct ocs_forward_link){ c->a, c->a_port };
	}
}

static int plan_usable(const struct ocs_plan *plan, struct ocs_error *err)
{
	if (plan->servers > 1 && !plan->routes)
		return ocs_error_set(err, OCS_USAGE,
				     "the plan has no routes; make it with"
				     " 'ocsctl plan --routes --json'");
	if (plan->servers > OCS_PLAN_ROUTES_MAX)
		return ocs_error_set(err, OCS_NEVER,
				     "hosts forward for at most %d servers, the"
				     " plan has %d",
				     OCS_PLAN_ROUTES_MAX, plan->servers);
	return 0;
}

struct ocs_forward *ocs_forward_make(const struct ocs_plan *plan, const bool *failed,
				     struct ocs_error *err)
{
	struct ocs_forward *f;
	uint8_t *ports;
	size_t entries, hops;
	int rc = 0;

	if (plan_usable(plan, err))
		return NULL;
	f = ocs_calloc(1, sizeof(*f));
	f->servers = plan->servers;
	f->degree = plan->degree;
	entries = (size_t)plan->servers * (plan->degree + 1) * plan->servers;
	f->out = ocs_calloc(entries, 1);
	memset(f->out, OCS_FORWARD_NONE, entries);
	f->link = ocs_calloc((size_t)plan->servers * plan->degree, sizeof(*f->link));
	f->load = ocs_calloc((size_t)plan->servers * plan->degree, sizeof(*f->load));
	add_links(f, plan, failed);
	/* No way passes a state twice. */
	hops = (size_t)plan->servers * (plan->degree + 1);
	ports = ocs_calloc(2 * hops, 1);
	for (int i = 0; i < plan->nroutes && !rc; i++)
		rc = add_route(f, &plan->routes[i], ports, ports + hops, err);
	free(ports);
	if (rc) {
		ocs_forward_destroy(f);
		return NULL;
	}
	return f;
}

void ocs_forward_destroy(struct ocs_forward *forward)
{
	if (!forward)
		return;
	free(forward->link);
	free(forward->out);
	free(forward->load);
	free(forward);
}

int ocs_forward_path(const struct ocs_forward *forward, int src, int dst, int max, int *path,
		     int *ports)
{
	int server = src, in = forward->degree, count = 0;

	while (count < max) {
		const struct ocs_forward_link *link;
		uint8_t out;

		path[count++] = server;
		if (server == dst)
			return count;
		out = ocs_forward_out(forward, server, in, dst);
		if (out == OCS_FORWARD_NONE)
			return -1;
		ports[count - 1] = out;
		link = link_at(forward, server, out);
		server = link->server;
		in = link->port;
	}
	return -1;
}

static struct json_object *port_json(const struct ocs_forward_port *port)
{
	struct json_object *json = json_object_new_object();
	char mac[18];

	json_object_object_add(json, "name", json_object_new_string(port->name));
	json_object_object_add(json, "mac",
			       json_object_new_string(ocs_forward_mac_text(port->mac, mac)));
	json_object_object_add(json, "forward", json_object_new_string(port->forward));
	json_object_object_add(
		json, "forward_mac",
		json_object_new_string(ocs_forward_mac_text(port->forward_mac, mac)));
	return json;
}

static struct json_object *path_json(const struct ocs_forward *f, int src, int dst, int *path,
				     int *ports, int max)
{
	struct json_object *json = json_object_new_object(), *list[2];
	int count = ocs_forward_path(f, src, dst, max, path, ports);

	for (int i = 0; i < 2; i++)
		list[i] = json_object_new_array();
	for (int i = 0; i < count; i++)
		json_object_array_add(list[0], json_object_new_int(path[i]));
	for (int i = 0; i + 1 < count; i++)
		json_object_array_add(list[1], json_object_new_int(ports[i]));
	json_object_object_add(json, "src", json_object_new_int(src));
	json_object_object_add(json, "dst", json_object_new_int(dst));
	json_object_object_add(json, "path", list[0]);
	json_object_object_add(json, "ports", list[1]);
	return json;
}

struct json_object *ocs_forward_to_json(const struct ocs_forward *forward,
					const struct ocs_forward_hosts *hosts)
{
	struct json_object *json = json_object_new_object();
	struct json_object *list = json_object_new_array(), *paths = json_object_new_array();
	int max = forward->servers * (forward->degree + 1);
	int *path = ocs_calloc(2 * (size_t)max, sizeof(*path));

	for (int s = 0; s < forward->servers; s++) {
		struct json_object *host = json_object_new_object();
		struct json_object *ports = json_object_new_array();

		json_object_object_add(host, "node", json_object_new_string(hosts->host[s].node));
		json_object_object_add(host, "address",
				       json_object_new_string(hosts->host[s].address));
		for (int p = 0; p < forward->degree; p++)
			json_object_array_add(ports, port_json(&hosts->host[s].ports[p]));
		json_object_object_add(host, "ports", ports);
		json_object_array_add(list, host);
		for (int t = 0; t < forward->servers; t++)
			if (t != s)
				json_object_array_add(
					paths, path_json(forward, s, t, path, path + max, max));
	}
	free(path);
	json_object_object_add(json, "adjusted", json_object_new_int(forward->adjusted));
	json_object_object_add(json, "hosts", list);
	json_object_object_add(json, "paths", paths);
	return json;
}
