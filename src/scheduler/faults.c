/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/scheduler/state.h"
#include "src/util/net.h"
#include "src/util/text.h"

#include <stdlib.h>
#include <string.h>

/* A switch blamed for a job that ocsd itself calls up (one port of it may have
 * refused) is avoided this long. */
#define SUSPECT_NS (INT64_C(30) * 1000000000)

static void drain_free(struct ocs_drain *drain)
{
	free(drain->kind);
	free(drain->name);
	free(drain->reason);
	free(drain);
}

void ocs_faults_drains_clear(void)
{
	while (ocs_state.drains) {
		struct ocs_drain *drain = ocs_state.drains;

		ocs_state.drains = drain->next;
		drain_free(drain);
	}
	ocs_state.changed = true;
}

void ocs_faults_reset(void)
{
	ocs_faults_drains_clear();
	for (int i = 0; ocs_state.fabric && i < ocs_state.fabric->nswitches; i++) {
		free(ocs_state.switches[i].reason);
		memset(&ocs_state.switches[i], 0, sizeof(ocs_state.switches[i]));
	}
}

void ocs_faults_switch(const char *name, const char *state, const char *reason)
{
	int index = ocs_fabric_switch(ocs_state.fabric, name);
	struct ocs_switch_state *sw;

	if (index < 0)
		return;
	sw = &ocs_state.switches[index];
	if (strcmp(state, "failed") == 0)
		sw->state = OCS_SWITCH_FAILED;
	else if (strcmp(state, "drained") == 0)
		sw->state = OCS_SWITCH_DRAINED;
	else
		sw->state = OCS_SWITCH_UP;
	if (sw->state == OCS_SWITCH_UP)
		sw->suspect_until_ns = 0;
	free(sw->reason);
	sw->reason = reason && *reason ? ocs_strdup(reason) : NULL;
	ocs_state.changed = true;
}

void ocs_faults_suspect(const char *name, const char *reason)
{
	int index = name ? ocs_fabric_switch(ocs_state.fabric, name) : -1;
	struct ocs_switch_state *sw;

	if (index < 0)
		return;
	sw = &ocs_state.switches[index];
	sw->suspect_until_ns = ocs_now_ns() + SUSPECT_NS;
	if (!sw->reason && reason)
		sw->reason = ocs_strdup(reason);
}

void ocs_faults_drain(const char *kind, const char *name, const char *reason, bool on)
{
	struct ocs_drain **at = &ocs_state.drains;

	while (*at && (strcmp((*at)->kind, kind) != 0 || strcmp((*at)->name, name) != 0))
		at = &(*at)->next;
	if (*at) {
		struct ocs_drain *old = *at;

		*at = old->next;
		drain_free(old);
	}
	if (on) {
		struct ocs_drain *drain = ocs_calloc(1, sizeof(*drain));

		drain->kind = ocs_strdup(kind);
		drain->name = ocs_strdup(name);
		drain->reason = ocs_strdup(reason ? reason : "");
		drain->next = ocs_state.drains;
		ocs_state.drains = drain;
	}
	ocs_state.changed = true;
}

static bool is_suspect(const struct ocs_switch_state *state)
{
	return state->suspect_until_ns && state->suspect_until_ns > ocs_now_ns();
}

bool ocs_faults_switch_usable(int sw)
{
	const struct ocs_switch_state *state = &ocs_state.switches[sw];

	if (state->state != OCS_SWITCH_UP || is_suspect(state))
		return false;
	for (const struct ocs_drain *drain = ocs_state.drains; drain; drain = drain->next) {
		if (strcmp(drain->kind, "switch") == 0 &&
		    strcmp(drain->name, ocs_state.fabric->switches[sw].name) == 0)
			return false;
	}
	return true;
}

/* A drained port is named SWITCH:PORT. */
static int drained_port(const struct ocs_drain *drain, struct ocs_port *port)
{
	const char *colon = strrchr(drain->name, ':');
	char *name;
	long number;

	if (strcmp(drain->kind, "port") != 0 || !colon ||
	    ocs_number_parse(colon + 1, 1, 1000000, &number))
		return -1;
	name = ocs_strdup(drain->name);
	name[colon - drain->name] = '\0';
	port->sw = ocs_fabric_switch(ocs_state.fabric, name);
	port->port = (int)number;
	free(name);
	return port->sw < 0 ? -1 : 0;
}

bool ocs_faults_port_usable(struct ocs_port port)
{
	struct ocs_port drained;

	if (!ocs_faults_switch_usable(port.sw))
		return false;
	for (const struct ocs_drain *drain = ocs_state.drains; drain; drain = drain->next) {
		if (drained_port(drain, &drained) == 0 && drained.sw == port.sw &&
		    drained.port == port.port)
			return false;
	}
	return true;
}

bool ocs_faults_node_usable(int node)
{
	for (const struct ocs_drain *drain = ocs_state.drains; drain; drain = drain->next) {
		if (strcmp(drain->kind, "node") == 0 &&
		    strcmp(drain->name, ocs_state.fabric->nodes[node].name) == 0)
			return false;
	}
	return true;
}

bool ocs_faults_any(void)
{
	if (ocs_state.drains)
		return true;
	for (int i = 0; i < ocs_state.fabric->nswitches; i++) {
		if (!ocs_faults_switch_usable(i))
			return true;
	}
	return false;
}

void ocs_faults_apply(struct ocs_occupancy *occupancy)
{
	const struct ocs_fabric *fabric = ocs_state.fabric;
	struct ocs_port port;

	if (occupancy->section->kind == OCS_TORUS) {
		for (int i = 0; i < fabric->nswitches; i++) {
			if (!ocs_faults_switch_usable(i))
				ocs_occupancy_switch_block(occupancy, fabric, i, 0);
		}
	}
	for (const struct ocs_drain *drain = ocs_state.drains; drain; drain = drain->next) {
		if (strcmp(drain->kind, "cube") == 0) {
			int cube = ocs_section_cube(occupancy->section, drain->name);

			if (cube >= 0)
				ocs_occupancy_cube_drain(occupancy, cube);
		} else if (strcmp(drain->kind, "xpu") == 0 || strcmp(drain->kind, "node") == 0) {
			int node = *drain->kind == 'x' ? ocs_fabric_xpu_node(fabric, drain->name) :
							 ocs_controller_node(drain->name);

			if (node >= 0 && fabric->nodes[node].section == occupancy->section->index)
				ocs_occupancy_node_set(occupancy, fabric, node, false);
		} else if (occupancy->section->kind == OCS_TORUS &&
			   drained_port(drain, &port) == 0) {
			ocs_occupancy_switch_block(occupancy, fabric, port.sw, port.port);
		}
	}
}

char *ocs_faults_describe(void)
{
	const struct ocs_fabric *fabric = ocs_state.fabric;
	struct ocs_text text = { 0 };
	int shown = 0, more = 0;

	for (int i = 0; i < fabric->nswitches; i++) {
		if (ocs_faults_switch_usable(i))
			continue;
		if (shown++ >= 3) {
			more++;
			continue;
		}
		ocs_text_add(&text, "%sswitch %s %s", text.length ? ", " : "",
			     fabric->switches[i].name,
			     ocs_state.switches[i].state == OCS_SWITCH_FAILED ||
					     is_suspect(&ocs_state.switches[i]) ?
				     "failed" :
				     "drained");
	}
	for (const struct ocs_drain *drain = ocs_state.drains; drain; drain = drain->next) {
		if (strcmp(drain->kind, "switch") == 0)
			continue;
		if (shown++ >= 3) {
			more++;
			continue;
		}
		/* What the node lacks is for the user who waits to tell the administrator. */
		ocs_text_add(&text, "%s%s %s drained%s%s", text.length ? ", " : "", drain->kind,
			     drain->name, *drain->kind == 'n' ? ": " : "",
			     *drain->kind == 'n' ? drain->reason : "");
	}
	if (more)
		ocs_text_add(&text, " and %d more", more);
	return text.length ? ocs_text_take(&text) : NULL;
}
