/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The keys `interfaces`, `forwarding`, `tcp` and `subnets` of a fabric.  Names end in commands
 * that root runs, so only plain ones get in; every address is computed here, so that
 * one that stands twice is found at once. */

#include <arpa/inet.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "src/config/expr.h"
#include "src/config/load.h"
#include "src/util/error.h"
#include "src/util/text.h"

#define DEVICE_MAX 15 /* characters of the name of a network device */
#define RDMA_MAX 63
#define TCP_DEVICES_MAX 64 /* ocs-node has a bit for each in which routes go over it */
#define NUMA_MAX 255
#define SPEED_MAX 100000000 /* Mb/s */

struct reader {
	struct ocs_loader *loader;
	struct ocs_yaml *yaml;
	struct ocs_section *section;
	bool cubes; /* an interface is the end of one link of an XPU */
};

/* An address of some server, with where it stands. */
struct used {
	uint32_t address;
	int server, interface; /* interface -1: the address for forwarding */
	const yaml_node_t *node;
};

static bool name_plain(const char *text, size_t length)
{
	if (!length || !isalnum((unsigned char)text[0]))
		return false;
	for (size_t i = 0; i < length; i++)
		if (!isalnum((unsigned char)text[i]) && !strchr("._-", text[i]))
			return false;
	return true;
}

int ocs_load_device(struct ocs_loader *loader, const yaml_node_t *node, const char *key,
		    char **name)
{
	const char *text = ocs_yaml_text(&loader->yaml, node, key);

	if (!text)
		return -1;
	if (strlen(text) > DEVICE_MAX || !name_plain(text, strlen(text)))
		return ocs_yaml_fail(
			&loader->yaml, node,
			"%s: \"%.60s\" is not the name of a network device, which has at most %d letters, digits, '.', '_' and '-'",
			key, text, DEVICE_MAX);
	*name = ocs_strdup(text);
	return 0;
}

/* "mlx5_0" or "mlx5_0:1". */
static int rdma_load(struct reader *reader, const yaml_node_t *node, char **rdma)
{
	const char *text = ocs_yaml_text(reader->yaml, node, "rdma");
	size_t length = text ? strcspn(text, ":") : 0;
	long port;

	if (!text)
		return -1;
	if (length > RDMA_MAX || !name_plain(text, length) ||
	    (text[length] && ocs_number_parse(text + length + 1, 1, 255, &port) < 0))
		return ocs_yaml_fail(
			reader->yaml, node,
			"rdma: \"%.80s\" is not an RDMA device with or without a port, such as mlx5_0:1",
			text);
	*rdma = ocs_strdup(text);
	return 0;
}

/* Splits "ADDRESS/LENGTH"; LENGTH 32 where there is none.  0 or -1. */
static int prefix_parse(const char *text, uint32_t *address, int *prefix)
{
	const char *slash = strchr(text, '/');
	char copy[INET_ADDRSTRLEN];
	size_t length = slash ? (size_t)(slash - text) : strlen(text);
	struct in_addr parsed;
	long bits = 32;

	if (length >= sizeof(copy) || (slash && ocs_number_parse(slash + 1, 1, 32, &bits) < 0))
		return -1;
	memcpy(copy, text, length);
	copy[length] = '\0';
	if (inet_pton(AF_INET, copy, &parsed) != 1)
		return -1;
	*address = ntohl(parsed.s_addr);
	*prefix = (int)bits;
	return 0;
}

static bool host_address(uint32_t address)
{
	return address >> 24 != 0 && address >> 24 != 127 && address >> 28 < 14;
}

/* A base prefix: server s has the address number s + 1 in it. */
static int base_address(struct reader *reader, const yaml_node_t *node, const char *text,
			int server, uint32_t *address, int *prefix)
{
	uint32_t base, last;

	if (prefix_parse(text, &base, prefix) < 0)
		return ocs_yaml_fail(
			reader->yaml, node,
			"address: \"%.60s\" is not an IPv4 prefix such as 10.192.0.0/16, or a pattern such as \"10.192.0.{server + 1}/24\"",
			text);
	last = *prefix < 32 ? UINT32_MAX >> *prefix : 0;
	if (base & last)
		return ocs_yaml_fail(
			reader->yaml, node,
			"address: %s has bits behind its prefix; without braces it is the prefix from which all servers get their addresses",
			text);
	if ((uint32_t)reader->section->nservers >= last)
		return ocs_yaml_fail(
			reader->yaml, node,
			"address: the prefix %s has no room for the addresses of %d servers", text,
			reader->section->nservers);
	*address = base + (uint32_t)server + 1;
	return 0;
}

/* The address of SERVER by the text at NODE; INTERFACE -1: that for forwarding. */
static int address_of(struct reader *reader, const yaml_node_t *node, const char *text, int server,
		      int interface, uint32_t *address, int *prefix)
{
	const struct ocs_section *section = reader->section;
	const char *name = reader->loader->fabric->nodes[section->first_node + server].name;
	const struct ocs_variable variables[] = {
		{ .name = "server", .value = server },
		{ .name = "servers", .value = section->nservers },
		{ .name = "degree", .value = section->degree },
		{ .name = "interface", .value = interface / section->nic_ports },
		{ .name = "nic_port", .value = interface % section->nic_ports },
	};
	struct ocs_text expanded = { 0 };
	int rc = 0;

	if (!strchr(text, '{'))
		return base_address(reader, node, text, server, address, prefix);
	if (ocs_expr_expand(text, variables, interface < 0 ? 3 : 5, &expanded, reader->yaml->err) <
	    0) {
		ocs_error_prefix(reader->yaml->err, "address, for %s", name);
		rc = ocs_yaml_prefix(reader->yaml, node);
	} else if (prefix_parse(expanded.data, address, prefix) < 0) {
		rc = ocs_yaml_fail(
			reader->yaml, node,
			"address: for %s this makes \"%.60s\", which is not an IPv4 address", name,
			expanded.data);
	}
	ocs_text_free(&expanded);
	return rc;
}

static int address_checked(struct reader *reader, const yaml_node_t *node, const char *text,
			   int server, int interface, uint32_t *address, int *prefix)
{
	if (address_of(reader, node, text, server, interface, address, prefix) < 0)
		return -1;
	if (!host_address(*address))
		return ocs_yaml_fail(
			reader->yaml, node,
			"address: %u.%u.%u.%u of %s is not an address that a host can have",
			*address >> 24, *address >> 16 & 0xff, *address >> 8 & 0xff,
			*address & 0xff,
			reader->loader->fabric->nodes[reader->section->first_node + server].name);
	return 0;
}

static int by_address(const void *a, const void *b)
{
	const struct used *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	if (x->server != y->server)
		return x->server - y->server;
	/* what is complained about is what stands later: forwarding, -1, comes last */
	return (unsigned int)x->interface < (unsigned int)y->interface ? -1 : 1;
}

/* Every address of the section once. */
static int addresses_check(struct reader *reader, struct used *used, size_t count)
{
	const struct ocs_node *nodes = &reader->loader->fabric->nodes[reader->section->first_node];

	qsort(used, count, sizeof(*used), by_address);
	for (size_t i = 1; i < count; i++)
		if (used[i].address == used[i - 1].address)
			return ocs_yaml_fail(
				reader->yaml, used[i].node,
				"the address %u.%u.%u.%u stands twice: %s and %s would have it%s",
				used[i].address >> 24, used[i].address >> 16 & 0xff,
				used[i].address >> 8 & 0xff, used[i].address & 0xff,
				nodes[used[i - 1].server].name, nodes[used[i].server].name,
				used[i].server != used[i - 1].server ?
					"" :
				used[i].interface < 0 ?
					", on an interface and for forwarding, which needs an address of its own" :
					", on several interfaces; the key \"forwarding\" is for one address on all of them");
	return 0;
}

/* How many XPUs of a tile have links that leave it along AXIS in direction SIGN; *FIRST is the first. */
static int link_owners(const struct ocs_section *section, int axis, int sign, int *first)
{
	int xpus = section->tile[0] * section->tile[1] * section->tile[2], count = 0;

	for (int device = xpus - 1; device >= 0; device--)
		if (ocs_section_link_leaves(section, device, axis, sign)) {
			*first = device;
			count++;
		}
	return count;
}

/* The keys `direction` and `xpu` of interface INDEX: which link it is the end of. */
static int link_load(struct reader *reader, const yaml_node_t *direction, const yaml_node_t *xpu,
		     int index)
{
	struct ocs_section *section = reader->section;
	struct ocs_interface *one = &section->interfaces[index];
	const char *text = ocs_yaml_text(reader->yaml, direction, "direction"), *axis;
	int xpus = section->tile[0] * section->tile[1] * section->tile[2], owners;

	if (!text)
		return -1;
	axis = strlen(text) == 2 && strchr("+-", text[0]) ? strchr("xyz", text[1]) : NULL;
	if (!axis)
		return ocs_yaml_fail(reader->yaml, direction,
				     "direction must be +x, -x, +y, -y, +z or -z, not \"%.40s\"",
				     text);
	one->axis = *axis - 'x';
	one->sign = text[0] == '+' ? OCS_PLUS : OCS_MINUS;
	owners = link_owners(section, one->axis, one->sign, &one->device);
	if (!xpu && owners > 1)
		return ocs_yaml_fail(
			reader->yaml, direction,
			"%d XPUs of a tile have links that leave it in direction %s: \"xpu\" says whose this is, by its number in the tile",
			owners, text);
	if (xpu && ocs_yaml_number(reader->yaml, xpu, "xpu", 0, xpus - 1, &one->device) < 0)
		return -1;
	if (!ocs_section_link_leaves(section, one->device, one->axis, one->sign))
		return ocs_yaml_fail(reader->yaml, xpu,
				     "the link of XPU %d in direction %s stays in the tile",
				     one->device, text);
	for (int i = 0; i < index; i++) {
		const struct ocs_interface *other = &section->interfaces[i];

		if (other->device == one->device && other->axis == one->axis &&
		    other->sign == one->sign)
			return ocs_yaml_fail(
				reader->yaml, direction,
				"the link of XPU %d in direction %s stands twice, at interfaces %d and %d",
				one->device, text, i, index);
	}
	return 0;
}

/* The devices of interface INDEX are no other interface's. */
static int devices_check(struct reader *reader, const yaml_node_t *node, int index)
{
	const struct ocs_interface *interfaces = reader->section->interfaces;
	const struct ocs_interface *one = &interfaces[index];

	for (int i = 0; i <= index; i++) {
		const struct ocs_interface *other = &interfaces[i];
		const char *twice =
			i < index && (strcmp(other->name, one->name) == 0 ||
				      (other->forward && strcmp(other->forward, one->name) == 0)) ?
				one->name :
				NULL;

		if (one->forward &&
		    (strcmp(other->name, one->forward) == 0 ||
		     (i < index && other->forward && strcmp(other->forward, one->forward) == 0)))
			twice = one->forward;
		if (twice)
			return ocs_yaml_fail(reader->yaml, node,
					     "the device %s stands twice, at interfaces %d and %d",
					     twice, i, index);
		if (i < index && one->rdma && other->rdma && strcmp(other->rdma, one->rdma) == 0)
			return ocs_yaml_fail(
				reader->yaml, node,
				"the RDMA device %s stands twice, at interfaces %d and %d",
				one->rdma, i, index);
	}
	return 0;
}

static int interface_load(struct reader *reader, yaml_node_t *node, int index,
			  const yaml_node_t **address)
{
	struct ocs_field servers[] = { { .name = "name", .required = true },
				       { .name = "rdma" },
				       { .name = "speed" },
				       { .name = "forward" },
				       { .name = "address" },
				       { .name = "numa" } };
	struct ocs_field links[] = { { .name = "name", .required = true },
				     { .name = "rdma" },
				     { .name = "speed" },
				     { .name = "direction", .required = true },
				     { .name = "xpu" } };
	struct ocs_field *fields = reader->cubes ? links : servers;
	struct ocs_interface *interfaces = reader->section->interfaces;
	struct ocs_interface *one = &interfaces[index];
	const char *text;

	one->numa = -1;
	if (ocs_yaml_fields(reader->yaml, node, "an interface", fields,
			    reader->section->kind == OCS_REGION ? 6 : 5) < 0 ||
	    ocs_load_device(reader->loader, fields[0].node, "name", &one->name) < 0 ||
	    (fields[1].node && rdma_load(reader, fields[1].node, &one->rdma) < 0) ||
	    (fields[2].node &&
	     ocs_yaml_number(reader->yaml, fields[2].node, "speed", 1, SPEED_MAX, &one->speed) < 0))
		return -1;
	if (reader->cubes ? link_load(reader, fields[3].node, fields[4].node, index) < 0 :
			    fields[3].node && ocs_load_device(reader->loader, fields[3].node,
							      "forward", &one->forward) < 0)
		return -1;
	if (reader->section->kind == OCS_REGION && servers[5].node &&
	    ocs_yaml_number(reader->yaml, servers[5].node, "numa", 0, NUMA_MAX, &one->numa) < 0)
		return -1;
	if (devices_check(reader, node, index) < 0)
		return -1;
	*address = reader->cubes ? NULL : fields[4].node;
	if (!*address)
		return 0;
	text = ocs_yaml_text(reader->yaml, *address, "address");
	if (!text)
		return -1;
	one->address = ocs_strdup(text);
	return 0;
}

/* The addresses of one interface on all servers. */
static int interface_addresses(struct reader *reader, const yaml_node_t *node, int index,
			       struct used *used)
{
	struct ocs_section *section = reader->section;
	struct ocs_interface *one = &section->interfaces[index];

	if (!section->addresses)
		section->addresses =
			ocs_calloc((size_t)section->nservers * ocs_section_devices(section),
				   sizeof(*section->addresses));
	for (int s = 0; s < section->nservers; s++) {
		uint32_t *address =
			&section->addresses[(size_t)s * ocs_section_devices(section) + index];
		int prefix;

		if (address_checked(reader, node, one->address, s, index, address, &prefix) < 0)
			return -1;
		one->prefix = prefix;
		used[s] = (struct used){ *address, s, index, node };
	}
	return 0;
}

static int interfaces_load(struct reader *reader, yaml_node_t *node, struct used *used,
			   size_t *count)
{
	struct ocs_section *section = reader->section;
	int length = ocs_yaml_length(reader->yaml, node, "interfaces"), expected;

	if (length < 0)
		return -1;
	expected = reader->cubes ? ocs_section_tile_links(section) : ocs_section_devices(section);
	if (length != expected)
		return ocs_yaml_fail(
			reader->yaml, node,
			reader->cubes ?
				"interfaces lists %d, but from a tile of %s %d links lead to others%s: one entry for each" :
				"interfaces lists %d, but %s has %d%s: one entry for each, in the order of their numbers",
			length, section->name, expected,
			section->nic_ports > 1 ? " (two ports for each rail)" : "");
	section->interfaces = ocs_calloc((size_t)length, sizeof(*section->interfaces));
	section->ninterfaces = length;
	for (int i = 0; i < length; i++) {
		const yaml_node_t *address = NULL;

		if (interface_load(reader, ocs_yaml_item(reader->yaml, node, i), i, &address) < 0)
			return -1;
		if (!address)
			continue;
		if (interface_addresses(reader, address, i, used + *count) < 0)
			return -1;
		*count += (size_t)section->nservers;
	}
	return 0;
}

/* The address of every server at NODE, one on all its interfaces. */
static int hosts_load(struct reader *reader, const yaml_node_t *node, struct used *used,
		      size_t *count)
{
	struct ocs_section *section = reader->section;
	const char *text = ocs_yaml_text(reader->yaml, node, "address");
	int prefix;

	if (!text)
		return -1;
	section->hosts = ocs_calloc((size_t)section->nservers, sizeof(*section->hosts));
	for (int s = 0; s < section->nservers; s++) {
		if (address_checked(reader, node, text, s, -1, &section->hosts[s], &prefix) < 0)
			return -1;
		used[*count] = (struct used){ section->hosts[s], s, -1, node };
		++*count;
	}
	return 0;
}

/* The key `tcp` of rails: an address of each server, and the device that is used while no circuit
 * stands. */
static int tcp_load(struct reader *reader, yaml_node_t *node, struct used *used, size_t *count)
{
	struct ocs_field fields[] = { { .name = "address", .required = true },
				      { .name = "management", .required = true } };
	struct ocs_section *section = reader->section;

	if (ocs_yaml_fields(reader->yaml, node, "tcp", fields, 2) < 0)
		return -1;
	if (!section->interfaces)
		return ocs_yaml_fail(
			reader->yaml, node,
			"tcp needs the key \"interfaces\", which names the devices of a server");
	if (section->ninterfaces > TCP_DEVICES_MAX)
		return ocs_yaml_fail(reader->yaml, node,
				     "tcp: routes go over at most %d interfaces, %s has %d",
				     TCP_DEVICES_MAX, section->name, section->ninterfaces);
	if (ocs_load_device(reader->loader, fields[1].node, "management", &section->management) < 0)
		return -1;
	for (int i = 0; i < section->ninterfaces; i++)
		if (strcmp(section->interfaces[i].name, section->management) == 0)
			return ocs_yaml_fail(
				reader->yaml, fields[1].node,
				"management: %s is on a rail, at interface %d; name a device that needs no circuit",
				section->management, i);
	return hosts_load(reader, fields[0].node, used, count);
}

/* The key `tcp` of regions: whether jobs get the addresses of `interfaces`. */
static int region_tcp_load(struct reader *reader, const yaml_node_t *node)
{
	struct ocs_section *section = reader->section;

	if (ocs_yaml_bool(reader->yaml, node, "tcp", &section->job_addresses) < 0)
		return -1;
	for (int i = 0; section->job_addresses && i < section->degree; i++)
		if (!section->interfaces || !section->interfaces[i].address)
			return ocs_yaml_fail(
				reader->yaml, node,
				"tcp needs the key \"interfaces\", with an address for each of the %d optical NICs",
				section->degree);
	return 0;
}

static int forwarding_load(struct reader *reader, yaml_node_t *node, struct used *used,
			   size_t *count)
{
	static const char *const backends[] = { "none", "auto", "flower", "bpf", "routes" };
	struct ocs_field fields[] = { { .name = "backend" },
				      { .name = "address", .required = true } };
	struct ocs_section *section = reader->section;
	int choice = OCS_FORWARDING_AUTO;

	if (ocs_yaml_fields(reader->yaml, node, "forwarding", fields, 2) < 0)
		return -1;
	if (!section->interfaces)
		return ocs_yaml_fail(
			reader->yaml, node,
			"forwarding needs the key \"interfaces\", which names the devices of a server");
	if (fields[0].node)
		choice = ocs_yaml_choice(reader->yaml, fields[0].node, "backend", backends, 5);
	if (choice < 0 || hosts_load(reader, fields[1].node, used, count) < 0)
		return -1;
	section->forwarding = (enum ocs_forwarding)choice;
	return 0;
}

/* The range of the circuits' subnets: two addresses for each interface, none of them
 * of any host. */
static int subnets_load(struct reader *reader, const yaml_node_t *node, const struct used *used,
			size_t count)
{
	const char *text = ocs_yaml_text(reader->yaml, node, "subnets");
	struct ocs_section *section = reader->section;
	/* in cubes XPUs are the servers */
	int ends = reader->cubes ? section->ncubes * section->cube_xpus : section->nservers;
	int each = reader->cubes ? OCS_LINKS : section->degree;
	uint64_t needed = 2 * (uint64_t)ends * (uint64_t)each;
	uint32_t base, last;
	int prefix;

	if (!text)
		return -1;
	if (!section->interfaces)
		return ocs_yaml_fail(
			reader->yaml, node,
			"subnets needs the key \"interfaces\", which names the devices of a %s",
			reader->cubes ? "node" : "server");
	if (section->directed)
		return ocs_yaml_fail(
			reader->yaml, node,
			"subnets: over directed circuits two servers do not hear each other; a subnet needs duplex ones");
	if (prefix_parse(text, &base, &prefix) < 0 || !strchr(text, '/') || prefix > 31)
		return ocs_yaml_fail(
			reader->yaml, node,
			"subnets: \"%.60s\" is not an IPv4 prefix such as 10.128.0.0/16", text);
	last = UINT32_MAX >> prefix;
	if (base & last || !host_address(base) || !host_address(base + last))
		return ocs_yaml_fail(reader->yaml, node,
				     "subnets: %s is not a prefix of addresses that hosts can have",
				     text);
	if (needed > (uint64_t)last + 1)
		return ocs_yaml_fail(
			reader->yaml, node,
			"subnets: %s has %llu addresses, but %d %s with %d %s need two for each, %llu",
			text, (unsigned long long)last + 1, ends,
			reader->cubes ? "XPUs" : "servers", each,
			reader->cubes ? "links" : "interfaces", (unsigned long long)needed);
	for (size_t i = 0; i < count; i++)
		if ((used[i].address & ~last) == base)
			return ocs_yaml_fail(
				reader->yaml, node,
				"subnets: %s is for circuits only, but %u.%u.%u.%u of a server lies in it",
				text, used[i].address >> 24, used[i].address >> 16 & 0xff,
				used[i].address >> 8 & 0xff, used[i].address & 0xff);
	section->subnets = base;
	section->subnets_prefix = prefix;
	return 0;
}

int ocs_load_interfaces(struct ocs_loader *loader, int index, yaml_node_t *interfaces,
			yaml_node_t *forwarding, yaml_node_t *subnets, yaml_node_t *tcp)
{
	struct ocs_section *section = &loader->fabric->sections[index];
	struct reader reader = {
		.loader = loader,
		.yaml = &loader->yaml,
		.section = section,
		.cubes = section->kind == OCS_TORUS || section->kind == OCS_STATIC,
	};
	struct used *used;
	size_t count = 0;
	int rc = 0;

	if (!interfaces && !forwarding && !subnets && !tcp)
		return 0;
	used = ocs_calloc((size_t)section->nservers * (size_t)(ocs_section_devices(section) + 1),
			  sizeof(*used));
	if (interfaces)
		rc = interfaces_load(&reader, interfaces, used, &count);
	if (rc == 0 && forwarding)
		rc = forwarding_load(&reader, forwarding, used, &count);
	if (rc == 0 && tcp)
		rc = section->kind == OCS_REGION ? region_tcp_load(&reader, tcp) :
						   tcp_load(&reader, tcp, used, &count);
	if (rc == 0)
		rc = addresses_check(&reader, used, count);
	if (rc == 0 && subnets)
		rc = subnets_load(&reader, subnets, used, count);
	free(used);
	return rc;
}
