/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "src/config/expr.h"
#include "src/util/error.h"
#include "src/util/text.h"

static const struct ocs_variable variables[] = {
	{ .name = "cube", .value = 7 },
	{ .name = "dim", .value = 1, .text = "y" },
	{ .name = "name", .text = "ocs-1", .text_only = true },
};

static void values(void **state)
{
	static const struct {
		const char *text;
		long value;
	} cases[] = {
		{ "1", 1 },
		{ "2*cube+dim+1", 16 },
		{ "2 * (cube + dim) % 5", 1 },
		{ "cube/2", 3 },
		{ "cube%2", 1 },
		{ "-cube + 8", 1 },
		{ "--3", 3 },
		{ "8 - 2 - 1", 5 },
		{ "100/10/2", 5 },
		{ "((cube))", 7 },
		{ "2+3*4", 14 },
		{ "(0-7)/(0-1)", 7 },
		{ "(0-7)%(0-1)", 0 },
		{ "9223372036854775807", LONG_MAX },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ocs_error err = { 0 };
		long value = 0;

		if (ocs_expr_value(cases[i].text, variables, 3, &value, &err) < 0)
			fail_msg("%s: %s", cases[i].text, err.text);
		if (value != cases[i].value)
			fail_msg("%s is %ld", cases[i].text, value);
	}
}

static void values_refused(void **state)
{
	static const char *const cases[][2] = {
		{ "", "ends where" },
		{ "1+", "ends where" },
		{ "*2", "before '*'" },
		{ "1 2", "not an operator" },
		{ "(1", "')' is missing" },
		{ "1)", "not an operator" },
		{ "cubes", "cube, dim" },
		{ "name", "text and has no number" },
		{ "1/0", "division by zero" },
		{ "1%(cube-7)", "division by zero" },
		{ "9223372036854775808", "too large" },
		{ "9223372036854775807+1", "too large" },
		{ "9223372036854775807*2", "too large" },
		{ "(-9223372036854775807-1)/-1", "too large" },
		{ "0-9223372036854775807-2", "too large" },
		{ "((((((((((((((((((((((((((((((((((1))))))))))))))))))))))))))))))))))",
		  "nested" },
		{ "----------------------------------1", "nested" },
		{ "1&2", "not an operator" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ocs_error err = { 0 };
		long value;

		if (ocs_expr_value(cases[i][0], variables, 3, &value, &err) == 0)
			fail_msg("%s was accepted", cases[i][0]);
		if (!strstr(err.text, cases[i][1]))
			fail_msg("%s: \"%s\" does not say \"%s\"", cases[i][0], err.text,
				 cases[i][1]);
	}
}

static void templates(void **state)
{
	static const char *const good[][2] = {
		{ "", "" },
		{ "ocs", "ocs" },
		{ "ocs-{dim}-{cube}", "ocs-y-7" },
		{ "{ dim }{dim+0}", "y1" },
		{ "{name}:{3100+cube}", "ocs-1:3107" },
		{ "{cube}{cube}", "77" },
	};
	static const char *const bad[][2] = {
		{ "a{", "no '}'" },
		{ "a{cube", "no '}'" },
		{ "a}b", "no '{'" },
		{ "{}", "ends where" },
		{ "{name+1}", "text and has no number" },
		{ "{server}", "no variable \"server\"" },
		{ "{{cube}}", "before '{'" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		struct ocs_text text = { 0 };
		struct ocs_error err = { 0 };
		char *result;

		if (ocs_expr_expand(good[i][0], variables, 3, &text, &err) < 0)
			fail_msg("%s: %s", good[i][0], err.text);
		result = ocs_text_take(&text);
		assert_string_equal(result, good[i][1]);
		free(result);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct ocs_text text = { 0 };
		struct ocs_error err = { 0 };

		assert_int_equal(ocs_expr_expand(bad[i][0], variables, 3, &text, &err), -1);
		if (!strstr(err.text, bad[i][1]))
			fail_msg("%s: \"%s\" does not say \"%s\"", bad[i][0], err.text, bad[i][1]);
		ocs_text_free(&text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values),
		cmocka_unit_test(values_refused),
		cmocka_unit_test(templates),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
