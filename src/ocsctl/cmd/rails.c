/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* 'ocsctl rails check': how long a change of circuits takes on each rail, and the link after it.  It runs
 * in a job of its own, so the ports are idle by construction, and names topologies with the job's key. */

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/config/config.h"
#include "src/fabric/fabric.h"
#include "src/ocsctl/cmd/link_times.h"
#include "src/ocsctl/ocsctl.h"
#include "src/ocsctl/output/table.h"
#include "src/protocol/client.h"
#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/rails/menu.h"
#include "src/util/net.h"
#include "src/util/text.h"

#define TOPO_MS 60000
#define MILLION 1e6
/* Windows between phases of training that were published: most are longer than 1 ms, few than 1 s. */
#define SHORT_MS 1
#define LONG_MS 1000

struct check {
	const struct ocs_ctl_args *args;
	struct ocs_config *config;
	const struct ocs_section *section;
	struct ocs_client *client;
	long job, seq;
	int64_t epoch;
	char *key;
	struct ocs_rails_layout layout;
	int nrails;
	struct json_object *rails; /* of the reply to `show` */
	char first[OCS_RAILS_TOPOLOGY], other[OCS_RAILS_TOPOLOGY];
	struct ocs_ctl_times *times;
};

static int no_job(struct ocs_error *err)
{
	return ocs_error_set(
		err, OCS_USAGE,
		"rails check: run it in a job of its own, which holds idle ports, such as\n"
		"  srun --immediate -p PARTITION --shape=pp:2,dp:2 --ocs-phases=on-demand --ntasks-per-node=1 ocsctl rails check\n"
		"with the last dimension of the shape inside a node, if its section has \"xpus\"");
}

/* Two topologies without a circuit in common. */
static int topologies_choose(struct check *check, struct ocs_error *err)
{
	struct ocs_rails_pairs cut = { 0 }, make = { 0 }, pairs = { 0 };
	bool apart = false;

	ocs_rails_topology_first(&check->layout, check->first);
	for (int digit = 0; digit < OCS_RAILS_DIMS && !apart; digit++) {
		size_t stages = strlen(check->first);

		memset(check->other, '0' + digit, stages);
		check->other[stages] = '\0';
		if (ocs_rails_topology_check(&check->layout, check->other, NULL) ||
		    ocs_rails_topology_pairs(&check->layout, check->first, &pairs, NULL))
			continue;
		if (ocs_rails_change(&check->layout, check->first, check->other, &cut, &make,
				     NULL) == 0) {
			apart = make.count && cut.count == pairs.count;
			ocs_rails_pairs_free(&cut);
			ocs_rails_pairs_free(&make);
		}
		ocs_rails_pairs_free(&pairs);
	}
	return apart ? 0 :
		       ocs_error_set(
			       err, OCS_USAGE,
			       "rails check: the shape of job %ld has no two topologies to"
			       " change between; two dimensions over nodes have, such as pp:2,dp:2",
			       check->job);
}

static int menu_read(struct check *check, struct ocs_error *err)
{
	struct json_object *request = ocs_request_new(OCS_OP_SHOW), *reply, *list, *one, *extents;
	size_t count, ndim;
	char name[24];

	snprintf(name, sizeof(name), "%ld", check->job);
	ocs_field_add_text(request, OCS_FIELD_WHAT, OCS_SHOW_PHASES);
	ocs_field_add_text(request, OCS_FIELD_NAME, name);
	reply = ocs_client_call(check->client, request, OCS_CTL_CALL_MS, NULL, err);
	json_object_put(request);
	if (!reply)
		return -1;
	list = ocs_field_array(reply, OCS_FIELD_PHASES, &count);
	one = count ? json_object_array_get_idx(list, 0) : NULL;
	extents = ocs_field_array(one, OCS_FIELD_EXTENTS, &ndim);
	check->layout.ndim = (int)ndim;
	for (size_t i = 0; i < ndim && i < OCS_RAILS_DIMS; i++)
		check->layout.extent[i] =
			json_object_get_int(json_object_array_get_idx(extents, i));
	check->layout.asymmetric = (int)ocs_field_number(one, OCS_FIELD_ASYMMETRIC, -1);
	check->layout.ports = check->section->nic_ports;
	check->rails = json_object_get(ocs_field_array(one, OCS_FIELD_RAILS, &count));
	check->nrails = (int)count;
	json_object_put(reply);
	if (!check->nrails || ndim < 1 || ndim > OCS_RAILS_DIMS ||
	    ocs_rails_layout_check(&check->layout, err))
		return ocs_error_set(err, OCS_ERROR,
				     "rails check: job %ld has no menu of topologies", check->job);
	/* what other requests of the job had */
	for (int r = 0; r < check->nrails; r++) {
		struct json_object *rail = json_object_array_get_idx(check->rails, (size_t)r);
		long seq = (long)ocs_field_number(rail, OCS_FIELD_SEQ, 0);

		if (seq > check->seq)
			check->seq = seq;
	}
	return topologies_choose(check, err);
}

static int check_open(struct check *check, const struct ocs_ctl_args *args, struct ocs_error *err)
{
	const char *name = getenv("SLURMD_NODENAME");
	const struct ocs_node *node;

	check->args = args;
	if (!getenv("SLURM_OCS_DIR") || !getenv("SLURM_JOB_ID"))
		return no_job(err);
	if (ocs_ctl_job_key("rails.key", &check->job, &check->epoch, &check->key) < 0)
		return ocs_error_set(
			err, OCS_USAGE,
			"rails check: there is no key in %s; the job needs a shape on rails and"
			" --ocs-phases=on-demand, and this must be its first node",
			getenv("SLURM_OCS_DIR"));
	check->config = ocs_ctl_config_open(args, err);
	if (!check->config)
		return -1;
	node = name ? ocs_fabric_node(check->config->fabric, name) : NULL;
	check->section = node ? &check->config->fabric->sections[node->section] : NULL;
	if (!check->section || check->section->kind != OCS_RAILS)
		return no_job(err);
	check->client = ocs_ctl_connect(args, check->config, err);
	return check->client ? menu_read(check, err) : -1;
}

static void check_close(struct check *check)
{
	ocs_client_close(check->client);
	ocs_config_destroy(check->config);
	json_object_put(check->rails);
	if (check->key)
		explicit_bzero(check->key, strlen(check->key));
	free(check->key);
	free(check->times);
}

/* RAIL goes to TOPO; sets *MS to what that takes from the request to the answer. */
static int rail_change(struct check *check, int rail, const char *topo, double *ms,
		       struct ocs_error *err)
{
	struct json_object *request = ocs_request_new(OCS_OP_TOPO), *reply;
	struct json_object *rails = json_object_new_array(), *one = json_object_new_object();
	int64_t begin;

	ocs_field_add_number(request, OCS_FIELD_JOB, check->job);
	ocs_field_add_number(request, OCS_FIELD_EPOCH, check->epoch);
	ocs_field_add_text(request, OCS_FIELD_KEY, check->key);
	ocs_field_add_number(request, OCS_FIELD_SEQ, ++check->seq);
	ocs_field_add_number(one, OCS_FIELD_RAIL, rail);
	ocs_field_add_text(one, OCS_FIELD_TOPO, topo);
	json_object_array_add(rails, one);
	json_object_object_add(request, OCS_FIELD_RAILS, rails);
	begin = ocs_now_ns();
	reply = ocs_client_call(check->client, request, TOPO_MS, NULL, err);
	*ms = (double)(ocs_now_ns() - begin) / MILLION;
	json_object_put(request);
	json_object_put(reply);
	return reply ? 0 : ocs_error_prefix(err, "rails check");
}

/* Waits until the ports of this node on RAIL, which is the first of the job, have a carrier with TOPO. */
static int links_time(struct check *check, int rail, const char *topo, struct ocs_ctl_times *times,
		      struct ocs_error *err)
{
	const char *devices[2 * OCS_RAILS_DIMS];
	struct ocs_rails_pairs pairs;
	int count = 0;

	if (!check->section->interfaces)
		return 0;
	if (ocs_rails_topology_pairs(&check->layout, topo, &pairs, err))
		return -1;
	for (size_t i = 0; i < pairs.count && count < 2 * OCS_RAILS_DIMS; i++) {
		const struct ocs_rails_pair *pair = &pairs.items[i];
		int port = pair->a == 0 ? pair->a_port : pair->b == 0 ? pair->b_port : -1;

		if (port >= 0)
			devices[count++] = ocs_section_interface_name(
				check->section, rail * check->layout.ports + port);
	}
	ocs_rails_pairs_free(&pairs);
	ocs_ctl_links_time(times, devices, count);
	return 0;
}

static int rail_measure(struct check *check, int rail, struct ocs_error *err)
{
	struct ocs_ctl_times *times = &check->times[rail];
	double ms;

	/* whatever stands, from here on it is one of the two */
	if (rail_change(check, rail, check->first, &ms, err))
		return -1;
	for (int i = 0; i < OCS_CTL_CHANGES; i++) {
		const char *topo = i % 2 ? check->first : check->other;

		if (rail_change(check, rail, topo, &times->change[times->nchanges], err))
			return -1;
		times->nchanges++;
		if (links_time(check, rail, topo, times, err))
			return -1;
		if (times->late)
			break;
	}
	return rail_change(check, rail, check->first, &ms, err);
}

/* What a rank waits for after the last byte of a phase, on the slowest rail. */
static double whole_ms(struct check *check)
{
	double worst = 0;

	for (int r = 0; r < check->nrails; r++) {
		struct ocs_ctl_times *times = &check->times[r];
		double ms = ocs_ctl_times_whole(times);

		if (ms > worst)
			worst = ms;
	}
	return worst;
}

static const char *mode_advised(double ms)
{
	return ms <= SHORT_MS ? "on-demand" : ms <= LONG_MS ? "provisioned" : "off";
}

static void meaning_print(double ms)
{
	printf("\nA change costs a job %.1f ms on the slowest rail, from its request until the last link is up.\n",
	       ms);
	if (ms <= SHORT_MS)
		puts("  --ocs-phases=on-demand: shorter than almost all pauses between phases; nothing has to be foretold.");
	else if (ms <= LONG_MS)
		puts("  --ocs-phases=provisioned: hidden where a pause between two phases is longer; on-demand adds it to each change.");
	else
		puts("  --ocs-phases=off: longer than the pauses between phases of most models; circuits that stay are faster,\n"
		     "  unless a step takes minutes.");
	puts("A link that takes longer than its switch: turn autonegotiation off on both ends, and see doc/rails.md.");
}

static const char *switch_of(struct check *check, int rail)
{
	return ocs_ctl_string(json_object_array_get_idx(check->rails, (size_t)rail),
			      OCS_FIELD_SWITCH, "?");
}

static void times_print(struct check *check)
{
	struct ocs_text_table *table = ocs_text_table_create(
		">RAIL|SWITCH|>CHANGE ms|>LONGEST ms|>LINK ms|>LONGEST ms|FAULT");
	char text[64];

	for (int r = 0; r < check->nrails; r++) {
		struct ocs_ctl_times *times = &check->times[r];

		snprintf(text, sizeof(text), "%d", r);
		ocs_text_table_add(table, text);
		ocs_text_table_add(table, switch_of(check, r));
		ocs_ctl_times_row(times, table);
	}
	printf("job %ld: %d changes of each rail between %s and %s; links seen at %s\n", check->job,
	       OCS_CTL_CHANGES, check->first, check->other, getenv("SLURMD_NODENAME"));
	ocs_text_table_print(table, stdout);
	ocs_text_table_destroy(table);
	meaning_print(whole_ms(check));
}

static void times_print_json(struct check *check)
{
	struct json_object *all = json_object_new_object(), *list = json_object_new_array();

	for (int r = 0; r < check->nrails; r++) {
		struct json_object *row = json_object_new_object();

		json_object_object_add(row, OCS_FIELD_RAIL, json_object_new_int(r));
		json_object_object_add(row, OCS_FIELD_SWITCH,
				       json_object_new_string(switch_of(check, r)));
		ocs_ctl_times_json(&check->times[r], row);
		json_object_array_add(list, row);
	}
	json_object_object_add(all, OCS_FIELD_RAILS, list);
	json_object_object_add(all, "whole_ms", ocs_ctl_times_number(whole_ms(check)));
	json_object_object_add(all, OCS_FIELD_PHASES,
			       json_object_new_string(mode_advised(whole_ms(check))));
	ocs_ctl_print_json(all);
	json_object_put(all);
}

static int rails_check(const struct ocs_ctl_args *args, struct ocs_error *err)
{
	struct check check = { 0 };
	const char *rank = getenv("SLURM_PROCID");
	int rc;

	/* the first task does it for all */
	if (rank && strcmp(rank, "0") != 0)
		return 0;
	rc = check_open(&check, args, err);
	if (rc == 0)
		check.times = ocs_calloc((size_t)check.nrails, sizeof(*check.times));
	for (int r = 0; r < check.nrails && rc == 0; r++)
		rc = rail_measure(&check, r, err);
	if (rc == 0) {
		if (args->json)
			times_print_json(&check);
		else
			times_print(&check);
		for (int r = 0; r < check.nrails && rc == 0; r++)
			if (check.times[r].late)
				rc = ocs_ctl_times_late(&check.times[r], "rails check", err);
	}
	check_close(&check);
	return rc;
}

int ocs_ctl_rails(const struct ocs_ctl_args *args, struct ocs_error *err)
{
	if (!strcmp(args->operands[0], "check"))
		return rails_check(args, err);
	return ocs_error_set(err, OCS_USAGE, "rails: '%s' is not check", args->operands[0]);
}
