/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_NCCL_MACHINE_H
#define OCS_NCCL_MACHINE_H

/* hwloc's picture of a machine as NCCL would count its devices.  Private to
 * src/nccl; topology.h is the way in. */

#include <hwloc.h>
#include <stdbool.h>
#include <stddef.h>

#include "src/nccl/topology.h"

struct ocs_nccl_machine {
	hwloc_topology_t topology;
	bool live;	  /* this machine, not a description of one */
	const char *arch; /* NCCL's name for it */
};

/* A PCI device or the upstream port of a switch. */
struct ocs_nccl_device {
	hwloc_obj_t object;
	int parent; /* index of the switch above, or -1 */
	int numa;   /* os index of the nearest NUMA node */
	bool gpu;
	int port; /* the first of the ports on it, or -1 */
};

/* GPUs and NICs with the switches above them; all NICs when NPORTS is 0, else those
 * of the ports. */
struct ocs_nccl_devices {
	struct ocs_nccl_device *list;
	int count, capacity;
	int gpus, nics;
	hwloc_obj_t *port_object; /* the PCI device of each port */
};

/* 0, or -1 with ERR: a port that is not there, no GPU.  Free with
 * ocs_nccl_devices_free either way. */
int ocs_nccl_devices_find(const struct ocs_nccl_machine *machine, const struct ocs_nccl_port *ports,
			  int nports, struct ocs_nccl_devices *devices, struct ocs_error *err);
void ocs_nccl_devices_free(struct ocs_nccl_devices *devices);

/* The numbers hwloc has for a device or a bridge. */
const struct hwloc_pcidev_attr_s *ocs_nccl_pci(hwloc_obj_t object);
/* 0000:ab:00.0 */
#define OCS_NCCL_BUSID 32
void ocs_nccl_busid(hwloc_obj_t object, char busid[OCS_NCCL_BUSID]);
/* Lanes and the rate of one, as NCCL wants them. */
#define OCS_NCCL_LINK_SPEED 64
void ocs_nccl_link(const struct ocs_nccl_machine *machine, hwloc_obj_t object, int *width,
		   char speed[OCS_NCCL_LINK_SPEED]);
/* The processors of NUMA node NODE as the kernel writes a cpumap, "ffff0000,0000ffff", without the
 * empty words in front if NCCL has no room for them.  The caller frees it; NULL: too long all the
 * same. */
char *ocs_nccl_affinity(const struct ocs_nccl_machine *machine, hwloc_obj_t node);
/* Mb/s of PORT: what it says, else what the kernel says of a port of this machine,
 * else 0. */
int ocs_nccl_port_speed(const struct ocs_nccl_machine *machine, const struct ocs_nccl_port *port);

#endif
