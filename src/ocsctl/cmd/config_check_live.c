/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "src/protocol/account.h"
#include "src/protocol/client.h"
#include "src/config/config.h"
#include "src/ocsctl/ocsctl.h"
#include "src/ocsctl/cmd/config_check.h"
#include "src/ocsctl/slurm/slurm.h"
#include "src/ocsctl/slurm/slurm_conf.h"
#include "src/ocsctl/slurm/state.h"
#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/util/hostlist.h"
#include "src/util/text.h"

#define NODES_MAX (1 << 20)

/* Where this host looks for the account of ocsd. */
static void compare_account(struct ocs_site *site, const struct ocs_config *config)
{
	struct ocs_error err;
	uid_t uid;

	if (config->ocsd.key || !strncmp(config->ocsd.address, "unix:", 5))
		return;
	if (ocs_account_uid(config->ocsd.user, &uid, &err))
		ocs_site_find(site, false, config->fabric->source, "%s", err.text);
	else if (!config->ocsd.user && !uid)
		ocs_site_find(site, true, config->fabric->source,
			      "this host has no account " OCS_ACCOUNT
			      ": only an ocsd that runs as root is believed here; write its account"
			      " as ocsd.user");
}

static void text_format(const struct ocs_config *config, char text[OCS_DIGEST_TEXT])
{
	snprintf(text, OCS_DIGEST_TEXT, "%016llx", (unsigned long long)config->text_digest);
}

/* WHO could not read the file that there was, as THEIRS says.  What it kept may be what there is
 * now. */
static void compare_fault(struct ocs_site *site, const struct ocs_config *config, const char *who,
			  struct json_object *theirs, const char *command)
{
	const char *fault = ocs_ctl_string(theirs, OCS_FIELD_FAULT, NULL);
	char text[OCS_DIGEST_TEXT];

	text_format(config, text);
	if (fault && strcmp(ocs_ctl_string(theirs, OCS_FIELD_TEXT, ""), text) != 0)
		ocs_site_find(site, false, who,
			      "could not read ocs.yaml, and goes on with what it read"
			      " before (%s): %s: %s once that is mended",
			      ocs_ctl_string(theirs, OCS_FIELD_SOURCE, "?"), fault, command);
}

/* What the connected slurmctld has sent ocsd about the ocs.yaml that it read: it keeps the last
 * good one when it is to read a broken one. */
static void compare_slurmctld(struct ocs_site *site, const struct ocs_config *config,
			      const char *digest, struct json_object *yaml)
{
	const char *source = ocs_ctl_string(yaml, OCS_FIELD_SOURCE, "?");
	char text[OCS_DIGEST_TEXT];

	text_format(config, text);
	compare_fault(site, config, "slurmctld", yaml, "scontrol reconfigure");
	if (strcmp(ocs_ctl_string(yaml, OCS_FIELD_DIGEST, digest), digest) != 0)
		ocs_site_find(
			site, false, "slurmctld",
			"runs with other cubes, nodes, switches or port"
			" rules (%s) than %s says: scontrol reconfigure, then look into its log",
			source, config->fabric->source);
	else if (strcmp(ocs_ctl_string(yaml, OCS_FIELD_TEXT, text), text) != 0)
		ocs_site_find(site, true, "slurmctld",
			      "has read another text of ocs.yaml (%s) than"
			      " %s has now: scontrol reconfigure, then look into its log",
			      source, config->fabric->source);
}

static void compare_fabric(struct ocs_site *site, const struct ocs_config *config,
			   struct json_object *reply)
{
	struct json_object *drains = ocs_field_array(reply, OCS_FIELD_DRAINS, NULL);
	struct json_object *yaml = ocs_field(reply, OCS_FIELD_SLURMCTLD_YAML);
	const char *theirs = ocs_ctl_string(reply, OCS_FIELD_DIGEST, "");
	char digest[OCS_DIGEST_TEXT];

	ocs_fabric_digest(config->fabric, digest);
	if (strcmp(theirs, digest) != 0)
		ocs_site_find(site, false, "ocsd",
			      "runs with other cubes, nodes, switches or port"
			      " rules (%s) than %s says: systemctl reload ocsd, then scontrol"
			      " reconfigure",
			      ocs_ctl_string(reply, OCS_FIELD_SOURCE, "?"), config->fabric->source);
	compare_fault(site, config, "ocsd", reply, "systemctl reload ocsd");
	if (yaml)
		compare_slurmctld(site, config, digest, yaml);
	if (!ocs_field_true(reply, OCS_FIELD_SLURMCTLD))
		ocs_site_find(site, true, "ocsd", "slurmctld is not connected: no shape starts");
	for (size_t i = 0; i < ocs_ctl_length(drains); i++) {
		struct json_object *one = json_object_array_get_idx(drains, i);

		ocs_site_find(site, true, "ocsd", "%s %s is drained: %s",
			      ocs_ctl_string(one, OCS_FIELD_KIND, "?"),
			      ocs_ctl_string(one, OCS_FIELD_NAME, "?"),
			      ocs_ctl_string(one, OCS_FIELD_REASON, "no reason given"));
	}
}

static void compare_switches(struct ocs_site *site, struct json_object *reply)
{
	struct json_object *list = ocs_field_array(reply, OCS_FIELD_SWITCHES, NULL);

	for (size_t i = 0; i < ocs_ctl_length(list); i++) {
		struct json_object *one = json_object_array_get_idx(list, i);
		const char *state = ocs_ctl_string(one, OCS_FIELD_STATE, "?");

		/* Drained ones are among the drains. */
		if (strcmp(state, "up") != 0 && strcmp(state, "drained") != 0)
			ocs_site_find(site, false, "ocsd", "switch %s is %s: %s",
				      ocs_ctl_string(one, OCS_FIELD_NAME, "?"), state,
				      ocs_ctl_string(one, OCS_FIELD_REASON, "no reason given"));
	}
}

/* Nodes that slurmctld has up, and whose slurmd or prolog ocsd has never heard: a job with circuits
 * would leave them at once. */
static void compare_nodes(struct ocs_site *site, struct json_object *reply)
{
	struct json_object *states = ocs_field(reply, OCS_FIELD_NODES), *one;
	const char *never = ocs_ctl_string(reply, OCS_FIELD_NEVER_HEARD, "");
	size_t up = 0;
	char **names, *list;
	int count = ocs_hostlist_expand(never, NODES_MAX, &names, NULL);

	for (int i = 0; i < count; i++) {
		const char *state = json_object_object_get_ex(states, names[i], &one) ?
					    ocs_ctl_string(one, OCS_FIELD_STATE, "") :
					    "";

		if (!strcmp(state, "idle") || !strcmp(state, "busy") ||
		    !strcmp(state, "reserved")) {
			char *name = names[up];

			names[up++] = names[i];
			names[i] = name;
		}
	}
	list = ocs_hostlist_compress(names, up);
	if (up)
		ocs_site_find(
			site, false, "ocsd",
			"node%s %s %s never been heard of: spank_ocs.so is missing in"
			" plugstack.conf there, or slurmd was not restarted since; shapes would"
			" leave %s again at once",
			up > 1 ? "s" : "", list, up > 1 ? "have" : "has", up > 1 ? "them" : "it");
	free(list);
	if (count >= 0)
		ocs_names_free(names, (size_t)count);
}

static void ask_ocsd(struct ocs_site *site, const struct ocs_ctl_args *args,
		     const struct ocs_config *config)
{
	struct ocs_error err = { 0 };
	struct ocs_client *client = ocs_ctl_connect(args, config, &err);
	struct json_object *reply = NULL, *switches = NULL, *nodes = NULL;

	if (client)
		reply = ocs_ctl_ask(client, OCS_SHOW_FABRIC, NULL, &err);
	if (reply)
		switches = ocs_ctl_ask(client, OCS_SHOW_SWITCH, NULL, &err);
	if (switches)
		nodes = ocs_ctl_ask(client, OCS_SHOW_NODES, NULL, &err);
	if (nodes) {
		ocs_site_looked(site, "ocsd at %s", ocs_ctl_address(args, config));
		compare_fabric(site, config, reply);
		compare_switches(site, switches);
		compare_nodes(site, nodes);
	} else {
		ocs_site_find(site, true, "ocsd", "not compared: %s", err.text);
	}
	json_object_put(nodes);
	json_object_put(switches);
	json_object_put(reply);
	ocs_client_close(client);
}

/* The value of "KEY     = value" among the lines of scontrol; the caller frees it. */
static char *line_value(const char *text, const char *key)
{
	size_t length = strlen(key);

	for (; text; text = strchr(text, '\n') ? strchr(text, '\n') + 1 : NULL) {
		const char *at = text;

		if (strncasecmp(at, key, length) || !strchr(" =", at[length]))
			continue;
		at += length;
		at += strspn(at, " ");
		if (*at != '=')
			continue;
		at += 1 + strspn(at + 1, " ");
		return ocs_asprintf("%.*s", (int)strcspn(at, "\n"), at);
	}
	return NULL;
}

/* A slurmctld that hangs would keep people waiting for minutes. */
#define SLURMCTLD_S 10

static void ask_slurmctld(struct ocs_site *site)
{
	static const char *const keys[] = { "SelectType",	   "TopologyPlugin",
					    "JobSubmitPlugins",	   "CliFilterPlugins",
					    "PrologFlags",	   "SlurmUser",
					    "PrologEpilogTimeout", "PlugStackConfig" };
	char scontrol[] = "scontrol", show[] = "show", config[] = "config";
	char *argv[] = { scontrol, show, config, NULL };
	struct ocs_error err = { 0 };
	char *text = ocs_ctl_slurm_ask(argv, SLURMCTLD_S, &err);

	if (!text) {
		ocs_site_find(site, true, "slurmctld", "not compared: %s", err.text);
		return;
	}
	ocs_site_looked(site, "the running slurmctld");
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		const char *wanted = ocs_site_value(site, keys[i]);
		char *given = line_value(text, keys[i]);
		bool same = true;

		/* slurmctld adds what it implies to lists, and "sec" or "(0)" to numbers. */
		if (wanted && given) {
			char *words = ocs_strdup(wanted), *save = NULL;

			for (char *word = strtok_r(words, ",", &save); word;
			     word = strtok_r(NULL, ",", &save))
				same = same && (ocs_slurm_list_has(given, word) ||
						!strncmp(given, word, strcspn(given, "(")));
			free(words);
		}
		if (!same)
			ocs_site_find(site, false, "slurmctld",
				      "runs with %s=%s, slurm.conf says %s:"
				      " restart slurmctld",
				      keys[i], given, wanted);
		free(given);
	}
	free(text);
}

/* Nodes, some of which may have come or been changed since slurm.conf was read. */
static void ask_nodes(struct ocs_site *site)
{
	const struct ocs_fabric *fabric = ocs_site_config(site)->fabric;
	struct ocs_ctl_places all;
	int moved = -1, count = 0;

	if (ocs_ctl_places_read(&all, SLURMCTLD_S, NULL))
		return;
	for (int i = 0; i < all.count; i++) {
		const struct ocs_node *node = ocs_fabric_node(fabric, all.list[i].node);

		if (node &&
		    !ocs_fabric_unit_agrees(fabric, (int)(node - fabric->nodes),
					    all.list[i].topology) &&
		    !count++)
			moved = i;
	}
	if (count)
		ocs_site_find(
			site, false, "slurmctld",
			"%d node%s a Topology= that contradicts %s, which is"
			" what counts (the first is %s, Topology=%s): scontrol update NodeName=...",
			count, count == 1 ? " has" : "s have", fabric->source, all.list[moved].node,
			all.list[moved].topology);
	ocs_ctl_places_free(&all);
}

char *ocs_site_running(void)
{
	char scontrol[] = "scontrol", show[] = "show", topology[] = "topology",
	     file[] = "unit=ocs.yaml";
	char *argv[] = { scontrol, show, topology, file, NULL }, *state, *said = NULL;
	struct ocs_error ignored = { 0 };
	char *text = ocs_ctl_slurm_ask(argv, SLURMCTLD_S, &ignored);

	state = text && !strncmp(text, "Config=", 7) ? strstr(text, " State=") : NULL;
	if (state && !strncmp(state, " State=KEPT", 11))
		said = ocs_asprintf("the running slurmctld goes on with %.*s",
				    (int)(state - text - 7), text + 7);
	else if (state)
		said = ocs_asprintf(
			"the running slurmctld serves no shapes%s",
			strstr(state, " Partitions=UNKNOWN") ?
				", and jobs of rail and direct sections run without circuits" :
				"");
	free(text);
	return said;
}

void ocs_site_ask_live(struct ocs_site *site, const struct ocs_ctl_args *args)
{
	compare_account(site, ocs_site_config(site));
	ask_ocsd(site, args, ocs_site_config(site));
	ask_slurmctld(site);
	ask_nodes(site);
}
