/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_PLUGINS_COMPAT_SPANK_ENV_H
#define OCS_PLUGINS_COMPAT_SPANK_ENV_H

/* The SPANK environment of a job, which spank_ocs finds in prologs.  Its entries may carry the
 * prefix that SPANK gives them. */

#include "src/plugins/compat/compat.h"

/* The value of ENTRY (may be NULL) if it is NAME's, or NULL. */
static inline const char *ocs_spank_value(const char *entry, const char *name)
{
	size_t length = strlen(name);

	if (entry && !xstrncmp(entry, "SPANK_", 6))
		entry += 6;
	return entry && !xstrncmp(entry, name, length) && entry[length] == '=' ?
		       entry + length + 1 :
		       NULL;
}

/* The value of NAME in JOB's, or NULL. */
static inline const char *ocs_spank_get(const job_record_t *job, const char *name)
{
	const char *value = NULL;

	for (uint32_t i = 0; i < job->spank_job_env_size && !value; i++)
		value = ocs_spank_value(job->spank_job_env[i], name);
	return value;
}

#endif
