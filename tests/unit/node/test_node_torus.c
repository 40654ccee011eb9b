/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* What ocs-node makes of the interfaces of cubes; where the files lead is for tests/nccl. */

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/util/text.h"
#include "tests/unit/node/node_rig.h"

/* Two nodes of four XPUs in a row.  Along y links lead to the other node; the outer XPUs have NICs there. */
#define SERVER TEST_SOURCE_DIR "/tests/data/server-8gpu-4nic.xml"
#define ROW(x, at)                                               \
	"      - {xpu: " #x ", direction: +y, name: y" #at "}\n" \
	"      - {xpu: " #x ", direction: -y, name: w" #at "}\n" \
	"      - {xpu: " #x ", direction: +z, name: z" #at "}\n" \
	"      - {xpu: " #x ", direction: -z, name: v" #at "}\n"
#define YAML                                                                                          \
	"version: 1\n"                                                                                \
	"nccl:\n  hwloc_xml: " SERVER "\n"                                                            \
	"fabrics:\n"                                                                                  \
	"  - name: s\n    kind: static\n    extents: 4x2x1\n    tile: 4x1x1\n"                        \
	"    nodes: n[0-1]\n%s    interfaces:\n"                                                      \
	"      - {direction: +x, name: x0}\n      - {direction: -x, name: x1}\n"                      \
	"      - {xpu: 0, direction: +y, name: ens3, rdma: 'mlx5_0:1'}\n"                             \
	"      - {xpu: 0, direction: -y, name: ens4, rdma: 'mlx5_1:1'}\n"                             \
	"      - {xpu: 0, direction: +z, name: z0}\n      - {xpu: 0, direction: -z, name: v0}\n"      \
	"      - {xpu: 3, direction: +y, name: ens5, rdma: 'mlx5_2:1'}\n"                             \
	"      - {xpu: 3, direction: -y, name: ens6, rdma: 'mlx5_3:1'}\n"                             \
	"      - {xpu: 3, direction: +z, name: z3}\n      - {xpu: 3, direction: -z, name: v3}\n" ROW( \
		1, 1) ROW(2, 2)

static char *conf;

/* Writes the description, with MORE in the fabric. */
static void describe(const char *more)
{
	char *text = ocs_asprintf(YAML, more);

	node_put(conf, text);
	free(text);
}

static int prepare(const char *epoch, const char *placement)
{
	return node_run("prepare", "--fabric", conf, "--dir", node_dir, "--job", "7", "--epoch",
			epoch, "--node", "n0", "--placement", placement, NULL);
}

#define WHOLE "p1:4x2:tt:xr4,yp2:0:0.1,0.1,0.1:0"

static void path_has(const char *name, bool there)
{
	char *path = ocs_asprintf("%s/%s", node_dir, name);

	if ((access(path, F_OK) == 0) != there)
		fail_msg("%s is %s", name, there ? "missing" : "there");
	free(path);
}

/* Names ports only that lead to the other node, and says what has no RDMA device. */
static void test_files(void **state)
{
	char *text;

	(void)state;
	describe("");
	if (prepare("1", WHOLE) != 0)
		fail_msg("%s", node_output);
	text = node_file("env");
	node_has_line(text, "SLURM_OCS_INTERFACES=ens3,ens4,ens5,ens6,y1,w1,y2,w2");
	node_has_line(text, "NCCL_IB_HCA==mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_3:1");
	node_absent(text, "NCCL_IB_SUBNET_AWARE_ROUTING");
	node_absent(text, "NCCL_GRAPH_FILE");
	free(text);
	text = node_file("topo.xml");
	assert_non_null(strstr(text, "<net name=\"mlx5_3\""));
	free(text);
	/* lines along x stay in the node; those of XPUs 0 and 3 along y have NICs, the others none */
	path_has("graph-0-0.xml", false);
	path_has("graph-1-0.xml", true);
	path_has("graph-1-1.xml", false);
	path_has("graph-1-3.xml", true);
	text = node_file("graph-1-3.xml");
	assert_non_null(strstr(text, "<gpu dev=\"3\"/>"));
	node_absent(text, "<gpu dev=\"0\"/>");
	free(text);
	text = node_file("warnings");
	assert_non_null(strstr(text, "along dimension 1: not all links of this node have an RDMA"));
	free(text);
	assert_int_equal(node_run("remove", "--dir", node_dir, NULL), 0);
	assert_int_equal(access(node_dir, F_OK), -1);
}

/* A job after this one in the same directory has its own files only; what is not ours stays. */
static void test_stale(void **state)
{
	char *path = ocs_asprintf("%s/graph-1-77.xml", node_dir);
	char *other = ocs_asprintf("%s/graph-1-x.xml", node_dir);

	(void)state;
	describe("");
	assert_int_equal(prepare("1", WHOLE), 0);
	node_put(path, "old");
	node_put(other, "not ours");
	assert_int_equal(prepare("2", WHOLE), 0);
	path_has("graph-1-77.xml", false);
	path_has("graph-1-0.xml", true);
	assert_int_equal(node_run("remove", "--dir", node_dir, NULL), 1);
	assert_non_null(strstr(node_output, "graph-1-x.xml, which is not ours"));
	path_has("graph-1-0.xml", false);
	unlink(other);
	assert_int_equal(node_run("remove", "--dir", node_dir, NULL), 0);
	free(path);
	free(other);
}

/* Each link has a subnet, and the prolog waits for it. */
static void test_network(void **state)
{
	char *text;

	(void)state;
	if (geteuid() != 0 || unshare(CLONE_NEWNET) < 0 ||
	    system("for i in ens3 ens4 ens5 ens6 y1 w1 y2 w2; do"
		   " ip link add $i type veth peer name p$i && ip link set $i up &&"
		   " ip link set p$i up || exit 1; done") != 0)
		skip();
	describe("    subnets: 10.9.0.0/24\n");
	if (prepare("1", WHOLE) != 0)
		fail_msg("%s", node_output);
	/* XPU 0 is number 0 of the fabric, XPU 3 number 6 (z fastest, then y), links +x -x +y -y: two
	 * addresses each, of which this end has the lower */
	text = node_file("subnets");
	node_has_line(text, "ens3 10.9.0.4/31");
	node_has_line(text, "ens4 10.9.0.6/31");
	node_has_line(text, "ens5 10.9.0.76/31");
	node_absent(text, "x0");
	free(text);
	text = node_file("env");
	node_has_line(text, "NCCL_IB_SUBNET_AWARE_ROUTING=1");
	node_has_line(text, "NCCL_IB_ADDR_RANGE=10.9.0.0/24");
	free(text);
	assert_int_equal(system("ip -4 addr show ens5 | grep -q 10.9.0.76/31"), 0);
#define LINKS                                                                                    \
	node_run("links", "--fabric", conf, "--dir", node_dir, "--node", "n0", "--timeout", "0", \
		 NULL)
	/* the kernel tells of a carrier a while after it is there, or gone */
	assert_int_equal(
		system("for i in ens3 ens4 ens5 ens6 y1 w1 y2 w2; do"
		       " until ip link show $i | grep -q 'state UP'; do sleep 0.1; done; done;"
		       "ip link set pens6 down; ip link set y1 down;"
		       "while ip link show ens6 | grep -q 'state UP'; do sleep 0.1; done"),
		0);
	assert_int_equal(LINKS, 4);
	assert_non_null(strstr(node_output, "interface ens6 has no carrier"));
	assert_int_equal(
		system("ip link set pens6 up; ip link set y1 up;"
		       "for i in ens3 ens6 y1 w2; do"
		       " until ip link show $i | grep -q 'state UP'; do sleep 0.1; done; done"),
		0);
	if (LINKS != 0)
		fail_msg("%s", node_output);
	assert_int_equal(node_run("remove", "--dir", node_dir, NULL), 0);
	assert_int_not_equal(system("ip -4 addr show | grep -q 10.9.0"), 0);
}

static int setup(void **state)
{
	int rc = node_setup(state);

	conf = ocs_asprintf("%s/ocs.yaml", node_base);
	return rc;
}

static int teardown(void **state)
{
	unlink(conf);
	free(conf);
	return node_teardown(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_stale),
		cmocka_unit_test(test_network),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
