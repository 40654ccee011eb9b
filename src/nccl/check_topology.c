/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* What NCCL makes of the elements of a topology file: where it stops, crashes, or
 * builds another machine than the one that is described. */

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "src/nccl/xml.h"
#include "src/util/text.h"

#define BUSID_TAIL ":hh:hh.h"
#define NVSWITCH_TARGET "fffffff:ffff:ff" /* a switch that a guest cannot see */
/* What NCCL adds to the file for one process: gpu, its NVLinks, c2c. */
#define GPU_ADDITIONS 20

struct topology {
	struct ocs_nccl_faults *faults;
	/* pci elements, nets and cpus, to find what occurs twice */
	const struct ocs_nccl_element *seen[OCS_NCCL_ELEMENTS_MAX + 1];
	int nseen;
	int nics; /* pci of class 0x02 without a net in the file */
};

enum device { DEVICE_SWITCH, DEVICE_GPU, DEVICE_NIC, DEVICE_NVLINK, DEVICE_OTHER };

#define FAULT(severity, ...) \
	ocs_nccl_fault(t->faults, element->line, OCS_NCCL_##severity, __VA_ARGS__)

static bool element_is(const struct ocs_nccl_element *element, const char *name)
{
	return strcmp(element->name, name) == 0;
}

static const struct ocs_nccl_element *element_child(const struct ocs_nccl_element *element,
						    const char *name)
{
	for (int i = 0; i < element->nchildren; i++)
		if (element_is(element->children[i], name))
			return element->children[i];
	return NULL;
}

/* KEY of ELEMENT, or NULL after a fault; none for a tag that already has one.  What
 * NCCL finds out itself is worth a note. */
static const char *attribute_want(struct topology *t, const struct ocs_nccl_element *element,
				  const char *key, const char *form, bool found_out)
{
	const char *value = ocs_nccl_attribute(element, key);

	if (!value && !element->broken && found_out)
		FAULT(NOTE, "<%s> without %s (%s): NCCL looks it up on the machine it runs on",
		      element->name, key, form);
	else if (!value && !element->broken)
		FAULT(FATAL, "<%s> needs %s, %s", element->name, key, form);
	return value;
}

/* An element of the same name with the same KEY was there before. */
static void element_once(struct topology *t, const struct ocs_nccl_element *element,
			 const char *key)
{
	const char *value = ocs_nccl_attribute(element, key);

	if (!value)
		return;
	for (int i = 0; i < t->nseen; i++) {
		const char *other = ocs_nccl_attribute(t->seen[i], key);

		if (element_is(element, t->seen[i]->name) && other && strcmp(other, value) == 0) {
			FAULT(MISREAD,
			      "<%s %s=\"%.60s\"> is also on line %d; NCCL finds the first only",
			      element->name, key, value, t->seen[i]->line);
			return;
		}
	}
	if (t->nseen <= OCS_NCCL_ELEMENTS_MAX)
		t->seen[t->nseen++] = element;
}

static bool text_starts(const char *text, const char *const *words)
{
	for (; *words; words++)
		if (strncmp(text, *words, strlen(*words)) == 0)
			return true;
	return false;
}

static void system_check(struct topology *t, const struct ocs_nccl_element *element)
{
	static const char *const known[] = { "version", "name", NULL };
	long version;

	ocs_nccl_check_attributes(element, known, 0, t->faults);
	if (ocs_nccl_check_number(element, "version", 0, true, &version, t->faults) && version != 1)
		FAULT(FATAL, "version %ld; NCCL reads version=\"1\" only", version);
	if (!element_child(element, "cpu"))
		FAULT(MISREAD, "a <system> without a <cpu> describes nothing");
}

/* "ffffffff,0000ffff": words of 32 bits, the highest first. */
static bool affinity_valid(const char *text)
{
	for (;;) {
		size_t length = strspn(text, "0123456789abcdefABCDEF");

		if (length < 1 || length > 8 || (text[length] && text[length] != ','))
			return false;
		if (!text[length])
			return true;
		text += length + 1;
	}
}

/* One of several processors: what the file leaves out each rank adds for the one of its own GPU, and
 * what ranks describe in two ways becomes two. */
static void ranks_check(struct topology *t, const struct ocs_nccl_element *element)
{
	static const char *const keys[] = { "affinity", "arch", "vendor", "familyid", "modelid" };
	const char *arch = ocs_nccl_attribute(element, "arch");
	bool x86 = !arch || strncmp(arch, "x86_64", 6) == 0;
	struct ocs_text missing = { 0 };

	if (element->broken || element->parent->nchildren < 2)
		return;
	for (size_t i = 0; i < (x86 ? 5 : 2); i++)
		if (!ocs_nccl_attribute(element, keys[i]))
			ocs_text_add(&missing, "%s%s", missing.length ? ", " : "", keys[i]);
	if (missing.length)
		FAULT(MISREAD,
		      "<cpu> without %s: each rank adds that for the processor of its own GPU only, and "
		      "since 2.22 NCCL takes a processor that its ranks describe differently for two",
		      missing.data);
	ocs_text_free(&missing);
}

static void cpu_check(struct topology *t, const struct ocs_nccl_element *element)
{
	static const char *const known[] = { "numaid",	 "affinity", "arch",	  "vendor",
					     "familyid", "modelid",  "host_hash", NULL };
	static const char *const archs[] = { "x86_64", "arm64", "ppc64", NULL };
	static const char *const vendors[] = { "GenuineIntel", "AuthenticAMD", "CentaurHauls",
					       "  Shanghai  ", NULL };
	const char *affinity = ocs_nccl_attribute(element, "affinity"), *arch, *vendor;
	const char *family = NULL;
	bool model;

	ocs_nccl_check_attributes(element, known, 7, t->faults);
	if (ocs_nccl_check_number(element, "numaid", 0, true, NULL, t->faults))
		element_once(t, element, "numaid");
	ranks_check(t, element);
	if (affinity && !affinity_valid(affinity))
		FAULT(MISREAD,
		      "affinity=\"%.40s\" is no list of hexadecimal words such as "
		      "\"ffff0000,0000ffff\"",
		      affinity);
	arch = attribute_want(t, element, "arch", "x86_64, arm64 or ppc64", true);
	if (arch && !text_starts(arch, archs))
		FAULT(MISREAD,
		      "arch=\"%.40s\" is none that NCCL knows; write x86_64, arm64 or ppc64", arch);
	if (!arch || strncmp(arch, "x86_64", 6) != 0)
		return;
	vendor = attribute_want(t, element, "vendor", "such as GenuineIntel", true);
	if (!vendor)
		return;
	if (!text_starts(vendor, vendors))
		FAULT(NOTE,
		      "vendor=\"%.40s\" is none that NCCL knows; it guesses the speed between "
		      "processors",
		      vendor);
	/* looked up together when familyid is missing */
	model = text_starts(vendor, vendors) && strncmp(vendor, "AuthenticAMD", 12) != 0;
	if (model)
		family = attribute_want(t, element, "familyid", "with modelid, a number", true);
	ocs_nccl_check_number(element, "familyid", 0, false, NULL, t->faults);
	ocs_nccl_check_number(element, "modelid", 0, model && family, NULL, t->faults);
}

static bool hex_digit(char c)
{
	return isdigit((unsigned char)c) || (c >= 'a' && c <= 'f');
}

/* As NCCL and the kernel print it: 0000:ab:00.0; a longer domain has no zeros in front. */
static bool busid_valid(const char *busid)
{
	const char *form = BUSID_TAIL;
	size_t domain = strcspn(busid, ":");

	if (domain < 4 || domain > 8 || (domain > 4 && busid[0] == '0'))
		return false;
	for (size_t i = 0; i < domain; i++)
		if (!hex_digit(busid[i]))
			return false;
	for (busid += domain; *form; form++, busid++)
		if (*form == 'h' ? !hex_digit(*busid) : *busid != *form)
			return false;
	return *busid == '\0';
}

/* Links name the other end; NVML writes domains of eight digits. */
static void target_check(struct topology *t, const struct ocs_nccl_element *element)
{
	const char *target = ocs_nccl_attribute(element, "target");

	if (!target && !element->broken)
		FAULT(FATAL,
		      "<%s> needs target, a bus address such as 0000:ab:00.0; NCCL crashes "
		      "without",
		      element->name);
	if (target && strcmp(target, NVSWITCH_TARGET) != 0 && !busid_valid(target) &&
	    !(strlen(target) == 16 && target[0] == '0' && busid_valid(target + 4)))
		FAULT(MISREAD,
		      "target=\"%.40s\" is no bus address such as 0000:ab:00.0, in lower case",
		      target);
}

static enum device device_of(const char *class)
{
	if (strncmp(class, "0x060400", 8) == 0 || strncmp(class, "0x080100", 8) == 0)
		return DEVICE_SWITCH;
	if (strncmp(class, "0x06800", 7) == 0 && (class[7] == '0' || class[7] == '1'))
		return DEVICE_NVLINK;
	return strncmp(class, "0x03", 4) == 0 ? DEVICE_GPU :
	       strncmp(class, "0x02", 4) == 0 ? DEVICE_NIC :
						DEVICE_OTHER;
}

static void link_check(struct topology *t, const struct ocs_nccl_element *element)
{
	static const char *const speeds[] = { "2.5 GT/s",
					      "5 GT/s",
					      "8 GT/s",
					      "16 GT/s",
					      "32 GT/s",
					      "5.0 GT/s PCIe",
					      "8.0 GT/s PCIe",
					      "16.0 GT/s PCIe",
					      "32.0 GT/s PCIe",
					      "64.0 GT/s PCIe",
					      NULL };
	const char *width = ocs_nccl_attribute(element, "link_width");
	const char *speed =
		attribute_want(t, element, "link_speed", "such as 16.0 GT/s PCIe", true);

	if (width && !*width)
		FAULT(NOTE, "an empty link_width counts as 16 lanes");
	else if (!width)
		attribute_want(t, element, "link_width", "the number of lanes", true);
	else
		ocs_nccl_check_number(element, "link_width", 0, true, NULL, t->faults);
	if (speed && !*speed)
		FAULT(NOTE, "an empty link_speed counts as 8 GT/s");
	else if (speed && !text_starts(speed, speeds))
		FAULT(MISREAD,
		      "link_speed=\"%.40s\" is none that NCCL knows, it counts 8 GT/s; write "
		      "such as \"16.0 GT/s PCIe\"",
		      speed);
}

/* Does a net hang below ELEMENT? */
static bool holds_net(const struct ocs_nccl_element *element)
{
	for (int i = 0; i < element->nchildren; i++)
		if (element_is(element->children[i], "net") || holds_net(element->children[i]))
			return true;
	return false;
}

/* What may not be inside a device of this class. */
static void contents_check(struct topology *t, const struct ocs_nccl_element *element,
			   enum device device)
{
	bool nic = element_child(element, "nic") != NULL;
	int nics = 0;

	for (int i = 0; i < element->nchildren; i++) {
		const struct ocs_nccl_element *inside = element->children[i];

		nics += element_is(inside, "nic");
		if (element_is(inside, "nic") && nics == 2)
			ocs_nccl_fault(
				t->faults, inside->line, OCS_NCCL_MISREAD,
				"a second <nic> in "
				"one <pci>, which NCCL ignores; put all nets into one <nic>");
		if (element_is(inside, "pci") &&
		    (nic || (device != DEVICE_SWITCH && device != DEVICE_OTHER)))
			ocs_nccl_fault(t->faults, inside->line, OCS_NCCL_MISREAD,
				       "a <pci> inside a "
				       "device that is no switch (class 0x060400): NCCL drops it");
		if (element_is(inside, "pcilink") &&
		    (nic || (device != DEVICE_SWITCH && device != DEVICE_OTHER)))
			ocs_nccl_fault(t->faults, inside->line, OCS_NCCL_FATAL,
				       "a <pcilink> belongs "
				       "into a switch (class 0x060400)");
		if (element_is(inside, "gpu") && device != DEVICE_GPU)
			ocs_nccl_fault(t->faults, inside->line, OCS_NCCL_FATAL,
				       "a <gpu> belongs into a "
				       "<pci> of class 0x030000 or 0x030200");
	}
}

static void pci_check(struct topology *t, const struct ocs_nccl_element *element)
{
	static const char *const known[] = {
		"busid",  "class",  "link_speed",	"link_width",
		"vendor", "device", "subsystem_vendor", "subsystem_device",
		NULL
	};
	const char *busid = attribute_want(t, element, "busid", "such as 0000:ab:00.0", false);
	/* at an address of nothing there is nothing to look up */
	const char *class = attribute_want(t, element, "class", "such as 0x060400",
					   busid && strncmp(busid, "ffff:", 5) != 0);
	enum device device;

	ocs_nccl_check_attributes(element, known, 8, t->faults);
	if (busid && !busid_valid(busid))
		FAULT(MISREAD,
		      "busid=\"%.40s\" is not written like 0000:ab:00.0, in lower case: NCCL "
		      "does not find the device",
		      busid);
	element_once(t, element, "busid");
	link_check(t, element);
	for (int i = 4; known[i]; i++)
		ocs_nccl_check_number(element, known[i], 0, false, NULL, t->faults);
	if (!class)
		return;
	device = device_of(class);
	if (device == DEVICE_OTHER)
		FAULT(NOTE,
		      "class=\"%.40s\" is none that NCCL knows; it takes the device for a PCI "
		      "switch",
		      class);
	contents_check(t, element, device);
	t->nics += device == DEVICE_NIC && !element_child(element, "nic");
	if (element_child(element, "pci") && holds_net(element) && busid &&
	    strncmp(busid, "ffff:", 5) != 0 &&
	    (!ocs_nccl_attribute(element, "vendor") || !ocs_nccl_attribute(element, "device")))
		FAULT(NOTE,
		      "nets below a switch without vendor and device: NCCL can take all its "
		      "channels for one; add both, or give the switch an address like ffff:ff:01.0");
}

static void gpu_check(struct topology *t, const struct ocs_nccl_element *element)
{
	static const char *const known[] = { "dev", "sm", "rank", "gdr", "mlopart", NULL };

	ocs_nccl_check_attributes(element, known, 6, t->faults);
	for (int i = 0; known[i]; i++)
		ocs_nccl_check_number(element, known[i], 0, false, NULL, t->faults);
}

/* nvlink, c2c and pcilink. */
static void joint_check(struct topology *t, const struct ocs_nccl_element *element)
{
	static const char *const nvlink[] = { "target", "count", "tclass", NULL };
	static const char *const c2c[] = { "count", "bw", NULL };
	static const char *const pcilink[] = { "target", NULL };

	ocs_nccl_check_attributes(element,
				  element_is(element, "nvlink") ? nvlink :
				  element_is(element, "c2c")	? c2c :
								  pcilink,
				  3, t->faults);
	if (!element_is(element, "c2c"))
		target_check(t, element);
	if (!element_is(element, "pcilink"))
		ocs_nccl_check_number(element, "count", 0, true, NULL, t->faults);
	if (element_is(element, "c2c"))
		ocs_nccl_check_number(element, "bw", 0, true, NULL, t->faults);
}

static void net_check(struct topology *t, const struct ocs_nccl_element *element)
{
	static const char *const known[] = { "name", "speed",	"dev",	"port",	 "latency",
					     "guid", "maxconn", "gdr",	"coll",	 "gin",
					     "rma",  "net",	"rail", "plane", NULL };
	const char *name = ocs_nccl_attribute(element, "name");
	long speed;

	ocs_nccl_check_attributes(element, known, 12, t->faults);
	if (!element->broken && (!name || !*name))
		FAULT(MISREAD,
		      "a <net> without a name is never found; give the one that NCCL prints "
		      "for the port");
	element_once(t, element, "name");
	if (!ocs_nccl_attribute(element, "speed"))
		FAULT(NOTE, "a <net> without speed (in Mb/s) takes what its driver says");
	else if (ocs_nccl_check_number(element, "speed", 0, true, &speed, t->faults) && speed <= 0)
		FAULT(NOTE, "speed=\"%ld\" counts as 10000 Mb/s", speed);
	for (int i = 2; known[i]; i++)
		if (strcmp(known[i], "latency") != 0)
			ocs_nccl_check_number(element, known[i], strcmp(known[i], "guid") ? 0 : 16,
					      false, NULL, t->faults);
}

static void element_check(struct topology *t, const struct ocs_nccl_element *element)
{
	const char *keep = ocs_nccl_attribute(element, "keep");

	if (keep && strcmp(keep, "1") == 0)
		FAULT(MISREAD,
		      "keep=\"1\" makes NCCL use <%s> even if it does not exist; take it out",
		      element->name);
	if (element_is(element, "system"))
		system_check(t, element);
	else if (element_is(element, "cpu"))
		cpu_check(t, element);
	else if (element_is(element, "pci"))
		pci_check(t, element);
	else if (element_is(element, "gpu"))
		gpu_check(t, element);
	else if (element_is(element, "net"))
		net_check(t, element);
	else if (!element_is(element, "nic"))
		joint_check(t, element);
}

void ocs_nccl_check_topology(const struct ocs_nccl_element *root, int elements,
			     struct ocs_nccl_faults *faults)
{
	struct topology *t = ocs_calloc(1, sizeof(*t));
	const struct ocs_nccl_element *element = root;
	int index = 0, spare;

	t->faults = faults;
	if (root->nchildren == 0)
		ocs_nccl_fault(faults, 1, OCS_NCCL_MISREAD,
			       "no <system version=\"1\">: NCCL finds "
			       "nothing in this file");
	/* in the order of the file, without recursion */
	while (element) {
		if (index < element->nchildren) {
			element = element->children[index];
			if (element->parent == root && index > 0)
				FAULT(MISREAD, "a second <system>, which NCCL ignores");
			index = 0;
			element_check(t, element);
			continue;
		}
		for (index = 1; element->parent && element->parent->children[index - 1] != element;
		     index++)
			;
		element = element->parent;
	}
	spare = OCS_NCCL_ELEMENTS_MAX + 1 - elements;
	if (spare > 0 && spare < GPU_ADDITIONS + 2 * t->nics)
		ocs_nccl_fault(faults, 1, OCS_NCCL_NOTE,
			       "%d elements leave %d of %d for the GPU, NVLink "
			       "and NIC elements that NCCL adds itself; it stops when they do not "
			       "suffice",
			       elements, spare, OCS_NCCL_ELEMENTS_MAX + 1);
	free(t);
}
