/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* ocs.yaml: a second port set behind 1x2 switches. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/config/config.h"
#include "src/fabric/fabric.h"
#include "src/util/error.h"

#define HEAD                                                                                                           \
	"version: 1\n"                                                                                                 \
	"switches:\n"                                                                                                  \
	"  - {name: 'near-[0-1]', driver: tl1, address: '10.0.0.{index}:1', credentials: /c, size: 8}\n"               \
	"  - {name: 'ahead-[0-1]', driver: tl1, address: '10.0.1.{index}:1', credentials: /c, size: 8}\n"              \
	"  - {name: 'flip-[0-1]', driver: tl1, address: '10.0.2.{index}:1', credentials: /c, size: 16, moves: true}\n" \
	"fabrics:\n"                                                                                                   \
	"  - name: two\n"                                                                                              \
	"    kind: direct\n"                                                                                           \
	"    nodes: w[0-3]\n"                                                                                          \
	"    degree: 2\n"                                                                                              \
	"    ports: {switch: 'near-{interface}', port: server+1}\n"
#define AHEAD(ports, select) "    look_ahead:\n      ports: " ports "\n      select: " select "\n"
#define PORTS "{switch: 'ahead-{interface}', port: server+1}"
#define SELECT "{switch: 'flip-{interface}', port: 3*server+1}"

static void read_well(void **state)
{
	static const char yaml[] = HEAD AHEAD(PORTS, SELECT);
	struct ocs_error err = { 0 };
	struct ocs_fabric *f =
		ocs_config_take_fabric(ocs_config_parse(yaml, sizeof(yaml) - 1, "ocs.yaml", &err));
	const struct ocs_section *section;
	struct ocs_port port;
	char *text;

	(void)state;
	if (!f)
		fail_msg("%s", err.text);
	section = &f->sections[0];
	assert_int_equal(ocs_section_set_port(section, 0, 3, 1, &port), 0);
	assert_string_equal(f->switches[port.sw].name, "near-1");
	assert_int_equal(port.port, 4);
	assert_int_equal(ocs_section_set_port(section, 1, 3, 1, &port), 0);
	assert_string_equal(f->switches[port.sw].name, "ahead-1");
	assert_int_equal(ocs_section_set_port(section, 1, 4, 1, &port), -1);
	assert_int_equal(ocs_section_set_port(section, 1, 3, 2, &port), -1);
	assert_int_equal(ocs_section_select_port(section, 3, 1, &port), 0);
	assert_string_equal(f->switches[port.sw].name, "flip-1");
	assert_true(f->switches[port.sw].moves);
	assert_int_equal(port.port, 10);
	text = ocs_fabric_port_label(f, port);
	assert_string_equal(text, "w3 interface 1 1x2 switch");
	free(text);
	port.port = 12;
	text = ocs_fabric_port_label(f, port);
	assert_string_equal(text, "w3 interface 1 1x2 switch to look-ahead");
	free(text);
	text = ocs_fabric_describe(f);
	assert_non_null(strstr(text, "look-ahead: switch ahead-{interface}, port server+1"));
	free(text);
	ocs_fabric_destroy(f);
}

static void refused(void **state)
{
	static const struct {
		const char *yaml, *why;
	} cases[] = {
		{ HEAD "    look_ahead: {ports: " PORTS "}\n", "needs the key \"select\"" },
		{ HEAD AHEAD("{switch: 'ahead-{interface}'}", SELECT), "needs the key \"port\"" },
		{ HEAD AHEAD("{switch: 'near-{interface}', port: server+1}", SELECT),
		  "port 1 of switch near-0 is used twice: for w0 interface 0 of fabric two and for "
		  "w0 interface 0 look-ahead" },
		{ HEAD AHEAD("{switch: 'ahead-{server/2}', port: 2*server+interface+1}", SELECT),
		  "must share a switch" },
		{ HEAD AHEAD("{switch: 'flip-{interface}', port: server+1}", SELECT),
		  "is for look_ahead.select only" },
		{ HEAD AHEAD(PORTS, "{switch: 'ahead-{interface}', port: 5}"), "moves: true" },
		{ HEAD AHEAD(PORTS, "{switch: 'flip-{interface}', port: server+1}"),
		  "used twice: for w1 interface 0 1x2 switch of" },
		{ HEAD AHEAD(PORTS, "{switch: 'flip-{interface}', port: 5*server+1}"),
		  "w3 interface 0 1x2 switch to ports would be port 17" },
		{ HEAD AHEAD(PORTS, "{switch: 'flop-{interface}', port: 1}"), "not described" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ocs_error err = { 0 };
		struct ocs_fabric *f = ocs_config_take_fabric(
			ocs_config_parse(cases[i].yaml, strlen(cases[i].yaml), "ocs.yaml", &err));

		assert_null(f);
		if (!strstr(err.text, cases[i].why))
			fail_msg("%s\nwanted: %s", err.text, cases[i].why);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(read_well),
		cmocka_unit_test(refused),
	};

	return cmocka_run_group_tests_name("ocs.yaml: look-ahead", tests, NULL, NULL);
}
