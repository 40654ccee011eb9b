/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* A picture of a folding: every cube in use as a box seen from above, x downwards, y to
 * the right, z into the depth; the coordinates of the job on its XPUs, and its links in
 * a colour for each dimension. */

#include <stdlib.h>
#include <string.h>

#include "src/ocsctl/ocsctl.h"
#include "src/ocsctl/what_if.h"
#include "src/util/text.h"

#define HIGH 14	 /* of an XPU */
#define DEEP 26	 /* upwards from one z to the next */
#define GAP 34	 /* between columns, beside the depth */
#define REACH 26 /* of circuits outside the box */
#define MARGIN 20
#define SMALL 4	       /* edges of cubes that are drawn whole */
#define LINE 18	       /* of text */
#define ROW_WIDTH 1500 /* cubes side by side */

static const char *const colours[OCS_SHAPE_DIMS] = {
	"#1f6fb2", "#d9701f", "#2a9d5c", "#8a4fbf", "#b8336a", "#7a6a12",
};

struct canvas {
	const struct ocs_ctl_where *where;
	const struct ocs_section *section;
	struct ocs_text text;
	int low[OCS_AXES];  /* the first layer drawn, */
	int span[OCS_AXES]; /* and how many: all of a small cube, what is used of a large one */
	int wide;	    /* an XPU */
	int slant;	    /* to the right from one z to the next */
	int step[2];	    /* down from x to x, right from y to y */
	int box[2];	    /* of one cube with all around it */
	int across;	    /* cubes side by side */
	int top;	    /* below the legend */
	int *slot;	    /* per cube of the section: place in the picture, or -1 */
};

/* The middle of an XPU. */
static void xpu_middle(const struct canvas *c, const struct ocs_xpu *xpu, int at[2])
{
	int x = xpu->at[0] - c->low[0], y = xpu->at[1] - c->low[1], z = xpu->at[2] - c->low[2];
	int slot = c->slot[xpu->cube];

	at[0] = MARGIN + slot % c->across * c->box[0] + REACH + c->wide / 2 + y * c->step[1] +
		z * c->slant;
	at[1] = c->top + slot / c->across * c->box[1] + LINE + REACH + HIGH / 2 +
		(c->span[2] - 1 - z) * DEEP + x * c->step[0];
}

/* Which layers are drawn. */
static void canvas_crop(struct canvas *c)
{
	const struct ocs_placement *p = c->where->placement;
	const struct ocs_section *s = c->section;

	for (int a = 0; a < OCS_AXES; a++) {
		int low = s->edge[a], high = 0;

		for (int i = 0; i < p->nnodes; i++) {
			int origin = c->where->fabric->nodes[p->nodes[i]].origin[a];

			low = origin < low ? origin : low;
			high = origin + s->tile[a] > high ? origin + s->tile[a] : high;
		}
		c->low[a] = s->edge[a] <= SMALL ? 0 : low;
		c->span[a] = s->edge[a] <= SMALL ? s->edge[a] : high - low;
	}
}

/* Sizes that follow from the longest coordinate and the number of cubes. */
static void canvas_measure(struct canvas *c)
{
	const struct ocs_placement *p = c->where->placement;
	const int *span = c->span;
	char text[OCS_COORD_TEXT];

	ocs_ctl_coord_format(&c->where->shape, c->where->shape.xpus - 1, text);
	c->wide = 6 * (int)strlen(text) + 8;
	if (c->wide < 26)
		c->wide = 26;
	c->slant = c->wide / 2 + 2;
	c->step[0] = span[2] * DEEP + 20;
	c->step[1] = c->wide + (span[2] - 1) * c->slant + GAP;
	c->box[0] = span[1] * c->step[1] + 2 * REACH + MARGIN;
	c->box[1] = LINE + span[0] * c->step[0] + 2 * REACH + MARGIN;
	c->across = ROW_WIDTH / c->box[0];
	if (c->across < 1)
		c->across = 1;
	if (c->across > p->ncubes)
		c->across = p->ncubes;
	c->top = MARGIN + (c->where->shape.ndim + 5) * LINE;
	for (int i = 0; i < c->section->ncubes; i++)
		c->slot[i] = -1;
	for (int i = 0; i < p->ncubes; i++)
		c->slot[p->cubes[i]] = i;
}

static void line_draw(struct canvas *c, const int from[2], const int to[2], int dim, bool circuit)
{
	ocs_text_add(&c->text, "<path d=\"M%d %dL%d %d\" stroke=\"%s\"%s/>\n", from[0], from[1],
		     to[0], to[1], colours[dim], circuit ? " stroke-dasharray=\"4 3\"" : "");
}

/* One end of a circuit: out of the box along AXIS, with the name of the cube at the other end. */
static void stub_draw(struct canvas *c, const struct ocs_xpu *xpu, const struct ocs_xpu *other,
		      int axis, int dim)
{
	bool plus = xpu->at[axis] == c->section->edge[axis] - 1;
	struct ocs_xpu corner = { .cube = xpu->cube };
	int from[2], to[2], first[2];
	const int *span = c->span;

	memcpy(corner.at, c->low, sizeof(corner.at));
	xpu_middle(c, xpu, from);
	xpu_middle(c, &corner, first);
	memcpy(to, from, sizeof(to));
	if (axis == 0)
		to[1] = plus ? first[1] + (span[0] - 1) * c->step[0] + HIGH + 8 :
			       first[1] - (span[2] - 1) * DEEP - HIGH - 8;
	else if (axis == 1)
		to[0] = plus ? first[0] + (span[1] - 1) * c->step[1] + (span[2] - 1) * c->slant +
					c->wide / 2 + 12 :
			       first[0] - c->wide / 2 - 12;
	else
		to[0] += (plus ? 1 : -1) * (c->slant * 3 / 4),
			to[1] += (plus ? -1 : 1) * (DEEP * 3 / 4);
	line_draw(c, from, to, dim, true);
	ocs_text_add(&c->text,
		     "<text x=\"%d\" y=\"%d\" font-size=\"7\" fill=\"%s\" "
		     "text-anchor=\"%s\">",
		     to[0] + (axis == 1 ? (plus ? 2 : -2) : 0),
		     to[1] + (axis == 0 ? (plus ? 8 : -2) :
			      axis == 1 ? 3 :
			      plus	? -1 :
					  7),
		     colours[dim], axis == 1 ? (plus ? "start" : "end") : "middle");
	ocs_text_xml(&c->text, c->section->cube_names[other->cube]);
	ocs_text_add(&c->text, "</text>\n");
}

/* The axis along which two XPUs are joined, and whether by a fixed link inside a cube. */
static int xpus_joined(const struct ocs_section *section, const struct ocs_xpu *a,
		       const struct ocs_xpu *b, bool *inside)
{
	int differ = -1, i;

	for (i = 0; i < OCS_AXES; i++) {
		if (a->at[i] != b->at[i])
			differ = i;
	}
	*inside = a->cube == b->cube && differ >= 0 && abs(a->at[differ] - b->at[differ]) == 1;
	if (differ < 0) { /* from cube to cube of edge 1 */
		for (differ = 0; differ < OCS_AXES - 1 && section->edge[differ] != 1; differ++)
			;
	}
	return differ;
}

/* The rank that follows RANK in dimension DIM, or -1 at the end of a line. */
static long rank_following(const struct ocs_shape *shape, long rank, int dim)
{
	int coord[OCS_SHAPE_DIMS], i;

	ocs_shape_coord(shape, rank, coord);
	if (++coord[dim] == shape->extent[dim]) {
		if (shape->mesh[dim] || (shape->extent[dim] <= 2 && !shape->twisted))
			return -1;
		coord[dim] = 0;
		for (i = 0; shape->twisted && i < shape->ndim; i++) {
			if (i != dim && ocs_shape_shifts(shape, dim))
				coord[i] = (coord[i] + ocs_shape_shift(shape, dim, i)) %
					   shape->extent[i];
		}
	}
	return ocs_shape_rank(shape, coord);
}

static void links_draw(struct canvas *c)
{
	const struct ocs_placement *p = c->where->placement;
	const struct ocs_shape *shape = &c->where->shape;

	ocs_text_add(&c->text, "<g stroke-width=\"2.4\" fill=\"none\">\n");
	for (int dim = shape->ndim - 1; dim >= 0; dim--) {
		for (long r = 0; r < shape->xpus; r++) {
			const struct ocs_xpu *a = &p->xpus[r], *b;
			long next = rank_following(shape, r, dim);
			int from[2], to[2], axis;
			bool inside;

			if (next < 0)
				continue;
			b = &p->xpus[next];
			axis = xpus_joined(c->section, a, b, &inside);
			xpu_middle(c, a, from);
			xpu_middle(c, b, to);
			if (inside) {
				line_draw(c, from, to, dim, false);
				continue;
			}
			stub_draw(c, a, b, axis, dim);
			stub_draw(c, b, a, axis, dim);
		}
	}
	ocs_text_add(&c->text, "</g>\n");
}

/* XPUs of the job's nodes that the shape leaves idle. */
static bool xpu_idle(const struct canvas *c, const struct ocs_xpu *xpu)
{
	const struct ocs_placement *p = c->where->placement;

	for (int i = 0; i < p->nnodes; i++) {
		const struct ocs_node *node = &c->where->fabric->nodes[p->nodes[i]];
		bool within = node->cube == xpu->cube;

		for (int a = 0; a < OCS_AXES && within; a++)
			within = xpu->at[a] >= node->origin[a] &&
				 xpu->at[a] < node->origin[a] + c->section->tile[a];
		if (within)
			return true;
	}
	return false;
}

static void xpu_draw(struct canvas *c, const struct ocs_xpu *xpu, long rank)
{
	char coord[OCS_COORD_TEXT];
	int at[2];

	xpu_middle(c, xpu, at);
	if (rank < 0 && !xpu_idle(c, xpu)) {
		ocs_text_add(&c->text, "<circle cx=\"%d\" cy=\"%d\" r=\"3\" fill=\"#cccccc\"/>\n",
			     at[0], at[1]);
		return;
	}
	ocs_text_add(&c->text,
		     "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"4\" "
		     "fill=\"%s\" stroke=\"%s\"%s/>\n",
		     at[0] - c->wide / 2, at[1] - HIGH / 2, c->wide, HIGH,
		     rank ? "#ffffff" : "#ffe9a8", rank < 0 ? "#c02020" : "#333333",
		     rank < 0 ? " stroke-dasharray=\"2 2\"" : "");
	if (rank < 0)
		strcpy(coord, "idle");
	else
		ocs_ctl_coord_format(&c->where->shape, rank, coord);
	ocs_text_add(&c->text,
		     "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\" font-size=\"9\"%s>%s"
		     "</text>\n",
		     at[0], at[1] + 3, rank < 0 ? " fill=\"#c02020\"" : "", coord);
}

/* The far layers first, so that near ones lie over them. */
static void cube_draw(struct canvas *c, int index, const long *ranks)
{
	const int *low = c->low, *span = c->span;
	struct ocs_xpu one = { .cube = index };
	int at[2];

	memcpy(one.at, low, sizeof(one.at));
	xpu_middle(c, &one, at);
	ocs_text_add(&c->text, "<text x=\"%d\" y=\"%d\" font-weight=\"bold\">", at[0] - c->wide / 2,
		     at[1] - (span[2] - 1) * DEEP - HIGH - REACH);
	ocs_text_xml(&c->text, c->section->cube_names[index]);
	ocs_text_add(&c->text, "</text>\n");
	for (one.at[2] = low[2] + span[2] - 1; one.at[2] >= low[2]; one.at[2]--) {
		for (one.at[0] = low[0]; one.at[0] < low[0] + span[0]; one.at[0]++) {
			for (one.at[1] = low[1]; one.at[1] < low[1] + span[1]; one.at[1]++)
				xpu_draw(c, &one, ranks[ocs_section_bit(c->section, one.at)]);
		}
	}
}

/* What the picture shows, the dimensions and their colours, what the lines mean. */
static void legend_draw(struct canvas *c)
{
	const struct ocs_placement *p = c->where->placement;
	const struct ocs_shape *shape = &c->where->shape;
	bool fixed = c->section->kind == OCS_STATIC;
	char text[OCS_SHAPE_TEXT];
	int y = MARGIN + 12;

	ocs_text_add(
		&c->text,
		"<text x=\"%d\" y=\"%d\" font-size=\"15\" font-weight=\"bold\">%s"
		"<tspan dx=\"14\" font-size=\"12\" font-weight=\"normal\">%ld XPUs on %d node%s "
		"in %d cube%s of %dx%dx%d, %d circuit%s</tspan></text>\n",
		MARGIN, y, ocs_shape_format(shape, text), shape->xpus, p->nnodes,
		p->nnodes == 1 ? "" : "s", p->ncubes, p->ncubes == 1 ? "" : "s",
		c->section->edge[0], c->section->edge[1], c->section->edge[2], p->ncircuits,
		p->ncircuits == 1 ? "" : "s");
	for (int i = 0; i < shape->ndim; i++) {
		int extent = shape->extent[i];

		y += LINE;
		ocs_text_add(&c->text,
			     "<path d=\"M%d %dh30\" stroke=\"%s\" stroke-width=\"3\"/>"
			     "<text x=\"%d\" y=\"%d\">dimension %d: %s of %d%s</text>\n",
			     MARGIN, y - 4, colours[i], MARGIN + 38, y, i,
			     extent == 1    ? "extent" :
			     extent == 2    ? shape->twisted ? "rings" : "pairs, an extent" :
			     shape->mesh[i] ? "lines" :
					      "rings",
			     extent,
			     ocs_shape_shifts(shape, i) ?
				     ", whose wrap shifts the longer dimensions" :
				     "");
	}
	y += LINE;
	if (fixed || p->ncircuits) {
		ocs_text_add(
			&c->text,
			"<path d=\"M%d %dh30\" stroke=\"#333333\" stroke-width=\"2.4\" "
			"stroke-dasharray=\"4 3\"/><text x=\"%d\" y=\"%d\">%s</text>\n",
			MARGIN, y - 4, MARGIN + 38, y,
			fixed ? "a wrap: it comes in again on the opposite side" :
				"a circuit through a switch: it comes in on the opposite side, at the "
				"same place, of the cube it names");
		y += LINE;
	}
	ocs_text_add(&c->text,
		     "<text x=\"%d\" y=\"%d\">x runs down, y to the right, z into the depth; "
		     "yellow: where all coordinates are 0; grey dots: free XPUs</text>\n",
		     MARGIN, y);
	if ((long)p->nnodes * c->section->cube_xpus / c->section->cube_nodes > shape->xpus)
		ocs_text_add(&c->text,
			     "<text x=\"%d\" y=\"%d\" fill=\"#c02020\">red: XPUs of the job's "
			     "nodes that the shape leaves idle</text>\n",
			     MARGIN, y + LINE);
}

char *ocs_ctl_fold_svg(const struct ocs_ctl_where *where, const long *ranks)
{
	const struct ocs_section *section = where->section;
	const struct ocs_placement *p = where->placement;
	struct canvas c = { .where = where, .section = section };
	int least = 700, wide, high;

	c.slot = ocs_calloc((size_t)section->ncubes, sizeof(int));
	canvas_crop(&c);
	canvas_measure(&c);
	wide = c.across * c.box[0] + 2 * MARGIN;
	wide = wide < least ? least : wide;
	high = c.top + (p->ncubes + c.across - 1) / c.across * c.box[1] + MARGIN;
	ocs_text_add(&c.text,
		     "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
		     "viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"12\">\n"
		     "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
		     wide, high, wide, high);
	legend_draw(&c);
	links_draw(&c);
	for (int i = 0; i < p->ncubes; i++)
		cube_draw(&c, p->cubes[i], ranks + (size_t)p->cubes[i] * section->cube_xpus);
	ocs_text_add(&c.text, "</svg>\n");
	free(c.slot);
	return ocs_text_take(&c.text);
}
