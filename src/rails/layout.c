/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/rails/layout.h"

#include <limits.h>
#include <string.h>

#include "src/util/error.h"

/* The largest divisor of XPUS that is at most LIMIT. */
static int divisor_below(int xpus, long limit)
{
	int best = 1;

	for (int i = 1; i <= xpus && i <= limit; i++)
		if (xpus % i == 0)
			best = i;
	return best;
}

/* How many dimensions of SHAPE are over nodes, and in *INSIDE the XPUs of each node that it uses. */
static int dims_outside(const struct ocs_shape *shape, int server_xpus, long *inside)
{
	int d = shape->ndim;

	*inside = 1;
	while (d > 0 && server_xpus && *inside * shape->extent[d - 1] <= server_xpus)
		*inside *= shape->extent[--d];
	return d;
}

static int dims_split(const struct ocs_shape *shape, int server_xpus, long *inside,
		      struct ocs_error *err)
{
	char text[OCS_SHAPE_TEXT];
	int outside, last = shape->extent[shape->ndim - 1];

	if (shape->twisted)
		return ocs_error_set(
			err, OCS_USAGE,
			"--shape=%s: only a torus can be twisted, and rails join nodes in "
			"rings; leave _twisted out",
			ocs_shape_named_format(shape, text));
	outside = dims_outside(shape, server_xpus, inside);
	if (server_xpus > 1 && last > server_xpus)
		return ocs_error_set(
			err, OCS_NEVER,
			"--shape=%s: the last dimension has %d XPUs, a node %d; write it as two dimensions of which the last stays inside a node, with %d, or add one with 1 for an XPU of each node",
			ocs_shape_named_format(shape, text), last, server_xpus,
			divisor_below(server_xpus, last));
	if (server_xpus && server_xpus % *inside)
		return ocs_error_set(
			err, OCS_NEVER,
			"--shape=%s: the last dimension%s would use %ld of the %d XPUs of a node, which that does not divide; use %d",
			ocs_shape_named_format(shape, text), outside < shape->ndim - 1 ? "s" : "",
			*inside, server_xpus, divisor_below(server_xpus, *inside));
	return outside;
}

int ocs_rails_layout_make(const struct ocs_shape *shape, int server_xpus, int nic_ports,
			  struct ocs_rails_layout *layout, struct ocs_error *err)
{
	char text[OCS_SHAPE_TEXT];
	int stages = ocs_shape_stages(shape), outside;
	long inside;

	outside = dims_split(shape, server_xpus, &inside, err);
	if (outside < 0)
		return -1;
	memset(layout, 0, sizeof(*layout));
	layout->ndim = outside ? outside : 1;
	layout->extent[0] = 1;
	for (int d = 0; d < outside; d++)
		layout->extent[d] = shape->extent[d];
	/* Stages inside a node need no circuits. */
	layout->asymmetric = stages < outside ? stages : -1;
	layout->ports = nic_ports;
	if (ocs_rails_layout_check(layout, err) < 0)
		return ocs_error_prefix(err, "--shape=%s", ocs_shape_named_format(shape, text));
	return 0;
}

void ocs_rails_layout_first(const struct ocs_rails_layout *layout, bool phases, char *topology)
{
	if (!phases && layout->ports > 1)
		strcpy(topology, OCS_RAILS_RING);
	else
		ocs_rails_topology_first(layout, topology);
}

int ocs_rails_shape_nodes(const struct ocs_shape *shape, int server_xpus, struct ocs_error *err)
{
	long inside;

	return dims_split(shape, server_xpus, &inside, err) < 0 ? -1 : (int)(shape->xpus / inside);
}
