/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_STATE_OUT_OF_SERVICE_H
#define OCS_OCSD_STATE_OUT_OF_SERVICE_H

/* The table of cubes, nodes, XPUs, ports and switches that are out of service. */

#include "src/ocsd/state/ocsd.h"

/* How the reasons of ports in quarantine begin, */
#define OCSD_QUARANTINE "quarantine: "

/* and that of one that does not carry light any more. */
#define OCSD_PORT_FAILED "failed: "

/* What follows where light does not come in.  A host may have been off: such a port, and
 * only that, returns by itself when it is lit again. */
#define OCSD_UNLIT "no light comes in"

/* Puts a drain into memory (REASON NULL: takes it away). */
void ocsd_drain_set(struct ocsd *d, const char *kind, const char *name, const char *reason);
const struct ocsd_drain *ocsd_drain_find(const struct ocsd *d, const char *kind, const char *name);

/* The port that NAME, SWITCH:PORT, names: 0, or -1. */
int ocsd_port_parse(const struct ocsd *d, const char *name, struct ocs_port *port);

/* All drains and quarantined ports, for subscribe and show. */
struct json_object *ocsd_drains_json(struct ocsd *d);

/* Posts event `drain`. */
void ocsd_drain_event(struct ocsd *d, const char *kind, const char *name, const char *reason,
		      bool drained);

#endif
