/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_NCCL_TOPOLOGY_H
#define OCS_NCCL_TOPOLOGY_H

/* Topology and graph files and the environment for NCCL, from hwloc (doc/nccl.md).
 * Links hwloc; never linked into a plugin. */

#include <stdbool.h>
#include <stddef.h>

struct ocs_error;

/* A machine as hwloc sees it. */
struct ocs_nccl_machine;

/* HWLOC_XML: path of an hwloc XML description, or NULL for this machine.  NULL with
 * ERR: unreadable, or of an architecture that NCCL does not know.  Free with
 * ocs_nccl_machine_close (NULL is fine). */
struct ocs_nccl_machine *ocs_nccl_machine_open(const char *hwloc_xml, struct ocs_error *err);
void ocs_nccl_machine_close(struct ocs_nccl_machine *machine);

/* A NIC port that NCCL is to use. */
struct ocs_nccl_port {
	const char *device; /* as NCCL and hwloc call it: the RDMA device
				 * ("mlx5_0"), or where there is none the network
				 * device ("ens3") */
	int number;	    /* of the port of an RDMA device; 0: its only one */
	bool rdma;
	int mbps; /* speed in Mb/s; 0: ask the kernel, else left out */
};

/* The text of a topology file.  PORTS: those that hold circuits; none: all NICs are
 * listed as PCI devices, without nets.  The caller frees it.  NULL with ERR: no GPU,
 * no vendor, family and model of x86 processors, a port that is not there, more
 * elements than NCCL has room for. */
char *ocs_nccl_topology(const struct ocs_nccl_machine *machine, const struct ocs_nccl_port *ports,
			int nports, struct ocs_error *err);

/* What the environment is made of.  Zero is right for what is not known. */
struct ocs_nccl_setting {
	const char *topology_file, *graph_file; /* paths, or NULL */
	const struct ocs_nccl_port *ports;	/* those that hold circuits */
	int nports;
	const char *management; /* interface that reaches every node, or NULL */
	bool rails;		/* interface i of every node is on rail i, so that
				 * a channel must stay on its rail */
	const char *subnets;	/* the prefix of the circuits' subnets, or NULL */
};

/* The NCCL_* variables of a job ("NAME=VALUE" strings, ascending by name; free with
 * ocs_names_free of util/hostlist.h).  Returns their number. */
int ocs_nccl_environment(const struct ocs_nccl_setting *setting, char ***env);

#endif
