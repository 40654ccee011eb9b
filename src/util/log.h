/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_UTIL_LOG_H
#define OCS_UTIL_LOG_H

/* Log of the stand-alone programs (plugins use Slurm's).  Lines go to stderr
 * as "TIME LEVEL MESSAGE"; under systemd (JOURNAL_STREAM set) as "<N>MESSAGE". */
enum ocs_log_level { OCS_LOG_ERROR, OCS_LOG_WARNING, OCS_LOG_INFO, OCS_LOG_DEBUG };

/* Lines above LEVEL are dropped; the default is OCS_LOG_INFO. */
void ocs_log_level_set(enum ocs_log_level level);

/* Parses "error", "warning", "info" or "debug".  Returns -1 if unknown. */
int ocs_log_level_parse(const char *text, enum ocs_log_level *level);

/* Thread-safe; appends the newline. */
void ocs_log(enum ocs_log_level level, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
