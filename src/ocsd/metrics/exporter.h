/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_METRICS_EXPORTER_H
#define OCS_OCSD_METRICS_EXPORTER_H

/* Numbers for Prometheus, over HTTP.  What can be counted now is counted when it is
 * asked for; only what has passed is kept here. */

#include <stdint.h>

struct ocs_error;
struct ocsd;
struct ocsd_metrics;

/* What became of a batch or a job's circuits. */
enum ocsd_outcome { OCSD_DONE, OCSD_REFUSED, OCSD_LOST, OCSD_OUTCOMES };

struct ocsd_metrics *ocsd_metrics_create(void);
void ocsd_metrics_destroy(struct ocsd_metrics *metrics);

/* One batch of a switch (its outcome, its PATCHES), from its hand-over to the
 * verified table, in ns. */
void ocsd_metrics_batch(struct ocsd_metrics *metrics, enum ocsd_outcome outcome,
			int64_t patches, int64_t ns);
/* A job's circuits: from the first apply to the last verified one, in ns. */
void ocsd_metrics_realised(struct ocsd_metrics *metrics, int64_t ns);
void ocsd_metrics_job_failed(struct ocsd_metrics *metrics);
/* A request of a user who asks too much was turned away. */
void ocsd_metrics_limited(struct ocsd_metrics *metrics);
void ocsd_metrics_switch_failed(struct ocsd_metrics *metrics);

/* Answers GET /metrics on ADDRESS (host:port).  0, or -1 with ERR. */
int ocsd_metrics_listen(struct ocsd *d, const char *address, struct ocs_error *err);

#endif
