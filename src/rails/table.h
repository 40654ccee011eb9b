/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_RAILS_TABLE_H
#define OCS_RAILS_TABLE_H

/* Things by the number of a group.  Zero-initialise; the things are the caller's. */

#include <stddef.h>
#include <stdint.h>

struct ocs_rails_table {
	struct ocs_rails_entry {
		uint64_t id;
		void *thing; /* NULL: an empty place */
	} * entries;
	size_t count, size;
};

/* The thing of ID, or NULL. */
void *ocs_rails_table_get(const struct ocs_rails_table *table, uint64_t id);
/* Adds THING, not NULL, whose ID is not there yet. */
void ocs_rails_table_add(struct ocs_rails_table *table, uint64_t id, void *thing);
/* Frees the table, and its things by RELEASE. */
void ocs_rails_table_free(struct ocs_rails_table *table, void (*release)(void *thing));

#endif
