/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/plugins/job_submit/extra.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "src/util/text.h"

/* A word that ocs_shape_extra_format writes. */
static bool word_ours(const char *word, size_t length)
{
	return (length >= 6 && !strncmp(word, "shape=", 6)) ||
	       (length >= 5 && !strncmp(word, "conn=", 5)) ||
	       (length >= 7 && !strncmp(word, "phases=", 7)) ||
	       (length >= 4 && !strncmp(word, "moe=", 4)) ||
	       (length == 9 && !strncmp(word, "no-rotate", 9)) ||
	       (length == 7 && !strncmp(word, "no-fold", 7));
}

char *ocs_extra_with(const char *extra, const struct ocs_shape *shape)
{
	char *words = ocs_shape_extra_format(shape);
	struct ocs_text text = { 0 };
	const char *at = extra ? extra : "";

	while (*at) {
		size_t blank = strspn(at, " \t\n"), length = strcspn(at + blank, " \t\n");
		size_t skip = text.length ? 0 : blank;

		/* Blanks between the user's own words stay as they were. */
		if (length && !word_ours(at + blank, length))
			ocs_text_add(&text, "%.*s", (int)(blank + length - skip), at + skip);
		at += blank + length;
	}
	ocs_text_add(&text, "%s%s", text.length ? " " : "", words);
	free(words);
	return ocs_text_take(&text);
}
