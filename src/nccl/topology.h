/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_NCCL_TOPOLOGY_H
#define OCS_NCCL_TOPOLOGY_H

/* NCCL topology files from hwloc, in one of the safe forms that NCCL's own
 * parser accepts (doc/nccl.md).  Links hwloc; never linked into a plugin. */

#include <stdbool.h>
#include <stddef.h>

struct ocs_error;

/* The text of a topology file for one node.  HWLOC_XML: path of an hwloc XML
 * description, or NULL for this machine.  NETS: names of the NIC ports that hold
 * circuits (may be empty: only cpus and pci devices are written), MBPS their
 * speed.  The caller frees the text.  NULL with ERR: more than 255 elements, an
 * unreadable description, one that lacks what NCCL needs (architecture; vendor,
 * family and model of x86 processors), a NIC port that is not there. */
char *ocs_nccl_topology(const char *hwloc_xml, char *const *nets, int nnets,
			int mbps, struct ocs_error *err);

/* The NCCL_* environment of a job ("NAME=VALUE" strings, ascending by name; free
 * with ocs_names_free of util/hostlist.h).  TOPO_FILE: path for NCCL_TOPO_FILE or
 * NULL.  NETS as above (NCCL_IB_HCA only when there are any).  SOCKET_INTERFACE:
 * management interface or NULL.  RAILS: interface i of every node is on rail i, so
 * that a channel must stay on its rail.  Returns the number of strings. */
int ocs_nccl_environment(const char *topo_file, char *const *nets, int nnets,
			 const char *socket_interface, bool rails, char ***env);

#endif
