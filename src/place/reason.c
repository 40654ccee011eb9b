/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/place/placer.h"
#include "src/util/error.h"
#include "src/util/text.h"

#define NEAR_CHECKS 300		/* shapes tried while looking for near ones */

/* "4x4x4 cubes" or "a 16x16x16 torus". */
static const char *machine(const struct ocs_section *s, char buffer[64])
{
	bool fixed = s->kind == OCS_STATIC;

	snprintf(buffer, 64, "%s%dx%dx%d %s", fixed ? "a " : "", s->edge[0], s->edge[1], s->edge[2],
		 fixed ? "torus" : "cubes");
	return buffer;
}

static bool ring_closes(const struct ocs_section *s, int extent)
{
	int a;

	for (a = 0; a < OCS_AXES; a++) {
		if (s->kind == OCS_STATIC ? extent == s->edge[a] : extent % s->edge[a] == 0)
			return true;
	}
	return false;
}

struct near {
	struct ocs_shape shape;
	int distance;
	long waste;
};

static int near_compare(const void *a, const void *b)
{
	const struct near *p = a, *q = b;
	long waste;

	if (p->distance != q->distance)
		return p->distance - q->distance;
	waste = labs(p->waste) - labs(q->waste);
	if (waste)
		return waste < 0 ? -1 : 1;
	if (p->waste != q->waste)
		return p->waste > q->waste ? -1 : 1;	/* rather more XPUs than fewer */
	return memcmp(p->shape.extent, q->shape.extent, sizeof(p->shape.extent));
}

int ocs_place_nearest(struct ocs_placer *placer, const struct ocs_shape *shape,
		      struct ocs_shape *near, int max)
{
	int reach = shape->ndim <= 2 ? 8 : shape->ndim == 3 ? 4 : 1, span = 2 * reach + 1;
	long combinations = 1, c, rest;
	int count = 0, found = 0, i;
	struct near *all;

	if (ocs_placer_check(placer, NULL))
		return 0;
	for (i = 0; i < shape->ndim; i++)
		combinations *= span;
	all = ocs_calloc((size_t)combinations, sizeof(*all));
	for (c = 0; c < combinations; c++) {
		struct near now = { .shape = *shape };

		now.shape.xpus = 1;
		now.shape.twisted = false;
		for (i = shape->ndim - 1, rest = c; i >= 0; i--, rest /= span) {
			int by = (int)(rest % span) - reach;

			now.shape.extent[i] += by;
			now.distance += abs(by);
			if (now.shape.extent[i] < 1 ||
			    now.shape.xpus > INT_MAX / now.shape.extent[i])
				break;
			now.shape.xpus *= now.shape.extent[i];
		}
		now.waste = now.shape.xpus - shape->xpus;
		if (i < 0 && now.distance)
			all[count++] = now;
	}
	qsort(all, (size_t)count, sizeof(*all), near_compare);
	for (i = 0; i < count && i < NEAR_CHECKS && found < max; i++) {
		if (ocs_catalogue_possible(placer->section, &all[i].shape))
			near[found++] = all[i].shape;
	}
	free(all);
	return found;
}

/* What would work, after the reason. */
static void suggest(struct ocs_placer *placer, const struct ocs_shape *shape,
		    struct ocs_text *text)
{
	struct ocs_shape near[3], mesh = *shape;
	char buffer[OCS_SHAPE_TEXT];
	bool ring = false;
	int n, i;

	n = ocs_place_nearest(placer, shape, near, 3);
	for (i = 0; i < n; i++)
		ocs_text_add(text, "%s%s", i ? ", " : "; nearest shapes that fit: ",
			     ocs_shape_format(&near[i], buffer));
	for (i = 0; i < shape->ndim; i++) {
		ring |= !mesh.mesh[i] && mesh.extent[i] > 2;
		mesh.mesh[i] = true;
	}
	if (ring && ocs_catalogue_possible(placer->section, &mesh))
		ocs_text_add(text, "; without closed rings (--conn-type=mesh) it fits");
}

/* Which ring or what else stands in the way. */
static void because(const struct ocs_section *s, const struct ocs_shape *shape,
		    struct ocs_text *text)
{
	struct ocs_section endless = *s;
	struct ocs_shape folded = *shape;
	int i, axes = 0, rings = 0;
	char m[64];

	machine(s, m);
	for (i = 0; i < shape->ndim; i++) {
		int extent = shape->extent[i];

		axes += extent > 1;
		if (extent < 3 || shape->mesh[i])
			continue;
		rings++;
		if (!ring_closes(s, extent) && (extent % 2 || shape->no_fold)) {
			ocs_text_add(text, "a ring of %d cannot close on %s%s", extent, m,
				     extent % 2 ? "" : " without folding");
			return;
		}
	}
	folded.no_fold = folded.no_rotate = false;
	if (s->kind != OCS_STATIC && s->ncubes < 4096) {
		endless.ncubes = 4096;
		if (ocs_catalogue_possible(&endless, shape)) {
			ocs_text_add(text, "it needs more cubes than the %d there are", s->ncubes);
			return;
		}
	}
	if ((shape->no_fold || shape->no_rotate) && ocs_catalogue_possible(s, &folded))
		ocs_text_add(text, "it does not fit %s without %s", m,
			     !shape->no_rotate ? "folding" : shape->no_fold ?
			     "rotating or folding" : "rotating");
	else if (axes > OCS_AXES)
		ocs_text_add(text, "%d dimensions find no room on the three axes of %s", axes, m);
	else if (rings)
		ocs_text_add(text, "its rings cannot all close on %s", m);
	else
		ocs_text_add(text, "it is longer than %s", m);
}

static int never_twisted(struct ocs_placer *placer, const struct ocs_shape *shape,
			 const char *name, struct ocs_error *err)
{
	struct ocs_shape plain = *shape;
	struct ocs_section endless = *placer->section;
	bool fits;
	char m[64];

	plain.twisted = false;
	fits = ocs_catalogue_possible(placer->section, &plain);
	machine(placer->section, m);
	endless.ncubes = 4096;
	if (endless.kind == OCS_STATIC)
		return ocs_error_set(err, OCS_NEVER, "%s: the wraps of %s are fixed, a twist needs "
				     "circuits%s", name, m,
				     fits ? "; the plain torus of the same extents fits" : "");
	if (placer->section->ncubes < endless.ncubes && ocs_catalogue_possible(&endless, shape))
		return ocs_error_set(err, OCS_NEVER, "%s needs more cubes than the %d there are", name,
				     placer->section->ncubes);
	return ocs_error_set(err, OCS_NEVER, "%s: a twisted torus fills whole cubes, so on %s each "
			     "extent must be a multiple of the cube's edge, like %dx%dx%d_twisted%s",
			     name, m, placer->section->edge[0], placer->section->edge[0],
			     2 * placer->section->edge[0],
			     fits ? "; the plain torus of the same extents fits" : "");
}

int ocs_reason_never(struct ocs_placer *placer, const struct ocs_shape *shape,
		     struct ocs_error *err)
{
	const struct ocs_section *s = placer->section;
	long exist = (long)s->ncubes * s->cube_xpus;
	struct ocs_text text = { 0 };
	char name[OCS_SHAPE_TEXT];

	ocs_shape_format(shape, name);
	if (shape->xpus > exist)
		return ocs_error_set(err, OCS_NEVER, "%s is larger than the machine: %ld XPUs asked, "
				     "%ld exist", name, shape->xpus, exist);
	if (shape->twisted)
		return never_twisted(placer, shape, name, err);
	because(s, shape, &text);
	suggest(placer, shape, &text);
	ocs_error_set(err, OCS_NEVER, "%s: %s", name, text.data);
	ocs_text_free(&text);
	return -1;
}

static int descending(const void *a, const void *b)
{
	return *(const int *)b - *(const int *)a;
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
	qsort(side, OCS_AXES, sizeof(side[0]), descending);
	if (xpus == 1)
		snprintf(buffer, size, "with a free XPU");
	else
		snprintf(buffer, size, "with a free %dx%dx%d slab", side[0], side[1], side[2]);
}

/* Cubes that have room for some piece of the candidates that need fewest cubes. */
static int cubes_with_room(struct ocs_fit *fit, const struct ocs_catalogue *cat)
{
	int i, u, w, n = 0;

	memset(fit->members, 0, (size_t)fit->set_words * sizeof(*fit->members));
	for (i = 0; i < cat->ncandidates; i++) {
		const struct ocs_candidate *c = &cat->candidates[i];

		if (c->cubes != cat->candidates[0].cubes)
			break;
		for (u = c->first_use; u < c->first_use + c->nuses; u++) {
			ocs_fit_class_count(fit, cat, cat->uses[u].class);
			for (w = 0; w < fit->set_words; w++)
				fit->members[w] |= ocs_fit_class_set(fit, cat->uses[u].class)[w];
		}
	}
	for (w = 0; w < fit->set_words; w++)
		n += __builtin_popcountll(fit->members[w]);
	return n;
}

int ocs_reason_not_now(struct ocs_placer *placer, const struct ocs_catalogue *cat,
		       const struct ocs_occupancy *occupancy, struct ocs_error *err)
{
	const struct ocs_candidate *c = &cat->candidates[0];
	const struct ocs_section *s = placer->section;
	int drained = 0, room, i;
	char slab[64], down[48] = "";

	slab_text(s, cat, c, c->cubes > 1, slab, sizeof(slab));
	if (s->kind == OCS_STATIC) {
		int left = ocs_occupancy_cube_free(occupancy, 0);

		return ocs_error_set(err, OCS_NOT_NOW, "needs a place %s; %d of %d XPUs are free",
				     slab, left, s->cube_xpus);
	}
	for (i = 0; i < s->ncubes; i++)
		drained += occupancy->drained[i];
	if (drained)
		snprintf(down, sizeof(down), ", %d %s drained", drained, drained == 1 ? "is" : "are");
	ocs_fit_load(placer->fit, occupancy);
	if (placer->fit->blocked) {
		placer->fit->blocked = NULL;
		if (ocs_fit_search(placer->fit, cat))
			return ocs_error_set(err, OCS_NOT_NOW, "needs %d cube%s %s; there are such "
					     "cubes, but switch ports that their circuits need are "
					     "failed or drained", c->cubes, c->cubes > 1 ? "s" : "",
					     slab);
	}
	placer->fit->sets_of = NULL;
	room = cubes_with_room(placer->fit, cat);
	if (room >= c->cubes)
		return ocs_error_set(err, OCS_NOT_NOW, "needs %d cubes %s at matching positions; %d "
				     "have one, but not where they could be joined%s", c->cubes,
				     slab, room, down);
	if (c->cubes == 1)
		return ocs_error_set(err, OCS_NOT_NOW, "needs a cube %s; none is free%s", slab, down);
	return ocs_error_set(err, OCS_NOT_NOW, "needs %d cubes %s; %d %s free%s", c->cubes, slab,
			     room, room == 1 ? "is" : "are", down);
}
