/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/ocsd/jobs/circuits.h"
#include "src/ocsd/jobs/transition.h"
#include "src/ocsd/jobs/allocation.h"
#include "src/ocsd/jobs/lifecycle.h"
#include "src/ocsd/jobs/replan.h"
#include "src/ocsd/jobs/routes.h"
#include "src/ocsd/jobs/topology.h"
#include "src/ocsd/metrics/exporter.h"
#include "src/ocsd/ports/selftest.h"
#include "src/ocsd/protocol/connection.h"
#include "src/ocsd/protocol/pending_reply.h"
#include "src/ocsd/settle.h"
#include "src/ocsd/store/clock.h"
#include "src/ocsd/store/store.h"
#include "src/ocsd/switches/scheduler.h"
#include "src/ocsd/systemd.h"

#include "src/util/net.h"

#include <event2/event.h>

#define MILLION INT64_C(1000000)
#define PASSES 4

int ocsd_listen(struct ocsd *d, struct ocs_error *err)
{
	if (d->config->ocsd.metrics && ocsd_metrics_listen(d, d->config->ocsd.metrics, err))
		return -1;
	if (!ocsd_server_listen(d, err))
		return 0;
	ocsd_metrics_close(d);
	return -1;
}

static void become_ready(struct ocsd *d)
{
	struct ocs_error err;

	if (d->life.ready)
		return;
	for (int i = 0; i < d->fabric->nswitches; i++)
		if (d->switches[i].status.state == OCSD_STARTING)
			return;
	d->life.ready = d->loop.changes_due = true;
	for (struct ocsd_job *job = d->jobs; job; job = job->next)
		ocsd_job_progress(d, job);
	if (ocsd_listen(d, &err)) {
		ocs_log(OCS_LOG_ERROR, "%s", err.text);
		d->life.stopping = d->life.failed = true;
		event_base_loopbreak(d->loop.base);
		return;
	}
	ocsd_ready(d);
}

static void jobs_bury(struct ocsd *d)
{
	struct ocsd_job **link = &d->jobs;

	while (*link) {
		struct ocsd_job *job = *link;

		if (job->state != OCSD_JOB_CLOSED) {
			link = &job->next;
			continue;
		}
		*link = job->next;
		ocsd_job_free(job);
	}
}

/* SOON: there is something for the next pass. */
static void arm_timer(struct ocsd *d, bool soon)
{
	int64_t now_ns = ocs_now_ns(), next_ns = now_ns + (soon ? 0 : 60000 * MILLION);
	struct timeval delay;

	for (int i = 0; i < d->fabric->nswitches; i++) {
		const struct ocsd_switch *sw = &d->switches[i];

		if (sw->busy != OCSD_IDLE)
			continue;
		if (sw->poll.next_ns < next_ns)
			next_ns = sw->poll.next_ns;
		if (sw->poll.heard_ns && sw->poll.heard_ns < next_ns)
			next_ns = sw->poll.heard_ns;
	}
	if (ocsd_replies_deadline(d) < next_ns)
		next_ns = ocsd_replies_deadline(d);
	if (d->loop.nleaving && ocsd_routes_deadline(d) < next_ns)
		next_ns = ocsd_routes_deadline(d);
	next_ns -= now_ns;
	if (next_ns < MILLION)
		next_ns = MILLION;
	delay.tv_sec = next_ns / (1000 * MILLION);
	delay.tv_usec = next_ns / 1000 % 1000000;
	event_add(d->loop.timer, &delay);
}

/* Takes the steps of transitions, and begins repairs that are asked for. */
static void changes_take(struct ocsd *d)
{
	d->loop.changes_due = false;
	ocsd_transitions_run(d);
	if (d->loop.nleaving)
		ocsd_topologies_progress(d);
	for (struct ocsd_job *job = d->jobs; d->life.ready && job; job = job->next)
		ocsd_repair_progress(d, job);
}

void ocsd_settle(struct ocsd *d)
{
	int64_t now_ns = ocs_now_ns();
	bool more = ocsd_circuits_write_due(d);

	ocsd_clock_watch(d);
	if (d->loop.nleaving && ocsd_routes_deadline(d) <= now_ns)
		d->loop.changes_due = true;
	/* A switch that comes up may let a job start on others. */
	for (int pass = 0; pass < PASSES; pass++) {
		/* A repair begins with a step. */
		for (int turn = 0; turn < 2 && d->loop.changes_due; turn++)
			changes_take(d);
		for (int i = 0; i < d->fabric->nswitches; i++)
			ocsd_switch_pick(d, &d->switches[i], now_ns);
		become_ready(d);
	}
	ocsd_replies_answer(d, now_ns);
	ocsd_selftest_results_forget(d);
	jobs_bury(d);
	arm_timer(d, more || d->loop.changes_due);
	ocsd_store_commit(d->store);
	if (ocsd_store_lost(d->store)) {
		d->life.stopping = true;
		return;
	}
	ocsd_server_flush(d);
	for (int i = 0; i < d->fabric->nswitches; i++)
		if (d->switches[i].prepared)
			ocsd_switch_hand_over(d, &d->switches[i]);
}
