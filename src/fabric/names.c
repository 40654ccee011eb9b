/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/fabric/names.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/util/text.h"

struct slot {
	const char *name;
	int value;
};

struct ocs_names {
	struct slot *slots; /* open addressing; a power of two, at most half full */
	size_t size, used;
};

struct ocs_names *ocs_names_create(size_t expected)
{
	struct ocs_names *names = ocs_calloc(1, sizeof(*names));

	names->size = 16;
	while (names->size < 2 * expected)
		names->size *= 2;
	names->slots = ocs_calloc(names->size, sizeof(*names->slots));
	return names;
}

void ocs_names_destroy(struct ocs_names *names)
{
	if (!names)
		return;
	free(names->slots);
	free(names);
}

/* FNV-1a: names differ mostly in their last digits, which it spreads well. */
static size_t name_hash(const char *name)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * 0x100000001b3u;
	return (size_t)(hash ^ (hash >> 32));
}

static struct slot *slot_find(const struct ocs_names *names, const char *name)
{
	size_t at = name_hash(name) & (names->size - 1);

	while (names->slots[at].name && strcmp(names->slots[at].name, name) != 0)
		at = (at + 1) & (names->size - 1);
	return &names->slots[at];
}

static void names_grow(struct ocs_names *names)
{
	struct slot *old = names->slots;
	size_t size = names->size;

	names->size *= 2;
	names->slots = ocs_calloc(names->size, sizeof(*names->slots));
	for (size_t i = 0; i < size; i++)
		if (old[i].name)
			*slot_find(names, old[i].name) = old[i];
	free(old);
}

int ocs_names_add(struct ocs_names *names, const char *name, int value)
{
	struct slot *slot = slot_find(names, name);

	if (slot->name)
		return slot->value;
	if (2 * (names->used + 1) > names->size) {
		names_grow(names);
		slot = slot_find(names, name);
	}
	slot->name = name;
	slot->value = value;
	names->used++;
	return -1;
}

int ocs_names_find(const struct ocs_names *names, const char *name)
{
	const struct slot *slot;

	if (!names || !name)
		return -1;
	slot = slot_find(names, name);
	return slot->name ? slot->value : -1;
}
