/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* A list that expands survives compression and expansion unchanged. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/util/error.h"
#include "src/util/hostlist.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
	char *text = strndup((const char *)data, length), *folded;
	struct ocs_error err = { 0 };
	char **names, **again;
	int count = ocs_hostlist_expand(text, 2000, &names, &err);

	free(text);
	if (count < 0) {
		if (err.code != OCS_USAGE || names)
			abort();
		return 0;
	}
	folded = ocs_hostlist_compress(names, (size_t)count);
	if (ocs_hostlist_expand(folded, 2000, &again, &err) != count)
		abort();
	for (int i = 0; i < count; i++)
		if (strcmp(names[i], again[i]) != 0)
			abort();
	free(folded);
	ocs_names_free(names, (size_t)count);
	ocs_names_free(again, (size_t)count);
	return 0;
}
