/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Whether a sanitizer is in this build. */

#ifndef OCS_TEST_SANITIZER_H
#define OCS_TEST_SANITIZER_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/* How many of CASES random ones to run.  A sanitizer looks for faults of memory, which a quarter shows;
 * results are compared in all of them by the build without, in a tenth of the time. */
static inline int cases_here(int cases)
{
	return SANITIZED ? (cases + 3) / 4 : cases;
}

#endif
