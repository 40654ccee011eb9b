/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The demand file: {"allreduce":[{"members":[...],"bytes":b}],"mp":[[...]]}.  It
 * comes from users: everything is bounded and checked before it is believed. */

#include <json-c/json.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/plan/internal.h"
#include "src/util/error.h"
#include "src/util/text.h"

#define GROUPS_MAX 4096
#define DEPTH_MAX 6
#define BYTES_MAX 4e18

/* Groups as they are read: nothing was planned for them. */
static void groups_discard(struct ocs_plan_group *groups, int ngroups)
{
	for (int i = 0; i < ngroups; i++)
		free(groups[i].members);
	free(groups);
}

/* Whole, not negative; 1e9 is a double to json-c. */
static int bytes_get(struct json_object *json, long long *bytes)
{
	double value;

	if (!json_object_is_type(json, json_type_int) &&
	    !json_object_is_type(json, json_type_double))
		return -1;
	value = json_object_get_double(json);
	if (!isfinite(value) || value < 0 || value > BYTES_MAX || value != floor(value))
		return -1;
	if (json_object_is_type(json, json_type_int))
		*bytes = json_object_get_int64(json);
	else
		*bytes = (long long)value;
	return 0;
}

static int members_parse(struct json_object *json, int index, int servers,
			 struct ocs_plan_group *group, struct ocs_error *err)
{
	char *seen;
	size_t count;

	if (!json_object_is_type(json, json_type_array) || json_object_array_length(json) == 0)
		return ocs_error_set(err, OCS_USAGE,
				     "demand: allreduce group %d needs a list of members", index);
	count = json_object_array_length(json);
	if (count > (size_t)servers)
		return ocs_error_set(
			err, OCS_USAGE,
			"demand: allreduce group %d has %zu members, there are %s%d servers", index,
			count, servers == OCS_PLAN_SERVERS_MAX ? "at most " : "", servers);
	group->members = ocs_calloc(count, sizeof(int));
	seen = ocs_calloc(servers, 1);
	for (size_t i = 0; i < count; i++) {
		struct json_object *item = json_object_array_get_idx(json, i);
		int64_t member =
			json_object_is_type(item, json_type_int) ? json_object_get_int64(item) : -1;

		if (member < 0 || member >= servers || seen[member]) {
			free(seen);
			return ocs_error_set(err, OCS_USAGE,
					     "demand: member %zu of allreduce group %d is not a "
					     "server number from 0 to %d that occurs once",
					     i, index, servers - 1);
		}
		seen[member] = 1;
		group->members[i] = (int)member;
	}
	free(seen);
	group->nmembers = (int)count;
	return 0;
}

static int group_parse(struct json_object *json, int index, int servers,
		       struct ocs_plan_group *group, struct ocs_error *err)
{
	bool members = false, bytes = false;

	if (!json_object_is_type(json, json_type_object))
		return ocs_error_set(
			err, OCS_USAGE,
			"demand: allreduce group %d is not an object with members and bytes",
			index);
	json_object_object_foreach (json, key, value) {
		if (strcmp(key, "members") == 0 && !members) {
			members = true;
			if (members_parse(value, index, servers, group, err) < 0)
				return -1;
		} else if (strcmp(key, "bytes") == 0) {
			bytes = true;
			if (bytes_get(value, &group->bytes) < 0)
				return ocs_error_set(err, OCS_USAGE,
						     "demand: bytes of allreduce group %d is not "
						     "a whole number of at least 0",
						     index);
		} else {
			return ocs_error_set(err, OCS_USAGE,
					     "demand: unknown key '%.40s' in allreduce group %d "
					     "(known: members, bytes)",
					     key, index);
		}
	}
	if (!members || !bytes)
		return ocs_error_set(err, OCS_USAGE, "demand: allreduce group %d lacks %s", index,
				     members ? "bytes" : "members");
	return 0;
}

static int groups_parse(struct json_object *json, int servers, struct ocs_plan_group **groups,
			int *ngroups, struct ocs_error *err)
{
	size_t count;

	if (!json_object_is_type(json, json_type_array))
		return ocs_error_set(err, OCS_USAGE, "demand: allreduce is not a list of groups");
	count = json_object_array_length(json);
	if (count > GROUPS_MAX)
		return ocs_error_set(err, OCS_USAGE,
				     "demand: %zu allreduce groups, at most %d are read", count,
				     GROUPS_MAX);
	*groups = ocs_calloc(count ? count : 1, sizeof(**groups));
	for (size_t i = 0; i < count; i++) {
		*ngroups = (int)i + 1;
		if (group_parse(json_object_array_get_idx(json, i), (int)i, servers, &(*groups)[i],
				err) < 0)
			return -1;
	}
	return 0;
}

static int row_parse(struct json_object *row, int i, int servers, double *bytes, bool *any,
		     struct ocs_error *err)
{
	for (int j = 0; j < servers; j++) {
		long long value;

		if (bytes_get(json_object_array_get_idx(row, j), &value) < 0)
			return ocs_error_set(
				err, OCS_USAGE,
				"demand: mp[%d][%d] is not a whole number of at least 0", i, j);
		if (i == j) /* what a server sends to itself needs no circuit */
			continue;
		bytes[j] = (double)value;
		*any |= value > 0;
	}
	return 0;
}

/* An n x n matrix of bytes; all zeros is none. */
static int mp_parse(struct json_object *json, int servers, double **mp, struct ocs_error *err)
{
	bool any = false;

	if (!json_object_is_type(json, json_type_array) ||
	    json_object_array_length(json) != (size_t)servers)
		return ocs_error_set(err, OCS_USAGE,
				     "demand: mp is not a list of %d rows, one for each server",
				     servers);
	/* Before there is memory for what a text may claim. */
	for (int i = 0; i < servers; i++) {
		struct json_object *row = json_object_array_get_idx(json, i);

		if (!json_object_is_type(row, json_type_array) ||
		    json_object_array_length(row) != (size_t)servers)
			return ocs_error_set(err, OCS_USAGE,
					     "demand: row %d of mp is not a list of %d "
					     "numbers, one for each server",
					     i, servers);
	}
	*mp = ocs_calloc((size_t)servers * servers, sizeof(**mp));
	for (int i = 0; i < servers; i++)
		if (row_parse(json_object_array_get_idx(json, i), i, servers,
			      *mp + (size_t)i * servers, &any, err) < 0)
			return -1;
	if (!any) {
		free(*mp);
		*mp = NULL;
	}
	return 0;
}

static struct json_object *text_parse(const char *text, struct ocs_error *err)
{
	struct json_tokener *tokener;
	struct json_object *json;
	size_t length = strlen(text);

	if (length > OCS_PLAN_DEMAND_MAX) {
		ocs_error_set(err, OCS_USAGE, "demand: %zu bytes, at most %d are read", length,
			      OCS_PLAN_DEMAND_MAX);
		return NULL;
	}
	tokener = json_tokener_new_ex(DEPTH_MAX);
	if (!tokener)
		abort();
	json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	/* the NUL goes along, so that a number at the end is complete */
	json = json_tokener_parse_ex(tokener, text, (int)length + 1);
	if (json_tokener_get_error(tokener) != json_tokener_success ||
	    !json_object_is_type(json, json_type_object)) {
		enum json_tokener_error code = json_tokener_get_error(tokener);

		ocs_error_set(err, OCS_USAGE, "demand: not a JSON object (%s at byte %zu)",
			      code == json_tokener_success ? "another value" :
							     json_tokener_error_desc(code),
			      json_tokener_get_parse_end(tokener));
		json_object_put(json);
		json = NULL;
	}
	json_tokener_free(tokener);
	return json;
}

static int trees_parse(struct json_object *json, int *trees, struct ocs_error *err)
{
	int64_t count = json_object_is_type(json, json_type_int) ? json_object_get_int64(json) : -1;

	if (count < 0 || count > OCS_PLAN_TREES_MAX)
		return ocs_error_set(err, OCS_USAGE,
				     "demand: trees is not a whole number from 0 to "
				     "%d",
				     OCS_PLAN_TREES_MAX);
	*trees = (int)count;
	return 0;
}

/* 1 stock, 0 permuted, or -1. */
static int rings_kind(struct json_object *json)
{
	const char *kind =
		json_object_is_type(json, json_type_string) ? json_object_get_string(json) : "";

	return strcmp(kind, "stock") == 0 ? 1 : strcmp(kind, "permuted") == 0 ? 0 : -1;
}

bool ocs_plan_demand_bare(const char *demand)
{
	struct json_object *json = demand ? text_parse(demand, NULL) : NULL, *value = NULL;
	bool bare = json && json_object_object_length(json) == 1 &&
		    json_object_object_get_ex(json, "rings", &value) && rings_kind(value) >= 0;

	json_object_put(json);
	return bare;
}

int ocs_plan_demand_rings(const char *demand)
{
	struct json_object *json = demand ? text_parse(demand, NULL) : NULL, *value = NULL;
	int kind;

	json_object_object_get_ex(json, "rings", &value);
	kind = rings_kind(value);
	json_object_put(json);
	return kind;
}

/* As many as mp has rows; as many as there may be. */
static int servers_guess(struct json_object *json)
{
	struct json_object *mp;
	size_t rows = 0;

	if (json_object_object_get_ex(json, "mp", &mp) && json_object_is_type(mp, json_type_array))
		rows = json_object_array_length(mp);
	return rows && rows < OCS_PLAN_SERVERS_MAX ? (int)rows : OCS_PLAN_SERVERS_MAX;
}

int ocs_plan_demand_parse(const char *text, int servers, struct ocs_plan_group **groups,
			  int *ngroups, double **mp, int *trees, struct ocs_error *err)
{
	struct json_object *json = text_parse(text, err);
	bool bare = false;
	int rc = 0;

	*groups = NULL;
	*mp = NULL;
	*ngroups = 0;
	*trees = 0;
	if (!json)
		return -1;
	if (!servers)
		servers = servers_guess(json);
	json_object_object_foreach (json, key, value) {
		if (strcmp(key, "allreduce") == 0 && !*groups)
			rc = groups_parse(value, servers, groups, ngroups, err);
		else if (strcmp(key, "mp") == 0 && !*mp)
			rc = mp_parse(value, servers, mp, err);
		else if (strcmp(key, "trees") == 0)
			rc = trees_parse(value, trees, err);
		else if (strcmp(key, "rings") == 0)
			rc = rings_kind(value) >= 0 ?
				     0 :
				     ocs_error_set(err, OCS_USAGE,
						   "demand: rings is \"stock\" or \"permuted\"");
		else
			rc = ocs_error_set(
				err, OCS_USAGE,
				"demand: unknown key '%.40s' (known: allreduce, mp, rings, trees)",
				key);
		if (rc < 0)
			break;
		bare = strcmp(key, "rings") == 0 && json_object_object_length(json) == 1;
	}
	json_object_put(json);
	if (rc == 0 && *ngroups == 0 && !*mp && !bare)
		rc = ocs_error_set(
			err, OCS_USAGE,
			"demand: neither an allreduce group nor mp bytes; an example is {\"allreduce\":"
			"[{\"members\":[0,1,2,3],\"bytes\":1000000}]}");
	if (rc < 0) {
		groups_discard(*groups, *ngroups);
		free(*mp);
		*groups = NULL;
		*mp = NULL;
		*ngroups = 0;
	}
	return rc;
}

int ocs_plan_demand_check(const char *text, int servers, struct ocs_error *err)
{
	struct ocs_plan_group *groups;
	int ngroups, trees;
	double *mp;

	if (ocs_plan_demand_parse(text, servers, &groups, &ngroups, &mp, &trees, err) < 0)
		return -1;
	groups_discard(groups, ngroups);
	free(mp);
	return 0;
}
