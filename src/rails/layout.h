/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_RAILS_LAYOUT_H
#define OCS_RAILS_LAYOUT_H

/* How a shape lies on the nodes of rails.  A shape counts XPUs.  From its last dimension on, whole
 * dimensions stay inside a node as long as their product is at most the node's XPUs, which it must
 * divide; the dimensions before them are over nodes.  With 8 XPUs, pp:3,dp:2,cp:2,tp:8 has tp inside
 * and pp x dp x cp over 12 nodes.  Where the XPUs of a node are not described, none is inside: every
 * coordinate is a node.
 *
 * The XPU of row-major rank r is number r % per_node of node r / per_node in the order of the job's
 * node list, so node i has the i-th coordinate of the dimensions over nodes (src/rails/menu.h). */

#include "src/fold/shape.h"
#include "src/rails/menu.h"

/* Makes LAYOUT of SHAPE on servers of SERVER_XPUS XPUs (ocs_section.server_xpus; 0: not described)
 * with NIC_PORTS ports per NIC (ocs_section.nic_ports).  Dimension d of the layout is dimension d of
 * the shape; a job within one node has one dimension with one node.  Returns 0, or -1 with ERR, one
 * sentence with what would work: OCS_USAGE for a shape that means nothing on rails, OCS_NEVER for
 * one that they cannot serve (ocs_rails_layout_check). */
int ocs_rails_layout_make(const struct ocs_shape *shape, int server_xpus, int nic_ports,
			  struct ocs_rails_layout *layout, struct ocs_error *err);

/* The nodes of SHAPE, for which ocs_rails_layout_make need not succeed but for want of ports.  -1 with
 * ERR as above. */
int ocs_rails_shape_nodes(const struct ocs_shape *shape, int server_xpus, struct ocs_error *err);

/* The topology in which a job begins: ocs_rails_topology_first where its phases change it (PHASES);
 * else the one that stays has to reach every node, so it is the giant ring, where there are two ports
 * per NIC.  TOPOLOGY has OCS_RAILS_TOPOLOGY bytes. */
void ocs_rails_layout_first(const struct ocs_rails_layout *layout, bool phases, char *topology);

#endif
