/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_PROTOCOL_DISPATCH_H
#define OCS_OCSD_PROTOCOL_DISPATCH_H

/* Operations: what clients ask, handed to the one that does it. */

#include "src/ocsd/state/ocsd.h"

typedef void (*ocsd_operation)(struct ocsd *d, struct ocsd_client *client, int64_t id,
			       struct json_object *request);
void ocsd_request(struct ocsd *d, struct ocsd_client *client,
		  struct json_object *request);

/* Forgets what slurmctld said of waiting jobs. */
void ocsd_pending_clear(struct ocsd *d);

#endif
