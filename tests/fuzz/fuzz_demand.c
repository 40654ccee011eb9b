/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Demand files, which come from users: the first byte chooses servers and degree, the
 * second how to plan, the rest is the file.  What is accepted must give a plan that
 * the verifier accepts, and again after a trip through JSON. */

#include <json-c/json.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/plan/internal.h"
#include "src/util/error.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void plan_check(const struct ocs_plan_request *request)
{
	struct ocs_error err = { 0 };
	struct ocs_plan *plan = ocs_plan_make(request, &err), *again;
	struct json_object *json;

	if (!plan) {
		if (!err.code || strchr(err.text, '\n'))
			abort();
		return;
	}
	if (ocs_plan_verify(plan, &err))
		abort();
	json = ocs_plan_to_json(plan);
	again = ocs_plan_from_json(json, &err);
	if (!again || ocs_plan_verify(again, &err))
		abort();
	ocs_plan_destroy(again);
	json_object_put(json);
	ocs_plan_destroy(plan);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ocs_plan_request request = { .routes = true };
	struct ocs_plan_group *groups;
	struct ocs_error err = { 0 };
	double *mp;
	int ngroups, trees;
	char *text;

	if (size < 2)
		return 0;
	request.servers = 1 + data[0] % 12;
	request.degree = 1 + data[0] / 12 % 6 + (data[1] & 16 ? 6 : 0);
	request.directed = data[1] & 1;
	request.any_port = data[1] & 2;
	request.best = (data[1] & 12) == 12;
	text = malloc(size - 1);
	if (!text)
		return 0;
	memcpy(text, data + 2, size - 2);
	text[size - 2] = '\0';
	request.demand = text;
	if (ocs_plan_demand_parse(text, request.servers, &groups, &ngroups, &mp, &trees, &err)) {
		if (groups || mp || err.code != OCS_USAGE || strncmp(err.text, "demand: ", 8))
			abort();
	} else {
		ocs_plan_groups_free(groups, ngroups);
		free(mp);
		if (ngroups <= 64)
			plan_check(&request);
	}
	free(text);
	return 0;
}
