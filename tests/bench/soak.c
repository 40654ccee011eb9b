/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Random jobs on 48 emulated switches of four kinds, while switches fail in every way
 * that the emulator knows, patches are pulled by hand, and ocsd is killed.  The
 * program plays slurmctld and the nodes.  At every checkpoint the faults end, and
 * then the emulator's tables must be what the database of ocsd and the living jobs
 * say.  DIRECTORY/ledger has a line when a job was told that its circuits exist,
 * and one before its end is told; soak_judge.py compares that with the emulator's log.
 * Usage: soak BUILD-DIRECTORY DIRECTORY [JOBS [SEED [MS-BETWEEN-FAULTS]]] */

#include <json-c/json.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "src/client/client.h"
#include "src/place/place.h"
#include "src/util/error.h"
#include "src/util/hostlist.h"
#include "src/util/net.h"
#include "src/util/text.h"

#define CUBES 12
#define PORTS 32
#define JOBS_AT_ONCE 24
#define CHECKPOINT 500	/* jobs */
#define KILL_EVERY 40	/* faults */
#define PATIENCE_MS 120000

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

enum state { FREE, COMMITTING, APPLYING, RUNNING, ENDING };

struct job {
	enum state state;
	unsigned int number;
	struct ocs_placement *placement;
	int64_t commit;		/* id of the request */
	int64_t first, last;	/* ids of the applies or releases */
	int waiting;		/* answers still due */
	bool live;		/* the ledger says that its circuits exist */
	bool failed;
	int64_t until_ns;
};

struct soak {
	const char *build, *folder;
	char *yaml, *control;
	pid_t emulator, daemon;
	struct ocs_fabric *fabric;
	const struct ocs_section *section;
	struct ocs_placer *placer;
	struct ocs_occupancy *occupancy;
	struct ocs_client *client;
	FILE *ledger;
	struct job jobs[JOBS_AT_ONCE];
	unsigned int number, done, failed, refused, kills, faults, checkpoints;
	bool calm;		/* no new jobs, no faults: a checkpoint */
	uint64_t random;
};

static struct ocs_error err;

static void die(const char *format, ...)
{
	va_list args;

	fprintf(stderr, "soak: ");
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, ": %s\n", err.text);
	exit(1);
}

static unsigned int draw(struct soak *s, unsigned int below)
{
	s->random ^= s->random << 13;
	s->random ^= s->random >> 7;
	s->random ^= s->random << 17;
	return (unsigned int)((s->random >> 20) % below);
}

static void write_file(struct soak *s, const char *name, const char *text)
{
	char *path = ocs_asprintf("%s/%s", s->folder, name);

	if (ocs_file_write(path, text, strlen(text), 0600, &err))
		die("%s", path);
	free(path);
}

static pid_t start(struct soak *s, const char *program, const char *log,
		   const char *const *arguments)
{
	char *path = ocs_asprintf("%s/src/%s", s->build, program);
	char *file = ocs_asprintf("%s/%s", s->folder, log);
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (!freopen(file, "a", stdout) || !freopen(file, "a", stderr))
			_exit(126);
		execv(path, (char *const *)arguments);
		_exit(127);
	}
	free(path);
	free(file);
	return pid;
}

static void start_daemon(struct soak *s)
{
	const char *const arguments[] = { "ocsd", "--foreground", "--log-level", "warning",
					  "--fabric", s->yaml, NULL };
	char *address = ocs_asprintf("unix:%s/ocsd.sock", s->folder);
	int64_t deadline = ocs_now_ns() + PATIENCE_MS * INT64_C(1000000);

	s->daemon = start(s, "ocsd/ocsd", "ocsd.log", arguments);
	for (s->client = NULL; !s->client;) {
		s->client = ocs_client_open(address, 1000, &err);
		if (!s->client && (ocs_now_ns() > deadline ||
				   waitpid(s->daemon, NULL, WNOHANG) == s->daemon))
			die("ocsd does not come up");
		if (!s->client)
			usleep(20000);
	}
	free(address);
}

/* One control command of the emulator; its answer, freed by the caller. */
static char *control(struct soak *s, const char *format, ...)
{
	int64_t deadline = ocs_now_ns() + PATIENCE_MS * INT64_C(1000000);
	struct ocs_lines lines = { .fd = ocs_net_connect(s->control, 5000, &err) };
	char *command, *line, *answer;
	va_list args;

	va_start(args, format);
	if (vasprintf(&command, format, args) < 0 || lines.fd < 0)
		die("%s", s->control);
	va_end(args);
	line = ocs_asprintf("%s\n", command);
	if (ocs_net_write(lines.fd, line, strlen(line), deadline, &err))
		die("%s", command);
	answer = ocs_lines_next(&lines, 1 << 26, deadline, &err);
	if (!answer)
		die("%s", command);
	close(lines.fd);
	ocs_lines_free(&lines);
	free(command);
	free(line);
	return answer;
}

static struct json_object *ask(struct soak *s, const char *text)
{
	struct json_object *request = json_tokener_parse(text), *reply;

	reply = ocs_client_call(s->client, request, PATIENCE_MS, NULL, &err);
	json_object_put(request);
	if (!reply)
		die("%s", text);
	return reply;
}

/* ---- the ledger ---- */

static void note(struct soak *s, struct job *job, bool live)
{
	const struct ocs_placement *p = job->placement;
	struct timespec now;

	if (job->live == live)
		return;
	job->live = live;
	clock_gettime(CLOCK_MONOTONIC, &now);
	fprintf(s->ledger, "{\"t\":%lld.%09ld,\"job\":%u,\"live\":%s,\"patches\":[",
		(long long)now.tv_sec, now.tv_nsec, job->number, live ? "true" : "false");
	for (int i = 0; i < p->ncircuits; i++) {
		const struct ocs_circuit *c = &p->circuits[i];
		struct ocs_port plus, minus;

		ocs_section_torus_port(s->fabric, s->section, c->from, c->dim, c->pos[0],
				       c->pos[1], OCS_PLUS, &plus);
		ocs_section_torus_port(s->fabric, s->section, c->to, c->dim, c->pos[0], c->pos[1],
				       OCS_MINUS, &minus);
		fprintf(s->ledger, "%s[\"%s\",%d,%d],[\"%s\",%d,%d]", i ? "," : "",
			s->fabric->switches[plus.sw].name, plus.port, PORTS + minus.port,
			s->fabric->switches[plus.sw].name, minus.port, PORTS + plus.port);
	}
	fprintf(s->ledger, "]}\n");
	fflush(s->ledger);
}

/* ---- jobs ---- */

static char *nodes_of(const struct soak *s, const struct ocs_placement *p)
{
	char **names = ocs_calloc((size_t)p->nnodes, sizeof(*names)), *text;

	for (int i = 0; i < p->nnodes; i++)
		names[i] = s->fabric->nodes[p->nodes[i]].name;
	text = ocs_hostlist_compress(names, (size_t)p->nnodes);
	free(names);
	return text;
}

static int64_t send_text(struct soak *s, const char *text)
{
	struct json_object *request = json_tokener_parse(text);
	int64_t id = -1;

	/* A connection that is lost shows when it is read. */
	if (ocs_client_send(s->client, request, &err) == 0)
		id = json_object_get_int64(json_object_object_get(request, "id"));
	json_object_put(request);
	return id;
}

static void send_commit(struct soak *s, struct job *job)
{
	char *nodes = nodes_of(s, job->placement), shape[OCS_SHAPE_TEXT];
	char *text = ocs_asprintf("{\"op\":\"commit\",\"job\":%u,\"epoch\":%u,\"uid\":0,\"user\":\"root\","
				  "\"section\":\"pod\",\"partition\":\"tpu\",\"nodes\":\"%s\",\"shape\":\"%s\","
				  "\"conn\":\"torus,torus,torus\",\"placement\":\"%s\"}", job->number,
				  job->number, nodes,
				  ocs_shape_format(&job->placement->shape, shape),
				  job->placement->compact);

	job->commit = send_text(s, text);
	job->state = COMMITTING;
	free(nodes);
	free(text);
}

/* OP of every node of the job. */
static void send_all(struct soak *s, struct job *job, const char *op)
{
	job->waiting = job->placement->nnodes;
	for (int i = 0; i < job->placement->nnodes; i++) {
		char *text = ocs_asprintf("{\"op\":\"%s\",\"job\":%u,\"epoch\":%u,\"node\":\"%s\"}", op,
					  job->number, job->number,
					  s->fabric->nodes[job->placement->nodes[i]].name);

		job->last = send_text(s, text);
		job->first = i ? job->first : job->last;
		free(text);
	}
}

static void send_end(struct soak *s, struct job *job)
{
	char *text = ocs_asprintf("{\"op\":\"end\",\"job\":%u,\"epoch\":%u,\"reason\":\"soak\"}",
				  job->number, job->number);

	note(s, job, false);
	send_text(s, text);
	free(text);
	job->state = ENDING;
	send_all(s, job, "release");
}

static void hold(struct soak *s, const struct ocs_placement *p, bool is_free)
{
	for (int i = 0; i < p->nnodes; i++)
		ocs_occupancy_node_set(s->occupancy, s->fabric, p->nodes[i], is_free);
}

static void finish(struct soak *s, struct job *job)
{
	hold(s, job->placement, true);
	ocs_placement_destroy(job->placement);
	s->done++;
	s->failed += job->failed;
	memset(job, 0, sizeof(*job));
}

static void start_jobs(struct soak *s)
{
	static const char *const shapes[] = {
		"4x4x4", "4x8x2", "8x4x4", "2x2x4", "6x4", "18", "8x8x4", "2x2x2", "4x4x12", "16", "4x4x8",
	};

	for (int i = 0; i < JOBS_AT_ONCE && !s->calm; i++) {
		struct job *job = &s->jobs[i];
		struct ocs_shape shape;

		if (job->state != FREE)
			continue;
		ocs_shape_parse(shapes[draw(s, sizeof(shapes) / sizeof(*shapes))], NULL, &shape, &err);
		job->placement = ocs_place(s->placer, s->occupancy, &shape, 0, &err);
		if (!job->placement)
			return;
		job->number = ++s->number;
		hold(s, job->placement, false);
		send_commit(s, job);
	}
}

static void end_jobs(struct soak *s)
{
	int64_t now = ocs_now_ns();

	for (int i = 0; i < JOBS_AT_ONCE; i++)
		if (s->jobs[i].state == RUNNING && s->jobs[i].until_ns < now && !s->calm)
			send_end(s, &s->jobs[i]);
}

static void on_reply(struct soak *s, struct job *job, int64_t id, bool ok)
{
	if (job->state == COMMITTING && id == job->commit) {
		if (ok) {
			job->state = APPLYING;
			send_all(s, job, "apply");
			return;
		}
		/* drained, or not yet free: slurmctld would place it elsewhere */
		s->refused++;
		hold(s, job->placement, true);
		ocs_placement_destroy(job->placement);
		memset(job, 0, sizeof(*job));
	} else if (job->state == APPLYING && id >= job->first && id <= job->last) {
		if (ok)
			note(s, job, true);
		if (--job->waiting == 0 && ok) {
			job->state = RUNNING;
			job->until_ns = ocs_now_ns() + draw(s, 200) * INT64_C(1000000);
		}
	} else if (job->state == ENDING && id >= job->first && id <= job->last) {
		if (--job->waiting == 0)
			finish(s, job);
	}
}

static void on_line(struct soak *s, struct json_object *line)
{
	struct json_object *id, *event = json_object_object_get(line, "event");
	unsigned int number;

	if (json_object_object_get_ex(line, "id", &id)) {
		for (int i = 0; i < JOBS_AT_ONCE; i++)
			on_reply(s, &s->jobs[i], json_object_get_int64(id),
				 json_object_get_boolean(json_object_object_get(line, "ok")));
		return;
	}
	if (!event || strcmp(json_object_get_string(event), "job_failed") != 0)
		return;
	number = (unsigned int)json_object_get_int64(json_object_object_get(line, "job"));
	for (int i = 0; i < JOBS_AT_ONCE; i++)
		if (s->jobs[i].number == number &&
		    (s->jobs[i].state == APPLYING || s->jobs[i].state == RUNNING)) {
			s->jobs[i].failed = true;
			send_end(s, &s->jobs[i]);
		}
}

/* ---- a daemon that was killed ---- */

static bool listed(struct json_object *list, unsigned int number)
{
	for (size_t i = 0; i < json_object_array_length(list); i++)
		if (json_object_get_int64(json_object_array_get_idx(list, i)) == number)
			return true;
	return false;
}

/* What slurmctld does when it finds ocsd again, and the nodes whose requests were lost. */
static void resume(struct soak *s)
{
	struct json_object *request = json_object_new_object(), *jobs = json_object_new_array();
	struct json_object *reply;

	for (int i = 0; i < JOBS_AT_ONCE; i++) {
		struct json_object *row;

		if (s->jobs[i].state == FREE || s->jobs[i].state == ENDING)
			continue;
		row = json_object_new_object();
		json_object_object_add(row, "job", json_object_new_int64(s->jobs[i].number));
		json_object_object_add(row, "epoch", json_object_new_int64(s->jobs[i].number));
		json_object_array_add(jobs, row);
	}
	json_object_object_add(request, "op", json_object_new_string("subscribe"));
	json_object_object_add(request, "jobs", jobs);
	reply = ocs_client_call(s->client, request, PATIENCE_MS, NULL, &err);
	json_object_put(request);
	if (!reply)
		die("subscribe");
	for (int i = 0; i < JOBS_AT_ONCE; i++) {
		struct job *job = &s->jobs[i];

		if (job->state == COMMITTING ||
		    ((job->state == APPLYING || job->state == RUNNING) &&
		     listed(json_object_object_get(reply, "unknown"), job->number))) {
			if (job->state == RUNNING)
				die("job %u was running and is not known any more", job->number);
			send_commit(s, job);
		} else if (job->state == APPLYING) {
			send_all(s, job, "apply");
		} else if (job->state == ENDING) {
			send_end(s, job);
		}
	}
	json_object_put(reply);
}

static void kill_daemon(struct soak *s)
{
	kill(s->daemon, SIGKILL);
	waitpid(s->daemon, NULL, 0);
	ocs_client_close(s->client);
	s->kills++;
	start_daemon(s);
	resume(s);
}

static void serve(struct soak *s, int ms)
{
	int64_t until = ocs_now_ns() + ms * INT64_C(1000000);

	do {
		struct json_object *line = ocs_client_next(s->client, 2, &err);

		if (!line && err.code == OCS_UNREACHABLE)
			die("ocsd is gone");
		if (line)
			on_line(s, line);
		json_object_put(line);
		end_jobs(s);
		start_jobs(s);
	} while (ocs_now_ns() < until);
}

/* ---- faults ---- */

static void hurt(struct soak *s)
{
	static const char *const faults[] = {
		"fault %s silent count %d", "fault %s drop count %d", "fault %s deny count %d",
		"fault %s partial count %d", "fault %s lost count %d", "fault %s duplicate count %d",
		"fault %s refuse count %d", "fault %s slow 300 count %d",
		"port %s %d refuse", "port %s %d fail", "port %s %d lossy 9", "port %s %d good",
		"unpatch %s %d", "reboot %s dark 100", "reboot %s restore 100",
	};
	const char *name = s->fabric->switches[draw(s, (unsigned int)s->fabric->nswitches)].name;
	unsigned int which = draw(s, sizeof(faults) / sizeof(*faults) + 1);
	int in = (int)draw(s, 2 * CUBES) + 1;

	s->faults++;
	if (s->faults % KILL_EVERY == 0)
		kill_daemon(s);
	else if (which == sizeof(faults) / sizeof(*faults))	/* a patch of somebody else */
		free(control(s, "patch %s %d %d", name, in, PORTS + (int)draw(s, 2 * CUBES) + 1));
	else
		free(control(s, faults[which], name, which < 8 ? (int)draw(s, 3) + 1 : in));
}

static void heal(struct soak *s)
{
	for (int i = 0; i < s->fabric->nswitches; i++) {
		free(control(s, "fault %s none", s->fabric->switches[i].name));
		for (int port = 1; port <= 2 * PORTS; port++)
			free(control(s, "port %s %d good", s->fabric->switches[i].name, port));
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
	json_object_object_foreach(all, name, table) {
		for (size_t i = 0; i < json_object_array_length(table); i++) {
			struct json_object *row = json_object_array_get_idx(table, i);

			pairs[count++] = (struct pair){
				ocs_fabric_switch(s->fabric, name),
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
	char *path = ocs_asprintf("%s/state/ocsd.db", s->folder);
	sqlite3_stmt *row = NULL;
	sqlite3 *db = NULL;
	size_t count = 0;

	if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK ||
	    sqlite3_prepare_v2(db, "SELECT switch, a, b, state FROM circuits WHERE state != 5", -1,
			       &row, NULL) != SQLITE_OK)
		die("%s: %s", path, sqlite3_errmsg(db));
	while (sqlite3_step(row) == SQLITE_ROW) {
		int sw = ocs_fabric_switch(s->fabric, (const char *)sqlite3_column_text(row, 0));
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
			free(control(s, "unpatch %s %d", s->fabric->switches[have[i].sw].name,
				     have[i].in));
	reply = ask(s, "{\"op\":\"show\",\"what\":\"fabric\"}");
	drains = json_object_object_get(reply, "drains");
	for (size_t i = 0; i < json_object_array_length(drains); i++) {
		struct json_object *row = json_object_array_get_idx(drains, i);
		char *text = ocs_asprintf("{\"op\":\"resume\",\"kind\":\"%s\",\"name\":\"%s\"}",
			json_object_get_string(json_object_object_get(row, "kind")),
			json_object_get_string(json_object_object_get(row, "name")));

		send_text(s, text);
		free(text);
	}
	json_object_put(reply);
	send_text(s, "{\"op\":\"reconcile\"}");
}

static void checkpoint(struct soak *s)
{
	struct pair *have = ocs_calloc(PAIRS, sizeof(*have)), *want = ocs_calloc(PAIRS, sizeof(*want));
	int64_t deadline = ocs_now_ns() + PATIENCE_MS * INT64_C(1000000);
	size_t nhave, nwant;

	s->calm = true;
	heal(s);
	for (;;) {
		serve(s, 500);
		nhave = tables(s, have);
		nwant = database(s, want);
		if (!busy(s) && nhave == nwant && nwant == living(s) &&
		    memcmp(have, want, nhave * sizeof(*have)) == 0)
			break;
		if (ocs_now_ns() > deadline) {
			snprintf(err.text, sizeof(err.text), "switches hold %zu patches, the database %zu, "
				 "living jobs %zu%s", nhave, nwant, living(s),
				 busy(s) ? "; jobs are on their way" : "");
			die("checkpoint %u", s->checkpoints);
		}
		if (!busy(s))
			tidy(s, have, nhave, want, nwant);
	}
	s->checkpoints++;
	printf("%u jobs (%u failed, %u commits refused), %u faults, %u kills: %zu patches on the "
	       "switches are those of the database and of the living jobs\n", s->done, s->failed,
	       s->refused, s->faults, s->kills, nhave);
	fflush(stdout);
	s->calm = false;
	free(have);
	free(want);
}

static void set_up(struct soak *s)
{
	char *known = ocs_asprintf("%s/known_hosts", s->folder);
	char *key = ocs_asprintf("%s/host_key", s->folder);
	char *log = ocs_asprintf("%s/emulator.log", s->folder);
	char *ledger = ocs_asprintf("%s/ledger", s->folder);
	char *text = ocs_asprintf(config, s->folder);

	s->yaml = ocs_asprintf("%s/ocs.yaml", s->folder);
	s->control = ocs_asprintf("unix:%s/ctl", s->folder);
	write_file(s, "ocs.yaml", text);
	write_file(s, "credentials", "user=admin\npassword=root\n");
	s->fabric = ocs_fabric_open(s->yaml, &err);
	if (!s->fabric)
		die("%s", s->yaml);
	s->section = &s->fabric->sections[0];
	s->placer = ocs_placer_create(s->fabric, s->section);
	s->occupancy = ocs_occupancy_create(s->section);
	s->ledger = fopen(ledger, "w");
	s->emulator = start(s, "emulator/ocs-emulator", "emulator.err", (const char *const[]){
		"ocs-emulator", "--fabric", s->yaml, "--delay", "2", "--log", log, "--control",
		s->control, "--host-key", key, "--known-hosts", known, NULL });
	for (int i = 0; i < 400 && access(s->control + strlen("unix:"), F_OK); i++)
		usleep(50000);
	start_daemon(s);
	resume(s);
	free(known);
	free(key);
	free(log);
	free(ledger);
	free(text);
}

static void take_down(struct soak *s)
{
	kill(s->daemon, SIGTERM);
	waitpid(s->daemon, NULL, 0);
	kill(s->emulator, SIGTERM);
	waitpid(s->emulator, NULL, 0);
	fclose(s->ledger);
	ocs_client_close(s->client);
	for (int i = 0; i < JOBS_AT_ONCE; i++)
		ocs_placement_destroy(s->jobs[i].placement);
	ocs_occupancy_destroy(s->occupancy);
	ocs_placer_destroy(s->placer);
	ocs_fabric_destroy(s->fabric);
	free(s->yaml);
	free(s->control);
}

int main(int argc, char **argv)
{
	unsigned int jobs = argc > 3 ? (unsigned int)atoi(argv[3]) : 10000, next = CHECKPOINT;
	struct soak s = { .build = argv[1], .folder = argv[2], .random = 88172645463325252ULL };
	int pause = argc > 5 ? atoi(argv[5]) : 40;

	if (argc < 3 || !jobs || pause < 1) {
		fprintf(stderr, "usage: soak BUILD-DIRECTORY DIRECTORY [JOBS [SEED [MS]]]\n");
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	s.random += argc > 4 ? strtoull(argv[4], NULL, 10) * 0x9e3779b97f4a7c15ULL : 0;
	set_up(&s);
	while (s.done < jobs) {
		serve(&s, pause);
		hurt(&s);
		if (s.done >= next || s.done >= jobs) {
			checkpoint(&s);
			next = s.done + CHECKPOINT;
		}
	}
	take_down(&s);
	return 0;
}
