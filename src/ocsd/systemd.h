/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_SYSTEMD_H
#define OCS_OCSD_SYSTEMD_H

struct event;
struct event_base;
struct ocsd;

/* Sends TEXT ("READY=1") to the service manager, if one listens. */
void ocsd_service_tell(const char *text);

/* The sockets are open: tells the service manager and the parent. */
void ocsd_ready(struct ocsd *d);

/* Tells the service manager at once, and from BASE twice in the interval that it
 * has set, that the loop turns.  event_free the result; NULL: nobody wants to know. */
struct event *ocsd_service_watchdog(struct event_base *base);

#endif
