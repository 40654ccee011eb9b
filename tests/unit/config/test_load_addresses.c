/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Where programs connect to, and how they know what answers there. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "src/config/config.h"
#include "src/fabric/fabric.h"
#include "src/util/error.h"
#include "src/util/text.h"

/* By fingerprint, one for all or one for each, or by a file. */
static void host_keys_are_read(void **state)
{
#define KEY_A "SHA256:abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQ"
#define KEY_B "SHA256:abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPR"
	static const char text[] =
		"version: 1\nswitches:\n"
		"  - {name: 'a[0-1]', driver: netconf, address: '{name}:830', size: 4,\n"
		"     credentials: /c, host_key: '" KEY_A "'}\n"
		"  - {name: 'b[0-1]', driver: netconf, address: '{name}:830', size: 4,\n"
		"     credentials: /c, dialect: ocp, host_key: ['" KEY_A "', '" KEY_B "']}\n"
		"  - {name: 'c[0-1]', driver: netconf, address: '{name}:830', size: 4,\n"
		"     credentials: /c, known_hosts: '/k/{name}'}\n"
		"fabrics:\n  - {name: f, kind: direct, degree: 2, nodes: 'n[0-1]',\n"
		"     ports: {switch: 'a{interface}', port: server+1}}\n";
	struct ocs_error err = { 0 };
	struct ocs_fabric *f =
		ocs_config_take_fabric(ocs_config_parse(text, strlen(text), "k.yaml", &err));

	(void)state;
	if (!f)
		fail_msg("%s", err.text);
	assert_string_equal(f->switches[1].host_key, KEY_A);
	assert_string_equal(f->switches[1].dialect, "polatis");
	assert_string_equal(f->switches[2].host_key, KEY_A);
	assert_string_equal(f->switches[3].host_key, KEY_B);
	assert_string_equal(f->switches[3].dialect, "ocp");
	assert_null(f->switches[3].known_hosts);
	assert_string_equal(f->switches[5].known_hosts, "/k/c1");
	assert_null(f->switches[5].host_key);
	ocs_fabric_destroy(f);
}

static void defaults_of_the_address(void **state)
{
	static const char tail[] =
		"fabrics:\n- {name: s, kind: static, extents: 1x1x1, nodes: a}\n";
	static const char *const cases[][2] = {
		{ "", "unix:/run/ocsd/ocsd.sock" },
		{ "ocsd: {socket: unix:/x}\n", "unix:/x" },
		{ "ocsd: {listen: 'head:1'}\n", "head:1" },
		{ "ocsd: {listen: '0.0.0.0:1', address: 'unix:/x'}\n", "unix:/x" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *text = ocs_asprintf("version: 1\n%s%s", cases[i][0], tail);
		struct ocs_error err = { 0 };
		struct ocs_config *config = ocs_config_parse(text, strlen(text), "f", &err);

		if (!config)
			fail_msg("%s", err.text);
		assert_string_equal(config->ocsd.address, cases[i][1]);
		ocs_config_destroy(config);
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(host_keys_are_read),
		cmocka_unit_test(defaults_of_the_address),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
