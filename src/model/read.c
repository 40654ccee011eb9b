/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "src/model/internal.h"
#include "src/util/error.h"
#include "src/util/text.h"

#define DEPTH_MAX 8 /* of repeats inside repeats */

static const struct {
	const char *name;
	int bytes, state;
} precisions[] = {
	/* Adam keeps two moments; below FP32 a copy of the weights in FP32 as well. */
	{ "fp32", 4, 8 }, { "tf32", 4, 8 }, { "bf16", 2, 12 }, { "fp16", 2, 12 }, { "fp8", 1, 12 },
};
#define NPRECISIONS (sizeof(precisions) / sizeof(precisions[0]))

/* What is being read, and the operators whose output nothing reads yet. */
struct reader {
	struct ocs_yaml yaml;
	struct ocs_model *model;
	int *ends, nends;
};

static int layers_read(struct reader *reader, yaml_node_t *node, int depth, int layer);

static struct ocs_model_operator *operator_append(struct ocs_model *model)
{
	int n = model->noperators;

	/* Sizes that are powers of two: as many copies as an array that doubles makes. */
	if ((n & (n - 1)) == 0)
		model->operators = ocs_realloc(model->operators,
					       (n ? 2 * (size_t)n : 1) * sizeof(*model->operators));
	return &model->operators[model->noperators++];
}

static bool key_present(struct ocs_yaml *yaml, const yaml_node_t *map, const char *name)
{
	if (map->type != YAML_MAPPING_NODE)
		return false;
	for (yaml_node_pair_t *pair = map->data.mapping.pairs.start;
	     pair < map->data.mapping.pairs.top; pair++) {
		const yaml_node_t *key = yaml_document_get_node(&yaml->document, pair->key);

		if (key->type == YAML_SCALAR_NODE && !strcmp((char *)key->data.scalar.value, name))
			return true;
	}
	return false;
}

/* {repeat: N, layers: [...]} */
static int repeat_read(struct reader *reader, yaml_node_t *node, int depth, int layer)
{
	struct ocs_yaml *yaml = &reader->yaml;
	struct ocs_field fields[] = { { "repeat", true, NULL }, { "layers", true, NULL } };
	int times;

	if (ocs_yaml_fields(yaml, node, "a repeat", fields, 2) ||
	    ocs_yaml_number(yaml, fields[0].node, "repeat", 1, OCS_MODEL_OPERATORS_MAX, &times))
		return -1;
	if (depth == DEPTH_MAX)
		return ocs_yaml_fail(yaml, node, "repeats are nested more than %d deep", DEPTH_MAX);
	for (int i = 0; i < times; i++)
		if (layers_read(reader, fields[1].node, depth + 1, layer ? layer : i + 1))
			return -1;
	return 0;
}

/* Joins the branches that operator INDEX reads; its own output is an end. */
static int branches_join(struct reader *reader, const yaml_node_t *node, int index)
{
	struct ocs_model_operator *op = &reader->model->operators[index];

	if (index == 0 && op->joins == 1)
		op->joins = 0;
	if (op->joins == OCS_MODEL_JOIN_ALL && reader->nends > 0)
		op->joins = reader->nends;
	if (op->joins > reader->nends || op->joins == OCS_MODEL_JOIN_ALL)
		return ocs_yaml_fail(&reader->yaml, node,
				     "there are %d branches before this operator, and it reads %s",
				     reader->nends, op->joins > 1 ? "more" : "one");
	for (int i = 0; i < op->joins; i++)
		reader->model->operators[reader->ends[--reader->nends]].consumer = index;
	op->consumer = -1;
	reader->ends[reader->nends++] = index;
	return 0;
}

static int layers_read(struct reader *reader, yaml_node_t *node, int depth, int layer)
{
	struct ocs_model *model = reader->model;
	struct ocs_yaml *yaml = &reader->yaml;
	int count = ocs_yaml_length(yaml, node, "layers");

	if (count == 0)
		return ocs_yaml_fail(yaml, node, "layers is an empty list");
	for (int i = 0; i < count; i++) {
		yaml_node_t *item = ocs_yaml_item(yaml, node, i);
		struct ocs_model_operator *op;

		if (key_present(yaml, item, "repeat")) {
			if (repeat_read(reader, item, depth, layer))
				return -1;
			continue;
		}
		if (model->noperators == OCS_MODEL_OPERATORS_MAX)
			return ocs_yaml_fail(yaml, item, "the model has more than %d operators",
					     OCS_MODEL_OPERATORS_MAX);
		op = operator_append(model);
		if (ocs_model_operator_read(yaml, item, model->sequence, op))
			return -1;
		op->layer = layer;
		if (branches_join(reader, item, model->noperators - 1))
			return -1;
	}
	return count < 0 ? -1 : 0;
}

/* {gpu: N} or {step: N} */
static int batch_read(struct ocs_yaml *yaml, yaml_node_t *node, struct ocs_model *model)
{
	struct ocs_field fields[] = { { "gpu", false, NULL }, { "step", false, NULL } };

	if (ocs_yaml_fields(yaml, node, "batch", fields, 2))
		return -1;
	if (!fields[0].node == !fields[1].node)
		return ocs_yaml_fail(yaml, node,
				     "batch needs one of \"gpu\" (samples per GPU) and \"step\" "
				     "(samples per step)");
	if (fields[0].node)
		return ocs_yaml_number(yaml, fields[0].node, "gpu", 1, 1 << 20, &model->batch);
	return ocs_yaml_number(yaml, fields[1].node, "step", 1, 1 << 24, &model->step_batch);
}

static int parallel_read(struct ocs_yaml *yaml, yaml_node_t *node, struct ocs_model *model)
{
	struct ocs_field fields[] = { { "dp", false, NULL }, { "pp", false, NULL },
				      { "tp", false, NULL }, { "cp", false, NULL },
				      { "ep", false, NULL }, { "microbatch", false, NULL } };
	int *values[] = { &model->dp, &model->pp, &model->tp,
			  &model->cp, &model->ep, &model->microbatch };

	if (ocs_yaml_fields(yaml, node, "parallel", fields, 6))
		return -1;
	for (int i = 0; i < 6; i++)
		if (fields[i].node &&
		    ocs_yaml_number(yaml, fields[i].node, fields[i].name, 1, 1 << 20, values[i]))
			return -1;
	return 0;
}

static int precision_read(struct ocs_yaml *yaml, const yaml_node_t *node, struct ocs_model *model)
{
	const char *names[NPRECISIONS];
	int choice;

	for (size_t i = 0; i < NPRECISIONS; i++)
		names[i] = precisions[i].name;
	choice = ocs_yaml_choice(yaml, node, "precision", names, NPRECISIONS);
	if (choice < 0)
		return -1;
	model->precision = precisions[choice].bytes;
	model->state = precisions[choice].state;
	return 0;
}

static int document_read(struct reader *reader)
{
	struct ocs_yaml *yaml = &reader->yaml;
	struct ocs_model *model = reader->model;
	yaml_node_t *root = yaml_document_get_root_node(&yaml->document);
	struct ocs_field fields[] = {
		{ "model", true, NULL },     { "about", false, NULL },
		{ "precision", true, NULL }, { "batch", true, NULL },
		{ "sequence", false, NULL }, { "state", false, NULL },
		{ "parallel", false, NULL }, { "layers", true, NULL },
	};
	const char *text;

	if (ocs_yaml_fields(yaml, root, "a model", fields, 8))
		return -1;
	text = ocs_yaml_text(yaml, fields[0].node, "model");
	if (!text)
		return -1;
	model->name = ocs_strdup(text);
	if (fields[1].node) {
		text = ocs_yaml_text(yaml, fields[1].node, "about");
		if (!text)
			return -1;
		model->about = ocs_strdup(text);
	}
	if (precision_read(yaml, fields[2].node, model) || batch_read(yaml, fields[3].node, model))
		return -1;
	if (fields[4].node &&
	    ocs_yaml_number(yaml, fields[4].node, "sequence", 1, 1 << 24, &model->sequence))
		return -1;
	if (fields[5].node && ocs_yaml_number(yaml, fields[5].node, "state", 0, 64, &model->state))
		return -1;
	if (fields[6].node && parallel_read(yaml, fields[6].node, model))
		return -1;
	if (layers_read(reader, fields[7].node, 0, 0))
		return -1;
	if (reader->nends > 1)
		return ocs_yaml_fail(yaml, fields[7].node,
				     "%d branches are never joined; let the last operator have "
				     "input: all",
				     reader->nends);
	return 0;
}

struct ocs_model *ocs_model_parse(const char *text, size_t length, const char *source,
				  struct ocs_error *err)
{
	struct reader reader = { 0 };
	struct ocs_model *model;
	int rc;

	if (ocs_yaml_open(&reader.yaml, text, length, source, err))
		return NULL;
	reader.model = model = ocs_calloc(1, sizeof(*model));
	reader.ends = ocs_calloc(OCS_MODEL_OPERATORS_MAX, sizeof(int));
	model->source = ocs_strdup(source);
	model->sequence = 1;
	model->dp = model->pp = model->tp = model->cp = model->ep = model->microbatch = 1;
	rc = document_read(&reader);
	ocs_yaml_close(&reader.yaml);
	free(reader.ends);
	if (!rc)
		return model;
	ocs_model_destroy(model);
	return NULL;
}

char *ocs_model_data_path(const char *folder, const char *name)
{
	const char *top = getenv("OCS_DATADIR");

	return ocs_asprintf("%s/%s/%s", top && *top ? top : OCS_PKGDATADIR, folder, name);
}

/* Says which models there are. */
static void name_unknown(const char *spec, struct ocs_error *err)
{
	char *pattern = ocs_model_data_path("models", "*.yaml");
	struct ocs_text names = { 0 };
	glob_t found;

	if (!glob(pattern, 0, NULL, &found)) {
		for (size_t i = 0; i < found.gl_pathc; i++) {
			const char *name = strrchr(found.gl_pathv[i], '/') + 1;

			ocs_text_add(&names, "%s%.*s", i ? ", " : "", (int)strlen(name) - 5, name);
		}
		globfree(&found);
	}
	ocs_error_set(err, OCS_USAGE,
		      "there is no model '%.60s'; give a file (./%.60s) or one of: %s", spec, spec,
		      names.data ? names.data : "none is installed");
	ocs_text_free(&names);
	free(pattern);
}

struct ocs_model *ocs_model_open(const char *spec, struct ocs_error *err)
{
	bool named = !strpbrk(spec, "/");
	char *name = ocs_asprintf("%s.yaml", spec), *text = NULL;
	char *path = named ? ocs_model_data_path("models", name) : ocs_strdup(spec);
	struct ocs_model *model = NULL;
	size_t length;

	if (named) {
		text = ocs_file_read(path, OCS_MODEL_FILE_MAX, &length, NULL);
		if (!text) { /* a file of this folder */
			free(path);
			path = ocs_strdup(spec);
			text = ocs_file_read(path, OCS_MODEL_FILE_MAX, &length, NULL);
		}
		if (!text)
			name_unknown(spec, err);
	} else {
		text = ocs_file_read(path, OCS_MODEL_FILE_MAX, &length, err);
	}
	if (text)
		model = ocs_model_parse(text, length, path, err);
	free(text);
	free(path);
	free(name);
	return model;
}

void ocs_model_destroy(struct ocs_model *model)
{
	if (!model)
		return;
	for (int i = 0; i < model->noperators; i++)
		free(model->operators[i].name);
	free(model->operators);
	free(model->name);
	free(model->source);
	free(model->about);
	free(model);
}
