/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Topologies of a running job on rails: from the request of its controller to the verified reply,
 * through the real ocsd and the real emulator over UNIX sockets.  Four patches are cut and four are
 * made on each of 1, 8 and 48 switches; then four in a job of 4 and of 128 nodes.  What the switches
 * take is measured as well: the same commands without ocsd.  The state lies in DIRECTORY.
 * Usage: bench_topo BUILD-DIRECTORY DIRECTORY [ROUNDS [DELAY-MS]] */

#include "tests/bench/daemons.h"
#include "tests/bench/timing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/switch/switch.h"
#include "src/util/net.h"
#include "src/util/text.h"

#define RAILS 48
#define ROUNDS_MAX 10000

static const char yaml[] = "version: 1\n"
			   "ocsd: {socket: \"unix:%1$s/ocsd.sock\", state: %1$s/state}\n"
			   "limits: {topologies_per_second: 100000}\n"
			   "timeouts: {switch: 20s, retry: 1s, poll: 60m, prolog: 2m}\n"
			   "switches:\n"
			   "  - name: rail-[0-47]\n"
			   "    driver: tl1\n"
			   "    address: \"unix:%1$s/{name}\"\n"
			   "    credentials: %1$s/credentials\n"
			   "    size: 320\n"
			   "fabrics:\n"
			   "  - name: small\n"
			   "    kind: rails\n"
			   "    partitions: [small]\n"
			   "    nodes: s[0-3]\n"
			   "    rails: 48\n"
			   "    ports: {switch: \"rail-{interface}\", port: server+1}\n"
			   "  - name: large\n"
			   "    kind: rails\n"
			   "    partitions: [large]\n"
			   "    nodes: b[0-131]\n"
			   "    rails: 1\n"
			   "    ports_per_nic: 2\n"
			   "    ports: {switch: \"rail-{interface}\", port: 2*server+nic_port+9}\n";

static struct ocs_error err;
static double values[ROUNDS_MAX];

/* Commits and realises a job; the key of its controller. */
static char *job_start(struct daemons *d, int job, const char *section, const char *nodes,
		       const char *first, const char *shape)
{
	struct json_object *reply;
	char *text, *key;

	text = ocs_asprintf(
		"{\"op\":\"commit\",\"job\":%d,\"epoch\":%d,\"uid\":0,\"section\":\"%s\","
		"\"nodes\":\"%s\",\"shape\":\"%s\",\"phases\":\"provisioned\"}",
		job, job, section, nodes, shape);
	json_object_put(daemons_ask(d, text));
	free(text);
	text = ocs_asprintf("{\"op\":\"apply\",\"job\":%d,\"epoch\":%d,\"node\":\"%s\"}", job, job,
			    first);
	reply = daemons_ask(d, text);
	free(text);
	key = ocs_strdup(json_object_get_string(json_object_object_get(reply, "key")));
	json_object_put(reply);
	return key;
}

static char *request(int job, const char *key, int seq, int rails, const char *topo)
{
	struct ocs_text text = { 0 };

	ocs_text_add(
		&text,
		"{\"op\":\"topo\",\"job\":%d,\"epoch\":%d,\"key\":\"%s\",\"seq\":%d,\"rails\":[",
		job, job, key, seq);
	for (int r = 0; r < rails; r++)
		ocs_text_add(&text, "%s{\"rail\":%d,\"topo\":\"%s\"}", r ? "," : "", r, topo);
	ocs_text_add(&text, "]}");
	return text.data;
}

/* N changes between TOPOS on the first RAILS rails of JOB. */
static void change(struct daemons *d, int job, const char *key, int *seq, int rails,
		   const char *const topos[2], int n)
{
	for (int i = -4; i < n; i++) {
		char *text = request(job, key, ++*seq, rails, topos[i & 1]);
		double begin = timing_now_ms();
		struct json_object *reply = daemons_ask(d, text), *rows;

		values[i < 0 ? 0 : i] = timing_now_ms() - begin;
		rows = json_object_object_get(reply, "rails");
		for (int r = 0; r < rails; r++) {
			struct json_object *row = json_object_array_get_idx(rows, (size_t)r);

			if (strcmp(json_object_get_string(json_object_object_get(row, "stage")),
				   "verified") != 0) {
				fprintf(stderr, "%s\n", json_object_to_json_string(row));
				exit(1);
			}
		}
		json_object_put(reply);
		free(text);
	}
}

/* The same change of one switch by its driver alone: delete, add, read-back. */
static void alone(struct daemons *d, int n)
{
	const struct ocs_patch one[] = { { 305, 626 }, { 306, 625 }, { 307, 628 }, { 308, 627 } };
	const struct ocs_patch two[] = { { 305, 627 }, { 307, 625 }, { 306, 628 }, { 308, 626 } };
	struct ocs_switch_connection *connection =
		ocs_switch_open(&d->fabric->switches[0], 5000, NULL, NULL, &err);

	if (!connection || ocs_switch_apply(connection, NULL, 0, one, 4, NULL, &err))
		daemons_die(&err, "rail-0");
	for (int i = 0; i < n; i++) {
		double begin = timing_now_ms();

		if (ocs_switch_change(connection, i & 1 ? two : one, 4, i & 1 ? one : two, 4, NULL,
				      &err))
			daemons_die(&err, "rail-0");
		values[i] = timing_now_ms() - begin;
	}
	ocs_switch_apply(connection, n & 1 ? two : one, 4, NULL, 0, NULL, &err);
	ocs_switch_close(connection);
}

int main(int argc, char **argv)
{
	static const char *const small[] = { "00", "11" };
	static const char *const four[] = { "01", "11" };
	char first[65], second[65];
	const char *const large[] = { first, second };
	int rounds = argc > 3 ? atoi(argv[3]) : 200, seq = 0;
	struct daemons d = { 0 };
	char *text, *key;

	if (argc < 3 || rounds < 1 || rounds > ROUNDS_MAX) {
		fprintf(stderr,
			"usage: bench_topo BUILD-DIRECTORY DIRECTORY [ROUNDS, 1-%d [DELAY-MS]]\n",
			ROUNDS_MAX);
		return 2;
	}
	d.build = argv[1];
	d.folder = argv[2];
	text = ocs_asprintf(yaml, d.folder);
	daemons_start(&d, text, argc > 4 ? argv[4] : "0");
	free(text);
	alone(&d, rounds);
	timing_show("the switch alone, four cut and four made", values, rounds);
	daemons_start_ocsd(&d);
	json_object_put(daemons_ask(&d, "{\"op\":\"subscribe\",\"jobs\":[]}"));
	key = job_start(&d, 1, "small", "s[0-3]", "s0", "pp:2,dp:2");
	for (int rails = 1; rails <= RAILS; rails = rails == 1 ? 8 : rails * 6) {
		double emulator = timing_cpu_ms(d.emulator);

		change(&d, 1, key, &seq, rails, small, rounds);
		emulator = (timing_cpu_ms(d.emulator) - emulator) / (rounds + 4);
		text = ocs_asprintf("topo, four cut and four made, %2d rails (emulator %.3f)",
				    rails, emulator);
		timing_show(text, values, rounds);
		free(text);
	}
	free(key);
	key = job_start(&d, 2, "large", "b[0-3]", "b0", "pp:2,dp:2");
	seq = 0;
	change(&d, 2, key, &seq, 1, four, rounds);
	timing_show("topo, four cut or made, job of 4 nodes", values, rounds);
	free(key);
	memset(first, '1', 64);
	first[64] = '\0';
	strcpy(second, first);
	first[0] = '0';
	key = job_start(&d, 3, "large", "b[4-131]", "b4", "pp:64,dp:2");
	seq = 0;
	change(&d, 3, key, &seq, 1, large, rounds);
	timing_show("topo, four cut or made, job of 128 nodes", values, rounds);
	free(key);
	daemons_stop(&d);
	return 0;
}
