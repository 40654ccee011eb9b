/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Who the hosts are: names, addresses, interfaces.  All of it ends in commands that
 * root runs, so nothing but plain names gets in. */

#include <arpa/inet.h>
#include <ctype.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "src/forward/internal.h"
#include "src/protocol/names.h"
#include "src/util/error.h"
#include "src/util/text.h"

char *ocs_forward_mac_text(const uint8_t mac[6], char text[18])
{
	snprintf(text, 18, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3], mac[4],
		 mac[5]);
	return text;
}

const uint8_t *ocs_forward_mac(const struct ocs_forward_hosts *hosts,
			       const struct ocs_forward_link *link, int dst)
{
	const struct ocs_forward_port *port = &hosts->host[link->server].ports[link->port];

	return link->server == dst ? port->mac : port->forward_mac;
}

static struct ocs_forward_hosts *hosts_new(int servers, int degree)
{
	struct ocs_forward_hosts *hosts = ocs_calloc(1, sizeof(*hosts));

	hosts->servers = servers;
	hosts->degree = degree;
	hosts->host = ocs_calloc((size_t)servers + 1, sizeof(*hosts->host));
	for (int s = 0; s < servers; s++)
		hosts->host[s].ports = ocs_calloc((size_t)degree, sizeof(*hosts->host[s].ports));
	return hosts;
}

void ocs_forward_hosts_destroy(struct ocs_forward_hosts *hosts)
{
	if (!hosts)
		return;
	for (int s = 0; s < hosts->servers; s++) {
		free(hosts->host[s].node);
		free(hosts->host[s].ports);
	}
	free(hosts->host);
	free(hosts);
}

static void mac_rule(int server, int interface, struct ocs_forward_port *port)
{
	const uint8_t mac[6] = {
		0x02, 0x6f, 0x63, (uint8_t)(server >> 8), (uint8_t)server, (uint8_t)interface
	};

	memcpy(port->mac, mac, sizeof(mac));
	memcpy(port->forward_mac, mac, sizeof(mac));
}

struct ocs_forward_hosts *ocs_forward_hosts_rule(const struct ocs_plan *plan)
{
	struct ocs_forward_hosts *hosts = hosts_new(plan->servers, plan->degree);

	for (int s = 0; s < plan->servers; s++) {
		struct ocs_forward_host *host = &hosts->host[s];
		unsigned int number = (unsigned int)s + 1;

		host->node = plan->nodes ? ocs_strdup(plan->nodes[s]) : ocs_asprintf("n%d", s);
		snprintf(host->address, sizeof(host->address), "10.192.%u.%u", number >> 8 & 0xff,
			 number & 0xff);
		for (int p = 0; p < plan->degree; p++) {
			struct ocs_forward_port *port = &host->ports[p];

			snprintf(port->name, sizeof(port->name), "ocs%u", (unsigned int)p & 0xff);
			memcpy(port->forward, port->name, sizeof(port->forward));
			mac_rule(s, p, port);
		}
	}
	return hosts;
}

static const char *text_of(struct json_object *json, const char *name)
{
	struct json_object *member = json_object_object_get(json, name);

	return json_object_is_type(member, json_type_string) ? json_object_get_string(member) :
							       NULL;
}

static int take_name(const char *text, char name[16])
{
	size_t length = text ? strlen(text) : 0;

	if (length < 1 || length > 15 || !isalnum((unsigned char)text[0]))
		return -1;
	for (size_t i = 0; i < length; i++)
		if (!isalnum((unsigned char)text[i]) && !strchr("._-", text[i]))
			return -1;
	memcpy(name, text, length + 1);
	return 0;
}

static int take_mac(const char *text, uint8_t mac[6])
{
	if (!text || strlen(text) != 17)
		return -1;
	for (int i = 0; i < 6; i++) {
		const char *at = text + 3 * i;

		if (!isxdigit((unsigned char)at[0]) || !isxdigit((unsigned char)at[1]) ||
		    (i < 5 && at[2] != ':'))
			return -1;
		mac[i] = (uint8_t)strtoul(at, NULL, 16);
	}
	return mac[0] & 1 ? -1 : 0; /* a group address is no interface's */
}

static int take_port(struct json_object *json, struct ocs_forward_port *port)
{
	const char *forward = text_of(json, "forward"), *mac = text_of(json, "forward_mac");

	if (take_name(text_of(json, "name"), port->name) ||
	    take_mac(text_of(json, "mac"), port->mac))
		return -1;
	if (!forward != !mac)
		return -1;
	return take_name(forward ? forward : port->name, port->forward) ||
	       take_mac(mac ? mac : text_of(json, "mac"), port->forward_mac);
}

static int take_host(struct json_object *json, int degree, struct ocs_forward_host *host,
		     struct ocs_error *err)
{
	const char *node = text_of(json, "node"), *address = text_of(json, "address");
	struct json_object *ports = json_object_object_get(json, "ports");
	struct in_addr parsed;

	if (!node || !*node || strlen(node) > 255)
		return ocs_error_set(err, OCS_USAGE, "hosts: a host has no name ('node')");
	if (host->node)
		return ocs_error_set(err, OCS_USAGE, "hosts: %s is listed twice", node);
	host->node = ocs_strdup(node);
	if (!address || inet_pton(AF_INET, address, &parsed) != 1 || parsed.s_addr == 0 ||
	    (ntohl(parsed.s_addr) >> 28) >= 14)
		return ocs_error_set(err, OCS_USAGE, "hosts: %s has no IPv4 'address' of a host",
				     node);
	inet_ntop(AF_INET, &parsed, host->address, sizeof(host->address));
	if (!json_object_is_type(ports, json_type_array) ||
	    json_object_array_length(ports) != (size_t)degree)
		return ocs_error_set(err, OCS_USAGE, "hosts: %s needs a list of %d 'ports'", node,
				     degree);
	for (int p = 0; p < degree; p++)
		if (take_port(json_object_array_get_idx(ports, p), &host->ports[p]))
			return ocs_error_set(
				err, OCS_USAGE,
				"hosts: port %d of %s needs the 'name'"
				" of an interface and its 'mac', and may have 'forward'"
				" together with 'forward_mac'",
				p, node);
	return 0;
}

/* Addresses, and the interfaces of one host, belong to one each. */
static int all_differ(const struct ocs_forward_hosts *hosts, struct ocs_error *err)
{
	for (int s = 0; s < hosts->servers; s++) {
		const struct ocs_forward_host *host = &hosts->host[s];

		if (!host->node)
			return ocs_error_set(err, OCS_USAGE,
					     "hosts: server %d of the plan is missing", s);
		for (int o = 0; o < s; o++)
			if (!strcmp(hosts->host[o].address, host->address))
				return ocs_error_set(err, OCS_USAGE,
						     "hosts: %s and %s have the same"
						     " address",
						     hosts->host[o].node, host->node);
		for (int p = 0; p < hosts->degree; p++)
			for (int o = 0; o < p; o++)
				if (!strcmp(host->ports[p].name, host->ports[o].name) ||
				    !strcmp(host->ports[p].forward, host->ports[o].forward))
					return ocs_error_set(err, OCS_USAGE,
							     "hosts: ports %d and %d of"
							     " %s are the same interface",
							     o, p, host->node);
	}
	return 0;
}

static int server_of(struct json_object *json, size_t index, const struct ocs_plan *plan)
{
	const char *node = text_of(json, "node");

	if (!plan->nodes)
		return index < (size_t)plan->servers ? (int)index : -1;
	for (int s = 0; node && s < plan->servers; s++)
		if (!strcmp(plan->nodes[s], node))
			return s;
	return -1;
}

struct ocs_forward_hosts *ocs_forward_hosts_parse(const char *text, const struct ocs_plan *plan,
						  struct ocs_error *err)
{
	struct json_object *json = json_tokener_parse(text);
	struct json_object *list = json_object_object_get(json, "hosts");
	struct ocs_forward_hosts *hosts = hosts_new(plan->servers, plan->degree);
	int rc = 0;

	if (!json_object_is_type(list, json_type_array))
		rc = ocs_error_set(err, OCS_USAGE,
				   "hosts: this is no JSON object with a list 'hosts'");
	for (size_t i = 0; !rc && i < json_object_array_length(list); i++) {
		struct json_object *one = json_object_array_get_idx(list, i);
		int server = server_of(one, i, plan);

		/* The file may hold more hosts than this plan has. */
		if (server >= 0)
			rc = take_host(one, plan->degree, &hosts->host[server], err);
	}
	if (!rc)
		rc = all_differ(hosts, err);
	json_object_put(json);
	if (rc) {
		ocs_forward_hosts_destroy(hosts);
		return NULL;
	}
	return hosts;
}

static struct json_object *macs_of(struct json_object *macs, const char *node)
{
	for (size_t i = 0; i < json_object_array_length(macs); i++) {
		struct json_object *row = json_object_array_get_idx(macs, i);
		const char *name = text_of(row, OCS_FIELD_NODE);

		if (name && !strcmp(name, node))
			return row;
	}
	return NULL;
}

static const char *mac_text(struct json_object *row, const char *key, int interface)
{
	struct json_object *list = json_object_object_get(row, key);

	return json_object_is_type(list, json_type_array) ?
		       json_object_get_string(json_object_array_get_idx(list, interface)) :
		       NULL;
}

/* One host of the section; its MACs are in ROW, or by the rule. */
static int host_of_section(const struct ocs_section *section, const struct ocs_node *node,
			   int number, struct json_object *row, bool known,
			   struct ocs_forward_host *host, struct ocs_error *err)
{
	host->node = ocs_strdup(node->name);
	if (!section->job_addresses &&
	    ocs_section_host_address(section, node->server, host->address))
		return ocs_error_set(err, OCS_USAGE,
				     "section %s describes no addresses of its hosts",
				     section->name);
	for (int p = 0; p < ocs_section_devices(section); p++) {
		struct ocs_forward_port *port = &host->ports[p];
		bool split = strcmp(ocs_section_interface_forward(section, p),
				    ocs_section_interface_name(section, p));

		if (take_name(ocs_section_interface_name(section, p), port->name) ||
		    take_name(ocs_section_interface_forward(section, p), port->forward))
			return ocs_error_set(err, OCS_USAGE,
					     "interface %d of section %s has no"
					     " plain name",
					     p, section->name);
		if (section->job_addresses &&
		    ocs_section_interface_address(section, node->server, p, port->address) < 0)
			return ocs_error_set(err, OCS_USAGE, "interface %d of %s has no address", p,
					     node->name);
		if (!known)
			mac_rule(number, p, port);
		else if (take_mac(mac_text(row, OCS_FIELD_MACS, p), port->mac) ||
			 take_mac(mac_text(row, split ? OCS_FIELD_FORWARD_MACS : OCS_FIELD_MACS, p),
				  port->forward_mac))
			return ocs_error_set(err, OCS_USAGE,
					     "the MACs of interface %d of %s are"
					     " not known",
					     p, node->name);
	}
	return 0;
}

struct ocs_forward_hosts *ocs_forward_hosts_rails(const struct ocs_fabric *fabric,
						  const struct ocs_section *section,
						  struct json_object *rows, struct ocs_error *err)
{
	size_t count =
		json_object_is_type(rows, json_type_array) ? json_object_array_length(rows) : 0;
	struct ocs_forward_hosts *hosts = hosts_new((int)count, ocs_section_devices(section));

	for (size_t s = 0; s < count; s++) {
		struct json_object *row = json_object_array_get_idx(rows, s);
		const char *name = text_of(row, OCS_FIELD_NODE);
		const struct ocs_node *node = name ? ocs_fabric_node(fabric, name) : NULL;

		if (!node || node->section != section->index) {
			ocs_error_set(err, OCS_USAGE, "node %s is not in section %s",
				      name ? name : "without a name", section->name);
		} else if (host_of_section(section, node, (int)s, row, true, &hosts->host[s],
					   err) == 0) {
			continue;
		}
		ocs_forward_hosts_destroy(hosts);
		return NULL;
	}
	return hosts;
}

struct ocs_forward_hosts *ocs_forward_hosts_fabric(const struct ocs_fabric *fabric,
						   const struct ocs_section *section,
						   const struct ocs_plan *plan,
						   struct json_object *macs, struct ocs_error *err)
{
	struct ocs_forward_hosts *hosts;
	int rc = 0;

	if (!plan->nodes || plan->degree != section->degree) {
		ocs_error_set(err, OCS_USAGE, "the plan %s section %s",
			      plan->nodes ? "has another degree than" :
					    "does not name its servers, so they cannot be found in",
			      section->name);
		return NULL;
	}
	hosts = hosts_new(plan->servers, plan->degree);
	for (int s = 0; s < plan->servers && !rc; s++) {
		const struct ocs_node *node = ocs_fabric_node(fabric, plan->nodes[s]);

		if (!node || node->section != section->index)
			rc = ocs_error_set(err, OCS_USAGE, "section %s has no node %s",
					   section->name, plan->nodes[s]);
		else
			rc = host_of_section(section, node, s,
					     macs ? macs_of(macs, node->name) : NULL, macs,
					     &hosts->host[s], err);
	}
	if (!rc)
		return hosts;
	ocs_forward_hosts_destroy(hosts);
	return NULL;
}
