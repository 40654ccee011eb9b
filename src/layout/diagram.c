/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/layout/diagram.h"

#include <stdlib.h>
#include <string.h>

#include "src/util/text.h"

#define GAP 3	  /* columns between cubes */
#define LARGE 64  /* more cubes than this are shown at a glance */
#define GLANCE 64 /* cubes in a line of that */
#define GLANCE_GROUP 8
#define CELL 14 /* SVG: one XPU */
#define LINE 18 /* of text */
#define WIDTH_MIN 480

static const char signs[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
static const int ansi[] = { 32, 34, 35, 36, 33, 94, 92, 95, 96, 93 };
static const char *const fill[] = { "#4e79a7", "#f28e2b", "#59a14f", "#b07aa1", "#76b7b2",
				    "#edc948", "#ff9da7", "#9c755f", "#86bcb6", "#d37295" };
static const char *const ink[] = { "#ffffff", "#222222", "#ffffff", "#ffffff", "#222222",
				   "#222222", "#222222", "#ffffff", "#222222", "#ffffff" };
#define COLOURS 10
#define HUE_DOWN -1
#define HUE_GREY -2

/* Which item holds each XPU of the section: index + 1, 0 for free. */
static int *owners_find(const struct ocs_fabric *fabric, const struct ocs_section *s,
			const struct ocs_picture_item *items, int nitems)
{
	int *owner = ocs_calloc((size_t)s->ncubes * (size_t)s->cube_xpus, sizeof(int));
	int tile = s->tile[0] * s->tile[1] * s->tile[2], i, n, j, a;
	long r;

	for (i = 0; i < nitems; i++) {
		const struct ocs_placement *p = items[i].placement;

		for (r = 0; p && p->section == s && r < p->shape.xpus; r++)
			owner[p->xpus[r].cube * s->cube_xpus + ocs_section_bit(s, p->xpus[r].at)] =
				i + 1;
		for (n = 0; !p && n < items[i].nnodes; n++) {
			const struct ocs_node *node = &fabric->nodes[items[i].nodes[n]];

			if (node->section != s->index || node->cube < 0)
				continue;
			for (j = 0; j < tile; j++) {
				int at[OCS_AXES], rest = j;

				for (a = OCS_AXES - 1; a >= 0; a--) {
					at[a] = node->origin[a] + rest % s->tile[a];
					rest /= s->tile[a];
				}
				owner[node->cube * s->cube_xpus + ocs_section_bit(s, at)] = i + 1;
			}
		}
	}
	return owner;
}

/* The sign of each item. */
static char *signs_give(const struct ocs_picture_item *items, int nitems)
{
	char *given = ocs_calloc((size_t)nitems + 1, 1);
	int i, next = 0;

	for (i = 0; i < nitems; i++) {
		if (items[i].sign)
			given[i] = items[i].sign;
		else if (items[i].down)
			given[i] = '#';
		else
			given[i] = signs[next++ % (int)(sizeof(signs) - 1)];
	}
	return given;
}

/* The colour of an item: that of its letter, so that it stays when others come and go. */
static int hue_of(const struct ocs_picture_item *item, char sign)
{
	const char *at = strchr(signs, sign);

	return item->down ? HUE_DOWN : at ? (int)(at - signs) % COLOURS : HUE_GREY;
}

static void sign_add(struct ocs_text *text, char sign, int hue, bool colour)
{
	if (!colour)
		ocs_text_add(text, "%c", sign);
	else if (sign == '.')
		ocs_text_add(text, "\033[2m.\033[0m");
	else if (hue < 0)
		ocs_text_add(text, "\033[%dm%c\033[0m", hue == HUE_DOWN ? 31 : 37, sign);
	else
		ocs_text_add(text, "\033[1;%dm%c\033[0m", ansi[hue], sign);
}

static void cell_add(struct ocs_text *text, const struct ocs_picture_item *items, const char *given,
		     int owner, bool colour)
{
	if (owner)
		sign_add(text, given[owner - 1], hue_of(&items[owner - 1], given[owner - 1]),
			 colour);
	else
		sign_add(text, '.', HUE_GREY, colour);
}

void ocs_picture_sign(char sign, bool colour, FILE *out)
{
	const struct ocs_picture_item item = { .down = sign == '#' };
	struct ocs_text text = { 0 };

	sign_add(&text, sign, hue_of(&item, sign), colour);
	fputs(text.data, out);
	ocs_text_free(&text);
}

/* Whether all of a cube is one owner's, or free. */
static bool is_whole(const struct ocs_section *s, const int *owner, int cube)
{
	const int *xpus = owner + (size_t)cube * (size_t)s->cube_xpus;
	int i;

	for (i = 1; i < s->cube_xpus; i++) {
		if (xpus[i] != xpus[0])
			return false;
	}
	return true;
}

/* Whether item ONLY has an XPU of a cube; -1: whether one is free. */
static bool is_part(const struct ocs_section *s, const int *owner, int cube, int only)
{
	const int *xpus = owner + (size_t)cube * (size_t)s->cube_xpus;
	int i;

	for (i = 0; i < s->cube_xpus && xpus[i] != only + 1; i++)
		;
	return i < s->cube_xpus;
}

/* The cubes that item ONLY has nothing of, by what is free in them. */
static void others_add(struct ocs_text *text, const struct ocs_section *s, const int *owner,
		       int only)
{
	int empty = 0, used = 0, full = 0, cube;

	for (cube = 0; cube < s->ncubes; cube++) {
		if (is_part(s, owner, cube, only))
			continue;
		if (is_part(s, owner, cube, -1))
			*(is_whole(s, owner, cube) ? &empty : &used) += 1;
		else
			full++;
	}
	if (!empty && !used && !full)
		return;
	ocs_text_add(text, "cubes not drawn: ");
	if (empty)
		ocs_text_add(text, "%d free", empty);
	if (used)
		ocs_text_add(text, "%s%d partly in use", empty ? ", " : "", used);
	if (full)
		ocs_text_add(text, "%s%d full", empty || used ? ", " : "", full);
	ocs_text_add(text, "\n");
}

static int longest_name(const struct ocs_section *s)
{
	int longest = 0, cube;

	for (cube = 0; cube < s->ncubes; cube++) {
		int length = (int)strlen(s->cube_names[cube]);

		longest = length > longest ? length : longest;
	}
	return longest;
}

/* A large machine at a glance: one sign a cube, the first of each line by name.  Returns
 * how many cubes are broken and need a picture of their own. */
static int overview_add(struct ocs_text *text, const struct ocs_section *s, int width,
			const struct ocs_picture_item *items, const char *given, const int *owner,
			bool colour)
{
	int names = longest_name(s), across = GLANCE, broken = 0, cube;

	while (across > GLANCE_GROUP && names + 1 + across + across / GLANCE_GROUP > width)
		across -= GLANCE_GROUP;
	for (cube = 0; cube < s->ncubes; cube++) {
		if (cube % across == 0)
			ocs_text_add(text, "%s%-*s ", cube ? "\n" : "", names, s->cube_names[cube]);
		if (cube % GLANCE_GROUP == 0)
			ocs_text_add(text, " ");
		if (is_whole(s, owner, cube)) {
			cell_add(text, items, given, owner[cube * s->cube_xpus], colour);
		} else {
			ocs_text_add(text, "%s", colour ? "\033[1m+\033[0m" : "+");
			broken++;
		}
	}
	ocs_text_add(text, "\n\n");
	return broken;
}

/* The cubes of one row of the picture, and their layers from FIRST on. */
struct row {
	const int *cubes;
	int n;
	int first, layers;
	int columns; /* of a cube, */
	int wide;    /* and with its name */
};

static void names_add(struct ocs_text *text, const struct ocs_section *s, const struct row *row)
{
	int i, end = row->first + row->layers;

	if (row->layers < s->edge[2]) { /* a part of one cube */
		ocs_text_add(text, end - row->first > 1 ? "%s, z=%d-%d\n" : "%s, z=%d\n",
			     s->cube_names[row->cubes[0]], row->first, end - 1);
		return;
	}
	for (i = 0; i < row->n; i++)
		ocs_text_add(text, "%-*s%s", i + 1 < row->n ? row->wide : 0,
			     s->cube_names[row->cubes[i]], i + 1 < row->n ? "   " : "\n");
}

/* Names, then line x of every cube of the row: the layers of z side by side. */
static void row_add(struct ocs_text *text, const struct ocs_section *s, const struct row *row,
		    const struct ocs_picture_item *items, const char *given, const int *owner,
		    bool colour)
{
	int i, x, y, z;

	names_add(text, s, row);
	for (x = 0; x < s->edge[0]; x++) {
		for (i = 0; i < row->n; i++) {
			for (z = row->first; z < row->first + row->layers; z++) {
				ocs_text_add(text, "%s", z > row->first ? " " : "");
				for (y = 0; y < s->edge[1]; y++) {
					int at[OCS_AXES] = { x, y, z };

					cell_add(text, items, given,
						 owner[row->cubes[i] * s->cube_xpus +
						       ocs_section_bit(s, at)],
						 colour);
				}
			}
			ocs_text_add(text, "%*s",
				     i + 1 < row->n ? row->wide - row->columns + GAP : 1,
				     i + 1 < row->n ? "" : "\n");
		}
	}
	ocs_text_add(text, "\n");
}

/* A full row; of a cube that is too wide as many rows as it takes. */
static void rows_add(struct ocs_text *text, const struct ocs_section *s, struct row *row, int fit,
		     const struct ocs_picture_item *items, const char *given, const int *owner,
		     bool colour)
{
	for (row->first = 0; row->n && row->first < s->edge[2]; row->first += fit) {
		row->layers = s->edge[2] - row->first < fit ? s->edge[2] - row->first : fit;
		row_add(text, s, row, items, given, owner, colour);
	}
	row->n = 0;
}

/* XPUs and nodes that are free, and those of each item. */
static void legend_add(struct ocs_text *text, const struct ocs_section *s,
		       const struct ocs_picture_item *items, int nitems, const char *given,
		       const int *owner, bool colour)
{
	long *count = ocs_calloc((size_t)nitems + 1, sizeof(long));
	long total = (long)s->ncubes * s->cube_xpus, r;
	int i;

	for (r = 0; r < total; r++)
		count[owner[r]]++;
	for (i = 0; i < nitems; i++) {
		if (!count[i + 1])
			continue;
		cell_add(text, items, given, i + 1, colour);
		ocs_text_add(text, "  %s (%ld XPUs)\n",
			     items[i].label ? items[i].label :
			     items[i].down  ? "down" :
					      "busy",
			     count[i + 1]);
	}
	cell_add(text, items, given, 0, colour);
	ocs_text_add(text, "  free (%ld of %ld XPUs)\n", count[0], total);
	free(count);
}

char *ocs_picture(const struct ocs_fabric *fabric, const struct ocs_section *section,
		  const struct ocs_picture_item *items, int nitems, int only, int width,
		  bool colour)
{
	struct row row = { .columns = section->edge[2] * (section->edge[1] + 1) - 1 };
	int *owner = owners_find(fabric, section, items, nitems), *cubes;
	char *given = signs_give(items, nitems);
	bool large = section->ncubes > LARGE && only < 0;
	int across, fit, broken = 0, cube;
	struct ocs_text text = { 0 };

	width = width > 0 ? width : 80;
	row.wide = longest_name(section);
	row.wide = row.wide < row.columns ? row.columns : row.wide;
	across = (width + GAP) / (row.wide + GAP);
	across = across < 1 ? 1 : across;
	fit = (width + 1) / (section->edge[1] + 1);
	fit = fit < 1 ? 1 : fit > section->edge[2] ? section->edge[2] : fit;
	if (large)
		broken = overview_add(&text, section, width, items, given, owner, colour);
	row.cubes = cubes = ocs_calloc((size_t)across, sizeof(int));
	for (cube = 0; cube < section->ncubes; cube++) {
		if (large ? is_whole(section, owner, cube) :
			    only >= 0 && !is_part(section, owner, cube, only))
			continue;
		cubes[row.n++] = cube;
		if (row.n == across)
			rows_add(&text, section, &row, fit, items, given, owner, colour);
	}
	rows_add(&text, section, &row, fit, items, given, owner, colour);
	if (broken)
		ocs_text_add(&text, "+  broken, drawn above (%d of %d cubes)\n", broken,
			     section->ncubes);
	if (only >= 0)
		others_add(&text, section, owner, only);
	legend_add(&text, section, items, nitems, given, owner, colour);
	free(cubes);
	free(given);
	free(owner);
	return ocs_text_take(&text);
}

/* A square of the colour of OWNER with its sign; OWNER 0: free. */
static void square_add(struct ocs_text *text, const struct ocs_picture_item *items,
		       const char *given, int owner, int left, int top)
{
	int hue = owner ? hue_of(&items[owner - 1], given[owner - 1]) : 0;

	ocs_text_add(text,
		     "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"2\" "
		     "fill=\"%s\"/>\n",
		     left, top, CELL - 1, CELL - 1,
		     !owner	     ? "#eeeeee" :
		     hue == HUE_DOWN ? "url(#down)" :
		     hue == HUE_GREY ? "#aaaaaa" :
				       fill[hue]);
	if (!owner || hue == HUE_DOWN)
		return;
	ocs_text_add(text, "<text x=\"%d\" y=\"%d\" fill=\"%s\" text-anchor=\"middle\">",
		     left + CELL / 2, top + CELL - 4, hue < 0 ? "#222222" : ink[hue]);
	ocs_text_xml(text, (char[2]){ given[owner - 1], '\0' });
	ocs_text_add(text, "</text>\n");
}

static void cube_svg(struct ocs_text *text, const struct ocs_section *s, int cube, int left,
		     int top, const struct ocs_picture_item *items, const char *given,
		     const int *owner)
{
	int x, y, z;

	ocs_text_add(text, "<text x=\"%d\" y=\"%d\" font-weight=\"bold\">", left, top - 5);
	ocs_text_xml(text, s->cube_names[cube]);
	ocs_text_add(text, "</text>\n");
	for (z = 0; z < s->edge[2]; z++) {
		for (x = 0; x < s->edge[0]; x++) {
			for (y = 0; y < s->edge[1]; y++) {
				int at[OCS_AXES] = { x, y, z };

				square_add(text, items, given,
					   owner[cube * s->cube_xpus + ocs_section_bit(s, at)],
					   left + (z * (s->edge[1] + 1) + y) * CELL,
					   top + x * CELL);
			}
		}
	}
}

/* The jobs, and how much each has; returns the lower end. */
static int legend_svg(struct ocs_text *text, const struct ocs_section *s,
		      const struct ocs_picture_item *items, int nitems, const char *given,
		      const int *owner, int top)
{
	long *count = ocs_calloc((size_t)nitems + 1, sizeof(long));
	long total = (long)s->ncubes * s->cube_xpus, r;
	int i;

	for (r = 0; r < total; r++)
		count[owner[r]]++;
	for (i = 1; i <= nitems + 1; i++) {
		int who = i % (nitems + 1); /* free ones last */

		if (who && !count[who])
			continue;
		square_add(text, items, given, who, CELL, top);
		ocs_text_add(text, "<text x=\"%d\" y=\"%d\" font-size=\"12\">", CELL + 20,
			     top + 11);
		ocs_text_xml(text, !who			? "free" :
				   items[who - 1].label ? items[who - 1].label :
				   items[who - 1].down	? "down" :
							  "busy");
		if (who)
			ocs_text_add(text, " (%ld XPUs)</text>\n", count[who]);
		else
			ocs_text_add(text, " (%ld of %ld XPUs)</text>\n", count[0], total);
		top += LINE;
	}
	free(count);
	return top;
}

char *ocs_picture_svg(const struct ocs_fabric *fabric, const struct ocs_section *section,
		      const struct ocs_picture_item *items, int nitems, const char *title)
{
	int wide = (section->edge[2] * (section->edge[1] + 1) + 1) * CELL;
	int high = (section->edge[0] + 3) * CELL, across = 1, rows, cube, width;
	int head = title ? 2 * LINE : 0;
	int *owner = owners_find(fabric, section, items, nitems);
	char *given = signs_give(items, nitems);
	struct ocs_text body = { 0 }, text = { 0 };

	while (across < section->ncubes && across * wide < section->ncubes / across * high * 2)
		across++;
	rows = (section->ncubes + across - 1) / across;
	for (cube = 0; cube < section->ncubes; cube++)
		cube_svg(&body, section, cube, CELL + cube % across * wide,
			 head + 2 * CELL + cube / across * high, items, given, owner);
	rows = legend_svg(&body, section, items, nitems, given, owner, head + rows * high + LINE);
	/* labels need some room beside few cubes */
	width = across * wide + 2 * CELL < WIDTH_MIN ? WIDTH_MIN : across * wide + 2 * CELL;
	ocs_text_add(&text,
		     "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		     "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
		     "viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"10\">\n"
		     "<defs><pattern id=\"down\" width=\"5\" height=\"5\" patternUnits="
		     "\"userSpaceOnUse\" patternTransform=\"rotate(45)\"><rect width=\"5\" "
		     "height=\"5\" fill=\"#dddddd\"/><rect width=\"2\" height=\"5\" "
		     "fill=\"#444444\"/></pattern></defs>\n"
		     "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
		     width, rows + CELL, width, rows + CELL);
	if (title) {
		ocs_text_add(&text,
			     "<text x=\"%d\" y=\"%d\" font-size=\"14\" "
			     "font-weight=\"bold\">",
			     CELL, LINE + 4);
		ocs_text_xml(&text, title);
		ocs_text_add(&text, "</text>\n");
	}
	ocs_text_add(&text, "%s</svg>\n", body.data);
	ocs_text_free(&body);
	free(given);
	free(owner);
	return ocs_text_take(&text);
}
