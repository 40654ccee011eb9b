/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* all_to_all_single with split sizes of PyTorch over Gloo, by ocs_moe_channel_exchange.  Members of a context
 * (a process group) tell each other their cards while it connects; one that is no group of the job stays Gloo's. */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/moe/job/ocs_moe_channel.h"
#include "src/rails/shim/gloo_library.h"

const char ocs_gloo_advice[] = "run the program with OCS_MOE_SHIMS=none";

#define ALLTOALLV "_ZN4gloo9alltoallvERNS_16AlltoallvOptionsE"

/* gloo::Context, as it begins. */
struct ranks {
	void *table;
	int rank, size;
};

/* gloo::transport::UnboundBuffer, as it begins. */
struct buffer {
	void *table;
	char *data;
	size_t size;
};

struct numbers {
	size_t *begin, *end, *room;
};

/* gloo::AlltoallvOptions */
struct options {
	struct ranks *context;
	void *context_count;
	struct buffer *in, *out;
	struct numbers in_at, in_bytes, out_at, out_bytes;
	size_t element;
	uint32_t tag;
};

struct member {
	const struct ranks *gloo; /* NULL: it is gone */
	struct ocs_moe_channel *channel;
	struct member *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct member *members;

/* ---- contexts ---- */

static struct ocs_moe_channel *channel_find(const struct ranks *gloo)
{
	struct ocs_moe_channel *channel = NULL;

	pthread_mutex_lock(&lock);
	for (struct member *member = members; member && !channel; member = member->next)
		if (member->gloo == gloo)
			channel = member->channel;
	pthread_mutex_unlock(&lock);
	return channel;
}

/* CHANNEL, or NULL, is that of GLOO.  An older context that was at the same place is gone. */
static void channel_keep(const struct ranks *gloo, struct ocs_moe_channel *channel)
{
	struct member *member = calloc(1, sizeof(*member));
	struct ocs_moe_channel *old = NULL;

	if (!member)
		ocs_gloo_throw("no memory");
	pthread_mutex_lock(&lock);
	for (struct member *other = members; other; other = other->next)
		if (other->gloo == gloo) {
			old = other->channel;
			other->gloo = NULL;
			other->channel = NULL;
		}
	*member = (struct member){ gloo, channel, members };
	members = member;
	pthread_mutex_unlock(&lock);
	ocs_moe_channel_close(old);
}

/* All members open a channel, or none. */
static struct ocs_moe_channel *channel_open(const struct ranks *gloo, struct gloo_store *store)
{
	struct ocs_moe_card own, *cards = calloc((size_t)gloo->size, sizeof(*cards));
	struct ocs_moe_channel *channel;
	int fd = ocs_moe_card_make(&own);
	char good, all = 1;

	if (!cards)
		ocs_gloo_throw("no memory");
	ocs_gloo_store_set(store, "card", gloo->rank, &own, sizeof(own));
	for (int r = 0; r < gloo->size; r++)
		ocs_gloo_store_get(store, "card", r, &cards[r], sizeof(*cards));
	channel = ocs_moe_channel_open(gloo->rank, gloo->size, 0, cards, fd);
	free(cards);
	good = channel != NULL;
	ocs_gloo_store_set(store, "channel", gloo->rank, &good, sizeof(good));
	for (int r = 0; r < gloo->size && all; r++) {
		good = 0;
		ocs_gloo_store_get(store, "channel", r, &good, sizeof(good));
		all = good;
	}
	if (all)
		return channel;
	ocs_moe_channel_close(channel);
	return NULL;
}

void context_connect(struct ranks *gloo, struct gloo_store *store, void *device)
	GLOO_NAME(GLOO_CONNECT);

void context_connect(struct ranks *gloo, struct gloo_store *store, void *device)
{
	void (*real)(struct ranks *, struct gloo_store *, void *) = REAL(GLOO_CONNECT);

	real(gloo, store, device);
	if (gloo->size > 1 && getenv("SLURM_OCS_MOE_SERVERS"))
		channel_keep(gloo, channel_open(gloo, store));
}

/* ---- calls ---- */

/* Whether NUMBERS has one for each of RANKS. */
static bool numbers_are(const struct numbers *numbers, int ranks)
{
	return numbers->end - numbers->begin == ranks;
}

/* Whether parts of BYTES at AT lie in BUFFER. */
static bool parts_fit(const struct buffer *buffer, const struct numbers *at,
		      const struct numbers *bytes, int ranks)
{
	if (!buffer || !numbers_are(at, ranks) || !numbers_are(bytes, ranks))
		return false;
	for (int r = 0; r < ranks; r++)
		if (at->begin[r] > buffer->size || bytes->begin[r] > buffer->size - at->begin[r])
			return false;
	return true;
}

void alltoallv(struct options *options) GLOO_NAME(ALLTOALLV);

void alltoallv(struct options *options)
{
	void (*real)(struct options *) = (void (*)(struct options *))REAL(ALLTOALLV);
	struct ocs_moe_channel *channel = channel_find(options->context);
	int ranks = options->context->size;

	/* what is not as this knows it is Gloo's; members have the same Gloo */
	if (!channel || !parts_fit(options->in, &options->in_at, &options->in_bytes, ranks) ||
	    !parts_fit(options->out, &options->out_at, &options->out_bytes, ranks)) {
		real(options);
		return;
	}
	if (ocs_moe_channel_exchange(channel, options->tag, options->in->data,
				     options->in_bytes.begin, options->in_at.begin,
				     options->out->data, options->out_bytes.begin,
				     options->out_at.begin))
		ocs_gloo_throw(ocs_moe_channel_error(channel));
}
