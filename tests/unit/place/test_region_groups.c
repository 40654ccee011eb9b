/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Groups of experts in regions, against an oracle that tries every choice. */

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/config/config.h"
#include "src/fold/shape.h"
#include "src/place/region_groups.h"
#include "src/util/error.h"
#include "src/util/text.h"
#include "tests/unit/place/place_random.h"

#define SERVERS 64

static struct ocs_config *config_open(const char *line)
{
	struct ocs_config *config = ocs_config_open(line, NULL);

	assert_non_null(config);
	return config;
}

static void layout_wants(const char *line, const char *text, int groups, int servers)
{
	struct ocs_config *config = config_open(line);
	struct ocs_region_layout layout;
	struct ocs_shape shape;

	assert_int_equal(ocs_shape_parse(text, NULL, &shape, NULL), 0);
	assert_int_equal(
		ocs_region_layout_make(&config->fabric->sections[0], &shape, &layout, NULL), 0);
	assert_int_equal(layout.groups, groups);
	assert_int_equal(layout.servers, servers);
	ocs_config_destroy(config);
}

static void layout_refused(const char *line, const char *text, int code, const char *words)
{
	struct ocs_config *config = config_open(line);
	struct ocs_region_layout layout;
	struct ocs_shape shape;
	struct ocs_error err;

	assert_int_equal(ocs_shape_parse(text, NULL, &shape, NULL), 0);
	assert_int_equal(
		ocs_region_layout_make(&config->fabric->sections[0], &shape, &layout, &err), -1);
	assert_int_equal(err.code, code);
	if (!strstr(err.text, words))
		fail_msg("\"%s\" lacks \"%s\"", err.text, words);
	ocs_config_destroy(config);
}

static void test_layouts(void **state)
{
	static const char line[] = "region servers:32 degree:6 xpus:8 region:8";

	(void)state;
	layout_wants(line, "pp:4,ep:8,tp:4", 4, 4);
	layout_wants(line, "dp:2,pp:4,EP:8,tp:4", 8, 4);
	layout_wants(line, "ep:8", 1, 1);
	layout_wants("region servers:32 degree:6", "pp:2,ep:16", 2, 16);
	layout_refused(line, "pp:4,tp:8", OCS_USAGE, "one dimension is called ep");
	layout_refused(line, "pp:4,ep:3,tp:4", OCS_NEVER, "12 XPUs, which servers of 8");
	layout_refused(line, "ep:32,tp:4", OCS_NEVER, "a region of region has 8");
	layout_refused(line, "pp:16,ep:8,tp:4", OCS_NEVER, "64 servers, region has 32");
}

/* Best of all ways to give regions groups: free servers left in those that have some, then their number. */
static long oracle(const struct ocs_section *section, const struct ocs_region_layout *layout,
		   const bool *idle, const bool *required, int region, int groups)
{
	int first, size, count = 0, wanted = 0;
	long best = LONG_MAX;

	if (region == section->nregions)
		return groups ? LONG_MAX : 0;
	first = ocs_section_region_first(section, region);
	size = ocs_section_region_size(section, region);
	for (int s = first; s < first + size; s++) {
		count += idle[s];
		wanted += required[s];
	}
	for (int g = 0; g <= groups && g * layout->servers <= count; g++) {
		long rest;

		if (g * layout->servers < wanted)
			continue;
		rest = oracle(section, layout, idle, required, region + 1, groups - g);
		if (rest == LONG_MAX)
			continue;
		if (g)
			rest += (long)(count - g * layout->servers) * 1000 + 1;
		best = rest < best ? rest : best;
	}
	return best;
}

static long outcome(const struct ocs_section *section, const bool *idle, const int *servers,
		    int count)
{
	long cost = 0;

	for (int r = 0; r < section->nregions; r++) {
		int first = ocs_section_region_first(section, r), left = 0, taken = 0;

		for (int s = first; s < first + ocs_section_region_size(section, r); s++)
			left += idle[s];
		for (int i = 0; i < count; i++)
			taken += ocs_section_region(section, servers[i]) == r;
		if (taken)
			cost += (long)(left - taken) * 1000 + 1;
	}
	return cost;
}

static void choice_check(const struct ocs_section *section, const struct ocs_region_layout *layout,
			 const bool *idle, const bool *required)
{
	int servers[SERVERS], count;
	struct ocs_error err;
	long best = oracle(section, layout, idle, required, 0, layout->groups);

	count = ocs_region_place(section, layout, idle, required, servers, &err);
	if (best == LONG_MAX) {
		assert_int_equal(count, -1);
		assert_true(err.code == OCS_NOT_NOW || err.code == OCS_NEVER);
		return;
	}
	assert_int_equal(count, layout->groups * layout->servers);
	assert_int_equal(ocs_region_check(section, layout, servers, count, &err), 0);
	for (int i = 0; i < count; i++) {
		assert_true(idle[servers[i]]);
		assert_true(i == 0 || servers[i - 1] < servers[i]);
	}
	for (int s = 0; s < section->nservers; s++) {
		bool found = !required[s];

		for (int i = 0; i < count; i++)
			found |= servers[i] == s;
		assert_true(found);
	}
	assert_int_equal(outcome(section, idle, servers, count), best);
}

static void test_oracle(void **state)
{
	int placed = 0, refused = 0;

	(void)state;
	for (int round = 0; round < 4000; round++) {
		int size = 2 + (int)random_next(9);
		int nservers = size + (int)random_next((uint32_t)(SERVERS - 1 - size));
		char *line = ocs_asprintf("region servers:%d degree:2 region:%d", nservers, size);
		struct ocs_config *config = config_open(line);
		const struct ocs_section *section = &config->fabric->sections[0];
		struct ocs_region_layout layout = {
			.groups = 1 + (int)random_next(6),
			.servers = 1 + (int)random_next((uint32_t)size),
			.node_xpus = 1,
		};
		bool idle[SERVERS], required[SERVERS];
		int servers[SERVERS];

		for (int s = 0; s < nservers; s++) {
			idle[s] = random_next(4) > 0;
			required[s] = idle[s] && round % 2 && random_next(20) == 0;
		}
		choice_check(section, &layout, idle, required);
		if (ocs_region_place(section, &layout, idle, required, servers, NULL) < 0)
			refused++;
		else
			placed++;
		ocs_config_destroy(config);
		free(line);
	}
	assert_true(placed > 1000 && refused > 500);
}

static void test_reasons(void **state)
{
	struct ocs_config *config = config_open("region servers:24 degree:6 xpus:8 region:8");
	const struct ocs_section *section = &config->fabric->sections[0];
	struct ocs_region_layout layout = { .groups = 3, .servers = 4, .node_xpus = 8 };
	bool idle[24] = { false };
	struct ocs_error err;
	int servers[24];

	(void)state;
	for (int s = 0; s < 24; s++)
		idle[s] = s % 8 < 5;
	assert_int_equal(ocs_region_place(section, &layout, idle, NULL, servers, &err), 12);
	idle[8] = idle[9] = false;
	assert_int_equal(ocs_region_place(section, &layout, idle, NULL, servers, &err), -1);
	assert_int_equal(err.code, OCS_NOT_NOW);
	assert_non_null(strstr(err.text, "room for 2 (free servers of the regions: 5, 3 and 5)"));
	layout.groups = 7;
	assert_int_equal(ocs_region_place(section, &layout, idle, NULL, servers, &err), -1);
	assert_int_equal(err.code, OCS_NEVER);
	ocs_config_destroy(config);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layouts),
		cmocka_unit_test(test_oracle),
		cmocka_unit_test(test_reasons),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
