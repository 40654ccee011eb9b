/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_METRICS_HTTP_H
#define OCS_OCSD_METRICS_HTTP_H

/* The little of HTTP that a collector of metrics needs: one GET or HEAD a connection.  Anybody
 * may connect, so that few connections are open at a time, and none for long: the oldest
 * makes room.  (libevent's own server has no bound for either.) */

struct ocs_error;
struct ocsd;
struct ocsd_http;

/* Answers for PATH on ADDRESS (host:port) with what TEXT yields (it is freed) of type TYPE;
 * D and the two strings outlive it.  NULL with ERR.  ocsd_http_close. */
struct ocsd_http *ocsd_http_open(struct ocsd *d, const char *address, const char *path,
				 const char *type, char *(*text)(struct ocsd *d),
				 struct ocs_error *err);
/* NULL is fine. */
void ocsd_http_close(struct ocsd_http *http);

#endif
