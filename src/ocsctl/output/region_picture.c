/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Heat maps of a region in a terminal. */

#include "src/ocsctl/output/region_picture.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "src/util/text.h"

#define PANELS 3
#define WIDTH 160   /* where there is no terminal */
#define NUMBERED 16 /* servers, above which cells have a sign and no number */
#define WIDE 5	    /* of a cell with a number */
#define NARROW 2
#define LABEL 4 /* of a row */
#define GAP 3

/* From cold to hot, of the colours of a terminal with 256; the text on them. */
static const int heat[] = { 234, 17, 18, 54, 90, 126, 162, 198, 204, 209, 215, 221, 228 };
#define HEAT ((int)(sizeof(heat) / sizeof(heat[0])))
#define DARK_TEXT 7 /* from this one on */
static const char signs[] = " .:-=+*#%@";
#define SIGNS ((int)sizeof(signs) - 1)

struct panel {
	const char *title;
	const struct ocs_moe_circuits *circuits; /* or */
	const struct ocs_moe_demand *amounts;
	double most;
};

static double panel_value(const struct panel *panel, int i, int j)
{
	int n = panel->circuits ? panel->circuits->n : panel->amounts->n;

	return panel->circuits ? panel->circuits->count[i * n + j] :
				 panel->amounts->tokens[i * n + j];
}

static int panels_make(const struct ocs_region_picture *picture, struct panel *panels)
{
	int n = picture->circuits->n, count = 0;

	if (picture->demand)
		panels[count++] =
			(struct panel){ .title = "demand, tokens", .amounts = picture->demand };
	panels[count++] = (struct panel){ .title = "circuits", .circuits = picture->circuits };
	if (picture->achieved)
		panels[count++] = (struct panel){ .title = "achieved, of a NIC's rate",
						  .amounts = picture->achieved };
	for (int p = 0; p < count; p++) {
		for (int i = 0; i < n; i++) {
			for (int j = 0; j < n; j++) {
				double value = panel_value(&panels[p], i, j);

				panels[p].most = value > panels[p].most ? value : panels[p].most;
			}
		}
	}
	return count;
}

/* At most four characters. */
static void number_format(double value, char *text, size_t size)
{
	static const char units[] = " kMGT";
	int unit = 0;

	while (value >= 999.5 && units[unit + 1]) {
		value /= 1000;
		unit++;
	}
	if (unit)
		snprintf(text, size, value < 9.95 ? "%.1f%c" : "%.0f%c", value, units[unit]);
	else
		snprintf(text, size,
			 value > 0 && value < 9.995 && value != (int)value ? "%.2f" : "%.0f",
			 value);
}

static void cell_print(const struct panel *panel, int i, int j, int n, bool colour, FILE *out)
{
	double value = i == j ? 0 : panel_value(panel, i, j);
	double share = panel->most > 0 ? value / panel->most : 0;
	int wide = n <= NUMBERED ? WIDE : NARROW, hot = (int)(share * (HEAT - 1) + 0.5);
	char text[24] = "";

	if (n <= NUMBERED && value > 0)
		number_format(value, text, sizeof(text));
	else if (n > NUMBERED && !colour)
		snprintf(text, sizeof(text), "%c", signs[(int)(share * (SIGNS - 1) + 0.5)]);
	if (colour)
		fprintf(out, "\033[48;5;%dm\033[38;5;%dm%*s \033[0m", heat[hot],
			hot >= DARK_TEXT ? 16 : 252, wide - 1, text);
	else if (n <= NUMBERED)
		fprintf(out, "%*s ", wide - 1, value > 0 ? text : i == j ? "" : ".");
	else
		fprintf(out, "%*s", wide, text);
}

static void row_print(const struct panel *panel, int i, int n, bool colour, FILE *out)
{
	fprintf(out, "%*d ", LABEL - 1, i);
	for (int j = 0; j < n; j++)
		cell_print(panel, i, j, n, colour, out);
}

static void head_print(int n, FILE *out)
{
	int wide = n <= NUMBERED ? WIDE : NARROW;

	fprintf(out, "%*s", LABEL, "");
	for (int j = 0; j < n; j++)
		fprintf(out, "%*d%s", wide - 1, n <= NUMBERED ? j : j % 10, " ");
}

int ocs_region_picture_width(void)
{
	struct winsize size;

	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !size.ws_col ? WIDTH : size.ws_col;
}

void ocs_region_picture_print(const struct ocs_region_picture *picture, int width, bool colour,
			      FILE *out)
{
	struct panel panels[PANELS] = { 0 };
	int n = picture->circuits->n, count = panels_make(picture, panels);
	int wide = LABEL + n * (n <= NUMBERED ? WIDE : NARROW);
	int beside = (width + GAP) / (wide + GAP);

	beside = beside < 1 ? 1 : beside > count ? count : beside;
	if (picture->caption)
		fprintf(out, "%s\n", picture->caption);
	for (int first = 0; first < count; first += beside) {
		int last = first + beside < count ? first + beside : count;

		for (int line = -2; line < n; line++) {
			for (int p = first; p < last; p++) {
				if (line == -2)
					fprintf(out, "%-*s", wide, panels[p].title);
				else if (line == -1)
					head_print(n, out);
				else
					row_print(&panels[p], line, n, colour, out);
				fprintf(out, "%*s", p + 1 < last ? GAP : 0, "");
			}
			fputc('\n', out);
		}
	}
}
