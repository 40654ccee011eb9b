/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Topology and graph files, which come from users.  The report agrees with itself,
 * is printable, and a file in which nothing is wrong still has nothing wrong with a
 * comment in front; cut off in the middle of a tag it has. */

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/nccl/check.h"
#include "src/util/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int errors_of(const char *text, size_t size)
{
	struct ocs_nccl_report report;
	int errors = ocs_nccl_check(text, size, &report), listed = 0;

	for (int i = 0; i < report.faults.count; i++) {
		const struct ocs_nccl_fault *fault = &report.faults.list[i];

		listed += fault->error;
		if (fault->line < 1 || (i && fault->line < report.faults.list[i - 1].line) ||
		    (fault->fatal && !fault->error) || !*fault->text)
			abort();
		for (const char *c = fault->text; *c; c++)
			if (!isprint((unsigned char)*c))
				abort();
	}
	if (errors != report.faults.errors || listed > errors || report.faults.fatal > errors)
		abort();
	ocs_nccl_report_free(&report);
	return errors;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int errors = errors_of((const char *)data, size);
	char *text;

	if (errors)
		return 0;
	text = ocs_calloc(size + 16, 1);
	memcpy(text, "<!-- a -->\n", 11);
	memcpy(text + 11, data, size);
	if (errors_of(text, size + 11))
		abort();
	/* without its last '>' the file ends inside a tag */
	while (size && data[size - 1] != '>')
		size--;
	if (size == 0 || !errors_of((const char *)data, size - 1))
		abort();
	free(text);
	return 0;
}
