/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/ocsd/store/audit.h"
#include "src/ocsd/jobs/circuits.h"
#include "src/ocsd/jobs/degraded.h"
#include "src/ocsd/jobs/lifecycle.h"
#include "src/ocsd/jobs/topology.h"
#include "src/ocsd/ports/selftest.h"
#include "src/ocsd/state/switch_state.h"
#include "src/ocsd/switches/status.h"

#include "src/util/net.h"
#include "src/util/text.h"

#include <stdlib.h>
#include <string.h>

#define MILLION INT64_C(1000000)
/* A switch may fail in another way at every retry. */
#define REASON_NS (5000 * MILLION)

void ocsd_switch_up(struct ocsd *d, struct ocsd_switch *sw)
{
	bool was_failed = sw->status.state == OCSD_SWITCH_FAILED;

	sw->status.state = OCSD_UP;
	sw->status.answers = false;
	free(sw->status.reason);
	sw->status.reason = NULL;
	ocs_log(OCS_LOG_INFO, "switch %s is %s", sw->description->name, was_failed ? "back" : "up");
	if (was_failed) {
		ocsd_audit(d, &(struct ocsd_audit){ .sw = sw, .what = "switch_up" });
		ocsd_switch_event(d, sw);
		ocsd_degraded_switch(d, sw, NULL);
	}
}

/* Whether SW, which had failed before, does so for another reason than the last event had. */
static bool reason_due(const struct ocsd_switch *sw)
{
	return (!sw->status.said || strcmp(sw->status.said, sw->status.reason)) &&
	       ocs_now_ns() - sw->status.said_ns >= REASON_NS;
}

/* Jobs whose circuits on SW, which failed, are not made yet; TEXT says why. */
static void fail_jobs(struct ocsd *d, struct ocsd_switch *sw, const char *text)
{
	for (struct ocsd_job *job = d->jobs; job; job = job->next) {
		if (job->state == OCSD_JOB_APPLYING && !job->adopt_running &&
		    ocsd_circuits_any(job, sw, OCSD_CONNECTING))
			ocsd_job_fail(d, job, sw, text);
		ocsd_job_progress(d, job);
	}
}

void ocsd_switch_failed(struct ocsd *d, struct ocsd_switch *sw, const char *reason)
{
	bool news = sw->status.state != OCSD_SWITCH_FAILED;
	char *text = ocs_asprintf("switch %s", sw->description->name);

	/* Drivers name the switch, and so does every text made here. */
	reason = ocs_error_cause(reason, text);
	free(text);
	text = ocs_asprintf("switch %s failed: %s", sw->description->name, reason);
	sw->status.state = OCSD_SWITCH_FAILED;
	sw->poll.heard_ns = 0;
	sw->status.answers = false;
	sw->batch.split = false;
	sw->batch.rejected = 0;
	sw->poll.next_ns = ocs_now_ns() + d->config->timeouts.retry_ms * MILLION;
	free(sw->status.reason);
	sw->status.reason = ocs_strdup(reason);
	if (news) {
		d->counters.switches_failed++;
		ocsd_audit(d, &(struct ocsd_audit){
				      .sw = sw, .what = "switch_failed", .reply = reason });
	}
	if (news || reason_due(sw)) {
		ocs_log(OCS_LOG_ERROR, "%s", text);
		ocsd_switch_event(d, sw);
	}
	while (sw->selftest.queue)
		ocsd_selftest_done(d, sw, OCS_SWITCH_UNKNOWN, text);
	fail_jobs(d, sw, text);
	ocsd_topologies_switch_failed(d, sw, text);
	if (news) {
		free(text);
		text = ocs_asprintf(OCSD_SWITCH_SILENT, sw->description->name, reason);
		ocsd_degraded_switch(d, sw, text);
	}
	free(text);
}
