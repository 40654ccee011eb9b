/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <stdlib.h>
#include <string.h>

#include "src/ocsctl/ocsctl.h"
#include "src/ocsctl/output/table.h"
#include "src/ocsctl/what_if.h"
#include "src/util/text.h"

void ocs_ctl_coord_format(const struct ocs_shape *shape, long rank, char *text)
{
	int coord[OCS_SHAPE_DIMS], used = 0;

	ocs_shape_coord(shape, rank, coord);
	for (int i = 0; i < shape->ndim; i++)
		used += snprintf(text + used, OCS_COORD_TEXT - used, "%s%d", i ? "," : "",
				 coord[i]);
}

/* Rank of the coordinate on each XPU of every cube, or -1. */
static long *occupancy_invert(const struct ocs_ctl_where *where)
{
	const struct ocs_section *section = where->section;
	size_t size = (size_t)section->ncubes * section->cube_xpus;
	long *ranks = ocs_calloc(size, sizeof(*ranks));

	for (size_t i = 0; i < size; i++)
		ranks[i] = -1;
	for (long r = 0; r < where->shape.xpus; r++) {
		const struct ocs_xpu *xpu = &where->placement->xpus[r];

		ranks[(size_t)xpu->cube * section->cube_xpus + ocs_section_bit(section, xpu->at)] =
			r;
	}
	return ranks;
}

/* One line: the layers Z0 and on of row X, as many as fit. */
static void print_row(const struct ocs_ctl_where *where, const long *ranks, int x, int z0,
		      int layers, int width)
{
	const struct ocs_section *section = where->section;
	struct ocs_text line = { 0 };

	ocs_text_add(&line, "  ");
	for (int z = z0; z < z0 + layers; z++) {
		for (int y = 0; y < section->edge[1]; y++) {
			int at[OCS_AXES] = { x, y, z };
			long rank = ranks[ocs_section_bit(section, at)];
			char text[OCS_COORD_TEXT] = ".";

			if (rank >= 0)
				ocs_ctl_coord_format(&where->shape, rank, text);
			ocs_text_add(&line, "%-*s ", width, text);
		}
		ocs_text_add(&line, "  ");
	}
	while (line.length && line.data[line.length - 1] == ' ')
		line.data[--line.length] = '\0';
	puts(line.data);
	ocs_text_free(&line);
}

/* Every cell of every cube in use holds the coordinate that lies there: layers of
 * z side by side, x downwards, y to the right, as the other pictures have it. */
static void print_cells(const struct ocs_ctl_where *where, const long *ranks)
{
	const struct ocs_section *section = where->section;
	char text[OCS_COORD_TEXT];
	int width, layer, fit;

	/* The last coordinate is the longest. */
	ocs_ctl_coord_format(&where->shape, where->shape.xpus - 1, text);
	width = strlen(text);
	layer = section->edge[1] * (width + 1) + 2;
	fit = (ocs_ctl_columns() - 2) / layer;
	if (fit < 1)
		fit = 1;
	for (int i = 0; i < where->placement->ncubes; i++) {
		int cube = where->placement->cubes[i];

		for (int z = 0; z < section->edge[2]; z += fit) {
			int layers = section->edge[2] - z < fit ? section->edge[2] - z : fit;

			printf("\n%s, z=%d", section->cube_names[cube], z);
			for (int k = 1; k < layers; k++)
				printf(",%d", z + k);
			putchar('\n');
			for (int x = 0; x < section->edge[0]; x++)
				print_row(where, ranks + (size_t)cube * section->cube_xpus, x, z,
					  layers, width);
		}
	}
}

static bool same_cubes(const struct ocs_circuit *a, const struct ocs_circuit *b)
{
	return a->dim == b->dim && a->from == b->from && a->to == b->to;
}

static int by_cubes(const void *left, const void *right)
{
	const struct ocs_circuit *a = left, *b = right;

	if (!same_cubes(a, b))
		return a->dim != b->dim	  ? a->dim - b->dim :
		       a->from != b->from ? a->from - b->from :
					    a->to - b->to;
	return a->pos[0] != b->pos[0] ? a->pos[0] - b->pos[0] : a->pos[1] - b->pos[1];
}

/* A line for each pair of cubes and dimension. */
static void print_circuits(const struct ocs_ctl_where *where)
{
	int n = where->placement->ncircuits;
	struct ocs_text_table *table;
	struct ocs_circuit *sorted;

	if (!n)
		return;
	sorted = ocs_calloc(n, sizeof(*sorted));
	memcpy(sorted, where->placement->circuits, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), by_cubes);
	table = ocs_text_table_create("DIM|FROM +|TO -|>CIRCUITS|AT");
	for (int i = 0, k; i < n; i = k) {
		const struct ocs_circuit *c = &sorted[i];
		struct ocs_text at = { 0 };

		for (k = i; k < n && same_cubes(c, &sorted[k]); k++)
			ocs_text_add(&at, "%s%d,%d", k > i ? " " : "", sorted[k].pos[0],
				     sorted[k].pos[1]);
		ocs_text_table_format(table, "%c", "xyz"[c->dim]);
		ocs_text_table_add(table, where->section->cube_names[c->from]);
		ocs_text_table_add(table, where->section->cube_names[c->to]);
		ocs_text_table_format(table, "%d", k - i);
		ocs_text_table_add(table, at.data);
		ocs_text_free(&at);
	}
	free(sorted);
	putchar('\n');
	ocs_text_table_print(table, stdout);
	ocs_text_table_destroy(table);
}

int ocs_ctl_fold(const struct ocs_ctl_args *args, struct ocs_error *err)
{
	struct ocs_ctl_where where;
	long *ranks = NULL;
	int rc = -1;

	if (ocs_ctl_where_open(args, &where, err) || ocs_ctl_where_place(&where, err))
		goto out;
	ranks = occupancy_invert(&where);
	if (args->svg) {
		char *svg = ocs_ctl_fold_svg(&where, ranks);
		int failed = ocs_file_write(args->svg, svg, strlen(svg), 0644, err);

		free(svg);
		if (failed)
			goto out;
	}
	rc = 0;
	if (args->json) {
		ocs_ctl_where_json(&where, false);
	} else {
		ocs_ctl_where_summary(&where);
		print_cells(&where, ranks);
		print_circuits(&where);
	}
out:
	free(ranks);
	ocs_ctl_where_close(&where);
	return rc;
}
