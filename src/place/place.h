/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_PLACE_PLACE_H
#define OCS_PLACE_PLACE_H

/* Lays shapes on the free XPUs of a torus or static section. */

#include "src/fabric/occupancy.h"
#include "src/fold/shape.h"

struct json_object;

struct ocs_xpu {
	int cube;
	int at[OCS_AXES];
};

/* A circuit from the + port of cube FROM to the - port of cube TO, both of
 * dimension DIM and face position (POS[0], POS[1]) (the two other coordinates
 * in x, y, z order). */
struct ocs_circuit {
	int dim;
	int pos[2];
	int from, to;
};

struct ocs_placement {
	const struct ocs_section *section;
	struct ocs_shape shape;
	struct ocs_xpu *xpus; /* shape.xpus, in row-major rank order */
	struct ocs_circuit *circuits;
	int ncircuits;
	int *cubes; /* ascending, each once */
	int ncubes;
	int *nodes; /* indexes into fabric->nodes, ascending */
	int nnodes;
	char *compact; /* what ocs_placement_decode reads back: printable,
					 * no blank, at most OCS_COMPACT_MAX bytes */
};
#define OCS_COMPACT_MAX 8192

/* Reusable working memory of the engine (catalogues of foldings, buffers): one
 * per thread and section; no allocation in the decision path once warm.  A shape is warm
 * when it was placed before on as full a machine: until then a decision may make parts of
 * its catalogue (ocs_place_work.catalogues), a few milliseconds each. */
struct ocs_placer;
struct ocs_placer *ocs_placer_create(const struct ocs_fabric *fabric,
				     const struct ocs_section *section);
void ocs_placer_destroy(struct ocs_placer *placer);
/* How much memory what it knows about shapes may take (OCS_PLACER_BYTES, unless this is called): what was
 * not asked for the longest is forgotten, and made again when it is. */
#define OCS_PLACER_BYTES (64UL << 20)
void ocs_placer_limit_set(struct ocs_placer *placer, size_t bytes);

/* Places SHAPE on the free XPUs of OCCUPANCY using exactly NODE_COUNT nodes (0:
 * the smallest count any folding on a healthy, empty section needs).
 * Deterministic, and stable: placing again on exactly the nodes of the result
 * gives the same result.  Fewest cubes first, then fewest circuits, then cubes
 * already broken.
 * Returns a placement (free with ocs_placement_destroy), or NULL with ERR: OCS_NOT_NOW,
 * or OCS_NEVER as ocs_place_node_count gives it.  Why, says src/advice/reason.h. */
struct ocs_placement *ocs_place(struct ocs_placer *placer, const struct ocs_occupancy *occupancy,
				const struct ocs_shape *shape, int node_count,
				struct ocs_error *err);

/* What the last ocs_place did; a count, so that decisions can be compared on any machine
 * at any load.  Both its passes (the decision and its repetition on the chosen nodes) are
 * in it. */
struct ocs_place_work {
	long candidates; /* foldings at an alignment that were looked at */
	long words;	 /* words of 64 XPUs or ports (static section: rows of up to 32)
				 * compared with what is free */
	long searched;	 /* where no box fits: edges of rings that were looked at */
	bool bounded;	 /* a bound on the work cut it short: of the boxes that fit not
				 * all were compared, or a search gave up */
	int catalogues;	 /* made because the shape was new or long not asked for, or
				 * continued because nothing that was there had room */
};
void ocs_placer_work(const struct ocs_placer *placer, struct ocs_place_work *work);

/* The smallest number of nodes a placement of SHAPE needs on a healthy, empty
 * section.  Returns it (cached), or -1 with ERR OCS_NEVER. */
int ocs_place_node_count(struct ocs_placer *placer, const struct ocs_shape *shape,
			 struct ocs_error *err);

void ocs_placement_destroy(struct ocs_placement *placement);

/* As doc/placement.md defines it, edge by edge; shares no code with ocs_place.  OCCUPANCY may
 * be NULL (skip "free and healthy").  Returns 0, or -1 with ERR naming the first
 * fault ("edge (0,3)-(0,0): ..."). */
int ocs_placement_verify(const struct ocs_fabric *fabric, const struct ocs_occupancy *occupancy,
			 const struct ocs_placement *placement, struct ocs_error *err);

/* Expands what placement->compact holds.  Refuses anything malformed.  Returns
 * NULL with ERR. */
struct ocs_placement *ocs_placement_decode(struct ocs_placer *placer, const char *compact,
					   struct ocs_error *err);

/* The JSON of doc/placement.md.  from_json checks names and types
 * only; run ocs_placement_verify on the result. */
struct json_object *ocs_placement_to_json(const struct ocs_fabric *fabric,
					  const struct ocs_placement *placement);
/* Adds "orders" to the JSON of PLACEMENT: for each dimension longer than 1 the ranks along each of its
 * rings or lines.  Programs of a job want them; what places a shape says it without. */
void ocs_placement_orders_add(struct json_object *json, const struct ocs_placement *placement);
struct ocs_placement *ocs_placement_from_json(const struct ocs_fabric *fabric,
					      struct json_object *json, struct ocs_error *err);

#endif
