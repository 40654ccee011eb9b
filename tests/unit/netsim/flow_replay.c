/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "tests/unit/netsim/flow_replay.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/netsim/flow.h"
#include "src/util/error.h"

#define MAX 4096

struct step {
	char verb[16];
	double time, value;
	int count, number; /* of a flow: its index in flows */
	int links[OCS_FLOW_LINKS_MAX], nlinks;
};

struct track {
	int flow;
	double bytes, ended, left; /* left: when it was last looked at */
	int count, links[OCS_FLOW_LINKS_MAX], nlinks;
	int on;
};

static struct step steps[MAX];
static struct track flows[MAX];
static int nsteps, nflows;
static double carried[MAX];

static void links_scan(struct step *step, char *rest)
{
	for (char *word = strtok(rest, " \n"); word; word = strtok(NULL, " \n"))
		step->links[step->nlinks++] = atoi(word);
}

static int line_read(struct ocs_flownet *net, char *line)
{
	struct step step = { 0 };
	int used = 0;

	if (sscanf(line, "link %lf", &step.value) == 1) {
		ocs_flownet_link_add(net, step.value);
		return 0;
	}
	if (sscanf(line, "flow %lf %lf %d %n", &step.time, &step.value, &step.count, &used) == 3) {
		step.number = nflows++;
		links_scan(&step, line + used);
		strcpy(step.verb, "flow");
	} else if (sscanf(line, "change %lf %d %lf", &step.time, &step.number, &step.value) == 3) {
		strcpy(step.verb, "change");
	} else if (sscanf(line, "%15s %lf %d %n", step.verb, &step.time, &step.number, &used) ==
		   3) {
		links_scan(&step, line + used);
	} else {
		return -1;
	}
	if (nsteps == MAX)
		return -1;
	steps[nsteps++] = step;
	return 0;
}

static void step_do(struct ocs_flownet *net, const struct step *step)
{
	struct track *flow = &flows[step->number];

	if (!strcmp(step->verb, "change")) {
		ocs_flownet_link_change(net, step->number, step->value);
		return;
	}
	if (!strcmp(step->verb, "flow")) {
		*flow = (struct track){ .bytes = step->value,
					.left = step->value,
					.count = step->count,
					.on = 1,
					.ended = -1 };
		memcpy(flow->links, step->links, sizeof(flow->links));
		flow->nlinks = step->nlinks;
		flow->flow = ocs_flownet_start(net, step->links, step->nlinks, step->value,
					       step->count, step->number);
	}
	if (!flow->on)
		return;
	if (!strcmp(step->verb, "pause"))
		ocs_flownet_pause(net, flow->flow);
	if (!strcmp(step->verb, "resume"))
		ocs_flownet_resume(net, flow->flow);
	if (!strcmp(step->verb, "reroute")) {
		memcpy(flow->links, step->links, sizeof(flow->links));
		flow->nlinks = step->nlinks;
		ocs_flownet_reroute(net, flow->flow, step->links, step->nlinks);
	}
}

/* What each flow has moved since it was last looked at went over its links of that time. */
static void bytes_count(const struct ocs_flownet *net)
{
	for (int k = 0; k < nflows; k++) {
		double left;

		if (!flows[k].flow && !flows[k].count)
			continue;
		left = flows[k].on ? ocs_flownet_left(net, flows[k].flow) : 0;
		for (int m = 0; m < flows[k].nlinks; m++)
			carried[flows[k].links[m]] += (flows[k].left - left) * flows[k].count;
		flows[k].left = left;
	}
}

static int bytes_check(const struct ocs_flownet *net)
{
	for (int k = 0; k < ocs_flownet_links(net); k++) {
		double has = ocs_flownet_link_carried(net, k);

		if (fabs(has - carried[k]) > 1e-9 * (carried[k] + 1)) {
			printf("link %d carried %.12g, its flows moved %.12g\n", k, has,
			       carried[k]);
			return 1;
		}
	}
	return 0;
}

static int event_check(struct ocs_flownet *net, double tolerance)
{
	struct ocs_error err;

	bytes_count(net);
	if (ocs_flownet_check(net, tolerance == 0, &err)) {
		printf("%s\n", err.text);
		return 1;
	}
	return bytes_check(net);
}

static void ends_take(struct ocs_flownet *net)
{
	const struct ocs_flow_end *ends;
	int count;

	ends = ocs_flownet_ended(net, &count);
	for (int k = 0; k < count; k++)
		flows[ends[k].tag].ended = ends[k].time;
	/* Its number is free: nothing may be asked about it. */
	for (int k = 0; k < count; k++)
		flows[ends[k].tag].on = 0;
}

static int time_compare(const void *a, const void *b)
{
	const struct step *left = a, *right = b;

	if (left->time != right->time)
		return left->time < right->time ? -1 : 1;
	return left < right ? -1 : 1;
}

static int steps_run(struct ocs_flownet *net, double tolerance)
{
	int at = 0;

	for (;;) {
		double next = ocs_flownet_next(net);

		if (event_check(net, tolerance))
			return 1;
		if (at < nsteps && steps[at].time <= next)
			next = steps[at].time;
		if (isinf(next))
			return 0;
		ocs_flownet_advance(net, next);
		ends_take(net);
		bytes_count(net);
		for (; at < nsteps && steps[at].time <= next; at++)
			step_do(net, &steps[at]);
	}
}

int flow_replay(const char *path, double tolerance)
{
	struct ocs_flownet *net = ocs_flownet_create(tolerance);
	FILE *file = fopen(path, "r");
	char line[512];
	int rc = !file;

	while (!rc && fgets(line, sizeof(line), file))
		rc = line_read(net, line) != 0;
	if (file)
		fclose(file);
	if (rc) {
		printf("%s cannot be read\n", path);
	} else {
		qsort(steps, (size_t)nsteps, sizeof(*steps), time_compare);
		rc = steps_run(net, tolerance);
	}
	for (int k = 0; !rc && k < nflows; k++)
		printf("%.15g\n", flows[k].ended);
	for (int k = 0; !rc && k < ocs_flownet_links(net); k++)
		printf("carried %.15g\n", ocs_flownet_link_carried(net, k));
	ocs_flownet_destroy(net);
	return rc;
}
