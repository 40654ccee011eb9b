/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* What each kind of operator has and costs.  A product of a vector with a matrix takes two
 * FLOPs per weight. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/model/internal.h"
#include "src/util/error.h"
#include "src/util/text.h"

enum key {
	KIND,
	NAME,
	INPUT,
	INPUTS,
	OUTPUTS,
	KERNEL,
	SIZE,
	ROWS,
	COLUMNS,
	LOOKUPS,
	HIDDEN,
	HEADS,
	KV_HEADS,
	HEAD,
	INNER,
	EXPERTS,
	CHOSEN,
	SHARED,
	BIAS,
	PARAMETERS,
	GFLOPS,
	MEASURED,
	KEYS,
};

static const char *const key_names[KEYS] = {
	"kind",	   "name",    "input",	"inputs",     "outputs",  "kernel",   "size",  "rows",
	"columns", "lookups", "hidden", "heads",      "kv_heads", "head",     "inner", "experts",
	"chosen",  "shared",  "bias",	"parameters", "gflops",	  "measured",
};

#define BIT(key) (1u << (key))
#define ALWAYS (BIT(KIND) | BIT(NAME) | BIT(INPUT) | BIT(MEASURED))

static const struct {
	const char *name;
	unsigned int needs, may; /* keys */
} kinds[OCS_MODEL_KINDS] = {
	[OCS_MODEL_DENSE] = { "dense", BIT(INPUTS) | BIT(OUTPUTS), BIT(BIAS) },
	[OCS_MODEL_CONVOLUTION] = { "convolution",
				    BIT(INPUTS) | BIT(OUTPUTS) | BIT(KERNEL) | BIT(SIZE),
				    BIT(BIAS) },
	[OCS_MODEL_EMBEDDING] = { "embedding", BIT(ROWS) | BIT(COLUMNS), BIT(LOOKUPS) },
	[OCS_MODEL_ATTENTION] = { "attention", BIT(HIDDEN) | BIT(HEADS),
				  BIT(KV_HEADS) | BIT(HEAD) | BIT(BIAS) },
	[OCS_MODEL_GATED] = { "gated", BIT(HIDDEN) | BIT(INNER), 0 },
	[OCS_MODEL_EXPERTS] = { "experts", BIT(HIDDEN) | BIT(INNER) | BIT(EXPERTS) | BIT(CHOSEN),
				BIT(SHARED) },
	[OCS_MODEL_NORM] = { "norm", BIT(SIZE), 0 },
	[OCS_MODEL_CONCAT] = { "concat", BIT(OUTPUTS), 0 },
	[OCS_MODEL_OTHER] = { "other", BIT(OUTPUTS), BIT(PARAMETERS) | BIT(GFLOPS) },
};

const char *ocs_model_kind_name(enum ocs_model_kind kind)
{
	return kinds[kind].name;
}

static int kind_read(struct ocs_yaml *yaml, const yaml_node_t *node)
{
	const char *names[OCS_MODEL_KINDS];

	for (int k = 0; k < OCS_MODEL_KINDS; k++)
		names[k] = kinds[k].name;
	return ocs_yaml_choice(yaml, node, "kind", names, OCS_MODEL_KINDS);
}

/* Every key that KIND needs, and none that it has not. */
static int keys_check(struct ocs_yaml *yaml, const yaml_node_t *node, int kind,
		      const struct ocs_field *fields)
{
	for (int k = 0; k < KEYS; k++) {
		if (!fields[k].node && (kinds[kind].needs & BIT(k)))
			return ocs_yaml_fail(yaml, node,
					     "an operator of kind %s needs the key "
					     "\"%s\"",
					     kinds[kind].name, key_names[k]);
		if (fields[k].node && !((kinds[kind].needs | kinds[kind].may | ALWAYS) & BIT(k)))
			return ocs_yaml_fail(yaml, fields[k].node,
					     "an operator of kind %s has no key \"%s\"",
					     kinds[kind].name, key_names[k]);
	}
	return 0;
}

/* A number with a fraction or an exponent, at least 0. */
static int real_read(struct ocs_yaml *yaml, const yaml_node_t *node, const char *key, double *value)
{
	const char *text = ocs_yaml_text(yaml, node, key);
	char *end;

	if (!text)
		return -1;
	*value = strtod(text, &end);
	if (end == text || *end || !isfinite(*value) || *value < 0 || *value > 1e15)
		return ocs_yaml_fail(yaml, node, "%s must be a number of 0 to 1e15, not \"%.40s\"",
				     key, text);
	return 0;
}

/* The whole numbers of the operator; those that it leaves out stay as they are. */
static int values_read(struct ocs_yaml *yaml, const struct ocs_field *fields, double *values)
{
	for (int k = INPUTS; k < KEYS; k++) {
		int number;
		bool yes;

		if (!fields[k].node || k == MEASURED)
			continue;
		if (k == BIAS) {
			if (ocs_yaml_bool(yaml, fields[k].node, key_names[k], &yes))
				return -1;
			values[k] = yes;
		} else if (k == PARAMETERS || k == GFLOPS) {
			if (real_read(yaml, fields[k].node, key_names[k], &values[k]))
				return -1;
		} else {
			if (ocs_yaml_number(yaml, fields[k].node, key_names[k], k == SHARED ? 0 : 1,
					    1000000000, &number))
				return -1;
			values[k] = number;
		}
	}
	return 0;
}

static void dense_count(const double *v, double tokens, struct ocs_model_operator *op)
{
	op->parameters = v[INPUTS] * v[OUTPUTS] + (v[BIAS] ? v[OUTPUTS] : 0);
	op->flops = 2 * tokens * v[INPUTS] * v[OUTPUTS];
	op->outputs = op->kept = tokens * v[OUTPUTS];
	snprintf(op->measured, sizeof(op->measured), "Dense_%.0f_%.0f", v[INPUTS], v[OUTPUTS]);
}

static void convolution_count(const double *v, struct ocs_model_operator *op)
{
	double points = v[SIZE] * v[SIZE], weights = v[KERNEL] * v[KERNEL] * v[INPUTS] * v[OUTPUTS];

	op->parameters = weights + (v[BIAS] ? v[OUTPUTS] : 0);
	op->flops = 2 * weights * points;
	op->outputs = op->kept = points * v[OUTPUTS];
	snprintf(op->measured, sizeof(op->measured), "Conv2D_%.0f_%.0f_%.0f", v[KERNEL], v[KERNEL],
		 v[OUTPUTS]);
}

static void embedding_count(const double *v, double tokens, struct ocs_model_operator *op)
{
	op->parameters = v[ROWS] * v[COLUMNS];
	op->outputs = op->kept = (v[LOOKUPS] ? v[LOOKUPS] : tokens) * v[COLUMNS];
	snprintf(op->measured, sizeof(op->measured), "Embed_%.0fx%.0f", v[ROWS], v[COLUMNS]);
}

/* Every token is compared with every one, as published counts have it; a causal mask would
 * halve that term. */
static void attention_count(const double *v, double tokens, struct ocs_model_operator *op)
{
	double head = v[HEAD] ? v[HEAD] : v[HIDDEN] / v[HEADS];
	double query = head * v[HEADS], key = head * (v[KV_HEADS] ? v[KV_HEADS] : v[HEADS]);
	double weights = v[HIDDEN] * (2 * query + 2 * key);

	op->parameters = weights + (v[BIAS] ? query + 2 * key : 0);
	op->flops = 2 * tokens * weights + 4 * tokens * tokens * query;
	op->outputs = tokens * v[HIDDEN];
	op->exchanged = tokens * 2 * key;
	op->kept = tokens * (v[HIDDEN] + 2 * query + 2 * key);
	snprintf(op->measured, sizeof(op->measured), "MultiHeadAttention_%.0f%.0f", v[HIDDEN],
		 v[HEADS]);
}

static void gated_count(const double *v, double tokens, struct ocs_model_operator *op)
{
	op->parameters = 3 * v[HIDDEN] * v[INNER];
	op->flops = 2 * tokens * op->parameters;
	op->outputs = tokens * v[HIDDEN];
	op->kept = tokens * (v[HIDDEN] + 3 * v[INNER]);
}

static int experts_count(struct ocs_yaml *yaml, const yaml_node_t *node, const double *v,
			 double tokens, struct ocs_model_operator *op)
{
	double expert = 3 * v[HIDDEN] * v[INNER], gate = v[HIDDEN] * v[EXPERTS];
	/* an expert that all tokens pass has a gate of its own */
	double shared = v[SHARED] ? 3 * v[HIDDEN] * v[SHARED] + v[HIDDEN] : 0;

	if (v[CHOSEN] > v[EXPERTS])
		return ocs_yaml_fail(yaml, node, "a token cannot choose %.0f of %.0f experts",
				     v[CHOSEN], v[EXPERTS]);
	op->experts = (int)v[EXPERTS];
	op->expert_parameters = v[EXPERTS] * expert;
	op->parameters = op->expert_parameters + gate + shared;
	op->expert_flops = 2 * tokens * v[CHOSEN] * expert;
	op->flops = op->expert_flops + 2 * tokens * (gate + shared);
	op->outputs = tokens * v[HIDDEN];
	op->dispatched = tokens * v[CHOSEN] * v[HIDDEN];
	op->kept = op->outputs + op->dispatched + 3 * tokens * (v[CHOSEN] * v[INNER] + v[SHARED]);
	return 0;
}

static int operator_count(struct ocs_yaml *yaml, const yaml_node_t *node, const double *v,
			  double tokens, struct ocs_model_operator *op)
{
	switch (op->kind) {
	case OCS_MODEL_DENSE:
		dense_count(v, tokens, op);
		return 0;
	case OCS_MODEL_CONVOLUTION:
		convolution_count(v, op);
		return 0;
	case OCS_MODEL_EMBEDDING:
		embedding_count(v, tokens, op);
		return 0;
	case OCS_MODEL_ATTENTION:
		if (!v[HEAD] && fmod(v[HIDDEN], v[HEADS]) != 0)
			return ocs_yaml_fail(yaml, node,
					     "%.0f heads do not divide %.0f; give the size of a "
					     "\"head\"",
					     v[HEADS], v[HIDDEN]);
		attention_count(v, tokens, op);
		return 0;
	case OCS_MODEL_GATED:
		gated_count(v, tokens, op);
		return 0;
	case OCS_MODEL_EXPERTS:
		return experts_count(yaml, node, v, tokens, op);
	case OCS_MODEL_NORM:
		op->parameters = v[SIZE];
		op->outputs = op->kept = tokens * v[SIZE];
		return 0;
	case OCS_MODEL_CONCAT:
		op->outputs = tokens * v[OUTPUTS];
		snprintf(op->measured, sizeof(op->measured), "Concat_1");
		return 0;
	default:
		op->parameters = v[PARAMETERS];
		op->flops = v[GFLOPS] * 1e9;
		op->outputs = op->kept = tokens * v[OUTPUTS];
		return 0;
	}
}

/* previous, data, all, or how many branches join. */
static int input_read(struct ocs_yaml *yaml, const yaml_node_t *node, int *joins)
{
	const char *text = ocs_yaml_text(yaml, node, "input");
	long number;

	if (!text)
		return -1;
	if (!strcmp(text, "previous"))
		*joins = 1;
	else if (!strcmp(text, "data"))
		*joins = 0;
	else if (!strcmp(text, "all"))
		*joins = OCS_MODEL_JOIN_ALL;
	else if (!ocs_number_parse(text, 1, OCS_MODEL_OPERATORS_MAX, &number))
		*joins = (int)number;
	else
		return ocs_yaml_fail(yaml, node,
				     "input must be previous, data, all, or the number of "
				     "branches that join, not \"%.40s\"",
				     text);
	return 0;
}

int ocs_model_operator_read(struct ocs_yaml *yaml, yaml_node_t *node, int sequence,
			    struct ocs_model_operator *op)
{
	struct ocs_field fields[KEYS] = { 0 };
	double values[KEYS] = { 0 };
	const char *text;
	int choice;

	memset(op, 0, sizeof(*op));
	for (int k = 0; k < KEYS; k++)
		fields[k].name = key_names[k];
	fields[KIND].required = true;
	if (ocs_yaml_fields(yaml, node, "an operator", fields, KEYS))
		return -1;
	choice = kind_read(yaml, fields[KIND].node);
	if (choice < 0 || keys_check(yaml, node, choice, fields) ||
	    values_read(yaml, fields, values))
		return -1;
	op->kind = (enum ocs_model_kind)choice;
	op->line = (int)node->start_mark.line + 1;
	op->joins = op->kind == OCS_MODEL_CONCAT ? OCS_MODEL_JOIN_ALL : 1;
	if (fields[INPUT].node && input_read(yaml, fields[INPUT].node, &op->joins))
		return -1;
	text = fields[NAME].node ? ocs_yaml_text(yaml, fields[NAME].node, "name") :
				   kinds[op->kind].name;
	if (!text)
		return -1;
	op->name = ocs_strdup(text);
	if (operator_count(yaml, node, values, sequence, op))
		return -1;
	if (fields[MEASURED].node) {
		text = ocs_yaml_text(yaml, fields[MEASURED].node, "measured");
		if (!text)
			return -1;
		snprintf(op->measured, sizeof(op->measured), "%s", text);
	}
	return 0;
}
