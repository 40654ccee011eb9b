/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Random jobs on 48 emulated switches of four kinds, while switches fail in every way
 * that the emulator knows, patches are pulled by hand, and ocsd is killed.  The
 * program plays slurmctld and the nodes.  At every checkpoint the faults end, and
 * then the emulator's tables must be what the database of ocsd and the living jobs
 * say.  DIRECTORY/ledger has a line when a job was told that its circuits exist,
 * and one before its end is told; soak_judge.py compares that with the emulator's log.
 * Usage: soak BUILD-DIRECTORY DIRECTORY [JOBS [SEED [MS-BETWEEN-FAULTS]]] */

#include "tests/bench/soak.h"

#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/util/net.h"
#include "src/util/text.h"

#define CHECKPOINT 500 /* jobs */
#define KILL_EVERY 40  /* faults */
#define LASTING 9      /* of the faults: they hit so many commands */

static const char config[] =
	"version: 1\n"
	"ocsd: {socket: \"unix:%1$s/ocsd.sock\", state: %1$s/state}\n"
	"timeouts: {switch: 1s, retry: 300ms, poll: 3s, prolog: 2m}\n"
	"switches:\n"
	"  - {name: \"ocs-x-[0-3]-[0-3]\", driver: tl1, address: \"unix:%1$s/{name}\","
	" credentials: %1$s/credentials, size: 32}\n"
	"  - {name: \"ocs-y-[0-3]-[0-3]\", driver: tl1, dialect: calient,"
	" address: \"unix:%1$s/{name}\", credentials: %1$s/credentials, size: 32}\n"
	"  - {name: \"ocs-z-[0-2]-[0-3]\", driver: scpi, address: \"unix:%1$s/{name}\", size: 32}\n"
	"  - {name: \"ocs-z-3-[0-3]\", driver: netconf, address: \"unix:%1$s/{name}\","
	" credentials: %1$s/credentials, known_hosts: %1$s/known_hosts, size: 32}\n"
	"fabrics:\n"
	"  - name: pod\n"
	"    kind: torus\n"
	"    partitions: [tpu]\n"
	"    cube: 4x4x4\n"
	"    tile: 2x2x1\n"
	"    ports: {switch: \"ocs-{dim}-{a}-{b}\", port: 2*cube+sign+1}\n"
	"    cubes: {names: \"c[0-11]\", nodes: \"n[0-191]\"}\n";

static struct ocs_error err;

/* One control command of the emulator; its answer, freed by the caller. */
static char *control(struct soak *s, const char *format, ...)
{
	int64_t deadline = ocs_now_ns() + PATIENCE_MS * INT64_C(1000000);
	struct ocs_lines lines = { .fd = ocs_net_connect(s->daemons.control, 5000, &err) };
	char *command, *line, *answer;
	va_list args;

	va_start(args, format);
	if (vasprintf(&command, format, args) < 0 || lines.fd < 0)
		daemons_die(&err, "%s", s->daemons.control);
	va_end(args);
	line = ocs_asprintf("%s\n", command);
	if (ocs_net_write(lines.fd, line, strlen(line), deadline, &err))
		daemons_die(&err, "%s", command);
	answer = ocs_lines_next(&lines, 1 << 26, deadline, &err);
	if (!answer)
		daemons_die(&err, "%s", command);
	close(lines.fd);
	ocs_lines_free(&lines);
	free(command);
	free(line);
	return answer;
}

/* ---- faults ---- */

static void kill_daemon(struct soak *s)
{
	kill(s->daemons.ocsd, SIGKILL);
	waitpid(s->daemons.ocsd, NULL, 0);
	ocs_client_close(s->daemons.client);
	s->kills++;
	daemons_start_ocsd(&s->daemons);
	soak_resume(s);
}

static void hurt(struct soak *s)
{
	static const char *const faults[] = {
		"fault %s silent count %d",
		"fault %s drop count %d",
		"fault %s deny count %d",
		"fault %s partial count %d",
		"fault %s lost count %d",
		"fault %s duplicate count %d",
		"fault %s refuse count %d",
		"fault %s slow 300 count %d",
		"fault %s late 900 count %d",
		"port %s %d refuse",
		"port %s %d fail",
		"port %s %d lossy 9",
		"port %s %d good",
		"unpatch %s %d",
		"reboot %s dark 100",
		"reboot %s restore 100",
	};
	const struct ocs_fabric *fabric = s->daemons.fabric;
	const char *name = fabric->switches[soak_draw(s, (unsigned int)fabric->nswitches)].name;
	unsigned int which = soak_draw(s, sizeof(faults) / sizeof(*faults) + 1);
	int in = (int)soak_draw(s, 2 * CUBES) + 1;

	s->faults++;
	if (s->faults % KILL_EVERY == 0)
		kill_daemon(s);
	else if (which == sizeof(faults) / sizeof(*faults)) /* a patch of somebody else */
		free(control(s, "patch %s %d %d", name, in,
			     PORTS + (int)soak_draw(s, 2 * CUBES) + 1));
	else
		free(control(s, faults[which], name,
			     which < LASTING ? (int)soak_draw(s, 3) + 1 : in));
}

static void heal(struct soak *s)
{
	for (int i = 0; i < s->daemons.fabric->nswitches; i++) {
		free(control(s, "fault %s none", s->daemons.fabric->switches[i].name));
		for (int port = 1; port <= 2 * PORTS; port++)
			free(control(s, "port %s %d good", s->daemons.fabric->switches[i].name,
				     port));
	}
}

/* ---- checkpoints ---- */

#define PAIRS (48 * PORTS * 4)

struct pair {
	int sw, in, out;
};

static int compare(const void *left, const void *right)
{
	return memcmp(left, right, sizeof(struct pair));
}

/* The emulator's tables. */
static size_t tables(struct soak *s, struct pair *pairs)
{
	char *text = control(s, "table");
	struct json_object *all = json_tokener_parse(text);
	size_t count = 0;

	free(text);
	json_object_object_foreach (all, name, table) {
		for (size_t i = 0; i < json_object_array_length(table); i++) {
			struct json_object *row = json_object_array_get_idx(table, i);

			pairs[count++] = (struct pair){
				ocs_fabric_switch(s->daemons.fabric, name),
				json_object_get_int(json_object_array_get_idx(row, 0)),
				json_object_get_int(json_object_array_get_idx(row, 1)),
			};
		}
	}
	json_object_put(all);
	qsort(pairs, count, sizeof(*pairs), compare);
	return count;
}

/* What the database says is connected (state 2), two patches a circuit. */
static size_t database(struct soak *s, struct pair *pairs)
{
	char *path = ocs_asprintf("%s/state/ocsd.db", s->daemons.folder);
	sqlite3_stmt *row = NULL;
	sqlite3 *db = NULL;
	size_t count = 0;

	if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK ||
	    sqlite3_prepare_v2(db, "SELECT switch, a, b, state FROM circuits WHERE state != 5", -1,
			       &row, NULL) != SQLITE_OK)
		daemons_die(&err, "%s: %s", path, sqlite3_errmsg(db));
	while (sqlite3_step(row) == SQLITE_ROW) {
		int sw = ocs_fabric_switch(s->daemons.fabric,
					   (const char *)sqlite3_column_text(row, 0));
		int a = sqlite3_column_int(row, 1), b = sqlite3_column_int(row, 2);

		if (sqlite3_column_int(row, 3) != 2)
			continue;
		pairs[count++] = (struct pair){ sw, a, PORTS + b };
		pairs[count++] = (struct pair){ sw, b, PORTS + a };
	}
	sqlite3_finalize(row);
	sqlite3_close(db);
	free(path);
	qsort(pairs, count, sizeof(*pairs), compare);
	return count;
}

static size_t living(struct soak *s)
{
	size_t patches = 0;

	for (int i = 0; i < JOBS_AT_ONCE; i++)
		if (s->jobs[i].live)
			patches += 2 * (size_t)s->jobs[i].placement->ncircuits;
	return patches;
}

static bool busy(const struct soak *s)
{
	for (int i = 0; i < JOBS_AT_ONCE; i++)
		if (s->jobs[i].state != FREE && s->jobs[i].state != RUNNING)
			return true;
	return false;
}

/* Patches that are nobody's go, as an administrator would see to; what is drained
 * because of them and of ports that are good again returns. */
static void tidy(struct soak *s, const struct pair *have, size_t nhave, const struct pair *want,
		 size_t nwant)
{
	struct json_object *reply, *drains;

	for (size_t i = 0; i < nhave; i++)
		if (!bsearch(&have[i], want, nwant, sizeof(*want), compare))
			free(control(s, "unpatch %s %d",
				     s->daemons.fabric->switches[have[i].sw].name, have[i].in));
	reply = daemons_ask(&s->daemons, "{\"op\":\"show\",\"what\":\"fabric\"}");
	drains = json_object_object_get(reply, "drains");
	for (size_t i = 0; i < json_object_array_length(drains); i++) {
		struct json_object *row = json_object_array_get_idx(drains, i);
		char *text =
			ocs_asprintf("{\"op\":\"resume\",\"kind\":\"%s\",\"name\":\"%s\"}",
				     json_object_get_string(json_object_object_get(row, "kind")),
				     json_object_get_string(json_object_object_get(row, "name")));

		soak_send(s, text);
		free(text);
	}
	json_object_put(reply);
	soak_send(s, "{\"op\":\"reconcile\"}");
}

/* What a checkpoint waits for: jobs on their way, and switches that are not up. */
static void tell_waiting(struct soak *s)
{
	static const char *const states[] = {
		"free", "being committed", "being realised", "running", "being released",
	};
	struct json_object *reply =
		daemons_ask(&s->daemons, "{\"op\":\"show\",\"what\":\"switch\"}");
	struct json_object *list = json_object_object_get(reply, "switches");

	for (int i = 0; i < JOBS_AT_ONCE; i++)
		if (s->jobs[i].state != FREE && s->jobs[i].state != RUNNING)
			fprintf(stderr, "job %u is %s, %d answers are due\n", s->jobs[i].number,
				states[s->jobs[i].state], s->jobs[i].waiting);
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		struct json_object *row = json_object_array_get_idx(list, i);
		const char *state = json_object_get_string(json_object_object_get(row, "state"));
		const char *why = json_object_get_string(json_object_object_get(row, "reason"));

		if (strcmp(state, "up") != 0)
			fprintf(stderr, "switch %s is %s: %s\n",
				json_object_get_string(json_object_object_get(row, "name")), state,
				why ? why : "no reason is known");
	}
	json_object_put(reply);
}

static void checkpoint(struct soak *s)
{
	struct pair *have = ocs_calloc(PAIRS, sizeof(*have)),
		    *want = ocs_calloc(PAIRS, sizeof(*want));
	int64_t deadline = ocs_now_ns() + PATIENCE_MS * INT64_C(1000000);
	size_t nhave, nwant;

	s->calm = true;
	heal(s);
	for (;;) {
		soak_serve(s, 500);
		nhave = tables(s, have);
		nwant = database(s, want);
		if (!busy(s) && nhave == nwant && nwant == living(s) &&
		    memcmp(have, want, nhave * sizeof(*have)) == 0)
			break;
		if (ocs_now_ns() > deadline) {
			tell_waiting(s);
			snprintf(err.text, sizeof(err.text),
				 "switches hold %zu patches, the database %zu, "
				 "living jobs %zu%s",
				 nhave, nwant, living(s), busy(s) ? "; jobs are on their way" : "");
			daemons_die(&err, "checkpoint %u", s->checkpoints);
		}
		if (!busy(s))
			tidy(s, have, nhave, want, nwant);
	}
	s->checkpoints++;
	printf("%u jobs (%u failed, %u commits refused), %u faults, %u kills: %zu patches on the "
	       "switches are those of the database and of the living jobs\n",
	       s->done, s->failed, s->refused, s->faults, s->kills, nhave);
	fflush(stdout);
	s->calm = false;
	free(have);
	free(want);
}

static void set_up(struct soak *s)
{
	char *ledger = ocs_asprintf("%s/ledger", s->daemons.folder);
	char *text = ocs_asprintf(config, s->daemons.folder);

	daemons_start(&s->daemons, text, "2");
	s->occupancy = ocs_occupancy_create(&s->daemons.fabric->sections[0]);
	s->ledger = fopen(ledger, "w");
	daemons_start_ocsd(&s->daemons);
	soak_resume(s);
	free(ledger);
	free(text);
}

static void take_down(struct soak *s)
{
	fclose(s->ledger);
	for (int i = 0; i < JOBS_AT_ONCE; i++)
		ocs_placement_destroy(s->jobs[i].placement);
	ocs_occupancy_destroy(s->occupancy);
	daemons_stop(&s->daemons);
}

int main(int argc, char **argv)
{
	unsigned int jobs = argc > 3 ? (unsigned int)atoi(argv[3]) : 10000, next = CHECKPOINT;
	struct soak s = { .random = 88172645463325252ULL };
	int pause = argc > 5 ? atoi(argv[5]) : 40;

	if (argc < 3 || !jobs || pause < 1) {
		fprintf(stderr, "usage: soak BUILD-DIRECTORY DIRECTORY [JOBS [SEED [MS]]]\n");
		return 2;
	}
	s.daemons.build = argv[1];
	s.daemons.folder = argv[2];
	signal(SIGPIPE, SIG_IGN);
	s.random += argc > 4 ? strtoull(argv[4], NULL, 10) * 0x9e3779b97f4a7c15ULL : 0;
	set_up(&s);
	while (s.done < jobs) {
		soak_serve(&s, pause);
		hurt(&s);
		if (s.done >= next || s.done >= jobs) {
			checkpoint(&s);
			next = s.done + CHECKPOINT;
		}
	}
	take_down(&s);
	return 0;
}
