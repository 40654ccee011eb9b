/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The jobs of a soak, and the ledger of what they were told. */

#include "tests/bench/soak.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/util/net.h"
#include "src/util/text.h"

static struct ocs_error err;

unsigned int soak_draw(struct soak *s, unsigned int below)
{
	s->random ^= s->random << 13;
	s->random ^= s->random >> 7;
	s->random ^= s->random << 17;
	return (unsigned int)((s->random >> 20) % below);
}

/* ---- the ledger ---- */

static void note(struct soak *s, struct job *job, bool live)
{
	const struct ocs_fabric *fabric = s->daemons.fabric;
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

		ocs_section_torus_port(fabric, &fabric->sections[0], c->from, c->dim, c->pos[0],
				       c->pos[1], OCS_PLUS, &plus);
		ocs_section_torus_port(fabric, &fabric->sections[0], c->to, c->dim, c->pos[0],
				       c->pos[1], OCS_MINUS, &minus);
		fprintf(s->ledger, "%s[\"%s\",%d,%d],[\"%s\",%d,%d]", i ? "," : "",
			fabric->switches[plus.sw].name, plus.port, PORTS + minus.port,
			fabric->switches[plus.sw].name, minus.port, PORTS + plus.port);
	}
	fprintf(s->ledger, "]}\n");
	fflush(s->ledger);
}

/* ---- jobs ---- */

int64_t soak_send(struct soak *s, const char *text)
{
	struct json_object *request = json_tokener_parse(text);
	int64_t id = -1;

	/* A connection that is lost shows when it is read. */
	if (ocs_client_send(s->daemons.client, request, &err) == 0)
		id = json_object_get_int64(json_object_object_get(request, "id"));
	json_object_put(request);
	return id;
}

static void send_commit(struct soak *s, struct job *job)
{
	char *text = daemons_commit(&s->daemons, job->placement, job->number);

	job->commit = soak_send(s, text);
	job->state = COMMITTING;
	free(text);
}

/* OP of every node of the job. */
static void send_all(struct soak *s, struct job *job, const char *op)
{
	job->waiting = job->placement->nnodes;
	for (int i = 0; i < job->placement->nnodes; i++) {
		char *text = ocs_asprintf("{\"op\":\"%s\",\"job\":%u,\"epoch\":%u,\"node\":\"%s\"}",
					  op, job->number, job->number,
					  s->daemons.fabric->nodes[job->placement->nodes[i]].name);

		job->last = soak_send(s, text);
		job->first = i ? job->first : job->last;
		free(text);
	}
}

static void send_end(struct soak *s, struct job *job)
{
	char *text = ocs_asprintf("{\"op\":\"end\",\"job\":%u,\"epoch\":%u,\"reason\":\"soak\"}",
				  job->number, job->number);

	note(s, job, false);
	soak_send(s, text);
	free(text);
	job->state = ENDING;
	send_all(s, job, "release");
}

static void hold(struct soak *s, const struct ocs_placement *p, bool is_free)
{
	for (int i = 0; i < p->nnodes; i++)
		ocs_occupancy_node_set(s->occupancy, s->daemons.fabric, p->nodes[i], is_free);
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
		"4x4x4", "4x8x2", "8x4x4",  "2x2x4", "6x4",   "18",
		"8x8x4", "2x2x2", "4x4x12", "16",    "4x4x8",
	};

	for (int i = 0; i < JOBS_AT_ONCE && !s->calm; i++) {
		struct job *job = &s->jobs[i];
		struct ocs_shape shape;

		if (job->state != FREE)
			continue;
		ocs_shape_parse(shapes[soak_draw(s, sizeof(shapes) / sizeof(*shapes))], NULL,
				&shape, &err);
		job->placement = ocs_place(s->daemons.placer, s->occupancy, &shape, 0, &err);
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
			job->until_ns = ocs_now_ns() + soak_draw(s, 200) * INT64_C(1000000);
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

void soak_resume(struct soak *s)
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
	reply = ocs_client_call(s->daemons.client, request, PATIENCE_MS, NULL, &err);
	json_object_put(request);
	if (!reply)
		daemons_die(&err, "subscribe");
	for (int i = 0; i < JOBS_AT_ONCE; i++) {
		struct job *job = &s->jobs[i];

		if (job->state == COMMITTING ||
		    ((job->state == APPLYING || job->state == RUNNING) &&
		     listed(json_object_object_get(reply, "unknown"), job->number))) {
			if (job->state == RUNNING)
				daemons_die(&err, "job %u was running and is not known any more",
					    job->number);
			send_commit(s, job);
		} else if (job->state == APPLYING) {
			send_all(s, job, "apply");
		} else if (job->state == ENDING) {
			send_end(s, job);
		}
	}
	json_object_put(reply);
}

void soak_serve(struct soak *s, int ms)
{
	int64_t until = ocs_now_ns() + ms * INT64_C(1000000);

	do {
		struct json_object *line = ocs_client_next(s->daemons.client, 2, &err);

		if (!line && err.code == OCS_UNREACHABLE)
			daemons_die(&err, "ocsd is gone");
		if (line)
			on_line(s, line);
		json_object_put(line);
		end_jobs(s);
		start_jobs(s);
	} while (ocs_now_ns() < until);
}
