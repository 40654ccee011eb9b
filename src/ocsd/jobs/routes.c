/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/ocsd/jobs/routes.h"
#include "src/ocsd/state/menus.h"

#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/util/net.h"
#include "src/util/text.h"

#include <json-c/json.h>
#include <string.h>

#define MILLION INT64_C(1000000)

void ocsd_routes_create(struct ocsd_job *job)
{
	struct ocsd_menu *menu = job->menu;

	if (!job->section->management || job->nodes.count < 2)
		return;
	menu->routes = ocs_calloc(job->nodes.count, sizeof(*menu->routes));
	/* An ocsd before this one may have told them something else. */
	menu->routes_revision = 1;
	for (size_t i = 0; i < job->nodes.count; i++)
		menu->routes[i].wanted = 1;
	for (int r = 0; r < menu->nrails; r++)
		menu->rails[r].leaving.nodes =
			ocs_calloc(job->nodes.count, sizeof(*menu->rails[r].leaving.nodes));
}

static void node_tell(struct ocsd_menu *menu, int node)
{
	menu->routes[node].wanted = menu->routes_revision;
}

static void node_await(struct ocsd_menu *menu, struct ocsd_rail *rail, int node)
{
	if (rail->leaving.nodes[node])
		return;
	rail->leaving.nodes[node] = true;
	rail->leaving.nnodes++;
	node_tell(menu, node);
}

bool ocsd_routes_leave(struct ocsd *d, struct ocsd_job *job, struct ocsd_rail *rail,
		       const char *topo)
{
	struct ocsd_menu *menu = job->menu;
	struct ocs_rails_pairs cut, make;
	struct ocs_error err;

	if (!menu->routes)
		return false;
	strcpy(rail->leaving.from, rail->stands);
	rail->leaving.nnodes = 0;
	memset(rail->leaving.nodes, 0, job->nodes.count * sizeof(*rail->leaving.nodes));
	rail->leaving.revision = ++menu->routes_revision;
	if (!rail->stands[0]) {
		/* Nothing is allowed on the rail, which the nodes have or have not done. */
		for (size_t i = 0; i < job->nodes.count; i++)
			if (menu->routes[i].done < menu->routes[i].wanted)
				node_await(menu, rail, (int)i);
	} else if (ocs_rails_change(&menu->layout, rail->stands, topo, &cut, &make, &err) == 0) {
		for (size_t i = 0; i < cut.count; i++) {
			node_await(menu, rail, cut.items[i].a);
			node_await(menu, rail, cut.items[i].b);
		}
		ocs_rails_pairs_free(&cut);
		ocs_rails_pairs_free(&make);
	}
	if (!rail->leaving.nnodes)
		return false;
	rail->leaving.waits = true;
	rail->leaving.deadline_ns = ocs_now_ns() + d->config->timeouts.routes_ms * MILLION;
	d->loop.nleaving++;
	d->replies.due = true;
	return true;
}

void ocsd_routes_leave_end(struct ocsd *d, struct ocsd_rail *rail)
{
	if (!rail->leaving.waits)
		return;
	rail->leaving.waits = false;
	d->loop.nleaving--;
}

char *ocsd_routes_late(const struct ocsd *d, const struct ocsd_job *job,
		       const struct ocsd_rail *rail)
{
	size_t first = 0;

	while (first + 1 < job->nodes.count && !rail->leaving.nodes[first])
		first++;
	return ocs_asprintf("%s has not taken its routes off the circuits within %d ms%s%zu%s",
			    job->nodes.names[first], d->config->timeouts.routes_ms,
			    rail->leaving.nnodes > 1 ? " (of " : " (", rail->leaving.nnodes,
			    rail->leaving.nnodes > 1 ? " such nodes)" : " such node)");
}

int64_t ocsd_routes_deadline(const struct ocsd *d)
{
	int64_t first_ns = INT64_MAX;

	for (const struct ocsd_job *job = d->jobs; job; job = job->next)
		for (int r = 0; job->menu && r < job->menu->nrails; r++) {
			const struct ocsd_leaving *leaving = &job->menu->rails[r].leaving;

			if (leaving->waits && leaving->deadline_ns < first_ns)
				first_ns = leaving->deadline_ns;
		}
	return first_ns;
}

void ocsd_routes_tell(struct ocsd *d, struct ocsd_job *job, const struct ocsd_rail *rail)
{
	struct ocsd_menu *menu = job->menu;
	struct ocs_rails_pairs cut, make;
	struct ocs_error err;

	if (!menu || !menu->routes)
		return;
	menu->routes_revision++;
	d->replies.due = true;
	if (!rail || !rail->leaving.from[0]) {
		for (size_t i = 0; i < job->nodes.count; i++)
			node_tell(menu, (int)i);
		return;
	}
	if (ocs_rails_change(&menu->layout, rail->leaving.from, rail->stands, &cut, &make, &err))
		return;
	for (size_t i = 0; i < make.count; i++) {
		node_tell(menu, make.items[i].a);
		node_tell(menu, make.items[i].b);
	}
	ocs_rails_pairs_free(&cut);
	ocs_rails_pairs_free(&make);
}

void ocsd_routes_done(struct ocsd *d, struct ocsd_job *job, int node, uint64_t revision)
{
	struct ocsd_menu *menu = job->menu;

	menu->routes[node].done = revision;
	for (int r = 0; r < menu->nrails; r++) {
		struct ocsd_leaving *leaving = &menu->rails[r].leaving;

		if (!leaving->waits || !leaving->nodes[node] || revision < leaving->revision)
			continue;
		leaving->nodes[node] = false;
		if (!--leaving->nnodes)
			d->loop.changes_due = true;
	}
}

bool ocsd_routes_due(const struct ocsd_job *job, int node, uint64_t revision)
{
	return revision < job->menu->routes[node].wanted;
}

struct json_object *ocsd_routes_word(const struct ocsd_job *job)
{
	struct json_object *word = json_object_new_object(), *rails = json_object_new_array();
	const struct ocsd_menu *menu = job->menu;

	for (int r = 0; r < menu->nrails; r++) {
		const struct ocsd_rail *rail = &menu->rails[r];
		struct json_object *row = json_object_new_object();
		/* Nothing changes what a job without phases has. */
		const char *stands = rail->changing		    ? rail->leaving.from :
				     menu->phases == OCS_PHASES_OFF ? rail->topo :
								      rail->stands;

		ocs_field_add_number(row, OCS_FIELD_RAIL, r);
		ocs_field_add_text(row, OCS_FIELD_TOPO, stands);
		ocs_field_add_text(row, OCS_FIELD_NEXT, rail->changing ? rail->topo : stands);
		json_object_array_add(rails, row);
	}
	ocs_field_add_number(word, OCS_FIELD_REVISION, (int64_t)menu->routes_revision);
	json_object_object_add(word, OCS_FIELD_RAILS, rails);
	return word;
}
