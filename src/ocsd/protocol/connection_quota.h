/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_PROTOCOL_CONNECTION_QUOTA_H
#define OCS_OCSD_PROTOCOL_CONNECTION_QUOTA_H

/* Connections that have to make room for others: those of ordinary users by uid, and those
 * that have not said whose they are by address.  Every step takes the same time, however
 * many there are. */

#include "src/ocsd/protocol/client.h"

struct ocsd_quota;

/* CLIENT, which counts against no quota, counts against *QUOTA (made if NULL) as one of those called
 * NAME. */
void ocsd_quota_join(struct ocsd_quota **quota, struct ocsd_client *client, const char *name);
/* Fine for one that is in none. */
void ocsd_quota_leave(struct ocsd_client *client);
/* CLIENT has said something. */
void ocsd_quota_touch(struct ocsd_client *client);

size_t ocsd_quota_count(const struct ocsd_quota *quota);
/* Who goes first: of those with the most connections the one that has been silent longest.
 * NULL if the quota is empty or NULL. */
struct ocsd_client *ocsd_quota_first(const struct ocsd_quota *quota);

void ocsd_quota_free(struct ocsd_quota *quota);

#endif
