/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Model files, which come from users.  What is accepted has finite counts, and every
 * operator but the last is read by a later one. */

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/model/model.h"
#include "src/util/error.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ocs_error err = { 0 };
	struct ocs_model *model = ocs_model_parse((const char *)data, size, "f", &err);

	if (!model) {
		if (err.code != OCS_USAGE || strncmp(err.text, "f:", 2) != 0 ||
		    strchr(err.text, '\n'))
			abort();
		return 0;
	}
	if (!isfinite(ocs_model_parameters(model)) || !isfinite(ocs_model_flops(model)) ||
	    ocs_model_dense_parameters(model) > ocs_model_parameters(model))
		abort();
	for (int i = 0; i < model->noperators; i++) {
		int consumer = model->operators[i].consumer;

		if (i + 1 < model->noperators ? consumer <= i || consumer >= model->noperators :
						consumer != -1)
			abort();
	}
	ocs_model_destroy(model);
	return 0;
}
