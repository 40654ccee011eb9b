/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/config/expr.h"

#include <ctype.h>
#include <string.h>

#include "src/util/error.h"
#include "src/util/text.h"

#define DEPTH_MAX 32

/* A recursive descent over [at, end). */
struct parse {
	const char *at, *end;
	const struct ocs_variable *variables;
	size_t count;
	int depth;
	struct ocs_error *err;
};

static int sum_parse(struct parse *parse, long *value);

static char character_peek(struct parse *parse)
{
	while (parse->at < parse->end && isspace((unsigned char)*parse->at))
		parse->at++;
	return parse->at < parse->end ? *parse->at : '\0';
}

static int overflow_report(const struct parse *parse)
{
	return ocs_error_set(parse->err, OCS_USAGE, "a number is too large");
}

static const struct ocs_variable *variable_find(const struct parse *parse, const char *name,
						size_t length)
{
	for (size_t i = 0; i < parse->count; i++)
		if (strlen(parse->variables[i].name) == length &&
		    memcmp(parse->variables[i].name, name, length) == 0)
			return &parse->variables[i];
	return NULL;
}

static size_t word_length(const char *at, const char *end)
{
	size_t length = 0;

	while (at + length < end && (isalnum((unsigned char)at[length]) || at[length] == '_'))
		length++;
	return length;
}

static int variable_parse(struct parse *parse, long *value)
{
	size_t length = word_length(parse->at, parse->end);
	const struct ocs_variable *found = variable_find(parse, parse->at, length);
	struct ocs_text known = { 0 };

	if (found && !found->text_only) {
		*value = found->value;
		parse->at += length;
		return 0;
	}
	for (size_t i = 0; i < parse->count; i++)
		if (!parse->variables[i].text_only)
			ocs_text_add(&known, "%s%s", known.length ? ", " : "",
				     parse->variables[i].name);
	if (found)
		ocs_error_set(parse->err, OCS_USAGE, "%s is a text and has no number", found->name);
	else
		ocs_error_set(parse->err, OCS_USAGE,
			      "there is no variable \"%.*s\" here; there are: %s",
			      (int)(length < 40 ? length : 40), parse->at,
			      known.data ? known.data : "none");
	ocs_text_free(&known);
	return -1;
}

static int number_parse(struct parse *parse, long *value)
{
	*value = 0;
	while (parse->at < parse->end && isdigit((unsigned char)*parse->at))
		if (__builtin_mul_overflow(*value, 10, value) ||
		    __builtin_add_overflow(*value, *parse->at++ - '0', value))
			return overflow_report(parse);
	return 0;
}

/* A number, a variable, a parenthesis or a negation. */
static int factor_parse(struct parse *parse, long *value)
{
	char c = character_peek(parse);
	int rc = 0;

	if (isdigit((unsigned char)c))
		return number_parse(parse, value);
	if (isalpha((unsigned char)c) || c == '_')
		return variable_parse(parse, value);
	if (c != '(' && c != '-')
		return c ? ocs_error_set(parse->err, OCS_USAGE,
					 "a number, a variable or '(' is missing before '%c'",
					 isprint((unsigned char)c) ? c : '?') :
			   ocs_error_set(
				   parse->err, OCS_USAGE,
				   "the expression ends where a number or a variable is missing");
	if (++parse->depth > DEPTH_MAX)
		return ocs_error_set(parse->err, OCS_USAGE, "the expression is nested too deeply");
	parse->at++;
	if (c == '-') {
		rc = factor_parse(parse, value);
		if (rc == 0 && __builtin_sub_overflow(0, *value, value))
			rc = overflow_report(parse);
	} else {
		rc = sum_parse(parse, value);
		if (rc == 0 && character_peek(parse) != ')')
			rc = ocs_error_set(parse->err, OCS_USAGE, "a ')' is missing");
		else
			parse->at++;
	}
	parse->depth--;
	return rc;
}

static int product_parse(struct parse *parse, long *value)
{
	if (factor_parse(parse, value) < 0)
		return -1;
	for (;;) {
		char c = character_peek(parse);
		long right;

		if (c != '*' && c != '/' && c != '%')
			return 0;
		parse->at++;
		if (factor_parse(parse, &right) < 0)
			return -1;
		if (c == '*') {
			if (__builtin_mul_overflow(*value, right, value))
				return overflow_report(parse);
		} else if (right == 0) {
			return ocs_error_set(parse->err, OCS_USAGE, "division by zero");
		} else if (right == -1) { /* LONG_MIN / -1 traps */
			if (c == '%')
				*value = 0;
			else if (__builtin_sub_overflow(0, *value, value))
				return overflow_report(parse);
		} else {
			*value = c == '/' ? *value / right : *value % right;
		}
	}
}

static int sum_parse(struct parse *parse, long *value)
{
	if (product_parse(parse, value) < 0)
		return -1;
	for (;;) {
		char c = character_peek(parse);
		long right;

		if (c != '+' && c != '-')
			return 0;
		parse->at++;
		if (product_parse(parse, &right) < 0)
			return -1;
		if (c == '+' ? __builtin_add_overflow(*value, right, value) :
			       __builtin_sub_overflow(*value, right, value))
			return overflow_report(parse);
	}
}

static int text_evaluate(struct parse *parse, long *value)
{
	char c;

	if (sum_parse(parse, value) < 0)
		return -1;
	c = character_peek(parse);
	if (parse->at < parse->end)
		return ocs_error_set(parse->err, OCS_USAGE,
				     "'%c' is not an operator; + - * / %% ( ) are",
				     isprint((unsigned char)c) ? c : '?');
	return 0;
}

int ocs_expr_value(const char *expression, const struct ocs_variable *variables, size_t count,
		   long *value, struct ocs_error *err)
{
	struct parse parse = { .at = expression,
			       .end = expression + strlen(expression),
			       .variables = variables,
			       .count = count,
			       .err = err };

	return text_evaluate(&parse, value);
}

/* What stands between two braces, [at, end). */
static int brace_expand(struct parse *parse, struct ocs_text *text)
{
	const struct ocs_variable *found;
	size_t length;
	long value;

	character_peek(parse);
	length = word_length(parse->at, parse->end);
	found = variable_find(parse, parse->at, length);
	if (found && found->text) {
		const char *start = parse->at;

		parse->at += length;
		character_peek(parse);
		if (parse->at == parse->end) { /* the variable and nothing else */
			ocs_text_add(text, "%s", found->text);
			return 0;
		}
		parse->at = start;
	}
	if (text_evaluate(parse, &value) < 0)
		return -1;
	ocs_text_add(text, "%ld", value);
	return 0;
}

int ocs_expr_expand(const char *template, const struct ocs_variable *variables, size_t count,
		    struct ocs_text *text, struct ocs_error *err)
{
	const char *at = template;

	while (*at) {
		struct parse parse = { .variables = variables, .count = count, .err = err };
		size_t literal = strcspn(at, "{}");

		ocs_text_add(text, "%.*s", (int)literal, at);
		at += literal;
		if (!*at)
			break;
		parse.at = at + 1;
		parse.end = strchr(at, '}');
		if (*at == '}' || !parse.end)
			return ocs_error_set(err, OCS_USAGE,
					     *at == '}' ? "a '}' has no '{' before it" :
							  "a '{' has no '}' after it");
		at = parse.end + 1;
		if (brace_expand(&parse, text) < 0)
			return -1;
	}
	return 0;
}
