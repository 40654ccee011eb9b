/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_PROTOCOL_RATE_LIMIT_H
#define OCS_OCSD_PROTOCOL_RATE_LIMIT_H

/* How much those who are no administrators may ask. */

#include "src/ocsd/state/ocsd.h"

/* One more client of UID; NULL: it may ask what it likes.  ocsd_guest_leave. */
struct ocsd_guest *ocsd_guest_enter(struct ocsd *d, uid_t uid);
void ocsd_guest_leave(struct ocsd_guest *guest);

/* How many connections more than it may have; 0 or less: none. */
int ocsd_guest_surplus(const struct ocsd *d, const struct ocsd_guest *guest);

/* 0: the next request may be done, and is counted; else when to try again, in ms. */
int ocsd_guest_wait_ms(struct ocsd *d, struct ocsd_guest *guest);
void ocsd_guests_free(struct ocsd *d);

#endif
