/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/nccl/check.h"
#include "src/util/text.h"
#include "tests/unit/nccl/nccl_rig.h"

int nccl_count(const char *text, const char *what)
{
	int n = 0;

	while ((text = strstr(text, what))) {
		n++;
		text += strlen(what);
	}
	return n;
}

char *nccl_server(void)
{
	const char *source = getenv("OCS_SOURCE_DIR");

	return ocs_asprintf("%s/tests/data/server-8gpu-4nic.xml",
			    source ? source : TEST_SOURCE_DIR);
}

void nccl_spotless(const char *name, const char *text)
{
	struct ocs_nccl_report report;

	ocs_nccl_check(text, strlen(text), &report);
	for (int i = 0; i < report.faults.count; i++)
		fail_msg("%s:%d: %s", name, report.faults.list[i].line, report.faults.list[i].text);
	ocs_nccl_report_free(&report);
}
