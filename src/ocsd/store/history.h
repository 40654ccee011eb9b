/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_STORE_HISTORY_H
#define OCS_OCSD_STORE_HISTORY_H

/* What happened to a switch. */

#include "src/ocsd/state/ocsd.h"

/* The LAST events (0: as many as usual) of the switch NAME, the newest last. */
struct json_object *ocsd_history(struct ocsd *d, const char *name, int64_t last);

#endif
