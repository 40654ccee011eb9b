/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_PROTOCOL_RATE_LIMIT_H
#define OCS_OCSD_PROTOCOL_RATE_LIMIT_H

/* How much those who are no administrators may ask. */

#include "src/ocsd/state/ocsd.h"

/* One more client of UID; NULL: it may ask what it likes.  ocsd_limited_user_leave. */
struct ocsd_limited_user *ocsd_limited_user_enter(struct ocsd *d, uid_t uid);
void ocsd_limited_user_leave(struct ocsd_limited_user *limited_user);

/* How many connections more than it may have; 0 or less: none. */
int ocsd_limited_user_surplus(const struct ocsd *d, const struct ocsd_limited_user *limited_user);

/* 0: the next request may be done, and is counted; else when to try again, in ms. */
int ocsd_limited_user_wait_ms(struct ocsd *d, struct ocsd_limited_user *limited_user);
void ocsd_limited_users_free(struct ocsd *d);

#endif
