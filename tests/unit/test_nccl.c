/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

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
#include "src/nccl/topology.h"
#include "src/util/error.h"
#include "src/util/hostlist.h"
#include "src/util/text.h"

/* The path of a machine description, or NULL where they are not at hand. */
static char *description(const char *name)
{
	const char *source = getenv("OCS_SOURCE_DIR");
	char *path = ocs_asprintf("%s/../shared/data/hwloc/%s", source ? source : TEST_SOURCE_DIR,
				  name);

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

static void test_this_machine(void **state)
{
	struct ocs_error err = { 0 };
	char *text = ocs_nccl_topology(NULL, NULL, 0, 0, &err);

	(void)state;
	/* a virtual machine may lack what NCCL needs: then it must say so */
	if (!text) {
		assert_true(strlen(err.text) > 20);
		return;
	}
	assert_int_equal(ocs_nccl_check_text(text, &err), 0);
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
			return; /* not at hand */
		text = ocs_nccl_topology(path, NULL, 0, 0, &err);
		if (!text)
			fail_msg("%s: %s", machines[i].file, err.text);
		if (ocs_nccl_check_text(text, &err) < 0)
			fail_msg("%s: %s", machines[i].file, err.text);
		assert_int_equal(count(text, "class=\"0x0302"), machines[i].gpus);
		assert_int_equal(count(text, "<cpu "), machines[i].cpus);
		snprintf(arch, sizeof(arch), "arch=\"%s\"", machines[i].arch);
		assert_int_equal(count(text, arch), machines[i].cpus);
		assert_int_equal(count(text, "<pci "), count(text, " device=\"0x"));
		assert_int_equal(count(text, "keep="), 0);
		assert_int_equal(count(text, "<gpu"), 0);
		again = ocs_nccl_topology(path, NULL, 0, 0, &err);
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
		return; /* not at hand */
	text = ocs_nccl_topology(path, NULL, 0, 0, &err);
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
	char *const nets[] = { "mlx5_0", "mlx5_3" }, *const none[] = { "mlx5_9" };
	char *const evil[] = { "x\"/><net name=\"y" };
	char *path = description("coral-lassen.xml"), *text;
	struct ocs_error err = { 0 };

	(void)state;
	if (!path)
		return; /* not at hand */
	text = ocs_nccl_topology(path, nets, 2, 100000, &err);
	if (!text)
		fail_msg("%s", err.text);
	assert_int_equal(count(text, "<net "), 2);
	assert_int_equal(count(text, "<net name=\"mlx5_3\" speed=\"100000\"/>"), 1);
	assert_int_equal(count(text, "class=\"0x0207"), 2);
	free(text);
	assert_null(ocs_nccl_topology(path, none, 1, 1, &err));
	assert_non_null(strstr(err.text, "mlx5_9"));
	assert_null(ocs_nccl_topology(path, evil, 1, 1, &err));
	free(path);
}

static void test_refusals(void **state)
{
	static const char *const machines[] = {
		/* x86 without a processor's vendor; no architecture; one NCCL does not know */
		"<info name=\"Architecture\" value=\"x86_64\"/>", "",
		"<info name=\"Architecture\" value=\"riscv64\"/>",
	};
	struct ocs_error err = { 0 };
	char path[] = "/tmp/test_nccl.XXXXXX";
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	assert_null(ocs_nccl_topology("/nonexistent.xml", NULL, 0, 0, &err));
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
			"gp_index=\"3\"/>\n</object>\n</topology>\n", machines[i]);

		assert_int_equal(ocs_file_write(path, text, strlen(text), 0600, &err), 0);
		free(text);
		memset(&err, 0, sizeof(err));
		assert_null(ocs_nccl_topology(path, NULL, 0, 0, &err));
		if (!strstr(err.text, "NCCL"))
			fail_msg("%s", err.text);
	}
	unlink(path);
}

static void test_environment(void **state)
{
	char *const nets[] = { "mlx5_0", "mlx5_1" };
	char **env;
	int n = ocs_nccl_environment("/run/ocs/7/topo.xml", nets, 2, "eth0", true, &env);

	(void)state;
	assert_int_equal(n, 8);
	assert_string_equal(env[0], "NCCL_ALGO=Ring");
	assert_string_equal(env[1], "NCCL_CROSS_NIC=0");
	assert_string_equal(env[2], "NCCL_IB_HCA==mlx5_0,mlx5_1");
	assert_string_equal(env[6], "NCCL_SOCKET_IFNAME==eth0");
	assert_string_equal(env[7], "NCCL_TOPO_FILE=/run/ocs/7/topo.xml");
	for (int i = 1; i < n; i++)
		assert_true(strcmp(env[i - 1], env[i]) < 0);
	ocs_names_free(env, n);
	n = ocs_nccl_environment(NULL, NULL, 0, NULL, false, &env);
	assert_int_equal(n, 4);
	ocs_names_free(env, n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_this_machine),  cmocka_unit_test(test_descriptions),
		cmocka_unit_test(test_switches),      cmocka_unit_test(test_nets),
		cmocka_unit_test(test_refusals),      cmocka_unit_test(test_environment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
