/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_MOE_PREDICT_FIT_H
#define OCS_MOE_PREDICT_FIT_H

/* The two methods of predict.h that fit a matrix.  Both for one layer; X is about the layer
 * before, Y about this one, [experts] each. */

struct ocs_moe_copilot;
struct ocs_moe_copilot *ocs_moe_copilot_create(int experts);
void ocs_moe_copilot_destroy(struct ocs_moe_copilot *copilot);
/* Loads X were followed by loads Y: takes them into the window and fits anew. */
void ocs_moe_copilot_learn(struct ocs_moe_copilot *copilot, const double *x, const double *y);
/* Y from X: shares if X are. */
void ocs_moe_copilot_apply(const struct ocs_moe_copilot *copilot, const double *x, double *y);

/* Differences from averages, which may be negative. */
struct ocs_moe_innovation;
struct ocs_moe_innovation *ocs_moe_innovation_create(int experts);
void ocs_moe_innovation_destroy(struct ocs_moe_innovation *innovation);
void ocs_moe_innovation_learn(struct ocs_moe_innovation *innovation, const double *x,
			      const double *y);
/* Adds what is expected to Y. */
void ocs_moe_innovation_apply(const struct ocs_moe_innovation *innovation, const double *x,
			      double *y);

#endif
