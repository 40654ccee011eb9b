/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* What a job wants of the features of its nodes, as Slurm reads it. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "src/util/constraint.h"

static void words(void **state)
{
	(void)state;
	assert_true(ocs_constraint_meet("a", 0, "a"));
	assert_true(ocs_constraint_meet("a&c", 0, "a,b,c"));
	assert_true(ocs_constraint_meet("a,c", 0, "a,b,c"));
	assert_false(ocs_constraint_meet("a&d", 0, "a,b,c"));
	assert_true(ocs_constraint_meet("d|c", 0, "a,b,c"));
	assert_false(ocs_constraint_meet("d|e", 0, "a,b,c"));
	/* parts of words are other words */
	assert_false(ocs_constraint_meet("rack", 0, "rack1"));
	assert_false(ocs_constraint_meet("rack1", 0, "rack"));
	assert_false(ocs_constraint_meet("a", 0, ""));
	assert_false(ocs_constraint_meet("a", 0, NULL));
}

/* The manual of sbatch: strictly from left to right, but for groups. */
static void order(void **state)
{
	(void)state;
	assert_true(ocs_constraint_meet("foo&bar|baz", 0, "baz"));
	assert_false(ocs_constraint_meet("foo|bar&baz", 0, "foo"));
	assert_true(ocs_constraint_meet("foo|bar&baz", 0, "foo,baz"));
	assert_true(ocs_constraint_meet("foo|(bar&baz)", 0, "foo"));
	assert_true(ocs_constraint_meet("foo&(bar|baz)", 0, "foo,baz"));
	assert_false(ocs_constraint_meet("foo&(bar|baz)", 0, "baz"));
	assert_true(ocs_constraint_meet("(a|b)&c", 0, "b,c"));
	assert_false(ocs_constraint_meet("(a|b)&c", 0, "a,b"));
}

static void alternatives(void **state)
{
	(void)state;
	assert_int_equal(ocs_constraint_alternatives("a|b"), 1);
	assert_int_equal(ocs_constraint_alternatives("[a|b|c]"), 3);
	assert_int_equal(ocs_constraint_alternatives("x&[a|b]&y"), 2);
	assert_true(ocs_constraint_meet("[a|b]", 0, "a"));
	assert_false(ocs_constraint_meet("[a|b]", 1, "a"));
	assert_false(ocs_constraint_meet("[a|b]", 2, "a,b"));
	assert_false(ocs_constraint_meet("[a|b]", -1, "a,b"));
	assert_true(ocs_constraint_meet("x&[a|b]", 1, "b,x"));
	assert_false(ocs_constraint_meet("x&[a|b]", 1, "b"));
	assert_true(ocs_constraint_meet("[(a&x)|(b&y)]&z", 1, "b,y,z"));
	assert_false(ocs_constraint_meet("[(a&x)|(b&y)]&z", 0, "b,y,z"));
}

static void counts(void **state)
{
	static const char *const all[] = { "a*2", "[a*2&b*1]", "[(a|b)*2&c*1]", "[a&b]", "[a,b]" };

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		assert_int_equal(ocs_constraint_alternatives(all[i]), 0);
		assert_false(ocs_constraint_meet(all[i], 0, "a,b,c"));
	}
}

static void nonsense(void **state)
{
	static const char *const all[] = { "", "&", "a&", "|a", "(a", "a)", "[a", "a]", "[a|]", "a(b)",
					   "((a)|b)", "([a|b])", "[a|[b]]", "[a|b]&[c|d]", "a*", "*2",
					   "a*b", "()", "[]" };

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		if (ocs_constraint_alternatives(all[i]) != -1)
			fail_msg("\"%s\" is taken", all[i]);
		assert_false(ocs_constraint_meet(all[i], 0, "a,b,c"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words),
		cmocka_unit_test(order),
		cmocka_unit_test(alternatives),
		cmocka_unit_test(counts),
		cmocka_unit_test(nonsense),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
