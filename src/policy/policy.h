/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_POLICY_POLICY_H
#define OCS_POLICY_POLICY_H

/* Placement policies: the published ones and ours, behind one call. */

#include "src/policy/routes.h"

/* One per thread and section. */
struct ocs_policy;

/* NAME:
 *   best        ocs_place
 *   firstfit    the shape as it is, first free box
 *   folding     one of the published foldings, first free box
 *   reconfig    the shape as it is, cut into pieces of cubes, first cubes that fit
 *   rfold       one of the published foldings, cut into pieces of cubes
 *   published-reconfig  what the published program accepts as reconfig: pieces whose
 *               face positions need not match; these are no placements, and
 *               ocs_policy_verifiable says so
 *   best-effort best; where that finds nothing, XPUs whose edges share links of the job
 *               (ocs_policy_routes_take); judged by ocs_routes_verify then
 *   scratch     as if the running jobs moved for nothing: a job starts if best finds room,
 *               as they lie or with all laid anew, the largest first.  No placements; each
 *               call must be given what runs then and hold what it answers, as first come,
 *               first served does (not backfill)
 *   unconstrained  any free XPUs, no links at all: the ceiling
 * firstfit and folding are for static sections, reconfig and rfold for torus ones.
 * LENIENT: where the rings of a shape cannot close (best: on an empty section; others:
 * with the published rules), its dimensions may be lines; the shape of the placement
 * says which are.
 * Returns NULL with ERR (OCS_USAGE).  FABRIC and SECTION must outlive it. */
struct ocs_policy *ocs_policy_create(const struct ocs_fabric *fabric,
				     const struct ocs_section *section, const char *name,
				     bool lenient, struct ocs_error *err);
void ocs_policy_destroy(struct ocs_policy *policy);

/* As ocs_place (free with ocs_placement_destroy; NULL with OCS_NEVER or OCS_NOT_NOW). */
struct ocs_placement *ocs_policy_place(struct ocs_policy *policy,
				       const struct ocs_occupancy *occupancy,
				       const struct ocs_shape *shape, struct ocs_error *err);

/* Best effort: how many edges a link may carry (2, unless this is called before the first
 * shape is asked for). */
#define OCS_POLICY_LOAD_MAX 1000
void ocs_policy_load_set(struct ocs_policy *policy, int load);
/* How much memory what is known about shapes may take, nearly (OCS_POLICY_BYTES, unless
 * this is called): what was not asked for the longest is forgotten and made again when it
 * is. */
#define OCS_POLICY_BYTES (64UL << 20)
void ocs_policy_bytes_set(struct ocs_policy *policy, size_t bytes);
/* How the edges of the last placement travel; NULL if each has a link of its own.  They
 * are the caller's then (ocs_routes_destroy). */
struct ocs_routes *ocs_policy_routes_take(struct ocs_policy *policy);

/* What the last ocs_policy_place did where the policy is best (others: zero). */
void ocs_policy_work(const struct ocs_policy *policy, struct ocs_place_work *work);

/* Whether an empty section takes SHAPE.  Prepares what a decision needs, so that the
 * next ocs_policy_place is a warm one where the fewest cubes do.  Cached. */
bool ocs_policy_possible(struct ocs_policy *policy, const struct ocs_shape *shape);

/* Whether SHAPE was asked before. */
bool ocs_policy_known(struct ocs_policy *policy, const struct ocs_shape *shape);

/* Whether the placements are ones that ocs_placement_verify accepts, or, where there are
 * routes, ocs_routes_verify. */
bool ocs_policy_verifiable(const struct ocs_policy *policy);

#endif
