/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* From a job's request to its verified circuits, through the real ocsd and the
 * real emulator (delay 0) over UNIX sockets: 64 cubes of 4x4x4 on 48 switches,
 * two fibres a port; or changes of 1 to 136 circuits on one switch and on each of
 * 48, on 136 cubes, of which one node asks; or large jobs on 1024 cubes and 48 switches of
 * 2048 ports.  The state lies in DIRECTORY: on a tmpfs
 * the commits of the database cost no disk.
 * Usage: bench_circuits BUILD-DIRECTORY DIRECTORY [ROUNDS [jobs|changes|large [tl1|netconf [DELAY-MS]]]] */

#include "tests/bench/daemons.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/util/net.h"
#include "src/util/text.h"

#define CUBES_MAX 136
#define CUBES_LARGE 1024
#define ROUNDS_MAX 1000

static const char head[] = "version: 1\n"
			   "ocsd: {socket: \"unix:%1$s/ocsd.sock\", state: %1$s/state}\n"
			   "timeouts: {switch: 20s, retry: 1s, poll: 60m, prolog: 2m}\n"
			   "switches:\n"
			   "  - name: ocs-[x,y,z]-[0-3]-[0-3]\n"
			   "    driver: %2$s\n"
			   "    address: \"unix:%1$s/{name}\"\n"
			   "    credentials: %1$s/credentials\n"
			   "    size: %3$d\n"
			   "fabrics:\n"
			   "  - name: pod\n"
			   "    kind: torus\n"
			   "    partitions: [tpu]\n"
			   "    cube: 4x4x4\n"
			   "    tile: 2x2x1\n"
			   "    ports: {switch: \"ocs-{dim}-{a}-{b}\", port: 2*cube+sign+1}\n"
			   "    cubes:\n";

struct bench {
	int cubes;
	const char *driver, *delay;
	struct daemons daemons;
	unsigned int epoch;
};

static struct ocs_error err;

static char *describe(struct bench *b)
{
	char *driver =
		strcmp(b->driver, "netconf") ?
			ocs_strdup(b->driver) :
			ocs_asprintf("netconf\n    known_hosts: %s/known_hosts", b->daemons.folder);
	char *text = ocs_asprintf(head, b->daemons.folder, driver,
				  2 * (b->cubes > CUBES_MAX ? b->cubes : CUBES_MAX));

	free(driver);
	for (int cube = 0; cube < b->cubes; cube++) {
		char *more = ocs_asprintf("%s      - {name: c%d, nodes: \"n[%d-%d]\"}\n", text,
					  cube, cube * 16, cube * 16 + 15);

		free(text);
		text = more;
	}
	return text;
}

static void await_switches(struct bench *b)
{
	int up = 0;

	while (up < b->daemons.fabric->nswitches) {
		struct json_object *reply =
			daemons_ask(&b->daemons, "{\"op\":\"show\",\"what\":\"switch\"}");
		struct json_object *list = json_object_object_get(reply, "switches");

		up = 0;
		for (size_t i = 0; i < json_object_array_length(list); i++)
			up += !strcmp(json_object_get_string(json_object_object_get(
					      json_object_array_get_idx(list, i), "state")),
				      "up");
		json_object_put(reply);
		usleep(20000);
	}
}

static void start_all(struct bench *b)
{
	char *yaml = describe(b);

	daemons_start(&b->daemons, yaml, b->delay);
	daemons_start_ocsd(&b->daemons);
	await_switches(b);
	json_object_put(daemons_ask(&b->daemons, "{\"op\":\"subscribe\",\"jobs\":[]}"));
	free(yaml);
}

/* CPU time of a process so far, in ms. */
static double cpu_ms(pid_t pid)
{
	char *path = ocs_asprintf("/proc/%d/stat", (int)pid);
	unsigned long long user = 0, system = 0;
	FILE *file = fopen(path, "r");

	free(path);
	if (!file)
		return 0;
	if (fscanf(file, "%*d %*s %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &user,
		   &system) != 2)
		user = system = 0;
	fclose(file);
	return (double)(user + system) * 1e3 / (double)sysconf(_SC_CLK_TCK);
}

/* Resident memory of a process, in MB. */
static double memory_mb(pid_t pid)
{
	char *path = ocs_asprintf("/proc/%d/statm", (int)pid);
	unsigned long pages = 0;
	FILE *file = fopen(path, "r");

	free(path);
	if (!file)
		return 0;
	if (fscanf(file, "%*u %lu", &pages) != 1)
		pages = 0;
	fclose(file);
	return (double)pages * (double)sysconf(_SC_PAGESIZE) / 1e6;
}

static double now_ms(void)
{
	return (double)ocs_now_ns() / 1e6;
}

struct round {
	double commit, first, all, cut;
};

/* One job from commit to teardown. */
static void run_round(struct bench *b, const struct ocs_placement *p, int asking,
		      struct round *round)
{
	struct json_object *reply;
	double begin;
	char *text;

	b->epoch++;
	text = daemons_commit(&b->daemons, p, b->epoch);
	begin = now_ms();
	json_object_put(daemons_ask(&b->daemons, text));
	round->commit = now_ms() - begin;
	free(text);

	/* however many nodes of the job ask, the circuits are made once */
	begin = now_ms();
	for (int i = 0; i < asking; i++) {
		struct json_object *request = json_object_new_object();

		json_object_object_add(request, "op", json_object_new_string("apply"));
		json_object_object_add(request, "job", json_object_new_int64(b->epoch));
		json_object_object_add(request, "epoch", json_object_new_int64(b->epoch));
		json_object_object_add(
			request, "node",
			json_object_new_string(b->daemons.fabric->nodes[p->nodes[i]].name));
		if (ocs_client_send(b->daemons.client, request, &err))
			daemons_die(&err, "apply");
		json_object_put(request);
	}
	for (int i = 0; i < asking;) {
		reply = ocs_client_next(b->daemons.client, PATIENCE_MS, &err);
		if (!reply)
			daemons_die(&err, "apply");
		if (json_object_object_get(reply, "id")) {
			if (!json_object_get_boolean(json_object_object_get(reply, "ok")) ||
			    json_object_get_int(json_object_object_get(reply, "circuits")) !=
				    p->ncircuits) {
				fprintf(stderr, "%s\n", json_object_to_json_string(reply));
				exit(1);
			}
			if (i++ == 0)
				round->first = now_ms() - begin;
		}
		json_object_put(reply);
	}
	round->all = now_ms() - begin;
	text = ocs_asprintf("{\"op\":\"end\",\"job\":%u,\"epoch\":%u,\"reason\":\"done\"}",
			    b->epoch, b->epoch);
	json_object_put(daemons_ask(&b->daemons, text));
	free(text);
	text = ocs_asprintf("{\"op\":\"release\",\"job\":%u,\"epoch\":%u}", b->epoch, b->epoch);
	begin = now_ms();
	json_object_put(daemons_ask(&b->daemons, text));
	round->cut = now_ms() - begin;
	free(text);
}

static int compare(const void *a, const void *b)
{
	double p = *(const double *)a, q = *(const double *)b;

	return (p > q) - (p < q);
}

static void show(const char *what, const struct round *rounds, int n, size_t offset)
{
	double values[ROUNDS_MAX];

	for (int i = 0; i < n; i++)
		memcpy(&values[i], (const char *)&rounds[i] + offset, sizeof(double));
	qsort(values, (size_t)n, sizeof(*values), compare);
	printf("  %-36s median %7.1f ms  min %7.1f  p90 %7.1f\n", what, values[n / 2], values[0],
	       values[n * 9 / 10]);
}

/* A placement of TEXT on the empty fabric; exits if there is none. */
static struct ocs_placement *place(struct bench *b, const char *text, bool no_fold)
{
	struct ocs_occupancy *occupancy = ocs_occupancy_create(&b->daemons.fabric->sections[0]);
	struct ocs_placement *p;
	struct ocs_shape shape;

	if (ocs_shape_parse(text, NULL, &shape, &err))
		daemons_die(&err, "%s", text);
	shape.no_fold = no_fold;
	p = ocs_place(b->daemons.placer, occupancy, &shape, 0, &err);
	if (!p)
		daemons_die(&err, "%s", text);
	ocs_occupancy_destroy(occupancy);
	return p;
}

static void bench_shape(struct bench *b, const char *text, int n)
{
	struct round rounds[ROUNDS_MAX];
	double daemon, emulator;
	struct ocs_placement *p = place(b, text, false);

	run_round(b, p, p->nnodes, &rounds[0]);
	daemon = cpu_ms(b->daemons.ocsd);
	emulator = cpu_ms(b->daemons.emulator);
	for (int i = 0; i < n; i++)
		run_round(b, p, p->nnodes, &rounds[i]);
	printf("%s: %ld XPUs, %d cubes, %d nodes, %d circuits, %d rounds\n", text, p->shape.xpus,
	       p->ncubes, p->nnodes, p->ncircuits, n);
	show("commit to its durable reply", rounds, n, offsetof(struct round, commit));
	show("apply of all nodes to the first reply", rounds, n, offsetof(struct round, first));
	show("apply of all nodes to the last reply", rounds, n, offsetof(struct round, all));
	printf("  CPU time a round (made and torn down): ocsd %.1f ms, emulator %.1f ms\n",
	       (cpu_ms(b->daemons.ocsd) - daemon) / n,
	       (cpu_ms(b->daemons.emulator) - emulator) / n);
	ocs_placement_destroy(p);
}

static int switches_of(struct bench *b, const struct ocs_placement *p)
{
	int used = 0;

	for (int i = 0; i < b->daemons.fabric->nswitches; i++) {
		bool found = false;

		for (int c = 0; c < p->ncircuits && !found; c++) {
			struct ocs_port port;

			found = !ocs_section_torus_port(b->daemons.fabric,
							&b->daemons.fabric->sections[0],
							p->circuits[c].from, p->circuits[c].dim,
							p->circuits[c].pos[0],
							p->circuits[c].pos[1], OCS_PLUS, &port) &&
				port.sw == i;
		}
		used += found;
	}
	return used;
}

/* One node asks for the circuits of TEXT; made and cut, N times. */
static void bench_change(struct bench *b, const char *text, bool no_fold, int n)
{
	double made[ROUNDS_MAX], cut[ROUNDS_MAX], total = 0;
	struct ocs_placement *p = place(b, text, no_fold);
	struct round round;

	run_round(b, p, 1, &round);
	for (int i = 0; i < n; i++) {
		run_round(b, p, 1, &round);
		made[i] = round.all;
		cut[i] = round.cut;
		total += round.all + round.cut;
	}
	qsort(made, (size_t)n, sizeof(*made), compare);
	qsort(cut, (size_t)n, sizeof(*cut), compare);
	printf("%-10s %5d circuits on %2d switches: made p50 %6.1f p99 %6.1f ms, cut p50 %6.1f p99 "
	       "%6.1f ms, %7.0f changes/s\n",
	       text, p->ncircuits, switches_of(b, p), made[n / 2], made[n * 99 / 100], cut[n / 2],
	       cut[n * 99 / 100], 2e3 * p->ncircuits * n / total);
	fflush(stdout);
	ocs_placement_destroy(p);
}

static void bench_changes(struct bench *b, int n)
{
	/* straight rings through 1, 16, 48 and 136 cubes; whole cubes as many */
	static const char *const one[] = { "4x1x1", "64x1x1", "192x1x1", "544x1x1" };
	static const char *const all[] = { "4x4x4", "16x8x8", "16x16x12", "68x16x8" };

	for (size_t i = 0; i < 4; i++)
		bench_change(b, one[i], true, n);
	for (size_t i = 0; i < 4; i++)
		bench_change(b, all[i], true, n);
}

int main(int argc, char **argv)
{
	struct bench bench = { 0 };
	int rounds = argc > 3 ? atoi(argv[3]) : 20;
	bool changes = argc > 4 && strcmp(argv[4], "changes") == 0;
	bool large = argc > 4 && strcmp(argv[4], "large") == 0;

	if (argc < 3 || rounds < 1 || rounds > ROUNDS_MAX) {
		fprintf(stderr,
			"usage: bench_circuits BUILD-DIRECTORY DIRECTORY [ROUNDS, 1-%d [jobs|changes|large [tl1|netconf [DELAY-MS]]]]\n",
			ROUNDS_MAX);
		return 2;
	}
	bench.daemons.build = argv[1];
	bench.daemons.folder = argv[2];
	bench.driver = argc > 5 ? argv[5] : "tl1";
	bench.delay = argc > 6 ? argv[6] : "0";
	bench.cubes = changes ? CUBES_MAX : large ? CUBES_LARGE : 64;
	start_all(&bench);
	if (changes) {
		bench_changes(&bench, rounds);
	} else if (large) {
		bench_shape(&bench, "4x4x4", rounds);
		bench_shape(&bench, "16x16x16", rounds);
		bench_shape(&bench, "32x32x16", rounds);
		printf("  ocsd has %.0f MB\n", memory_mb(bench.daemons.ocsd));
	} else {
		bench_shape(&bench, "16x16x16", rounds);
		bench_shape(&bench, "4x4x4", rounds);
	}
	daemons_stop(&bench.daemons);
	return 0;
}
