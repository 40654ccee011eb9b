/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <stdlib.h>
#include <string.h>

#include "src/place/placer.h"
#include "src/policy/internal.h"
#include "src/util/error.h"
#include "src/util/text.h"

static const struct {
	const char *name;
	enum ocs_policy_kind kind;
} names[] = {
	{ "best", OCS_POLICY_BEST },
	{ "firstfit", OCS_POLICY_FIRSTFIT },
	{ "folding", OCS_POLICY_FOLDING },
	{ "reconfig", OCS_POLICY_RECONFIG },
	{ "rfold", OCS_POLICY_RFOLD },
	{ "published-reconfig", OCS_POLICY_PUBLISHED_RECONFIG },
	{ "scratch", OCS_POLICY_SCRATCH },
	{ "unconstrained", OCS_POLICY_UNCONSTRAINED },
	{ "best-effort", OCS_POLICY_BEST_EFFORT },
};
#define NNAMES (sizeof(names) / sizeof(names[0]))

static int kind_check(const struct ocs_section *section, const char *name,
		      enum ocs_policy_kind kind, struct ocs_error *err)
{
	if (section->kind != OCS_TORUS && section->kind != OCS_STATIC)
		return ocs_error_set(err, OCS_USAGE,
				     "section %s has servers, not cubes; policies "
				     "place shapes on torus and static sections",
				     section->name);
	if ((kind == OCS_POLICY_FIRSTFIT || kind == OCS_POLICY_FOLDING) &&
	    section->kind != OCS_STATIC)
		return ocs_error_set(
			err, OCS_USAGE,
			"policy %s is for a static torus such as "
			"'static:16x16x16 tile:1x1x1'; on cubes use reconfig, rfold or "
			"best",
			name);
	if ((kind == OCS_POLICY_RECONFIG || kind == OCS_POLICY_RFOLD ||
	     kind == OCS_POLICY_PUBLISHED_RECONFIG) &&
	    section->kind != OCS_TORUS)
		return ocs_error_set(err, OCS_USAGE,
				     "policy %s is for cubes such as 'torus "
				     "cubes:4x4x4 cube:4x4x4 tile:1x1x1'; on a static torus use "
				     "firstfit, folding or best",
				     name);
	return 0;
}

struct ocs_policy *ocs_policy_create(const struct ocs_fabric *fabric,
				     const struct ocs_section *section, const char *name,
				     bool lenient, struct ocs_error *err)
{
	struct ocs_policy *policy;
	size_t i;

	for (i = 0; i < NNAMES && strcmp(names[i].name, name); i++)
		;
	if (i == NNAMES) {
		ocs_error_set(err, OCS_USAGE,
			      "there is no policy '%s'; use best, best-effort, "
			      "firstfit, folding, reconfig, rfold, published-reconfig, scratch or "
			      "unconstrained",
			      name);
		return NULL;
	}
	if (kind_check(section, name, names[i].kind, err))
		return NULL;
	policy = ocs_calloc(1, sizeof(*policy));
	policy->kind = names[i].kind;
	policy->fabric = fabric;
	policy->section = section;
	policy->lenient = lenient;
	policy->load = 2;
	policy->placer = ocs_placer_create(fabric, section);
	ocs_placer_limit_set(policy->placer, OCS_POLICY_BYTES);
	policy->room = 64;
	policy->shapes = ocs_calloc((size_t)policy->room, sizeof(*policy->shapes));
	policy->scratch = ocs_occupancy_create(section);
	return policy;
}

void ocs_policy_destroy(struct ocs_policy *policy)
{
	int i;

	if (!policy)
		return;
	for (i = 0; i < policy->room; i++)
		ocs_policy_boxes_free(&policy->shapes[i]);
	ocs_placer_destroy(policy->placer);
	ocs_occupancy_destroy(policy->scratch);
	ocs_routes_destroy(policy->routes);
	ocs_policy_scratch_destroy(policy->scratch_jobs);
	free(policy->shapes);
	free(policy);
}

void ocs_policy_load_set(struct ocs_policy *policy, int load)
{
	policy->load = load;
}

void ocs_policy_bytes_set(struct ocs_policy *policy, size_t bytes)
{
	ocs_placer_limit_set(policy->placer, bytes);
}

void ocs_policy_work(const struct ocs_policy *policy, struct ocs_place_work *work)
{
	*work = policy->work;
}

struct ocs_routes *ocs_policy_routes_take(struct ocs_policy *policy)
{
	struct ocs_routes *routes = policy->routes;

	policy->routes = NULL;
	return routes;
}

bool ocs_policy_verifiable(const struct ocs_policy *policy)
{
	return policy->kind != OCS_POLICY_PUBLISHED_RECONFIG &&
	       policy->kind != OCS_POLICY_UNCONSTRAINED && policy->kind != OCS_POLICY_SCRATCH;
}

static struct ocs_policy_shape *shape_slot(struct ocs_policy_shape *shapes, int room,
					   const struct ocs_shape *shape)
{
	unsigned int hash = 2166136261u;
	int d;

	for (d = 0; d < shape->ndim; d++)
		hash = (hash ^ (unsigned int)shape->extent[d] ^
			(unsigned int)shape->mesh[d] << 24) *
		       16777619u;
	hash = (hash ^ (unsigned int)(shape->twisted + 2 * shape->no_fold + 4 * shape->no_rotate)) *
	       16777619u;
	hash ^= hash >> 15;
	while (shapes[hash % (unsigned int)room].known &&
	       !ocs_shape_same(&shapes[hash % (unsigned int)room].shape, shape))
		hash++;
	return &shapes[hash % (unsigned int)room];
}

static void shapes_grow(struct ocs_policy *policy)
{
	int room = 2 * policy->room, i;
	struct ocs_policy_shape *shapes = ocs_calloc((size_t)room, sizeof(*shapes));

	for (i = 0; i < policy->room; i++) {
		if (policy->shapes[i].known)
			*shape_slot(shapes, room, &policy->shapes[i].shape) = policy->shapes[i];
	}
	free(policy->shapes);
	policy->shapes = shapes;
	policy->room = room;
}

/* The lines to try, in order: as few dimensions as possible. */
static bool best_lenient(struct ocs_policy *policy, struct ocs_policy_shape *entry, int lines)
{
	int all = (1 << entry->shape.ndim) - 1, mask, d;

	for (mask = 1; mask <= all; mask++) {
		struct ocs_shape use = entry->shape;
		bool sensible = __builtin_popcount((unsigned int)mask) == lines;

		for (d = 0; d < use.ndim && sensible; d++) {
			if (!(mask & 1 << d))
				continue;
			sensible = use.extent[d] > 2 && !use.mesh[d];
			use.mesh[d] = true;
		}
		if (sensible && ocs_place_node_count(policy->placer, &use, NULL) > 0) {
			entry->use = use;
			return true;
		}
	}
	return false;
}

static void best_learn(struct ocs_policy *policy, struct ocs_policy_shape *entry)
{
	struct ocs_error err;
	int lines;

	entry->use = entry->shape;
	entry->possible = ocs_place_node_count(policy->placer, &entry->shape, &err) > 0;
	if (!policy->lenient || entry->shape.twisted)
		return;
	for (lines = 1; lines <= entry->shape.ndim && !entry->possible; lines++)
		entry->possible = best_lenient(policy, entry, lines);
}

static bool loose_possible(struct ocs_policy *policy, const struct ocs_shape *shape)
{
	struct ocs_placement *p;

	ocs_occupancy_reset(policy->scratch);
	p = ocs_policy_loose_place(policy, shape, policy->scratch);
	ocs_placement_destroy(p);
	return p != NULL;
}

static struct ocs_policy_shape *shape_learn(struct ocs_policy *policy,
					    const struct ocs_shape *shape)
{
	struct ocs_policy_shape *entry = shape_slot(policy->shapes, policy->room, shape);

	if (entry->known)
		return entry;
	if (2 * ++policy->nshapes > policy->room) {
		shapes_grow(policy);
		entry = shape_slot(policy->shapes, policy->room, shape);
	}
	entry->known = true;
	entry->shape = *shape;
	switch (policy->kind) {
	case OCS_POLICY_BEST:
	case OCS_POLICY_SCRATCH:
		best_learn(policy, entry);
		break;
	case OCS_POLICY_BEST_EFFORT:
		ocs_policy_effort_learn(policy, entry);
		break;
	case OCS_POLICY_PUBLISHED_RECONFIG:
		entry->use = *shape;
		entry->possible = loose_possible(policy, shape);
		break;
	case OCS_POLICY_UNCONSTRAINED:
		entry->use = *shape;
		entry->possible =
			shape->xpus <= (long)policy->section->ncubes * policy->section->cube_xpus;
		break;
	default:
		ocs_policy_boxes(policy, entry);
		entry->possible = entry->nboxes > 0;
	}
	return entry;
}

bool ocs_policy_known(struct ocs_policy *policy, const struct ocs_shape *shape)
{
	return shape_slot(policy->shapes, policy->room, shape)->known;
}

bool ocs_policy_possible(struct ocs_policy *policy, const struct ocs_shape *shape)
{
	return shape_learn(policy, shape)->possible;
}

struct ocs_placement *ocs_policy_place(struct ocs_policy *policy,
				       const struct ocs_occupancy *occupancy,
				       const struct ocs_shape *shape, struct ocs_error *err)
{
	const struct ocs_policy_shape *entry = shape_learn(policy, shape);
	struct ocs_placement *placement = NULL;
	char text[OCS_SHAPE_TEXT];

	ocs_routes_destroy(ocs_policy_routes_take(policy));
	memset(&policy->work, 0, sizeof(policy->work));
	if (!entry->possible) {
		ocs_error_set(err, OCS_NEVER, "%s can never fit by the rules of the policy",
			      ocs_shape_format(shape, text));
		return NULL;
	}
	switch (policy->kind) {
	case OCS_POLICY_BEST:
		placement = ocs_place(policy->placer, occupancy, &entry->use, 0, err);
		ocs_placer_work(policy->placer, &policy->work);
		return placement;
	case OCS_POLICY_BEST_EFFORT:
		placement = ocs_policy_effort_place(policy, entry, occupancy);
		break;
	case OCS_POLICY_PUBLISHED_RECONFIG:
		placement = ocs_policy_loose_place(policy, shape, occupancy);
		break;
	case OCS_POLICY_SCRATCH:
		placement = ocs_policy_scratch_place(policy, entry, occupancy);
		break;
	case OCS_POLICY_UNCONSTRAINED:
		placement = ocs_policy_any_place(policy, shape, occupancy);
		break;
	default:
		placement = ocs_policy_box_place(policy, entry, occupancy);
	}
	if (!placement)
		ocs_error_set(err, OCS_NOT_NOW, "%s does not fit into what is free now",
			      ocs_shape_format(shape, text));
	return placement;
}
