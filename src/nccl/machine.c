/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* What hwloc sees of a machine, counted as NCCL counts. */

#include "src/nccl/machine.h"

#include <ctype.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/util/error.h"
#include "src/util/text.h"

#define CLASS_DISPLAY 0x03
#define CLASS_NETWORK 0x02
#define VENDOR_NVIDIA 0x10de
#define VENDOR_AMD 0x1002

/* hwloc opens every plugin it finds before it can be told which are wanted; the libraries
 * behind them cost more than all else that is done here, and on each node of a job. */
#define UNWANTED_PLUGINS                                           \
	"hwloc_opencl.so,hwloc_gl.so,hwloc_cuda.so,hwloc_nvml.so," \
	"hwloc_rsmi.so,hwloc_levelzero.so"
#define PLUGINS_OF_FILES "hwloc_pci.so,hwloc_xml_libxml.so"

static int topology_init(hwloc_topology_t *topology, const char *without)
{
	static const char name[] = "HWLOC_PLUGINS_BLACKLIST";
	bool ours = !getenv(name); /* an administrator's own list stays */
	int rc;

	if (ours)
		setenv(name, without, 1);
	rc = hwloc_topology_init(topology);
	if (ours)
		unsetenv(name);
	return rc;
}

/* XML: path of a description, or NULL: this machine.  0, -1 if hwloc cannot start, -2 if it
 * cannot read. */
static int topology_load(hwloc_topology_t *topology, const char *xml, const char *without)
{
	/* where hwloc has these built in */
	static const char *const slow[] = { "opencl", "gl", "cuda", "nvml", "rsmi", "levelzero" };

	if (topology_init(topology, without) < 0)
		return -1;
	for (size_t i = 0; !xml && i < sizeof(slow) / sizeof(slow[0]); i++)
		hwloc_topology_set_components(*topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST,
					      slow[i]);
	hwloc_topology_set_io_types_filter(*topology, HWLOC_TYPE_FILTER_KEEP_ALL);
	if ((!xml || hwloc_topology_set_xml(*topology, xml) == 0) &&
	    hwloc_topology_load(*topology) == 0)
		return 0;
	hwloc_topology_destroy(*topology);
	*topology = NULL;
	return -2;
}

static int machine_load(struct ocs_nccl_machine *m, const char *xml, struct ocs_error *err)
{
	/* hwloc's own reader knows what hwloc writes; what others wrote may need libxml2 */
	int rc = xml ? topology_load(&m->topology, xml, UNWANTED_PLUGINS "," PLUGINS_OF_FILES) : -2;

	if (rc == -2)
		rc = topology_load(&m->topology, xml, UNWANTED_PLUGINS);
	if (rc == -1)
		return ocs_error_set(err, OCS_ERROR, "hwloc cannot start");
	if (rc < 0)
		return ocs_error_set(err, OCS_USAGE, "%s: not an hwloc description of a machine",
				     xml ? xml : "this machine");
	m->live = !xml && hwloc_topology_is_thissystem(m->topology);
	return 0;
}

/* NCCL's names of architectures. */
static int arch_find(struct ocs_nccl_machine *m, struct ocs_error *err)
{
	const char *arch =
		hwloc_obj_get_info_by_name(hwloc_get_root_obj(m->topology), "Architecture");

	if (!arch)
		return ocs_error_set(
			err, OCS_USAGE,
			"the machine description names no architecture, which NCCL needs");
	if (strcmp(arch, "x86_64") == 0)
		m->arch = "x86_64";
	else if (strcmp(arch, "aarch64") == 0)
		m->arch = "arm64";
	else if (strncmp(arch, "ppc64", 5) == 0)
		m->arch = "ppc64";
	else
		return ocs_error_set(err, OCS_USAGE,
				     "NCCL knows no machines of architecture %.40s "
				     "(known: x86_64, aarch64, ppc64le)",
				     arch);
	return 0;
}

struct ocs_nccl_machine *ocs_nccl_machine_open(const char *hwloc_xml, struct ocs_error *err)
{
	struct ocs_nccl_machine *machine = ocs_calloc(1, sizeof(*machine));

	if (machine_load(machine, hwloc_xml, err) == 0 && arch_find(machine, err) == 0)
		return machine;
	ocs_nccl_machine_close(machine);
	return NULL;
}

void ocs_nccl_machine_close(struct ocs_nccl_machine *machine)
{
	if (machine && machine->topology)
		hwloc_topology_destroy(machine->topology);
	free(machine);
}

static bool is_bridge(hwloc_obj_t object)
{
	return object && object->type == HWLOC_OBJ_BRIDGE &&
	       object->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_PCI;
}

const struct hwloc_pcidev_attr_s *ocs_nccl_pci(hwloc_obj_t object)
{
	return object->type == HWLOC_OBJ_BRIDGE ? &object->attr->bridge.upstream.pci :
						  &object->attr->pcidev;
}

static int numa_of(const struct ocs_nccl_machine *m, hwloc_obj_t object)
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

void ocs_nccl_busid(hwloc_obj_t object, char busid[OCS_NCCL_BUSID])
{
	const struct hwloc_pcidev_attr_s *pci = ocs_nccl_pci(object);

	snprintf(busid, OCS_NCCL_BUSID, "%04x:%02x:%02x.%01x", (unsigned)pci->domain, pci->bus,
		 pci->dev, pci->func & 0xfu);
}

/* Adds OBJECT and the switches above it; returns its index. */
static int device_add(const struct ocs_nccl_machine *m, struct ocs_nccl_devices *devices,
		      hwloc_obj_t object)
{
	hwloc_obj_t above;
	int parent = -1;

	for (int i = 0; i < devices->count; i++)
		if (devices->list[i].object == object)
			return i;
	above = switch_above(object);
	if (above)
		parent = device_add(m, devices, above);
	if (devices->count == devices->capacity) {
		devices->capacity = devices->capacity ? 2 * devices->capacity : 32;
		devices->list =
			ocs_realloc(devices->list, devices->capacity * sizeof(*devices->list));
	}
	devices->list[devices->count] = (struct ocs_nccl_device){
		.object = object, .parent = parent, .numa = numa_of(m, object), .port = -1
	};
	return devices->count++;
}

static bool is_gpu(hwloc_obj_t object)
{
	const struct hwloc_pcidev_attr_s *pci = &object->attr->pcidev;

	/* a baseboard controller also shows a display */
	return (pci->class_id >> 8 == CLASS_DISPLAY &&
		(pci->vendor_id == VENDOR_NVIDIA || pci->vendor_id == VENDOR_AMD)) ||
	       pci->class_id == 0x1200;
}

static int ports_find(const struct ocs_nccl_machine *m, const struct ocs_nccl_port *ports,
		      int nports, struct ocs_nccl_devices *devices, struct ocs_error *err)
{
	devices->port_object = ocs_calloc(nports + 1, sizeof(hwloc_obj_t));
	for (int i = 0; i < nports; i++) {
		hwloc_obj_t os = NULL;

		for (const char *c = ports[i].device; *c; c++)
			if (!isalnum((unsigned char)*c) && !strchr("_-.@", *c))
				return ocs_error_set(err, OCS_USAGE,
						     "'%.40s' is not the name of a NIC "
						     "port",
						     ports[i].device);
		while ((os = hwloc_get_next_osdev(m->topology, os)))
			if (os->name && strcmp(os->name, ports[i].device) == 0)
				break;
		if (!os || !os->parent || os->parent->type != HWLOC_OBJ_PCI_DEVICE)
			return ocs_error_set(err, OCS_USAGE,
					     "the machine has no NIC port %.40s on its "
					     "PCI bus",
					     ports[i].device);
		devices->port_object[i] = os->parent;
	}
	return 0;
}

int ocs_nccl_devices_find(const struct ocs_nccl_machine *machine, const struct ocs_nccl_port *ports,
			  int nports, struct ocs_nccl_devices *devices, struct ocs_error *err)
{
	hwloc_obj_t object = NULL;

	memset(devices, 0, sizeof(*devices));
	if (ports_find(machine, ports, nports, devices, err) < 0)
		return -1;
	while ((object = hwloc_get_next_pcidev(machine->topology, object))) {
		bool gpu = is_gpu(object),
		     nic = object->attr->pcidev.class_id >> 8 == CLASS_NETWORK;
		struct ocs_nccl_device *device;
		int port = -1, index;

		for (int i = nports - 1; i >= 0; i--)
			if (devices->port_object[i] == object)
				port = i;
		if (!gpu && port < 0 && (nports > 0 || !nic))
			continue;
		index = device_add(machine, devices, object); /* moves the list */
		device = &devices->list[index];
		device->gpu = gpu;
		device->port = port;
		devices->gpus += gpu;
		devices->nics += !gpu;
	}
	if (devices->gpus == 0)
		return ocs_error_set(err, OCS_USAGE, "the machine description shows no GPU%s",
				     machine->live ? " (hwloc sees PCI devices with the package "
						     "libhwloc-plugins only)" :
						     "");
	return 0;
}

void ocs_nccl_devices_free(struct ocs_nccl_devices *devices)
{
	free(devices->list);
	free(devices->port_object);
	memset(devices, 0, sizeof(*devices));
}

/* hwloc has the product of lanes and rate in GB/s; NCCL wants them apart and
 * multiplies again, so any pair with the right product serves. */
static void link_guess(double gbytes, int *width, const char **speed)
{
	static const struct {
		double lane; /* GB/s */
		const char *speed;
	} generations[] = {
		{ 0.25, "2.5 GT/s PCIe" },
		{ 0.5, "5.0 GT/s PCIe" },
		{ 8.0 / 8 * 128 / 130, "8.0 GT/s PCIe" },
		{ 16.0 / 8 * 128 / 130, "16.0 GT/s PCIe" },
		{ 32.0 / 8 * 128 / 130, "32.0 GT/s PCIe" },
		{ 64.0 / 8 * 242 / 256, "64.0 GT/s PCIe" },
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

/* The first line of a file that the kernel makes, or false. */
static bool kernel_line(const char *path, char *line, size_t size)
{
	FILE *stream = fopen(path, "re");
	bool ok;

	if (!stream)
		return false;
	ok = fgets(line, (int)size, stream) != NULL;
	fclose(stream);
	if (ok)
		line[strcspn(line, "\n")] = '\0';
	return ok;
}

static bool pci_line(const char *busid, const char *file, char *line, size_t size)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/%s", busid, file);
	return kernel_line(path, line, size);
}

/* NCCL counts 8 GT/s for any that it does not know. */
static bool speed_known(const char *speed)
{
	static const char *const known[] = { "2.5 GT/s",      "5 GT/s",		"8 GT/s",
					     "16 GT/s",	      "32 GT/s",	"5.0 GT/s PCIe",
					     "8.0 GT/s PCIe", "16.0 GT/s PCIe", "32.0 GT/s PCIe",
					     "64.0 GT/s PCIe" };

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strncmp(speed, known[i], strlen(known[i])) == 0)
			return true;
	return false;
}

/* The link can do more than it does while the device sleeps: on this machine the
 * kernel knows its maximum. */
void ocs_nccl_link(const struct ocs_nccl_machine *m, hwloc_obj_t object, int *width,
		   char speed[OCS_NCCL_LINK_SPEED])
{
	const char *guess;
	char busid[OCS_NCCL_BUSID], line[OCS_NCCL_LINK_SPEED];
	long lanes;

	link_guess(ocs_nccl_pci(object)->linkspeed, width, &guess);
	snprintf(speed, OCS_NCCL_LINK_SPEED, "%s", guess);
	ocs_nccl_busid(object, busid);
	if (!m->live || !pci_line(busid, "max_link_width", line, sizeof(line)) ||
	    ocs_number_parse(line, 1, 64, &lanes) < 0)
		return;
	if (!pci_line(busid, "max_link_speed", line, sizeof(line)) || !speed_known(line))
		return;
	*width = (int)lanes;
	snprintf(speed, OCS_NCCL_LINK_SPEED, "%s", line);
}

/* NCCL's room for a value. */
#define VALUE_MAX 253

static char *cpumap_kernel(hwloc_obj_t node)
{
	char path[96], line[4096];

	snprintf(path, sizeof(path), "/sys/devices/system/node/node%u/cpumap", node->os_index);
	if (!kernel_line(path, line, sizeof(line)) || !*line ||
	    strspn(line, "0123456789abcdefABCDEF,") != strlen(line))
		return NULL;
	return ocs_strdup(line);
}

static char *cpumap_described(hwloc_obj_t node)
{
	int last = hwloc_bitmap_last(node->cpuset), words = last < 0 ? 1 : last / 32 + 1;
	struct ocs_text text = { 0 };

	for (int word = words - 1; word >= 0; word--) {
		uint32_t bits = 0;

		for (int bit = 0; bit < 32; bit++)
			if (hwloc_bitmap_isset(node->cpuset, 32 * (unsigned)word + bit))
				bits |= UINT32_C(1) << bit;
		ocs_text_add(&text, "%s%08x", text.length ? "," : "", bits);
	}
	return ocs_text_take(&text);
}

char *ocs_nccl_affinity(const struct ocs_nccl_machine *m, hwloc_obj_t node)
{
	char *map = m->live ? cpumap_kernel(node) : NULL, *start, *comma;

	if (!map)
		map = cpumap_described(node);
	for (start = map; strlen(start) > VALUE_MAX; start = comma + 1) {
		comma = strchr(start, ',');
		if (!comma || strspn(start, "0") != (size_t)(comma - start)) {
			free(map);
			return NULL;
		}
	}
	memmove(map, start, strlen(start) + 1);
	return map;
}

int ocs_nccl_port_speed(const struct ocs_nccl_machine *m, const struct ocs_nccl_port *port)
{
	char path[160], line[64];
	long mbps;
	float rate;

	if (port->mbps || !m->live)
		return port->mbps;
	snprintf(path, sizeof(path), "/sys/class/infiniband/%.63s/ports/%d/rate", port->device,
		 port->number ? port->number : 1);
	if (kernel_line(path, line, sizeof(line)) && sscanf(line, "%f Gb/sec", &rate) == 1 &&
	    rate > 0 && rate < 1e6f)
		return (int)(rate * 1000);
	snprintf(path, sizeof(path), "/sys/class/net/%.63s/speed", port->device);
	if (kernel_line(path, line, sizeof(line)) &&
	    ocs_number_parse(line, 1, 1000000000, &mbps) == 0)
		return (int)mbps;
	return 0;
}
