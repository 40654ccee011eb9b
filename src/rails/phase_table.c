/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/rails/phase_table.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/util/error.h"
#include "src/util/text.h"

#define FILE_LIMIT ((size_t)64 << 20)
#define NODES_LIMIT 4096
#define OPERATIONS_LIMIT 1000000

struct row {
	bool pipeline;
	long start, first, end, last, length;
	int line;
};

/* The file of one rank. */
struct table {
	char *path;
	struct row *rows;
	int count;
};

struct reader {
	struct table *tables; /* node * locals + local */
	int nodes, locals, stages;
	struct ocs_phase_tables *result;
	size_t operations;
};

static int row_parse(const struct table *table, const char *text, int line, struct row *row,
		     struct ocs_error *err)
{
	char label[16];
	int end = 0;

	row->line = line;
	if (sscanf(text,
		   "%15s start_backend: %ld start_idx: %ld end_backend: %ld end_idx: %ld len: %ld %n",
		   label, &row->start, &row->first, &row->end, &row->last, &row->length,
		   &end) != 6 ||
	    !end || text[end])
		return ocs_error_set(
			err, OCS_USAGE,
			"%s, line %d: not a phase: \"KIND start_backend: G start_idx: I "
			"end_backend: G end_idx: I len: N\" is one",
			table->path, line);
	row->pipeline = strcmp(label, "PP") == 0;
	if (!row->pipeline && strcmp(label, "DP") != 0)
		return ocs_error_set(err, OCS_USAGE, "%s, line %d: phases are PP or DP, not %s",
				     table->path, line, label);
	if (row->first < 0 || row->last < 0 || row->length < 1 || row->length > OPERATIONS_LIMIT)
		return ocs_error_set(err, OCS_USAGE, "%s, line %d: numbers out of range",
				     table->path, line);
	return 0;
}

static int table_read(struct table *table, struct ocs_error *err)
{
	char *text = ocs_file_read(table->path, FILE_LIMIT, NULL, err), *at = text;
	int line = 0, rc = 0;

	if (!text)
		return -1;
	while (!rc && *at) {
		size_t length = strcspn(at, "\n");
		char *next = at + length + (at[length] == '\n');

		at[length] = '\0';
		if (++line > 1 && at[strspn(at, " \t\r")]) {
			table->rows =
				ocs_realloc(table->rows, (table->count + 1) * sizeof(*table->rows));
			rc = row_parse(table, at, line, &table->rows[table->count++], err);
		}
		at = next;
	}
	free(text);
	return rc;
}

/* How many nodes and local ranks FOLDER has files of. */
static int folder_count(const char *folder, struct reader *reader, struct ocs_error *err)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	int files = 0;

	if (!dir)
		return ocs_error_set(err, OCS_USAGE, "%s cannot be read: %m", folder);
	while ((entry = readdir(dir))) {
		int node, local, end = 0;

		if (sscanf(entry->d_name, "comm_pattern_%4d_rank%4d.txt%n", &node, &local, &end) !=
			    2 ||
		    !end || entry->d_name[end] || node < 0 || local < 0 || local >= 64)
			continue;
		files++;
		if (node >= reader->nodes)
			reader->nodes = node + 1;
		if (local >= reader->locals)
			reader->locals = local + 1;
	}
	closedir(dir);
	if (!files)
		return ocs_error_set(err, OCS_USAGE, "%s has no files comm_pattern_N_rankL.txt",
				     folder);
	if (reader->nodes > NODES_LIMIT || files != reader->nodes * reader->locals)
		return ocs_error_set(
			err, OCS_USAGE,
			"%s has %d files of %d nodes with %d local ranks; some are missing", folder,
			files, reader->nodes, reader->locals);
	return 0;
}

static bool tables_equal(const struct table *a, const struct table *b)
{
	if (a->count != b->count)
		return false;
	for (int i = 0; i < a->count; i++) {
		const struct row *x = &a->rows[i], *y = &b->rows[i];

		if (x->pipeline != y->pipeline || x->start != y->start || x->first != y->first ||
		    x->end != y->end || x->last != y->last)
			return false;
	}
	return true;
}

static bool table_has(const struct table *table, long group)
{
	for (int i = 0; i < table->count; i++)
		if (table->rows[i].start == group || table->rows[i].end == group)
			return true;
	return false;
}

/* The nodes whose table of LOCAL has GROUP, ascending, in NODES; returns how many. */
static int nodes_having(const struct reader *reader, long group, int local, int *nodes)
{
	int count = 0;

	for (int node = 0; node < reader->nodes; node++)
		if (table_has(&reader->tables[node * reader->locals + local], group))
			nodes[count++] = node;
	return count;
}

/* Nodes with equal tables are of one stage, where numbers are the node's own (two stages may have equal
 * ones); where rings are numbered for the whole job, they are the stages; without rings every node is
 * one. */
static int stages_find(struct reader *reader, struct ocs_error *err)
{
	int *nodes = ocs_calloc(reader->nodes, sizeof(int)), most = 0, ring = 1, distinct = 1;

	for (int node = 0; node < reader->nodes; node++) {
		const struct table *table = &reader->tables[node * reader->locals];

		if (node && !tables_equal(table, table - reader->locals))
			distinct++;
		for (int i = 0; i < table->count; i++) {
			int count = nodes_having(reader, table->rows[i].start, 0, nodes);

			if (table->rows[i].pipeline && count > most)
				most = count;
			if (!table->rows[i].pipeline && count > ring)
				ring = count;
		}
	}
	free(nodes);
	if (!reader->stages)
		reader->stages = most <= 2 ? reader->nodes / ring : distinct < 2 ? 2 : distinct;
	if (reader->stages < 1 || reader->nodes % reader->stages)
		return ocs_error_set(err, OCS_USAGE,
				     "%d nodes are not %d stages of equal size; give --stages",
				     reader->nodes, reader->stages);
	return 0;
}

/* The nodes of GROUP as NODE knows it. */
static int members_find(const struct reader *reader, const struct row *row, long group, int node,
			int local, int *nodes, struct ocs_error *err)
{
	int count = nodes_having(reader, group, local, nodes);
	int width = reader->nodes / reader->stages, stage = node / width;

	if (row->pipeline && count <= 2)
		return count;
	if (row->pipeline) {
		if (reader->stages != 2)
			return ocs_error_set(
				err, OCS_USAGE,
				"pipeline group %ld has %d nodes; of %d stages it cannot be told "
				"who sends to whom",
				group, count, reader->stages);
		nodes[0] = node % width;
		nodes[1] = node % width + width;
		return 2;
	}
	for (int i = 0; i < width; i++)
		nodes[i] = stage * width + i;
	return width;
}

/* Tables are of operations over circuits: others would have nothing to replay. */
static int members_check(const struct reader *reader, long group, const int *nodes, int count,
			 struct ocs_error *err)
{
	struct ocs_rails_need need = ocs_rails_group_need(&reader->result->layout, nodes, count);

	if (need.kind == OCS_RAILS_STAGE || need.kind == OCS_RAILS_LINE)
		return 0;
	return ocs_error_set(
		err, OCS_USAGE,
		"group %ld joins %d nodes, the first is %d: neither neighbouring stages nor a ring "
		"of %d stages with %d nodes each",
		group, count, nodes[0], reader->stages, reader->nodes / reader->stages);
}

/* Index of the group that NODE calls NUMBER, made where it is new; -1 with ERR. */
static int group_get(struct reader *reader, const struct row *row, long number, int node, int local,
		     struct ocs_error *err)
{
	struct ocs_phase_tables *result = reader->result;
	int *nodes = ocs_calloc(reader->nodes, sizeof(int)), index;
	int count = members_find(reader, row, number, node, local, nodes, err);
	struct ocs_phase_group *group;

	if (count > 0 && members_check(reader, number, nodes, count, err) < 0)
		count = -1;
	if (count < 1) {
		free(nodes);
		return -1;
	}
	for (index = 0; index < result->ngroups; index++) {
		group = &result->groups[index];
		if (group->number == number && group->rail == local && group->count == count &&
		    group->ranks[0] == nodes[0] * reader->locals + local)
			break;
	}
	if (index == result->ngroups) {
		result->groups = ocs_realloc(result->groups,
					     (result->ngroups + 1) * sizeof(*result->groups));
		group = &result->groups[result->ngroups++];
		*group = (struct ocs_phase_group){
			.number = number, .rail = local, .pipeline = row->pipeline, .count = count
		};
		group->ranks = ocs_calloc(count, sizeof(int));
		for (int i = 0; i < count; i++)
			group->ranks[i] = nodes[i] * reader->locals + local;
	}
	free(nodes);
	return index;
}

static void operation_add(struct reader *reader, int rank, int group, uint64_t idx, int phase)
{
	struct ocs_phase_rank *to = &reader->result->ranks[rank];

	/* doubled at each power of 2 */
	if ((to->count & (to->count + 1)) == 0)
		to->operations =
			ocs_realloc(to->operations, (to->count * 2 + 1) * sizeof(*to->operations));
	to->operations[to->count++] = (struct ocs_phase_operation){ group, idx, phase };
	reader->operations++;
}

/* What one rank has expanded so far: the next operation of each number, or -1. */
struct progress {
	long number, next;
};

struct expansion {
	int node, local;
	struct progress *progress;
	int count;
};

static long *progress_get(struct expansion *expansion, long number)
{
	for (int i = 0; i < expansion->count; i++)
		if (expansion->progress[i].number == number)
			return &expansion->progress[i].next;
	expansion->progress =
		ocs_realloc(expansion->progress, (expansion->count + 1) * sizeof(struct progress));
	expansion->progress[expansion->count] = (struct progress){ number, -1 };
	return &expansion->progress[expansion->count++].next;
}

static int run_add(struct reader *reader, struct expansion *expansion, const struct row *row,
		   long number, long first, long last, struct ocs_error *err)
{
	int rank = expansion->node * reader->locals + expansion->local, group;
	const char *path = reader->tables[rank].path;
	long *next = progress_get(expansion, number), from = *next < 0 ? first : *next;

	if (first < from || last < first || last - from > OPERATIONS_LIMIT ||
	    reader->operations + (size_t)(last - from) > OPERATIONS_LIMIT)
		return ocs_error_set(
			err, OCS_USAGE,
			"%s, line %d: operations %ld to %ld of group %ld do not follow %ld", path,
			row->line, first, last, number, from - 1);
	group = group_get(reader, row, number, expansion->node, expansion->local, err);
	if (group < 0)
		return -1;
	if (reader->result->groups[group].ranks[0] == rank)
		reader->result->groups[group].skipped += (uint64_t)(first - from);
	for (long idx = from; idx <= last; idx++)
		operation_add(reader, rank, group, (uint64_t)idx, idx < first ? -1 : row->line);
	*next = last + 1;
	return 0;
}

/* A phase that ends in another group: its part there begins where that group was left. */
static int row_expand(struct reader *reader, struct expansion *expansion, const struct row *row,
		      struct ocs_error *err)
{
	const char *path = reader->tables[expansion->node * reader->locals + expansion->local].path;
	long second, first;

	if (row->start == row->end) {
		if (row->last - row->first + 1 != row->length)
			return ocs_error_set(err, OCS_USAGE,
					     "%s, line %d: %ld to %ld are not %ld operations", path,
					     row->line, row->first, row->last, row->length);
		return run_add(reader, expansion, row, row->start, row->first, row->last, err);
	}
	second = *progress_get(expansion, row->end);
	first = row->length - (row->last - second + 1);
	if (second < 0 || first < 1 || first >= row->length)
		return ocs_error_set(
			err, OCS_USAGE,
			"%s, line %d: where group %ld ends and %ld begins cannot be told", path,
			row->line, row->start, row->end);
	if (run_add(reader, expansion, row, row->start, row->first, row->first + first - 1, err) <
	    0)
		return -1;
	return run_add(reader, expansion, row, row->end, second, row->last, err);
}

static int ranks_expand(struct reader *reader, struct ocs_error *err)
{
	int rc = 0;

	for (int rank = 0; !rc && rank < reader->nodes * reader->locals; rank++) {
		struct expansion expansion = { .node = rank / reader->locals,
					       .local = rank % reader->locals };

		for (int i = 0; !rc && i < reader->tables[rank].count; i++)
			rc = row_expand(reader, &expansion, &reader->tables[rank].rows[i], err);
		free(expansion.progress);
	}
	return rc;
}

static int reader_read(struct reader *reader, const char *folder, struct ocs_error *err)
{
	struct ocs_phase_tables *result = reader->result;

	for (int i = 0; i < reader->nodes * reader->locals; i++) {
		reader->tables[i].path = ocs_asprintf("%s/comm_pattern_%d_rank%d.txt", folder,
						      i / reader->locals, i % reader->locals);
		if (table_read(&reader->tables[i], err) < 0)
			return -1;
	}
	if (stages_find(reader, err) < 0)
		return -1;
	result->nodes = reader->nodes;
	result->rails = reader->locals;
	result->layout = (struct ocs_rails_layout){
		.ndim = 2,
		.extent = { reader->stages, reader->nodes / reader->stages },
		.asymmetric = 0,
		.ports = 2,
	};
	if (ocs_rails_layout_check(&result->layout, err) < 0)
		return -1;
	return ranks_expand(reader, err);
}

struct ocs_phase_tables *ocs_phase_tables_read(const char *folder, int stages,
					       struct ocs_error *err)
{
	struct reader reader = { .stages = stages };
	int rc;

	if (folder_count(folder, &reader, err) < 0)
		return NULL;
	reader.tables = ocs_calloc(reader.nodes * reader.locals, sizeof(*reader.tables));
	reader.result = ocs_calloc(1, sizeof(*reader.result));
	reader.result->ranks =
		ocs_calloc(reader.nodes * reader.locals, sizeof(*reader.result->ranks));
	reader.result->nodes = reader.nodes;
	reader.result->rails = reader.locals;
	rc = reader_read(&reader, folder, err);
	for (int i = 0; i < reader.nodes * reader.locals; i++) {
		free(reader.tables[i].path);
		free(reader.tables[i].rows);
	}
	free(reader.tables);
	if (!rc)
		return reader.result;
	ocs_phase_tables_free(reader.result);
	return NULL;
}

void ocs_phase_tables_free(struct ocs_phase_tables *tables)
{
	if (!tables)
		return;
	for (int i = 0; i < tables->nodes * tables->rails; i++)
		free(tables->ranks[i].operations);
	for (int i = 0; i < tables->ngroups; i++)
		free(tables->groups[i].ranks);
	free(tables->ranks);
	free(tables->groups);
	free(tables);
}
