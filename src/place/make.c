/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <string.h>

#include "src/place/placement_encoding.h"
#include "src/util/text.h"

/* Marks the nodes and counts them. */
static int nodes_mark(const struct ocs_section *s, const struct ocs_placement *p,
		      unsigned char *mark)
{
	int part[OCS_AXES][OCS_EDGE_MAX], stride = 1, a, c, count = 0;
	long i;

	for (a = OCS_AXES - 1; a >= 0; a--) { /* what a coordinate adds to the node */
		for (c = 0; c < s->edge[a]; c++)
			part[a][c] = c / s->tile[a] * stride;
		stride *= s->edge[a] / s->tile[a];
	}
	for (i = 0; i < p->shape.xpus; i++) {
		const struct ocs_xpu *x = &p->xpus[i];
		int node = x->cube * stride + part[0][x->at[0]] + part[1][x->at[1]] +
			   part[2][x->at[2]];

		count += !mark[node];
		mark[node] = 1;
	}
	return count;
}

void ocs_placement_lists(struct ocs_placement *p, unsigned char *mark)
{
	const struct ocs_section *section = p->section;
	size_t marks = (size_t)section->ncubes * (size_t)section->cube_nodes;
	int cube, node, last = -1, n = 0;

	p->nnodes = nodes_mark(section, p, mark);
	p->nodes = ocs_calloc((size_t)p->nnodes, sizeof(int));
	p->cubes = ocs_calloc((size_t)p->nnodes, sizeof(int));
	for (node = 0; n < p->nnodes; node++) {
		if (!mark[node]) /* some are left, mostly far apart */
			node = (int)((unsigned char *)memchr(mark + node, 1, marks - (size_t)node) -
				     mark);
		mark[node] = 0;
		cube = node / section->cube_nodes;
		p->nodes[n++] = section->first_node + node;
		if (cube != last)
			p->cubes[p->ncubes++] = cube;
		last = cube;
	}
}

struct ocs_placement *ocs_placement_make(const struct ocs_section *section,
					 const struct ocs_shape *shape,
					 const struct ocs_fold_table *table,
					 const struct ocs_box_layout *lay, const int *piece_cube,
					 int ncircuits, unsigned char *mark, char *compact)
{
	struct ocs_placement *p = ocs_calloc(1, sizeof(*p));
	long i;

	p->section = section;
	p->shape = *shape;
	p->compact = compact;
	p->xpus = ocs_calloc((size_t)shape->xpus, sizeof(*p->xpus));
	ocs_box_layout_xpus(section, table, lay, p->xpus);
	if (ncircuits < 0)
		ncircuits = ocs_box_layout_circuits(section, shape, table, lay, p->xpus, NULL);
	p->ncircuits = ncircuits;
	p->circuits = ocs_calloc((size_t)ncircuits + 1, sizeof(*p->circuits));
	ocs_box_layout_circuits(section, shape, table, lay, p->xpus, p->circuits);
	for (i = 0; i < ncircuits; i++) {
		p->circuits[i].from = piece_cube[p->circuits[i].from];
		p->circuits[i].to = piece_cube[p->circuits[i].to];
	}
	for (i = 0; i < shape->xpus; i++)
		p->xpus[i].cube = piece_cube[p->xpus[i].cube];
	ocs_placement_lists(p, mark);
	return p;
}
