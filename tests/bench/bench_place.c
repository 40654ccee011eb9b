/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* What a shape costs when it is first asked for, of all rings and of the largest catalogues, then
 * one placement decision on a busy fabric, at 64 and at 4096 cubes of 4x4x4; or both with the
 * shapes of a TRACE (as ocs-sim writes it), on 64 cubes.  Usage: bench_place [DECISIONS [TRACE]] */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/advice/reason.h"
#include "src/config/config.h"
#include "src/place/candidates.h"
#include "src/place/catalogue_scratch.h"
#include "src/place/place.h"
#include "src/util/error.h"

static uint64_t state = 88172645463325252ULL;

static uint32_t random_next(uint32_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 33) % below;
}

/* Microseconds of computing: a decision waits for nothing, and what else runs on
 * the machine is not its affair. */
static double cpu_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static int double_compare(const void *a, const void *b)
{
	double p = *(const double *)a, q = *(const double *)b;

	return (p > q) - (p < q);
}

static const char *const usual[] = {
	"8",	 "16",	  "18",	   "32",    "64",     "128",	 "256",	   "4x4",
	"8x4",	 "6x4",	  "8x8",   "16x8",  "16x16",  "32x8",	 "4x4x2",  "4x4x4",
	"4x8x2", "8x4x4", "8x8x4", "8x8x8", "16x8x4", "16x16x4", "12x4x4", "4x4x8",
};
#define NUSUAL ((int)(sizeof(usual) / sizeof(usual[0])))

/* The shapes of FILE's jobs, as often as they come: the fourth field of its lines. */
static char **read_trace(const char *file, int *count)
{
	FILE *trace = fopen(file, "r");
	char line[512], shape[64], **shapes = NULL;

	*count = 0;
	if (!trace) {
		perror(file);
		exit(1);
	}
	while (fgets(line, sizeof(line), trace)) {
		if (*line == '#' || sscanf(line, "%*[^,],%*[^,],%*[^,],%63[^,]", shape) != 1)
			continue;
		shapes = realloc(shapes, ((size_t)*count + 1) * sizeof(*shapes));
		if (!shapes)
			abort();
		shapes[(*count)++] = strdup(shape);
	}
	fclose(trace);
	return shapes;
}

static void percentiles_print(const char *what, double *values, int n)
{
	qsort(values, (size_t)n, sizeof(*values), double_compare);
	if (n)
		printf("  %-26s p50 %8.1f  p99 %8.1f  max %8.1f\n", what, values[n / 2],
		       values[n * 99 / 100], values[n - 1]);
}

/* A fabric in use: jobs come, oldest jobs go when the next one finds no room. */
static void fabric_bench(const char *line, char *const *shapes, int count, int decisions)
{
	struct ocs_error err = { 0 };
	struct ocs_fabric *fabric = ocs_config_take_fabric(ocs_config_open(line, &err));
	const struct ocs_section *section;
	struct ocs_placement **jobs;
	struct ocs_shape *shape = calloc((size_t)count, sizeof(*shape));
	struct ocs_occupancy *occupancy;
	struct ocs_placer *placer;
	double *times[4], start, warm;
	int i, j, placed = 0, first = 0, n = 0, nshapes = 0, noted = 0;
	long free_xpus = 0;

	if (!fabric) {
		fprintf(stderr, "%s\n", err.text);
		exit(1);
	}
	section = &fabric->sections[0];
	placer = ocs_placer_create(fabric, section);
	occupancy = ocs_occupancy_create(section);
	start = cpu_now();
	for (i = 0; i < count; i++) {
		if (ocs_shape_parse(shapes[i], NULL, &shape[nshapes], &err)) {
			fprintf(stderr, "%s\n", err.text);
			exit(1);
		}
		/* not every shape can close its rings on larger cubes */
		nshapes += ocs_place_node_count(placer, &shape[nshapes], &err) > 0;
	}
	warm = cpu_now() - start;
	jobs = calloc((size_t)decisions, sizeof(*jobs));
	for (i = 0; i < 4; i++)
		times[i] = calloc((size_t)decisions, sizeof(*times[i]));
	for (i = 0; i < decisions; i++) {
		const struct ocs_shape *asked = &shape[random_next((uint32_t)nshapes)];
		struct ocs_place_work work;
		struct ocs_placement *p;

		start = cpu_now();
		p = ocs_reason_place(placer, occupancy, asked, 0, &err);
		times[0][noted] = cpu_now() - start;
		ocs_placer_work(placer, &work);
		start = cpu_now();
		ocs_placement_destroy(ocs_reason_place(placer, occupancy, asked, 0, &err));
		times[1][noted] = cpu_now() - start;
		times[2][noted] = (double)work.candidates;
		times[3][noted] = (double)work.words;
		noted += work.catalogues == 0;
		if (p) {
			placed++;
			for (j = 0; j < p->nnodes; j++)
				ocs_occupancy_node_set(occupancy, fabric, p->nodes[j], false);
			jobs[n++] = p;
		} else if (first < n) {
			/* not the oldest one only: holes appear everywhere */
			int gone = first + (int)random_next((uint32_t)(n - first));

			p = jobs[gone];
			jobs[gone] = jobs[first];
			jobs[first++] = NULL;
			for (j = 0; j < p->nnodes; j++)
				ocs_occupancy_node_set(occupancy, fabric, p->nodes[j], true);
			ocs_placement_destroy(p);
		}
		for (j = 0; i >= decisions - 100 && j < section->ncubes; j++)
			free_xpus += ocs_occupancy_cube_free(occupancy, j);
	}
	printf("%s\n  %d decisions, %d placed, %.0f %% of the XPUs busy at the end, %d catalogues "
	       "in %.1f ms, %d decisions made more of one\n",
	       line, decisions, placed,
	       100.0 - (double)free_xpus / section->ncubes / section->cube_xpus, nshapes,
	       warm / 1e3, decisions - noted);
	percentiles_print("us", times[0], noted);
	percentiles_print("us, asked again at once", times[1], noted);
	percentiles_print("candidates", times[2], noted);
	percentiles_print("words", times[3], noted);
	for (i = first; i < n; i++)
		ocs_placement_destroy(jobs[i]);
	free(jobs);
	free(shape);
	for (i = 0; i < 4; i++)
		free(times[i]);
	ocs_occupancy_destroy(occupancy);
	ocs_placer_destroy(placer);
	ocs_fabric_destroy(fabric);
}

/* First use of shapes whose catalogues are the largest: what a decision on the empty machine
 * waits for, and what all candidates take together. */
static void first_uses_large(const char *line)
{
	static const char *const large[] = { "194",   "206",	 "238",	   "2x212",
					     "2x238", "2x2x178", "2x2x242" };
	struct ocs_error err = { 0 };
	struct ocs_fabric *fabric = ocs_config_take_fabric(ocs_config_open(line, &err));
	struct ocs_catalogue_scratch scratch = { 0 };
	int i;

	printf("%s\n ", line);
	for (i = 0; i < (int)(sizeof(large) / sizeof(large[0])); i++) {
		struct ocs_catalogue *cat;
		struct ocs_shape shape;
		double start, first;

		if (ocs_shape_parse(large[i], NULL, &shape, &err))
			exit(1);
		start = cpu_now();
		cat = ocs_catalogue_create(&fabric->sections[0], &shape, 0, &scratch);
		first = cpu_now() - start;
		while (ocs_catalogue_more(cat, &scratch))
			;
		printf(" %s %.1f of %.1f ms%s", large[i], first / 1e3, (cpu_now() - start) / 1e3,
		       i == 6 ? "\n" : ",");
		ocs_catalogue_destroy(cat);
	}
	ocs_catalogue_scratch_free(&scratch);
	ocs_fabric_destroy(fabric);
}

/* First use of COUNT shapes, one after the other in one placer; of each the median of PASSES placers,
 * for a page fault more or less is not the shape's affair. */
static void first_uses(const char *line, char *const *shapes, int count)
{
	enum { PASSES = 5 };
	struct ocs_error err = { 0 };
	struct ocs_fabric *fabric = ocs_config_take_fabric(ocs_config_open(line, &err));
	double *times = calloc((size_t)count * PASSES, sizeof(*times)), sum = 0, worst = 0;
	int i, pass, n = 0, most = 0;

	for (pass = 0; pass < PASSES; pass++) {
		struct ocs_placer *placer = ocs_placer_create(fabric, &fabric->sections[0]);

		for (i = 0; i < count; i++) {
			struct ocs_place_work before, after;
			struct ocs_shape shape;
			double start;

			if (ocs_shape_parse(shapes[i], NULL, &shape, &err))
				exit(1);
			ocs_placer_work(placer, &before);
			start = cpu_now();
			ocs_place_node_count(placer, &shape, &err);
			times[i * PASSES + pass] = cpu_now() - start;
			ocs_placer_work(placer, &after);
			if (after.catalogues == before.catalogues)
				times[i * PASSES + pass] = 0; /* it was asked for before */
		}
		ocs_placer_destroy(placer);
	}
	for (i = 0; i < count; i++) {
		double *own = times + (size_t)i * PASSES;

		qsort(own, PASSES, sizeof(*own), double_compare);
		if (own[PASSES / 2] <= 0)
			continue;
		times[n++] = own[PASSES / 2];
		sum += times[n - 1];
		most = times[n - 1] > worst ? i : most;
		worst = times[n - 1] > worst ? times[n - 1] : worst;
	}
	printf("%s\n  %d catalogues made, on average in %.2f ms; the largest %s\n", line, n,
	       sum / n / 1e3, shapes[most]);
	percentiles_print("us for a catalogue", times, n);
	free(times);
	ocs_fabric_destroy(fabric);
}

/* All rings of up to 512 XPUs, one and two abreast. */
static char **rings_list(int *count)
{
	char **shapes = calloc(1024, sizeof(*shapes)), text[32];
	int i;

	*count = 0;
	for (i = 2; i <= 512; i += 2) {
		snprintf(text, sizeof(text), "%d", i);
		shapes[(*count)++] = strdup(text);
		snprintf(text, sizeof(text), "2x%d", i / 2);
		shapes[(*count)++] = strdup(text);
		snprintf(text, sizeof(text), "2x2x%d", i / 2);
		shapes[(*count)++] = strdup(text);
	}
	return shapes;
}

int main(int argc, char **argv)
{
	int decisions = argc > 1 ? atoi(argv[1]) : 20000, count;
	char *const *trace;

	if (decisions < 200) {
		fprintf(stderr, "usage: bench_place [DECISIONS, at least 200 [TRACE]]\n");
		return 2;
	}
	trace = argc > 2 ? read_trace(argv[2], &count) : rings_list(&count);
	first_uses("torus cubes:4x4x4 cube:4x4x4 tile:2x2x1", trace, count);
	first_uses("torus cubes:4x4x4 cube:4x4x4 tile:1x1x1", trace, count);
	if (argc > 2) {
		fabric_bench("torus cubes:4x4x4 cube:4x4x4 tile:1x1x1", trace, count, decisions);
		return 0;
	}
	first_uses_large("torus cubes:4x4x4 cube:4x4x4 tile:2x2x1");
	first_uses_large("torus cubes:4x4x4 cube:4x4x4 tile:1x1x1");
	fabric_bench("torus cubes:4x4x4 cube:4x4x4 tile:2x2x1", (char *const *)usual, NUSUAL,
		     decisions);
	fabric_bench("torus cubes:4x4x4 cube:4x4x4 tile:1x1x1", (char *const *)usual, NUSUAL,
		     decisions);
	fabric_bench("torus cubes:16x16x16 cube:4x4x4 tile:2x2x1", (char *const *)usual, NUSUAL,
		     decisions);
	fabric_bench("torus cubes:4x4x4 cube:8x8x8 tile:2x2x2", (char *const *)usual, NUSUAL,
		     decisions);
	fabric_bench("static:16x16x16 tile:1x1x1", (char *const *)usual, NUSUAL, decisions);
	return 0;
}
