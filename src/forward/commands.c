/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The commands that one host runs. */

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "src/forward/internal.h"
#include "src/util/text.h"

int ocs_forward_backend_parse(const char *name, enum ocs_forward_backend *backend)
{
	static const char *const names[] = { "flower", "bpf", "routes" };

	for (int i = 0; i < 3; i++)
		if (!strcmp(name, names[i])) {
			*backend = (enum ocs_forward_backend)i;
			return 0;
		}
	return -1;
}

#define MAY_FAIL true
#define MUST false

static void command_add(struct ocs_forward_commands *commands, enum ocs_forward_tool tool,
			bool may_fail, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

static void command_add(struct ocs_forward_commands *commands, enum ocs_forward_tool tool,
			bool may_fail, const char *format, ...)
{
	struct ocs_forward_command *command;
	char text[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	/* one more in an array that doubles */
	if (!(commands->count & (commands->count - 1)))
		commands->list =
			ocs_realloc(commands->list, (commands->count ? 2 * commands->count : 1) *
							    sizeof(*commands->list));
	command = &commands->list[commands->count++];
	memset(command, 0, sizeof(*command));
	command->tool = tool;
	command->may_fail = may_fail;
	command->text = ocs_strdup(text);
}

static void undo_add(struct ocs_forward_commands *commands, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* What takes away the thing that the last command makes; it tells things apart, so it
 * says nothing that may differ between plans. */
static void undo_add(struct ocs_forward_commands *commands, const char *format, ...)
{
	char text[256];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	commands->list[commands->count - 1].undo = ocs_strdup(text);
}

void ocs_forward_commands_free(struct ocs_forward_commands *commands)
{
	for (size_t i = 0; i < commands->count; i++) {
		free(commands->list[i].text);
		free(commands->list[i].undo);
	}
	free(commands->list);
	memset(commands, 0, sizeof(*commands));
}

/* What is in the way of either: rules, routes, neighbours and filters of an earlier plan,
 * all known by our protocol or preference.  The addresses stay where they are, so that
 * connections outlive a repair. */
static void tables_clear(const struct ocs_forward_hosts *hosts, int host,
			 struct ocs_forward_commands *commands)
{
	const struct ocs_forward_port *ports = hosts->host[host].ports;

	command_add(commands, OCS_FORWARD_IP, MAY_FAIL, "rule flush protocol %d",
		    OCS_FORWARD_PROTOCOL);
	command_add(commands, OCS_FORWARD_IP, MAY_FAIL, "route flush table all proto %d",
		    OCS_FORWARD_PROTOCOL);
	for (int p = 0; p < hosts->degree; p++) {
		command_add(commands, OCS_FORWARD_IP, MAY_FAIL,
			    "neigh flush dev %s nud permanent protocol %d", ports[p].name,
			    OCS_FORWARD_PROTOCOL);
		if (strcmp(ports[p].forward, ports[p].name))
			command_add(commands, OCS_FORWARD_IP, MAY_FAIL,
				    "neigh flush dev %s nud permanent protocol %d",
				    ports[p].forward, OCS_FORWARD_PROTOCOL);
	}
}

/* A route in TABLE for DST by LINK, and the neighbour that the device then asks
 * for.  SRC: the address of the host's own packets, or NULL. */
static void route_add(struct ocs_forward_commands *commands, const struct ocs_forward_hosts *hosts,
		      const struct ocs_forward_link *link, int dst, const char *device, int table,
		      const char *src)
{
	const char *address = hosts->host[dst].address;
	char mac[18];

	command_add(commands, OCS_FORWARD_IP, MUST,
		    "neigh replace %s lladdr %s dev %s nud permanent protocol %d", address,
		    ocs_forward_mac_text(ocs_forward_mac(hosts, link, dst), mac), device,
		    OCS_FORWARD_PROTOCOL);
	undo_add(commands, "neigh del %s dev %s", address, device);
	command_add(commands, OCS_FORWARD_IP, MUST,
		    "route replace %s/32 dev %s scope link%s%s table %d proto %d", address, device,
		    src ? " src " : "", src ? src : "", table, OCS_FORWARD_PROTOCOL);
	undo_add(commands, "route del %s/32 table %d proto %d", address, table,
		 OCS_FORWARD_PROTOCOL);
}

/* What comes by DEVICE (lo: the host's own) asks TABLE. */
static void rule_add(struct ocs_forward_commands *commands, int preference, const char *device,
		     int table)
{
	command_add(commands, OCS_FORWARD_IP, MUST, "rule add pref %d iif %s lookup %d protocol %d",
		    preference, device, table, OCS_FORWARD_PROTOCOL);
	undo_add(commands, "rule del pref %d iif %s lookup %d protocol %d", preference, device,
		 table, OCS_FORWARD_PROTOCOL);
}

static void local_routes(const struct ocs_forward *f, const struct ocs_forward_hosts *hosts,
			 int host, struct ocs_forward_commands *commands)
{
	const struct ocs_forward_host *self = &hosts->host[host];
	int table = OCS_FORWARD_BASE + f->degree;

	for (int t = 0; t < f->servers; t++) {
		uint8_t out = ocs_forward_out(f, host, f->degree, t);

		if (out != OCS_FORWARD_NONE)
			route_add(commands, hosts, &f->link[host * f->degree + out], t,
				  self->ports[out].name, table, self->address);
	}
	rule_add(commands, table, "lo", table);
}

static void transit_flower(const struct ocs_forward *f, const struct ocs_forward_hosts *hosts,
			   int host, int in, struct ocs_forward_commands *commands)
{
	const struct ocs_forward_port *ports = hosts->host[host].ports;
	char mac[18];

	for (int t = 0; t < f->servers; t++) {
		uint8_t out = ocs_forward_out(f, host, in, t);

		if (out == OCS_FORWARD_NONE)
			continue;
		ocs_forward_mac_text(ocs_forward_mac(hosts, &f->link[host * f->degree + out], t),
				     mac);
		command_add(commands, OCS_FORWARD_TC, MUST,
			    "filter replace dev %s ingress protocol ip pref %d handle %d flower"
			    " dst_ip %s/32 action pedit ex munge eth dst set %s pipe"
			    " action mirred egress redirect dev %s",
			    ports[in].forward, OCS_FORWARD_BASE, t + 1, hosts->host[t].address, mac,
			    ports[out].forward);
		undo_add(commands, "filter del dev %s ingress protocol ip pref %d handle %d flower",
			 ports[in].forward, OCS_FORWARD_BASE, t + 1);
	}
}

static void transit_routes(const struct ocs_forward *f, const struct ocs_forward_hosts *hosts,
			   int host, int in, struct ocs_forward_commands *commands)
{
	const struct ocs_forward_port *ports = hosts->host[host].ports;
	int table = OCS_FORWARD_BASE + in;

	for (int t = 0; t < f->servers; t++) {
		uint8_t out = ocs_forward_out(f, host, in, t);

		if (out != OCS_FORWARD_NONE)
			route_add(commands, hosts, &f->link[host * f->degree + out], t,
				  ports[out].forward, table, NULL);
	}
	rule_add(commands, table, ports[in].forward, table);
	/* Loose reverse path filtering asks whether the port that a packet leaves by
	 * leads back to its sender: nothing in that port's table need do so. */
	rule_add(commands, OCS_FORWARD_BACK + in, ports[in].forward, OCS_FORWARD_BASE + f->degree);
	command_add(commands, OCS_FORWARD_SYSCTL, MUST, "net/ipv4/conf/%s/forwarding=1",
		    ports[in].forward);
	undo_add(commands, "net/ipv4/conf/%s/forwarding=default", ports[in].forward);
}

/* The entries of the map in words. */
static void transit_bpf(const struct ocs_forward *f, const struct ocs_forward_hosts *hosts,
			int host, struct ocs_forward_commands *commands)
{
	const struct ocs_forward_port *ports = hosts->host[host].ports;
	struct ocs_text text = { 0 };
	char mac[18];

	for (int in = 0; in < f->degree; in++)
		for (int t = 0; t < f->servers; t++) {
			uint8_t out = ocs_forward_out(f, host, in, t);

			if (out == OCS_FORWARD_NONE)
				continue;
			ocs_forward_mac_text(
				ocs_forward_mac(hosts, &f->link[host * f->degree + out], t), mac);
			ocs_text_add(&text, "%sfrom %s to %s: to %s by %s", text.length ? "\n" : "",
				     ports[in].forward, hosts->host[t].address, mac,
				     ports[out].forward);
		}
	command_add(commands, OCS_FORWARD_LOAD, MUST, "%s", "");
	free(commands->list[commands->count - 1].text);
	commands->list[commands->count - 1].text = ocs_text_take(&text);
	/* the filters that hold the program */
	for (int p = 0; p < f->degree; p++) {
		command_add(commands, OCS_FORWARD_TC, MUST, "%s", "");
		undo_add(commands, "filter del dev %s ingress pref %d", ports[p].forward,
			 OCS_FORWARD_BASE + 1);
	}
}

/* Answers may come by another port than the one asked by; in a directed plan what
 * comes by a port may leave by it, which is no reason to tell the sender. */
static void settings_add(struct ocs_forward_commands *commands, const char *device)
{
	static const char *const keys[] = { "rp_filter", "accept_redirects", "send_redirects" };
	static const char *const values[] = { "2", "0", "0" };

	for (int i = 0; i < 3; i++) {
		command_add(commands, OCS_FORWARD_SYSCTL, MUST, "net/ipv4/conf/%s/%s=%s", device,
			    keys[i], values[i]);
		undo_add(commands, "net/ipv4/conf/%s/%s=default", device, keys[i]);
	}
}

static void link_up(struct ocs_forward_commands *commands, const char *device)
{
	command_add(commands, OCS_FORWARD_IP, MUST, "link set dev %s up", device);
	undo_add(commands, "link set dev %s down", device);
	commands->list[commands->count - 1].kept = true;
}

static void address_on(struct ocs_forward_commands *commands, const char *address,
		       const char *device)
{
	/* The kernel lists addresses of this scope before a circuit's own (subnets), and NCCL's
	 * sockets take the first of an interface: all servers of the job must reach that one. */
	command_add(commands, OCS_FORWARD_IP, MUST, "addr replace %s/32 dev %s scope link", address,
		    device);
	undo_add(commands, "addr del %s/32 dev %s", address, device);
}

/* What every backend needs on PORT. */
static void prepare_port(struct ocs_forward_commands *commands, const struct ocs_forward_port *port,
			 const char *address, enum ocs_forward_backend backend)
{
	bool split = strcmp(port->name, port->forward);

	link_up(commands, port->name);
	if (split)
		link_up(commands, port->forward);
	address_on(commands, address, port->name);
	/* reverse path filtering drops what an interface without an address hands up */
	if (split && backend == OCS_FORWARD_ROUTES)
		address_on(commands, address, port->forward);
	settings_add(commands, port->name);
	if (split)
		settings_add(commands, port->forward);
	if (backend == OCS_FORWARD_ROUTES)
		return;
	/* another program's filters may hang there already: it may be there */
	command_add(commands, OCS_FORWARD_TC, MAY_FAIL, "qdisc add dev %s clsact", port->forward);
	undo_add(commands, "qdisc del dev %s clsact", port->forward);
}

void ocs_forward_things(const struct ocs_forward *forward, const struct ocs_forward_hosts *hosts,
			int host, enum ocs_forward_backend backend,
			struct ocs_forward_commands *commands)
{
	const struct ocs_forward_host *self = &hosts->host[host];

	for (int p = 0; p < forward->degree; p++)
		prepare_port(commands, &self->ports[p], self->address, backend);
	for (int p = 0; p < forward->degree; p++) {
		if (backend == OCS_FORWARD_FLOWER)
			transit_flower(forward, hosts, host, p, commands);
		else if (backend == OCS_FORWARD_ROUTES)
			transit_routes(forward, hosts, host, p, commands);
	}
	if (backend == OCS_FORWARD_BPF)
		transit_bpf(forward, hosts, host, commands);
	local_routes(forward, hosts, host, commands);
}

int ocs_forward_rails_table(int devices)
{
	return OCS_FORWARD_BASE + devices;
}

/* What comes by the management network while its answers go over a rail, or the other way round, is
 * not to be dropped.  Loose filtering and none do not. */
static void management_loosen(struct ocs_forward_commands *commands, const char *device)
{
	command_add(commands, OCS_FORWARD_SYSCTL, MUST, "net/ipv4/conf/%s/rp_filter=2", device);
	undo_add(commands, "net/ipv4/conf/%s/rp_filter=default", device);
}

void ocs_forward_rails_things(const struct ocs_forward_rails *rails,
			      const struct ocs_forward_hosts *hosts, int host,
			      struct ocs_forward_commands *commands)
{
	const struct ocs_forward_host *self = &hosts->host[host];
	int table = ocs_forward_rails_table(hosts->degree);
	char mac[18];

	for (int p = 0; p < hosts->degree; p++)
		prepare_port(commands, &self->ports[p], self->address, OCS_FORWARD_ROUTES);
	management_loosen(commands, rails->management);
	for (size_t i = 0; i < rails->count; i++) {
		const struct ocs_forward_neighbour *at = &rails->neighbours[i];
		const struct ocs_forward_host *other = &hosts->host[at->host];
		const char *device = self->ports[at->own].name;

		command_add(commands, OCS_FORWARD_IP, MUST,
			    "neigh replace %s lladdr %s dev %s nud permanent protocol %d",
			    other->address, ocs_forward_mac_text(other->ports[at->port].mac, mac),
			    device, OCS_FORWARD_PROTOCOL);
		undo_add(commands, "neigh del %s dev %s", other->address, device);
	}
	for (int h = 0; h < hosts->servers; h++) {
		if (h == host)
			continue;
		command_add(commands, OCS_FORWARD_IP, MUST,
			    "route replace %s/32 via %s dev %s src %s table %d proto %d",
			    hosts->host[h].address, rails->via[h], rails->management, self->address,
			    table, OCS_FORWARD_PROTOCOL);
		undo_add(commands, "route del %s/32 table %d proto %d", hosts->host[h].address,
			 table, OCS_FORWARD_PROTOCOL);
	}
	rule_add(commands, table, "lo", table);
}

/* A NIC of a region: what has its address leaves by it, whatever is at the other end, and nothing else does. */
static void region_port(struct ocs_forward_commands *commands, const struct ocs_forward_port *port,
			int table)
{
	link_up(commands, port->name);
	address_on(commands, port->address, port->name);
	settings_add(commands, port->name);
	command_add(commands, OCS_FORWARD_IP, MUST,
		    "route replace default dev %s scope link src %s table %d proto %d", port->name,
		    port->address, table, OCS_FORWARD_PROTOCOL);
	undo_add(commands, "route del default table %d proto %d", table, OCS_FORWARD_PROTOCOL);
	command_add(commands, OCS_FORWARD_IP, MUST,
		    "rule add pref %d from %s lookup %d protocol %d", table, port->address, table,
		    OCS_FORWARD_PROTOCOL);
	undo_add(commands, "rule del pref %d from %s lookup %d protocol %d", table, port->address,
		 table, OCS_FORWARD_PROTOCOL);
}

void ocs_forward_region_things(const struct ocs_forward_hosts *hosts, int host, int first,
			       int servers, struct ocs_forward_commands *commands)
{
	const struct ocs_forward_host *self = &hosts->host[host];
	char mac[18];

	for (int p = 0; p < hosts->degree; p++)
		region_port(commands, &self->ports[p], OCS_FORWARD_BASE + p);
	for (int p = 0; p < hosts->degree; p++)
		for (int end = 0; end < servers * hosts->degree; end++) {
			int other = first + end / hosts->degree;
			const struct ocs_forward_port *port =
				&hosts->host[other].ports[end % hosts->degree];

			if (other == host)
				continue;
			command_add(commands, OCS_FORWARD_IP, MUST,
				    "neigh replace %s lladdr %s dev %s nud permanent protocol %d",
				    port->address, ocs_forward_mac_text(port->mac, mac),
				    self->ports[p].name, OCS_FORWARD_PROTOCOL);
			undo_add(commands, "neigh del %s dev %s", port->address,
				 self->ports[p].name);
		}
}

/* Whatever a backend other than BACKEND (NULL: any) left on PORT. */
static void clear_port(struct ocs_forward_commands *commands, const struct ocs_forward_port *port,
		       const enum ocs_forward_backend *backend)
{
	/* bpf replaces its own filter without a gap */
	if (!backend || *backend != OCS_FORWARD_BPF)
		command_add(commands, OCS_FORWARD_TC, MAY_FAIL, "filter del dev %s ingress pref %d",
			    port->forward, OCS_FORWARD_BASE + 1);
	command_add(commands, OCS_FORWARD_TC, MAY_FAIL, "filter del dev %s ingress pref %d",
		    port->forward, OCS_FORWARD_BASE);
	if (!backend || *backend == OCS_FORWARD_ROUTES)
		command_add(commands, OCS_FORWARD_TC, MAY_FAIL, "qdisc del dev %s clsact",
			    port->forward);
	if (!backend || *backend != OCS_FORWARD_ROUTES)
		command_add(commands, OCS_FORWARD_SYSCTL, MAY_FAIL,
			    "net/ipv4/conf/%s/forwarding=default", port->forward);
}

void ocs_forward_apply_commands(const struct ocs_forward *forward,
				const struct ocs_forward_hosts *hosts, int host,
				enum ocs_forward_backend backend,
				struct ocs_forward_commands *commands)
{
	tables_clear(hosts, host, commands);
	for (int p = 0; p < forward->degree; p++)
		clear_port(commands, &hosts->host[host].ports[p], &backend);
	ocs_forward_things(forward, hosts, host, backend, commands);
}

void ocs_forward_remove_commands(const struct ocs_forward_hosts *hosts, int host,
				 struct ocs_forward_commands *commands)
{
	const struct ocs_forward_host *self = &hosts->host[host];

	tables_clear(hosts, host, commands);
	for (int p = 0; p < hosts->degree; p++) {
		const struct ocs_forward_port *port = &self->ports[p];
		const char *const devices[] = { port->name, port->forward };

		clear_port(commands, port, NULL);
		for (int d = 0; d < (strcmp(port->name, port->forward) ? 2 : 1); d++) {
			command_add(commands, OCS_FORWARD_IP, MAY_FAIL, "addr del %s/32 dev %s",
				    *port->address ? port->address : self->address, devices[d]);
			command_add(commands, OCS_FORWARD_SYSCTL, MAY_FAIL,
				    "net/ipv4/conf/%s/rp_filter=default", devices[d]);
			command_add(commands, OCS_FORWARD_SYSCTL, MAY_FAIL,
				    "net/ipv4/conf/%s/accept_redirects=default", devices[d]);
			command_add(commands, OCS_FORWARD_SYSCTL, MAY_FAIL,
				    "net/ipv4/conf/%s/send_redirects=default", devices[d]);
		}
	}
}

bool ocs_forward_conditional(const struct ocs_forward_command *command, char device[16])
{
	return command->tool == OCS_FORWARD_TC &&
	       sscanf(command->text, "qdisc del dev %15s clsact", device) == 1;
}

static void print_load(const char *text, FILE *out)
{
	fputs("# load one program for the ingress of every port, with this map:\n", out);
	while (*text) {
		size_t length = strcspn(text, "\n");

		fprintf(out, "#   %.*s\n", (int)length, text);
		text += length + (text[length] == '\n');
	}
}

void ocs_forward_commands_print(const struct ocs_forward_commands *commands, FILE *out)
{
	for (size_t i = 0; i < commands->count; i++) {
		const struct ocs_forward_command *c = &commands->list[i];
		const char *end = c->may_fail ? " 2>/dev/null || true" : "";
		size_t name = strcspn(c->text, "=");
		const char *slash = strrchr(c->text, '/'), *last = slash ? slash + 1 : c->text;
		char device[16];

		if (c->tool == OCS_FORWARD_LOAD)
			print_load(c->text, out);
		else if (ocs_forward_conditional(c, device))
			fprintf(out,
				"[ -n \"$(tc filter show dev %s ingress; tc filter show dev %s"
				" egress)\" ] || tc %s%s\n",
				device, device, c->text, end);
		else if (!*c->text)
			continue;
		else if (c->tool != OCS_FORWARD_SYSCTL)
			fprintf(out, "%s %s%s\n", c->tool == OCS_FORWARD_IP ? "ip" : "tc", c->text,
				end);
		else if (!strcmp(c->text + name, "=default"))
			fprintf(out,
				"sysctl -q -w %.*s=$(sysctl -n net/ipv4/conf/default/%.*s)%s\n",
				(int)name, c->text, (int)(c->text + name - last), last, end);
		else
			fprintf(out, "sysctl -q -w %s%s\n", c->text, end);
	}
}
