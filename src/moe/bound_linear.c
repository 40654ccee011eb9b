/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <glpk.h>
#include <stdlib.h>

#include "ocs_config.h"
#include "src/moe/bound.h"
#include "src/util/library.h"
#include "src/util/text.h"

/* What is used of GLPK. */
struct glpk {
	__typeof__(glp_add_cols) *add_cols;
	__typeof__(glp_add_rows) *add_rows;
	__typeof__(glp_create_prob) *create_prob;
	__typeof__(glp_delete_prob) *delete_prob;
	__typeof__(glp_free_env) *free_env;
	__typeof__(glp_get_obj_val) *get_obj_val;
	__typeof__(glp_get_status) *get_status;
	__typeof__(glp_init_smcp) *init_smcp;
	__typeof__(glp_load_matrix) *load_matrix;
	__typeof__(glp_set_col_bnds) *set_col_bnds;
	__typeof__(glp_set_obj_coef) *set_obj_coef;
	__typeof__(glp_set_obj_dir) *set_obj_dir;
	__typeof__(glp_set_row_bnds) *set_row_bnds;
	__typeof__(glp_simplex) *simplex;
};

static int glpk_load(struct glpk *glpk)
{
#define SYMBOL(name)                       \
	{                                  \
		"glp_" #name, &glpk->name, \
	}
	const struct ocs_library_symbol symbols[] = {
		SYMBOL(add_cols),     SYMBOL(add_rows),	    SYMBOL(create_prob),
		SYMBOL(delete_prob),  SYMBOL(free_env),	    SYMBOL(get_obj_val),
		SYMBOL(get_status),   SYMBOL(init_smcp),    SYMBOL(load_matrix),
		SYMBOL(set_col_bnds), SYMBOL(set_obj_coef), SYMBOL(set_obj_dir),
		SYMBOL(set_row_bnds), SYMBOL(simplex),
	};
#undef SYMBOL

	return ocs_library_load(GLPK_SONAME, symbols, sizeof(symbols) / sizeof(*symbols), NULL);
}

/* Minimise t; for a pair y is what its circuits carry each way, e what packets carry:
 *	D_ij <= y_ij + e_ij, y_ij = y_ji;  sum over j of y_ij <= ports_i t;
 *	sum over j of e_ij <= packets t;  sum over i of e_ij <= packets t.
 * Columns: t is 1, then the y of pairs i < j, then e.  Rows: ports, sent, received (n each),
 * then the pairs. */
struct program {
	const struct glpk *glpk;
	const struct ocs_moe_demand *demand;
	glp_prob *lp;
	int n, nonzero;
	int *row, *column; /* from 1 */
	double *value;
};

static void program_add(struct program *p, int row, int column, double value)
{
	p->nonzero++;
	p->row[p->nonzero] = row;
	p->column[p->nonzero] = column;
	p->value[p->nonzero] = value;
}

/* The column of y, whichever way the pair is named. */
static int pair_column(int n, int i, int j)
{
	int low = i < j ? i : j, high = i < j ? j : i;

	return 2 + low * n - low * (low + 1) / 2 + high - low - 1;
}

/* The tokens that I sends J: one row, and a column for packets. */
static void pair_add(struct program *p, int i, int j)
{
	int row = p->glpk->add_rows(p->lp, 1), packets = p->glpk->add_cols(p->lp, 1);

	p->glpk->set_row_bnds(p->lp, row, GLP_LO, p->demand->tokens[(size_t)i * p->n + j], 0);
	p->glpk->set_col_bnds(p->lp, packets, GLP_LO, 0, 0);
	program_add(p, row, pair_column(p->n, i, j), 1);
	program_add(p, row, packets, 1);
	program_add(p, p->n + i + 1, packets, 1);
	program_add(p, 2 * p->n + j + 1, packets, 1);
}

static void program_fill(struct program *p, const struct ocs_moe_region *region)
{
	int n = p->n, columns = 1 + n * (n - 1) / 2;

	p->glpk->set_obj_dir(p->lp, GLP_MIN);
	p->glpk->add_cols(p->lp, columns);
	p->glpk->set_obj_coef(p->lp, 1, 1);
	for (int c = 1; c <= columns; c++)
		p->glpk->set_col_bnds(p->lp, c, GLP_LO, 0, 0);
	p->glpk->add_rows(p->lp, 3 * n);
	for (int i = 0; i < n; i++) {
		for (int kind = 0; kind < 3; kind++) {
			p->glpk->set_row_bnds(p->lp, kind * n + i + 1, GLP_UP, 0, 0);
			program_add(p, kind * n + i + 1, 1,
				    kind ? -region->packets : -region->ports[i]);
		}
		for (int j = 0; j < n; j++)
			if (j != i)
				program_add(p, i + 1, pair_column(n, i, j), 1);
	}
	for (int i = 0; i < n; i++)
		for (int j = 0; j < n; j++)
			if (p->demand->tokens[(size_t)i * n + j] > 0)
				pair_add(p, i, j);
	p->glpk->load_matrix(p->lp, p->nonzero, p->row, p->column, p->value);
}

double ocs_moe_bound_linear(const struct ocs_moe_demand *demand,
			    const struct ocs_moe_region *region)
{
	size_t n = (size_t)demand->n, most = 3 * n + 5 * n * n + 1;
	struct program p = { .demand = demand, .n = demand->n };
	struct glpk glpk;
	double bound = 0;
	glp_smcp how;

	if (glpk_load(&glpk))
		return 0;
	p.glpk = &glpk;
	p.lp = glpk.create_prob();
	p.row = ocs_calloc(most, sizeof(*p.row));
	p.column = ocs_calloc(most, sizeof(*p.column));
	p.value = ocs_calloc(most, sizeof(*p.value));
	program_fill(&p, region);
	glpk.init_smcp(&how);
	how.msg_lev = GLP_MSG_OFF;
	how.meth = GLP_DUALP;
	how.presolve = GLP_ON;
	how.tm_lim = 60000;
	if (!glpk.simplex(p.lp, &how) && glpk.get_status(p.lp) == GLP_OPT)
		bound = glpk.get_obj_val(p.lp);
	glpk.delete_prob(p.lp);
	glpk.free_env();
	free(p.row);
	free(p.column);
	free(p.value);
	return bound;
}
