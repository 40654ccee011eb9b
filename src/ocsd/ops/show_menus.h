/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_OPS_SHOW_MENUS_H
#define OCS_OCSD_OPS_SHOW_MENUS_H

/* What the views of jobs on rails and of jobs in regions share. */

#include <stdbool.h>
#include <stdint.h>

struct json_object;
struct ocsd;
struct ocsd_client;
struct ocsd_job;
struct ocsd_rail;

/* A row of a view of a job with a menu; the caller puts it. */
typedef struct json_object *ocsd_menu_row(const struct ocsd *d, const struct ocsd_job *job);

/* Answers request ID of CLIENT with a list FIELD of what ROW makes of each job with a menu that CLIENT may
 * see, in a region if REGION, on rails if not; of one job only if REQUEST names it. */
void ocsd_show_menus(struct ocsd *d, struct ocsd_client *client, int64_t id,
		     struct json_object *request, const char *field, bool region,
		     ocsd_menu_row *row);

/* Adds to ROW the switch of RAIL, what stands there, and how far its last request has come. */
void ocsd_show_rail(const struct ocsd *d, const struct ocsd_rail *rail, struct json_object *row);

/* Adds to ROW what JOB, which has a menu, has changed and was refused, changes a second, and what its controller
 * says of them. */
void ocsd_show_changes(const struct ocsd_job *job, struct json_object *row);

#endif
