/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSCTL_CMD_LINK_TIMES_H
#define OCS_OCSCTL_CMD_LINK_TIMES_H

/* What 'rails check' and 'region check' measure in a job of their own: changes of circuits, and the links after them. */

#include <stdint.h>

struct json_object;
struct ocs_error;
struct ocs_text_table;

#define OCS_CTL_CHANGES 10

/* Times of one rail or group, in ms. */
struct ocs_ctl_times {
	double change[OCS_CTL_CHANGES], link[OCS_CTL_CHANGES];
	int nchanges;
	int nlinks;	  /* LINK has so many: each is that of the slowest port of this node */
	const char *late; /* a device without a carrier at the end, or NULL */
};

/* The job that this process runs in, its epoch, and the key in FILE of its directory, which the caller frees.
 * 0, or -1: there is none of these. */
int ocs_ctl_job_key(const char *file, long *job, int64_t *epoch, char **key);

/* Waits until all COUNT DEVICES of this node (NULL: none is named) have a carrier, 20 s each at most, and adds what that took. */
void ocs_ctl_links_time(struct ocs_ctl_times *times, const char *const *devices, int count);

/* The middle change and the middle link together; sorts them. */
double ocs_ctl_times_whole(struct ocs_ctl_times *times);

/* The cells CHANGE, LONGEST, LINK, LONGEST, FAULT. */
void ocs_ctl_times_row(struct ocs_ctl_times *times, struct ocs_text_table *table);
/* change_ms, change_max_ms, link_ms, link_max_ms and no_carrier. */
void ocs_ctl_times_json(struct ocs_ctl_times *times, struct json_object *row);
/* MS to the microsecond. */
struct json_object *ocs_ctl_times_number(double ms);
/* -1 with ERR: the device of TIMES that is late. */
int ocs_ctl_times_late(const struct ocs_ctl_times *times, const char *command,
		       struct ocs_error *err);

#endif
