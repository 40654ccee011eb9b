/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/node/torus.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/nccl/subnet.h"
#include "src/util/error.h"
#include "src/util/text.h"

void ocs_node_torus_find(const struct ocs_fabric *fabric, const struct ocs_placement *placement,
			 const char *node, struct ocs_node_torus *torus)
{
	const struct ocs_section *section = placement->section;

	*torus = (struct ocs_node_torus){
		.section = section,
		.placement = placement,
		.node = (int)(ocs_fabric_node(fabric, node) - fabric->nodes),
		.links = ocs_links_of(placement),
		.held = ocs_calloc((size_t)section->ninterfaces + 1, sizeof(bool)),
	};
	ocs_dimension_lines_find(torus->links, torus->node, section->subnets_prefix != 0,
				 &torus->lines);
	ocs_dimension_lines_held(torus->links, torus->node, torus->held);
}

void ocs_node_torus_free(struct ocs_node_torus *torus)
{
	ocs_dimension_lines_free(&torus->lines);
	ocs_links_destroy(torus->links);
	free(torus->held);
	*torus = (struct ocs_node_torus){ 0 };
}

/* An end of a link, as subnets count them: XPUs are the servers, their six links the interfaces. */
static struct ocs_nccl_end link_end(const struct ocs_node_torus *torus, long rank, int axis,
				    int sign)
{
	const struct ocs_xpu *x = &torus->placement->xpus[rank];

	return (struct ocs_nccl_end){
		.server = x->cube * torus->section->cube_xpus +
			  ocs_section_bit(torus->section, x->at),
		.interface = axis * 2 + sign,
	};
}

void ocs_node_torus_subnets(const struct ocs_node_torus *torus, struct ocs_text *text)
{
	const struct ocs_section *s = torus->section;

	for (long r = 0; r < torus->placement->shape.xpus; r++) {
		const struct ocs_xpu *x = &torus->placement->xpus[r];

		if (ocs_section_node_at(s, x->cube, x->at) != torus->node)
			continue;
		for (int link = 0; link < OCS_LINKS; link++) {
			int axis = link / 2, sign = link % 2;
			int i = ocs_section_link_interface(s, ocs_section_device(s, x->at), axis,
							   sign);
			uint32_t address;

			if (i < 0 || !torus->held[i])
				continue;
			address = ocs_nccl_subnet_address(
				s->subnets, OCS_LINKS, link_end(torus, r, axis, sign),
				link_end(torus, ocs_links_peer(torus->links, r, axis, sign), axis,
					 !sign));
			ocs_text_add(text, "%s %u.%u.%u.%u/%d\n", s->interfaces[i].name,
				     address >> 24, address >> 16 & 0xff, address >> 8 & 0xff,
				     address & 0xff, OCS_NCCL_SUBNET_PREFIX);
		}
	}
}

void ocs_node_torus_interfaces(const struct ocs_node_torus *torus, struct ocs_text *text)
{
	bool any = false;

	for (int i = 0; i < torus->section->ninterfaces; i++)
		if (torus->held[i]) {
			ocs_text_add(text, "%s%s", any ? "," : "SLURM_OCS_INTERFACES=",
				     torus->section->interfaces[i].name);
			any = true;
		}
	if (any)
		ocs_text_add(text, "\n");
}

static int port_of(const struct ocs_node_ports *ports, int interface)
{
	for (int i = 0; i < ports->count; i++)
		if (ports->interface[i] == interface)
			return i;
	return -1;
}

/* The graph file of LINE, or NULL with ERR. */
static char *line_graph(const struct ocs_node_torus *torus, const struct ocs_line *line,
			const struct ocs_nccl_machine *machine, const struct ocs_node_ports *ports,
			struct ocs_nccl_graph_needs *needs, struct ocs_error *err)
{
	struct ocs_nccl_channel channels[OCS_LINE_CHANNELS_MAX];
	bool known = true;

	if (line->unlinked) {
		ocs_error_set(err, OCS_USAGE, "%d of %d hops between nodes %s no link",
			      line->unlinked, line->hops, line->unlinked == 1 ? "has" : "have");
		return NULL;
	}
	for (int c = 0; c < line->nchannels; c++) {
		channels[c] = (struct ocs_nccl_channel){
			.in = port_of(ports, line->channels[c].in),
			.out = port_of(ports, line->channels[c].out),
			.gpus = line->channels[c].devices,
			.ngpus = line->ndevices,
		};
		known &= channels[c].in >= 0 && channels[c].out >= 0;
	}
	if (!known) {
		ocs_error_set(err, OCS_USAGE, "not all links of this node have an RDMA device");
		return NULL;
	}
	return ocs_nccl_graph(machine, ports->list, ports->count, channels, line->nchannels,
			      torus->section->subnets_prefix != 0, needs, err);
}

/* What communicators do by themselves along the first line that has hops. */
static void steering_warn(const struct ocs_node_torus *torus, struct ocs_node_contents *contents)
{
	for (int i = 0; i < torus->lines.count; i++) {
		const struct ocs_line *line = &torus->lines.list[i];
		char *text;

		if (!line->alone_astray)
			continue;
		text = ocs_asprintf(
			"along a dimension take NCCL_GRAPH_FILE=graph-DIMENSION-NUMBER.xml of this "
			"folder (doc/nccl.md); without it %d of %d hops between nodes along "
			"dimension %d (%d %%) leave by a port whose link does not lead to the next "
			"node, and in a communicator of all ranks %d of %d hops between nodes have no "
			"link",
			line->alone_astray, line->alone_hops, line->dim,
			100 * line->alone_astray / line->alone_hops, torus->lines.unlinked,
			torus->lines.hops);
		ocs_node_warn(contents, "NCCL's communicators", text);
		free(text);
		return;
	}
}

static void graph_refused(const struct ocs_line *line, const struct ocs_error *err,
			  struct ocs_node_contents *contents)
{
	char *what = ocs_asprintf("no NCCL graph file along dimension %d", line->dim);

	/* the lines of a dimension are alike, and so are their faults */
	if (!contents->text[OCS_NODE_WARNINGS] || !strstr(contents->text[OCS_NODE_WARNINGS], what))
		ocs_node_warn(contents, what, err->text);
	free(what);
}

static bool only_dimension(const struct ocs_shape *shape)
{
	int count = 0;

	for (int d = 0; d < shape->ndim; d++)
		count += shape->extent[d] > 1;
	return count == 1;
}

char *ocs_node_torus_graphs(const struct ocs_node_torus *torus,
			    const struct ocs_nccl_machine *machine,
			    const struct ocs_node_ports *ports, struct ocs_nccl_graph_needs *needs,
			    struct ocs_node_contents *contents)
{
	const int *tile = torus->section->tile;
	bool only = only_dimension(&torus->placement->shape);
	struct ocs_nccl_graph_needs found;
	char *all = NULL;

	contents->graphs = ocs_calloc((size_t)torus->lines.count + 1, sizeof(*contents->graphs));
	for (int i = 0; i < torus->lines.count; i++) {
		const struct ocs_line *line = &torus->lines.list[i];
		struct ocs_error err = { 0 };
		char *text;

		if (!line->hops)
			continue;
		text = line_graph(torus, line, machine, ports, &found, &err);
		if (!text) {
			graph_refused(line, &err, contents);
			continue;
		}
		contents->graphs[contents->ngraphs++] = (struct ocs_node_graph){
			.name = ocs_asprintf("graph-%d-%d.xml", line->dim, line->number),
			.text = text,
		};
		if (only && line->ndevices == tile[0] * tile[1] * tile[2]) {
			all = ocs_strdup(text);
			*needs = found;
		}
	}
	if (!all)
		steering_warn(torus, contents);
	return all;
}
