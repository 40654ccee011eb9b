/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Decoding a MUNGE credential takes milliseconds and asks another daemon, so it
 * happens beside the loop, once per remote connection. */

#include "src/ocsd/auth.h"

#include "src/util/text.h"

#include <errno.h>
#include <event2/event.h>
#include <munge.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct question {
	struct question *next;
	uint64_t serial;
	char *credential;
	char *payload; /* NULL: refused */
	char *error;
	uid_t uid;
};

struct ocsd_auth {
	struct ocsd *d;
	ocsd_auth_done done;
	pthread_t thread;
	int wake;
	struct event *event;
	pthread_mutex_t lock;
	pthread_cond_t cond;
	/* under lock */
	bool stop;
	struct question *asked, **last_asked;
	struct question *answered, **last_answered;
};

static void question_free(struct question *question)
{
	free(question->credential);
	free(question->payload);
	free(question->error);
	free(question);
}

static void decode(struct question *question)
{
	void *data = NULL;
	int length = 0;
	gid_t gid;
	munge_err_t rc = munge_decode(question->credential, NULL, &data, &length,
				      &question->uid, &gid);

	if (rc != EMUNGE_SUCCESS) {
		question->error = ocs_strdup(munge_strerror(rc));
	} else {
		question->payload = ocs_calloc((size_t)length + 1, 1);
		if (length > 0)
			memcpy(question->payload, data, (size_t)length);
	}
	free(data);
}

static void *auth_main(void *argument)
{
	struct ocsd_auth *auth = argument;
	uint64_t one = 1;

	pthread_mutex_lock(&auth->lock);
	for (;;) {
		struct question *question;

		while (!auth->stop && !auth->asked)
			pthread_cond_wait(&auth->cond, &auth->lock);
		if (auth->stop)
			break;
		question = auth->asked;
		auth->asked = question->next;
		if (!auth->asked)
			auth->last_asked = &auth->asked;
		question->next = NULL;
		pthread_mutex_unlock(&auth->lock);
		decode(question);
		pthread_mutex_lock(&auth->lock);
		*auth->last_answered = question;
		auth->last_answered = &question->next;
		if (write(auth->wake, &one, sizeof(one)) != sizeof(one))
			ocs_log(OCS_LOG_ERROR, "waking the main thread failed: %s",
				strerror(errno));
	}
	pthread_mutex_unlock(&auth->lock);
	return NULL;
}

static void on_wake(evutil_socket_t fd, short what, void *context)
{
	struct ocsd_auth *auth = context;
	struct question *question;
	uint64_t count;

	(void)what;
	if (read(fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
		ocs_log(OCS_LOG_ERROR, "eventfd: %s", strerror(errno));
	pthread_mutex_lock(&auth->lock);
	question = auth->answered;
	auth->answered = NULL;
	auth->last_answered = &auth->answered;
	pthread_mutex_unlock(&auth->lock);
	while (question) {
		struct question *next = question->next;

		auth->done(auth->d, question->serial, question->payload, question->uid,
			   question->error);
		question_free(question);
		question = next;
	}
}

struct ocsd_auth *ocsd_auth_start(struct ocsd *d, ocsd_auth_done done,
				  struct ocs_error *err)
{
	struct ocsd_auth *auth = ocs_calloc(1, sizeof(*auth));
	int rc;

	auth->d = d;
	auth->done = done;
	auth->last_asked = &auth->asked;
	auth->last_answered = &auth->answered;
	auth->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (auth->wake < 0) {
		ocs_error_set(err, OCS_ERROR, "eventfd: %s", strerror(errno));
		free(auth);
		return NULL;
	}
	pthread_mutex_init(&auth->lock, NULL);
	pthread_cond_init(&auth->cond, NULL);
	rc = pthread_create(&auth->thread, NULL, auth_main, auth);
	if (rc) {
		ocs_error_set(err, OCS_ERROR, "starting the MUNGE thread: %s", strerror(rc));
		close(auth->wake);
		free(auth);
		return NULL;
	}
	auth->event = event_new(d->base, auth->wake, EV_READ | EV_PERSIST, on_wake, auth);
	event_add(auth->event, NULL);
	return auth;
}

void ocsd_auth_ask(struct ocsd_auth *auth, uint64_t serial, const char *credential)
{
	struct question *question = ocs_calloc(1, sizeof(*question));

	question->serial = serial;
	question->credential = ocs_strdup(credential);
	pthread_mutex_lock(&auth->lock);
	*auth->last_asked = question;
	auth->last_asked = &question->next;
	pthread_cond_signal(&auth->cond);
	pthread_mutex_unlock(&auth->lock);
}

static void free_list(struct question *question)
{
	while (question) {
		struct question *next = question->next;

		question_free(question);
		question = next;
	}
}

void ocsd_auth_stop(struct ocsd_auth *auth)
{
	if (!auth)
		return;
	pthread_mutex_lock(&auth->lock);
	auth->stop = true;
	pthread_cond_signal(&auth->cond);
	pthread_mutex_unlock(&auth->lock);
	pthread_join(auth->thread, NULL);
	event_free(auth->event);
	close(auth->wake);
	free_list(auth->asked);
	free_list(auth->answered);
	pthread_mutex_destroy(&auth->lock);
	pthread_cond_destroy(&auth->cond);
	free(auth);
}
