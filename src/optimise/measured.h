/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OPTIMISE_MEASURED_H
#define OCS_OPTIMISE_MEASURED_H

/* Tables of measured times of operators, as FlexFlow's simulator for TopoOpt writes them:
 *
 *   {"batch_size": 4096, "ngpus": 16, "measurements": [
 *     {"name": "Dense_4096_4096", "pc_str": "2-1-16", "fw_time": 0.174, "bw_time": 0.3}]}
 *
 * batch_size is that of the step, pc_str says into how many parts each dimension was divided, that of the
 * samples last, and the times in ms are those of one of the 4 GPUs of a server with its part. */

#include "src/model/strategy.h"

#define OCS_OPTIMISE_MEASURED_GPUS 4

struct ocs_optimise_measured {
	double *forward_ms, *backward_ms; /* per operator of the model, 0 where there is none */
	int known;			  /* operators that have times */
};

/* The times of FILE for the operators of MODEL (their `measured` names), for the batch of one GPU
 * (embeddings: of a step), SPEED times as fast.  0, and the caller frees; or -1 with ERR: no such table, or
 * it knows none of the operators. */
int ocs_optimise_measured_read(const char *file, const struct ocs_model *model, double speed,
			       struct ocs_optimise_measured *measured, struct ocs_error *err);
/* The same for TEXT of SOURCE. */
int ocs_optimise_measured_parse(const char *text, const char *source, const struct ocs_model *model,
				double speed, struct ocs_optimise_measured *measured,
				struct ocs_error *err);
void ocs_optimise_measured_free(struct ocs_optimise_measured *measured);

#endif
