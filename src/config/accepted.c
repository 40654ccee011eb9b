/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Copies of an ocs.yaml that was taken.  The last line, a comment, holds the digest of the text
 * before it: a copy that was cut short may well be a description, but of a smaller machine. */

#include "src/config/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/util/error.h"
#include "src/util/hash.h"
#include "src/util/text.h"

#define BYTES_MAX (64U << 20)
#define MARK "\n# slurm-ocs took the text above, digest "
#define MARK_DIGITS 16
#define MARK_BYTES (sizeof(MARK) - 1 + MARK_DIGITS + 1)

uint64_t ocs_config_text_digest(const char *text, size_t length)
{
	return ocs_hash(OCS_HASH_START, text, length);
}

static void mark_format(const char *text, size_t length, char mark[MARK_BYTES + 1])
{
	snprintf(mark, MARK_BYTES + 1, MARK "%016llx\n",
		 (unsigned long long)ocs_config_text_digest(text, length));
}

size_t ocs_config_text_length(const char *text, size_t length)
{
	char mark[MARK_BYTES + 1];
	size_t before;

	if (length < MARK_BYTES)
		return length;
	before = length - MARK_BYTES;
	mark_format(text, before, mark);
	return memcmp(text + before, mark, MARK_BYTES) ? length : before;
}

static int write_marked(const char *path, const char *text, size_t length, struct ocs_error *err)
{
	char *marked = ocs_calloc(length + MARK_BYTES + 1, 1);
	int rc;

	memcpy(marked, text, length);
	mark_format(text, length, marked + length);
	rc = ocs_file_write(path, marked, length + MARK_BYTES, 0644, err);
	free(marked);
	return rc;
}

/* The text that was written so, without the mark; NULL with ERR. */
static char *read_marked(const char *path, size_t *length, struct ocs_error *err)
{
	char *text = ocs_file_read(path, BYTES_MAX, length, err);
	size_t before = text ? ocs_config_text_length(text, *length) : 0;

	if (!text)
		return NULL;
	if (before == *length) {
		free(text);
		ocs_error_set(err, OCS_ERROR, "%s was cut short or changed since it was written",
			      path);
		return NULL;
	}
	text[before] = '\0';
	*length = before;
	return text;
}

int ocs_config_keep(const struct ocs_config *config, const char *path, struct ocs_error *err)
{
	const char *source = config->fabric->source;
	size_t length;
	char *text;
	int rc;

	text = ocs_file_read(source, BYTES_MAX, &length, err);
	if (!text)
		return -1;
	length = ocs_config_text_length(text, length);
	if (ocs_config_text_digest(text, length) != config->text_digest) {
		free(text);
		return ocs_error_set(err, OCS_ERROR, "%s has changed since it was read", source);
	}
	rc = write_marked(path, text, length, err);
	free(text);
	return rc;
}

struct ocs_config *ocs_config_kept(const char *path, struct ocs_error *err)
{
	struct ocs_config *config = NULL;
	size_t length;
	char *text = read_marked(path, &length, err);

	if (text)
		config = ocs_config_parse(text, length, path, err);
	free(text);
	return config;
}

static bool all_get_circuits(const struct ocs_section *section)
{
	return section && (section->kind == OCS_RAILS || section->kind == OCS_DIRECT ||
			   section->kind == OCS_REGION);
}

int ocs_config_partitions_keep(const struct ocs_fabric *fabric, const char *path,
			       struct ocs_error *err)
{
	/* No partition has this name: what serves all that are not named. */
	bool others = all_get_circuits(ocs_fabric_section(fabric, "*"));
	struct ocs_text text = { 0 };
	int rc;

	ocs_text_add(&text, "# partitions whose jobs all get circuits\n");
	for (int i = 0; i < fabric->nsections; i++) {
		const struct ocs_section *section = &fabric->sections[i];
		bool all = all_get_circuits(section);

		for (size_t j = 0; all != others && j < section->npartitions; j++)
			ocs_text_add(&text, "%s%s\n", all ? "" : "!", section->partitions[j]);
	}
	if (others)
		ocs_text_add(&text, "*\n");
	rc = write_marked(path, text.data, text.length, err);
	ocs_text_free(&text);
	return rc;
}

char *ocs_config_partitions_kept(const char *path, struct ocs_error *err)
{
	size_t length;

	return read_marked(path, &length, err);
}

/* Whether TEXT has the line of the signs SIGN and NAME. */
static bool line_there(const char *text, const char *sign, const char *name)
{
	char *line = ocs_asprintf("\n%s%s\n", sign, name);
	bool there = strstr(text, line);

	free(line);
	return there;
}

bool ocs_config_partitions_have(const char *text, const char *partition)
{
	if (line_there(text, "", "*"))
		return !partition || !line_there(text, "!", partition);
	return partition && line_there(text, "", partition);
}
