/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* A saturated machine: how much of it jobs hold on average, first come first served.
 * Sizes and shapes are those of the published workload rfold-2025; durations are fitted
 * (log-normal, median 700 s, mean 5 h).  Also what the head of the queue waits for while
 * it is blocked.  With LAST: of the seeds SEED to LAST only the share that jobs hold.
 * Usage: bench_stream [JOBS [SEED [LAST]]] */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/config/config.h"
#include "src/place/place.h"
#include "src/util/error.h"

#define SIZE_MAX_XPUS 2048
#define SHAPES_MAX 64
#define XPUS "torus cubes:4x4x4 cube:4x4x4 tile:1x1x1"
#define TILES "torus cubes:4x4x4 cube:4x4x4 tile:2x2x1"

static uint64_t state;

static double random_uniform(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return ((double)(state >> 11) + 0.5) / 9007199254740992.0;
}

/* The legal shapes of one size, by number of dimensions. */
struct choice {
	int n[4];
	int extent[4][SHAPES_MAX][3];
};

static struct choice choices[SIZE_MAX_XPUS / 4 + 1];
static int sizes[SIZE_MAX_XPUS / 4 + 1], nsizes;

static int cube_span(int a)
{
	return (a + 3) / 4;
}

static void choice_add(struct choice *c, int dims, int x, int y, int z)
{
	int extent[3] = { x, y, z };

	if (c->n[dims] < SHAPES_MAX)
		memcpy(c->extent[dims][c->n[dims]++], extent, sizeof(extent));
}

static void choices_make(void)
{
	int n, a, b, c;

	for (n = 4; n <= SIZE_MAX_XPUS; n += 4) {
		struct choice *now = &choices[n / 4];

		if (n <= 256)
			choice_add(now, 1, n, 1, 1);
		for (a = 2; a * a <= n; a += 2) {
			b = n / a;
			if (n % a == 0 && b % 2 == 0 && b <= 256 &&
			    cube_span(a) * cube_span(b) <= 64)
				choice_add(now, 2, a, b, 1);
			for (b = a; n > 256 && a * b * b <= n; b += 2) {
				c = n / a / b;
				if (n % (a * b) == 0 && c % 2 == 0 && c <= 256 &&
				    cube_span(a) * cube_span(b) * cube_span(c) <= 64)
					choice_add(now, 3, a, b, c);
			}
		}
		if (now->n[1] + now->n[2] + now->n[3])
			sizes[nsizes++] = n;
	}
}

static void shape_draw(struct ocs_shape *shape)
{
	static const double weights[3][4] = { { 0, .8, .2, 0 },
					      { 0, 0, .8, .2 },
					      { 0, 0, .2, .8 } };
	double k, all = 0, pick;
	const struct choice *c;
	int size, class, dims, i;

	do {
		k = -log(random_uniform()) * nsizes / 4;
	} while (k >= nsizes);
	size = sizes[(int)k];
	class = size <= 256 ? 0 : size <= 1024 ? 1 : 2;
	c = &choices[size / 4];
	for (dims = 1; dims < 4; dims++)
		all += c->n[dims] ? weights[class][dims] : 0;
	pick = random_uniform() * all;
	for (dims = 1; dims < 3; dims++) {
		pick -= c->n[dims] ? weights[class][dims] : 0;
		if (pick < 0)
			break;
	}
	while (!c->n[dims])
		dims = dims > 1 ? dims - 1 : 3;
	memset(shape, 0, sizeof(*shape));
	shape->ndim = dims;
	shape->xpus = size;
	i = (int)(random_uniform() * c->n[dims]);
	memcpy(shape->extent, c->extent[dims][i], sizeof(int) * 3);
}

static double duration_draw(void)
{
	double normal = sqrt(-2 * log(random_uniform())) * cos(2 * M_PI * random_uniform());

	return 700 * exp(2.55 * normal);
}

struct job {
	double end;
	long xpus;
	struct ocs_placement *placement;
};

static void xpus_hold(struct ocs_occupancy *o, const struct ocs_fabric *f,
		      const struct ocs_placement *p, bool is_free)
{
	int i;

	for (i = 0; i < p->nnodes; i++)
		ocs_occupancy_node_set(o, f, p->nodes[i], is_free);
}

static int double_compare(const void *a, const void *b)
{
	double p = *(const double *)a, q = *(const double *)b;

	return (p > q) - (p < q);
}

static double clock_micros(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

/* What idle XPUs wait for while the head of the queue is blocked. */
enum cause { FEW_XPUS, FEW_CUBES, NCAUSES };

/* While the head is blocked though enough XPUs are free: sums, weighted with the idle
 * XPU-time. */
struct blocked {
	double weight, free_xpus, needed, whole_cubes, small_cubes, large_cubes, jobs;
};

struct stream {
	struct ocs_fabric *fabric;
	struct ocs_occupancy *occupancy;
	struct ocs_placer *placer;
	struct job *running;
	int n;
	long busy, total;
	double now, began, area; /* measured from BEGAN on */
	double idle[NCAUSES];
	struct blocked blocked;
	double *times;
	int ntimes, times_max;
};

/* The next job ends. */
static void end_one(struct stream *s)
{
	int first = 0, i;

	for (i = 1; i < s->n; i++)
		first = s->running[i].end < s->running[first].end ? i : first;
	s->area += (double)s->busy * (s->running[first].end - s->now);
	s->now = s->running[first].end;
	s->busy -= s->running[first].xpus;
	if (s->running[first].placement)
		xpus_hold(s->occupancy, s->fabric, s->running[first].placement, true);
	ocs_placement_destroy(s->running[first].placement);
	s->running[first] = s->running[--s->n];
}

/* SHAPE waits, for the reason ERR, until the next job ends. */
static void blocked_note(struct stream *s, const struct ocs_shape *shape)
{
	const struct ocs_section *section = s->occupancy->section;
	bool large[64] = { false }, small[64] = { false };
	struct blocked *b = &s->blocked;
	double end = s->running[0].end, idle;
	int i, j, cube;

	for (i = 1; i < s->n; i++)
		end = s->running[i].end < end ? s->running[i].end : end;
	idle = (double)(s->total - s->busy) * (end - s->now);
	if (s->busy + shape->xpus > s->total) {
		s->idle[FEW_XPUS] += idle;
		return;
	}
	s->idle[FEW_CUBES] += idle;
	for (i = 0; i < s->n; i++) {
		const struct ocs_placement *p = s->running[i].placement;

		for (j = 0; j < p->ncubes; j++)
			*(p->ncubes > 2 ? &large[p->cubes[j]] : &small[p->cubes[j]]) = true;
	}
	for (cube = 0; cube < section->ncubes; cube++) {
		b->whole_cubes += idle * !(large[cube] || small[cube]);
		b->large_cubes += idle * large[cube];
		b->small_cubes += idle * (small[cube] && !large[cube]);
	}
	b->weight += idle;
	b->free_xpus += idle * (double)(s->total - s->busy);
	b->needed += idle * (double)shape->xpus;
	b->jobs += idle * s->n;
}

static void blocked_print(const struct stream *s, double all)
{
	const struct blocked *b = &s->blocked;

	printf("  idle while the head waits for XPUs %.1f %%, for cubes that fit %.1f %%\n",
	       100 * s->idle[FEW_XPUS] / all, 100 * s->idle[FEW_CUBES] / all);
	if (b->weight > 0)
		printf("  of the latter: %.0f XPUs needed, %.0f free; %.1f cubes wholly free, %.1f "
		       "with jobs of more than two cubes, %.1f with smaller ones only; %.1f jobs\n",
		       b->needed / b->weight, b->free_xpus / b->weight, b->whole_cubes / b->weight,
		       b->large_cubes / b->weight, b->small_cubes / b->weight, b->jobs / b->weight);
}

/* NULL: it waits. */
static struct ocs_placement *place_timed(struct stream *s, const struct ocs_shape *shape)
{
	struct ocs_error err = { 0 };
	double start = clock_micros();
	struct ocs_placement *p = ocs_place(s->placer, s->occupancy, shape, 0, &err);

	if (s->ntimes < s->times_max)
		s->times[s->ntimes++] = clock_micros() - start;
	if (!p)
		blocked_note(s, shape);
	return p;
}

/* A machine, and what is known about its shapes. */
struct bed {
	const char *line;
	struct ocs_fabric *fabric;
	struct ocs_placer *placer;
};

static struct bed bed_open(const char *line)
{
	struct ocs_error err = { 0 };
	struct ocs_fabric *fabric = ocs_config_take_fabric(ocs_config_open(line, &err));

	if (!fabric) {
		fprintf(stderr, "%s\n", err.text);
		exit(1);
	}
	return (struct bed){ line, fabric, ocs_placer_create(fabric, &fabric->sections[0]) };
}

static void bed_close(struct bed *bed)
{
	ocs_placer_destroy(bed->placer);
	ocs_fabric_destroy(bed->fabric);
}

static void times_print(struct stream *s)
{
	if (!s->ntimes)
		return;
	qsort(s->times, (size_t)s->ntimes, sizeof(*s->times), double_compare);
	printf("  %d decisions: p50 %.1f us  p99 %.1f us\n", s->ntimes, s->times[s->ntimes / 2],
	       s->times[s->ntimes * 99L / 100]);
}

/* Runs JOBS jobs on BED; returns the per cent of the XPU-time that they hold.  FREELY: shapes
 * do not matter, only the number of XPUs.  QUIET: prints nothing. */
static double stream_run(const struct bed *bed, int jobs, uint64_t seed, bool freely, bool quiet)
{
	struct ocs_error err = { 0 };
	struct stream s = { .fabric = bed->fabric, .placer = bed->placer };
	const struct ocs_section *section = &s.fabric->sections[0];
	int done = 0, dropped = 0, threaded = 0;
	double held;

	s.occupancy = ocs_occupancy_create(section);
	s.total = (long)section->ncubes * section->cube_xpus;
	s.running = calloc((size_t)s.total, sizeof(*s.running));
	s.times_max = 8 * jobs;
	s.times = calloc((size_t)s.times_max, sizeof(*s.times));
	state = seed * 0x9e3779b97f4a7c15ULL + 1;
	while (done < jobs) {
		struct ocs_placement *p = NULL;
		struct ocs_shape shape;

		shape_draw(&shape);
		if (ocs_place_node_count(s.placer, &shape, &err) < 0) {
			dropped++;
			continue;
		}
		while (freely ? s.busy + shape.xpus > s.total : !(p = place_timed(&s, &shape)))
			end_one(&s);
		if (p) {
			threaded += p->compact[0] == 't';
			xpus_hold(s.occupancy, s.fabric, p, false);
		}
		s.busy += shape.xpus;
		s.running[s.n].placement = p;
		s.running[s.n].xpus = shape.xpus;
		s.running[s.n++].end = s.now + duration_draw();
		if (++done == jobs / 10) {
			s.area = 0;
			s.began = s.now;
			memset(s.idle, 0, sizeof(s.idle));
			memset(&s.blocked, 0, sizeof(s.blocked));
		}
	}
	held = 100 * s.area / ((s.now - s.began) * (double)s.total);
	if (!quiet) {
		printf("%s%s\n  %d jobs, %d dropped, %d threaded: %.1f %% of the XPU-time held\n",
		       bed->line, freely ? " (any free XPUs)" : "", jobs, dropped, threaded, held);
		if (!freely)
			blocked_print(&s, (s.now - s.began) * (double)s.total);
		times_print(&s);
	}
	while (s.n)
		ocs_placement_destroy(s.running[--s.n].placement);
	free(s.running);
	free(s.times);
	ocs_occupancy_destroy(s.occupancy);
	return held;
}

static void stream_once(const char *line, int jobs, uint64_t seed, bool freely)
{
	struct bed bed = bed_open(line);

	stream_run(&bed, jobs, seed, freely, false);
	bed_close(&bed);
}

/* A line per seed: the seed, and the share on tiles of one XPU and of 2x2x1. */
static void seeds_run(int jobs, uint64_t seed, uint64_t last)
{
	struct bed xpus = bed_open(XPUS), tiles = bed_open(TILES);

	for (; seed <= last; seed++)
		printf("%llu %.2f %.2f\n", (unsigned long long)seed,
		       stream_run(&xpus, jobs, seed, false, true),
		       stream_run(&tiles, jobs, seed, false, true));
	bed_close(&tiles);
	bed_close(&xpus);
}

int main(int argc, char **argv)
{
	int jobs = argc > 1 ? atoi(argv[1]) : 5000;
	uint64_t seed = argc > 2 ? (uint64_t)atol(argv[2]) : 1;

	if (jobs < 100) {
		fprintf(stderr, "usage: bench_stream [JOBS, at least 100 [SEED [LAST]]]\n");
		return 2;
	}
	choices_make();
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc > 3) {
		seeds_run(jobs, seed, (uint64_t)atol(argv[3]));
		return 0;
	}
	stream_once(XPUS, jobs, seed, true);
	stream_once(XPUS, jobs, seed, false);
	stream_once(TILES, jobs, seed, false);
	stream_once(XPUS " threading", jobs, seed, false);
	stream_once(TILES " threading", jobs, seed, false);
	return 0;
}
