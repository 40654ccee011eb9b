/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Somebody may set the wall clock.  ocsd waits by the monotonic clock, and counts ages
 * by one of its own, which goes on from start to start and never steps. */

#include "src/ocsd/store/audit.h"
#include "src/ocsd/store/clock.h"
#include "src/ocsd/store/sql.h"

#include "src/util/net.h"
#include "src/util/text.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

#define SECOND_NS 1e9
#define STEP_S 10     /* less is a correction */
#define BEHIND_S 3600 /* more, and the clock of ages makes good for the time without ocsd */

double ocsd_wall_clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / SECOND_NS;
}

void ocsd_store_age_start(struct ocsd_store *store, int64_t kept)
{
	store->age = kept > 0 ? (double)kept : ocsd_wall_clock();
	store->age_ns = ocs_now_ns();
}

double ocsd_store_age(struct ocsd_store *store)
{
	int64_t now_ns = ocs_now_ns();
	double passed = (double)(now_ns - store->age_ns) / SECOND_NS, behind;

	store->age_ns = now_ns;
	store->age += passed;
	behind = ocsd_wall_clock() - store->age;
	/* Twice as fast at most: a year that was typed wrong costs nothing. */
	if (behind > BEHIND_S)
		store->age += behind < passed ? behind : passed;
	return store->age;
}

void ocsd_clock_watch(struct ocsd *d)
{
	double offset = ocsd_wall_clock() - (double)ocs_now_ns() / SECOND_NS;
	double step = offset - d->clock_offset;
	bool first = d->clock_offset == 0;
	char *text;

	d->clock_offset = offset;
	if (first || fabs(step) < STEP_S)
		return;
	text = ocs_asprintf("%.0f s %s", fabs(step), step > 0 ? "forward" : "back");
	ocs_log(OCS_LOG_WARNING,
		"the wall clock was set %s: nothing waits by it and nothing is "
		"forgotten by it; only the times that are shown jump",
		text);
	ocsd_audit(d, &(struct ocsd_audit){ .what = "clock", .before = text });
	free(text);
}
