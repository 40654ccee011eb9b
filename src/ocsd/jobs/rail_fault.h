/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_JOBS_RAIL_FAULT_H
#define OCS_OCSD_JOBS_RAIL_FAULT_H

/* What slurmctld hears of rails of running jobs. */

#include "src/ocsd/state/ocsd.h"

struct ocsd_rail;

/* RAIL, which was asked for the giant ring, has got it or not: slurmctld is told.  A controller asks for that where
 * nothing else comes; as it is the user's, two things at most are said of a rail. */
void ocsd_rail_degrade(struct ocsd *d, const struct ocsd_job *job, struct ocsd_rail *rail);

/* Says which rails of JOB were asked for the giant ring, and what came of it; no-op if none was. */
void ocsd_rails_tell(struct ocsd *d, const struct ocsd_job *job);

#endif
