/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_STATE_EVENTS_H
#define OCS_OCSD_STATE_EVENTS_H

/* What subscribers are told. */

#include "src/ocsd/state/ocsd.h"

/* Queues EVENT (put later) for those who are subscribed now.  It goes out with the replies of
 * this pass and in order with them, once it is durable. */
void ocsd_event_post(struct ocsd *d, struct json_object *event);

/* The same for the controller of the job that EVENT names, if it is connected then. */
void ocsd_controller_post(struct ocsd *d, struct json_object *event);

#endif
