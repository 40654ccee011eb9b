/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_PROTOCOL_MUNGE_H
#define OCS_OCSD_PROTOCOL_MUNGE_H

/* MUNGE credentials, decoded in a thread of their own. */

#include "src/ocsd/state/ocsd.h"

typedef void (*ocsd_auth_done)(struct ocsd *d, uint64_t serial, const char *payload, uid_t uid,
			       const char *error);
struct ocsd_auth *ocsd_auth_start(struct ocsd *d, ocsd_auth_done done, struct ocs_error *err);
/* DONE will get what CREDENTIAL of client SERIAL says; those of each PEER wait for each other.
 * 0, or -1: too many of PEER wait. */
int ocsd_auth_ask(struct ocsd_auth *auth, uint64_t serial, const char *peer,
		  const char *credential);
void ocsd_auth_stop(struct ocsd_auth *auth);

#endif
