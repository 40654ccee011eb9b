/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Operations drain, fail and resume. */

#include "src/ocsd/ops/operations.h"
#include "src/ocsd/ports/drain.h"
#include "src/ocsd/ports/selftest.h"
#include "src/ocsd/protocol/connection.h"
#include "src/ocsd/protocol/pending_reply.h"
#include "src/ocsd/state/out_of_service.h"
#include "src/ocsd/store/audit.h"
#include "src/ocsd/store/store.h"

#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/util/text.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool target_exists(struct ocsd *d, const char *kind, const char *name)
{
	struct ocs_port port;

	if (strcmp(kind, "switch") == 0)
		return ocs_fabric_switch(d->fabric, name) >= 0;
	if (strcmp(kind, "port") == 0)
		return ocsd_port_parse(d, name, &port) == 0;
	if (strcmp(kind, "xpu") == 0)
		return ocs_fabric_xpu_node(d->fabric, name) >= 0;
	if (strcmp(kind, "node") == 0)
		return ocs_fabric_node(d->fabric, name);
	for (int s = 0; s < d->fabric->nsections; s++)
		if (d->fabric->sections[s].kind == OCS_TORUS &&
		    ocs_section_cube(&d->fabric->sections[s], name) >= 0)
			return true;
	return false;
}

/* NAME as everybody else writes it, if it stands for something: "sw:07" is port 7 of sw.  What was drained
 * under another name, once, keeps that.  The caller frees it. */
static char *target_name(struct ocsd *d, const char *kind, const char *name)
{
	const char *colon = strrchr(name, ':');
	struct ocs_port port;
	int at[OCS_AXES];

	if (!ocsd_drain_find(d, kind, name)) {
		if (strcmp(kind, "port") == 0 && ocsd_port_parse(d, name, &port) == 0)
			return ocs_asprintf("%s:%d", d->fabric->switches[port.sw].name, port.port);
		if (strcmp(kind, "xpu") == 0 && ocs_fabric_xpu_node(d->fabric, name) >= 0 &&
		    sscanf(colon, ":%d,%d,%d", &at[0], &at[1], &at[2]) == OCS_AXES)
			return ocs_asprintf("%.*s:%d,%d,%d", (int)(colon - name), name, at[0],
					    at[1], at[2]);
	}
	return ocs_strdup(name);
}

/* KIND and NAME belong to the request. */
static int read_target(struct ocsd *d, struct ocsd_client *client, int64_t id,
		       struct json_object *request, bool resumed, const char **kind,
		       const char **name)
{
	char *whole;

	*kind = ocs_field_text(request, OCS_FIELD_KIND, NULL);
	*name = ocs_field_text(request, OCS_FIELD_NAME, NULL);
	if (!*kind || !*name ||
	    (strcmp(*kind, "cube") != 0 && strcmp(*kind, "port") != 0 &&
	     strcmp(*kind, "switch") != 0 && strcmp(*kind, "xpu") != 0 &&
	     strcmp(*kind, "node") != 0)) {
		ocsd_refuse(client, id, OCS_USAGE, NULL,
			    "the request needs kind (cube, node, port, switch or xpu) and name");
		return -1;
	}
	whole = target_name(d, *kind, *name);
	ocs_field_add_text(request, OCS_FIELD_NAME, whole);
	*name = ocs_field_text(request, OCS_FIELD_NAME, NULL);
	free(whole);
	/* What was drained and then left ocs.yaml can be resumed, else it would stay for ever. */
	if (!target_exists(d, *kind, *name) && !(resumed && ocsd_drain_find(d, *kind, *name))) {
		ocsd_refuse(client, id, OCS_USAGE, NULL, "ocs.yaml has no %s %s; %s", *kind, *name,
			    strcmp(*kind, "port") == 0 ?
				    "write SWITCH:PORT; 'ocsctl show port SWITCH' lists them" :
			    strcmp(*kind, "xpu") == 0 ?
				    "write CUBE:X,Y,Z with three coordinates from 0 on" :
			    strcmp(*kind, "cube") == 0 || strcmp(*kind, "node") == 0 ?
				    "'ocsctl show cube' lists them" :
				    "'ocsctl show switch' lists them");
		return -1;
	}
	return 0;
}

/* The switch that a drain is about, or NULL. */
static const struct ocsd_switch *switch_of(struct ocsd *d, const char *kind, const char *name)
{
	struct ocs_port port = { .sw = -1 };

	if (strcmp(kind, "switch") == 0)
		port.sw = ocs_fabric_switch(d->fabric, name);
	else if (strcmp(kind, "port") == 0 && ocsd_port_parse(d, name, &port))
		port.sw = -1;
	return port.sw < 0 ? NULL : &d->switches[port.sw];
}

void ocsd_op_drain(struct ocsd *d, struct ocsd_client *client, int64_t id,
		   struct json_object *request)
{
	const char *reason = ocs_field_text(request, OCS_FIELD_REASON, NULL);
	const char *kind, *name;

	if (read_target(d, client, id, request, false, &kind, &name))
		return;
	if (!reason || !*reason) {
		ocsd_refuse(client, id, OCS_USAGE, NULL, "drain needs a reason");
		return;
	}
	ocsd_drain_set(d, kind, name, reason);
	ocsd_store_drain(d, kind, name, reason, *ocsd_client_who(client));
	ocsd_audit(d, &(struct ocsd_audit){ .who = ocsd_client_who(client),
					    .what = "drain",
					    .sw = switch_of(d, kind, name),
					    .before = name,
					    .after = reason });
	ocs_log(OCS_LOG_INFO, "%s %s drained: %s", kind, name, reason);
	ocsd_drain_announce(d, kind, name, reason, true);
	ocsd_reply(client, id, NULL);
}

void ocsd_op_fail(struct ocsd *d, struct ocsd_client *client, int64_t id,
		  struct json_object *request)
{
	const char *reason = ocs_field_text(request, OCS_FIELD_REASON, NULL);
	const char *kind, *name;
	struct ocs_port port;

	if (read_target(d, client, id, request, false, &kind, &name))
		return;
	if (strcmp(kind, "port") != 0) {
		ocsd_refuse(client, id, OCS_USAGE, NULL,
			    "only a port can be said to have failed, "
			    "not a %s; drain it",
			    kind);
		return;
	}
	if (!reason || !*reason) {
		ocsd_refuse(client, id, OCS_USAGE, NULL, "fail needs a reason");
		return;
	}
	ocsd_port_parse(d, name, &port);
	ocsd_port_fail(d, ocsd_client_who(client), port, reason);
	ocsd_reply(client, id, NULL);
}

/* ---- a resume that waits for the self-test of its port ---- */

struct test_reply {
	struct ocsd_pending_reply reply;
	char *name;	/* of the port */
	uint64_t after; /* the tests that had ended before */
};

static bool test_due(struct ocsd *d, const struct ocsd_pending_reply *reply, int64_t now_ns)
{
	const struct test_reply *wait = (const struct test_reply *)reply;

	(void)now_ns;
	return ocsd_selftest_result(d, wait->name, wait->after);
}

static void test_answer(struct ocsd *d, struct ocsd_pending_reply *reply)
{
	const struct test_reply *wait = (const struct test_reply *)reply;
	const struct ocsd_test_result *result = ocsd_selftest_result(d, wait->name, wait->after);
	struct json_object *answer;

	if (!result->passed) {
		ocsd_refuse(reply->client, reply->id, OCS_ERROR, NULL,
			    "port %s stays in quarantine: %s", wait->name, result->text);
		return;
	}
	answer = json_object_new_object();
	ocs_field_add_text(answer, OCS_FIELD_TESTED, result->text);
	ocsd_reply(reply->client, reply->id, answer);
}

static void test_drop(struct ocsd *d, struct ocsd_pending_reply *reply)
{
	(void)d;
	free(((struct test_reply *)reply)->name);
}

static const struct ocsd_reply_kind test_kind = { test_due, test_answer, test_drop };

static void resume_tested(struct ocsd *d, struct ocsd_client *client, int64_t id,
			  struct ocs_port port)
{
	struct test_reply *wait;
	struct ocs_error err;

	if (ocsd_selftest_start(d, &d->switches[port.sw], port.port, *ocsd_client_who(client),
				&err)) {
		ocsd_refuse(client, id, err.code, NULL, "%s", err.text);
		return;
	}
	wait = ocs_calloc(1, sizeof(*wait));
	/* As the test names it: "sw:07" is port 7. */
	wait->name = ocs_asprintf("%s:%d", d->switches[port.sw].description->name, port.port);
	wait->after = d->replies.ntested;
	ocsd_reply_later(d, &wait->reply, &test_kind, client, id);
}

/* What else keeps the port out of service, or NULL. */
static const char *port_kept_out(const struct ocsd *d, struct ocs_port port)
{
	const struct ocsd_switch *sw = &d->switches[port.sw];

	return sw->ports[port.port].foreign ? "a patch that is not ours is on it" :
	       sw->status.drained	    ? "its switch is drained" :
	       sw->status.state != OCSD_UP  ? "its switch does not work" :
					      NULL;
}

void ocsd_op_resume(struct ocsd *d, struct ocsd_client *client, int64_t id,
		    struct json_object *request)
{
	const char *kind, *name, *kept_out;
	struct json_object *answer = NULL;
	struct ocs_port port;
	bool is_port;

	if (read_target(d, client, id, request, true, &kind, &name))
		return;
	is_port = strcmp(kind, "port") == 0 && ocsd_port_parse(d, name, &port) == 0;
	if (is_port && ocsd_selftest_needed(d, &d->switches[port.sw], port.port)) {
		resume_tested(d, client, id, port);
		return;
	}
	if (ocsd_drain_find(d, kind, name)) {
		const char *reason = ocs_field_text(request, OCS_FIELD_REASON, NULL);

		ocsd_audit(d, &(struct ocsd_audit){ .who = ocsd_client_who(client),
						    .what = "resume",
						    .sw = switch_of(d, kind, name),
						    .before = name,
						    .after = reason });
		ocsd_resume(d, kind, name, *ocsd_client_who(client));
	}
	kept_out = is_port ? port_kept_out(d, port) : NULL;
	if (kept_out) {
		answer = json_object_new_object();
		ocs_field_add_text(answer, OCS_FIELD_REASON, kept_out);
	}
	ocsd_reply(client, id, answer);
}
