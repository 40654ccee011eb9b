/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_MOE_CONTROL_H
#define OCS_MOE_CONTROL_H

/* Decides when which circuits of a region change while a job trains a mixture of experts.  It has no
 * socket, file or clock: rows of gates, beginnings and ends of all-to-alls and answers of the switch
 * come in with the time, exchanges of circuits and plans of all-to-alls come out.
 *
 * Rules:
 * - A circuit on which an all-to-all is in flight is not cut: each all-to-all has a lease of all
 *   circuits of its plan, from its first server's beginning to its last server's end.
 * - Circuits that an exchange does not touch carry on while it is made.
 * - Missing, contradicting or wrong rows, a server that died, a switch that does not answer: the
 *   circuits stay as they are, and plans use those that certainly stand.
 * - Every plan is right for every matrix: it says shares, and packets reach every server. */

#include "src/moe/predict.h"
#include "src/moe/record.h"
#include "src/moe/routes.h"
#include "src/moe/wires.h"

enum ocs_moe_pass { OCS_MOE_FORWARD, OCS_MOE_BACKWARD };

/* An all-to-all.  Forward: the first brings tokens to the experts, the second brings results back.
 * Backward the gradients go the same ways in the same order. */
struct ocs_moe_step {
	int layer;
	int64_t microbatch; /* counted up over the whole run */
	enum ocs_moe_pass pass;
	int second; /* 0 or 1 */
};

struct ocs_moe_control_setup {
	const struct ocs_moe_region *region; /* copied */
	const struct ocs_moe_numa *numa;     /* copied; as many NICs a server as the most ports */
	struct ocs_moe_record_setup record;  /* servers: those of the region */
	double rate;			     /* tokens that one NIC carries in a second */
	double first,
		each;	/* s until one exchanged circuit carries light, and for each further one */
	double timeout; /* s after which an exchange without an answer is given up */
	int predict; /* circuits are also changed before a first all-to-all of the forward pass */
	int relay;   /* plans may use two hops */
	long effort; /* of the search for circuits; 0: a default, well below a millisecond */
};

/* Circuits to cut, then to make. */
struct ocs_moe_order {
	long seq; /* from 1 */
	const struct ocs_moe_wire *cut, *make;
	int ncut, nmake;
};

/* How an all-to-all is to be carried. */
struct ocs_moe_grant {
	const struct ocs_moe_wire *wire; /* circuits that it may use */
	int wires;
	/* For the matrix as known or expected; of a pair's bytes each route gets its share of the
	 * pair's tokens.  A pair without a route takes packets. */
	const struct ocs_moe_routes *routes;
	int expected; /* the matrix was not known but predicted */
};

struct ocs_moe_control_count {
	long exchanges, cut, made; /* orders, and circuits of them */
	long predicted;		   /* of these orders, on a prediction */
	long mispredicted;     /* of those, for circuits that proved slower than what was there */
	long failed, timeouts; /* exchanges */
	long leased;	       /* times that a lease kept an exchange back */
	long kept;	       /* times that what exists was best kept */
	long unknown;	       /* times that rows were missing */
	long stray;	       /* beginnings, ends and answers that fit nothing */
};

struct ocs_moe_control;

/* No circuit stands.  The caller destroys it.  NULL with ERR (OCS_USAGE): a number makes no sense. */
struct ocs_moe_control *ocs_moe_control_create(const struct ocs_moe_control_setup *setup,
					       struct ocs_error *err);
void ocs_moe_control_destroy(struct ocs_moe_control *control);

/* N circuits stand: before the first all-to-all, or after the switch was read.  -1 with ERR: two on
 * one NIC, or a NIC that is not there; nothing has changed then. */
int ocs_moe_control_adopt(struct ocs_moe_control *control, const struct ocs_moe_wire *wires, int n,
			  struct ocs_error *err);

/* A row of a gate at NOW (s, any origin, never earlier than before); like ocs_moe_record_row. */
int ocs_moe_control_row(struct ocs_moe_control *control, int layer, int64_t microbatch, int rank,
			const double *counts, int n, double now, struct ocs_error *err);

/* SERVER is about to begin STEP, or has sent and received all of it.  Doubles change nothing. */
void ocs_moe_control_begin(struct ocs_moe_control *control, const struct ocs_moe_step *step,
			   int server, double now);
void ocs_moe_control_end(struct ocs_moe_control *control, const struct ocs_moe_step *step,
			 int server, double now);

/* The plan of a step that has begun, the same for all servers, valid until its last server's end.
 * NULL: it has not begun, or waits for circuits that are being made (ask again after the answer or
 * the next tick), or more all-to-alls are in flight than are kept: send packets. */
const struct ocs_moe_grant *ocs_moe_control_grant(const struct ocs_moe_control *control,
						  const struct ocs_moe_step *step);

/* The order to give to the switch now, or NULL.  Each is handed out once; valid until its answer. */
const struct ocs_moe_order *ocs_moe_control_order(struct ocs_moe_control *control);

/* The switch has carried out order SEQ. */
void ocs_moe_control_done(struct ocs_moe_control *control, long seq, double now);
/* It has not, or not all of it: of the circuits of the order the N in STAND stand.  STAND NULL: it
 * is not known; their NICs are used no more. */
void ocs_moe_control_failed(struct ocs_moe_control *control, long seq,
			    const struct ocs_moe_wire *stand, int n, double now);

/* SERVER, or the whole job, has died: circuits stay as they are from now on. */
void ocs_moe_control_lost(struct ocs_moe_control *control, int server);

/* Time passes: gives up what takes too long.  At least every timeout / 2. */
void ocs_moe_control_tick(struct ocs_moe_control *control, double now);

/* What servers send each other in STEP, by the rows of its gate; NULL: not all are there.  Valid until the
 * next row or call. */
const struct ocs_moe_demand *ocs_moe_control_matrix(struct ocs_moe_control *control,
						    const struct ocs_moe_step *step);
/* How well the rows of LAYER were foretold so far, each server's by the method chosen for it; *METHOD: that
 * of most servers now.  Returns how many passes were judged. */
long ocs_moe_control_foretold(const struct ocs_moe_control *control, int layer,
			      enum ocs_moe_method *method, struct ocs_moe_error *error);

/* Circuits that stand and are not being cut; returns how many. */
int ocs_moe_control_wires(const struct ocs_moe_control *control, const struct ocs_moe_wire **wires);
const struct ocs_moe_control_count *ocs_moe_control_count(const struct ocs_moe_control *control);
const struct ocs_moe_record_count *ocs_moe_control_rows(const struct ocs_moe_control *control);

#endif
