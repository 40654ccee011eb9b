/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Decoding a MUNGE credential takes milliseconds and asks another daemon, so it
 * happens beside the loop, once per remote connection.  Peers take turns: whoever asks as
 * fast as he can, also on connections that he closes at once, waits for himself. */

#include "src/ocsd/protocol/munge.h"

#include "src/ocsd/protocol/client.h"

#include "src/util/text.h"

#include <errno.h>
#include <event2/event.h>
#include <munge.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define WAITING_MAX 256 /* questions of one peer */
#define PEERS_MAX 4096

struct question {
	struct question *next;
	uint64_t serial;
	char *credential;
	char *payload; /* NULL: refused */
	char *error;
	uid_t uid;
};

/* A peer with questions that wait. */
struct asker {
	struct asker *next;
	char peer[OCSD_PEER_NAME];
	struct question *first, **last;
	size_t count;
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
	struct asker *askers, **last_asker; /* whose turn it is first */
	size_t naskers;
	struct question *answered, **last_answered;
};

static void question_free(struct question *question)
{
	free(question->credential);
	free(question->payload);
	free(question->error);
	free(question);
}

static void credential_decode(struct question *question)
{
	void *data = NULL;
	int length = 0;
	gid_t gid;
	munge_err_t rc =
		munge_decode(question->credential, NULL, &data, &length, &question->uid, &gid);

	if (rc != EMUNGE_SUCCESS) {
		question->error = ocs_strdup(munge_strerror(rc));
	} else {
		question->payload = ocs_calloc((size_t)length + 1, 1);
		if (length > 0)
			memcpy(question->payload, data, (size_t)length);
	}
	free(data);
}

static void asker_append(struct ocsd_auth *auth, struct asker *asker)
{
	asker->next = NULL;
	*auth->last_asker = asker;
	auth->last_asker = &asker->next;
}

/* The first question of the peer whose turn it is, which goes to the end. */
static struct question *question_next(struct ocsd_auth *auth)
{
	struct asker *asker = auth->askers;
	struct question *question = asker->first;

	auth->askers = asker->next;
	if (!auth->askers)
		auth->last_asker = &auth->askers;
	asker->first = question->next;
	question->next = NULL;
	if (--asker->count) {
		asker_append(auth, asker);
	} else {
		auth->naskers--;
		free(asker);
	}
	return question;
}

static void *auth_main(void *argument)
{
	struct ocsd_auth *auth = argument;
	uint64_t one = 1;

	pthread_mutex_lock(&auth->lock);
	for (;;) {
		struct question *question;

		while (!auth->stop && !auth->askers)
			pthread_cond_wait(&auth->cond, &auth->lock);
		if (auth->stop)
			break;
		question = question_next(auth);
		pthread_mutex_unlock(&auth->lock);
		credential_decode(question);
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

struct ocsd_auth *ocsd_auth_start(struct ocsd *d, ocsd_auth_done done, struct ocs_error *err)
{
	struct ocsd_auth *auth = ocs_calloc(1, sizeof(*auth));
	int rc;

	auth->d = d;
	auth->done = done;
	auth->last_asker = &auth->askers;
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
	auth->event = event_new(d->loop.base, auth->wake, EV_READ | EV_PERSIST, on_wake, auth);
	event_add(auth->event, NULL);
	return auth;
}

/* NULL: there are too many. */
static struct asker *asker_find(struct ocsd_auth *auth, const char *peer)
{
	struct asker *asker = auth->askers;

	while (asker && strcmp(asker->peer, peer) != 0)
		asker = asker->next;
	if (asker)
		return asker->count < WAITING_MAX ? asker : NULL;
	if (auth->naskers >= PEERS_MAX)
		return NULL;
	asker = ocs_calloc(1, sizeof(*asker));
	snprintf(asker->peer, sizeof(asker->peer), "%s", peer);
	asker->last = &asker->first;
	asker_append(auth, asker);
	auth->naskers++;
	return asker;
}

int ocsd_auth_ask(struct ocsd_auth *auth, uint64_t serial, const char *peer, const char *credential)
{
	struct question *question;
	struct asker *asker;

	pthread_mutex_lock(&auth->lock);
	asker = asker_find(auth, peer);
	if (asker) {
		question = ocs_calloc(1, sizeof(*question));
		question->serial = serial;
		question->credential = ocs_strdup(credential);
		*asker->last = question;
		asker->last = &question->next;
		asker->count++;
		pthread_cond_signal(&auth->cond);
	}
	pthread_mutex_unlock(&auth->lock);
	return asker ? 0 : -1;
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
	while (auth->askers) {
		struct asker *asker = auth->askers;

		auth->askers = asker->next;
		free_list(asker->first);
		free(asker);
	}
	free_list(auth->answered);
	pthread_mutex_destroy(&auth->lock);
	pthread_cond_destroy(&auth->cond);
	free(auth);
}
