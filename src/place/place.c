/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/place/place.h"

#include <stdlib.h>
#include <string.h>

#include "src/place/compact.h"
#include "src/place/placer.h"
#include "src/util/error.h"
#include "src/util/text.h"

struct ocs_placer *ocs_placer_create(const struct ocs_fabric *fabric,
				     const struct ocs_section *section)
{
	struct ocs_placer *placer = ocs_calloc(1, sizeof(*placer));

	placer->fabric = fabric;
	placer->section = section;
	if (section->kind != OCS_TORUS && section->kind != OCS_STATIC)
		return placer;
	placer->fit = ocs_fit_create(section);
	if (section->threading)
		placer->thread = ocs_thread_create(section);
	placer->mark = ocs_calloc((size_t)section->ncubes * (size_t)section->cube_nodes, 1);
	return placer;
}

void ocs_placer_destroy(struct ocs_placer *placer)
{
	int i;

	if (!placer)
		return;
	for (i = 0; i < placer->ncatalogues; i++)
		ocs_catalogue_destroy(placer->catalogues[i]);
	ocs_fit_destroy(placer->fit);
	ocs_thread_destroy(placer->thread);
	free(placer->mark);
	free(placer);
}

int ocs_placer_check(const struct ocs_placer *placer, struct ocs_error *err)
{
	if (!placer->fit)
		return ocs_error_set(err, OCS_USAGE, "section %s has servers, not cubes; shapes are "
				     "placed on torus and static sections", placer->section->name);
	return 0;
}

static bool same_shape(const struct ocs_shape *a, const struct ocs_shape *b)
{
	return a->ndim == b->ndim && a->no_rotate == b->no_rotate && a->no_fold == b->no_fold &&
	       a->twisted == b->twisted &&
	       !memcmp(a->extent, b->extent, sizeof(a->extent[0]) * (size_t)a->ndim) &&
	       !memcmp(a->mesh, b->mesh, sizeof(a->mesh[0]) * (size_t)a->ndim);
}

static struct ocs_catalogue *catalogue_get(struct ocs_placer *placer,
					   const struct ocs_shape *shape, int nodes)
{
	struct ocs_catalogue *cat;
	int i;

	for (i = 0; i < placer->ncatalogues; i++) {
		if (placer->asked[i] == nodes && same_shape(&placer->catalogues[i]->shape, shape))
			break;
	}
	if (i < placer->ncatalogues) {
		cat = placer->catalogues[i];
	} else {
		cat = ocs_catalogue_create(placer->section, shape, nodes);
		ocs_fit_prepare(placer->fit, cat);
		if (placer->ncatalogues == OCS_PLACER_CATALOGUES)
			ocs_catalogue_destroy(placer->catalogues[--placer->ncatalogues]);
		i = placer->ncatalogues++;
	}
	memmove(placer->catalogues + 1, placer->catalogues, (size_t)i * sizeof(*placer->catalogues));
	memmove(placer->asked + 1, placer->asked, (size_t)i * sizeof(*placer->asked));
	placer->catalogues[0] = cat;
	placer->asked[0] = nodes;
	return cat;
}

int ocs_place_node_count(struct ocs_placer *placer, const struct ocs_shape *shape,
			 struct ocs_error *err)
{
	struct ocs_catalogue *cat;

	if (ocs_placer_check(placer, err))
		return -1;
	cat = catalogue_get(placer, shape, 0);
	return cat->ncandidates ? cat->min_nodes : ocs_reason_never(placer, shape, err);
}

enum answer { ANSWER_NONE, ANSWER_BOX, ANSWER_THREAD };

/* The decision is repeated on just the nodes it chose: then it is a function of
 * its own nodes, and placing on them once more cannot give another one. */
static enum answer decide(struct ocs_placer *placer, const struct ocs_catalogue *cat,
			  const struct ocs_occupancy *occupancy)
{
	struct ocs_fit *fit = placer->fit;

	if (placer->section->kind == OCS_STATIC)
		return ocs_fit_scan(fit, cat, occupancy) ? ANSWER_BOX : ANSWER_NONE;
	ocs_fit_load(fit, occupancy);
	if (ocs_fit_search(fit, cat)) {
		ocs_fit_narrow(fit, cat);
		return ocs_fit_search(fit, cat) ? ANSWER_BOX : ANSWER_NONE;
	}
	if (!placer->thread ||
	    !ocs_thread_search(placer->thread, &cat->shape, cat->nodes, fit))
		return ANSWER_NONE;
	ocs_thread_narrow(placer->thread, fit);
	return ocs_thread_search(placer->thread, &cat->shape, cat->nodes, fit) ? ANSWER_THREAD :
	       ANSWER_NONE;
}

struct ocs_placement *ocs_place(struct ocs_placer *placer, const struct ocs_occupancy *occupancy,
				const struct ocs_shape *shape, int node_count,
				struct ocs_error *err)
{
	const struct ocs_candidate *candidate;
	struct ocs_catalogue *cat;
	char text[OCS_SHAPE_TEXT];
	struct ocs_fit *fit;
	enum answer answer;
	char *compact;
	int least;

	least = ocs_place_node_count(placer, shape, err);
	if (least < 0)
		return NULL;
	if (node_count && node_count != least) {
		cat = catalogue_get(placer, shape, node_count);
		if (!cat->ncandidates) {
			ocs_error_set(err, OCS_NEVER, "%s needs %d nodes and cannot be laid on %d",
				      ocs_shape_format(shape, text), least, node_count);
			return NULL;
		}
	} else {
		cat = catalogue_get(placer, shape, 0);
	}
	answer = decide(placer, cat, occupancy);
	if (answer == ANSWER_NONE) {
		ocs_reason_not_now(placer, cat, occupancy, err);
		return NULL;
	}
	if (answer == ANSWER_THREAD) {
		compact = ocs_thread_encode(placer->thread, shape, err);
		return compact ? ocs_thread_make(placer->section, shape, &placer->thread->way,
						 placer->thread->ring, placer->thread->cubes,
						 placer->mark, compact) : NULL;
	}
	fit = placer->fit;
	candidate = &cat->candidates[fit->candidate];
	compact = ocs_compact_encode(shape, &cat->foldings[candidate->folding], &fit->lay,
				     fit->piece_cube, err);
	if (!compact)
		return NULL;
	return ocs_placement_make(placer->section, shape,
				  &cat->tables[candidate->folding], &fit->lay, fit->piece_cube,
				  candidate->circuits, placer->mark, compact);
}
