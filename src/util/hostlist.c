/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/util/hostlist.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/util/error.h"
#include "src/util/text.h"

#define BRACKETS_MAX 8
#define DIGITS_MAX 18 /* fits a long long */
#define NAME_MAX_LENGTH 255

/* The names made so far. */
struct names {
	char **list;
	size_t count, size, limit;
};

/* One word of the list: literals around brackets, "a" "[1-3]" "-b". */
struct word {
	const char *text;
	size_t length;
	/* choices of each bracket, already expanded */
	struct {
		size_t start, end; /* of the bracket in text, both inclusive */
		struct names choices;
	} bracket[BRACKETS_MAX];
	int nbrackets;
};

void ocs_names_free(char **names, size_t count)
{
	if (!names)
		return;
	for (size_t i = 0; i < count; i++)
		free(names[i]);
	free(names);
}

static void names_add(struct names *names, char *name)
{
	if (names->count == names->size) {
		names->size = names->size ? names->size * 2 : 16;
		names->list = ocs_realloc(names->list, names->size * sizeof(char *));
	}
	names->list[names->count++] = name;
}

static int too_many(size_t limit, struct ocs_error *err)
{
	return ocs_error_set(err, OCS_USAGE,
			     "the list names more than the %zu names that are allowed", limit);
}

static bool name_char(char c)
{
	return isalnum((unsigned char)c) || c == '-' || c == '_' || c == '.' || c == ':' ||
	       c == '/';
}

static bool all_digits(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (!isdigit((unsigned char)text[i]))
			return false;
	return length > 0;
}

static long long digits_value(const char *text, size_t length)
{
	long long value = 0;

	for (size_t i = 0; i < length; i++)
		value = value * 10 + (text[i] - '0');
	return value;
}

/* One item between the commas of a bracket: "7", "x" or "0-3". */
static int item_expand(const char *text, size_t length, struct names *choices,
		       struct ocs_error *err)
{
	const char *dash = memchr(text, '-', length);
	size_t low_length = dash ? (size_t)(dash - text) : length;
	size_t high_length = dash ? length - low_length - 1 : 0;
	long long low, high;

	if (!dash) {
		for (size_t i = 0; i < length; i++)
			if (!isalnum((unsigned char)text[i]) && text[i] != '_')
				length = 0;
		if (!length)
			return ocs_error_set(
				err, OCS_USAGE,
				"a bracket holds numbers, ranges like 0-15 or words, separated by commas");
		if (choices->count >= choices->limit)
			return too_many(choices->limit, err);
		names_add(choices, strndup(text, length));
		return 0;
	}
	if (!all_digits(text, low_length) || !all_digits(dash + 1, high_length) ||
	    low_length > DIGITS_MAX || high_length > DIGITS_MAX)
		return ocs_error_set(err, OCS_USAGE, "\"%.*s\" is not a range of numbers like 0-15",
				     (int)(length < 40 ? length : 40), text);
	low = digits_value(text, low_length);
	high = digits_value(dash + 1, high_length);
	if (high < low)
		return ocs_error_set(err, OCS_USAGE, "the range %.*s runs backwards", (int)length,
				     text);
	/* [01-16] keeps two digits; [1-016] would be ambiguous. */
	if (dash[1] == '0' && high_length > 1 && high_length != low_length)
		return ocs_error_set(err, OCS_USAGE,
				     "the two ends of %.*s have different leading zeros",
				     (int)length, text);
	if ((unsigned long long)(high - low) >= choices->limit - choices->count)
		return too_many(choices->limit, err);
	for (long long i = low; i <= high; i++)
		names_add(choices, ocs_asprintf("%0*lld", (int)low_length, i));
	return 0;
}

static int bracket_expand(const char *text, size_t length, struct names *choices,
			  struct ocs_error *err)
{
	size_t start = 0;

	for (size_t i = 0; i <= length; i++) {
		if (i < length && text[i] != ',')
			continue;
		if (item_expand(text + start, i - start, choices, err) < 0)
			return -1;
		start = i + 1;
	}
	return 0;
}

static void word_free(struct word *word)
{
	for (int i = 0; i < word->nbrackets; i++)
		ocs_names_free(word->bracket[i].choices.list, word->bracket[i].choices.count);
}

/* Finds and expands the brackets of WORD. */
static int word_scan(struct word *word, size_t limit, struct ocs_error *err)
{
	for (size_t i = 0; i < word->length; i++) {
		const char *close;
		int n = word->nbrackets;

		if (word->text[i] != '[') {
			if (!name_char(word->text[i]))
				return ocs_error_set(
					err, OCS_USAGE, "character '%c' cannot be part of a name",
					isprint((unsigned char)word->text[i]) ? word->text[i] :
										'?');
			continue;
		}
		close = memchr(word->text + i, ']', word->length - i);
		if (!close)
			return ocs_error_set(err, OCS_USAGE, "a '[' has no closing ']'");
		if (n == BRACKETS_MAX)
			return ocs_error_set(err, OCS_USAGE, "a name has more than %d brackets",
					     BRACKETS_MAX);
		word->bracket[n].start = i;
		word->bracket[n].end = (size_t)(close - word->text);
		word->bracket[n].choices.limit = limit;
		word->nbrackets++;
		if (bracket_expand(word->text + i + 1, word->bracket[n].end - i - 1,
				   &word->bracket[n].choices, err) < 0)
			return -1;
		i = word->bracket[n].end;
	}
	return 0;
}

/* Adds every combination of the choices of WORD, the last bracket fastest. */
static int word_expand(const struct word *word, struct names *names, struct ocs_error *err)
{
	size_t total = 1;

	for (int i = 0; i < word->nbrackets; i++) {
		total *= word->bracket[i].choices.count;
		if (total > names->limit)
			return too_many(names->limit, err);
	}
	if (total > names->limit - names->count)
		return too_many(names->limit, err);
	for (size_t n = 0; n < total; n++) {
		char name[NAME_MAX_LENGTH + 1];
		size_t used = 0, at = 0, block = total, rest = n;

		for (int i = 0; i <= word->nbrackets; i++) {
			bool last = i == word->nbrackets;
			size_t end = last ? word->length : word->bracket[i].start;
			const char *choice = "";

			if (!last) {
				block /= word->bracket[i].choices.count;
				choice = word->bracket[i].choices.list[rest / block];
				rest %= block;
			}
			if (used + end - at + strlen(choice) > NAME_MAX_LENGTH)
				return ocs_error_set(err, OCS_USAGE,
						     "a name is longer than %d characters",
						     NAME_MAX_LENGTH);
			memcpy(name + used, word->text + at, end - at);
			used += end - at;
			strcpy(name + used, choice);
			used += strlen(choice);
			if (!last)
				at = word->bracket[i].end + 1;
		}
		names_add(names, ocs_strdup(name));
	}
	return 0;
}

/* Takes the next word off *TEXT (up to a comma outside brackets). */
static int word_next(const char **text, struct names *names, struct ocs_error *err)
{
	struct word word = { .text = *text };
	size_t length = 0;
	bool inside = false;
	int rc;

	while (word.text[length] && (inside || word.text[length] != ',')) {
		if (word.text[length] == '[')
			inside = true;
		else if (word.text[length] == ']')
			inside = false;
		length++;
	}
	*text += length;
	while (length && isspace((unsigned char)word.text[length - 1]))
		length--;
	while (length && isspace((unsigned char)word.text[0])) {
		word.text++;
		length--;
	}
	if (!length)
		return ocs_error_set(err, OCS_USAGE, "the list has an empty name");
	word.length = length;
	rc = word_scan(&word, names->limit, err);
	if (rc == 0)
		rc = word_expand(&word, names, err);
	word_free(&word);
	return rc;
}

int ocs_hostlist_expand(const char *text, size_t limit, char ***result, struct ocs_error *err)
{
	struct names names = { .limit = limit };
	const char *at = text;

	*result = NULL;
	if (limit > 0x7fffffff)
		names.limit = 0x7fffffff;
	while (*at) {
		if (word_next(&at, &names, err) < 0) {
			ocs_names_free(names.list, names.count);
			return -1;
		}
		if (*at == ',' && !*++at) {
			ocs_names_free(names.list, names.count);
			return ocs_error_set(err, OCS_USAGE, "the list ends with a comma");
		}
	}
	*result = names.list ? names.list : ocs_calloc(1, sizeof(char *));
	return (int)names.count;
}

/* A name taken apart around its last run of digits. */
struct parts {
	const char *name;
	size_t prefix; /* length before the digits */
	size_t digits; /* length of the digits, 0: none */
	const char *suffix;
	long long value;
};

static struct parts name_parts(const char *name)
{
	size_t end = strlen(name), start;
	struct parts parts = { .name = name, .prefix = end, .suffix = name + end };

	while (end && !isdigit((unsigned char)name[end - 1]))
		end--;
	start = end;
	while (start && isdigit((unsigned char)name[start - 1]))
		start--;
	if (start == end || end - start > DIGITS_MAX)
		return parts;
	parts.prefix = start;
	parts.digits = end - start;
	parts.suffix = name + end;
	parts.value = digits_value(name + start, end - start);
	return parts;
}

static bool parts_alike(const struct parts *a, const struct parts *b)
{
	return a->digits && b->digits && a->prefix == b->prefix &&
	       memcmp(a->name, b->name, a->prefix) == 0 && strcmp(a->suffix, b->suffix) == 0;
}

/* B continues a range that A's width governs. */
static bool parts_follow(const struct parts *first, const struct parts *a, const struct parts *b)
{
	char digits[DIGITS_MAX + 3];

	if (b->value != a->value + 1)
		return false;
	snprintf(digits, sizeof(digits), "%0*lld", (int)first->digits, b->value);
	return strlen(digits) == b->digits;
}

/* Writes the group names[0..count) that share prefix and suffix. */
static void group_write(struct ocs_text *text, char *const *names, size_t count)
{
	struct parts first = name_parts(names[0]), last;

	if (count == 1) {
		ocs_text_add(text, "%s", names[0]);
		return;
	}
	ocs_text_add(text, "%.*s[", (int)first.prefix, names[0]);
	for (size_t i = 0; i < count;) {
		size_t run = 1;

		first = last = name_parts(names[i]);
		while (i + run < count) {
			struct parts next = name_parts(names[i + run]);

			if (!parts_follow(&first, &last, &next))
				break;
			last = next;
			run++;
		}
		ocs_text_add(text, "%s%.*s", i ? "," : "", (int)first.digits,
			     first.name + first.prefix);
		if (run > 1)
			ocs_text_add(text, "-%.*s", (int)last.digits, last.name + last.prefix);
		i += run;
	}
	ocs_text_add(text, "]%s", first.suffix);
}

char *ocs_hostlist_compress(char *const *names, size_t count)
{
	struct ocs_text text = { 0 };

	for (size_t i = 0; i < count;) {
		struct parts first = name_parts(names[i]);
		size_t run = 1;

		while (i + run < count) {
			struct parts next = name_parts(names[i + run]);

			if (!parts_alike(&first, &next))
				break;
			run++;
		}
		if (i)
			ocs_text_add(&text, ",");
		group_write(&text, names + i, run);
		i += run;
	}
	return ocs_text_take(&text);
}
