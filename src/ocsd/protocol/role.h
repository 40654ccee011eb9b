/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_PROTOCOL_ROLE_H
#define OCS_OCSD_PROTOCOL_ROLE_H

/* Who may ask for what.  The table of operations (ops/operations.c) has the role that each
 * request needs; doc/protocol.md says the same. */

#include "src/ocsd/state/ocsd.h"

enum ocsd_role {
	OCSD_ANYONE,
	OCSD_OWNER,	    /* anyone, and the reply has jobs that ocsd_role_owns */
	OCSD_CONTROLLER,    /* who has the key of the job and epoch of the request (controller.h) */
	OCSD_ADMINISTRATOR, /* slurmctld and the prologs of the nodes are, too */
};

/* Root, the account of ocsd, and ocsd.admins of ocs.yaml. */
bool ocsd_admin(const struct ocsd *d, uid_t uid);

/* Whether UID may ask in ROLE. */
bool ocsd_role_has(const struct ocsd *d, uid_t uid, enum ocsd_role role);

/* Whether UID is OWNER, the uid of a job's user (-1: not known), or an administrator. */
bool ocsd_role_owns(const struct ocsd *d, uid_t uid, int64_t owner);

#endif
