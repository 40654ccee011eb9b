/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_UTIL_BASE64_H
#define OCS_UTIL_BASE64_H

#include <stddef.h>

/* How a demand file travels in a job's SPANK environment, whose entries are
 * strings without line breaks.  The caller frees the results. */
char *ocs_base64_encode(const char *data, size_t length);
/* NULL if TEXT is not base64 (with padding, without line breaks). */
char *ocs_base64_decode(const char *text);

#endif
