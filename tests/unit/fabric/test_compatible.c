/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Which changes of ocs.yaml leave a running job what it has, and which do not. */

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

static const char yaml[] =
	"version: 1\n"
	"switches:\n"
	"  - {name: \"t-[x,y,z]-[0-1]-[0-1]\", driver: tl1, address: \"unix:/t/{name}\","
	" credentials: /c, size: 16}\n"
	"  - {name: \"near-[0-1]\", driver: tl1, address: \"unix:/t/{name}\", credentials: /c,"
	" size: 24}\n"
	"  - {name: \"ahead-[0-1]\", driver: tl1, address: \"unix:/t/{name}\", credentials: /c,"
	" size: 24}\n"
	"  - {name: \"flip-[0-1]\", driver: tl1, moves: true, address: \"unix:/t/{name}\","
	" credentials: /c, size: 24}\n"
	"fabrics:\n"
	"  - name: pod\n"
	"    kind: torus\n"
	"    partitions: [tpu]\n"
	"    cube: 2x2x2\n"
	"    tile: 1x1x2\n"
	"    cubes:\n"
	"      - {name: c0, nodes: \"n[0-3]\"}\n"
	"      - {name: c1, nodes: \"n[4-7]\"}\n"
	"    ports: {switch: \"t-{dim}-{a}-{b}\", port: 2*cube+sign+1}\n"
	"  - name: two\n"
	"    kind: direct\n"
	"    partitions: [two]\n"
	"    nodes: w[0-3]\n"
	"    degree: 2\n"
	"    ports: {switch: \"near-{interface}\", port: server+1}\n"
	"    look_ahead:\n"
	"      ports: {switch: \"ahead-{interface}\", port: server+1}\n"
	"      select: {switch: \"flip-{interface}\", port: 3*server+1}\n";

static struct ocs_fabric *fabric_read(const char *text)
{
	struct ocs_error err;
	struct ocs_fabric *fabric =
		ocs_config_take_fabric(ocs_config_parse(text, strlen(text), "ocs.yaml", &err));

	if (!fabric)
		fail_msg("%s", err.text);
	return fabric;
}

/* The YAML with the first FROM behind AFTER replaced by TO. */
static struct ocs_fabric *fabric_changed(const char *after, const char *from, const char *to)
{
	const char *at = strstr(strstr(yaml, after), from);
	struct ocs_fabric *fabric;
	char *text;

	assert_non_null(at);
	text = ocs_asprintf("%.*s%s%s", (int)(at - yaml), yaml, to, at + strlen(from));
	fabric = fabric_read(text);
	free(text);
	return fabric;
}

static const struct {
	const char *after, *from, *to; /* what changes */
	const char *torus, *direct;    /* what the job there loses, or NULL */
} cases[] = {
	/* what no job has */
	{ "version", "version: 1\n", "version: 1\ntimeouts: {switch: 3s}\n", NULL, NULL },
	{ "fabrics", "      - {name: c1, nodes: \"n[4-7]\"}\n", "", NULL, NULL },
	{ "fabrics", "partitions: [tpu]", "partitions: [tpu, gpu]", NULL, NULL },
	{ "near", "nodes: w[0-3]", "nodes: w[0-5]", NULL, NULL },
	{ "ahead-[0-1]\", driver", "unix:/t/", "unix:/u/", NULL, NULL },
	/* cubes, nodes and their ports */
	{ "fabrics", "name: pod", "name: cod", "section pod", NULL },
	{ "fabrics", "tile: 1x1x2", "tile: 1x2x1", "section pod", NULL },
	{ "fabrics", "name: c0", "name: d0", "cube c0|node n0", NULL },
	{ "fabrics", "n[0-3]", "n[1,0,2-3]", "node n0", NULL },
	{ "fabrics", "n[0-3]", "m[0-3]", "node n0", NULL },
	{ "fabrics", "2*cube+sign+1", "2*cube+sign+3", "the switch ports of cube c0", NULL },
	{ "t-[x", "size: 16", "size: 32", "switch t-x-0-0", NULL },
	/* servers and theirs */
	{ "kind: direct", "degree: 2", "degree: 1", NULL, "section two" },
	{ "kind: direct", "w[0-3]", "w[1,0,2-3]", NULL, "the switch ports of node w0" },
	{ "kind: direct", "port: server+1", "port: server+7", NULL, "the switch ports of node w0" },
	{ "look_ahead", "port: server+1", "port: server+7", NULL,
	  "the look-ahead ports of node w0" },
	{ "look_ahead", "3*server+1", "3*server+4", NULL, "the 1x2 switches of node w0" },
	{ "flip", "size: 24", "size: 32", NULL, "the 1x2 switches of node w0" },
};

static void assert_loss(const struct ocs_fabric *before, const struct ocs_fabric *after,
			const struct ocs_holding *job, const char *loss, size_t number)
{
	struct ocs_error err = { 0 };
	int rc = ocs_fabric_keeps(before, after, job, &err);
	char *losses, *rest, *one;
	bool named = false;

	if (!loss && rc)
		fail_msg("case %zu: %s", number, err.text);
	if (!loss)
		return;
	assert_int_equal(rc, -1);
	assert_int_equal(err.code, OCS_USAGE);
	rest = losses = ocs_strdup(loss);
	while ((one = strsep(&rest, "|")))
		named = named || strstr(err.text, one);
	if (!named || !strstr(err.text, "job 7 uses"))
		fail_msg("case %zu: '%s' does not name %s", number, err.text, loss);
	free(losses);
}

static void test_changes(void **state)
{
	struct ocs_fabric *before = fabric_read(yaml);
	char *nodes[] = { "n0", "n1" }, *servers[] = { "w0", "w1" };
	int switches[] = { ocs_fabric_switch(before, "t-x-0-0") };
	struct ocs_holding torus = { 7, "pod", nodes, 2, switches, 1 };
	struct ocs_holding direct = { 7, "two", servers, 2, NULL, 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ocs_fabric *after =
			fabric_changed(cases[i].after, cases[i].from, cases[i].to);

		assert_loss(before, after, &torus, cases[i].torus, i);
		assert_loss(before, after, &direct, cases[i].direct, i);
		ocs_fabric_destroy(after);
	}
	ocs_fabric_destroy(before);
}

/* A section that an older file had and this one has no more: only switches can be compared. */
static void test_unknown_section(void **state)
{
	struct ocs_fabric *before = fabric_read(yaml);
	struct ocs_fabric *after = fabric_changed("t-[x", "size: 16", "size: 32");
	int switches[] = { ocs_fabric_switch(before, "near-0"), -1 };
	struct ocs_holding job = { 7, NULL, NULL, 0, switches, 1 };

	(void)state;
	assert_loss(before, after, &job, NULL, 0);
	switches[0] = ocs_fabric_switch(before, "t-y-1-1");
	assert_loss(before, after, &job, "switch t-y-1-1", 0);
	ocs_fabric_destroy(after);
	ocs_fabric_destroy(before);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_changes),
	cmocka_unit_test(test_unknown_section),
};

int main(void)
{
	return cmocka_run_group_tests(tests, NULL, NULL);
}
