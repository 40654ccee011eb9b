/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Plans as text. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/moe/job/state.h"

#define PUBLIC __attribute__((visibility("default")))
#define ADDRESS 64 /* bytes of an address in a plan */

/* What the lines say so far. */
struct plan {
	struct ocs_moe_link *link;
	char (*address)[2][ADDRESS]; /* of each link */
	int links;
	struct ocs_moe_share *share;
	int shares;
};

static void plan_free(struct plan *plan)
{
	free(plan->link);
	free(plan->address);
	free(plan->share);
}

/* Room for as many lines as TEXT has; -1 without memory. */
static int plan_make(struct plan *plan, const char *text)
{
	size_t lines = 1;

	for (const char *p = text; (p = strchr(p, '\n')); p++)
		lines++;
	plan->link = calloc(lines, sizeof(*plan->link));
	plan->address = calloc(lines, sizeof(*plan->address));
	plan->share = calloc(lines, sizeof(*plan->share));
	return plan->link && plan->address && plan->share ? 0 : -1;
}

/* A link, or a circuit between NICs of servers of EACH ranks, whose ends NICs give to these in turn. */
static int link_take(struct plan *plan, const char *text, int each)
{
	struct ocs_moe_link *link = &plan->link[plan->links];
	char(*address)[ADDRESS] = plan->address[plan->links];
	int a, a_nic, b, b_nic;
	char rest;

	if (sscanf(text, "link %u %d %d %63s %63s %c", &link->id, &link->a, &link->b, address[0],
		   address[1], &rest) != 5) {
		if (sscanf(text, "circuit %u %d %d %d %d %63s %63s %c", &link->id, &a, &a_nic, &b,
			   &b_nic, address[0], address[1], &rest) != 7 ||
		    a < 0 || a_nic < 0 || b < 0 || b_nic < 0 || a >= OCS_MOE_RANKS_MAX ||
		    b >= OCS_MOE_RANKS_MAX)
			return -1;
		link->a = a * each + a_nic % each;
		link->b = b * each + b_nic % each;
	}
	link->a_address = address[0];
	link->b_address = address[1];
	plan->links++;
	return 0;
}

/* One line; -1: it makes no sense. */
static int line_take(struct plan *plan, const char *line, int length, int each)
{
	struct ocs_moe_share *share = &plan->share[plan->shares];
	char text[256], rest;

	if (!length || *line == '#')
		return 0;
	if (length >= (int)sizeof(text))
		return -1;
	memcpy(text, line, (size_t)length);
	text[length] = '\0';
	if (!link_take(plan, text, each))
		return 0;
	if (sscanf(text, "share %d %d %d %d %d %lf %c", &share->from, &share->to, &share->relay,
		   &share->first, &share->second, &share->share, &rest) == 6) {
		plan->shares++;
		return 0;
	}
	return -1;
}

static int lines_take(struct ocs_moe *moe, struct plan *plan, const char *text, int each)
{
	int number = 1;

	for (const char *line = text; *line; number++) {
		const char *end = strchr(line, '\n');
		int length = end ? (int)(end - line) : (int)strlen(line);

		if (line_take(plan, line, length, each)) {
			snprintf(moe->error, sizeof(moe->error),
				 "line %d of the plan is no link, circuit or share", number);
			return -1;
		}
		line += length + (end != NULL);
	}
	return 0;
}

static int plan_take(struct ocs_moe *moe, const struct plan *plan, int each, int wait_ms)
{
	int count, up, rc;
	struct ocs_moe_way *ways = ocs_moe_ways_make(moe->rank, moe->ranks, each, plan->share,
						     plan->shares, plan->link, plan->links, &count);

	if (!ways)
		return ocs_moe_fail(moe, "there is no memory left");
	up = ocs_moe_links(moe, plan->link, plan->links, wait_ms);
	rc = up < 0 ? -1 : ocs_moe_ways(moe, ways, count);
	free(ways);
	return rc < 0 ? -1 : up;
}

PUBLIC int ocs_moe_plan(struct ocs_moe *moe, const char *text, int each, int wait_ms)
{
	struct plan plan = { 0 };
	int rc = -1;

	if (moe->broken)
		return -1;
	if (each < 1 || moe->ranks % each)
		snprintf(moe->error, sizeof(moe->error), "%d ranks do not fill servers of %d",
			 moe->ranks, each);
	else if (plan_make(&plan, text))
		ocs_moe_fail(moe, "there is no memory left");
	else if (!lines_take(moe, &plan, text, each))
		rc = plan_take(moe, &plan, each, wait_ms);
	plan_free(&plan);
	return rc;
}
