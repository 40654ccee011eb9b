/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* 'ocsctl region check': how long a change of the circuits of a region takes, and the links after it, and whether
 * that is short enough to change them while jobs train.  It runs in a job of its own, on idle ports. */

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/config/config.h"
#include "src/fabric/fabric.h"
#include "src/ocsctl/cmd/link_times.h"
#include "src/ocsctl/cmd/region.h"
#include "src/ocsctl/ocsctl.h"
#include "src/ocsctl/output/table.h"
#include "src/place/region_circuits.h"
#include "src/protocol/client.h"
#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/util/net.h"

#define CHANGE_MS 60000
#define MILLION 1e6
#define NICS_MAX 64

struct check {
	struct ocs_config *config;
	const struct ocs_section *section;
	struct ocs_client *client;
	struct json_object *region; /* of the reply to `show` */
	const char *sw;
	long job;
	int64_t epoch, seq;
	int servers, nics;
	char *key;
	struct ocs_region_circuits one, other; /* without a circuit in common */
	struct ocs_ctl_times times;
};

static int no_job(struct ocs_error *err)
{
	return ocs_error_set(
		err, OCS_USAGE,
		"region check: run it in a job of its own, which holds idle ports, such as\n"
		"  srun --immediate -p PARTITION -N2 --shape=ep:16 --ocs-moe --ntasks-per-node=1 ocsctl region check\n"
		"with a dimension ep that takes two or three servers; this must be its first node, in a section without circuits that stay");
}

/* All NICs of the first server lead to the second one; and then to the third one, or to another NIC, or nowhere. */
static void circuits_choose(struct check *check)
{
	for (int nic = 0; nic < check->nics; nic++) {
		ocs_region_circuits_add(&check->one, 0, nic, 1, nic);
		if (check->servers > 2)
			ocs_region_circuits_add(&check->other, 0, nic, 2, nic);
		else if (check->nics > 1)
			ocs_region_circuits_add(&check->other, 0, nic, 1, (nic + 1) % check->nics);
	}
}

static int job_read(struct check *check, struct ocs_error *err)
{
	struct json_object *request = ocs_request_new(OCS_OP_SHOW), *reply, *list, *one, *groups;
	size_t count, ngroups;
	char name[24];

	snprintf(name, sizeof(name), "%ld", check->job);
	ocs_field_add_text(request, OCS_FIELD_WHAT, OCS_SHOW_REGION);
	ocs_field_add_text(request, OCS_FIELD_NAME, name);
	reply = ocs_client_call(check->client, request, OCS_CTL_CALL_MS, NULL, err);
	json_object_put(request);
	if (!reply)
		return -1;
	list = ocs_field_array(reply, OCS_FIELD_REGION, &count);
	one = count ? json_object_array_get_idx(list, 0) : NULL;
	groups = ocs_field_array(one, OCS_FIELD_GROUPS, &ngroups);
	check->servers = (int)ocs_field_number(one, OCS_FIELD_SERVERS, 0);
	check->nics = (int)ocs_field_number(one, OCS_FIELD_NICS, 0);
	check->region = json_object_get(one);
	json_object_put(reply);
	if (!ngroups || check->nics != check->section->degree || check->nics > NICS_MAX)
		return ocs_error_set(err, OCS_ERROR, "region check: job %ld has no groups",
				     check->job);
	if (check->servers < 2)
		return ocs_error_set(
			err, OCS_USAGE,
			"region check: a group of job %ld has one server; circuits need two",
			check->job);
	for (size_t g = 0; g < ngroups; g++) {
		int64_t seq =
			ocs_field_number(json_object_array_get_idx(groups, g), OCS_FIELD_SEQ, 0);

		check->seq = seq > check->seq ? seq : check->seq;
	}
	check->sw = ocs_ctl_string(json_object_array_get_idx(groups, 0), OCS_FIELD_SWITCH, "?");
	circuits_choose(check);
	return 0;
}

static int check_open(struct check *check, const struct ocs_ctl_args *args, struct ocs_error *err)
{
	const char *name = getenv("SLURMD_NODENAME");
	const struct ocs_node *node;

	if (ocs_ctl_job_key("moe.key", &check->job, &check->epoch, &check->key) < 0)
		return no_job(err);
	check->config = ocs_ctl_config_open(args, err);
	if (!check->config)
		return -1;
	node = name ? ocs_fabric_node(check->config->fabric, name) : NULL;
	check->section = node ? &check->config->fabric->sections[node->section] : NULL;
	if (!check->section || check->section->kind != OCS_REGION)
		return no_job(err);
	check->client = ocs_ctl_connect(args, check->config, err);
	return check->client ? job_read(check, err) : -1;
}

static void check_close(struct check *check)
{
	ocs_client_close(check->client);
	ocs_config_destroy(check->config);
	json_object_put(check->region);
	ocs_region_circuits_free(&check->one);
	ocs_region_circuits_free(&check->other);
	if (check->key)
		explicit_bzero(check->key, strlen(check->key));
	free(check->key);
}

static struct json_object *circuits_json(const struct ocs_region_circuits *circuits)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < circuits->count; i++) {
		const struct ocs_region_circuit *one = &circuits->items[i];
		const int numbers[] = { one->a, one->a_nic, one->b, one->b_nic };
		struct json_object *row = json_object_new_array();

		for (int n = 0; n < 4; n++)
			json_object_array_add(row, json_object_new_int(numbers[n]));
		json_object_array_add(list, row);
	}
	return list;
}

/* The first group goes to CIRCUITS; sets *MS to what that takes from the request to the answer. */
static int group_change(struct check *check, const struct ocs_region_circuits *circuits, double *ms,
			struct ocs_error *err)
{
	struct json_object *request = ocs_request_new(OCS_OP_REGION), *reply;
	struct json_object *groups = json_object_new_array(), *one = json_object_new_object();
	int64_t begin;

	ocs_field_add_number(request, OCS_FIELD_JOB, check->job);
	ocs_field_add_number(request, OCS_FIELD_EPOCH, check->epoch);
	ocs_field_add_text(request, OCS_FIELD_KEY, check->key);
	ocs_field_add_number(request, OCS_FIELD_SEQ, ++check->seq);
	ocs_field_add_number(one, OCS_FIELD_GROUP, 0);
	json_object_object_add(one, OCS_FIELD_CIRCUITS, circuits_json(circuits));
	json_object_array_add(groups, one);
	json_object_object_add(request, OCS_FIELD_GROUPS, groups);
	begin = ocs_now_ns();
	reply = ocs_client_call(check->client, request, CHANGE_MS, NULL, err);
	*ms = (double)(ocs_now_ns() - begin) / MILLION;
	json_object_put(request);
	json_object_put(reply);
	return reply ? 0 : ocs_error_prefix(err, "region check");
}

static int group_measure(struct check *check, struct ocs_error *err)
{
	struct ocs_ctl_times *times = &check->times;
	const char *devices[NICS_MAX];
	double ms;

	for (int nic = 0; nic < check->nics; nic++)
		devices[nic] = ocs_section_interface_name(check->section, nic);
	/* whatever stands, from here on it is one of the two */
	if (group_change(check, &check->one, &ms, err))
		return -1;
	for (int i = 0; i < OCS_CTL_CHANGES && !times->late; i++) {
		const struct ocs_region_circuits *to = i % 2 ? &check->one : &check->other;

		if (group_change(check, to, &times->change[times->nchanges], err))
			return -1;
		times->nchanges++;
		if (check->section->interfaces && to->count)
			ocs_ctl_links_time(times, devices, check->nics);
	}
	return group_change(check, &check->one, &ms, err);
}

static void times_print(struct check *check)
{
	double whole = ocs_ctl_times_whole(&check->times);
	int limit = check->section->change_limit_ms;
	struct ocs_text_table *table =
		ocs_text_table_create("SWITCH|>CHANGE ms|>LONGEST ms|>LINK ms|>LONGEST ms|FAULT");

	printf("job %ld: %d changes of all circuits of a group; links seen at %s\n", check->job,
	       check->times.nchanges, getenv("SLURMD_NODENAME"));
	ocs_text_table_add(table, check->sw);
	ocs_ctl_times_row(&check->times, table);
	ocs_text_table_print(table, stdout);
	ocs_text_table_destroy(table);
	printf("\nA change costs a job %.1f ms, from its request until the last link is up; up to %d ms"
	       " (change_limit_ms) circuits\nare changed while jobs train.\n",
	       whole, limit);
	if (whole > limit)
		printf("Too long: with \"change_ms: %.0f\" in section %s of ocs.yaml jobs with --ocs-moe get"
		       " circuits that stay.\nA link that takes longer than its switch: turn"
		       " autonegotiation off on both ends.\n",
		       whole, check->section->name);
}

static void times_print_json(struct check *check)
{
	double whole = ocs_ctl_times_whole(&check->times);
	struct json_object *all = json_object_new_object();

	json_object_object_add(all, OCS_FIELD_SWITCH, json_object_new_string(check->sw));
	ocs_ctl_times_json(&check->times, all);
	json_object_object_add(all, "whole_ms", ocs_ctl_times_number(whole));
	json_object_object_add(all, "limit_ms",
			       json_object_new_int(check->section->change_limit_ms));
	json_object_object_add(all, OCS_FIELD_MODE,
			       json_object_new_string(whole > check->section->change_limit_ms ?
							      "static" :
							      "follow"));
	ocs_ctl_print_json(all);
	json_object_put(all);
}

int ocs_ctl_region_check(const struct ocs_ctl_args *args, struct ocs_error *err)
{
	struct check check = { 0 };
	const char *rank = getenv("SLURM_PROCID");
	double whole;
	int rc;

	/* the first task does it for all */
	if (rank && strcmp(rank, "0") != 0)
		return 0;
	rc = check_open(&check, args, err);
	if (rc == 0)
		rc = group_measure(&check, err);
	if (rc == 0) {
		if (args->json)
			times_print_json(&check);
		else
			times_print(&check);
		whole = ocs_ctl_times_whole(&check.times);
		if (check.times.late)
			rc = ocs_ctl_times_late(&check.times, "region check", err);
		else if (whole > check.section->change_limit_ms)
			rc = ocs_error_set(
				err, OCS_ERROR,
				"region check: a change takes %.0f ms, more than the %d ms within which circuits are changed while jobs train",
				whole, check.section->change_limit_ms);
	}
	check_close(&check);
	return rc;
}
