/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/ocsd/protocol/connection_quota.h"

#include "src/util/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 1024
#define LEVELS 256 /* who has more connections counts as having so many */

/* Those of one name. */
struct ocsd_party {
	LIST_ENTRY(ocsd_party) bucket;
	TAILQ_ENTRY(ocsd_party) level;
	TAILQ_HEAD(ocsd_party_clients, ocsd_client) clients; /* the longest silent first */
	size_t count;
	char name[OCSD_PEER_NAME];
};

struct ocsd_quota {
	LIST_HEAD(ocsd_bucket, ocsd_party) buckets[BUCKETS];
	TAILQ_HEAD(ocsd_level, ocsd_party) levels[LEVELS]; /* by count */
	size_t count, top;				   /* the highest level that has parties */
};

static struct ocsd_quota *quota_create(void)
{
	struct ocsd_quota *quota = ocs_calloc(1, sizeof(*quota));

	for (int i = 0; i < BUCKETS; i++)
		LIST_INIT(&quota->buckets[i]);
	for (int i = 0; i < LEVELS; i++)
		TAILQ_INIT(&quota->levels[i]);
	return quota;
}

/* FNV-1a */
static unsigned int bucket_of(const char *name)
{
	unsigned int hash = 2166136261U;

	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * 16777619U;
	return hash % BUCKETS;
}

static size_t level_of(size_t count)
{
	return count < LEVELS ? count : LEVELS - 1;
}

static void count_set(struct ocsd_quota *quota, struct ocsd_party *party, size_t count)
{
	if (party->count)
		TAILQ_REMOVE(&quota->levels[level_of(party->count)], party, level);
	quota->count = quota->count - party->count + count;
	party->count = count;
	if (count) {
		TAILQ_INSERT_TAIL(&quota->levels[level_of(count)], party, level);
		if (level_of(count) > quota->top)
			quota->top = level_of(count);
	}
	while (quota->top && TAILQ_EMPTY(&quota->levels[quota->top]))
		quota->top--;
}

static struct ocsd_party *party_find(struct ocsd_quota *quota, const char *name)
{
	unsigned int bucket = bucket_of(name);
	struct ocsd_party *party;

	LIST_FOREACH(party, &quota->buckets[bucket], bucket)
	if (strcmp(party->name, name) == 0)
		return party;
	party = ocs_calloc(1, sizeof(*party));
	snprintf(party->name, sizeof(party->name), "%s", name);
	TAILQ_INIT(&party->clients);
	LIST_INSERT_HEAD(&quota->buckets[bucket], party, bucket);
	return party;
}

void ocsd_quota_join(struct ocsd_quota **quota, struct ocsd_client *client, const char *name)
{
	if (!*quota)
		*quota = quota_create();
	client->quota = *quota;
	client->party = party_find(*quota, name);
	TAILQ_INSERT_TAIL(&client->party->clients, client, in_party);
	count_set(*quota, client->party, client->party->count + 1);
}

void ocsd_quota_leave(struct ocsd_client *client)
{
	struct ocsd_party *party = client->party;

	if (!party)
		return;
	TAILQ_REMOVE(&party->clients, client, in_party);
	count_set(client->quota, party, party->count - 1);
	client->party = NULL;
	client->quota = NULL;
	if (party->count)
		return;
	LIST_REMOVE(party, bucket);
	free(party);
}

void ocsd_quota_touch(struct ocsd_client *client)
{
	if (!client->party)
		return;
	TAILQ_REMOVE(&client->party->clients, client, in_party);
	TAILQ_INSERT_TAIL(&client->party->clients, client, in_party);
}

size_t ocsd_quota_count(const struct ocsd_quota *quota)
{
	return quota ? quota->count : 0;
}

struct ocsd_client *ocsd_quota_first(const struct ocsd_quota *quota)
{
	return quota && quota->count ?
		       TAILQ_FIRST(&TAILQ_FIRST(&quota->levels[quota->top])->clients) :
		       NULL;
}

void ocsd_quota_free(struct ocsd_quota *quota)
{
	/* Its clients have left, and the parties with them. */
	free(quota);
}
