/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "src/util/error.h"
#include "src/util/hostlist.h"
#include "src/util/text.h"

/* The names of TEXT separated by blanks. */
static char *expanded(const char *text)
{
	struct ocs_error err = { 0 };
	struct ocs_text joined = { 0 };
	char **names;
	int count = ocs_hostlist_expand(text, 10000, &names, &err);

	if (count < 0)
		fail_msg("%s: %s", text, err.text);
	for (int i = 0; i < count; i++)
		ocs_text_add(&joined, "%s%s", i ? " " : "", names[i]);
	ocs_names_free(names, (size_t)count);
	return ocs_text_take(&joined);
}

static void expand(void **state)
{
	static const char *const cases[][2] = {
		{ "", "" },
		{ "login", "login" },
		{ "n[0-3,7],gpu[08-10]-a,login", "n0 n1 n2 n3 n7 gpu08-a gpu09-a gpu10-a login" },
		{ "ocs-[x,y]-[0-1]-[2,01]",
		  "ocs-x-0-2 ocs-x-0-01 ocs-x-1-2 ocs-x-1-01 ocs-y-0-2 ocs-y-0-01 ocs-y-1-2 ocs-y-1-01" },
		{ "n[9-11]", "n9 n10 n11" },
		{ "n[098-101]", "n098 n099 n100 n101" },
		{ " a , b[1-2]", "a b1 b2" },
		{ "[1-2]", "1 2" },
		{ "n[3,1,2]", "n3 n1 n2" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *names = expanded(cases[i][0]);

		assert_string_equal(names, cases[i][1]);
		free(names);
	}
}

static void expand_refuses(void **state)
{
	static const char *const cases[][2] = {
		{ "a[", "no closing" },
		{ "a[1-2", "no closing" },
		{ "a]", "cannot be part" },
		{ "a[]", "holds numbers" },
		{ "a[1,,2]", "holds numbers" },
		{ "a[1-]", "not a range" },
		{ "a[-1]", "not a range" },
		{ "a[x-z]", "not a range" },
		{ "a[3-1]", "backwards" },
		{ "a[1-016]", "leading zeros" },
		{ "a[0-9999999999999999999]", "not a range" },
		{ "a,", "ends with a comma" },
		{ ",a", "empty name" },
		{ "a,,b", "empty name" },
		{ "a b", "cannot be part" },
		{ "a[[1]]", "holds numbers" },
		{ "n[0-100]", "more than the 100 names" },
		{ "n[0-99],m", "more than the 100 names" },
		{ "n[0-10][0-10]", "more than the 100 names" },
		{ "n[0-999999999999999999]", "more than the 100 names" },
		{ "n[1][1][1][1][1][1][1][1][1]", "more than 8 brackets" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ocs_error err = { 0 };
		char **names;
		int count = ocs_hostlist_expand(cases[i][0], 100, &names, &err);

		if (count >= 0)
			fail_msg("%s was accepted", cases[i][0]);
		assert_null(names);
		assert_int_equal(err.code, OCS_USAGE);
		if (!strstr(err.text, cases[i][1]))
			fail_msg("%s: \"%s\" does not say \"%s\"", cases[i][0], err.text,
				 cases[i][1]);
	}
}

static void long_names(void **state)
{
	char *text = ocs_asprintf("%0*d[1-2]", 254, 0);
	struct ocs_error err = { 0 };
	char **names;

	(void)state;
	assert_int_equal(ocs_hostlist_expand(text, 10, &names, &err), 2);
	assert_int_equal(strlen(names[0]), 255);
	ocs_names_free(names, 2);
	free(text);
	text = ocs_asprintf("%0*d[1-2]", 255, 0);
	assert_int_equal(ocs_hostlist_expand(text, 10, &names, &err), -1);
	free(text);
}

static void compress(void **state)
{
	static const char *const cases[][2] = {
		{ "", "" },
		{ "a", "a" },
		{ "n0,n1,n2,n3,n7", "n[0-3,7]" },
		{ "n3,n2,n1", "n[3,2,1]" },
		{ "n0,m0,n1", "n0,m0,n1" },
		{ "gpu08-a,gpu09-a,gpu10-a,login", "gpu[08-10]-a,login" },
		{ "n9,n10,n11", "n[9-11]" },
		{ "n9,n010", "n[9,010]" },
		{ "n098,n099,n100", "n[098-100]" },
		{ "n1,n1", "n[1,1]" },
		{ "c1-x0,c1-x1,c2-x0", "c1-x[0-1],c2-x0" },
		{ "n99999999999999999999,n99999999999999999998",
		  "n99999999999999999999,n99999999999999999998" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ocs_error err = { 0 };
		char **names, *text;
		int count = ocs_hostlist_expand(cases[i][0], 100, &names, &err);

		assert_true(count >= 0);
		text = ocs_hostlist_compress(names, (size_t)count);
		assert_string_equal(text, cases[i][1]);
		free(text);
		ocs_names_free(names, (size_t)count);
	}
}

/* Expanding what was compressed gives the same names, whatever they are. */
static void round_trips(void **state)
{
	unsigned int seed = 1;

	(void)state;
	for (int round = 0; round < 300; round++) {
		char *names[40], **again, *text;
		int count = rand_r(&seed) % 40, back;
		struct ocs_error err = { 0 };

		for (int i = 0; i < count; i++)
			names[i] = ocs_asprintf("%s%0*d%s", rand_r(&seed) % 4 ? "n" : "a1-",
						rand_r(&seed) % 4 ? 1 : 3, rand_r(&seed) % 12 + 5,
						rand_r(&seed) % 5 ? "" : "-b");
		text = ocs_hostlist_compress(names, (size_t)count);
		back = ocs_hostlist_expand(text, 100, &again, &err);
		if (back != count)
			fail_msg("%s: %d names became %d", text, count, back);
		for (int i = 0; i < count; i++) {
			assert_string_equal(names[i], again[i]);
			free(names[i]);
		}
		ocs_names_free(again, (size_t)back);
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(expand),      cmocka_unit_test(expand_refuses),
		cmocka_unit_test(long_names),  cmocka_unit_test(compress),
		cmocka_unit_test(round_trips),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
