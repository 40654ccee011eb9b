/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/rails/circuits.h"

#include <stdlib.h>
#include <string.h>

#include "src/rails/internal.h"
#include "src/util/error.h"
#include "src/util/text.h"

#define KNOWN 16

struct ocs_rails_topology_set {
	char topology[OCS_RAILS_TOPOLOGY];
	uint64_t *set;
};

static int pair_compare(const void *left, const void *right)
{
	const struct ocs_rails_pair *a = left, *b = right;
	int by[] = { a->a - b->a, a->a_port - b->a_port, a->b - b->b, a->b_port - b->b_port };

	for (int i = 0; i < 4; i++)
		if (by[i])
			return by[i];
	return 0;
}

struct ocs_rails_circuits *ocs_rails_circuits_create(const struct ocs_rails_layout *layout,
						     struct ocs_error *err)
{
	struct ocs_rails_circuits *circuits;

	if (ocs_rails_layout_check(layout, err) < 0)
		return NULL;
	circuits = ocs_calloc(1, sizeof(*circuits));
	circuits->layout = *layout;
	if (ocs_rails_menu_pairs(layout, &circuits->menu, err) < 0) {
		free(circuits);
		return NULL;
	}
	circuits->words = circuits->menu.count / 64 + 1;
	circuits->known = ocs_calloc(KNOWN, sizeof(*circuits->known));
	return circuits;
}

void ocs_rails_circuits_destroy(struct ocs_rails_circuits *circuits)
{
	if (!circuits)
		return;
	for (int i = 0; i < KNOWN; i++)
		free(circuits->known[i].set);
	free(circuits->known);
	ocs_rails_pairs_free(&circuits->menu);
	free(circuits);
}

uint64_t *ocs_rails_set_create(const struct ocs_rails_circuits *circuits)
{
	return ocs_calloc(circuits->words, sizeof(uint64_t));
}

/* A pair that is not in the menu would be one that no lease protects: it cannot be left out. */
static size_t circuit_find(const struct ocs_rails_circuits *circuits,
			   const struct ocs_rails_pair *pair)
{
	const struct ocs_rails_pair *found = bsearch(
		pair, circuits->menu.items, circuits->menu.count, sizeof(*pair), pair_compare);

	if (!found)
		abort();
	return found - circuits->menu.items;
}

const uint64_t *ocs_rails_set_of(struct ocs_rails_circuits *circuits, const char *topology)
{
	struct ocs_rails_topology_set *known;
	struct ocs_rails_pairs pairs;

	for (int i = 0; i < KNOWN; i++)
		if (circuits->known[i].set && strcmp(circuits->known[i].topology, topology) == 0)
			return circuits->known[i].set;
	if (ocs_rails_topology_pairs(&circuits->layout, topology, &pairs, NULL) < 0)
		abort();
	known = &circuits->known[circuits->next];
	circuits->next = (circuits->next + 1) % KNOWN;
	strcpy(known->topology, topology);
	free(known->set);
	known->set = ocs_rails_set_create(circuits);
	for (size_t i = 0; i < pairs.count; i++)
		ocs_rails_set_add(known->set, circuit_find(circuits, &pairs.items[i]));
	ocs_rails_pairs_free(&pairs);
	return known->set;
}

static bool need_covers(const struct ocs_rails_circuits *circuits,
			const struct ocs_rails_need *need, int node)
{
	int stage = ocs_rails_stage(&circuits->layout, node);

	/* a line may run over the end */
	return need->first <= need->last ? stage >= need->first && stage <= need->last :
					   stage >= need->first || stage <= need->last;
}

void ocs_rails_set_needed(struct ocs_rails_circuits *circuits, const struct ocs_rails_need *need,
			  const int *members, int count, uint64_t *set)
{
	char topology[OCS_RAILS_TOPOLOGY];
	const uint64_t *all;
	bool *reached, grows = true;

	memset(set, 0, circuits->words * sizeof(*set));
	if (need->kind != OCS_RAILS_STAGE && need->kind != OCS_RAILS_LINE)
		return;
	ocs_rails_topology_first(&circuits->layout, topology);
	ocs_rails_topology_meet(&circuits->layout, topology, need, topology);
	all = ocs_rails_set_of(circuits, topology);
	reached = ocs_calloc(ocs_rails_layout_nodes(&circuits->layout), sizeof(*reached));
	for (int i = 0; i < count; i++)
		reached[members[i]] = true;
	while (grows) {
		grows = false;
		for (size_t i = 0; i < circuits->menu.count; i++) {
			const struct ocs_rails_pair *pair = &circuits->menu.items[i];

			if (!ocs_rails_set_has(all, i) || ocs_rails_set_has(set, i) ||
			    (!reached[pair->a] && !reached[pair->b]) ||
			    !need_covers(circuits, need, pair->a) ||
			    !need_covers(circuits, need, pair->b))
				continue;
			ocs_rails_set_add(set, i);
			reached[pair->a] = reached[pair->b] = grows = true;
		}
	}
	free(reached);
}

void ocs_rails_set_between(const struct ocs_rails_circuits *circuits, const int *members, int count,
			   uint64_t *set)
{
	bool *member = ocs_calloc(ocs_rails_layout_nodes(&circuits->layout), sizeof(*member));

	memset(set, 0, circuits->words * sizeof(*set));
	for (int i = 0; i < count; i++)
		member[members[i]] = true;
	for (size_t i = 0; i < circuits->menu.count; i++)
		if (member[circuits->menu.items[i].a] && member[circuits->menu.items[i].b])
			ocs_rails_set_add(set, i);
	free(member);
}
