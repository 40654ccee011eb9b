/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/rails/table.h"

#include <stdlib.h>

#include "src/util/text.h"

/* Where ID is, or the empty place for it; the table is never full. */
static struct ocs_rails_entry *entry_find(const struct ocs_rails_table *table, uint64_t id)
{
	size_t at = (size_t)(id * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (table->size - 1);

	while (table->entries[at].thing && table->entries[at].id != id)
		at = (at + 1) & (table->size - 1);
	return &table->entries[at];
}

void *ocs_rails_table_get(const struct ocs_rails_table *table, uint64_t id)
{
	return table->size ? entry_find(table, id)->thing : NULL;
}

static void table_grow(struct ocs_rails_table *table)
{
	struct ocs_rails_table grown = { .size = table->size ? table->size * 2 : 64 };

	grown.entries = ocs_calloc(grown.size, sizeof(*grown.entries));
	for (size_t i = 0; i < table->size; i++)
		if (table->entries[i].thing)
			*entry_find(&grown, table->entries[i].id) = table->entries[i];
	grown.count = table->count;
	free(table->entries);
	*table = grown;
}

void ocs_rails_table_add(struct ocs_rails_table *table, uint64_t id, void *thing)
{
	if (2 * (table->count + 1) > table->size)
		table_grow(table);
	*entry_find(table, id) = (struct ocs_rails_entry){ id, thing };
	table->count++;
}

void ocs_rails_table_free(struct ocs_rails_table *table, void (*release)(void *thing))
{
	for (size_t i = 0; i < table->size; i++)
		if (table->entries[i].thing)
			release(table->entries[i].thing);
	free(table->entries);
	*table = (struct ocs_rails_table){ 0 };
}
