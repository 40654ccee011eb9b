/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/optimise/compare.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/netsim/model_graph.h"
#include "src/netsim/step.h"
#include "src/plan/plan.h"
#include "src/util/error.h"
#include "src/util/text.h"

#define TOLERANCE 1e-3
#define STRATEGIES 2
#define PAYS 1.01 /* so much slower are packets at least where circuits pay */

/* What ocs-netsim calls a fabric of the table. */
static const struct {
	const char *name, *kind;
	bool circuits;
} simulated[] = {
	{ "ideal", "ideal", false },
	{ "oversubscribed", "oversubscribed", false },
	{ "expander", "expander", true },
	{ "topoopt", "topoopt strategy:best", true },
	{ "topoopt-ocs", "topoopt strategy:best", true },
	{ "mfabric", "region", true },
	{ "opus", "opus phases:provisioned", true },
};
#define NSIMULATED (sizeof(simulated) / sizeof(simulated[0]))

struct comparison {
	const struct ocs_optimise_request *request;
	const struct ocs_cost_table *table;
	/* the step with the strategy of the model's file and with the one that was found:
	 * each fabric has the one that is fastest on it */
	struct ocs_netsim_graph *graphs[STRATEGIES];
	int ngraphs;
	struct ocs_compare *compare;
	struct ocs_error *err;
};

/* Milliseconds of a step of GRAPH, whose servers compute SPEED times as fast, or -1. */
static double graph_simulate(struct comparison *c, struct ocs_netsim_graph *graph, const char *kind,
			     double rate, double speed)
{
	struct ocs_netsim_job job = { .graph = graph, .steps = 1 };
	struct ocs_netsim_request request = { .jobs = &job, .njobs = 1, .tolerance = TOLERANCE };
	const struct ocs_netsim_graph *graphs[] = { graph };
	struct ocs_netsim_result *result = NULL;
	struct ocs_netsim_spec spec;
	int *places[] = { NULL };
	double ms = -1;
	char *line = ocs_asprintf("%s servers:%d degree:%d rate:%.9gG", kind, graph->servers,
				  c->request->degree, rate * 8 / 1e9);

	if (ocs_netsim_spec_parse(line, &spec, c->err)) {
		free(line);
		return -1;
	}
	for (int i = 0; i < graph->ntasks; i++)
		if (graph->tasks[i].kind == OCS_NETSIM_COMPUTE)
			graph->tasks[i].ms /= speed;
	request.fabric = ocs_netsim_fabric_create(&spec, graphs, places, 1, 1, c->err);
	if (request.fabric)
		result = ocs_netsim_run(&request, c->err);
	if (result)
		ms = result->step_ms[0];
	for (int i = 0; i < graph->ntasks; i++)
		if (graph->tasks[i].kind == OCS_NETSIM_COMPUTE)
			graph->tasks[i].ms *= speed;
	ocs_netsim_result_destroy(result);
	ocs_netsim_fabric_destroy(request.fabric);
	ocs_netsim_spec_free(&spec);
	free(line);
	return ms;
}

/* The same with the strategy that is fastest. */
static double step_simulate(struct comparison *c, const char *kind, double rate, double speed)
{
	double best = -1;

	for (int i = 0; i < c->ngraphs; i++) {
		double ms = graph_simulate(c, c->graphs[i], kind, rate, speed);

		if (ms < 0)
			return -1;
		best = best < 0 || ms < best ? ms : best;
	}
	return best;
}

static void price_set(const struct comparison *c, const char *name, double rate, double *dollars,
		      double *watts)
{
	const struct ocs_cost_fabric *fabric = ocs_cost_fabric_find(c->table, name);
	const struct ocs_cost_rate *prices = ocs_cost_rate_find(c->table, rate);

	ocs_cost_total(fabric, prices, c->request->machine.servers, c->request->degree, dollars,
		       watts);
	if (!c->table->powers)
		*watts = -1;
}

static struct ocs_compare_row *row_add(struct comparison *c, const char *name)
{
	struct ocs_compare_row *row = &c->compare->rows[c->compare->nrows++];

	memset(row, 0, sizeof(*row));
	snprintf(row->name, sizeof(row->name), "%s", name);
	row->rate = c->request->rate;
	row->step_ms = row->value = row->gain = -1;
	return row;
}

/* What the simulator is asked for: of a region the interfaces that the table has on circuits. */
static void kind_set(const struct comparison *c, struct ocs_compare_row *row, const char *kind)
{
	const struct ocs_cost_fabric *fabric = ocs_cost_fabric_find(c->table, row->name);
	double optical = 0;

	for (int p = 0; p < fabric->nparts; p++)
		if (fabric->parts[p].count[OCS_COST_OCS_PORT] > 0)
			optical += fabric->parts[p].share;
	if (!strcmp(kind, "region"))
		snprintf(row->simulated, sizeof(row->simulated), "region optical:%d",
			 (int)lround(optical * c->request->degree));
	else
		snprintf(row->simulated, sizeof(row->simulated), "%s", kind);
}

/* Rails and regions are for jobs of a kind: a step that they cannot run leaves a row with prices. */
static bool kind_special(const char *kind)
{
	return !strcmp(kind, "region") || !strncmp(kind, "opus", 4);
}

static struct ocs_compare_row *row_find(struct ocs_compare *compare, const char *name)
{
	for (int i = 0; i < compare->nrows; i++)
		if (!strcmp(compare->rows[i].name, name))
			return &compare->rows[i];
	return NULL;
}

/* A row for every fabric that has prices. */
static int rows_make(struct comparison *c)
{
	for (int f = 0; f < c->table->nfabrics && c->compare->nrows < OCS_COMPARE_ROWS_MAX - 1;
	     f++) {
		const char *name = c->table->fabrics[f].name;
		struct ocs_compare_row *row = row_add(c, name), *twin;

		price_set(c, name, row->rate, &row->dollars, &row->watts);
		for (size_t k = 0; k < NSIMULATED; k++) {
			if (strcmp(simulated[k].name, name) != 0)
				continue;
			row->circuits = simulated[k].circuits;
			kind_set(c, row, simulated[k].kind);
			twin = row_find(c->compare, "topoopt");
			if (twin && twin != row && !strcmp(name, "topoopt-ocs"))
				row->step_ms = twin->step_ms;
			else
				row->step_ms = step_simulate(c, row->simulated, row->rate, 1);
			if (row->step_ms < 0 && !kind_special(simulated[k].kind))
				return -1;
		}
	}
	return 0;
}

/* The rate of a fat-tree that costs as much as FABRIC at RATE: its cost grows with it. */
static double fabric_rate_equal(const struct comparison *c, const char *fabric, double rate)
{
	double circuits, packets, watts;

	price_set(c, fabric, rate, &circuits, &watts);
	price_set(c, "ideal", rate, &packets, &watts);
	return rate * circuits / packets;
}

static double rate_equal(const struct comparison *c, double rate)
{
	return fabric_rate_equal(c, "topoopt", rate);
}

/* Each fabric of circuits against a fat-tree that costs as much as it. */
static int gains_set(struct comparison *c)
{
	for (int i = 0; i < c->compare->nrows; i++) {
		struct ocs_compare_row *row = &c->compare->rows[i];
		double equal, packets;

		if (!row->circuits || row->step_ms < 0 || !strcmp(row->name, "expander"))
			continue;
		equal = fabric_rate_equal(c, row->name, row->rate);
		packets = step_simulate(c, "fat-tree", equal, 1);
		if (packets < 0)
			return -1;
		row->gain = packets / row->step_ms;
	}
	return 0;
}

static int equal_row(struct comparison *c)
{
	struct ocs_compare_row *row = row_add(c, "fat-tree");
	double watts;

	row->rate = rate_equal(c, c->request->rate);
	price_set(c, "topoopt", c->request->rate, &row->dollars, &watts);
	price_set(c, "ideal", c->request->rate, &watts, &row->watts);
	if (row->watts >= 0)
		row->watts *= row->rate / c->request->rate;
	snprintf(row->simulated, sizeof(row->simulated), "fat-tree");
	row->step_ms = step_simulate(c, "fat-tree", row->rate, 1);
	return row->step_ms < 0 ? -1 : 0;
}

static int point_add(struct comparison *c, struct ocs_compare_point *point, const char *what,
		     double factor, double rate, double equal, double speed)
{
	snprintf(point->what, sizeof(point->what), "%s", what);
	point->factor = factor;
	point->circuits_ms = step_simulate(c, "topoopt strategy:best", rate, speed);
	point->packets_ms =
		point->circuits_ms < 0 ? -1 : step_simulate(c, "fat-tree", equal, speed);
	point->pays = point->packets_ms >= point->circuits_ms * PAYS;
	return point->packets_ms < 0 ? -1 : 0;
}

/* "circuits pay up to 40 Gb/s of these rates": all up to there; else one by one. */
static void at_rates_write(struct ocs_compare *compare)
{
	struct ocs_text text = { 0 };
	char *said;
	bool all = true;

	for (int i = 0; i < compare->nrates; i++) {
		const struct ocs_compare_point *point = &compare->rates[i];

		all = all && (point->pays || point->factor > compare->break_even);
		if (point->pays)
			ocs_text_add(&text, "%s%g", text.length ? ", " : "", point->factor);
	}
	said = ocs_text_take(&text);
	if (compare->break_even <= 0)
		snprintf(compare->at_rates, sizeof(compare->at_rates),
			 "circuits pay at none of these rates");
	else if (all)
		snprintf(compare->at_rates, sizeof(compare->at_rates),
			 "circuits pay up to %g Gb/s of these rates", compare->break_even);
	else
		snprintf(compare->at_rates, sizeof(compare->at_rates),
			 "of these rates circuits pay at %s Gb/s only", said);
	free(said);
}

/* What would turn the decision about planned circuits at the rate that was asked for. */
static void turns_write(struct comparison *c)
{
	struct ocs_compare *compare = c->compare;
	bool pays = row_find(compare, "topoopt")->gain >= PAYS;
	struct ocs_text text = { 0 };
	char *said;

	for (int i = 0; i < compare->nchanges; i++) {
		const struct ocs_compare_point *change = &compare->changes[i];

		if (change->pays != pays)
			ocs_text_add(&text, "%s%s x %g", text.length ? ", " : "", change->what,
				     change->factor);
	}
	said = ocs_text_take(&text);
	if (*said)
		snprintf(compare->turns, sizeof(compare->turns),
			 "planned circuits would %s with: %s", pays ? "not pay" : "pay", said);
	free(said);
}

/* Every rate of the table, from slow to fast as it stands there. */
static int rates_make(struct comparison *c)
{
	struct ocs_compare *compare = c->compare;

	for (int i = 0; i < c->table->nrates && i < OCS_COMPARE_POINTS_MAX; i++) {
		struct ocs_compare_point *point = &compare->rates[compare->nrates++];
		double rate = c->table->rates[i].rate, gbps = rate * 8 / 1e9;

		if (point_add(c, point, "rate", gbps, rate, rate_equal(c, rate), 1))
			return -1;
		if (point->pays && gbps > compare->break_even)
			compare->break_even = gbps;
	}
	return 0;
}

static int changes_make(struct comparison *c)
{
	static const double factors[] = { 0.5, 2, 4 };
	double rate = c->request->rate, equal = rate_equal(c, rate);

	for (size_t i = 0; i < 3; i++)
		if (point_add(c, &c->compare->changes[c->compare->nchanges++], "compute rate",
			      factors[i], rate, equal, factors[i]))
			return -1;
	/* circuits that cost more or less: packets of equal cost are faster or slower */
	for (size_t i = 0; i < 2; i++)
		if (point_add(c, &c->compare->changes[c->compare->nchanges++], "price of circuits",
			      factors[i], rate, equal * factors[i], 1))
			return -1;
	return 0;
}

static void values_set(struct ocs_compare *compare, double budget)
{
	const struct ocs_compare_row *ideal = row_find(compare, "ideal");

	for (int i = 0; i < compare->nrows; i++) {
		struct ocs_compare_row *row = &compare->rows[i];

		row->affordable = budget <= 0 || row->dollars <= budget;
		if (row->step_ms > 0)
			row->value = ideal->step_ms * ideal->dollars / row->step_ms / row->dollars;
	}
}

static const struct ocs_compare_row *row_cheapest(const struct ocs_compare *compare)
{
	const struct ocs_compare_row *found = &compare->rows[0];

	for (int i = 1; i < compare->nrows; i++) {
		if (compare->rows[i].dollars < found->dollars)
			found = &compare->rows[i];
	}
	return found;
}

static void verdict_write(struct comparison *c, double budget)
{
	struct ocs_compare *compare = c->compare;
	const struct ocs_compare_row *circuits = row_find(compare, "topoopt");
	const struct ocs_compare_row *best = NULL;
	double equal, packets;

	for (int i = 0; i < compare->nrows; i++) {
		const struct ocs_compare_row *row = &compare->rows[i];

		if (row->affordable && row->step_ms > 0 &&
		    (!best || row->step_ms < best->step_ms * (1 - 1e-9) ||
		     (row->step_ms < best->step_ms * (1 + 1e-9) && row->dollars < best->dollars)))
			best = row;
	}
	/* which circuits gain most; planned ones unless others gain more than 1 % over them */
	for (int i = 0; i < compare->nrows; i++) {
		const struct ocs_compare_row *row = &compare->rows[i];

		if (row->gain > 0 && row->affordable &&
		    (!circuits->affordable || row->gain > circuits->gain * PAYS))
			circuits = row;
	}
	compare->pays = circuits->gain >= PAYS && (budget <= 0 || circuits->affordable);
	equal = fabric_rate_equal(c, circuits->name, circuits->rate) * 8 / 1e9;
	packets = circuits->gain * circuits->step_ms;
	if (budget > 0 && !best)
		snprintf(compare->verdict, sizeof(compare->verdict),
			 "nothing is to be had for $%.0f: the cheapest fabric, %s, costs $%.0f",
			 budget, row_cheapest(compare)->name, row_cheapest(compare)->dollars);
	else if (circuits->gain >= PAYS && !compare->pays)
		snprintf(
			compare->verdict, sizeof(compare->verdict),
			"no circuit switch is to be had for $%.0f: circuits cost $%.0f, where a step is "
			"%.2f times as fast as on a fat-tree of equal cost; fastest within the budget: "
			"%s; a lower --rate costs less",
			budget, circuits->dollars, circuits->gain, best->name);
	else if (compare->pays)
		snprintf(compare->verdict, sizeof(compare->verdict),
			 "circuits pay: a step%s%s is %.2f times as fast as on a fat-tree of equal "
			 "cost (%.4g Gb/s an interface)%s%s",
			 strcmp(circuits->name, "topoopt") != 0 ? " on " : "",
			 strcmp(circuits->name, "topoopt") != 0 ? circuits->name : "",
			 circuits->gain, equal, budget > 0 ? "; fastest within the budget: " : "",
			 budget > 0 ? best->name : "");
	else
		snprintf(compare->verdict, sizeof(compare->verdict),
			 "no circuit switch pays here: a fat-tree of equal cost (%.4g Gb/s an "
			 "interface) takes %.*f ms a step, circuits %.*f ms%s%s",
			 equal, packets < 1000, packets,
			 packets<1000, circuits->step_ms, budget> 0 ?
				 "; fastest within the budget: " :
				 "",
			 budget > 0 ? best->name : "");
}

static int graph_add(struct comparison *c, const struct ocs_model_strategy *strategy)
{
	struct ocs_netsim_graph *graph =
		ocs_netsim_model_graph(c->request->model, &c->request->machine, strategy, c->err);

	if (graph)
		c->graphs[c->ngraphs++] = graph;
	return graph ? 0 : -1;
}

static int graphs_make(struct comparison *c)
{
	const struct ocs_optimise_request request = *c->request;
	struct ocs_model_strategy *given =
		ocs_model_strategy_default(request.model, &request.machine, NULL);
	struct ocs_optimise_result result;
	int rc;

	if (given &&
	    ocs_model_memory(request.model, &request.machine, given) <= request.machine.memory &&
	    graph_add(c, given)) {
		ocs_model_strategy_destroy(given);
		return -1;
	}
	ocs_model_strategy_destroy(given);
	if (ocs_optimise(c->request, &result, c->err))
		return -1;
	rc = graph_add(c, result.strategy);
	ocs_optimise_result_free(&result);
	return rc;
}

static int table_check(const struct ocs_optimise_request *request,
		       const struct ocs_cost_table *table, struct ocs_error *err)
{
	if (!ocs_cost_rate_find(table, request->rate))
		return ocs_cost_rate_refuse(table, request->rate, err);
	if (!ocs_cost_fabric_find(table, "ideal") || !ocs_cost_fabric_find(table, "topoopt"))
		return ocs_error_set(err, OCS_USAGE, "%s has no fabrics ideal and topoopt",
				     table->source);
	return 0;
}

static int time_check(struct ocs_compare *compare, struct ocs_error *err)
{
	if (row_find(compare, "ideal")->step_ms == 0)
		return ocs_error_set(
			err, OCS_USAGE,
			"the step takes no time: nothing computes and nothing is sent");
	return 0;
}

int ocs_compare_make(const struct ocs_optimise_request *request, struct ocs_netsim_graph *graph,
		     const struct ocs_cost_table *table, double budget, struct ocs_compare *compare,
		     struct ocs_error *err)
{
	struct comparison c = {
		.request = request, .table = table, .compare = compare, .err = err
	};
	int rc;

	memset(compare, 0, sizeof(*compare));
	compare->tolerance = TOLERANCE;
	if (table_check(request, table, err))
		return -1;
	if (graph)
		c.graphs[c.ngraphs++] = graph;
	rc = !graph && graphs_make(&c);
	if (!rc)
		rc = rows_make(&c) || time_check(compare, err) || gains_set(&c) || equal_row(&c) ||
		     rates_make(&c) || changes_make(&c);
	if (!rc) {
		values_set(compare, budget);
		verdict_write(&c, budget);
		at_rates_write(compare);
		turns_write(&c);
	}
	for (int i = 0; i < c.ngraphs && !graph; i++)
		ocs_netsim_graph_destroy(c.graphs[i]);
	return rc ? -1 : 0;
}
