/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/place/place.h"

#include <stdlib.h>
#include <string.h>

#include "src/place/placement_encoding.h"
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
	placer->catalogues = ocs_catalogue_cache_create(OCS_PLACER_BYTES);
	placer->fit = ocs_box_search_create(section);
	if (section->kind == OCS_TORUS)
		placer->ring = ocs_ring_create(section);
	placer->mark = ocs_calloc((size_t)section->ncubes * (size_t)section->cube_nodes, 1);
	return placer;
}

void ocs_placer_destroy(struct ocs_placer *placer)
{
	if (!placer)
		return;
	ocs_catalogue_cache_destroy(placer->catalogues);
	ocs_catalogue_scratch_free(&placer->scratch);
	ocs_box_search_destroy(placer->fit);
	ocs_ring_destroy(placer->ring);
	free(placer->mark);
	free(placer);
}

void ocs_placer_limit_set(struct ocs_placer *placer, size_t bytes)
{
	if (placer->catalogues)
		placer->catalogues->limit = bytes;
}

int ocs_placer_check(const struct ocs_placer *placer, struct ocs_error *err)
{
	if (!placer->fit)
		return ocs_error_set(err, OCS_USAGE,
				     "section %s has servers, not cubes; shapes are "
				     "placed on torus and static sections",
				     placer->section->name);
	return 0;
}

struct ocs_catalogue *ocs_placer_catalogue(struct ocs_placer *placer, const struct ocs_shape *shape,
					   int nodes)
{
	struct ocs_catalogue *cat = ocs_catalogue_cache_get(placer->catalogues, shape, nodes);

	if (cat)
		return cat;
	cat = ocs_catalogue_create(placer->section, shape, nodes, &placer->scratch);
	placer->work.catalogues++;
	ocs_box_search_prepare(placer->fit, cat);
	ocs_catalogue_cache_add(placer->catalogues, cat, nodes);
	return cat;
}

int ocs_place_node_count(struct ocs_placer *placer, const struct ocs_shape *shape,
			 struct ocs_error *err)
{
	struct ocs_catalogue *cat;
	char text[OCS_SHAPE_TEXT];

	if (ocs_placer_check(placer, err))
		return -1;
	cat = ocs_placer_catalogue(placer, shape, 0);
	if (cat->ncandidates)
		return cat->min_nodes;
	return ocs_error_set(err, OCS_NEVER, "%s can never be laid here",
			     ocs_shape_format(shape, text));
}

enum answer { ANSWER_NONE, ANSWER_BOX, ANSWER_RING };

/* Adds what is next to CAT, which is the one used last. */
static bool catalogue_more(struct ocs_placer *placer, struct ocs_catalogue *cat)
{
	size_t before = cat->bytes;
	bool more = ocs_catalogue_more(cat, &placer->scratch);

	placer->work.catalogues += more;
	ocs_catalogue_cache_grown(placer->catalogues, before);
	ocs_box_search_prepare(placer->fit, cat);
	return more;
}

/* Among candidates from FROM on; those of more cubes are made only when those of fewer do not
 * fit. */
static bool box_search(struct ocs_placer *placer, struct ocs_catalogue *cat, int from)
{
	const int *tile = placer->section->tile;

	if ((long)cat->nodes * tile[0] * tile[1] * tile[2] > placer->fit->xpus)
		return false;
	while (!ocs_box_search_best(placer->fit, cat, from)) {
		from = cat->ncandidates;
		if (!cat->rest || !catalogue_more(placer, cat))
			return false;
	}
	return true;
}

/* A ring through what is free, on at most CUBES, if these have so many XPUs. */
static bool ring_lay(struct ocs_placer *placer, const struct ocs_catalogue *cat, int cubes)
{
	const int *tile = placer->section->tile;
	struct ocs_box_search *fit = placer->fit;
	bool found;

	if (cubes <
	    ocs_box_search_cubes_holding(fit, (long)cat->nodes * tile[0] * tile[1] * tile[2]))
		return false;
	found = ocs_ring_lay(placer->ring, &cat->shape, cat->nodes, fit, cubes);
	placer->work.searched += placer->ring->work;
	placer->work.bounded |= placer->ring->spent;
	return found;
}

/* What fits the loaded cubes: a box from candidate FROM on, or a ring on fewer cubes.  BOXES:
 * whether a box may fit; then whether one does. */
static enum answer answer_search(struct ocs_placer *placer, struct ocs_catalogue *cat,
				 const struct ocs_occupancy *occupancy, int from, bool *boxes)
{
	struct ocs_box_search *fit = placer->fit;
	bool found;

	if (placer->section->kind == OCS_STATIC)
		return ocs_static_search(fit, cat, occupancy) ? ANSWER_BOX : ANSWER_NONE;
	found = *boxes && box_search(placer, cat, from);
	*boxes = found;
	if (ring_lay(placer, cat, found ? cat->candidates[fit->candidate].cubes - 1 : fit->n))
		return ANSWER_RING;
	return found ? ANSWER_BOX : ANSWER_NONE;
}

/* The decision is repeated on just the nodes it chose: then it is a function of
 * its own nodes, and placing on them once more cannot give another one. */
static enum answer answer_decide(struct ocs_placer *placer, struct ocs_catalogue *cat,
				 const struct ocs_occupancy *occupancy)
{
	struct ocs_box_search *fit = placer->fit;
	enum answer answer;
	bool boxes = true, settled;

	if (placer->section->kind == OCS_TORUS)
		ocs_cube_sets_load(fit, occupancy);
	answer = answer_search(placer, cat, occupancy, 0, &boxes);
	if (answer == ANSWER_BOX && placer->section->kind == OCS_STATIC)
		return answer; /* the scan has repeated it */
	settled = answer == ANSWER_RING && ocs_ring_settled(placer->ring);
	if (settled && !boxes)
		return answer;
	if (answer == ANSWER_BOX)
		ocs_box_search_narrow(fit, cat);
	else if (answer == ANSWER_RING)
		ocs_ring_narrow(placer->ring, fit);
	else
		return ANSWER_NONE;
	/* where no box fits all that is free none fits a part of it, and where one does none
	 * before it */
	if (settled && !box_search(placer, cat, fit->candidate + 1))
		return answer;
	return answer_search(placer, cat, occupancy, fit->first, &boxes);
}

void ocs_placer_work(const struct ocs_placer *placer, struct ocs_place_work *work)
{
	*work = placer->work;
}

struct ocs_placement *ocs_place(struct ocs_placer *placer, const struct ocs_occupancy *occupancy,
				const struct ocs_shape *shape, int node_count,
				struct ocs_error *err)
{
	const struct ocs_candidate *candidate;
	const struct ocs_fold_table *table;
	struct ocs_catalogue *cat;
	size_t bytes;
	char text[OCS_SHAPE_TEXT];
	struct ocs_box_search *fit;
	enum answer answer;
	char *compact;
	int least;

	memset(&placer->work, 0, sizeof(placer->work));
	least = ocs_place_node_count(placer, shape, err);
	if (least < 0)
		return NULL;
	if (node_count && node_count != least) {
		cat = ocs_placer_catalogue(placer, shape, node_count);
		if (!cat->ncandidates) {
			ocs_error_set(err, OCS_NEVER, "%s needs %d nodes and cannot be laid on %d",
				      ocs_shape_format(shape, text), least, node_count);
			return NULL;
		}
	} else {
		cat = ocs_placer_catalogue(placer, shape, 0);
	}
	fit = placer->fit;
	fit->candidates_seen = fit->words_compared = 0;
	fit->bounded = false;
	answer = answer_decide(placer, cat, occupancy);
	placer->work.candidates = fit->candidates_seen;
	placer->work.words = fit->words_compared;
	placer->work.bounded |= fit->bounded;
	if (answer == ANSWER_NONE) {
		ocs_error_set(err, OCS_NOT_NOW, "there is no room for %s now",
			      ocs_shape_format(shape, text));
		return NULL;
	}
	if (answer == ANSWER_RING) {
		compact = ocs_ring_encode(placer->ring, shape, err);
		return compact ? ocs_ring_placement(placer->section, shape, &placer->ring->way,
						    placer->ring->ring, placer->ring->cubes,
						    placer->mark, compact) :
				 NULL;
	}
	candidate = &cat->candidates[fit->candidate];
	compact = ocs_placement_encode(shape, &cat->foldings[candidate->folding], &fit->lay,
				       fit->piece_cube, err);
	if (!compact)
		return NULL;
	bytes = cat->bytes;
	table = ocs_catalogue_table(cat, candidate->folding);
	ocs_catalogue_cache_grown(placer->catalogues, bytes);
	return ocs_placement_make(placer->section, shape, table, &fit->lay, fit->piece_cube,
				  candidate->circuits, placer->mark, compact);
}
