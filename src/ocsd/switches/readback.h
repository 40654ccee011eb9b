/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_SWITCHES_READBACK_H
#define OCS_OCSD_SWITCHES_READBACK_H

/* What a read-back means. */

#include "src/ocsd/state/ocsd.h"

void ocsd_examine(struct ocsd *d, struct ocsd_switch *sw, const struct ocs_table *table);

/* Whether all patches of CIRCUIT are in TABLE. */
bool ocsd_circuit_seen(const struct ocsd_circuit *circuit, const struct ocs_table *table);

/* Notes it for the reconcile requests that wait, if SW's read-back is for them. */
void ocsd_drift(struct ocsd *d, const struct ocsd_switch *sw, int in, int out, const char *what);

#endif
