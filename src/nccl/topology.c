/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* From hwloc's picture of a machine to NCCL's: a cpu per NUMA node, below it the
 * GPUs and NICs with the PCIe switches above them.  Every pci element carries
 * vendor and device numbers, without which NCCL misjudges switches when nets are
 * listed; gpu elements are left to NCCL's own detection. */

#include "src/nccl/topology.h"

#include <ctype.h>
#include <hwloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/nccl/check.h"
#include "src/util/error.h"
#include "src/util/text.h"

#define ELEMENTS_MAX 255
#define CLASS_DISPLAY 0x03
#define CLASS_NETWORK 0x02
#define VENDOR_NVIDIA 0x10de
#define VENDOR_AMD 0x1002

/* A PCI device or the upstream port of a switch. */
struct device {
	hwloc_obj_t object;
	int parent;	/* index of the switch above, or -1 */
	int numa;	/* os index of the nearest NUMA node */
};

struct machine {
	hwloc_topology_t topology;
	bool live;	/* this machine, not a description of one */
	const char *arch;
	struct device *devices;
	int ndevices, capacity;
	char *const *nets;
	hwloc_obj_t *net_devices;	/* the PCI device of each net */
	int nnets, mbps;
	int elements;
	struct ocs_text text;
};

static int machine_load(struct machine *m, const char *xml, struct ocs_error *err)
{
	/* back ends that would start drivers: the prolog has no time for them */
	static const char *const slow[] = { "opencl", "gl", "cuda", "nvml", "rsmi", "levelzero" };

	if (hwloc_topology_init(&m->topology) < 0)
		return ocs_error_set(err, OCS_ERROR, "hwloc cannot start");
	for (size_t i = 0; !xml && i < sizeof(slow) / sizeof(slow[0]); i++)
		hwloc_topology_set_components(m->topology,
					      HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, slow[i]);
	hwloc_topology_set_io_types_filter(m->topology, HWLOC_TYPE_FILTER_KEEP_ALL);
	if ((xml && hwloc_topology_set_xml(m->topology, xml) < 0) ||
	    hwloc_topology_load(m->topology) < 0) {
		hwloc_topology_destroy(m->topology);
		return ocs_error_set(err, OCS_USAGE, "%s: not an hwloc description of a machine",
				     xml ? xml : "this machine");
	}
	m->live = !xml && hwloc_topology_is_thissystem(m->topology);
	return 0;
}

/* NCCL's names of architectures. */
static int arch_find(struct machine *m, struct ocs_error *err)
{
	const char *arch = hwloc_obj_get_info_by_name(hwloc_get_root_obj(m->topology),
						      "Architecture");

	if (!arch)
		return ocs_error_set(err, OCS_USAGE,
				     "the machine description names no architecture, which NCCL needs");
	if (strcmp(arch, "x86_64") == 0)
		m->arch = "x86_64";
	else if (strcmp(arch, "aarch64") == 0)
		m->arch = "arm64";
	else if (strncmp(arch, "ppc64", 5) == 0)
		m->arch = "ppc64";
	else
		return ocs_error_set(err, OCS_USAGE, "NCCL knows no machines of architecture %.40s "
				     "(known: x86_64, aarch64, ppc64le)", arch);
	return 0;
}

static bool is_bridge(hwloc_obj_t object)
{
	return object && object->type == HWLOC_OBJ_BRIDGE &&
	       object->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_PCI;
}

/* The numbers hwloc has for a device or a bridge. */
static const struct hwloc_pcidev_attr_s *pci_of(hwloc_obj_t object)
{
	return object->type == HWLOC_OBJ_BRIDGE ? &object->attr->bridge.upstream.pci :
						  &object->attr->pcidev;
}

static int numa_of(const struct machine *m, hwloc_obj_t object)
{
	hwloc_obj_t near = hwloc_get_non_io_ancestor_obj(m->topology, object);
	int numa = near && near->nodeset ? hwloc_bitmap_first(near->nodeset) : -1;

	return numa < 0 ? 0 : numa;
}

/* The switch above OBJECT as NCCL counts: two bridges up (the downstream port is
 * skipped, the upstream port stands for the switch), or NULL at the root. */
static hwloc_obj_t switch_above(hwloc_obj_t object)
{
	hwloc_obj_t port = object->parent;

	return is_bridge(port) && is_bridge(port->parent) ? port->parent : NULL;
}

/* Adds OBJECT and the switches above it; returns its index. */
static int device_add(struct machine *m, hwloc_obj_t object)
{
	hwloc_obj_t above;
	int parent = -1;

	for (int i = 0; i < m->ndevices; i++)
		if (m->devices[i].object == object)
			return i;
	above = switch_above(object);
	if (above)
		parent = device_add(m, above);
	if (m->ndevices == m->capacity) {
		m->capacity = m->capacity ? 2 * m->capacity : 32;
		m->devices = ocs_realloc(m->devices, m->capacity * sizeof(*m->devices));
	}
	m->devices[m->ndevices] = (struct device){ object, parent, numa_of(m, object) };
	return m->ndevices++;
}

static bool is_gpu(hwloc_obj_t object)
{
	const struct hwloc_pcidev_attr_s *pci = &object->attr->pcidev;

	/* a baseboard controller also shows a display */
	return (pci->class_id >> 8 == CLASS_DISPLAY &&
		(pci->vendor_id == VENDOR_NVIDIA || pci->vendor_id == VENDOR_AMD)) ||
	       pci->class_id == 0x1200;
}

static int nets_find(struct machine *m, struct ocs_error *err)
{
	m->net_devices = ocs_calloc(m->nnets + 1, sizeof(hwloc_obj_t));
	for (int i = 0; i < m->nnets; i++) {
		hwloc_obj_t os = NULL;

		for (const char *c = m->nets[i]; *c; c++)
			if (!isalnum((unsigned char)*c) && !strchr("_-.:@", *c))
				return ocs_error_set(err, OCS_USAGE,
						     "'%.40s' is not the name of a NIC port", m->nets[i]);
		while ((os = hwloc_get_next_osdev(m->topology, os)))
			if (os->name && strcmp(os->name, m->nets[i]) == 0)
				break;
		if (!os || !os->parent || os->parent->type != HWLOC_OBJ_PCI_DEVICE)
			return ocs_error_set(err, OCS_USAGE,
					     "the machine has no NIC port %.40s on its PCI bus", m->nets[i]);
		m->net_devices[i] = os->parent;
	}
	return 0;
}

/* GPUs and NICs: all NICs, or those of the nets that were asked for. */
static void devices_find(struct machine *m)
{
	hwloc_obj_t object = NULL;

	while ((object = hwloc_get_next_pcidev(m->topology, object))) {
		bool wanted = is_gpu(object) || (m->nnets == 0 && object->attr->pcidev.class_id >> 8 ==
								   CLASS_NETWORK);

		for (int i = 0; i < m->nnets; i++)
			wanted |= m->net_devices[i] == object;
		if (wanted)
			device_add(m, object);
	}
}

/* hwloc has the product of lanes and rate in GB/s; NCCL wants them apart and
 * multiplies again, so any pair with the right product serves. */
static void link_guess(double gbytes, int *width, const char **speed)
{
	static const struct {
		double lane;	/* GB/s */
		const char *speed;
	} generations[] = {
		{ 0.25, "2.5 GT/s PCIe" },	    { 0.5, "5.0 GT/s PCIe" },
		{ 8.0 / 8 * 128 / 130, "8.0 GT/s PCIe" }, { 16.0 / 8 * 128 / 130, "16.0 GT/s PCIe" },
		{ 32.0 / 8 * 128 / 130, "32.0 GT/s PCIe" }, { 64.0 / 8 * 242 / 256, "64.0 GT/s PCIe" },
	};

	/* what NCCL assumes of a link it knows nothing about */
	*width = 16;
	*speed = "8.0 GT/s PCIe";
	for (int lanes = 16; lanes >= 1; lanes /= 2)
		for (size_t i = 0; i < sizeof(generations) / sizeof(generations[0]); i++)
			if (fabs(gbytes / lanes / generations[i].lane - 1) < 0.005) {
				*width = lanes;
				*speed = generations[i].speed;
				return;
			}
}

/* One line of sysfs, or false. */
static bool sysfs_line(const char *busid, const char *file, char *line, size_t size)
{
	char path[128];
	FILE *stream;
	bool ok;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/%s", busid, file);
	stream = fopen(path, "re");
	if (!stream)
		return false;
	ok = fgets(line, (int)size, stream) != NULL;
	fclose(stream);
	if (ok)
		line[strcspn(line, "\n")] = '\0';
	return ok;
}

/* The link can do more than it does while the device sleeps: on this machine the
 * kernel knows its maximum. */
static void link_of(const struct machine *m, const char *busid, double gbytes, int *width,
		    char *speed, size_t size)
{
	const char *guess;
	char line[64];
	long lanes;
	float rate;

	link_guess(gbytes, width, &guess);
	snprintf(speed, size, "%s", guess);
	if (!m->live || !sysfs_line(busid, "max_link_width", line, sizeof(line)) ||
	    ocs_number_parse(line, 1, 64, &lanes) < 0)
		return;
	if (!sysfs_line(busid, "max_link_speed", line, sizeof(line)) ||
	    sscanf(line, "%f GT/s", &rate) != 1)
		return;
	*width = (int)lanes;
	snprintf(speed, size, "%s", line);
}

static void net_elements(struct machine *m, const struct device *device, int indent)
{
	ocs_text_add(&m->text, "%*s<nic>\n", indent, "");
	m->elements++;
	for (int i = 0; i < m->nnets; i++) {
		if (m->net_devices[i] != device->object)
			continue;
		ocs_text_add(&m->text, "%*s<net name=\"%s\" speed=\"%d\"/>\n", indent + 2, "",
			     m->nets[i], m->mbps);
		m->elements++;
	}
	ocs_text_add(&m->text, "%*s</nic>\n", indent, "");
}

static void pci_element(struct machine *m, int index, int indent)
{
	const struct device *device = &m->devices[index];
	const struct hwloc_pcidev_attr_s *pci = pci_of(device->object);
	bool holds = false, net = false;
	char busid[32], speed[64];
	int width;

	for (int i = 0; i < m->ndevices; i++)
		holds |= m->devices[i].parent == index;
	for (int i = 0; i < m->nnets; i++)
		net |= m->net_devices[i] == device->object;
	snprintf(busid, sizeof(busid), "%04x:%02x:%02x.%01x", (unsigned)pci->domain & 0xffff,
		 pci->bus, pci->dev, pci->func);
	link_of(m, busid, pci->linkspeed, &width, speed, sizeof(speed));
	ocs_text_add(&m->text,
		     "%*s<pci busid=\"%s\" class=\"0x%04x00\" vendor=\"0x%04x\" device=\"0x%04x\" "
		     "subsystem_vendor=\"0x%04x\" subsystem_device=\"0x%04x\" link_speed=\"%s\" "
		     "link_width=\"%d\"%s>\n", indent, "", busid, pci->class_id, pci->vendor_id,
		     pci->device_id, pci->subvendor_id, pci->subdevice_id, speed, width,
		     holds || net ? "" : "/");
	m->elements++;
	if (net)
		net_elements(m, device, indent + 2);
	for (int i = 0; holds && i < m->ndevices; i++)
		if (m->devices[i].parent == index)
			pci_element(m, i, indent + 2);
	if (holds || net)
		ocs_text_add(&m->text, "%*s</pci>\n", indent, "");
}

/* What the package around NODE says about its processor, or NULL. */
static const char *package_info(const struct machine *m, hwloc_obj_t node, const char *name)
{
	hwloc_obj_t package = NULL;
	const char *value = NULL;

	while (!value && (package = hwloc_get_next_obj_by_type(m->topology, HWLOC_OBJ_PACKAGE,
							       package)))
		if (hwloc_bitmap_isincluded(node->cpuset, package->cpuset) ||
		    hwloc_bitmap_isincluded(package->cpuset, node->cpuset))
			value = hwloc_obj_get_info_by_name(package, name);
	/* old descriptions keep it with the machine */
	return value ? value : hwloc_obj_get_info_by_name(hwloc_get_root_obj(m->topology), name);
}

static bool plain(const char *text)
{
	for (; *text; text++)
		if (!isalnum((unsigned char)*text) && !strchr(" ._-", *text))
			return false;
	return true;
}

static int cpu_element(struct machine *m, hwloc_obj_t node, struct ocs_error *err)
{
	const char *vendor = package_info(m, node, "CPUVendor");
	const char *family = package_info(m, node, "CPUFamilyNumber");
	const char *model = package_info(m, node, "CPUModelNumber");
	bool x86 = strcmp(m->arch, "x86_64") == 0;
	long number;

	if (x86 && (!vendor || !plain(vendor) || !family || !model ||
		    ocs_number_parse(family, 0, 100000, &number) < 0 ||
		    ocs_number_parse(model, 0, 100000, &number) < 0))
		return ocs_error_set(err, OCS_USAGE, "the machine description lacks vendor, family or "
				     "model of its processors, which NCCL needs; make one with lstopo "
				     "of hwloc 2");
	ocs_text_add(&m->text, "  <cpu numaid=\"%u\" arch=\"%s\"", node->os_index, m->arch);
	if (vendor && plain(vendor))
		ocs_text_add(&m->text, " vendor=\"%s\"", vendor);
	if (x86)
		ocs_text_add(&m->text, " familyid=\"%s\" modelid=\"%s\"", family, model);
	ocs_text_add(&m->text, ">\n");
	m->elements++;
	for (int i = 0; i < m->ndevices; i++)
		if (m->devices[i].parent < 0 && m->devices[i].numa == (int)node->os_index)
			pci_element(m, i, 4);
	ocs_text_add(&m->text, "  </cpu>\n");
	return 0;
}

static int system_element(struct machine *m, struct ocs_error *err)
{
	hwloc_obj_t node = NULL;

	ocs_text_add(&m->text, "<system version=\"1\">\n");
	m->elements = 1;
	while ((node = hwloc_get_next_obj_by_type(m->topology, HWLOC_OBJ_NUMANODE, node))) {
		bool holds = false;

		for (int i = 0; i < m->ndevices; i++)
			holds |= m->devices[i].numa == (int)node->os_index;
		/* memory of a GPU is a NUMA node too, but no place for tasks */
		if (!holds && hwloc_bitmap_iszero(node->cpuset))
			continue;
		if (cpu_element(m, node, err) < 0)
			return -1;
	}
	ocs_text_add(&m->text, "</system>\n");
	if (m->elements > ELEMENTS_MAX)
		return ocs_error_set(err, OCS_USAGE, "the machine has %d processors, PCI switches, GPUs "
				     "and NICs to list, NCCL reads at most %d", m->elements,
				     ELEMENTS_MAX);
	return 0;
}

char *ocs_nccl_topology(const char *hwloc_xml, char *const *nets, int nnets, int mbps,
			struct ocs_error *err)
{
	struct machine m = { .nets = nets, .nnets = nnets, .mbps = mbps };
	char *text = NULL;

	if (machine_load(&m, hwloc_xml, err) < 0)
		return NULL;
	if (arch_find(&m, err) == 0 && nets_find(&m, err) == 0) {
		devices_find(&m);
		if (system_element(&m, err) == 0)
			text = ocs_text_take(&m.text);
	}
	/* what leaves this function is what NCCL reads */
	if (text && ocs_nccl_check_text(text, err) < 0) {
		ocs_error_prefix(err, "the topology file would not be valid");
		free(text);
		text = NULL;
	}
	ocs_text_free(&m.text);
	free(m.net_devices);
	free(m.devices);
	hwloc_topology_destroy(m.topology);
	return text;
}
