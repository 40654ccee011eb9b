/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_STORE_AUDIT_H
#define OCS_OCSD_STORE_AUDIT_H

/* The audit log. */

#include "src/ocsd/state/ocsd.h"

/* One row of the audit log; any text may be NULL. */
struct ocsd_audit {
	const uid_t *who; /* NULL: ocsd itself */
	const struct ocsd_job *job;
	const struct ocsd_switch *sw;
	const char *what, *before, *after, *reply;
	const char *transaction; /* NULL: that of the request at hand */
};
void ocsd_audit(struct ocsd *d, const struct ocsd_audit *row);

/* A row with the patches of the batch of SW that is prepared or on its way. */
void ocsd_audit_batch(struct ocsd *d, const struct ocsd_switch *sw, const char *what,
		      const char *reply);

/* Forgets rows older than ocsd.audit_days, now and from time to time, until the caller frees
 * the event d->pruner. */
void ocsd_audit_prune(struct ocsd *d);

#endif
