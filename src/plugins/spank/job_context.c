/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/plugins/spank/job_context.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/config/config.h"
#include "src/fabric/fabric.h"
#include "src/plugins/spank/settings.h"
#include "src/plugins/compat/slurm_api.h"
#include "src/util/net.h"
#include "src/util/text.h"

#define PAUSE_MAX_MS 5000
/* How long to wait for an ocs.yaml that can be read, where the limit stands in it. */
#define UNREAD_S 300
/* How long a job that is taken away may take to leave. */
#define REMOVAL_S 30

void ocs_visit_end(struct ocs_visit *visit)
{
	free(visit->fabric);
	free(visit->address);
	free(visit->key);
	free(visit->user);
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

uint64_t ocs_visit_epoch_noted(const struct ocs_visit *visit)
{
	char *path = ocs_asprintf("%s/epoch", visit->dir);
	char *text = ocs_file_read(path, 64, NULL, NULL);
	uint64_t epoch = epoch_parse(text);

	free(text);
	free(path);
	return epoch;
}

int ocs_visit_start(spank_t spank, const struct ocs_settings *settings, struct ocs_visit *visit)
{
	memset(visit, 0, sizeof(*visit));
	visit->settings = settings;
	visit->start = ocs_now_ns();
	visit->node = getenv("SLURMD_NODENAME");
	visit->epoch = epoch_parse(getenv("SPANK_OCS_EPOCH"));
	if (!visit->node || spank_get_item(spank, S_JOB_ID, &visit->job) != ESPANK_SUCCESS ||
	    spank_get_item(spank, S_JOB_UID, &visit->uid) != ESPANK_SUCCESS) {
		slurm_error("spank_ocs: SLURMD_NODENAME, job or user is missing here");
		return -1;
	}
	if (spank_get_item(spank, S_JOB_GID, &visit->gid) != ESPANK_SUCCESS)
		visit->gid = (gid_t)-1;
	visit->dir = ocs_settings_job_dir(settings, visit->node, visit->job);
	return 0;
}

int ocs_visit_locate(struct ocs_visit *visit, bool prolog, struct ocs_error *err)
{
	const struct ocs_settings *settings = visit->settings;
	int limit_ms = (prolog ? settings->prolog_s : settings->epilog_s) * 1000;
	struct ocs_config *config;

	free(visit->fabric);
	visit->fabric = ocs_settings_fabric(settings);
	free(visit->address);
	visit->address = NULL;
	free(visit->key);
	visit->key = NULL;
	free(visit->user);
	visit->user = NULL;
	if (settings->ocsd)
		visit->address = ocs_strdup(settings->ocsd);
	if (settings->ocsd_key)
		visit->key = ocs_strdup(settings->ocsd_key);
	if (settings->ocsd_user)
		visit->user = ocs_strdup(settings->ocsd_user);
	if (!visit->address || !limit_ms) {
		config = ocs_config_open(visit->fabric, err);
		if (!config)
			return -1;
		if (!visit->address)
			visit->address = ocs_strdup(config->ocsd.address);
		if (!visit->key && config->ocsd.key)
			visit->key = ocs_strdup(config->ocsd.key);
		if (!visit->user && config->ocsd.user)
			visit->user = ocs_strdup(config->ocsd.user);
		if (!limit_ms)
			limit_ms = config->timeouts.prolog_ms;
		ocs_config_destroy(config);
	}
	/* A job that is taken away keeps the time for that. */
	if (!visit->taken)
		visit->deadline = visit->start + (int64_t)limit_ms * 1000000;
	return 0;
}

int ocs_visit_left_ms(const struct ocs_visit *visit)
{
	int64_t left = (visit->deadline - ocs_now_ns()) / 1000000;

	return left < 0 ? 0 : left > 86400000 ? 86400000 : (int)left;
}

void ocs_visit_rest(const struct ocs_visit *visit, int *pause_ms)
{
	int ms = *pause_ms + (int)((ocs_now_ns() / 1000 + getpid()) % (*pause_ms / 2 + 1));
	int left = ocs_visit_left_ms(visit);

	*pause_ms = *pause_ms * 2 > PAUSE_MAX_MS ? PAUSE_MAX_MS : *pause_ms * 2;
	usleep((useconds_t)(ms < left ? ms : left) * 1000);
}

/* The prolog's process has not loaded Slurm's plugins, and Slurm ends a process that cannot
 * reach its daemon in some cases: questions to slurmctld are asked by a child.
 * Returns what QUESTION returns (0 to 100), or -1 if there was no answer. */
static int in_child(const struct ocs_visit *visit,
		    int (*question)(const struct ocs_visit *visit, const char *text),
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
		       WEXITSTATUS(status) :
		       -1;
}

static int ask_left(const struct ocs_visit *visit, const char *text)
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
		const char *note = job->system_comment ? strstr(job->system_comment, mark) : NULL;

		if (job->job_id != visit->job || (job->job_state & JOB_COMPLETING) ||
		    (base != JOB_RUNNING && base != JOB_SUSPENDED))
			continue;
		/* Requeued and started again meanwhile: another epoch. */
		left = note && strtoull(note + strlen(mark), NULL, 10) != visit->epoch;
	}
	slurm_free_job_info_msg(reply);
	return left;
}

int ocs_visit_job_left(const struct ocs_visit *visit)
{
	return in_child(visit, ask_left, NULL);
}

static int ask_removal(const struct ocs_visit *visit, const char *text)
{
	if (!ocs_slurm_requeue(visit->job, JOB_REQUEUE_HOLD) || ask_left(visit, NULL) != 0)
		return 0;
	ocs_slurm_notify_job(visit->job, (char *)text);
	return ocs_slurm_kill_job(visit->job, SIGKILL) ? 1 : 0;
}

void ocs_visit_take_away(struct ocs_visit *visit, const char *why)
{
	char *text = ocs_asprintf("circuits could not be made: %s", why);

	slurm_error("spank_ocs: job %u is taken off its nodes: %s", visit->job, text);
	in_child(visit, ask_removal, text);
	free(text);
	visit->taken = true;
	/* The requeue needs a moment to be seen. */
	visit->deadline = ocs_now_ns() + REMOVAL_S * INT64_C(1000000000);
}

bool ocs_visit_hopeless(struct ocs_visit *visit, const char *why)
{
	if (ocs_visit_left_ms(visit))
		return false;
	if (visit->taken)
		return true;
	ocs_visit_take_away(visit, why);
	return false;
}

int ocs_visit_locate_patiently(struct ocs_visit *visit, int *rc)
{
	int limit_s = visit->settings->prolog_s ? visit->settings->prolog_s : UNREAD_S;
	int pause_ms = 200;
	struct ocs_error err = { 0 };
	bool warned = false;

	visit->deadline = visit->start + limit_s * INT64_C(1000000000);
	while (ocs_visit_locate(visit, true, &err) < 0) {
		if (!warned)
			slurm_error("spank_ocs: job %u waits until it can be read: %s", visit->job,
				    err.text);
		warned = true;
		*rc = ESPANK_SUCCESS;
		if (ocs_visit_job_left(visit) > 0)
			return -1;
		if (ocs_visit_hopeless(visit, err.text)) {
			*rc = ESPANK_ERROR;
			return -1;
		}
		ocs_visit_rest(visit, &pause_ms);
	}
	return 0;
}
