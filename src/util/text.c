/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/util/text.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/util/error.h"

void *ocs_calloc(size_t count, size_t size)
{
	void *memory = calloc(count ? count : 1, size ? size : 1);

	if (!memory)
		abort();
	return memory;
}

void *ocs_realloc(void *memory, size_t size)
{
	memory = realloc(memory, size ? size : 1);
	if (!memory)
		abort();
	return memory;
}

char *ocs_strdup(const char *text)
{
	char *copy = strdup(text);

	if (!copy)
		abort();
	return copy;
}

char *ocs_vasprintf(const char *format, va_list args)
{
	char *text;

	if (vasprintf(&text, format, args) < 0)
		abort();
	return text;
}

char *ocs_asprintf(const char *format, ...)
{
	va_list args;
	char *text;

	va_start(args, format);
	text = ocs_vasprintf(format, args);
	va_end(args);
	return text;
}

static void text_begin(struct ocs_text *text)
{
	if (text->data)
		return;
	text->size = 256;
	text->data = ocs_calloc(1, text->size);
	text->length = 0;
}

void ocs_text_put(struct ocs_text *text, const char *bytes, size_t length)
{
	text_begin(text);
	if (text->size - text->length <= length) {
		while (text->size - text->length <= length)
			text->size *= 2;
		text->data = ocs_realloc(text->data, text->size);
	}
	memcpy(text->data + text->length, bytes, length);
	text->length += length;
	text->data[text->length] = '\0';
}

bool ocs_list_has(const char *list, const char *word, size_t length)
{
	while (list && *list) {
		size_t here = strcspn(list, ",");

		if (here == length && !strncmp(list, word, length))
			return true;
		list += here + (list[here] == ',');
	}
	return false;
}

void ocs_text_number(struct ocs_text *text, long number)
{
	unsigned long rest = number < 0 ? 0UL - (unsigned long)number : (unsigned long)number;
	char digits[24];
	size_t at = sizeof(digits);

	do
		digits[--at] = (char)('0' + rest % 10);
	while (rest /= 10);
	if (number < 0)
		digits[--at] = '-';
	ocs_text_put(text, digits + at, sizeof(digits) - at);
}

void ocs_text_add(struct ocs_text *text, const char *format, ...)
{
	va_list args;
	int count;

	text_begin(text);
	for (;;) {
		size_t room = text->size - text->length;

		va_start(args, format);
		count = vsnprintf(text->data + text->length, room, format, args);
		va_end(args);
		if (count < 0)
			abort();
		if ((size_t)count < room)
			break;
		while (text->size - text->length <= (size_t)count)
			text->size *= 2;
		text->data = ocs_realloc(text->data, text->size);
	}
	text->length += (size_t)count;
}

void ocs_text_xml(struct ocs_text *text, const char *words)
{
	for (; *words; words++) {
		if (*words == '<' || *words == '>' || *words == '&' || *words == '"')
			ocs_text_add(text, "&#%d;", *words);
		else
			ocs_text_put(text, (unsigned char)*words < 32 ? " " : words, 1);
	}
}

/* The bytes of the UTF-8 character at AT and its *CODE, or 0: none begins there. */
static size_t utf8_take(const unsigned char *at, unsigned long *code)
{
	static const unsigned long least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t length = *at < 0x80 ? 1 :
			*at < 0xc2 ? 0 :
			*at < 0xe0 ? 2 :
			*at < 0xf0 ? 3 :
			*at < 0xf5 ? 4 :
				     0;

	*code = length < 2 ? *at : *at & (0x7fu >> length);
	for (size_t i = 1; i < length; i++) {
		if ((at[i] & 0xc0) != 0x80)
			return 0;
		*code = *code << 6 | (at[i] & 0x3fu);
	}
	if (length &&
	    (*code < least[length] || *code > 0x10ffff || (*code >= 0xd800 && *code <= 0xdfff)))
		return 0;
	return length;
}

/* Controls, line and paragraph separators, marks that are not seen or turn the
 * direction, and what is no character at all. */
static bool code_is_hidden(unsigned long code)
{
	return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x61c ||
	       (code >= 0x200b && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
	       (code >= 0x2060 && code <= 0x206f) || code == 0xfeff ||
	       (code >= 0xfff9 && code <= 0xfffb) || (code >= 0xe0000 && code <= 0xe007f);
}

char *ocs_text_clean(char *text)
{
	const unsigned char *from = (const unsigned char *)text;
	char *to = text;

	while (*from) {
		unsigned long code;
		size_t length = utf8_take(from, &code);

		if (!length || code_is_hidden(code)) {
			*to++ = '?';
			from += length ? length : 1;
			continue;
		}
		memmove(to, from, length);
		to += length;
		from += length;
	}
	*to = '\0';
	return text;
}

bool ocs_text_is_clean(const char *text)
{
	char *copy = ocs_strdup(text);
	bool same = !strcmp(ocs_text_clean(copy), text);

	free(copy);
	return same;
}

char *ocs_text_take(struct ocs_text *text)
{
	char *data = text->data ? text->data : ocs_strdup("");

	memset(text, 0, sizeof(*text));
	return data;
}

void ocs_text_free(struct ocs_text *text)
{
	free(text->data);
	memset(text, 0, sizeof(*text));
}

int ocs_number_parse(const char *text, long min, long max, long *value)
{
	long number = 0;

	if (!text || !*text)
		return -1;
	for (const char *c = text; *c; c++) {
		if (*c < '0' || *c > '9')
			return -1;
		if (number > (LONG_MAX - (*c - '0')) / 10)
			return -1;
		number = number * 10 + (*c - '0');
	}
	if (number < min || number > max)
		return -1;
	*value = number;
	return 0;
}

static char *descriptor_read(int fd, const char *path, size_t limit, size_t *length,
			     struct ocs_error *err)
{
	size_t used = 0, size = 4096;
	char *data = ocs_calloc(1, size);

	for (;;) {
		ssize_t count;

		if (used + 1 >= size) {
			size *= 2;
			data = ocs_realloc(data, size);
		}
		count = read(fd, data + used, size - used - 1);
		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0) {
			ocs_error_set(err, OCS_ERROR, "cannot read %s: %s", path, strerror(errno));
			break;
		}
		if (count == 0) {
			data[used] = '\0';
			if (length)
				*length = used;
			return data;
		}
		used += (size_t)count;
		if (used > limit) {
			ocs_error_set(err, OCS_ERROR,
				      "%s is larger than the %zu bytes that are allowed", path,
				      limit);
			break;
		}
	}
	free(data);
	return NULL;
}

char *ocs_file_read(const char *path, size_t limit, size_t *length, struct ocs_error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *data;

	if (fd < 0) {
		ocs_error_set(err, OCS_ERROR, "cannot open %s: %s", path, strerror(errno));
		return NULL;
	}
	data = descriptor_read(fd, path, limit, length, err);
	close(fd);
	return data;
}

static int descriptor_write(int fd, const char *data, size_t length)
{
	while (length) {
		ssize_t count = write(fd, data, length);

		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0)
			return -1;
		data += count;
		length -= (size_t)count;
	}
	return 0;
}

/* Makes the new directory entry durable; not every file system supports it. */
static void folder_sync(const char *path)
{
	char *copy = ocs_strdup(path);
	int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0) {
		fsync(fd);
		close(fd);
	}
	free(copy);
}

int ocs_file_write(const char *path, const char *data, size_t length, unsigned int mode,
		   struct ocs_error *err)
{
	char *temporary = ocs_asprintf("%s.XXXXXX", path);
	int fd = mkostemp(temporary, O_CLOEXEC);
	int saved;

	if (fd < 0) {
		ocs_error_set(err, OCS_ERROR, "cannot write %s: %s", path, strerror(errno));
		free(temporary);
		return -1;
	}
	if (descriptor_write(fd, data, length) == 0 && fchmod(fd, mode) == 0 && fsync(fd) == 0 &&
	    rename(temporary, path) == 0) {
		close(fd);
		folder_sync(path);
		free(temporary);
		return 0;
	}
	saved = errno;
	close(fd);
	unlink(temporary);
	free(temporary);
	return ocs_error_set(err, OCS_ERROR, "cannot write %s: %s", path, strerror(saved));
}
