/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The first realisation of a job's circuits: a transition that makes all of them. */

#include "src/ocsd/jobs/lookahead.h"
#include "src/ocsd/store/audit.h"
#include "src/ocsd/jobs/plan.h"
#include "src/ocsd/jobs/allocation.h"
#include "src/ocsd/jobs/lifecycle.h"
#include "src/ocsd/jobs/node_presence.h"
#include "src/ocsd/jobs/circuits.h"
#include "src/ocsd/jobs/menu.h"
#include "src/ocsd/jobs/connect.h"
#include "src/ocsd/jobs/job_state.h"
#include "src/ocsd/jobs/topology.h"
#include "src/ocsd/jobs/transition.h"
#include "src/ocsd/state/events.h"
#include "src/ocsd/store/store.h"

#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/util/net.h"
#include "src/util/text.h"

#include <json-c/json.h>
#include <stdlib.h>

void ocsd_realised_tell(struct ocsd *d, const struct ocsd_job *job)
{
	struct json_object *event;

	/* How many others have follows from their placement. */
	if (!job->plan.text || ocsd_job_prepared(job))
		return;
	event = ocs_event_job(OCS_EVENT_REALISED, job->job, job->epoch);
	ocs_field_add_number(event, OCS_FIELD_CIRCUITS, (int64_t)ocsd_job_circuits(job));
	ocsd_event_post(d, event);
}

void ocsd_realised_answer(struct ocsd *d, struct ocsd_job *job)
{
	if (!ocsd_job_running(job))
		return;
	d->replies.due = true;
	ocsd_heard_check(d, job);
}

static void realise_done(struct ocsd *d, struct ocsd_job *job, size_t nfailed)
{
	/* The first that failed has ended the job, and with it the transition. */
	(void)nfailed;
	job->circuits.unwritten = 1;
	ocsd_count_realised(&d->counters, ocs_now_ns() - job->circuits.started_ns);
	ocs_log(OCS_LOG_INFO, "job %u: %zu circuits verified (epoch %llu)", job->job,
		ocsd_job_circuits(job), (unsigned long long)job->epoch);
	ocsd_job_move(d, job, OCSD_JOB_VERIFIED);
	ocsd_audit(d, &(struct ocsd_audit){ .job = job, .what = "realised" });
	ocsd_realised_tell(d, job);
	ocsd_realised_answer(d, job);
	ocsd_topologies_begin(d, job);
}

void ocsd_realise_begin(struct ocsd *d, struct ocsd_job *job, bool fails_fast)
{
	static const struct ocsd_transition_kind waiting = { realise_done, ocsd_job_fail, false,
							     false };
	static const struct ocsd_transition_kind fast = { realise_done, ocsd_job_fail, true,
							  false };
	struct ocsd_transition *t = ocsd_transition_create(job, fails_fast ? &fast : &waiting);
	struct ocs_error err;

	job->circuits.started_ns = ocs_now_ns();
	ocsd_job_move(d, job, OCSD_JOB_START);
	for (size_t i = 0; i < job->circuits.count; i++)
		if (job->circuits.list[i]->state == OCSD_PLANNED ||
		    job->circuits.list[i]->state == OCSD_CONNECTING)
			ocsd_transition_add(t, job->circuits.list[i]);
	if (ocsd_transition_begin(d, t, &err))
		ocsd_job_fail(d, job, NULL, err.text);
}

static int ready_to_start(struct ocsd *d, struct ocsd_job *job, const struct ocsd_switch **blame,
			  struct ocs_error *err)
{
	*blame = NULL;
	if (job->menu && job->adopt_running)
		ocsd_menu_adopt_running(d, job);
	if (job->section && job->section->kind == OCS_DIRECT && !job->plan.text &&
	    ocsd_direct_plan(d, job, err))
		return -1;
	for (size_t i = 0; i < job->circuits.count; i++) {
		if (job->circuits.list[i]->state == OCSD_GONE)
			continue;
		if (ocsd_circuit_switch_check(d, job->circuits.list[i], err)) {
			*blame = &d->switches[job->circuits.list[i]->sw];
			return -1;
		}
		if (ocsd_circuit_check(d, job->circuits.list[i], err))
			return -1;
	}
	return 0;
}

void ocsd_realise_start(struct ocsd *d, struct ocsd_job *job)
{
	const struct ocsd_switch *blame;
	struct ocs_error err;

	if (ready_to_start(d, job, &blame, &err)) {
		ocsd_job_fail(d, job, blame, err.text);
		return;
	}
	ocsd_realise_begin(d, job, true);
	ocsd_audit(d, &(struct ocsd_audit){ .job = job, .what = "apply" });
}
