/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/moe/circuits.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "src/util/error.h"
#include "src/util/text.h"

struct ocs_moe_region *ocs_moe_region_create(int n, int ports, double packets)
{
	struct ocs_moe_region *region = ocs_calloc(1, sizeof(*region));

	region->n = n;
	region->ports = ocs_calloc((size_t)n, sizeof(*region->ports));
	region->packets = packets;
	for (int i = 0; i < n; i++)
		region->ports[i] = ports;
	return region;
}

void ocs_moe_region_destroy(struct ocs_moe_region *region)
{
	if (!region)
		return;
	free(region->ports);
	free(region);
}

struct ocs_moe_circuits *ocs_moe_circuits_create(int n)
{
	struct ocs_moe_circuits *circuits = ocs_calloc(1, sizeof(*circuits));

	circuits->n = n;
	circuits->count = ocs_calloc((size_t)n * n, sizeof(*circuits->count));
	return circuits;
}

struct ocs_moe_circuits *ocs_moe_circuits_copy(const struct ocs_moe_circuits *circuits)
{
	struct ocs_moe_circuits *copy = ocs_moe_circuits_create(circuits->n);

	memcpy(copy->count, circuits->count,
	       (size_t)circuits->n * circuits->n * sizeof(*copy->count));
	return copy;
}

void ocs_moe_circuits_destroy(struct ocs_moe_circuits *circuits)
{
	if (!circuits)
		return;
	free(circuits->count);
	free(circuits);
}

void ocs_moe_circuits_add(struct ocs_moe_circuits *circuits, int i, int j, int by)
{
	circuits->count[i * circuits->n + j] += by;
	circuits->count[j * circuits->n + i] += by;
}

int ocs_moe_circuits_degree(const struct ocs_moe_circuits *circuits, int i)
{
	int degree = 0;

	for (int j = 0; j < circuits->n; j++)
		degree += circuits->count[i * circuits->n + j];
	return degree;
}

int ocs_moe_circuits_cut(const struct ocs_moe_circuits *before,
			 const struct ocs_moe_circuits *after)
{
	int cut = 0;

	for (int i = 0; i < before->n; i++) {
		for (int j = i + 1; j < before->n; j++) {
			int less =
				before->count[i * before->n + j] - after->count[i * after->n + j];

			cut += less > 0 ? less : 0;
		}
	}
	return cut;
}

/* One [i,j,count]. */
static int entry_add(struct ocs_moe_circuits *circuits, const struct ocs_moe_region *region,
		     struct json_object *entry, size_t index, struct ocs_error *err)
{
	int64_t value[3];

	if (!json_object_is_type(entry, json_type_array) || json_object_array_length(entry) != 3)
		goto malformed;
	for (size_t k = 0; k < 3; k++) {
		struct json_object *item = json_object_array_get_idx(entry, k);

		if (!json_object_is_type(item, json_type_int))
			goto malformed;
		value[k] = json_object_get_int64(item);
	}
	if (value[0] < 0 || value[1] < 0 || value[0] >= region->n || value[1] >= region->n ||
	    value[0] == value[1])
		return ocs_error_set(err, OCS_USAGE,
				     "circuits: entry %zu does not join two of the servers 0 to %d",
				     index, region->n - 1);
	if (circuits->count[value[0] * region->n + value[1]])
		return ocs_error_set(err, OCS_USAGE,
				     "circuits: entry %zu names a pair a second time", index);
	if (value[2] < 1 || value[2] > region->ports[value[0]] ||
	    value[2] > region->ports[value[1]])
		return ocs_error_set(err, OCS_USAGE,
				     "circuits: entry %zu has %lld circuits; its servers have %d "
				     "and %d ports",
				     index, (long long)value[2], region->ports[value[0]],
				     region->ports[value[1]]);
	ocs_moe_circuits_add(circuits, (int)value[0], (int)value[1], (int)value[2]);
	return 0;
malformed:
	return ocs_error_set(err, OCS_USAGE, "circuits: entry %zu is not [i,j,count]", index);
}

struct ocs_moe_circuits *ocs_moe_circuits_from_json(struct json_object *json,
						    const struct ocs_moe_region *region,
						    struct ocs_error *err)
{
	struct json_object *list = json;
	struct ocs_moe_circuits *circuits;

	if (json_object_is_type(json, json_type_object))
		json_object_object_get_ex(json, "circuits", &list);
	if (!json_object_is_type(list, json_type_array)) {
		ocs_error_set(err, OCS_USAGE, "circuits: a list of [i,j,count] is wanted");
		return NULL;
	}
	circuits = ocs_moe_circuits_create(region->n);
	for (size_t k = 0; k < json_object_array_length(list); k++) {
		if (entry_add(circuits, region, json_object_array_get_idx(list, k), k, err))
			goto bad;
	}
	for (int i = 0; i < region->n; i++) {
		int degree = ocs_moe_circuits_degree(circuits, i);

		if (degree > region->ports[i]) {
			ocs_error_set(err, OCS_USAGE,
				      "circuits: server %d has %d circuits and %d ports", i, degree,
				      region->ports[i]);
			goto bad;
		}
	}
	return circuits;
bad:
	ocs_moe_circuits_destroy(circuits);
	return NULL;
}

struct json_object *ocs_moe_circuits_to_json(const struct ocs_moe_circuits *circuits)
{
	struct json_object *list = json_object_new_array();

	for (int i = 0; i < circuits->n; i++) {
		for (int j = i + 1; j < circuits->n; j++) {
			int count = circuits->count[i * circuits->n + j];
			struct json_object *entry;

			if (!count)
				continue;
			entry = json_object_new_array_ext(3);
			json_object_array_add(entry, json_object_new_int(i));
			json_object_array_add(entry, json_object_new_int(j));
			json_object_array_add(entry, json_object_new_int(count));
			json_object_array_add(list, entry);
		}
	}
	return list;
}

/* The smallest time from T on for one direction of one server: the pairs at TOKENS, STRIDE apart, in
 * turn.  sum of max(0, D - t C) falls, and less steeply the larger t is, so that Newton's method from
 * below stays below the root and ends on it after as many steps as there are kinks at most. */
static double side_time(const double *tokens, size_t stride, const int *count, int n,
			double packets, double t)
{
	for (;;) {
		double left = 0, rate = packets, next;

		for (int j = 0; j < n; j++) {
			double d = tokens[(size_t)j * stride];

			if (d > t * count[j]) {
				left += d;
				rate += count[j];
			}
		}
		next = left / rate;
		if (!(next > t * (1 + 1e-15)))
			return t;
		t = next;
	}
}

double ocs_moe_finish_time(const struct ocs_moe_demand *demand, const struct ocs_moe_region *region,
			   const struct ocs_moe_circuits *circuits)
{
	int n = demand->n;
	double t = 0;

	for (int i = 0; i < n; i++) {
		const int *count = circuits->count + (size_t)i * n;

		t = side_time(demand->tokens + (size_t)i * n, 1, count, n, region->packets, t);
		t = side_time(demand->tokens + i, (size_t)n, count, n, region->packets, t);
	}
	return t;
}
