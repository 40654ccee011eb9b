/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Sections of regions: their division, switches, NICs and what is refused. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "src/config/config.h"
#include "src/util/error.h"
#include "src/util/text.h"

#define HEAD                                                                           \
	"version: 1\nswitches:\n- {name: 's[0-1]', driver: tl1, dialect: polatis,"     \
	" address: '127.0.0.1:{2000 + index}', credentials: /c, size: 16}\nfabrics:\n" \
	"- {name: moe, kind: region, nodes: 'n[0-6]', degree: 2, xpus: 8"

#define RULE \
	", ports: {switch: 's{region}', port: server % region_servers * degree + interface + 1}"
#define NICS ", interfaces: [{name: a, numa: 1}, {name: b}]"
#define ADDRESSES                                                      \
	", interfaces: [{name: a, address: '10.1.0.{server + 1}/24'}," \
	" {name: b, address: '10.2.0.{server + 1}/24'}]"

static struct ocs_config *regions_open(const char *rest, struct ocs_error *err)
{
	struct ocs_text text = { 0 };
	struct ocs_config *config;

	ocs_text_add(&text, HEAD "%s}\n", rest);
	config = ocs_config_parse(text.data, text.length, "f", err);
	ocs_text_free(&text);
	return config;
}

static void test_regions(void **state)
{
	struct ocs_error err = { 0 };
	struct ocs_config *config = regions_open(", region_servers: 4" NICS RULE, &err);
	const struct ocs_fabric *fabric;
	const struct ocs_section *moe;
	struct ocs_port port;

	(void)state;
	if (!config)
		fail_msg("%s", err.text);
	fabric = config->fabric;
	moe = &fabric->sections[0];
	assert_int_equal(moe->nregions, 2);
	assert_int_equal(moe->packet_nics, 6);
	assert_int_equal(ocs_section_region(moe, 3), 0);
	assert_int_equal(ocs_section_region(moe, 4), 1);
	assert_int_equal(ocs_section_region_first(moe, 1), 4);
	assert_int_equal(ocs_section_region_size(moe, 0), 4);
	assert_int_equal(ocs_section_region_size(moe, 1), 3);
	assert_string_equal(ocs_fabric_node_unit(fabric, 0), "moe.0");
	assert_string_equal(ocs_fabric_node_unit(fabric, 6), "moe.1");
	assert_int_equal(moe->interfaces[0].numa, 1);
	assert_int_equal(moe->interfaces[1].numa, -1);
	assert_int_equal(ocs_section_server_port(fabric, moe, 5, 1, &port), 0);
	assert_int_equal(port.sw, 1);
	assert_int_equal(port.port, 4);
	assert_false(moe->job_addresses);
	ocs_config_destroy(config);
	config = regions_open(", tcp: true" ADDRESSES RULE, &err);
	if (!config)
		fail_msg("%s", err.text);
	assert_true(config->fabric->sections[0].job_addresses);
	ocs_config_destroy(config);
	config = regions_open(", tcp: false" RULE, &err);
	assert_non_null(config);
	assert_false(config->fabric->sections[0].job_addresses);
	ocs_config_destroy(config);
}

static void test_defaults(void **state)
{
	struct ocs_error err = { 0 };
	struct ocs_config *config = regions_open(RULE, &err);

	(void)state;
	assert_non_null(config);
	assert_int_equal(config->fabric->sections[0].nregions, 1);
	assert_string_equal(ocs_fabric_node_unit(config->fabric, 6), "moe");
	ocs_config_destroy(config);
	config = ocs_config_open("region servers:16 degree:6", &err);
	assert_int_equal(config->fabric->sections[0].packet_nics, 1);
	ocs_config_destroy(config);
	config = ocs_config_open("region servers:16 degree:6 packets:3 xpus:8 region:8", &err);
	assert_int_equal(config->fabric->sections[0].packet_nics, 3);
	assert_int_equal(config->fabric->sections[0].nregions, 2);
	ocs_config_destroy(config);
}

static void test_refused(void **state)
{
	static const char *const refused[][2] = {
		{ ", region_servers: 8" RULE, "region_servers must be" },
		{ ", region_servers: 0" RULE, "region_servers must be" },
		{ ", change_ms: -1" RULE, "change_ms must be" },
		{ ", change_limit_ms: 0" RULE, "change_limit_ms must be" },
		{ ", packet_nics: 0" RULE, "packet_nics must be" },
		{ ", ports: {switch: 's{interface}', port: server + 1}",
		  "all interfaces of the servers of one region must share a switch" },
		{ RULE ", interfaces: [{name: a, numa: -1}, {name: b}]", "numa" },
		{ RULE ", interfaces: [{name: a}]", "interfaces lists 1, but moe has 2" },
		{ RULE ", tcp: true",
		  "tcp needs the key \"interfaces\", with an address for each of the 2" },
		{ RULE NICS ", tcp: true", "tcp needs the key \"interfaces\"" },
		{ RULE ADDRESSES ", tcp: {management: eth0, address: 10.9.0.0/16}", "tcp" },
		{ RULE ", directed: true", "has no key \"directed\"" },
	};
	struct ocs_error err;

	(void)state;
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		assert_null(regions_open(refused[i][0], &err));
		if (!strstr(err.text, refused[i][1]))
			fail_msg("\"%s\" does not say \"%s\"", err.text, refused[i][1]);
	}
	assert_null(ocs_config_open("region servers:4 degree:2 region:5", &err));
	assert_null(ocs_config_open("rails servers:4 rails:2 region:2", &err));
}

/* Where regions end is part of what two programs must agree on. */
static void test_digest(void **state)
{
	char one[OCS_DIGEST_TEXT], other[OCS_DIGEST_TEXT];
	struct ocs_config *config = ocs_config_open("region servers:8 degree:2 region:4", NULL);

	(void)state;
	ocs_fabric_digest(config->fabric, one);
	ocs_config_destroy(config);
	config = ocs_config_open("region servers:8 degree:2 region:2", NULL);
	ocs_fabric_digest(config->fabric, other);
	ocs_config_destroy(config);
	assert_string_not_equal(one, other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_regions),
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_digest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
