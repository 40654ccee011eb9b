/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_SETTLE_H
#define OCS_OCSD_SETTLE_H

#include "src/ocsd/state/ocsd.h"

/* The end of every pass of the loop: takes the steps that are due, decides what each switch does
 * next, answers the requests that wait, commits the database, and only then lets replies, events
 * and batches out. */
void ocsd_settle(struct ocsd *d);

/* Opens the sockets for metrics and for clients, the local one last.  0, or -1 with ERR. */
int ocsd_listen(struct ocsd *d, struct ocs_error *err);

#endif
