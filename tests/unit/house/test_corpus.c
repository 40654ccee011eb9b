/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* What fuzzing has found worth keeping goes through the parsers of one protocol
 * (CORPUS) again, so that every build, with its sanitizers, sees it. */

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "src/util/error.h"
#include "src/util/text.h"

#define FOLDER TEST_SOURCE_DIR "/tests/fuzz/corpus/" CORPUS

#ifndef CORPUS_LEAST
#define CORPUS_LEAST 50 /* files; a folder that is empty or elsewhere is a fault */
#endif

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

static void test_corpus(void **state)
{
	DIR *folder = opendir(FOLDER);
	struct dirent *entry;
	int count = 0;

	(void)state;
	assert_non_null(folder);
	while ((entry = readdir(folder))) {
		struct ocs_error err;
		size_t length;
		char *path, *data;
		uint8_t *exact;

		if (entry->d_name[0] == '.')
			continue;
		path = ocs_asprintf("%s/%s", FOLDER, entry->d_name);
		data = ocs_file_read(path, 1 << 20, &length, &err);
		if (!data)
			fail_msg("%s", err.text);
		/* Without the zero behind it, so that reading on is noticed. */
		exact = ocs_calloc(1, length ? length : 1);
		memcpy(exact, data, length);
		LLVMFuzzerTestOneInput(exact, length);
		free(exact);
		free(data);
		free(path);
		count++;
	}
	closedir(folder);
	assert_true(count > CORPUS_LEAST);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_corpus) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
