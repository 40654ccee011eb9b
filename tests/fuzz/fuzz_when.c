/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* A duration is not negative, a time that was read is written and read again alike. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/ocsctl/slurm/slurm_time.h"
#include "src/util/error.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
	char *text = strndup((const char *)data, length), written[OCS_CTL_WHEN_TEXT];
	const time_t now = 1795305600;
	struct ocs_error err = { 0 };
	time_t moment, again;

	if (ocs_ctl_duration_parse(text, &err) < 0 && err.code != OCS_USAGE)
		abort();
	if (ocs_ctl_moment_parse(text, now, &moment, &err)) {
		if (err.code != OCS_USAGE)
			abort();
	} else if (moment) {
		ocs_ctl_moment_format(moment, "", written);
		if (ocs_ctl_moment_parse(written, now, &again, &err) || again != moment)
			abort();
	}
	free(text);
	return 0;
}
