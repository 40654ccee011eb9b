/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <dirent.h>
#include <json-c/json.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/nccl/check.h"
#include "src/nccl/circuits.h"
#include "src/nccl/graph.h"
#include "src/nccl/machine.h"
#include "src/nccl/subnet.h"
#include "src/nccl/topology.h"
#include "src/util/error.h"
#include "src/util/hostlist.h"
#include "src/util/text.h"

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

static int count(const char *text, const char *what)
{
	int n = 0;

	while ((text = strstr(text, what))) {
		n++;
		text += strlen(what);
	}
	return n;
}

/* Our own description of a server: 8 GPUs and ports mlx5_0 to mlx5_3 (ens3 to ens6),
 * two GPUs and a port on each of four switches, two switches a processor. */
static char *server(void)
{
	const char *source = getenv("OCS_SOURCE_DIR");

	return ocs_asprintf("%s/tests/data/server-8gpu-4nic.xml",
			    source ? source : TEST_SOURCE_DIR);
}

static char *topology(const char *path, const struct ocs_nccl_port *ports, int nports,
		      struct ocs_error *err)
{
	struct ocs_nccl_machine *machine = ocs_nccl_machine_open(path, err);
	char *text = machine ? ocs_nccl_topology(machine, ports, nports, err) : NULL;

	ocs_nccl_machine_close(machine);
	return text;
}

/* Nothing to complain about, not even notes. */
static void spotless(const char *name, const char *text)
{
	struct ocs_nccl_report report;

	ocs_nccl_check(text, strlen(text), &report);
	for (int i = 0; i < report.faults.count; i++)
		if (!strstr(report.faults.list[i].text, "NCCL_CROSS_NIC"))
			fail_msg("%s:%d: %s", name, report.faults.list[i].line,
				 report.faults.list[i].text);
	ocs_nccl_report_free(&report);
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
	spotless("this machine", text);
	assert_true(count(text, "<cpu ") >= 1);
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
		spotless(machines[i].file, text);
		assert_int_equal(count(text, "class=\"0x0302"), machines[i].gpus);
		assert_int_equal(count(text, "<cpu "), machines[i].cpus);
		snprintf(arch, sizeof(arch), "arch=\"%s\"", machines[i].arch);
		assert_int_equal(count(text, arch), machines[i].cpus);
		assert_int_equal(count(text, "<pci "), count(text, " device=\"0x"));
		assert_int_equal(count(text, "keep="), 0);
		assert_int_equal(count(text, "<gpu"), 0);
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
	char *path = server(), *text;
	struct ocs_error err = { 0 };

	(void)state;
	text = topology(path, ports, 2, &err);
	if (!text)
		fail_msg("%s", err.text);
	assert_int_equal(count(text, "<net "), 2);
	assert_int_equal(count(text, "<net name=\"mlx5_0\" speed=\"100000\"/>"), 1);
	assert_int_equal(count(text, "<net name=\"mlx5_3\"/>"), 1);
	assert_int_equal(count(text, "class=\"0x0207"), 2);
	assert_int_equal(count(text, "class=\"0x0302"), 8);
	assert_int_equal(count(text, "class=\"0x060400"), 4);
	free(text);
	text = topology(path, &socket, 1, &err);
	spotless("one port", text);
	assert_int_equal(count(text, "<net name=\"ens5\" speed=\"25000\"/>"), 1);
	free(text);
	/* NCCL knows both ports of a device by one name */
	text = topology(path, twice, 2, &err);
	spotless("two ports", text);
	assert_int_equal(count(text, "<net "), 1);
	free(text);
	assert_null(topology(path, &none, 1, &err));
	assert_non_null(strstr(err.text, "mlx5_9"));
	assert_null(topology(path, &evil, 1, &err));
	assert_non_null(strstr(err.text, "not the name"));
	free(path);
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
				spotless(path, text);
				assert_int_equal(count(text, "<net "), used);
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

static void test_graph(void **state)
{
	const struct ocs_nccl_port ports[] = { { "mlx5_3", 1, true, 400000 },
					       { "mlx5_0", 1, true, 200000 },
					       { "ens4", 0, false, 0 } };
	const struct ocs_nccl_channel ring[] = { { 0, 1 }, { 1, 0 } }, same = { 1, 1 },
				      fast = { 0, 0 };
	const struct ocs_nccl_port two[] = { { "mlx5_0", 1, true, 0 }, { "mlx5_0", 2, true, 0 } };
	char *path = server(), *text, *channel;
	struct ocs_error err = { 0 };
	struct ocs_nccl_machine *machine = ocs_nccl_machine_open(path, &err);

	(void)state;
	assert_non_null(machine);
	text = ocs_nccl_graph(machine, ports, 2, ring, 2, false, &err);
	if (!text)
		fail_msg("%s", err.text);
	spotless("graph", text);
	/* NCCL counts mlx5_0 before mlx5_3; the slower port is the speed of all */
	assert_non_null(strstr(text, "crossnic=\"1\" nchannels=\"2\" speedintra=\"25\" "
				     "speedinter=\"25\""));
	channel = strstr(text, "<channel>");
	/* in by mlx5_3 beside GPUs 6 and 7, out by mlx5_0 beside 0 and 1 */
	assert_int_equal(
		strncmp(channel, "<channel>\n      <net dev=\"1\"/>\n      <gpu dev=\"6\"/>", 45),
		0);
	assert_non_null(
		strstr(channel, "<gpu dev=\"0\"/>\n      <net dev=\"0\"/>\n    </channel>"));
	assert_int_equal(count(text, "<gpu "), 16);
	assert_non_null(strstr(text, "typeinter=\"PIX\""));
	free(text);
	text = ocs_nccl_graph(machine, ports, 2, &same, 1, false, &err);
	assert_non_null(strstr(text, "crossnic=\"0\" nchannels=\"1\""));
	free(text);
	/* a faster port has two channels, which start at different GPUs */
	text = ocs_nccl_graph(machine, ports, 1, &fast, 1, false, &err);
	spotless("fast", text);
	assert_non_null(strstr(text, "nchannels=\"2\" speedintra=\"25\""));
	assert_int_equal(count(text, "<net dev=\"0\"/>\n      <gpu dev=\"6\"/>"), 1);
	assert_int_equal(count(text, "<net dev=\"0\"/>\n      <gpu dev=\"7\"/>"), 1);
	free(text);
	assert_null(ocs_nccl_graph(machine, ports, 3, ring, 2, false, &err));
	assert_non_null(strstr(err.text, "ens4"));
	assert_null(ocs_nccl_graph(machine, two, 2, ring, 2, false, &err));
	assert_non_null(strstr(err.text, "one PCI device"));
	assert_null(ocs_nccl_graph(machine, ports, 2, ring, 0, false, &err));
	ocs_nccl_machine_close(machine);
	free(path);
}

/* The server with its first GPUS GPUs alone. */
static struct ocs_nccl_machine *machine_with(int gpus)
{
	char *path = server(), *text = ocs_file_read(path, 1 << 20, NULL, NULL), *at = text;
	char file[] = "/tmp/test_nccl.XXXXXX";
	struct ocs_nccl_machine *machine;
	struct ocs_error err = { 0 };
	int fd = mkstemp(file);

	assert_true(fd >= 0);
	close(fd);
	for (; (at = strstr(at, "[10de:2330]")); at++)
		if (gpus-- <= 0)
			memcpy(at, "[1af4", 5);
	assert_int_equal(ocs_file_write(file, text, strlen(text), 0600, &err), 0);
	machine = ocs_nccl_machine_open(file, &err);
	assert_non_null(machine);
	unlink(file);
	free(text);
	free(path);
	return machine;
}

static const struct ocs_nccl_port two_ports[] = { { "mlx5_0", 1, true, 100000 },
						  { "mlx5_1", 1, true, 100000 } };

static void test_graph_without_gpu(void **state)
{
	const struct ocs_nccl_channel ring = { 0, 0 };
	struct ocs_nccl_machine *machine = machine_with(0);
	struct ocs_error err = { 0 };

	(void)state;
	assert_null(ocs_nccl_graph(machine, two_ports, 2, &ring, 1, true, &err));
	assert_non_null(strstr(err.text, "no GPU"));
	ocs_nccl_machine_close(machine);
}

/* What NCCL does with one GPU: in and out by the first port. */
static void test_graph_of_one_gpu(void **state)
{
	const struct ocs_nccl_port *ports = two_ports;
	const struct ocs_nccl_channel ring = { 1, 0 };
	struct ocs_nccl_machine *machine = machine_with(1);
	struct ocs_error err = { 0 };
	char *text;

	(void)state;
	assert_null(ocs_nccl_graph(machine, ports, 2, &ring, 1, false, &err));
	assert_non_null(strstr(err.text, "one GPU"));
	text = ocs_nccl_graph(machine, ports, 2, &ring, 1, true, &err);
	if (!text)
		fail_msg("%s", err.text);
	spotless("one GPU", text);
	assert_non_null(strstr(text, "crossnic=\"0\""));
	assert_int_equal(count(text, "<net dev=\"1\"/>"), 2);
	free(text);
	ocs_nccl_machine_close(machine);
}

/* A ring of three over duplex circuits, two of them between servers a and b. */
static void test_circuits(void **state)
{
	static const char text[] =
		"{\"servers\":3,\"degree\":4,\"directed\":false,\"nodes\":[\"a\",\"b\",\"c\"],"
		"\"groups\":[{\"members\":[0,1,2],\"rings\":[[0,1,2],[0,2,1]],\"steps\":[1,2]}],"
		"\"circuits\":[{\"a\":[0,0],\"b\":[1,0],\"ocs\":0,\"group\":0},"
		"{\"a\":[1,1],\"b\":[2,1],\"ocs\":1,\"group\":0},"
		"{\"a\":[2,2],\"b\":[0,2],\"ocs\":2,\"group\":0},"
		"{\"a\":[0,3],\"b\":[1,3],\"ocs\":3,\"group\":0}]}";
	static const char *const bad[] = {
		"{}",
		"[]",
		"{\"nodes\":[\"a\"],\"circuits\":{}}",
		"{\"nodes\":[\"b\"],\"circuits\":[]}",
		"{\"nodes\":[\"a\"],\"circuits\":[1]}",
		"{\"nodes\":[\"a\"],\"circuits\":[{\"a\":[0,0],\"b\":[1,0]}]}",
		"{\"nodes\":[\"a\"],\"circuits\":[{\"a\":[0,-1],\"b\":[0,0]}]}",
	};
	struct ocs_nccl_circuits circuits;
	struct ocs_error err = { 0 };
	struct json_object *plan = json_tokener_parse(text);

	(void)state;
	assert_int_equal(ocs_nccl_circuits_read(plan, "a", &circuits, &err), 0);
	assert_int_equal(circuits.count, 3);
	assert_int_equal(circuits.list[1].interface, 2);
	assert_string_equal(circuits.list[1].peer, "c");
	/* c and a have one circuit, so there is one channel: in from c, out to b */
	assert_int_equal(circuits.npassages, 1);
	assert_int_equal(circuits.passages[0].in, 2);
	assert_int_equal(circuits.passages[0].out, 0);
	ocs_nccl_circuits_free(&circuits);
	assert_int_equal(ocs_nccl_circuits_read(plan, "b", &circuits, &err), 0);
	assert_int_equal(circuits.passages[0].in, 0);
	assert_int_equal(circuits.passages[0].out, 1);
	ocs_nccl_circuits_free(&circuits);
	/* a group of its own does not hide the one that holds all */
	json_object_array_put_idx(json_object_object_get(plan, "groups"), 1,
				  json_object_get(json_object_array_get_idx(
					  json_object_object_get(plan, "groups"), 0)));
	json_object_array_put_idx(
		json_object_object_get(plan, "groups"), 0,
		json_tokener_parse("{\"members\":[0,1],\"rings\":[[0,1]],\"steps\":[1]}"));
	for (int i = 0; i < 4; i++)
		json_object_object_add(
			json_object_array_get_idx(json_object_object_get(plan, "circuits"), i),
			"group", json_object_new_int(1));
	assert_int_equal(ocs_nccl_circuits_read(plan, "a", &circuits, &err), 0);
	assert_int_equal(circuits.npassages, 1);
	assert_int_equal(circuits.passages[0].in, 2);
	ocs_nccl_circuits_free(&circuits);
	assert_int_equal(ocs_nccl_circuits_read(plan, "d", &circuits, &err), -1);
	ocs_nccl_circuits_free(&circuits);
	json_object_put(plan);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		plan = json_tokener_parse(bad[i]);
		assert_int_equal(ocs_nccl_circuits_read(plan, "a", &circuits, &err), -1);
		ocs_nccl_circuits_free(&circuits);
		json_object_put(plan);
	}
	assert_int_equal(ocs_nccl_circuits_read(NULL, "a", &circuits, &err), -1);
}

/* Whatever circuits exist together: both ends in one subnet, no two in the same. */
static void test_subnets(void **state)
{
	enum { SERVERS = 6, DEGREE = 3, ENDS = SERVERS * DEGREE };
	unsigned int seed = 7;

	(void)state;
	for (int round = 0; round < 200; round++) {
		bool seen[ENDS] = { false };
		int order[ENDS];

		for (int i = 0; i < ENDS; i++)
			order[i] = i;
		for (int i = ENDS - 1; i > 0; i--) {
			int j = (int)((seed = seed * 1103515245 + 12345) >> 8) % (i + 1),
			    swap = order[i];

			j = j < 0 ? -j : j;
			order[i] = order[j];
			order[j] = swap;
		}
		for (int i = 0; i < ENDS; i += 2) {
			struct ocs_nccl_end a = { order[i] / DEGREE, order[i] % DEGREE };
			struct ocs_nccl_end b = { order[i + 1] / DEGREE, order[i + 1] % DEGREE };
			uint32_t x = ocs_nccl_subnet_address(0x0a800000, DEGREE, a, b);
			uint32_t y = ocs_nccl_subnet_address(0x0a800000, DEGREE, b, a);

			assert_int_equal(x ^ y, 1);
			assert_in_range(x, 0x0a800000, 0x0a800000 + 2 * ENDS - 1);
			assert_false(seen[(x - 0x0a800000) / 2]);
			seen[(x - 0x0a800000) / 2] = true;
		}
	}
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
	char *path = server(), *text = ocs_file_read(path, 1 << 20, NULL, NULL), *at, *copy;
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

static bool has(char **env, int count, const char *entry)
{
	for (int i = 0; i < count; i++)
		if (strcmp(env[i], entry) == 0)
			return true;
	return false;
}

static void test_environment(void **state)
{
	const struct ocs_nccl_port ports[] = { { "mlx5_0", 1, true, 0 }, { "mlx5_1", 0, true, 0 } };
	const struct ocs_nccl_port sockets[] = { { "ens3", 0, false, 0 }, { "ens4", 0, false, 0 } };
	struct ocs_nccl_setting setting = {
		.topology_file = "/run/ocs/7/topo.xml",
		.graph_file = "/run/ocs/7/graph.xml",
		.ports = ports,
		.nports = 2,
		.management = "eth0",
		.rails = true,
		.subnets = "10.128.0.0/16",
	};
	char **env;
	int n = ocs_nccl_environment(&setting, &env);

	(void)state;
	assert_int_equal(n, 12);
	assert_true(has(env, n, "NCCL_ALGO=Ring"));
	assert_true(has(env, n, "NCCL_CROSS_NIC=0"));
	assert_true(has(env, n, "NCCL_IB_HCA==mlx5_0:1,mlx5_1"));
	assert_true(has(env, n, "NCCL_SOCKET_IFNAME==eth0"));
	assert_true(has(env, n, "NCCL_TOPO_FILE=/run/ocs/7/topo.xml"));
	assert_true(has(env, n, "NCCL_GRAPH_FILE=/run/ocs/7/graph.xml"));
	assert_true(has(env, n, "NCCL_IB_SUBNET_AWARE_ROUTING=1"));
	assert_true(has(env, n, "NCCL_IB_SUBNET_PREFIX_LEN=31"));
	assert_true(has(env, n, "NCCL_IB_ADDR_RANGE=10.128.0.0/16"));
	for (int i = 1; i < n; i++)
		assert_true(strcmp(env[i - 1], env[i]) < 0);
	ocs_names_free(env, n);
	/* without RDMA the sockets carry the data, and subnets steer nothing */
	setting.ports = sockets;
	n = ocs_nccl_environment(&setting, &env);
	assert_int_equal(n, 8);
	assert_true(has(env, n, "NCCL_SOCKET_IFNAME==ens3,ens4"));
	ocs_names_free(env, n);
	memset(&setting, 0, sizeof(setting));
	n = ocs_nccl_environment(&setting, &env);
	assert_int_equal(n, 4);
	ocs_names_free(env, n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_this_machine),
		cmocka_unit_test(test_descriptions),
		cmocka_unit_test(test_switches),
		cmocka_unit_test(test_nets),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_environment),
		cmocka_unit_test(test_lacking),
		cmocka_unit_test(test_every_machine),
		cmocka_unit_test(test_graph),
		cmocka_unit_test(test_circuits),
		cmocka_unit_test(test_graph_without_gpu),
		cmocka_unit_test(test_graph_of_one_gpu),
		cmocka_unit_test(test_subnets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
