/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* What a node has, a line, and what is wanted of it.  No alternative is met beyond those that
 * there are, and none is met by the words of a node that has none. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/util/constraint.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
	char *have = strndup((const char *)data, length), *wanted = strchr(have, '\n');
	int n;

	if (wanted) {
		*wanted++ = '\0';
		n = ocs_constraint_alternatives(wanted);
		if (n < -1 || ocs_constraint_meet(wanted, -1, have) ||
		    ocs_constraint_meet(wanted, n < 0 ? 0 : n, have))
			abort();
		for (int i = 0; i < n && i < 16; i++) {
			ocs_constraint_meet(wanted, i, have);
			if (ocs_constraint_meet(wanted, i, NULL))
				abort();
		}
	}
	free(have);
	return 0;
}
