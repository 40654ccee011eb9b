/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The installed program on the nodes of jobs in direct sections. */

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/nccl/check.h"
#include "src/util/net.h"
#include "src/util/text.h"
#include "tests/unit/node/node_rig.h"

#define DIRECT TEST_SOURCE_DIR "/examples/ocs-direct.yaml"
#define UNWIRED "direct servers:12 degree:4" /* on no switch */
#define SERVER TEST_SOURCE_DIR "/tests/data/server-8gpu-4nic.xml"
#define PLAN                                                                                                \
	"{\"servers\":2,\"degree\":4,\"directed\":false,\"groups\":[{\"members\":[0,1],"                    \
	"\"rings\":[[0,1],[0,1]],\"steps\":[1,1]}],\"circuits\":["                                          \
	"{\"a\":[0,0],\"b\":[1,0],\"ocs\":0,\"group\":0},{\"a\":[0,2],\"b\":[1,2],\"ocs\":2,\"group\":0}]," \
	"\"nodes\":[\"d2\",\"d1\"]}"

/* Prepares job 7 on d2; no REPLY of ocsd and no SHAPE where they are NULL. */
static int prepare(const char *fabric, const char *nodes, const char *reply, const char *shape)
{
	return node_run("prepare", "--fabric", fabric, "--dir", node_dir, "--job", "7", "--epoch",
			"1", "--node", "d2", "--nodes", nodes, reply ? "--reply" : NULL, reply,
			shape ? "--shape" : NULL, shape, NULL);
}

static void test_direct(void **state)
{
	char *reply = ocs_asprintf("%s/reply.json", node_base), *text;

	(void)state;
	node_put(reply, "{\"id\":1,\"ok\":true,\"circuits\":4,\"plan\":" PLAN "}");
	if (prepare(DIRECT, "d[2,1]", reply, "2") != 0)
		fail_msg("%s", node_output);
	text = node_file("plan.json");
	assert_string_equal(text, PLAN "\n");
	free(text);
	text = node_file("hostfile");
	assert_string_equal(text, "d2\nd1\n");
	free(text);
	text = node_file("env");
	node_has_line(text, "SLURM_OCS_SHAPE=2");
	assert_null(strstr(text, "SLURM_OCS_CUBES"));
	assert_null(strstr(text, "NCCL_CROSS_NIC"));
	free(text);
	assert_null(node_file("placement.json"));

	/* no shape asked for: nodes in order, no SLURM_OCS_SHAPE */
	assert_int_equal(prepare(DIRECT, "d[1-2]", reply, NULL), 0);
	text = node_file("env");
	assert_null(strstr(text, "SLURM_OCS_SHAPE"));
	free(text);
	assert_null(node_file("ranks"));
	/* a server alone has no circuits */
	assert_int_equal(prepare(DIRECT, "d2", NULL, NULL), 0);
	assert_null(node_file("plan.json"));

	assert_int_equal(prepare(DIRECT, "d[1-2]", NULL, NULL), 2);
	assert_int_equal(prepare(DIRECT, "d[1-2]", reply, "3"), 2);
	assert_int_equal(prepare(DIRECT, "d[0-1]", reply, NULL), 2);
	assert_int_equal(prepare(DIRECT, "d[0-1", reply, NULL), 2);
	/* ocsd sends no routes: they are made here */
	node_put(
		reply,
		"{\"id\":1,\"ok\":true,\"plan\":{\"servers\":2,\"degree\":1,\"directed\":false,"
		"\"groups\":[{\"members\":[0,1],\"bytes\":0,\"rings\":[[0,1]],\"steps\":[1]}],"
		"\"circuits\":[{\"a\":[0,0],\"b\":[1,0],\"ocs\":0,\"group\":0}],"
		"\"nodes\":[\"d1\",\"d2\"],\"diameter\":1,\"average_hops\":1.0,\"max_link_load\":1.0}}");
	if (prepare(DIRECT, "d[1-2]", reply, NULL) != 0)
		fail_msg("%s", node_output);
	text = node_file("plan.json");
	assert_non_null(strstr(text, "\"routes\":[{\"src\":0,\"dst\":1,\"paths\":[[0,1]]"));
	assert_non_null(strstr(text, "{\"src\":1,\"dst\":0,\"paths\":[[1,0]]"));
	free(text);
	/* a plan that is none of this node's */
	node_put(reply, "{\"id\":1,\"ok\":true,\"plan\":{\"nodes\":[\"d1\"],\"circuits\":[]}}");
	assert_int_equal(prepare(DIRECT, "d[1-2]", reply, NULL), 2);
	assert_non_null(strstr(node_output, "no node d2"));
	node_put(reply, "{\"id\":1,\"ok\":true}");
	assert_int_equal(prepare(DIRECT, "d[1-2]", reply, NULL), 1);
	assert_non_null(strstr(node_output, "no plan"));
	node_put(reply, "not json");
	assert_int_equal(prepare(DIRECT, "d[1-2]", reply, NULL), 1);
	unlink(reply);
	assert_int_equal(prepare(DIRECT, "d[1-2]", reply, NULL), 1);
	/* nothing to plan where nothing is wired */
	assert_int_equal(node_run("prepare", "--fabric", UNWIRED, "--dir", node_dir, "--job", "7",
				  "--epoch", "1", "--node", "n2", "--nodes", "n[1-2]", NULL),
			 0);
	assert_int_equal(node_run("remove", "--dir", node_dir, NULL), 0);
	free(reply);
}

/* ocs.yaml of the example with more in its section and for NCCL; the caller frees
 * the path. */
static char *example_with(const char *section, const char *nccl)
{
	char *text = ocs_file_read(DIRECT, 1 << 20, NULL, NULL), *at, *changed;
	char *conf = ocs_asprintf("%s/ocs.yaml", node_base);

	at = strstr(text, "    ports:\n");
	assert_non_null(at);
	changed = ocs_asprintf("%.*s%s%s\nnccl:\n  hwloc_xml: %s\n%s", (int)(at - text), text,
			       section, at, SERVER, nccl);
	node_put(conf, changed);
	free(changed);
	free(text);
	return conf;
}

/* Only the ports that hold circuits of the job, everywhere. */
static void test_ports(void **state)
{
	char *reply = ocs_asprintf("%s/reply.json", node_base), *text, *conf = example_with("", "");
	struct ocs_nccl_report report;

	(void)state;
	node_put(reply, "{\"id\":1,\"ok\":true,\"plan\":" PLAN "}");
	if (prepare(conf, "d[2,1]", reply, NULL) != 0 || *node_output)
		fail_msg("%s", node_output);
	text = node_file("env");
	node_has_line(text, "NCCL_IB_HCA==mlx5_0:1,mlx5_2:1");
	node_absent(text, "NCCL_SOCKET_IFNAME");
	assert_non_null(strstr(text, "NCCL_GRAPH_FILE="));
	node_has_line(text, "SLURM_OCS_GRAPH_GPUS=8");
	node_absent(text, "SLURM_OCS_GRAPH_NCCL");
	node_absent(text, "SUBNET");
	free(text);
	text = node_file("topo.xml");
	assert_int_equal(ocs_nccl_check_text(text, NULL), 0);
	assert_non_null(strstr(text, "<net name=\"mlx5_0\""));
	assert_non_null(strstr(text, "<net name=\"mlx5_2\""));
	node_absent(text, "mlx5_1");
	node_absent(text, "mlx5_3");
	free(text);
	/* always there, for those who want it */
	text = node_file("graph.xml");
	assert_int_equal(ocs_nccl_check(text, strlen(text), &report), 0);
	assert_int_equal(report.kind, OCS_NCCL_GRAPH);
	ocs_nccl_report_free(&report);
	assert_non_null(strstr(text, "nchannels=\"4\""));
	free(text);
	/* for the job alone: the log has nothing, see above */
	text = node_file("warnings");
	assert_ptr_equal(strstr(text, "note: NCCL_GRAPH_FILE is set: a communicator with part of a "
				      "node's 8 GPUs"),
			 text);
	assert_ptr_equal(strchr(text, '\n'), strrchr(text, '\n'));
	free(text);
	assert_null(node_file("subnets"));
	/* a server alone uses no port */
	if (node_run("prepare", "--fabric", conf, "--dir", node_dir, "--job", "7", "--epoch", "2",
		     "--node", "d2", "--nodes", "d2", NULL) != 0)
		fail_msg("%s", node_output);
	text = node_file("env");
	node_absent(text, "NCCL_IB_HCA");
	free(text);
	assert_null(node_file("graph.xml"));
	assert_int_equal(node_run("remove", "--dir", node_dir, NULL), 0);
	free(conf);

	conf = example_with("", "  management: eth0\n  graph_file: true\n");
	assert_int_equal(prepare(conf, "d[2,1]", reply, NULL), 0);
	text = node_file("env");
	node_has_line(text, "NCCL_SOCKET_IFNAME==eth0");
	assert_non_null(strstr(text, "NCCL_GRAPH_FILE="));
	node_absent(text, "SLURM_OCS_GRAPH");
	free(text);
	assert_int_equal(node_run("remove", "--dir", node_dir, NULL), 0);
	free(conf);

	conf = example_with("", "  graph_file: false\n");
	assert_int_equal(prepare(conf, "d[2,1]", reply, NULL), 0);
	text = node_file("env");
	node_absent(text, "NCCL_GRAPH_FILE");
	node_absent(text, "SLURM_OCS_GRAPH");
	free(text);
	assert_int_equal(node_run("remove", "--dir", node_dir, NULL), 0);
	unlink(conf);
	unlink(reply);
	free(conf);
	free(reply);
}

/* What is wrong with the machine reaches the job. */
static void test_warnings(void **state)
{
	char *reply = ocs_asprintf("%s/reply.json", node_base), *text, *conf, *change, *at;
	char *xml = ocs_asprintf("%s/machine.xml", node_base);

	(void)state;
	node_put(reply, "{\"id\":1,\"ok\":true,\"plan\":" PLAN "}");
	/* ports that the description lacks */
	text = ocs_file_read(SERVER, 1 << 20, NULL, NULL);
	while ((at = strstr(text, "mlx5_")))
		memcpy(at, "qedr_", 5);
	node_put(xml, text);
	free(text);
	conf = example_with("", "  graph_file: true\n");
	text = ocs_file_read(conf, 1 << 20, NULL, NULL);
	at = strstr(text, SERVER);
	change = ocs_asprintf("%.*s%s%s", (int)(at - text), text, xml, at + strlen(SERVER));
	node_put(conf, change);
	free(change);
	free(text);
	if (prepare(conf, "d[2,1]", reply, NULL) != 0)
		fail_msg("%s", node_output);
	text = node_file("warnings");
	assert_non_null(
		strstr(text, "leaves NIC ports to NCCL: the machine has no NIC port mlx5_0"));
	assert_non_null(strstr(text, "\nno NCCL graph file: "));
	assert_non_null(strstr(node_output, "mlx5_0"));
	free(text);
	text = node_file("topo.xml");
	assert_int_equal(ocs_nccl_check_text(text, NULL), 0);
	node_absent(text, "<net");
	free(text);
	text = node_file("env");
	node_has_line(text, "NCCL_IB_HCA==mlx5_0:1,mlx5_2:1");
	node_absent(text, "NCCL_GRAPH_FILE");
	free(text);
	/* no GPU */
	text = ocs_file_read(SERVER, 1 << 20, NULL, NULL);
	while ((at = strstr(text, "10de:2330")))
		memcpy(at, "1af4", 4);
	node_put(xml, text);
	free(text);
	assert_int_equal(prepare(conf, "d[2,1]", reply, NULL), 0);
	text = node_file("warnings");
	assert_non_null(
		strstr(text, "no NCCL topology file: the machine description shows no GPU"));
	free(text);
	assert_null(node_file("topo.xml"));
	text = node_file("env");
	node_absent(text, "NCCL_TOPO_FILE");
	node_has_line(text, "NCCL_ALGO=Ring");
	free(text);
	assert_int_equal(node_run("remove", "--dir", node_dir, NULL), 0);
	unlink(xml);
	unlink(conf);
	unlink(reply);
	free(xml);
	free(conf);
	free(reply);
}

static bool addressed(const char *address)
{
	char *command = ocs_asprintf("ip -o -4 address | grep -qF ' %s '", address);
	int status = system(command);

	free(command);
	return status == 0;
}

/* One subnet a circuit, in a network of our own. */
static void test_subnets(void **state)
{
	char *reply = ocs_asprintf("%s/reply.json", node_base), *text, *conf, *log;

	(void)state;
	conf = example_with("    subnets: 10.128.0.0/16\n", "");
	node_put(reply, "{\"id\":1,\"ok\":true,\"plan\":" PLAN "}");
	if (geteuid() != 0 || unshare(CLONE_NEWNET) < 0 || system("ip link set lo up") != 0) {
		unlink(conf);
		unlink(reply);
		free(conf);
		free(reply);
		skip();
	}
	/* one interface is missing: nothing is set, and one line says so */
	assert_int_equal(system("ip link add ens3 type veth peer name p3"), 0);
	assert_int_equal(prepare(conf, "d[2,1]", reply, NULL), 1);
	assert_non_null(strstr(node_output, "there is no interface ens5"));
	assert_false(addressed("10.128.0.9/31"));
	assert_int_equal(
		system("ip link add ens5 type veth peer name p5 && ip address add 10.1.0.1/24 dev ens5"
		       " && ip address add 10.128.7.0/31 dev ens5"),
		0);
	if (prepare(conf, "d[2,1]", reply, NULL) != 0)
		fail_msg("%s", node_output);
	/* d2 is server 2, d1 server 1: interface 0 of d1 is number 4, subnet 8 */
	text = node_file("subnets");
	assert_string_equal(text, "ens3 10.128.0.9/31\nens5 10.128.0.13/31\n");
	free(text);
	text = node_file("env");
	node_has_line(text, "NCCL_IB_SUBNET_AWARE_ROUTING=1");
	node_has_line(text, "NCCL_IB_SUBNET_PREFIX_LEN=31");
	node_has_line(text, "NCCL_IB_ADDR_RANGE=10.128.0.0/16");
	free(text);
	assert_true(addressed("10.128.0.9/31"));
	assert_true(addressed("10.128.0.13/31"));
	/* what another job left is gone, what is not ours is not */
	assert_false(addressed("10.128.7.0/31"));
	assert_true(addressed("10.1.0.1/24"));
	/* another circuit instead of one: the address of the other is not touched */
	text = ocs_asprintf("{\"id\":1,\"ok\":true,\"plan\":" PLAN "}");
	for (char *at = text; (at = strstr(at, "[0,2]")) || (at = strstr(text, "[1,2]"));)
		at[3] = '3';
	node_put(reply, text);
	free(text);
	log = ocs_asprintf("%s/monitor", node_base);
	text = ocs_asprintf("ip link add ens6 type veth peer name p6; ip -o monitor address >%s & "
			    "echo $! >%s.pid; "
			    "for i in $(seq 200); do "
			    "ip address add 10.9.9.9/32 dev lo; ip address del 10.9.9.9/32 dev lo; "
			    "grep -q 10.9.9.9 %s && break; sleep 0.1; done",
			    log, log, log);
	assert_int_equal(system(text), 0);
	free(text);
	assert_int_equal(prepare(conf, "d[2,1]", reply, NULL), 0);
	assert_true(addressed("10.128.0.9/31"));
	assert_false(addressed("10.128.0.13/31"));
	assert_true(addressed("10.128.0.15/31"));
	text = ocs_asprintf(
		"for i in $(seq 100); do grep -q 10.128.0.15 %s && break; sleep 0.1; done; "
		"kill $(cat %s.pid); grep -q 10.128.0.15 %s && ! grep -qF 10.128.0.9/ %s",
		log, log, log, log);
	assert_int_equal(system(text), 0);
	free(text);
	unlink(log);
	text = ocs_asprintf("%s.pid", log);
	unlink(text);
	free(text);
	free(log);
	assert_int_equal(node_run("remove", "--dir", node_dir, NULL), 0);
	assert_false(addressed("10.128.0.15/31"));
	assert_false(addressed("10.128.0.9/31"));
	assert_false(addressed("10.128.0.13/31"));
	assert_true(addressed("10.1.0.1/24"));
	assert_int_equal(node_run("remove", "--dir", node_dir, NULL), 0);
	unlink(conf);
	unlink(reply);
	free(conf);
	free(reply);
}

/* On rails those count with which the job begins: none within a node, both in a ring. */
static void test_rails_links(void **state)
{
	static const char text[] =
		"version: 1\nswitches:\n- {name: s0, driver: tl1, dialect: polatis, address:"
		" '127.0.0.1:2000', credentials: /c, size: 16}\nfabrics:\n- {name: r, kind: rails,"
		" nodes: 'n[0-3]', rails: 1, ports_per_nic: 2, xpus: 2, ports: {switch: s0, port:"
		" server * 2 + nic_port + 1}, interfaces: [{name: ra}, {name: rb}]}\n";
	char *conf = ocs_asprintf("%s/rails.yaml", node_base);

	(void)state;
	if (geteuid() != 0 || unshare(CLONE_NEWNET) < 0 || system("ip link set lo up") != 0) {
		free(conf);
		skip();
	}
	node_put(conf, text);
	/* port 1 has a link; port 0 is down */
	assert_int_equal(system("for i in a b; do ip link add r$i type veth peer name p$i; done;"
				"ip link set rb up; ip link set pb up;"
				"until ip link show rb | grep -q 'state UP'; do sleep 0.1; done"),
			 0);
#define LINKS(nodes, option, shape)                                                              \
	node_run("links", "--fabric", conf, "--dir", node_dir, "--node", "n0", "--timeout", "0", \
		 "--phases", "on-demand", "--nodes", nodes, option, shape, NULL)
	assert_int_equal(LINKS("n0", "--shape", "pp:1,tp:2"), 0);
	assert_int_equal(LINKS("n[0-3]", "--shape", "pp:4,tp:2"), 4);
	assert_non_null(strstr(node_output, "interface ra is down"));
	assert_int_equal(LINKS("n0", NULL, NULL), 4);
	assert_int_equal(LINKS("n[0-3]", "--shape", "dp:4,tp:4"), 3);
	/* another node than those of the circuits */
	assert_int_equal(LINKS("n[1-3]", "--shape", "dp:3,tp:2"), 0);
	assert_int_equal(system("ip link set ra up; ip link set pa up;"
				"until ip link show ra | grep -q 'state UP'; do sleep 0.1; done"),
			 0);
	assert_int_equal(LINKS("n[0-3]", "--shape", "dp:4,tp:2"), 0);
#undef LINKS
	unlink(conf);
	free(conf);
}

/* A job's ports have a link before its tasks start; what the machine does not have is not waited for. */
static void test_links(void **state)
{
	char *reply = ocs_asprintf("%s/reply.json", node_base), *conf = example_with("", "");
	int64_t start;

	(void)state;
	node_put(reply, "{\"id\":1,\"ok\":true,\"plan\":" PLAN "}");
	if (geteuid() != 0 || unshare(CLONE_NEWNET) < 0 || system("ip link set lo up") != 0) {
		unlink(conf);
		unlink(reply);
		free(conf);
		free(reply);
		skip();
	}
	assert_int_equal(prepare(conf, "d[2,1]", reply, NULL), 0);
#define LINKS(seconds)                                                                      \
	node_run("links", "--fabric", conf, "--dir", node_dir, "--node", "d2", "--timeout", \
		 seconds, NULL)
	assert_int_equal(LINKS("0"), 0);
	/* circuits end at ens3 and ens5; ens4 has none, and may be down */
	assert_int_equal(
		system("for i in 3 4 5; do ip link add ens$i type veth peer name p$i; done;"
		       "ip link set ens3 up; ip link set p3 up;"
		       "until ip link show ens3 | grep -q 'state UP'; do sleep 0.1; done"),
		0);
	assert_int_equal(LINKS("0"), 4);
	assert_non_null(strstr(node_output, "interface ens5 is down"));
	assert_int_equal(system("ip link set ens5 up"), 0);
	assert_int_equal(LINKS("1"), 4);
	assert_non_null(strstr(node_output, "interface ens5 has no carrier"));
	start = ocs_now_ns();
	assert_int_equal(system("(sleep 0.4; ip link set p5 up) &"), 0);
	if (LINKS("20") != 0)
		fail_msg("%s", node_output);
	assert_in_range(ocs_now_ns() - start, 350000000, 15000000000);
	assert_int_equal(LINKS("0"), 0);
	assert_int_equal(node_run("links", "--fabric", conf, "--dir", node_dir, NULL), 2);
	assert_int_equal(
		node_run("links", "--fabric", conf, "--dir", node_dir, "--node", "d77", NULL), 2);
#undef LINKS
	assert_int_equal(node_run("remove", "--dir", node_dir, NULL), 0);
	unlink(conf);
	unlink(reply);
	free(conf);
	free(reply);
}

/* What the administrator writes wins over what comes with the program; a machine
 * that NCCL cannot use is no reason to fail. */
static void test_settings(void **state)
{
	char *example = ocs_file_read(DIRECT, 1 << 20, NULL, NULL), *text;
	char *conf = ocs_asprintf("%s/ocs.yaml", node_base),
	     *xml = ocs_asprintf("%s/no.xml", node_base);

	(void)state;
	text = ocs_asprintf("%s\nnccl:\n  hwloc_xml: %s\n  env:\n    NCCL_ALGO: Ring,Tree\n"
			    "    NCCL_DEBUG: INFO\n",
			    example, xml);
	node_put(conf, text);
	free(text);
	if (node_run("prepare", "--fabric", conf, "--dir", node_dir, "--job", "7", "--epoch", "1",
		     "--node", "d2", "--nodes", "d2", "--uid", "0", "--gid", "0", NULL) != 0)
		fail_msg("%s", node_output);
	assert_non_null(strstr(node_output, "no NCCL topology file"));
	assert_non_null(strstr(node_output, "no.xml"));
	/* the next job finds it in its directory; the log has it already, until slurmd starts */
	for (int again = 0; again < 2; again++) {
		assert_int_equal(node_run("prepare", "--fabric", conf, "--dir", node_dir, "--job",
					  "7", "--epoch", "1", "--node", "d2", "--nodes", "d2",
					  "--uid", "0", "--gid", "0", NULL),
				 0);
		assert_int_equal(strstr(node_output, "no NCCL topology file") != NULL, again);
		text = node_file("warnings");
		assert_non_null(strstr(text, "no NCCL topology file"));
		free(text);
		text = ocs_asprintf("%.*s", (int)(strrchr(node_dir, '/') - node_dir), node_dir);
		assert_int_equal(
			node_run("sweep", "--fabric", conf, "--dir", text, "--node", "d2", NULL),
			0);
		free(text);
	}
	assert_null(node_file("topo.xml"));
	text = node_file("env");
	node_has_line(text, "NCCL_ALGO=Ring,Tree");
	node_has_line(text, "NCCL_DEBUG=INFO");
	node_has_line(text, "NCCL_IB_TIMEOUT=22");
	assert_null(strstr(text, "NCCL_ALGO=Ring\n"));
	assert_null(strstr(text, "NCCL_TOPO_FILE"));
	free(text);
	/* a user who cannot get there is worth a line */
	if (geteuid() == 0) {
		assert_int_equal(chmod(node_base, 0700), 0);
		assert_int_equal(node_run("prepare", "--fabric", conf, "--dir", node_dir, "--job",
					  "7", "--epoch", "1", "--node", "d2", "--nodes", "d2",
					  "--uid", "65534", "--gid", "65534", NULL),
				 0);
		assert_non_null(strstr(node_output, "cannot read"));
	}
	assert_int_equal(node_run("remove", "--dir", node_dir, NULL), 0);
	unlink(conf);
	free(xml);
	free(conf);
	free(example);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_direct),	    cmocka_unit_test(test_settings),
		cmocka_unit_test(test_ports),	    cmocka_unit_test(test_warnings),
		cmocka_unit_test(test_subnets),	    cmocka_unit_test(test_links),
		cmocka_unit_test(test_rails_links),
	};

	return cmocka_run_group_tests(tests, node_setup, node_teardown);
}
