/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* A day of the cubes as one animated SVG.  A job is one path; all animations begin with
 * the document and last as long, so that they stay together when they repeat. */

#include "src/sim/day.h"

#include <stdlib.h>

#include "src/util/error.h"
#include "src/util/svg.h"
#include "src/util/text.h"

#define HOUR 3600.0
#define MARGIN 20
#define HEAD 56	  /* title and clock */
#define CURVE 110 /* the panel below the cubes */
#define CLOCK_STEPS 48
#define WIDTH_MIN 640

static const char *const fill[] = { "#4e79a7", "#f28e2b", "#59a14f", "#b07aa1", "#76b7b2",
				    "#edc948", "#ff9da7", "#9c755f", "#e15759", "#2f6b4f",
				    "#8cd17d", "#b6992d", "#d4a6c8", "#499894" };
#define COLOURS ((int)(sizeof(fill) / sizeof(fill[0])))

struct day {
	const struct ocs_sim_result *r;
	const struct ocs_section *s;
	double length;		     /* seconds of simulated time */
	double shown;		     /* seconds that the animation takes */
	int cell, layer_gap, label;  /* pixels; LABEL 0: cubes have no names */
	int cube_width, cube_height; /* with the gap to the next */
	int across, width, height;
	struct ocs_text text;
};

/* As large as fits a screen, all cubes of it. */
static void sizes_choose(struct day *d)
{
	const struct ocs_section *s = d->s;
	int rows, full;

	for (d->cell = 12; d->cell >= 2; d->cell--) {
		d->layer_gap = d->cell / 2 + 1;
		d->label = d->cell >= 5 ? 11 : 0;
		d->cube_width = s->edge[2] * (s->edge[1] * d->cell + d->layer_gap) + d->cell;
		d->cube_height = s->edge[0] * d->cell + d->label + d->cell;
		/* twice as wide as high at least, the rows full if there are any such */
		for (d->across = 1; d->across < s->ncubes; d->across++) {
			rows = (s->ncubes + d->across - 1) / d->across;
			if (d->across * d->cube_width >= 2 * rows * d->cube_height)
				break;
		}
		for (full = d->across; full < d->across * 3 / 2 && s->ncubes % full; full++)
			;
		d->across = s->ncubes % full ? d->across : full;
		rows = (s->ncubes + d->across - 1) / d->across;
		d->width = d->across * d->cube_width;
		d->height = rows * d->cube_height;
		if (d->width <= 1280 && d->height <= 560)
			break;
	}
	d->width = (d->width < WIDTH_MIN ? WIDTH_MIN : d->width) + 2 * MARGIN;
	d->height += HEAD + CURVE + 2 * MARGIN;
}

/* The upper left corner of an XPU. */
static void xpu_corner(const struct day *d, int cube, int x, int y, int z, int *left, int *top)
{
	*left = MARGIN + cube % d->across * d->cube_width + y * d->cell +
		z * (d->s->edge[1] * d->cell + d->layer_gap);
	*top = HEAD + cube / d->across * d->cube_height + d->label + x * d->cell;
}

/* Layers of all cubes, and the names. */
static void ground_draw(struct day *d)
{
	const struct ocs_section *s = d->s;
	int cube, z, left, top;

	ocs_text_add(&d->text, "<path class=\"free\" fill=\"#e6e6e6\" d=\"");
	for (cube = 0; cube < s->ncubes; cube++) {
		for (z = 0; z < s->edge[2]; z++) {
			xpu_corner(d, cube, 0, 0, z, &left, &top);
			ocs_text_add(&d->text, "M%d,%dh%dv%dh-%dz", left, top, s->edge[1] * d->cell,
				     s->edge[0] * d->cell, s->edge[1] * d->cell);
		}
	}
	ocs_text_add(&d->text, "\"/>\n<g font-size=\"9\" fill=\"#555\">\n");
	for (cube = 0; cube < s->ncubes && d->label; cube++) {
		xpu_corner(d, cube, 0, 0, 0, &left, &top);
		ocs_text_add(&d->text, "<text x=\"%d\" y=\"%d\">", left, top - 2);
		ocs_text_xml(&d->text, s->cube_names[cube]);
		ocs_text_add(&d->text, "</text>\n");
	}
	ocs_text_add(&d->text, "</g>\n");
}

/* White lines between XPUs, above the jobs. */
static void grid_draw(struct day *d)
{
	const struct ocs_section *s = d->s;
	int cube, z, i, left, top;

	if (d->cell < 4)
		return;
	ocs_text_add(
		&d->text,
		"<path class=\"gap\" fill=\"none\" stroke=\"white\" pointer-events=\"none\" d=\"");
	for (cube = 0; cube < s->ncubes; cube++) {
		for (z = 0; z < s->edge[2]; z++) {
			xpu_corner(d, cube, 0, 0, z, &left, &top);
			for (i = 1; i < s->edge[0]; i++)
				ocs_text_add(&d->text, "M%d,%dh%d", left, top + i * d->cell,
					     s->edge[1] * d->cell);
			for (i = 1; i < s->edge[1]; i++)
				ocs_text_add(&d->text, "M%d,%dv%d", left + i * d->cell, top,
					     s->edge[0] * d->cell);
		}
	}
	ocs_text_add(&d->text, "\"/>\n");
}

/* Shown from share FROM to share TO of the day. */
static void visible_write(struct day *d, double from, double to)
{
	if (from <= 0 && to >= 1)
		return;
	ocs_text_add(&d->text,
		     "<animate attributeName=\"visibility\" calcMode=\"discrete\" "
		     "dur=\"%gs\" repeatCount=\"indefinite\" values=\"%svisible%s\" keyTimes=\"0",
		     d->shown, from > 0 ? "hidden;" : "", to < 1 ? ";hidden" : "");
	if (from > 0)
		ocs_text_add(&d->text, ";%.5f", from);
	if (to < 1)
		ocs_text_add(&d->text, ";%.5f", to);
	ocs_text_add(&d->text, "\"/>");
}

static const char *at_noon(double from, double to)
{
	return from <= .5 && to > .5 ? "visible" : "hidden";
}

/* The XPUs of a job as rectangles along y.  TAKEN is zero between calls. */
static void outline_draw(struct day *d, const struct ocs_sim_span *span, unsigned char *taken)
{
	const struct ocs_section *s = d->s;
	int i, cube, x, y, z, from, left, top;

	for (i = 0; i < span->n; i++)
		taken[span->xpus[i]] = 1;
	for (i = 0; i < span->n; i++) {
		cube = span->xpus[i] / s->cube_xpus;
		if (!taken[span->xpus[i]])
			continue; /* drawn with the rest of its cube */
		for (z = 0; z < s->edge[2]; z++) {
			for (x = 0; x < s->edge[0]; x++) {
				for (y = 0, from = -1; y <= s->edge[1]; y++) {
					int at[OCS_AXES] = { x, y, z };
					unsigned char *one = y == s->edge[1] ?
								     NULL :
								     &taken[cube * s->cube_xpus +
									    ocs_section_bit(s, at)];

					if (one && *one) {
						from = from < 0 ? y : from;
						*one = 0;
						continue;
					}
					if (from < 0)
						continue;
					xpu_corner(d, cube, x, from, z, &left, &top);
					ocs_text_add(&d->text, "M%d,%dh%dv%dh-%dz", left, top,
						     (y - from) * d->cell, d->cell,
						     (y - from) * d->cell);
					from = -1;
				}
			}
		}
	}
}

/* One for each span: what fewest XPUs have that can be seen at the same time. */
static int *colours_choose(const struct ocs_sim_result *r)
{
	int *colour = ocs_calloc((size_t)r->nspans + 1, sizeof(int)), c;
	long i, k;

	for (i = 0; i < r->nspans; i++) {
		const struct ocs_sim_span *span = &r->spans[i], *other;
		long seen[COLOURS] = { 0 };

		for (k = 0; k < i; k++) {
			other = &r->spans[k];
			if (other->job == span->job)
				break; /* restarted elsewhere */
			if (other->from < span->to && span->from < other->to)
				seen[colour[k]] += other->n;
		}
		for (c = 1; c < COLOURS; c++)
			colour[i] = seen[c] < seen[colour[i]] ? c : colour[i];
		if (k < i)
			colour[i] = colour[k];
	}
	return colour;
}

static void job_draw(struct day *d, const struct ocs_sim_span *span, int colour,
		     unsigned char *taken)
{
	const struct ocs_sim_outcome *out = &d->r->jobs[span->job];
	double from = (span->from - d->r->day_from) / d->length;
	double to = (span->to - d->r->day_from) / d->length;
	char shape[OCS_SHAPE_TEXT];

	ocs_text_add(&d->text, "<path fill=\"%s\" visibility=\"%s\" d=\"", fill[colour],
		     at_noon(from, to));
	outline_draw(d, span, taken);
	ocs_text_add(&d->text, "\"><title>job %ld, %s, %ld XPUs, %.2f h from hour %.2f</title>",
		     out->job.id, ocs_shape_format(&out->job.shape, shape), out->job.shape.xpus,
		     (span->to - span->from) / HOUR, span->from / HOUR);
	visible_write(d, from, to);
	ocs_text_add(&d->text, "</path>\n");
}

static void clock_face(struct day *d)
{
	int i;

	ocs_text_add(&d->text, "<g font-size=\"16\" font-weight=\"bold\" text-anchor=\"end\">\n");
	for (i = 0; i < CLOCK_STEPS; i++) {
		double from = (double)i / CLOCK_STEPS, to = (double)(i + 1) / CLOCK_STEPS;
		double hour = (d->r->day_from + from * d->length) / HOUR;
		int minute = (int)(hour * 60 + .5);

		ocs_text_add(&d->text,
			     "<text x=\"%d\" y=\"24\" visibility=\"%s\">day %d, %02d:%02d",
			     d->width - MARGIN, at_noon(from, to), minute / 1440 + 1,
			     minute / 60 % 24, minute % 60);
		visible_write(d, from, to);
		ocs_text_add(&d->text, "</text>\n");
	}
	ocs_text_add(&d->text, "</g>\n");
}

/* The share of XPUs in use through the day, and where in it the picture is. */
static void curve_draw(struct day *d)
{
	const struct ocs_sim_result *r = d->r;
	int left = MARGIN + 40, wide = d->width - MARGIN - left, high = CURVE - 34, i;
	double last = 0, x;
	long k, waiting = 0;

	ocs_text_add(&d->text, "<g transform=\"translate(%d,%d)\" font-size=\"10\">\n", left,
		     d->height - MARGIN - 14);
	for (i = 0; i <= 4; i += 2)
		ocs_text_add(
			&d->text,
			"<path d=\"M0,%d h%d\" class=\"line\" stroke=\"#ddd\"/><text x=\"-6\" y=\"%d\" "
			"text-anchor=\"end\">%d %%</text>\n",
			-high * i / 4, wide, 4 - high * i / 4, 25 * i);
	ocs_text_add(&d->text, "<path fill=\"#4878a8\" fill-opacity=\".6\" d=\"M0,0");
	for (k = 0; k < r->nsamples && r->samples[k].time < r->day_to; k++) {
		x = (r->samples[k].time - r->day_from) / d->length * wide;
		if (x > 0) {
			ocs_text_add(&d->text, "V%.1fH%.1f", -high * last, x);
			if (r->samples[k].waiting > waiting)
				waiting = r->samples[k].waiting;
		}
		last = (double)r->samples[k].busy;
	}
	ocs_text_add(&d->text, "V%.1fH%dV0z\"/>\n", -high * last, wide);
	ocs_text_add(
		&d->text,
		"<text x=\"0\" y=\"13\">XPUs in use; %s%ld job%s waiting</text>\n<path d=\"M0,4 V%d\" stroke=\"#b04030\" stroke-width=\"2\" "
		"transform=\"translate(%d,0)\"><animateTransform attributeName=\"transform\" "
		"type=\"translate\" from=\"0,0\" to=\"%d,0\" dur=\"%gs\" "
		"repeatCount=\"indefinite\"/></path>\n</g>\n",
		waiting ? "at most " : "", waiting, waiting == 1 ? "" : "s", -high - 4, wide / 2,
		wide, d->shown);
}

int ocs_sim_day_plot(const struct ocs_sim_result *r, const struct ocs_section *s, const char *title,
		     const char *path, struct ocs_error *err)
{
	struct day d = { .r = r, .s = s, .length = r->day_to - r->day_from };
	int *colour = colours_choose(r), rc;
	unsigned char *taken;
	long i;

	/* a second for an hour, but neither a flash nor a lesson in patience */
	d.shown = d.length / HOUR < 8 ? 8 : d.length / HOUR;
	taken = ocs_calloc((size_t)s->ncubes * (size_t)s->cube_xpus, 1);
	sizes_choose(&d);
	ocs_text_add(
		&d.text,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
		"viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" onclick=\"this.animationsPaused() "
		"? this.unpauseAnimations() : this.pauseAnimations()\">\n"
		"%s<text x=\"%d\" y=\"24\" font-size=\"14\" font-weight=\"bold\">",
		d.width, d.height, d.width, d.height, OCS_SVG_GROUND, MARGIN);
	ocs_text_xml(&d.text, title);
	ocs_text_add(
		&d.text,
		": hours %.0f to %.0f on %d cube%s, %ld XPUs</text>\n<text x=\"%d\" "
		"y=\"40\" font-size=\"10\" fill=\"#555\">one colour for each job (point at it for "
		"its shape), grey: free; click to stop and go</text>\n",
		r->day_from / HOUR, r->day_to / HOUR, s->ncubes, s->ncubes == 1 ? "" : "s",
		(long)s->ncubes * s->cube_xpus, MARGIN);
	clock_face(&d);
	ground_draw(&d);
	for (i = 0; i < r->nspans; i++)
		job_draw(&d, &r->spans[i], colour[i], taken);
	grid_draw(&d);
	curve_draw(&d);
	ocs_text_add(&d.text, "</svg>\n");
	rc = ocs_file_write(path, d.text.data, d.text.length, 0644, err);
	ocs_text_free(&d.text);
	free(taken);
	free(colour);
	return rc;
}
