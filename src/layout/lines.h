/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_LAYOUT_LINES_H
#define OCS_LAYOUT_LINES_H

/* What NCCL's ring over the ranks of a ring or line of a dimension does at one node: it goes from
 * node to node in the order in which they first appear, and visits each once. */

#include "src/place/links.h"

/* One channel of that ring at this node. */
struct ocs_line_channel {
	int in, out;  /* interfaces of the section */
	int *devices; /* local indexes, from the one at IN to the one at OUT */
};

struct ocs_line {
	int dim, number; /* of the shape; among the orders of the dimension (orders.h) */
	int ndevices;	 /* XPUs of this node in it */
	int hops;	 /* between nodes; 0: all ranks are on this node */
	int unlinked;	 /* hops between nodes that no link joins */
	/* one for each link that every hop has, at most OCS_LINE_CHANNELS_MAX; none where a hop has
	 * none */
	struct ocs_line_channel *channels;
	int nchannels;
	/* hops of all channels, and those whose link does not lead to the next node, where each
	 * channel enters and leaves every node by one port and the ports take turns */
	int alone_hops, alone_astray;
};
#define OCS_LINE_CHANNELS_MAX 32

struct ocs_dimension_lines {
	struct ocs_line *list;
	int count;
	int hops, unlinked; /* the same of all ranks in the order of their coordinates */
};

/* The lines that pass NODE (an index into the fabric's nodes), ascending by dimension and number, for
 * a section with interfaces.  STEERED: the sender takes the port that the listener's link leads to
 * (a subnet for each link).  Free with ocs_dimension_lines_free. */
void ocs_dimension_lines_find(const struct ocs_links *links, int node, bool steered,
			      struct ocs_dimension_lines *lines);
void ocs_dimension_lines_free(struct ocs_dimension_lines *lines);

/* Sets HELD[interface] where an interface of NODE is the end of a link to another node; HELD has
 * room for section->ninterfaces. */
void ocs_dimension_lines_held(const struct ocs_links *links, int node, bool *held);

#endif
