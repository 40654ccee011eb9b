/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_DEGRADED_MODE_H
#define OCS_OCSD_DEGRADED_MODE_H

/* While the database cannot be used. */

#include "src/ocsd/state/ocsd.h"

/* Refuses whatever is asked with the sentence d->standby and tries the database in
 * FOLDER, first after DELAY_MS, until it can be opened and has room, or a signal ends the
 * daemon (d->stopping).  D needs its fabric, switches and administrators. */
void ocsd_standby(struct ocsd *d, const char *folder, int delay_ms);

#endif
