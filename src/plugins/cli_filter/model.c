/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/plugins/cli_filter/model.h"

#include <json-c/json.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "src/config/config.h"
#include "src/fold/shape.h"
#include "src/scheduler/submit_options.h"
#include "src/util/base64.h"
#include "src/util/error.h"
#include "src/util/program.h"
#include "src/util/text.h"

#define ARGS_MAX 16

void ocs_model_answer_free(struct ocs_model_answer *answer)
{
	free(answer->shape);
	free(answer->demand);
	free(answer->strategy);
	free(answer->told);
	memset(answer, 0, sizeof(*answer));
}

/* The first line of COMPLAINT, without the name of who complains. */
static int complaint_set(const char *complaint, struct ocs_error *err)
{
	const char *text = ocs_error_cause(ocs_error_cause(complaint, "ocsctl"), "optimise");
	int length = (int)strcspn(text, "\n");

	if (!length)
		return ocs_error_set(err, OCS_ERROR, "%s ended without an answer", OCS_OCSCTL);
	return ocs_error_set(err, OCS_USAGE, "%.*s", length > 900 ? 900 : length, text);
}

static struct json_object *optimise_run(const char *model, int nodes, int degree, int xpus,
					int mbps, struct ocs_error *err)
{
	char *servers = ocs_asprintf("%d", nodes), *links = ocs_asprintf("%d", degree);
	char *gpus = ocs_asprintf("%d", xpus), *rate = ocs_asprintf("%gG", mbps / 1e3);
	char *out = NULL, *complaint = NULL;
	struct json_object *json = NULL;
	const char *argv[ARGS_MAX];
	struct ocs_program program = { .words = (char *const *)argv };
	int n = 0, status;

	argv[n++] = OCS_OCSCTL;
	argv[n++] = "optimise";
	argv[n++] = "--json";
	argv[n++] = "--servers";
	argv[n++] = servers;
	if (degree > 0) {
		argv[n++] = "--degree";
		argv[n++] = links;
	}
	if (xpus > 0) {
		argv[n++] = "--gpus";
		argv[n++] = gpus;
	}
	if (mbps > 0) {
		argv[n++] = "--rate";
		argv[n++] = rate;
	}
	argv[n++] = "--";
	argv[n++] = model;
	argv[n] = NULL;
	status = ocs_program_run(&program, &out, &complaint);
	if (status)
		complaint_set(complaint ? complaint : "", err);
	else if (!(json = json_tokener_parse(out)))
		ocs_error_set(err, OCS_ERROR, "the answer of %s is no JSON", argv[0]);
	free(out);
	free(complaint);
	free(servers);
	free(links);
	free(gpus);
	free(rate);
	return json;
}

/* The member NAME of JSON; the answer is the optimiser's own. */
static struct json_object *member_get(struct json_object *json, const char *name)
{
	struct json_object *value = NULL;

	json_object_object_get_ex(json, name, &value);
	return value;
}

char *ocs_model_shape_fit(const char *shape, int xpus, struct ocs_error *err)
{
	struct ocs_text text = { 0 };
	struct ocs_shape parsed;
	long inside = 1;
	int at;

	if (ocs_shape_parse(shape, NULL, &parsed, err) < 0)
		return NULL;
	for (at = parsed.ndim - 1; at >= 0 && inside * parsed.extent[at] <= xpus; at--)
		inside *= parsed.extent[at];
	if (inside == xpus || at < 0)
		return ocs_strdup(shape);
	if (xpus % inside || parsed.extent[at] % (xpus / inside) || parsed.ndim == OCS_SHAPE_DIMS) {
		ocs_error_set(
			err, OCS_USAGE,
			"the best way found is %s, which does not divide into nodes of %d accelerators",
			shape, xpus);
		return NULL;
	}
	for (int i = 0; i < parsed.ndim; i++) {
		int cut = i == at ? (int)(xpus / inside) : 1, outer = parsed.extent[i] / cut;

		if (outer > 1 || cut == 1)
			ocs_text_add(&text, "%s%s:%d", text.length ? "," : "", parsed.name[i],
				     outer);
		if (cut > 1)
			ocs_text_add(&text, "%slocal:%d", text.length ? "," : "", cut);
	}
	return ocs_text_take(&text);
}

/* In a region, where experts have groups: ep in place of as much of dp and cp, or NULL. */
static char *experts_text(struct json_object *strategy)
{
	int pp = json_object_get_int(member_get(strategy, "pp"));
	int tp = json_object_get_int(member_get(strategy, "tp"));
	int ep = json_object_get_int(member_get(strategy, "ep"));
	int groups = json_object_get_int(member_get(strategy, "dp")) *
		     json_object_get_int(member_get(strategy, "cp"));
	struct ocs_text text = { 0 };

	if (ep < 2 || groups % ep)
		return NULL;
	if (pp > 1)
		ocs_text_add(&text, "pp:%d,", pp);
	if (groups > ep)
		ocs_text_add(&text, "dp:%d,", groups / ep);
	ocs_text_add(&text, "ep:%d", ep);
	if (tp > 1)
		ocs_text_add(&text, ",tp:%d", tp);
	return ocs_text_take(&text);
}

/* Over GPUs; a model that is divided operator by operator is one ring of all. */
static char *strategy_text(struct json_object *json, const struct ocs_section *section, int nodes,
			   int xpus)
{
	char *experts =
		section->kind == OCS_REGION ? experts_text(member_get(json, "strategy")) : NULL;

	if (experts)
		return experts;
	if (member_get(member_get(json, "strategy"), "operators"))
		return ocs_asprintf("dp:%d", nodes * xpus);
	return ocs_strdup(json_object_get_string(member_get(json, "shape")));
}

static int demand_take(struct json_object *json, int nodes, struct ocs_model_answer *answer,
		       struct ocs_error *err)
{
	const char *text =
		json_object_to_json_string_ext(member_get(json, "demand"), JSON_C_TO_STRING_PLAIN);

	if (strlen(text) > OCS_DEMAND_MAX)
		return ocs_error_set(
			err, OCS_USAGE,
			"the demand of %d nodes is %zu bytes, and a job may bring %d; the plan for no demand in particular comes without the option",
			nodes, strlen(text), OCS_DEMAND_MAX);
	answer->demand = ocs_base64_encode(text, strlen(text));
	return 0;
}

static int answer_take(struct json_object *json, const struct ocs_section *section, int nodes,
		       struct ocs_model_answer *answer, struct ocs_error *err)
{
	int xpus = json_object_get_int(member_get(member_get(json, "assumptions"), "gpus"));
	double ms = json_object_get_double(member_get(json, "step_ms"));

	answer->strategy = strategy_text(json, section, nodes, xpus);
	if (section->kind == OCS_DIRECT) {
		if (demand_take(json, nodes, answer, err))
			return -1;
		answer->told = ocs_asprintf(
			"%s over %d nodes of %d GPUs, about %.4g ms a step; circuits for what it sends",
			answer->strategy, nodes, xpus, ms);
		return 0;
	}
	answer->shape = section->kind == OCS_RAILS ?
				ocs_model_shape_fit(answer->strategy, xpus, err) :
				ocs_strdup(answer->strategy);
	if (!answer->shape)
		return -1;
	answer->told = ocs_asprintf("--shape=%s on %d nodes of %d GPUs, about %.4g ms a step",
				    answer->shape, nodes, xpus, ms);
	return 0;
}

/* Accelerators and interfaces of a node; 0: not said. */
static void machine_of(const struct ocs_section *section, int *xpus, int *degree, int *mbps)
{
	bool cubes = section->kind == OCS_TORUS || section->kind == OCS_STATIC;

	*xpus = cubes ? section->tile[0] * section->tile[1] * section->tile[2] :
			section->server_xpus;
	*degree = cubes ? ocs_section_tile_links(section) : section->degree;
	/* on rails a node of which nothing is said counts as one accelerator */
	if ((section->kind == OCS_RAILS || section->kind == OCS_REGION) && !*xpus)
		*xpus = 1;
	*mbps = section->interfaces ? section->interfaces[0].speed : 0;
}

int ocs_model_ask(const char *fabric, const char *partition, const char *model, int nodes,
		  struct ocs_model_answer *answer, struct ocs_error *err)
{
	struct ocs_config *config = ocs_config_open(fabric, err);
	const struct ocs_section *section;
	struct json_object *json = NULL;
	int xpus, degree, mbps, rc = -1;

	memset(answer, 0, sizeof(*answer));
	if (!config)
		return -1;
	section = ocs_fabric_section(config->fabric, partition);
	if (!section) {
		ocs_error_set(err, OCS_USAGE, "partition %s has no circuits; leave it out",
			      partition);
	} else {
		machine_of(section, &xpus, &degree, &mbps);
		json = optimise_run(model, nodes, degree, xpus, mbps, err);
	}
	if (json)
		rc = answer_take(json, section, nodes, answer, err);
	if (rc)
		ocs_model_answer_free(answer);
	json_object_put(json);
	ocs_config_destroy(config);
	return rc;
}
