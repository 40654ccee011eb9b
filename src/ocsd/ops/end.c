/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Operations end and gone: what slurmctld says of an allocation that is over. */

#include "src/ocsd/jobs/allocation.h"
#include "src/ocsd/jobs/lifecycle.h"
#include "src/ocsd/ops/apply.h"
#include "src/ocsd/ops/operations.h"
#include "src/ocsd/protocol/connection.h"
#include "src/ocsd/protocol/dispatch.h"
#include "src/protocol/names.h"

#include "src/protocol/fields.h"

/* REQUEST names an allocation that has ended, or (GONE) of which no epilog will come any more.  It
 * may be finished already, or its commit may have been refused. */
static void allocation_over(struct ocsd *d, struct ocsd_client *client, int64_t id,
			    struct json_object *request, bool gone)
{
	struct ocsd_job *job;
	uint32_t number;
	uint64_t epoch;

	if (ocsd_request_job(client, id, request, &number, &epoch))
		return;
	job = ocsd_job_find(d, number, epoch);
	if (job && gone)
		ocsd_job_gone(d, job, "slurmctld says so");
	else if (job)
		ocsd_job_end(d, job, ocs_field_text(request, OCS_FIELD_REASON, NULL));
	else if (!gone && !ocsd_job_over(d, number, epoch))
		ocsd_apply_never(d, number, epoch);
	ocsd_reply(client, id, NULL);
}

void ocsd_op_end(struct ocsd *d, struct ocsd_client *client, int64_t id,
		 struct json_object *request)
{
	allocation_over(d, client, id, request, false);
}

void ocsd_op_gone(struct ocsd *d, struct ocsd_client *client, int64_t id,
		  struct json_object *request)
{
	allocation_over(d, client, id, request, true);
}
