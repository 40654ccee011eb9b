/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Operation unable: a host cannot do its part, and its job fails. */

#include "src/ocsd/jobs/allocation.h"
#include "src/ocsd/jobs/lifecycle.h"
#include "src/ocsd/ops/operations.h"
#include "src/ocsd/protocol/connection.h"
#include "src/ocsd/protocol/dispatch.h"

#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/util/text.h"

#include <stdlib.h>

void ocsd_op_unable(struct ocsd *d, struct ocsd_client *client, int64_t id,
		    struct json_object *request)
{
	const char *node = ocs_field_text(request, OCS_FIELD_NODE, NULL);
	const char *why = ocs_field_text(request, OCS_FIELD_ERROR, NULL);
	struct ocsd_job *job;
	uint32_t number;
	uint64_t epoch;
	char *text;

	if (ocsd_request_job(client, id, request, &number, &epoch))
		return;
	job = ocsd_job_find(d, number, epoch);
	if (!node || !why || (job && ocsd_job_node(job, node) < 0)) {
		ocsd_refuse(client, id, OCS_USAGE, NULL,
			    "unable needs a node of job %u and its error", number);
		return;
	}
	if (job && ocsd_job_living(job) && !ocsd_job_failed(job)) {
		text = ocs_asprintf("host %s cannot forward: %s", node, why);
		free(job->failure.host);
		job->failure.host = ocs_strdup(node);
		ocsd_job_fail(d, job, NULL, text);
		free(text);
	}
	ocsd_reply(client, id, NULL);
}
