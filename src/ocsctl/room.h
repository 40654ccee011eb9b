/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSCTL_ROOM_H
#define OCS_OCSCTL_ROOM_H

/* What is free on each section with cubes, how broken it is, and the largest shapes that
 * could start now. */

struct json_object;
struct ocs_client;
struct ocs_ctl_args;
struct ocs_error;

/* Asks ocsd over CLIENT and reads the fabric that ARGS name (else the site's).  Returns an
 * array with an object per section (put it), or NULL with ERR. */
struct json_object *ocs_ctl_room(const struct ocs_ctl_args *args, struct ocs_client *client,
				 struct ocs_error *err);

#endif
