/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/fold/shape.h"
#include "src/util/error.h"

static void test_good(void **state)
{
	static const char *const good[] = {
		"1",	       "18",	  "6x4",	   "4x8x2",	     "8x8x4",
		"2x2x2x2x2x2", "1048576", "4x4x8_twisted", "8x16x16_twisted"
	};
	char text[OCS_SHAPE_TEXT];
	struct ocs_error err;
	struct ocs_shape shape;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(ocs_shape_parse(good[i], NULL, &shape, &err), 0);
		assert_string_equal(ocs_shape_format(&shape, text), good[i]);
	}
	assert_int_equal(ocs_shape_parse("4X8x2", NULL, &shape, &err), 0);
	assert_string_equal(ocs_shape_format(&shape, text), "4x8x2");
	assert_int_equal(ocs_shape_extra_parse("shape=4X4X8_twisted", &shape, &err), 1);
	assert_string_equal(ocs_shape_format(&shape, text), "4x4x8_twisted");
	assert_int_equal(ocs_shape_parse("4x8x2", "torus,torus,mesh", &shape, &err), 0);
	assert_int_equal(shape.xpus, 64);
	assert_false(shape.mesh[1]);
	assert_true(shape.mesh[2]);
	assert_string_equal(ocs_shape_conn_format(&shape, text), "torus,torus,mesh");
	assert_int_equal(ocs_shape_parse("4x8x2", "mesh", &shape, &err), 0);
	assert_string_equal(ocs_shape_conn_format(&shape, text), "mesh,mesh,mesh");
}

/* Each fault has a line of its own, and a failed parse changes nothing. */
static void test_bad(void **state)
{
	static const struct {
		const char *text, *conn, *says;
	} bad[] = {
		{ "", NULL, "empty" },
		{ "0x4x4", NULL, "extent 0" },
		{ "4x4x", NULL, "dimension 3 is missing" },
		{ "x4", NULL, "dimension 1 is missing" },
		{ "4xx4", NULL, "dimension 2 is missing" },
		{ "4xX4", NULL, "dimension 2 is missing" },
		{ "4X", NULL, "dimension 2 is missing" },
		{ "axb", NULL, "'a' is not a number" },
		{ "-4x4", NULL, "negative" },
		{ "+4x4", NULL, "'+4' is not a number" },
		{ " 4x4", NULL, "' 4' is not a number" },
		{ "4x4 ", NULL, "'4 ' is not a number" },
		{ "4*4", NULL, "'4*4' is not a number" },
		{ "4x\n4", NULL, "'?4' is not a number" },
		{ "(null)", NULL, "not a number" },
		{ "4x4x4x4x4x4x4", NULL, "7 dimensions" },
		{ "99999999999999999999", NULL, "too large" },
		{ "1048577", NULL, "too large" },
		{ "1048576x1048576x1048576", NULL, "more than 1073741824 XPUs" },
		{ "4x4x4_twisted", NULL, "can be twisted" },
		{ "4x4_twisted", NULL, "can be twisted" },
		{ "4x4x4_twiste", NULL, "not a number" },
		{ "4x4x8_twisted", "mesh", "leave mesh out" },
		{ "4x4", "ring", "'ring' is unknown" },
		{ "4x4", "", "'' is unknown" },
		{ "4x4", "torus,", "'' is unknown" },
		{ "4x4", "torus,mesh,mesh", "3 connection types for 2" },
		{ "4x4x4", "torus,mesh", "2 connection types for 3" },
	};
	struct ocs_shape shape, before;
	struct ocs_error err;
	size_t i;

	(void)state;
	memset(&before, 0x5a, sizeof(before));
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		shape = before;
		memset(&err, 0, sizeof(err));
		assert_int_equal(ocs_shape_parse(bad[i].text, bad[i].conn, &shape, &err), -1);
		assert_int_equal(err.code, OCS_USAGE);
		assert_non_null(strstr(err.text, bad[i].says));
		assert_null(strchr(err.text, '\n'));
		assert_memory_equal(&shape, &before, sizeof(shape));
	}
}

static void test_long_input(void **state)
{
	char *text = malloc(100001);
	struct ocs_shape shape;
	struct ocs_error err;

	(void)state;
	memset(text, '9', 100000);
	text[100000] = '\0';
	assert_int_equal(ocs_shape_parse(text, NULL, &shape, &err), -1);
	memset(text, 'x', 100000);
	assert_int_equal(ocs_shape_parse(text, text, &shape, &err), -1);
	assert_true(strlen(err.text) < 300);
	free(text);
}

static void test_rank(void **state)
{
	struct ocs_shape shape;
	int coord[OCS_SHAPE_DIMS];
	struct ocs_error err;
	long rank;

	(void)state;
	assert_int_equal(ocs_shape_parse("3x4x5", NULL, &shape, &err), 0);
	ocs_shape_coord(&shape, 23, coord);
	assert_int_equal(coord[0], 1);
	assert_int_equal(coord[1], 0);
	assert_int_equal(coord[2], 3);
	for (rank = 0; rank < shape.xpus; rank++) {
		ocs_shape_coord(&shape, rank, coord);
		assert_int_equal(ocs_shape_rank(&shape, coord), rank);
	}
}

static void test_extra(void **state)
{
	struct ocs_shape shape, again;
	struct ocs_error err;
	char text[OCS_SHAPE_TEXT];
	char *extra;

	(void)state;
	memset(&shape, 0, sizeof(shape));
	memset(&again, 0, sizeof(again));
	assert_int_equal(ocs_shape_extra_parse(NULL, &shape, &err), 0);
	assert_int_equal(ocs_shape_extra_parse("", &shape, &err), 0);
	assert_int_equal(ocs_shape_extra_parse("my shape of=4 conn=mesh", &shape, &err), 0);
	assert_int_equal(
		ocs_shape_extra_parse("shape=2x2 no-fold mine shape=4x8x2 x", &shape, &err), 1);
	assert_string_equal(ocs_shape_format(&shape, text), "4x8x2");
	assert_false(shape.no_fold);
	extra = ocs_shape_extra_format(&shape);
	assert_string_equal(extra, "shape=4x8x2");
	free(extra);

	assert_int_equal(ocs_shape_parse("4x8x2", "torus,mesh,torus", &shape, &err), 0);
	shape.no_rotate = shape.no_fold = true;
	extra = ocs_shape_extra_format(&shape);
	assert_string_equal(extra, "shape=4x8x2 conn=torus,mesh,torus no-rotate no-fold");
	assert_int_equal(ocs_shape_extra_parse(extra, &again, &err), 1);
	assert_memory_equal(&shape, &again, sizeof(shape));
	free(extra);

	shape.no_rotate = shape.no_fold = false;
	shape.phases = OCS_PHASES_ON_DEMAND;
	extra = ocs_shape_extra_format(&shape);
	assert_string_equal(extra, "shape=4x8x2 conn=torus,mesh,torus phases=on-demand");
	assert_int_equal(ocs_shape_extra_parse(extra, &again, &err), 1);
	assert_memory_equal(&shape, &again, sizeof(shape));
	free(extra);
	assert_int_equal(ocs_shape_extra_parse("phases=on-demand shape=4 phases=off", &again, &err),
			 1);
	assert_int_equal(again.phases, OCS_PHASES_OFF);
	assert_int_equal(ocs_shape_extra_parse("shape=4 phases=on-demand shape=2", &again, &err),
			 1);
	assert_int_equal(again.phases, OCS_PHASES_OFF);
	assert_int_equal(ocs_shape_extra_parse("shape=4 phases=always", &again, &err), -1);
	assert_non_null(strstr(err.text, "--ocs-phases=always is unknown"));

	assert_int_equal(ocs_shape_extra_parse("shape=4x", &shape, &err), -1);
	assert_int_equal(err.code, OCS_USAGE);
	assert_int_equal(ocs_shape_extra_parse("shape=", &shape, &err), -1);
	assert_int_equal(ocs_shape_extra_parse("shape=4 conn=loop", &shape, &err), -1);
}

static void test_names(void **state)
{
	static const struct {
		const char *text, *plain;
		int stages;
	} good[] = {
		{ "pp:3,dp:2,cp:2,tp:8", "3x2x2x8", 0 },
		{ "dp:2,PP:4", "2x4", 1 },
		{ "deep+:3,pp:2,x2:4", "3x2x4", 0 },
		{ "a:4,b:4,c:8_twisted", "4x4x8_twisted", -1 },
		{ "dp:1048576", "1048576", -1 },
		{ "abcdefghijkl+:1048576,b:1,c:1,d:1,e:1,f:1", "1048576x1x1x1x1x1", 0 },
	};
	static const struct {
		const char *text, *says;
	} bad[] = {
		{ "pp:3,dp:2,Pp:2", "two dimensions are called Pp" },
		{ "pp:3,4", "'4' has no name; all dimensions have one or none" },
		{ "3,dp:4", "'3' has no name" },
		{ "3x4,dp:4", "'3x4' has no name" },
		{ "pp:3xdp:2", "'3xdp:2' is not a number" },
		{ "pp:3x2", "'3x2' is not a number" },
		{ ":3", "'' cannot be the name" },
		{ "+:3", "'+' cannot be the name" },
		{ "2d:3", "'2d' cannot be the name" },
		{ "p-p:3", "'p-p' cannot be the name" },
		{ "pp++:3", "'pp++' cannot be the name" },
		{ "abcdefghijklm:3", "12 at most" },
		{ "a+:2,b+:2", "two dimensions are marked" },
		{ "pp:", "the extent of dimension 1 is missing" },
		{ "pp:3,", "'' has no name" },
		{ "a:2,b:2,c:2,d:2,e:2,f:2,g:2", "7 dimensions" },
		{ "pp:3 dp:2", "'3 dp:2' is not a number" },
	};
	struct ocs_shape shape, again, plain;
	char text[OCS_SHAPE_TEXT], *extra;
	struct ocs_error err;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(ocs_shape_parse(good[i].text, NULL, &shape, &err), 0);
		assert_string_equal(ocs_shape_format(&shape, text), good[i].plain);
		assert_string_equal(ocs_shape_named_format(&shape, text), good[i].text);
		assert_int_equal(ocs_shape_stages(&shape), good[i].stages);
		extra = ocs_shape_extra_format(&shape);
		assert_string_equal(extra + 6, good[i].text);
		assert_int_equal(ocs_shape_extra_parse(extra, &again, &err), 1);
		assert_memory_equal(&shape, &again, sizeof(shape));
		free(extra);
		/* but for the names it is the plain one */
		assert_int_equal(ocs_shape_parse(good[i].plain, NULL, &plain, &err), 0);
		assert_false(ocs_shape_named(&plain));
		assert_int_equal(ocs_shape_stages(&plain), -1);
		assert_string_equal(ocs_shape_named_format(&plain, text), good[i].plain);
		ocs_shape_names_copy(&shape, &plain);
		assert_memory_equal(&shape, &plain, sizeof(shape));
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(ocs_shape_parse(bad[i].text, NULL, &again, &err), -1);
		assert_int_equal(err.code, OCS_USAGE);
		if (!strstr(err.text, bad[i].says))
			fail_msg("%s: \"%s\" does not say \"%s\"", bad[i].text, err.text,
				 bad[i].says);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),	   cmocka_unit_test(test_bad),
		cmocka_unit_test(test_long_input), cmocka_unit_test(test_rank),
		cmocka_unit_test(test_extra),	   cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
