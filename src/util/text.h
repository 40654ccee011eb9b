/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_UTIL_TEXT_H
#define OCS_UTIL_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

/* A growing string.  Zero-initialise; data is NULL or NUL-terminated. */
struct ocs_text {
	char *data;
	size_t length;
	size_t size;
};

/* Appends; aborts the process when memory is exhausted. */
void ocs_text_add(struct ocs_text *text, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The same for LENGTH bytes as they are, and for a number: what is added by the
 * thousand needs no format. */
void ocs_text_put(struct ocs_text *text, const char *bytes, size_t length);
void ocs_text_number(struct ocs_text *text, long number);

/* The same for what people wrote, as XML wants it; control characters become blanks. */
void ocs_text_xml(struct ocs_text *text, const char *words);

/* Makes TEXT one line that a terminal shows as it stands: control characters (C0, DEL,
 * C1), characters that turn the direction of writing or break lines, and bytes that are
 * no UTF-8 become '?'.  Works in place; the text may become shorter.  Returns TEXT. */
char *ocs_text_clean(char *text);
/* Whether ocs_text_clean would leave TEXT as it is. */
bool ocs_text_is_clean(const char *text);

/* Hands the string over (never NULL); the caller frees it; TEXT is empty after. */
char *ocs_text_take(struct ocs_text *text);

void ocs_text_free(struct ocs_text *text);

/* calloc, realloc, strdup and asprintf that abort when memory is exhausted. */
void *ocs_calloc(size_t count, size_t size);
void *ocs_realloc(void *memory, size_t size);
char *ocs_strdup(const char *text);
char *ocs_asprintf(const char *format, ...) __attribute__((format(printf, 1, 2)));
char *ocs_vasprintf(const char *format, va_list args) __attribute__((format(printf, 1, 0)));

/* Parses a whole decimal number in [MIN, MAX]; sign, blanks, hex, overflow and
 * trailing characters are refused.  Returns 0 or -1. */
int ocs_number_parse(const char *text, long min, long max, long *value);

/* Whether LIST, "a,b", has the word of LENGTH bytes at WORD, in that case.  NULL has none. */
bool ocs_list_has(const char *list, const char *word, size_t length);

/* Reads a whole file of at most LIMIT bytes; NUL-terminated, caller frees;
 * LENGTH may be NULL.  Returns NULL and fills ERR. */
struct ocs_error;
char *ocs_file_read(const char *path, size_t limit, size_t *length, struct ocs_error *err);

/* Writes atomically (temporary file in the same folder, fsync, rename) with MODE.
 * Returns 0, or -1 with ERR. */
int ocs_file_write(const char *path, const char *data, size_t length, unsigned int mode,
		   struct ocs_error *err);

#endif
