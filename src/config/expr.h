/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_CONFIG_EXPR_H
#define OCS_CONFIG_EXPR_H

/* The little language of ocs.yaml: whole-number expressions with + - * / % and
 * parentheses over named variables, and texts that hold such expressions in
 * braces: "ocs-{dim}-{a}-{b}", "10.0.0.{10 + index}:3082". */

#include <stdbool.h>
#include <stddef.h>

struct ocs_error;
struct ocs_text;

struct ocs_variable {
	const char *name;
	long value;
	const char *text; /* what "{name}" alone prints; NULL: the value */
	bool text_only;	  /* has no value: not usable in arithmetic */
};

/* The value of EXPRESSION.  Returns 0, or -1 with ERR (syntax, an unknown
 * variable, division by zero, overflow). */
int ocs_expr_value(const char *expression, const struct ocs_variable *variables, size_t count,
		   long *value, struct ocs_error *err);

/* Appends TEMPLATE with every {expression} replaced.  Returns 0, or -1 with ERR. */
int ocs_expr_expand(const char *template, const struct ocs_variable *variables, size_t count,
		    struct ocs_text *text, struct ocs_error *err);

#endif
