/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/moe/bound.h"

#include <stdlib.h>

#include "src/util/text.h"

/* Halvings: a double has no more bits. */
#define HALVINGS 60

/* What server I sends (STRIDE 1, TOKENS its row) or receives (STRIDE n, TOKENS its column). */
static double side_sum(const double *tokens, size_t stride, int n)
{
	double sum = 0;

	for (int j = 0; j < n; j++)
		sum += tokens[(size_t)j * stride];
	return sum;
}

double ocs_moe_bound_ports(const struct ocs_moe_demand *demand, const struct ocs_moe_region *region)
{
	int n = demand->n;
	double bound = 0;

	for (int i = 0; i < n; i++) {
		double sends = side_sum(demand->tokens + (size_t)i * n, 1, n);
		double receives = side_sum(demand->tokens + i, (size_t)n, n);
		double t = (sends > receives ? sends : receives) /
			   (region->ports[i] + region->packets);

		bound = t > bound ? t : bound;
	}
	return bound;
}

/* What server I carries until T at most over its own PORTS circuits: values in falling order. */
static double side_carry(const double *tokens, size_t stride, const struct ocs_moe_region *region,
			 int i, double t, double *values)
{
	int ports = region->ports[i], found = 0;
	double carried = 0;

	for (int j = 0; j < region->n; j++) {
		double left = tokens[(size_t)j * stride];

		/* The circuits of a pair fall in value, so that its first ones are taken first. */
		for (int c = 0; left > 0 && c < ports && c < region->ports[j]; c++, left -= t) {
			double value = left < t ? left : t;
			int at;

			if (found == ports && value <= values[ports - 1])
				break;
			at = found < ports ? found++ : ports - 1;
			for (; at && values[at - 1] < value; at--)
				values[at] = values[at - 1];
			values[at] = value;
		}
	}
	for (int k = 0; k < found; k++)
		carried += values[k];
	return carried;
}

/* The smallest T for one side, or LOW if it is done by then. */
static double side_bound(const double *tokens, size_t stride, const struct ocs_moe_region *region,
			 int i, double low, double *values)
{
	double sum = side_sum(tokens, stride, region->n), high;

	if (side_carry(tokens, stride, region, i, low, values) + region->packets * low >= sum)
		return low;
	high = sum / region->packets;
	for (int k = 0; k < HALVINGS && high > low * (1 + 1e-12); k++) {
		double t = low + (high - low) / 2;

		if (side_carry(tokens, stride, region, i, t, values) + region->packets * t >= sum)
			high = t;
		else
			low = t;
	}
	return low;
}

double ocs_moe_bound_server(const struct ocs_moe_demand *demand,
			    const struct ocs_moe_region *region)
{
	double bound = ocs_moe_bound_ports(demand, region), *values;
	int n = demand->n, most = 0;

	for (int i = 0; i < n; i++)
		most = region->ports[i] > most ? region->ports[i] : most;
	values = ocs_calloc((size_t)most + 1, sizeof(*values));
	for (int i = 0; i < n; i++) {
		bound = side_bound(demand->tokens + (size_t)i * n, 1, region, i, bound, values);
		bound = side_bound(demand->tokens + i, (size_t)n, region, i, bound, values);
	}
	free(values);
	return bound;
}
