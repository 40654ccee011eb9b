/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_RAILS_LEASES_H
#define OCS_RAILS_LEASES_H

/* Who uses the circuits of one rail: how many operations are open on each, and how many open
 * operations send packets that may take it while it stands. */

#include <stdbool.h>

#include "src/rails/circuits.h"

struct ocs_rails_leases {
	const struct ocs_rails_circuits *circuits; /* not owned */
	int *held, *frozen;			   /* by circuit */
	uint64_t *any_held, *any_frozen;	   /* those above 0 */
};

void ocs_rails_leases_init(struct ocs_rails_leases *leases,
			   const struct ocs_rails_circuits *circuits);
void ocs_rails_leases_free(struct ocs_rails_leases *leases);

/* An operation opens or closes on the circuits of SET. */
void ocs_rails_leases_open(struct ocs_rails_leases *leases, const uint64_t *set);
void ocs_rails_leases_close(struct ocs_rails_leases *leases, const uint64_t *set);
/* The same for one that must not see any of them come or go. */
void ocs_rails_leases_freeze(struct ocs_rails_leases *leases, const uint64_t *set);
void ocs_rails_leases_thaw(struct ocs_rails_leases *leases, const uint64_t *set);

/* Whether the circuits of a rail may turn from those of NOW into those of NEXT. */
bool ocs_rails_leases_allow(const struct ocs_rails_leases *leases, const uint64_t *now,
			    const uint64_t *next);

#endif
