/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Operations present and unheard: nodes that ask for circuits, and nodes that do not though their
 * prologs have ended. */

#include "src/ocsd/jobs/allocation.h"
#include "src/ocsd/jobs/node_presence.h"
#include "src/ocsd/ops/operations.h"
#include "src/ocsd/ops/presence.h"
#include "src/ocsd/ports/drain.h"
#include "src/ocsd/protocol/connection.h"
#include "src/ocsd/protocol/dispatch.h"
#include "src/ocsd/state/out_of_service.h"
#include "src/ocsd/store/audit.h"
#include "src/ocsd/store/store.h"

#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/util/hostlist.h"
#include "src/util/text.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* How the reason of a drained node begins that ended a prolog without having asked. */
#define OCSD_UNHEARD "unheard: "

/* NAME talks to ocsd, whatever was thought of it. */
static void node_present(struct ocsd *d, const char *name)
{
	const struct ocsd_drain *drain;

	if (!ocsd_heard_node(d, name))
		return;
	drain = d->drains ? ocsd_drain_find(d, "node", name) : NULL;
	if (drain && strncmp(drain->reason, OCSD_UNHEARD, strlen(OCSD_UNHEARD)) == 0) {
		ocsd_audit(d, &(struct ocsd_audit){ .what = "resume",
						    .before = name,
						    .after = "it was heard of" });
		ocsd_resume(d, "node", name, geteuid());
	}
}

void ocsd_node_asked(struct ocsd *d, struct ocsd_job *job, int index)
{
	if (ocsd_heard_asked(job, index))
		node_present(d, job->nodes.names[index]);
}

void ocsd_op_present(struct ocsd *d, struct ocsd_client *client, int64_t id,
		     struct json_object *request)
{
	const char *node = ocs_field_text(request, OCS_FIELD_NODE, NULL);

	if (!node) {
		ocsd_refuse(client, id, OCS_USAGE, NULL, "present needs the name of its node");
		return;
	}
	/* Nodes that ocs.yaml does not have may run spank_ocs, too. */
	node_present(d, node);
	ocsd_reply(client, id, NULL);
}

/* Takes NAME out of service for shapes, unless it was heard of since JOB was committed: then it
 * has been mended meanwhile. */
static void node_close(struct ocsd *d, struct ocsd_client *client, const struct ocsd_job *job,
		       const char *name)
{
	int64_t present_ns = ocsd_heard_when(d, name);
	bool mended = present_ns > job->prolog.committed_ns;
	const struct ocsd_drain *before = ocsd_drain_find(d, "node", name);
	char *reason;

	if (before || mended || present_ns < 0) {
		ocsd_drain_event(d, "node", name, before ? before->reason : NULL, before);
		return;
	}
	reason = ocs_asprintf(OCSD_UNHEARD
			      "its prolog for job %u ended without having asked ocsd for circuits",
			      job->job);
	ocsd_drain_set(d, "node", name, reason);
	ocsd_store_drain(d, "node", name, reason, *ocsd_client_who(client));
	ocsd_audit(d, &(struct ocsd_audit){ .who = ocsd_client_who(client),
					    .job = job,
					    .what = "drain",
					    .before = name,
					    .after = reason });
	ocs_log(OCS_LOG_ERROR, "node %s gets no shapes until it is heard of: %s", name, reason);
	ocsd_drain_event(d, "node", name, reason, true);
	free(reason);
}

void ocsd_op_unheard(struct ocsd *d, struct ocsd_client *client, int64_t id,
		     struct json_object *request)
{
	const char *ended = ocs_field_text(request, OCS_FIELD_ENDED, NULL);
	struct json_object *reply;
	struct ocsd_job *job;
	char **names, **over = NULL;
	uint32_t number;
	uint64_t epoch;
	size_t missing;
	int nover;

	if (ocsd_request_job(client, id, request, &number, &epoch))
		return;
	job = ocsd_job_find(d, number, epoch);
	/* An ended one will never be ready: slurmctld was killed before it had saved its end. */
	if (!job || !ocsd_job_living(job)) {
		ocsd_refuse(client, id, OCS_ERROR, NULL, "job %u has no %sallocation of that epoch",
			    number, job ? "living " : "");
		return;
	}
	names = ocs_calloc(job->nodes.count + 1, sizeof(*names));
	missing = ocsd_heard_missing(job, names);
	reply = json_object_new_object();
	ocs_field_add_bool(reply, OCS_FIELD_READY, job->prolog.met);
	json_object_object_add(reply, OCS_FIELD_MISSING, ocsd_heard_list(names, missing));
	/* Who asked before ocsd was restarted is not known, and not to blame. */
	ocs_field_add_bool(reply, OCS_FIELD_UNCERTAIN, missing && !job->prolog.committed_ns);
	nover = ended ? ocs_hostlist_expand(ended, job->nodes.count, &over, NULL) : 0;
	for (int i = 0; i < nover && job->prolog.committed_ns; i++) {
		int index = ocsd_job_node(job, over[i]);

		if (!job->prolog.met && index >= 0 &&
		    !(job->prolog.asked && job->prolog.asked[index]))
			node_close(d, client, job, over[i]);
	}
	if (nover > 0)
		ocs_names_free(over, (size_t)nover);
	free(names);
	ocsd_reply(client, id, reply);
}
