/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <json-c/json.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/netsim/flexflow.h"
#include "src/netsim/graph.h"
#include "src/util/error.h"
#include "src/util/text.h"

#define FILE_SIZE_MAX ((size_t)1 << 30)

static void number_write(struct ocs_text *text, const char *name, double value)
{
	ocs_text_add(text, ",\"%s\":%.17g", name, value);
}

static void string_write(struct ocs_text *text, const char *words)
{
	struct json_object *string = json_object_new_string(words);

	ocs_text_add(text, "%s", json_object_to_json_string(string));
	json_object_put(string);
}

/* The tasks that each task waits for, in rows: those of task k are FIRST[k] to FIRST[k + 1]. */
static int *waits_list(const struct ocs_netsim_graph *graph, int **first)
{
	int *start = ocs_calloc((size_t)graph->ntasks + 2, sizeof(int));
	int *list = ocs_calloc((size_t)graph->nedges + 1, sizeof(int));

	for (int k = 0; k < graph->nedges; k++)
		start[graph->edges[k].after + 2]++;
	for (int k = 2; k < graph->ntasks + 2; k++)
		start[k] += start[k - 1];
	for (int k = 0; k < graph->nedges; k++)
		list[start[graph->edges[k].after + 1]++] = graph->edges[k].before;
	*first = start;
	return list;
}

static void task_write(const struct ocs_netsim_graph *graph, const struct ocs_netsim_task *task,
		       const int *waits, int count, struct ocs_text *text)
{
	ocs_text_add(text, "{\"kind\":\"%s\"", ocs_netsim_kind_name(task->kind));
	if (task->kind == OCS_NETSIM_COMPUTE)
		ocs_text_add(text, ",\"server\":%d,\"device\":%d", task->server, task->device);
	if (task->kind == OCS_NETSIM_TRANSFER)
		ocs_text_add(text, ",\"src\":%d,\"dst\":%d", task->server, task->peer);
	if (ocs_netsim_kind_collective(task->kind))
		ocs_text_add(text, ",\"group\":%d", task->group);
	if (task->matrix >= 0)
		ocs_text_add(text, ",\"matrix\":%d", task->matrix);
	if (task->ms > 0 || task->kind == OCS_NETSIM_COMPUTE)
		number_write(text, "ms", task->ms);
	if (task->matrix < 0 &&
	    (task->kind == OCS_NETSIM_TRANSFER || ocs_netsim_kind_collective(task->kind)))
		number_write(text, "bytes", task->bytes);
	if (task->label >= 0) {
		ocs_text_add(text, ",\"label\":");
		string_write(text, graph->labels[task->label]);
	}
	for (int k = 0; k < count; k++)
		ocs_text_add(text, "%s%d", k ? "," : ",\"after\":[", waits[k]);
	ocs_text_add(text, count ? "]}" : "}");
}

static void matrices_write(const struct ocs_netsim_graph *graph, struct ocs_text *text)
{
	ocs_text_add(text, "],\n\"matrices\":[");
	for (int m = 0; m < graph->nmatrices; m++) {
		int side = graph->matrix_sides[m];

		ocs_text_add(text, "%s[", m ? ",\n" : "");
		for (int i = 0; i < side; i++) {
			for (int j = 0; j < side; j++)
				ocs_text_add(text, "%s%.17g",
					     j ? "," :
					     i ? ",[" :
						 "[",
					     graph->matrices[m][i * side + j]);
			ocs_text_add(text, "]");
		}
		ocs_text_add(text, "]");
	}
}

void ocs_netsim_graph_write(const struct ocs_netsim_graph *graph, struct ocs_text *text)
{
	int *first, *waits = waits_list(graph, &first);

	ocs_text_add(text, "{\"servers\":%d,\"devices\":%d,\n\"groups\":[", graph->servers,
		     graph->devices);
	for (int g = 0; g < graph->ngroups; g++) {
		ocs_text_add(text, g ? ",\n[" : "[");
		for (int k = 0; k < graph->groups[g].count; k++)
			ocs_text_add(text, "%s%d", k ? "," : "", graph->groups[g].members[k]);
		ocs_text_add(text, "]");
	}
	matrices_write(graph, text);
	ocs_text_add(text, "],\n\"tasks\":[");
	for (int k = 0; k < graph->ntasks; k++) {
		if (k)
			ocs_text_add(text, ",\n");
		task_write(graph, &graph->tasks[k], waits + first[k], first[k + 1] - first[k],
			   text);
	}
	ocs_text_add(text, "]}\n");
	free(first);
	free(waits);
}

/* Sets *VALUE if OBJECT has KEY.  1: it has; 0: it has not; -1 with ERR. */
static int number_read(struct json_object *object, const char *key, double *value,
		       struct ocs_error *err)
{
	struct json_object *item;

	if (!json_object_object_get_ex(object, key, &item))
		return 0;
	if (!json_object_is_type(item, json_type_int) &&
	    !json_object_is_type(item, json_type_double))
		return ocs_error_set(err, OCS_USAGE, "\"%s\" is not a number", key);
	*value = json_object_get_double(item);
	return 1;
}

/* The integer KEY of OBJECT, which must be there and fit. */
static int integer_read(struct json_object *object, const char *key, int *value,
			struct ocs_error *err)
{
	double number;
	int rc = number_read(object, key, &number, err);

	if (rc < 0)
		return -1;
	if (!rc)
		return ocs_error_set(err, OCS_USAGE, "\"%s\" is missing", key);
	if (!(number >= -1 && number <= OCS_NETSIM_EDGES_MAX) || number != floor(number))
		return ocs_error_set(err, OCS_USAGE, "\"%s\" is not a whole number of 0 to %d", key,
				     OCS_NETSIM_EDGES_MAX);
	*value = (int)number;
	return 0;
}

/* The list KEY of OBJECT in *LIST (NULL: there is none) and its length. */
static int list_read(struct json_object *object, const char *key, size_t limit,
		     struct json_object **list, size_t *count, struct ocs_error *err)
{
	*count = 0;
	if (!json_object_object_get_ex(object, key, list)) {
		*list = NULL;
		return 0;
	}
	if (!json_object_is_type(*list, json_type_array))
		return ocs_error_set(err, OCS_USAGE, "\"%s\" is not a list", key);
	*count = json_object_array_length(*list);
	if (*count > limit)
		return ocs_error_set(err, OCS_USAGE, "\"%s\" has %zu entries, at most %zu are read",
				     key, *count, limit);
	return 0;
}

/* A whole number at INDEX of LIST; -2 where it is none. */
static int entry_number(struct json_object *list, size_t index)
{
	struct json_object *item = json_object_array_get_idx(list, index);
	double number = json_object_get_double(item);

	if (!json_object_is_type(item, json_type_int) || !(number >= 0) ||
	    number > OCS_NETSIM_TASKS_MAX)
		return -2;
	return (int)number;
}

static int groups_read(struct ocs_netsim_graph *graph, struct json_object *json,
		       struct ocs_error *err)
{
	struct json_object *list;
	size_t count;
	int *members = ocs_calloc((size_t)graph->servers, sizeof(int)), rc;

	rc = list_read(json, "groups", OCS_NETSIM_TASKS_MAX, &list, &count, err);
	for (size_t g = 0; !rc && g < count; g++) {
		struct json_object *group = json_object_array_get_idx(list, g);
		size_t size = json_object_is_type(group, json_type_array) ?
				      json_object_array_length(group) :
				      0;

		if (!size || size > (size_t)graph->servers) {
			rc = ocs_error_set(err, OCS_USAGE,
					   "group %zu is not a list of 1 to %d servers", g,
					   graph->servers);
			break;
		}
		for (size_t k = 0; k < size; k++)
			members[k] = entry_number(group, k);
		ocs_netsim_group_add(graph, members, (int)size);
	}
	free(members);
	return rc;
}

/* The all-to-all over GROUP with the matrix at ROWS.  The number of the task, or -1 with ERR. */
static int matrix_read(struct ocs_netsim_graph *graph, int group, struct json_object *rows,
		       struct ocs_error *err)
{
	size_t side = group >= 0 && group < graph->ngroups ? (size_t)graph->groups[group].count : 0;
	double *matrix;
	int task = -1;

	if (!side || !json_object_is_type(rows, json_type_array) ||
	    json_object_array_length(rows) != side)
		return ocs_error_set(err, OCS_USAGE,
				     "its matrix has not as many rows as its group has servers");
	matrix = ocs_calloc(side * side, sizeof(double));
	for (size_t i = 0; i < side; i++) {
		struct json_object *row = json_object_array_get_idx(rows, i);

		if (!json_object_is_type(row, json_type_array) ||
		    json_object_array_length(row) != side) {
			ocs_error_set(err, OCS_USAGE,
				      "row %zu of its matrix is not a list of %zu numbers", i,
				      side);
			goto done;
		}
		for (size_t j = 0; j < side; j++)
			matrix[i * side + j] =
				json_object_get_double(json_object_array_get_idx(row, j));
	}
	task = ocs_netsim_alltoall_add(graph, group, matrix);
done:
	free(matrix);
	return task;
}

/* Reads the members of a task of KIND that only this kind has. */
static int task_body_read(struct ocs_netsim_graph *graph, struct json_object *json,
			  struct json_object *item, enum ocs_netsim_kind kind,
			  struct ocs_error *err)
{
	struct json_object *matrices;
	int a, b, matrix;
	size_t count;

	switch (kind) {
	case OCS_NETSIM_COMPUTE:
		if (integer_read(item, "server", &a, err) || integer_read(item, "device", &b, err))
			return -1;
		return ocs_netsim_compute_add(graph, a, b, 0);
	case OCS_NETSIM_TRANSFER:
		if (integer_read(item, "src", &a, err) || integer_read(item, "dst", &b, err))
			return -1;
		return ocs_netsim_transfer_add(graph, a, b, 0);
	case OCS_NETSIM_BARRIER:
		return ocs_netsim_barrier_add(graph);
	default:
		break;
	}
	if (integer_read(item, "group", &a, err))
		return -1;
	if (!json_object_object_get_ex(item, "matrix", NULL))
		return ocs_netsim_collective_add(graph, kind, a, 0);
	if (integer_read(item, "matrix", &matrix, err) ||
	    list_read(json, "matrices", OCS_NETSIM_TASKS_MAX, &matrices, &count, err))
		return -1;
	if (kind != OCS_NETSIM_ALLTOALL || matrix < 0 || (size_t)matrix >= count)
		return ocs_error_set(err, OCS_USAGE, "\"matrix\" %d: there are %zu, for alltoall",
				     matrix, count);
	return matrix_read(graph, a, json_object_array_get_idx(matrices, (size_t)matrix), err);
}

static int label_read(struct ocs_netsim_graph *graph, struct json_object *item, int task,
		      struct ocs_error *err)
{
	struct json_object *label;

	if (!json_object_object_get_ex(item, "label", &label))
		return 0;
	if (!json_object_is_type(label, json_type_string))
		return ocs_error_set(err, OCS_USAGE, "\"label\" is not a word");
	if (graph->nlabels >= OCS_NETSIM_LABELS_MAX)
		return ocs_error_set(err, OCS_USAGE, "more than %d different labels",
				     OCS_NETSIM_LABELS_MAX);
	graph->tasks[task].label = (short)ocs_netsim_label(graph, json_object_get_string(label));
	return 0;
}

static int task_read(struct ocs_netsim_graph *graph, struct json_object *json,
		     struct json_object *item, struct ocs_error *err)
{
	struct json_object *word, *after;
	enum ocs_netsim_kind kind = 0;
	size_t count;
	int task;

	if (!json_object_object_get_ex(item, "kind", &word) ||
	    !json_object_is_type(word, json_type_string))
		return ocs_error_set(err, OCS_USAGE, "\"kind\" is missing");
	while (kind < OCS_NETSIM_KINDS &&
	       strcmp(ocs_netsim_kind_name(kind), json_object_get_string(word)) != 0)
		kind++;
	if (kind == OCS_NETSIM_KINDS)
		return ocs_error_set(err, OCS_USAGE,
				     "\"kind\" is none of compute, transfer, allreduce, "
				     "reduce-scatter, allgather, alltoall, barrier");
	task = task_body_read(graph, json, item, kind, err);
	if (task < 0)
		return -1;
	if (number_read(item, "ms", &graph->tasks[task].ms, err) < 0 ||
	    number_read(item, "bytes", &graph->tasks[task].bytes, err) < 0 ||
	    label_read(graph, item, task, err) ||
	    list_read(item, "after", OCS_NETSIM_TASKS_MAX, &after, &count, err))
		return -1;
	if ((size_t)graph->nedges + count > OCS_NETSIM_EDGES_MAX)
		return ocs_error_set(err, OCS_USAGE, "more than %d dependencies are not read",
				     OCS_NETSIM_EDGES_MAX);
	for (size_t k = 0; k < count; k++)
		ocs_netsim_depend(graph, entry_number(after, k), task);
	return 0;
}

static int tasks_read(struct ocs_netsim_graph *graph, struct json_object *json,
		      struct ocs_error *err)
{
	struct json_object *list;
	size_t count;

	if (list_read(json, "tasks", OCS_NETSIM_TASKS_MAX, &list, &count, err))
		return -1;
	for (size_t k = 0; k < count; k++) {
		if (task_read(graph, json, json_object_array_get_idx(list, k), err))
			return ocs_error_prefix(err, "task %zu", k);
	}
	return 0;
}

struct ocs_netsim_graph *ocs_netsim_graph_from_json(struct json_object *json, struct ocs_error *err)
{
	struct ocs_netsim_graph *graph = NULL;
	int servers, devices;

	if (!json_object_is_type(json, json_type_object)) {
		ocs_error_set(err, OCS_USAGE,
			      "graph: an object with \"servers\", \"devices\" and \"tasks\" is "
			      "wanted");
		return NULL;
	}
	if (integer_read(json, "servers", &servers, err) ||
	    integer_read(json, "devices", &devices, err))
		goto fail;
	graph = ocs_netsim_graph_create(servers, devices);
	/* The numbers of servers and devices bound what is read after them. */
	if (ocs_netsim_graph_check(graph, err) || groups_read(graph, json, err) ||
	    tasks_read(graph, json, err) || ocs_netsim_graph_check(graph, err))
		goto fail;
	return graph;
fail:
	ocs_error_prefix(err, "graph");
	ocs_netsim_graph_destroy(graph);
	return NULL;
}

enum ocs_netsim_format ocs_netsim_graph_format(const char *head, size_t length)
{
	size_t at = 0;

	while (at < length && strchr(" \t\r\n", head[at]) && head[at])
		at++;
	if (at < length && head[at] == '{')
		return OCS_NETSIM_JSON;
	return memchr(head, '\0', length) ? OCS_NETSIM_FLATBUFFER : OCS_NETSIM_NO_GRAPH;
}

struct ocs_netsim_graph *ocs_netsim_graph_parse(const char *text, size_t length,
						struct ocs_error *err)
{
	enum json_tokener_error fault;
	struct ocs_netsim_graph *graph = NULL;
	struct json_object *json;

	switch (ocs_netsim_graph_format(text, length)) {
	case OCS_NETSIM_FLATBUFFER:
		return ocs_netsim_flexflow_read(text, length, err);
	case OCS_NETSIM_NO_GRAPH:
		ocs_error_set(err, OCS_USAGE,
			      "no task graph: neither a JSON object nor a FlatBuffer of FlexFlow");
		return NULL;
	case OCS_NETSIM_JSON:
		break;
	}
	json = json_tokener_parse_verbose(text, &fault);
	if (json)
		graph = ocs_netsim_graph_from_json(json, err);
	else
		ocs_error_set(err, OCS_USAGE, "not valid JSON: %s", json_tokener_error_desc(fault));
	json_object_put(json);
	return graph;
}

struct ocs_netsim_graph *ocs_netsim_graph_read(const char *path, struct ocs_error *err)
{
	struct ocs_netsim_graph *graph;
	size_t length;
	char *data = ocs_file_read(path, FILE_SIZE_MAX, &length, err);

	if (!data)
		return NULL;
	graph = ocs_netsim_graph_parse(data, length, err);
	free(data);
	if (!graph)
		ocs_error_prefix(err, "%s", path);
	return graph;
}
