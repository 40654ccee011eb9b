/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "src/moe/job/plans.h"

#define ANSWER_S 30 /* more than a controller, or its relay, takes without a switch */
#define RETRY_S 5

void ocs_moe_plans_open(struct ocs_moe_plans *plans)
{
	const char *own = getenv("OCS_MOE_PLAN"), *folder = getenv("SLURM_OCS_MOE_SOCKETS");
	const char *group = getenv("SLURM_OCS_MOE_GROUP"), *job = getenv("SLURM_OCS_DIR");
	int length = 0;

	memset(plans, 0, sizeof(*plans));
	if (own)
		length = snprintf(plans->path, sizeof(plans->path), "%s", own);
	else if (folder && group)
		length = snprintf(plans->path, sizeof(plans->path), "%s/plan.%s", folder, group);
	else if (job && group)
		length = snprintf(plans->path, sizeof(plans->path), "%s/moe.plan", job);
	if (length < 0 || length >= (int)sizeof(plans->path))
		*plans->path = '\0';
}

void ocs_moe_plans_close(struct ocs_moe_plans *plans)
{
	if (plans->controller)
		fclose(plans->controller);
	plans->controller = NULL;
}

/* Appends a line to TEXT, which may move; NULL without memory. */
static char *line_add(char *text, const char *line)
{
	size_t old = text ? strlen(text) : 0, more = strlen(line);
	char *longer = realloc(text, old + more + 1);

	if (!longer) {
		free(text);
		return NULL;
	}
	memcpy(longer + old, line, more + 1);
	return longer;
}

static time_t seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

static FILE *controller_open(const char *path)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	struct timeval patience = { .tv_sec = ANSWER_S };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	FILE *file = NULL;

	if (fd >= 0 && strlen(path) < sizeof(at.sun_path)) {
		strcpy(at.sun_path, path);
		if (!setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) &&
		    !connect(fd, (struct sockaddr *)&at, sizeof(at)))
			file = fdopen(fd, "r");
	}
	if (!file && fd >= 0)
		close(fd);
	return file;
}

/* Asks without a signal where the controller has gone meanwhile. */
static int question_send(FILE *controller, const struct ocs_moe_job_step *step)
{
	char line[96];
	int length = snprintf(line, sizeof(line), "plan %d %" PRId64 " %d %d\n", step->layer,
			      step->microbatch, step->backward, step->second);

	return send(fileno(controller), line, (size_t)length, MSG_NOSIGNAL) == length ? 0 : -1;
}

/* What the controller wants for this call; NULL: it is gone, or stands still. */
static char *controller_ask(struct ocs_moe_plans *plans, const struct ocs_moe_job_step *step)
{
	char line[512], *text = line_add(NULL, "");

	if (!question_send(plans->controller, step))
		while (text && fgets(line, sizeof(line), plans->controller)) {
			if (!strcmp(line, "end\n"))
				return text;
			text = line_add(text, line);
		}
	free(text);
	ocs_moe_plans_close(plans);
	plans->retry_at = seconds_now() + RETRY_S;
	return NULL;
}

/* What is in the plan's file if it is not the one that was read last; NULL: there is nothing new. */
static char *plan_read(struct ocs_moe_plans *plans)
{
	struct stat now;
	char line[512], *text = NULL;
	FILE *file;

	if (stat(plans->path, &now) ||
	    (now.st_ino == plans->seen.st_ino && now.st_mtim.tv_sec == plans->seen.st_mtim.tv_sec &&
	     now.st_mtim.tv_nsec == plans->seen.st_mtim.tv_nsec))
		return NULL;
	file = S_ISREG(now.st_mode) ? fopen(plans->path, "re") : NULL;
	if (!file)
		return NULL;
	plans->seen = now;
	text = line_add(NULL, "");
	while (text && fgets(line, sizeof(line), file))
		text = line_add(text, line);
	fclose(file);
	return text;
}

char *ocs_moe_plans_next(struct ocs_moe_plans *plans, const struct ocs_moe_job_step *step)
{
	struct stat kind;

	if (!*plans->path)
		return NULL;
	/* One that takes the place of a controller that died is asked, too. */
	if (!plans->controller && seconds_now() >= plans->retry_at && !stat(plans->path, &kind) &&
	    S_ISSOCK(kind.st_mode))
		plans->controller = controller_open(plans->path);
	return plans->controller ? controller_ask(plans, step) : plan_read(plans);
}
