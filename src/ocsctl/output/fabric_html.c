/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The page of advise fabric: no script, no other file, in light or dark as the reader has it. */

#include <stdio.h>

#include "src/ocsctl/cmd/advise_fabric.h"
#include "src/optimise/compare.h"
#include "src/util/text.h"

#define WIDTH 420 /* of the longest bar */
#define ROW 24

/* Those of ocsctl report, and of the bars, light and dark. */
#define COLOURS                                                                                         \
	":root{color-scheme:light dark;--fg:#1c2024;--bg:#fff;--line:#d5d9de;--a:#2a6fb0;--b:#b0602a}"  \
	"@media(prefers-color-scheme:dark){:root{--fg:#e6e8ea;--bg:#14171a;--line:#333a41;--a:#6fb0ee;" \
	"--b:#eea06f}}"
#define BARS "svg text{fill:var(--fg);font:13px sans-serif}.c{fill:var(--a)}.p{fill:var(--b)}"

static const char style[] = COLOURS
	"body{font:15px/1.5 system-ui,sans-serif;color:var(--fg);background:var(--bg);max-width:60em;margin:2em "
	"auto;padding:0 1em}"
	"table{border-collapse:collapse}td,th{padding:.2em .8em;border-bottom:1px solid var(--line);"
	"text-align:right}td:first-child,th:first-child{text-align:left}" BARS;

static void cell_add(struct ocs_text *page, double value, const char *format)
{
	char text[40];

	snprintf(text, sizeof(text), format, value);
	ocs_text_add(page, "<td>%s</td>", value < 0 ? "&ndash;" : text);
}

static void rows_add(struct ocs_text *page, const struct ocs_compare *compare)
{
	ocs_text_add(page, "<table><tr><th>fabric</th><th>Gb/s</th><th>step, ms</th><th>$</th>"
			   "<th>W</th><th>performance per $</th><th>budget</th></tr>\n");
	for (int i = 0; i < compare->nrows; i++) {
		const struct ocs_compare_row *row = &compare->rows[i];

		ocs_text_add(page, "<tr><td>");
		ocs_text_xml(page, row->name);
		ocs_text_add(page, "</td>");
		cell_add(page, row->rate * 8 / 1e9, "%.4g");
		cell_add(page, row->step_ms, "%.3f");
		cell_add(page, row->dollars, "%.0f");
		cell_add(page, row->watts, "%.0f");
		cell_add(page, row->value, "%.3f");
		ocs_text_add(page, "<td>%s</td></tr>\n", row->affordable ? "within" : "above");
	}
	ocs_text_add(page, "</table>\n");
}

/* Bars of the step times from Y on; circuits and packets in colours of their own. */
static void bars_add(struct ocs_text *page, const struct ocs_compare *compare, int y)
{
	double most = 0;

	for (int i = 0; i < compare->nrows; i++)
		most = compare->rows[i].step_ms > most ? compare->rows[i].step_ms : most;
	for (int i = 0; i < compare->nrows; i++) {
		const struct ocs_compare_row *row = &compare->rows[i];

		if (row->step_ms < 0 || most <= 0)
			continue;
		ocs_text_add(page, "<text x=\"0\" y=\"%d\">", y + 16);
		ocs_text_xml(page, row->name);
		ocs_text_add(page,
			     "</text><rect class=\"%s\" x=\"130\" y=\"%d\" width=\"%.1f\" "
			     "height=\"18\"/><text x=\"%.1f\" y=\"%d\">%.3f ms</text>\n",
			     row->circuits ? "c" : "p", y + 2, WIDTH * row->step_ms / most,
			     136 + WIDTH * row->step_ms / most, y + 16, row->step_ms);
		y += ROW;
	}
}

static void points_add(struct ocs_text *page, const char *heading,
		       const struct ocs_compare_point *points, int n, const char *unit)
{
	ocs_text_add(page,
		     "<h2>%s</h2>\n<table><tr><th></th><th>circuits, ms</th><th>packets of equal "
		     "cost, ms</th><th>ratio</th></tr>\n",
		     heading);
	for (int i = 0; i < n; i++) {
		ocs_text_add(page, "<tr><td>%s %s%g%s</td>", points[i].what,
			     *unit ? "" : "&times; ", points[i].factor, unit);
		cell_add(page, points[i].circuits_ms, "%.3f");
		cell_add(page, points[i].packets_ms, "%.3f");
		cell_add(page, points[i].packets_ms / points[i].circuits_ms, "%.3f");
		ocs_text_add(page, "</tr>\n");
	}
	ocs_text_add(page, "</table>\n");
}

static void line_add(struct ocs_text *page, const char *line)
{
	if (!*line)
		return;
	ocs_text_add(page, "<p>");
	ocs_text_xml(page, line);
	ocs_text_add(page, "</p>\n");
}

char *ocs_ctl_fabric_html(const struct ocs_compare *compare, const char *title, const char *machine,
			  const struct ocs_cost_table *table)
{
	struct ocs_text page = { 0 };

	ocs_text_add(&page, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
			    "<meta name=\"viewport\" content=\"width=device-width\"><title>");
	ocs_text_xml(&page, title);
	ocs_text_add(&page, "</title><style>%s</style></head><body>\n<h1>", style);
	ocs_text_xml(&page, title);
	ocs_text_add(&page, "</h1>\n<p><strong>");
	ocs_text_xml(&page, compare->verdict);
	ocs_text_add(&page, "</strong></p>\n");
	rows_add(&page, compare);
	ocs_text_add(&page,
		     "<h2>Time of a step</h2>\n"
		     "<svg viewBox=\"0 0 700 %d\" width=\"700\" role=\"img\">\n"
		     "<title>time of a step</title>\n",
		     ROW * compare->nrows);
	bars_add(&page, compare, 0);
	ocs_text_add(&page, "</svg>\n");
	points_add(&page, "Rates", compare->rates, compare->nrates, " Gb/s");
	line_add(&page, compare->at_rates);
	points_add(&page, "If something were otherwise", compare->changes, compare->nchanges, "");
	line_add(&page, compare->turns);
	ocs_text_add(&page, "<h2>Assumptions</h2>\n<ul><li>");
	ocs_text_xml(&page, machine);
	ocs_text_add(&page, "</li><li>steps are simulated with a tolerance of %g</li>",
		     compare->tolerance);
	for (int i = 0; i < table->nassumptions; i++) {
		ocs_text_add(&page, "<li>");
		ocs_text_xml(&page, table->assumptions[i]);
		ocs_text_add(&page, "</li>");
	}
	ocs_text_add(&page, "</ul>\n</body></html>\n");
	return ocs_text_take(&page);
}

char *ocs_ctl_fabric_svg(const struct ocs_compare *compare, const char *title)
{
	int height = ROW * (compare->nrows + 2);
	struct ocs_text text = { 0 };

	ocs_text_add(&text,
		     "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"700\" height=\"%d\" "
		     "viewBox=\"0 0 700 %d\">\n<style>" COLOURS "svg{background:var(--bg)}" BARS
		     "</style>\n<title>",
		     height, height);
	ocs_text_xml(&text, title);
	ocs_text_add(&text, "</title>\n<text x=\"0\" y=\"16\">");
	ocs_text_xml(&text, title);
	ocs_text_add(&text, "</text>\n");
	bars_add(&text, compare, ROW);
	ocs_text_add(
		&text,
		"<rect class=\"c\" x=\"130\" y=\"%d\" width=\"10\" height=\"10\"/><text x=\"146\" y=\"%d\">circuits</text>"
		"<rect class=\"p\" x=\"230\" y=\"%d\" width=\"10\" height=\"10\"/><text x=\"246\" y=\"%d\">packets</text>\n</svg>\n",
		height - 16, height - 6, height - 16, height - 6);
	return ocs_text_take(&text);
}
