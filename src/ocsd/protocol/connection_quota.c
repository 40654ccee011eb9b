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

struct ocsd_crowd {
	LIST_HEAD(ocsd_bucket, ocsd_party) buckets[BUCKETS];
	TAILQ_HEAD(ocsd_level, ocsd_party) levels[LEVELS]; /* by count */
	size_t count, top;				   /* the highest level that has parties */
};

static struct ocsd_crowd *crowd_create(void)
{
	struct ocsd_crowd *crowd = ocs_calloc(1, sizeof(*crowd));

	for (int i = 0; i < BUCKETS; i++)
		LIST_INIT(&crowd->buckets[i]);
	for (int i = 0; i < LEVELS; i++)
		TAILQ_INIT(&crowd->levels[i]);
	return crowd;
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

static void count_set(struct ocsd_crowd *crowd, struct ocsd_party *party, size_t count)
{
	if (party->count)
		TAILQ_REMOVE(&crowd->levels[level_of(party->count)], party, level);
	crowd->count = crowd->count - party->count + count;
	party->count = count;
	if (count) {
		TAILQ_INSERT_TAIL(&crowd->levels[level_of(count)], party, level);
		if (level_of(count) > crowd->top)
			crowd->top = level_of(count);
	}
	while (crowd->top && TAILQ_EMPTY(&crowd->levels[crowd->top]))
		crowd->top--;
}

static struct ocsd_party *party_find(struct ocsd_crowd *crowd, const char *name)
{
	unsigned int bucket = bucket_of(name);
	struct ocsd_party *party;

	LIST_FOREACH(party, &crowd->buckets[bucket], bucket)
	if (strcmp(party->name, name) == 0)
		return party;
	party = ocs_calloc(1, sizeof(*party));
	snprintf(party->name, sizeof(party->name), "%s", name);
	TAILQ_INIT(&party->clients);
	LIST_INSERT_HEAD(&crowd->buckets[bucket], party, bucket);
	return party;
}

void ocsd_crowd_join(struct ocsd_crowd **crowd, struct ocsd_client *client, const char *name)
{
	if (!*crowd)
		*crowd = crowd_create();
	client->crowd = *crowd;
	client->party = party_find(*crowd, name);
	TAILQ_INSERT_TAIL(&client->party->clients, client, in_party);
	count_set(*crowd, client->party, client->party->count + 1);
}

void ocsd_crowd_leave(struct ocsd_client *client)
{
	struct ocsd_party *party = client->party;

	if (!party)
		return;
	TAILQ_REMOVE(&party->clients, client, in_party);
	count_set(client->crowd, party, party->count - 1);
	client->party = NULL;
	client->crowd = NULL;
	if (party->count)
		return;
	LIST_REMOVE(party, bucket);
	free(party);
}

void ocsd_crowd_touch(struct ocsd_client *client)
{
	if (!client->party)
		return;
	TAILQ_REMOVE(&client->party->clients, client, in_party);
	TAILQ_INSERT_TAIL(&client->party->clients, client, in_party);
}

size_t ocsd_crowd_count(const struct ocsd_crowd *crowd)
{
	return crowd ? crowd->count : 0;
}

struct ocsd_client *ocsd_crowd_first(const struct ocsd_crowd *crowd)
{
	return crowd && crowd->count ?
		       TAILQ_FIRST(&TAILQ_FIRST(&crowd->levels[crowd->top])->clients) :
		       NULL;
}

void ocsd_crowd_free(struct ocsd_crowd *crowd)
{
	/* Its clients have left, and the parties with them. */
	free(crowd);
}
