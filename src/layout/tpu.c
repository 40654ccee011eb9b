/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/layout/tpu.h"

#include <stdlib.h>
#include <string.h>

#include "src/util/error.h"
#include "src/util/text.h"

#define DIMS 3

/* What one host holds of the shape. */
struct bounds {
	int low[DIMS], high[DIMS];
	int nxpus;
};

/* The blocks of a shape, one a host. */
struct blocks {
	int size[DIMS];	 /* XPUs of a host along each dimension */
	int count[DIMS]; /* hosts along each dimension */
	int *worker;	 /* host number in x-fastest order, by ranks->nodes */
};

static struct bounds *bounds_find(const struct ocs_ranks *ranks)
{
	struct bounds *all = ocs_calloc((size_t)ranks->nnodes, sizeof(*all));

	for (int r = 0; r < ranks->nxpus; r++) {
		struct bounds *b = &all[ranks->node[r]];
		int coord[OCS_SHAPE_DIMS] = { 0 };

		ocs_shape_coord(&ranks->shape, r, coord);
		for (int d = 0; d < DIMS; d++) {
			int at = d < ranks->shape.ndim ? coord[d] : 0;

			b->low[d] = b->nxpus && b->low[d] < at ? b->low[d] : at;
			b->high[d] = b->nxpus && b->high[d] > at ? b->high[d] : at;
		}
		b->nxpus++;
	}
	return all;
}

/* A block holds as many XPUs as its bounds, is as large as the first one, and begins
 * at a multiple of its size. */
static bool is_block(const struct bounds *b, const int size[DIMS])
{
	int volume = 1;

	for (int d = 0; d < DIMS; d++) {
		if (b->high[d] - b->low[d] + 1 != size[d] || b->low[d] % size[d])
			return false;
		volume *= size[d];
	}
	return volume == b->nxpus;
}

static int blocks_find(struct blocks *blocks, const struct ocs_ranks *ranks, struct ocs_error *err)
{
	struct bounds *all = bounds_find(ranks);
	int rc = 0;

	blocks->worker = ocs_calloc((size_t)ranks->nnodes, sizeof(int));
	for (int d = 0; d < DIMS; d++) {
		int extent = d < ranks->shape.ndim ? ranks->shape.extent[d] : 1;

		blocks->size[d] = all[0].high[d] - all[0].low[d] + 1;
		blocks->count[d] = extent / blocks->size[d];
	}
	for (int i = 0; i < ranks->nnodes && rc == 0; i++) {
		const int *low = all[i].low, *size = blocks->size, *count = blocks->count;

		if (is_block(&all[i], size))
			blocks->worker[i] =
				low[0] / size[0] +
				count[0] * (low[1] / size[1] + count[1] * (low[2] / size[2]));
		else
			rc = ocs_error_set(err, OCS_NEVER,
					   "the accelerators of node %s are not "
					   "one of equal blocks of the shape, as TPU_HOST_BOUNDS "
					   "needs it",
					   ranks->nodes[i]);
	}
	free(all);
	return rc;
}

/* True where the last XPU of a dimension has a link of its own to the first one. */
static void add_wraps(struct ocs_text *text, const struct ocs_shape *shape)
{
	ocs_text_add(text, "TPU_TOPOLOGY_WRAP=");
	for (int d = 0; d < DIMS; d++) {
		bool ring = d < shape->ndim && !shape->mesh[d] && shape->extent[d] > 2;

		ocs_text_add(text, "%s%s", d ? "," : "", ring ? "true" : "false");
	}
	ocs_text_add(text, "\nTPU_TOPOLOGY_ALT=%s\n", shape->twisted ? "true" : "false");
}

static char *node_describe(const struct ocs_ranks *ranks, const struct blocks *b, int node)
{
	const struct ocs_shape *shape = &ranks->shape;
	struct ocs_text text = { 0 };
	int *by_worker;

	ocs_text_add(&text, "TPU_TOPOLOGY=");
	for (int d = 0; d < shape->ndim; d++)
		ocs_text_add(&text, "%s%d", d ? "x" : "", shape->extent[d]);
	ocs_text_add(&text, "\n");
	add_wraps(&text, shape);
	ocs_text_add(&text, "TPU_HOST_BOUNDS=%d,%d,%d\n", b->count[0], b->count[1], b->count[2]);
	ocs_text_add(&text, "TPU_CHIPS_PER_HOST_BOUNDS=%d,%d,%d\n", b->size[0], b->size[1],
		     b->size[2]);
	ocs_text_add(&text, "TPU_WORKER_ID=%d\nTPU_WORKER_HOSTNAMES=", b->worker[node]);
	/* Disjoint blocks that fill the shape: each number is taken once. */
	by_worker = ocs_calloc((size_t)ranks->nnodes, sizeof(int));
	for (int i = 0; i < ranks->nnodes; i++)
		by_worker[b->worker[i]] = i;
	for (int i = 0; i < ranks->nnodes; i++)
		ocs_text_add(&text, "%s%s", i ? "," : "", ranks->nodes[by_worker[i]]);
	free(by_worker);
	ocs_text_add(&text, "\n");
	return ocs_text_take(&text);
}

static int node_find(const struct ocs_ranks *ranks, const char *name)
{
	for (int i = 0; i < ranks->nnodes; i++)
		if (strcmp(ranks->nodes[i], name) == 0)
			return i;
	return -1;
}

char *ocs_tpu_environment(const struct ocs_ranks *ranks, const char *name, struct ocs_error *err)
{
	struct blocks blocks = { .worker = NULL };
	int node = node_find(ranks, name);
	char *text = NULL;

	if (node < 0)
		ocs_error_set(err, OCS_USAGE, "node %s is not in the job", name);
	else if (ranks->shape.ndim > DIMS)
		ocs_error_set(err, OCS_NEVER,
			      "TPU_TOPOLOGY has at most %d dimensions, the shape "
			      "has %d",
			      DIMS, ranks->shape.ndim);
	else if (blocks_find(&blocks, ranks, err) == 0)
		text = node_describe(ranks, &blocks, node);
	free(blocks.worker);
	return text;
}
