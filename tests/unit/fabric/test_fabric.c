/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Synthetic fabrics, names, geometry, ports and patches. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/config/config.h"
#include "src/fabric/fabric.h"
#include "src/util/error.h"
#include "src/util/text.h"

static struct ocs_fabric *open_good(const char *spec)
{
	struct ocs_error err = { 0 };
	struct ocs_fabric *fabric = ocs_config_take_fabric(ocs_config_open(spec, &err));

	if (!fabric)
		fail_msg("%s: %s", spec, err.text);
	return fabric;
}

static struct ocs_fabric *open_example(const char *name)
{
	char *path = ocs_asprintf("%s/examples/%s", TEST_SOURCE_DIR, name);
	struct ocs_fabric *fabric = open_good(path);

	free(path);
	return fabric;
}

static void synthetic_torus(void **state)
{
	struct ocs_fabric *fabric = open_good("torus cubes:4x4x4 cube:4x4x4 tile:2x2x1");
	const struct ocs_section *section = &fabric->sections[0];
	struct ocs_port port;
	const struct ocs_node *node;

	(void)state;
	assert_int_equal(fabric->nsections, 1);
	assert_int_equal(section->kind, OCS_TORUS);
	assert_int_equal(section->ncubes, 64);
	assert_int_equal(section->cube_xpus, 64);
	assert_int_equal(section->cube_nodes, 16);
	assert_int_equal(section->words, 1);
	assert_int_equal(fabric->nnodes, 1024);
	assert_int_equal(ocs_section_cube(section, "c63"), 63);
	assert_int_equal(ocs_section_cube(section, "c64"), -1);
	assert_ptr_equal(ocs_fabric_section(fabric, NULL), section);
	assert_ptr_equal(ocs_fabric_section(fabric, "any"), section);
	assert_ptr_equal(ocs_fabric_section_named(fabric, "torus"), section);
	assert_null(ocs_fabric_section_named(fabric, "pod"));
	/* tiles row-major, z fastest: 2 x 2 x 4 of them */
	node = ocs_fabric_node(fabric, "n21");
	assert_non_null(node);
	assert_int_equal(node->cube, 1);
	assert_int_equal(node->server, -1);
	assert_int_equal(node->origin[0], 0);
	assert_int_equal(node->origin[1], 2);
	assert_int_equal(node->origin[2], 1);
	assert_null(ocs_fabric_node(fabric, "n1024"));
	assert_int_equal(ocs_section_torus_port(fabric, section, 0, 0, 0, 0, OCS_PLUS, &port), -1);
	ocs_fabric_destroy(fabric);
}

/* A line says nothing of ocsd: every setting has its default. */
static void synthetic_settings(void **state)
{
	struct ocs_error err = { 0 };
	struct ocs_config *config = ocs_config_open("rails servers:2 rails:2", &err);

	(void)state;
	if (!config)
		fail_msg("%s", err.text);
	assert_int_equal(config->text_digest, 0);
	assert_int_equal(config->timeouts.prolog_ms, 300000);
	assert_string_equal(config->ocsd.address, "unix:/run/ocsd/ocsd.sock");
	assert_string_equal(config->ocsd.state, OCS_STATE_DEFAULT);
	assert_true(config->policies.keep_cubes_whole);
	assert_int_equal(config->limits.burst, 60);
	assert_int_equal(config->nccl.nenv, 0);
	ocs_config_destroy(config);
	ocs_config_destroy(NULL);
	assert_null(ocs_config_take_fabric(NULL));
}

/* Every XPU belongs to the node whose tile holds it, and devices count up. */
static void geometry(void **state)
{
	static const char *const specs[] = { "torus cubes:3 cube:4x4x4 tile:2x2x1",
					     "torus cubes:2x1x1 cube:8x8x8 tile:4x2x1",
					     "torus cubes:1 cube:2x2x2", "static:6x4x2 tile:3x1x2",
					     "static:16x16x16 tile:2x2x1" };

	(void)state;
	for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
		struct ocs_fabric *fabric = open_good(specs[i]);
		const struct ocs_section *s = &fabric->sections[0];
		int *seen = ocs_calloc((size_t)fabric->nnodes, sizeof(int)), at[3], bit = 0;

		assert_int_equal(fabric->nnodes, s->ncubes * s->cube_nodes);
		for (int n = 0; n < s->ncubes * s->cube_xpus; n++) {
			int cube = n / s->cube_xpus, node, device;

			bit = n % s->cube_xpus;
			at[2] = bit % s->edge[2];
			at[1] = bit / s->edge[2] % s->edge[1];
			at[0] = bit / s->edge[2] / s->edge[1];
			assert_int_equal(ocs_section_bit(s, at), bit);
			node = ocs_section_node_at(s, cube, at);
			assert_in_range(node, 0, fabric->nnodes - 1);
			assert_int_equal(fabric->nodes[node].cube, cube);
			for (int axis = 0; axis < 3; axis++)
				assert_in_range(at[axis], fabric->nodes[node].origin[axis],
						fabric->nodes[node].origin[axis] + s->tile[axis] -
							1);
			/* XPUs of a node come in row-major order: devices too */
			device = ocs_section_device(s, at);
			assert_int_equal(device, seen[node]);
			seen[node]++;
		}
		free(seen);
		ocs_fabric_destroy(fabric);
	}
}

static void synthetic_servers(void **state)
{
	struct ocs_fabric *fabric = open_good("direct servers:12 degree:4 directed xpus:8");
	struct ocs_port port;

	(void)state;
	assert_int_equal(fabric->sections[0].kind, OCS_DIRECT);
	assert_int_equal(fabric->sections[0].nservers, 12);
	assert_int_equal(fabric->sections[0].degree, 4);
	assert_int_equal(fabric->sections[0].server_xpus, 8);
	assert_true(fabric->sections[0].directed);
	assert_int_equal(ocs_fabric_node(fabric, "n11")->server, 11);
	assert_int_equal(ocs_section_server_port(fabric, &fabric->sections[0], 0, 0, &port), -1);
	ocs_fabric_destroy(fabric);
	fabric = open_good("rails servers:16 rails:8");
	assert_int_equal(fabric->sections[0].kind, OCS_RAILS);
	assert_int_equal(fabric->sections[0].degree, 8);
	assert_int_equal(fabric->sections[0].server_xpus, 0);
	assert_int_equal(fabric->sections[0].nic_ports, 1);
	assert_int_equal(ocs_section_devices(&fabric->sections[0]), 8);
	ocs_fabric_destroy(fabric);
	fabric = open_good("rails servers:16 rails:8 ports:2");
	assert_int_equal(fabric->sections[0].degree, 8);
	assert_int_equal(fabric->sections[0].nic_ports, 2);
	assert_int_equal(ocs_section_devices(&fabric->sections[0]), 16);
	assert_int_equal(ocs_section_nic_port(&fabric->sections[0], 0, 0, 1, &port), -1);
	ocs_fabric_destroy(fabric);
}

static void synthetic_refused(void **state)
{
	static const char *const cases[][2] = {
		{ "", "empty" },
		{ "   ", "empty" },
		{ "tori cubes:1", "not a fabric" },
		{ "torus", "lacks cubes" },
		{ "torus cubes:0", "cubes:0" },
		{ "torus cubes:2 cube:4x4", "three extents" },
		{ "torus cubes:2 cube:4x4x4x4", "three extents" },
		{ "torus cubes:2 cube:9x9x9", "1 to 8" },
		{ "torus cubes:2 cube:4x4x2", "not a cube" },
		{ "torus cubes:2 tile:3x1x1", "does not divide" },
		{ "torus cubes:2 tile:0x1x1", "three extents" },
		{ "torus cubes:2 cubes:3", "twice" },
		{ "torus cubes:2 rails:3", "not a word" },
		{ "torus cubes:65536 cube:8x8x8", "at most" },
		{ "torus cubes:99999x99999x99999", "cubes:99999x" },
		{ "torus cubes:65536x65536x65536", "more than" },
		{ "static", "static:" },
		{ "static:17x1x1", "1 to 16" },
		{ "static:4x4x4 cube:4x4x4", "not a word" },
		{ "direct servers:12", "lacks degree" },
		{ "direct servers:12 degree:65", "1 to 64" },
		{ "direct servers:12 degree:-1", "1 to 64" },
		{ "direct servers:2 degree:2 directed:yes", "no value" },
		{ "torus cubes:1x1x1 threading:yes", "no value" },
		{ "static:4x4x4 threading", "not a word" },
		{ "rails servers:16 rails:8 directed", "not a word" },
		{ "rails:4", "not a fabric" },
		{ "rails servers:4 rails:2 ports:3", "1 to 2" },
		{ "direct servers:4 degree:2 ports:2", "not a word" },
		{ "torus a b c d e f g h", "too many" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ocs_error err = { 0 };

		if (ocs_config_open(cases[i][0], &err))
			fail_msg("\"%s\" was accepted", cases[i][0]);
		assert_int_equal(err.code, OCS_USAGE);
		if (!strstr(err.text, cases[i][1]))
			fail_msg("\"%s\": \"%s\" does not say \"%s\"", cases[i][0], err.text,
				 cases[i][1]);
	}
}

static void torus_ports(void **state)
{
	struct ocs_fabric *fabric = open_example("ocs-torus.yaml");
	const struct ocs_section *section = &fabric->sections[0];
	int *uses = ocs_calloc((size_t)fabric->nswitches * 17, sizeof(int));

	(void)state;
	assert_int_equal(fabric->nswitches, 48);
	assert_int_equal(fabric->nnodes, 64);
	for (int item = 0; item < 4 * 3 * 16 * 2; item++) {
		int sign = item % 2, b = item / 2 % 4, a = item / 8 % 4;
		int dim = item / 32 % 3, cube = item / 96;
		char name[32], label[32], *text;
		struct ocs_port port;

		assert_int_equal(
			ocs_section_torus_port(fabric, section, cube, dim, a, b, sign, &port), 0);
		snprintf(name, sizeof(name), "ocs-%c-%d-%d", "xyz"[dim], a, b);
		assert_string_equal(fabric->switches[port.sw].name, name);
		assert_int_equal(port.port, 2 * cube + sign + 1);
		assert_int_equal(uses[port.sw * 17 + port.port]++, 0);
		snprintf(label, sizeof(label), "c%d %c%c %d,%d", cube, sign ? '-' : '+', "xyz"[dim],
			 a, b);
		text = ocs_fabric_port_label(fabric, port);
		assert_string_equal(text, label);
		free(text);
	}
	free(uses);
	ocs_fabric_destroy(fabric);
}

static void labels_of_nothing(void **state)
{
	static const struct ocs_port nothing[] = { { 0, 9 },  { 0, 16 }, { 0, 17 }, { 0, 0 },
						   { -1, 1 }, { 48, 1 }, { 0, -3 } };
	struct ocs_fabric *fabric = open_example("ocs-torus.yaml");
	const struct ocs_section *section = &fabric->sections[0];
	struct ocs_port port;

	(void)state;
	for (size_t i = 0; i < sizeof(nothing) / sizeof(nothing[0]); i++) {
		char *text = ocs_fabric_port_label(fabric, nothing[i]);

		assert_string_equal(text, "unused");
		free(text);
	}
	assert_int_equal(ocs_section_torus_port(fabric, section, 4, 0, 0, 0, 0, &port), -1);
	assert_int_equal(ocs_section_torus_port(fabric, section, 0, 3, 0, 0, 0, &port), -1);
	assert_int_equal(ocs_section_torus_port(fabric, section, 0, 0, 4, 0, 0, &port), -1);
	assert_int_equal(ocs_section_torus_port(fabric, section, 0, 0, 0, -1, 0, &port), -1);
	assert_int_equal(ocs_section_torus_port(fabric, section, 0, 0, 0, 0, 2, &port), -1);
	assert_int_equal(ocs_section_server_port(fabric, section, 0, 0, &port), -1);
	ocs_fabric_destroy(fabric);
}

static void mixed_example(void **state)
{
	struct ocs_fabric *fabric = open_example("ocs-mixed.yaml");
	const struct ocs_section *pod = ocs_fabric_section(fabric, "tpu-debug");
	const struct ocs_section *direct = ocs_fabric_section(fabric, "gpu");
	const struct ocs_section *rails = ocs_fabric_section(fabric, "batch");
	struct ocs_port port;
	char *text;

	(void)state;
	assert_null(ocs_fabric_section(fabric, NULL));
	assert_string_equal(pod->name, "pod");
	assert_string_equal(direct->name, "direct");
	assert_string_equal(rails->name, "rails");
	assert_int_equal(ocs_fabric_node(fabric, "t16")->cube, 1);
	assert_int_equal(ocs_fabric_node(fabric, "d3")->server, 3);
	assert_int_equal(ocs_fabric_node(fabric, "r3")->section, rails->index);
	/* the explicit map swaps two ports of the rule */
	assert_int_equal(ocs_section_torus_port(fabric, pod, 5, 0, 0, 0, OCS_PLUS, &port), 0);
	assert_int_equal(port.port, 64);
	text = ocs_fabric_port_label(fabric, port);
	assert_string_equal(text, "c5 +x 0,0");
	free(text);
	assert_int_equal(ocs_section_torus_port(fabric, pod, 63, 0, 0, 0, OCS_PLUS, &port), 0);
	assert_int_equal(port.port, 6);
	assert_int_equal(ocs_section_torus_port(fabric, pod, 5, 0, 0, 0, OCS_MINUS, &port), 0);
	assert_int_equal(port.port, 70);
	assert_int_equal(ocs_section_server_port(fabric, direct, 11, 3, &port), 0);
	assert_string_equal(fabric->switches[port.sw].name, "direct-3");
	assert_int_equal(port.port, 12);
	text = ocs_fabric_port_label(fabric, port);
	assert_string_equal(text, "d11 interface 3");
	free(text);
	assert_int_equal(ocs_section_server_port(fabric, direct, 12, 0, &port), -1);
	assert_int_equal(ocs_section_server_port(fabric, direct, 0, 4, &port), -1);
	ocs_fabric_destroy(fabric);
}

static void describes(void **state)
{
	static const char *const files[] = { "ocs-torus.yaml", "ocs-mixed.yaml", "ocs-direct.yaml",
					     "ocs-rails.yaml", "ocs-region.yaml" };
	static const char *const expected[] = { "c0 +x 0,3 -> ocs-x-0-3 port 1\n",
						"rails: rails, 16 servers with 8 rails",
						"d11 interface 3 -> direct-3 port 12\n",
						"16 of 32 ports used each\n",
						"2 regions of 8 servers, 2 packet NICs\n" };

	(void)state;
	for (int i = 0; i < 5; i++) {
		struct ocs_fabric *fabric = open_example(files[i]);
		char *text = ocs_fabric_describe(fabric);

		if (!strstr(text, expected[i]))
			fail_msg("%s: no \"%s\" in\n%s", files[i], expected[i], text);
		free(text);
		ocs_fabric_destroy(fabric);
	}
}

/* The example of the manual is a correct file. */
static void manual_example(void **state)
{
	struct ocs_error err = { 0 };
	char *text = ocs_file_read(TEST_SOURCE_DIR "/doc/man5/ocs.yaml.5", 1 << 20, NULL, &err);
	struct ocs_fabric *fabric;
	char *start, *end;

	(void)state;
	assert_non_null(text);
	start = strstr(text, "\nversion: 1\n");
	assert_non_null(start);
	end = strstr(start, "\n.Ed\n");
	assert_non_null(end);
	fabric = ocs_config_take_fabric(
		ocs_config_parse(start + 1, (size_t)(end - start), "manual", &err));
	if (!fabric)
		fail_msg("%s", err.text);
	assert_int_equal(fabric->nnodes, 64);
	assert_int_equal(fabric->nswitches, 48);
	ocs_fabric_destroy(fabric);
	free(text);
}

static void patches(void **state)
{
	struct ocs_switch duplex = { .name = "s", .size = 32 };
	struct ocs_switch bidi = { .name = "s", .size = 32, .bidi = true };
	struct ocs_patch patch[2];
	struct ocs_error err = { 0 };

	(void)state;
	assert_int_equal(ocs_switch_ports(&duplex), 32);
	assert_int_equal(ocs_switch_ports(&bidi), 64);
	assert_int_equal(ocs_switch_patches(&duplex, 1, 4, patch, &err), 2);
	assert_int_equal(patch[0].in, 1);
	assert_int_equal(patch[0].out, 36);
	assert_int_equal(patch[1].in, 4);
	assert_int_equal(patch[1].out, 33);
	assert_int_equal(ocs_switch_patches(&duplex, 4, 4, patch, &err), -1);
	assert_non_null(strstr(err.text, "itself"));
	assert_int_equal(ocs_switch_patches(&duplex, 0, 4, patch, &err), -1);
	assert_int_equal(ocs_switch_patches(&duplex, 4, 33, patch, &err), -1);
	assert_non_null(strstr(err.text, "1 to 32"));
	for (int turn = 0; turn < 2; turn++) {
		assert_int_equal(
			ocs_switch_patches(&bidi, turn ? 40 : 3, turn ? 3 : 40, patch, &err), 1);
		assert_int_equal(patch[0].in, 3);
		assert_int_equal(patch[0].out, 40);
	}
	assert_int_equal(ocs_switch_patches(&bidi, 1, 32, patch, &err), -1);
	assert_non_null(strstr(err.text, "same side"));
	assert_int_equal(ocs_switch_patches(&bidi, 33, 64, patch, &err), -1);
	assert_int_equal(ocs_switch_patches(&bidi, 1, 65, patch, &err), -1);
}

static void files_missing(void **state)
{
	struct ocs_error err = { 0 };

	(void)state;
	assert_null(ocs_config_open("/nowhere/ocs.conf", &err));
	assert_int_equal(err.code, OCS_ERROR);
	assert_non_null(strstr(err.text, "/nowhere/ocs.conf"));
	assert_null(ocs_config_open("missing.yaml", &err));
	assert_int_equal(err.code, OCS_ERROR);
	assert_null(ocs_config_open("missing.yml", &err));
	assert_int_equal(err.code, OCS_ERROR);
}

/* 4096 nodes and 98304 ports; the wanted figure is far below 100 ms of processor time, the limit
 * leaves room for slow machines and sanitizers. */
static void loads_fast(void **state)
{
	static const char text[] =
		"version: 1\n"
		"switches:\n"
		"  - {name: 'o-[x,y,z]-[0-3]-[0-3]', driver: tl1, address: '{name}:1',\n"
		"     credentials: /c, size: 256, ports: bidi}\n"
		"fabrics:\n"
		"  - name: pod\n"
		"    kind: torus\n"
		"    cube: 4x4x4\n"
		"    tile: 2x2x1\n"
		"    cubes: {names: 'c[0-255]', nodes: 'n[0-4095]'}\n"
		"    ports: {switch: 'o-{dim}-{a}-{b}', port: 256*sign + cube + 1}\n";
	struct ocs_error err = { 0 };
	clock_t start = clock();
	struct ocs_fabric *fabric =
		ocs_config_take_fabric(ocs_config_parse(text, sizeof(text) - 1, "t", &err));
	clock_t took = clock() - start;

	(void)state;
	if (!fabric)
		fail_msg("%s", err.text);
	assert_int_equal(fabric->nnodes, 4096);
	assert_true(took < CLOCKS_PER_SEC);
	ocs_fabric_destroy(fabric);
}

static void digest_of(const char *cubes, const char *tile, const char *port, const char *more,
		      char digest[OCS_DIGEST_TEXT])
{
	char *text = ocs_asprintf(
		"version: 1\n%sswitches:\n"
		"  - {name: \"o-[x,y,z]-[0-3]-[0-3]\", driver: tl1, dialect: polatis, "
		"address: \"h:{1000+index}\", credentials: /c, size: 16, ports: duplex}\n"
		"fabrics:\n  - name: pod\n    kind: torus\n    cube: 4x4x4\n    tile: %s\n    cubes:\n%s"
		"    ports: {switch: \"o-{dim}-{a}-{b}\", port: %s}\n",
		more, tile, cubes, port);
	struct ocs_error err = { 0 };
	struct ocs_fabric *fabric =
		ocs_config_take_fabric(ocs_config_parse(text, strlen(text), "t.yaml", &err));

	if (!fabric)
		fail_msg("%s", err.text);
	ocs_fabric_digest(fabric, digest);
	ocs_fabric_destroy(fabric);
	free(text);
}

#define CUBE(name, nodes) "      - {name: " name ", nodes: \"n[" nodes "]\"}\n"

/* Alike where placements mean the same, different where they do not. */
static void digests(void **state)
{
	static const struct {
		const char *cubes, *tile, *port, *more;
		bool same;
	} cases[] = {
		{ CUBE("a", "0-15") CUBE("b", "16-31"), "2x2x1", "2*cube+sign+1", "", true },
		{ CUBE("a", "0-15") CUBE("b", "16-31"), "2x2x1", "1+2*cube+sign",
		  "timeouts: {poll: 7s}\n", true },
		{ CUBE("b", "16-31") CUBE("a", "0-15"), "2x2x1", "2*cube+sign+1", "", false },
		{ CUBE("a", "0-15"), "2x2x1", "2*cube+sign+1", "", false },
		{ CUBE("a", "0-15") CUBE("c", "16-31"), "2x2x1", "2*cube+sign+1", "", false },
		{ CUBE("a", "0-15") CUBE("b", "17-32"), "2x2x1", "2*cube+sign+1", "", false },
		{ CUBE("a", "0-15") CUBE("b", "16-31"), "4x1x1", "2*cube+sign+1", "", false },
		{ CUBE("a", "0-15") CUBE("b", "16-31"), "2x2x1", "2*cube+2-sign", "", false },
		{ CUBE("a", "0-15") CUBE("b", "16-31"), "2x2x1", "3*cube+sign+1", "", false },
	};
	char first[OCS_DIGEST_TEXT], other[OCS_DIGEST_TEXT];
	size_t i;

	(void)state;
	digest_of(cases[0].cubes, cases[0].tile, cases[0].port, cases[0].more, first);
	assert_int_equal(strlen(first), 16);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		digest_of(cases[i].cubes, cases[i].tile, cases[i].port, cases[i].more, other);
		assert_int_equal(!strcmp(first, other), cases[i].same);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(synthetic_torus),   cmocka_unit_test(synthetic_settings),
		cmocka_unit_test(geometry),	     cmocka_unit_test(synthetic_servers),
		cmocka_unit_test(synthetic_refused), cmocka_unit_test(torus_ports),
		cmocka_unit_test(labels_of_nothing), cmocka_unit_test(mixed_example),
		cmocka_unit_test(describes),	     cmocka_unit_test(manual_example),
		cmocka_unit_test(patches),	     cmocka_unit_test(files_missing),
		cmocka_unit_test(loads_fast),	     cmocka_unit_test(digests),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
