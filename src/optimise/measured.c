/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/optimise/measured.h"

#include <json-c/json.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/util/error.h"
#include "src/util/text.h"

#define FILE_LIMIT (16 << 20)
#define PARTS_MAX (1 << 20)

static struct json_object *field_get(struct json_object *json, const char *name)
{
	struct json_object *value = NULL;

	json_object_object_get_ex(json, name, &value);
	return value;
}

/* The parts of the samples in "4-1-1-1-16", if nothing else is divided, or 0. */
static long parts_read(const char *text)
{
	char *end;
	long count = strtol(text, &end, 10), part = 0;

	if (count < 1 || count > 8)
		return 0;
	for (long i = 0; i < count; i++) {
		if (*end != '-')
			return 0;
		part = strtol(end + 1, &end, 10);
		if (part < 1 || part > PARTS_MAX || (i + 1 < count && part != 1))
			return 0;
	}
	return *end ? 0 : part;
}

static double time_read(struct json_object *row, const char *name)
{
	struct json_object *value = field_get(row, name);
	bool number = json_object_is_type(value, json_type_double) ||
		      json_object_is_type(value, json_type_int);
	double ms = number ? json_object_get_double(value) : -1;

	return isfinite(ms) && ms >= 0 && ms < 1e9 ? ms : -1;
}

/* Samples of one GPU in a row of PARTS; an embedding is not divided. */
static double row_samples(const struct ocs_model_operator *op, double batch, long parts)
{
	if (op->kind == OCS_MODEL_EMBEDDING)
		return batch;
	return batch / OCS_OPTIMISE_MEASURED_GPUS / (double)parts;
}

/* The row of OP whose samples are nearest to WANTED; its times scaled to them. */
static bool operator_take(struct json_object *rows, const struct ocs_model_operator *op,
			  double batch, double wanted, double *forward, double *backward)
{
	double nearest = INFINITY;

	for (size_t i = 0; *op->measured && i < json_object_array_length(rows); i++) {
		struct json_object *row = json_object_array_get_idx(rows, i);
		struct json_object *name = field_get(row, "name"),
				   *parts = field_get(row, "pc_str");
		double samples, distance;

		if (strcmp(json_object_get_string(name), op->measured) != 0)
			continue;
		samples = row_samples(op, batch, parts_read(json_object_get_string(parts)));
		distance = fabs(log(samples / wanted));
		if (!(distance < nearest))
			continue;
		nearest = distance;
		*forward = time_read(row, "fw_time") * wanted / samples;
		*backward = time_read(row, "bw_time") * wanted / samples;
	}
	return isfinite(nearest);
}

static int row_check(struct json_object *row, const char *source, size_t number,
		     struct ocs_error *err)
{
	struct json_object *name = field_get(row, "name"), *parts = field_get(row, "pc_str");

	if (!json_object_is_type(name, json_type_string) ||
	    !json_object_is_type(parts, json_type_string) ||
	    !parts_read(json_object_get_string(parts)) || time_read(row, "fw_time") < 0 ||
	    time_read(row, "bw_time") < 0)
		return ocs_error_set(
			err, OCS_USAGE,
			"%s: measurement %zu: name, pc_str (\"2-1-16\"), fw_time and bw_time in ms are needed",
			source, number);
	return 0;
}

static int table_check(struct json_object *json, const char *source, double *batch,
		       struct ocs_error *err)
{
	struct json_object *rows = field_get(json, "measurements");

	*batch = json_object_get_double(field_get(json, "batch_size"));
	if (!json_object_is_type(rows, json_type_array) || !(*batch >= 1) || !(*batch < 1e12))
		return ocs_error_set(
			err, OCS_USAGE,
			"%s: no table of measured times: batch_size and measurements are needed",
			source);
	for (size_t i = 0; i < json_object_array_length(rows); i++)
		if (row_check(json_object_array_get_idx(rows, i), source, i, err))
			return -1;
	return 0;
}

int ocs_optimise_measured_parse(const char *text, const char *source, const struct ocs_model *model,
				double speed, struct ocs_optimise_measured *measured,
				struct ocs_error *err)
{
	enum json_tokener_error fault;
	struct json_object *json = json_tokener_parse_verbose(text, &fault);
	double batch;

	memset(measured, 0, sizeof(*measured));
	if (!json)
		return ocs_error_set(err, OCS_USAGE, "%s: not valid JSON: %s", source,
				     json_tokener_error_desc(fault));
	if (!model->batch)
		ocs_error_set(
			err, OCS_USAGE,
			"%s: measured times are for models with \"batch: {gpu: N}\", and %s is not one",
			source, model->name);
	if (!model->batch || table_check(json, source, &batch, err)) {
		json_object_put(json);
		return -1;
	}
	measured->forward_ms = ocs_calloc((size_t)model->noperators + 1, sizeof(double));
	measured->backward_ms = ocs_calloc((size_t)model->noperators + 1, sizeof(double));
	for (int i = 0; i < model->noperators; i++) {
		const struct ocs_model_operator *op = &model->operators[i];
		double wanted = op->kind == OCS_MODEL_EMBEDDING ? batch : model->batch;

		if (!operator_take(field_get(json, "measurements"), op, batch, wanted,
				   &measured->forward_ms[i], &measured->backward_ms[i]))
			continue;
		measured->forward_ms[i] /= speed;
		measured->backward_ms[i] /= speed;
		measured->known++;
	}
	json_object_put(json);
	if (measured->known)
		return 0;
	ocs_optimise_measured_free(measured);
	return ocs_error_set(err, OCS_USAGE, "%s knows none of the operators of %s", source,
			     model->name);
}

int ocs_optimise_measured_read(const char *file, const struct ocs_model *model, double speed,
			       struct ocs_optimise_measured *measured, struct ocs_error *err)
{
	char *text = ocs_file_read(file, FILE_LIMIT, NULL, err);
	int rc = text ? ocs_optimise_measured_parse(text, file, model, speed, measured, err) : -1;

	free(text);
	return rc;
}

void ocs_optimise_measured_free(struct ocs_optimise_measured *measured)
{
	free(measured->forward_ms);
	free(measured->backward_ms);
	memset(measured, 0, sizeof(*measured));
}
