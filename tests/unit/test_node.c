/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The installed program as the prolog and the epilog run it. */

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <json-c/json.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/fabric/occupancy.h"
#include "src/nccl/check.h"
#include "src/nccl/topology.h"
#include "src/place/place.h"
#include "src/place/ranks.h"
#include "src/util/error.h"
#include "src/util/text.h"

#define TORUS "torus cubes:2x1x1 cube:4x4x4 tile:2x2x1"
#define DIRECT TEST_SOURCE_DIR "/examples/ocs-direct.yaml"
#define UNWIRED "direct servers:12 degree:4"	/* on no switch */
#define ARGUMENTS_MAX 40

static char base[] = "/tmp/test_node.XXXXXX";
static char *dir;
static char output[4096];	/* stderr of the last run */

/* Runs ocs-node with the arguments up to NULL; returns its exit status. */
static int run(const char *command, ...)
{
	const char *build = getenv("OCS_BUILD_DIR");
	char *program = ocs_asprintf("%s/src/node/ocs-node", build ? build : TEST_BUILD_DIR);
	char *argv[ARGUMENTS_MAX] = { program, (char *)command };
	int n = 2, status, pipes[2];
	size_t used = 0;
	ssize_t got;
	va_list list;
	pid_t child;

	va_start(list, command);
	while (n < ARGUMENTS_MAX - 1 && (argv[n] = va_arg(list, char *)))
		n++;
	va_end(list);
	assert_int_equal(pipe(pipes), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		dup2(pipes[1], STDERR_FILENO);
		dup2(pipes[1], STDOUT_FILENO);
		close(pipes[0]);
		close(pipes[1]);
		umask(077);
		execv(program, argv);
		_exit(127);
	}
	close(pipes[1]);
	while ((got = read(pipes[0], output + used, sizeof(output) - 1 - used)) > 0)
		used += (size_t)got;
	output[used] = '\0';
	close(pipes[0]);
	waitpid(child, &status, 0);
	free(program);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* A file of the job's directory, or NULL. */
static char *get(const char *name)
{
	char *path = ocs_asprintf("%s/%s", dir, name);
	char *text = ocs_file_read(path, 1 << 20, NULL, NULL);

	free(path);
	return text;
}

static void has_line(const char *text, const char *line)
{
	const char *at = strstr(text, line);

	if (!at || (at != text && at[-1] != '\n') || at[strlen(line)] != '\n')
		fail_msg("no line '%s' in:\n%s", line, text);
}

static void put(const char *path, const char *text)
{
	struct ocs_error err = { 0 };

	if (ocs_file_write(path, text, strlen(text), 0600, &err) < 0)
		fail_msg("%s", err.text);
}

/* A compact placement on the empty torus. */
static char *place(const char *text)
{
	struct ocs_error err = { 0 };
	struct ocs_fabric *fabric = ocs_fabric_open(TORUS, &err);
	const struct ocs_section *section = ocs_fabric_section(fabric, NULL);
	struct ocs_occupancy *occupancy = ocs_occupancy_create(section);
	struct ocs_placer *placer = ocs_placer_create(fabric, section);
	struct ocs_placement *placement;
	struct ocs_shape shape;
	char *compact;

	assert_int_equal(ocs_shape_parse(text, NULL, &shape, &err), 0);
	placement = ocs_place(placer, occupancy, &shape, 0, &err);
	if (!placement)
		fail_msg("%s: %s", text, err.text);
	compact = ocs_strdup(placement->compact);
	ocs_placement_destroy(placement);
	ocs_placer_destroy(placer);
	ocs_occupancy_destroy(occupancy);
	ocs_fabric_destroy(fabric);
	return compact;
}

static int setup(void **state)
{
	(void)state;
	if (!mkdtemp(base))
		return -1;
	dir = ocs_asprintf("%s/run/ocs/7", base);
	return 0;
}

static int teardown(void **state)
{
	static const char *const folders[] = { "run/ocs", "run", "" };

	(void)state;
	run("remove", "--dir", dir, NULL);
	for (size_t i = 0; i < 3; i++) {
		char *path = ocs_asprintf("%s/%s", base, folders[i]);

		rmdir(path);
		free(path);
	}
	free(dir);
	return 0;
}

static void test_torus(void **state)
{
	char *compact = place("4x8x2"), *text, *expected;
	struct ocs_ranks *ranks;
	struct ocs_error err = { 0 };
	struct json_object *json;
	struct stat info;
	int lines = 0;

	(void)state;
	if (run("prepare", "--fabric", TORUS, "--dir", dir, "--job", "7", "--epoch", "12", "--node",
		"n0", "--shape", "4x8x2", "--placement", compact, NULL) != 0)
		fail_msg("%s", output);
	assert_int_equal(stat(dir, &info), 0);
	assert_int_equal(info.st_mode & 07777, 0755);

	text = get("epoch");
	assert_string_equal(text, "12\n");
	free(text);

	text = get("placement.json");
	json = json_tokener_parse(text);
	assert_int_equal(json_object_array_length(json_object_object_get(json, "xpus")), 64);
	json_object_put(json);
	free(text);

	text = get("ranks");
	ranks = ocs_ranks_parse(text, &err);
	assert_non_null(ranks);
	assert_int_equal(ranks->nxpus, 64);
	free(text);
	text = get("hostfile");
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		assert_string_equal(line, ranks->nodes[ranks->node[lines++]]);
	assert_int_equal(lines, 64);
	free(text);
	ocs_ranks_destroy(ranks);

	text = get("env");
	has_line(text, "SLURM_OCS_SHAPE=4x8x2");
	has_line(text, "SLURM_OCS_CONN=torus,torus,torus");
	has_line(text, "NCCL_ALGO=Ring");
	expected = ocs_asprintf("SLURM_OCS_DIR=%s", dir);
	has_line(text, expected);
	free(expected);
	assert_non_null(strstr(text, "SLURM_OCS_CUBES=c"));
	expected = ocs_asprintf("NCCL_TOPO_FILE=%s/topo.xml", dir);
	if (access(expected + strlen("NCCL_TOPO_FILE="), R_OK) == 0)
		has_line(text, expected);
	else	/* a machine that cannot be described: said, and left out */
		assert_non_null(strstr(output, "no NCCL topology file"));
	free(expected);
	free(text);
	text = get("topo.xml");
	if (text)
		assert_int_equal(ocs_nccl_check_text(text, &err), 0);
	free(text);
	assert_null(get("plan.json"));

	/* every file can be read by the job's user, whatever the umask */
	text = ocs_asprintf("%s/env", dir);
	assert_int_equal(stat(text, &info), 0);
	assert_int_equal(info.st_mode & 07777, 0644);
	free(text);

	assert_int_equal(run("remove", "--dir", dir, NULL), 0);
	assert_int_equal(access(dir, F_OK), -1);
	assert_int_equal(run("remove", "--dir", dir, NULL), 0);
	free(compact);
}

static void test_epochs(void **state)
{
	char *compact = place("2x2x2"), *text, *path = ocs_asprintf("%s/plan.json", dir);
#define PREPARE(epoch) \
	run("prepare", "--fabric", TORUS, "--dir", dir, "--job", "7", "--epoch", epoch, "--node", \
	    "n0", "--placement", compact, NULL)

	(void)state;
	assert_int_equal(PREPARE("5"), 0);
	/* what an older job left, of a kind this one does not have */
	put(path, "{}");
	assert_int_equal(PREPARE("6"), 0);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(PREPARE("6"), 0);
	assert_int_equal(PREPARE("5"), 1);
	assert_non_null(strstr(output, "newer"));
	text = get("epoch");
	assert_string_equal(text, "6\n");
	free(text);
	free(path);

	/* a reply beside them is ours, anything else is not */
	path = ocs_asprintf("%s/reply.n0", dir);
	put(path, "{}");
	free(path);
	path = ocs_asprintf("%s/notes", dir);
	put(path, "mine");
	assert_int_equal(run("remove", "--dir", dir, NULL), 1);
	assert_non_null(strstr(output, "notes"));
	assert_int_equal(access(path, F_OK), 0);
	unlink(path);
	assert_int_equal(run("remove", "--dir", dir, NULL), 0);
	free(path);
	free(compact);
}

static void test_links(void **state)
{
	char *compact = place("2x2x2"), *target = ocs_asprintf("%s/target", base);
	char *victim = ocs_asprintf("%s/env", target);

	(void)state;
	assert_int_equal(PREPARE("1"), 0);
	assert_int_equal(run("remove", "--dir", dir, NULL), 0);
	assert_int_equal(mkdir(target, 0755), 0);
	put(victim, "precious");
	assert_int_equal(symlink(target, dir), 0);
	assert_int_equal(PREPARE("1"), 1);
	assert_non_null(strstr(output, "link"));
	assert_int_equal(run("remove", "--dir", dir, NULL), 1);
	assert_int_equal(access(victim, F_OK), 0);
	unlink(dir);

	/* a link in the place of a file is replaced, not followed */
	assert_int_equal(mkdir(dir, 0755), 0);
	free(target);
	target = ocs_asprintf("%s/env", dir);
	assert_int_equal(symlink(victim, target), 0);
	assert_int_equal(PREPARE("1"), 0);
	free(target);
	target = ocs_file_read(victim, 100, NULL, NULL);
	assert_string_equal(target, "precious");
	free(target);
	unlink(victim);
	*strrchr(victim, '/') = '\0';
	rmdir(victim);
	free(victim);
	if (geteuid() == 0) {
		assert_int_equal(chown(dir, 65534, 65534), 0);
		assert_int_equal(PREPARE("2"), 1);
		assert_non_null(strstr(output, "another account"));
		assert_int_equal(run("remove", "--dir", dir, NULL), 1);
		assert_int_equal(chown(dir, 0, 0), 0);
	}
	assert_int_equal(run("remove", "--dir", dir, NULL), 0);
	free(compact);
}

static void test_direct(void **state)
{
	char *reply = ocs_asprintf("%s/reply.json", base), *text;
#define SERVERS(nodes, ...) \
	run("prepare", "--fabric", DIRECT, "--dir", dir, "--job", "7", "--epoch", "1", "--node", \
	    "d2", "--nodes", nodes, ##__VA_ARGS__, NULL)

	(void)state;
#define PLAN \
	"{\"servers\":2,\"degree\":4,\"directed\":false,\"groups\":[{\"members\":[0,1]," \
	"\"rings\":[[0,1],[0,1]],\"steps\":[1,1]}],\"circuits\":[" \
	"{\"a\":[0,0],\"b\":[1,0],\"ocs\":0,\"group\":0},{\"a\":[0,2],\"b\":[1,2],\"ocs\":2,\"group\":0}]," \
	"\"nodes\":[\"d2\",\"d1\"]}"
	put(reply, "{\"id\":1,\"ok\":true,\"circuits\":4,\"plan\":" PLAN "}");
	if (SERVERS("d[2,1]", "--shape", "2", "--reply", reply) != 0)
		fail_msg("%s", output);
	text = get("plan.json");
	assert_string_equal(text, PLAN "\n");
	free(text);
	text = get("hostfile");
	assert_string_equal(text, "d2\nd1\n");
	free(text);
	text = get("env");
	has_line(text, "SLURM_OCS_SHAPE=2");
	assert_null(strstr(text, "SLURM_OCS_CUBES"));
	assert_null(strstr(text, "NCCL_CROSS_NIC"));
	free(text);
	assert_null(get("placement.json"));

	/* no shape asked for: nodes in order, no SLURM_OCS_SHAPE */
	assert_int_equal(SERVERS("d[1-2]", "--reply", reply), 0);
	text = get("env");
	assert_null(strstr(text, "SLURM_OCS_SHAPE"));
	free(text);
	assert_null(get("ranks"));
	/* a server alone has no circuits */
	assert_int_equal(SERVERS("d2"), 0);
	assert_null(get("plan.json"));

	assert_int_equal(SERVERS("d[1-2]"), 2);
	assert_int_equal(SERVERS("d[1-2]", "--shape", "3", "--reply", reply), 2);
	assert_int_equal(SERVERS("d[0-1]", "--reply", reply), 2);
	assert_int_equal(SERVERS("d[0-1", "--reply", reply), 2);
	/* ocsd sends no routes: they are made here */
	put(reply, "{\"id\":1,\"ok\":true,\"plan\":{\"servers\":2,\"degree\":1,\"directed\":false,"
	    "\"groups\":[{\"members\":[0,1],\"bytes\":0,\"rings\":[[0,1]],\"steps\":[1]}],"
	    "\"circuits\":[{\"a\":[0,0],\"b\":[1,0],\"ocs\":0,\"group\":0}],"
	    "\"nodes\":[\"d1\",\"d2\"],\"diameter\":1,\"average_hops\":1.0,\"max_link_load\":1.0}}");
	if (SERVERS("d[1-2]", "--reply", reply) != 0)
		fail_msg("%s", output);
	text = get("plan.json");
	assert_non_null(strstr(text, "\"routes\":[{\"src\":0,\"dst\":1,\"paths\":[[0,1]]"));
	assert_non_null(strstr(text, "{\"src\":1,\"dst\":0,\"paths\":[[1,0]]"));
	free(text);
	/* a plan that is none of this node's */
	put(reply, "{\"id\":1,\"ok\":true,\"plan\":{\"nodes\":[\"d1\"],\"circuits\":[]}}");
	assert_int_equal(SERVERS("d[1-2]", "--reply", reply), 2);
	assert_non_null(strstr(output, "no node d2"));
	put(reply, "{\"id\":1,\"ok\":true}");
	assert_int_equal(SERVERS("d[1-2]", "--reply", reply), 1);
	assert_non_null(strstr(output, "no plan"));
	put(reply, "not json");
	assert_int_equal(SERVERS("d[1-2]", "--reply", reply), 1);
	unlink(reply);
	assert_int_equal(SERVERS("d[1-2]", "--reply", reply), 1);
	/* nothing to plan where nothing is wired */
	assert_int_equal(run("prepare", "--fabric", UNWIRED, "--dir", dir, "--job", "7", "--epoch",
			     "1", "--node", "n2", "--nodes", "n[1-2]", NULL), 0);
	assert_int_equal(run("remove", "--dir", dir, NULL), 0);
	free(reply);
}

#define SERVER TEST_SOURCE_DIR "/tests/data/server-8gpu-4nic.xml"

/* ocs.yaml of the example with more in its section and for NCCL; the caller frees
 * the path. */
static char *example_with(const char *section, const char *nccl)
{
	char *text = ocs_file_read(DIRECT, 1 << 20, NULL, NULL), *at, *changed;
	char *conf = ocs_asprintf("%s/ocs.yaml", base);

	at = strstr(text, "    ports:\n");
	assert_non_null(at);
	changed = ocs_asprintf("%.*s%s%s\nnccl:\n  hwloc_xml: %s\n%s", (int)(at - text), text, section,
			       at, SERVER, nccl);
	put(conf, changed);
	free(changed);
	free(text);
	return conf;
}

static void absent(const char *text, const char *what)
{
	if (strstr(text, what))
		fail_msg("'%s' in:\n%s", what, text);
}

/* Only the ports that hold circuits of the job, everywhere. */
static void test_ports(void **state)
{
	char *reply = ocs_asprintf("%s/reply.json", base), *text, *conf = example_with("", "");
	struct ocs_nccl_report report;
#define CONFIGURED(...) \
	run("prepare", "--fabric", conf, "--dir", dir, "--job", "7", "--epoch", "1", "--node", "d2", \
	    "--nodes", "d[2,1]", "--reply", reply, ##__VA_ARGS__, NULL)

	(void)state;
	put(reply, "{\"id\":1,\"ok\":true,\"plan\":" PLAN "}");
	if (CONFIGURED() != 0 || *output)
		fail_msg("%s", output);
	text = get("env");
	has_line(text, "NCCL_IB_HCA==mlx5_0:1,mlx5_2:1");
	absent(text, "NCCL_SOCKET_IFNAME");
	absent(text, "NCCL_GRAPH_FILE");
	absent(text, "SUBNET");
	free(text);
	text = get("topo.xml");
	assert_int_equal(ocs_nccl_check_text(text, NULL), 0);
	assert_non_null(strstr(text, "<net name=\"mlx5_0\""));
	assert_non_null(strstr(text, "<net name=\"mlx5_2\""));
	absent(text, "mlx5_1");
	absent(text, "mlx5_3");
	free(text);
	/* always there, for those who want it */
	text = get("graph.xml");
	assert_int_equal(ocs_nccl_check(text, strlen(text), &report), 0);
	assert_int_equal(report.kind, OCS_NCCL_GRAPH);
	ocs_nccl_report_free(&report);
	assert_non_null(strstr(text, "nchannels=\"4\""));
	free(text);
	assert_null(get("warnings"));
	assert_null(get("subnets"));
	/* a server alone uses no port */
	if (run("prepare", "--fabric", conf, "--dir", dir, "--job", "7", "--epoch", "2", "--node", "d2",
		"--nodes", "d2", NULL) != 0)
		fail_msg("%s", output);
	text = get("env");
	absent(text, "NCCL_IB_HCA");
	free(text);
	assert_null(get("graph.xml"));
	assert_int_equal(run("remove", "--dir", dir, NULL), 0);
	free(conf);

	conf = example_with("", "  management: eth0\n  graph_file: true\n");
	assert_int_equal(CONFIGURED(), 0);
	text = get("env");
	has_line(text, "NCCL_SOCKET_IFNAME==eth0");
	assert_non_null(strstr(text, "NCCL_GRAPH_FILE="));
	free(text);
	assert_int_equal(run("remove", "--dir", dir, NULL), 0);
	unlink(conf);
	unlink(reply);
	free(conf);
	free(reply);
}

/* What is wrong with the machine reaches the job. */
static void test_warnings(void **state)
{
	char *reply = ocs_asprintf("%s/reply.json", base), *text, *conf, *change, *at;
	char *xml = ocs_asprintf("%s/machine.xml", base);

	(void)state;
	put(reply, "{\"id\":1,\"ok\":true,\"plan\":" PLAN "}");
	/* ports that the description lacks */
	text = ocs_file_read(SERVER, 1 << 20, NULL, NULL);
	while ((at = strstr(text, "mlx5_")))
		memcpy(at, "qedr_", 5);
	put(xml, text);
	free(text);
	conf = example_with("", "  graph_file: true\n");
	text = ocs_file_read(conf, 1 << 20, NULL, NULL);
	at = strstr(text, SERVER);
	change = ocs_asprintf("%.*s%s%s", (int)(at - text), text, xml, at + strlen(SERVER));
	put(conf, change);
	free(change);
	free(text);
	if (CONFIGURED() != 0)
		fail_msg("%s", output);
	text = get("warnings");
	assert_non_null(strstr(text, "leaves NIC ports to NCCL: the machine has no NIC port mlx5_0"));
	assert_non_null(strstr(text, "\nno NCCL graph file: "));
	assert_non_null(strstr(output, "mlx5_0"));
	free(text);
	text = get("topo.xml");
	assert_int_equal(ocs_nccl_check_text(text, NULL), 0);
	absent(text, "<net");
	free(text);
	text = get("env");
	has_line(text, "NCCL_IB_HCA==mlx5_0:1,mlx5_2:1");
	absent(text, "NCCL_GRAPH_FILE");
	free(text);
	/* no GPU */
	text = ocs_file_read(SERVER, 1 << 20, NULL, NULL);
	while ((at = strstr(text, "10de:2330")))
		memcpy(at, "1af4", 4);
	put(xml, text);
	free(text);
	assert_int_equal(CONFIGURED(), 0);
	text = get("warnings");
	assert_non_null(strstr(text, "no NCCL topology file: the machine description shows no GPU"));
	free(text);
	assert_null(get("topo.xml"));
	text = get("env");
	absent(text, "NCCL_TOPO_FILE");
	has_line(text, "NCCL_ALGO=Ring");
	free(text);
	assert_int_equal(run("remove", "--dir", dir, NULL), 0);
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
	char *reply = ocs_asprintf("%s/reply.json", base), *text, *conf, *log;

	(void)state;
	conf = example_with("    subnets: 10.128.0.0/16\n", "");
	put(reply, "{\"id\":1,\"ok\":true,\"plan\":" PLAN "}");
	if (geteuid() != 0 || unshare(CLONE_NEWNET) < 0 || system("ip link set lo up") != 0) {
		unlink(conf);
		unlink(reply);
		free(conf);
		free(reply);
		skip();
	}
	/* one interface is missing: nothing is set, and one line says so */
	assert_int_equal(system("ip link add ens3 type veth peer name p3"), 0);
	assert_int_equal(CONFIGURED(), 1);
	assert_non_null(strstr(output, "there is no interface ens5"));
	assert_false(addressed("10.128.0.9/31"));
	assert_int_equal(system("ip link add ens5 type veth peer name p5 && ip address add 10.1.0.1/24 dev ens5"
				" && ip address add 10.128.7.0/31 dev ens5"), 0);
	if (CONFIGURED() != 0)
		fail_msg("%s", output);
	/* d2 is server 2, d1 server 1: interface 0 of d1 is number 4, subnet 8 */
	text = get("subnets");
	assert_string_equal(text, "ens3 10.128.0.9/31\nens5 10.128.0.13/31\n");
	free(text);
	text = get("env");
	has_line(text, "NCCL_IB_SUBNET_AWARE_ROUTING=1");
	has_line(text, "NCCL_IB_SUBNET_PREFIX_LEN=31");
	has_line(text, "NCCL_IB_ADDR_RANGE=10.128.0.0/16");
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
	put(reply, text);
	free(text);
	log = ocs_asprintf("%s/monitor", base);
	text = ocs_asprintf("ip link add ens6 type veth peer name p6; ip -o monitor address >%s & "
			    "echo $! >%s.pid; sleep 0.5", log, log);
	assert_int_equal(system(text), 0);
	free(text);
	assert_int_equal(CONFIGURED(), 0);
	assert_true(addressed("10.128.0.9/31"));
	assert_false(addressed("10.128.0.13/31"));
	assert_true(addressed("10.128.0.15/31"));
	text = ocs_asprintf("for i in $(seq 100); do grep -q 10.128.0.15 %s && break; sleep 0.1; done; "
			    "kill $(cat %s.pid); grep -q 10.128.0.15 %s && ! grep -qF 10.128.0.9/ %s",
			    log, log, log, log);
	assert_int_equal(system(text), 0);
	free(text);
	unlink(log);
	text = ocs_asprintf("%s.pid", log);
	unlink(text);
	free(text);
	free(log);
	assert_int_equal(run("remove", "--dir", dir, NULL), 0);
	assert_false(addressed("10.128.0.15/31"));
	assert_false(addressed("10.128.0.9/31"));
	assert_false(addressed("10.128.0.13/31"));
	assert_true(addressed("10.1.0.1/24"));
	assert_int_equal(run("remove", "--dir", dir, NULL), 0);
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
	char *conf = ocs_asprintf("%s/ocs.yaml", base), *xml = ocs_asprintf("%s/no.xml", base);

	(void)state;
	text = ocs_asprintf("%s\nnccl:\n  hwloc_xml: %s\n  env:\n    NCCL_ALGO: Ring,Tree\n"
			    "    NCCL_DEBUG: INFO\n", example, xml);
	put(conf, text);
	free(text);
	if (run("prepare", "--fabric", conf, "--dir", dir, "--job", "7", "--epoch", "1", "--node", "d2",
		"--nodes", "d2", "--uid", "0", "--gid", "0", NULL) != 0)
		fail_msg("%s", output);
	assert_non_null(strstr(output, "no NCCL topology file"));
	assert_non_null(strstr(output, "no.xml"));
	assert_null(get("topo.xml"));
	text = get("env");
	has_line(text, "NCCL_ALGO=Ring,Tree");
	has_line(text, "NCCL_DEBUG=INFO");
	has_line(text, "NCCL_IB_TIMEOUT=22");
	assert_null(strstr(text, "NCCL_ALGO=Ring\n"));
	assert_null(strstr(text, "NCCL_TOPO_FILE"));
	free(text);
	/* a user who cannot get there is worth a line */
	if (geteuid() == 0) {
		assert_int_equal(chmod(base, 0700), 0);
		assert_int_equal(run("prepare", "--fabric", conf, "--dir", dir, "--job", "7", "--epoch",
				     "1", "--node", "d2", "--nodes", "d2", "--uid", "65534", "--gid",
				     "65534", NULL), 0);
		assert_non_null(strstr(output, "cannot read"));
	}
	assert_int_equal(run("remove", "--dir", dir, NULL), 0);
	unlink(conf);
	free(xml);
	free(conf);
	free(example);
}

/* One clear line, the right code, and nothing written. */
static void test_refusals(void **state)
{
	char *compact = place("2x2x2");
	static const char *const bad[] = { "", "x", "0", ";;;", "\n", "99999999999999999999",
					   "box:9" };

	(void)state;
	assert_int_equal(run("prepare", "--dir", dir, NULL), 2);
	assert_in_range(run("prepare", "--fabric", "/nonexistent/ocs.yaml", "--dir", dir, "--job", "7",
			    "--epoch", "1", "--node", "n0", NULL), 1, 2);
	assert_non_null(strstr(output, "/nonexistent/ocs.yaml"));
	assert_int_equal(run("prepare", "--fabric", TORUS, "--dir", dir, "--job", "7", "--epoch", "1",
			     "--node", "nowhere", "--placement", compact, NULL), 2);
	assert_int_equal(run("prepare", "--fabric", TORUS, "--dir", dir, "--job", "7", "--epoch", "1",
			     "--node", "n0", NULL), 2);
	assert_int_equal(run("prepare", "--fabric", TORUS, "--dir", dir, "--job", "7", "--epoch", "1",
			     "--node", "n0", "--placement", compact, "--shape", "2x2x4", NULL), 2);
	assert_int_equal(run("prepare", "--fabric", TORUS, "--dir", dir, "--job", "7", "--epoch", "1",
			     "--node", "n0", "--placement", compact, "--nodes", "n[0-4]", NULL), 2);
	assert_int_equal(run("prepare", "--fabric", TORUS, "--dir", dir, "--job", "7", "--epoch", "1",
			     "--node", "n31", "--placement", compact, NULL), 2);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		int rc = run("prepare", "--fabric", TORUS, "--dir", dir, "--job", "7", "--epoch", "1",
			     "--node", "n0", "--placement", bad[i], NULL);

		assert_in_range(rc, 1, 3);
		assert_ptr_equal(strchr(output, '\n'), output + strlen(output) - 1);
	}
	assert_int_equal(run("prepare", "--fabric", TORUS, "--dir", dir, "--job", "-7", "--epoch", "1",
			     "--node", "n0", NULL), 2);
	assert_int_equal(run("prepare", "--fabric", TORUS, "--dir", "here", "--job", "7", "--epoch",
			     "1", "--node", "n0", NULL), 2);
	assert_int_equal(run("undo", "--dir", dir, NULL), 2);
	assert_int_equal(run("remove", NULL), 2);
	assert_int_equal(access(dir, F_OK), -1);
	assert_int_equal(run("--help", NULL), 0);
	assert_int_equal(run("--version", NULL), 0);
	free(compact);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_torus),  cmocka_unit_test(test_epochs),
		cmocka_unit_test(test_links),  cmocka_unit_test(test_direct),
		cmocka_unit_test(test_settings), cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_ports),  cmocka_unit_test(test_warnings),
		cmocka_unit_test(test_subnets),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
