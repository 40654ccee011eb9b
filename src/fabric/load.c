/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* ocs.yaml (in progress: the loader follows in the next commit). */

#include "src/fabric/internal.h"
#include "src/util/error.h"

struct ocs_fabric *ocs_fabric_parse(const char *text, size_t length,
				    const char *source, struct ocs_error *err)
{
	(void)text;
	(void)length;
	ocs_error_set(err, OCS_ERROR, "%s: this build cannot read ocs.yaml yet", source);
	return NULL;
}
