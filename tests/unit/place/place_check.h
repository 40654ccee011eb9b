/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef TESTS_UNIT_PLACE_CHECK_H
#define TESTS_UNIT_PLACE_CHECK_H

/* What must hold for any placement that the engine makes. */

#include <string.h>

#include <json-c/json.h>

#include "src/config/config.h"
#include "src/place/place.h"
#include "src/util/error.h"

struct setup {
	struct ocs_fabric *fabric;
	const struct ocs_section *section;
	struct ocs_placer *placer;
	struct ocs_occupancy *occupancy;
};

static inline void open_fabric(struct setup *s, const char *line)
{
	struct ocs_error err = { 0 };

	s->fabric = ocs_config_take_fabric(ocs_config_open(line, &err));
	if (!s->fabric)
		fail_msg("%s: %s", line, err.text);
	s->section = &s->fabric->sections[0];
	s->placer = ocs_placer_create(s->fabric, s->section);
	s->occupancy = ocs_occupancy_create(s->section);
}

static inline void close_fabric(struct setup *s)
{
	ocs_occupancy_destroy(s->occupancy);
	ocs_placer_destroy(s->placer);
	ocs_fabric_destroy(s->fabric);
}

static inline void assert_same(const struct ocs_placement *a, const struct ocs_placement *b)
{
	assert_int_equal(a->shape.xpus, b->shape.xpus);
	assert_memory_equal(a->xpus, b->xpus, sizeof(*a->xpus) * (size_t)a->shape.xpus);
	assert_int_equal(a->ncircuits, b->ncircuits);
	if (a->ncircuits)
		assert_memory_equal(a->circuits, b->circuits,
				    sizeof(*a->circuits) * (size_t)a->ncircuits);
	assert_int_equal(a->nnodes, b->nnodes);
	assert_memory_equal(a->nodes, b->nodes, sizeof(int) * (size_t)a->nnodes);
	assert_int_equal(a->ncubes, b->ncubes);
	assert_memory_equal(a->cubes, b->cubes, sizeof(int) * (size_t)a->ncubes);
}

/* Everything that must hold for any placement. */
static inline void check(struct setup *s, const struct ocs_placement *p)
{
	struct ocs_occupancy *only = ocs_occupancy_create(s->section);
	struct ocs_placement *again;
	struct json_object *json;
	struct ocs_error err = { 0 };
	const char *c;
	int i;

	if (ocs_placement_verify(s->fabric, s->occupancy, p, &err))
		fail_msg("%s: %s", p->compact, err.text);
	for (c = p->compact; *c; c++)
		assert_non_null(strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				       "0123456789.,:+_-",
				       *c));
	assert_true(strlen(p->compact) <= OCS_COMPACT_MAX);
	again = ocs_placement_decode(s->placer, p->compact, &err);
	if (!again)
		fail_msg("%s: %s", p->compact, err.text);
	assert_same(p, again);
	assert_memory_equal(&p->shape, &again->shape, sizeof(p->shape));
	ocs_placement_destroy(again);

	json = ocs_placement_to_json(s->fabric, p);
	again = ocs_placement_from_json(s->fabric, json, &err);
	if (!again)
		fail_msg("%s: %s", p->compact, err.text);
	assert_same(p, again);
	json_object_put(json);
	ocs_placement_destroy(again);

	/* exactly its own nodes: the same answer */
	ocs_occupancy_copy(only, s->occupancy);
	ocs_occupancy_fill(only);
	for (i = 0; i < p->nnodes; i++)
		ocs_occupancy_node_set(only, s->fabric, p->nodes[i], true);
	again = ocs_place(s->placer, only, &p->shape, p->nnodes, &err);
	if (!again)
		fail_msg("%s: not on its own nodes: %s", p->compact, err.text);
	assert_string_equal(p->compact, again->compact);
	assert_same(p, again);
	ocs_placement_destroy(again);
	ocs_occupancy_destroy(only);
}

#endif
