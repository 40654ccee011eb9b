/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The keys `interfaces` and `subnets` of cubes. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/config/config.h"
#include "src/util/error.h"
#include "src/util/text.h"

/* A static torus of tiles 2x1x1: ten links leave a tile. */
static const char base[] = "version: 1\n"
			   "fabrics:\n"
			   "  - name: s\n"
			   "    kind: static\n"
			   "    extents: 4x4x4\n"
			   "    tile: 2x1x1\n"
			   "    nodes: n[0-31]\n"
			   "    interfaces:\n"
			   "      - {direction: +x, name: a0, rdma: 'm0:1', speed: 400000}\n"
			   "      - {direction: -x, name: a1, rdma: m1}\n"
			   "      - {xpu: 0, direction: +y, name: a2}\n"
			   "      - {xpu: 0, direction: -y, name: a3}\n"
			   "      - {xpu: 0, direction: +z, name: a4}\n"
			   "      - {xpu: 0, direction: -z, name: a5}\n"
			   "      - {xpu: 1, direction: +y, name: a6}\n"
			   "      - {xpu: 1, direction: -y, name: a7}\n"
			   "      - {xpu: 1, direction: +z, name: a8}\n"
			   "      - {xpu: 1, direction: -z, name: a9}\n"
			   "    subnets: 10.0.0.0/22\n";

/* BASE with the first FROM replaced by TO, read. */
static struct ocs_config *parse(const char *from, const char *to, struct ocs_error *err)
{
	const char *at = strstr(base, from);
	struct ocs_config *config;
	char *text;

	assert_non_null(at);
	text = ocs_asprintf("%.*s%s%s", (int)(at - base), base, to, at + strlen(from));
	config = ocs_config_parse(text, strlen(text), "x.yaml", err);
	free(text);
	return config;
}

static void test_read(void **state)
{
	struct ocs_error err = { 0 };
	struct ocs_config *config = parse("s", "s", &err);
	const struct ocs_section *s;
	char *said;

	(void)state;
	if (!config)
		fail_msg("%s", err.text);
	s = &config->fabric->sections[0];
	assert_int_equal(s->ninterfaces, 10);
	assert_int_equal(s->subnets_prefix, 22);
	/* the one XPU of a tile whose link leaves it there */
	assert_int_equal(s->interfaces[0].device, 1);
	assert_int_equal(s->interfaces[1].device, 0);
	assert_int_equal(ocs_section_link_interface(s, 1, 0, OCS_PLUS), 0);
	assert_int_equal(ocs_section_link_interface(s, 0, 0, OCS_PLUS), -1);
	assert_int_equal(ocs_section_link_interface(s, 1, 2, OCS_MINUS), 9);
	assert_false(ocs_section_link_leaves(s, 1, 0, OCS_MINUS));
	said = ocs_config_describe(config);
	assert_non_null(strstr(said, "a0 +x of XPU 1 (m0:1) 400 Gb/s"));
	assert_non_null(strstr(said, "10.0.0.0/22, one for each link"));
	free(said);
	ocs_config_destroy(config);
}

static void test_refused(void **state)
{
	static const struct {
		const char *from, *to, *says;
	} cases[] = {
		{ "direction: +x", "direction: x", "x.yaml:9: direction must be +x, -x" },
		{ "direction: +x", "direction: +w", "direction must be" },
		{ "direction: +x", "direction: +xy", "direction must be" },
		{ "direction: +x, ", "", "needs the key \"direction\"" },
		{ "{xpu: 0, direction: +y", "{direction: +y", "2 XPUs of a tile have links" },
		{ "{xpu: 0, direction: +y", "{xpu: 2, direction: +y",
		  "xpu must be a number of 0 to 1" },
		{ "{direction: +x", "{xpu: 0, direction: +x",
		  "XPU 0 in direction +x stays in the tile" },
		{ "{xpu: 0, direction: -y", "{xpu: 0, direction: +y",
		  "stands twice, at interfaces 2 and 3" },
		{ "name: a9", "name: a8", "the device a8 stands twice" },
		{ "rdma: m1", "rdma: 'm0:1'", "the RDMA device m0:1 stands twice" },
		{ "name: a9", "name: a9, forward: b", "forward" },
		{ "name: a9", "name: a9, address: 10.0.0.0/8", "address" },
		{ "      - {xpu: 1, direction: -z, name: a9}\n", "",
		  "interfaces lists 9, but from a tile of s 10 links lead to others" },
		{ "10.0.0.0/22", "10.0.0.0/23", "64 XPUs with 6 links need two for each, 768" },
		{ "10.0.0.0/22", "10.0.1.0/22", "not a prefix of addresses" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ocs_error err = { 0 };

		assert_null(parse(cases[i].from, cases[i].to, &err));
		if (!strstr(err.text, cases[i].says))
			fail_msg("%s: %s", cases[i].to, err.text);
	}
}

static void test_subnets_alone(void **state)
{
	static const char text[] =
		"version: 1\nfabrics:\n  - {name: s, kind: static, extents: 2x2x2, "
		"nodes: 'n[0-7]', subnets: 10.0.0.0/16}\n";
	struct ocs_error err = { 0 };

	(void)state;
	assert_null(ocs_config_parse(text, strlen(text), "x.yaml", &err));
	assert_non_null(strstr(err.text, "names the devices of a node"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_subnets_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
