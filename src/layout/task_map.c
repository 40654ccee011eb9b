/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/layout/task_map.h"

#include <stdlib.h>
#include <string.h>

#include "src/util/error.h"
#include "src/util/text.h"

#define LINE_MAX_BYTES 512

static struct ocs_ranks *ranks_create(const struct ocs_shape *shape)
{
	struct ocs_ranks *ranks = ocs_calloc(1, sizeof(*ranks));

	ranks->shape = *shape;
	ranks->nxpus = (int)shape->xpus;
	ranks->node = ocs_calloc((size_t)ranks->nxpus, sizeof(int));
	ranks->device = ocs_calloc((size_t)ranks->nxpus, sizeof(int));
	ranks->nodes = ocs_calloc((size_t)ranks->nxpus, sizeof(char *));
	return ranks;
}

void ocs_ranks_destroy(struct ocs_ranks *ranks)
{
	int i;

	if (!ranks)
		return;
	for (i = 0; i < ranks->nnodes; i++)
		free(ranks->nodes[i]);
	free(ranks->nodes);
	free(ranks->node);
	free(ranks->device);
	free(ranks);
}

struct ocs_ranks *ocs_ranks_from_placement(const struct ocs_fabric *fabric,
					   const struct ocs_placement *placement)
{
	struct ocs_ranks *ranks = ranks_create(&placement->shape);
	const struct ocs_section *section = placement->section;
	int *seen = ocs_calloc((size_t)fabric->nnodes, sizeof(int)); /* index + 1 */
	int r;

	for (r = 0; r < ranks->nxpus; r++) {
		const struct ocs_xpu *xpu = &placement->xpus[r];
		int node = ocs_section_node_at(section, xpu->cube, xpu->at);

		if (!seen[node]) {
			ranks->nodes[ranks->nnodes++] = ocs_strdup(fabric->nodes[node].name);
			seen[node] = ranks->nnodes;
		}
		ranks->node[r] = seen[node] - 1;
		ranks->device[r] = ocs_section_device(section, xpu->at);
	}
	free(seen);
	return ranks;
}

struct ocs_ranks *ocs_ranks_from_nodes(const struct ocs_shape *shape, char *const *nodes,
				       int nnodes)
{
	struct ocs_ranks *ranks;
	int r, each;

	if (nnodes < 1 || shape->xpus % nnodes)
		return NULL;
	each = (int)(shape->xpus / nnodes);
	ranks = ranks_create(shape);
	ranks->nnodes = nnodes;
	for (r = 0; r < nnodes; r++)
		ranks->nodes[r] = ocs_strdup(nodes[r]);
	for (r = 0; r < ranks->nxpus; r++) {
		ranks->node[r] = r / each;
		ranks->device[r] = r % each;
	}
	return ranks;
}

char *ocs_ranks_format(const struct ocs_ranks *ranks)
{
	char shape[OCS_SHAPE_TEXT], conn[OCS_SHAPE_TEXT];
	struct ocs_text text = { 0 };
	int r;

	ocs_text_add(&text, "shape %s conn %s\n", ocs_shape_format(&ranks->shape, shape),
		     ocs_shape_conn_format(&ranks->shape, conn));
	for (r = 0; r < ranks->nxpus; r++)
		ocs_text_add(&text, "%s %d\n", ranks->nodes[ranks->node[r]], ranks->device[r]);
	return ocs_text_take(&text);
}

/* Copies the line at *P without its newline and moves on; false at the end or if it
 * is too long. */
static bool line_take(const char **p, char line[LINE_MAX_BYTES])
{
	size_t length = strcspn(*p, "\n");

	if (!**p || length >= LINE_MAX_BYTES)
		return false;
	memcpy(line, *p, length);
	line[length] = '\0';
	*p += length + ((*p)[length] == '\n');
	return true;
}

/* Open hash of node names: index + 1. */
struct names {
	int *slots;
	size_t size;
};

static int name_index(struct ocs_ranks *ranks, struct names *names, const char *name)
{
	uint64_t h = 14695981039346656037ULL;
	const char *p;
	size_t slot;

	for (p = name; *p; p++)
		h = (h ^ (unsigned char)*p) * 1099511628211ULL;
	for (slot = h % names->size; names->slots[slot]; slot = (slot + 1) % names->size) {
		if (!strcmp(ranks->nodes[names->slots[slot] - 1], name))
			return names->slots[slot] - 1;
	}
	ranks->nodes[ranks->nnodes++] = ocs_strdup(name);
	names->slots[slot] = ranks->nnodes;
	return ranks->nnodes - 1;
}

static int header_parse(char *line, struct ocs_shape *shape, struct ocs_error *err)
{
	char *save = NULL, *word[5];
	int i;

	for (i = 0; i < 5; i++)
		word[i] = strtok_r(i ? NULL : line, " ", &save);
	if (!word[3] || word[4] || strcmp(word[0], "shape") || strcmp(word[2], "conn"))
		return ocs_error_set(err, OCS_ERROR, "ranks file: line 1 is not 'shape S conn C'");
	if (ocs_shape_parse(word[1], word[3], shape, err))
		return ocs_error_prefix(err, "ranks file: line 1");
	return 0;
}

struct ocs_ranks *ocs_ranks_parse(const char *text, struct ocs_error *err)
{
	struct names names = { 0 };
	struct ocs_ranks *ranks;
	char line[LINE_MAX_BYTES];
	struct ocs_shape shape;
	const char *p = text;
	long device;
	int r;

	if (!line_take(&p, line)) {
		ocs_error_set(err, OCS_ERROR, "ranks file: it is empty");
		return NULL;
	}
	if (header_parse(line, &shape, err))
		return NULL;
	/* each XPU has a line of at least four characters: refuse a lie early */
	if ((size_t)shape.xpus > strlen(p) / 3) {
		ocs_error_set(err, OCS_ERROR, "ranks file: it ends before XPU %ld", shape.xpus - 1);
		return NULL;
	}
	ranks = ranks_create(&shape);
	names.size = 2 * (size_t)ranks->nxpus + 1;
	names.slots = ocs_calloc(names.size, sizeof(int));
	for (r = 0; r < ranks->nxpus; r++) {
		char *blank;

		if (!line_take(&p, line) || !(blank = strchr(line, ' ')) || blank == line ||
		    ocs_number_parse(blank + 1, 0, 1 << 20, &device)) {
			ocs_error_set(err, OCS_ERROR, "ranks file: line %d is not 'NODE DEVICE'",
				      r + 2);
			goto bad;
		}
		*blank = '\0';
		ranks->node[r] = name_index(ranks, &names, line);
		ranks->device[r] = (int)device;
	}
	if (*p) {
		ocs_error_set(err, OCS_ERROR,
			      "ranks file: there are more lines than the %d XPUs of "
			      "the shape",
			      ranks->nxpus);
		goto bad;
	}
	free(names.slots);
	return ranks;
bad:
	free(names.slots);
	ocs_ranks_destroy(ranks);
	return NULL;
}

/* XPUs of node N, ascending; the caller frees *LIST. */
static int node_xpus(const struct ocs_ranks *ranks, int n, int **list)
{
	int count = 0, r;

	*list = ocs_calloc((size_t)ranks->nxpus, sizeof(int));
	for (r = 0; r < ranks->nxpus; r++) {
		if (ranks->node[r] == n)
			(*list)[count++] = r;
	}
	return count;
}

/* The first of COUNT things that share LOCAL of NTASKS gets (equal shares, the first
 * ones one more). */
static int share_start(int count, int local, int ntasks)
{
	int each = count / ntasks, more = count % ntasks;

	return local * each + (local < more ? local : more);
}

struct task {
	int first; /* rank of the first XPU of its share */
	int node;
};

static int task_compare(const void *a, const void *b)
{
	const struct task *p = a, *q = b;

	return p->first - q->first;
}

/* All tasks when each node runs NTASKS, in rank order: by the first XPU of their
 * shares.  NULL if a node has fewer XPUs than that. */
static struct task *tasks_sorted(const struct ocs_ranks *ranks, int ntasks)
{
	struct task *tasks = ocs_calloc((size_t)ranks->nnodes * (size_t)ntasks, sizeof(*tasks));
	int *count = ocs_calloc((size_t)ranks->nnodes, sizeof(int));
	int *seen = ocs_calloc((size_t)ranks->nnodes, sizeof(int));
	int *next = ocs_calloc((size_t)ranks->nnodes, sizeof(int));
	int r, n = 0;

	for (r = 0; r < ranks->nxpus; r++)
		count[ranks->node[r]]++;
	for (r = 0; r < ranks->nxpus; r++) {
		int node = ranks->node[r];

		if (next[node] < ntasks && count[node] >= ntasks &&
		    seen[node] == share_start(count[node], next[node], ntasks)) {
			tasks[n].first = r;
			tasks[n++].node = node;
			next[node]++;
		}
		seen[node]++;
	}
	free(count);
	free(seen);
	free(next);
	if (n != ranks->nnodes * ntasks) {
		free(tasks);
		return NULL;
	}
	qsort(tasks, (size_t)n, sizeof(*tasks), task_compare);
	return tasks;
}

int *ocs_ranks_hosts(const struct ocs_ranks *ranks, int tasks, struct ocs_error *err)
{
	struct task *sorted = NULL;
	int *hosts, i;

	if (tasks < 1 || (tasks != ranks->nxpus && tasks % ranks->nnodes)) {
		ocs_error_set(err, OCS_USAGE,
			      "%d tasks cannot be spread over %d XPUs on %d nodes; use "
			      "%d or a multiple of %d",
			      tasks, ranks->nxpus, ranks->nnodes, ranks->nxpus, ranks->nnodes);
		return NULL;
	}
	hosts = ocs_calloc((size_t)tasks, sizeof(int));
	if (tasks == ranks->nxpus) {
		memcpy(hosts, ranks->node, (size_t)tasks * sizeof(int));
		return hosts;
	}
	sorted = tasks_sorted(ranks, tasks / ranks->nnodes);
	if (!sorted) {
		ocs_error_set(err, OCS_USAGE,
			      "%d tasks a node are more than some node of the job has "
			      "XPUs; use %d tasks, one per XPU, or one per node",
			      tasks / ranks->nnodes, ranks->nxpus);
		free(hosts);
		return NULL;
	}
	for (i = 0; i < tasks; i++)
		hosts[i] = sorted[i].node;
	free(sorted);
	return hosts;
}

static int node_find(const struct ocs_ranks *ranks, const char *name, struct ocs_error *err)
{
	int n;

	for (n = 0; n < ranks->nnodes; n++) {
		if (!strcmp(ranks->nodes[n], name))
			return n;
	}
	return ocs_error_set(err, OCS_ERROR, "node %s holds no XPU of the job", name);
}

int ocs_ranks_share(const struct ocs_ranks *ranks, const char *name, int local, int ntasks,
		    int **share, struct ocs_error *err)
{
	int node = node_find(ranks, name, err), count, start, end;

	*share = NULL;
	if (node < 0)
		return -1;
	if (ntasks < 1 || local < 0 || local >= ntasks)
		return ocs_error_set(err, OCS_ERROR, "task %d of %d does not exist on node %s",
				     local, ntasks, name);
	count = node_xpus(ranks, node, share);
	start = share_start(count, local, ntasks);
	end = share_start(count, local + 1, ntasks);
	memmove(*share, *share + start, (size_t)(end - start) * sizeof(int));
	return end - start;
}

int ocs_ranks_rank(const struct ocs_ranks *ranks, const char *name, int local, int ntasks,
		   struct ocs_error *err)
{
	struct task *sorted = NULL;
	int *share, count, first, i;

	count = ocs_ranks_share(ranks, name, local, ntasks, &share, err);
	first = count > 0 ? share[0] : -1;
	free(share);
	if (count < 0)
		return -1;
	if (!count)
		return ocs_error_set(err, OCS_USAGE,
				     "node %s has fewer XPUs of the job than its %d "
				     "tasks",
				     name, ntasks);
	/* one XPU a task: its row-major rank */
	if ((long)ntasks * ranks->nnodes >= ranks->nxpus && count == 1)
		return first;
	sorted = tasks_sorted(ranks, ntasks);
	if (!sorted)
		return ocs_error_set(err, OCS_USAGE,
				     "some node of the job has fewer XPUs than %d "
				     "tasks",
				     ntasks);
	for (i = 0; sorted[i].first != first; i++)
		;
	free(sorted);
	return i;
}
