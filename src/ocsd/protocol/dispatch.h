/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_PROTOCOL_DISPATCH_H
#define OCS_OCSD_PROTOCOL_DISPATCH_H

/* Operations: what clients ask, handed to the one that does it. */

#include "src/ocsd/protocol/role.h"
#include "src/ocsd/state/ocsd.h"

/* Does REQUEST, and answers ID: at once, or later (pending_reply.h). */
typedef void (*ocsd_operation)(struct ocsd *d, struct ocsd_client *client, int64_t id,
			       struct json_object *request);

enum ocsd_change {
	OCSD_LOOKS,   /* changes no circuit and no drain */
	OCSD_CHANGES, /* may expect a revision and carry the id of a transaction */
	OCSD_TELLS,   /* and always answers with the revision: asked by hand or script */
};

/* A row of d->server.operations, which ends with one without a name.  The first that fits
 * counts. */
struct ocsd_operation_entry {
	const char *name;
	const char *what; /* show: which reply; NULL: any, also none */
	ocsd_operation run;
	enum ocsd_role role;
	enum ocsd_change change;
};

/* The job and the epoch that REQUEST is about: 0, or -1 after having refused it. */
int ocsd_request_job(struct ocsd_client *client, int64_t id, struct json_object *request,
		     uint32_t *job, uint64_t *epoch);

void ocsd_request(struct ocsd *d, struct ocsd_client *client, struct json_object *request);

#endif
