/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/ocsd/jobs/allocation.h"
#include "src/ocsd/jobs/region.h"
#include "src/ocsd/jobs/transition.h"
#include "src/ocsd/store/store.h"

#include "src/fold/shape.h"
#include "src/util/error.h"
#include "src/util/hash.h"
#include "src/util/net.h"
#include "src/util/secret.h"
#include "src/util/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY_BYTES 16
#define PREFIX "region:"

/* ---- its circuits ---- */

static bool circuit_joins(const struct ocsd_circuit *circuit, int a, int b)
{
	return (circuit->a == a && circuit->b == b) || (circuit->a == b && circuit->b == a);
}

/* A circuit that is gone, and of no transition, becomes one between A and B. */
static int circuit_point(struct ocsd *d, struct ocsd_circuit *circuit, int a, int b)
{
	int count = ocs_switch_patches(d->switches[circuit->sw].description, a, b, circuit->patches,
				       NULL);

	if (count < 0)
		return -1;
	circuit->a = a;
	circuit->b = b;
	circuit->npatches = count;
	circuit->made_ns = circuit->dark_since_ns = 0;
	circuit->sent = circuit->lit = circuit->outcome_unknown = circuit->postponed = false;
	circuit->dark = 0;
	return 0;
}

struct ocsd_circuit *ocsd_region_circuit(struct ocsd *d, struct ocsd_job *job, int number, int a,
					 int b)
{
	struct ocsd_rail *rail = &job->menu->rails[number];
	struct ocsd_circuit *spare = NULL, *circuit;

	for (size_t i = 0; i < rail->ncircuits; i++) {
		circuit = rail->circuits[i];
		if (circuit->state != OCSD_GONE && circuit_joins(circuit, a, b))
			return circuit;
		if (circuit->state == OCSD_GONE && !circuit->transition && !circuit->wanted)
			spare = circuit;
	}
	if (spare)
		return circuit_point(d, spare, a, b) ? NULL : spare;
	if (ocsd_job_circuit(d, job, rail->sw, a, b, false, OCSD_GONE, NULL))
		return NULL;
	circuit = job->circuits.list[job->circuits.count - 1];
	circuit->rail = number + 1;
	circuit->sent = false;
	if ((rail->ncircuits & (rail->ncircuits + 1)) == 0)
		rail->circuits = ocs_realloc(rail->circuits,
					     (rail->ncircuits + 1) * 2 * sizeof(*rail->circuits));
	rail->circuits[rail->ncircuits++] = circuit;
	return circuit;
}

static int nic_port(const struct ocsd_menu *menu, const struct ocsd_rail *rail, int server, int nic)
{
	return rail->ports[server * menu->nics + nic];
}

static bool has_port(const struct ocsd_menu *menu, const struct ocsd_rail *rail, int port)
{
	for (int i = 0; i < menu->groups.servers * menu->nics; i++)
		if (rail->ports[i] == port)
			return true;
	return false;
}

int ocsd_region_group(const struct ocsd_menu *menu, int sw, int a, int b)
{
	for (int g = 0; g < menu->nrails; g++)
		if (menu->rails[g].sw == sw && has_port(menu, &menu->rails[g], a))
			return has_port(menu, &menu->rails[g], b) ? g : -1;
	return -1;
}

/* Where the group has PORT: server * nics + nic, or -1. */
static int end_find(const struct ocsd_menu *menu, const struct ocsd_rail *rail, int port)
{
	for (int i = 0; i < menu->groups.servers * menu->nics; i++)
		if (rail->ports[i] == port)
			return i;
	return -1;
}

void ocsd_region_stand(const struct ocsd_menu *menu, int number,
		       struct ocs_region_circuits *circuits)
{
	const struct ocsd_rail *rail = &menu->rails[number];

	memset(circuits, 0, sizeof(*circuits));
	for (size_t i = 0; i < rail->ncircuits; i++) {
		const struct ocsd_circuit *circuit = rail->circuits[i];
		int a = end_find(menu, rail, circuit->a), b = end_find(menu, rail, circuit->b);

		if (circuit->state == OCSD_CONNECTED && a >= 0 && b >= 0)
			ocs_region_circuits_add(circuits, a / menu->nics, a % menu->nics,
						b / menu->nics, b % menu->nics);
	}
	ocs_region_circuits_check(circuits, menu->groups.servers, menu->nics, NULL);
}

static struct ocsd_circuit *circuit_of(struct ocsd *d, struct ocsd_job *job, int number,
				       const struct ocs_region_circuit *pair)
{
	const struct ocsd_rail *rail = &job->menu->rails[number];

	return ocsd_region_circuit(d, job, number, nic_port(job->menu, rail, pair->a, pair->a_nic),
				   nic_port(job->menu, rail, pair->b, pair->b_nic));
}

int ocsd_region_change_fill(struct ocsd *d, struct ocsd_job *job, int number,
			    const struct ocs_region_circuits *circuits, struct ocsd_transition *t,
			    struct ocs_error *err)
{
	struct ocsd_rail *rail = &job->menu->rails[number];
	int rc = 0;

	for (size_t i = 0; i < circuits->count && rc == 0; i++) {
		struct ocsd_circuit *circuit = circuit_of(d, job, number, &circuits->items[i]);

		if (!circuit) {
			rc = ocs_error_set(err, OCS_ERROR, "switch %s cannot join its ports",
					   d->switches[rail->sw].description->name);
			break;
		}
		circuit->wanted = true;
		if (circuit->state != OCSD_CONNECTED)
			ocsd_transition_add(t, circuit);
	}
	for (size_t i = 0; i < rail->ncircuits; i++) {
		struct ocsd_circuit *circuit = rail->circuits[i];

		if (rc == 0 && !circuit->wanted && circuit->state != OCSD_GONE)
			ocsd_transition_cut(t, circuit);
		circuit->wanted = false;
	}
	return rc;
}

void ocsd_region_first_set(struct ocsd *d, struct ocsd_job *job, enum ocsd_circuit_state state)
{
	for (int g = 0; g < job->menu->nrails; g++) {
		struct ocsd_rail *rail = &job->menu->rails[g];

		ocs_region_circuits_digest(&rail->first, rail->topo);
		for (size_t i = 0; i < rail->first.count; i++) {
			struct ocsd_circuit *circuit = circuit_of(d, job, g, &rail->first.items[i]);

			if (!circuit)
				continue;
			job->circuits.ngone += state == OCSD_GONE;
			job->circuits.ngone -= circuit->state == OCSD_GONE;
			circuit->state = state;
			circuit->sent = state == OCSD_CONNECTED;
		}
	}
}

/* ---- the menu ---- */

static int group_create(struct ocsd *d, struct ocsd_job *job, int number, struct ocs_error *err)
{
	struct ocsd_menu *menu = job->menu;
	struct ocsd_rail *rail = &menu->rails[number];

	rail->sw = -1;
	rail->ports = ocs_calloc((size_t)menu->groups.servers * (size_t)menu->nics + 1,
				 sizeof(*rail->ports));
	for (int s = 0; s < menu->groups.servers; s++) {
		const char *name = job->nodes.names[number * menu->groups.servers + s];
		const struct ocs_node *node = ocs_fabric_node(d->fabric, name);

		for (int nic = 0; nic < menu->nics; nic++) {
			struct ocs_port port;

			if (!node || ocs_section_server_port(d->fabric, job->section, node->server,
							     nic, &port))
				return ocs_error_set(err, OCS_ERROR,
						     "interface %d of node %s is on no switch", nic,
						     name);
			if (rail->sw >= 0 && rail->sw != port.sw)
				return ocs_error_set(err, OCS_USAGE,
						     "node %s is not in the region of its group",
						     name);
			rail->sw = port.sw;
			rail->ports[s * menu->nics + nic] = port.port;
		}
	}
	return 0;
}

static void menu_digest(struct ocsd *d, struct ocsd_menu *menu)
{
	uint64_t hash = OCS_HASH_START;

	for (int g = 0; g < menu->nrails; g++) {
		const struct ocsd_rail *rail = &menu->rails[g];
		const char *name = d->fabric->switches[rail->sw].name;

		hash = ocs_hash(hash, name, strlen(name) + 1);
		hash = ocs_hash(hash, rail->ports,
				(size_t)menu->groups.servers * (size_t)menu->nics *
					sizeof(*rail->ports));
	}
	snprintf(menu->digest, sizeof(menu->digest), "%016" PRIx64, hash);
}

/* Makes the menu without key and circuits.  -1 with ERR: then JOB has none. */
static int menu_make(struct ocsd *d, struct ocsd_job *job, const struct ocs_region_layout *layout,
		     struct ocs_error *err)
{
	struct ocsd_menu *menu;

	if ((size_t)layout->groups * (size_t)layout->servers != job->nodes.count)
		return ocs_error_set(
			err, OCS_USAGE,
			"%d groups of %d servers take %d nodes, the allocation has %zu",
			layout->groups, layout->servers, layout->groups * layout->servers,
			job->nodes.count);
	menu = job->menu = ocs_calloc(1, sizeof(*menu));
	menu->groups = *layout;
	menu->nics = job->section->degree;
	menu->audited_ns = menu->recent_ns = ocs_now_ns();
	menu->nrails = layout->groups;
	menu->rails = ocs_calloc((size_t)menu->nrails + 1, sizeof(*menu->rails));
	for (int g = 0; g < menu->nrails; g++)
		if (group_create(d, job, g, err)) {
			ocsd_menu_free(menu);
			job->menu = NULL;
			return -1;
		}
	menu_digest(d, menu);
	return 0;
}

char *ocsd_region_text(const struct ocsd_menu *menu, bool now)
{
	struct ocs_text text = { 0 };

	ocs_text_add(&text, PREFIX "%dx%d:%d:", menu->groups.groups, menu->groups.servers,
		     menu->nics);
	for (int g = 0; g < menu->nrails; g++) {
		const struct ocsd_rail *rail = &menu->rails[g];
		char *one =
			ocs_region_circuits_format(now && rail->seq ? &rail->asked : &rail->first);

		ocs_text_add(&text, "%s%s", g ? ";" : "", one);
		free(one);
	}
	if (menu->name)
		ocs_text_add(&text, " %s", menu->name);
	return ocs_text_take(&text);
}

bool ocsd_region_is_text(const char *text)
{
	return strncmp(text, PREFIX, strlen(PREFIX)) == 0;
}

/* Reads the layout of TEXT; the length of what was read, or -1. */
static int layout_parse(const char *text, struct ocs_region_layout *layout, int *nics)
{
	int used = 0;

	if (sscanf(text, PREFIX "%9dx%9d:%9d:%n", &layout->groups, &layout->servers, nics, &used) !=
		    3 ||
	    !used || layout->groups < 1 || layout->servers < 1)
		return -1;
	return used;
}

/* The first circuits of the groups from TEXT.  -1 with ERR: none has changed. */
static int first_parse(struct ocsd_menu *menu, const char *text, struct ocs_error *err)
{
	struct ocs_region_circuits *lists = ocs_calloc((size_t)menu->nrails, sizeof(*lists));
	int rc = 0;

	for (int g = 0; g < menu->nrails && rc == 0; g++) {
		size_t length = strcspn(text, "; ");

		if (g + 1 < menu->nrails && text[length] != ';')
			rc = ocs_error_set(err, OCS_ERROR, "circuits of a group are missing");
		else
			rc = ocs_region_circuits_parse(text, length, menu->groups.servers,
						       menu->nics, &lists[g], err);
		text += length + (text[length] == ';');
	}
	for (int g = 0; g < menu->nrails; g++) {
		if (rc == 0) {
			ocs_region_circuits_free(&menu->rails[g].first);
			menu->rails[g].first = lists[g];
		} else {
			ocs_region_circuits_free(&lists[g]);
		}
	}
	free(lists);
	return rc;
}

/* Whether the groups begin with the circuits of an earlier run. */
static bool earlier_take(struct ocsd_menu *menu, const char *text)
{
	struct ocs_region_layout layout;
	int nics, used = text ? layout_parse(text, &layout, &nics) : -1;

	return used > 0 && layout.groups == menu->groups.groups &&
	       layout.servers == menu->groups.servers && nics == menu->nics &&
	       first_parse(menu, text + used, NULL) == 0;
}

int ocsd_region_create(struct ocsd *d, struct ocsd_job *job, const struct ocs_region_layout *layout,
		       int wish, const char *name, const char *earlier, struct ocs_error *err)
{
	struct ocsd_menu *menu;

	if (menu_make(d, job, layout, err))
		return -1;
	menu = job->menu;
	menu->name = name ? ocs_strdup(name) : NULL;
	menu->phases = wish & OCS_MOE_WISH_STATIC ? OCS_PHASES_OFF : OCS_PHASES_PROVISIONED;
	if (menu->phases != OCS_PHASES_OFF && ocs_random_hex(menu->key, KEY_BYTES, err))
		return -1;
	if (wish & OCS_MOE_WISH_BALANCED || !earlier_take(menu, earlier))
		for (int g = 0; g < menu->nrails; g++)
			ocs_region_circuits_balanced(layout->servers, menu->nics,
						     &menu->rails[g].first);
	ocsd_region_first_set(d, job, OCSD_PLANNED);
	return 0;
}

int ocsd_region_load(struct ocsd *d, struct ocsd_job *job, const char *text, struct ocs_error *err)
{
	struct ocs_region_layout layout = { .groups = 0 };
	const char *name;
	int nics, used = layout_parse(text, &layout, &nics);

	if (!job->section || job->section->kind != OCS_REGION || !job->section->ports || used < 0 ||
	    nics != job->section->degree)
		return ocs_error_set(err, OCS_ERROR, "its section is not such a region any more");
	if (menu_make(d, job, &layout, err))
		return -1;
	name = strchr(text + used, ' ');
	job->menu->name = name ? ocs_strdup(name + 1) : NULL;
	return first_parse(job->menu, text + used, err);
}

void ocsd_region_remember(struct ocsd *d, const struct ocsd_job *job)
{
	char *text;

	if (!job->menu->name)
		return;
	text = ocsd_region_text(job->menu, true);
	ocsd_store_region_run_set(d, job, job->menu->name, text);
	free(text);
}
