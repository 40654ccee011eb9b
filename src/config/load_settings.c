/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The settings of ocs.yaml: ocsd, timeouts, policies, nccl. */

#include <ctype.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "src/config/load.h"
#include "src/util/release.h"
#include "src/util/text.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define ADMINS_MAX 1000
#define SOCKET_PATH_MAX 107

static void text_replace(char **target, const char *text)
{
	free(*target);
	*target = ocs_strdup(text);
}

/* "host:port" or "[v6]:port". */
static bool tcp_address(const char *address)
{
	const char *colon = strrchr(address, ':');
	size_t host = colon ? (size_t)(colon - address) : 0;
	long port;

	if (!host || ocs_number_parse(colon + 1, 1, 65535, &port) < 0)
		return false;
	if (address[0] == '[')
		return host > 2 && address[host - 1] == ']' &&
		       strspn(address + 1, "0123456789abcdefABCDEF:.%") >= host - 2;
	for (size_t i = 0; i < host; i++)
		if (!isalnum((unsigned char)address[i]) && !strchr("._-", address[i]))
			return false;
	return true;
}

int ocs_load_address_check(struct ocs_loader *loader, const yaml_node_t *node, const char *key,
			   const char *address)
{
	if (strncmp(address, "unix:", 5) == 0) {
		if (address[5] != '/' || strlen(address + 5) > SOCKET_PATH_MAX)
			return ocs_yaml_fail(
				&loader->yaml, node,
				"%s: \"%.120s\" must be unix: and an absolute path of at most %d characters",
				key, address, SOCKET_PATH_MAX);
		return 0;
	}
	if (!tcp_address(address))
		return ocs_yaml_fail(
			&loader->yaml, node,
			"%s: \"%.120s\" is not an address; host:port, [v6]:port and unix:/path are",
			key, address);
	return 0;
}

/* An absolute path, copied into *PATH (what was there is freed). */
static int path_load(struct ocs_loader *loader, const yaml_node_t *node, const char *key,
		     char **path)
{
	const char *text = ocs_yaml_text(&loader->yaml, node, key);

	if (!text)
		return -1;
	if (text[0] != '/')
		return ocs_yaml_fail(&loader->yaml, node,
				     "%s must be an absolute path, not \"%.120s\"", key, text);
	text_replace(path, text);
	return 0;
}

static int address_load(struct ocs_loader *loader, const yaml_node_t *node, const char *key,
			char **address)
{
	const char *text = ocs_yaml_text(&loader->yaml, node, key);

	if (!text || ocs_load_address_check(loader, node, key, text) < 0)
		return -1;
	text_replace(address, text);
	return 0;
}

static bool address_wildcard(const char *address)
{
	return strncmp(address, "0.0.0.0:", 8) == 0 || strncmp(address, "[::]:", 5) == 0;
}

static int socket_load(struct ocs_loader *loader, const yaml_node_t *node)
{
	const char *text = ocs_yaml_text(&loader->yaml, node, "socket");

	if (text && strncmp(text, "unix:", 5) != 0)
		return ocs_yaml_fail(
			&loader->yaml, node,
			"socket must be unix:/path, not %.120s; a TCP address belongs to the key \"listen\"",
			text);
	return address_load(loader, node, "socket", &loader->config->ocsd.socket);
}

/* A name, or a number for hosts that lack the account. */
static int user_load(struct ocs_loader *loader, const yaml_node_t *node)
{
	const char *text = ocs_yaml_text(&loader->yaml, node, "user");
	bool number;
	long uid;

	if (!text)
		return -1;
	number = strspn(text, "0123456789") == strlen(text);
	if (number ? ocs_number_parse(text, 0, UINT_MAX - 1, &uid) < 0 :
		     text[0] == '-' || strcspn(text, " \t:,/") != strlen(text))
		return ocs_yaml_fail(&loader->yaml, node,
				     "user: \"%.60s\" is neither the name of an account nor a uid",
				     text);
	text_replace(&loader->config->ocsd.user, text);
	return 0;
}

enum { SOCKET, LISTEN, ADDRESS, STATE, ADMINS, METRICS, KEY, AUDIT_DAYS, USER };

/* What nodes and slurmctld use, when it is not said. */
static int address_default(struct ocs_loader *loader, const struct ocs_field *fields)
{
	struct ocs_config_ocsd *ocsd = &loader->config->ocsd;

	if (fields[ADDRESS].node) {
		if (address_wildcard(ocsd->address))
			return ocs_yaml_fail(
				&loader->yaml, fields[ADDRESS].node,
				"address: no program can connect to %s; give the name of the host where ocsd runs",
				ocsd->address);
		return 0;
	}
	if (ocsd->listen && address_wildcard(ocsd->listen))
		return ocs_yaml_fail(
			&loader->yaml, fields[LISTEN].node,
			"listen on %s needs the key \"address\": the host:port under which nodes reach ocsd",
			ocsd->listen);
	text_replace(&ocsd->address, ocsd->listen ? ocsd->listen : ocsd->socket);
	return 0;
}

int ocs_load_ocsd(struct ocs_loader *loader, yaml_node_t *node)
{
	struct ocs_field fields[] = {
		[SOCKET] = { .name = "socket" },   [LISTEN] = { .name = "listen" },
		[ADDRESS] = { .name = "address" }, [STATE] = { .name = "state" },
		[ADMINS] = { .name = "admins" },   [METRICS] = { .name = "metrics" },
		[KEY] = { .name = "key" },	   [AUDIT_DAYS] = { .name = "audit_days" },
		[USER] = { .name = "user" },
	};
	struct ocs_config_ocsd *ocsd = &loader->config->ocsd;
	struct ocs_yaml *yaml = &loader->yaml;

	if (ocs_yaml_fields(yaml, node, "ocsd", fields, COUNT(fields)) < 0)
		return -1;
	if (fields[SOCKET].node && socket_load(loader, fields[SOCKET].node) < 0)
		return -1;
	if (fields[LISTEN].node) {
		if (address_load(loader, fields[LISTEN].node, "listen", &ocsd->listen) < 0)
			return -1;
		if (strncmp(ocsd->listen, "unix:", 5) == 0)
			return ocs_yaml_fail(
				yaml, fields[LISTEN].node,
				"listen must be host:port; a UNIX socket belongs to the key \"socket\"");
	}
	if (fields[ADDRESS].node &&
	    address_load(loader, fields[ADDRESS].node, "address", &ocsd->address) < 0)
		return -1;
	if (fields[AUDIT_DAYS].node && ocs_yaml_number(yaml, fields[AUDIT_DAYS].node, "audit_days",
						       1, 36500, &ocsd->audit_days) < 0)
		return -1;
	if (fields[KEY].node && path_load(loader, fields[KEY].node, "key", &ocsd->key) < 0)
		return -1;
	if (fields[USER].node && user_load(loader, fields[USER].node) < 0)
		return -1;
	if (fields[METRICS].node) {
		if (address_load(loader, fields[METRICS].node, "metrics", &ocsd->metrics) < 0)
			return -1;
		if (strncmp(ocsd->metrics, "unix:", 5) == 0)
			return ocs_yaml_fail(
				yaml, fields[METRICS].node,
				"metrics must be host:port, where Prometheus can ask by HTTP");
	}
	if (fields[STATE].node && path_load(loader, fields[STATE].node, "state", &ocsd->state) < 0)
		return -1;
	if (fields[ADMINS].node) {
		int count = ocs_yaml_names(yaml, fields[ADMINS].node, "admins", ADMINS_MAX,
					   &ocsd->admins);

		if (count < 0)
			return -1;
		ocsd->nadmins = (size_t)count;
	}
	return address_default(loader, fields);
}

int ocs_load_limits(struct ocs_loader *loader, yaml_node_t *node)
{
	struct ocs_config_limits *limits = &loader->config->limits;
	const struct {
		const char *key;
		int max, *value;
	} keys[] = {
		{ "requests_per_second", 100000, &limits->requests_per_second },
		{ "burst", 100000, &limits->burst },
		{ "connections", 10000, &limits->connections },
		{ "topologies_per_second", 100000, &limits->topologies_per_second },
	};
	struct ocs_field fields[COUNT(keys)] = { 0 };

	for (size_t i = 0; i < COUNT(keys); i++)
		fields[i].name = keys[i].key;
	if (ocs_yaml_fields(&loader->yaml, node, "limits", fields, COUNT(fields)) < 0)
		return -1;
	for (size_t i = 0; i < COUNT(keys); i++)
		if (fields[i].node && ocs_yaml_number(&loader->yaml, fields[i].node, keys[i].key, 1,
						      keys[i].max, keys[i].value) < 0)
			return -1;
	return 0;
}

int ocs_load_timeouts(struct ocs_loader *loader, yaml_node_t *node)
{
	struct ocs_config_timeouts *timeouts = &loader->config->timeouts;
	const struct {
		const char *key;
		int min, max;
		int *ms;
	} keys[] = {
		{ "switch", 10, 600000, &timeouts->switch_ms },
		{ "retry", 10, 3600000, &timeouts->retry_ms },
		{ "poll", 100, 3600000, &timeouts->poll_ms },
		{ "prolog", 1000, 3600000, &timeouts->prolog_ms },
		{ "ocsd_down", 1000, 86400000, &timeouts->ocsd_down_ms },
		{ "dark", 1000, 3600000, &timeouts->dark_ms },
		{ "link", 0, 3600000, &timeouts->link_ms },
		{ "routes", 10, 600000, &timeouts->routes_ms },
	};
	struct ocs_field fields[COUNT(keys)] = { 0 };

	for (size_t i = 0; i < COUNT(keys); i++)
		fields[i].name = keys[i].key;
	if (ocs_yaml_fields(&loader->yaml, node, "timeouts", fields, COUNT(fields)) < 0)
		return -1;
	for (size_t i = 0; i < COUNT(keys); i++)
		if (fields[i].node && ocs_yaml_duration(&loader->yaml, fields[i].node, keys[i].key,
							keys[i].min, keys[i].max, keys[i].ms) < 0)
			return -1;
	if (timeouts->prolog_ms < timeouts->switch_ms)
		return ocs_yaml_fail(
			&loader->yaml, fields[3].node ? fields[3].node : node,
			"a prolog that waits %d ms gives up before one switch command (%d ms); make prolog longer than switch",
			timeouts->prolog_ms, timeouts->switch_ms);
	return 0;
}

static int on_failure_load(struct ocs_yaml *yaml, const struct ocs_field *field,
			   enum ocs_on_failure *what)
{
	static const char *const words[] = {
		[OCS_ON_FAILURE_REQUEUE] = "requeue",
		[OCS_ON_FAILURE_CANCEL] = "cancel",
		[OCS_ON_FAILURE_SIGNAL] = "signal",
		[OCS_ON_FAILURE_IGNORE] = "ignore",
	};
	int choice;

	if (!field->node)
		return 0;
	choice = ocs_yaml_choice(yaml, field->node, field->name, words, COUNT(words));
	if (choice >= 0)
		*what = (enum ocs_on_failure)choice;
	return choice < 0 ? -1 : 0;
}

/* USR1 or SIGUSR1; with B: the batch shell gets it, too. */
static int signal_load(struct ocs_loader *loader, yaml_node_t *node)
{
	static const struct {
		const char *name;
		int number;
	} known[] = {
		{ "HUP", SIGHUP },   { "INT", SIGINT },	  { "QUIT", SIGQUIT },
		{ "USR1", SIGUSR1 }, { "USR2", SIGUSR2 }, { "TERM", SIGTERM },
		{ "CONT", SIGCONT }, { "URG", SIGURG },	  { "WINCH", SIGWINCH },
	};
	struct ocs_config_policies *policies = &loader->config->policies;
	const char *text = ocs_yaml_text(&loader->yaml, node, "signal"), *name = text;

	if (!text)
		return -1;
	policies->signal_batch = strncmp(name, "B:", 2) == 0;
	name += policies->signal_batch ? 2 : 0;
	name += strncmp(name, "SIG", 3) == 0 ? 3 : 0;
	for (size_t i = 0; i < COUNT(known); i++)
		if (strcmp(name, known[i].name) == 0) {
			policies->signal = known[i].number;
			return 0;
		}
	return ocs_yaml_fail(
		&loader->yaml, node,
		"signal is %s; it can be HUP, INT, QUIT, USR1, USR2, TERM, CONT, URG or WINCH, with B: in front if the batch shell is to get it, too",
		text);
}

int ocs_load_policies(struct ocs_loader *loader, yaml_node_t *node)
{
	enum { LIMIT, CIRCUIT, SWITCH, SIGNAL, WHOLE };
	struct ocs_config_policies *policies = &loader->config->policies;
	struct ocs_yaml *yaml = &loader->yaml;
	struct ocs_field fields[] = {
		[LIMIT] = { .name = "requeue_limit" },	  [CIRCUIT] = { .name = "circuit_failed" },
		[SWITCH] = { .name = "switch_failed" },	  [SIGNAL] = { .name = "signal" },
		[WHOLE] = { .name = "keep_cubes_whole" },
	};

	if (ocs_yaml_fields(yaml, node, "policies", fields, COUNT(fields)) < 0)
		return -1;
	if (fields[LIMIT].node && ocs_yaml_number(yaml, fields[LIMIT].node, "requeue_limit", 1,
						  1000, &policies->requeue_limit) < 0)
		return -1;
	if (fields[WHOLE].node && ocs_yaml_bool(yaml, fields[WHOLE].node, "keep_cubes_whole",
						&policies->keep_cubes_whole) < 0)
		return -1;
	if (on_failure_load(yaml, &fields[CIRCUIT], &policies->circuit_failed) < 0 ||
	    on_failure_load(yaml, &fields[SWITCH], &policies->switch_failed) < 0)
		return -1;
	return fields[SIGNAL].node ? signal_load(loader, fields[SIGNAL].node) : 0;
}

static bool env_name_good(const char *name)
{
	if (isdigit((unsigned char)*name))
		return false;
	for (const char *c = name; *c; c++)
		if (!isalnum((unsigned char)*c) && *c != '_')
			return false;
	return true;
}

/* One NAME: VALUE below env. */
static int env_add(struct ocs_loader *loader, const yaml_node_pair_t *pair, struct ocs_names *seen)
{
	struct ocs_config_nccl *nccl = &loader->config->nccl;
	struct ocs_yaml *yaml = &loader->yaml;
	yaml_node_t *key = yaml_document_get_node(&yaml->document, pair->key);
	yaml_node_t *value = yaml_document_get_node(&yaml->document, pair->value);
	const char *name = ocs_yaml_text(yaml, key, "a variable of env"), *text;

	if (!name)
		return -1;
	if (!env_name_good(name))
		return ocs_yaml_fail(yaml, key,
				     "\"%.60s\" is not the name of an environment variable", name);
	if (ocs_names_add(seen, name, 0) >= 0)
		return ocs_yaml_fail(yaml, key, "env has the variable %.60s twice", name);
	text = ocs_yaml_text(yaml, value, name);
	if (!text)
		return -1;
	nccl->env[nccl->nenv++] = ocs_asprintf("%s=%s", name, text);
	return 0;
}

static int env_load(struct ocs_loader *loader, const yaml_node_t *node)
{
	struct ocs_names *seen;
	size_t count;
	int rc = 0;

	if (node->type != YAML_MAPPING_NODE)
		return ocs_yaml_fail(&loader->yaml, node,
				     "env must be a mapping of variables to values");
	count = (size_t)(node->data.mapping.pairs.top - node->data.mapping.pairs.start);
	loader->config->nccl.env = ocs_calloc(count, sizeof(char *));
	seen = ocs_names_create(count);
	for (size_t i = 0; i < count && rc == 0; i++)
		rc = env_add(loader, &node->data.mapping.pairs.start[i], seen);
	ocs_names_destroy(seen);
	return rc;
}

static int graph_file_load(struct ocs_loader *loader, yaml_node_t *node)
{
	struct ocs_config_nccl *nccl = &loader->config->nccl;
	bool value;

	if (node->type == YAML_SCALAR_NODE &&
	    strcmp((const char *)node->data.scalar.value, "auto") == 0)
		return 0;
	if (ocs_yaml_bool(&loader->yaml, node, "graph_file", &value) < 0)
		return -1;
	nccl->graph_file = value ? OCS_GRAPH_FILE_ALWAYS : OCS_GRAPH_FILE_NEVER;
	return 0;
}

static int nccl_version_load(struct ocs_loader *loader, yaml_node_t *node)
{
	const char *text = ocs_yaml_text(&loader->yaml, node, "version");

	if (!text)
		return -1;
	loader->config->nccl.release = ocs_release_parse(text, 0);
	if (!loader->config->nccl.release)
		return ocs_yaml_fail(&loader->yaml, node,
				     "version \"%.40s\" is no release of NCCL, such as 2.29.7",
				     text);
	return 0;
}

int ocs_load_nccl(struct ocs_loader *loader, yaml_node_t *node)
{
	struct ocs_field fields[] = { { .name = "hwloc_xml" },	{ .name = "env" },
				      { .name = "management" }, { .name = "graph_file" },
				      { .name = "version" },	{ .name = "rings" } };
	static const char *const rings[] = { "permuted", "stock" };
	struct ocs_config_nccl *nccl = &loader->config->nccl;

	if (ocs_yaml_fields(&loader->yaml, node, "nccl", fields, COUNT(fields)) < 0)
		return -1;
	if (fields[0].node && path_load(loader, fields[0].node, "hwloc_xml", &nccl->hwloc_xml) < 0)
		return -1;
	if (fields[2].node &&
	    ocs_load_device(loader, fields[2].node, "management", &nccl->management) < 0)
		return -1;
	if (fields[3].node && graph_file_load(loader, fields[3].node) < 0)
		return -1;
	if (fields[4].node && nccl_version_load(loader, fields[4].node) < 0)
		return -1;
	if (fields[5].node) {
		int kind = ocs_yaml_choice(&loader->yaml, fields[5].node, "rings", rings,
					   COUNT(rings));

		if (kind < 0)
			return -1;
		nccl->stock_rings = kind;
	}
	return fields[1].node ? env_load(loader, fields[1].node) : 0;
}
