/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_MODEL_MODEL_H
#define OCS_MODEL_MODEL_H

/* Models of training as data: a YAML file lists the operators of a model in order, and
 * from it follow parameters, FLOPs and bytes.  doc/models.md describes the file. */

#include <stdbool.h>
#include <stddef.h>

struct ocs_error;

enum ocs_model_kind {
	OCS_MODEL_DENSE,
	OCS_MODEL_CONVOLUTION,
	OCS_MODEL_EMBEDDING,
	OCS_MODEL_ATTENTION,
	OCS_MODEL_GATED, /* the three matrices of a gated feed-forward layer */
	OCS_MODEL_EXPERTS,
	OCS_MODEL_NORM,
	OCS_MODEL_CONCAT,
	OCS_MODEL_OTHER, /* parameters, FLOPs and outputs as the file says */
	OCS_MODEL_KINDS,
};

/* One operator.  Counts are elements, not bytes, and "per sample" is per sequence where
 * the model has one. */
struct ocs_model_operator {
	char *name;
	enum ocs_model_kind kind;
	int line;		  /* of the file */
	int joins;		  /* how many operators it reads from; 0: the data of the step */
	int consumer;		  /* the operator that reads it, always a later one; -1: the last */
	int layer;		  /* which pass of the outermost repeat it is in, from 1; 0: none */
	double parameters;	  /* all, those of experts included */
	double expert_parameters; /* of the routed experts */
	int experts;		  /* that tokens choose among, 0: none */
	double flops;		  /* of the forward pass, per sample */
	double expert_flops;	  /* of these, in routed experts */
	double outputs;		  /* elements per sample that the next operator reads */
	double kept;		  /* elements per sample held for the backward pass */
	double dispatched;	  /* elements per sample that go to experts, each way */
	double exchanged;	  /* of attention: elements per sample of keys and values */
	char measured[48];	  /* its name in tables of measured times, or "" */
};

struct ocs_model {
	char *name;
	char *source;	/* the file */
	char *about;	/* one line, or NULL */
	int precision;	/* bytes of an element: 1, 2 or 4 */
	int batch;	/* samples per GPU and step; 0: step_batch is given */
	int step_batch; /* samples of a step, all GPUs together; 0: batch is given */
	int sequence;	/* tokens of a sample, 1 where it has none */
	int state;	/* bytes per parameter beside weight and gradient */
	/* how the file says that it is trained; 1 where it says nothing */
	int dp, pp, tp, cp, ep, microbatch;
	struct ocs_model_operator *operators;
	int noperators;
};

#define OCS_MODEL_OPERATORS_MAX 20000
#define OCS_MODEL_FILE_MAX (1 << 20) /* bytes of a file */

/* Reads TEXT, which SOURCE names in messages.  Returns a model (ocs_model_destroy), or NULL
 * with ERR (OCS_USAGE): one line that begins with SOURCE:LINE. */
struct ocs_model *ocs_model_parse(const char *text, size_t length, const char *source,
				  struct ocs_error *err);
/* Reads the file at SPEC; a SPEC without '/' and '.' is the name of a model that comes with
 * the project.  NULL with ERR, which lists these names if there is none of that name. */
struct ocs_model *ocs_model_open(const char *spec, struct ocs_error *err);
void ocs_model_destroy(struct ocs_model *model);

/* The path of the file NAME in FOLDER ("models", "costs") of what is installed; the variable
 * OCS_DATADIR of the environment names another place.  The caller frees it. */
char *ocs_model_data_path(const char *folder, const char *name);

const char *ocs_model_kind_name(enum ocs_model_kind kind);

/* Sums over all operators. */
double ocs_model_parameters(const struct ocs_model *model);
double ocs_model_active_parameters(const struct ocs_model *model); /* of one token */
double ocs_model_flops(const struct ocs_model *model);		   /* forward, per sample */
/* Parameters of all operators but embeddings. */
double ocs_model_dense_parameters(const struct ocs_model *model);
/* Samples of a step on GPUS of them. */
double ocs_model_samples(const struct ocs_model *model, int gpus);
/* Bytes of weights, gradients and optimizer state of so many parameters. */
double ocs_model_state_bytes(const struct ocs_model *model, double parameters);

#endif
