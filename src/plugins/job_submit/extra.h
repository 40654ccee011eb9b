/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_PLUGINS_EXTRA_H
#define OCS_PLUGINS_EXTRA_H

#include "src/fold/shape.h"

/* EXTRA (may be NULL) without the words of an earlier shape, followed by those of
 * SHAPE.  The caller frees it. */
char *ocs_extra_with(const char *extra, const struct ocs_shape *shape);

#endif
