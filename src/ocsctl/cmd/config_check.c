/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <json-c/json.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "src/config/config.h"
#include "src/ocsctl/ocsctl.h"
#include "src/ocsctl/cmd/config_check.h"
#include "src/ocsctl/slurm/slurm_conf.h"
#include "src/protocol/fields.h"
#include "src/util/hostlist.h"
#include "src/util/text.h"

#define NODES_MAX (1 << 20)

struct ocs_site {
	const struct ocs_config *config;
	const struct ocs_fabric *fabric; /* of config */
	struct ocs_slurm_conf *conf;
	struct json_object *findings;
	struct json_object *looked;
	int errors;
};

struct ocs_site *ocs_site_create(const struct ocs_config *config)
{
	struct ocs_site *site = ocs_calloc(1, sizeof(*site));

	site->config = config;
	site->fabric = config->fabric;
	site->findings = json_object_new_array();
	site->looked = json_object_new_array();
	return site;
}

void ocs_site_destroy(struct ocs_site *site)
{
	if (!site)
		return;
	ocs_slurm_conf_destroy(site->conf);
	json_object_put(site->findings);
	json_object_put(site->looked);
	free(site);
}

static struct json_object *sentence_make(const char *format, va_list list)
{
	char *text = ocs_vasprintf(format, list);
	struct json_object *json = json_object_new_string(text);

	free(text);
	return json;
}

void ocs_site_find(struct ocs_site *site, bool note, const char *where, const char *format, ...)
{
	struct json_object *one = json_object_new_object();
	va_list list;

	va_start(list, format);
	json_object_object_add(one, "where", json_object_new_string(where));
	json_object_object_add(one, "note", json_object_new_boolean(note));
	json_object_object_add(one, "text", sentence_make(format, list));
	va_end(list);
	json_object_array_add(site->findings, one);
	site->errors += !note;
}

void ocs_site_looked(struct ocs_site *site, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	json_object_array_add(site->looked, sentence_make(format, list));
	va_end(list);
}

/* A finding about a line of slurm.conf, or about its absence (LINE NULL). */
static void __attribute__((format(printf, 4, 5)))
about(struct ocs_site *site, bool note, const struct ocs_slurm_line *line, const char *format, ...)
{
	char *where = line ? ocs_asprintf("%s:%d", line->file, line->number) :
			     ocs_strdup(site->conf->path);
	va_list list;
	char *text;

	va_start(list, format);
	text = ocs_vasprintf(format, list);
	va_end(list);
	ocs_site_find(site, note, where, "%s", text);
	free(text);
	free(where);
}

/* KEY must be VALUE. */
static void must_be(struct ocs_site *site, const char *key, const char *value, const char *why)
{
	const struct ocs_slurm_line *line;
	const char *given = ocs_slurm_conf_value(site->conf, key, &line);

	if (given && !strcasecmp(given, value))
		return;
	if (given)
		about(site, false, line, "%s=%s: %s needs %s=%s", key, given, why, key, value);
	else
		about(site, false, NULL, "there is no %s; %s needs %s=%s", key, why, key, value);
}

/* WORD must be in the list KEY. */
static void must_hold(struct ocs_site *site, const char *key, const char *word, const char *why)
{
	const struct ocs_slurm_line *line;
	const char *given = ocs_slurm_conf_value(site->conf, key, &line);

	if (ocs_slurm_list_has(given, word))
		return;
	if (given)
		about(site, false, line, "%s=%s lacks %s: %s", key, given, word, why);
	else
		about(site, false, NULL, "there is no %s=%s: %s", key, word, why);
}

static void compare_order(struct ocs_site *site)
{
	static const char harmless[] = "logging,require_timelimit,throttle";
	const struct ocs_slurm_line *line;
	const char *given = ocs_slurm_conf_value(site->conf, "JobSubmitPlugins", &line);
	char *copy = ocs_strdup(given ? given : ""), *save = NULL;
	bool behind = false;

	for (char *word = strtok_r(copy, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		if (behind && !ocs_slurm_list_has(harmless, word))
			about(site, true, line,
			      "JobSubmitPlugins=%s: what %s makes of a job is not compared"
			      " with its shape, and may take it away; list ocs last",
			      given, word);
		behind |= !strcasecmp(word, "ocs");
	}
	free(copy);
}

static void compare_resources(struct ocs_site *site)
{
	const struct ocs_slurm_line *line;
	const char *given = ocs_slurm_conf_value(site->conf, "SelectTypeParameters", &line);
	static const char *const units[] = {
		"CR_Core",	 "CR_Core_Memory", "CR_CPU",
		"CR_CPU_Memory", "CR_Socket",	   "CR_Socket_Memory"
	};

	/* What Slurm takes for granted since 22.05 is CR_Core_Memory. */
	for (size_t i = 0; given && i < sizeof(units) / sizeof(units[0]); i++)
		if (ocs_slurm_list_has(given, units[i]))
			given = NULL;
	if (given)
		about(site, false, line,
		      "SelectTypeParameters=%s: slurmctld will not start;"
		      " select/cons_tres_ocs needs CR_Core, CR_CPU or CR_Socket",
		      given);
	given = ocs_slurm_conf_value(site->conf, "SchedulerParameters", &line);
	if (ocs_slurm_list_has(given, "extra_constraints"))
		about(site, false, line,
		      "SchedulerParameters holds extra_constraints: slurmctld"
		      " will not start; jobs carry their shape in Extra");
	given = ocs_slurm_conf_value(site->conf, "JobRequeue", &line);
	if (given && !strcmp(given, "0"))
		about(site, true, line,
		      "JobRequeue=0: a job whose switch fails in the prolog is"
		      " cancelled, not requeued");
}

static void compare_prolog(struct ocs_site *site)
{
	/* These set Alloc as well. */
	static const char *const more[] = { "Contain", "RunInJob", "ForceRequeueOnFail", "X11" };
	const struct ocs_slurm_line *line;
	const char *given = ocs_slurm_conf_value(site->conf, "PrologFlags", &line);
	bool all_nodes = false;

	for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++)
		all_nodes |= ocs_slurm_list_has(given, more[i]);
	if (!all_nodes)
		must_hold(site, "PrologFlags", "Alloc",
			  "circuits are made in the prolog of every node");
	must_hold(site, "PrologFlags", "DeferBatch",
		  "the batch script would start before all nodes have their circuits");
	if (ocs_slurm_list_has(given, "RunInJob"))
		about(site, false, line,
		      "PrologFlags holds RunInJob: Slurm would leave out the"
		      " prolog of spank_ocs, so shapes are refused");
	if (ocs_slurm_list_has(given, "NoHold"))
		about(site, true, line,
		      "PrologFlags holds NoHold: scripts start before the files of a"
		      " job are on all of its nodes, and a node without spank_ocs is found late");
}

static void compare_times(struct ocs_site *site)
{
	const struct ocs_slurm_line *line;
	const char *given = ocs_slurm_conf_value(site->conf, "PrologEpilogTimeout", &line);
	long seconds;

	if (!given || ocs_number_parse(given, 1, 65533, &seconds))
		return;
	if (seconds * 1000 <= site->config->timeouts.prolog_ms)
		about(site, false, line,
		      "PrologEpilogTimeout=%ld ends a prolog before"
		      " timeouts.prolog of ocs.yaml (%d s) does: nodes would be drained",
		      seconds, site->config->timeouts.prolog_ms / 1000);
}

static void compare_user(struct ocs_site *site)
{
	const struct ocs_slurm_line *line;
	const char *user = ocs_slurm_conf_value(site->conf, "SlurmUser", &line);

	if (!user || !strcmp(user, "root") || !strcmp(user, "0") ||
	    strspn(user, "0123456789") == strlen(user))
		return;
	for (size_t i = 0; i < site->config->ocsd.nadmins; i++)
		if (!strcmp(site->config->ocsd.admins[i], user))
			return;
	about(site, false, line,
	      "SlurmUser=%s is not in ocsd.admins of %s: ocsd would not obey"
	      " slurmctld",
	      user, site->fabric->source);
}

/* The XPUs of a node of SECTION, 0 if not said. */
static int node_xpus(const struct ocs_section *section)
{
	if (section->kind == OCS_TORUS || section->kind == OCS_STATIC)
		return section->tile[0] * section->tile[1] * section->tile[2];
	return section->server_xpus;
}

/* The number of GPUs in a Gres list, "gpu:h100:8,nvme"; -1 without one. */
static long gpus_count(const char *gres)
{
	while (gres && *gres) {
		size_t length = strcspn(gres, ",");

		if (!strncasecmp(gres, "gpu", 3) && (length == 3 || gres[3] == ':')) {
			char word[64];
			const char *colon;
			long count;

			snprintf(word, sizeof(word), "%.*s", (int)strcspn(gres, ",("), gres);
			colon = strrchr(word, ':');
			return colon && !ocs_number_parse(colon + 1, 0, 4096, &count) ? count : 1;
		}
		gres += length + (gres[length] == ',');
	}
	return -1;
}

/* CPUs of a node line, 0 if it does not say. */
static long cpus_count(const struct ocs_slurm_line *line)
{
	static const char *const factors[] = { "Boards", "Sockets", "SocketsPerBoard",
					       "CoresPerSocket", "ThreadsPerCore" };
	const char *value = ocs_slurm_line_value(line, "CPUs");
	long product = 1, number;
	bool any = false;

	if (value)
		return ocs_number_parse(value, 1, 1 << 20, &number) ? 0 : number;
	for (size_t i = 0; i < sizeof(factors) / sizeof(factors[0]); i++) {
		value = ocs_slurm_line_value(line, factors[i]);
		if (!value || ocs_number_parse(value, 1, 1 << 20, &number))
			continue;
		product *= number;
		any = true;
	}
	return any ? product : 0;
}

/* What one NodeName line says of the nodes of one section of ocs.yaml. */
static void compare_machine(struct ocs_site *site, const struct ocs_slurm_line *line,
			    const struct ocs_section *section, const char *gres)
{
	int xpus = node_xpus(section);
	long number = gpus_count(gres);

	if (!xpus)
		return;
	if (number >= 0 && number != xpus)
		about(site, false, line, "%s have Gres=%s, but a node of section %s has %d XPUs",
		      ocs_slurm_line_value(line, "NodeName"), gres, section->name, xpus);
	number = cpus_count(line);
	if (number && number < xpus)
		about(site, true, line,
		      "%s have %ld CPUs for %d XPUs: jobs start one task a node,"
		      " not one an XPU",
		      ocs_slurm_line_value(line, "NodeName"), number, xpus);
}

/* TOPOLOGY of a NodeName line, with its hosts. */
static void compare_place(struct ocs_site *site, const struct ocs_slurm_line *line,
			  char *const *names, int count)
{
	const char *topology = ocs_slurm_line_value(line, "Topology");

	for (int i = 0; topology && i < count; i++) {
		const struct ocs_node *node = ocs_fabric_node(site->fabric, names[i]);
		int index = node ? (int)(node - site->fabric->nodes) : -1;

		if (!node || ocs_fabric_unit_agrees(site->fabric, index, topology))
			continue;
		about(site, false, line, "Topology=%s, but %s is in %s of %s, which is what counts",
		      topology, names[i], ocs_fabric_node_unit(site->fabric, index),
		      site->fabric->source);
		return;
	}
}

static void compare_nodes(struct ocs_site *site)
{
	const struct ocs_fabric *fabric = site->fabric;
	bool *seen = ocs_calloc(fabric->nnodes + 1, sizeof(bool));
	const char *gres = NULL, *first = NULL;
	int missing = 0;

	for (size_t i = 0; i < site->conf->count; i++) {
		const struct ocs_slurm_line *line = &site->conf->lines[i];
		const char *list = ocs_slurm_line_value(line, "NodeName");
		int section = -1, count;
		struct ocs_error err;
		char **names;

		if (!list)
			continue;
		if (!strcasecmp(list, "DEFAULT")) {
			if (ocs_slurm_line_value(line, "Gres"))
				gres = ocs_slurm_line_value(line, "Gres");
			continue;
		}
		count = ocs_hostlist_expand(list, NODES_MAX, &names, &err);
		if (count < 0) {
			about(site, false, line, "%s", err.text);
			continue;
		}
		for (int j = 0; j < count; j++) {
			const struct ocs_node *node = ocs_fabric_node(fabric, names[j]);

			if (!node)
				continue;
			seen[node - fabric->nodes] = true;
			if (node->section != section)
				compare_machine(site, line, &fabric->sections[node->section],
						ocs_slurm_line_value(line, "Gres") ?
							ocs_slurm_line_value(line, "Gres") :
							gres);
			section = node->section;
		}
		compare_place(site, line, names, count);
		ocs_names_free(names, count);
	}
	for (int i = 0; i < fabric->nnodes; i++) {
		if (seen[i])
			continue;
		first = missing++ ? first : fabric->nodes[i].name;
	}
	free(seen);
	if (missing)
		about(site, false, NULL,
		      "%d of %d nodes of %s have no NodeName line (the first is"
		      " %s): no shape can use them",
		      missing, fabric->nnodes, fabric->source, first);
}

/* The line of the NodeSet that is called NAME, LENGTH characters long, or NULL. */
static const struct ocs_slurm_line *node_set(const struct ocs_site *site, const char *name,
					     size_t length)
{
	for (size_t i = 0; i < site->conf->count; i++) {
		const char *set = ocs_slurm_line_value(&site->conf->lines[i], "NodeSet");

		if (set && strlen(set) == length && !strncmp(set, name, length))
			return &site->conf->lines[i];
	}
	return NULL;
}

/* The host list of a partition line, whose words may be NodeSets; the caller frees it.
 * NULL: all nodes, or those with a feature, which only slurmctld knows. */
static char *partition_nodes(const struct ocs_site *site, const char *list)
{
	struct ocs_text nodes = { 0 };

	if (!list || !strcasecmp(list, "ALL"))
		return NULL;
	while (*list) {
		const struct ocs_slurm_line *set;
		const char *word = list;
		size_t length = 0;

		for (bool inside = false; word[length] && (inside || word[length] != ','); length++)
			inside = word[length] == '[' || (inside && word[length] != ']');
		list += length + (word[length] == ',');
		set = node_set(site, word, length);
		if (set) {
			word = ocs_slurm_line_value(set, "Nodes");
			if (!word || ocs_slurm_line_value(set, "Feature")) {
				ocs_text_free(&nodes);
				return NULL;
			}
			length = strlen(word);
		}
		ocs_text_add(&nodes, "%s%.*s", nodes.length ? "," : "", (int)length, word);
	}
	return ocs_text_take(&nodes);
}

static void compare_partition(struct ocs_site *site, const struct ocs_slurm_line *line,
			      const char *partition)
{
	const struct ocs_section *section = ocs_fabric_section(site->fabric, partition);
	char *list = partition_nodes(site, ocs_slurm_line_value(line, "Nodes"));
	int count, inside = 0;
	struct ocs_error err;
	char **names;

	if (!section || !list) {
		free(list);
		return;
	}
	count = ocs_hostlist_expand(list, NODES_MAX, &names, &err);
	free(list);
	if (count < 0) {
		about(site, false, line, "%s", err.text);
		return;
	}
	for (int i = 0; i < count; i++) {
		const struct ocs_node *node = ocs_fabric_node(site->fabric, names[i]);

		inside += node && node->section == section->index;
	}
	/* A section that serves every partition without one of its own is often no more
	 * than the only one there is. */
	if (count && !inside && section->npartitions)
		about(site, false, line,
		      "no node of partition %s is in section %s, which serves it:"
		      " no shape can ever start there",
		      partition, section->name);
	else if (count > inside && inside)
		about(site, true, line,
		      "%d of %d nodes of partition %s are not in section %s:"
		      " shapes leave them alone",
		      count - inside, count, partition, section->name);
	ocs_names_free(names, count);
}

static void compare_partitions(struct ocs_site *site)
{
	for (int i = 0; i < site->fabric->nsections; i++) {
		const struct ocs_section *section = &site->fabric->sections[i];

		for (size_t j = 0; j < section->npartitions; j++) {
			bool found = false;

			for (size_t k = 0; k < site->conf->count && !found; k++) {
				const char *name = ocs_slurm_line_value(&site->conf->lines[k],
									"PartitionName");

				found = name && !strcmp(name, section->partitions[j]);
			}
			if (!found)
				about(site, false, NULL,
				      "there is no PartitionName=%s, which"
				      " section %s of %s serves",
				      section->partitions[j], section->name, site->fabric->source);
		}
	}
	for (size_t i = 0; i < site->conf->count; i++) {
		const char *name = ocs_slurm_line_value(&site->conf->lines[i], "PartitionName");

		if (name && strcasecmp(name, "DEFAULT") != 0)
			compare_partition(site, &site->conf->lines[i], name);
	}
}

static void compare_topology(struct ocs_site *site)
{
	const char *slash = strrchr(site->conf->path, '/');
	char *path =
		ocs_asprintf("%.*stopology.yaml", slash ? (int)(slash - site->conf->path + 1) : 0,
			     site->conf->path);

	must_be(site, "TopologyPlugin", "topology/ocs", "the model of the fabric");
	if (!access(path, F_OK))
		ocs_site_find(site, true, path,
			      "Slurm from 25.05 on reads this instead of"
			      " TopologyPlugin, and then no shape starts: remove it");
	free(path);
}

int ocs_site_compare(struct ocs_site *site, const char *path, struct ocs_error *err)
{
	site->conf = ocs_slurm_conf_read(path, err);
	if (!site->conf)
		return -1;
	ocs_site_looked(site, "%s", path);
	must_be(site, "SelectType", "select/cons_tres_ocs", "placing shapes");
	compare_topology(site);
	must_hold(site, "JobSubmitPlugins", "ocs", "the node count of a shape would not be set");
	compare_order(site);
	must_hold(site, "CliFilterPlugins", "ocs", "tasks would not follow the coordinates");
	compare_prolog(site);
	compare_resources(site);
	compare_times(site);
	compare_user(site);
	compare_nodes(site);
	compare_partitions(site);
	ocs_site_compare_files(site, path);
	return 0;
}

const struct ocs_config *ocs_site_config(const struct ocs_site *site)
{
	return site->config;
}

const char *ocs_site_value(const struct ocs_site *site, const char *key)
{
	return site->conf ? ocs_slurm_conf_value(site->conf, key, NULL) : NULL;
}

void ocs_site_print(const struct ocs_site *site, FILE *out)
{
	fputs("\ncompared with ", out);
	for (size_t i = 0; i < ocs_ctl_length(site->looked); i++)
		fprintf(out, "%s%s", i ? ", " : "",
			json_object_get_string(json_object_array_get_idx(site->looked, i)));
	fputs(ocs_ctl_length(site->looked) ? "" : "nothing", out);
	fputs(ocs_ctl_length(site->findings) ? ":\n" : ": all agree\n", out);
	for (size_t i = 0; i < ocs_ctl_length(site->findings); i++) {
		struct json_object *one = json_object_array_get_idx(site->findings, i);

		fprintf(out, "%s: %s%s\n", ocs_ctl_string(one, "where", ""),
			ocs_field_true(one, "note") ? "note: " : "",
			ocs_ctl_string(one, "text", ""));
	}
}

struct json_object *ocs_site_json(const struct ocs_site *site)
{
	struct json_object *out = json_object_new_object();

	json_object_object_add(out, "compared", json_object_get(site->looked));
	json_object_object_add(out, "findings", json_object_get(site->findings));
	return out;
}

int ocs_site_errors(const struct ocs_site *site)
{
	return site->errors;
}
