/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Prolog and epilog on a compute node, as root: ask ocsd for the job's circuits, have
 * the helper write the job's files, and take both away again. */

#include <dirent.h>
#include <errno.h>
#include <json-c/json.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/client/client.h"
#include "src/fabric/fabric.h"
#include "src/plugins/spank/child.h"
#include "src/plugins/spank/nodeside.h"
#include "src/plugins/spank/settings.h"
#include "src/plugins/spank/slurm_api.h"
#include "src/util/error.h"
#include "src/util/net.h"
#include "src/util/text.h"

#define SLICE_MS 20000	/* one wait for a reply, then look at the job again */
#define CONNECT_MS 5000
/* What ocs-node forward may take beyond its --timeout: interfaces until their carrier. */
#define FORWARD_MORE_MS 45000

/* What slurmctld handed over, and where this node keeps its part. */
struct visit {
	const struct ocs_settings *settings;
	uint32_t job;
	uid_t uid;
	gid_t gid;
	uint64_t epoch;		/* 0: none known */
	const char *node;
	char *fabric;		/* path of ocs.yaml */
	char *address;		/* of ocsd */
	char *key;		/* file of the key to it, or NULL */
	char *dir;		/* BASE/JOB */
	int64_t start, deadline;
};

static void visit_end(struct visit *visit)
{
	free(visit->fabric);
	free(visit->address);
	free(visit->key);
	free(visit->dir);
}

static uint64_t epoch_parse(const char *text)
{
	char *end;
	unsigned long long value;

	if (!text || *text < '0' || *text > '9')
		return 0;
	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || (*end && *end != '\n') || value > INT64_MAX)
		return 0;
	return value;
}

/* The node's own note of the epoch: an epilog may come without slurmctld's. */
static uint64_t epoch_noted(const struct visit *visit)
{
	char *path = ocs_asprintf("%s/epoch", visit->dir);
	char *text = ocs_file_read(path, 64, NULL, NULL);
	uint64_t epoch = epoch_parse(text);

	free(text);
	free(path);
	return epoch;
}

/* Who, where, which job.  0, or -1 after logging. */
static int visit_start(spank_t spank, const struct ocs_settings *settings,
		       struct visit *visit)
{
	memset(visit, 0, sizeof(*visit));
	visit->settings = settings;
	visit->start = ocs_now_ns();
	visit->node = getenv("SLURMD_NODENAME");
	visit->epoch = epoch_parse(getenv("SPANK_OCS_EPOCH"));
	if (!visit->node ||
	    spank_get_item(spank, S_JOB_ID, &visit->job) != ESPANK_SUCCESS ||
	    spank_get_item(spank, S_JOB_UID, &visit->uid) != ESPANK_SUCCESS) {
		slurm_error("spank_ocs: SLURMD_NODENAME, job or user is missing here");
		return -1;
	}
	if (spank_get_item(spank, S_JOB_GID, &visit->gid) != ESPANK_SUCCESS)
		visit->gid = (gid_t)-1;
	visit->dir = ocs_settings_job_dir(settings, visit->node, visit->job);
	return 0;
}

/* Finds ocsd, and how long to wait for it.  ocs.yaml is read only where the
 * arguments do not say. */
static int visit_locate(struct visit *visit, bool prolog, struct ocs_error *err)
{
	const struct ocs_settings *settings = visit->settings;
	int limit_ms = (prolog ? settings->prolog_s : settings->epilog_s) * 1000;
	struct ocs_fabric *fabric;

	visit->fabric = ocs_settings_fabric(settings);
	if (settings->ocsd)
		visit->address = ocs_strdup(settings->ocsd);
	if (settings->ocsd_key)
		visit->key = ocs_strdup(settings->ocsd_key);
	if (!visit->address || !limit_ms) {
		fabric = ocs_fabric_open(visit->fabric, err);
		if (!fabric)
			return -1;
		if (!visit->address)
			visit->address = ocs_strdup(fabric->ocsd_address);
		if (!visit->key && fabric->ocsd_key)
			visit->key = ocs_strdup(fabric->ocsd_key);
		if (!limit_ms)
			limit_ms = fabric->prolog_timeout_ms;
		ocs_fabric_destroy(fabric);
	}
	visit->deadline = visit->start + (int64_t)limit_ms * 1000000;
	return 0;
}

static int left_ms(const struct visit *visit)
{
	int64_t left = (visit->deadline - ocs_now_ns()) / 1000000;

	return left < 0 ? 0 : left > 86400000 ? 86400000 : (int)left;
}

/* Pauses that grow from a fifth of a second to SLICE/4, spread so that the nodes of a large
 * job do not all ask at once. */
static void rest(const struct visit *visit, int *pause_ms)
{
	int ms = *pause_ms + (int)((ocs_now_ns() / 1000 + getpid()) % (*pause_ms / 2 + 1));
	int left = left_ms(visit);

	*pause_ms = *pause_ms * 2 > SLICE_MS / 4 ? SLICE_MS / 4 : *pause_ms * 2;
	usleep((useconds_t)(ms < left ? ms : left) * 1000);
}

/* One request.  The reply, or NULL with ERR; *GONE: ocsd says that the job has left. */
static struct json_object *ask(const struct visit *visit, const char *op,
			       uint64_t epoch, int timeout_ms, bool *gone,
			       struct ocs_error *err)
{
	struct json_object *request, *reply, *refusal = NULL, *member;
	struct ocs_client *client;

	*gone = false;
	client = ocs_client_open_with_key(visit->address, visit->key,
				 timeout_ms < CONNECT_MS ? timeout_ms : CONNECT_MS, err);
	if (!client)
		return NULL;
	request = json_object_new_object();
	json_object_object_add(request, "op", json_object_new_string(op));
	json_object_object_add(request, "job", json_object_new_int64(visit->job));
	json_object_object_add(request, "epoch", json_object_new_int64((int64_t)epoch));
	json_object_object_add(request, "node", json_object_new_string(visit->node));
	reply = ocs_client_call(client, request, timeout_ms, &refusal, err);
	json_object_put(request);
	if (!reply && json_object_object_get_ex(refusal, "gone", &member))
		*gone = json_object_get_boolean(member);
	json_object_put(refusal);
	ocs_client_close(client);
	return reply;
}

/* The prolog's process has not loaded Slurm's plugins, and Slurm ends a process that cannot
 * reach its daemon in some cases: questions to slurmctld are asked by a child.
 * Returns what QUESTION returns (0 to 100), or -1 if there was no answer. */
static int in_child(const struct visit *visit, int (*question)(const struct visit *visit,
							       const char *text),
		    const char *text)
{
	int status, left = 60000;
	pid_t pid = fork(), done = 0;

	if (!pid) {
		slurm_init(NULL);
		_exit(question(visit, text));
	}
	if (pid < 0)
		return -1;
	for (; left > 0 && !done; left -= 10) {
		done = waitpid(pid, &status, WNOHANG);
		if (!done)
			usleep(10000);
	}
	if (!done) {
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
	}
	return done == pid && WIFEXITED(status) && WEXITSTATUS(status) <= 100 ?
		WEXITSTATUS(status) : -1;
}

static int ask_left(const struct visit *visit, const char *text)
{
	static const char mark[] = "ocs epoch=";
	job_info_msg_t *reply = NULL;
	int left = 1;

	(void)text;
	if (ocs_slurm_load_job(&reply, visit->job))
		return errno == ESLURM_INVALID_JOB_ID ? 1 : 101;
	for (uint32_t i = 0; i < reply->record_count; i++) {
		const slurm_job_info_t *job = &reply->job_array[i];
		uint32_t base = job->job_state & JOB_STATE_BASE;
		const char *note = job->system_comment ?
			strstr(job->system_comment, mark) : NULL;

		if (job->job_id != visit->job || (job->job_state & JOB_COMPLETING) ||
		    (base != JOB_RUNNING && base != JOB_SUSPENDED))
			continue;
		/* Requeued and started again meanwhile: another epoch. */
		left = note && strtoull(note + strlen(mark), NULL, 10) != visit->epoch;
	}
	slurm_free_job_info_msg(reply);
	return left;
}

/* 1: the job is no longer in this allocation; 0: it is; -1: slurmctld does not say. */
static int job_left(const struct visit *visit)
{
	return in_child(visit, ask_left, NULL);
}

static int ask_removal(const struct visit *visit, const char *text)
{
	if (!ocs_slurm_requeue(visit->job, JOB_REQUEUE_HOLD) || ask_left(visit, NULL) != 0)
		return 0;
	ocs_slurm_notify_job(visit->job, (char *)text);
	return ocs_slurm_kill_job(visit->job, SIGKILL) ? 1 : 0;
}

/* Nothing on this node is wrong, but the job cannot have its circuits and slurmctld's side
 * of slurm-ocs did not take it away: do so from here, so that neither the script runs
 * without circuits nor a healthy node is drained. */
static void take_away(const struct visit *visit, const char *why)
{
	char *text = ocs_asprintf("circuits could not be made: %s", why);

	slurm_error("spank_ocs: job %u is taken off its nodes: %s", visit->job, text);
	in_child(visit, ask_removal, text);
	free(text);
}

/* Waits for the job's circuits.  The reply of ocsd, or NULL: *RC is what the prolog
 * returns (0: the job has left, its script never runs). */
static struct json_object *wait_for_circuits(struct visit *visit, int *rc)
{
	struct ocs_error err = { 0 };
	struct json_object *reply;
	int pause_ms = 200, tries = 0;
	bool gone, taken = false;

	for (;;) {
		int left = left_ms(visit);

		err.code = OCS_OK;
		reply = ask(visit, "apply", visit->epoch,
			    left < SLICE_MS ? left + 1000 : SLICE_MS, &gone, &err);
		if (reply)
			return reply;
		*rc = 0;
		if (gone) {
			slurm_info("spank_ocs: job %u left its allocation: %s",
				   visit->job, err.text);
			return NULL;
		}
		if (!tries++ || !left)
			slurm_info("spank_ocs: job %u waits for circuits: %s",
				   visit->job, err.text);
		if (job_left(visit) > 0) {
			slurm_info("spank_ocs: job %u left its allocation", visit->job);
			return NULL;
		}
		/* Refusals that time cures (the commit has not arrived, a switch is
		 * away) come as "not now"; others will not change. */
		if (!taken && (!left || (err.code != OCS_UNREACHABLE &&
					 err.code != OCS_NOT_NOW && tries > 3))) {
			take_away(visit, err.text);
			taken = true;
			/* The requeue needs a moment to be seen. */
			visit->deadline = ocs_now_ns() + 30 * 1000000000LL;
		} else if (!left) {
			slurm_error("spank_ocs: job %u: no circuits and cannot be taken off this node: %s",
				    visit->job, err.text);
			*rc = ESPANK_ERROR;
			return NULL;
		}
		rest(visit, &pause_ms);
	}
}

static int remove_files(const struct visit *visit)
{
	const char *argv[] = { visit->settings->helper, "remove", "--dir", visit->dir, NULL };
	struct ocs_error err;

	if (access(visit->dir, F_OK))
		return 0;
	if (ocs_child_run((char *const *)argv, visit->settings->helper_s * 1000,
			  ocs_helper_line, &err) < 0) {
		slurm_error("spank_ocs: job %u: %s", visit->job, err.text);
		return -1;
	}
	return 0;
}

/* The job's directory with the epoch in it, before ocsd is asked for anything: an
 * epilog must be able to give back what a killed prolog got. */
static int note_epoch(const struct visit *visit, struct ocs_error *err)
{
	char *path = ocs_asprintf("%s/epoch", visit->dir);
	char *text = ocs_asprintf("%llu\n", (unsigned long long)visit->epoch);
	int rc = 0;

	for (char *slash = strchr(visit->dir + 1, '/'); !rc; slash = strchr(slash + 1, '/')) {
		if (slash)
			*slash = '\0';
		if (mkdir(visit->dir, 0755) < 0 && errno != EEXIST)
			rc = ocs_error_set(err, OCS_ERROR, "cannot make %s: %s",
					   visit->dir, strerror(errno));
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
static void remove_leftovers(const struct visit *visit)
{
	char *base = ocs_strdup(visit->dir);
	struct dirent *entry;
	DIR *dir;

	*strrchr(base, '/') = '\0';
	dir = opendir(base);
	while (dir && (entry = readdir(dir))) {
		struct visit old = { .settings = visit->settings };
		long job;

		if (ocs_number_parse(entry->d_name, 1, UINT32_MAX, &job) ||
		    (uint32_t)job == visit->job)
			continue;
		old.job = (uint32_t)job;
		old.dir = ocs_asprintf("%s/%s", base, entry->d_name);
		old.epoch = epoch_noted(&old);
		if (old.epoch && old.epoch < visit->epoch && job_left(&old) == 1 &&
		    remove_files(&old) == 0)
			slurm_info("spank_ocs: removed %s, left behind by a job that is gone",
				   old.dir);
		free(old.dir);
	}
	if (dir)
		closedir(dir);
	free(base);
}

static int write_files(const struct visit *visit, struct json_object *reply,
		       struct ocs_error *err)
{
	const char *section = getenv("SPANK_OCS_SECTION"), *shape = getenv("SPANK_OCS_SHAPE");
	const char *conn = getenv("SPANK_OCS_CONN"), *nodes = getenv("SPANK_OCS_NODES");
	const char *placement = getenv("SPANK_OCS_PLACEMENT");
	const char *text = json_object_to_json_string_ext(reply, JSON_C_TO_STRING_PLAIN);
	char *path = ocs_asprintf("%s/reply.json", visit->dir);
	char job[16], epoch[24], uid[16], gid[16];
	const char *argv[40];
	int n = 0, rc;

	snprintf(job, sizeof(job), "%u", visit->job);
	snprintf(epoch, sizeof(epoch), "%llu", (unsigned long long)visit->epoch);
	snprintf(uid, sizeof(uid), "%u", (unsigned int)visit->uid);
	snprintf(gid, sizeof(gid), "%u", (unsigned int)visit->gid);
#define ADD(name, value) \
	do { \
		if (value) { \
			argv[n++] = name; \
			argv[n++] = value; \
		} \
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

/* Whether the hosts of this job forward for each other: ocsd says so. */
static bool forwards(struct json_object *reply)
{
	struct json_object *member;

	return json_object_object_get_ex(reply, "forwarding", &member) &&
	       json_object_get_boolean(member);
}

/* This node's part in it.  If it cannot be done the helper has told ocsd, whose next
 * answer is that the job leaves. */
static int forward(const struct visit *visit, struct ocs_error *err)
{
	const char *ocsd = visit->settings->ocsd, *key = visit->settings->ocsd_key;
	int left = left_ms(visit);
	char job[16], epoch[24], timeout[16];
	const char *argv[24] = {
		visit->settings->helper, "forward", "--fabric", visit->fabric, "--dir",
		visit->dir, "--job", job, "--epoch", epoch, "--node", visit->node,
		"--timeout", timeout,
	};
	int n = 14;

	snprintf(job, sizeof(job), "%u", visit->job);
	snprintf(epoch, sizeof(epoch), "%llu", (unsigned long long)visit->epoch);
	snprintf(timeout, sizeof(timeout), "%d", left / 1000 + 1);
	if (ocsd)
		argv[n++] = "--ocsd", argv[n++] = ocsd;
	if (key)
		argv[n++] = "--key", argv[n++] = key;
	return ocs_child_run((char *const *)argv, left + FORWARD_MORE_MS, ocs_helper_line, err);
}

/* Takes away what forwarding this epoch of the job, or an older one, has left here. */
static void unforward(const struct visit *visit, uint64_t noted)
{
	const char *slash = strrchr(visit->dir, '/');
	char *note = ocs_asprintf("%.*s/forward.json", (int)(slash - visit->dir), visit->dir);
	bool there = access(note, F_OK) == 0;
	char job[16], epoch[24];
	const char *const argv[] = {
		visit->settings->helper, "unforward", "--dir", visit->dir, "--job", job,
		"--epoch", epoch, NULL,
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

/* Circuits, files and forwarding.  What the prolog returns. */
static int prepare(struct visit *visit)
{
	struct ocs_error err = { 0 };
	struct json_object *reply;
	int rc = ESPANK_SUCCESS, pause_ms = 200;
	bool taken = false;

	remove_leftovers(visit);
	while ((reply = wait_for_circuits(visit, &rc))) {
		rc = write_files(visit, reply, &err) < 0 ? ESPANK_ERROR : ESPANK_SUCCESS;
		if (rc != ESPANK_SUCCESS || !forwards(reply) || forward(visit, &err) == 0)
			break;
		slurm_error("spank_ocs: job %u: %s", visit->job, err.text);
		json_object_put(reply);
		if (!left_ms(visit) && taken)
			return ESPANK_ERROR;
		if (!left_ms(visit)) {
			take_away(visit, err.text);
			taken = true;
			visit->deadline = ocs_now_ns() + 30 * 1000000000LL;
		}
		rest(visit, &pause_ms);
	}
	/* No epilog may follow: slurmctld may have forgotten the job altogether. */
	if (!reply && rc == ESPANK_SUCCESS) {
		unforward(visit, 0);
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
	struct visit visit;
	int rc = ESPANK_ERROR;

	if (!settings->prolog || !getenv("SPANK_OCS_EPOCH"))
		return ESPANK_SUCCESS;
	if (visit_start(spank, settings, &visit) < 0)
		return ESPANK_ERROR;
	if (!visit.epoch)
		ocs_error_set(&err, OCS_ERROR, "SPANK_OCS_EPOCH is not a number");
	else if (visit_locate(&visit, true, &err) == 0 && note_epoch(&visit, &err) == 0)
		rc = ESPANK_SUCCESS;
	if (rc != ESPANK_SUCCESS)
		slurm_error("spank_ocs: job %u: %s", visit.job, err.text);
	else
		rc = prepare(&visit);
	visit_end(&visit);
	return rc;
}

/* Until ocsd has it, or the deadline.  Whatever the answer, the node is not to blame, and
 * ocsd reconciles with slurmctld: nothing here fails the epilog. */
static void release(struct visit *visit, uint64_t epoch)
{
	struct ocs_error err = { 0 };
	struct json_object *reply;
	int pause_ms = 200;
	bool gone;

	for (;;) {
		int left = left_ms(visit);

		err.code = OCS_OK;
		reply = ask(visit, "release", epoch, left < 1000 ? 1000 : left, &gone, &err);
		if (reply) {
			json_object_put(reply);
			return;
		}
		if (err.code != OCS_UNREACHABLE || left <= 0)
			break;
		rest(visit, &pause_ms);
	}
	slurm_error("spank_ocs: job %u: ocsd did not take the release of epoch %llu: %s",
		    visit->job, (unsigned long long)epoch, err.text);
}

int ocs_job_epilog(spank_t spank, const struct ocs_settings *settings)
{
	struct ocs_error err = { 0 };
	struct visit visit;
	uint64_t noted;

	if (!settings->prolog || visit_start(spank, settings, &visit) < 0)
		return ESPANK_SUCCESS;
	noted = epoch_noted(&visit);
	if (!visit.epoch && !noted) {
		visit_end(&visit);
		return ESPANK_SUCCESS;
	}
	unforward(&visit, noted);
	if (visit_locate(&visit, false, &err) < 0) {
		slurm_error("spank_ocs: job %u: %s", visit.job, err.text);
	} else {
		if (visit.epoch)
			release(&visit, visit.epoch);
		if (noted && (noted < visit.epoch || !visit.epoch))
			release(&visit, noted);
	}
	/* The files of a newer allocation are not those of this epilog. */
	if (!visit.epoch || noted <= visit.epoch)
		remove_files(&visit);
	visit_end(&visit);
	return ESPANK_SUCCESS;
}
