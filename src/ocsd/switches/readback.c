/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* A full read-back against what we know: circuits that vanished are restored,
 * patches that are not ours are left alone and put their ports in quarantine. */

#include "src/ocsd/store/audit.h"
#include "src/ocsd/jobs/degraded.h"
#include "src/ocsd/state/out_of_service.h"
#include "src/ocsd/switches/readback.h"
#include "src/ocsd/jobs/lifecycle.h"
#include "src/ocsd/jobs/circuits.h"
#include "src/ocsd/jobs/menu.h"
#include "src/ocsd/jobs/replan.h"
#include "src/ocsd/jobs/topology.h"
#include "src/ocsd/ports/selftest.h"
#include "src/ocsd/store/store.h"

#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/util/text.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool ocsd_circuit_seen(const struct ocsd_circuit *circuit, const struct ocs_table *table)
{
	for (int p = 0; p < circuit->npatches; p++)
		if (table->out[circuit->patches[p].in] != circuit->patches[p].out)
			return false;
	return true;
}

void ocsd_drift(struct ocsd *d, const struct ocsd_switch *sw, int in, int out, const char *what)
{
	struct json_object *row;

	if (!sw->reconciling || !d->replies.drift)
		return;
	row = json_object_new_object();
	ocs_field_add_text(row, OCS_FIELD_SWITCH, sw->description->name);
	ocs_field_add_number(row, OCS_FIELD_IN, in);
	ocs_field_add_number(row, OCS_FIELD_OUT, out);
	ocs_field_add_text(row, OCS_FIELD_WHAT, what);
	json_object_array_add(d->replies.drift, row);
}

/* Whether in>out is a patch of a circuit of ours that may exist. */
static bool patch_ours(const struct ocsd_switch *sw, int in, int out)
{
	for (int i = 0; i < 2; i++) {
		const struct ocsd_circuit *circuit = i ? sw->leaving[in] : sw->by_in[in];

		for (int p = 0; circuit && p < circuit->npatches; p++)
			if (circuit->patches[p].in == in && circuit->patches[p].out == out)
				return true;
	}
	return false;
}

/* The logical port of an egress. */
static int egress_port(const struct ocsd_switch *sw, int out)
{
	return sw->description->bidi ? out : out - sw->description->size;
}

/* PATCH: the one that is not ours, "" if it is gone. */
static void quarantine_set(struct ocsd *d, struct ocsd_switch *sw, int port, const char *patch)
{
	bool on = *patch;
	struct ocs_port where = { .sw = sw->index, .port = port };
	char *label = ocs_fabric_port_label(d->fabric, where);
	char *name = ocs_asprintf("%s:%d", sw->description->name, port);
	bool used = label && strcmp(label, "unused") != 0;

	sw->ports[port].foreign = on;
	/* A switch may be shared: ports that are no business of ours are only
	 * remembered. */
	if (used && on)
		ocs_log(OCS_LOG_ERROR,
			"switch %s port %d (%s) carries a patch that is not ours: left alone, port in quarantine",
			sw->description->name, port, label);
	else if (used)
		ocs_log(OCS_LOG_INFO, "switch %s port %d (%s) is out of quarantine",
			sw->description->name, port, label);
	if (used) {
		ocsd_audit(d, &(struct ocsd_audit){ .sw = sw,
						    .what = on ? "foreign" : "clean",
						    .before = name,
						    .after = on ? patch : NULL });
		if (!ocsd_drain_find(d, "port", name))
			ocsd_drain_event(d, "port", name, "a patch that is not ours", on);
	}
	free(label);
	free(name);
}

static void find_foreign(struct ocsd *d, struct ocsd_switch *sw, const struct ocs_table *table)
{
	int ports = 2 * sw->description->size;
	struct ocs_patch *foreign = ocs_calloc((size_t)ports + 1, sizeof(*foreign));

	for (int in = 1; in <= table->size; in++) {
		int out = table->out[in];

		if (out < 1 || out > ports || patch_ours(sw, in, out) || egress_port(sw, out) < 1)
			continue;
		if (ocs_switch_loop_port(sw->description, in) ||
		    ocs_switch_loop_port(sw->description, egress_port(sw, out)))
			ocsd_selftest_leftover(sw, in, out);
		foreign[in] = foreign[egress_port(sw, out)] = (struct ocs_patch){ in, out };
		ocsd_drift(d, sw, in, out, "foreign");
	}
	for (int port = 1; port <= ports; port++) {
		char patch[32] = "";

		if ((foreign[port].in != 0) == sw->ports[port].foreign)
			continue;
		if (foreign[port].in)
			snprintf(patch, sizeof(patch), "%d>%d", foreign[port].in,
				 foreign[port].out);
		quarantine_set(d, sw, port, patch);
	}
	free(foreign);
}

/* Whether a patch that is not ours occupies an end of CIRCUIT; says which. */
static bool circuit_obstructed(const struct ocsd_switch *sw, const struct ocsd_circuit *circuit,
			       const struct ocs_table *table, const int *by_out,
			       struct ocs_patch *what)
{
	for (int p = 0; p < circuit->npatches; p++) {
		int in = circuit->patches[p].in, out = circuit->patches[p].out;

		if (table->out[in] && table->out[in] != out &&
		    !patch_ours(sw, in, table->out[in])) {
			*what = (struct ocs_patch){ .in = in, .out = table->out[in] };
			return true;
		}
		if (by_out[out] && by_out[out] != in && !patch_ours(sw, by_out[out], out)) {
			*what = (struct ocs_patch){ .in = by_out[out], .out = out };
			return true;
		}
	}
	return false;
}

static void circuit_obstruct(struct ocsd *d, struct ocsd_switch *sw, struct ocsd_circuit *circuit,
			     struct ocs_patch what)
{
	char *text =
		ocs_asprintf("the circuit between ports %d and %d of switch %s cannot be made: "
			     "patch %d>%d, which is not ours, is in the way",
			     circuit->a, circuit->b, sw->description->name, what.in, what.out);

	ocsd_circuit_set(d, circuit, OCSD_CIRCUIT_FAILED);
	ocsd_store_circuit(d, circuit);
	ocsd_circuit_failed(d, circuit, text);
	free(text);
}

static void check_circuit(struct ocsd *d, struct ocsd_switch *sw, struct ocsd_circuit *circuit,
			  const struct ocs_table *table, const int *by_out)
{
	struct ocs_patch what;
	char ports[160];
	bool seen = ocsd_circuit_seen(circuit, table);

	if (circuit->state == OCSD_CONNECTED && !seen) {
		ocs_log(OCS_LOG_ERROR, "switch %s lost the circuit of ports %d and %d (job %u)",
			sw->description->name, circuit->a, circuit->b, circuit->job->job);
		snprintf(ports, sizeof(ports), "%s:%d-%d", sw->description->name, circuit->a,
			 circuit->b);
		ocsd_audit(d, &(struct ocsd_audit){ .job = circuit->job,
						    .sw = sw,
						    .what = "lost",
						    .before = ports });
		for (int p = 0; p < circuit->npatches; p++)
			if (table->out[circuit->patches[p].in] != circuit->patches[p].out)
				ocsd_drift(d, sw, circuit->patches[p].in, circuit->patches[p].out,
					   "missing");
		ocsd_circuit_set(d, circuit, OCSD_CONNECTING);
		ocsd_store_circuit(d, circuit);
		ocsd_topology_lost(d, circuit);
	}
	if (circuit->state == OCSD_CONNECTING && !seen && ocsd_job_connects(circuit->job) &&
	    circuit_obstructed(sw, circuit, table, by_out, &what))
		circuit_obstruct(d, sw, circuit, what);
}

/* A switch that has lost everything at once was restarted, or cleared. */
static void find_reset(struct ocsd *d, struct ocsd_switch *sw, const struct ocs_table *table)
{
	int connected = 0;
	char *text;

	for (int in = 1; in <= table->size; in++) {
		const struct ocsd_circuit *circuit = sw->by_in[in];

		if (table->out[in])
			return;
		connected +=
			circuit && circuit->patches[0].in == in && circuit->state == OCSD_CONNECTED;
	}
	if (connected < 2)
		return;
	text = ocs_asprintf("all %d circuits are gone: it was restarted, or cleared", connected);
	ocs_log(OCS_LOG_ERROR, "switch %s: %s", sw->description->name, text);
	ocsd_audit(d, &(struct ocsd_audit){ .sw = sw, .what = "reset", .reply = text });
	free(text);
}

/* Circuits of menus are known once they were seen; jobs that only wait for that go on. */
static void menus_read(struct ocsd *d, struct ocsd_switch *sw, const struct ocs_table *table)
{
	bool unread = false;

	for (const struct ocsd_job *job = d->jobs; job && !unread; job = job->next)
		unread = ocsd_menu_unread_on(job, sw->index);
	ocsd_menus_adopt(d, sw, table);
	for (struct ocsd_job *job = d->jobs; unread && job; job = job->next)
		if (job->menu && job->state == OCSD_JOB_CUTTING)
			ocsd_job_progress(d, job);
}

void ocsd_examine(struct ocsd *d, struct ocsd_switch *sw, const struct ocs_table *table)
{
	int size = sw->description->size;
	int *by_out = ocs_calloc(2 * (size_t)size + 1, sizeof(*by_out));

	for (int in = 1; in <= size; in++)
		if (table->out[in] > 0 && table->out[in] <= 2 * size)
			by_out[table->out[in]] = in;
	menus_read(d, sw, table);
	find_foreign(d, sw, table);
	find_reset(d, sw, table);
	for (int in = 1; in <= size; in++)
		if (sw->by_in[in] && sw->by_in[in]->patches[0].in == in)
			check_circuit(d, sw, sw->by_in[in], table, by_out);
	free(by_out);
}
