/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* A picture of a region: a cell for each pair of servers, the darker the more it sends, with the number of
 * its circuits. */

#include "src/ocsctl/cmd/region.h"

#include <stdlib.h>

#include "src/moe/circuits.h"
#include "src/ocsctl/output/region_picture.h"
#include "src/util/text.h"

#define CELL 24
#define MARGIN 40
#define NUMBERS 64 /* servers, above which cells have no numbers, and every eighth row and column */
#define WIDE 280   /* of a picture, at least: its title */
#define TITLE 22   /* of a map, above its cells: between them are the numbers of the columns */

/* With the upper left corner of all cells at X0, Y0. */
static void cell_draw(struct ocs_text *text, int x0, int y0, int i, int j, double share,
		      int circuits, bool numbers)
{
	int light = 255 - (int)(share * 175), x = x0 + j * CELL, y = y0 + i * CELL;

	ocs_text_add(
		text,
		"<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"rgb(%d,%d,255)\"%s/>\n",
		x, y, CELL, CELL, light, light,
		circuits ? " stroke=\"#c2571a\" stroke-width=\"2\"" : "");
	if (circuits && numbers)
		ocs_text_add(text, "<text x=\"%d\" y=\"%d\">%d</text>\n", x + CELL / 2,
			     y + CELL * 2 / 3, circuits);
}

/* The servers beside and above N by N cells. */
static void servers_draw(struct ocs_text *text, int x0, int y0, int n)
{
	for (int i = 0; i < n; i += n <= NUMBERS ? 1 : 8) {
		ocs_text_add(text, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%d</text>\n",
			     x0 - 6, y0 + i * CELL + CELL * 2 / 3, i);
		ocs_text_add(text, "<text x=\"%d\" y=\"%d\">%d</text>\n", x0 + i * CELL + CELL / 2,
			     y0 - 6, i);
	}
}

char *ocs_ctl_region_svg(const struct ocs_moe_demand *demand,
			 const struct ocs_moe_circuits *circuits)
{
	int n = demand->n, size = 2 * MARGIN + n * CELL;
	struct ocs_text text = { 0 };
	double most = 0;

	for (int k = 0; k < n * n; k++)
		most = demand->tokens[k] > most ? demand->tokens[k] : most;
	ocs_text_add(&text,
		     "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
		     "font-family=\"sans-serif\" font-size=\"12\" text-anchor=\"middle\">\n"
		     "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n"
		     "<text x=\"%d\" y=\"%d\">sent from (row) to (column), and circuits</text>\n",
		     size > WIDE ? size : WIDE, size, (size > WIDE ? size : WIDE) / 2,
		     MARGIN / 2 - 2);
	servers_draw(&text, MARGIN, MARGIN, n);
	for (int i = 0; i < n; i++)
		for (int j = 0; j < n; j++)
			cell_draw(&text, MARGIN, MARGIN, i, j,
				  most > 0 ? demand->tokens[i * n + j] / most : 0,
				  circuits->count[i * n + j], n <= NUMBERS);
	ocs_text_add(&text, "</svg>\n");
	return ocs_text_take(&text);
}

/* A heat map of AMOUNTS, or of the number of circuits; frames where there are circuits. */
static void map_draw(struct ocs_text *text, int x, int y, const char *title,
		     const struct ocs_moe_demand *amounts, const struct ocs_moe_circuits *circuits)
{
	int n = circuits->n;
	double most = 0;

	for (int k = 0; k < n * n; k++) {
		double value = amounts ? amounts->tokens[k] : circuits->count[k];

		most = value > most ? value : most;
	}
	ocs_text_add(text, "<text x=\"%d\" y=\"%d\">", x + n * CELL / 2, y - TITLE);
	ocs_text_xml(text, title);
	ocs_text_add(text, "</text>\n");
	servers_draw(text, x, y, n);
	for (int i = 0; i < n; i++) {
		for (int j = 0; j < n; j++) {
			double value =
				amounts ? amounts->tokens[i * n + j] : circuits->count[i * n + j];

			cell_draw(text, x, y, i, j, most > 0 ? value / most : 0,
				  circuits->count[i * n + j], !amounts && n <= NUMBERS);
		}
	}
}

char *ocs_region_picture_svg(const struct ocs_region_picture *pictures, int n)
{
	int wide = 0, high = MARGIN, y = MARGIN;
	struct ocs_text text = { 0 };

	for (int k = 0; k < n; k++) {
		int size = pictures[k].circuits->n * CELL;
		int panels = 1 + (pictures[k].demand != NULL) + (pictures[k].achieved != NULL);

		wide = panels * (size + MARGIN) > wide ? panels * (size + MARGIN) : wide;
		high += size + TITLE + 2 * MARGIN;
	}
	ocs_text_add(&text,
		     "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
		     "font-family=\"sans-serif\" font-size=\"12\" text-anchor=\"middle\">\n"
		     "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
		     wide + MARGIN, high);
	for (int k = 0; k < n; k++) {
		const struct ocs_region_picture *p = &pictures[k];
		int step = p->circuits->n * CELL + MARGIN, x = MARGIN;

		if (p->caption) {
			ocs_text_add(&text, "<text x=\"%d\" y=\"%d\" text-anchor=\"start\">",
				     MARGIN, y - 12);
			ocs_text_xml(&text, p->caption);
			ocs_text_add(&text, "</text>\n");
		}
		y += MARGIN / 2 + TITLE;
		if (p->demand) {
			map_draw(&text, x, y, "demand", p->demand, p->circuits);
			x += step;
		}
		map_draw(&text, x, y, "circuits", NULL, p->circuits);
		if (p->achieved)
			map_draw(&text, x + step, y, "achieved", p->achieved, p->circuits);
		y += p->circuits->n * CELL + MARGIN + MARGIN / 2;
	}
	ocs_text_add(&text, "</svg>\n");
	return ocs_text_take(&text);
}
