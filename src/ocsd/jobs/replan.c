/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* A port fails under a running job on a direct fabric: a plan that changes few
 * circuits, in two steps (what goes is cut, then what comes is made), both in the
 * database before a switch hears of them. */

#include "src/ocsd/jobs/lookahead.h"
#include "src/ocsd/store/audit.h"
#include "src/ocsd/jobs/degraded.h"
#include "src/ocsd/jobs/plan.h"
#include "src/ocsd/jobs/allocation.h"
#include "src/ocsd/jobs/connect.h"
#include "src/ocsd/jobs/circuits.h"
#include "src/ocsd/jobs/job_state.h"
#include "src/ocsd/jobs/lifecycle.h"
#include "src/ocsd/jobs/transition.h"
#include "src/ocsd/jobs/replan.h"
#include "src/ocsd/state/events.h"
#include "src/ocsd/store/store.h"
#include "src/ocsd/jobs/node_presence.h"

#include "src/plan/plan.h"
#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/util/text.h"

#include <json-c/json.h>
#include <stdlib.h>

/* Is CIRCUIT one that the job's plan wants? */
static bool circuit_intended(const struct ocsd_circuit *circuit)
{
	return circuit->state != OCSD_GONE && circuit->state != OCSD_DELETING;
}

void ocsd_repair_want(struct ocsd *d, struct ocsd_job *job, const char *why, bool lost)
{
	if (!job || !job->section || job->section->kind != OCS_DIRECT || !ocsd_job_living(job))
		return;
	job->repair.lost |= lost;
	if (job->repair.why)
		return;
	job->repair.why = ocs_strdup(why);
	d->loop.changes_due = true;
}

static struct ocs_plan *plan_of(const struct ocsd_job *job, struct ocs_error *err)
{
	struct json_object *json = json_tokener_parse(job->plan.text);
	struct ocs_plan *plan = ocs_plan_from_json(json, err);

	json_object_put(json);
	if (plan && job->request.demand && ocs_plan_demand_set(plan, job->request.demand, err)) {
		ocs_plan_destroy(plan);
		return NULL;
	}
	return plan;
}

/* Interfaces that cannot be used any more.  A drained one keeps the circuit it
 * has: only new ones stay off it. */
static uint64_t *faults_find(struct ocsd *d, const struct ocsd_job *job,
			     const struct ocs_plan *plan)
{
	uint64_t *failed = ocs_calloc(job->nodes.count, sizeof(*failed));
	uint64_t *drained = ocs_calloc(job->nodes.count, sizeof(*drained));

	ocsd_direct_unusable(d, job, failed, drained);
	for (int i = 0; i < plan->ncircuits; i++) {
		const struct ocs_plan_circuit *circuit = &plan->circuits[i];

		drained[circuit->a] &= ~(UINT64_C(1) << circuit->a_port);
		drained[circuit->b] &= ~(UINT64_C(1) << circuit->b_port);
	}
	for (size_t s = 0; s < job->nodes.count; s++)
		failed[s] |= drained[s];
	free(drained);
	return failed;
}

static bool plan_touches(const struct ocs_plan *plan, const uint64_t *failed)
{
	for (int i = 0; i < plan->ncircuits; i++) {
		const struct ocs_plan_circuit *circuit = &plan->circuits[i];

		if ((failed[circuit->a] >> circuit->a_port & 1) ||
		    (failed[circuit->b] >> circuit->b_port & 1))
			return true;
	}
	return false;
}

/* Few changes if that is possible, else a new plan without the failed interfaces. */
static struct ocs_plan *plan_without(struct ocsd *d, const struct ocsd_job *job,
				     const struct ocs_plan *plan, const uint64_t *failed,
				     struct ocs_error *err)
{
	struct ocs_plan_fault *faults = ocs_calloc(job->nodes.count * 64, sizeof(*faults));
	struct ocs_plan *made;
	int count = 0;

	for (size_t s = 0; s < job->nodes.count; s++)
		for (uint64_t left = failed[s]; left; left &= left - 1)
			faults[count++] = (struct ocs_plan_fault){ (int)s, __builtin_ctzll(left) };
	made = ocs_plan_repair(plan, faults, count, err);
	free(faults);
	if (!made) {
		made = ocsd_direct_make(d, job, failed, err);
		if (made)
			made->revision = plan->revision + 1;
	}
	if (made && ocs_plan_verify(made, err)) {
		ocs_plan_destroy(made);
		return NULL;
	}
	return made;
}

/* Names in T what the plan wants and the job does not have; KEPT marks its other circuits. */
static int plan_circuits(struct ocsd *d, struct ocsd_transition *t, const struct ocs_plan *plan,
			 bool *kept, struct ocs_error *err)
{
	struct ocsd_job *job = t->job;

	for (int i = 0; i < plan->ncircuits; i++) {
		const struct ocsd_circuit *circuit;
		struct ocs_port a, b;

		if (ocsd_direct_ports(d, job, &plan->circuits[i], &a, &b, err))
			return -1;
		circuit = ocsd_transition_make(d, t, a, b, plan->directed, err);
		if (!circuit)
			return -1;
		for (size_t k = 0; k < t->nbefore; k++)
			kept[k] |= job->circuits.list[k] == circuit;
	}
	return 0;
}

static void repair_done(struct ocsd *d, struct ocsd_job *job, size_t nfailed);
static const struct ocsd_transition_kind repair_kind = { repair_done, ocsd_job_fail, false, false };

/* Turns the job's circuits into those of PLAN. */
static int plan_begin(struct ocsd *d, struct ocsd_job *job, const struct ocs_plan *plan,
		      struct ocs_error *err)
{
	struct ocsd_transition *t = ocsd_transition_create(job, &repair_kind);
	bool *kept = ocs_calloc(t->nbefore + 1, sizeof(*kept));
	size_t count;

	if (plan_circuits(d, t, plan, kept, err)) {
		ocsd_transition_drop(t);
		free(kept);
		return -1;
	}
	for (size_t i = 0; i < t->nbefore; i++) {
		struct ocsd_circuit *circuit = job->circuits.list[i];

		if (!kept[i] && circuit_intended(circuit) && !ocsd_circuit_moves(d, circuit))
			ocsd_transition_cut(t, circuit);
	}
	free(kept);
	count = t->count;
	if (ocsd_transition_begin(d, t, err))
		return -1;
	job->repair.changed = (int)count;
	return 0;
}

static void repair_impossible(struct ocsd *d, struct ocsd_job *job, const char *why,
			      const char *because)
{
	char *text = ocs_asprintf("%s, and the plan cannot be repaired: %s", why, because);
	struct json_object *event;

	if (job->repair.lost) {
		ocsd_job_degrade(d, job, NULL, text);
		free(text);
		return;
	}
	free(job->failure.error);
	job->failure.error = text;
	ocs_log(OCS_LOG_ERROR, "job %u: %s", job->job, text);
	ocsd_job_move(d, job, OCSD_JOB_DEGRADE);
	ocsd_audit(d, &(struct ocsd_audit){ .job = job, .what = "degraded", .reply = text });
	event = ocs_event_job(OCS_EVENT_DEGRADED, job->job, job->epoch);
	ocs_field_add_text(event, OCS_FIELD_ERROR, text);
	ocsd_event_post(d, event);
}

/* Fails with ERR when no plan is possible; *NOTHING: the plan uses no failed port. */
static int repair_plan(struct ocsd *d, struct ocsd_job *job, bool *nothing, struct ocs_error *err)
{
	struct ocs_plan *plan = plan_of(job, err), *made;
	uint64_t *failed;
	int rc = -1;

	*nothing = false;
	if (!plan)
		return -1;
	failed = faults_find(d, job, plan);
	*nothing = !plan_touches(plan, failed);
	if (*nothing) {
		rc = job->repair.lost ?
			     ocs_error_set(err, OCS_ERROR, "no port is known to have failed") :
			     0;
		*nothing = !rc;
	} else {
		made = plan_without(d, job, plan, failed, err);
		if (made) {
			rc = plan_begin(d, job, made, err);
			if (!rc)
				ocsd_direct_keep(job, made);
			ocs_plan_destroy(made);
		}
	}
	free(failed);
	ocs_plan_destroy(plan);
	return rc;
}

static void repair_done(struct ocsd *d, struct ocsd_job *job, size_t nfailed)
{
	struct json_object *event;

	ocsd_job_move(d, job, OCSD_JOB_REPAIRED);
	/* What one could not make is for the next, which is asked for already. */
	if (nfailed)
		return;
	event = ocs_event_job(OCS_EVENT_PLAN, job->job, job->epoch);
	ocs_log(OCS_LOG_INFO, "job %u: repaired, %d circuits changed, revision %d of its plan",
		job->job, job->repair.changed, job->plan.revision);
	ocsd_audit(d, &(struct ocsd_audit){ .job = job, .what = "repaired" });
	ocs_field_add_number(event, OCS_FIELD_REVISION, job->plan.revision);
	ocsd_event_post(d, event);
	d->replies.due = true;
	ocsd_heard_check(d, job);
}

static void repair_start(struct ocsd *d, struct ocsd_job *job)
{
	char *why = job->repair.why;
	struct ocs_error err = { 0 };
	bool nothing;

	job->repair.why = NULL;
	if (repair_plan(d, job, &nothing, &err)) {
		repair_impossible(d, job, why, err.text);
	} else if (!nothing) {
		ocs_log(OCS_LOG_WARNING, "job %u: %s; %d circuits change", job->job, why,
			job->repair.changed);
		free(job->failure.error);
		job->failure.error = NULL;
		ocsd_job_move(d, job, OCSD_JOB_REPAIR);
		ocsd_audit(d, &(struct ocsd_audit){ .job = job,
						    .what = "repair",
						    .before = why,
						    .after = job->plan.text });
	}
	job->repair.lost = false;
	free(why);
}

void ocsd_repair_progress(struct ocsd *d, struct ocsd_job *job)
{
	/* One repair after the other: what is being cut must be gone first. */
	if (job->repair.why && ocsd_job_settled(job))
		repair_start(d, job);
}

void ocsd_repair_resume(struct ocsd *d, struct ocsd_job *job)
{
	bool under_way = false;

	for (size_t i = 0; i < job->circuits.count; i++)
		under_way |= job->circuits.list[i]->state == OCSD_PLANNED ||
			     job->circuits.list[i]->state == OCSD_DELETING;
	if (!under_way || !ocsd_job_settled(job))
		return;
	ocsd_job_move(d, job, OCSD_JOB_REPAIR);
	ocsd_transition_resume(d, job, &repair_kind);
}
