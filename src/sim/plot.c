/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Pictures of a run as SVG, drawn by hand: axes, steps and bars. */

#include "src/sim/plot.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/sim/report.h"
#include "src/util/error.h"
#include "src/util/svg.h"
#include "src/util/text.h"

#define HOUR 3600.0
#define WIDTH 720
#define HEIGHT 240 /* of one panel */
#define LEFT 60
#define TOP 36
#define PIXELS (WIDTH - LEFT - 20)
#define ROOM (HEIGHT - TOP - 44)
#define ROOM_2 (2 * HEIGHT - TOP - 44) /* of two panels in one */

static void document_open(struct ocs_text *t, int panels, const char *title)
{
	ocs_text_add(t,
		     "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
		     "viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"12\">\n"
		     "<title>%s</title>\n%s",
		     WIDTH, panels * HEIGHT, WIDTH, panels * HEIGHT, title, OCS_SVG_GROUND);
}

/* The frame of panel INDEX; its origin is the lower left corner of the plot. */
static void panel_open(struct ocs_text *t, int index, const char *title, const char *below)
{
	ocs_text_add(
		t,
		"<g transform=\"translate(%d,%d)\">\n<text x=\"0\" y=\"%d\" "
		"font-weight=\"bold\">%s</text>\n<text x=\"%d\" y=\"36\" text-anchor=\"middle\">"
		"%s</text>\n<path d=\"M0,%d V0 H%d\" fill=\"none\" class=\"axis\" stroke=\"black\"/>\n",
		LEFT, index * HEIGHT + TOP + ROOM, -ROOM - 14, title, PIXELS / 2, below, -ROOM,
		PIXELS);
}

static void tick_x(struct ocs_text *t, double share, const char *format, double value)
{
	ocs_text_add(
		t,
		"<path d=\"M%.1f,0 v5\" class=\"axis\" stroke=\"black\"/><text x=\"%.1f\" y=\"18\" "
		"text-anchor=\"middle\">",
		share * PIXELS, share * PIXELS);
	ocs_text_add(t, format[0] == 'h' ? "%.2f" : "%.0f", value);
	ocs_text_add(t, "</text>\n");
}

static void tick_y(struct ocs_text *t, double share, const char *label)
{
	ocs_text_add(
		t,
		"<path d=\"M0,%.1f H%d\" class=\"line\" stroke=\"#ddd\"/><text x=\"-8\" y=\"%.1f\" "
		"text-anchor=\"end\">%s</text>\n",
		-share * ROOM, PIXELS, 4 - share * ROOM, label);
}

static void percent_axis(struct ocs_text *t)
{
	tick_y(t, .25, "25 %");
	tick_y(t, .5, "50 %");
	tick_y(t, .75, "75 %");
	tick_y(t, 1, "100 %");
}

/* Means over as many stretches as there are pixels: a long run stays a small file. */
static void over_time(struct ocs_text *t, const struct ocs_sim_result *r)
{
	double *sum = ocs_calloc(PIXELS, sizeof(double)), step = r->time / PIXELS;
	long i;
	int x;

	for (i = 0; i < r->nsamples; i++) {
		double from = r->samples[i].time;
		double to = i + 1 < r->nsamples ? r->samples[i + 1].time : r->time;

		for (x = (int)(from / step); x < PIXELS && x * step < to; x++) {
			double low = x * step > from ? x * step : from;
			double high = (x + 1) * step < to ? (x + 1) * step : to;

			if (high > low)
				sum[x] += (double)r->samples[i].busy * (high - low);
		}
	}
	panel_open(t, 0, "XPUs in use over time", "hours");
	percent_axis(t);
	for (x = 0; x <= 5; x++)
		tick_x(t, x / 5.0, "n", r->time / HOUR * x / 5);
	ocs_text_add(t, "<path fill=\"#4878a8\" d=\"M0,0");
	for (x = 0; x < PIXELS; x++)
		ocs_text_add(t, "V%.1fh1", -ROOM * sum[x] / step);
	ocs_text_add(t, "V0z\"/>\n</g>\n");
	free(sum);
}

static void distribution_draw(struct ocs_text *t, const struct ocs_sim_result *r)
{
	double sum = 0;
	int i;

	panel_open(t, 1, "Share of the time with at most so many XPUs in use",
		   "per cent of the XPUs in use");
	percent_axis(t);
	for (i = 0; i <= 4; i++)
		tick_x(t, i / 4.0, "n", 25.0 * i);
	ocs_text_add(t, "<path fill=\"none\" stroke=\"#b04030\" stroke-width=\"2\" d=\"M0,0");
	for (i = 0; i <= OCS_SIM_BINS; i++) {
		sum += r->bins[i];
		ocs_text_add(t, "H%.1fV%.1f", (double)i / OCS_SIM_BINS * PIXELS,
			     r->measured > 0 ? -ROOM * sum / r->measured : 0.0);
	}
	ocs_text_add(t, "\"/>\n</g>\n");
}

/* Sorted completion times in hours of the done jobs of LOW..HIGH XPUs. */
static long completion_times(const struct ocs_sim_result *r, long low, long high, double *hours)
{
	long i, n = 0;

	for (i = 0; i < r->njobs; i++) {
		const struct ocs_sim_outcome *out = &r->jobs[i];

		if (out->state == OCS_SIM_DONE && out->job.shape.xpus >= low &&
		    out->job.shape.xpus <= high)
			hours[n++] = (out->end - out->job.arrival) / HOUR;
	}
	qsort(hours, (size_t)n, sizeof(double), ocs_sim_ascending);
	return n;
}

/* Bars of p50, p90 and p99 on a logarithmic axis of 0.01 to 10000 hours. */
static void jct_bars(struct ocs_text *t, const struct ocs_sim_result *r)
{
	static const struct {
		const char *label;
		long low, high;
	} groups[] = {
		{ "all jobs", 1, 1L << 40 },  { "up to 64 XPUs", 1, 64 }, { "65 to 256", 65, 256 },
		{ "257 to 1024", 257, 1024 }, { "more", 1025, 1L << 40 },
	};
	static const char *const colours[] = { "#88b0d0", "#4878a8", "#203858" };
	static const double shares[] = { .5, .9, .99 };
	double *hours = ocs_calloc((size_t)r->njobs + 1, sizeof(double));
	char label[32];
	int g, b;

	panel_open(t, 0, "Completion times: p50, p90, p99 (hours)", "");
	for (b = -1; b <= 4; b++) {
		snprintf(label, sizeof(label), "%g", pow(10, b));
		tick_y(t, (b + 2) / 6.0, label);
	}
	for (g = 0; g < 5; g++) {
		long n = completion_times(r, groups[g].low, groups[g].high, hours);
		double x = PIXELS * (g + .12) / 5;

		ocs_text_add(t, "<text x=\"%.1f\" y=\"18\">%s</text>\n", x, groups[g].label);
		for (b = 0; b < 3 && n; b++) {
			double value = ocs_sim_quantile(hours, n, shares[b]);
			double height = ROOM * (log10(value > .01 ? value : .01) + 2) / 6;

			ocs_text_add(
				t,
				"<rect x=\"%.1f\" y=\"%.1f\" width=\"26\" height=\"%.1f\" "
				"%sfill=\"%s\"/><text x=\"%.1f\" y=\"%.1f\" font-size=\"9\">%.3g"
				"</text>\n",
				x + 30 * b, -height, height, b == 2 ? "class=\"deep\" " : "",
				colours[b], x + 30 * b, -height - 3, value);
		}
	}
	ocs_text_add(t, "</g>\n");
	free(hours);
}

/* A column per moment, a row per cube, the darker the fuller. */
static void cubes_over_time(struct ocs_text *t, const struct ocs_sim_result *r)
{
	int rows = r->ncubes < 256 ? r->ncubes : 256, x, y, end;
	double high = (double)ROOM_2 / rows;

	ocs_text_add(
		t,
		"<g transform=\"translate(%d,%d)\">\n<text x=\"0\" y=\"%d\" "
		"font-weight=\"bold\">How full each cube is, over %.0f hours (%d of %d cubes, "
		"dark: all XPUs in use)</text>\n<text x=\"%d\" y=\"36\" text-anchor=\"middle\">"
		"hours</text>\n",
		LEFT, TOP + ROOM_2, -ROOM_2 - 14, r->time / HOUR, rows, r->ncubes, PIXELS / 2);
	for (x = 0; x <= 5; x++)
		tick_x(t, x / 5.0, "n", r->time / HOUR * x / 5);
	for (y = 0; y<rows; y += rows> 8 ? rows / 8 : 1)
		ocs_text_add(t, "<text x=\"-8\" y=\"%.2f\" text-anchor=\"end\">cube %d</text>\n",
			     (y + .5) * high - ROOM_2 + 4, y);
	for (y = 0; y < rows; y++) {
		for (x = 0; x < r->moments; x = end) {
			int level = (int)(r->cubes[x * r->ncubes + y] * 16 + .5f);

			/* one rectangle for as long as the cube stays as full */
			for (end = x + 1; end < r->moments; end++) {
				if ((int)(r->cubes[end * r->ncubes + y] * 16 + .5f) != level)
					break;
			}
			if (level)
				ocs_text_add(
					t,
					"<rect x=\"%d\" y=\"%.2f\" width=\"%d\" height=\"%.2f\" "
					"class=\"deep\" fill=\"#204878\" fill-opacity=\"%.2f\"/>\n",
					x, y * high - ROOM_2, end - x, high, level / 16.0);
		}
	}
	ocs_text_add(
		t,
		"<rect y=\"%d\" width=\"%d\" height=\"%d\" fill=\"none\" class=\"axis\" stroke=\"black\"/>\n"
		"</g>\n",
		-ROOM_2, r->moments, ROOM_2);
}

/* Decided and placed jobs by the number of their dimensions. */
static void jcr_table(struct ocs_text *t, const struct ocs_sim_result *r)
{
	static const char *const names[] = { "1D", "2D", "3D and more", "all jobs" };
	static const char *const heads[] = { "decided", "can never fit", "placed", "JCR" };
	long decided[4] = { 0 }, never[4] = { 0 }, i;
	int row, column;

	for (i = 0; i < r->njobs; i++) {
		const struct ocs_sim_outcome *out = &r->jobs[i];
		int kind = out->job.shape.ndim < 3 ? out->job.shape.ndim - 1 : 2;

		if (out->state == OCS_SIM_WAITING)
			continue;
		decided[kind]++;
		decided[3]++;
		never[kind] += out->state == OCS_SIM_NEVER;
		never[3] += out->state == OCS_SIM_NEVER;
	}
	ocs_text_add(t, "<g transform=\"translate(%d,%d)\" text-anchor=\"end\" font-size=\"14\">\n",
		     LEFT, TOP);
	for (column = 0; column < 4; column++)
		ocs_text_add(t, "<text x=\"%d\" y=\"16\" font-weight=\"bold\">%s</text>\n",
			     200 + 120 * column, heads[column]);
	for (row = 0; row < 4; row++) {
		int y = 48 + 30 * row;
		long placed = decided[row] - never[row];

		ocs_text_add(
			t,
			"<path d=\"M0,%d H600\" class=\"line\" stroke=\"#ddd\"/><text x=\"0\" y=\"%d\" "
			"text-anchor=\"start\">%s</text><text x=\"200\" y=\"%d\">%ld</text>"
			"<text x=\"320\" y=\"%d\">%ld</text><text x=\"440\" y=\"%d\">%ld</text>",
			y - 20, y, names[row], y, decided[row], y, never[row], y, placed);
		if (decided[row])
			ocs_text_add(t, "<text x=\"560\" y=\"%d\">%.1f %%</text>", y,
				     100.0 * (double)placed / (double)decided[row]);
		ocs_text_add(t, "\n");
	}
	ocs_text_add(t, "</g>\n");
}

static int document_write(struct ocs_text *t, const char *prefix, const char *name,
			  struct ocs_error *err)
{
	char *path = ocs_asprintf("%s-%s.svg", prefix, name);
	int rc;

	ocs_text_add(t, "</svg>\n");
	rc = ocs_file_write(path, t->data, t->length, 0644, err);
	ocs_text_free(t);
	free(path);
	return rc;
}

int ocs_sim_plot(const struct ocs_sim_result *r, const char *title, const char *prefix,
		 struct ocs_error *err)
{
	struct ocs_text text = { 0 };

	if (r->time <= 0)
		return ocs_error_set(err, OCS_ERROR, "nothing to draw: no time has passed");
	document_open(&text, 2, title);
	over_time(&text, r);
	distribution_draw(&text, r);
	if (document_write(&text, prefix, "utilisation", err))
		return -1;
	document_open(&text, 1, title);
	jct_bars(&text, r);
	if (document_write(&text, prefix, "jct", err))
		return -1;
	document_open(&text, 1, title);
	jcr_table(&text, r);
	if (document_write(&text, prefix, "jcr", err))
		return -1;
	if (!r->moments)
		return 0;
	document_open(&text, 2, title);
	cubes_over_time(&text, r);
	return document_write(&text, prefix, "cubes", err);
}
