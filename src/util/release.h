/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_UTIL_RELEASE_H
#define OCS_UTIL_RELEASE_H

/* Numbers of releases that can be compared: 2.29.7 is 22907, as NCCL counts its own. */
#define OCS_RELEASE(major, minor, patch) ((major)*10000 + (minor)*100 + (patch))

/* Reads "2.29.7", "2.29" or, with LOOSE, what packages make of it ("2.29.7-1", "2.29.7+cuda13.0").
 * The number, or 0: no release.  Each part is below 100. */
int ocs_release_parse(const char *text, int loose);

#endif
