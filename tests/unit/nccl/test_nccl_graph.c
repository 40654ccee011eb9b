/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <json-c/json.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/nccl/circuits.h"
#include "src/nccl/graph.h"
#include "src/nccl/subnet.h"
#include "src/nccl/topology.h"
#include "src/util/error.h"
#include "src/util/hostlist.h"
#include "src/util/text.h"
#include "tests/unit/nccl/nccl_rig.h"

static struct ocs_nccl_graph_needs needs;

static void test_graph(void **state)
{
	const struct ocs_nccl_port ports[] = { { "mlx5_3", 1, true, 400000 },
					       { "mlx5_0", 1, true, 200000 },
					       { "ens4", 0, false, 0 } };
	const struct ocs_nccl_channel ring[] = { { .in = 0, .out = 1 }, { .in = 1, .out = 0 } };
	const struct ocs_nccl_channel same = { .in = 1, .out = 1 }, fast = { 0 };
	const struct ocs_nccl_port two[] = { { "mlx5_0", 1, true, 0 }, { "mlx5_0", 2, true, 0 } };
	char *path = nccl_server(), *text, *channel;
	struct ocs_error err = { 0 };
	struct ocs_nccl_machine *machine = ocs_nccl_machine_open(path, &err);

	(void)state;
	assert_non_null(machine);
	text = ocs_nccl_graph(machine, ports, 2, ring, 2, false, &needs, &err);
	if (!text)
		fail_msg("%s", err.text);
	nccl_spotless("graph", text);
	/* NCCL counts mlx5_0 before mlx5_3; the slower port is the speed of all */
	assert_non_null(strstr(text, "crossnic=\"0\" nchannels=\"2\" speedintra=\"25\" "
				     "speedinter=\"25\""));
	channel = strstr(text, "<channel>");
	/* in by mlx5_3 beside GPUs 6 and 7, out by mlx5_0 beside 0 and 1 */
	assert_int_equal(
		strncmp(channel, "<channel>\n      <net dev=\"1\"/>\n      <gpu dev=\"6\"/>", 45),
		0);
	assert_non_null(
		strstr(channel, "<gpu dev=\"0\"/>\n      <net dev=\"0\"/>\n    </channel>"));
	assert_int_equal(nccl_count(text, "<gpu "), 16);
	assert_non_null(strstr(text, "typeinter=\"PIX\""));
	free(text);
	text = ocs_nccl_graph(machine, ports, 2, &same, 1, false, &needs, &err);
	assert_non_null(strstr(text, "crossnic=\"0\" nchannels=\"1\""));
	free(text);
	/* a faster port has two channels, which start at different GPUs */
	text = ocs_nccl_graph(machine, ports, 1, &fast, 1, false, &needs, &err);
	nccl_spotless("fast", text);
	assert_non_null(strstr(text, "nchannels=\"2\" speedintra=\"25\""));
	assert_int_equal(nccl_count(text, "<net dev=\"0\"/>\n      <gpu dev=\"6\"/>"), 1);
	assert_int_equal(nccl_count(text, "<net dev=\"0\"/>\n      <gpu dev=\"7\"/>"), 1);
	free(text);
	assert_null(ocs_nccl_graph(machine, ports, 3, ring, 2, false, &needs, &err));
	assert_non_null(strstr(err.text, "ens4"));
	assert_null(ocs_nccl_graph(machine, two, 2, ring, 2, false, &needs, &err));
	assert_non_null(strstr(err.text, "one PCI device"));
	assert_null(ocs_nccl_graph(machine, ports, 2, ring, 0, false, &needs, &err));
	ocs_nccl_machine_close(machine);
	free(path);
}

/* The server with its first GPUS GPUs alone. */
static struct ocs_nccl_machine *machine_with(int gpus)
{
	char *path = nccl_server(), *text = ocs_file_read(path, 1 << 20, NULL, NULL), *at = text;
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
	const struct ocs_nccl_channel ring = { 0 };
	struct ocs_nccl_machine *machine = machine_with(0);
	struct ocs_error err = { 0 };

	(void)state;
	assert_null(ocs_nccl_graph(machine, two_ports, 2, &ring, 1, true, &needs, &err));
	assert_non_null(strstr(err.text, "no GPU"));
	ocs_nccl_machine_close(machine);
}

/* What NCCL does with one GPU: in and out by the first port. */
static void test_graph_of_one_gpu(void **state)
{
	const struct ocs_nccl_port *ports = two_ports;
	const struct ocs_nccl_channel ring = { .in = 1, .out = 0 };
	struct ocs_nccl_machine *machine = machine_with(1);
	struct ocs_error err = { 0 };
	char *text;

	(void)state;
	assert_null(ocs_nccl_graph(machine, ports, 2, &ring, 1, false, &needs, &err));
	assert_non_null(strstr(err.text, "one GPU"));
	text = ocs_nccl_graph(machine, ports, 2, &ring, 1, true, &needs, &err);
	if (!text)
		fail_msg("%s", err.text);
	nccl_spotless("one GPU", text);
	assert_non_null(strstr(text, "crossnic=\"0\""));
	assert_int_equal(nccl_count(text, "<net dev=\"1\"/>"), 2);
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
	assert_int_equal(n, 14);
	assert_true(has(env, n, "NCCL_ALGO=Ring"));
	assert_true(has(env, n, "NCCL_CROSS_NIC=0"));
	assert_true(has(env, n, "NCCL_IB_MERGE_NICS=0"));
	assert_true(has(env, n, "NCCL_NET_DISABLE_INTRA=1"));
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
	assert_int_equal(n, 10);
	assert_true(has(env, n, "NCCL_SOCKET_IFNAME==ens3,ens4"));
	ocs_names_free(env, n);
	memset(&setting, 0, sizeof(setting));
	n = ocs_nccl_environment(&setting, &env);
	assert_int_equal(n, 6);
	ocs_names_free(env, n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_graph),
		cmocka_unit_test(test_circuits),
		cmocka_unit_test(test_graph_without_gpu),
		cmocka_unit_test(test_graph_of_one_gpu),
		cmocka_unit_test(test_subnets),
		cmocka_unit_test(test_environment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
