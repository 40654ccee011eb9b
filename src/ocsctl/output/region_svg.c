/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* A picture of a region: a cell for each pair of servers, the darker the more it sends, with the number of
 * its circuits. */

#include "src/ocsctl/cmd/region.h"

#include "src/moe/circuits.h"
#include "src/util/text.h"

#define CELL 24
#define MARGIN 40
#define NUMBERS 64 /* servers, above which cells have no numbers */

static void cell_draw(struct ocs_text *text, int i, int j, double share, int circuits, bool numbers)
{
	int light = 255 - (int)(share * 175), x = MARGIN + j * CELL, y = MARGIN + i * CELL;

	ocs_text_add(
		text,
		"<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"rgb(%d,%d,255)\"%s/>\n",
		x, y, CELL, CELL, light, light,
		circuits ? " stroke=\"#c2571a\" stroke-width=\"2\"" : "");
	if (circuits && numbers)
		ocs_text_add(text, "<text x=\"%d\" y=\"%d\">%d</text>\n", x + CELL / 2,
			     y + CELL * 2 / 3, circuits);
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
		     size, size, size / 2, MARGIN / 2);
	for (int i = 0; i < n; i++)
		for (int j = 0; j < n; j++)
			cell_draw(&text, i, j, most > 0 ? demand->tokens[i * n + j] / most : 0,
				  circuits->count[i * n + j], n <= NUMBERS);
	ocs_text_add(&text, "</svg>\n");
	return ocs_text_take(&text);
}
