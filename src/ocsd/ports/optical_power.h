/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_PORTS_OPTICAL_POWER_H
#define OCS_OCSD_PORTS_OPTICAL_POWER_H

/* Optical power and what it says of paths. */

#include "src/ocsd/state/ocsd.h"

/* Less is no light. */
#define OCSD_DARK_DBM (-50.0)

/* Read-outs of light can lag a second behind a change. */
#define OCSD_LAG_NS INT64_C(1200000000)

/* Takes over HEALTH: baselines for new paths, suspicion and then quarantine for bad ones. */
void ocsd_power_read(struct ocsd *d, struct ocsd_switch *sw, struct ocs_health *health);

/* The most dB that the path IN>OUT may lose; INFINITY: any. */
double ocsd_power_limit(struct ocsd *d, const struct ocsd_switch *sw, int in, int out);

/* Members of a port for show: power, status, loss and baseline. */
void ocsd_power_show(struct ocsd *d, const struct ocsd_switch *sw, int port,
		     struct json_object *row);

#endif
