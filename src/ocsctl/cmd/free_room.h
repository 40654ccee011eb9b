/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSCTL_CMD_FREE_ROOM_H
#define OCS_OCSCTL_CMD_FREE_ROOM_H

/* What is free on each section with cubes, how broken it is, and the largest shapes that
 * could start now; and all that is out of service. */

struct json_object;
struct ocs_client;
struct ocs_ctl_args;
struct ocs_error;

/* Asks ocsd over CLIENT, and sinfo, and reads the fabric that ARGS name (else the site's).
 * Adds "room", an object per section, and "out_of_service", [{"kind","name","state",
 * "reason"}], to REPLY.  Returns 0, or -1 with ERR. */
int ocs_ctl_room_add(const struct ocs_ctl_args *args, struct ocs_client *client,
		     struct json_object *reply, struct ocs_error *err);

#endif
