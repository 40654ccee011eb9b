/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Tables of prices, which come from users.  What is accepted has rates and fabrics, and a cost that is a
 * number for any of them. */

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/optimise/cost.h"
#include "src/util/error.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void totals_check(const struct ocs_cost_table *table)
{
	double dollars, watts;

	for (int r = 0; r < table->nrates; r++) {
		if (!(table->rates[r].rate > 0) || !ocs_cost_rate_find(table, table->rates[r].rate))
			abort();
		for (int f = 0; f < table->nfabrics; f++) {
			ocs_cost_total(&table->fabrics[f], &table->rates[r], 128, 8, &dollars,
				       &watts);
			if (!isfinite(dollars) || !isfinite(watts) || dollars < 0 || watts < 0 ||
			    !ocs_cost_fabric_find(table, table->fabrics[f].name))
				abort();
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ocs_error err = { 0 };
	struct ocs_cost_table *table = ocs_cost_parse((const char *)data, size, "f", &err);

	if (!table) {
		if (err.code != OCS_USAGE || strncmp(err.text, "f:", 2) != 0 ||
		    strchr(err.text, '\n'))
			abort();
		return 0;
	}
	if (table->nrates < 1 || table->nfabrics < 1)
		abort();
	totals_check(table);
	ocs_cost_destroy(table);
	return 0;
}
