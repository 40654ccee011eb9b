/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* What a job wants of the features of its nodes, as Slurm reads it. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "src/util/constraint.h"

struct judged {
	const char *wanted;
	int index;
	const char *have;
	bool met;
};

static void judge(const struct judged *all, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (ocs_constraint_meet(all[i].wanted, all[i].index, all[i].have) != all[i].met)
			fail_msg("\"%s\", alternative %d, with \"%s\"", all[i].wanted, all[i].index,
				 all[i].have ? all[i].have : "(none)");
	}
}

static void words(void **state)
{
	static const struct judged all[] = {
		{ "a", 0, "a", true },
		{ "a&c", 0, "a,b,c", true },
		{ "a,c", 0, "a,b,c", true },
		{ "a&d", 0, "a,b,c", false },
		{ "d|c", 0, "a,b,c", true },
		{ "d|e", 0, "a,b,c", false },
		/* parts of words are other words */
		{ "rack", 0, "rack1", false },
		{ "rack1", 0, "rack", false },
		{ "a", 0, "", false },
		{ "a", 0, NULL, false },
	};

	(void)state;
	judge(all, sizeof(all) / sizeof(*all));
}

/* The manual of sbatch: strictly from left to right, but for groups. */
static void order(void **state)
{
	static const struct judged all[] = {
		{ "foo&bar|baz", 0, "baz", true },	 { "foo|bar&baz", 0, "foo", false },
		{ "foo|bar&baz", 0, "foo,baz", true },	 { "foo|(bar&baz)", 0, "foo", true },
		{ "foo&(bar|baz)", 0, "foo,baz", true }, { "foo&(bar|baz)", 0, "baz", false },
		{ "(a|b)&c", 0, "b,c", true },		 { "(a|b)&c", 0, "a,b", false },
	};

	(void)state;
	judge(all, sizeof(all) / sizeof(*all));
}

static void alternatives(void **state)
{
	static const struct judged all[] = {
		{ "[a|b]", 0, "a", true },
		{ "[a|b]", 1, "a", false },
		{ "[a|b]", 2, "a,b", false },
		{ "[a|b]", -1, "a,b", false },
		{ "x&[a|b]", 1, "b,x", true },
		{ "x&[a|b]", 1, "b", false },
		{ "[(a&x)|(b&y)]&z", 1, "b,y,z", true },
		{ "[(a&x)|(b&y)]&z", 0, "b,y,z", false },
	};

	(void)state;
	assert_int_equal(ocs_constraint_alternatives("a|b"), 1);
	assert_int_equal(ocs_constraint_alternatives("[a|b|c]"), 3);
	assert_int_equal(ocs_constraint_alternatives("x&[a|b]&y"), 2);
	judge(all, sizeof(all) / sizeof(*all));
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
	static const char *const all[] = { "",	      "&",	 "a&",	    "|a",	   "(a",
					   "a)",      "[a",	 "a]",	    "[a|]",	   "a(b)",
					   "((a)|b)", "([a|b])", "[a|[b]]", "[a|b]&[c|d]", "a*",
					   "*2",      "a*b",	 "()",	    "[]" };

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
		cmocka_unit_test(words),	cmocka_unit_test(order),
		cmocka_unit_test(alternatives), cmocka_unit_test(counts),
		cmocka_unit_test(nonsense),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
