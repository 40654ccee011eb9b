/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The loader of ocs.yaml: what it reads, and every refusal with its line. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "src/config/config.h"
#include "src/fabric/fabric.h"
#include "src/util/error.h"
#include "src/util/text.h"

#define POLICIES                                                                       \
	"policies: {requeue_limit: 5, circuit_failed: signal, switch_failed: cancel, " \
	"signal: B:SIGUSR2, keep_cubes_whole: false}"

/* A correct file; a case replaces one piece of it. */
static const char base[] =
	/*  1 */
	"version: 1\n"
	/*  2 */ "ocsd:\n"
	/*  3 */ "  socket: unix:/run/o/o.sock\n"
	/*  4 */ "  listen: 0.0.0.0:6820\n"
	/*  5 */ "  address: head:6820\n"
	/*  6 */ "  state: /var/lib/o\n"
	/*  7 */ "  admins: [slurm, 'op[1-2]']\n"
	/*  8 */ "timeouts: {switch: 250ms, retry: 2s, poll: 1m, prolog: 10s, ocsd_down: 9s}\n"
	/*  9 */ POLICIES "\n"
	/* 10 */ "nccl:\n"
	/* 11 */ "  hwloc_xml: /etc/node.xml\n"
	/* 12 */ "  env: {NCCL_DEBUG: WARN, A_1: x=y z}\n"
	/* 13 */ "switches:\n"
	/* 14 */ "  - name: o-[x,y,z]-[0-1]-[0-1]\n"
	/* 15 */ "    driver: tl1\n"
	/* 16 */ "    dialect: polatis\n"
	/* 17 */ "    address: 127.0.0.1:{3100+index}\n"
	/* 18 */ "    credentials: /etc/c/{name}\n"
	/* 19 */ "    size: 8\n"
	/* 20 */ "    ports: duplex\n"
	/* 21 */ "  - name: d-[0-1]\n"
	/* 22 */ "    driver: tl1\n"
	/* 23 */ "    address: '[::1]:{4000+index}'\n"
	/* 24 */ "    credentials: /etc/c2\n"
	/* 25 */ "    size: 4\n"
	/* 26 */ "fabrics:\n"
	/* 27 */ "  - name: pod\n"
	/* 28 */ "    kind: torus\n"
	/* 29 */ "    partitions: [tpu, debug]\n"
	/* 30 */ "    cube: 2x2x2\n"
	/* 31 */ "    tile: 2x1x1\n"
	/* 32 */ "    cubes:\n"
	/* 33 */ "      - {name: c0, nodes: 'n[0-3]'}\n"
	/* 34 */ "      - name: c1\n"
	/* 35 */ "        nodes: ['n[4-5]', n6, n7]\n"
	/* 36 */ "    ports:\n"
	/* 37 */ "      switch: o-{dim}-{a}-{b}\n"
	/* 38 */ "      port: 2*cube+sign+1\n"
	/* 39 */ "      map:\n"
	/* 40 */
	"        - {cube: c1, dim: x, position: [0, 1], sign: '+', switch: o-x-0-1, port: 8}\n"
	/* 41 */ "  - name: rail\n"
	/* 42 */ "    kind: direct\n"
	/* 43 */ "    nodes: m[1-4]\n"
	/* 44 */ "    degree: 2\n"
	/* 45 */ "    directed: true\n"
	/* 46 */ "    ports:\n"
	/* 47 */ "      switch: d-{interface}\n"
	/* 48 */ "      port: servers-server\n"
	/* 49 */ "  - name: fixed\n"
	/* 50 */ "    kind: static\n"
	/* 51 */ "    partitions: old\n"
	/* 52 */ "    extents: 4x2x1\n"
	/* 53 */ "    nodes: s[1-8]\n";

static void everything_is_read(void **state)
{
	struct ocs_error err = { 0 };
	struct ocs_config *config = ocs_config_parse(base, sizeof(base) - 1, "ocs.yaml", &err);
	const struct ocs_fabric *f;
	const struct ocs_section *pod;
	struct ocs_port port;

	(void)state;
	if (!config)
		fail_msg("%s", err.text);
	f = config->fabric;
	assert_string_equal(f->source, "ocs.yaml");
	assert_string_equal(config->ocsd.socket, "unix:/run/o/o.sock");
	assert_string_equal(config->ocsd.listen, "0.0.0.0:6820");
	assert_string_equal(config->ocsd.address, "head:6820");
	assert_string_equal(config->ocsd.state, "/var/lib/o");
	assert_int_equal(config->ocsd.nadmins, 3);
	assert_string_equal(config->ocsd.admins[2], "op2");
	assert_int_equal(config->timeouts.switch_ms, 250);
	assert_int_equal(config->timeouts.retry_ms, 2000);
	assert_int_equal(config->timeouts.poll_ms, 60000);
	assert_int_equal(config->timeouts.prolog_ms, 10000);
	assert_int_equal(config->timeouts.ocsd_down_ms, 9000);
	assert_int_equal(config->policies.requeue_limit, 5);
	assert_false(config->policies.keep_cubes_whole);
	assert_int_equal(config->policies.circuit_failed, OCS_ON_FAILURE_SIGNAL);
	assert_int_equal(config->policies.switch_failed, OCS_ON_FAILURE_CANCEL);
	assert_int_equal(config->policies.signal, SIGUSR2);
	assert_true(config->policies.signal_batch);
	assert_int_equal(config->timeouts.dark_ms, 10000);
	assert_int_equal(config->timeouts.link_ms, 30000);
	assert_string_equal(config->nccl.hwloc_xml, "/etc/node.xml");
	assert_int_equal(config->nccl.nenv, 2);
	assert_string_equal(config->nccl.env[0], "NCCL_DEBUG=WARN");
	assert_string_equal(config->nccl.env[1], "A_1=x=y z");
	assert_int_equal(f->nswitches, 14);
	assert_string_equal(f->switches[5].name, "o-y-0-1");
	assert_string_equal(f->switches[5].driver, "tl1");
	assert_string_equal(f->switches[5].dialect, "polatis");
	assert_string_equal(f->switches[5].address, "127.0.0.1:3105");
	assert_string_equal(f->switches[5].credentials, "/etc/c/o-y-0-1");
	assert_null(f->switches[5].known_hosts);
	assert_string_equal(f->switches[13].address, "[::1]:4001");
	assert_string_equal(f->switches[13].dialect, "polatis");
	assert_int_equal(f->switches[13].size, 4);
	assert_int_equal(f->nsections, 3);
	pod = &f->sections[0];
	assert_string_equal(pod->partitions[1], "debug");
	assert_int_equal(pod->ncubes, 2);
	assert_int_equal(ocs_section_cube(pod, "c1"), 1);
	assert_int_equal(ocs_fabric_node(f, "n6")->cube, 1);
	assert_int_equal(ocs_fabric_node(f, "n6")->origin[1], 1);
	assert_int_equal(ocs_section_torus_port(f, pod, 1, 0, 0, 1, OCS_PLUS, &port), 0);
	assert_int_equal(port.port, 8);
	assert_int_equal(f->sections[1].nservers, 4);
	assert_true(f->sections[1].directed);
	assert_int_equal(ocs_section_server_port(f, &f->sections[1], 3, 1, &port), 0);
	assert_int_equal(port.port, 1);
	assert_int_equal(f->sections[2].edge[1], 2);
	assert_int_equal(ocs_section_torus_port(f, &f->sections[2], 0, 0, 0, 0, 0, &port), -1);
	assert_int_equal(f->nnodes, 8 + 4 + 8);
	assert_ptr_equal(ocs_fabric_section(f, "elsewhere"), &f->sections[1]);
	ocs_config_destroy(config);
}

struct refusal {
	const char *find, *replace; /* in base */
	int line;
	const char *word; /* in the message */
};

static const struct refusal refusals[] = {
	/* YAML itself */
	{ "ocsd:\n", "ocsd: [\n", 4, "not valid YAML" },
	{ "  socket:", "\tsocket:", 3, "not tabs" },
	{ "timeouts: {", "timeouts: *t {", 8, "not valid YAML" },
	{ "/var/lib/o\n", "/var/lib/\xff\n", 6, "not text in UTF-8" },
	{ "nodes: s[1-8]\n", "nodes: s[1-8]\n---\na: b\n", 55, "second document" },
	{ "version: 1\n", "- a\n---\n", 3, "second document" },
	/* keys */
	{ "version: 1\n", "\n", 2, "needs the key \"version\"" },
	{ "version: 1", "version: 2", 1, "version must be 1, not \"2\"" },
	{ "version: 1", "version: one", 1, "version must be" },
	{ "policies:", "polices:", 9, "did you mean \"policies\"" },
	{ "policies:", "zebra:", 9, "it has: version, ocsd" },
	{ "policies:", "version:", 9, "\"version\" twice" },
	{ "policies:", "? [a]\n:", 9, "must be a word" },
	{ "  socket:", "  sockets:", 3, "did you mean \"socket\"" },
	{ "requeue_limit: 5", "requeue_limit: ", 9, "has no value" },
	{ "requeue_limit: 5", "requeue_limit: ~", 9, "has no value" },
	{ POLICIES, "policies: 5", 9, "must be a mapping" },
	{ "    driver: tl1\n    dialect", "    dialect", 14, "needs the key \"driver\"" },
	{ "    dialect:", "    dialet:", 16, "did you mean \"dialect\"" },
	{ "    degree: 2\n", "    degree: 2\n    degree: 2\n", 45, "\"degree\" twice" },
	{ "    degree: 2\n", "    degre: 2\n", 44, "did you mean \"degree\"" },
	{ "    degree: 2\n", "    tile: 1x1x1\n", 44, "a direct fabric has no key \"tile\"" },
	{ "    degree: 2\n", "", 41, "a direct fabric needs the key \"degree\"" },
	{ "    directed: true", "    rails: 8", 45, "a direct fabric has no key \"rails\"" },
	{ "    extents: 4x2x1", "    ports: {map: []}", 52,
	  "a static fabric has no key \"ports\"" },
	/* ocsd */
	{ "unix:/run/o/o.sock", "head:1", 3, "belongs to the key \"listen\"" },
	{ "unix:/run/o/o.sock", "unix:run/o.sock", 3, "absolute path" },
	{ "unix:/run/o/o.sock", "/run/o/o.sock", 3,
	  "socket must be unix:/path, not /run/o/o.sock" },
	{ "0.0.0.0:6820", "unix:/run/x", 4, "belongs to the key \"socket\"" },
	{ "state: /var/lib/o", "user: 'o c'", 6, "neither the name of an account nor a uid" },
	{ "state: /var/lib/o", "user: 4294967295", 6, "neither the name of an account nor a uid" },
	{ "state: /var/lib/o", "user: -1", 6, "neither the name of an account nor a uid" },
	{ "state: /var/lib/o", "user: [ocsd]", 6, "user" },
	{ "0.0.0.0:6820", "0.0.0.0", 4, "not an address" },
	{ "0.0.0.0:6820", "0.0.0.0:0", 4, "not an address" },
	{ "0.0.0.0:6820", "::1:80", 4, "not an address" },
	{ "0.0.0.0:6820", "'[::1:80'", 4, "not an address" },
	{ "head:6820", "0.0.0.0:6820", 5, "no program can connect" },
	{ "head:6820", "he ad:6820", 5, "not an address" },
	{ "  address: head:6820\n", "", 4, "needs the key \"address\"" },
	{ "/var/lib/o", "var/lib", 6, "absolute path" },
	{ "[slurm, 'op[1-2]']", "[]", 7, "empty list" },
	{ "[slurm, 'op[1-2]']", "{a: b}", 7, "must be a list" },
	{ "[slurm, 'op[1-2]']", "[slurm, 'op[2-1]']", 7, "backwards" },
	{ "[slurm, 'op[1-2]']", "[slurm, 'a:b']", 7, "is not a name" },
	/* timeouts and policies */
	{ "250ms", "250", 8, "number with a unit" },
	{ "250ms", "1h", 8, "number with a unit" },
	{ "250ms", "ms", 8, "number with a unit" },
	{ "250ms", "-1s", 8, "number with a unit" },
	{ "250ms", "99999999999s", 8, "number with a unit" },
	{ "250ms", "9ms", 8, "between 10 ms and 600 s" },
	{ "250ms", "601s", 8, "between 10 ms and 600 s" },
	{ "250ms", "[1s]", 8, "must be a single value" },
	{ "switch: 250ms", "switch: 11s", 8, "make prolog longer" },
	{ "requeue_limit: 5", "requeue_limit: 0", 9, "1 to 1000" },
	{ "keep_cubes_whole: false", "keep_cubes_whole: no", 9, "false or true" },
	{ "circuit_failed: signal", "circuit_failed: hold", 9,
	  "requeue, cancel, signal or ignore" },
	{ "switch_failed: cancel", "switch_failed: [cancel]", 9, "switch_failed" },
	{ "B:SIGUSR2", "B:9", 9, "HUP, INT" },
	{ "B:SIGUSR2", "KILL", 9, "signal is KILL" },
	{ "requeue_limit: 5", "requeue_limit: 5.0", 9, "1 to 1000" },
	{ POLICIES, "limits: {burst: 0}", 9, "burst" },
	{ POLICIES, "limits: {requests_per_second: 1e9}", 9, "1 to 100000" },
	{ POLICIES, "limits: {requests: 5}", 9, "requests" },
	/* nccl */
	{ "/etc/node.xml", "node.xml", 11, "absolute path" },
	{ "hwloc_xml: /etc/node.xml", "topology_vendor: x", 11,
	  "no key \"topology_vendor\"; it has: hwloc_xml, env, management, graph_file, version, rings" },
	{ "hwloc_xml: /etc/node.xml", "version: 2.x", 11, "no release of NCCL" },
	{ "hwloc_xml: /etc/node.xml", "version: 2", 11, "no release of NCCL" },
	{ "hwloc_xml: /etc/node.xml", "rings: many", 11, "rings" },
	{ "hwloc_xml: /etc/node.xml", "graph_file: maybe", 11, "graph_file" },
	{ "{NCCL_DEBUG: WARN, A_1: x=y z}", "{1A: x}", 12, "not the name" },
	{ "{NCCL_DEBUG: WARN, A_1: x=y z}", "{'A=B': x}", 12, "not the name" },
	{ "{NCCL_DEBUG: WARN, A_1: x=y z}", "{A: x, A: y}", 12, "variable A twice" },
	{ "{NCCL_DEBUG: WARN, A_1: x=y z}", "{A: \"x\\ny\"}", 12, "one line" },
	{ "{NCCL_DEBUG: WARN, A_1: x=y z}", "{A: \"x\\0y\"}", 12, "zero byte" },
	{ "{NCCL_DEBUG: WARN, A_1: x=y z}", "[A]", 12, "must be a mapping" },
	/* switches */
	{ "name: o-[x,y,z]-[0-1]-[0-1]", "name: o-[x", 14, "closing" },
	{ "name: o-[x,y,z]-[0-1]-[0-1]", "name: o/1", 14, "is not a name" },
	{ "name: o-[x,y,z]-[0-1]-[0-1]", "name: -o", 14, "is not a name" },
	{ "name: d-[0-1]", "name: o-x-0-1", 21, "the switch o-x-0-1 is described twice" },
	{ "driver: tl1\n    dialect", "driver: scp\n    dialect", 15, "driver must be tl1" },
	{ "size: 8\n", "size: 8\n    loop_ports: [9]\n", 20,
	  "loop_ports must be a number of 1 to 8" },
	{ "size: 8\n", "size: 8\n    loop_ports: [8, 8]\n", 20, "names 8 twice" },
	{ "size: 8\n", "size: 8\n    loop_ports: 8\n", 20, "loop_ports" },
	{ "size: 8\n", "size: 8\n    loss_max: 99\n", 20, "loss_max must be 0.1 to 60 dB" },
	{ "size: 8\n", "size: 8\n    loss_budget: much\n", 20, "loss_budget must be 0.1 to 60 dB" },
	{ "dialect: polatis", "dialect: caliente", 16,
	  "dialect must be polatis, calient or glimmerglass" },
	{ "driver: tl1\n    dialect: polatis", "driver: scpi\n    dialect: polatis", 16,
	  "the driver scpi has no dialects" },
	{ "driver: tl1\n    dialect: polatis", "driver: scpi", 17, "a scpi switch knows no login" },
	{ "{3100+index}", "{3100+indx}", 17, "no variable \"indx\"" },
	{ "{3100+index}", "{3100+index", 17, "no '}'" },
	{ "{3100+index}", "{65530+index}", 17, "not an address" },
	{ "{3100+index}", "3100", 17, "same address" },
	{ "127.0.0.1:{3100+index}", "{name}:3100", 17, "not valid YAML" },
	{ "127.0.0.1:{3100+index}", "{name: x}", 17, "in quotes" },
	{ "    credentials: /etc/c/{name}\n", "", 14, "needs the key \"credentials\"" },
	{ "/etc/c/{name}", "c/{name}", 18, "absolute path" },
	{ "driver: tl1\n    dialect: polatis", "driver: netconf\n    dialect: calient", 16,
	  "dialect must be polatis or ocp" },
	{ "driver: tl1", "driver: netconf", 14, "needs the key \"known_hosts\"" },
	{ "credentials: /etc/c2", "credentials: /etc/c2\n    known_hosts: /k", 25,
	  "tl1 does not use SSH; leave the key \"known_hosts\" out" },
	{ "driver: tl1\n    dialect: polatis", "driver: netconf\n    known_hosts: k", 16,
	  "absolute path" },
	{ "driver: tl1\n    dialect: polatis", "driver: netconf\n    host_key: SHA256:x", 16,
	  "43 characters" },
	{ "driver: tl1\n    dialect: polatis",
	  "driver: netconf\n    host_key: ["
	  "'SHA256:abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQ']",
	  16, "1 host keys for 12 switches" },
	{ "driver: tl1\n    address",
	  "driver: netconf\n    host_key: 'SHA256:abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQ'\n"
	  "    known_hosts: /k\n    address",
	  24, "keep one" },
	{ "size: 8", "size: 1", 19, "2 to 16384" },
	{ "size: 8", "size: 8x8", 19, "2 to 16384" },
	{ "ports: duplex", "ports: simplex", 20, "duplex or bidi" },
	{ "  - name: d-[0-1]\n", "  - d-[0-1]\n  - name: d-[0-1]\n", 21, "must be a mapping" },
	{ "size: 4",
	  "size: 16384\n  - {name: 'big[0-999]', driver: tl1, address: '{name}:1', credentials: /c, size: 16384}",
	  14, "at most 4194304" },
	/* sections */
	{ "  - name: pod\n", "  - name: [pod]\n", 27, "single name" },
	{ "  - name: pod\n", "  - name: 'pod[0-1]'\n", 27, "single name" },
	{ "name: rail\n", "name: pod\n", 41, "the fabric pod is described twice" },
	{ "kind: torus", "kind: tours", 28, "kind must be torus, static, rails, direct or region" },
	{ "    kind: torus\n", "", 27, "needs the key \"kind\"" },
	{ "[tpu, debug]", "[tpu, tpu]", 29, "the partition tpu stands twice" },
	{ "partitions: old", "partitions: debug", 51, "belongs to the fabric pod already" },
	{ "    partitions: [tpu, debug]\n", "", 40, "both lack \"partitions\"" },
	{ "cube: 2x2x2", "cube: 2x2", 30, "three extents" },
	{ "cube: 2x2x2", "cube: 9x9x9", 30, "1 to 8" },
	{ "cube: 2x2x2", "cube: 2x2x4", 30, "not a cube" },
	{ "tile: 2x1x1", "tile: 2x3x1", 31, "does not divide" },
	{ "tile: 2x1x1", "tile: 0x1x1", 31, "three extents" },
	{ "n[0-3]", "n[0-2]", 33,
	  "the cube c0 has 3 nodes, but 2x2x2 XPUs in tiles of 2x1x1 need 4" },
	{ "n[0-3]", "n[0-1],n[1-2]", 33, "n1 stands twice; it is in cube c0 of fabric pod" },
	{ "'n[4-5]', n6, n7", "'n[4-5]', n6, n2", 35,
	  "n2 stands twice; it is in cube c0 of fabric pod" },
	{ "m[1-4]", "m[1-3],n5", 43, "n5 stands twice; it is in cube c1 of fabric pod" },
	{ "s[1-8]", "s[1-7],m3", 53, "m3 stands twice; it is in fabric rail" },
	{ "s[1-8]", "s[1-7]", 53, "7 nodes are listed, but 4x2x1 XPUs in tiles of 1x1x1 need 8" },
	{ "- name: c1", "- name: c0", 34, "the cube c0 stands twice" },
	{ "- name: c1", "- nam: c1", 34, "did you mean \"name\"" },
	{ "- name: c1", "- names: 'c[1-2]'", 35,
	  "2 cubes of 4 nodes each need 8 nodes, but 4 are listed" },
	{ "{name: c0, nodes: 'n[0-3]'}", "{nodes: 'n[0-3]'}", 33, "either \"name\" or \"names\"" },
	{ "{name: c0, nodes: 'n[0-3]'}", "{name: c0, names: c9, nodes: 'n[0-3]'}", 33, "either" },
	{ "{name: c0, nodes: 'n[0-3]'}", "c0", 33, "a cube must be a mapping" },
	{ "extents: 4x2x1", "extents: 4x2x17", 52, "1 to 16" },
	{ "degree: 2", "degree: 0", 44, "1 to 64" },
	{ "directed: true", "directed: yes", 45, "false or true" },
	{ "directed: true", "xpus: 65", 45, "1 to 64" },
	{ "fabrics:\n", "fabrics: []\nswitches:\n", 27, "\"switches\" twice" },
	{ "fabrics:\n", "fabrics: []\nx:\n", 27, "has no key \"x\"" },
	/* the rule */
	{ "      switch: o-{dim}-{a}-{b}\n", "", 37, "both \"switch\" and \"port\"" },
	{ "switch: o-{dim}-{a}-{b}", "switch: o-{dim}-{a}-{c}", 37,
	  "no variable \"c\" here; there are: cube, dim, a, b, sign, edge, cubes" },
	{ "switch: o-{dim}-{a}-{b}", "switch: o-{dim}-{a}-{b+1}", 37,
	  "the switch o-x-0-2 is not described" },
	{ "switch: o-{dim}-{a}-{b}", "switch: oo-{dim}-{a}-{b}", 37, "nearest name is o-x-0-0" },
	{ "switch: o-{dim}-{a}-{b}", "switch: o-{dim}-{a}-{(b+cube)%2}", 38,
	  "must share a switch" },
	{ "port: 2*cube+sign+1", "port: 2*cube+sign", 38,
	  "c0 +x 0,0 would be port 0 of switch o-x-0-0" },
	{ "port: 2*cube+sign+1", "port: 8*cube+sign+1", 38, "would be port 9 of switch o-x-0-0" },
	{ "port: 2*cube+sign+1", "port: cube+sign+1", 38,
	  "port 2 of switch o-x-0-0 is used twice: for c0 -x 0,0 of fabric pod and for c1 +x 0,0 of fabric pod" },
	{ "port: 2*cube+sign+1", "port: 2*cube+", 38, "port, for c0 +x 0,0: the expression ends" },
	{ "port: 2*cube+sign+1", "port: 9223372036854775807", 38, "does not exist" },
	{ "ports: duplex", "ports: bidi", 38, "+ ports belong on the ingress side" },
	{ "size: 4\n", "size: 4\n    ports: bidi\n", 49, "servers need a duplex switch" },
	{ "port: servers-server", "port: servers-server+1", 48, "m1 interface 0 would be port 5" },
	{ "switch: d-{interface}", "switch: d-{(server+interface)%2}", 48,
	  "the same interface of all servers must share" },
	{ "switch: d-{interface}", "switch: o-x-0-{interface}", 48,
	  "used twice: for c1 -x 0,0 of fabric pod and for m1 interface 0 of fabric rail" },
	{ "degree: 2", "degree: 64", 47, "needs 256 switch ports, but the switches" },
	/* the map */
	{ "cube: c1, dim", "cube: c2, dim", 40, "no cube c2" },
	{ "dim: x", "dim: w", 40, "dim must be x, y or z" },
	{ "position: [0, 1]", "position: [0, 2]", 40, "position must be a number of 0 to 1" },
	{ "position: [0, 1]", "position: [0]", 40, "two coordinates other than x" },
	{ "position: [0, 1]", "position: 0", 40, "two coordinates other than x" },
	{ "sign: '+'", "sign: 0", 40, "sign must be + or -" },
	{ "switch: o-x-0-1, port: 8", "switch: o-x-0-9, port: 8", 40, "o-x-0-9 is not described" },
	{ "switch: o-x-0-1, port: 8", "switch: o-x-0-0, port: 8", 40, "must share a switch" },
	{ "switch: o-x-0-1, port: 8", "switch: o-x-0-1, port: 9", 40,
	  "port must be a number of 1 to 8" },
	{ "switch: o-x-0-1, port: 8", "switch: o-x-0-1, port: 4", 40,
	  "port 4 of switch o-x-0-1 is used twice" },
	{ "switch: o-x-0-1, port: 8", "switch: o-x-0-1", 40, "needs the key \"port\"" },
	{ "port: 8}\n",
	  "port: 8}\n        - {cube: c1, dim: x, position: [0, 1], sign: +, switch: o-x-0-1, port: 7}\n",
	  41, "map names c1 +x 0,1 twice" },
	{ "      switch: o-{dim}-{a}-{b}\n      port: 2*cube+sign+1\n", "", 37,
	  "c0 +x 0,0 has no port" },
	{ "      port: servers-server\n",
	  "      port: servers-server\n      map: [{node: n1, interface: 0, switch: d-0, port: 1}]\n",
	  49, "the fabric rail has no node n1" },
	{ "      port: servers-server\n",
	  "      port: servers-server\n      map: [{node: m1, interface: 2, switch: d-0, port: 1}]\n",
	  49, "interface must be a number of 0 to 1" },
	{ "      switch: d-{interface}\n      port: servers-server\n", "      map: []\n", 47,
	  "m1 interface 0 has no port" },
	{ "      switch: d-{interface}\n      port: servers-server\n", "      {}\n", 47,
	  "needs a rule" },
/* interfaces and forwarding of servers; those of cubes are in test_load_links.c */
#define WITH(text) "    degree: 2\n", "    degree: 2\n" text
#define TWO "    interfaces: [{name: e0}, {name: e1}]\n"
#define DUPLEX(text) "    degree: 2\n    directed: true\n", "    degree: 2\n" text
	{ WITH("    interfaces: [{name: e0}]\n"), 45, "interfaces lists 1, but rail has 2" },
	{ WITH("    interfaces: e0\n"), 45, "must be a list" },
	{ WITH("    interfaces: [e0, e1]\n"), 45, "an interface must be a mapping" },
	{ WITH("    interfaces: [{rdma: m}, {name: e1}]\n"), 45, "needs the key \"name\"" },
	{ WITH("    interfaces:\n    - name: e0\n    - name: e0\n"), 47,
	  "the device e0 stands twice, at interfaces 0 and 1" },
	{ WITH("    interfaces: [{name: e0, forward: e0}, {name: e1}]\n"), 45,
	  "the device e0 stands twice" },
	{ WITH("    interfaces: [{name: e0, forward: f}, {name: f}]\n"), 45,
	  "the device f stands twice" },
	{ WITH("    interfaces: [{name: e0, forward: f}, {name: e1, forward: f}]\n"), 45,
	  "the device f stands twice" },
	{ WITH("    interfaces: [{name: e0, rdma: m}, {name: e1, rdma: m}]\n"), 45,
	  "the RDMA device m stands twice" },
	{ WITH("    interfaces: [{name: e0, rdma: m:0}, {name: e1}]\n"), 45, "not an RDMA device" },
	{ WITH("    interfaces: [{name: e0, rdma: ':1'}, {name: e1}]\n"), 45,
	  "not an RDMA device" },
	{ WITH("    interfaces: [{name: -e0}, {name: e1}]\n"), 45,
	  "not the name of a network device" },
	{ WITH("    interfaces: [{name: e0 up}, {name: e1}]\n"), 45,
	  "not the name of a network device" },
	{ WITH("    interfaces: [{name: e012345678901234}, {name: e1}]\n"), 45,
	  "not the name of a network device" },
	{ WITH("    interfaces:\n    - name: e0\n      adress: 10.0.0.0/8\n    - name: e1\n"), 47,
	  "did you mean \"address\"" },
	{ WITH("    interfaces:\n    - name: e0\n      address: 10.0.0.1/8\n    - name: e1\n"), 47,
	  "bits behind its prefix" },
	{ WITH("    interfaces:\n    - name: e0\n      address: 10.0.0.0/30\n    - name: e1\n"), 47,
	  "no room for the addresses of 4 servers" },
	{ WITH("    interfaces:\n    - name: e0\n      address: ten\n    - name: e1\n"), 47,
	  "not an IPv4 prefix" },
	{ WITH("    interfaces:\n    - name: e0\n      address: 10.0.0.0/33\n    - name: e1\n"), 47,
	  "not an IPv4 prefix" },
	{ WITH("    interfaces:\n    - name: e0\n      address: 10.0.0.{254+server}\n    - name: e1\n"),
	  47, "for m3 this makes \"10.0.0.256\"" },
	{ WITH("    interfaces:\n    - name: e0\n      address: 10.0.0.{srver}\n    - name: e1\n"),
	  47, "address, for m1: there is no variable \"srver\"" },
	{ WITH("    interfaces:\n    - name: e0\n      address: 224.0.0.{server}\n    - name: e1\n"),
	  47, "224.0.0.0 of m1 is not an address that a host can have" },
	{ WITH("    interfaces:\n    - name: e0\n      address: 10.0.0.{server/2}\n    - name: e1\n"),
	  47, "the address 10.0.0.0 stands twice: m1 and m2 would have it" },
	{ WITH("    interfaces:\n    - {name: e0, address: 10.0.0.0/24}\n    - {name: e1, address: 10.0.0.0/24}\n"),
	  47, "on several interfaces; the key \"forwarding\"" },
	{ WITH("    forwarding: {address: 10.0.0.0/24}\n"), 45,
	  "forwarding needs the key \"interfaces\"" },
	{ WITH(TWO "    forwarding: {backend: auto}\n"), 46, "needs the key \"address\"" },
	{ WITH(TWO "    forwarding: {backend: ebpf, address: 10.0.0.0/24}\n"), 46,
	  "none, auto, flower, bpf or routes" },
	{ WITH(TWO "    forwarding: {backend: auto, address: '10.0.0.{interface}'}\n"), 46,
	  "no variable \"interface\"" },
	{ WITH("    interfaces: [{name: e0, address: 10.0.0.0/24}, {name: e1}]\n"
	       "    forwarding: {address: 10.0.0.0/24}\n"),
	  46,
	  "10.0.0.1 stands twice: m1 and m1 would have it, on an interface and for forwarding" },
	{ WITH("    interfaces: [{name: e0, speed: 400G}, {name: e1}]\n"), 45,
	  "speed must be a number" },
	{ WITH("    interfaces: [{name: e0, speed: 0}, {name: e1}]\n"), 45,
	  "speed must be a number of 1 to" },
	{ DUPLEX("    subnets: 10.0.0.0/24\n"), 45, "subnets needs the key \"interfaces\"" },
	{ DUPLEX(TWO "    subnets: 10.0.0.0\n"), 46, "not an IPv4 prefix such as" },
	{ DUPLEX(TWO "    subnets: 10.0.0.0/32\n"), 46, "not an IPv4 prefix such as" },
	{ DUPLEX(TWO "    subnets: 10.0.0.1/24\n"), 46,
	  "not a prefix of addresses that hosts can have" },
	{ DUPLEX(TWO "    subnets: 224.0.0.0/24\n"), 46,
	  "not a prefix of addresses that hosts can have" },
	{ DUPLEX(TWO "    subnets: 10.0.0.0/29\n"), 46,
	  "has 8 addresses, but 4 servers with 2 interfaces need two for each, 16" },
	{ WITH(TWO "    subnets: 10.0.0.0/24\n"), 46, "over directed circuits" },
	{ DUPLEX(TWO "    forwarding: {address: 10.0.0.0/24}\n    subnets: 10.0.0.0/16\n"), 47,
	  "10.0.0.1 of a server lies in it" },
	{ "    extents: 4x2x1\n", "    extents: 4x2x1\n    forwarding: {address: 10.0.0.0/24}\n",
	  53, "a static fabric has no key \"forwarding\"" },
};

static char *edited(const struct refusal *refusal);

static void interfaces_are_read(void **state)
{
	const struct refusal with = {
		DUPLEX("    interfaces:\n"
		       "      - {name: ens3, rdma: 'mlx5_0:1', address: 10.1.0.0/24, speed: 400000}\n"
		       "      - {name: ens4, forward: ens4f1, address: '10.2.{server}.{interface}/30'}\n"
		       "    subnets: 10.128.0.0/28\n"
		       "    forwarding: {address: '10.192.0.{10 + server}'}\n"),
		0, NULL
	};
	struct ocs_error err = { 0 };
	char *yaml = edited(&with), address[OCS_ADDRESS_TEXT], *told;
	struct ocs_fabric *f =
		ocs_config_take_fabric(ocs_config_parse(yaml, strlen(yaml), "ocs.yaml", &err));
	const struct ocs_section *rail;

	(void)state;
	if (!f)
		fail_msg("%s", err.text);
	rail = &f->sections[1];
	assert_string_equal(ocs_section_interface_name(rail, 0), "ens3");
	assert_string_equal(rail->interfaces[0].rdma, "mlx5_0:1");
	assert_int_equal(rail->interfaces[0].speed, 400000);
	assert_int_equal(rail->interfaces[1].speed, 0);
	assert_int_equal(rail->subnets, 0x0a800000);
	assert_int_equal(rail->subnets_prefix, 28);
	assert_string_equal(ocs_section_interface_forward(rail, 0), "ens3");
	assert_null(rail->interfaces[1].rdma);
	assert_string_equal(ocs_section_interface_forward(rail, 1), "ens4f1");
	assert_int_equal(ocs_section_interface_address(rail, 3, 0, address), 24);
	assert_string_equal(address, "10.1.0.4");
	assert_int_equal(ocs_section_interface_address(rail, 3, 1, address), 30);
	assert_string_equal(address, "10.2.3.1");
	assert_int_equal(rail->forwarding, OCS_FORWARDING_AUTO);
	assert_int_equal(ocs_section_host_address(rail, 2, address), 0);
	assert_string_equal(address, "10.192.0.12");
	told = ocs_fabric_describe(f);
	assert_non_null(strstr(told,
			       "interfaces: ens3 (mlx5_0:1) 400 Gb/s 10.1.0.1/24, ens4 forwards by"
			       " ens4f1 10.2.0.1/30"));
	assert_non_null(strstr(told, "forwarding: auto, 10.192.0.10 (m1) ... 10.192.0.13 (m4)"));
	free(told);
	ocs_fabric_destroy(f);
	free(yaml);

	/* where nothing is said, nothing is answered */
	f = ocs_config_take_fabric(ocs_config_parse(base, sizeof(base) - 1, "ocs.yaml", &err));
	rail = &f->sections[1];
	assert_null(ocs_section_interface_name(rail, 1));
	assert_null(rail->interfaces);
	assert_null(ocs_section_interface_forward(rail, 1));
	assert_int_equal(ocs_section_interface_address(rail, 0, 0, address), -1);
	assert_int_equal(ocs_section_host_address(rail, 0, address), -1);
	assert_int_equal(rail->forwarding, OCS_FORWARDING_NONE);
	ocs_fabric_destroy(f);
}

/* BASE with the first FIND replaced; the caller frees it. */
static char *edited(const struct refusal *refusal)
{
	const char *at = strstr(base, refusal->find);

	if (!at)
		fail_msg("the base has no \"%s\"", refusal->find);
	return ocs_asprintf("%.*s%s%s", (int)(at - base), base, refusal->replace,
			    at + strlen(refusal->find));
}

static void every_refusal_names_its_line(void **state)
{
	int wrong = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		char *text = edited(&refusals[i]), *place;
		struct ocs_error err = { 0 };
		struct ocs_config *config;

		place = ocs_asprintf("etc/ocs.yaml:%d: ", refusals[i].line);
		config = ocs_config_parse(text, strlen(text), "etc/ocs.yaml", &err);
		if (config || err.code != OCS_USAGE || strstr(err.text, place) != err.text ||
		    !strstr(err.text, refusals[i].word)) {
			print_error("\"%s\" -> \"%s\": wanted \"%s...%s\", got \"%s\"\n",
				    refusals[i].find, refusals[i].replace, place, refusals[i].word,
				    config ? "accepted" : err.text);
			wrong++;
		}
		ocs_config_destroy(config);
		free(place);
		free(text);
	}
	assert_int_equal(wrong, 0);
}

static void no_switches(void **state)
{
	static const char text[] = "version: 1\nfabrics:\n- {name: r, kind: rails, nodes: a,"
				   " rails: 1, ports: {switch: x, port: 1}}\n";
	struct ocs_error err = { 0 };

	(void)state;
	assert_null(ocs_config_parse(text, sizeof(text) - 1, "f", &err));
	assert_non_null(strstr(err.text, "f:3: the fabric r needs 1 switch ports"));
	assert_null(ocs_config_parse("", 0, "f", &err));
	assert_string_equal(err.text, "f:1: the file is empty");
	assert_null(ocs_config_parse("# nothing\n", 10, "f", &err));
	assert_string_equal(err.text, "f:1: the file is empty");
}

/* An error structure is optional. */
static void without_error(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		char *text = edited(&refusals[i]);

		assert_null(ocs_config_parse(text, strlen(text), "f", NULL));
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_is_read),
		cmocka_unit_test(interfaces_are_read),
		cmocka_unit_test(every_refusal_names_its_line),
		cmocka_unit_test(no_switches),
		cmocka_unit_test(without_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
