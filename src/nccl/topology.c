/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* From hwloc's picture of a machine to NCCL's: a cpu per NUMA node, below it the
 * GPUs and NICs with the PCIe switches above them.  Every pci element carries
 * vendor and device numbers, without which NCCL misjudges switches when nets are
 * listed; gpu elements are left to NCCL's own detection. */

#include "src/nccl/topology.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "src/nccl/check.h"
#include "src/nccl/machine.h"
#include "src/util/error.h"
#include "src/util/text.h"

#define ELEMENTS 256 /* that NCCL has room for, with what it adds to the file: */
#define OWN_GPU 20   /* gpu, its NVLinks and c2c, for the GPU of a process */
#define OWN_NIC 2    /* nic and net for each NIC that has none in the file */

struct writer {
	const struct ocs_nccl_machine *machine;
	struct ocs_nccl_devices devices;
	const struct ocs_nccl_port *ports;
	int nports;
	int elements;
	struct ocs_text text;
};

static void net_elements(struct writer *w, const struct ocs_nccl_device *device, int indent)
{
	ocs_text_add(&w->text, "%*s<nic>\n", indent, "");
	w->elements++;
	for (int i = 0; i < w->nports; i++) {
		const struct ocs_nccl_port *port = &w->ports[i];
		int mbps = ocs_nccl_port_speed(w->machine, port);
		bool again = false;

		if (w->devices.port_object[i] != device->object)
			continue;
		/* for NCCL all ports of one RDMA device have its name */
		for (int j = 0; j < i; j++)
			again |= strcmp(w->ports[j].device, port->device) == 0;
		if (again)
			continue;
		ocs_text_add(&w->text, "%*s<net name=\"%s\"", indent + 2, "", port->device);
		if (mbps > 0)
			ocs_text_add(&w->text, " speed=\"%d\"", mbps);
		ocs_text_add(&w->text, "/>\n");
		w->elements++;
	}
	ocs_text_add(&w->text, "%*s</nic>\n", indent, "");
}

static void pci_element(struct writer *w, int index, int indent)
{
	const struct ocs_nccl_device *device = &w->devices.list[index];
	const struct hwloc_pcidev_attr_s *pci = ocs_nccl_pci(device->object);
	char busid[OCS_NCCL_BUSID], speed[OCS_NCCL_LINK_SPEED];
	bool holds = false, net = device->port >= 0;
	int width;

	for (int i = 0; i < w->devices.count; i++)
		holds |= w->devices.list[i].parent == index;
	ocs_nccl_busid(device->object, busid);
	ocs_nccl_link(w->machine, device->object, &width, speed);
	ocs_text_add(&w->text,
		     "%*s<pci busid=\"%s\" class=\"0x%04x00\" vendor=\"0x%04x\" device=\"0x%04x\" "
		     "subsystem_vendor=\"0x%04x\" subsystem_device=\"0x%04x\" link_speed=\"%s\" "
		     "link_width=\"%d\"%s>\n",
		     indent, "", busid, pci->class_id, pci->vendor_id, pci->device_id,
		     pci->subvendor_id, pci->subdevice_id, speed, width, holds || net ? "" : "/");
	w->elements++;
	if (net)
		net_elements(w, device, indent + 2);
	for (int i = 0; holds && i < w->devices.count; i++)
		if (w->devices.list[i].parent == index)
			pci_element(w, i, indent + 2);
	if (holds || net)
		ocs_text_add(&w->text, "%*s</pci>\n", indent, "");
}

/* What the package around NODE says about its processor, or NULL. */
static const char *package_info(const struct writer *w, hwloc_obj_t node, const char *name)
{
	hwloc_obj_t package = NULL;
	const char *value = NULL;

	while (!value && (package = hwloc_get_next_obj_by_type(w->machine->topology,
							       HWLOC_OBJ_PACKAGE, package)))
		if (hwloc_bitmap_isincluded(node->cpuset, package->cpuset) ||
		    hwloc_bitmap_isincluded(package->cpuset, node->cpuset))
			value = hwloc_obj_get_info_by_name(package, name);
	/* old descriptions keep it with the machine */
	return value ? value :
		       hwloc_obj_get_info_by_name(hwloc_get_root_obj(w->machine->topology), name);
}

static bool text_plain(const char *text)
{
	for (; *text; text++)
		if (!isalnum((unsigned char)*text) && !strchr(" ._-", *text))
			return false;
	return true;
}

static int cpu_element(struct writer *w, hwloc_obj_t node, struct ocs_error *err)
{
	const char *vendor = package_info(w, node, "CPUVendor");
	const char *family = package_info(w, node, "CPUFamilyNumber");
	const char *model = package_info(w, node, "CPUModelNumber");
	bool x86 = strcmp(w->machine->arch, "x86_64") == 0;
	char *affinity;
	long number;

	if (x86 && (!vendor || !text_plain(vendor) || !family || !model ||
		    ocs_number_parse(family, 0, 100000, &number) < 0 ||
		    ocs_number_parse(model, 0, 100000, &number) < 0))
		return ocs_error_set(
			err, OCS_USAGE,
			"the machine description lacks vendor, family or "
			"model of its processors, which NCCL needs; make one with lstopo "
			"of hwloc 2");
	ocs_text_add(&w->text, "  <cpu numaid=\"%u\" arch=\"%s\"", node->os_index,
		     w->machine->arch);
	/* Each rank would add it for the processor of its own GPU only, and since 2.22 a processor that
	 * two ranks do not describe alike is two. */
	affinity = ocs_nccl_affinity(w->machine, node);
	if (affinity)
		ocs_text_add(&w->text, " affinity=\"%s\"", affinity);
	free(affinity);
	if (vendor && text_plain(vendor))
		ocs_text_add(&w->text, " vendor=\"%s\"", vendor);
	if (x86)
		ocs_text_add(&w->text, " familyid=\"%s\" modelid=\"%s\"", family, model);
	ocs_text_add(&w->text, ">\n");
	w->elements++;
	for (int i = 0; i < w->devices.count; i++)
		if (w->devices.list[i].parent < 0 && w->devices.list[i].numa == (int)node->os_index)
			pci_element(w, i, 4);
	ocs_text_add(&w->text, "  </cpu>\n");
	return 0;
}

static int system_element(struct writer *w, struct ocs_error *err)
{
	int own = OWN_GPU + (w->nports ? 0 : OWN_NIC * w->devices.nics);
	hwloc_obj_t node = NULL;

	ocs_text_add(&w->text, "<system version=\"1\">\n");
	w->elements = 1;
	while ((node = hwloc_get_next_obj_by_type(w->machine->topology, HWLOC_OBJ_NUMANODE,
						  node))) {
		bool holds = false;

		for (int i = 0; i < w->devices.count; i++)
			holds |= w->devices.list[i].numa == (int)node->os_index;
		/* memory of a GPU is a NUMA node too, but no place for tasks */
		if (!holds && hwloc_bitmap_iszero(node->cpuset))
			continue;
		if (cpu_element(w, node, err) < 0)
			return -1;
	}
	ocs_text_add(&w->text, "</system>\n");
	if (w->elements + own > ELEMENTS)
		return ocs_error_set(
			err, OCS_USAGE,
			"the machine has %d processors, PCI switches, GPUs "
			"and NICs to list, and NCCL adds up to %d elements of its own; it "
			"has room for %d",
			w->elements, own, ELEMENTS);
	return 0;
}

char *ocs_nccl_topology(const struct ocs_nccl_machine *machine, const struct ocs_nccl_port *ports,
			int nports, struct ocs_error *err)
{
	struct writer w = { .machine = machine, .ports = ports, .nports = nports };
	char *text = NULL;

	if (ocs_nccl_devices_find(machine, ports, nports, &w.devices, err) == 0 &&
	    system_element(&w, err) == 0)
		text = ocs_text_take(&w.text);
	/* what leaves this function is what NCCL reads */
	if (text && ocs_nccl_check_text(text, err) < 0) {
		ocs_error_prefix(err, "the topology file would not be valid");
		free(text);
		text = NULL;
	}
	ocs_text_free(&w.text);
	ocs_nccl_devices_free(&w.devices);
	return text;
}
