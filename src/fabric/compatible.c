/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Whether a new description leaves a job what it has. */

#include "src/fabric/fabric.h"

#include <stdlib.h>
#include <string.h>

#include "src/util/error.h"
#include "src/util/text.h"

/* An allocation under the description that it was made for, and under the new one. */
struct change {
	const struct ocs_fabric *before, *after;
	const struct ocs_section *old, *new;
	const struct ocs_holding *job;
	struct ocs_error *err;
};

static int change_refuse(const struct change *c, const char *kind, const char *name)
{
	return ocs_error_set(c->err, OCS_USAGE,
			     "%s: job %u uses %s %s, which is described "
			     "differently or not at all now; keep it until the job has ended",
			     c->after->source, c->job->job, kind, name);
}

static bool same_switch(const struct change *c, int before)
{
	const struct ocs_switch *old = &c->before->switches[before], *new;
	int index = ocs_fabric_switch(c->after, old->name);

	if (index < 0)
		return false;
	new = &c->after->switches[index];
	return new->size == old->size &&new->bidi == old->bidi;
}

/* FOUND: what ocs_section_*_port returned under the old and the new description. */
static bool same_port(const struct change *c, int found, const struct ocs_port *old, int found_now,
		      const struct ocs_port *new)
{
	if (found || found_now)
		return found == found_now;
	return old->port == new->port &&same_switch(c, old->sw) &&
	       strcmp(c->before->switches[old->sw].name, c->after->switches[new->sw].name) == 0;
}

static int check_cube(const struct change *c, int cube)
{
	const char *name = c->old->cube_names[cube];

	/* Placements know cubes by their number. */
	if (cube >= c->new->ncubes || strcmp(c->new->cube_names[cube], name) != 0)
		return change_refuse(c, "cube", name);
	for (int dim = 0; dim < OCS_AXES; dim++)
		for (int a = 0; a < c->old->edge[0]; a++)
			for (int b = 0; b < c->old->edge[0]; b++)
				for (int sign = OCS_PLUS; sign <= OCS_MINUS; sign++) {
					struct ocs_port old, new;
					int rc = ocs_section_torus_port(c->before, c->old, cube,
									dim, a, b, sign, &old);
					int rc_now = ocs_section_torus_port(c->after, c->new, cube,
									    dim, a, b, sign, &new);

					if (!same_port(c, rc, &old, rc_now, &new))
						return change_refuse(c, "the switch ports of cube",
								     name);
				}
	return 0;
}

static int check_server(const struct change *c, const struct ocs_node *old,
			const struct ocs_node *new)
{
	for (int i = 0; i < c->old->degree; i++) {
		struct ocs_port before, after;
		int rc, rc_now;

		for (int p = 0; p < c->old->nic_ports; p++) {
			rc = ocs_section_nic_port(c->old, old->server, i, p, &before);
			rc_now = ocs_section_nic_port(c->new, new->server, i, p, &after);
			if (!same_port(c, rc, &before, rc_now, &after))
				return change_refuse(c, "the switch ports of node", old->name);
		}
		rc = ocs_section_set_port(c->old, 1, old->server, i, &before);
		rc_now = ocs_section_set_port(c->new, 1, new->server, i, &after);
		if (!same_port(c, rc, &before, rc_now, &after))
			return change_refuse(c, "the look-ahead ports of node", old->name);
		rc = ocs_section_select_port(c->old, old->server, i, &before);
		rc_now = ocs_section_select_port(c->new, new->server, i, &after);
		if (!same_port(c, rc, &before, rc_now, &after))
			return change_refuse(c, "the 1x2 switches of node", old->name);
	}
	return 0;
}

static int check_node(const struct change *c, const char *name)
{
	const struct ocs_node *old = ocs_fabric_node(c->before, name);
	const struct ocs_node *new = ocs_fabric_node(c->after, name);

	if (!old)
		return 0;
	if (!new || new->section != c->new->index)
		return change_refuse(c, "node", name);
	if (old->cube < 0)
		return check_server(c, old, new);
	if (strcmp(c->old->cube_names[old->cube], c->new->cube_names[new->cube]) != 0 ||
	    memcmp(old->origin, new->origin, sizeof(old->origin)) != 0)
		return change_refuse(c, "node", name);
	return 0;
}

static int check_section(const struct change *c)
{
	const struct ocs_section *old = c->old, *new = c->new;

	if (!new || new->kind != old->kind || new->degree != old->degree ||
	    new->directed != old->directed || new->nic_ports != old->nic_ports ||
	    memcmp(new->edge, old->edge, sizeof(old->edge)) != 0 ||
	    memcmp(new->tile, old->tile, sizeof(old->tile)) != 0 || !new->ports != !old->ports)
		return change_refuse(c, "section", old->name);
	return 0;
}

/* Nodes and, where they have switches, the cubes that they are part of. */
static int check_parts(const struct change *c)
{
	bool *seen = ocs_calloc((size_t)c->old->ncubes + 1, sizeof(*seen));
	int rc = 0;

	for (size_t i = 0; i < c->job->nnodes && !rc; i++) {
		const struct ocs_node *node = ocs_fabric_node(c->before, c->job->nodes[i]);

		rc = check_node(c, c->job->nodes[i]);
		if (rc || !node || node->cube < 0 || seen[node->cube] || !c->old->ports)
			continue;
		seen[node->cube] = true;
		rc = check_cube(c, node->cube);
	}
	free(seen);
	return rc;
}

int ocs_fabric_keeps(const struct ocs_fabric *before, const struct ocs_fabric *after,
		     const struct ocs_holding *job, struct ocs_error *err)
{
	struct change change = { .before = before, .after = after, .job = job, .err = err };

	for (size_t i = 0; i < job->nswitches; i++)
		if (!same_switch(&change, job->switches[i]))
			return change_refuse(&change, "switch",
					     before->switches[job->switches[i]].name);
	change.old = job->section ? ocs_fabric_section_named(before, job->section) : NULL;
	if (!change.old)
		return 0;
	change.new = ocs_fabric_section_named(after, job->section);
	return check_section(&change) ? -1 : check_parts(&change);
}
