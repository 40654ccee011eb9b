/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Optical power: what a path loses against what it lost when it was new.  Light that
 * does not come in is no fault of the switch: hosts are switched off, too. */

#include "src/ocsd/ports/optical_power.h"
#include "src/ocsd/ports/quarantine.h"
#include "src/ocsd/store/store.h"

#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/util/net.h"
#include "src/util/text.h"

#include <json-c/json.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

double ocsd_power_limit(struct ocsd *d, const struct ocsd_switch *sw, int in, int out)
{
	double baseline = NAN, limit = INFINITY;

	if (sw->description->loss_budget > 0)
		baseline = ocsd_store_baseline(d, sw, in, out);
	if (!isnan(baseline))
		limit = baseline + sw->description->loss_budget;
	if (sw->description->loss_max > 0 && sw->description->loss_max < limit)
		limit = sw->description->loss_max;
	return limit;
}

static bool loss_limited(const struct ocsd_switch *sw)
{
	return sw->description->loss_budget > 0 || sw->description->loss_max > 0;
}

/* What is wrong with the path (the caller frees it), or NULL.  SETTLED: what was read is its own
 * light, not what was there before it. */
static char *path_judge(struct ocsd *d, const struct ocsd_switch *sw, int in, int out, bool settled)
{
	const struct ocs_port_health *a = &sw->health.port[in], *b = &sw->health.port[out];
	double loss = a->dbm - b->dbm, limit;

	if (a->status == OCS_PORT_FAILED || b->status == OCS_PORT_FAILED)
		return ocs_asprintf("the switch says that port %d has failed",
				    a->status == OCS_PORT_FAILED ? in : out);
	if (isnan(loss) || a->dbm < OCSD_DARK_DBM)
		return NULL;
	limit = ocsd_power_limit(d, sw, in, out);
	if (loss > limit)
		return ocs_asprintf("the path %d>%d loses %.2f dB; at most %.2f dB are allowed", in,
				    out, loss, limit);
	if (settled && b->dbm >= OCSD_DARK_DBM && isnan(ocsd_store_baseline(d, sw, in, out)))
		ocsd_store_baseline_add(d, sw, in, out, loss);
	return NULL;
}

static void check_path(struct ocsd *d, struct ocsd_switch *sw, int in)
{
	const struct ocsd_circuit *circuit = sw->by_in[in];
	int64_t now_ns = ocs_now_ns();
	bool settled = circuit && sw->batch.sent_ns - circuit->made_ns >= OCSD_LAG_NS;
	char *wrong = NULL;

	for (int p = 0; circuit && circuit->state == OCSD_CONNECTED && p < circuit->npatches; p++)
		if (circuit->patches[p].in == in)
			wrong = path_judge(d, sw, in, circuit->patches[p].out, settled);
	if (!wrong || !loss_limited(sw)) {
		sw->suspect_since[in] = 0;
	} else if (!settled || !sw->suspect_since[in] ||
		   now_ns - sw->suspect_since[in] < OCSD_LAG_NS) {
		/* what is bad must still be bad when the read-out has caught up */
		if (!settled || !sw->suspect_since[in])
			sw->suspect_since[in] = now_ns;
		if (sw->poll.next_ns > now_ns + OCSD_LAG_NS)
			sw->poll.next_ns = now_ns + OCSD_LAG_NS;
	} else {
		/* Which of the two it is, a self-test can tell. */
		ocsd_port_quarantine(d, sw, circuit->a, wrong);
		ocsd_port_quarantine(d, sw, circuit->b, wrong);
	}
	free(wrong);
}

void ocsd_power_read(struct ocsd *d, struct ocsd_switch *sw, struct ocs_health *health)
{
	ocs_health_free(&sw->health);
	sw->health = *health;
	*health = (struct ocs_health){ 0 };
	if (!sw->suspect_since)
		sw->suspect_since =
			ocs_calloc((size_t)sw->description->size + 1, sizeof(*sw->suspect_since));
	for (int in = 1; in <= sw->description->size; in++)
		check_path(d, sw, in);
}

static void add_number(struct json_object *row, const char *name, double value)
{
	char text[32];

	if (isnan(value))
		return;
	snprintf(text, sizeof(text), "%.2f", value);
	json_object_object_add(row, name, json_object_new_double_s(value, text));
}

/* The ingress and egress of a logical port; 0: it has none. */
static void port_fibres(const struct ocsd_switch *sw, int port, int *in, int *out)
{
	int size = sw->description->size;

	*in = port <= size ? port : 0;
	*out = !sw->description->bidi ? port + size : port > size ? port : 0;
}

/* The worse of the two; unknown is not bad. */
static enum ocs_port_status status_worse(enum ocs_port_status a, enum ocs_port_status b)
{
	return a > b ? a : b;
}

void ocsd_power_show(struct ocsd *d, const struct ocsd_switch *sw, int port,
		     struct json_object *row)
{
	enum ocs_port_status status = OCS_PORT_UNKNOWN;
	const struct ocsd_circuit *circuit;
	int in, out;

	port_fibres(sw, port, &in, &out);
	if (!sw->health.ports)
		return;
	if (in) {
		status = sw->health.port[in].status;
		add_number(row, OCS_FIELD_IN_DBM, sw->health.port[in].dbm);
	}
	if (out) {
		status = status_worse(status, sw->health.port[out].status);
		add_number(row, OCS_FIELD_OUT_DBM, sw->health.port[out].dbm);
	}
	ocs_field_add_text(row, OCS_FIELD_STATUS, ocs_port_status_name(status));
	circuit = in ? sw->by_in[in] : NULL;
	for (int p = 0; circuit && circuit->state == OCSD_CONNECTED && p < circuit->npatches; p++) {
		int to = circuit->patches[p].out;
		double loss = NAN, baseline;

		if (circuit->patches[p].in != in)
			continue;
		baseline = ocsd_store_baseline(d, sw, in, to);
		/* Dark: not read since the circuit was made, or no light comes in. */
		if (sw->health.port[to].dbm >= OCSD_DARK_DBM)
			loss = sw->health.port[in].dbm - sw->health.port[to].dbm;
		add_number(row, OCS_FIELD_LOSS, loss);
		add_number(row, OCS_FIELD_BASELINE, baseline);
		add_number(row, OCS_FIELD_EXCESS, loss - baseline);
	}
}
