/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Copies of an ocs.yaml that was taken.  The last line, a comment, holds the digest of the text
 * before it: a copy that was cut short may well be a description, but of a smaller machine. */

#include "src/config/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/fabric/fabric.h"
#include "src/util/error.h"
#include "src/util/text.h"

#define BYTES_MAX (64U << 20)
#define MARK "\n# slurm-ocs took the text above, digest "
#define MARK_DIGITS 16
#define MARK_BYTES (sizeof(MARK) - 1 + MARK_DIGITS + 1)

static void mark_format(const char *text, size_t length, char mark[MARK_BYTES + 1])
{
	snprintf(mark, MARK_BYTES + 1, MARK "%016llx\n",
		 (unsigned long long)ocs_fabric_text_digest(text, length));
}

size_t ocs_fabric_text_length(const char *text, size_t length)
{
	char mark[MARK_BYTES + 1];
	size_t before;

	if (length < MARK_BYTES)
		return length;
	before = length - MARK_BYTES;
	mark_format(text, before, mark);
	return memcmp(text + before, mark, MARK_BYTES) ? length : before;
}

int ocs_fabric_keep(const struct ocs_fabric *fabric, const char *path, struct ocs_error *err)
{
	char mark[MARK_BYTES + 1], *text, *marked;
	size_t length;
	int rc;

	text = ocs_file_read(fabric->source, BYTES_MAX, &length, err);
	if (!text)
		return -1;
	length = ocs_fabric_text_length(text, length);
	if (ocs_fabric_text_digest(text, length) != fabric->text_digest) {
		free(text);
		return ocs_error_set(err, OCS_ERROR, "%s has changed since it was read",
				     fabric->source);
	}
	mark_format(text, length, mark);
	marked = ocs_calloc(length + MARK_BYTES + 1, 1);
	memcpy(marked, text, length);
	memcpy(marked + length, mark, MARK_BYTES);
	rc = ocs_file_write(path, marked, length + MARK_BYTES, 0644, err);
	free(marked);
	free(text);
	return rc;
}

struct ocs_fabric *ocs_fabric_kept(const char *path, struct ocs_error *err)
{
	struct ocs_fabric *fabric = NULL;
	size_t length;
	char *text = ocs_file_read(path, BYTES_MAX, &length, err);

	if (text && ocs_fabric_text_length(text, length) == length)
		ocs_error_set(err, OCS_ERROR, "%s was cut short or changed since it was written", path);
	else if (text)
		fabric = ocs_fabric_parse(text, length, path, err);
	free(text);
	return fabric;
}
