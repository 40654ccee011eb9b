/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Prolog and epilog on a compute node, as root: ask ocsd for the job's circuits, have
 * the helper write the job's files, and take both away again. */

#include <dirent.h>
#include <errno.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/protocol/client.h"
#include "src/plugins/spank/subprocess.h"
#include "src/plugins/spank/nodeside.h"
#include "src/plugins/spank/settings.h"
#include "src/plugins/spank/job_context.h"
#include "src/protocol/fields.h"
#include "src/protocol/names.h"
#include "src/util/error.h"
#include "src/util/net.h"
#include "src/util/text.h"

#define SLICE_MS 20000 /* one wait for a reply, then look at the job again */
#define CONNECT_MS 5000
/* What ocs-node forward may take beyond its --timeout: interfaces until their carrier. */
#define FORWARD_MORE_MS 45000
#define ENV_MAX (1 << 20)

/* One request.  The reply, or NULL with ERR; *GONE: ocsd says that the job has left. */
static struct json_object *ocsd_ask(const struct ocs_visit *visit, const char *op, uint64_t epoch,
				    int timeout_ms, bool *gone, struct ocs_error *err)
{
	struct json_object *request, *reply, *refusal = NULL;
	struct ocs_client *client;

	*gone = false;
	client = ocs_client_open(visit->address, visit->key, visit->user,
				 timeout_ms < CONNECT_MS ? timeout_ms : CONNECT_MS, err);
	if (!client)
		return NULL;
	request = ocs_request_job(op, visit->job, epoch);
	ocs_field_add_text(request, OCS_FIELD_NODE, visit->node);
	reply = ocs_client_call(client, request, timeout_ms, &refusal, err);
	json_object_put(request);
	*gone = !reply && ocs_field_true(refusal, OCS_FIELD_GONE);
	json_object_put(refusal);
	ocs_client_close(client);
	return reply;
}

/* Waits for the job's circuits.  The reply of ocsd, or NULL: *RC is what the prolog
 * returns (0: the job has left, its script never runs). */
static struct json_object *wait_for_circuits(struct ocs_visit *visit, int *rc)
{
	struct ocs_error err = { 0 };
	struct json_object *reply;
	int pause_ms = 200, tries = 0;
	bool gone;

	for (;;) {
		int left = ocs_visit_left_ms(visit);

		err.code = OCS_OK;
		reply = ocsd_ask(visit, OCS_OP_APPLY, visit->epoch,
				 left < SLICE_MS ? left + 1000 : SLICE_MS, &gone, &err);
		if (reply)
			return reply;
		*rc = 0;
		if (gone) {
			slurm_info("spank_ocs: job %u left its allocation: %s", visit->job,
				   err.text);
			return NULL;
		}
		if (!tries++ || !left)
			slurm_info("spank_ocs: job %u waits for circuits: %s", visit->job,
				   err.text);
		if (ocs_visit_job_left(visit) > 0) {
			slurm_info("spank_ocs: job %u left its allocation", visit->job);
			return NULL;
		}
		/* Refusals that time cures (the commit has not arrived, a switch is
		 * away) come as "not now"; others will not change. */
		if (!visit->taken && err.code != OCS_UNREACHABLE && err.code != OCS_NOT_NOW &&
		    tries > 3) {
			ocs_visit_take_away(visit, err.text);
		} else if (ocs_visit_hopeless(visit, err.text)) {
			slurm_error(
				"spank_ocs: job %u: no circuits and cannot be taken off this node: %s",
				visit->job, err.text);
			*rc = ESPANK_ERROR;
			return NULL;
		}
		ocs_visit_rest(visit, &pause_ms);
	}
}

static int remove_files(const struct ocs_visit *visit)
{
	const char *argv[] = { visit->settings->helper, "remove", "--dir", visit->dir, NULL };
	struct ocs_error err;

	if (access(visit->dir, F_OK))
		return 0;
	if (ocs_child_run((char *const *)argv, visit->settings->helper_s * 1000, ocs_helper_line,
			  &err) < 0) {
		slurm_error("spank_ocs: job %u: %s", visit->job, err.text);
		return -1;
	}
	return 0;
}

/* The job's directory with the epoch in it, before ocsd is asked for anything: an
 * epilog must be able to give back what a killed prolog got. */
static int note_epoch(const struct ocs_visit *visit, struct ocs_error *err)
{
	char *path = ocs_asprintf("%s/epoch", visit->dir);
	char *text = ocs_asprintf("%llu\n", (unsigned long long)visit->epoch);
	int rc = 0;

	for (char *slash = strchr(visit->dir + 1, '/'); !rc; slash = strchr(slash + 1, '/')) {
		if (slash)
			*slash = '\0';
		if (mkdir(visit->dir, 0711) < 0 && errno != EEXIST)
			rc = ocs_error_set(err, OCS_ERROR, "cannot make %s: %s", visit->dir,
					   strerror(errno));
		if (!slash)
			break;
		*slash = '/';
	}
	if (!rc)
		rc = ocs_file_write(path, text, strlen(text), 0644, err);
	free(text);
	free(path);
	return rc;
}

/* A node serves one job with circuits at a time: the folder of another one is a left-over
 * if it is older and slurmctld knows of no such run (it was killed and forgot it, and no
 * epilog ever came). */
static void remove_leftovers(const struct ocs_visit *visit)
{
	char *base = ocs_strdup(visit->dir);
	struct dirent *entry;
	DIR *dir;

	*strrchr(base, '/') = '\0';
	dir = opendir(base);
	while (dir && (entry = readdir(dir))) {
		struct ocs_visit old = { .settings = visit->settings };
		long job;

		if (ocs_number_parse(entry->d_name, 1, UINT32_MAX, &job) ||
		    (uint32_t)job == visit->job)
			continue;
		old.job = (uint32_t)job;
		old.dir = ocs_asprintf("%s/%s", base, entry->d_name);
		old.epoch = ocs_visit_epoch_noted(&old);
		if (old.epoch && old.epoch < visit->epoch && ocs_visit_job_left(&old) == 1 &&
		    remove_files(&old) == 0)
			slurm_info("spank_ocs: removed %s, left behind by a job that is gone",
				   old.dir);
		free(old.dir);
	}
	if (dir)
		closedir(dir);
	free(base);
}

static int write_files(const struct ocs_visit *visit, struct json_object *reply,
		       struct ocs_error *err)
{
	const char *section = getenv("SPANK_OCS_SECTION"), *shape = getenv("SPANK_OCS_SHAPE");
	const char *conn = getenv("SPANK_OCS_CONN"), *nodes = getenv("SPANK_OCS_NODES");
	const char *placement = getenv("SPANK_OCS_PLACEMENT");
	const char *phases = getenv("SPANK_OCS_PHASES"), *moe = getenv("SPANK_OCS_MOE");
	const char *text = json_object_to_json_string_ext(reply, JSON_C_TO_STRING_PLAIN);
	char *path = ocs_asprintf("%s/reply.json", visit->dir);
	char job[16], epoch[24], uid[16], gid[16];
	const char *argv[40];
	int n = 0, rc;

	snprintf(job, sizeof(job), "%u", visit->job);
	snprintf(epoch, sizeof(epoch), "%llu", (unsigned long long)visit->epoch);
	snprintf(uid, sizeof(uid), "%u", (unsigned int)visit->uid);
	snprintf(gid, sizeof(gid), "%u", (unsigned int)visit->gid);
#define ADD(name, value)                   \
	do {                               \
		if (value) {               \
			argv[n++] = name;  \
			argv[n++] = value; \
		}                          \
	} while (0)
	argv[n++] = visit->settings->helper;
	argv[n++] = "prepare";
	ADD("--fabric", visit->fabric);
	ADD("--dir", visit->dir);
	argv[n++] = "--job", argv[n++] = job;
	argv[n++] = "--epoch", argv[n++] = epoch;
	ADD("--node", visit->node);
	ADD("--nodes", nodes);
	ADD("--section", section);
	ADD("--shape", shape && *shape ? shape : NULL);
	ADD("--conn", conn && *conn ? conn : NULL);
	ADD("--phases", phases && *phases ? phases : NULL);
	ADD("--moe", moe && *moe ? moe : NULL);
	ADD("--placement", placement && *placement ? placement : NULL);
	argv[n++] = "--reply", argv[n++] = path;
	argv[n++] = "--uid", argv[n++] = uid;
	if (visit->gid != (gid_t)-1)
		argv[n++] = "--gid", argv[n++] = gid;
#undef ADD
	argv[n] = NULL;
	rc = ocs_file_write(path, text, strlen(text), 0600, err);
	if (!rc)
		rc = ocs_child_run((char *const *)argv, visit->settings->helper_s * 1000,
				   ocs_helper_line, err);
	free(path);
	return rc;
}

/* The ports of the job's circuits have a link.  -1 with ERR: one has none, and the job must not start. */
static int links_await(const struct ocs_visit *visit, struct ocs_error *err)
{
	const char *shape = getenv("SPANK_OCS_SHAPE"), *nodes = getenv("SPANK_OCS_NODES");
	const char *phases = getenv("SPANK_OCS_PHASES");
	int left = ocs_visit_left_ms(visit), n = 10;
	char timeout[16];
	const char *argv[17] = {
		visit->settings->helper,
		"links",
		"--fabric",
		visit->fabric,
		"--dir",
		visit->dir,
		"--node",
		visit->node,
		"--timeout",
		timeout,
	};

	if (shape && *shape && nodes) {
		argv[n++] = "--shape", argv[n++] = shape;
		argv[n++] = "--nodes", argv[n++] = nodes;
		if (phases && *phases)
			argv[n++] = "--phases", argv[n++] = phases;
	}
	snprintf(timeout, sizeof(timeout), "%d", left / 1000);
	return ocs_child_run((char *const *)argv, left + visit->settings->helper_s * 1000,
			     ocs_helper_line, err);
}

/* This node's part in it, where the hosts of the job forward for each other.  If it cannot be done the helper has notified ocsd, whose next
 * answer is that the job leaves. */
static int forwarding_start(const struct ocs_visit *visit, struct ocs_error *err)
{
	const char *ocsd = visit->settings->ocsd, *key = visit->settings->ocsd_key;
	int left = ocs_visit_left_ms(visit);
	char job[16], epoch[24], timeout[16];
	const char *argv[26] = {
		visit->settings->helper,
		"forward",
		"--fabric",
		visit->fabric,
		"--dir",
		visit->dir,
		"--job",
		job,
		"--epoch",
		epoch,
		"--node",
		visit->node,
		"--timeout",
		timeout,
	};
	int n = 14;

	snprintf(job, sizeof(job), "%u", visit->job);
	snprintf(epoch, sizeof(epoch), "%llu", (unsigned long long)visit->epoch);
	snprintf(timeout, sizeof(timeout), "%d", left / 1000 + 1);
	if (ocsd)
		argv[n++] = "--ocsd", argv[n++] = ocsd;
	if (key)
		argv[n++] = "--key", argv[n++] = key;
	if (visit->settings->ocsd_user)
		argv[n++] = "--ocsd-user", argv[n++] = visit->settings->ocsd_user;
	return ocs_child_run((char *const *)argv, left + FORWARD_MORE_MS, ocs_helper_line, err);
}

/* Takes away what forwarding this epoch of the job, or an older one, has left here. */
static void forwarding_stop(const struct ocs_visit *visit, uint64_t noted)
{
	const char *slash = strrchr(visit->dir, '/');
	char *note = ocs_asprintf("%.*s/forward.json", (int)(slash - visit->dir), visit->dir);
	bool there = access(note, F_OK) == 0;
	char job[16], epoch[24];
	const char *const argv[] = {
		visit->settings->helper,
		"unforward",
		"--dir",
		visit->dir,
		"--job",
		job,
		"--epoch",
		epoch,
		NULL,
	};
	struct ocs_error err;

	free(note);
	if (!there)
		return;
	snprintf(job, sizeof(job), "%u", visit->job);
	snprintf(epoch, sizeof(epoch), "%llu",
		 (unsigned long long)(noted > visit->epoch ? noted : visit->epoch));
	if (ocs_child_run((char *const *)argv, visit->settings->helper_s * 1000, ocs_helper_line,
			  &err) < 0)
		slurm_error("spank_ocs: job %u: %s", visit->job, err.text);
}

/* Whether links of the job end at this node: those of cubes do only where ocs.yaml has `interfaces`. */
static bool links_here(const struct ocs_visit *visit)
{
	const char *placement = getenv("SPANK_OCS_PLACEMENT");
	char *path, *text;
	bool here;

	if (!placement || !*placement)
		return true;
	path = ocs_asprintf("%s/env", visit->dir);
	text = ocs_file_read(path, ENV_MAX, NULL, NULL);
	here = text && strstr(text, "\nSLURM_OCS_INTERFACES=");
	free(text);
	free(path);
	return here;
}

/* What comes after the files: hosts that forward look after their links themselves. */
static int network_prepare(struct ocs_visit *visit, struct json_object *reply,
			   struct ocs_error *err)
{
	if (ocs_field_true(reply, OCS_FIELD_FORWARDING))
		return forwarding_start(visit, err);
	if (!links_here(visit) || links_await(visit, err) == 0)
		return 0;
	if (!visit->taken)
		ocs_visit_take_away(visit, err->text);
	return -1;
}

/* Circuits, files and forwarding.  What the prolog returns. */
static int files_prepare(struct ocs_visit *visit)
{
	struct ocs_error err = { 0 };
	struct json_object *reply;
	int rc = ESPANK_SUCCESS, pause_ms = 200;

	remove_leftovers(visit);
	while ((reply = wait_for_circuits(visit, &rc))) {
		rc = write_files(visit, reply, &err) < 0 ? ESPANK_ERROR : ESPANK_SUCCESS;
		if (rc != ESPANK_SUCCESS || network_prepare(visit, reply, &err) == 0)
			break;
		slurm_error("spank_ocs: job %u: %s", visit->job, err.text);
		json_object_put(reply);
		if (ocs_visit_hopeless(visit, err.text))
			return ESPANK_ERROR;
		ocs_visit_rest(visit, &pause_ms);
	}
	/* No epilog may follow: slurmctld may have forgotten the job altogether. */
	if (!reply && rc == ESPANK_SUCCESS) {
		forwarding_stop(visit, 0);
		remove_files(visit);
	} else if (reply && rc != ESPANK_SUCCESS) {
		slurm_error("spank_ocs: job %u: %s", visit->job, err.text);
	} else if (reply) {
		slurm_verbose("spank_ocs: job %u has its circuits after %lld ms", visit->job,
			      (long long)((ocs_now_ns() - visit->start) / 1000000));
	}
	json_object_put(reply);
	return rc;
}

int ocs_job_prolog(spank_t spank, const struct ocs_settings *settings)
{
	struct ocs_error err = { 0 };
	struct ocs_visit visit;
	int rc = ESPANK_ERROR;

	if (!settings->prolog)
		return ESPANK_SUCCESS;
	if (ocs_visit_start(spank, settings, &visit) < 0)
		return ESPANK_ERROR;
	if (!visit.epoch)
		ocs_error_set(&err, OCS_ERROR, "SPANK_OCS_EPOCH is not a number");
	if (!visit.epoch || note_epoch(&visit, &err) < 0)
		slurm_error("spank_ocs: job %u: %s", visit.job, err.text);
	else if (ocs_visit_locate_patiently(&visit, &rc) == 0)
		rc = files_prepare(&visit);
	else
		remove_files(&visit);
	ocs_visit_end(&visit);
	return rc;
}

/* Until ocsd has it, or the deadline.  Whatever the answer, the node is not to blame, and
 * ocsd reconciles with slurmctld: nothing here fails the epilog. */
static void job_release(struct ocs_visit *visit, uint64_t epoch)
{
	struct ocs_error err = { 0 };
	struct json_object *reply;
	int pause_ms = 200;
	bool gone;

	for (;;) {
		int left = ocs_visit_left_ms(visit);

		err.code = OCS_OK;
		reply = ocsd_ask(visit, OCS_OP_RELEASE, epoch, left < 1000 ? 1000 : left, &gone,
				 &err);
		if (reply) {
			json_object_put(reply);
			return;
		}
		if (err.code != OCS_UNREACHABLE || left <= 0)
			break;
		ocs_visit_rest(visit, &pause_ms);
	}
	slurm_error("spank_ocs: job %u: ocsd did not take the release of epoch %llu: %s",
		    visit->job, (unsigned long long)epoch, err.text);
}

int ocs_job_epilog(spank_t spank, const struct ocs_settings *settings)
{
	struct ocs_error err = { 0 };
	struct ocs_visit visit;
	uint64_t noted;

	if (!settings->prolog || ocs_visit_start(spank, settings, &visit) < 0)
		return ESPANK_SUCCESS;
	noted = ocs_visit_epoch_noted(&visit);
	if (!visit.epoch && !noted) {
		ocs_visit_end(&visit);
		return ESPANK_SUCCESS;
	}
	forwarding_stop(&visit, noted);
	if (ocs_visit_locate(&visit, false, &err) < 0) {
		slurm_error("spank_ocs: job %u: %s", visit.job, err.text);
	} else {
		if (visit.epoch)
			job_release(&visit, visit.epoch);
		if (noted && (noted < visit.epoch || !visit.epoch))
			job_release(&visit, noted);
	}
	/* The files of a newer allocation are not those of this epilog. */
	if (!visit.epoch || noted <= visit.epoch)
		remove_files(&visit);
	ocs_visit_end(&visit);
	return ESPANK_SUCCESS;
}
