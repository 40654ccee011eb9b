/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/netsim/plot.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/util/error.h"
#include "src/util/svg.h"
#include "src/util/text.h"

#define LEFT 150
#define WIDTH 900 /* of the time axis */
#define ROW 12
#define ROWS_MAX 40 /* of each kind */
#define TOP 48

static const char *const colours[] = { "#4878a8", "#c8643c", "#5a9a52", "#a05a9c",
				       "#b8962e", "#4aa0a0", "#8c6d5a", "#707070" };

static void head_write(struct ocs_text *svg, int height, const char *title)
{
	ocs_text_add(svg,
		     "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
		     "font-family=\"sans-serif\" font-size=\"10\">\n"
		     "%s<text x=\"10\" y=\"20\" font-size=\"14\">",
		     LEFT + WIDTH + 60, height, OCS_SVG_GROUND);
	ocs_text_xml(svg, title);
	ocs_text_add(svg, "</text>\n");
}

static int file_write(struct ocs_text *svg, const char *prefix, const char *name,
		      struct ocs_error *err)
{
	char *path = ocs_asprintf("%s-%s.svg", prefix, name);
	int rc;

	ocs_text_add(svg, "</svg>\n");
	rc = ocs_file_write(path, svg->data, svg->length, 0644, err);
	free(path);
	ocs_text_free(svg);
	return rc;
}

/* "0 ... MOST UNIT" below what is drawn. */
static void axis_write(struct ocs_text *svg, int y, double most, const char *unit)
{
	for (int k = 0; k <= 5; k++) {
		double x = LEFT + WIDTH * k / 5.0;

		ocs_text_add(
			svg,
			"<line class=\"line\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\" stroke=\"#ccc\"/>"
			"<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.4g%s%s</text>\n",
			x, x, TOP - 4, y, x, y + 12, most * k / 5, k == 5 ? " " : "",
			k == 5 ? unit : "");
	}
}

static void row_name(struct ocs_text *svg, int row, const char *name)
{
	ocs_text_add(svg, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">", LEFT - 6,
		     TOP + row * ROW + 9);
	ocs_text_xml(svg, name);
	ocs_text_add(svg, "</text>\n");
}

static void span_write(struct ocs_text *svg, int row, const struct ocs_netsim_span *span,
		       double end, const char *colour, const char *opacity)
{
	double x = LEFT + WIDTH * span->start / end, w = WIDTH * (span->end - span->start) / end;

	/* Thinner than a pixel's fifth is nothing that can be seen. */
	if (span->start >= 0 && w >= 0.2)
		ocs_text_add(svg,
			     "<rect x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\" fill=\"%s\""
			     "%s/>\n",
			     x, TOP + row * ROW, w, ROW - 2, colour, opacity);
}

/* What the devices of the first job do; returns the rows. */
static int devices_write(const struct ocs_netsim_request *request,
			 const struct ocs_netsim_result *result, double end, struct ocs_text *svg)
{
	const struct ocs_netsim_graph *graph = request->jobs[0].graph;
	int rows = graph->servers * graph->devices;
	char name[64];

	rows = rows < ROWS_MAX ? rows : ROWS_MAX;
	for (int row = 0; row < rows; row++) {
		snprintf(name, sizeof(name), "server %d, device %d", row / graph->devices,
			 row % graph->devices);
		row_name(svg, row, name);
	}
	for (int k = 0; k < graph->ntasks; k++) {
		const struct ocs_netsim_task *task = &graph->tasks[k];
		int row = task->server * graph->devices + task->device;

		if (task->kind == OCS_NETSIM_COMPUTE && row < rows)
			span_write(svg, row, &result->spans[k], end, colours[(task->label + 8) % 8],
				   "");
	}
	return rows;
}

/* What is sent, a row for each kind or label; returns the rows after these. */
static int traffic_write(const struct ocs_netsim_request *request,
			 const struct ocs_netsim_result *result, double end, int row,
			 struct ocs_text *svg)
{
	const struct ocs_netsim_graph *graph = request->jobs[0].graph;
	int kinds = OCS_NETSIM_KINDS + graph->nlabels, *rows;

	rows = ocs_calloc((size_t)kinds, sizeof(int));
	for (int k = 0; k < graph->ntasks; k++) {
		const struct ocs_netsim_task *task = &graph->tasks[k];
		int kind = task->label >= 0 ? OCS_NETSIM_KINDS + task->label : task->kind;

		if (task->kind == OCS_NETSIM_COMPUTE || task->kind == OCS_NETSIM_BARRIER)
			continue;
		if (!rows[kind]) {
			rows[kind] = ++row;
			row_name(svg, row - 1,
				 task->label >= 0 ? graph->labels[task->label] :
						    ocs_netsim_kind_name(task->kind));
		}
		span_write(svg, rows[kind] - 1, &result->spans[k], end, colours[kind % 8],
			   " fill-opacity=\"0.35\"");
	}
	free(rows);
	return row;
}

struct load {
	double bytes;
	int link;
};

static int load_compare(const void *left, const void *right)
{
	const struct load *a = left, *b = right;

	if (a->bytes != b->bytes)
		return a->bytes < b->bytes ? 1 : -1;
	return a->link - b->link;
}

/* Links that have a rate or carried something, most bytes first. */
static struct load *loads_sorted(const struct ocs_netsim_fabric *fabric,
				 const struct ocs_netsim_result *result, int *count)
{
	struct load *loads = ocs_calloc((size_t)fabric->nlinks + 1, sizeof(*loads));

	*count = 0;
	for (int k = 0; k < fabric->nlinks; k++) {
		if (fabric->links[k].rate > 0 || result->carried[k] > 0)
			loads[(*count)++] = (struct load){ result->carried[k], k };
	}
	qsort(loads, (size_t)*count, sizeof(*loads), load_compare);
	return loads;
}

static void vertex_name(const struct ocs_netsim_fabric *fabric, int vertex, char *name, size_t size)
{
	if (vertex < fabric->servers)
		snprintf(name, size, "%d", vertex);
	else
		snprintf(name, size, "switch %d", vertex - fabric->servers);
}

/* How full the busiest links are over time, darker where fuller; returns the rows after. */
static int links_write(const struct ocs_netsim_fabric *fabric,
		       const struct ocs_netsim_result *result, int row, struct ocs_text *svg)
{
	int count, n = result->nsamples;
	struct load *loads = loads_sorted(fabric, result, &count);
	char from[32], to[32], name[80];

	for (int k = 0; k < count && k < ROWS_MAX; k++, row++) {
		int link = loads[k].link;

		vertex_name(fabric, fabric->links[link].from, from, sizeof(from));
		vertex_name(fabric, fabric->links[link].to, to, sizeof(to));
		snprintf(name, sizeof(name), "%s to %s", from, to);
		row_name(svg, row, name);
		for (int s = 0; s + 1 < n; s++) {
			double bytes = result->samples[(s + 1) * fabric->nlinks + link] -
				       result->samples[s * fabric->nlinks + link];
			double most = fabric->links[link].rate * result->sample_ms;
			double use = most > 0 ? fmin(bytes / most, 1) : bytes > 0;

			if (use > 0.005)
				ocs_text_add(svg,
					     "<rect x=\"%.2f\" y=\"%d\" width=\"%.2f\" "
					     "height=\"%d\" class=\"use\" fill=\"#803020\" "
					     "fill-opacity=\"%.2f\"/>\n",
					     LEFT + WIDTH * (double)s / (n - 1), TOP + row * ROW,
					     (double)WIDTH / (n - 1), ROW - 2, use);
		}
	}
	free(loads);
	return row;
}

static int timeline_plot(const struct ocs_netsim_request *request,
			 const struct ocs_netsim_result *result, const char *title,
			 const char *prefix, struct ocs_error *err)
{
	struct ocs_text body = { 0 }, svg = { 0 };
	double end = result->end_ms > 0 ? result->end_ms : 1;
	int rows = devices_write(request, result, end, &body) + 1;

	rows = traffic_write(request, result, end, rows, &body) + 1;
	rows = links_write(request->fabric, result, rows, &body);
	head_write(&svg, TOP + rows * ROW + 30, title);
	axis_write(&svg, TOP + rows * ROW + 4, end, "ms");
	ocs_text_add(&svg, "%s", body.data ? body.data : "");
	ocs_text_free(&body);
	return file_write(&svg, prefix, "timeline", err);
}

#define PLOT 260 /* height of a picture of links */

static int loads_plot(const struct ocs_netsim_request *request,
		      const struct ocs_netsim_result *result, const char *title, const char *prefix,
		      struct ocs_error *err)
{
	struct ocs_text svg = { 0 };
	int count, base = TOP + PLOT, below = base + 40 + PLOT;
	struct load *loads = loads_sorted(request->fabric, result, &count);
	double most = count && loads[0].bytes > 0 ? loads[0].bytes : 1;

	head_write(&svg, below + 30, title);
	ocs_text_add(&svg,
		     "<text x=\"10\" y=\"38\">bytes of each link, the busiest first: "
		     "%.4g at most</text>\n",
		     most);
	for (int k = 0; k < count; k++) {
		double height = PLOT * loads[k].bytes / most, width = (double)WIDTH / count;

		ocs_text_add(&svg,
			     "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" "
			     "fill=\"#4878a8\"/>\n",
			     LEFT + k * width, base - height, width * .9, height);
	}
	ocs_text_add(&svg,
		     "<text x=\"10\" y=\"%d\">links with at most so many</text>\n"
		     "<polyline fill=\"none\" stroke=\"#c8643c\" stroke-width=\"2\" "
		     "points=\"",
		     base + 20);
	for (int k = count; k-- > 0;)
		ocs_text_add(&svg, "%.2f,%.2f ", LEFT + WIDTH * loads[k].bytes / most,
			     below - (double)PLOT * (count - k) / count);
	ocs_text_add(&svg, "\"/>\n");
	axis_write(&svg, below, most, "bytes");
	free(loads);
	return file_write(&svg, prefix, "links", err);
}

int ocs_netsim_plot(const struct ocs_netsim_request *request,
		    const struct ocs_netsim_result *result, const char *title, const char *prefix,
		    struct ocs_error *err)
{
	return timeline_plot(request, result, title, prefix, err) ||
			       loads_plot(request, result, title, prefix, err) ?
		       -1 :
		       0;
}
