/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_MODEL_STRATEGY_H
#define OCS_MODEL_STRATEGY_H

/* How a model is spread over servers, and what its servers compute, hold and send in one
 * step.  doc/models.md has the formulas. */

#include <stdbool.h>

#include "src/model/model.h"

struct ocs_text;

/* The servers, all alike. */
struct ocs_model_machine {
	int servers, gpus;  /* GPUs of a server */
	double tflops;	    /* what a GPU reaches in the precision of the model, 1e12 per s */
	double memory;	    /* bytes of a GPU */
	double memory_rate; /* bytes per second of a GPU's memory */
	double scale_up;    /* bytes per second from a GPU to others of its server */
	const double *forward_ms, *backward_ms; /* per operator: measured on one GPU with the
						 * model's batch per GPU, 0 where none; or NULL */
};

/* Where an operator runs. */
enum ocs_model_layout {
	OCS_MODEL_REPLICATED, /* on every server, each with its share of the batch */
	OCS_MODEL_SHARDED,    /* the same, but weights are spread and gathered when used */
	OCS_MODEL_SPLIT,      /* its outputs are divided among all servers; whole batch on each */
	OCS_MODEL_PLACED,     /* on one server, whole batch */
};

/* SERVERS of them as MODEL is commonly trained on: with A100 of 40 GB in FP32, 80 GB below. */
void ocs_model_machine_default(const struct ocs_model *model, int servers,
			       struct ocs_model_machine *machine);

/* Either operator by operator, or by dimensions (layout NULL). */
struct ocs_model_strategy {
	unsigned char *layout;	/* per operator, enum ocs_model_layout */
	int *server;		/* per operator: where, if it is placed */
	int dp, pp, tp, cp, ep; /* ranks are numbered with tp fastest, then cp, dp, pp; a group
				 * of ep is cut from dp x cp */
	int microbatch;		/* samples of a micro-batch of one replica */
};

enum ocs_model_dimension {
	OCS_MODEL_DP,
	OCS_MODEL_TP,
	OCS_MODEL_CP,
	OCS_MODEL_EP,
	OCS_MODEL_PP,
	OCS_MODEL_MP, /* between operators in different places */
	OCS_MODEL_DIMENSIONS,
};

enum ocs_model_collective {
	OCS_MODEL_ALLREDUCE,
	OCS_MODEL_ALLGATHER, /* or its reverse, the reduce-scatter */
	OCS_MODEL_ALLTOALL,
	OCS_MODEL_SEND, /* members[0] to members[1] */
};

/* What one group of servers does several times in a step. */
struct ocs_model_flow {
	enum ocs_model_dimension dimension;
	enum ocs_model_collective kind;
	int *members, count;
	int stage;    /* of pp; of a send that of its sender */
	double bytes; /* each time: the buffer of a server; of a send what is sent */
	double times; /* per step */
};

struct ocs_model_traffic {
	int servers;
	struct ocs_model_flow *flows;
	int nflows, size;
	/* Between operators in different places: bytes from server to server in the forward
	 * pass, servers x servers, or NULL; the backward pass sends the transposed. */
	double *matrix;
	double inside[OCS_MODEL_DIMENSIONS]; /* bytes that all GPUs together send within servers */
};

/* A strategy for MODEL that puts every operator on every server; the caller destroys it. */
struct ocs_model_strategy *ocs_model_strategy_create(const struct ocs_model *model, bool placed);
struct ocs_model_strategy *ocs_model_strategy_copy(const struct ocs_model *model,
						   const struct ocs_model_strategy *strategy);
void ocs_model_strategy_destroy(struct ocs_model_strategy *strategy);

/* The strategy of MODEL's file on MACHINE: its dimensions, dp being what is left.  A model that
 * names none is replicated operator by operator; embeddings are dealt out over the servers, and
 * other weights sharded, if that does not fit the memory.  NULL with ERR (OCS_NEVER: they do not fit). */
struct ocs_model_strategy *ocs_model_strategy_default(const struct ocs_model *model,
						      const struct ocs_model_machine *machine,
						      struct ocs_error *err);
/* Whether the dimensions divide GPUs, layers, experts and batch.  0, or -1 with ERR (OCS_NEVER). */
int ocs_model_strategy_check(const struct ocs_model *model, const struct ocs_model_machine *machine,
			     const struct ocs_model_strategy *strategy, struct ocs_error *err);

/* Micro-batches of a step that one replica works through; 1 for a strategy by operators. */
int ocs_model_microbatches(const struct ocs_model *model, const struct ocs_model_machine *machine,
			   const struct ocs_model_strategy *strategy);
/* The first operator of stage STAGE of PP; stage PP: the number of operators.  Layers are
 * dealt evenly, what stands before or after them goes with the first or last. */
int ocs_model_stage_first(const struct ocs_model *model, int pp, int stage);

/* Bytes that the fullest GPU holds: weights, gradients, optimizer, activations. */
double ocs_model_memory(const struct ocs_model *model, const struct ocs_model_machine *machine,
			const struct ocs_model_strategy *strategy);

/* Milliseconds of OPERATOR on one GPU for SAMPLES of them; FORWARD or backward. */
double ocs_model_operator_ms(const struct ocs_model *model, const struct ocs_model_machine *machine,
			     int operator_index, double samples, bool forward);
/* Milliseconds that each server computes in a step, forward and backward together
 * (MACHINE->servers numbers, for the caller to free), for a strategy by operators. */
double *ocs_model_server_ms(const struct ocs_model *model, const struct ocs_model_machine *machine,
			    const struct ocs_model_strategy *strategy);

/* All that is sent in a step.  The caller destroys it. */
struct ocs_model_traffic *ocs_model_traffic_create(const struct ocs_model *model,
						   const struct ocs_model_machine *machine,
						   const struct ocs_model_strategy *strategy);
void ocs_model_traffic_destroy(struct ocs_model_traffic *traffic);
const char *ocs_model_dimension_name(enum ocs_model_dimension dimension);
/* Bytes that all servers together send to others in a step because of DIMENSION. */
double ocs_model_traffic_bytes(const struct ocs_model_traffic *traffic,
			       enum ocs_model_dimension dimension);
/* The demand file of `ocsctl plan --demand`, appended to TEXT.  Where nothing is sent it joins
 * all servers for one byte: the planner wants a demand. */
void ocs_model_demand_write(const struct ocs_model_traffic *traffic, struct ocs_text *text);

#endif
