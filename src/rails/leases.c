/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/rails/leases.h"

#include <stdlib.h>

#include "src/rails/rules.h"
#include "src/util/text.h"

void ocs_rails_leases_init(struct ocs_rails_leases *leases,
			   const struct ocs_rails_circuits *circuits)
{
	*leases = (struct ocs_rails_leases){
		.circuits = circuits,
		.held = ocs_calloc(circuits->menu.count + 1, sizeof(int)),
		.frozen = ocs_calloc(circuits->menu.count + 1, sizeof(int)),
		.any_held = ocs_rails_set_create(circuits),
		.any_frozen = ocs_rails_set_create(circuits),
	};
}

void ocs_rails_leases_free(struct ocs_rails_leases *leases)
{
	free(leases->held);
	free(leases->frozen);
	free(leases->any_held);
	free(leases->any_frozen);
}

/* Adds BY to the counts of the circuits of SET; ANY keeps those above 0. */
static void counts_add(const struct ocs_rails_circuits *circuits, int *counts, uint64_t *any,
		       const uint64_t *set, int by)
{
	for (size_t word = 0; word < circuits->words; word++) {
		for (uint64_t left = set[word]; left; left &= left - 1) {
			size_t circuit = word * 64 + __builtin_ctzll(left);

			counts[circuit] += by;
			if (counts[circuit] < 0)
				abort();
			if (!counts[circuit])
				any[word] &= ~(UINT64_C(1) << (circuit % 64));
			else
				ocs_rails_set_add(any, circuit);
		}
	}
}

void ocs_rails_leases_open(struct ocs_rails_leases *leases, const uint64_t *set)
{
	counts_add(leases->circuits, leases->held, leases->any_held, set, 1);
}

void ocs_rails_leases_close(struct ocs_rails_leases *leases, const uint64_t *set)
{
	counts_add(leases->circuits, leases->held, leases->any_held, set, -1);
}

void ocs_rails_leases_freeze(struct ocs_rails_leases *leases, const uint64_t *set)
{
	counts_add(leases->circuits, leases->frozen, leases->any_frozen, set, 1);
}

void ocs_rails_leases_thaw(struct ocs_rails_leases *leases, const uint64_t *set)
{
	counts_add(leases->circuits, leases->frozen, leases->any_frozen, set, -1);
}

bool ocs_rails_leases_allow(const struct ocs_rails_leases *leases, const uint64_t *now,
			    const uint64_t *next)
{
	for (size_t i = 0; i < leases->circuits->words; i++) {
		if (OCS_RAILS_RULE(LEASES) && leases->any_held[i] & ~next[i])
			return false;
		if (OCS_RAILS_RULE(FROZEN) && leases->any_frozen[i] & (now[i] ^ next[i]))
			return false;
	}
	return true;
}
