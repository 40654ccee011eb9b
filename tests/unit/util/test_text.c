/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* text, files, numbers, errors and the log. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/util/error.h"
#include "src/util/log.h"
#include "src/util/release.h"
#include "src/util/text.h"

static char folder[] = "/tmp/ocs-test-text.XXXXXX";

static int folder_make(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int folder_remove(void **state)
{
	(void)state;
	return rmdir(folder);
}

static void text_grows(void **state)
{
	struct ocs_text text = { 0 };
	char *data;

	(void)state;
	for (int i = 0; i < 1000; i++)
		ocs_text_add(&text, "%d,", i % 10);
	assert_int_equal(text.length, 2000);
	data = ocs_text_take(&text);
	assert_int_equal(strlen(data), 2000);
	assert_memory_equal(data, "0,1,2,", 6);
	assert_memory_equal(data + 1994, "7,8,9,", 6);
	free(data);
	assert_null(text.data);
	data = ocs_text_take(&text);
	assert_string_equal(data, "");
	free(data);
	/* one addition far beyond the room */
	data = ocs_asprintf("%0*d", 100000, 7);
	ocs_text_add(&text, "<%s>", data);
	assert_int_equal(text.length, 100002);
	free(data);
	ocs_text_free(&text);
	assert_null(text.data);
}

/* Without a format, what a format would have said. */
static void text_plain(void **state)
{
	static const long values[] = { 0, 7, -1, 10, 99, 100, -4096, LONG_MAX, LONG_MIN };
	struct ocs_text text = { 0 }, format = { 0 };

	(void)state;
	ocs_text_put(&text, "", 0);
	assert_string_equal(text.data, "");
	for (int round = 0; round < 100; round++)
		for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
			ocs_text_number(&text, values[i]);
			ocs_text_put(&text, ", and", 2);
			ocs_text_add(&format, "%ld, ", values[i]);
		}
	assert_int_equal(text.length, strlen(text.data));
	assert_string_equal(text.data, format.data);
	ocs_text_free(&text);
	ocs_text_free(&format);
}

static void text_clean(void **state)
{
	static const struct {
		const char *dirty, *clean;
	} cases[] = {
		{ "", "" },
		{ "plain ~ text", "plain ~ text" },
		{ "a\nb\tc\033[2Jd\177", "a?b?c?[2Jd?" },
		{ "Gr\xc3\xb6\xc3\x9f"
		  "e \xe2\x82\xac \xf0\x9f\x94\xa6",
		  "Gr\xc3\xb6\xc3\x9f"
		  "e \xe2\x82\xac \xf0\x9f\x94\xa6" },
		/* C1, as a byte and as a character; the direction turned; a line separator */
		{ "\x9b"
		  "31m \xc2\x9b"
		  "31m",
		  "?31m ?31m" },
		{ "\xe2\x80\xae"
		  "evil\xe2\x81\xa6\xd8\x9c",
		  "?evil??" },
		{ "a\xe2\x80\xa8"
		  "b",
		  "a?b" },
		{ "\xef\xbb\xbf\xe2\x80\x8b", "??" },
		/* too long a form, a surrogate, beyond the last, cut off */
		{ "\xc0\xaf \xe0\x80\xaf", "?? ???" },
		{ "\xed\xa0\x80", "???" },
		{ "\xf4\x90\x80\x80", "????" },
		{ "\xe2\x82", "??" },
		{ "\xff\xfe", "??" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *text = ocs_strdup(cases[i].dirty);

		assert_int_equal(ocs_text_is_clean(text), !strcmp(text, cases[i].clean));
		assert_string_equal(ocs_text_clean(text), cases[i].clean);
		assert_true(ocs_text_is_clean(text));
		free(text);
	}
}

static void numbers(void **state)
{
	static const char *const bad[] = { "",
					   " 1",
					   "1 ",
					   "+1",
					   "-1",
					   "0x10",
					   "1.0",
					   "a",
					   "9223372036854775808",
					   "99999999999999999999",
					   "101",
					   "4" };
	char text[32];
	long value = -7;

	(void)state;
	assert_int_equal(ocs_number_parse("007", 5, 100, &value), 0);
	assert_int_equal(value, 7);
	assert_int_equal(ocs_number_parse("100", 5, 100, &value), 0);
	assert_int_equal(value, 100);
	snprintf(text, sizeof(text), "%ld", LONG_MAX);
	assert_int_equal(ocs_number_parse(text, 0, LONG_MAX, &value), 0);
	assert_true(value == LONG_MAX);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(ocs_number_parse(bad[i], 5, 100, &value), -1);
	assert_int_equal(ocs_number_parse(NULL, 5, 100, &value), -1);
	assert_true(value == LONG_MAX);
}

static void errors(void **state)
{
	struct ocs_error err = { 0 };
	char *big = ocs_asprintf("%0*d", 3000, 1);

	(void)state;
	assert_int_equal(ocs_error_set(&err, OCS_NEVER, "no %s", "way"), -1);
	assert_int_equal(err.code, OCS_NEVER);
	assert_int_equal(ocs_error_prefix(&err, "file:%d", 3), -1);
	assert_string_equal(err.text, "file:3: no way");
	assert_int_equal(err.code, OCS_NEVER);
	ocs_error_set(&err, OCS_ERROR, "quoted %s", "a\nb\033[1m");
	assert_string_equal(err.text, "quoted a?b?[1m");
	ocs_error_set(&err, OCS_ERROR, "%s", big);
	ocs_error_prefix(&err, "where");
	assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
	assert_memory_equal(err.text, "where: 000", 10);
	assert_int_equal(ocs_error_set(NULL, OCS_ERROR, "x"), -1);
	assert_int_equal(ocs_error_prefix(NULL, "x"), -1);
	assert_string_equal(ocs_error_cause("switch s1: no answer", "switch s1"), "no answer");
	assert_string_equal(ocs_error_cause("switch s1 failed: no answer", "switch s1"),
			    "no answer");
	assert_string_equal(ocs_error_cause("switch s10: no answer", "switch s1"),
			    "switch s10: no answer");
	assert_string_equal(ocs_error_cause("no answer", "switch s1"), "no answer");
	assert_string_equal(ocs_error_cause("switch s1", "switch s1"), "switch s1");
	free(big);
}

static void files(void **state)
{
	char *path = ocs_asprintf("%s/file", folder);
	struct ocs_error err = { 0 };
	struct stat status;
	size_t length;
	char *data;

	(void)state;
	assert_null(ocs_file_read(path, 100, NULL, &err));
	assert_non_null(strstr(err.text, path));
	assert_int_equal(err.code, OCS_ERROR);
	assert_int_equal(ocs_file_write(path, "a\0b", 3, 0640, &err), 0);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0640);
	data = ocs_file_read(path, 3, &length, &err);
	assert_non_null(data);
	assert_int_equal(length, 3);
	assert_memory_equal(data, "a\0b", 4);
	free(data);
	assert_null(ocs_file_read(path, 2, NULL, &err));
	assert_non_null(strstr(err.text, "larger than the 2 bytes"));
	assert_int_equal(ocs_file_write(path, "", 0, 0600, &err), 0);
	data = ocs_file_read(path, 0, &length, &err);
	assert_non_null(data);
	assert_int_equal(length, 0);
	free(data);
	unlink(path);
	free(path);
}

/* A failed write must leave the old file and no temporary behind. */
static void file_write_fails_whole(void **state)
{
	char *path = ocs_asprintf("%s/taken", folder);
	char *inside = ocs_asprintf("%s/missing/file", folder);
	struct ocs_error err = { 0 };
	struct dirent *entry;
	int entries = 0;
	DIR *dir;

	(void)state;
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(ocs_file_write(path, "x", 1, 0600, &err), -1);
	assert_non_null(strstr(err.text, path));
	assert_int_equal(ocs_file_write(inside, "x", 1, 0600, &err), -1);
	dir = opendir(folder);
	assert_non_null(dir);
	while ((entry = readdir(dir)))
		entries += entry->d_name[0] != '.';
	closedir(dir);
	assert_int_equal(entries, 1);
	rmdir(path);
	free(path);
	free(inside);
}

static void *log_much(void *argument)
{
	(void)argument;
	for (int i = 0; i < 500; i++)
		ocs_log(OCS_LOG_INFO, "thread line %d two\nlines", i);
	return NULL;
}

/* Runs BODY with stderr in a file and returns what it wrote. */
static char *stderr_of(void (*body)(void))
{
	char *path = ocs_asprintf("%s/stderr", folder), *text;
	int saved = dup(STDERR_FILENO);

	assert_true(saved >= 0);
	assert_non_null(freopen(path, "w", stderr));
	body();
	fflush(stderr);
	dup2(saved, STDERR_FILENO);
	close(saved);
	text = ocs_file_read(path, 1 << 20, NULL, NULL);
	assert_non_null(text);
	unlink(path);
	free(path);
	return text;
}

static void log_threads(void)
{
	pthread_t threads[4];

	unsetenv("JOURNAL_STREAM");
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, log_much, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}

static void log_lines_stay_whole(void **state)
{
	char *text = stderr_of(log_threads);
	int lines = 0;

	(void)state;
	for (char *line = text; *line; lines++) {
		char *end = strchr(line, '\n');
		int number;

		assert_non_null(end);
		*end = '\0';
		assert_int_equal(sscanf(line, "%*s info thread line %d two lines", &number), 1);
		assert_in_range(number, 0, 499);
		line = end + 1;
	}
	assert_int_equal(lines, 2000);
	free(text);
}

static void log_levels(void)
{
	setenv("JOURNAL_STREAM", "8:1", 1);
	ocs_log(OCS_LOG_DEBUG, "hidden");
	ocs_log_level_set(OCS_LOG_ERROR);
	ocs_log(OCS_LOG_WARNING, "hidden");
	ocs_log(OCS_LOG_ERROR, "%s", "seen");
	ocs_log_level_set(OCS_LOG_DEBUG);
	ocs_log(OCS_LOG_DEBUG, "%5000d", 1);
	errno = ENOENT;
	ocs_log(OCS_LOG_WARNING, "%m");
	unsetenv("JOURNAL_STREAM");
	ocs_log_level_set(OCS_LOG_INFO);
}

static void log_filters(void **state)
{
	char *text = stderr_of(log_levels);
	enum ocs_log_level level = OCS_LOG_ERROR;

	(void)state;
	assert_memory_equal(text, "<3>seen\n<7>   ", 13);
	assert_null(strstr(text, "hidden"));
	assert_non_null(strstr(text, "\n<4>No such file or directory\n"));
	free(text);
	assert_int_equal(ocs_log_level_parse("debug", &level), 0);
	assert_int_equal(level, OCS_LOG_DEBUG);
	assert_int_equal(ocs_log_level_parse("loud", &level), -1);
	assert_int_equal(level, OCS_LOG_DEBUG);
}

static void test_release(void **state)
{
	static const char *const none[] = { "",	     "2",	"2.",	 ".2",	"2.x",
					    "2.29.", "2.29.7x", "2.290", "0.1", "2.1.2.3" };

	(void)state;
	assert_int_equal(ocs_release_parse("2.29.7", 0), OCS_RELEASE(2, 29, 7));
	assert_int_equal(ocs_release_parse("2.30", 0), 23000);
	assert_int_equal(ocs_release_parse("2.29.7-1", 0), 0);
	assert_int_equal(ocs_release_parse("2.29.7-1", 1), 22907);
	assert_int_equal(ocs_release_parse("2.21.5+cuda12.4", 1), 22105);
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		assert_int_equal(ocs_release_parse(none[i], 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_release),
		cmocka_unit_test(text_grows),
		cmocka_unit_test(text_plain),
		cmocka_unit_test(text_clean),
		cmocka_unit_test(numbers),
		cmocka_unit_test(errors),
		cmocka_unit_test(files),
		cmocka_unit_test(file_write_fails_whole),
		cmocka_unit_test(log_lines_stay_whole),
		cmocka_unit_test(log_filters),
	};

	return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
