/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The cache of catalogues against a list that is searched from its front: the same ones stay, in number
 * and in bytes. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/place/catalogue_cache.h"
#include "src/place/catalogue_scratch.h"
#include "tests/unit/place/place_check.h"
#include "tests/unit/place/place_random.h"

#define SHAPES 6000

struct listed {
	int shape, nodes;
	size_t bytes;
};

struct list {
	struct listed items[OCS_CATALOGUES + 1]; /* last used first */
	int count;
	size_t bytes;
};

/* Shape I: no two are alike, by extents, rings or lines, and what may be done to them. */
static struct ocs_shape shape_make(int i)
{
	struct ocs_shape shape = { .ndim = 2, .extent = { 1 + i / 8 % 30, 2 + i / 240 } };

	shape.mesh[1] = i & 1;
	shape.no_rotate = i & 2;
	shape.no_fold = i & 4;
	shape.xpus = (long)shape.extent[0] * shape.extent[1];
	return shape;
}

static void list_limit(struct list *list)
{
	while (list->count > OCS_CATALOGUES || (list->count > 1 && list->bytes > OCS_PLACER_BYTES))
		list->bytes -= list->items[--list->count].bytes;
}

/* Asks for SHAPE in both; it is made with ADD bytes more where it is missing. */
static void ask(struct ocs_catalogue_cache *cache, struct list *list,
		const struct ocs_section *section, int i, int nodes, size_t add)
{
	struct ocs_shape shape = shape_make(i);
	struct ocs_catalogue *cat = ocs_catalogue_cache_get(cache, &shape, nodes);
	struct ocs_catalogue_scratch scratch = { 0 };
	struct listed now = { i, nodes, 0 };
	int at = 0;

	while (at < list->count && (list->items[at].shape != i || list->items[at].nodes != nodes))
		at++;
	assert_int_equal(cat != NULL, at < list->count);
	if (cat) {
		assert_memory_equal(&cat->shape, &shape, sizeof(shape));
		now = list->items[at];
	} else {
		cat = ocs_catalogue_create(section, &shape, 0, &scratch);
		ocs_catalogue_scratch_free(&scratch);
		cat->bytes += add;
		now.bytes = cat->bytes;
		ocs_catalogue_cache_add(cache, cat, nodes);
		list->bytes += now.bytes;
		list->count++;
	}
	memmove(list->items + 1, list->items, (size_t)at * sizeof(now));
	list->items[0] = now;
	list_limit(list);
	assert_int_equal(cache->count, list->count);
	assert_int_equal(cache->bytes, list->bytes);
	assert_ptr_equal(cache->entries[cache->last].catalogue, cat);
}

static void test_against_a_list(void **state)
{
	struct ocs_catalogue_cache *cache = ocs_catalogue_cache_create(OCS_PLACER_BYTES);
	struct list *list = calloc(1, sizeof(*list));
	struct setup s;
	size_t before;
	int i;

	(void)state;
	open_fabric(&s, "torus cubes:1x1x1 cube:1x1x1 tile:1x1x1");
	random_state = 5;
	/* more than there is room for by number, */
	for (i = 0; i < 2 * SHAPES; i++)
		ask(cache, list, s.section,
		    (int)(random_next(2) ? random_next(SHAPES) : random_next(500)),
		    (int)random_next(2), 0);
	assert_int_equal(cache->count, OCS_CATALOGUES);
	/* and by what they take */
	for (i = 0; i < SHAPES; i++)
		ask(cache, list, s.section, (int)random_next(SHAPES), 0, 1 << random_next(21));
	assert_true(cache->count < OCS_CATALOGUES / 2);
	/* one that alone takes more than all may stays by itself */
	before = cache->entries[cache->last].catalogue->bytes;
	cache->entries[cache->last].catalogue->bytes += OCS_PLACER_BYTES;
	ocs_catalogue_cache_grown(cache, before);
	assert_int_equal(cache->count, 1);
	ocs_catalogue_cache_destroy(cache);
	free(list);
	close_fabric(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_against_a_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
