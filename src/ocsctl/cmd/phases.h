/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSCTL_CMD_PHASES_H
#define OCS_OCSCTL_CMD_PHASES_H

/* Jobs whose circuits on rails may follow their phases, as ocsd's `show` `phases` tells. */

struct json_object;

/* A paragraph and a table of rails for each entry of LIST. */
void ocs_ctl_phases_print(struct json_object *list);

/* Two lines about ONE, for explain; nothing if ONE is NULL. */
void ocs_ctl_phases_summary(struct json_object *one);

#endif
