/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSCTL_SLURM_SLURM_TIME_H
#define OCS_OCSCTL_SLURM_SLURM_TIME_H

/* Times as Slurm's commands take and print them. */

#include <time.h>

struct ocs_error;

/* "30", "30:00", "1:30:00", "2-0", "2-12:30", "2-12:30:00", "unlimited": seconds, 0 for
 * unlimited.  -1 with ERR: the fault and a correct form. */
long ocs_ctl_duration_parse(const char *text, struct ocs_error *err);

/* "now", "now+2hours", "16:30", "2026-12-01", "2026-12-01T16:30": the local time meant,
 * seen from NOW.  0, or -1 with ERR. */
int ocs_ctl_moment_parse(const char *text, time_t now, time_t *moment, struct ocs_error *err);

/* "2026-12-01T16:30:00"; OTHERWISE for 0.  BUFFER is OCS_CTL_WHEN_TEXT bytes. */
#define OCS_CTL_WHEN_TEXT 32
const char *ocs_ctl_moment_format(time_t moment, const char *otherwise, char *buffer);

#endif
