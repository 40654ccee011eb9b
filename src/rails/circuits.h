/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_RAILS_CIRCUITS_H
#define OCS_RAILS_CIRCUITS_H

/* The circuits that a rail of a job may have, numbered in the order of ocs_rails_menu_pairs, and
 * sets of them.  A set is an array of WORDS words; it is never NULL. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/rails/menu.h"

struct ocs_error;

struct ocs_rails_circuits {
	struct ocs_rails_layout layout;
	struct ocs_rails_pairs menu;
	size_t words;
	struct ocs_rails_topology_set *known; /* a ring buffer of sets that were asked for */
	int next;
};

/* Returns NULL with ERR where LAYOUT cannot be served.  Freed by ocs_rails_circuits_destroy, which
 * takes NULL, too. */
struct ocs_rails_circuits *ocs_rails_circuits_create(const struct ocs_rails_layout *layout,
						     struct ocs_error *err);
void ocs_rails_circuits_destroy(struct ocs_rails_circuits *circuits);

/* An empty set, which the caller frees. */
uint64_t *ocs_rails_set_create(const struct ocs_rails_circuits *circuits);
/* The circuits of TOPOLOGY, one of the menu.  Valid until fifteen other topologies were asked for. */
const uint64_t *ocs_rails_set_of(struct ocs_rails_circuits *circuits, const char *topology);

/* Puts into SET the circuits that the COUNT nodes MEMBERS use when a topology meets NEED: of the
 * stages of NEED, all circuits over which a member reaches others. */
void ocs_rails_set_needed(struct ocs_rails_circuits *circuits, const struct ocs_rails_need *need,
			  const int *members, int count, uint64_t *set);
/* Puts into SET all circuits of the menu between two of MEMBERS. */
void ocs_rails_set_between(const struct ocs_rails_circuits *circuits, const int *members, int count,
			   uint64_t *set);

static inline bool ocs_rails_set_has(const uint64_t *set, size_t circuit)
{
	return set[circuit / 64] >> (circuit % 64) & 1;
}

static inline void ocs_rails_set_add(uint64_t *set, size_t circuit)
{
	set[circuit / 64] |= UINT64_C(1) << (circuit % 64);
}

/* Whether every circuit of PART is in WHOLE. */
static inline bool ocs_rails_set_within(const struct ocs_rails_circuits *circuits,
					const uint64_t *part, const uint64_t *whole)
{
	for (size_t i = 0; i < circuits->words; i++)
		if (part[i] & ~whole[i])
			return false;
	return true;
}

#endif
