/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Random orders of everything that may happen to a job on rails, and the same without each rule of
 * its protocol, which must come out.  With arguments FIRST and COUNT: these seeds. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "src/rails/rules.h"
#include "tests/unit/rails/interleave.h"

int ocs_rails_without;

#define ORDERS 4000  /* with all rules; */
#define MUTANT 20000 /* at most, until the lack of a rule is seen */

static void orders_hold(void **state)
{
	struct interleave_result sum = { 0 };

	(void)state;
	for (uint64_t seed = 0; seed < ORDERS; seed++) {
		struct interleave_result result = interleave_run(seed);

		if (result.violation)
			fail_msg("seed %lu: %s", (unsigned long)seed, result.violation);
		sum.changes += result.changes;
		sum.errors += result.errors;
		sum.rings += result.rings;
		sum.retries += result.retries;
		sum.provisioned += result.provisioned;
	}
	/* Nothing holds where nothing happens. */
	assert_true(sum.changes > ORDERS);
	assert_true(sum.errors && sum.rings && sum.retries && sum.provisioned);
}

static void rule_needed(void **state)
{
	int rule = *(const int *)*state;
	const char *violation = NULL;

	ocs_rails_without = rule;
	for (uint64_t seed = 0; seed < MUTANT && !violation; seed++) {
		violation = interleave_run(seed).violation;
		if (violation)
			print_message("# without rule %d, seed %lu: %s\n", rule,
				      (unsigned long)seed, violation);
	}
	ocs_rails_without = 0;
	assert_non_null(violation);
}

static int seeds_run(uint64_t first, uint64_t count)
{
	unsigned long steps = 0, bad = 0;

	for (uint64_t seed = first; seed < first + count; seed++) {
		struct interleave_result result = interleave_run(seed);

		steps += result.steps;
		if (result.violation && ++bad <= 10)
			printf("seed %lu: %s\n", (unsigned long)seed, result.violation);
	}
	printf("%lu orders, %lu steps, %lu violations\n", (unsigned long)count, steps, bad);
	return bad != 0;
}

int main(int argc, char **argv)
{
	static int rules[OCS_RAILS_RULES];
	static const char *const names[OCS_RAILS_RULES] = {
		"",
		"all have arrived",
		"leases",
		"drained",
		"a wish holds nothing",
		"stale answers",
		"timeouts",
		"absolute requests",
		"the table is a hint",
		"nothing changes below packets",
	};
	struct CMUnitTest tests[OCS_RAILS_RULES] = { cmocka_unit_test(orders_hold) };

	if (argc == 4)
		ocs_rails_without = atoi(argv[3]);
	if (argc >= 3)
		return seeds_run(strtoull(argv[1], NULL, 10), strtoull(argv[2], NULL, 10));
	for (int rule = 1; rule < OCS_RAILS_RULES; rule++) {
		rules[rule] = rule;
		tests[rule] =
			(struct CMUnitTest){ names[rule], rule_needed, NULL, NULL, &rules[rule] };
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
