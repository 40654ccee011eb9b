/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <stdlib.h>
#include <string.h>

#include "src/switch/switch.h"
#include "src/util/error.h"
#include "src/util/text.h"

void ocs_table_init(struct ocs_table *table, int size)
{
	table->size = size;
	table->out = ocs_calloc((size_t)size + 1, sizeof(*table->out));
}

void ocs_table_copy(struct ocs_table *copy, const struct ocs_table *table)
{
	ocs_table_init(copy, table->size);
	memcpy(copy->out, table->out, ((size_t)table->size + 1) * sizeof(*copy->out));
}

void ocs_table_free(struct ocs_table *table)
{
	free(table->out);
	table->out = NULL;
	table->size = 0;
}

/* Room for the work: every array has entries 1..size (ingress) or, for the
 * egress ports, 1..size for port size+1.. */
struct work {
	int size;
	int *peer;	  /* ingress of each egress, actual */
	bool *removed;	  /* ingress: its actual patch is in REMOVE */
	int *wanted;	  /* ingress: egress in ADD */
	int *wanted_peer; /* egress: ingress in ADD */
};

static int check_port(const struct ocs_patch *patch, int size, struct ocs_error *err)
{
	if (patch->in >= 1 && patch->in <= size && patch->out > size && patch->out <= 2 * size)
		return 0;
	return ocs_error_set(
		err, OCS_USAGE,
		"patch %d>%d does not exist on a %dx%d switch (ingress 1..%d, egress %d..%d)",
		patch->in, patch->out, size, size, size, size + 1, 2 * size);
}

/* Notes what ADD wants; two adds must not share a port. */
static int note_wanted(struct work *work, const struct ocs_patch *add, size_t nadd,
		       struct ocs_error *err)
{
	for (size_t i = 0; i < nadd; i++) {
		int in = add[i].in, out = add[i].out, other;

		if (check_port(&add[i], work->size, err))
			return -1;
		other = work->wanted[in];
		if (other && other != out)
			return ocs_error_set(
				err, OCS_ERROR,
				"patches %d>%d and %d>%d are both to be made but share ingress %d",
				in, other, in, out, in);
		other = work->wanted_peer[out - work->size];
		if (other && other != in)
			return ocs_error_set(
				err, OCS_ERROR,
				"patches %d>%d and %d>%d are both to be made but share egress %d",
				other, out, in, out, out);
		work->wanted[in] = out;
		work->wanted_peer[out - work->size] = in;
	}
	return 0;
}

/* A wanted port must be free, or be freed by REMOVE. */
static int check_taken(const struct work *work, const struct ocs_table *actual,
		       struct ocs_error *err)
{
	for (int in = 1; in <= work->size; in++) {
		int out = work->wanted[in], holder;

		if (!out || actual->out[in] == out)
			continue;
		if (actual->out[in] && !work->removed[in])
			return ocs_error_set(
				err, OCS_ERROR,
				"patch %d>%d is in the way of %d>%d and is not among those to be removed",
				in, actual->out[in], in, out);
		holder = work->peer[out - work->size];
		if (holder && !work->removed[holder])
			return ocs_error_set(
				err, OCS_ERROR,
				"patch %d>%d is in the way of %d>%d and is not among those to be removed",
				holder, out, in, out);
	}
	return 0;
}

static int tables_diff(struct work *work, const struct ocs_table *actual,
		       const struct ocs_patch *remove, size_t nremove, const struct ocs_patch *add,
		       size_t nadd, struct ocs_switch_diff *result, struct ocs_error *err)
{
	for (int in = 1; in <= work->size; in++)
		if (actual->out[in])
			work->peer[actual->out[in] - work->size] = in;
	if (note_wanted(work, add, nadd, err))
		return -1;
	for (size_t i = 0; i < nremove; i++) {
		if (check_port(&remove[i], work->size, err))
			return -1;
		if (actual->out[remove[i].in] == remove[i].out &&
		    work->wanted[remove[i].in] != remove[i].out)
			work->removed[remove[i].in] = true;
	}
	if (check_taken(work, actual, err))
		return -1;
	for (int in = 1; in <= work->size; in++) {
		if (work->removed[in])
			result->remove[result->nremove++] =
				(struct ocs_patch){ in, actual->out[in] };
		if (work->wanted[in] && actual->out[in] != work->wanted[in])
			result->add[result->nadd++] = (struct ocs_patch){ in, work->wanted[in] };
	}
	return 0;
}

int ocs_switch_diff(const struct ocs_table *actual, const struct ocs_patch *remove, size_t nremove,
		    const struct ocs_patch *add, size_t nadd, struct ocs_switch_diff *result,
		    struct ocs_error *err)
{
	size_t entries = (size_t)actual->size + 1;
	struct work work = {
		.size = actual->size,
		.peer = ocs_calloc(entries, sizeof(int)),
		.removed = ocs_calloc(entries, sizeof(bool)),
		.wanted = ocs_calloc(entries, sizeof(int)),
		.wanted_peer = ocs_calloc(entries, sizeof(int)),
	};
	int rc;

	memset(result, 0, sizeof(*result));
	result->remove = ocs_calloc(entries, sizeof(*result->remove));
	result->add = ocs_calloc(entries, sizeof(*result->add));
	rc = tables_diff(&work, actual, remove, nremove, add, nadd, result, err);
	free(work.peer);
	free(work.removed);
	free(work.wanted);
	free(work.wanted_peer);
	if (rc)
		ocs_switch_diff_free(result);
	return rc;
}

void ocs_switch_diff_free(struct ocs_switch_diff *result)
{
	free(result->remove);
	free(result->add);
	memset(result, 0, sizeof(*result));
}
