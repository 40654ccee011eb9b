/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_OPS_SHOW_H
#define OCS_OCSD_OPS_SHOW_H

/* What people may look at. */

#include "src/ocsd/state/ocsd.h"

void ocsd_op_show(struct ocsd *d, struct ocsd_client *client, int64_t id,
		  struct json_object *request);

#endif
