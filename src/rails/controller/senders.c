/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Threads that help to send where an operation of many nodes was granted: what a send costs is the
 * kernel's work, which processors do side by side. */

#include <sched.h>
#include <signal.h>
#include <stdlib.h>

#include "src/rails/controller/controller.h"
#include "src/util/text.h"

#define HELPERS 3
#define ALONE 32 /* links that one thread sends to sooner than another one wakes up */

struct senders {
	pthread_mutex_t lock;
	pthread_cond_t work, done;
	struct link **links; /* of this round, */
	int count, room;
	_Atomic int next; /* and the first one that nobody has taken */
	uint64_t round;
	bool open; /* the round has not ended: who wakes up late does not touch the next one */
	int busy;  /* helpers that send */
	int nhelpers;
	bool stop;
	pthread_t helpers[HELPERS];
};

/* Sends to links of this round until none is left. */
static void links_send(struct senders *senders)
{
	for (int i; (i = senders->next++) < senders->count;) {
		struct link *link = senders->links[i];

		link->sent = ocs_outbox_flush(&link->outbox, link->fd);
	}
}

static void *helper_run(void *thing)
{
	struct senders *senders = thing;
	uint64_t seen = 0;

	pthread_mutex_lock(&senders->lock);
	for (;;) {
		while (!senders->stop && (!senders->open || senders->round == seen))
			pthread_cond_wait(&senders->work, &senders->lock);
		if (senders->stop)
			break;
		seen = senders->round;
		senders->busy++;
		pthread_mutex_unlock(&senders->lock);
		links_send(senders);
		pthread_mutex_lock(&senders->lock);
		if (--senders->busy == 0)
			pthread_cond_signal(&senders->done);
	}
	pthread_mutex_unlock(&senders->lock);
	return NULL;
}

/* As many helpers as there are processors besides this one; none is no fault. */
static void helpers_start(struct senders *senders)
{
	cpu_set_t usable;
	sigset_t all, before;
	int wanted = sched_getaffinity(0, sizeof(usable), &usable) ? 0 : CPU_COUNT(&usable) - 1;

	if (wanted > HELPERS)
		wanted = HELPERS;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	while (senders->nhelpers < wanted &&
	       pthread_create(&senders->helpers[senders->nhelpers], NULL, helper_run, senders) == 0)
		senders->nhelpers++;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

struct senders *senders_create(void)
{
	struct senders *senders = ocs_calloc(1, sizeof(*senders));

	pthread_mutex_init(&senders->lock, NULL);
	pthread_cond_init(&senders->work, NULL);
	pthread_cond_init(&senders->done, NULL);
	return senders;
}

void senders_destroy(struct senders *senders)
{
	if (!senders)
		return;
	pthread_mutex_lock(&senders->lock);
	senders->stop = true;
	pthread_cond_broadcast(&senders->work);
	pthread_mutex_unlock(&senders->lock);
	for (int i = 0; i < senders->nhelpers; i++)
		pthread_join(senders->helpers[i], NULL);
	pthread_cond_destroy(&senders->work);
	pthread_cond_destroy(&senders->done);
	pthread_mutex_destroy(&senders->lock);
	free(senders->links);
	free(senders);
}

void senders_add(struct senders *senders, struct link *link)
{
	if (senders->count == senders->room) {
		senders->room = senders->room * 2 + 64;
		senders->links = ocs_realloc(senders->links,
					     (size_t)senders->room * sizeof(*senders->links));
	}
	senders->links[senders->count++] = link;
}

void senders_run(struct senders *senders)
{
	bool help = senders->count > ALONE;

	if (help && !senders->nhelpers)
		helpers_start(senders);
	help = help && senders->nhelpers;
	senders->next = 0;
	if (help) {
		pthread_mutex_lock(&senders->lock);
		senders->round++;
		senders->open = true;
		pthread_cond_broadcast(&senders->work);
		pthread_mutex_unlock(&senders->lock);
	}
	links_send(senders);
	if (help) {
		pthread_mutex_lock(&senders->lock);
		while (senders->busy)
			pthread_cond_wait(&senders->done, &senders->lock);
		senders->open = false;
		pthread_mutex_unlock(&senders->lock);
	}
	senders->count = 0;
}
