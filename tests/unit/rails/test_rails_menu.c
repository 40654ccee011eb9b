/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The menu of topologies: the paper's example, and over all layouts of up to 36 nodes with random
 * topologies a judge that knows coordinates and nothing of strides. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/rails/menu.h"
#include "src/util/error.h"

#define NODES 36

/* pp 3, dp 2, cp 2 over twelve nodes. */
static const struct ocs_rails_layout paper = {
	.ndim = 3, .extent = { 3, 2, 2 }, .asymmetric = 0, .ports = 2
};

static unsigned long next_random(unsigned long *state)
{
	*state = *state * 6364136223846793005ul + 1442695040888963407ul;
	return *state >> 33;
}

static void coordinates(const struct ocs_rails_layout *layout, int node, int *at)
{
	int counted = 0;

	/* Counts nodes up in row-major order, as an odometer does. */
	memset(at, 0, OCS_RAILS_DIMS * sizeof(*at));
	for (; counted < node; counted++) {
		int d = layout->ndim - 1;

		while (++at[d] == layout->extent[d])
			at[d--] = 0;
	}
}

/* Whether TOPOLOGY is to join port 1 of A to port 0 of B (with one port: A to B). */
static bool joined(const struct ocs_rails_layout *layout, const char *topology, int a, int b)
{
	int from[OCS_RAILS_DIMS], to[OCS_RAILS_DIMS], dim = -1, digit = 0, stage = 0, other = 0;

	coordinates(layout, a, from);
	coordinates(layout, b, to);
	for (int d = 0; d < layout->ndim; d++) {
		if (from[d] == to[d])
			continue;
		if (dim >= 0 || to[d] != (from[d] + 1) % layout->extent[d])
			return false;
		dim = d;
	}
	if (dim < 0)
		return false;
	if (layout->asymmetric >= 0) {
		stage = from[layout->asymmetric];
		other = to[layout->asymmetric];
	}
	if (dim == layout->asymmetric)
		return topology[stage] == '0' && topology[other] == '0';
	for (int d = 0; d <= dim; d++)
		digit += d != layout->asymmetric;
	return topology[stage] == '0' + digit;
}

static void topology_judge(const struct ocs_rails_layout *layout, const char *topology)
{
	int nodes = ocs_rails_layout_nodes(layout), expected = 0;
	int used[NODES][2] = { { 0 } };
	struct ocs_rails_pairs pairs;

	assert_int_equal(ocs_rails_topology_pairs(layout, topology, &pairs, NULL), 0);
	for (size_t i = 0; i < pairs.count; i++) {
		const struct ocs_rails_pair *p = &pairs.items[i];

		assert_int_equal(used[p->a][p->a_port]++, 0);
		assert_int_equal(used[p->b][p->b_port]++, 0);
		assert_int_equal(p->a_port, layout->ports - 1);
		assert_int_equal(p->b_port, 0);
		assert_true(joined(layout, topology, p->a, p->b));
	}
	for (int a = 0; a < nodes; a++)
		for (int b = layout->ports < 2 ? a : 0; b < nodes; b++)
			expected += joined(layout, topology, a, b);
	assert_int_equal(pairs.count, expected);
	ocs_rails_pairs_free(&pairs);
}

static void topology_random(const struct ocs_rails_layout *layout, unsigned long *seed, char *text)
{
	int stages = ocs_rails_layout_stages(layout), least = layout->asymmetric < 0;
	int symmetric = layout->ndim - !least;

	for (int s = 0; s < stages; s++)
		text[s] = (char)('0' + least +
				 (int)(next_random(seed) % (unsigned long)(symmetric + 1 - least)));
	text[stages] = '\0';
	assert_int_equal(ocs_rails_topology_check(layout, text, NULL), 0);
}

static bool pair_in(const struct ocs_rails_pairs *pairs, const struct ocs_rails_pair *pair)
{
	for (size_t i = 0; i < pairs->count; i++)
		if (memcmp(&pairs->items[i], pair, sizeof(*pair)) == 0)
			return true;
	return false;
}

/* FROM without what is cut, with what is made, is TO; and the menu has all of it. */
static void change_judge(const struct ocs_rails_layout *layout, const char *from, const char *to)
{
	struct ocs_rails_pairs before, after, cut, make, menu;

	assert_int_equal(ocs_rails_topology_pairs(layout, from, &before, NULL), 0);
	assert_int_equal(ocs_rails_topology_pairs(layout, to, &after, NULL), 0);
	assert_int_equal(ocs_rails_menu_pairs(layout, &menu, NULL), 0);
	assert_int_equal(ocs_rails_change(layout, from, to, &cut, &make, NULL), 0);
	for (size_t i = 0; i < before.count; i++)
		assert_int_equal(pair_in(&cut, &before.items[i]),
				 !pair_in(&after, &before.items[i]));
	for (size_t i = 0; i < after.count; i++) {
		assert_int_equal(pair_in(&make, &after.items[i]),
				 !pair_in(&before, &after.items[i]));
		assert_true(pair_in(&menu, &after.items[i]));
	}
	assert_int_equal(before.count - cut.count, after.count - make.count);
	ocs_rails_pairs_free(&before);
	ocs_rails_pairs_free(&after);
	ocs_rails_pairs_free(&cut);
	ocs_rails_pairs_free(&make);
	ocs_rails_pairs_free(&menu);
}

/* What a group needs is met after the smallest change: each neighbour of a ring or line of the group
 * has its circuit, and no stage is touched but those of the need and their neighbours. */
static void need_judge(const struct ocs_rails_layout *layout, const char *from, int node, int dim)
{
	int stages = ocs_rails_layout_stages(layout), members[NODES], count = 0, changed = 0;
	char to[OCS_RAILS_TOPOLOGY];
	struct ocs_rails_need need;
	int at[OCS_RAILS_DIMS], other[OCS_RAILS_DIMS];

	coordinates(layout, node, at);
	for (int k = 0; k < ocs_rails_layout_nodes(layout); k++) {
		bool same = true;

		coordinates(layout, k, other);
		for (int d = 0; d < layout->ndim; d++)
			same &= d == dim || at[d] == other[d];
		if (same)
			members[count++] = k;
	}
	need = ocs_rails_group_need(layout, members, count);
	if (count == 1) {
		assert_int_equal(need.kind, OCS_RAILS_NOTHING);
		return;
	}
	assert_int_equal(need.kind, dim == layout->asymmetric ? OCS_RAILS_LINE : OCS_RAILS_STAGE);
	ocs_rails_topology_meet(layout, from, &need, to);
	assert_int_equal(ocs_rails_topology_check(layout, to, NULL), 0);
	assert_true(ocs_rails_need_met(&need, to));
	for (int i = 0; i + 1 < count; i++)
		assert_true(joined(layout, to, members[i], members[i + 1]));
	if (ocs_rails_need_met(&need, from))
		assert_string_equal(from, to);
	for (int s = 0; s < stages && need.kind == OCS_RAILS_STAGE; s++)
		changed += from[s] != to[s];
	assert_true(changed <= 3);
	change_judge(layout, from, to);
}

static void test_every_layout(void **state)
{
	unsigned long seed = 1;
	int layouts = 0;

	(void)state;
	for (int code = 0; code < 5 * 5 * 5 * 4 * 2; code++) {
		struct ocs_rails_layout layout = {
			.ndim = 3,
			.extent = { code % 5 + 1, code / 5 % 5 + 1, code / 25 % 5 + 1 },
			.asymmetric = code / 125 % 4 - 1,
			.ports = code / 500 + 1,
		};
		char text[OCS_RAILS_TOPOLOGY];

		if (ocs_rails_layout_nodes(&layout) > NODES ||
		    ocs_rails_layout_check(&layout, NULL) < 0)
			continue;
		layouts++;
		ocs_rails_topology_first(&layout, text);
		assert_int_equal(ocs_rails_topology_check(&layout, text, NULL), 0);
		topology_judge(&layout, text);
		for (int k = 0; k < 8; k++) {
			char to[OCS_RAILS_TOPOLOGY];

			topology_random(&layout, &seed, text);
			topology_judge(&layout, text);
			topology_random(&layout, &seed, to);
			change_judge(&layout, text, to);
			need_judge(&layout, text,
				   (int)(next_random(&seed) %
					 (unsigned long)ocs_rails_layout_nodes(&layout)),
				   (int)(next_random(&seed) % 3));
		}
	}
	assert_true(layouts > 300);
}

/* As many dimensions as a topology has digits for. */
static void test_nine_symmetric(void **state)
{
	struct ocs_rails_layout layout = {
		.ndim = 10, .extent = { 2, 1, 1, 1, 1, 2, 1, 1, 2, 3 }, .asymmetric = 0, .ports = 2
	};
	const int ring[] = { 3, 4, 5 };
	unsigned long seed = 9;
	struct ocs_rails_need need = ocs_rails_group_need(&layout, ring, 3);
	char text[OCS_RAILS_TOPOLOGY] = "00", to[OCS_RAILS_TOPOLOGY];

	(void)state;
	assert_int_equal(need.kind, OCS_RAILS_STAGE);
	assert_int_equal(need.digit, 9);
	ocs_rails_topology_meet(&layout, text, &need, text);
	assert_string_equal(text, "99");
	for (int k = 0; k < 40; k++) {
		topology_judge(&layout, text);
		topology_random(&layout, &seed, to);
		change_judge(&layout, text, to);
		need_judge(&layout, text, (int)(next_random(&seed) % 24), k % 10);
		topology_random(&layout, &seed, text);
	}
	/* All of them over nodes, 1024: digit d joins those that differ in dimension d alone. */
	for (int d = 0; d < 10; d++)
		layout.extent[d] = 2;
	for (int digit = 1; digit <= 9; digit++) {
		const char name[] = { (char)('0' + digit), (char)('0' + digit), '\0' };
		struct ocs_rails_pairs pairs;

		assert_int_equal(ocs_rails_topology_pairs(&layout, name, &pairs, NULL), 0);
		assert_int_equal(pairs.count, 1024);
		for (size_t i = 0; i < pairs.count; i++)
			assert_int_equal(pairs.items[i].a ^ pairs.items[i].b, 1 << (9 - digit));
		ocs_rails_pairs_free(&pairs);
	}
}

/* 111 -> 001 when stages 0 and 1 go to PP; back by stage 0 alone, which takes stage 1 with it. */
static void test_example_of_the_paper(void **state)
{
	struct ocs_rails_need need;
	struct ocs_rails_pairs cut, make;
	char text[OCS_RAILS_TOPOLOGY] = "111";
	const int line[] = { 0, 4 }, ring[] = { 1, 3 };

	(void)state;
	need = ocs_rails_group_need(&paper, line, 2);
	assert_int_equal(need.kind, OCS_RAILS_LINE);
	assert_int_equal(need.first, 0);
	assert_int_equal(need.last, 1);
	ocs_rails_topology_meet(&paper, text, &need, text);
	assert_string_equal(text, "001");
	assert_int_equal(ocs_rails_change(&paper, "111", "001", &cut, &make, NULL), 0);
	/* The eight nodes of two stages: two circuits per pair and ring before, one each after. */
	assert_int_equal(cut.count, 8);
	assert_int_equal(make.count, 4);
	ocs_rails_pairs_free(&cut);
	ocs_rails_pairs_free(&make);
	need = ocs_rails_group_need(&paper, ring, 2);
	assert_int_equal(need.kind, OCS_RAILS_STAGE);
	assert_int_equal(need.digit, 1);
	ocs_rails_topology_meet(&paper, text, &need, text);
	assert_string_equal(text, "111");
}

static void test_stages_that_keep_a_neighbour_stay(void **state)
{
	const struct ocs_rails_layout layout = {
		.ndim = 2, .extent = { 5, 2 }, .asymmetric = 0, .ports = 2
	};
	struct ocs_rails_need need = { .kind = OCS_RAILS_STAGE, .digit = 1, .first = 1, .last = 1 };
	char text[OCS_RAILS_TOPOLOGY] = "00001";

	(void)state;
	/* Stage 0 loses its only neighbour, stages 2 and 3 have each other. */
	ocs_rails_topology_meet(&layout, text, &need, text);
	assert_string_equal(text, "11001");
	ocs_rails_topology_meet(&layout, OCS_RAILS_RING, &need, text);
	assert_string_equal(text, "11111");
}

static void test_groups_that_no_topology_joins(void **state)
{
	const struct ocs_rails_layout layout = {
		.ndim = 2, .extent = { 4, 4 }, .asymmetric = 0, .ports = 2
	};
	static const struct {
		int members[4], count;
		enum ocs_rails_need_kind kind;
	} rows[] = {
		{ { 0, 5 }, 2, OCS_RAILS_OUTSIDE },	/* two dimensions */
		{ { 0, 2 }, 2, OCS_RAILS_OUTSIDE },	/* no neighbours on a ring */
		{ { 0, 1, 2 }, 3, OCS_RAILS_OUTSIDE },	/* an arc does not close */
		{ { 0, 3 }, 2, OCS_RAILS_STAGE },	/* over the end */
		{ { 3, 1, 0, 2 }, 4, OCS_RAILS_STAGE }, /* in any order */
		{ { 0, 8 }, 2, OCS_RAILS_OUTSIDE },	/* a stage between */
		{ { 12, 0 }, 2, OCS_RAILS_LINE },	/* last stage to first */
		{ { 4, 8, 12 }, 3, OCS_RAILS_LINE },	/* an open line */
		{ { 0, 0 }, 2, OCS_RAILS_OUTSIDE },	/* the same one twice */
		{ { 0, 16 }, 2, OCS_RAILS_OUTSIDE },	/* no node of the job */
		{ { -1 }, 1, OCS_RAILS_OUTSIDE },	/* nor this one */
		{ { 7 }, 1, OCS_RAILS_NOTHING },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct ocs_rails_need need =
			ocs_rails_group_need(&layout, rows[i].members, rows[i].count);

		if (need.kind != rows[i].kind)
			fail_msg("row %zu: %d instead of %d", i, need.kind, rows[i].kind);
		if (rows[i].members[0] == 12) {
			assert_int_equal(need.first, 3);
			assert_int_equal(need.last, 0);
			assert_true(ocs_rails_need_met(&need, "0110"));
			assert_false(ocs_rails_need_met(&need, "0011"));
		}
		assert_int_equal(ocs_rails_need_met(&need, OCS_RAILS_RING),
				 need.kind == OCS_RAILS_NOTHING);
	}
}

static void test_giant_ring(void **state)
{
	struct ocs_rails_layout layout = paper;
	struct ocs_rails_pairs pairs;

	(void)state;
	assert_int_equal(ocs_rails_topology_pairs(&paper, OCS_RAILS_RING, &pairs, NULL), 0);
	assert_int_equal(pairs.count, 12);
	for (int i = 0; i < 12; i++) {
		assert_int_equal(pairs.items[i].a, i);
		assert_int_equal(pairs.items[i].b, (i + 1) % 12);
	}
	ocs_rails_pairs_free(&pairs);
	/* One port: a pair is a ring of two, three are none. */
	layout = (struct ocs_rails_layout){
		.ndim = 2, .extent = { 2, 2 }, .asymmetric = 0, .ports = 1
	};
	assert_int_equal(ocs_rails_topology_check(&layout, OCS_RAILS_RING, NULL), -1);
	layout.extent[0] = 1;
	assert_int_equal(ocs_rails_topology_pairs(&layout, OCS_RAILS_RING, &pairs, NULL), 0);
	assert_int_equal(pairs.count, 1);
	ocs_rails_pairs_free(&pairs);
}

static void test_refusals_say_what_works(void **state)
{
	struct ocs_rails_layout layout = paper;
	struct ocs_error err;
	struct ocs_rails_pairs pairs;

	(void)state;
	static const struct {
		const char *text, *says;
	} rows[] = {
		{ "11", "has 2 characters and the job 3 stages" },
		{ "", "has 0 characters" },
		{ "131", "stage 2 is not a digit from 0 to 2" },
		{ "1-1", "stage 2 is not a digit" },
		{ "rings", "has 5 characters" },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		assert_int_equal(ocs_rails_topology_pairs(&paper, rows[i].text, &pairs, &err), -1);
		assert_int_equal(err.code, OCS_USAGE);
		assert_non_null(strstr(err.text, rows[i].says));
		assert_null(pairs.items);
	}
	layout.ports = 1;
	assert_int_equal(ocs_rails_layout_check(&layout, &err), -1);
	assert_int_equal(err.code, OCS_NEVER);
	assert_non_null(strstr(err.text, "two ports per NIC"));
	layout = (struct ocs_rails_layout){ .ndim = 1, .extent = { 65 }, .ports = 2 };
	assert_int_equal(ocs_rails_layout_check(&layout, &err), -1);
	assert_non_null(strstr(err.text, "64 stages"));
	layout = (struct ocs_rails_layout){ .ndim = 10, .asymmetric = -1, .ports = 2 };
	for (int d = 0; d < 10; d++)
		layout.extent[d] = 1;
	assert_int_equal(ocs_rails_layout_check(&layout, &err), -1);
	assert_non_null(strstr(err.text, "9 symmetric"));
}

/* All of a job inside one node. */
static void test_one_node(void **state)
{
	const struct ocs_rails_layout layout = { .ndim = 0, .asymmetric = -1, .ports = 2 };
	struct ocs_rails_pairs pairs;
	char text[OCS_RAILS_TOPOLOGY];

	(void)state;
	ocs_rails_topology_first(&layout, text);
	assert_string_equal(text, "0");
	assert_int_equal(ocs_rails_topology_pairs(&layout, text, &pairs, NULL), 0);
	assert_int_equal(pairs.count, 0);
	ocs_rails_pairs_free(&pairs);
	assert_int_equal(ocs_rails_menu_pairs(&layout, &pairs, NULL), 0);
	assert_int_equal(pairs.count, 0);
	ocs_rails_pairs_free(&pairs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_layout),
		cmocka_unit_test(test_nine_symmetric),
		cmocka_unit_test(test_example_of_the_paper),
		cmocka_unit_test(test_stages_that_keep_a_neighbour_stay),
		cmocka_unit_test(test_groups_that_no_topology_joins),
		cmocka_unit_test(test_giant_ring),
		cmocka_unit_test(test_refusals_say_what_works),
		cmocka_unit_test(test_one_node),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
