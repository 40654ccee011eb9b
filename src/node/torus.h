/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_NODE_TORUS_H
#define OCS_NODE_TORUS_H

/* What NCCL gets of a job on cubes where ocs.yaml names the interfaces of their links. */

#include "src/layout/lines.h"
#include "src/nccl/graph.h"
#include "src/node/node.h"

/* The links of a placement as one of its nodes has them. */
struct ocs_node_torus {
	const struct ocs_section *section;
	const struct ocs_placement *placement;
	int node; /* index into the fabric's nodes */
	struct ocs_links *links;
	struct ocs_dimension_lines lines;
	bool *held; /* by interface: it is the end of a link to another node */
};

/* Of node NODE (a name) of PLACEMENT.  Free with ocs_node_torus_free. */
void ocs_node_torus_find(const struct ocs_fabric *fabric, const struct ocs_placement *placement,
			 const char *node, struct ocs_node_torus *torus);
void ocs_node_torus_free(struct ocs_node_torus *torus);

/* Adds the variable SLURM_OCS_INTERFACES, the devices whose links lead to other nodes, if there are any. */
void ocs_node_torus_interfaces(const struct ocs_node_torus *torus, struct ocs_text *text);

/* Adds "DEVICE ADDRESS/31" for the node's end of each link. */
void ocs_node_torus_subnets(const struct ocs_node_torus *torus, struct ocs_text *text);

/* The ports that NCCL is to use, and the interface of each. */
struct ocs_node_ports {
	const struct ocs_nccl_port *list;
	const int *interface;
	int count;
};
/* Adds a graph file for each line that passes the node to CONTENTS, and a warning for what has none
 * or takes one.  Returns the file that suits all communicators of the job, where it has one dimension
 * only (caller frees), with NEEDS; else NULL. */
char *ocs_node_torus_graphs(const struct ocs_node_torus *torus,
			    const struct ocs_nccl_machine *machine,
			    const struct ocs_node_ports *ports, struct ocs_nccl_graph_needs *needs,
			    struct ocs_node_contents *contents);

#endif
