/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/ocsd/jobs/allocation.h"
#include "src/ocsd/jobs/circuits.h"
#include "src/ocsd/jobs/menu.h"
#include "src/ocsd/jobs/routes.h"
#include "src/ocsd/jobs/rail_fault.h"
#include "src/ocsd/jobs/region.h"
#include "src/ocsd/jobs/topology.h"
#include "src/ocsd/jobs/transition.h"
#include "src/ocsd/state/events.h"
#include "src/ocsd/store/audit.h"

#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/util/net.h"
#include "src/util/text.h"

#include <inttypes.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#define SECOND_NS INT64_C(1000000000)
#define AUDIT_NS (60 * SECOND_NS)
#define RECENT_PERIOD_NS (10 * SECOND_NS)

const char *ocsd_stage_name(int stage)
{
	static const char *const names[] = { "none", "sent", "verified" };

	return names[stage];
}

bool ocsd_topology_live(const struct ocsd_job *job)
{
	return job->menu && job->menu->phases != OCS_PHASES_OFF && ocsd_job_running(job);
}

static struct ocsd_rail *rail_of(const struct ocsd_circuit *circuit)
{
	return &circuit->job->menu->rails[circuit->rail - 1];
}

/* ---- figures ---- */

/* Writes what has passed since the last time, if there is something. */
static void figures_audit(struct ocsd *d, struct ocsd_job *job)
{
	struct ocsd_menu *menu = job->menu;
	const struct ocsd_menu_count *now = &menu->total, *then = &menu->audited;
	int64_t now_ns = ocs_now_ns();
	char *text;

	if (memcmp(now, then, sizeof(*now)) != 0) {
		text = ocs_asprintf("%" PRIu64 " changes, %" PRIu64 " circuits, %" PRIu64
				    " failed, %" PRIu64 " refused",
				    now->changes - then->changes, now->circuits - then->circuits,
				    now->failed - then->failed, now->refused - then->refused);
		ocsd_audit(d,
			   &(struct ocsd_audit){ .job = job, .what = "topologies", .after = text });
		free(text);
	}
	menu->audited = *now;
	menu->audited_ns = now_ns;
}

static void recent_turn(struct ocsd_menu *menu, int64_t now_ns)
{
	int64_t passed = now_ns - menu->recent_ns;

	if (passed < RECENT_PERIOD_NS)
		return;
	menu->recent[1] = passed < 2 * RECENT_PERIOD_NS ? menu->recent[0] : 0;
	menu->recent[0] = 0;
	menu->recent_ns = now_ns;
}

/* What is counted of JOB's section, or NULL: it is not in a region. */
static struct ocsd_region_count *region_of(struct ocsd *d, const struct ocsd_job *job)
{
	return job->menu && ocsd_menu_region(job->menu) && job->section ?
		       ocsd_count_region(&d->counters, job->section->name) :
		       NULL;
}

/* T turns the circuits of a group into CIRCUITS. */
static void region_count(struct ocsd *d, struct ocsd_job *job, const struct ocsd_transition *t,
			 const struct ocs_region_circuits *circuits)
{
	struct ocsd_region_count *region = region_of(d, job);
	size_t made = 0;

	if (!region)
		return;
	for (size_t i = 0; i < t->count; i++)
		made += !t->members[i].cut;
	region->changes++;
	region->made += made;
	region->cut += t->count - made;
	region->kept += circuits->count - made;
	job->menu->total.kept += circuits->count - made;
}

static void change_count(struct ocsd *d, struct ocsd_job *job, const struct ocsd_transition *t,
			 const struct ocs_region_circuits *circuits)
{
	int64_t now_ns = ocs_now_ns();

	job->menu->total.changes++;
	job->menu->total.circuits += t->count;
	d->counters.topologies++;
	d->counters.topology_circuits += t->count;
	region_count(d, job, t, circuits);
	recent_turn(job->menu, now_ns);
	job->menu->recent[0]++;
	if (now_ns - job->menu->audited_ns >= AUDIT_NS)
		figures_audit(d, job);
}

double ocsd_topology_rate(const struct ocsd_job *job)
{
	const struct ocsd_menu *menu = job->menu;
	int64_t passed = ocs_now_ns() - menu->recent_ns;

	if (passed >= 2 * RECENT_PERIOD_NS)
		return 0;
	if (passed >= RECENT_PERIOD_NS)
		return (double)menu->recent[0] * SECOND_NS / (double)passed;
	return (double)(menu->recent[0] + menu->recent[1]) * SECOND_NS /
	       (double)(passed + (menu->recent[1] ? RECENT_PERIOD_NS : SECOND_NS));
}

void ocsd_topology_refused(struct ocsd *d, struct ocsd_job *job, const char *why)
{
	int64_t now_ns = ocs_now_ns();

	d->counters.topologies_refused++;
	if (!job->menu)
		return;
	if (region_of(d, job))
		region_of(d, job)->refused++;
	if (!job->menu->total.refused || now_ns - job->menu->refused_ns >= AUDIT_NS) {
		job->menu->refused_ns = now_ns;
		ocsd_audit(d, &(struct ocsd_audit){
				      .job = job, .what = "topology_refused", .reply = why });
	}
	job->menu->total.refused++;
}

/* ---- events for the controller ---- */

static void lost_post(struct ocsd *d, struct ocsd_job *job, struct ocsd_rail *rail, const char *why)
{
	struct json_object *event;
	char *text;

	if (rail->lost)
		return;
	rail->lost = true;
	event = ocs_event_job(OCS_EVENT_TOPO_LOST, job->job, job->epoch);
	ocs_field_add_number(event, ocsd_menu_region(job->menu) ? OCS_FIELD_GROUP : OCS_FIELD_RAIL,
			     rail - job->menu->rails);
	ocs_field_add_text(event, OCS_FIELD_SWITCH, d->fabric->switches[rail->sw].name);
	ocs_field_add_text(event, OCS_FIELD_ERROR, why);
	ocsd_controller_post(d, event);
	text = ocs_asprintf("rail %td: %s", rail - job->menu->rails, why);
	ocsd_audit(d, &(struct ocsd_audit){ .job = job, .what = "topo_lost", .reply = text });
	free(text);
}

void ocsd_topology_lost(struct ocsd *d, struct ocsd_circuit *circuit)
{
	char *text;

	if (!circuit->rail || !ocsd_topology_live(circuit->job))
		return;
	rail_of(circuit)->stands[0] = rail_of(circuit)->leaving.from[0] = '\0';
	ocsd_routes_tell(d, circuit->job, NULL);
	text = ocs_asprintf(
		"the circuit of ports %d and %d is not on the switch any more; it is made again",
		circuit->a, circuit->b);
	lost_post(d, circuit->job, rail_of(circuit), text);
	free(text);
}

void ocsd_topology_port_lost(struct ocsd *d, struct ocsd_job *job, struct ocs_port where,
			     const char *why)
{
	for (int r = 0; r < job->menu->nrails; r++)
		if (job->menu->rails[r].sw == where.sw) {
			lost_post(d, job, &job->menu->rails[r], why);
			return;
		}
}

/* ---- results ---- */

/* The request of RAIL has failed because of WHY; the first reason stays. */
static void rail_fail(struct ocsd *d, struct ocsd_job *job, struct ocsd_rail *rail, int code,
		      const char *why)
{
	char *text;

	if (rail->leaving.waits) {
		/* nothing was sent: what stood stands */
		ocsd_routes_leave_end(d, rail);
		rail->changing = false;
		ocsd_routes_tell(d, job, NULL);
	} else {
		rail->stands[0] = rail->leaving.from[0] = '\0';
		ocsd_routes_tell(d, job, NULL);
		if (!rail->changing || rail->error)
			return;
		rail->stage = OCSD_STAGE_SENT;
	}
	rail->code = code;
	rail->error = ocs_strdup(why);
	job->menu->total.failed++;
	d->counters.topologies_failed++;
	if (region_of(d, job))
		region_of(d, job)->failed++;
	text = ocs_asprintf("rail %td, topology %s: %s", rail - job->menu->rails, rail->topo, why);
	ocs_log(OCS_LOG_WARNING, "job %u: %s", job->job, text);
	ocsd_audit(d, &(struct ocsd_audit){ .job = job, .what = "topology_failed", .reply = text });
	free(text);
	if (strcmp(rail->topo, OCS_RAILS_RING) == 0)
		ocsd_rail_degrade(d, job, rail);
}

static void rail_answer(struct ocsd *d, struct ocsd_rail *rail)
{
	d->replies.due |= rail->waits;
	rail->waits = false;
}

void ocsd_topology_failed(struct ocsd *d, struct ocsd_circuit *circuit, const char *why)
{
	struct ocsd_rail *rail;

	if (!ocsd_topology_live(circuit->job))
		return;
	rail = rail_of(circuit);
	if (!rail->changing)
		lost_post(d, circuit->job, rail, why);
	rail_fail(d, circuit->job, rail, OCS_ERROR, why);
	/* One that the switch will not cut is tried again at every poll: nobody waits for that. */
	if (circuit->postponed)
		rail_answer(d, rail);
}

void ocsd_topologies_switch_failed(struct ocsd *d, const struct ocsd_switch *sw, const char *text)
{
	for (struct ocsd_job *job = d->jobs; job; job = job->next)
		for (int r = 0; job->menu && r < job->menu->nrails; r++) {
			struct ocsd_rail *rail = &job->menu->rails[r];

			if (rail->sw != sw->index || !rail->changing)
				continue;
			rail_fail(d, job, rail, OCS_NOT_NOW, text);
			rail_answer(d, rail);
		}
}

/* The change of RAIL, a group of a region, has come whole. */
static void region_verified(struct ocsd *d, struct ocsd_job *job, const struct ocsd_rail *rail)
{
	int64_t took_ns = ocs_now_ns() - rail->begun_ns;

	if (!region_of(d, job))
		return;
	ocsd_count_verified(region_of(d, job), took_ns);
	job->menu->total.verified++;
	job->menu->total.took_ns += took_ns;
}

/* Nothing of the change of RAIL is on its way any more. */
static void rail_conclude(struct ocsd *d, struct ocsd_job *job, struct ocsd_rail *rail)
{
	rail->changing = rail->lost = false;
	if (!rail->error) {
		rail->stage = OCSD_STAGE_VERIFIED;
		strcpy(rail->stands, rail->topo);
		region_verified(d, job, rail);
		ocsd_routes_tell(d, job, rail);
		if (strcmp(rail->topo, OCS_RAILS_RING) == 0) {
			char *text = ocs_asprintf("rail %td", rail - job->menu->rails);

			ocsd_audit(d, &(struct ocsd_audit){
					      .job = job, .what = "giant_ring", .after = text });
			free(text);
			ocsd_rail_degrade(d, job, rail);
		}
	}
	rail_answer(d, rail);
}

static void change_done(struct ocsd *d, struct ocsd_job *job, size_t nfailed)
{
	(void)nfailed;
	for (int r = 0; r < job->menu->nrails; r++)
		if (job->menu->rails[r].changing && !job->menu->rails[r].change &&
		    !job->menu->rails[r].leaving.waits)
			rail_conclude(d, job, &job->menu->rails[r]);
}

void ocsd_topologies_revoke(struct ocsd *d, struct ocsd_job *job, const char *why)
{
	struct json_object *event;

	if (!job->menu || job->menu->revoked)
		return;
	job->menu->revoked = true;
	for (int r = 0; r < job->menu->nrails; r++) {
		struct ocsd_rail *rail = &job->menu->rails[r];

		if (rail->changing)
			rail_fail(d, job, rail, OCS_ERROR, why);
		rail->changing = false;
		rail_answer(d, rail);
	}
	if (ocsd_menu_region(job->menu))
		ocsd_region_remember(d, job);
	if (job->menu->phases == OCS_PHASES_OFF)
		return;
	figures_audit(d, job);
	ocsd_audit(d, &(struct ocsd_audit){ .job = job, .what = "revoked", .after = why });
	event = ocs_event_job(OCS_EVENT_REVOKED, job->job, job->epoch);
	ocs_field_add_text(event, OCS_FIELD_REASON, why);
	ocsd_controller_post(d, event);
}

void ocsd_topologies_begin(struct ocsd *d, struct ocsd_job *job)
{
	ocsd_routes_tell(d, job, NULL);
	for (int r = 0; job->menu && r < job->menu->nrails; r++) {
		struct ocsd_rail *rail = &job->menu->rails[r];

		/* What ran already has what it had. */
		if (!job->adopt_running)
			strcpy(rail->stands, rail->topo);
		rail->stage = OCSD_STAGE_VERIFIED;
	}
}

/* ---- changes ---- */

/* All of RAIL is compared: what stands of it is not known. */
static int change_fill_whole(struct ocsd_job *job, const struct ocsd_rail *rail, const char *topo,
			     struct ocsd_transition *t, struct ocs_error *err)
{
	const struct ocsd_menu *menu = job->menu;
	struct ocs_rails_pairs pairs;

	if (ocs_rails_topology_pairs(&menu->layout, topo, &pairs, err))
		return -1;
	for (size_t i = 0; i < pairs.count; i++) {
		struct ocsd_circuit *circuit = ocsd_menu_circuit(menu, rail, &pairs.items[i]);

		if (!circuit)
			continue;
		circuit->wanted = true;
		if (circuit->state != OCSD_CONNECTED)
			ocsd_transition_add(t, circuit);
	}
	ocs_rails_pairs_free(&pairs);
	for (size_t i = 0; i < menu->pairs.count; i++) {
		struct ocsd_circuit *circuit = rail->circuits[i];

		if (!circuit->wanted && circuit->state != OCSD_GONE)
			ocsd_transition_cut(t, circuit);
		circuit->wanted = false;
	}
	return 0;
}

static int change_fill(struct ocsd *d, struct ocsd_job *job, const struct ocsd_rail *rail,
		       const char *topo, const struct ocs_region_circuits *circuits,
		       struct ocsd_transition *t, struct ocs_error *err)
{
	const struct ocsd_menu *menu = job->menu;
	struct ocs_rails_pairs cut, make;
	struct ocsd_circuit *circuit;

	if (circuits)
		return ocsd_region_change_fill(d, job, (int)(rail - menu->rails), circuits, t, err);
	if (!rail->stands[0])
		return change_fill_whole(job, rail, topo, t, err);
	if (ocs_rails_change(&menu->layout, rail->stands, topo, &cut, &make, err))
		return -1;
	for (size_t i = 0; i < cut.count; i++) {
		circuit = ocsd_menu_circuit(menu, rail, &cut.items[i]);
		if (circuit)
			ocsd_transition_cut(t, circuit);
	}
	for (size_t i = 0; i < make.count; i++) {
		circuit = ocsd_menu_circuit(menu, rail, &make.items[i]);
		if (circuit)
			ocsd_transition_add(t, circuit);
	}
	ocs_rails_pairs_free(&cut);
	ocs_rails_pairs_free(&make);
	return 0;
}

static int port_check(const struct ocsd_switch *sw, int port, struct ocs_error *err)
{
	if (!sw->ports[port].foreign)
		return 0;
	return ocs_error_set(err, OCS_NOT_NOW,
			     "port %d of switch %s carries a patch that is not ours", port,
			     sw->description->name);
}

/* Whether what T cuts, or something that it does not, leaves room for what it makes. */
static int change_check(struct ocsd *d, const struct ocsd_transition *t, struct ocs_error *err)
{
	for (size_t i = 0; i < t->count; i++) {
		const struct ocsd_circuit *circuit = t->members[i].circuit;
		const struct ocsd_switch *sw = &d->switches[circuit->sw];

		if (!t->members[i].cut &&
		    (port_check(sw, circuit->a, err) || port_check(sw, circuit->b, err)))
			return -1;
		if (!ocsd_circuit_owned(d, circuit))
			return ocs_error_set(err, OCS_ERROR,
					     "ports %d and %d of switch %s are not the job's",
					     circuit->a, circuit->b, sw->description->name);
		for (int p = 0; p < circuit->npatches; p++) {
			const struct ocsd_circuit *leaving = sw->leaving[circuit->patches[p].in];

			if (t->members[i].cut && leaving && leaving != circuit)
				return ocs_error_set(
					err, OCS_NOT_NOW,
					"the circuit of ports %d and %d of switch %s is still being cut",
					leaving->a, leaving->b, sw->description->name);
		}
	}
	return 0;
}

/* RAIL goes to TOPO.  -1 with ERR: nothing has changed. */
static int change_begin(struct ocsd *d, struct ocsd_job *job, struct ocsd_rail *rail,
			const char *topo, const struct ocs_region_circuits *circuits,
			struct ocs_error *err)
{
	static const struct ocsd_transition_kind kind = { .done = change_done, .at_once = true };
	struct ocsd_transition *t = ocsd_transition_create(job, &kind);

	if (change_fill(d, job, rail, topo, circuits, t, err) || change_check(d, t, err)) {
		ocsd_transition_drop(t);
		return -1;
	}
	if (rail->change)
		ocsd_transition_end(rail->change);
	change_count(d, job, t, circuits);
	rail->begun_ns = ocs_now_ns();
	if (!rail->leaving.waits)
		strcpy(rail->leaving.from, rail->stands);
	strcpy(rail->topo, topo);
	rail->stands[0] = '\0';
	rail->stage = OCSD_STAGE_SENT;
	rail->waits = rail->changing = true;
	rail->change = t;
	t->slot = &rail->change;
	ocsd_transition_begin_at_once(d, t);
	return 0;
}

/* RAIL is to go to TOPO (in a region: to CIRCUITS): at once, or when no route leads over what goes.  -1 with ERR. */
static int change_ask(struct ocsd *d, struct ocsd_job *job, struct ocsd_rail *rail,
		      const char *topo, const struct ocs_region_circuits *circuits,
		      struct ocs_error *err)
{
	if (circuits || !ocsd_routes_leave(d, job, rail, topo))
		return change_begin(d, job, rail, topo, circuits, err);
	strcpy(rail->topo, topo);
	rail->stage = OCSD_STAGE_NONE;
	rail->waits = rail->changing = true;
	return 0;
}

/* The change of RAIL that waits for routes: begun, given up, or left to wait. */
static void change_progress(struct ocsd *d, struct ocsd_job *job, struct ocsd_rail *rail)
{
	char topo[OCS_RAILS_TOPOLOGY], *late;
	struct ocs_error err;

	if (rail->leaving.nnodes) {
		if (ocs_now_ns() < rail->leaving.deadline_ns)
			return;
		late = ocsd_routes_late(d, job, rail);
		rail_fail(d, job, rail, OCS_NOT_NOW, late);
		free(late);
		rail_answer(d, rail);
		return;
	}
	strcpy(topo, rail->topo);
	if (change_begin(d, job, rail, topo, NULL, &err)) {
		rail_fail(d, job, rail, err.code, err.text);
		rail_answer(d, rail);
		return;
	}
	ocsd_routes_leave_end(d, rail);
}

void ocsd_topologies_progress(struct ocsd *d)
{
	for (struct ocsd_job *job = d->jobs; job; job = job->next)
		for (int r = 0; job->menu && r < job->menu->nrails; r++)
			if (job->menu->rails[r].leaving.waits)
				change_progress(d, job, &job->menu->rails[r]);
}

static int seq_check(const struct ocsd_rail *rail, uint64_t seq, const char *topo,
		     struct ocs_error *err)
{
	if (seq < rail->seq)
		return ocs_error_set(err, OCS_ERROR,
				     "seq %" PRIu64 " is older than %" PRIu64 ", which is known",
				     seq, rail->seq);
	if (seq == rail->seq && strcmp(topo, rail->topo) != 0)
		return ocs_error_set(err, OCS_USAGE, "seq %" PRIu64 " asked for topology %s before",
				     seq, rail->topo);
	if (seq > rail->seq && rail->waits)
		return ocs_error_set(err, OCS_NOT_NOW, "seq %" PRIu64 " is not answered yet",
				     rail->seq);
	return 0;
}

/* RAIL, a group, has been asked for CIRCUITS. */
static void asked_keep(struct ocsd_rail *rail, const struct ocs_region_circuits *circuits)
{
	ocs_region_circuits_free(&rail->asked);
	for (size_t i = 0; i < circuits->count; i++) {
		const struct ocs_region_circuit *one = &circuits->items[i];

		ocs_region_circuits_add(&rail->asked, one->a, one->a_nic, one->b, one->b_nic);
	}
}

int ocsd_topology_ask(struct ocsd *d, struct ocsd_job *job, int number, uint64_t seq,
		      const char *topo, const struct ocs_region_circuits *circuits,
		      struct ocs_error *err)
{
	struct ocsd_rail *rail = &job->menu->rails[number];
	const struct ocsd_switch *sw = &d->switches[rail->sw];

	if ((!circuits && ocs_rails_topology_check(&job->menu->layout, topo, err)) ||
	    seq_check(rail, seq, topo, err))
		return -1;
	if (seq == rail->seq)
		return 0;
	if (sw->status.state != OCSD_UP)
		return ocs_error_set(err, OCS_NOT_NOW, "switch %s has failed: %s",
				     sw->description->name,
				     sw->status.reason ? sw->status.reason : "it does not answer");
	if (strcmp(topo, rail->stands) != 0 && change_ask(d, job, rail, topo, circuits, err))
		return -1;
	rail->seq = seq;
	free(rail->error);
	rail->error = NULL;
	if (!rail->changing)
		rail->stage = OCSD_STAGE_VERIFIED;
	strcpy(rail->topo, topo);
	if (circuits)
		asked_keep(rail, circuits);
	return 0;
}
