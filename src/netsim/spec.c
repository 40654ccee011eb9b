/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* One-line fabrics: "fat-tree servers:128 degree:4 rate:100G leaf:16". */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/netsim/fabric.h"
#include "src/netsim/fabric_make.h"
#include "src/util/error.h"
#include "src/util/text.h"

#define COMMON "servers", "degree", "rate", "latency"

/* Words that each kind may have. */
static const struct {
	const char *name;
	const char *words[12];
} kinds[OCS_NETSIM_FABRICS] = {
	[OCS_NETSIM_IDEAL] = { "ideal", { COMMON } },
	[OCS_NETSIM_FAT_TREE] = { "fat-tree", { COMMON, "leaf" } },
	[OCS_NETSIM_OVERSUBSCRIBED] = { "oversubscribed", { COMMON, "leaf", "oversub" } },
	[OCS_NETSIM_RAIL] = { "rail", { COMMON } },
	[OCS_NETSIM_EXPANDER] = { "expander", { COMMON, "paths" } },
	[OCS_NETSIM_TOPOOPT] = { "topoopt", { COMMON, "strategy", "plan", "paths" } },
	[OCS_NETSIM_RECONFIG] = { "ocs-reconfig",
				  { COMMON, "interval", "pause", "forward", "estimate" } },
	[OCS_NETSIM_SIPML] = { "sip-ml", { COMMON, "interval", "pause", "forward", "estimate" } },
	[OCS_NETSIM_OPUS] = { "opus", { COMMON, "change", "phases", "shape", "frontend" } },
	[OCS_NETSIM_REGION] = { "region",
				{ COMMON, "change", "optical", "region", "policy", "when", "relays",
				  "packets" } },
	[OCS_NETSIM_TORUS] = { "torus",
			       { "servers", "rate", "latency", "cube", "shape", "links" } },
};

const char *ocs_netsim_fabric_name(enum ocs_netsim_fabric_kind kind)
{
	return kind < OCS_NETSIM_FABRICS ? kinds[kind].name : "unknown";
}

/* "50ms", "1us", "20": milliseconds.  0, or -1. */
static int time_read(const char *text, double *ms)
{
	char *end;

	*ms = strtod(text, &end);
	if (end == text || !(*ms >= 0) || *ms > OCS_NETSIM_MS_MAX)
		return -1;
	if (!strcmp(end, "us"))
		*ms /= 1000;
	else if (!strcmp(end, "s"))
		*ms *= 1000;
	else if (*end && strcmp(end, "ms") != 0)
		return -1;
	return 0;
}

/* "100G", "1.6T", "800M": bits per second as bytes per ms.  0, or -1. */
static int rate_read(const char *text, double *rate)
{
	char *end;
	double number = strtod(text, &end);
	double unit = *end == 'T' ? 1e12 : *end == 'G' ? 1e9 : *end == 'M' ? 1e6 : 0;

	if (end == text || !unit || end[1] || !(number > 0) || number * unit > 1e18)
		return -1;
	*rate = number * unit / 8 / 1000;
	return 0;
}

static int count_read(const char *text, long most, int *count)
{
	long number;

	if (ocs_number_parse(text, 1, most, &number))
		return -1;
	*count = (int)number;
	return 0;
}

/* Opus: "4x2x2", pipeline stages first. */
static int extents_read(struct ocs_netsim_spec *spec, const char *value)
{
	char *copy = ocs_strdup(value), *rest = NULL;
	double product = 1;
	int rc = 0;

	spec->ndim = 0;
	for (char *word = strtok_r(copy, "x", &rest); word && !rc;
	     word = strtok_r(NULL, "x", &rest)) {
		if (spec->ndim == OCS_NETSIM_SPEC_DIMS ||
		    count_read(word, OCS_NETSIM_SERVERS_MAX, &spec->extent[spec->ndim]))
			rc = -1;
		else
			product *= spec->extent[spec->ndim++];
	}
	free(copy);
	return rc || !spec->ndim || product > OCS_NETSIM_SERVERS_MAX ? -1 : 0;
}

/* Torus: "4x4x4,8x4x2", of one job after the other. */
static int shapes_read(struct ocs_netsim_spec *spec, const char *value)
{
	char *copy = ocs_strdup(value), *rest = NULL;
	int rc = 0;

	while (spec->nshapes)
		free(spec->shapes[--spec->nshapes]);
	for (char *word = strtok_r(copy, ",", &rest); word && !rc;
	     word = strtok_r(NULL, ",", &rest)) {
		rc = spec->nshapes == OCS_NETSIM_SPEC_SHAPES;
		if (!rc)
			spec->shapes[spec->nshapes++] = ocs_strdup(word);
	}
	free(copy);
	return rc || !spec->nshapes ? -1 : 0;
}

/* Which of the words of CHOICES, NULL at the end, VALUE is; -1: none. */
static int choice_read(const char *value, const char *const *choices)
{
	for (int k = 0; choices[k]; k++) {
		if (!strcmp(value, choices[k]))
			return k;
	}
	return -1;
}

/* NULL: done; else what VALUE of KEY should have been: words of opus, region and torus. */
static const char *controlled_read(struct ocs_netsim_spec *spec, const char *key, const char *value)
{
	static const char *const phases[] = { "on-demand", "provisioned", "off", NULL };
	static const char *const policies[] = { "paper", "greedy", "best", NULL };
	static const char *const times[] = { "pays", "always", "ahead", NULL };
	static const char *const answers[] = { "no", "yes", NULL };
	static const char *const wires[] = { "dedicated", "shared", NULL };
	int choice;

	if (!strcmp(key, "change"))
		return time_read(value, &spec->change) ? "a time such as 10ms" : NULL;
	if (!strcmp(key, "frontend"))
		return rate_read(value, &spec->frontend) ? "a rate such as 100G" : NULL;
	if (!strcmp(key, "packets"))
		return rate_read(value, &spec->packets) ? "a rate such as 50G" : NULL;
	if (!strcmp(key, "optical"))
		return count_read(value, 64, &spec->optical) ? "1 to 64 interfaces of a server" :
							       NULL;
	if (!strcmp(key, "region"))
		return count_read(value, OCS_NETSIM_SERVERS_MAX, &spec->region) ?
			       "a number of servers, such as 8" :
			       NULL;
	if (!strcmp(key, "cube"))
		return count_read(value, 16, &spec->cube) ? "1 to 16 XPUs along an edge" : NULL;
	if (!strcmp(key, "shape") && spec->kind == OCS_NETSIM_OPUS)
		return extents_read(spec, value) ? "a shape such as 4x2, pipeline stages first" :
						   NULL;
	if (!strcmp(key, "shape"))
		return shapes_read(spec, value) ? "a shape such as 4x4x8, or several with commas" :
						  NULL;
	if (!strcmp(key, "phases")) {
		choice = choice_read(value, phases);
		spec->phases = choice < 0 ? spec->phases : (enum ocs_netsim_phases)choice;
		return choice < 0 ? "on-demand, provisioned or off" : NULL;
	}
	if (!strcmp(key, "policy")) {
		spec->policy = choice_read(value, policies);
		return spec->policy < 0 ? "paper, greedy or best" : NULL;
	}
	if (!strcmp(key, "when")) {
		choice = choice_read(value, times);
		spec->always = choice == 1;
		spec->ahead = choice == 2;
		return choice < 0 ? "pays, always or ahead" : NULL;
	}
	if (!strcmp(key, "relays")) {
		choice = choice_read(value, answers);
		spec->relays = choice == 1;
		return choice < 0 ? "yes or no" : NULL;
	}
	choice = choice_read(value, wires);
	spec->shared = choice == 1;
	return choice < 0 ? "dedicated or shared" : NULL;
}

/* NULL: done; else what VALUE of KEY should have been. */
static const char *value_read(struct ocs_netsim_spec *spec, const char *key, const char *value)
{
	char *end;

	if (!strcmp(key, "servers"))
		return count_read(value, OCS_NETSIM_SERVERS_MAX, &spec->servers) ?
			       "a number of servers, such as 16" :
			       NULL;
	if (!strcmp(key, "degree"))
		return count_read(value, 64, &spec->degree) ? "1 to 64 interfaces of a server" :
							      NULL;
	if (!strcmp(key, "paths"))
		return count_read(value, OCS_NETSIM_PATHS_MAX, &spec->paths) ?
			       "1 to 4 ways of a pair" :
			       NULL;
	if (!strcmp(key, "leaf"))
		return count_read(value, OCS_NETSIM_SERVERS_MAX, &spec->leaf) ?
			       "a number of servers, such as 16" :
			       NULL;
	if (!strcmp(key, "rate"))
		return rate_read(value, &spec->rate) ? "a rate such as 100G" : NULL;
	if (!strcmp(key, "latency"))
		return time_read(value, &spec->latency) ? "a time such as 1us" : NULL;
	if (!strcmp(key, "interval"))
		return time_read(value, &spec->interval) || !(spec->interval > 0) ?
			       "a time such as 50ms" :
			       NULL;
	if (!strcmp(key, "pause"))
		return time_read(value, &spec->pause) ? "a time such as 10ms" : NULL;
	if (!strcmp(key, "oversub")) {
		spec->oversub = strtod(value, &end);
		return end == value || *end || !(spec->oversub >= 1 && spec->oversub <= 1000) ?
			       "a ratio of 1 to 1000, such as 2" :
			       NULL;
	}
	if (!strcmp(key, "forward")) {
		spec->forward = !strcmp(value, "yes");
		return spec->forward || !strcmp(value, "no") ? NULL : "yes or no";
	}
	if (!strcmp(key, "estimate")) {
		spec->clock = !strcmp(value, "clock");
		return spec->clock || !strcmp(value, "traffic") ? NULL : "traffic or clock";
	}
	if (!strcmp(key, "plan")) {
		free(spec->plan);
		spec->plan = ocs_strdup(value);
		return *value ? NULL : "the file of a plan";
	}
	if (!strcmp(key, "strategy")) {
		spec->best = !strcmp(value, "best");
		return spec->best || !strcmp(value, "paper") ? NULL : "paper or best";
	}
	return controlled_read(spec, key, value);
}

static int word_read(struct ocs_netsim_spec *spec, char *word, struct ocs_error *err)
{
	const char *const *words = kinds[spec->kind].words;
	char *colon = strchr(word, ':');
	const char *wanted;
	struct ocs_text list = { 0 };

	if (colon)
		*colon = '\0';
	for (int k = 0; k < 12 && words[k]; k++) {
		ocs_text_add(&list, "%s%s:", k ? " " : "", words[k]);
		if (!colon || strcmp(words[k], word) != 0)
			continue;
		ocs_text_free(&list);
		wanted = value_read(spec, word, colon + 1);
		return !wanted ? 0 :
				 ocs_error_set(err, OCS_USAGE, "fabric: %.40s:%.40s is not %s",
					       word, colon + 1, wanted);
	}
	ocs_error_set(err, OCS_USAGE, "fabric: \"%.60s\" is no word of %s, which has %s", word,
		      kinds[spec->kind].name, list.data);
	ocs_text_free(&list);
	return -1;
}

static int kind_read(struct ocs_netsim_spec *spec, const char *word, struct ocs_error *err)
{
	struct ocs_text list = { 0 };

	for (int k = 0; k < OCS_NETSIM_FABRICS; k++) {
		if (word && !strcmp(word, kinds[k].name)) {
			spec->kind = (enum ocs_netsim_fabric_kind)k;
			ocs_text_free(&list);
			return 0;
		}
		ocs_text_add(&list, "%s%s", k ? ", " : "", kinds[k].name);
	}
	ocs_error_set(err, OCS_USAGE, "fabric: \"%.60s\" is none of %s", word ? word : "",
		      list.data);
	ocs_text_free(&list);
	return -1;
}

/* What differs from kind to kind. */
static void kind_defaults(struct ocs_netsim_spec *spec)
{
	if (spec->kind == OCS_NETSIM_OVERSUBSCRIBED)
		spec->oversub = 2;
	if (spec->kind == OCS_NETSIM_SIPML) {
		spec->forward = false;
		spec->pause = 0.025;
	}
	if (spec->kind == OCS_NETSIM_REGION) {
		spec->degree = 8;
		spec->change = 25;
	}
}

int ocs_netsim_spec_parse(const char *text, struct ocs_netsim_spec *spec, struct ocs_error *err)
{
	char *copy = ocs_strdup(text), *rest = NULL, *word = strtok_r(copy, " \t", &rest);
	int rc;

	*spec = (struct ocs_netsim_spec){ .degree = 1,
					  .rate = 12.5e6,
					  .latency = 0.001,
					  .leaf = 16,
					  .oversub = 1,
					  .interval = 50,
					  .pause = 10,
					  .change = 10,
					  .frontend = 12.5e6,
					  .optical = 6,
					  .policy = 2,
					  .relays = true,
					  .paths = OCS_NETSIM_PATHS_MAX,
					  .cube = 4,
					  .forward = true };
	rc = kind_read(spec, word, err);
	if (!rc)
		kind_defaults(spec);
	while (!rc && (word = strtok_r(NULL, " \t", &rest)))
		rc = word_read(spec, word, err);
	free(copy);
	if (!rc)
		spec->text = ocs_strdup(text);
	return rc;
}

void ocs_netsim_spec_free(struct ocs_netsim_spec *spec)
{
	free(spec->text);
	free(spec->plan);
	while (spec->nshapes)
		free(spec->shapes[--spec->nshapes]);
	spec->text = spec->plan = NULL;
}
