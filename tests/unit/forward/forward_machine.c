/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/util/error.h"
#include "src/util/text.h"
#include "tests/unit/forward/forward_machine.h"

static void read_command(struct machine *machine, const struct ocs_forward_command *command)
{
	struct fact fact = { 0 };
	const char *text = command->text;
	int end = 0, preference;

	if (command->may_fail || command->tool == OCS_FORWARD_SYSCTL ||
	    command->tool == OCS_FORWARD_LOAD || !*text)
		return;
	if (sscanf(text, "neigh replace %15s lladdr %17s dev %15s nud permanent protocol 77%n",
		   fact.ip, fact.mac, fact.device, &end) == 3 &&
	    end)
		fact.kind = NEIGHBOUR;
	else if (sscanf(text,
			"route replace %15[0-9.]/32 dev %15s scope link src %*s table %d"
			" proto 77%n",
			fact.ip, fact.device, &fact.table, &end) == 3 &&
		 end)
		fact.kind = ROUTE;
	else if (sscanf(text, "route replace %15[0-9.]/32 dev %15s scope link table %d proto 77%n",
			fact.ip, fact.device, &fact.table, &end) == 3 &&
		 end)
		fact.kind = ROUTE;
	else if (sscanf(text, "rule add pref %d iif %15s lookup %d protocol 77%n", &preference,
			fact.device, &fact.table, &end) == 3 &&
		 end)
		fact.kind = RULE;
	else if (sscanf(text,
			"filter replace dev %15s ingress protocol ip pref 7700 handle %*d flower"
			" dst_ip %15[0-9.]/32 action pedit ex munge eth dst set %17s pipe"
			" action mirred egress redirect dev %15s%n",
			fact.device, fact.ip, fact.mac, fact.to, &end) == 4 &&
		 end)
		fact.kind = FILTER;
	else if (sscanf(text, "addr replace %15[0-9.]/32 dev %15s scope link%n", fact.ip,
			fact.device, &end) == 2 &&
		 end)
		fact.kind = ADDRESS;
	else if (sscanf(text, "link set dev %15s up%n", fact.device, &end) == 1 && end)
		return;
	else
		fail_msg("the interpreter does not know '%s'", text);
	if (text[end])
		fail_msg("'%s' goes on after '%.*s'", text, end, text);
	/* these come last, and are for packets that no plan knows */
	if (fact.kind == RULE && preference > 7764)
		return;
	machine->facts = ocs_realloc(machine->facts, (machine->count + 1) * sizeof(fact));
	machine->facts[machine->count++] = fact;
}

/* The one fact of KIND that fits; NULL and 0 fit everything.  Two would be an
 * ambiguity that the kernel settles by order: refused. */
static const struct fact *look_up(const struct machine *machine, enum kind kind, const char *device,
				  const char *ip, int table)
{
	const struct fact *found = NULL;

	for (size_t i = 0; i < machine->count; i++) {
		const struct fact *fact = &machine->facts[i];

		if (fact->kind != kind || (device && strcmp(fact->device, device)) ||
		    (ip && strcmp(fact->ip, ip)) || (table && fact->table != table))
			continue;
		if (found && (strcmp(found->device, fact->device) ||
			      strcmp(found->mac, fact->mac) || strcmp(found->to, fact->to)))
			fail_msg("two entries for %s on %s", fact->ip, fact->device);
		found = fact;
	}
	return found;
}

/* The device that the NIC hands a frame with MAC to, of the port it came by. */
static const char *device_of(const struct ocs_forward_port *port, const char *mac)
{
	uint8_t bytes[6];

	assert_int_equal(sscanf(mac, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", &bytes[0], &bytes[1],
				&bytes[2], &bytes[3], &bytes[4], &bytes[5]),
			 6);
	if (!memcmp(bytes, port->mac, 6))
		return port->name;
	return memcmp(bytes, port->forward_mac, 6) ? NULL : port->forward;
}

static int port_of(const struct net *net, int server, const char *device)
{
	const struct ocs_forward_port *ports = net->hosts->host[server].ports;

	for (int p = 0; p < net->hosts->degree; p++)
		if (!strcmp(ports[p].name, device) || !strcmp(ports[p].forward, device))
			return p;
	fail_msg("server %d has no device %s", server, device);
	return -1;
}

/* The far end of a circuit, from the plan itself. */
static void cross(const struct net *net, int *server, int *port)
{
	for (int i = 0; i < net->plan->ncircuits; i++) {
		const struct ocs_plan_circuit *c = &net->plan->circuits[i];

		if (c->a == *server && c->a_port == *port) {
			*server = c->b;
			*port = c->b_port;
			return;
		}
		if (!net->plan->directed && c->b == *server && c->b_port == *port) {
			*server = c->a;
			*port = c->a_port;
			return;
		}
	}
	fail_msg("server %d sends into port %d, which is dark", *server, *port);
}

/* Routing by the rules for packets from IIF: sets DEVICE and MAC; false if no route. */
static bool routed(const struct machine *machine, const char *iif, const char *ip,
		   const char **device, const char **mac)
{
	const struct fact *rule = look_up(machine, RULE, iif, NULL, 0), *route, *neighbour;

	route = rule ? look_up(machine, ROUTE, NULL, ip, rule->table) : NULL;
	neighbour = route ? look_up(machine, NEIGHBOUR, route->device, ip, 0) : NULL;
	if (!neighbour)
		return false;
	*device = route->device;
	*mac = neighbour->mac;
	return true;
}

int send_packet(const struct net *net, int src, int dst, int *path, int max)
{
	const char *ip = net->hosts->host[dst].address, *device, *mac;
	int server = src, count = 1;

	path[0] = src;
	if (!routed(&net->machines[src], "lo", ip, &device, &mac))
		return -1;
	while (count < max) {
		int port = port_of(net, server, device);
		const struct machine *machine;
		const struct fact *filter;

		cross(net, &server, &port);
		path[count++] = server;
		machine = &net->machines[server];
		device = device_of(&net->hosts->host[server].ports[port], mac);
		if (!device)
			return -1;
		filter = look_up(machine, FILTER, device, ip, 0);
		if (filter) {
			device = filter->to;
			mac = filter->mac;
		} else if (look_up(machine, ADDRESS, device, ip, 0)) {
			return server == dst ? count : -1;
		} else if (!routed(machine, device, ip, &device, &mac)) {
			return -1;
		}
	}
	return -1;
}

static char *split_hosts(int servers, int degree)
{
	struct ocs_text text = { 0 };

	ocs_text_add(&text, "{\"hosts\":[");
	for (int s = 0; s < servers; s++) {
		ocs_text_add(&text, "%s{\"node\":\"h%d\",\"address\":\"10.0.%d.%d\",\"ports\":[",
			     s ? "," : "", s, s / 200, s % 200 + 1);
		for (int p = 0; p < degree; p++)
			ocs_text_add(
				&text,
				"%s{\"name\":\"r%d\",\"mac\":\"02:00:00:%02x:%02x:%02x\","
				"\"forward\":\"e%d\",\"forward_mac\":\"06:00:00:%02x:%02x:%02x\"}",
				p ? "," : "", p, s >> 8, s & 255, p, p, s >> 8, s & 255, p);
		ocs_text_add(&text, "]}");
	}
	ocs_text_add(&text, "]}");
	return ocs_text_take(&text);
}

void net_open(struct net *net, const struct ocs_plan_request *request, bool split,
	      enum ocs_forward_backend backend)
{
	struct ocs_error err = { 0 };

	net->plan = ocs_plan_make(request, &err);
	if (!net->plan)
		fail_msg("%s", err.text);
	if (split) {
		char *text = split_hosts(request->servers, request->degree);

		net->hosts = ocs_forward_hosts_parse(text, net->plan, &err);
		free(text);
	} else {
		net->hosts = ocs_forward_hosts_rule(net->plan);
	}
	net->forward = net->hosts ? ocs_forward_make(net->plan, NULL, &err) : NULL;
	if (!net->forward)
		fail_msg("%s", err.text);
	net->machines = ocs_calloc(request->servers, sizeof(*net->machines));
	for (int s = 0; s < request->servers; s++) {
		struct ocs_forward_commands commands = { 0 };

		ocs_forward_apply_commands(net->forward, net->hosts, s, backend, &commands);
		for (size_t i = 0; i < commands.count; i++)
			read_command(&net->machines[s], &commands.list[i]);
		ocs_forward_commands_free(&commands);
	}
}

void net_close(struct net *net)
{
	for (int s = 0; s < net->plan->servers; s++)
		free(net->machines[s].facts);
	free(net->machines);
	ocs_forward_destroy(net->forward);
	ocs_forward_hosts_destroy(net->hosts);
	ocs_plan_destroy(net->plan);
}
