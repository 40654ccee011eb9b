/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/advice/nearest_shape.h"
#include "src/advice/reason.h"
#include "src/place/placer.h"
#include "src/util/error.h"
#include "src/util/text.h"

#define NEAR 3	       /* shapes named */
#define CUBES_MAX 4096 /* looked at when there are too few, but twice as many always */

/* "4x4x4 cubes" or "a 16x16x16 torus". */
static const char *machine_name(const struct ocs_section *s, char buffer[64])
{
	bool fixed = s->kind == OCS_STATIC;

	snprintf(buffer, 64, "%s%dx%dx%d %s", fixed ? "a " : "", s->edge[0], s->edge[1], s->edge[2],
		 fixed ? "torus" : "cubes");
	return buffer;
}

/* Straight, or in some folding of its own. */
static bool ring_closes(const struct ocs_section *s, const struct ocs_shape *shape, int dim)
{
	int extent = shape->extent[dim], a;

	for (a = 0; a < OCS_AXES; a++) {
		if (s->kind == OCS_STATIC ? extent == s->edge[a] : extent % s->edge[a] == 0)
			return true;
	}
	return ocs_reason_alone(s, shape, dim, extent);
}

static void names_add(struct ocs_text *text, const char *before, const struct ocs_shape *near,
		      int n)
{
	char buffer[OCS_SHAPE_TEXT];
	int i;

	for (i = 0; i < n; i++)
		ocs_text_add(text, "%s%s", i ? ", " : before, ocs_shape_format(&near[i], buffer));
}

/* Lines instead of rings: of those that cannot close alone if that is enough, else of all. */
static bool open_rings(const struct ocs_section *s, const struct ocs_shape *shape,
		       struct ocs_shape *mesh)
{
	bool some = false, all = false;
	int i;

	*mesh = *shape;
	mesh->twisted = false;
	for (i = 0; i < shape->ndim; i++) {
		if (!shape->mesh[i] && shape->extent[i] > 2 && shape->extent[i] % 2 &&
		    !ring_closes(s, shape, i))
			some = mesh->mesh[i] = true;
	}
	if (some && ocs_catalogue_possible(s, mesh))
		return true;
	for (i = 0; i < shape->ndim; i++) {
		all |= !shape->mesh[i] && shape->extent[i] > 2;
		mesh->mesh[i] = true;
	}
	return all && ocs_catalogue_possible(s, mesh);
}

static bool all_mesh(const struct ocs_shape *shape)
{
	int i;

	for (i = 0; i < shape->ndim && shape->mesh[i]; i++)
		;
	return i == shape->ndim;
}

/* What would work, after the reason. */
static void shapes_suggest(struct ocs_placer *placer, const struct ocs_shape *shape,
			   struct ocs_text *text)
{
	struct ocs_shape near[NEAR], other = *shape;
	const struct ocs_section *s = placer->section;
	char conn[OCS_SHAPE_TEXT];

	names_add(text, "; nearest shapes that fit: ", near,
		  ocs_nearest_shapes(placer, shape, near, NEAR));
	other.no_fold = other.no_rotate = false;
	if ((shape->no_fold || shape->no_rotate) && ocs_catalogue_possible(s, &other)) {
		other.no_rotate = shape->no_rotate;
		if (shape->no_fold && ocs_catalogue_possible(s, &other)) {
			ocs_text_add(text, "; without --no-fold it fits");
			return;
		}
		other.no_rotate = false;
		other.no_fold = shape->no_fold;
		ocs_text_add(text, "; without %s it fits",
			     !shape->no_fold || ocs_catalogue_possible(s, &other) ?
				     "--no-rotate" :
				     "--no-rotate and --no-fold");
		return;
	}
	if (!shape->twisted && open_rings(s, shape, &other))
		ocs_text_add(text, "; with --conn-type=%s it fits",
			     all_mesh(&other) ? "mesh" : ocs_shape_conn_format(&other, conn));
}

int ocs_reason_links(const struct ocs_shape *shape)
{
	int i, n = 0;

	for (i = 0; i < shape->ndim; i++)
		n += shape->extent[i] > 2 ? 2 : shape->extent[i] > 1;
	return n;
}

/* How many cubes SHAPE needs, if more than there are; 0 if no number helps. */
static int cubes_needed(const struct ocs_section *s, const struct ocs_shape *shape)
{
	struct ocs_section more = *s;
	int low = s->ncubes, high = s->ncubes;

	if (s->kind == OCS_STATIC)
		return 0;
	do {
		if (high >= CUBES_MAX && high > s->ncubes)
			return 0;
		high *= 2;
		more.ncubes = high;
	} while (!ocs_catalogue_possible(&more, shape));
	while (high - low > 1) {
		more.ncubes = (low + high) / 2;
		if (ocs_catalogue_possible(&more, shape))
			high = more.ncubes;
		else
			low = more.ncubes;
	}
	return high;
}

static int count_descending(const void *a, const void *b)
{
	return *(const int *)b - *(const int *)a;
}

int ocs_reason_axes(const struct ocs_section *s, const struct ocs_shape *shape)
{
	int side = 0, axes = 0, a, i;

	for (a = 0; a < OCS_AXES; a++) {
		/* an axis of four is two bits, which may serve two dimensions */
		if (s->kind != OCS_STATIC || s->edge[a] == 4)
			return 0;
		side = s->edge[a] > side ? s->edge[a] : side;
	}
	for (i = 0; i < shape->ndim; i++)
		axes += shape->extent[i] > side * side ? 3 :
			shape->extent[i] > side	       ? 2 :
							 shape->extent[i] > 1;
	return axes;
}

/* Lines that find no room on what M says.  One longer than every side takes two axes or all
 * three; of the others the longest takes the longest side, and so on. */
static void because_long(const struct ocs_section *s, const struct ocs_shape *shape, const char *m,
			 struct ocs_text *text)
{
	int extent[OCS_SHAPE_DIMS] = { 0 }, side[OCS_AXES], n, i;

	memcpy(extent, shape->extent, (size_t)shape->ndim * sizeof(extent[0]));
	memcpy(side, s->edge, sizeof(side));
	qsort(extent, OCS_SHAPE_DIMS, sizeof(extent[0]), count_descending);
	qsort(side, OCS_AXES, sizeof(side[0]), count_descending);
	for (n = 0; n < OCS_SHAPE_DIMS && extent[n] > side[0]; n++)
		;
	if (n && ocs_reason_axes(s, shape) > OCS_AXES) {
		for (i = 0; i < n; i++)
			ocs_text_add(text, "%s%d",
				     !i		? "" :
				     i == n - 1 ? " and " :
						  ", ",
				     extent[i]);
		ocs_text_add(text,
			     " %s longer than the sides of %s (%d) and would have to be folded, "
			     "which takes more than its three axes",
			     n > 1 ? "are" : "is", m, side[0]);
		return;
	}
	for (i = 0; i < OCS_AXES && extent[i] <= side[i]; i++)
		;
	if (s->kind == OCS_STATIC && !n && i < OCS_AXES)
		ocs_text_add(text,
			     "an extent of %d is longer than the side of %d that is left for it on "
			     "%s",
			     extent[i], side[i], m);
	else
		ocs_text_add(text, "its extents find no room side by side on %s", m);
}

/* Which ring or what else stands in the way. */
static void obstacle_name(const struct ocs_section *s, const struct ocs_shape *shape,
			  struct ocs_text *text)
{
	int i, axes = 0, rings = 0, links = ocs_reason_links(shape), cubes;
	struct ocs_shape folded = *shape;
	char m[64];

	machine_name(s, m);
	for (i = 0; i < shape->ndim; i++) {
		int extent = shape->extent[i];

		axes += extent > 1;
		if (extent < 3 || shape->mesh[i])
			continue;
		rings++;
		if (!ring_closes(s, shape, i) && (extent % 2 || shape->no_fold)) {
			ocs_text_add(text, "a ring of %d cannot close on %s%s", extent, m,
				     extent % 2 ? "" : " without folding");
			return;
		}
	}
	if (links > OCS_REASON_PORTS) {
		ocs_text_add(text, "its %d dimensions need %d links at an XPU, which has %d", axes,
			     links, OCS_REASON_PORTS);
		return;
	}
	cubes = cubes_needed(s, shape);
	folded.no_fold = folded.no_rotate = false;
	if (cubes)
		ocs_text_add(text, "it needs %d cubes, %d exist", cubes, s->ncubes);
	else if ((shape->no_fold || shape->no_rotate) && ocs_catalogue_possible(s, &folded))
		ocs_text_add(text, "it does not fit %s without %s", m,
			     !shape->no_rotate ? "folding" :
			     shape->no_fold    ? "rotating or folding" :
						 "rotating");
	else if (axes > OCS_AXES)
		ocs_text_add(text, "%d dimensions find no room on the three axes of %s", axes, m);
	else if (rings)
		ocs_text_add(text, "its rings cannot all close on %s", m);
	else
		because_long(s, shape, m, text);
}

/* A twisted shape that is not larger than the machine. */
static void because_twisted(const struct ocs_section *s, const struct ocs_shape *shape,
			    struct ocs_text *text)
{
	int cubes = cubes_needed(s, shape);
	char m[64];

	machine_name(s, m);
	if (s->kind == OCS_STATIC)
		ocs_text_add(text, "the wraps of %s are fixed, a twist needs circuits", m);
	else if (cubes)
		ocs_text_add(text, "it needs %d cubes, %d exist", cubes, s->ncubes);
	else
		ocs_text_add(text,
			     "a twisted torus fills whole cubes, so on %s each extent must be "
			     "a multiple of the cube's edge",
			     m);
}

static int never_text(struct ocs_placer *placer, const struct ocs_shape *shape,
		      struct ocs_error *err)
{
	const struct ocs_section *s = placer->section;
	long exist = (long)s->ncubes * s->cube_xpus;
	struct ocs_shape plain = *shape;
	struct ocs_text text = { 0 };
	char name[OCS_SHAPE_TEXT];

	if (!err)
		return -1;
	ocs_shape_format(shape, name);
	if (shape->xpus > exist)
		ocs_text_add(&text, "%s is larger than the machine: %ld XPUs asked, %ld exist",
			     name, shape->xpus, exist);
	else
		ocs_text_add(&text, "%s: ", name);
	if (shape->xpus <= exist && shape->twisted)
		because_twisted(s, shape, &text);
	else if (shape->xpus <= exist)
		obstacle_name(s, shape, &text);
	plain.twisted = false;
	if (shape->twisted && ocs_catalogue_possible(s, &plain))
		ocs_text_add(&text, "; the plain torus of the same extents fits");
	shapes_suggest(placer, shape, &text);
	ocs_error_set(err, OCS_NEVER, "%s", text.data);
	ocs_text_free(&text);
	return -1;
}

char *ocs_nearest_shapes_text(struct ocs_placer *placer, const struct ocs_occupancy *occupancy,
			      const struct ocs_shape *shape, const char *before)
{
	struct ocs_shape near[NEAR];
	struct ocs_text text = { 0 };

	ocs_text_add(&text, "%s", "");
	names_add(&text, before, near,
		  ocs_nearest_shapes_now(placer, occupancy, shape, near, NEAR));
	return ocs_text_take(&text);
}

/* The largest piece of candidate C, as "a free 4x4x2 slab". */
static void slab_text(const struct ocs_section *s, const struct ocs_catalogue *cat,
		      const struct ocs_candidate *c, bool many, char *buffer, size_t size)
{
	int side[OCS_AXES], a;
	long xpus = 1;

	for (a = 0; a < OCS_AXES; a++) {
		int box = cat->foldings[c->folding].box[a];

		side[a] = box < s->edge[a] ? box : s->edge[a];
		xpus *= side[a];
	}
	if (s->kind == OCS_TORUS && xpus == s->cube_xpus) {
		snprintf(buffer, size, "that %s wholly free", many ? "are" : "is");
		return;
	}
	qsort(side, OCS_AXES, sizeof(side[0]), count_descending);
	if (xpus == 1)
		snprintf(buffer, size, "with a free XPU");
	else
		snprintf(buffer, size, "with a free %dx%dx%d slab", side[0], side[1], side[2]);
}

/* Of the candidates that need the fewest cubes the one that lacks the fewest of them; SEATS:
 * how many of its pieces have a cube. */
static const struct ocs_candidate *candidate_nearest(struct ocs_box_search *fit,
						     const struct ocs_catalogue *cat, int *seats)
{
	int best = 0, i;

	*seats = -1;
	for (i = 0; i < cat->ncandidates && cat->candidates[i].cubes == cat->candidates[0].cubes;
	     i++) {
		int have = ocs_box_search_seats(fit, cat, i, *seats);

		if (have > *seats) {
			*seats = have;
			best = i;
		}
	}
	return &cat->candidates[best];
}

static int not_now_text(struct ocs_placer *placer, const struct ocs_catalogue *cat,
			const struct ocs_occupancy *occupancy, struct ocs_error *err)
{
	const struct ocs_candidate *c = &cat->candidates[0];
	const struct ocs_section *s = placer->section;
	struct ocs_box_search *fit = placer->fit;
	int drained = 0, room, i;
	char slab[64], down[48] = "";

	if (s->kind == OCS_STATIC) {
		int left = ocs_occupancy_cube_free(occupancy, 0);

		slab_text(s, cat, c, false, slab, sizeof(slab));
		return ocs_error_set(err, OCS_NOT_NOW, "needs a place %s; %d of %d XPUs are free",
				     slab, left, s->cube_xpus);
	}
	for (i = 0; i < s->ncubes; i++)
		drained += occupancy->drained[i];
	if (drained)
		snprintf(down, sizeof(down), ", %d %s drained", drained,
			 drained == 1 ? "is" : "are");
	ocs_cube_sets_load(fit, occupancy);
	if (fit->blocked) {
		fit->blocked = NULL;
		if (ocs_box_search_best(fit, cat, 0)) {
			c = &cat->candidates[fit->candidate];
			slab_text(s, cat, c, c->cubes > 1, slab, sizeof(slab));
			return ocs_error_set(err, OCS_NOT_NOW,
					     "needs %d cube%s %s; there are such "
					     "cubes, but switch ports that their circuits need are "
					     "failed or drained",
					     c->cubes, c->cubes > 1 ? "s" : "", slab);
		}
	}
	fit->sets_of = NULL;
	c = candidate_nearest(fit, cat, &room);
	slab_text(s, cat, c, c->cubes > 1, slab, sizeof(slab));
	if (c->cubes == 1)
		return ocs_error_set(err, OCS_NOT_NOW, "needs a cube %s; none is free%s", slab,
				     down);
	if (!room)
		return ocs_error_set(err, OCS_NOT_NOW, "needs %d cubes %s; none is free%s",
				     c->cubes, slab, down);
	return ocs_error_set(err, OCS_NOT_NOW, "needs %d cubes %s; %d %s free%s", c->cubes, slab,
			     room, room == 1 ? "is" : "are", down);
}

int ocs_reason_node_count(struct ocs_placer *placer, const struct ocs_shape *shape,
			  struct ocs_error *err)
{
	int count = ocs_place_node_count(placer, shape, err);

	if (count < 0 && err && err->code == OCS_NEVER)
		never_text(placer, shape, err);
	return count;
}

struct ocs_placement *ocs_reason_place(struct ocs_placer *placer,
				       const struct ocs_occupancy *occupancy,
				       const struct ocs_shape *shape, int node_count,
				       struct ocs_error *err)
{
	struct ocs_placement *placement = ocs_place(placer, occupancy, shape, node_count, err);
	const struct ocs_catalogue *cat;
	int least;

	if (placement || !err || (err->code != OCS_NEVER && err->code != OCS_NOT_NOW))
		return placement;
	least = ocs_reason_node_count(placer, shape, err);
	if (least < 0 || err->code == OCS_NEVER)
		return NULL;
	cat = ocs_placer_catalogue(placer, shape, node_count == least ? 0 : node_count);
	if (cat->ncandidates)
		not_now_text(placer, cat, occupancy, err);
	return NULL;
}
