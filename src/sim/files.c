/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/sim/files.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "src/util/error.h"
#include "src/util/text.h"

#define FIELDS 8
#define ID_MAX 9e15 /* all whole numbers up to here are doubles */
#define FILE_MAX (512u << 20)

void ocs_sim_values_add(struct ocs_sim_values *v, double value, double weight)
{
	if ((v->n & (v->n - 1)) == 0) {
		size_t room = v->n ? 2 * (size_t)v->n : 1;

		v->value = ocs_realloc(v->value, room * sizeof(double));
		v->sum = ocs_realloc(v->sum, room * sizeof(double));
	}
	v->value[v->n] = value;
	v->sum[v->n] = weight + (v->n ? v->sum[v->n - 1] : 0);
	v->n++;
}

int ocs_sim_values_pick(const struct ocs_sim_values *v, struct ocs_random *random)
{
	double u = ocs_random_unit(random) * v->sum[v->n - 1];
	int low = 0, high = v->n - 1;

	while (low < high) {
		int middle = (low + high) / 2;

		if (v->sum[middle] > u)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

void ocs_sim_values_free(struct ocs_sim_values *v)
{
	free(v->value);
	free(v->sum);
	memset(v, 0, sizeof(*v));
}

/* zlib reads plain files as they are. */
static char *file_text(const char *path, struct ocs_error *err)
{
	struct ocs_text text = { 0 };
	char buffer[1 << 16];
	gzFile file = gzopen(path, "rb");
	int n;

	if (!file) {
		ocs_error_set(err, OCS_ERROR, "cannot read %s: %s", path, strerror(errno));
		return NULL;
	}
	while ((n = gzread(file, buffer, sizeof(buffer) - 1)) > 0) {
		buffer[n] = '\0';
		ocs_text_add(&text, "%s", buffer);
		if (text.length > FILE_MAX) {
			ocs_error_set(err, OCS_ERROR, "%s is larger than %u MiB", path,
				      FILE_MAX >> 20);
			goto fail;
		}
	}
	if (n < 0) {
		ocs_error_set(err, OCS_ERROR,
			      "cannot read %s: it is a folder or its compression "
			      "is damaged",
			      path);
		goto fail;
	}
	gzclose(file);
	return ocs_text_take(&text);
fail:
	gzclose(file);
	ocs_text_free(&text);
	return NULL;
}

static int number_read(const char *text, double *value)
{
	char *end;

	while (*text == ' ')
		text++;
	*value = strtod(text, &end);
	while (*end == ' ' || *end == '\r')
		end++;
	return end == text || *end || !isfinite(*value) || *value < 0 ? -1 : 0;
}

/* Cuts TEXT at commas.  Returns the number of fields, at most FIELDS + 1. */
static int fields_cut(char *text, char *field[FIELDS + 1])
{
	int n = 0;

	for (;;) {
		char *comma = strchr(text, ',');

		field[n++] = text;
		if (!comma || n > FIELDS)
			return n;
		*comma = '\0';
		text = comma + 1;
	}
}

/* Calls LINE with the fields of each line that is no comment. */
static int each_line(const char *path, int least,
		     int (*line)(char **field, int n, void *arg, struct ocs_error *err), void *arg,
		     struct ocs_error *err)
{
	char *text = file_text(path, err), *at = text, *field[FIELDS + 1];
	int result = text ? 0 : -1, number_of_line = 0;

	while (!result && *at) {
		size_t length = strcspn(at, "\n");
		char *next = at + length + (at[length] != '\0');
		int n;

		at[length] = '\0';
		if (length && at[length - 1] == '\r')
			at[length - 1] = '\0';
		number_of_line++;
		if (*at && *at != '#') {
			n = fields_cut(at, field);
			if (n < least || n > FIELDS)
				result = ocs_error_set(err, OCS_ERROR, "%d fields where %d belong",
						       n, least);
			else
				result = line(field, n, arg, err);
			if (result)
				ocs_error_prefix(err, "%s:%d", path, number_of_line);
		}
		at = next;
	}
	free(text);
	return result;
}

static int duration_line(char **field, int n, void *arg, struct ocs_error *err)
{
	double seconds;

	if (number_read(field[n > 6 ? 5 : n - 1], &seconds))
		return ocs_error_set(err, OCS_ERROR, "'%s' is not a duration in seconds",
				     field[n > 6 ? 5 : n - 1]);
	if (seconds > 0)
		ocs_sim_values_add(arg, seconds, 1);
	return 0;
}

static int gap_line(char **field, int n, void *arg, struct ocs_error *err)
{
	double seconds, weight;

	(void)n;
	if (number_read(field[0], &seconds) || number_read(field[1], &weight))
		return ocs_error_set(err, OCS_ERROR,
				     "'%s,%s' is not a gap in seconds and its "
				     "probability",
				     field[0], field[1]);
	ocs_sim_values_add(arg, round(seconds), weight);
	return 0;
}

static int values_check(const struct ocs_sim_values *v, const char *path, const char *what,
			struct ocs_error *err)
{
	if (v->n && v->sum[v->n - 1] > 0)
		return 0;
	return ocs_error_set(err, OCS_ERROR, "%s holds no %s", path, what);
}

int ocs_sim_durations_read(struct ocs_sim_values *v, const char *path, struct ocs_error *err)
{
	if (each_line(path, 1, duration_line, v, err))
		return -1;
	return values_check(v, path, "duration above zero", err);
}

int ocs_sim_gaps_read(struct ocs_sim_values *v, const char *path, struct ocs_error *err)
{
	if (each_line(path, 2, gap_line, v, err))
		return -1;
	return values_check(v, path, "gap", err);
}

static int shape_field(const char *topology, const char *text, struct ocs_shape *shape,
		       struct ocs_error *err)
{
	char twisted[128];

	if (!strcmp(topology, "T3D_NT"))
		return ocs_shape_parse(text, NULL, shape, err);
	if (strcmp(topology, "T3D_T"))
		return ocs_error_set(err, OCS_ERROR,
				     "topology '%.20s' is unknown; T3D_NT (a torus) and "
				     "T3D_T (a twisted one) can be placed",
				     topology);
	snprintf(twisted, sizeof(twisted), "%.100s_twisted", text);
	return ocs_shape_parse(twisted, NULL, shape, err);
}

static int mix_line(char **field, int n, void *arg, struct ocs_error *err)
{
	struct ocs_sim_workload *w = arg;
	struct ocs_shape shape;
	double weight;

	if (shape_field(field[1], field[2], &shape, err))
		return -1;
	if (number_read(field[n - 1], &weight))
		return ocs_error_set(err, OCS_ERROR, "'%s' is not a probability", field[n - 1]);
	w->shapes = ocs_realloc(w->shapes, (size_t)(w->nshapes + 1) * sizeof(*w->shapes));
	w->shapes[w->nshapes] = shape;
	ocs_sim_values_add(&w->mix, w->nshapes++, weight);
	return 0;
}

int ocs_sim_mix_read(struct ocs_sim_workload *w, const char *path, struct ocs_error *err)
{
	if (each_line(path, 6, mix_line, w, err))
		return -1;
	return values_check(&w->mix, path, "slice", err);
}

static int whole_read(const char *text, double limit, double *value)
{
	return number_read(text, value) || *value != floor(*value) || *value > limit ? -1 : 0;
}

struct trace_reading {
	struct ocs_sim_trace *trace;
	long *ids; /* hash table, open addressing: id + 1, 0: free */
	size_t nids, room;
	double arrival; /* of the line above */
};

static long *id_slot(long *ids, size_t room, long id)
{
	size_t at = (size_t)id * UINT64_C(0x9e3779b97f4a7c15) >> 20;

	while (ids[at % room] && ids[at % room] != id + 1)
		at++;
	return &ids[at % room];
}

/* False: it was met before. */
static bool id_add(struct trace_reading *r, long id)
{
	long *slot;

	if (2 * r->nids >= r->room) {
		size_t room = r->room ? 2 * r->room : 1024, i;
		long *ids = ocs_calloc(room, sizeof(*ids));

		for (i = 0; i < r->room; i++) {
			if (r->ids[i])
				*id_slot(ids, room, r->ids[i] - 1) = r->ids[i];
		}
		free(r->ids);
		r->ids = ids;
		r->room = room;
	}
	slot = id_slot(r->ids, r->room, id);
	if (*slot)
		return false;
	*slot = id + 1;
	r->nids++;
	return true;
}

static int trace_line(char **field, int n, void *arg, struct ocs_error *err)
{
	struct trace_reading *reading = arg;
	struct ocs_sim_job job = { 0 };
	double id, size, priority = 0;

	if (whole_read(field[0], ID_MAX, &id) || number_read(field[1], &job.arrival))
		return ocs_error_set(err, OCS_ERROR,
				     "'%s,%s' is not a job id (a whole number) and its "
				     "arrival in seconds",
				     field[0], field[1]);
	if (shape_field(field[2], field[3], &job.shape, err))
		return -1;
	if (number_read(field[4], &size) || size != (double)job.shape.xpus)
		return ocs_error_set(err, OCS_ERROR, "the size is '%s', but %s has %ld XPUs",
				     field[4], field[3], job.shape.xpus);
	if (number_read(field[5], &job.duration))
		return ocs_error_set(err, OCS_ERROR, "'%s' is not a duration in seconds", field[5]);
	if (n > 6 && whole_read(field[6], INT_MAX, &priority))
		return ocs_error_set(err, OCS_ERROR, "'%s' is not a priority (a whole number)",
				     field[6]);
	job.id = (long)id;
	job.priority = (int)priority;
	if (!id_add(reading, job.id))
		return ocs_error_set(err, OCS_ERROR,
				     "a line above has the job id %ld already; each job "
				     "needs one of its own",
				     job.id);
	if (job.arrival < reading->arrival)
		return ocs_error_set(err, OCS_ERROR,
				     "job %ld arrives before the job of the line "
				     "above",
				     job.id);
	reading->arrival = job.arrival;
	/* a job that takes no time is nothing to place; whoever reads the trace says so */
	if (job.duration > 0)
		ocs_sim_trace_add(reading->trace, &job);
	else
		reading->trace->left_out++;
	return 0;
}

int ocs_sim_trace_read(struct ocs_sim_trace *trace, const char *path, struct ocs_error *err)
{
	struct trace_reading reading = { .trace = trace };
	int rc;

	memset(trace, 0, sizeof(*trace));
	rc = each_line(path, 6, trace_line, &reading, err);
	free(reading.ids);
	if (!rc && !trace->njobs)
		rc = ocs_error_set(err, OCS_ERROR, "%s holds no job that takes time", path);
	if (rc)
		ocs_sim_trace_free(trace);
	return rc;
}

int ocs_sim_trace_write(const struct ocs_sim_trace *trace, const char *path, struct ocs_error *err)
{
	struct ocs_text text = { 0 };
	char shape[OCS_SHAPE_TEXT];
	int result;
	long i;

	ocs_text_add(&text, "#job id,arrival time (sec),topology,shape,size,duration (sec)\n");
	for (i = 0; i < trace->njobs; i++) {
		const struct ocs_sim_job *job = &trace->jobs[i];
		struct ocs_shape plain = job->shape;

		plain.twisted = false;
		ocs_text_add(&text, "%ld,%.1f,%s,%s,%ld,%.1f\n", job->id, job->arrival,
			     job->shape.twisted ? "T3D_T" : "T3D_NT",
			     ocs_shape_format(&plain, shape), job->shape.xpus, job->duration);
	}
	result = ocs_file_write(path, text.data, text.length, 0644, err);
	ocs_text_free(&text);
	return result;
}

void ocs_sim_trace_add(struct ocs_sim_trace *trace, const struct ocs_sim_job *job)
{
	if (trace->njobs == trace->room) {
		trace->room = trace->room ? 2 * trace->room : 1024;
		trace->jobs = ocs_realloc(trace->jobs, (size_t)trace->room * sizeof(*trace->jobs));
	}
	trace->jobs[trace->njobs++] = *job;
}

void ocs_sim_trace_free(struct ocs_sim_trace *trace)
{
	free(trace->jobs);
	memset(trace, 0, sizeof(*trace));
}
