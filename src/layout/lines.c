/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/layout/lines.h"

#include <stdlib.h>
#include <string.h>

#include "src/place/orders.h"
#include "src/util/text.h"

/* One line while it is looked at. */
struct walk {
	const struct ocs_links *links;
	const struct ocs_section *section;
	const long *ranks; /* of the line, in order */
	int length;
	bool ring;
	int *place; /* by rank: its place in the line, or -1 */
	int *stop;  /* of each place: the number of its node in NCCL's ring */
	int *nodes; /* of each stop */
	int nstops;
	long *first,
		*next; /* XPUs of a node (counted in the section): a chain of ranks, -1 ends it */
};

/* A link from one node to the next. */
struct leap {
	int from, to; /* places in the line */
	int axis, sign;
};

static int node_of(const struct walk *walk, long rank)
{
	const struct ocs_xpu *x = &walk->links->placement->xpus[rank];

	return ocs_section_node_at(walk->section, x->cube, x->at);
}

static int device_of(const struct walk *walk, int place)
{
	return ocs_section_device(walk->section,
				  walk->links->placement->xpus[walk->ranks[place]].at);
}

/* How well a link suits the ring: 0 along the line, 1 against it, 2 any other. */
static int leap_class(const struct walk *walk, int from, int to)
{
	int after = (from + 1) % walk->length, before = (from + walk->length - 1) % walk->length;

	if (to == after && (walk->ring || after))
		return 0;
	return to == before && (walk->ring || from) ? 1 : 2;
}

static int leaps_list(const struct walk *walk, int from, int to,
		      struct leap leaps[OCS_LINE_CHANNELS_MAX])
{
	int count = 0;

	for (int class = 0; class < 3; class ++)
		for (int p = 0; p < walk->length; p++)
			for (int link = 0; link < OCS_LINKS && walk->stop[p] == from; link++) {
				long peer = ocs_links_peer(walk->links, walk->ranks[p], link / 2,
							   link % 2);
				int q = peer < 0 ? -1 : walk->place[peer];

				if (q < 0 || walk->stop[q] != to ||
				    leap_class(walk, p, q) != class ||
				    count == OCS_LINE_CHANNELS_MAX)
					continue;
				leaps[count++] = (struct leap){ p, q, link / 2, link % 2 };
			}
	return count;
}

/* The links from stop FROM to stop TO, those that suit best first, in an order that every node comes
 * to.  Returns their number, at most OCS_LINE_CHANNELS_MAX. */
static int leaps_find(const struct walk *walk, int from, int to,
		      struct leap leaps[OCS_LINE_CHANNELS_MAX])
{
	/* two XPUs alone on their nodes: a channel comes back by the link that it went by, since NCCL takes
	 * one port for both directions */
	bool back = walk->length == 2 && walk->nstops == 2 && from > to;
	int count = back ? leaps_list(walk, to, from, leaps) : leaps_list(walk, from, to, leaps);

	for (int i = 0; back && i < count; i++)
		leaps[i] =
			(struct leap){ leaps[i].to, leaps[i].from, leaps[i].axis, !leaps[i].sign };
	return count;
}

static void stops_find(struct walk *walk)
{
	for (int p = 0; p < walk->length; p++) {
		int node = node_of(walk, walk->ranks[p]), s = 0;

		/* the last ones are the likeliest */
		for (s = walk->nstops - 1; s >= 0 && walk->nodes[s] != node; s--)
			;
		if (s < 0) {
			s = walk->nstops++;
			walk->nodes[s] = node;
		}
		walk->stop[p] = s;
		walk->place[walk->ranks[p]] = p;
	}
}

/* The XPUs of this node: first the one at FIRST, last the one at LAST (places), between them the
 * others in the order of the line, or against it. */
static int *devices_order(const struct walk *walk, int here, int first, int last)
{
	int *devices = ocs_calloc((size_t)walk->length, sizeof(int)), count = 0;

	devices[count++] = device_of(walk, first);
	for (int i = 0; i < walk->length; i++) {
		int p = first <= last ? i : walk->length - 1 - i;

		if (walk->stop[p] == here && p != first && p != last)
			devices[count++] = device_of(walk, p);
	}
	if (last != first)
		devices[count++] = device_of(walk, last);
	return devices;
}

static int interface_of(const struct walk *walk, int place, int axis, int sign)
{
	return ocs_section_link_interface(walk->section, device_of(walk, place), axis, sign);
}

static void channels_make(const struct walk *walk, int here, int count, struct ocs_line *line)
{
	struct leap in[OCS_LINE_CHANNELS_MAX], out[OCS_LINE_CHANNELS_MAX];
	int before = (here + walk->nstops - 1) % walk->nstops;

	leaps_find(walk, before, here, in);
	leaps_find(walk, here, (here + 1) % walk->nstops, out);
	line->channels = ocs_calloc((size_t)count + 1, sizeof(*line->channels));
	for (int c = 0; c < count; c++)
		line->channels[line->nchannels++] = (struct ocs_line_channel){
			.in = interface_of(walk, in[c].to, in[c].axis, !in[c].sign),
			.out = interface_of(walk, out[c].from, out[c].axis, out[c].sign),
			.devices = devices_order(walk, here, in[c].to, out[c].from),
		};
}

static void chains_make(struct walk *walk)
{
	const struct ocs_placement *p = walk->links->placement;

	walk->first = ocs_calloc((size_t)walk->section->nnodes, sizeof(long));
	walk->next = ocs_calloc((size_t)p->shape.xpus, sizeof(long));
	for (int i = 0; i < walk->section->nnodes; i++)
		walk->first[i] = -1;
	for (long r = 0; r < p->shape.xpus; r++) {
		long *first = &walk->first[node_of(walk, r) - walk->section->first_node];

		walk->next[r] = *first;
		*first = r;
	}
}

/* Marks in HELD the interfaces of NODE with links to other nodes. */
static void held_mark(const struct walk *walk, int node, bool *held)
{
	const struct ocs_section *s = walk->section;

	memset(held, 0, sizeof(*held) * (size_t)s->ninterfaces);
	for (long r = walk->first[node - s->first_node]; r >= 0; r = walk->next[r])
		for (int link = 0; link < OCS_LINKS; link++) {
			int device = ocs_section_device(s, walk->links->placement->xpus[r].at), i;
			long peer = ocs_links_peer(walk->links, r, link / 2, link % 2);

			if (peer < 0 || node_of(walk, peer) == node)
				continue;
			i = ocs_section_link_interface(s, device, link / 2, link % 2);
			if (i >= 0)
				held[i] = true;
		}
}

/* The XPU and link behind interface number WHICH of those that NODE holds: the rank, or -1. */
static long held_end(const struct walk *walk, const bool *held, int node, int which,
		     const struct ocs_interface **interface)
{
	const struct ocs_section *s = walk->section;

	for (int i = 0; i < s->ninterfaces; i++) {
		if (!held[i] || which-- > 0)
			continue;
		*interface = &s->interfaces[i];
		for (long r = walk->first[node - s->first_node]; r >= 0; r = walk->next[r])
			if (ocs_section_device(s, walk->links->placement->xpus[r].at) ==
			    (*interface)->device)
				return r;
	}
	return -1;
}

/* What becomes of channel number C, which takes the held port of that number everywhere: false
 * where a node has no such port. */
static bool alone_count(const struct walk *walk, bool *const *held, int c, bool steered,
			struct ocs_line *line)
{
	const struct ocs_interface *out, *in;
	int astray = 0;

	for (int s = 0; s < walk->nstops; s++) {
		int next = (s + 1) % walk->nstops;
		long from = held_end(walk, held[s], walk->nodes[s], c, &out);
		long to = held_end(walk, held[next], walk->nodes[next], c, &in), peer;

		if (from < 0 || to < 0)
			return false;
		peer = ocs_links_peer(walk->links, to, in->axis, in->sign);
		astray += steered ? node_of(walk, peer) != walk->nodes[s] :
				    peer != from || out->axis != in->axis || out->sign == in->sign;
	}
	line->alone_hops += walk->nstops;
	line->alone_astray += astray;
	return true;
}

static void alone_find(const struct walk *walk, bool steered, struct ocs_line *line)
{
	bool **held = ocs_calloc((size_t)walk->nstops, sizeof(*held));

	for (int s = 0; s < walk->nstops; s++) {
		held[s] = ocs_calloc((size_t)walk->section->ninterfaces + 1, sizeof(bool));
		held_mark(walk, walk->nodes[s], held[s]);
	}
	for (int c = 0; alone_count(walk, held, c, steered, line); c++)
		;
	for (int s = 0; s < walk->nstops; s++)
		free(held[s]);
	free(held);
}

static void line_fill(const struct walk *walk, int node, bool steered, struct ocs_line *line)
{
	int least = OCS_LINE_CHANNELS_MAX, here = 0;

	for (int p = 0; p < walk->length; p++)
		line->ndevices += walk->nodes[walk->stop[p]] == node;
	if (walk->nstops < 2)
		return;
	line->hops = walk->nstops;
	for (int s = 0; s < walk->nstops; s++) {
		struct leap leaps[OCS_LINE_CHANNELS_MAX];
		int count = leaps_find(walk, s, (s + 1) % walk->nstops, leaps);

		line->unlinked += count == 0;
		least = count < least ? count : least;
		here = walk->nodes[s] == node ? s : here;
	}
	channels_make(walk, here, least, line);
	alone_find(walk, steered, line);
}

static bool line_passes(const struct walk *walk, int node)
{
	for (int p = 0; p < walk->length; p++)
		if (node_of(walk, walk->ranks[p]) == node)
			return true;
	return false;
}

static void dimension_add(struct walk *walk, int dim, int node, bool steered,
			  struct ocs_dimension_lines *lines)
{
	struct ocs_orders orders;

	ocs_orders_find(&walk->links->placement->shape, dim, &orders);
	walk->length = orders.length;
	walk->ring = orders.ring;
	for (int n = 0; n < orders.count; n++) {
		walk->ranks = orders.ranks + (long)n * orders.length;
		if (!line_passes(walk, node))
			continue;
		walk->nstops = 0;
		stops_find(walk);
		lines->list[lines->count] = (struct ocs_line){ .dim = dim, .number = n };
		line_fill(walk, node, steered, &lines->list[lines->count++]);
		for (int p = 0; p < walk->length; p++)
			walk->place[walk->ranks[p]] = -1;
	}
	ocs_orders_free(&orders);
}

/* Whether a link joins nodes A and B. */
static bool nodes_linked(const struct walk *walk, int a, int b)
{
	for (long r = walk->first[a - walk->section->first_node]; r >= 0; r = walk->next[r])
		for (int link = 0; link < OCS_LINKS; link++) {
			long peer = ocs_links_peer(walk->links, r, link / 2, link % 2);

			if (peer >= 0 && node_of(walk, peer) == b)
				return true;
		}
	return false;
}

/* The hops of a communicator of all ranks. */
static void all_count(const struct walk *walk, struct ocs_dimension_lines *lines)
{
	bool *seen = ocs_calloc((size_t)walk->section->nnodes, sizeof(*seen));
	int first = node_of(walk, 0), last = first;

	for (long r = 0; r < walk->links->placement->shape.xpus; r++) {
		int node = node_of(walk, r);

		if (seen[node - walk->section->first_node])
			continue;
		seen[node - walk->section->first_node] = true;
		lines->unlinked += node != last && !nodes_linked(walk, last, node);
		lines->hops++;
		last = node;
	}
	lines->unlinked += last != first && !nodes_linked(walk, last, first);
	free(seen);
}

void ocs_dimension_lines_find(const struct ocs_links *links, int node, bool steered,
			      struct ocs_dimension_lines *lines)
{
	const struct ocs_placement *p = links->placement;
	const int *tile = p->section->tile;
	struct walk walk = { .links = links, .section = p->section };
	size_t xpus = (size_t)p->shape.xpus;

	*lines = (struct ocs_dimension_lines){
		.list = ocs_calloc((size_t)tile[0] * tile[1] * tile[2] * OCS_SHAPE_DIMS,
				   sizeof(*lines->list)),
	};
	walk.place = ocs_calloc(xpus, sizeof(int));
	walk.stop = ocs_calloc(xpus, sizeof(int));
	walk.nodes = ocs_calloc(xpus, sizeof(int));
	for (size_t r = 0; r < xpus; r++)
		walk.place[r] = -1;
	chains_make(&walk);
	for (int d = 0; d < p->shape.ndim; d++)
		if (p->shape.extent[d] > 1)
			dimension_add(&walk, d, node, steered, lines);
	all_count(&walk, lines);
	free(walk.place);
	free(walk.stop);
	free(walk.nodes);
	free(walk.first);
	free(walk.next);
}

void ocs_dimension_lines_free(struct ocs_dimension_lines *lines)
{
	for (int i = 0; i < lines->count; i++) {
		for (int c = 0; c < lines->list[i].nchannels; c++)
			free(lines->list[i].channels[c].devices);
		free(lines->list[i].channels);
	}
	free(lines->list);
	*lines = (struct ocs_dimension_lines){ 0 };
}

void ocs_dimension_lines_held(const struct ocs_links *links, int node, bool *held)
{
	struct walk walk = { .links = links, .section = links->placement->section };

	chains_make(&walk);
	held_mark(&walk, node, held);
	free(walk.first);
	free(walk.next);
}
