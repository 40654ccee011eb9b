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

struct ocsd_limited_user {
	struct ocsd_limited_user *next;
	uid_t uid;
	int connections;
	double tokens;
	int64_t filled_ns;
};

static void tokens_fill(struct ocsd *d, struct ocsd_limited_user *limited_user)
{
	int64_t now_ns = ocs_now_ns();

	limited_user->tokens += (double)(now_ns - limited_user->filled_ns) / SECOND_NS *
				d->config->limits.requests_per_second;
	if (limited_user->tokens > d->config->limits.burst)
		limited_user->tokens = d->config->limits.burst;
	limited_user->filled_ns = now_ns;
}

/* Who has gone and has a full bucket again is as good as new. */
static void users_forget(struct ocsd *d, struct ocsd_limited_user **link)
{
	while (*link) {
		struct ocsd_limited_user *limited_user = *link;

		tokens_fill(d, limited_user);
		if (limited_user->connections || limited_user->tokens < d->config->limits.burst) {
			link = &limited_user->next;
			continue;
		}
		*link = limited_user->next;
		free(limited_user);
	}
}

struct ocsd_limited_user *ocsd_limited_user_enter(struct ocsd *d, uid_t uid)
{
	struct ocsd_limited_user **bucket =
					 &d->server.limited_users[uid % OCSD_LIMITED_USER_BUCKETS],
				 *limited_user = *bucket;

	if (ocsd_admin(d, uid))
		return NULL;
	while (limited_user && limited_user->uid != uid)
		limited_user = limited_user->next;
	if (!limited_user) {
		users_forget(d, bucket);
		limited_user = ocs_calloc(1, sizeof(*limited_user));
		limited_user->uid = uid;
		limited_user->tokens = d->config->limits.burst;
		limited_user->filled_ns = ocs_now_ns();
		limited_user->next = *bucket;
		*bucket = limited_user;
	}
	limited_user->connections++;
	return limited_user;
}

void ocsd_limited_user_leave(struct ocsd_limited_user *limited_user)
{
	if (limited_user)
		limited_user->connections--;
}

int ocsd_limited_user_surplus(const struct ocsd *d, const struct ocsd_limited_user *limited_user)
{
	return limited_user ? limited_user->connections - d->config->limits.connections : 0;
}

int ocsd_limited_user_wait_ms(struct ocsd *d, struct ocsd_limited_user *limited_user)
{
	double ms;

	if (!limited_user)
		return 0;
	tokens_fill(d, limited_user);
	if (limited_user->tokens >= 1) {
		limited_user->tokens -= 1;
		return 0;
	}
	ms = ceil((1 - limited_user->tokens) * 1000 / d->config->limits.requests_per_second);
	return ms < PAUSE_MIN_MS ? PAUSE_MIN_MS : (int)ms;
}

void ocsd_limited_users_free(struct ocsd *d)
{
	for (int i = 0; i < OCSD_LIMITED_USER_BUCKETS; i++) {
		while (d->server.limited_users[i]) {
			struct ocsd_limited_user *limited_user = d->server.limited_users[i];

			d->server.limited_users[i] = limited_user->next;
			free(limited_user);
		}
	}
}
