/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/rails/predict.h"

#include <stdlib.h>

#include "src/util/hash.h"
#include "src/util/text.h"

#define PAST 8	     /* phases of a stage that are remembered, */
#define ENTRIES 8192 /* and a power of 2 */
#define SURE 2	     /* seen that often in a row, */
#define MOST 3	     /* and counted no further */

/* How many past phases each memory compares, the longest first. */
static const int orders[] = { PAST, 3, 1 };

#define ORDERS (int)(sizeof(orders) / sizeof(orders[0]))

struct phase {
	int digit, length;
};

struct memory {
	uint64_t key;
	int digit, confidence;
};

struct stage {
	struct phase now, past[PAST]; /* the latest first */
	int wish;
};

struct ocs_rails_predict {
	struct memory *entries;
	struct stage *stages;
};

struct ocs_rails_predict *ocs_rails_predict_create(int stages)
{
	struct ocs_rails_predict *predict = ocs_calloc(1, sizeof(*predict));

	predict->entries = ocs_calloc(ENTRIES, sizeof(*predict->entries));
	predict->stages = ocs_calloc(stages, sizeof(*predict->stages));
	for (int i = 0; i < stages; i++) {
		predict->stages[i].now.digit = -1;
		predict->stages[i].wish = -1;
	}
	return predict;
}

void ocs_rails_predict_destroy(struct ocs_rails_predict *predict)
{
	if (!predict)
		return;
	free(predict->entries);
	free(predict->stages);
	free(predict);
}

static struct memory *memory_find(const struct ocs_rails_predict *predict, int stage, int order,
				  uint64_t *key)
{
	const struct stage *at = &predict->stages[stage];

	*key = ocs_hash(OCS_HASH_START, &stage, sizeof(stage));
	*key = ocs_hash(*key, &order, sizeof(order));
	*key = ocs_hash(*key, &at->now, sizeof(at->now));
	*key = ocs_hash(*key, at->past, order * sizeof(at->past[0]));
	return &predict->entries[*key % ENTRIES];
}

static void memory_learn(struct memory *memory, uint64_t key, int digit)
{
	if (memory->key == key && memory->confidence && memory->digit == digit) {
		if (memory->confidence < MOST)
			memory->confidence++;
	} else if (memory->key == key && memory->confidence > 1) {
		memory->confidence = 1;
	} else {
		*memory = (struct memory){ key, digit, 1 };
	}
}

void ocs_rails_predict_learn(struct ocs_rails_predict *predict, int stage, int digit)
{
	struct stage *at = &predict->stages[stage];
	uint64_t key;

	for (int i = 0; i < ORDERS; i++) {
		struct memory *memory = memory_find(predict, stage, orders[i], &key);

		memory_learn(memory, key, digit);
	}
	at->wish = -1;
	if (at->now.digit == digit) {
		at->now.length++;
		return;
	}
	for (int i = PAST - 1; i > 0; i--)
		at->past[i] = at->past[i - 1];
	at->past[0] = at->now;
	at->now = (struct phase){ digit, 1 };
}

void ocs_rails_predict_wish(struct ocs_rails_predict *predict, int stage, int digit)
{
	predict->stages[stage].wish = digit;
}

int ocs_rails_predict_next(const struct ocs_rails_predict *predict, int stage)
{
	uint64_t key;

	if (predict->stages[stage].wish >= 0)
		return predict->stages[stage].wish;
	for (int i = 0; i < ORDERS; i++) {
		const struct memory *memory = memory_find(predict, stage, orders[i], &key);

		if (memory->key == key && memory->confidence >= SURE)
			return memory->digit;
	}
	return -1;
}
