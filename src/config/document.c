/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/config/document.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/util/error.h"
#include "src/util/hostlist.h"
#include "src/util/nearest.h"
#include "src/util/text.h"

/* The line of byte OFFSET of the text that PARSER reads. */
static size_t line_of(const yaml_parser_t *parser, size_t offset)
{
	const unsigned char *start = parser->input.string.start;
	size_t line = 1;

	for (const unsigned char *c = start; c < parser->input.string.end && c < start + offset;
	     c++)
		line += *c == '\n';
	return line;
}

static int parser_fail(struct ocs_yaml *yaml, const yaml_parser_t *parser)
{
	size_t line = parser->problem_mark.line + 1;
	const char *hint = "";

	if (parser->error == YAML_READER_ERROR)
		return ocs_error_set(yaml->err, OCS_USAGE,
				     "%s:%zu: the file is not text in UTF-8: %s (byte %zu)",
				     yaml->source, line_of(parser, parser->problem_offset),
				     parser->problem, parser->problem_offset);
	if (parser->error == YAML_MEMORY_ERROR)
		abort();
	if (parser->problem && strstr(parser->problem, "cannot start any token"))
		hint = " (YAML is indented with blanks, not tabs; quote a value that starts with a special character)";
	return ocs_error_set(yaml->err, OCS_USAGE, "%s:%zu: not valid YAML: %s%s%s%s", yaml->source,
			     line, parser->context ? parser->context : "",
			     parser->context ? ", " : "",
			     parser->problem ? parser->problem : "syntax error", hint);
}

/* Refuses a second document: it would be ignored silently. */
static int only_document(struct ocs_yaml *yaml, yaml_parser_t *parser)
{
	yaml_document_t second;
	const yaml_node_t *root;
	int rc = 0;

	if (!yaml_parser_load(parser, &second))
		return parser_fail(yaml, parser);
	root = yaml_document_get_root_node(&second);
	if (root)
		rc = ocs_yaml_fail(yaml, root, "a second document starts here; one is allowed");
	yaml_document_delete(&second);
	return rc;
}

int ocs_yaml_open(struct ocs_yaml *yaml, const char *text, size_t length, const char *source,
		  struct ocs_error *err)
{
	yaml_parser_t parser;
	int rc = 0;

	memset(yaml, 0, sizeof(*yaml));
	yaml->source = source;
	yaml->err = err;
	if (!yaml_parser_initialize(&parser))
		abort();
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, length);
	if (!yaml_parser_load(&parser, &yaml->document)) {
		rc = parser_fail(yaml, &parser);
		yaml_parser_delete(&parser);
		return rc;
	}
	if (!yaml_document_get_root_node(&yaml->document))
		rc = ocs_error_set(err, OCS_USAGE, "%s:1: the file is empty", source);
	else
		rc = only_document(yaml, &parser);
	if (rc < 0)
		yaml_document_delete(&yaml->document);
	yaml_parser_delete(&parser);
	return rc;
}

void ocs_yaml_close(struct ocs_yaml *yaml)
{
	yaml_document_delete(&yaml->document);
}

int ocs_yaml_prefix(struct ocs_yaml *yaml, const yaml_node_t *node)
{
	return ocs_error_prefix(yaml->err, "%s:%zu", yaml->source, node->start_mark.line + 1);
}

int ocs_yaml_fail(struct ocs_yaml *yaml, const yaml_node_t *node, const char *format, ...)
{
	char text[OCS_ERROR_TEXT];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	ocs_error_set(yaml->err, OCS_USAGE, "%s", text);
	return ocs_yaml_prefix(yaml, node);
}

static int key_unknown(struct ocs_yaml *yaml, const yaml_node_t *key, const char *what,
		       const char *text, const struct ocs_field *fields, size_t count)
{
	const char *names[32], *nearest;
	struct ocs_text known = { 0 };

	for (size_t i = 0; i < count && i < 32; i++) {
		names[i] = fields[i].name;
		ocs_text_add(&known, "%s%s", i ? ", " : "", names[i]);
	}
	nearest = ocs_nearest(text, names, count < 32 ? count : 32);
	if (nearest)
		ocs_yaml_fail(yaml, key, "%s has no key \"%.60s\"; did you mean \"%s\"?", what,
			      text, nearest);
	else
		ocs_yaml_fail(yaml, key, "%s has no key \"%.60s\"; it has: %s", what, text,
			      known.data);
	ocs_text_free(&known);
	return -1;
}

static bool scalar_empty(const yaml_node_t *node)
{
	const char *value = (const char *)node->data.scalar.value;

	return node->type == YAML_SCALAR_NODE &&
	       node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
	       (!*value || strcmp(value, "~") == 0 || strcmp(value, "null") == 0);
}

static int field_set(struct ocs_yaml *yaml, const yaml_node_pair_t *pair, const char *what,
		     struct ocs_field *fields, size_t count)
{
	yaml_node_t *key = yaml_document_get_node(&yaml->document, pair->key);
	yaml_node_t *value = yaml_document_get_node(&yaml->document, pair->value);
	const char *text;

	if (key->type != YAML_SCALAR_NODE)
		return ocs_yaml_fail(yaml, key, "a key of %s must be a word", what);
	text = (const char *)key->data.scalar.value;
	for (size_t i = 0; i < count; i++) {
		if (strcmp(fields[i].name, text) != 0)
			continue;
		if (fields[i].node)
			return ocs_yaml_fail(yaml, key, "%s has the key \"%s\" twice", what, text);
		if (scalar_empty(value))
			return ocs_yaml_fail(yaml, key, "\"%s\" has no value", text);
		fields[i].node = value;
		return 0;
	}
	return key_unknown(yaml, key, what, text, fields, count);
}

int ocs_yaml_fields(struct ocs_yaml *yaml, yaml_node_t *map, const char *what,
		    struct ocs_field *fields, size_t count)
{
	if (map->type != YAML_MAPPING_NODE)
		return ocs_yaml_fail(yaml, map, "%s must be a mapping of keys to values", what);
	for (yaml_node_pair_t *pair = map->data.mapping.pairs.start;
	     pair < map->data.mapping.pairs.top; pair++)
		if (field_set(yaml, pair, what, fields, count) < 0)
			return -1;
	for (size_t i = 0; i < count; i++)
		if (fields[i].required && !fields[i].node)
			return ocs_yaml_fail(yaml, map, "%s needs the key \"%s\"", what,
					     fields[i].name);
	return 0;
}

const char *ocs_yaml_text(struct ocs_yaml *yaml, const yaml_node_t *node, const char *key)
{
	const char *text;

	if (node->type != YAML_SCALAR_NODE) {
		ocs_yaml_fail(
			yaml, node,
			"%s must be a single value (put one that starts with { or [ in quotes)",
			key);
		return NULL;
	}
	text = (const char *)node->data.scalar.value;
	if (!*text || strlen(text) != node->data.scalar.length) {
		ocs_yaml_fail(yaml, node, "%s is %s", key,
			      *text ? "broken by a zero byte" : "empty");
		return NULL;
	}
	for (const char *c = text; *c; c++) {
		if (iscntrl((unsigned char)*c)) {
			ocs_yaml_fail(yaml, node, "%s must be one line", key);
			return NULL;
		}
	}
	return text;
}

int ocs_yaml_number(struct ocs_yaml *yaml, const yaml_node_t *node, const char *key, int min,
		    int max, int *value)
{
	const char *text = ocs_yaml_text(yaml, node, key);
	long number;

	if (!text)
		return -1;
	if (ocs_number_parse(text, min, max, &number) < 0 && min == max)
		return ocs_yaml_fail(yaml, node, "%s must be %d, not \"%.40s\"", key, min, text);
	if (ocs_number_parse(text, min, max, &number) < 0)
		return ocs_yaml_fail(yaml, node, "%s must be a number of %d to %d, not \"%.40s\"",
				     key, min, max, text);
	*value = (int)number;
	return 0;
}

int ocs_yaml_bool(struct ocs_yaml *yaml, const yaml_node_t *node, const char *key, bool *value)
{
	static const char *const words[] = { "false", "true" };
	int choice = ocs_yaml_choice(yaml, node, key, words, 2);

	if (choice < 0)
		return -1;
	*value = choice == 1;
	return 0;
}

int ocs_yaml_duration(struct ocs_yaml *yaml, const yaml_node_t *node, const char *key, int min_ms,
		      int max_ms, int *ms)
{
	static const struct {
		const char *unit;
		long ms;
	} units[] = { { "ms", 1 }, { "s", 1000 }, { "m", 60000 } };
	const char *text = ocs_yaml_text(yaml, node, key);
	char digits[16] = "";
	size_t length;
	long number;

	if (!text)
		return -1;
	length = strspn(text, "0123456789");
	if (length < 10)
		memcpy(digits, text, length);
	for (size_t i = 0; i < 3; i++) {
		if (strcmp(text + length, units[i].unit) != 0 ||
		    ocs_number_parse(digits, 0, 999999999, &number) < 0)
			continue;
		number *= units[i].ms;
		if (number < min_ms || number > max_ms)
			return ocs_yaml_fail(yaml, node,
					     "%s must lie between %d ms and %d s, %s does not", key,
					     min_ms, max_ms / 1000, text);
		*ms = (int)number;
		return 0;
	}
	return ocs_yaml_fail(yaml, node,
			     "%s must be a number with a unit, like 500ms, 5s or 2m, not \"%.40s\"",
			     key, text);
}

int ocs_yaml_choice(struct ocs_yaml *yaml, const yaml_node_t *node, const char *key,
		    const char *const *choices, size_t count)
{
	const char *text = ocs_yaml_text(yaml, node, key);
	struct ocs_text known = { 0 };

	if (!text)
		return -1;
	for (size_t i = 0; i < count; i++) {
		if (strcmp(choices[i], text) == 0) {
			ocs_text_free(&known);
			return (int)i;
		}
		ocs_text_add(&known, "%s%s", !i ? "" : i + 1 < count ? ", " : " or ", choices[i]);
	}
	ocs_yaml_fail(yaml, node, "%s must be %s, not \"%.40s\"", key, known.data, text);
	ocs_text_free(&known);
	return -1;
}

int ocs_yaml_length(struct ocs_yaml *yaml, const yaml_node_t *node, const char *key)
{
	if (node->type != YAML_SEQUENCE_NODE)
		return ocs_yaml_fail(yaml, node, "%s must be a list (lines with '- ')", key);
	return (int)(node->data.sequence.items.top - node->data.sequence.items.start);
}

yaml_node_t *ocs_yaml_item(struct ocs_yaml *yaml, const yaml_node_t *node, int i)
{
	return yaml_document_get_node(&yaml->document, node->data.sequence.items.start[i]);
}

static bool name_good(const char *name)
{
	for (const char *c = name; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("._-", *c))
			return false;
	return *name != '-';
}

/* Appends the names of one scalar. */
static int names_append(struct ocs_yaml *yaml, const yaml_node_t *node, const char *key,
			size_t limit, char ***names, size_t *count)
{
	const char *text = ocs_yaml_text(yaml, node, key);
	char **more;
	int added;

	if (!text)
		return -1;
	added = ocs_hostlist_expand(text, limit - *count, &more, yaml->err);
	if (added < 0) {
		ocs_error_prefix(yaml->err, "%s", key);
		return ocs_yaml_prefix(yaml, node);
	}
	*names = ocs_realloc(*names, (*count + (size_t)added) * sizeof(char *));
	memcpy(*names + *count, more, (size_t)added * sizeof(char *));
	free(more);
	*count += (size_t)added;
	for (size_t i = *count - (size_t)added; i < *count; i++)
		if (!name_good((*names)[i]))
			return ocs_yaml_fail(
				yaml, node,
				"%s: \"%.60s\" is not a name; letters, digits, '.', '_' and '-' make names",
				key, (*names)[i]);
	return 0;
}

int ocs_yaml_names(struct ocs_yaml *yaml, const yaml_node_t *node, const char *key, size_t limit,
		   char ***names)
{
	size_t count = 0;
	int items, rc = 0;

	*names = NULL;
	if (node->type == YAML_SCALAR_NODE) {
		rc = names_append(yaml, node, key, limit, names, &count);
	} else {
		items = ocs_yaml_length(yaml, node, key);
		if (items == 0)
			rc = ocs_yaml_fail(yaml, node, "%s is an empty list", key);
		else if (items < 0)
			rc = -1;
		for (int i = 0; i < items && rc == 0; i++)
			rc = names_append(yaml, ocs_yaml_item(yaml, node, i), key, limit, names,
					  &count);
	}
	if (rc == 0)
		return (int)count;
	ocs_names_free(*names, count);
	*names = NULL;
	return -1;
}
