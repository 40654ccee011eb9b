/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_MOE_EXCHANGE_H
#define OCS_MOE_EXCHANGE_H

/* Circuits for a fixed time T: whether all can be over by then.  With T fixed the value of the c-th
 * circuit of a pair does not depend on any other circuit: it carries what is left of the pair's
 * tokens, at most T of them.  Each direction of each server (a side) needs a sum of such values;
 * what it lacks is to become zero.  An exchange of two circuits touches four servers, so that it is
 * judged in a few additions. */

#include <stdbool.h>

#include "src/moe/allocate.h"

#define OCS_MOE_NOBODY (-1)
#define OCS_MOE_LACK 1e-9 /* of T; less is none */

/* What exchanges do to the sides of one server. */
struct ocs_moe_sides {
	double sent, received;
};

/* A circuit of one server that may go for another one. */
struct ocs_moe_end {
	int server;		  /* at its other end; OCS_MOE_NOBODY: a port is left */
	double gain;		  /* of weighted lack, for the server itself */
	struct ocs_moe_sides far; /* what its end does to the other server */
};

struct ocs_moe_search {
	const struct ocs_moe_request *request;
	struct ocs_moe_circuits *circuits; /* as they are at this moment */
	int n;
	const double *sent; /* [n x n] the demand */
	double *received;   /* [n x n] the same transposed: row i is what server i receives */
	int *ports;	    /* [n] left */
	double t;
	/* Sides: 2 i is what server i sends, 2 i + 1 what it receives. */
	double *need;		 /* [2n] what circuits have to carry */
	double *carry;		 /* [2n] what they carry */
	double *weight;		 /* [2n] */
	struct ocs_moe_end *end; /* [2n] of the pair of servers that is looked at */
	long effort;		 /* exchanges left to look at */
	unsigned int tries;	 /* of annealing: each draws other numbers */
	int cut;		 /* circuits of request->keep that are not there */
};

/* I and J are joined once more, for a circuit between I and K and one between J and L; what these
 * two lose joins them, if they are two.  OCS_MOE_NOBODY for K or L: that server has a port left. */
struct ocs_moe_exchange {
	int i, j, k, l;
	double gain; /* of weighted lack */
};

/* Starts from REQUEST and a copy of CIRCUITS; ocs_moe_search_free frees what is in S. */
void ocs_moe_search_init(struct ocs_moe_search *s, const struct ocs_moe_request *request,
			 const struct ocs_moe_circuits *circuits);
void ocs_moe_search_free(struct ocs_moe_search *s);

/* CIRCUITS become those that are searched from. */
void ocs_moe_search_restore(struct ocs_moe_search *s, const struct ocs_moe_circuits *circuits);
/* Sets the time; what each side needs and carries follows, and all weigh the same. */
void ocs_moe_search_time(struct ocs_moe_search *s, double t);

/* What circuit number C (from 1) of a pair that sends D carries until T. */
double ocs_moe_circuit_value(double d, int c, double t);
/* What SIDE lacks if it carries CARRY, times its weight. */
double ocs_moe_side_lack(const struct ocs_moe_search *s, int side, double carry);
/* The side that lacks most, or -1 if none lacks anything. */
int ocs_moe_side_worst(const struct ocs_moe_search *s);

/* Whether no more of request->keep is cut after E than may be. */
bool ocs_moe_exchange_allowed(const struct ocs_moe_search *s, const struct ocs_moe_exchange *e);
/* Sets e->gain; costs one of s->effort. */
void ocs_moe_exchange_judge(struct ocs_moe_search *s, struct ocs_moe_exchange *e);
/* The exchange that gains most of all that join I and J goes into BEST if it gains more; what I and J lose, and what
 * that does to them, is weighed once for all.  Costs one of s->effort for each that is allowed. */
void ocs_moe_exchange_best(struct ocs_moe_search *s, int i, int j, struct ocs_moe_exchange *best);
void ocs_moe_exchange_make(struct ocs_moe_search *s, const struct ocs_moe_exchange *e);

/* search.c: whether circuits for time T were found before the effort fell below UNTIL, by always
 * helping the side that lacks most. */
bool ocs_moe_time_reach(struct ocs_moe_search *s, double t, long until);
/* anneal.c: the same by simulated annealing: exchanges at random, those that make it worse ever
 * more seldom.  Finds what the other cannot, for more effort. */
bool ocs_moe_time_anneal(struct ocs_moe_search *s, double t, long until);

#endif
