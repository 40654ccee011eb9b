/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/config/config.h"
#include "src/layout/diagram.h"
#include "src/layout/task_map.h"
#include "src/layout/tpu.h"
#include "src/util/error.h"

static struct ocs_fabric *fabric;
static const struct ocs_section *section;
static struct ocs_placer *placer;
static struct ocs_occupancy *occupancy;

static int setup(void **state)
{
	struct ocs_error err;

	(void)state;
	fabric = ocs_config_take_fabric(
		ocs_config_open("torus cubes:2x2x1 cube:4x4x4 tile:2x2x1", &err));
	section = &fabric->sections[0];
	placer = ocs_placer_create(fabric, section);
	occupancy = ocs_occupancy_create(section);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	ocs_occupancy_destroy(occupancy);
	ocs_placer_destroy(placer);
	ocs_fabric_destroy(fabric);
	return 0;
}

static struct ocs_placement *place(const char *text, const char *conn)
{
	struct ocs_error err = { 0 };
	struct ocs_placement *p;
	struct ocs_shape shape;

	assert_int_equal(ocs_shape_parse(text, conn, &shape, &err), 0);
	p = ocs_place(placer, occupancy, &shape, 0, &err);
	assert_non_null(p);
	return p;
}

/* Every task count that is allowed gives each XPU to one task, and the ranks are
 * the tasks in the order of their first XPU, on the hosts that ocs_ranks_hosts says. */
static void check_tasks(const struct ocs_ranks *ranks, int ntasks)
{
	int tasks = ntasks * ranks->nnodes, n, local, i, rank, count;
	bool *seen = calloc((size_t)ranks->nxpus, sizeof(bool));
	int *first = calloc((size_t)tasks, sizeof(int));
	struct ocs_error err = { 0 };
	int *hosts, *share;

	hosts = ocs_ranks_hosts(ranks, tasks, &err);
	if (!hosts)
		fail_msg("%s", err.text);
	for (n = 0; n < ranks->nnodes; n++) {
		for (local = 0; local < ntasks; local++) {
			count = ocs_ranks_share(ranks, ranks->nodes[n], local, ntasks, &share,
						&err);
			assert_true(count >= 1);
			rank = ocs_ranks_rank(ranks, ranks->nodes[n], local, ntasks, &err);
			assert_in_range(rank, 0, tasks - 1);
			assert_int_equal(hosts[rank], n);
			first[rank] = share[0];
			for (i = 0; i < count; i++) {
				assert_false(seen[share[i]]);
				seen[share[i]] = true;
				assert_int_equal(ranks->node[share[i]], n);
				assert_true(!i || share[i] > share[i - 1]);
			}
			free(share);
		}
	}
	for (i = 0; i < ranks->nxpus; i++)
		assert_true(seen[i]);
	for (i = 1; i < tasks; i++)
		assert_true(first[i] > first[i - 1]);
	free(hosts);
	free(first);
	free(seen);
}

static void test_tasks(void **state)
{
	struct ocs_placement *p = place("4x8x2", NULL);
	struct ocs_ranks *ranks, *again;
	struct ocs_error err;
	char *text, *text2;
	int *hosts, i;

	(void)state;
	ranks = ocs_ranks_from_placement(fabric, p);
	assert_int_equal(ranks->nnodes, 16);
	assert_int_equal(ranks->nxpus, 64);
	for (i = 0; i < 64; i++) {
		assert_int_equal(ocs_section_device(section, p->xpus[i].at), ranks->device[i]);
		assert_string_equal(
			ranks->nodes[ranks->node[i]],
			fabric->nodes[ocs_section_node_at(section, p->xpus[i].cube, p->xpus[i].at)]
				.name);
	}
	for (i = 1; i <= 4; i++)
		check_tasks(ranks, i);
	hosts = ocs_ranks_hosts(ranks, 64, &err);
	for (i = 0; i < 64; i++)
		assert_int_equal(hosts[i], ranks->node[i]);
	free(hosts);
	assert_null(ocs_ranks_hosts(ranks, 63, &err));
	assert_int_equal(err.code, OCS_USAGE);
	assert_null(ocs_ranks_hosts(ranks, 80, &err));
	assert_int_equal(err.code, OCS_USAGE);
	assert_null(ocs_ranks_hosts(ranks, 0, &err));
	assert_int_equal(ocs_ranks_rank(ranks, "n63", 0, 1, &err), -1);

	text = ocs_ranks_format(ranks);
	again = ocs_ranks_parse(text, &err);
	assert_non_null(again);
	assert_memory_equal(&ranks->shape, &again->shape, sizeof(ranks->shape));
	text2 = ocs_ranks_format(again);
	assert_string_equal(text, text2);
	free(text);
	free(text2);
	ocs_ranks_destroy(again);
	ocs_ranks_destroy(ranks);
	ocs_placement_destroy(p);
}

/* 18 XPUs on five nodes of four: the last node has two, one task per XPU works. */
static void test_uneven(void **state)
{
	struct ocs_placement *p = place("18", NULL);
	struct ocs_ranks *ranks = ocs_ranks_from_placement(fabric, p);
	struct ocs_error err;
	int n, local, *share, count;

	(void)state;
	assert_int_equal(ranks->nnodes, 5);
	check_tasks(ranks, 1);
	check_tasks(ranks, 2);
	for (n = 0; n < 5; n++) {
		for (local = 0; local < 4; local++) {
			count = ocs_ranks_share(ranks, ranks->nodes[n], local, 4, &share, &err);
			if (count == 1)
				assert_int_equal(
					ocs_ranks_rank(ranks, ranks->nodes[n], local, 4, &err),
					share[0]);
			else
				assert_int_equal(
					ocs_ranks_rank(ranks, ranks->nodes[n], local, 4, &err), -1);
			free(share);
		}
	}
	assert_null(ocs_ranks_hosts(ranks, 20, &err));
	ocs_ranks_destroy(ranks);
	ocs_placement_destroy(p);
}

static void test_servers(void **state)
{
	char *names[] = { "a", "b", "c", "d" };
	struct ocs_shape shape;
	struct ocs_ranks *ranks;
	struct ocs_error err;

	(void)state;
	assert_int_equal(ocs_shape_parse("2x2", NULL, &shape, &err), 0);
	assert_null(ocs_ranks_from_nodes(&shape, names, 3));
	ranks = ocs_ranks_from_nodes(&shape, names, 4);
	check_tasks(ranks, 1);
	assert_int_equal(ocs_ranks_rank(ranks, "c", 0, 1, &err), 2);
	ocs_ranks_destroy(ranks);
}

/* Servers of several XPUs: consecutive ranks share one. */
static void test_shared_nodes(void **state)
{
	char *names[] = { "c", "a", "b" };
	struct ocs_shape shape;
	struct ocs_ranks *ranks;
	struct ocs_error err;
	int *hosts;

	(void)state;
	assert_int_equal(ocs_shape_parse("3x2x2", NULL, &shape, &err), 0);
	ranks = ocs_ranks_from_nodes(&shape, names, 3);
	check_tasks(ranks, 1);
	check_tasks(ranks, 2);
	check_tasks(ranks, 4);
	hosts = ocs_ranks_hosts(ranks, 12, &err);
	for (int r = 0; r < 12; r++) {
		assert_int_equal(hosts[r], r / 4);
		assert_int_equal(ranks->device[r], r % 4);
	}
	free(hosts);
	ocs_ranks_destroy(ranks);
}

static void test_parse_faults(void **state)
{
	static const char *const bad[] = {
		"",
		"shape 2x2\n",
		"shape 2x2 conn torus,torus\n",
		"shape 2 conn torus\nn0 0\n",
		"shape 2 conn torus\nn0 0\nn1 x\n",
		"shape 2 conn torus\nn0 0\nn1\n",
		"shape 2 conn torus\nn0 0\nn1 1\nn2 2\n",
		"shape 2 conn ring\nn0 0\nn1 0\n",
		"shape 1000000x1000 conn mesh\nn0 0\n",
		"shape 2 conn torus\n 0\nn1 0\n",
		"shape 2 conn torus\nn0 -1\nn1 0\n",
	};
	struct ocs_error err;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_null(ocs_ranks_parse(bad[i], &err));
}

static void test_picture(void **state)
{
	struct ocs_placement *p = place("4x4x2", "mesh");
	struct ocs_picture_item items[] = {
		{ .label = "job 1 <&\">", .placement = p },
		{ .label = "n63 drained", .down = true, .nodes = (int[]){ 63 }, .nnodes = 1 },
	};
	char *text, *c;
	int a = 0, down = 0;

	(void)state;
	text = ocs_picture(fabric, section, items, 2, -1, 80, false);
	assert_null(strchr(text, '\033'));
	assert_non_null(strstr(text, "A  job 1"));
	assert_non_null(strstr(text, "free (220 of 256 XPUs)"));
	for (c = text; *c; c++) {
		a += *c == 'A';
		down += *c == '#';
	}
	assert_int_equal(a, 32 + 1);
	assert_int_equal(down, 4 + 1);
	for (c = text; *c; c += strcspn(c, "\n") + 1)
		assert_true(strcspn(c, "\n") <= 80);
	free(text);
	/* the cubes of one item, the others counted */
	text = ocs_picture(fabric, section, items, 2, 0, 80, false);
	assert_non_null(strstr(text, "c0\n"));
	assert_null(strstr(text, "c1"));
	assert_non_null(strstr(text, "\ncubes not drawn: 2 free, 1 partly in use\nA  job 1"));
	assert_non_null(strstr(text, "free (220 of 256 XPUs)"));
	free(text);
	text = ocs_picture(fabric, section, items, 2, -1, 10, true);
	assert_non_null(strchr(text, '\033'));
	free(text);
	text = ocs_picture_svg(fabric, section, items, 2, "a & b");
	assert_non_null(strstr(text, ">a &#38; b</text>"));
	/* four XPUs of the node and the legend are hatched */
	for (c = text, down = 0; (c = strstr(c, "fill=\"url(#down)\"")); c++)
		down++;
	assert_int_equal(down, 4 + 1);
	assert_non_null(strstr(text, "free (220 of 256 XPUs)"));
	assert_non_null(strstr(text, "job 1 &#60;&#38;&#34;&#62;"));
	assert_non_null(strstr(text, "</svg>"));
	free(text);
	ocs_placement_destroy(p);
}

/* Of many cubes each is one sign; only the broken ones are drawn. */
static void test_picture_of_large_shapes(void **state)
{
	struct ocs_fabric *large;
	struct ocs_error err;
	struct ocs_picture_item items[2] = { { .label = "one", .sign = 'Q' },
					     { .label = "two", .sign = 'R' } };
	int first[16 * 70], broken = 16 * 70 + 3, i;
	char *text, *line;

	(void)state;
	large = ocs_config_take_fabric(
		ocs_config_open("torus cubes:72x1x1 cube:4x4x4 tile:2x2x1", &err));
	assert_non_null(large);
	for (i = 0; i < 16 * 70; i++)
		first[i] = i;
	items[0].nodes = first;
	items[0].nnodes = 16 * 70;
	items[1].nodes = &broken;
	items[1].nnodes = 1;
	text = ocs_picture(large, &large->sections[0], items, 2, -1, 80, false);
	assert_non_null(strstr(text, "c0   QQQQQQQQ QQQQQQQQ QQQQQQQQ QQQQQQQQ QQQQQQQQ QQQQQQQQ "
				     "QQQQQQQQ QQQQQQQQ\nc64  QQQQQQ+.\n\nc70\n"));
	assert_non_null(strstr(text, "\n+  broken, drawn above (1 of 72 cubes)\n"));
	assert_non_null(strstr(text, "\nR  two (4 XPUs)\n"));
	assert_null(strstr(text, "c71"));
	free(text);
	text = ocs_picture(large, &large->sections[0], items, 2, 1, 80, false);
	assert_non_null(strstr(text, "cubes not drawn: 1 free, 70 full\nQ  one"));
	assert_null(strstr(text, "c71"));
	free(text);
	text = ocs_picture(large, &large->sections[0], items, 2, -1, 30, false);
	assert_non_null(strstr(text, "\nc16  QQQQQQQQ QQQQQQQQ\n"));
	for (line = text; *line && strncmp(line, "+  ", 3); line += strcspn(line, "\n") + 1)
		assert_true(strcspn(line, "\n") <= 30);
	free(text);
	ocs_fabric_destroy(large);
	/* a cube that is too wide is drawn in parts */
	large = ocs_config_take_fabric(ocs_config_open("static:8x8x8 tile:1x1x1", &err));
	assert_non_null(large);
	text = ocs_picture(large, &large->sections[0], NULL, 0, -1, 30, false);
	assert_non_null(strstr(text, "c0, z=0-2\n........ ........ ........\n"));
	assert_non_null(strstr(text, "c0, z=6-7\n........ ........\n"));
	free(text);
	ocs_fabric_destroy(large);
}

static const char *value_of(const char *text, const char *name)
{
	static char value[65536];
	const char *at = strstr(text, name);

	assert_non_null(at);
	at += strlen(name) + 1;
	snprintf(value, sizeof(value), "%.*s", (int)strcspn(at, "\n"), at);
	return value;
}

/* Does each node hold an equal block, told XPU by XPU from what the variables say? */
static void check_blocks(const struct ocs_ranks *ranks, char **text)
{
	int bounds[3], size[3], r, d;

	for (r = 0; r < ranks->nxpus; r++) {
		const char *mine = text[ranks->node[r]];
		int coord[OCS_SHAPE_DIMS] = { 0 }, at[3];
		char *hosts, *host, *save = NULL;

		assert_int_equal(sscanf(value_of(mine, "TPU_HOST_BOUNDS"), "%d,%d,%d", &bounds[0],
					&bounds[1], &bounds[2]),
				 3);
		assert_int_equal(sscanf(value_of(mine, "TPU_CHIPS_PER_HOST_BOUNDS"), "%d,%d,%d",
					&size[0], &size[1], &size[2]),
				 3);
		ocs_shape_coord(&ranks->shape, r, coord);
		for (d = 0; d < 3; d++)
			at[d] = (d < ranks->shape.ndim ? coord[d] : 0) / size[d];
		d = at[0] + bounds[0] * at[1] + bounds[0] * bounds[1] * at[2];
		assert_int_equal(atoi(value_of(mine, "TPU_WORKER_ID")), d);
		hosts = strdup(value_of(mine, "TPU_WORKER_HOSTNAMES"));
		host = strtok_r(hosts, ",", &save);
		while (d-- > 0)
			host = strtok_r(NULL, ",", &save);
		assert_string_equal(host, ranks->nodes[ranks->node[r]]);
		free(hosts);
	}
	assert_int_equal(bounds[0] * bounds[1] * bounds[2], ranks->nnodes);
	assert_int_equal(size[0] * size[1] * size[2] * ranks->nnodes, ranks->nxpus);
}

static bool tpu(const char *shape, const char *conn)
{
	struct ocs_placement *p = place(shape, conn);
	struct ocs_ranks *ranks = ocs_ranks_from_placement(fabric, p);
	char **text = calloc((size_t)ranks->nnodes, sizeof(*text));
	struct ocs_error err = { 0 };
	bool said = true;
	int i;

	for (i = 0; i < ranks->nnodes; i++) {
		text[i] = ocs_tpu_environment(ranks, ranks->nodes[i], &err);
		if (!text[i])
			assert_int_equal(err.code, OCS_NEVER);
		assert_true(i == 0 || said == (text[i] != NULL));
		said = text[i] != NULL;
	}
	if (said)
		check_blocks(ranks, text);
	for (i = 0; i < ranks->nnodes; i++)
		free(text[i]);
	free(text);
	ocs_ranks_destroy(ranks);
	ocs_placement_destroy(p);
	return said;
}

static void test_tpu(void **state)
{
	static const char *const blocks[] = { "4x4x8", "8x8x4", "4x4x4",
					      "2x2x1", "2x2x4", "4x4x8_twisted" };
	struct ocs_placement *p = place("4x4x8", "torus,torus,mesh");
	struct ocs_ranks *ranks = ocs_ranks_from_placement(fabric, p);
	struct ocs_error err = { 0 };
	char *text;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(blocks) / sizeof(*blocks); i++)
		assert_true(tpu(blocks[i], NULL));
	/* four dimensions; then shapes that may be folded: right, or none at all */
	assert_false(tpu("2x2x2x2", NULL));
	tpu("4x8x2", NULL);
	tpu("6x4", NULL);
	tpu("18", NULL);
	tpu("1", NULL);

	text = ocs_tpu_environment(ranks, ranks->nodes[0], &err);
	assert_non_null(text);
	assert_string_equal(value_of(text, "TPU_TOPOLOGY"), "4x4x8");
	assert_string_equal(value_of(text, "TPU_TOPOLOGY_WRAP"), "true,true,false");
	assert_string_equal(value_of(text, "TPU_TOPOLOGY_ALT"), "false");
	free(text);
	assert_null(ocs_tpu_environment(ranks, "nobody", &err));
	assert_int_equal(err.code, OCS_USAGE);
	ocs_ranks_destroy(ranks);
	ocs_placement_destroy(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tasks),
		cmocka_unit_test(test_uneven),
		cmocka_unit_test(test_servers),
		cmocka_unit_test(test_shared_nodes),
		cmocka_unit_test(test_parse_faults),
		cmocka_unit_test(test_picture),
		cmocka_unit_test(test_picture_of_large_shapes),
		cmocka_unit_test(test_tpu),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
