/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_PROTOCOL_ACCOUNT_H
#define OCS_PROTOCOL_ACCOUNT_H

/* The account that ocsd runs as, by which its clients know it. */

#include <stdbool.h>
#include <sys/types.h>

struct ocs_error;

#define OCS_ACCOUNT "ocsd" /* unless ocs.yaml has ocsd.user */

/* The uid of USER, a name or a number; NULL: of the account ocsd, or root where this host
 * has none.  0, or -1 with ERR (OCS_USAGE).  Asks the name service, which may take long. */
int ocs_account_uid(const char *user, uid_t *uid, struct ocs_error *err);

/* Whether a process of UID may be the ocsd of USER (as above) for this one: that account,
 * root, which can read every credential anyway, and the account of this process.
 * 0, or -1 with ERR (OCS_UNREACHABLE). */
int ocs_account_check(const char *user, uid_t uid, struct ocs_error *err);

#endif
