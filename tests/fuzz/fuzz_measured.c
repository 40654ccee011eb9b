/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Tables of measured times of operators, which come from users.  What is accepted has finite times of at
 * least one operator of the model. */

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/optimise/measured.h"
#include "src/util/error.h"
#include "src/util/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char yaml[] = "model: small\nprecision: fp32\nbatch: {gpu: 64}\nlayers:\n"
			   "- {name: t, kind: embedding, rows: 1000, columns: 64, lookups: 1}\n"
			   "- {name: d, kind: dense, inputs: 64, outputs: 512}\n";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ocs_error err = { 0 };
	struct ocs_model *model = ocs_model_parse(yaml, sizeof(yaml) - 1, "m", &err);
	char *text = ocs_asprintf("%.*s", (int)size, (const char *)data);
	struct ocs_optimise_measured measured;

	if (ocs_optimise_measured_parse(text, "f", model, 1, &measured, &err)) {
		if (err.code != OCS_USAGE || strncmp(err.text, "f", 1) != 0 ||
		    strchr(err.text, '\n') || measured.forward_ms)
			abort();
	} else {
		for (int i = 0; i < model->noperators; i++)
			if (!isfinite(measured.forward_ms[i]) || measured.forward_ms[i] < 0 ||
			    !isfinite(measured.backward_ms[i]) || measured.backward_ms[i] < 0)
				abort();
		if (measured.known < 1 || measured.known > model->noperators)
			abort();
		ocs_optimise_measured_free(&measured);
	}
	free(text);
	ocs_model_destroy(model);
	return 0;
}
