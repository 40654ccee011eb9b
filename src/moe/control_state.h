/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_MOE_CONTROL_STATE_H
#define OCS_MOE_CONTROL_STATE_H

/* What the files of control.h share. */

#include <stdbool.h>

#include "src/moe/control.h"
#include "src/moe/predict.h"

#define OCS_MOE_STEPS_OPEN 64 /* all-to-alls in flight */

enum ocs_moe_wire_state { OCS_MOE_STANDS, OCS_MOE_CUTTING, OCS_MOE_MAKING };

struct ocs_moe_standing {
	struct ocs_moe_wire wire;
	enum ocs_moe_wire_state state;
	int leases;
};

/* An all-to-all in flight. */
struct ocs_moe_flight {
	struct ocs_moe_step step;
	bool *begun, *ended; /* [servers] */
	int left;	     /* servers that have not ended */
	bool waits;	     /* for the order that is under way */
	struct ocs_moe_wire *wire;
	struct ocs_moe_grant grant;
	struct ocs_moe_routes *routes;
};

/* What comes after the all-to-all with which the last pass ended in one layer. */
struct ocs_moe_successor {
	bool known;
	struct ocs_moe_step step; /* microbatch: how many later */
};

/* Whether changes on a prediction pay in one layer. */
struct ocs_moe_trust {
	struct ocs_moe_circuits *keep, *predicted; /* for the microbatch to come; NULL: none */
	int64_t microbatch;
	bool made;   /* the predicted ones were ordered */
	double gain; /* moving average, of the time with what was there */
	long samples;
};

struct ocs_moe_control {
	struct ocs_moe_control_setup setup;
	int n;
	struct ocs_moe_region *region; /* ports: without those that are broken */
	struct ocs_moe_numa numa;      /* a broken NIC: -1 */
	struct ocs_moe_record *record;
	struct ocs_moe_predictor **predictor; /* [servers] */
	double *total;			      /* [servers] tokens of the last row, 0: none */
	struct ocs_moe_demand *expected;      /* scratch: a predicted matrix */
	struct ocs_moe_demand *turned;	      /* scratch: a matrix transposed */

	struct ocs_moe_standing *wire;
	int wires;
	struct ocs_moe_wire *usable; /* scratch: those that stand */

	struct ocs_moe_order order; /* seq: the last one */
	bool order_open, order_given;
	double order_end, order_deadline; /* s: when it is expected, and given up */
	struct ocs_moe_wire *cut, *make;  /* room for every NIC */

	struct ocs_moe_flight *flight[OCS_MOE_STEPS_OPEN];
	int flights;
	bool next_known;
	struct ocs_moe_step next;	     /* the all-to-all to come */
	struct ocs_moe_step last;	     /* the one that ended last */
	bool any_ended;			     /* LAST is set */
	double last_end;		     /* s */
	struct ocs_moe_successor *successor; /* [layers x 2 passes] after a second all-to-all */
	double *window;			     /* [layers x 2 x 2] s before a step, -1: not seen */
	struct ocs_moe_trust *trust;	     /* [layers] */

	long closed;	  /* all-to-alls */
	long long_closed; /* CLOSED when the long run was last looked at */
	bool frozen;
	struct ocs_moe_control_count count;
};

/* control_wires.c: the circuits that stand, as counts.  MAKING: and those that are being made.  The
 * caller destroys them. */
struct ocs_moe_circuits *ocs_moe_control_circuits(const struct ocs_moe_control *c, bool making);
/* Begins the order that turns what stands into CIRCUITS.  Returns whether there is one: a lease may
 * be in the way, or nothing differs. */
bool ocs_moe_control_exchange(struct ocs_moe_control *c, const struct ocs_moe_circuits *circuits,
			      double now);

/* control_choose.c: whether circuits are changed for c->next; begins the order. */
void ocs_moe_control_choose(struct ocs_moe_control *c, double now);
/* The matrix of STEP, turned as it flows; *EXPECTED: it is a prediction.  Valid until the next row or
 * call. */
const struct ocs_moe_demand *ocs_moe_control_demand(struct ocs_moe_control *c,
						    const struct ocs_moe_step *step, int *expected);
/* All rows of a gate are there: predictors and the account of predictions learn. */
void ocs_moe_control_learn(struct ocs_moe_control *c, int layer, int64_t microbatch);

/* control.c: all-to-alls that wait for the order get their plans. */
void ocs_moe_control_release(struct ocs_moe_control *c);

#endif
