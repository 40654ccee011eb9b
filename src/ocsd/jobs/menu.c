/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/ocsd/jobs/menu.h"
#include "src/ocsd/jobs/region.h"
#include "src/ocsd/jobs/allocation.h"
#include "src/ocsd/jobs/circuits.h"
#include "src/ocsd/jobs/routes.h"
#include "src/ocsd/store/store.h"

#include "src/util/hash.h"
#include "src/util/net.h"
#include "src/util/secret.h"
#include "src/util/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY_BYTES 16

/* ---- its circuits ---- */

static int pair_compare(const void *left, const void *right)
{
	const struct ocs_rails_pair *one = left, *other = right;

	if (one->a != other->a)
		return one->a < other->a ? -1 : 1;
	if (one->a_port != other->a_port)
		return one->a_port < other->a_port ? -1 : 1;
	if (one->b != other->b)
		return one->b < other->b ? -1 : 1;
	return one->b_port - other->b_port;
}

struct ocsd_circuit *ocsd_menu_circuit(const struct ocsd_menu *menu, const struct ocsd_rail *rail,
				       const struct ocs_rails_pair *pair)
{
	const struct ocs_rails_pair *found =
		bsearch(pair, menu->pairs.items, menu->pairs.count, sizeof(*pair), pair_compare);

	return found ? rail->circuits[found - menu->pairs.items] : NULL;
}

static int lower_port(const struct ocsd_circuit *circuit)
{
	return circuit->a < circuit->b ? circuit->a : circuit->b;
}

static int higher_port(const struct ocsd_circuit *circuit)
{
	return circuit->a < circuit->b ? circuit->b : circuit->a;
}

static int ports_compare(const void *left, const void *right)
{
	const struct ocsd_circuit *one = *(struct ocsd_circuit *const *)left;
	const struct ocsd_circuit *other = *(struct ocsd_circuit *const *)right;

	if (lower_port(one) != lower_port(other))
		return lower_port(one) < lower_port(other) ? -1 : 1;
	return higher_port(one) - higher_port(other);
}

/* The circuit between ports A and B, either way round, or NULL. */
static struct ocsd_circuit *circuit_by_ports(const struct ocsd_menu *menu,
					     const struct ocsd_rail *rail, int a, int b)
{
	struct ocsd_circuit wanted = { .a = a, .b = b };
	const struct ocsd_circuit *key = &wanted;
	struct ocsd_circuit **found = NULL;

	if (rail->by_ports) /* a group of a region has none */
		found = bsearch(&key, rail->by_ports, menu->pairs.count, sizeof(key),
				ports_compare);
	return found ? *found : NULL;
}

/* The switch port of PORT of node NODE of JOB on rail RAIL. */
static int node_port(struct ocsd *d, const struct ocsd_job *job, int node, int rail, int port,
		     struct ocs_port *where, struct ocs_error *err)
{
	const struct ocs_node *described = ocs_fabric_node(d->fabric, job->nodes.names[node]);

	if (!described || ocs_section_nic_port(job->section, described->server, rail, port, where))
		return ocs_error_set(err, OCS_ERROR,
				     "port %d of interface %d of node %s is on no switch", port,
				     rail, job->nodes.names[node]);
	return 0;
}

static int rail_create(struct ocsd *d, struct ocsd_job *job, int number, struct ocs_error *err)
{
	struct ocsd_menu *menu = job->menu;
	struct ocsd_rail *rail = &menu->rails[number];
	struct ocs_port a, b;

	rail->sw = -1;
	rail->circuits = ocs_calloc(menu->pairs.count + 1, sizeof(struct ocsd_circuit *));
	rail->by_ports = ocs_calloc(menu->pairs.count + 1, sizeof(struct ocsd_circuit *));
	for (size_t i = 0; i < menu->pairs.count; i++) {
		const struct ocs_rails_pair *pair = &menu->pairs.items[i];
		struct ocsd_circuit *circuit;

		if (node_port(d, job, pair->a, number, pair->a_port, &a, err) ||
		    node_port(d, job, pair->b, number, pair->b_port, &b, err))
			return -1;
		if (a.sw != b.sw || (rail->sw >= 0 && a.sw != rail->sw))
			return ocs_error_set(
				err, OCS_ERROR,
				"interface %d of nodes %s and %s is on different switches, so no circuit joins them",
				number, job->nodes.names[pair->a], job->nodes.names[pair->b]);
		rail->sw = a.sw;
		if (ocsd_job_circuit(d, job, a.sw, a.port, b.port, false, OCSD_GONE, err))
			return -1;
		circuit = job->circuits.list[job->circuits.count - 1];
		circuit->rail = number + 1;
		circuit->sent = false;
		rail->circuits[i] = rail->by_ports[i] = circuit;
	}
	if (rail->sw < 0 && !node_port(d, job, 0, number, 0, &a, NULL))
		rail->sw = a.sw;
	qsort(rail->by_ports, menu->pairs.count, sizeof(struct ocsd_circuit *), ports_compare);
	return 0;
}

static char *layout_text(const struct ocs_rails_layout *layout)
{
	struct ocs_text text = { 0 };

	for (int i = 0; i < layout->ndim; i++)
		ocs_text_add(&text, "%s%d", i ? "x" : "", layout->extent[i]);
	ocs_text_add(&text, ":%d:%d", layout->asymmetric, layout->ports);
	return text.data;
}

static int layout_parse(const char *text, struct ocs_rails_layout *layout)
{
	int used = 0;

	memset(layout, 0, sizeof(*layout));
	do {
		if (layout->ndim == OCS_RAILS_DIMS ||
		    sscanf(text, "%d%n", &layout->extent[layout->ndim], &used) != 1 ||
		    layout->extent[layout->ndim] < 1)
			return -1;
		layout->ndim++;
		text += used;
	} while (*text++ == 'x');
	if (sscanf(text, "%d:%d%n", &layout->asymmetric, &layout->ports, &used) != 2 || text[used])
		return -1;
	return layout->asymmetric >= -1 && layout->asymmetric < layout->ndim ? 0 : -1;
}

/* Of all that the menu is made of: the layout, and the ports of each circuit. */
static void menu_digest(struct ocsd *d, const struct ocsd_menu *menu, char digest[17])
{
	char *text = layout_text(&menu->layout);
	uint64_t hash = ocs_hash(OCS_HASH_START, text, strlen(text));

	free(text);
	for (int r = 0; r < menu->nrails; r++) {
		const struct ocsd_rail *rail = &menu->rails[r];
		const char *name = rail->sw >= 0 ? d->fabric->switches[rail->sw].name : "";

		hash = ocs_hash(hash, name, strlen(name) + 1);
		for (size_t i = 0; i < menu->pairs.count; i++) {
			const int ports[2] = { rail->circuits[i]->a, rail->circuits[i]->b };

			hash = ocs_hash(hash, ports, sizeof(ports));
		}
	}
	snprintf(digest, 17, "%016" PRIx64, hash);
}

/* Makes the menu without a key and a topology.  -1 with ERR: then JOB has none. */
static int menu_make(struct ocsd *d, struct ocsd_job *job, const struct ocs_rails_layout *layout,
		     enum ocs_phases phases, struct ocs_error *err)
{
	struct ocsd_menu *menu;
	int nodes = ocs_rails_layout_nodes(layout);

	if (ocs_rails_layout_check(layout, err))
		return -1;
	if ((size_t)nodes != job->nodes.count)
		return ocs_error_set(err, OCS_USAGE,
				     "the shape covers %d nodes, the allocation has %zu", nodes,
				     job->nodes.count);
	menu = job->menu = ocs_calloc(1, sizeof(*menu));
	menu->layout = *layout;
	menu->phases = phases;
	menu->audited_ns = menu->recent_ns = ocs_now_ns();
	menu->nrails = job->section->degree;
	menu->rails = ocs_calloc((size_t)menu->nrails + 1, sizeof(*menu->rails));
	if (ocs_rails_menu_pairs(layout, &menu->pairs, err))
		goto fail;
	for (int r = 0; r < menu->nrails; r++)
		if (rail_create(d, job, r, err))
			goto fail;
	menu_digest(d, menu, menu->digest);
	ocsd_routes_create(job);
	return 0;
fail:
	ocsd_menu_free(menu);
	job->menu = NULL;
	for (size_t i = 0; i < job->circuits.count; i++)
		free(job->circuits.list[i]);
	job->circuits.count = job->circuits.ngone = 0;
	return -1;
}

/* The circuits of the first topology of all rails are in STATE from now on. */
static void first_set(struct ocsd *d, struct ocsd_job *job, enum ocsd_circuit_state state)
{
	struct ocsd_menu *menu = job->menu;
	char first[OCS_RAILS_TOPOLOGY];
	struct ocs_rails_pairs pairs;
	struct ocs_error err;

	if (ocsd_menu_region(menu)) {
		ocsd_region_first_set(d, job, state);
		return;
	}
	ocsd_menu_first(menu, first);
	if (ocs_rails_topology_pairs(&menu->layout, first, &pairs, &err))
		return;
	for (int r = 0; r < menu->nrails; r++) {
		strcpy(menu->rails[r].topo, first);
		for (size_t i = 0; i < pairs.count; i++) {
			struct ocsd_circuit *circuit =
				ocsd_menu_circuit(menu, &menu->rails[r], &pairs.items[i]);

			if (!circuit)
				continue;
			job->circuits.ngone += state == OCSD_GONE;
			job->circuits.ngone -= circuit->state == OCSD_GONE;
			circuit->state = state;
			circuit->sent = state == OCSD_CONNECTED;
		}
	}
	ocs_rails_pairs_free(&pairs);
}

int ocsd_menu_create(struct ocsd *d, struct ocsd_job *job, const struct ocs_rails_layout *layout,
		     enum ocs_phases phases, struct ocs_error *err)
{
	if (menu_make(d, job, layout, phases, err))
		return -1;
	if (phases != OCS_PHASES_OFF && ocs_random_hex(job->menu->key, KEY_BYTES, err))
		return -1;
	first_set(d, job, OCSD_PLANNED);
	return 0;
}

void ocsd_menu_store(struct ocsd *d, const struct ocsd_job *job)
{
	char *layout;

	if (!job->menu)
		return;
	layout = ocsd_menu_region(job->menu) ? ocsd_region_text(job->menu, false) :
					       layout_text(&job->menu->layout);
	ocsd_store_menu_add(d, job, layout, ocs_phases_name(job->menu->phases), job->menu->digest,
			    job->menu->key);
	free(layout);
}

static int rails_load(struct ocsd *d, struct ocsd_job *job, const char *layout,
		      enum ocs_phases mode, struct ocs_error *err)
{
	struct ocs_rails_layout parsed;

	if (!job->section || job->section->kind != OCS_RAILS || !job->section->ports)
		return ocs_error_set(err, OCS_ERROR, "its section is not one of rails any more");
	if (layout_parse(layout, &parsed))
		return ocs_error_set(err, OCS_ERROR, "its row is not one that ocsd writes");
	return menu_make(d, job, &parsed, mode, err);
}

int ocsd_menu_load(struct ocsd *d, struct ocsd_job *job, const char *layout, const char *phases,
		   const char *digest, const char *key, struct ocs_error *err)
{
	enum ocs_phases mode;

	if (ocs_phases_parse(phases, &mode, err) || strlen(key) >= sizeof(job->menu->key))
		return ocs_error_set(err, OCS_ERROR, "its row is not one that ocsd writes");
	if (ocsd_region_is_text(layout) ? ocsd_region_load(d, job, layout, err) :
					  rails_load(d, job, layout, mode, err))
		return -1;
	job->menu->phases = mode;
	strcpy(job->menu->key, key);
	if (strcmp(digest, job->menu->digest) != 0)
		ocs_log(OCS_LOG_WARNING,
			"job %u: its menu has digest %s instead of %s: ocs.yaml has changed",
			job->job, job->menu->digest, digest);
	for (int r = 0; r < job->menu->nrails; r++) {
		job->menu->rails[r].unread = job->menu->rails[r].sw >= 0;
		job->menu->rails[r].late = job->menu->rails[r].unread;
		if (job->menu->rails[r].unread)
			d->switches[job->menu->rails[r].sw].poll.late_until_ns = INT64_MAX;
	}
	if (job->state == OCSD_JOB_COMMITTED)
		first_set(d, job, OCSD_PLANNED);
	else if (mode == OCS_PHASES_OFF && ocsd_job_running(job))
		first_set(d, job, OCSD_CONNECTED);
	return 0;
}

void ocsd_menu_adopt_running(struct ocsd *d, struct ocsd_job *job)
{
	if (job->menu->phases == OCS_PHASES_OFF)
		return;
	first_set(d, job, OCSD_GONE);
	for (int r = 0; r < job->menu->nrails; r++) {
		job->menu->rails[r].unread = true;
		if (job->menu->rails[r].sw >= 0)
			d->switches[job->menu->rails[r].sw].poll.read_wanted = true;
	}
}

/* ---- what a switch shows ---- */

/* A patch between two ports of JOB that no circuit of its menu has: a circuit of its own, to be cut. */
static struct ocsd_circuit *stray_create(struct ocsd *d, struct ocsd_job *job,
					 struct ocsd_switch *sw, int rail, int a, int b)
{
	struct ocsd_circuit *circuit;
	struct ocs_error err;

	if (ocsd_job_circuit(d, job, sw->index, a, b, !sw->description->bidi, OCSD_CONNECTED, &err))
		return NULL;
	circuit = job->circuits.list[job->circuits.count - 1];
	circuit->rail = rail + 1;
	return circuit;
}

static bool slots_free(const struct ocsd_switch *sw, const struct ocsd_circuit *circuit)
{
	for (int p = 0; p < circuit->npatches; p++)
		if (sw->by_in[circuit->patches[p].in] || sw->leaving[circuit->patches[p].in])
			return false;
	return true;
}

static bool table_has(const struct ocsd_circuit *circuit, const struct ocs_table *table)
{
	for (int p = 0; p < circuit->npatches; p++)
		if (table->out[circuit->patches[p].in] != circuit->patches[p].out)
			return false;
	return true;
}

/* CIRCUIT, called GONE or PLANNED, is there, at least in part. */
static void circuit_adopt(struct ocsd *d, struct ocsd_switch *sw, struct ocsd_circuit *circuit,
			  bool unread, bool whole)
{
	struct ocsd_job *job = circuit->job;
	bool planned = circuit->state == OCSD_PLANNED;

	if (!slots_free(sw, circuit))
		return;
	for (int p = 0; p < circuit->npatches; p++)
		sw->by_in[circuit->patches[p].in] = circuit;
	circuit->sent = true;
	circuit->outcome_unknown = circuit->postponed = false;
	/* What the job is to begin with stands already, and nothing of the job asked for it: it ran
	 * when the database was lost.  The next read-back verifies it like one that was sent. */
	if (planned &&
	    (job->state == OCSD_JOB_COMMITTED || (!unread && job->state == OCSD_JOB_APPLYING))) {
		ocsd_circuit_set(d, circuit, OCSD_CONNECTING);
		return;
	}
	ocsd_circuit_set(d, circuit, OCSD_CONNECTED);
	if (!unread || !whole || job->state == OCSD_JOB_CUTTING ||
	    (job->menu->phases == OCS_PHASES_OFF && ocsd_job_running(job)))
		ocsd_circuit_leave(d, circuit);
}

static const struct ocsd_rail *rail_on(const struct ocsd_menu *menu, int sw, int *number)
{
	for (*number = 0; *number < menu->nrails; ++*number)
		if (menu->rails[*number].sw == sw)
			return &menu->rails[*number];
	return NULL;
}

static void patch_adopt(struct ocsd *d, struct ocsd_switch *sw, const struct ocs_table *table,
			int in, int out)
{
	int b = sw->description->bidi ? out : out - sw->description->size, number;
	struct ocsd_job *job = b < 1 ? NULL : sw->ports[in].owner;
	struct ocsd_circuit *circuit = NULL;
	const struct ocsd_rail *rail;

	if (!job || !job->menu || sw->ports[b].owner != job)
		return;
	number = ocsd_menu_region(job->menu) ? ocsd_region_group(job->menu, sw->index, in, b) : -1;
	if (number >= 0)
		circuit = ocsd_region_circuit(d, job, number, in, b);
	/* several rails may be on one switch */
	for (int r = 0; r < job->menu->nrails && !circuit; r++)
		if (job->menu->rails[r].sw == sw->index)
			circuit = circuit_by_ports(job->menu, &job->menu->rails[r], in, b);
	if (circuit && (circuit->state == OCSD_GONE || circuit->state == OCSD_PLANNED)) {
		circuit_adopt(d, sw, circuit, job->menu->rails[circuit->rail - 1].unread,
			      table_has(circuit, table));
		return;
	}
	rail = circuit ? NULL : rail_on(job->menu, sw->index, &number);
	if (!rail)
		return;
	circuit = sw->by_in[in] || sw->leaving[in] ? NULL : stray_create(d, job, sw, number, in, b);
	if (circuit)
		ocsd_circuit_leave(d, circuit);
}

/* Whether a circuit of ours has the patch. */
static bool patch_known(const struct ocsd_circuit *circuit, int in, int out)
{
	for (int p = 0; circuit && p < circuit->npatches; p++)
		if (circuit->patches[p].in == in && circuit->patches[p].out == out)
			return true;
	return false;
}

/* A batch that was on its way when ocsd ended may be done for as long as a command takes. */
static void rails_read(struct ocsd_menu *menu, const struct ocsd_switch *sw)
{
	for (int r = 0; r < menu->nrails; r++) {
		struct ocsd_rail *rail = &menu->rails[r];

		if (rail->sw != sw->index)
			continue;
		rail->late &= rail->unread || ocs_now_ns() < sw->poll.late_until_ns;
		rail->unread = false;
	}
}

void ocsd_menus_adopt(struct ocsd *d, struct ocsd_switch *sw, const struct ocs_table *table)
{
	for (int in = 1; in <= table->size; in++) {
		int out = table->out[in];

		if (out > 0 && out <= 2 * table->size && !patch_known(sw->by_in[in], in, out) &&
		    !patch_known(sw->leaving[in], in, out))
			patch_adopt(d, sw, table, in, out);
	}
	for (struct ocsd_job *job = d->jobs; job; job = job->next)
		if (ocsd_menu_unread_on(job, sw->index)) {
			rails_read(job->menu, sw);
			d->replies.due = true;
		}
}
