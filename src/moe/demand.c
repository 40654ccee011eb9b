/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/moe/demand.h"

#include <json-c/json.h>
#include <math.h>
#include <stdlib.h>

#include "src/util/error.h"
#include "src/util/text.h"

/* A sum over 512 x 512 of these is still exact enough to compare. */
#define EXPERTS_MAX 64 /* of a rank */
#define TOKENS_MAX 1e15

struct ocs_moe_demand *ocs_moe_demand_create(int n)
{
	struct ocs_moe_demand *demand = ocs_calloc(1, sizeof(*demand));

	demand->n = n;
	demand->tokens = ocs_calloc((size_t)n * n, sizeof(*demand->tokens));
	return demand;
}

void ocs_moe_demand_destroy(struct ocs_moe_demand *demand)
{
	if (!demand)
		return;
	free(demand->tokens);
	free(demand);
}

/* Adds row RANK of RANKS to that of the server on which the rank runs. */
static int row_add(struct ocs_moe_demand *demand, struct json_object *row, int rank, int ranks,
		   struct ocs_error *err)
{
	int from = rank / (ranks / demand->n), each, columns;

	columns =
		json_object_is_type(row, json_type_array) ? (int)json_object_array_length(row) : 0;
	if (!columns || columns % ranks || columns / ranks > EXPERTS_MAX)
		return ocs_error_set(err, OCS_USAGE,
				     "matrix: row %d is not a list of %d numbers, as many as there "
				     "are rows, or of as many for each expert of a rank",
				     rank, ranks);
	each = columns / demand->n;
	for (int j = 0; j < columns; j++) {
		struct json_object *item = json_object_array_get_idx(row, (size_t)j);
		double tokens = json_object_get_double(item);

		if ((!json_object_is_type(item, json_type_int) &&
		     !json_object_is_type(item, json_type_double)) ||
		    !isfinite(tokens) || tokens < 0 || tokens > TOKENS_MAX)
			return ocs_error_set(err, OCS_USAGE,
					     "matrix: row %d, column %d is not a number from 0 to "
					     "%g",
					     rank, j, TOKENS_MAX);
		if (j / each != from)
			demand->tokens[from * demand->n + j / each] += tokens;
	}
	return 0;
}

struct ocs_moe_demand *ocs_moe_demand_from_json(struct json_object *json, int servers,
						struct ocs_error *err)
{
	struct json_object *rows = json;
	struct ocs_moe_demand *demand;
	int ranks;

	if (json_object_is_type(json, json_type_object))
		json_object_object_get_ex(json, "tokens", &rows);
	if (!json_object_is_type(rows, json_type_array) || !json_object_array_length(rows)) {
		ocs_error_set(err, OCS_USAGE,
			      "matrix: a list of rows such as [[0,5],[7,0]] is wanted");
		return NULL;
	}
	if (json_object_array_length(rows) > (size_t)OCS_MOE_SERVERS_MAX * 8) {
		ocs_error_set(err, OCS_USAGE, "matrix: %zu rows, at most %d are read",
			      json_object_array_length(rows), OCS_MOE_SERVERS_MAX * 8);
		return NULL;
	}
	ranks = (int)json_object_array_length(rows);
	if (!servers)
		servers = ranks;
	if (servers > OCS_MOE_SERVERS_MAX || ranks % servers) {
		ocs_error_set(err, OCS_USAGE,
			      "matrix: %d ranks do not fill %d servers evenly (at most %d)", ranks,
			      servers, OCS_MOE_SERVERS_MAX);
		return NULL;
	}
	demand = ocs_moe_demand_create(servers);
	for (int i = 0; i < ranks; i++) {
		if (row_add(demand, json_object_array_get_idx(rows, (size_t)i), i, ranks, err)) {
			ocs_moe_demand_destroy(demand);
			return NULL;
		}
	}
	return demand;
}
