/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/sim/workload.h"
#include "src/util/error.h"

static void open_ok(struct ocs_sim_workload *w, const char *name)
{
	assert_int_equal(ocs_sim_workload_open(w, name, NULL, NULL, NULL, NULL), 0);
}

/* The counts and the mean that the published workload is known by. */
static void test_counts(void **unused)
{
	struct ocs_sim_workload w;
	double sum = 0, mean = 0;
	int i, count = 0, large = 0;

	(void)unused;
	open_ok(&w, "rfold-2025");
	assert_int_equal(w.nsizes, 318);
	for (i = 0; i < w.nshapes; i++) {
		sum += ocs_sim_workload_probability(&w, i);
		mean += ocs_sim_workload_probability(&w, i) * (double)w.shapes[i].xpus;
	}
	assert_true(fabs(sum - 1) < 1e-9);
	assert_true(mean > 305 && mean < 317);
	ocs_sim_workload_free(&w);

	open_ok(&w, "rfold-2025b");
	assert_int_equal(w.nsizes, 482);
	for (i = 0; i < w.nshapes; i++) {
		double p = ocs_sim_workload_probability(&w, i);

		count += p > 0;
		large += p > 0 && w.shapes[i].ndim == 3 && w.shapes[i].xpus <= 256;
	}
	assert_int_equal(count, 1879);
	assert_int_equal(large, 0);
	ocs_sim_workload_free(&w);
}

/* What is drawn has the probabilities it says, and only those. */
static void test_draws(void **unused)
{
	static const char *const names[] = { "rfold-2025", "tpu-v4" };
	const int draws = 200000;
	int n, i;

	(void)unused;
	for (n = 0; n < 2; n++) {
		struct ocs_sim_workload w;
		struct ocs_random random;
		struct ocs_sim_job job;
		double gaps = 0, off = 0;
		int *count;

		open_ok(&w, names[n]);
		count = calloc((size_t)w.nshapes, sizeof(int));
		ocs_random_seed(&random, 7);
		for (i = 0; i < draws; i++) {
			int k = 0;

			gaps += ocs_sim_workload_draw(&w, &random, &job);
			assert_true(job.duration > 0 && job.duration < 5300000);
			while (memcmp(&w.shapes[k], &job.shape, sizeof(job.shape)))
				k++;
			count[k]++;
		}
		assert_true(fabs(gaps / draws / 718 - 1) < .02);
		for (i = 0; i < w.nshapes; i++)
			off += fabs(count[i] / (double)draws - ocs_sim_workload_probability(&w, i));
		assert_true(off < .08); /* sampling noise of 1444 shapes: 0.05 */
		free(count);
		ocs_sim_workload_free(&w);
	}
}

static void test_seeds(void **unused)
{
	struct ocs_random a, b, c;
	int same = 0, i;

	(void)unused;
	ocs_random_seed(&a, 1);
	ocs_random_seed(&b, 1);
	ocs_random_seed(&c, 2);
	for (i = 0; i < 1000; i++) {
		uint64_t x = ocs_random_next(&a);

		assert_true(x == ocs_random_next(&b));
		same += x == ocs_random_next(&c);
	}
	assert_int_equal(same, 0);
	for (i = 0; i < 1000; i++) {
		int k = ocs_random_below(&a, 3);

		assert_true(k >= 0 && k < 3);
	}
}

static char path[] = "/tmp/test_workload.XXXXXX";

static void file_put(const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

#define HEAD "#job id,arrival time (sec),topology,shape,size,duration (sec)\n"

static void test_trace(void **unused)
{
	struct ocs_sim_trace trace, again;
	long i;

	(void)unused;
	file_put(HEAD
		 "0,0.0,T3D_NT,4x4x8,128,60.5\n1,10,T3D_T,4x4x8,128,7\n\n2,10,T3D_NT,18,18,3,9\r\n"
		 "3,11,T3D_NT,4,4,0\n");
	assert_int_equal(ocs_sim_trace_read(&trace, path, NULL), 0);
	assert_int_equal(trace.njobs, 3);
	assert_int_equal(trace.left_out, 1); /* the last takes no time */
	assert_true(trace.jobs[1].shape.twisted && !trace.jobs[0].shape.twisted);
	assert_int_equal(trace.jobs[2].priority, 9);
	assert_int_equal(ocs_sim_trace_write(&trace, path, NULL), 0);
	assert_int_equal(ocs_sim_trace_read(&again, path, NULL), 0);
	assert_int_equal(again.njobs, 3);
	for (i = 0; i < 3; i++) {
		assert_true(again.jobs[i].arrival == trace.jobs[i].arrival);
		assert_true(again.jobs[i].duration == trace.jobs[i].duration);
		assert_memory_equal(&again.jobs[i].shape, &trace.jobs[i].shape,
				    sizeof(struct ocs_shape));
	}
	ocs_sim_trace_free(&trace);
	ocs_sim_trace_free(&again);
}

/* Ids in any order, many of them. */
static void test_trace_ids(void **unused)
{
	FILE *file = fopen(path, "w");
	struct ocs_sim_trace trace;
	struct ocs_error err;
	int i;

	(void)unused;
	assert_non_null(file);
	for (i = 0; i < 5000; i++)
		fprintf(file, "%d,%d,T3D_NT,1x2x2,4,9\n", i * 7919 % 5000, i);
	fclose(file);
	assert_int_equal(ocs_sim_trace_read(&trace, path, NULL), 0);
	assert_int_equal(trace.njobs, 5000);
	ocs_sim_trace_free(&trace);
	file = fopen(path, "a");
	assert_non_null(file);
	fputs("4999,5000,T3D_NT,1x2x2,4,9\n", file);
	fclose(file);
	assert_int_equal(ocs_sim_trace_read(&trace, path, &err), -1);
	assert_non_null(strstr(err.text, ":5001: a line above has the job id 4999"));
}

static void test_wrong_files(void **unused)
{
	static const struct {
		const char *text, *says;
	} wrong[] = {
		{ HEAD "0,0,T3D_NT,4x4,16\n", ":2: 5 fields" },
		{ HEAD "0,0,T3D_NT,4x4,17,5\n", "has 16 XPUs" },
		{ HEAD "0,x,T3D_NT,4x4,16,5\n", "arrival" },
		{ HEAD "0,0,T3D_NT,4y4,16,5\n", ":2: " },
		{ HEAD "0,0,T3D_T,4x6,24,5\n", ":2: " },
		{ HEAD "0,9,T3D_NT,4,4,5\n1,8,T3D_NT,4,4,5\n", ":3: job 1 arrives before" },
		{ HEAD "0,0,T3D_NT,4,4,-5\n", "duration" },
		{ HEAD "0,0,T3D_NT,4,4,nan\n", "duration" },
		{ HEAD "0,0,CLOS,4,4,5\n", ":2: topology 'CLOS' is unknown; T3D_NT" },
		{ HEAD "0,0,,4,4,5\n", ":2: topology '' is unknown" },
		{ HEAD "7,0,T3D_NT,4,4,5\n\n7,1,T3D_NT,4,4,5\n",
		  ":4: a line above has the job id 7 already" },
		{ HEAD "7,0,T3D_NT,4,4,0\n7,1,T3D_NT,4,4,5\n",
		  ":3: a line above has the job id 7" },
		{ HEAD "1,9,T3D_NT,4,4,0\n2,8,T3D_NT,4,4,5\n", ":3: job 2 arrives before" },
		{ HEAD "1.5,0,T3D_NT,4,4,5\n", "whole number" },
		{ HEAD "1e30,0,T3D_NT,4,4,5\n", "whole number" },
		{ HEAD "1,0,T3D_NT,4,4.5,5\n", "has 4 XPUs" },
		{ HEAD "1,0,T3D_NT,4,4,5,1e20\n", "priority" },
		{ HEAD "1,0,T3D_NT,4,4,0\n", "holds no job that takes time" },
		{ HEAD, "holds no job that takes time" },
	};
	struct ocs_sim_workload w;
	struct ocs_sim_trace trace;
	struct ocs_error err;
	size_t i;

	(void)unused;
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		file_put(wrong[i].text);
		assert_int_equal(ocs_sim_trace_read(&trace, path, &err), -1);
		if (!strstr(err.text, wrong[i].says))
			fail_msg("%s: %s", wrong[i].text, err.text);
	}
	file_put("# nothing\n0,0,CLOS,1,1,0\n");
	assert_int_equal(ocs_sim_workload_open(&w, "rfold-2025", path, NULL, NULL, &err), -1);
	assert_non_null(strstr(err.text, "no duration above zero"));
	ocs_sim_workload_free(&w);
	file_put("1.0\n");
	assert_int_equal(ocs_sim_workload_open(&w, "rfold-2025", NULL, path, NULL, &err), -1);
	ocs_sim_workload_free(&w);
	assert_int_equal(ocs_sim_workload_open(&w, "rfold", NULL, NULL, NULL, &err), -1);
	assert_int_equal(err.code, OCS_USAGE);
	ocs_sim_workload_free(&w);
	assert_int_equal(ocs_sim_trace_read(&trace, "/nonexistent/trace", &err), -1);
}

/* Files replace what is built in. */
static void test_files(void **unused)
{
	struct ocs_sim_workload w;
	struct ocs_random random;
	struct ocs_sim_job job;
	int i, fives = 0;

	(void)unused;
	file_put("# gap, share\n5.0,75\n7.0,25\n");
	assert_int_equal(ocs_sim_workload_open(&w, "rfold-2025", NULL, path, NULL, NULL), 0);
	ocs_random_seed(&random, 3);
	for (i = 0; i < 4000; i++) {
		double gap = ocs_sim_workload_draw(&w, &random, &job);

		assert_true(gap == 5 || gap == 7);
		fives += gap == 5;
	}
	assert_true(fives > 2900 && fives < 3100);
	ocs_sim_workload_free(&w);
	file_put("0,T3D_T,4x4x8,128,0,50\n1,T3D_NT,2x2,4,0,50\n");
	assert_int_equal(ocs_sim_workload_open(&w, "tpu-v4", NULL, NULL, path, NULL), 0);
	assert_int_equal(w.nshapes, 2);
	assert_true(w.shapes[0].twisted);
	ocs_sim_workload_free(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counts),	  cmocka_unit_test(test_draws),
		cmocka_unit_test(test_seeds),	  cmocka_unit_test(test_trace),
		cmocka_unit_test(test_trace_ids), cmocka_unit_test(test_wrong_files),
		cmocka_unit_test(test_files),
	};
	int file = mkstemp(path), rc;

	if (file < 0)
		return 1;
	close(file);
	rc = cmocka_run_group_tests_name("workload", tests, NULL, NULL);
	unlink(path);
	return rc;
}
