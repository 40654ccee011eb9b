/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_MOE_PREDICT_H
#define OCS_MOE_PREDICT_H

/* What a gate will choose before it has: the circuits of a layer's first all-to-all have to be
 * made before its tokens are counted.  Loads are shares of the tokens: EXPERTS numbers of at least
 * 0 whose sum is 1.  A predictor is for one source, a rank or the whole group, and for all layers
 * of a pass in turn: each is predicted, then observed, 0 to LAYERS - 1, and again. */

enum ocs_moe_method {
	OCS_MOE_UNIFORM,  /* all experts alike */
	OCS_MOE_PREVIOUS, /* as the layer before in this pass */
	OCS_MOE_LAST,	  /* as this layer in the last pass */
	OCS_MOE_AVERAGE,  /* moving average of this layer, halved each pass */
	/* Copilot of the mFabric paper: loads of the layer before times a matrix with columns on the
	 * simplex, fitted to the last passes; regularised by the fit before. */
	OCS_MOE_COPILOT,
	/* The average, and a matrix times by how much the layer before is off its own average:
	 * recursive least squares. */
	OCS_MOE_INNOVATION,
	OCS_MOE_METHODS,
	/* Of all these the one with the least error of late, layer by layer. */
	OCS_MOE_CHOSEN = OCS_MOE_METHODS,
};

struct ocs_moe_predictor;

/* EXPERTS 1 to OCS_MOE_EXPERTS_MAX, LAYERS at least 1.  The caller destroys it. */
#define OCS_MOE_EXPERTS_MAX 512
struct ocs_moe_predictor *ocs_moe_predictor_create(int experts, int layers);
void ocs_moe_predictor_destroy(struct ocs_moe_predictor *predictor);

/* The loads that METHOD expects of LAYER, [experts].  Before anything was seen: all alike. */
void ocs_moe_predict(const struct ocs_moe_predictor *predictor, int layer,
		     enum ocs_moe_method method, double *loads);

/* LOADS, [experts], were those of LAYER; they need not sum up to 1.  What all methods said of it is
 * compared with them first. */
void ocs_moe_observe(struct ocs_moe_predictor *predictor, int layer, const double *loads);

/* How far a method was off, on average over passes. */
#define OCS_MOE_TOP 4
struct ocs_moe_error {
	double difference; /* the sum of the absolute differences (L1), 0 to 2 */
	double top
		[OCS_MOE_TOP]; /* [k - 1]: the share of the K largest experts that it had among its
				  * K largest; with fewer than K experts of all of them */
};

/* MEAN, of COUNT errors, gets the part of ERROR, one of them. */
void ocs_moe_error_add(struct ocs_moe_error *mean, const struct ocs_moe_error *error, int count);

/* Of what METHOD said of LAYER in all passes but the first WARM (of the predictor).  Returns how many
 * passes were counted; with 0 all is 0. */
#define OCS_MOE_WARM 10
long ocs_moe_predict_error(const struct ocs_moe_predictor *predictor, int layer,
			   enum ocs_moe_method method, struct ocs_moe_error *error);

/* The method that OCS_MOE_CHOSEN is at this moment in LAYER. */
enum ocs_moe_method ocs_moe_predict_method(const struct ocs_moe_predictor *predictor, int layer);

/* "uniform", "previous", "last", "average", "copilot", "innovation", "chosen". */
const char *ocs_moe_method_name(enum ocs_moe_method method);

#endif
