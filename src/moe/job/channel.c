/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The all-to-alls of a communicator.  A rank has a place: that of the library's all-to-all, where ranks of a server
 * follow each other, and servers have the order of the job's group. */

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/moe/job/ocs_moe.h"
#include "src/moe/job/ocs_moe_channel.h"
#include "src/moe/job/ocs_moe_gate.h"
#include "src/moe/job/plans.h"
#include "src/moe/job/steps.h"

#define PUBLIC __attribute__((visibility("default")))
#define DAY_MS \
	86400000 /* ranks come to an all-to-all when they do; the job knows when it is too late */
#define CIRCUITS_MS 1000

/* What the rank at place 0 tells all others before a call. */
struct word {
	struct ocs_moe_job_step step;
	int64_t tag;
	int64_t length; /* of a new plan, with its end; 0: there is none */
};

struct ocs_moe_channel {
	struct ocs_moe *moe;
	struct ocs_moe_gate *gate;
	struct ocs_moe_steps steps;
	struct ocs_moe_plans plans;
	bool steered; /* its plans are asked for */
	char *plan;   /* the one that stands; NULL: none */
	int ranks, here, each;
	/* Calls of several threads: */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool busy;  /* one is under way */
	bool heard; /* WORD is for a call that is to come here */
	struct word word;
	double token_bytes;
	int *place;    /* [ranks] */
	int64_t *row;  /* [ranks] of a gate */
	size_t *sizes; /* [4 * ranks] of a call, by place */
};

PUBLIC const char *ocs_moe_channel_error(const struct ocs_moe_channel *channel)
{
	return ocs_moe_error(channel->moe);
}

PUBLIC void ocs_moe_channel_close(struct ocs_moe_channel *channel)
{
	if (!channel)
		return;
	ocs_moe_close(channel->moe);
	ocs_moe_gate_close(channel->gate);
	ocs_moe_plans_close(&channel->plans);
	free(channel->plan);
	free(channel->place);
	free(channel->row);
	free(channel->sizes);
	pthread_mutex_destroy(&channel->lock);
	pthread_cond_destroy(&channel->changed);
	free(channel);
}

/* ---- opening ---- */

/* Whether the ranks of CARDS are a group of the job, as many on each server; then their places. */
static bool places_find(const struct ocs_moe_card *cards, int ranks, int *each, int *place)
{
	int servers = cards[0].servers, *seen;
	bool good = cards[0].group >= 0 && servers > 1 && ranks % servers == 0;

	if (!good)
		return false;
	*each = ranks / servers;
	seen = calloc((size_t)servers, sizeof(*seen));
	good = seen != NULL;
	for (int r = 0; good && r < ranks; r++) {
		good = cards[r].group == cards[0].group && cards[r].servers == servers &&
		       cards[r].server >= 0 && cards[r].server < servers &&
		       seen[cards[r].server] < *each;
		if (good)
			place[r] = cards[r].server * *each + seen[cards[r].server]++;
	}
	free(seen);
	return good;
}

/* Someone has set up channels without spank_ocs. */
static bool by_hand(void)
{
	return getenv("OCS_MOE_PLAN") || getenv("OCS_MOE_AGENT") || getenv("OCS_MOE_ADDRESS");
}

/* By hand all communicators have channels, and that of all ranks has the plan. */
static bool places_settle(struct ocs_moe_channel *channel, const struct ocs_moe_card *cards,
			  int whole)
{
	const char *each = getenv("OCS_MOE_EACH");

	if (cards[0].group >= 0) {
		channel->steered = true;
		return places_find(cards, channel->ranks, &channel->each, channel->place);
	}
	channel->each = each && atoi(each) > 0 ? atoi(each) : 1;
	channel->steered = whole && getenv("OCS_MOE_PLAN");
	for (int r = 0; r < channel->ranks; r++)
		channel->place[r] = r;
	return by_hand();
}

static struct ocs_moe *moe_open(const struct ocs_moe_channel *channel,
				const struct ocs_moe_card *cards, int listen_fd)
{
	const char **address = calloc((size_t)channel->ranks, sizeof(*address));
	struct ocs_moe_options options = { .rank = channel->here,
					   .ranks = channel->ranks,
					   .address = address,
					   .listen_fd = listen_fd,
					   .idle_ms = DAY_MS };
	char error[256] = "no memory";
	struct ocs_moe *moe = NULL;

	for (int r = 0; address && r < channel->ranks; r++) {
		address[channel->place[r]] = cards[r].address;
		if (!channel->place[r])
			options.key = cards[r].key;
	}
	if (address)
		moe = ocs_moe_open(&options, error, sizeof(error));
	else
		close(listen_fd);
	if (!moe)
		fprintf(stderr, "slurm-ocs: all-to-alls of rank %d go without circuits: %s\n",
			channel->here, error);
	free(address);
	return moe;
}

static struct ocs_moe_channel *channel_create(int ranks)
{
	const char *layers = getenv("OCS_MOE_LAYERS"), *bytes = getenv("OCS_MOE_TOKEN_BYTES");
	struct ocs_moe_channel *channel = calloc(1, sizeof(*channel));

	if (!channel)
		return NULL;
	channel->ranks = ranks;
	pthread_mutex_init(&channel->lock, NULL);
	pthread_cond_init(&channel->changed, NULL);
	channel->place = calloc((size_t)ranks, sizeof(*channel->place));
	channel->row = calloc((size_t)ranks, sizeof(*channel->row));
	channel->sizes = calloc(4 * (size_t)ranks, sizeof(*channel->sizes));
	channel->token_bytes = bytes && atof(bytes) >= 1 ? atof(bytes) : 8192;
	ocs_moe_steps_init(&channel->steps, layers ? atoi(layers) : 0);
	if (channel->place && channel->row && channel->sizes)
		return channel;
	ocs_moe_channel_close(channel);
	return NULL;
}

PUBLIC struct ocs_moe_channel *ocs_moe_channel_open(int rank, int ranks, int whole,
						    const struct ocs_moe_card *cards, int listen_fd)
{
	struct ocs_moe_channel *channel = ranks > 1 ? channel_create(ranks) : NULL;
	bool wanted = channel && !getenv("OCS_MOE_OFF");

	for (int r = 0; r < ranks; r++)
		wanted = wanted && *cards[r].address;
	if (!wanted || !places_settle(channel, cards, whole)) {
		if (listen_fd >= 0)
			close(listen_fd);
		ocs_moe_channel_close(channel);
		return NULL;
	}
	channel->here = channel->place[rank];
	channel->moe = moe_open(channel, cards, listen_fd);
	if (!channel->moe) {
		ocs_moe_channel_close(channel);
		return NULL;
	}
	channel->gate = ocs_moe_gate_open(NULL, channel->here, ranks);
	if (channel->steered && !channel->here)
		ocs_moe_plans_open(&channel->plans);
	return channel;
}

/* ---- calls ---- */

/* SIZE bytes at DATA of place 0, to all. */
static int word_spread(struct ocs_moe_channel *channel, void *data, size_t size)
{
	size_t *send = channel->sizes, *zero = send + channel->ranks;
	size_t *receive = zero + channel->ranks;

	memset(send, 0, 3 * (size_t)channel->ranks * sizeof(*send));
	for (int j = 1; j < channel->ranks && !channel->here; j++)
		send[j] = size;
	receive[0] = channel->here ? size : 0;
	return ocs_moe_alltoall(channel->moe, data, send, zero, data, receive, zero);
}

/* Tokens to each rank, for the gate; a rest counts as one. */
static void row_tell(struct ocs_moe_channel *channel, const struct ocs_moe_job_step *step,
		     const size_t *bytes)
{
	for (int r = 0; r < channel->ranks; r++)
		channel->row[channel->place[r]] =
			(int64_t)(((double)bytes[r] + channel->token_bytes - 1) /
				  channel->token_bytes);
	ocs_moe_gate(channel->gate, step->layer, step->microbatch, channel->row, channel->ranks);
}

/* What makes no sense is said, and leaves all as it is. */
static void plan_take(struct ocs_moe_channel *channel, const char *text)
{
	if (ocs_moe_plan(channel->moe, text, channel->each, CIRCUITS_MS) < 0)
		fprintf(stderr, "slurm-ocs: rank %d: %s\n", channel->here,
			ocs_moe_error(channel->moe));
}

/* Place 0 gets the plan of this call, all take it. */
static int plan_follow(struct ocs_moe_channel *channel, struct word *word)
{
	char *text = channel->here ? NULL : ocs_moe_plans_next(&channel->plans, &word->step);

	word->length = text ? (int64_t)strlen(text) + 1 : 0;
	if (word_spread(channel, &word->length, sizeof(word->length)))
		goto failed;
	if (word->length && channel->here)
		text = malloc((size_t)word->length);
	if (word->length && (!text || word_spread(channel, text, (size_t)word->length)))
		goto failed;
	if (text) {
		free(channel->plan);
		channel->plan = text;
		plan_take(channel, text);
	} else if (channel->plan && !channel->here) {
		plan_take(channel, channel->plan);
	}
	return 0;
failed:
	free(text);
	return -1;
}

/* Which call comes next: the first one to get there at place 0, with its step; elsewhere what that says. */
static int word_next(struct ocs_moe_channel *channel, int64_t tag, const size_t *send,
		     const size_t *receive)
{
	struct word word = { .tag = tag };

	if (!channel->here) {
		/* what is said about circuits does not go over them: some may be gone */
		ocs_moe_ways(channel->moe, NULL, 0);
		word.step = ocs_moe_steps_next(&channel->steps, send, receive, channel->ranks);
	}
	if (word_spread(channel, &word, sizeof(word)))
		return -1;
	channel->word = word;
	return 0;
}

/* Waits for the turn of the call TAG; 0, or -1: the channel is broken. */
static int turn_take(struct ocs_moe_channel *channel, int64_t tag, const size_t *send,
		     const size_t *receive)
{
	int rc = 0;

	pthread_mutex_lock(&channel->lock);
	while (!rc) {
		if (channel->busy || (channel->heard && channel->word.tag != tag)) {
			pthread_cond_wait(&channel->changed, &channel->lock);
		} else if (channel->heard) {
			break;
		} else {
			channel->busy = true;
			pthread_mutex_unlock(&channel->lock);
			rc = word_next(channel, tag, send, receive);
			pthread_mutex_lock(&channel->lock);
			channel->busy = false;
			channel->heard = rc == 0;
			pthread_cond_broadcast(&channel->changed);
		}
	}
	channel->busy = rc == 0;
	channel->heard = false;
	pthread_mutex_unlock(&channel->lock);
	return rc;
}

static void turn_give(struct ocs_moe_channel *channel)
{
	pthread_mutex_lock(&channel->lock);
	channel->busy = false;
	pthread_cond_broadcast(&channel->changed);
	pthread_mutex_unlock(&channel->lock);
}

struct call {
	const void *send;
	void *receive;
	const size_t *given[4]; /* send: bytes, at; receive: bytes, at */
};

/* The call whose turn it is. */
static int call_run(struct ocs_moe_channel *channel, const struct call *call)
{
	struct ocs_moe_job_step step = channel->word.step;
	size_t ranks = (size_t)channel->ranks, *sizes = channel->sizes;
	int rc;

	if (!step.backward && !step.second)
		row_tell(channel, &step, call->given[0]);
	if (channel->steered && plan_follow(channel, &channel->word))
		return -1;
	for (size_t k = 0; k < 4; k++)
		for (size_t r = 0; r < ranks; r++)
			sizes[k * ranks + (size_t)channel->place[r]] = call->given[k][r];
	ocs_moe_gate_step(channel->gate, step.layer, step.microbatch, step.backward, step.second,
			  0);
	rc = ocs_moe_alltoall(channel->moe, call->send, sizes, sizes + ranks, call->receive,
			      sizes + 2 * ranks, sizes + 3 * ranks);
	ocs_moe_gate_step(channel->gate, step.layer, step.microbatch, step.backward, step.second,
			  1);
	return rc;
}

PUBLIC int ocs_moe_channel_exchange(struct ocs_moe_channel *channel, int64_t tag, const void *send,
				    const size_t *send_bytes, const size_t *send_at, void *receive,
				    const size_t *receive_bytes, const size_t *receive_at)
{
	struct call call = { send, receive, { send_bytes, send_at, receive_bytes, receive_at } };
	int rc;

	if (turn_take(channel, tag, send_bytes, receive_bytes))
		return -1;
	rc = call_run(channel, &call);
	turn_give(channel);
	return rc;
}
