/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_UTIL_HASH_H
#define OCS_UTIL_HASH_H

#include <stddef.h>
#include <stdint.h>

/* FNV-1a of 64 bits: it tells texts apart that differ by mistake, not on purpose. */
#define OCS_HASH_START UINT64_C(0xcbf29ce484222325)
/* HASH, OCS_HASH_START at first, continued over SIZE bytes of DATA. */
uint64_t ocs_hash(uint64_t hash, const void *data, size_t size);

#endif
