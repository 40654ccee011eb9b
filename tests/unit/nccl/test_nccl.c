/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/nccl/machine.h"
#include "src/nccl/topology.h"
#include "src/util/error.h"
#include "src/util/text.h"
#include "tests/unit/nccl/nccl_rig.h"

/* The path of a machine description, or NULL where they are not at hand. */
static char *description(const char *name)
{
	const char *source = getenv("OCS_SOURCE_DIR");
	char *path =
		ocs_asprintf("%s/../shared/data/hwloc/%s", source ? source : TEST_SOURCE_DIR, name);

	if (access(path, R_OK) == 0)
		return path;
	free(path);
	return NULL;
}

static char *topology(const char *path, const struct ocs_nccl_port *ports, int nports,
		      struct ocs_error *err)
{
	struct ocs_nccl_machine *machine = ocs_nccl_machine_open(path, err);
	char *text = machine ? ocs_nccl_topology(machine, ports, nports, err) : NULL;

	ocs_nccl_machine_close(machine);
	return text;
}

static void test_this_machine(void **state)
{
	struct ocs_error err = { 0 };
	char *text = topology(NULL, NULL, 0, &err);

	(void)state;
	/* a virtual machine may lack what NCCL needs: then it must say so */
	if (!text) {
		assert_true(strlen(err.text) > 20);
		return;
	}
	nccl_spotless("this machine", text);
	assert_true(nccl_count(text, "<cpu ") >= 1);
	free(text);
}

static void test_descriptions(void **state)
{
	static const struct {
		const char *file, *arch;
		int gpus, cpus;
	} machines[] = {
		{ "coral-lassen.xml", "ppc64", 4, 2 },
		{ "g4dnmetal.xml", "x86_64", 8, 2 },
		{ "nvidiaDGX2.xml", "x86_64", 16, 2 },
		{ "power8gpudistances.xml", "ppc64", 4, 2 },
	};
	struct ocs_error err = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++) {
		char *path = description(machines[i].file), *text, *again;
		char arch[32];

		if (!path)
			skip(); /* they are not at hand */
		text = topology(path, NULL, 0, &err);
		if (!text)
			fail_msg("%s: %s", machines[i].file, err.text);
		nccl_spotless(machines[i].file, text);
		assert_int_equal(nccl_count(text, "class=\"0x0302"), machines[i].gpus);
		assert_int_equal(nccl_count(text, "<cpu "), machines[i].cpus);
		snprintf(arch, sizeof(arch), "arch=\"%s\"", machines[i].arch);
		assert_int_equal(nccl_count(text, arch), machines[i].cpus);
		assert_int_equal(nccl_count(text, "<pci "), nccl_count(text, " device=\"0x"));
		assert_int_equal(nccl_count(text, "keep="), 0);
		assert_int_equal(nccl_count(text, "<gpu"), 0);
		again = topology(path, NULL, 0, &err);
		assert_string_equal(text, again);
		free(again);
		free(text);
		free(path);
	}
}

/* Two GPUs of a DGX-2 share a switch; the whole chain of switches is there. */
static void test_switches(void **state)
{
	char *path = description("nvidiaDGX2.xml"), *text, *gpu, *above;
	struct ocs_error err = { 0 };

	(void)state;
	if (!path)
		skip(); /* it is not at hand */
	text = topology(path, NULL, 0, &err);
	assert_non_null(text);
	above = strstr(text, "busid=\"0000:32:00.0\" class=\"0x060400\"");
	gpu = strstr(text, "busid=\"0000:34:00.0\" class=\"0x030200\"");
	assert_non_null(above);
	assert_non_null(gpu);
	assert_true(above < gpu);
	assert_null(memmem(above, gpu - above, "</pci>", 6));
	assert_non_null(strstr(gpu, "link_speed=\"8.0 GT/s PCIe\" link_width=\"16\""));
	free(text);
	free(path);
}

static void test_nets(void **state)
{
	const struct ocs_nccl_port ports[] = { { "mlx5_0", 1, true, 100000 },
					       { "mlx5_3", 1, true, 0 } };
	const struct ocs_nccl_port none = { "mlx5_9", 0, true, 0 };
	const struct ocs_nccl_port evil = { "x\"/><net name=\"y", 0, true, 0 };
	const struct ocs_nccl_port socket = { "ens5", 0, false, 25000 };
	const struct ocs_nccl_port twice[] = { { "mlx5_1", 1, true, 1 }, { "mlx5_1", 2, true, 1 } };
	char *path = nccl_server(), *text;
	struct ocs_error err = { 0 };

	(void)state;
	text = topology(path, ports, 2, &err);
	if (!text)
		fail_msg("%s", err.text);
	assert_int_equal(nccl_count(text, "<net "), 2);
	assert_int_equal(nccl_count(text, "<net name=\"mlx5_0\" speed=\"100000\"/>"), 1);
	assert_int_equal(nccl_count(text, "<net name=\"mlx5_3\"/>"), 1);
	assert_int_equal(nccl_count(text, "class=\"0x0207"), 2);
	assert_int_equal(nccl_count(text, "class=\"0x0302"), 8);
	assert_int_equal(nccl_count(text, "class=\"0x060400"), 4);
	free(text);
	text = topology(path, &socket, 1, &err);
	nccl_spotless("one port", text);
	assert_int_equal(nccl_count(text, "<net name=\"ens5\" speed=\"25000\"/>"), 1);
	free(text);
	/* NCCL knows both ports of a device by one name */
	text = topology(path, twice, 2, &err);
	nccl_spotless("two ports", text);
	assert_int_equal(nccl_count(text, "<net "), 1);
	free(text);
	assert_null(topology(path, &none, 1, &err));
	assert_non_null(strstr(err.text, "mlx5_9"));
	assert_null(topology(path, &evil, 1, &err));
	assert_non_null(strstr(err.text, "not the name"));
	free(path);
}

/* As the kernel writes it, in words of 32 bits: ranks must not describe a processor in two ways. */
static void test_affinity(void **state)
{
	struct ocs_nccl_machine machine = { .topology = NULL };
	char *path = nccl_server(), *text;
	struct ocs_error err = { 0 };
	hwloc_obj_t node;

	(void)state;
	text = topology(path, NULL, 0, &err);
	assert_int_equal(nccl_count(text, "numaid=\"0\" arch=\"x86_64\" affinity=\"00000003\""), 1);
	assert_int_equal(nccl_count(text, "numaid=\"1\" arch=\"x86_64\" affinity=\"0000000c\""), 1);
	free(text);
	free(path);
	assert_int_equal(hwloc_topology_init(&machine.topology), 0);
	assert_int_equal(hwloc_topology_set_synthetic(machine.topology, "numa:2 core:40 pu:1"), 0);
	assert_int_equal(hwloc_topology_load(machine.topology), 0);
	node = hwloc_get_obj_by_type(machine.topology, HWLOC_OBJ_NUMANODE, 1);
	text = ocs_nccl_affinity(&machine, node);
	assert_string_equal(text, "0000ffff,ffffff00,00000000");
	free(text);
	hwloc_topology_destroy(machine.topology);
}

/* What the kernel says of this machine, unless that is longer than NCCL's room. */
static void test_affinity_live(void **state)
{
	struct ocs_error err = { 0 };
	struct ocs_nccl_machine *machine = ocs_nccl_machine_open(NULL, &err);
	char *kernel = ocs_file_read("/sys/devices/system/node/node0/cpumap", 4096, NULL, NULL);
	char *text;

	(void)state;
	if (!machine || !kernel || !machine->live || strlen(kernel) > 250) {
		free(kernel);
		ocs_nccl_machine_close(machine);
		skip(); /* no NUMA nodes here */
	}
	text = ocs_nccl_affinity(machine,
				 hwloc_get_obj_by_type(machine->topology, HWLOC_OBJ_NUMANODE, 0));
	kernel[strcspn(kernel, "\n")] = '\0';
	assert_string_equal(text, kernel);
	free(text);
	free(kernel);
	ocs_nccl_machine_close(machine);
}

/* Every description at hand, with every port that hwloc sees in it: a file in which
 * nothing is wrong, or a reason. */
static void test_every_machine(void **state)
{
	const char *source = getenv("OCS_SOURCE_DIR");
	char *folders[] = {
		ocs_asprintf("%s/../shared/data/hwloc", source ? source : TEST_SOURCE_DIR),
		ocs_asprintf("%s/tests/data", source ? source : TEST_SOURCE_DIR),
	};
	int written = 0;

	(void)state;
	for (int f = 0; f < 2; f++) {
		DIR *dir = opendir(folders[f]);
		struct dirent *entry;

		while (dir && (entry = readdir(dir))) {
			char *path = ocs_asprintf("%s/%s", folders[f], entry->d_name), *text;
			struct ocs_nccl_port ports[64];
			struct ocs_nccl_machine *machine;
			struct ocs_error err = { 0 };
			hwloc_obj_t os = NULL;
			int n = 0;

			machine = strstr(entry->d_name, ".xml") ?
					  ocs_nccl_machine_open(path, &err) :
					  NULL;
			while (machine && n < 64 &&
			       (os = hwloc_get_next_osdev(machine->topology, os)))
				if (os->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS)
					ports[n++] =
						(struct ocs_nccl_port){ os->name, 1, true, 100000 };
			for (int used = 0; machine && used <= n; used++) {
				text = ocs_nccl_topology(machine, ports, used, &err);
				if (!text) {
					assert_true(strlen(err.text) > 20);
					continue;
				}
				nccl_spotless(path, text);
				assert_int_equal(nccl_count(text, "<net "), used);
				written++;
				free(text);
			}
			ocs_nccl_machine_close(machine);
			free(path);
		}
		if (dir)
			closedir(dir);
		free(folders[f]);
	}
	assert_true(written >= 5);
}

static void test_refusals(void **state)
{
	static const char *const machines[] = {
		/* no architecture; one NCCL does not know; no GPU */
		"",
		"<info name=\"Architecture\" value=\"riscv64\"/>",
		"<info name=\"Architecture\" value=\"ppc64le\"/>",
	};
	struct ocs_error err = { 0 };
	char path[] = "/tmp/test_nccl.XXXXXX";
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	assert_null(topology("/nonexistent.xml", NULL, 0, &err));
	assert_non_null(strstr(err.text, "/nonexistent.xml"));
	for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++) {
		char *text = ocs_asprintf(
			"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n"
			"<topology version=\"2.0\"><object type=\"Machine\" os_index=\"0\" "
			"cpuset=\"0x1\" complete_cpuset=\"0x1\" allowed_cpuset=\"0x1\" nodeset=\"0x1\" "
			"complete_nodeset=\"0x1\" allowed_nodeset=\"0x1\" gp_index=\"1\">%s<object "
			"type=\"NUMANode\" os_index=\"0\" cpuset=\"0x1\" complete_cpuset=\"0x1\" "
			"nodeset=\"0x1\" complete_nodeset=\"0x1\" gp_index=\"2\" "
			"local_memory=\"1000000\"/><object type=\"PU\" os_index=\"0\" cpuset=\"0x1\" "
			"complete_cpuset=\"0x1\" nodeset=\"0x1\" complete_nodeset=\"0x1\" "
			"gp_index=\"3\"/>\n</object>\n</topology>\n",
			machines[i]);

		assert_int_equal(ocs_file_write(path, text, strlen(text), 0600, &err), 0);
		free(text);
		memset(&err, 0, sizeof(err));
		assert_null(topology(path, NULL, 0, &err));
		if (!strstr(err.text, i == 2 ? "shows no GPU" : "NCCL"))
			fail_msg("%s", err.text);
	}
	unlink(path);
}

/* A server's description with WHAT replaced by WITH, and what is said about it. */
static void changed(const char *what, const char *with, const char *why)
{
	char *path = nccl_server(), *text = ocs_file_read(path, 1 << 20, NULL, NULL), *at, *copy;
	char file[] = "/tmp/test_nccl.XXXXXX";
	int fd = mkstemp(file);
	struct ocs_text out = { 0 };
	struct ocs_error err = { 0 };

	assert_true(fd >= 0);
	close(fd);
	for (copy = text; (at = strstr(copy, what)); copy = at + strlen(what))
		ocs_text_add(&out, "%.*s%s", (int)(at - copy), copy, with);
	ocs_text_add(&out, "%s", copy);
	assert_int_equal(ocs_file_write(file, out.data, out.length, 0600, &err), 0);
	assert_null(topology(file, NULL, 0, &err));
	if (!strstr(err.text, why))
		fail_msg("%s", err.text);
	unlink(file);
	ocs_text_free(&out);
	free(text);
	free(path);
}

static void test_lacking(void **state)
{
	struct ocs_text many = { 0 };

	(void)state;
	changed("CPUVendor", "Nobody", "lacks vendor");
	changed("CPUModelNumber", "Nobody", "lacks vendor");
	changed("[10de:2330]", "[1af4:1050]", "shows no GPU");
	/* another 240 NICs where there was one */
	ocs_text_add(
		&many,
		"<object type=\"OSDev\" gp_index=\"5000\" name=\"ens3\" osdev_type=\"2\"/></object>");
	for (int i = 0; i < 240; i++)
		ocs_text_add(
			&many,
			"<object type=\"PCIDev\" gp_index=\"%d\" pci_busid=\"0000:23:%02x.%d\" "
			"pci_type=\"0200 [15b3:1021] [15b3:0041] 00\" pci_link_speed=\"1.0\">%s",
			6000 + i, 1 + i / 8, i % 8, i < 239 ? "</object>" : "");
	changed("<object type=\"OSDev\" gp_index=\"17\" name=\"ens3\" osdev_type=\"2\"/>",
		many.data, "it has room for 256");
	ocs_text_free(&many);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_this_machine),  cmocka_unit_test(test_descriptions),
		cmocka_unit_test(test_switches),      cmocka_unit_test(test_nets),
		cmocka_unit_test(test_affinity),      cmocka_unit_test(test_affinity_live),
		cmocka_unit_test(test_refusals),      cmocka_unit_test(test_lacking),
		cmocka_unit_test(test_every_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
