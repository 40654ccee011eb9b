/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Plans as JSON. */

#include <json-c/json.h>
#include <limits.h>
#include <stdlib.h>

#include "src/plan/plan.h"
#include "src/util/error.h"
#include "src/util/text.h"

#define NAME_MAX_LENGTH 255
#define PATHS_MAX 1024

static struct json_object *ints_to_json(const int *values, int count)
{
	struct json_object *list = json_object_new_array_ext(count ? count : 1);

	for (int i = 0; i < count; i++)
		json_object_array_add(list, json_object_new_int(values[i]));
	return list;
}

static struct json_object *trees_to_json(const struct ocs_plan_group *group)
{
	struct json_object *list = json_object_new_array();

	for (int t = 0; t < group->ntrees; t++) {
		const struct ocs_plan_tree *tree = &group->trees[t];
		struct json_object *json = json_object_new_object();
		struct json_object *parents = json_object_new_array();

		for (int i = 0; i < 2; i++)
			json_object_array_add(parents,
					      ints_to_json(tree->parents[i], group->nmembers));
		json_object_object_add(json, "step", json_object_new_int(tree->step));
		json_object_object_add(json, "parents", parents);
		json_object_array_add(list, json);
	}
	return list;
}

static struct json_object *group_to_json(const struct ocs_plan_group *group)
{
	struct json_object *json = json_object_new_object();
	struct json_object *rings = json_object_new_array();
	int *ring = ocs_calloc(group->nmembers, sizeof(int));

	for (int r = 0; r < group->nrings; r++) {
		for (int i = 0; i < group->nmembers; i++)
			ring[i] = group->members[(long)i * group->steps[r] % group->nmembers];
		json_object_array_add(rings, ints_to_json(ring, group->nmembers));
	}
	free(ring);
	json_object_object_add(json, "members", ints_to_json(group->members, group->nmembers));
	json_object_object_add(json, "bytes", json_object_new_int64(group->bytes));
	json_object_object_add(json, "rings", rings);
	json_object_object_add(json, "steps", ints_to_json(group->steps, group->nrings));
	if (group->ntrees)
		json_object_object_add(json, "trees", trees_to_json(group));
	return json;
}

static struct json_object *circuit_to_json(const struct ocs_plan_circuit *circuit)
{
	struct json_object *json = json_object_new_object();

	json_object_object_add(json, "a", ints_to_json((int[]){ circuit->a, circuit->a_port }, 2));
	json_object_object_add(json, "b", ints_to_json((int[]){ circuit->b, circuit->b_port }, 2));
	json_object_object_add(json, "ocs", json_object_new_int(circuit->ocs));
	json_object_object_add(json, "group", json_object_new_int(circuit->group));
	return json;
}

static struct json_object *route_to_json(const struct ocs_plan_route *route)
{
	struct json_object *json = json_object_new_object();
	struct json_object *paths = json_object_new_array();
	struct json_object *weights = json_object_new_array();

	for (int p = 0; p < route->npaths; p++) {
		json_object_array_add(paths, ints_to_json(route->paths[p], route->lengths[p]));
		json_object_array_add(weights, json_object_new_double(route->weights[p]));
	}
	json_object_object_add(json, "src", json_object_new_int(route->src));
	json_object_object_add(json, "dst", json_object_new_int(route->dst));
	json_object_object_add(json, "paths", paths);
	json_object_object_add(json, "weights", weights);
	return json;
}

struct json_object *ocs_plan_to_json(const struct ocs_plan *plan)
{
	struct json_object *json = json_object_new_object();
	struct json_object *groups = json_object_new_array();
	struct json_object *circuits = json_object_new_array();
	struct json_object *nodes = json_object_new_array();
	struct json_object *routes = json_object_new_array();

	for (int i = 0; i < plan->ngroups; i++)
		json_object_array_add(groups, group_to_json(&plan->groups[i]));
	for (int i = 0; i < plan->ncircuits; i++)
		json_object_array_add(circuits, circuit_to_json(&plan->circuits[i]));
	for (int i = 0; plan->nodes && i < plan->servers; i++)
		json_object_array_add(nodes, json_object_new_string(plan->nodes[i]));
	for (int i = 0; i < plan->nroutes; i++)
		json_object_array_add(routes, route_to_json(&plan->routes[i]));
	json_object_object_add(json, "servers", json_object_new_int(plan->servers));
	json_object_object_add(json, "degree", json_object_new_int(plan->degree));
	json_object_object_add(json, "directed", json_object_new_boolean(plan->directed));
	json_object_object_add(json, "any_port", json_object_new_boolean(plan->any_port));
	json_object_object_add(json, "assignment",
			       json_object_new_string(plan->assignment ? plan->assignment : ""));
	json_object_object_add(json, "groups", groups);
	json_object_object_add(json, "circuits", circuits);
	json_object_object_add(json, "nodes", nodes);
	if (plan->routes)
		json_object_object_add(json, "routes", routes);
	else
		json_object_put(routes);
	json_object_object_add(json, "diameter", json_object_new_int(plan->diameter));
	json_object_object_add(json, "average_hops", json_object_new_double(plan->average_hops));
	json_object_object_add(json, "max_link_load", json_object_new_double(plan->max_link_load));
	json_object_object_add(json, "bandwidth_tax", json_object_new_double(plan->bandwidth_tax));
	json_object_object_add(json, "revision", json_object_new_int(plan->revision));
	return json;
}

/* ---- reading ---- */

static int number_whole(struct json_object *json, int min, int max, int *value)
{
	int64_t number;

	if (!json_object_is_type(json, json_type_int))
		return -1;
	number = json_object_get_int64(json);
	if (number < min || number > max)
		return -1;
	*value = (int)number;
	return 0;
}

static int member_int(struct json_object *json, const char *name, int min, int max, int *value,
		      struct ocs_error *err)
{
	if (number_whole(json_object_object_get(json, name), min, max, value) == 0)
		return 0;
	return ocs_error_set(err, OCS_USAGE, "plan: %s is not a whole number from %d to %d", name,
			     min, max);
}

/* A list of at most MAX members; *COUNT its length. */
static struct json_object *member_list(struct json_object *json, const char *name, size_t max,
				       int *count, struct ocs_error *err)
{
	struct json_object *list = json_object_object_get(json, name);

	if (!json_object_is_type(list, json_type_array) || json_object_array_length(list) > max) {
		ocs_error_set(err, OCS_USAGE, "plan: %s is not a list of at most %zu", name, max);
		return NULL;
	}
	*count = (int)json_object_array_length(list);
	return list;
}

/* COUNT numbers of [MIN, MAX] out of LIST, which must have exactly as many. */
static int *range_from_json(struct json_object *list, int count, int min, int max)
{
	int *values;

	if (!json_object_is_type(list, json_type_array) ||
	    json_object_array_length(list) != (size_t)count)
		return NULL;
	values = ocs_calloc(count ? count : 1, sizeof(int));
	for (int i = 0; i < count; i++)
		if (number_whole(json_object_array_get_idx(list, i), min, max, &values[i]) < 0) {
			free(values);
			return NULL;
		}
	return values;
}

static int *ints_from_json(struct json_object *list, int count, int max)
{
	return range_from_json(list, count, 0, max);
}

static int trees_from_json(struct json_object *list, const struct ocs_plan *plan,
			   struct ocs_plan_group *group)
{
	int count = (int)json_object_array_length(list);

	group->trees = ocs_calloc(count + 1, sizeof(*group->trees));
	for (int t = 0; t < count; t++) {
		struct json_object *json = json_object_array_get_idx(list, t);
		struct json_object *parents = json_object_object_get(json, "parents");
		struct ocs_plan_tree *tree = &group->trees[group->ntrees++];

		if (number_whole(json_object_object_get(json, "step"), 1, plan->servers,
				 &tree->step) < 0 ||
		    !json_object_is_type(parents, json_type_array))
			return -1;
		for (int i = 0; i < 2; i++) {
			tree->parents[i] = range_from_json(json_object_array_get_idx(parents, i),
							   group->nmembers, -1, plan->servers - 1);
			if (!tree->parents[i])
				return -1;
		}
	}
	return 0;
}

/* Are the rings written out those that the steps give? */
static bool rings_agree(struct json_object *rings, const struct ocs_plan_group *group)
{
	for (int r = 0; r < group->nrings; r++) {
		int *ring = ints_from_json(json_object_array_get_idx(rings, r), group->nmembers,
					   INT_MAX);
		bool same = ring;

		for (int i = 0; same && i < group->nmembers; i++)
			same = ring[i] ==
			       group->members[(long)i * group->steps[r] % group->nmembers];
		free(ring);
		if (!same)
			return false;
	}
	return true;
}

static int group_from_json(struct json_object *json, const struct ocs_plan *plan,
			   struct ocs_plan_group *group, struct ocs_error *err)
{
	struct json_object *members, *rings, *list, *bytes = json_object_object_get(json, "bytes");
	int nrings;

	members = member_list(json, "members", plan->servers, &group->nmembers, err);
	rings = members ? member_list(json, "rings", plan->degree, &nrings, err) : NULL;
	if (!rings)
		return -1;
	group->members = ints_from_json(members, group->nmembers, plan->servers - 1);
	group->steps = ints_from_json(json_object_object_get(json, "steps"), nrings, plan->servers);
	if (!group->members || !group->steps || group->nmembers < 1)
		return ocs_error_set(err, OCS_USAGE,
				     "plan: members or steps of a group are malformed");
	group->nrings = nrings;
	if (!rings_agree(rings, group))
		return ocs_error_set(err, OCS_USAGE,
				     "plan: the rings of a group are not those of its steps");
	list = json_object_object_get(json, "trees");
	if (list && (!json_object_is_type(list, json_type_array) ||
		     json_object_array_length(list) > OCS_PLAN_TREES_MAX ||
		     trees_from_json(list, plan, group) < 0))
		return ocs_error_set(err, OCS_USAGE, "plan: the trees of a group are malformed");
	if (json_object_is_type(bytes, json_type_int))
		group->bytes = json_object_get_int64(bytes);
	return 0;
}

static int circuit_from_json(struct json_object *json, const struct ocs_plan *plan,
			     struct ocs_plan_circuit *circuit)
{
	int max = plan->servers > plan->degree ? plan->servers : plan->degree, rc = -1;
	int *a = ints_from_json(json_object_object_get(json, "a"), 2, max);
	int *b = ints_from_json(json_object_object_get(json, "b"), 2, max);

	if (a && b && a[0] < plan->servers && b[0] < plan->servers && a[1] < plan->degree &&
	    b[1] < plan->degree) {
		*circuit = (struct ocs_plan_circuit){ a[0], a[1], b[0], b[1], 0, -1 };
		rc = number_whole(json_object_object_get(json, "ocs"), 0, plan->degree - 1,
				  &circuit->ocs);
		if (rc == 0 && json_object_object_get(json, "group"))
			rc = number_whole(json_object_object_get(json, "group"), -1,
					  plan->ngroups - 1, &circuit->group);
	}
	free(a);
	free(b);
	return rc;
}

static int route_from_json(struct json_object *json, const struct ocs_plan *plan,
			   struct ocs_plan_route *route, struct ocs_error *err)
{
	struct json_object *paths, *weights;
	int npaths, nweights;

	if (member_int(json, "src", 0, plan->servers - 1, &route->src, err) < 0 ||
	    member_int(json, "dst", 0, plan->servers - 1, &route->dst, err) < 0)
		return -1;
	paths = member_list(json, "paths", PATHS_MAX, &npaths, err);
	weights = paths ? member_list(json, "weights", PATHS_MAX, &nweights, err) : NULL;
	if (!weights)
		return -1;
	if (npaths < 1 || npaths != nweights)
		return ocs_error_set(err, OCS_USAGE, "plan: a route needs a weight for each path");
	route->paths = ocs_calloc(npaths, sizeof(*route->paths));
	route->lengths = ocs_calloc(npaths, sizeof(*route->lengths));
	route->weights = ocs_calloc(npaths, sizeof(*route->weights));
	route->npaths = npaths;
	for (int p = 0; p < npaths; p++) {
		struct json_object *path = json_object_array_get_idx(paths, p);
		struct json_object *weight = json_object_array_get_idx(weights, p);
		size_t length = json_object_is_type(path, json_type_array) ?
					json_object_array_length(path) :
					0;

		if (length < 1 || length > (size_t)plan->servers ||
		    (!json_object_is_type(weight, json_type_double) &&
		     !json_object_is_type(weight, json_type_int)))
			return ocs_error_set(err, OCS_USAGE, "plan: a path or weight is malformed");
		route->lengths[p] = (int)length;
		route->weights[p] = json_object_get_double(weight);
		route->paths[p] = ints_from_json(path, (int)length, plan->servers - 1);
		if (!route->paths[p])
			return ocs_error_set(err, OCS_USAGE, "plan: a path leaves the servers");
	}
	return 0;
}

static int nodes_from_json(struct json_object *json, struct ocs_plan *plan, struct ocs_error *err)
{
	struct json_object *list;
	int count;

	if (!json_object_object_get(json, "nodes"))
		return 0;
	list = member_list(json, "nodes", plan->servers, &count, err);
	if (!list)
		return -1;
	if (count == 0)
		return 0;
	if (count != plan->servers)
		return ocs_error_set(err, OCS_USAGE, "plan: %d nodes for %d servers", count,
				     plan->servers);
	plan->nodes = ocs_calloc(count, sizeof(char *));
	for (int i = 0; i < count; i++) {
		struct json_object *name = json_object_array_get_idx(list, i);

		if (!json_object_is_type(name, json_type_string) ||
		    json_object_get_string_len(name) > NAME_MAX_LENGTH)
			return ocs_error_set(err, OCS_USAGE, "plan: node %d is not a name", i);
		plan->nodes[i] = ocs_strdup(json_object_get_string(name));
	}
	return 0;
}

static int lists_from_json(struct json_object *json, struct ocs_plan *plan, struct ocs_error *err)
{
	struct json_object *list;
	int count;

	list = member_list(json, "groups", 65536, &count, err);
	if (!list)
		return -1;
	plan->groups = ocs_calloc(count + 1, sizeof(*plan->groups));
	for (plan->ngroups = 0; plan->ngroups < count;) {
		int g = plan->ngroups++;

		if (group_from_json(json_object_array_get_idx(list, g), plan, &plan->groups[g],
				    err) < 0)
			return -1;
	}
	list = member_list(json, "circuits", (size_t)plan->servers * plan->degree, &count, err);
	if (!list)
		return -1;
	plan->circuits = ocs_calloc(count + 1, sizeof(*plan->circuits));
	plan->ncircuits = count;
	for (int i = 0; i < count; i++)
		if (circuit_from_json(json_object_array_get_idx(list, i), plan,
				      &plan->circuits[i]) < 0)
			return ocs_error_set(err, OCS_USAGE, "plan: circuit %d is malformed", i);
	if (!json_object_object_get(json, "routes"))
		return 0;
	list = member_list(json, "routes", (size_t)plan->servers * plan->servers, &count, err);
	if (!list)
		return -1;
	plan->routes = ocs_calloc(count + 1, sizeof(*plan->routes));
	plan->nroutes = count;
	for (int i = 0; i < count; i++)
		if (route_from_json(json_object_array_get_idx(list, i), plan, &plan->routes[i],
				    err) < 0)
			return -1;
	return 0;
}

static int numbers_from_json(struct json_object *json, struct ocs_plan *plan, struct ocs_error *err)
{
	struct json_object *hops = json_object_object_get(json, "average_hops");
	struct json_object *load = json_object_object_get(json, "max_link_load");
	struct json_object *tax = json_object_object_get(json, "bandwidth_tax");
	struct json_object *directed = json_object_object_get(json, "directed");
	struct json_object *sentence = json_object_object_get(json, "assignment");

	if (member_int(json, "servers", 1, OCS_PLAN_SERVERS_MAX, &plan->servers, err) < 0 ||
	    member_int(json, "degree", 1, OCS_PLAN_DEGREE_MAX, &plan->degree, err) < 0 ||
	    member_int(json, "diameter", 0, OCS_PLAN_SERVERS_MAX, &plan->diameter, err) < 0)
		return -1;
	plan->revision = 1;
	if (json_object_object_get(json, "revision") &&
	    member_int(json, "revision", 1, INT_MAX - 1, &plan->revision, err) < 0)
		return -1;
	if (!json_object_is_type(directed, json_type_boolean))
		return ocs_error_set(err, OCS_USAGE, "plan: directed is not true or false");
	plan->directed = json_object_get_boolean(directed);
	plan->any_port = json_object_get_boolean(json_object_object_get(json, "any_port"));
	if (sentence && json_object_is_type(sentence, json_type_string))
		plan->assignment = ocs_strdup(json_object_get_string(sentence));
	if (!hops || !load)
		return ocs_error_set(err, OCS_USAGE,
				     "plan: average_hops or max_link_load is missing");
	plan->average_hops = json_object_get_double(hops);
	plan->max_link_load = json_object_get_double(load);
	plan->bandwidth_tax = tax ? json_object_get_double(tax) : 1;
	return 0;
}

struct ocs_plan *ocs_plan_from_json(struct json_object *json, struct ocs_error *err)
{
	struct ocs_plan *plan;

	if (!json_object_is_type(json, json_type_object)) {
		ocs_error_set(err, OCS_USAGE, "plan: not a JSON object");
		return NULL;
	}
	plan = ocs_calloc(1, sizeof(*plan));
	if (numbers_from_json(json, plan, err) < 0 || nodes_from_json(json, plan, err) < 0 ||
	    lists_from_json(json, plan, err) < 0) {
		ocs_plan_destroy(plan);
		return NULL;
	}
	return plan;
}
