/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/optimise/cost.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/config/document.h"
#include "src/model/model.h"
#include "src/util/error.h"
#include "src/util/text.h"

#define FILE_MAX (1 << 18)
#define LIST_MAX 256

static const char *const component_names[OCS_COST_COMPONENTS] = {
	"nic",	       "transceiver", "port_transceiver",
	"switch_port", "ocs_port",    "patch_port",
	"splitter",    "fibre",	      "cable",
};

/* A number, or a quotient such as 37299/64. */
static int real_read(struct ocs_yaml *yaml, const yaml_node_t *node, const char *key, double *value)
{
	const char *text = ocs_yaml_text(yaml, node, key);
	double below = 1;
	char *end;

	if (!text)
		return -1;
	*value = strtod(text, &end);
	if (*end == '/')
		below = strtod(end + 1, &end);
	if (end == text || *end || !(below > 0) || !(*value >= 0) || *value > 1e9)
		return ocs_yaml_fail(yaml, node,
				     "%s must be a number such as 520 or 37299/64, not \"%.40s\"",
				     key, text);
	*value /= below;
	if (!(*value <= 1e9))
		return ocs_yaml_fail(yaml, node, "%s is above 1e9: \"%.40s\"", key, text);
	return 0;
}

/* {nic: 185, ...}: some components, the others stay. */
static int components_read(struct ocs_yaml *yaml, yaml_node_t *node, const char *what,
			   double *values)
{
	struct ocs_field fields[OCS_COST_COMPONENTS] = { 0 };

	for (int c = 0; c < OCS_COST_COMPONENTS; c++)
		fields[c].name = component_names[c];
	if (ocs_yaml_fields(yaml, node, what, fields, OCS_COST_COMPONENTS))
		return -1;
	for (int c = 0; c < OCS_COST_COMPONENTS; c++)
		if (fields[c].node &&
		    real_read(yaml, fields[c].node, component_names[c], &values[c]))
			return -1;
	return 0;
}

static int rate_parse(struct ocs_yaml *yaml, const yaml_node_t *node, double *rate)
{
	const char *text = ocs_yaml_text(yaml, node, "rate");
	char *end;

	if (!text)
		return -1;
	*rate = strtod(text, &end) * 1e9 / 8;
	if (end == text || strcmp(end, "G") != 0 || !(*rate > 0) || *rate > 1e18)
		return ocs_yaml_fail(yaml, node, "rate must be one such as 100G, not \"%.40s\"",
				     text);
	return 0;
}

/* {rate: 100G, prices: {...}, powers: {...}}; what a rate leaves out is as in the rate before. */
static int rate_read(struct ocs_yaml *yaml, yaml_node_t *node, struct ocs_cost_table *table,
		     const struct ocs_cost_rate *common)
{
	struct ocs_field fields[] = { { "rate", true, NULL },
				      { "prices", true, NULL },
				      { "powers", false, NULL } };
	struct ocs_cost_rate *rate = &table->rates[table->nrates++];

	*rate = *common;
	if (ocs_yaml_fields(yaml, node, "a rate", fields, 3) ||
	    rate_parse(yaml, fields[0].node, &rate->rate) ||
	    components_read(yaml, fields[1].node, "prices", rate->price))
		return -1;
	if (fields[2].node)
		table->powers = true;
	return fields[2].node ? components_read(yaml, fields[2].node, "powers", rate->power) : 0;
}

static int part_read(struct ocs_yaml *yaml, yaml_node_t *node, struct ocs_cost_part *part)
{
	struct ocs_field fields[OCS_COST_COMPONENTS + 2] = { 0 };

	for (int c = 0; c < OCS_COST_COMPONENTS; c++)
		fields[c].name = component_names[c];
	fields[OCS_COST_COMPONENTS].name = "share";
	fields[OCS_COST_COMPONENTS + 1].name = "clos";
	part->share = 1;
	if (ocs_yaml_fields(yaml, node, "a part", fields, OCS_COST_COMPONENTS + 2))
		return -1;
	for (int c = 0; c < OCS_COST_COMPONENTS; c++)
		if (fields[c].node &&
		    real_read(yaml, fields[c].node, component_names[c], &part->count[c]))
			return -1;
	if (fields[OCS_COST_COMPONENTS].node &&
	    real_read(yaml, fields[OCS_COST_COMPONENTS].node, "share", &part->share))
		return -1;
	return fields[OCS_COST_COMPONENTS + 1].node ?
		       ocs_yaml_bool(yaml, fields[OCS_COST_COMPONENTS + 1].node, "clos",
				     &part->clos) :
		       0;
}

static int fabric_read(struct ocs_yaml *yaml, yaml_node_t *node, struct ocs_cost_table *table)
{
	struct ocs_field fields[] = { { "name", true, NULL }, { "parts", true, NULL } };
	struct ocs_cost_fabric *fabric = &table->fabrics[table->nfabrics++];
	const char *name;
	double shares = 0;
	int count;

	if (ocs_yaml_fields(yaml, node, "a fabric", fields, 2))
		return -1;
	name = ocs_yaml_text(yaml, fields[0].node, "name");
	if (!name)
		return -1;
	fabric->name = ocs_strdup(name);
	count = ocs_yaml_length(yaml, fields[1].node, "parts");
	if (count < 0 || count > LIST_MAX)
		return count < 0 ? -1 : ocs_yaml_fail(yaml, node, "more than %d parts", LIST_MAX);
	fabric->parts = ocs_calloc((size_t)count + 1, sizeof(*fabric->parts));
	for (int i = 0; i < count; i++) {
		if (part_read(yaml, ocs_yaml_item(yaml, fields[1].node, i), &fabric->parts[i]))
			return -1;
		shares += fabric->parts[i].share;
		fabric->nparts++;
	}
	if (fabs(shares - 1) > 1e-9)
		return ocs_yaml_fail(yaml, node,
				     "the shares of the parts of %.40s are %g together, "
				     "not 1",
				     name, shares);
	return 0;
}

static int assumptions_read(struct ocs_yaml *yaml, yaml_node_t *node, struct ocs_cost_table *table)
{
	int count = ocs_yaml_length(yaml, node, "assumptions");

	if (count < 0 || count > LIST_MAX)
		return count < 0 ? -1 : ocs_yaml_fail(yaml, node, "more than %d lines", LIST_MAX);
	table->assumptions = ocs_calloc((size_t)count + 1, sizeof(char *));
	for (int i = 0; i < count; i++) {
		const char *text =
			ocs_yaml_text(yaml, ocs_yaml_item(yaml, node, i), "an assumption");

		if (!text)
			return -1;
		table->assumptions[table->nassumptions++] = ocs_strdup(text);
	}
	return 0;
}

/* The rates and the fabrics. */
static int lists_read(struct ocs_yaml *yaml, struct ocs_field *rates, struct ocs_field *fabrics,
		      const struct ocs_cost_rate *common, struct ocs_cost_table *table)
{
	int count = ocs_yaml_length(yaml, rates->node, "rates");

	if (count <= 0 || count > LIST_MAX)
		return count < 0 ? -1 : ocs_yaml_fail(yaml, rates->node, "1 to %d rates", LIST_MAX);
	table->rates = ocs_calloc((size_t)count, sizeof(*table->rates));
	for (int i = 0; i < count; i++)
		if (rate_read(yaml, ocs_yaml_item(yaml, rates->node, i), table, common))
			return -1;
	count = ocs_yaml_length(yaml, fabrics->node, "fabrics");
	if (count <= 0 || count > LIST_MAX)
		return count < 0 ? -1 :
				   ocs_yaml_fail(yaml, fabrics->node, "1 to %d fabrics", LIST_MAX);
	table->fabrics = ocs_calloc((size_t)count, sizeof(*table->fabrics));
	for (int i = 0; i < count; i++)
		if (fabric_read(yaml, ocs_yaml_item(yaml, fabrics->node, i), table))
			return -1;
	return 0;
}

static int document_read(struct ocs_yaml *yaml, yaml_node_t *root, struct ocs_cost_table *table)
{
	struct ocs_field fields[] = { { "costs", true, NULL },	     { "about", false, NULL },
				      { "assumptions", true, NULL }, { "prices", false, NULL },
				      { "powers", false, NULL },     { "rates", true, NULL },
				      { "fabrics", true, NULL } };
	struct ocs_cost_rate common = { 0 };
	const char *text;

	if (ocs_yaml_fields(yaml, root, "a table of costs", fields, 7))
		return -1;
	text = ocs_yaml_text(yaml, fields[0].node, "costs");
	if (!text)
		return -1;
	table->name = ocs_strdup(text);
	text = fields[1].node ? ocs_yaml_text(yaml, fields[1].node, "about") : "";
	if (!text)
		return -1;
	table->about = ocs_strdup(text);
	if (assumptions_read(yaml, fields[2].node, table))
		return -1;
	/* of components that cost the same at every rate */
	if (fields[3].node && components_read(yaml, fields[3].node, "prices", common.price))
		return -1;
	if (fields[4].node && components_read(yaml, fields[4].node, "powers", common.power))
		return -1;
	table->powers = fields[4].node;
	return lists_read(yaml, &fields[5], &fields[6], &common, table);
}

struct ocs_cost_table *ocs_cost_parse(const char *text, size_t length, const char *source,
				      struct ocs_error *err)
{
	struct ocs_cost_table *table;
	struct ocs_yaml yaml;
	int rc;

	if (ocs_yaml_open(&yaml, text, length, source, err))
		return NULL;
	table = ocs_calloc(1, sizeof(*table));
	table->source = ocs_strdup(source);
	rc = document_read(&yaml, yaml_document_get_root_node(&yaml.document), table);
	ocs_yaml_close(&yaml);
	if (!rc)
		return table;
	ocs_cost_destroy(table);
	return NULL;
}

struct ocs_cost_table *ocs_cost_open(const char *spec, struct ocs_error *err)
{
	char *name = ocs_asprintf("%s.yaml", spec);
	char *path = strchr(spec, '/') ? ocs_strdup(spec) : ocs_model_data_path("costs", name);
	struct ocs_cost_table *table = NULL;
	size_t length;
	char *text = ocs_file_read(path, FILE_MAX, &length, err);

	if (text)
		table = ocs_cost_parse(text, length, path, err);
	else if (!strchr(spec, '/'))
		ocs_error_set(
			err, OCS_USAGE,
			"there are no costs '%.60s'; give a file (./%.60s) or topoopt, mfabric, "
			"opus-h200 or opus-gb200",
			spec, spec);
	free(text);
	free(path);
	free(name);
	return table;
}

void ocs_cost_destroy(struct ocs_cost_table *table)
{
	if (!table)
		return;
	for (int i = 0; i < table->nassumptions; i++)
		free(table->assumptions[i]);
	for (int i = 0; i < table->nfabrics; i++) {
		free(table->fabrics[i].name);
		free(table->fabrics[i].parts);
	}
	free(table->assumptions);
	free(table->fabrics);
	free(table->rates);
	free(table->name);
	free(table->source);
	free(table->about);
	free(table);
}

const struct ocs_cost_rate *ocs_cost_rate_find(const struct ocs_cost_table *table, double rate)
{
	for (int i = 0; i < table->nrates; i++)
		if (fabs(table->rates[i].rate / rate - 1) < 1e-9)
			return &table->rates[i];
	return NULL;
}

int ocs_cost_rate_refuse(const struct ocs_cost_table *table, double rate, struct ocs_error *err)
{
	struct ocs_text rates = { 0 };
	char *names;

	for (int i = 0; i < table->nrates; i++)
		ocs_text_add(&rates, "%s%g", i ? ", " : "", table->rates[i].rate * 8 / 1e9);
	names = ocs_text_take(&rates);
	ocs_error_set(err, OCS_USAGE,
		      "%s has no prices for %g Gb/s, but for %s; give --rate or --costs",
		      table->source, rate * 8 / 1e9, names);
	free(names);
	return -1;
}

const struct ocs_cost_fabric *ocs_cost_fabric_find(const struct ocs_cost_table *table,
						   const char *name)
{
	for (int i = 0; i < table->nfabrics; i++)
		if (!strcmp(table->fabrics[i].name, name))
			return &table->fabrics[i];
	return NULL;
}

/* Ports per interface of a two-layer Clos: each rail has leaves of its own, half of whose ports
 * go to spines that all rails share. */
static double clos_ports(int servers, int rails)
{
	int k = (int)lround(sqrt(4.0 * servers)), half = k / 2 > 0 ? k / 2 : 1;
	double leaves = floor((double)servers / half) * 2,
	       spines = floor((double)rails * servers / k);

	return (leaves * rails + spines) * k / servers / rails;
}

void ocs_cost_total(const struct ocs_cost_fabric *fabric, const struct ocs_cost_rate *rate,
		    int servers, int interfaces, double *dollars, double *watts)
{
	double all = (double)servers * interfaces;

	*dollars = *watts = 0;
	for (int p = 0; p < fabric->nparts; p++) {
		const struct ocs_cost_part *part = &fabric->parts[p];

		for (int c = 0; c < OCS_COST_COMPONENTS; c++) {
			double count = part->count[c];

			if (part->clos &&
			    (c == OCS_COST_SWITCH_PORT || c == OCS_COST_PORT_TRANSCEIVER))
				count *= clos_ports(servers, interfaces);
			*dollars += all * part->share * count * rate->price[c];
			*watts += all * part->share * count * rate->power[c];
		}
	}
}
