/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Rails with two ports per NIC. */

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

/* Two ports per NIC: a rule with the port's number, a map, devices, and what is refused. */
#define TWO_PORTS                                                                      \
	"version: 1\nswitches:\n- {name: 's[0-1]', driver: tl1, dialect: polatis,"     \
	" address: '127.0.0.1:{2000 + index}', credentials: /c, size: 16}\nfabrics:\n" \
	"- {name: r, kind: rails, nodes: 'n[0-3]', rails: 2, ports_per_nic: 2, xpus: 2,"

static struct ocs_config *two_ports(const char *rest, struct ocs_error *err)
{
	struct ocs_text text = { 0 };
	struct ocs_config *config;

	ocs_text_add(&text, TWO_PORTS " %s}\n", rest);
	config = ocs_config_parse(text.data, text.length, "f", err);
	ocs_text_free(&text);
	return config;
}

#define SIDE_BY_SIDE "{switch: 's{interface}', port: server * nic_ports + nic_port + 1"

static void nic_ports(void **state)
{
	static const char *const refused[][2] = {
		{ "ports: {switch: 's{interface}', port: server + 1}", "is used twice" },
		{ "ports: {switch: 's{nic_port}', port: 2 * server + interface + 1}",
		  "both ports of one interface of all servers must share a switch" },
		{ "ports: " SIDE_BY_SIDE ", map: [{node: n1, interface: 0, switch: s0, port: 9}]}",
		  "needs nic_port: 0 or 1" },
		{ "ports: " SIDE_BY_SIDE
		  ", map: [{node: n1, interface: 0, nic_port: 2, switch: s0, port: 9}]}",
		  "nic_port must be" },
		{ "ports: " SIDE_BY_SIDE "}, interfaces: [{name: a}, {name: b}]",
		  "interfaces lists 2, but r has 4 (two ports for each rail)" },
	};
	struct ocs_error err = { 0 };
	struct ocs_port port;
	struct ocs_config *config = two_ports(
		"ports: " SIDE_BY_SIDE
		", map: [{node: n1, interface: 0, nic_port: 1, switch: s0, port: 9}]},"
		" interfaces: [{name: a, address: '10.0.{2 * interface + nic_port}.{server"
		" + 1}/24'}, {name: b}, {name: c}, {name: d, address:"
		" '10.0.{2 * interface + nic_port}.{server + 1}/24'}]",
		&err);
	char *nodes[] = { "n1", "n2" }, first[OCS_DIGEST_TEXT], other[OCS_DIGEST_TEXT];
	struct ocs_holding job = { 7, "r", nodes, 1, NULL, 0 };
	const struct ocs_section *rails;
	struct ocs_config *moved;
	char address[OCS_ADDRESS_TEXT], *label, *words;

	(void)state;
	if (!config)
		fail_msg("%s", err.text);
	rails = &config->fabric->sections[0];
	assert_int_equal(rails->nic_ports, 2);
	for (int server = 0; server < 4; server++)
		for (int i = 0; i < 4; i++) {
			bool mapped = server == 1 && i == 1;

			assert_int_equal(ocs_section_nic_port(rails, server, i / 2, i % 2, &port),
					 0);
			assert_int_equal(port.sw, i / 2);
			assert_int_equal(port.port, mapped ? 9 : 2 * server + i % 2 + 1);
			label = ocs_fabric_port_label(config->fabric, port);
			words = ocs_asprintf("n%d interface %d port %d", server, i / 2, i % 2);
			assert_string_equal(label, words);
			free(label);
			free(words);
		}
	assert_int_equal(ocs_section_server_port(config->fabric, rails, 2, 1, &port), 0);
	assert_int_equal(port.port, 5);
	assert_int_equal(ocs_section_nic_port(rails, 0, 0, 2, &port), -1);
	assert_string_equal(ocs_section_interface_name(rails, 3), "d");
	assert_int_equal(ocs_section_interface_address(rails, 2, 3, address), 24);
	assert_string_equal(address, "10.0.3.3");
	words = ocs_fabric_describe(config->fabric);
	assert_non_null(strstr(words, "4 servers with 2 rails, 2 ports per NIC, 2 XPUs each"));
	free(words);
	ocs_fabric_digest(config->fabric, first);
	moved = two_ports("ports: " SIDE_BY_SIDE "}", &err);
	ocs_fabric_digest(moved->fabric, other);
	assert_string_not_equal(first, other);
	assert_int_equal(ocs_fabric_keeps(config->fabric, moved->fabric, &job, &err), -1);
	assert_non_null(strstr(err.text, "the switch ports of node n1"));
	job.nodes++;
	assert_int_equal(ocs_fabric_keeps(config->fabric, moved->fabric, &job, &err), 0);
	ocs_config_destroy(moved);
	ocs_config_destroy(config);
	/* An older program computes the same for fabrics without such ports. */
	config = ocs_config_open("rails servers:16 rails:8", &err);
	ocs_fabric_digest(config->fabric, first);
	assert_string_equal(first, "f3323e6e8a0755fc");
	ocs_config_destroy(config);
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		assert_null(two_ports(refused[i][0], &err));
		if (!strstr(err.text, refused[i][1]))
			fail_msg("\"%s\" does not say \"%s\"", err.text, refused[i][1]);
	}
}

/* The key `tcp`: one address of each server, on a device that no rail has. */
static void tcp(void **state)
{
	static const char *const refused[][2] = {
		{ "tcp: {address: 10.0.0.0/24, management: e}",
		  "tcp needs the key \"interfaces\"" },
		{ "interfaces: [{name: a}, {name: b}, {name: c}, {name: d}], tcp: {address: 10.0.0.0/24}",
		  "management" },
		{ "interfaces: [{name: a}, {name: b}, {name: c}, {name: d}],"
		  " tcp: {address: 10.0.0.0/24, management: c}",
		  "management: c is on a rail, at interface 2" },
		{ "interfaces: [{name: a}, {name: b}, {name: c}, {name: d}],"
		  " tcp: {address: 10.0.0.0/30, management: e}",
		  "no room" },
	};
	struct ocs_error err = { 0 };
	char address[OCS_ADDRESS_TEXT];
	struct ocs_config *config =
		two_ports("ports: " SIDE_BY_SIDE
			  "}, interfaces: [{name: a}, {name: b}, {name: c}, {name: d}],"
			  " tcp: {address: 10.0.0.0/24, management: e}",
			  &err);

	(void)state;
	if (!config)
		fail_msg("%s", err.text);
	assert_string_equal(config->fabric->sections[0].management, "e");
	assert_int_equal(ocs_section_host_address(&config->fabric->sections[0], 3, address), 0);
	assert_string_equal(address, "10.0.0.4");
	ocs_config_destroy(config);
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		char *rest = ocs_asprintf("ports: " SIDE_BY_SIDE "}, %s", refused[i][0]);

		assert_null(two_ports(rest, &err));
		if (!strstr(err.text, refused[i][1]))
			fail_msg("%s: %s", refused[i][0], err.text);
		free(rest);
	}
}

/* Routes of RAILS rails with two ports each: a fabric, or NULL with ERR. */
static struct ocs_config *many_rails(int rails, struct ocs_error *err)
{
	struct ocs_text text = { 0 };
	struct ocs_config *config;

	ocs_text_add(
		&text,
		"version: 1\nswitches:\n- {name: s, driver: tl1, dialect: polatis,"
		" address: '127.0.0.1:2000', credentials: /c, size: 192}\nfabrics:\n"
		"- {name: r, kind: rails, nodes: 'n[0-1]', rails: %d, ports_per_nic: 2, xpus: 1,"
		" ports: {switch: s, port: server * 96 + interface * nic_ports + nic_port + 1},"
		" tcp: {address: 10.0.0.0/24, management: e}, interfaces: [",
		rails);
	for (int i = 0; i < 2 * rails; i++)
		ocs_text_add(&text, "%s{name: o%d}", i ? ", " : "", i);
	ocs_text_add(&text, "]}\n");
	config = ocs_config_parse(text.data, text.length, "f", err);
	ocs_text_free(&text);
	return config;
}

static void tcp_devices(void **state)
{
	struct ocs_error err = { 0 };
	struct ocs_config *config = many_rails(32, &err);

	(void)state;
	if (!config)
		fail_msg("%s", err.text);
	ocs_config_destroy(config);
	assert_null(many_rails(33, &err));
	assert_non_null(strstr(err.text, "tcp: routes go over at most 64 interfaces, r has 66"));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(nic_ports), cmocka_unit_test(tcp),
					    cmocka_unit_test(tcp_devices) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
