/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Forwarding on this host for a job: apply what its plan says once the circuits are up,
 * follow the plan when it is repaired, take all of it away. */

#include "src/node/node.h"
#include "src/node/forward_work.h"
#include "src/node/rails.h"

#include <json-c/json.h>
#include <net/if.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <syslog.h>
#include <unistd.h>

#include "src/protocol/client.h"
#include "src/config/config.h"
#include "src/fabric/fabric.h"
#include "src/forward/forward.h"
#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/util/error.h"
#include "src/util/net.h"
#include "src/util/program.h"
#include "src/util/text.h"

#define CONNECT_MS 5000
#define WATCH_MS 3600000 /* one question of the watcher */
#define CARRIER_MS 30000
#define PAUSE_MAX_MS 30000
#define OWNER_TRIES 60 /* a second apart */

/* The folder that DIR, a job's, lies in; the caller frees it. */
static char *folder_of(const char *dir)
{
	const char *end = dir + strlen(dir);

	while (end > dir + 1 && end[-1] == '/')
		end--;
	while (end > dir + 1 && end[-1] != '/')
		end--;
	while (end > dir + 1 && end[-1] == '/')
		end--;
	return ocs_asprintf("%.*s", (int)(end - dir), dir);
}

static void work_close(struct ocs_node_work *work)
{
	json_object_put(work->macs);
	json_object_put(work->forward_macs);
	ocs_node_rails_free(work->rails);
	ocs_config_destroy(work->config);
	free(work->folder);
}

static int mac_add(struct json_object *list, const char *node, const char *device, int interface,
		   struct ocs_error *err)
{
	struct ifreq request = { 0 };
	int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc;
	const unsigned char *mac = (const unsigned char *)request.ifr_hwaddr.sa_data;
	char text[18];

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", device);
	rc = sock < 0 ? -1 : ioctl(sock, SIOCGIFHWADDR, &request);
	if (sock >= 0)
		close(sock);
	if (rc < 0)
		return ocs_error_set(err, OCS_USAGE,
				     "%s has no interface %s, number %d of"
				     " \"interfaces\" in ocs.yaml",
				     node, device, interface);
	snprintf(text, sizeof(text), "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2],
		 mac[3], mac[4], mac[5]);
	json_object_array_add(list, json_object_new_string(text));
	return 0;
}

/* Finds the section of the job and whether its hosts forward.  1: they do; 0: there is
 * nothing to do; -1 with ERR.  work_close either way. */
static int work_open(struct ocs_node_work *work, const struct ocs_node_request *request,
		     struct ocs_error *err)
{
	const struct ocs_node *node;

	memset(work, 0, sizeof(*work));
	work->request = request;
	work->folder = folder_of(request->dir);
	work->config = ocs_config_open(request->fabric, err);
	if (!work->config)
		return -1;
	work->fabric = work->config->fabric;
	node = ocs_fabric_node(work->fabric, request->node);
	if (!node)
		return ocs_error_set(err, OCS_USAGE, "%s knows no node %s", request->fabric,
				     request->node);
	work->section = &work->fabric->sections[node->section];
	return ocs_node_section_meets(work->section);
}

/* Our own MACs and what the kernel can do. */
static int look_around(struct ocs_node_work *work, struct ocs_error *err)
{
	const struct ocs_section *section = work->section;
	bool split = false;

	work->macs = json_object_new_array();
	work->forward_macs = json_object_new_array();
	for (int i = 0; i < ocs_section_devices(section); i++) {
		const char *name = ocs_section_interface_name(section, i);
		const char *forward = ocs_section_interface_forward(section, i);

		split |= strcmp(name, forward) != 0;
		if (mac_add(work->macs, work->request->node, name, i, err) ||
		    mac_add(work->forward_macs, work->request->node, forward, i, err))
			return -1;
	}
	if (!split) {
		json_object_put(work->forward_macs);
		work->forward_macs = NULL;
	}
	if (section->management)
		return ocs_node_rails_address(work, err);
	if (section->job_addresses)
		return 0;
	if (section->forwarding == OCS_FORWARDING_AUTO)
		work->backend = ocs_forward_backend_choose();
	else
		ocs_forward_backend_parse(ocs_forwarding_name(section->forwarding), &work->backend);
	return 0;
}

struct json_object *ocs_node_work_question(const struct ocs_node_work *work, const char *op)
{
	struct json_object *json =
		ocs_request_job(op, (uint32_t)work->request->job, work->request->epoch);

	ocs_field_add_text(json, OCS_FIELD_NODE, work->request->node);
	return json;
}

struct ocs_client *ocs_node_connect(const struct ocs_node_request *request,
				    const struct ocs_config *config, int timeout_ms,
				    struct ocs_error *err)
{
	return ocs_client_open(request->ocsd ? request->ocsd : config->ocsd.address,
			       request->key ? request->key : config->ocsd.key,
			       request->user ? request->user : config->ocsd.user, timeout_ms, err);
}

struct json_object *ocs_node_work_ask(const struct ocs_node_work *work,
				      struct json_object *question, int timeout_ms, bool *gone,
				      struct ocs_error *err)
{
	struct json_object *reply, *refusal = NULL;
	struct ocs_client *client;

	*gone = false;
	client = ocs_node_connect(work->request, work->config,
				  timeout_ms < CONNECT_MS ? timeout_ms : CONNECT_MS, err);
	if (!client)
		return NULL;
	reply = ocs_client_call(client, question, timeout_ms, &refusal, err);
	*gone = ocs_field_true(refusal, OCS_FIELD_GONE);
	json_object_put(refusal);
	ocs_client_close(client);
	return reply;
}

void ocs_node_work_announce(const struct ocs_node_work *work, struct json_object *request)
{
	json_object_object_add(request, OCS_FIELD_MACS, json_object_get(work->macs));
	if (work->forward_macs)
		json_object_object_add(request, OCS_FIELD_FORWARD_MACS,
				       json_object_get(work->forward_macs));
	if (work->address[0])
		ocs_field_add_text(request, OCS_FIELD_ADDRESS, work->address);
}

struct json_object *ocs_node_work_meet(const struct ocs_node_work *work, long after, int timeout_ms,
				       bool *gone, struct ocs_error *err)
{
	struct json_object *apply = ocs_node_work_question(work, OCS_OP_APPLY), *reply;

	ocs_node_work_announce(work, apply);
	if (after)
		ocs_field_add_number(apply, OCS_FIELD_AFTER, after);
	reply = ocs_node_work_ask(work, apply, timeout_ms, gone, err);
	json_object_put(apply);
	return reply;
}

void ocs_node_work_rest(int *pause_ms)
{
	usleep((useconds_t)*pause_ms * 1000);
	*pause_ms = *pause_ms * 2 > PAUSE_MAX_MS ? PAUSE_MAX_MS : *pause_ms * 2;
}

/* Makes this host what the plan of REPLY says (FOLLOW: if it still forwards for the job,
 * else 1).  OWNER is set. */
static int forwarding_apply(const struct ocs_node_work *work, struct json_object *reply,
			    bool follow, struct ocs_forward_owner *owner, size_t *changed,
			    struct ocs_error *err)
{
	struct ocs_plan *plan = ocs_plan_from_json(ocs_field(reply, OCS_FIELD_PLAN), err);
	struct ocs_forward_hosts *hosts = NULL;
	struct ocs_forward *forward = NULL;
	int rc = -1, host = -1;

	if (plan && ocs_plan_route(plan, err) == 0)
		hosts = ocs_forward_hosts_fabric(work->fabric, work->section, plan,
						 ocs_field(reply, OCS_FIELD_HOSTS), err);
	if (hosts)
		forward = ocs_forward_make(plan, NULL, err);
	for (int s = 0; forward && s < hosts->servers; s++)
		if (!strcmp(hosts->host[s].node, work->request->node))
			host = s;
	if (forward && host < 0)
		ocs_error_set(err, OCS_USAGE, "the plan of job %lu has no server %s",
			      work->request->job, work->request->node);
	if (host >= 0) {
		owner->job = work->request->job;
		owner->epoch = work->request->epoch;
		owner->revision = plan->revision;
		rc = (follow ? ocs_forward_follow : ocs_forward_hold)(
			work->folder, owner, forward, hosts, host, work->backend, changed, err);
		if (!rc && ocs_forward_carrier(forward, hosts, host, CARRIER_MS, err)) {
			ocs_forward_drop(work->folder, owner, NULL);
			rc = -1;
		}
	}
	ocs_forward_destroy(forward);
	ocs_forward_hosts_destroy(hosts);
	ocs_plan_destroy(plan);
	return rc;
}

void ocs_node_work_unable(const struct ocs_node_work *work, const char *why)
{
	struct json_object *unable = ocs_node_work_question(work, OCS_OP_UNABLE);
	struct ocs_error err = { 0 };
	bool gone;

	ocs_field_add_text(unable, OCS_FIELD_ERROR, why);
	json_object_put(ocs_node_work_ask(work, unable, CONNECT_MS, &gone, &err));
	json_object_put(unable);
}

bool ocs_node_work_current(const struct ocs_node_work *work, long *revision)
{
	struct ocs_forward_owner owner;
	struct ocs_error err;
	int tries = 0, rc;

	/* no descriptor, say: that passes, and ends no job */
	while ((rc = ocs_forward_owner_read(work->folder, &owner, &err)) < 0 &&
	       tries < OWNER_TRIES) {
		if (!tries++)
			syslog(LOG_WARNING, "job %lu: %s", work->request->job, err.text);
		sleep(1);
	}
	if (rc != 1 || owner.job != work->request->job || owner.epoch != work->request->epoch)
		return false;
	*revision = owner.revision;
	return true;
}

/* Waits for later plans and applies them, until the job is over. */
static void plan_watch(struct ocs_node_work *work)
{
	int pause_ms = 500;
	long revision;

	while (ocs_node_work_current(work, &revision)) {
		struct ocs_forward_owner owner;
		struct ocs_error err = { 0 };
		struct json_object *reply;
		size_t changed = 0;
		bool gone;
		int rc;

		reply = ocs_node_work_meet(work, revision, WATCH_MS, &gone, &err);
		if (gone)
			return;
		if (!reply) {
			ocs_node_work_rest(&pause_ms);
			continue;
		}
		pause_ms = 500;
		rc = forwarding_apply(work, reply, true, &owner, &changed, &err);
		if (rc < 0) {
			syslog(LOG_ERR, "job %lu: the repaired plan cannot be applied: %s",
			       work->request->job, err.text);
			ocs_node_work_unable(work, err.text);
		} else if (rc == 0) {
			ocs_node_plan_routes(ocs_field(reply, OCS_FIELD_PLAN));
			ocs_node_plan_write(work->request->dir, ocs_field(reply, OCS_FIELD_PLAN));
			if (ocs_node_nccl_follow(work->config, work->section, work->request,
						 ocs_field(reply, OCS_FIELD_PLAN), &err))
				syslog(LOG_ERR,
				       "job %lu: what is for NCCL does not follow the "
				       "repaired plan: %s",
				       work->request->job, err.text);
			syslog(LOG_INFO, "job %lu: revision %ld of the plan, %zu things changed",
			       work->request->job, owner.revision, changed);
		}
		json_object_put(reply);
	}
}

/* Leaves a process behind that follows the plan. */
static void watch_start(struct ocs_node_work *work)
{
	int alone;

	/* neighbours of a region are those of all circuits that may be */
	if (work->section->job_addresses || !ocs_program_detach())
		return;
	signal(SIGHUP, SIG_IGN);
	alone = ocs_forward_watch_alone(work->folder, work->request->epoch);
	if (alone < 0)
		_exit(0);
	openlog("ocs-node", LOG_PID, LOG_DAEMON);
	if (work->section->management)
		ocs_node_rails_watch(work);
	else
		plan_watch(work);
	_exit(0);
}

static int ocsd_complain(const struct ocs_node_work *work, const struct ocs_error *err)
{
	fprintf(stderr, "ocs-node: job %lu: %s\n", work->request->job, err->text);
	return err->code ? err->code : OCS_ERROR;
}

int ocs_node_forward(const struct ocs_node_request *request, int timeout_s)
{
	int64_t end = ocs_now_ns() + (int64_t)timeout_s * 1000000000;
	struct ocs_error err = { 0 };
	struct ocs_forward_owner owner;
	struct json_object *reply = NULL;
	struct ocs_node_work work;
	bool gone = false;
	int rc = work_open(&work, request, &err), pause_ms = 100;

	/* ocsd says that the hosts of this job forward: the others wait for this one */
	if (rc == 0)
		rc = ocs_error_set(
			&err, OCS_USAGE,
			"section %s of %s here has no \"forwarding\" or \"tcp\", that of ocsd has;"
			" the file must be the same on all hosts",
			work.section->name, request->fabric);
	else if (rc > 0)
		rc = look_around(&work, &err);
	if (rc == 0) {
		/* a lost connection is made again while there is time */
		while (!(reply = ocs_node_work_meet(&work, 0, (int)((end - ocs_now_ns()) / 1000000),
						    &gone, &err)) &&
		       !gone && (err.code == OCS_UNREACHABLE || err.code == OCS_NOT_NOW) &&
		       ocs_now_ns() + pause_ms * INT64_C(1000000) < end)
			ocs_node_work_rest(&pause_ms);
		if (!reply)
			rc = -1;
		else if (work.section->management)
			rc = ocs_node_rails_hold(&work, reply, &err);
		else if (work.section->job_addresses)
			rc = ocs_node_region_hold(&work, reply, &err);
		else
			rc = forwarding_apply(&work, reply, false, &owner, NULL, &err);
		if (rc == 0)
			watch_start(&work);
	}
	json_object_put(reply);
	if (rc < 0) {
		/* that others keep us waiting is not this host's fault */
		if (work.config && !gone && err.code != OCS_UNREACHABLE && err.code != OCS_NOT_NOW)
			ocs_node_work_unable(&work, err.text);
		rc = ocsd_complain(&work, &err);
	}
	work_close(&work);
	return rc;
}

int ocs_node_unforward(const struct ocs_node_request *request, struct ocs_error *err)
{
	const struct ocs_forward_owner owner = { .job = request->job, .epoch = request->epoch };
	char *folder = folder_of(request->dir);
	int rc = ocs_forward_drop(folder, &owner, err);

	free(folder);
	return rc;
}

/* Whether ocsd says that the allocation lives: 1, 0, or -1 with ERR.  *KNOWN: whether it knows the
 * job, whose epilog may then still come. */
static int job_lives(const struct ocs_node_work *work, const struct ocs_forward_owner *owner,
		     bool *known, struct ocs_error *err)
{
	struct json_object *show = ocs_request_new(OCS_OP_SHOW), *reply, *jobs;
	char name[24];
	size_t length;
	bool gone;
	int rc = 0;

	snprintf(name, sizeof(name), "%lu", owner->job);
	ocs_field_add_text(show, OCS_FIELD_WHAT, OCS_SHOW_JOB);
	ocs_field_add_text(show, OCS_FIELD_NAME, name);
	reply = ocs_node_work_ask(work, show, CONNECT_MS, &gone, err);
	json_object_put(show);
	*known = !reply;
	if (!reply)
		return err->code == OCS_UNREACHABLE || err->code == OCS_NOT_NOW ? -1 : 0;
	jobs = ocs_field_array(reply, OCS_FIELD_JOBS, &length);
	for (size_t i = 0; i < length; i++) {
		struct json_object *row = json_object_array_get_idx(jobs, i);
		const char *state = ocs_field_text(row, OCS_FIELD_STATE, NULL);

		*known = *known || ocs_field_job(row) == owner->job;
		if (ocs_field_epoch(row) == owner->epoch && (!state || strcmp(state, "ended")))
			rc = 1;
	}
	json_object_put(reply);
	return rc;
}

/* The directory of a job that is not known, unless it is of a newer epoch than OWNER. */
static int directory_sweep(const char *path, const struct ocs_forward_owner *owner,
			   struct ocs_error *err)
{
	char *file = ocs_asprintf("%s/%s", path, ocs_node_names[OCS_NODE_EPOCH]);
	char *noted = ocs_file_read(file, 32, NULL, NULL);
	int rc = 0;

	if (noted && strtoull(noted, NULL, 10) <= owner->epoch) {
		ocs_node_subnets_remove(path);
		rc = ocs_node_directory_remove(path, err);
	}
	free(noted);
	free(file);
	return rc;
}

int ocs_node_sweep(const struct ocs_node_request *request)
{
	struct ocs_node_request job = *request;
	struct ocs_forward_owner owner;
	struct ocs_error err = { 0 };
	struct ocs_node_work work = { 0 };
	bool known = true;
	int rc = ocs_forward_owner_read(request->dir, &owner, &err);

	if (rc == 0)
		return OCS_OK;
	job.job = owner.job;
	job.epoch = owner.epoch;
	job.dir = ocs_asprintf("%s/%lu", request->dir, owner.job);
	if (rc > 0)
		rc = work_open(&work, &job, &err) < 0 ? -1 : 0;
	if (rc == 0)
		rc = job_lives(&work, &owner, &known, &err);
	if (rc > 0) {
		/* the job runs on: a process has to follow its plan */
		rc = ocs_node_section_meets(work.section) ? look_around(&work, &err) : 0;
		if (rc == 0)
			watch_start(&work);
	} else if (rc == 0) {
		rc = ocs_forward_drop(work.folder, &owner, &err);
		if (rc == 0)
			fprintf(stderr,
				"ocs-node: the forwarding of job %lu, which is over, is taken"
				" away\n",
				owner.job);
		if (rc == 0 && !known)
			rc = directory_sweep(job.dir, &owner, &err);
	}
	if (rc < 0) {
		work.request = &job;
		rc = ocsd_complain(&work, &err);
	}
	work_close(&work);
	free((char *)job.dir);
	return rc;
}
