/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/place/placement_encoding.h"

#include <stdlib.h>
#include <string.h>

#include "src/place/placer.h"
#include "src/util/error.h"
#include "src/util/text.h"

static const char axes[] = "xyz", kinds[] = "prbc";
static const char steps[] = "abcdef"; /* directions: 2 * axis + (1: towards -) */
static const char digits[] = "0123456789abcdefghijklmnopqrstuv";

/* Cubes as steps from the one before, four bits a character, the fifth saying that
 * more follows; a step of one is '0'. */
static void cube_add(struct ocs_text *text, int cube, int *last)
{
	int step = cube - *last - 1;
	unsigned int z = step < 0 ? (unsigned int)(-step) * 2 - 1 : (unsigned int)step * 2;

	*last = cube;
	for (; z > 15; z >>= 4)
		ocs_text_put(text, &digits[16 | (z & 15)], 1);
	ocs_text_put(text, &digits[z], 1);
}

static char *text_finish(struct ocs_text *text, struct ocs_error *err)
{
	if (text->length > OCS_COMPACT_MAX) {
		ocs_error_set(err, OCS_ERROR,
			      "the placement needs %zu bytes, more than the %d that "
			      "a job may carry",
			      text->length, OCS_COMPACT_MAX);
		ocs_text_free(text);
		return NULL;
	}
	return ocs_text_take(text);
}

char *ocs_placement_encode(const struct ocs_shape *shape, const struct ocs_folding *folding,
			   const struct ocs_box_layout *lay, const int *piece_cube,
			   struct ocs_error *err)
{
	int grid = lay->count[0] * lay->count[1] * lay->count[2], last = -1, d, j, i;
	struct ocs_text text = { 0 };
	char buffer[OCS_SHAPE_TEXT];

	ocs_text_add(&text, "p1:%s:", ocs_shape_format(shape, buffer));
	for (d = 0; d < shape->ndim; d++)
		ocs_text_add(&text, "%c", shape->mesh[d] ? 'm' : 't');
	ocs_text_add(&text, "%s%s:", shape->no_rotate ? "r" : "", shape->no_fold ? "f" : "");
	for (d = 0; d < shape->ndim; d++) {
		ocs_text_add(&text, "%s%s", d ? "," : "", folding->dim[d].n ? "" : "-");
		for (j = 0; j < folding->dim[d].n; j++) {
			const struct ocs_factor *f = &folding->dim[d].factor[j];

			ocs_text_add(&text, "%s%c%c", j ? "." : "", axes[f->axis], kinds[f->kind]);
			if (f->kind < OCS_FACTOR_BIT0)
				ocs_text_add(&text, "%d", f->length);
		}
	}
	ocs_text_add(&text, ":%u:%d.%d,%d.%d,%d.%d:", folding->flip, lay->offset[0], lay->count[0],
		     lay->offset[1], lay->count[1], lay->offset[2], lay->count[2]);
	for (i = 0; i < grid; i++) {
		if (piece_cube[i] >= 0)
			cube_add(&text, piece_cube[i], &last);
	}
	return text_finish(&text, err);
}

char *ocs_ring_encode(const struct ocs_ring_builder *t, const struct ocs_shape *shape,
		      struct ocs_error *err)
{
	struct ocs_text text = { 0 };
	char buffer[OCS_SHAPE_TEXT];
	char run[64]; /* steps not written yet */
	int last = -1, i, d;
	size_t n = 0;

	ocs_text_add(&text, "t1:%s:", ocs_shape_format(shape, buffer));
	for (d = 0; d < shape->ndim; d++)
		ocs_text_add(&text, "%c", shape->mesh[d] ? 'm' : 't');
	ocs_text_add(&text, ":%d%c%d:%d.", t->way.ring, t->way.axis < 0 ? '-' : axes[t->way.axis],
		     t->way.offset, t->nused);
	for (i = 0; i < t->nused * t->way.stack; i++)
		cube_add(&text, t->cubes[i], &last);
	ocs_text_add(&text, ":%d.", t->ring[0].unit);
	/* the last step closes the ring: it has a direction, but no sheet to name */
	for (i = 0; i < t->extent; i++) {
		const struct ocs_ring_step *step = &t->ring[i];
		bool face = i + 1 < t->extent && t->near[step->unit * 2 * OCS_AXES + step->dir] & 1;

		run[n++] = steps[step->dir];
		if (!face && n < sizeof(run) && i + 1 < t->extent)
			continue;
		ocs_text_put(&text, run, n);
		n = 0;
		last = -1;
		if (face)
			cube_add(&text, step[1].sheet, &last);
	}
	return text_finish(&text, err);
}

/* What is still to be read. */
struct reader {
	const char *p;
	struct ocs_error *err;
};

static int reader_refuse(struct reader *r, const char *what)
{
	return ocs_error_set(r->err, OCS_ERROR, "malformed compact placement: %s", what);
}

static int word_expect(struct reader *r, const char *word)
{
	size_t length = strlen(word);

	if (strncmp(r->p, word, length))
		return reader_refuse(r, "a separator is missing");
	r->p += length;
	return 0;
}

static int number_read(struct reader *r, int *value)
{
	const char *start = r->p;

	for (*value = 0; *r->p >= '0' && *r->p <= '9'; r->p++) {
		*value = *value * 10 + (*r->p - '0');
		if (*value > OCS_SHAPE_EXTENT_MAX)
			return reader_refuse(r, "a number is too large");
	}
	return r->p == start ? reader_refuse(r, "a number is missing") : 0;
}

static int shape_read(struct reader *r, struct ocs_shape *shape)
{
	size_t length = strcspn(r->p, ":"), d;
	char text[OCS_SHAPE_TEXT], again[OCS_SHAPE_TEXT];

	if (length >= sizeof(text))
		return reader_refuse(r, "the shape is too long");
	memcpy(text, r->p, length);
	text[length] = '\0';
	if (ocs_shape_parse(text, NULL, shape, r->err))
		return ocs_error_prefix(r->err, "malformed compact placement");
	if (strcmp(text, ocs_shape_format(shape, again)))
		return reader_refuse(r, "the shape is not in its plain form");
	r->p += length;
	if (word_expect(r, ":"))
		return -1;
	for (d = 0; d < (size_t)shape->ndim; d++, r->p++) {
		if (*r->p != 't' && *r->p != 'm')
			return reader_refuse(r, "rings and lines are missing");
		shape->mesh[d] = *r->p == 'm';
	}
	if (*r->p == 'r') {
		shape->no_rotate = true;
		r->p++;
	}
	if (*r->p == 'f') {
		shape->no_fold = true;
		r->p++;
	}
	return word_expect(r, ":");
}

static int factor_read(struct reader *r, struct ocs_folding *folding, struct ocs_factor *f)
{
	const char *axis = *r->p ? strchr(axes, *r->p) : NULL, *kind;
	int length = 2;

	if (!axis)
		return reader_refuse(r, "an axis is missing");
	r->p++;
	kind = *r->p ? strchr(kinds, *r->p) : NULL;
	if (!kind)
		return reader_refuse(r, "the kind of a factor is missing");
	r->p++;
	f->axis = (int)(axis - axes);
	f->kind = (enum ocs_factor_kind)(kind - kinds);
	if (f->kind < OCS_FACTOR_BIT0 && number_read(r, &length))
		return -1;
	f->length = length;
	folding->box[f->axis] = f->kind < OCS_FACTOR_BIT0 ? f->length : 4;
	folding->closed[f->axis] = f->kind != OCS_FACTOR_PATH;
	return 0;
}

static int folding_read(struct reader *r, const struct ocs_shape *shape,
			struct ocs_folding *folding)
{
	int d, flip;

	memset(folding, 0, sizeof(*folding));
	folding->ndim = shape->ndim;
	folding->box[0] = folding->box[1] = folding->box[2] = 1;
	for (d = 0; d < shape->ndim; d++) {
		if (d && word_expect(r, ","))
			return -1;
		if (*r->p == '-') {
			r->p++;
			continue;
		}
		while (true) {
			if (folding->dim[d].n == OCS_FACTORS)
				return reader_refuse(r, "a dimension has too many factors");
			if (factor_read(r, folding, &folding->dim[d].factor[folding->dim[d].n++]))
				return -1;
			if (*r->p != '.')
				break;
			r->p++;
		}
	}
	if (word_expect(r, ":") || number_read(r, &flip))
		return -1;
	if (flip > 7)
		return reader_refuse(r, "there are three axes to mirror");
	folding->flip = (unsigned int)flip;
	return word_expect(r, ":");
}

static int lay_read(struct reader *r, struct ocs_box_layout *lay)
{
	int a;

	for (a = 0; a < OCS_AXES; a++) {
		if ((a && word_expect(r, ",")) || number_read(r, &lay->offset[a]) ||
		    word_expect(r, ".") || number_read(r, &lay->count[a]))
			return -1;
	}
	return word_expect(r, ":");
}

static int cube_read(struct reader *r, int ncubes, int *last)
{
	unsigned int z = 0, shift = 0, digit;
	const char *at;

	do {
		at = *r->p ? strchr(digits, *r->p) : NULL;
		if (!at || shift > 24)
			return reader_refuse(r, "a cube is missing");
		r->p++;
		digit = (unsigned int)(at - digits);
		z |= (digit & 15) << shift;
		shift += 4;
	} while (digit & 16);
	*last += 1 + (z & 1 ? -(int)((z + 1) / 2) : (int)(z / 2));
	if (*last < 0 || *last >= ncubes)
		return reader_refuse(r, "it names a cube that does not exist");
	return 0;
}

/* Cubes for the pieces that hold an XPU; each once. */
static int cubes_read(struct reader *r, const struct ocs_section *section,
		      const struct ocs_shape *shape, const struct ocs_fold_table *table,
		      const struct ocs_box_layout *lay, int *piece_cube)
{
	int grid = lay->count[0] * lay->count[1] * lay->count[2], last = -1, i, result = 0;
	struct ocs_xpu *xpus = ocs_calloc((size_t)shape->xpus, sizeof(*xpus));
	bool *taken = ocs_calloc((size_t)section->ncubes, sizeof(*taken));
	long v;

	ocs_box_layout_xpus(section, table, lay, xpus);
	for (i = 0; i < grid; i++)
		piece_cube[i] = -1;
	for (v = 0; v < shape->xpus; v++)
		piece_cube[xpus[v].cube] = 0;
	for (i = 0; i < grid && !result; i++) {
		if (piece_cube[i] < 0)
			continue;
		result = cube_read(r, section->ncubes, &last);
		if (result)
			break;
		if (taken[last])
			result = reader_refuse(r, "a cube appears twice");
		taken[last] = true;
		piece_cube[i] = last;
	}
	if (!result && *r->p)
		result = reader_refuse(r, "there is more than a placement");
	free(taken);
	free(xpus);
	return result;
}

/* The way that fits SHAPE and reads "0z0". */
static int way_read(struct reader *r, const struct ocs_section *section,
		    const struct ocs_shape *shape, struct ocs_ring_way *way)
{
	const char *at;
	int ring, axis, offset, n;

	if (number_read(r, &ring))
		return -1;
	at = *r->p ? strchr(axes, *r->p) : NULL;
	if (!at && *r->p != '-')
		return reader_refuse(r, "an axis is missing");
	r->p++;
	axis = at ? (int)(at - axes) : -1;
	if (number_read(r, &offset))
		return -1;
	for (n = 0; ocs_ring_way_get(section, shape, n, way); n++) {
		if (way->ring == ring && way->axis == axis && way->offset == offset)
			return word_expect(r, ":");
	}
	return reader_refuse(r, "the shape cannot be a ring that way");
}

/* The cubes of the sheets, each once; returns how many sheets, or -1. */
static int sheets_read(struct reader *r, const struct ocs_section *section, int stack, int *cubes)
{
	bool *taken;
	int n, i, last = -1, result = 0;

	if (number_read(r, &n) || word_expect(r, "."))
		return -1;
	if (n < 1 || n > section->ncubes / stack)
		return reader_refuse(r, "it names more cubes than there are");
	taken = ocs_calloc((size_t)section->ncubes, sizeof(*taken));
	for (i = 0; i < n * stack && !result; i++) {
		result = cube_read(r, section->ncubes, &last);
		if (!result && taken[last])
			result = reader_refuse(r, "a cube appears twice");
		if (!result)
			taken[last] = true;
		cubes[i] = last;
	}
	free(taken);
	return result || word_expect(r, ":") ? -1 : n;
}

static int ring_read(struct reader *r, const struct ocs_section *section,
		     const struct ocs_ring_way *way, int sheets, struct ocs_ring_step *ring,
		     int extent)
{
	int unit, sheet = 0, i;

	if (number_read(r, &unit) || word_expect(r, "."))
		return -1;
	if (unit >= section->cube_xpus ||
	    (way->axis >= 0 &&
	     unit /
			     (way->axis == 2 ? 1 :
			      way->axis == 1 ? section->edge[2] :
					       section->edge[1] * section->edge[2]) %
			     section->edge[way->axis] !=
		     way->offset))
		return reader_refuse(r, "its first place is none of a cube");
	for (i = 0; i < extent; i++) {
		int dir = *r->p - 'a', near, number = -1;

		if (!*r->p || dir < 0 || dir >= 2 * OCS_AXES || dir / 2 == way->axis)
			return reader_refuse(r, "a step of the ring is missing");
		r->p++;
		ring[i].unit = unit;
		ring[i].sheet = sheet;
		ring[i].dir = dir;
		near = ocs_ring_near(section, unit, dir);
		unit = near / 2;
		if (!(near & 1) || i + 1 == extent)
			continue;
		if (cube_read(r, sheets, &number))
			return -1;
		sheet = number;
	}
	return *r->p ? reader_refuse(r, "there is more than a placement") : 0;
}

static struct ocs_placement *ring_decode(struct ocs_placer *placer, const char *compact,
					 struct ocs_error *err)
{
	const struct ocs_section *section = placer->section;
	struct reader r = { .p = compact, .err = err };
	struct ocs_ring_step *ring;
	struct ocs_placement *p = NULL;
	struct ocs_shape shape;
	struct ocs_ring_way way;
	int *cubes, sheets;

	if (word_expect(&r, "t1:") || shape_read(&r, &shape))
		return NULL;
	if (shape.xpus > (long)section->ncubes * section->cube_xpus) {
		reader_refuse(&r, "the shape is larger than the machine");
		return NULL;
	}
	if (way_read(&r, section, &shape, &way))
		return NULL;
	cubes = ocs_calloc((size_t)section->ncubes, sizeof(int));
	ring = ocs_calloc((size_t)shape.extent[way.ring], sizeof(*ring));
	sheets = sheets_read(&r, section, way.stack, cubes);
	if (sheets > 0 && !ring_read(&r, section, &way, sheets, ring, shape.extent[way.ring])) {
		p = ocs_ring_placement(section, &shape, &way, ring, cubes, placer->mark,
				       ocs_strdup(compact));
		if (ocs_placement_verify(placer->fabric, NULL, p, err)) {
			ocs_error_prefix(err, "malformed compact placement");
			ocs_placement_destroy(p);
			p = NULL;
		}
	}
	free(ring);
	free(cubes);
	return p;
}

struct ocs_placement *ocs_placement_decode(struct ocs_placer *placer, const char *compact,
					   struct ocs_error *err)
{
	const struct ocs_section *section = placer->section;
	struct reader r = { .p = compact, .err = err };
	struct ocs_placement *p = NULL;
	struct ocs_fold_table table;
	struct ocs_folding folding;
	struct ocs_shape shape;
	struct ocs_lattice host;
	struct ocs_box_layout lay;
	int *piece_cube;

	if (ocs_placer_check(placer, err))
		return NULL;
	if (strnlen(compact, OCS_COMPACT_MAX + 1) > OCS_COMPACT_MAX) {
		reader_refuse(&r, "it is too long");
		return NULL;
	}
	if (!strncmp(compact, "t1:", 3))
		return ring_decode(placer, compact, err);
	if (word_expect(&r, "p1:") || shape_read(&r, &shape) ||
	    folding_read(&r, &shape, &folding) || lay_read(&r, &lay))
		return NULL;
	ocs_lattice_of(section, &host);
	if (shape.xpus > (long)section->ncubes * section->cube_xpus ||
	    !ocs_box_layout_valid(section, &folding, &lay)) {
		ocs_error_set(err, OCS_ERROR,
			      "the compact placement is not of this machine: its box "
			      "does not fit the cubes of section %s",
			      section->name);
		return NULL;
	}
	if (ocs_fold_table_make(&folding, &shape, &host, &table, err)) {
		ocs_error_prefix(err, "malformed compact placement");
		return NULL;
	}
	piece_cube = ocs_calloc((size_t)(lay.count[0] * lay.count[1] * lay.count[2]), sizeof(int));
	if (!cubes_read(&r, section, &shape, &table, &lay, piece_cube)) {
		p = ocs_placement_make(section, &shape, &table, &lay, piece_cube, -1, placer->mark,
				       ocs_strdup(compact));
		if (ocs_placement_verify(placer->fabric, NULL, p, err)) {
			ocs_error_prefix(err, "malformed compact placement");
			ocs_placement_destroy(p);
			p = NULL;
		}
	}
	free(piece_cube);
	ocs_fold_table_free(&table);
	return p;
}
