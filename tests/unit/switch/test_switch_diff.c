/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "src/switch/switch.h"
#include "src/util/error.h"

#define SIZE 8
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void fill(struct ocs_table *table, const struct ocs_patch *patches, size_t count)
{
	ocs_table_init(table, SIZE);
	for (size_t i = 0; i < count; i++)
		table->out[patches[i].in] = patches[i].out;
}

static void expect(const struct ocs_patch *patches, size_t count, const struct ocs_patch *wanted,
		   size_t nwanted)
{
	assert_int_equal(count, nwanted);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(patches[i].in, wanted[i].in);
		assert_int_equal(patches[i].out, wanted[i].out);
	}
}

static void test_only_differences(void **state)
{
	const struct ocs_patch now[] = { { 1, 9 }, { 2, 10 }, { 3, 11 } };
	const struct ocs_patch remove[] = { { 1, 9 }, { 4, 12 }, { 3, 12 }, { 1, 9 } };
	const struct ocs_patch add[] = { { 2, 10 }, { 5, 13 }, { 5, 13 } };
	struct ocs_switch_diff diff;
	struct ocs_table table;
	struct ocs_error err = { 0 };

	(void)state;
	fill(&table, now, COUNT(now));
	assert_int_equal(
		ocs_switch_diff(&table, remove, COUNT(remove), add, COUNT(add), &diff, &err), 0);
	expect(diff.remove, diff.nremove, &(struct ocs_patch){ 1, 9 }, 1);
	expect(diff.add, diff.nadd, &(struct ocs_patch){ 5, 13 }, 1);
	ocs_switch_diff_free(&diff);
	assert_int_equal(ocs_switch_diff(&table, NULL, 0, now, COUNT(now), &diff, &err), 0);
	assert_int_equal(diff.nremove + diff.nadd, 0);
	ocs_switch_diff_free(&diff);
	ocs_table_free(&table);
}

static void test_swap(void **state)
{
	const struct ocs_patch now[] = { { 1, 9 }, { 2, 10 } };
	const struct ocs_patch add[] = { { 1, 10 }, { 2, 9 } };
	struct ocs_switch_diff diff;
	struct ocs_table table;
	struct ocs_error err = { 0 };

	(void)state;
	fill(&table, now, COUNT(now));
	assert_int_equal(ocs_switch_diff(&table, now, 2, add, 2, &diff, &err), 0);
	expect(diff.remove, diff.nremove, now, 2);
	expect(diff.add, diff.nadd, add, 2);
	ocs_switch_diff_free(&diff);
	/* In both lists: it stays. */
	assert_int_equal(ocs_switch_diff(&table, now, 2, now, 1, &diff, &err), 0);
	expect(diff.remove, diff.nremove, &now[1], 1);
	assert_int_equal(diff.nadd, 0);
	ocs_switch_diff_free(&diff);
	ocs_table_free(&table);
}

static void refused(const struct ocs_table *table, const struct ocs_patch *remove, size_t nremove,
		    const struct ocs_patch *add, size_t nadd, const char *first, const char *second)
{
	struct ocs_switch_diff diff;
	struct ocs_error err = { 0 };

	assert_int_equal(ocs_switch_diff(table, remove, nremove, add, nadd, &diff, &err), -1);
	assert_non_null(strstr(err.text, first));
	assert_non_null(strstr(err.text, second));
	assert_null(diff.remove);
	assert_null(diff.add);
}

static void test_conflicts(void **state)
{
	const struct ocs_patch now[] = { { 1, 9 }, { 2, 10 } };
	struct ocs_table table;

	(void)state;
	fill(&table, now, COUNT(now));
	/* ingress taken, egress taken */
	refused(&table, NULL, 0, &(struct ocs_patch){ 1, 11 }, 1, "1>9", "1>11");
	refused(&table, NULL, 0, &(struct ocs_patch){ 3, 10 }, 1, "2>10", "3>10");
	/* removing the wrong patch of that ingress does not free it */
	refused(&table, &(struct ocs_patch){ 1, 12 }, 1, &(struct ocs_patch){ 1, 11 }, 1, "1>9",
		"1>11");
	/* a patch that stays because it is wanted does not free its ports */
	refused(&table, now, 2, (const struct ocs_patch[]){ { 1, 9 }, { 3, 9 } }, 2, "1>9", "3>9");
	/* two adds share a port */
	refused(&table, NULL, 0, (const struct ocs_patch[]){ { 3, 11 }, { 3, 12 } }, 2, "3>11",
		"3>12");
	refused(&table, NULL, 0, (const struct ocs_patch[]){ { 3, 11 }, { 4, 11 } }, 2, "3>11",
		"4>11");
	/* ports that do not exist */
	refused(&table, NULL, 0, &(struct ocs_patch){ 0, 11 }, 1, "0>11", "ingress 1..8");
	refused(&table, NULL, 0, &(struct ocs_patch){ 9, 11 }, 1, "9>11", "8x8");
	refused(&table, NULL, 0, &(struct ocs_patch){ 3, 8 }, 1, "3>8", "egress 9..16");
	refused(&table, NULL, 0, &(struct ocs_patch){ 3, 17 }, 1, "3>17", "8x8");
	refused(&table, &(struct ocs_patch){ -1, 0 }, 1, NULL, 0, "-1>0", "8x8");
	ocs_table_free(&table);
}

static unsigned int next(unsigned int *seed)
{
	*seed = *seed * 1103515245 + 12345;
	return *seed >> 16;
}

static void random_table(struct ocs_table *table, unsigned int *seed)
{
	ocs_table_init(table, SIZE);
	for (int i = 0; i < SIZE; i++) {
		int in = 1 + (int)(next(seed) % SIZE), out = SIZE + 1 + (int)(next(seed) % SIZE);
		bool taken = table->out[in];

		for (int other = 1; other <= SIZE; other++)
			taken |= table->out[other] == out;
		if (!taken)
			table->out[in] = out;
	}
}

static size_t random_patches(struct ocs_patch *patches, unsigned int *seed,
			     const struct ocs_table *table)
{
	size_t count = next(seed) % 6;

	for (size_t i = 0; i < count; i++) {
		patches[i].in = 1 + (int)(next(seed) % SIZE);
		patches[i].out = SIZE + 1 + (int)(next(seed) % SIZE);
		/* often one that is there */
		if (next(seed) % 2 && table->out[patches[i].in])
			patches[i].out = table->out[patches[i].in];
	}
	return count;
}

static bool listed(const struct ocs_patch *patches, size_t count, int in, int out)
{
	for (size_t i = 0; i < count; i++)
		if (patches[i].in == in && patches[i].out == out)
			return true;
	return false;
}

/* What the change means, said the slow way: true if TABLE can become what is
 * asked for; AFTER is that. */
static bool oracle(const struct ocs_table *table, const struct ocs_patch *remove, size_t nremove,
		   const struct ocs_patch *add, size_t nadd, int *after)
{
	for (int in = 1; in <= SIZE; in++) {
		int out = table->out[in];

		after[in] =
			listed(remove, nremove, in, out) && !listed(add, nadd, in, out) ? 0 : out;
	}
	for (size_t i = 0; i < nadd; i++) {
		if (after[add[i].in] == add[i].out)
			continue;
		if (after[add[i].in])
			return false;
		for (int in = 1; in <= SIZE; in++)
			if (after[in] == add[i].out)
				return false;
		after[add[i].in] = add[i].out;
	}
	return true;
}

static void test_random(void **state)
{
	unsigned int seed = 1;
	int possible = 0, refusals = 0;

	(void)state;
	for (int round = 0; round < 20000; round++) {
		struct ocs_patch remove[8], add[8];
		struct ocs_switch_diff diff;
		struct ocs_table table;
		struct ocs_error err;
		size_t nremove, nadd;
		int after[SIZE + 1];
		bool can;

		random_table(&table, &seed);
		nremove = random_patches(remove, &seed, &table);
		nadd = random_patches(add, &seed, &table);
		can = oracle(&table, remove, nremove, add, nadd, after);
		assert_int_equal(ocs_switch_diff(&table, remove, nremove, add, nadd, &diff, &err),
				 can ? 0 : -1);
		*(can ? &possible : &refusals) += 1;
		/* Played back with the rules of a switch, it leads to AFTER. */
		for (size_t i = 0; can && i < diff.nremove; i++) {
			assert_int_equal(table.out[diff.remove[i].in], diff.remove[i].out);
			table.out[diff.remove[i].in] = 0;
		}
		for (size_t i = 0; can && i < diff.nadd; i++) {
			assert_int_equal(table.out[diff.add[i].in], 0);
			for (int in = 1; in <= SIZE; in++)
				assert_int_not_equal(table.out[in], diff.add[i].out);
			table.out[diff.add[i].in] = diff.add[i].out;
		}
		for (int in = 1; can && in <= SIZE; in++)
			assert_int_equal(table.out[in], after[in]);
		if (can)
			ocs_switch_diff_free(&diff);
		ocs_table_free(&table);
	}
	assert_true(possible > 1000 && refusals > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_only_differences),
		cmocka_unit_test(test_swap),
		cmocka_unit_test(test_conflicts),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
