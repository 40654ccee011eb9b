/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_PORTS_DRAIN_H
#define OCS_OCSD_PORTS_DRAIN_H

/* What goes out of service and returns. */

#include "src/ocsd/state/ocsd.h"

/* Tells subscribers that KIND NAME is drained because of REASON, or is not any more. */
void ocsd_drain_announce(struct ocsd *d, const char *kind, const char *name, const char *reason,
			 bool drained);

/* A port carries no light any more: drained, and circuits of a running job on a
 * direct fabric move off it.  WHO asked (NULL: ocsd itself). */
void ocsd_port_fail(struct ocsd *d, const uid_t *who, struct ocs_port where, const char *reason);

/* Light comes in at a port that was out of service.  If that was for want of light it returns,
 * or is again what it was before: drained by somebody.  True if so. */
bool ocsd_port_lit(struct ocsd *d, struct ocs_port where);

/* Takes a drain away, in memory and in the database, and announces it. */
void ocsd_resume(struct ocsd *d, const char *kind, const char *name, uid_t who);

#endif
