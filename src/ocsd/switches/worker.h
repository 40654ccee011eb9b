/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_SWITCHES_WORKER_H
#define OCS_OCSD_SWITCHES_WORKER_H

/* One thread per switch: the only writer to it. */

#include "src/ocsd/state/ocsd.h"

int ocsd_workers_start(struct ocsd *d, struct ocs_error *err);
void ocsd_workers_stop(struct ocsd *d);

/* Hands work over; a read asks for the health of the ports too.  The arrays become
 * the worker's.  QUICK: the table is not read before where it is known.  Only when sw->busy is idle. */
void ocsd_worker_read(struct ocsd *d, struct ocsd_switch *sw);
void ocsd_worker_test(struct ocsd *d, struct ocsd_switch *sw, const struct ocsd_test *test);
void ocsd_worker_apply(struct ocsd *d, struct ocsd_switch *sw, struct ocs_patch *remove,
		       size_t nremove, struct ocs_patch *add, size_t nadd, bool quick);

#endif
