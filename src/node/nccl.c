/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* What NCCL gets of a job on this node: files, environment, the addresses of its
 * circuits.  A fault in the description of the machine must not cost the job: without
 * a file NCCL finds out by itself, and the job is told. */

#include "src/node/node.h"
#include "src/node/torus.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/config/config.h"
#include "src/nccl/circuits.h"
#include "src/nccl/graph.h"
#include "src/nccl/subnet.h"
#include "src/nccl/topology.h"
#include "src/util/error.h"
#include "src/util/hostlist.h"
#include "src/util/release.h"
#include "src/util/text.h"

#define ENV_MAX (1 << 20)
#define RDMA_MAX 32 /* ports that NCCL takes */

struct work {
	const struct ocs_config *config;
	const struct ocs_section *section;
	const char *node;
	struct ocs_nccl_circuits circuits;
	struct ocs_node_torus torus; /* on cubes whose interfaces are known, else zero */
	struct ocs_nccl_port *ports; /* those that NCCL is to use */
	int *interface;		     /* of each */
	int nports;
	bool graph; /* the job gets NCCL_GRAPH_FILE, which has */
	struct ocs_nccl_graph_needs needs;
	struct ocs_node_contents *contents;
};

/* "mlx5_0:1" is port 1 of mlx5_0; the caller frees the device. */
static void port_add(struct work *work, int interface)
{
	const struct ocs_interface *described = &work->section->interfaces[interface];
	const char *name = described->rdma ? described->rdma : described->name;
	const char *colon = described->rdma ? strchr(name, ':') : NULL;
	size_t length = colon ? (size_t)(colon - name) : strlen(name);

	work->interface[work->nports] = interface;
	work->ports[work->nports++] = (struct ocs_nccl_port){
		.device = ocs_asprintf("%.*s", (int)length, name),
		.number = colon ? atoi(colon + 1) : 0,
		.rdma = described->rdma != NULL,
		.mbps = described->speed,
	};
}

/* The interfaces that hold circuits of the job; on rails, which go with their nodes,
 * all.  If some have RDMA devices NCCL uses no others. */
static void ports_find(struct work *work)
{
	const struct ocs_section *section = work->section;
	bool rdma = false;

	if (!section->interfaces)
		return;
	work->ports = ocs_calloc((size_t)section->ninterfaces + 1, sizeof(*work->ports));
	work->interface = ocs_calloc((size_t)section->ninterfaces + 1, sizeof(int));
	for (int pass = 0; pass < 2; pass++)
		for (int i = 0; i < section->ninterfaces; i++) {
			bool holds = section->kind == OCS_RAILS ||
				     (work->torus.held && work->torus.held[i]);

			for (int c = 0; c < work->circuits.count; c++)
				holds |= work->circuits.list[c].interface == i;
			if (!holds)
				continue;
			if (pass == 0)
				rdma |= section->interfaces[i].rdma != NULL;
			else if (!rdma || section->interfaces[i].rdma)
				port_add(work, i);
			else
				ocs_node_warn(work->contents, section->interfaces[i].name,
					      "has circuits but no RDMA device in "
					      "ocs.yaml, and others have: NCCL does not use it");
		}
}

static void topology_make(struct work *work, const struct ocs_nccl_machine *machine)
{
	char **text = &work->contents->text[OCS_NODE_TOPOLOGY];
	struct ocs_error err = { 0 }, again = { 0 };

	*text = ocs_nccl_topology(machine, work->ports, work->nports, &err);
	if (*text)
		return;
	if (work->nports)
		*text = ocs_nccl_topology(machine, NULL, 0, &again);
	/* what is wrong with the machine is wrong either way */
	if (*text)
		ocs_node_warn(work->contents, "the NCCL topology file leaves NIC ports to NCCL",
			      err.text);
	else
		ocs_node_warn(work->contents, "no NCCL topology file",
			      work->nports ? again.text : err.text);
}

static int port_of(const struct work *work, int interface)
{
	for (int i = 0; i < work->nports; i++)
		if (work->interface[i] == interface)
			return i;
	return -1;
}

/* The channels along ring +1.  NULL with ERR where they are not known. */
static char *graph_text(struct work *work, const struct ocs_nccl_machine *machine,
			struct ocs_error *err)
{
	int count = work->circuits.npassages;
	struct ocs_nccl_channel *channels = ocs_calloc(count + 1, sizeof(*channels));
	bool known = work->nports > 0 && count > 0;
	char *text = NULL;

	for (int i = 0; i < count; i++) {
		channels[i].in = port_of(work, work->circuits.passages[i].in);
		channels[i].out = port_of(work, work->circuits.passages[i].out);
		known &= channels[i].in >= 0 && channels[i].out >= 0;
	}
	if (known)
		text = ocs_nccl_graph(machine, work->ports, work->nports, channels, count,
				      work->section->subnets_prefix != 0, &work->needs, err);
	else
		ocs_error_set(err, OCS_ERROR, "this node's ports on a ring are not known");
	free(channels);
	return text;
}

static void release_format(int release, char text[32])
{
	snprintf(text, 32, "%d.%d.%d", release / 10000, release / 100 % 100, release % 100);
}

/* Whether the job gets NCCL_GRAPH_FILE; if not, ERR says why. */
static bool graph_wanted(const struct work *work, struct ocs_error *err)
{
	const struct ocs_config_nccl *nccl = &work->config->nccl;
	const struct ocs_nccl_graph_needs *needs = &work->needs;
	char since[32];

	if (!work->contents->text[OCS_NODE_GRAPH])
		return false;
	if (nccl->graph_file == OCS_GRAPH_FILE_NEVER) {
		ocs_error_set(err, OCS_USAGE, "graph_file is false in ocs.yaml");
		return false;
	}
	release_format(needs->since, since);
	if (nccl->graph_file == OCS_GRAPH_FILE_AUTO && nccl->release &&
	    nccl->release < needs->since) {
		ocs_error_set(err, OCS_USAGE, "%s, which takes NCCL %s", needs->why, since);
		return false;
	}
	return true;
}

/* What the job loses without the file. */
static void graph_warn(struct work *work, const struct ocs_error *err)
{
	const struct ocs_nccl_circuits *circuits = &work->circuits;
	bool rdma = work->nports > 0 && work->ports[0].rdma, lost = rdma && circuits->astray > 0;
	char *text = NULL;

	if (lost)
		text = ocs_asprintf(
			"%s; by the topology file alone %d of %d hops between nodes (%d %%) leave by "
			"a port whose circuit does not lead to the next node%s",
			err->text, circuits->astray, circuits->hops,
			100 * circuits->astray / circuits->hops,
			work->section->forwarding == OCS_FORWARDING_NONE ?
				"" :
				", so that other hosts forward them");
	if (lost || work->config->nccl.graph_file == OCS_GRAPH_FILE_ALWAYS)
		ocs_node_warn(work->contents, "no NCCL graph file", text ? text : err->text);
	free(text);
}

/* What the file costs, for the job only: it is no fault of the node. */
static void graph_note(struct work *work)
{
	char *text;

	if (!work->graph || work->needs.gpus < 2)
		return;
	text = ocs_asprintf(
		"NCCL_GRAPH_FILE is set: a communicator with part of a node's %d GPUs, such "
		"as a group for tensor parallelism, ends at its start (\"dev N not "
		"found\"); jobs with such groups are submitted with NCCL_GRAPH_FILE=none",
		work->needs.gpus);
	ocs_node_warn(work->contents, OCS_NODE_NOTE, text);
	free(text);
}

/* The same on cubes: a file for each line, and for all if the shape has one dimension. */
static void torus_graphs_make(struct work *work, const struct ocs_nccl_machine *machine)
{
	struct ocs_node_ports ports = { work->ports, work->interface, work->nports };
	struct ocs_error err = { 0 };

	if (!work->nports || !work->ports[0].rdma)
		return;
	if (work->nports > RDMA_MAX) {
		ocs_node_warn(work->contents, "no NCCL graph files",
			      "the node has more ports with links than NCCL takes, 32");
		return;
	}
	work->contents->text[OCS_NODE_GRAPH] =
		ocs_node_torus_graphs(&work->torus, machine, &ports, &work->needs, work->contents);
	work->graph = graph_wanted(work, &err);
}

static void graph_make(struct work *work, const struct ocs_nccl_machine *machine)
{
	const struct ocs_config_nccl *nccl = &work->config->nccl;
	struct ocs_error err = { 0 };
	char since[32], *text;

	work->contents->text[OCS_NODE_GRAPH] = graph_text(work, machine, &err);
	work->graph = graph_wanted(work, &err);
	if (!work->graph) {
		graph_warn(work, &err);
	} else if (nccl->graph_file == OCS_GRAPH_FILE_AUTO && work->needs.since && !nccl->release) {
		release_format(work->needs.since, since);
		text = ocs_asprintf("%s, which takes NCCL %s, and `nccl: version` of ocs.yaml does "
				    "not say what jobs load: tasks whose NCCL is not seen to be as "
				    "new do without NCCL_GRAPH_FILE",
				    work->needs.why, since);
		ocs_node_warn(work->contents, "NCCL's release is not known", text);
		free(text);
	}
}

/* What older releases do in spite of all. */
static void release_warn(struct work *work)
{
	int release = work->config->nccl.release;
	char text[32];

	release_format(release, text);
	if (!release || work->nports == 0)
		return;
	if (release < OCS_RELEASE(2, 22, 0) && work->section->forwarding == OCS_FORWARDING_NONE)
		ocs_node_warn(work->contents, text,
			      "NCCL before 2.22 connects trees at its start, also between nodes "
			      "that no circuit joins: hosts have to forward");
	if (release < OCS_RELEASE(2, 30, 7) && work->section->subnets_prefix)
		ocs_node_warn(work->contents, text,
			      "NCCL before 2.30.7 does not choose ports by subnet");
}

/* The address of each circuit of this node, one line each: device and address. */
static void subnets_make(struct work *work)
{
	const struct ocs_section *section = work->section;
	struct ocs_text text = { 0 };

	if (work->torus.held)
		ocs_node_torus_subnets(&work->torus, &text);
	for (int i = 0; i < work->circuits.count; i++) {
		const struct ocs_nccl_circuit *circuit = &work->circuits.list[i];
		const struct ocs_node *here = ocs_fabric_node(work->config->fabric, work->node);
		const struct ocs_node *peer = ocs_fabric_node(work->config->fabric, circuit->peer);
		uint32_t address;

		if (!here || !peer || circuit->interface >= section->degree)
			continue;
		address = ocs_nccl_subnet_address(
			section->subnets, section->degree,
			(struct ocs_nccl_end){ here->server, circuit->interface },
			(struct ocs_nccl_end){ peer->server, circuit->peer_interface });
		ocs_text_add(&text, "%s %u.%u.%u.%u/%d\n",
			     ocs_section_interface_name(section, circuit->interface), address >> 24,
			     address >> 16 & 0xff, address >> 8 & 0xff, address & 0xff,
			     OCS_NCCL_SUBNET_PREFIX);
	}
	if (text.length)
		work->contents->text[OCS_NODE_SUBNETS] = ocs_text_take(&text);
	work->contents->subnets = section->subnets;
	work->contents->subnets_prefix = section->subnets_prefix;
}

static void files_make(struct work *work)
{
	struct ocs_error err = { 0 };
	struct ocs_nccl_machine *machine =
		ocs_nccl_machine_open(work->config->nccl.hwloc_xml, &err);

	if (machine) {
		topology_make(work, machine);
		if (work->section->kind == OCS_DIRECT && work->circuits.count > 0)
			graph_make(work, machine);
		if (work->torus.held)
			torus_graphs_make(work, machine);
		if (work->section->kind != OCS_RAILS)
			release_warn(work);
		graph_note(work);
	} else {
		ocs_node_warn(work->contents, "no NCCL topology file", err.text);
	}
	ocs_nccl_machine_close(machine);
}

/* Does OTHER (NAME=VALUE) set the variable of ENTRY? */
static bool same_variable(const char *entry, const char *other)
{
	size_t length = strcspn(entry, "=");

	return strncmp(entry, other, length) == 0 && other[length] == '=';
}

static void environment_make(struct work *work, const char *dir, struct ocs_text *text)
{
	const struct ocs_config_nccl *nccl = &work->config->nccl;
	const struct ocs_section *section = work->section;
	char *topology = ocs_asprintf("%s/%s", dir, ocs_node_names[OCS_NODE_TOPOLOGY]);
	char *graph = ocs_asprintf("%s/%s", dir, ocs_node_names[OCS_NODE_GRAPH]);
	char *subnets = ocs_asprintf("%u.%u.%u.%u/%d", section->subnets >> 24,
				     section->subnets >> 16 & 0xff, section->subnets >> 8 & 0xff,
				     section->subnets & 0xff, section->subnets_prefix);
	struct ocs_nccl_setting setting = {
		.topology_file = work->contents->text[OCS_NODE_TOPOLOGY] ? topology : NULL,
		.graph_file = work->graph ? graph : NULL,
		.ports = work->ports,
		.nports = work->nports,
		.management = nccl->management,
		.rails = section->kind == OCS_RAILS,
		.subnets = work->contents->text[OCS_NODE_SUBNETS] ? subnets : NULL,
	};
	char **env, since[32];
	int count = ocs_nccl_environment(&setting, &env);

	for (int i = 0; i < count; i++) {
		bool replaced = false;

		/* what the administrator wrote in ocs.yaml wins */
		for (size_t j = 0; j < nccl->nenv; j++)
			replaced |= same_variable(env[i], nccl->env[j]);
		if (!replaced)
			ocs_text_add(text, "%s\n", env[i]);
	}
	for (size_t j = 0; j < nccl->nenv; j++)
		if (!strchr(nccl->env[j], '\n'))
			ocs_text_add(text, "%s\n", nccl->env[j]);
	/* for spank_ocs, which takes the file from tasks that it does not fit */
	if (work->graph && nccl->graph_file == OCS_GRAPH_FILE_AUTO) {
		ocs_text_add(text, "SLURM_OCS_GRAPH_GPUS=%d\n", work->needs.gpus);
		release_format(work->needs.since, since);
		if (work->needs.since > nccl->release)
			ocs_text_add(text, "SLURM_OCS_GRAPH_NCCL=%s\n", since);
	}
	ocs_names_free(env, count);
	free(topology);
	free(graph);
	free(subnets);
}

int ocs_node_nccl(const struct ocs_config *config, const struct ocs_section *section,
		  const struct ocs_node_request *request, struct json_object *plan,
		  const struct ocs_placement *placement, struct ocs_node_contents *contents,
		  struct ocs_text *env, struct ocs_error *err)
{
	struct work work = {
		.config = config, .section = section, .node = request->node, .contents = contents
	};
	int rc = 0;

	if (plan && section->interfaces)
		rc = ocs_nccl_circuits_read(plan, request->node, &work.circuits, err);
	if (placement && section->interfaces)
		ocs_node_torus_find(config->fabric, placement, request->node, &work.torus);
	if (rc == 0) {
		ports_find(&work);
		files_make(&work);
		if (section->subnets_prefix)
			subnets_make(&work);
		if (work.torus.held)
			ocs_node_torus_interfaces(&work.torus, env);
		environment_make(&work, request->dir, env);
	}
	for (int i = 0; i < work.nports; i++)
		free((char *)work.ports[i].device);
	free(work.ports);
	free(work.interface);
	ocs_nccl_circuits_free(&work.circuits);
	ocs_node_torus_free(&work.torus);
	return rc;
}

/* What is not NCCL's of the file env in DIR. */
static void environment_keep(const char *dir, struct ocs_text *text)
{
	char *path = ocs_asprintf("%s/%s", dir, ocs_node_names[OCS_NODE_ENV]);
	char *old = ocs_file_read(path, ENV_MAX, NULL, NULL);

	for (const char *line = old; line && *line;) {
		int length = (int)strcspn(line, "\n");

		if (strncmp(line, "SLURM_OCS_", 10) == 0 &&
		    strncmp(line, "SLURM_OCS_GRAPH", 15) != 0)
			ocs_text_add(text, "%.*s\n", length, line);
		line += length + (line[length] == '\n');
	}
	free(old);
	free(path);
}

int ocs_node_nccl_follow(const struct ocs_config *config, const struct ocs_section *section,
			 const struct ocs_node_request *request, struct json_object *plan,
			 struct ocs_error *err)
{
	struct ocs_node_contents contents = { 0 };
	struct ocs_text env = { 0 };
	int rc;

	environment_keep(request->dir, &env);
	rc = ocs_node_nccl(config, section, request, plan, NULL, &contents, &env, err);
	contents.text[OCS_NODE_ENV] = ocs_text_take(&env);
	/* the file first: the epilog takes away what it names */
	if (rc == 0)
		rc = ocs_node_directory_update(request->dir, &contents, err);
	if (rc == 0)
		rc = ocs_node_subnets_apply(&contents, err);
	ocs_node_contents_free(&contents);
	return rc;
}
