/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Users who are no administrators share what their clients may ask: a bucket of tokens
 * a user.  Prologs, epilogs and slurmctld are administrators, and never wait for them. */

#include "src/ocsd/protocol/rate_limit.h"
#include "src/ocsd/protocol/role.h"

#include "src/util/net.h"
#include "src/util/text.h"

#include <math.h>
#include <stdlib.h>

#define SECOND_NS 1e9
/* A client that was told to wait is not listened to for so long: it cannot make work
 * faster than it gets refusals. */
#define PAUSE_MIN_MS 20

struct ocsd_guest {
	struct ocsd_guest *next;
	uid_t uid;
	int connections;
	double tokens;
	int64_t filled_ns;
};

static void fill(struct ocsd *d, struct ocsd_guest *guest)
{
	int64_t now_ns = ocs_now_ns();

	guest->tokens += (double)(now_ns - guest->filled_ns) / SECOND_NS *
			 d->config->limits.requests_per_second;
	if (guest->tokens > d->config->limits.burst)
		guest->tokens = d->config->limits.burst;
	guest->filled_ns = now_ns;
}

/* Who has gone and has a full bucket again is as good as new. */
static void forget(struct ocsd *d, struct ocsd_guest **link)
{
	while (*link) {
		struct ocsd_guest *guest = *link;

		fill(d, guest);
		if (guest->connections || guest->tokens < d->config->limits.burst) {
			link = &guest->next;
			continue;
		}
		*link = guest->next;
		free(guest);
	}
}

struct ocsd_guest *ocsd_guest_enter(struct ocsd *d, uid_t uid)
{
	struct ocsd_guest **bucket = &d->server.guests[uid % OCSD_GUEST_BUCKETS], *guest = *bucket;

	if (ocsd_admin(d, uid))
		return NULL;
	while (guest && guest->uid != uid)
		guest = guest->next;
	if (!guest) {
		forget(d, bucket);
		guest = ocs_calloc(1, sizeof(*guest));
		guest->uid = uid;
		guest->tokens = d->config->limits.burst;
		guest->filled_ns = ocs_now_ns();
		guest->next = *bucket;
		*bucket = guest;
	}
	guest->connections++;
	return guest;
}

void ocsd_guest_leave(struct ocsd_guest *guest)
{
	if (guest)
		guest->connections--;
}

int ocsd_guest_surplus(const struct ocsd *d, const struct ocsd_guest *guest)
{
	return guest ? guest->connections - d->config->limits.connections : 0;
}

int ocsd_guest_wait_ms(struct ocsd *d, struct ocsd_guest *guest)
{
	double ms;

	if (!guest)
		return 0;
	fill(d, guest);
	if (guest->tokens >= 1) {
		guest->tokens -= 1;
		return 0;
	}
	ms = ceil((1 - guest->tokens) * 1000 / d->config->limits.requests_per_second);
	return ms < PAUSE_MIN_MS ? PAUSE_MIN_MS : (int)ms;
}

void ocsd_guests_free(struct ocsd *d)
{
	for (int i = 0; i < OCSD_GUEST_BUCKETS; i++) {
		while (d->server.guests[i]) {
			struct ocsd_guest *guest = d->server.guests[i];

			d->server.guests[i] = guest->next;
			free(guest);
		}
	}
}
