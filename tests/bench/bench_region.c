/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Circuits of a running job in a region of 64 servers with six optical NICs: from the request of its
 * controller to the verified reply, through the real ocsd and the real emulator over UNIX sockets.
 * All 192 circuits stand; 2, 4, 12, 48 of them are exchanged, and all.  What the switch takes
 * is measured as well: the same commands without ocsd.  The state lies in DIRECTORY.
 * Usage: bench_region BUILD-DIRECTORY DIRECTORY [ROUNDS [DELAY-MS]] */

#include "tests/bench/daemons.h"
#include "tests/bench/timing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/switch/switch.h"
#include "src/util/text.h"

#define SERVERS 64
#define NICS 6
#define PAIRS (SERVERS / 4 * NICS) /* of circuits, each of which is exchanged as a whole */
#define ROUNDS_MAX 10000

static const char yaml[] =
	"version: 1\n"
	"ocsd: {socket: \"unix:%1$s/ocsd.sock\", state: %1$s/state}\n"
	"limits: {topologies_per_second: 100000}\n"
	"timeouts: {switch: 20s, retry: 1s, poll: 60m, prolog: 2m}\n"
	"switches:\n"
	"  - name: region-0\n"
	"    driver: tl1\n"
	"    address: \"unix:%1$s/{name}\"\n"
	"    credentials: %1$s/credentials\n"
	"    size: 384\n"
	"fabrics:\n"
	"  - name: moe\n"
	"    kind: region\n"
	"    partitions: [moe]\n"
	"    nodes: m[0-63]\n"
	"    region_servers: 64\n"
	"    degree: 6\n"
	"    packet_nics: 2\n"
	"    xpus: 8\n"
	"    ports: {switch: \"region-{region}\", port: server*degree+interface+1}\n";

static struct ocs_error err;
static double values[ROUNDS_MAX];

/* The ends of the two circuits of PAIR: NIC `pair % NICS` of four servers; CROSSED: of its two others. */
static void pair_circuits(int pair, bool crossed, int circuits[2][4])
{
	int first = pair / NICS * 4, nic = pair % NICS;
	const int ends[2][2] = { { first, first + (crossed ? 2 : 1) },
				 { first + (crossed ? 1 : 2), first + 3 } };

	for (int c = 0; c < 2; c++) {
		circuits[c][0] = ends[c][0];
		circuits[c][2] = ends[c][1];
		circuits[c][1] = circuits[c][3] = nic;
	}
}

/* The first EXCHANGED pairs are crossed. */
static char *request(const char *key, int seq, int exchanged)
{
	struct ocs_text text = { 0 };

	ocs_text_add(&text,
		     "{\"op\":\"region\",\"job\":1,\"epoch\":1,\"key\":\"%s\",\"seq\":%d,"
		     "\"groups\":[{\"group\":0,\"circuits\":[",
		     key, seq);
	for (int pair = 0; pair < PAIRS; pair++) {
		int circuits[2][4];

		pair_circuits(pair, pair < exchanged, circuits);
		for (int c = 0; c < 2; c++)
			ocs_text_add(&text, "%s[%d,%d,%d,%d]", pair || c ? "," : "", circuits[c][0],
				     circuits[c][1], circuits[c][2], circuits[c][3]);
	}
	ocs_text_add(&text, "]}]}");
	return text.data;
}

static void change(struct daemons *d, const char *key, int *seq, int exchanged, int n)
{
	for (int i = -4; i < n; i++) {
		char *text = request(key, ++*seq, i & 1 ? 0 : exchanged);
		double begin = timing_now_ms();
		struct json_object *reply = daemons_ask(d, text), *row;

		values[i < 0 ? 0 : i] = timing_now_ms() - begin;
		row = json_object_array_get_idx(json_object_object_get(reply, "groups"), 0);
		if (strcmp(json_object_get_string(json_object_object_get(row, "stage")),
			   "verified") != 0) {
			fprintf(stderr, "%s\n", json_object_to_json_string(row));
			exit(1);
		}
		json_object_put(reply);
		free(text);
	}
}

static void patches_fill(int exchanged, bool crossed, struct ocs_patch *patches)
{
	for (int pair = 0; pair < exchanged; pair++) {
		int circuits[2][4];

		pair_circuits(pair, crossed, circuits);
		for (int c = 0; c < 2; c++)
			patches[2 * pair + c] =
				(struct ocs_patch){ circuits[c][0] * NICS + circuits[c][1] + 1,
						    384 + circuits[c][2] * NICS + circuits[c][3] +
							    1 };
	}
}

/* The same change by the driver alone: delete, add, read-back. */
static void alone(struct daemons *d, int exchanged, int n)
{
	static struct ocs_patch one[2 * PAIRS], two[2 * PAIRS];
	struct ocs_switch_connection *connection =
		ocs_switch_open(&d->fabric->switches[0], 20000, NULL, NULL, &err);
	size_t count = 2 * (size_t)exchanged;

	patches_fill(exchanged, false, one);
	patches_fill(exchanged, true, two);
	if (!connection || ocs_switch_apply(connection, NULL, 0, one, count, NULL, &err))
		daemons_die(&err, "region-0");
	for (int i = 0; i < n; i++) {
		double begin = timing_now_ms();

		if (ocs_switch_change(connection, i & 1 ? two : one, count, i & 1 ? one : two,
				      count, NULL, &err))
			daemons_die(&err, "region-0");
		values[i] = timing_now_ms() - begin;
	}
	ocs_switch_apply(connection, n & 1 ? two : one, count, NULL, 0, NULL, &err);
	ocs_switch_close(connection);
}

/* Commits and realises a job over all servers; the key of its controller. */
static char *job_start(struct daemons *d)
{
	struct json_object *reply;
	char *key;

	json_object_put(daemons_ask(d, "{\"op\":\"commit\",\"job\":1,\"epoch\":1,\"uid\":0,"
				       "\"section\":\"moe\",\"nodes\":\"m[0-63]\","
				       "\"shape\":\"ep:512\",\"moe\":\"follow\"}"));
	reply = daemons_ask(d, "{\"op\":\"apply\",\"job\":1,\"epoch\":1,\"node\":\"m0\"}");
	key = ocs_strdup(json_object_get_string(json_object_object_get(reply, "key")));
	json_object_put(reply);
	return key;
}

int main(int argc, char **argv)
{
	static const int exchanged[] = { 1, 2, 6, 24, PAIRS };
	int rounds = argc > 3 ? atoi(argv[3]) : 200, seq = 0;
	struct daemons d = { 0 };
	char *text, *key;

	if (argc < 3 || rounds < 1 || rounds > ROUNDS_MAX) {
		fprintf(stderr,
			"usage: bench_region BUILD-DIRECTORY DIRECTORY [ROUNDS, 1-%d [DELAY-MS]]\n",
			ROUNDS_MAX);
		return 2;
	}
	d.build = argv[1];
	d.folder = argv[2];
	text = ocs_asprintf(yaml, d.folder);
	daemons_start(&d, text, argc > 4 ? argv[4] : "0");
	free(text);
	for (size_t k = 0; k < sizeof(exchanged) / sizeof(*exchanged); k++) {
		alone(&d, exchanged[k], rounds);
		text = ocs_asprintf("the switch alone, %3d circuits cut and as many made",
				    2 * exchanged[k]);
		timing_show(text, values, rounds);
		free(text);
	}
	daemons_start_ocsd(&d);
	json_object_put(daemons_ask(&d, "{\"op\":\"subscribe\",\"jobs\":[]}"));
	key = job_start(&d);
	for (size_t k = 0; k < sizeof(exchanged) / sizeof(*exchanged); k++) {
		double emulator = timing_cpu_ms(d.emulator), ocsd = timing_cpu_ms(d.ocsd);

		change(&d, key, &seq, exchanged[k], rounds);
		emulator = (timing_cpu_ms(d.emulator) - emulator) / (rounds + 4);
		ocsd = (timing_cpu_ms(d.ocsd) - ocsd) / (rounds + 4);
		text = ocs_asprintf("region, %3d of 192 circuits (CPU: emulator %.2f, ocsd %.2f)",
				    2 * exchanged[k], emulator, ocsd);
		timing_show(text, values, rounds);
		free(text);
	}
	free(key);
	daemons_stop(&d);
	return 0;
}
