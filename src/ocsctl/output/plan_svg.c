/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* A picture of a plan: servers on a circle, in the order of the first ring, and a
 * line for every circuit, coloured by what it is for. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/ocsctl/ocsctl.h"
#include "src/plan/plan.h"
#include "src/util/text.h"

#define RADIUS 300.0
#define MARGIN 110.0
#define LABELS 128 /* servers, above which only dots are drawn */

static const char *const colours[] = {
	"#1f6fb2", "#2a9d5c", "#c2571a", "#8a4fbf", "#b8336a", "#5b7f12",
};
#define NCOLOURS ((int)(sizeof(colours) / sizeof(colours[0])))
#define EXTRA "#b0b0b0"

struct point {
	double x, y;
};

/* The place of each server on the circle. */
static struct point *places_make(const struct ocs_plan *plan)
{
	struct point *at = ocs_calloc(plan->servers, sizeof(*at));
	int *place = ocs_calloc(plan->servers, sizeof(int));

	for (int i = 0; i < plan->servers; i++)
		place[i] = i;
	for (int g = 0; g < plan->ngroups; g++)
		if (plan->groups[g].nmembers == plan->servers) {
			for (int i = 0; i < plan->servers; i++)
				place[plan->groups[g].members[i]] = i;
			break;
		}
	for (int i = 0; i < plan->servers; i++) {
		double angle = 2 * M_PI * place[i] / plan->servers - M_PI / 2;

		at[i].x = MARGIN + RADIUS + RADIUS * cos(angle);
		at[i].y = MARGIN + RADIUS + RADIUS * sin(angle);
	}
	free(place);
	return at;
}

static void line_draw(struct ocs_text *text, const struct ocs_plan *plan,
		      const struct ocs_plan_circuit *c, const struct point *at)
{
	struct point a = at[c->a], b = at[c->b];
	const char *colour = c->group < 0 ? EXTRA : colours[c->group % NCOLOURS];

	ocs_text_add(text,
		     "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" "
		     "stroke=\"%s\" stroke-width=\"%s\"%s><title>switch %d: ",
		     a.x, a.y, b.x, b.y, colour, c->group < 0 ? "1" : "1.8",
		     plan->directed ? " marker-end=\"url(#tip)\"" : "", c->ocs);
	if (plan->nodes)
		ocs_text_xml(text, plan->nodes[c->a]);
	else
		ocs_text_add(text, "%d", c->a);
	ocs_text_add(text, " port %d %s ", c->a_port, plan->directed ? "to" : "and");
	if (plan->nodes)
		ocs_text_xml(text, plan->nodes[c->b]);
	else
		ocs_text_add(text, "%d", c->b);
	ocs_text_add(text, " port %d</title></line>\n", c->b_port);
}

static void server_draw(struct ocs_text *text, const struct ocs_plan *plan, int i, struct point at)
{
	double dx = (at.x - MARGIN - RADIUS) / RADIUS, dy = (at.y - MARGIN - RADIUS) / RADIUS;

	ocs_text_add(text, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%s\" fill=\"#222\"/>\n", at.x, at.y,
		     plan->servers > LABELS ? "2" : "5");
	if (plan->servers > LABELS)
		return;
	ocs_text_add(text, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", at.x + 14 * dx,
		     at.y + 14 * dy + 4,
		     dx > 0.1  ? "start" :
		     dx < -0.1 ? "end" :
				 "middle");
	if (plan->nodes)
		ocs_text_xml(text, plan->nodes[i]);
	else
		ocs_text_add(text, "%d", i);
	ocs_text_add(text, "</text>\n");
}

static void legend_draw(struct ocs_text *text, const struct ocs_plan *plan)
{
	double y = 2 * (MARGIN + RADIUS) + 4;
	bool extra = false;

	for (int i = 0; i < plan->ncircuits; i++)
		extra |= plan->circuits[i].group < 0;
	ocs_text_add(text,
		     "<text x=\"16\" y=\"%.0f\">%d servers, degree %d, %s: diameter %d, average "
		     "hops %.2f, busiest link %.0f</text>\n",
		     y, plan->servers, plan->degree, plan->directed ? "directed" : "duplex",
		     plan->diameter, plan->average_hops, plan->max_link_load);
	for (int g = 0; g < plan->ngroups && g < NCOLOURS; g++) {
		y += 20;
		ocs_text_add(text,
			     "<text x=\"16\" y=\"%.0f\" fill=\"%s\">group %d: %d servers, ring "
			     "steps",
			     y, colours[g], g, plan->groups[g].nmembers);
		for (int r = 0; r < plan->groups[g].nrings; r++)
			ocs_text_add(text, " %d", plan->groups[g].steps[r]);
		ocs_text_add(text, "%s</text>\n", plan->groups[g].nrings ? "" : " (none)");
	}
	if (extra)
		ocs_text_add(text,
			     "<text x=\"16\" y=\"%.0f\" fill=\"#808080\">other circuits: between "
			     "pairs with traffic, an expander, or rings that do not close</text>\n",
			     y + 20);
}

char *ocs_ctl_plan_svg(const struct ocs_plan *plan)
{
	struct ocs_text text = { 0 };
	struct point *at = places_make(plan);
	int groups = plan->ngroups < NCOLOURS ? plan->ngroups : NCOLOURS;

	ocs_text_add(&text,
		     "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" "
		     "font-family=\"sans-serif\" font-size=\"13\">\n"
		     "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
		     2 * (MARGIN + RADIUS), 2 * (MARGIN + RADIUS) + 20.0 * (groups + 2));
	if (plan->directed)
		ocs_text_add(&text,
			     "<defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"14\" refY=\"4\" "
			     "markerWidth=\"6\" markerHeight=\"6\" orient=\"auto\">"
			     "<path d=\"M0 0 L8 4 L0 8 z\" fill=\"#555\"/></marker></defs>\n");
	/* rings on top of the rest */
	for (int i = 0; i < plan->ncircuits; i++)
		if (plan->circuits[i].group < 0)
			line_draw(&text, plan, &plan->circuits[i], at);
	for (int i = 0; i < plan->ncircuits; i++)
		if (plan->circuits[i].group >= 0)
			line_draw(&text, plan, &plan->circuits[i], at);
	for (int i = 0; i < plan->servers; i++)
		server_draw(&text, plan, i, at[i]);
	legend_draw(&text, plan);
	ocs_text_add(&text, "</svg>\n");
	free(at);
	return ocs_text_take(&text);
}
