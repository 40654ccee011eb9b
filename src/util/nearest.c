/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/util/nearest.h"

#include <limits.h>
#include <string.h>

#define WORD_MAX 64
#define EDITS_MAX 3

/* Edits between two words: insert, delete, change, swap neighbours. */
static int edit_distance(const char *a, const char *b)
{
	int row[3][WORD_MAX + 1] = { { 0 } };
	size_t la = strlen(a), lb = strlen(b);

	if (la > WORD_MAX || lb > WORD_MAX)
		return INT_MAX;
	for (size_t j = 0; j <= lb; j++)
		row[0][j] = (int)j;
	for (size_t i = 1; i <= la; i++) {
		const int *last = row[(i - 1) % 3], *before = row[(i + 1) % 3];
		int *now = row[i % 3];

		now[0] = (int)i;
		for (size_t j = 1; j <= lb; j++) {
			now[j] = last[j - 1] + (a[i - 1] != b[j - 1]);
			if (last[j] + 1 < now[j])
				now[j] = last[j] + 1;
			if (now[j - 1] + 1 < now[j])
				now[j] = now[j - 1] + 1;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    before[j - 2] + 1 < now[j])
				now[j] = before[j - 2] + 1;
		}
	}
	return row[la % 3][lb];
}

const char *ocs_nearest(const char *word, const char *const *names, size_t count)
{
	size_t length = strlen(word);
	/* Half the word may be wrong: beyond that a suggestion is noise. */
	int best = length < 4 ? 2 : length / 2 < EDITS_MAX ? (int)length / 2 + 1 : EDITS_MAX + 1;
	const char *nearest = NULL;

	for (size_t i = 0; i < count; i++) {
		/* A word cut short ("sect") is meant, whatever is missing. */
		int edits = length >= 3 && !strncmp(word, names[i], length) ?
				    0 :
				    edit_distance(word, names[i]);

		if (edits < best) {
			best = edits;
			nearest = names[i];
		}
	}
	return nearest;
}
