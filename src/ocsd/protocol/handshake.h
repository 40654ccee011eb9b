/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_PROTOCOL_HANDSHAKE_H
#define OCS_OCSD_PROTOCOL_HANDSHAKE_H

/* How a remote client says who it is. */

#include "src/ocsd/state/ocsd.h"

/* REQUEST is what CLIENT, of whom nothing is known yet, says. */
void ocsd_hello(struct ocsd_client *client, struct json_object *request);

/* What MUNGE makes of the credential of client SERIAL: PAYLOAD, or NULL and ERROR. */
void ocsd_hello_decoded(struct ocsd *d, uint64_t serial, const char *payload, uid_t uid,
			const char *error);

/* Whether clients take a process of this account for the ocsd of FABRIC.  0, or -1 with
 * ERR; only a warning where FABRIC does not say which account. */
int ocsd_hello_account(const struct ocs_config *config, struct ocs_error *err);

#endif
