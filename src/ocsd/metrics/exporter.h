/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_METRICS_EXPORTER_H
#define OCS_OCSD_METRICS_EXPORTER_H

/* Numbers for Prometheus, over HTTP. */

struct ocs_error;
struct ocsd;

/* Answers GET /metrics on ADDRESS (host:port).  0, or -1 with ERR. */
int ocsd_metrics_listen(struct ocsd *d, const char *address, struct ocs_error *err);
void ocsd_metrics_close(struct ocsd *d);

#endif
