/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_PORTS_DRAIN_H
#define OCS_OCSD_PORTS_DRAIN_H

/* Cubes, ports and switches that are out of service. */

#include "src/ocsd/state/ocsd.h"

void ocsd_op_drain(struct ocsd *d, struct ocsd_client *client, int64_t id,
		   struct json_object *request);
void ocsd_op_resume(struct ocsd *d, struct ocsd_client *client, int64_t id,
		    struct json_object *request);
void ocsd_op_fail(struct ocsd *d, struct ocsd_client *client, int64_t id,
		  struct json_object *request);

/* Puts a drain into memory (REASON NULL: takes it away). */
void ocsd_drain_set(struct ocsd *d, const char *kind, const char *name,
		    const char *reason);
const struct ocsd_drain *ocsd_drain_find(const struct ocsd *d, const char *kind,
					 const char *name);

/* A port carries no light any more: drained, and circuits of a running job on a
 * direct fabric move off it.  WHO asked (NULL: ocsd itself). */
void ocsd_port_fail(struct ocsd *d, struct ocsd_client *who, struct ocs_port where,
		    const char *reason);

/* Light comes in at a port that was out of service.  If that was for want of light it returns,
 * or is again what it was before: drained by somebody.  True if so. */
bool ocsd_port_lit(struct ocsd *d, struct ocs_port where);

/* All drains and quarantined ports, for subscribe and show. */
struct json_object *ocsd_drains_json(struct ocsd *d);

/* Takes a drain away, in memory and in the database, and announces it. */
void ocsd_resume(struct ocsd *d, const char *kind, const char *name, uid_t who);
void ocsd_drain_event(struct ocsd *d, const char *kind, const char *name,
		      const char *reason, bool drained);

#endif
