/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_PLUGINS_COMPAT_SLURM_API_H
#define OCS_PLUGINS_COMPAT_SLURM_API_H

/* Slurm's public interface, for code that is built without a source tree, and
 * what differs in it between releases. */

/* slurm.h declares functions with empty parentheses. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <slurm/slurm_version.h>
#pragma GCC diagnostic pop

#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(26, 5, 0)
static inline slurm_step_id_t ocs_slurm_whole_job(uint32_t job)
{
	slurm_step_id_t id = SLURM_STEP_ID_INITIALIZER;

	id.job_id = job;
	return id;
}
#else
#define ocs_slurm_whole_job(job) (job)
#endif

/* All answer as the functions of Slurm that they are named after. */
static inline int ocs_slurm_load_job(job_info_msg_t **reply, uint32_t job)
{
	return slurm_load_job(reply, ocs_slurm_whole_job(job), SHOW_ALL);
}

static inline int ocs_slurm_requeue(uint32_t job, uint32_t flags)
{
	return slurm_requeue(ocs_slurm_whole_job(job), flags);
}

static inline int ocs_slurm_notify_job(uint32_t job, char *text)
{
	return slurm_notify_job(ocs_slurm_whole_job(job), text);
}

static inline int ocs_slurm_kill_job(uint32_t job, uint16_t signal)
{
	return slurm_kill_job(ocs_slurm_whole_job(job), signal, 0);
}

#endif
