/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_PLUGINS_CLI_FILTER_MODEL_H
#define OCS_PLUGINS_CLI_FILTER_MODEL_H

/* --ocs-model: `ocsctl optimise` finds how a model is spread over the nodes of a job.  It runs as
 * the user, where the user submits; slurmctld sees only the shape or the demand. */

struct ocs_error;

struct ocs_model_answer {
	char *shape;	/* as --shape takes it, or NULL: a direct fabric */
	char *demand;	/* base64, for a direct fabric, or NULL */
	char *strategy; /* "pp:2,dp:4,tp:8" over GPUs */
	char *told;	/* one line for the user */
};

/* Spreads MODEL (a file or a name) over NODES nodes of PARTITION, described in FABRIC, the path of
 * ocs.yaml.  0, and the caller frees what ANSWER has; or -1 with ERR: no such model, it does not
 * fit, the partition has no circuits. */
int ocs_model_ask(const char *fabric, const char *partition, const char *model, int nodes,
		  struct ocs_model_answer *answer, struct ocs_error *err);
void ocs_model_answer_free(struct ocs_model_answer *answer);

/* SHAPE, over GPUs, so that its last dimensions fill nodes of XPUS accelerators: the dimension that
 * crosses the edge of a node is divided there, its inner part is called "local".  The caller frees
 * it.  NULL with ERR (OCS_USAGE): it cannot be divided so. */
char *ocs_model_shape_fit(const char *shape, int xpus, struct ocs_error *err);

#endif
