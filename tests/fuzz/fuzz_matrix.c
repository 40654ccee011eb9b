/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Matrices of 'ocsctl region plan' and circuits to keep, which come from users: the first byte
 * chooses ports, the second what is done; then the matrix, and after a line feed the circuits.
 * What is accepted must give circuits and routes that the check accepts. */

#include <json-c/json.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/moe/allocate.h"
#include "src/moe/bound.h"
#include "src/moe/routes.h"
#include "src/util/error.h"

#define SERVERS_MAX 24 /* more only take longer */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void refusal_check(const struct ocs_error *err)
{
	if (err->code != OCS_USAGE || !err->text[0] || strchr(err->text, '\n'))
		abort();
}

static void answer_check(const struct ocs_moe_request *request, int relay)
{
	struct ocs_moe_circuits *circuits = ocs_moe_allocate(request);
	struct ocs_moe_routes *routes =
		relay ? ocs_moe_routes_relay(request->demand, request->region, circuits, 5) :
			ocs_moe_routes_direct(request->demand, request->region, circuits);
	double bound = relay ? ocs_moe_bound_ports(request->demand, request->region) :
			       ocs_moe_bound_server(request->demand, request->region);
	struct ocs_error err;

	if (ocs_moe_verify(request->demand, request->region, circuits, routes, &err) ||
	    routes->time < bound * (1 - 1e-9))
		abort();
	if (request->keep && request->policy == OCS_MOE_BEST &&
	    ocs_moe_circuits_cut(request->keep, circuits) > request->change)
		abort();
	ocs_moe_routes_destroy(routes);
	ocs_moe_circuits_destroy(circuits);
}

/* The circuits in TEXT, or NULL. */
static struct ocs_moe_circuits *keep_read(const char *text, const struct ocs_moe_region *region)
{
	struct json_object *json = json_tokener_parse(text);
	struct ocs_error err = { 0 };
	struct ocs_moe_circuits *keep = ocs_moe_circuits_from_json(json, region, &err);

	json_object_put(json);
	if (!keep)
		refusal_check(&err);
	return keep;
}

static void text_try(char *text, int ports, int how)
{
	char *circuits = strchr(text, '\n');
	struct ocs_error err = { 0 };
	struct ocs_moe_demand *demand;
	struct ocs_moe_request request = { .policy = how % 3, .change = how % 5, .effort = 200 };
	struct ocs_moe_region *region;
	struct ocs_moe_circuits *keep;
	struct json_object *json;

	if (circuits)
		*circuits++ = '\0';
	json = json_tokener_parse(text);
	demand = ocs_moe_demand_from_json(json, how / 64, &err);
	json_object_put(json);
	if (!demand) {
		refusal_check(&err);
		return;
	}
	region = ocs_moe_region_create(demand->n, ports, 1 + how % 2);
	keep = circuits ? keep_read(circuits, region) : NULL;
	request.demand = demand;
	request.region = region;
	request.keep = keep;
	if (demand->n <= SERVERS_MAX)
		answer_check(&request, how & 32);
	ocs_moe_circuits_destroy(keep);
	ocs_moe_region_destroy(region);
	ocs_moe_demand_destroy(demand);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text;

	if (size < 2)
		return 0;
	text = malloc(size - 1);
	if (!text)
		return 0;
	memcpy(text, data + 2, size - 2);
	text[size - 2] = '\0';
	text_try(text, data[0] % 9, data[1]);
	free(text);
	return 0;
}
