/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/protocol/account.h"

#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/util/error.h"
#include "src/util/text.h"

#define BUFFER_MAX (1U << 20)

/* 0: found, 1: there is none, -1 with errno. */
static int name_lookup(const char *name, uid_t *uid)
{
	struct passwd entry, *found = NULL;
	size_t size = 1024;
	char *buffer = NULL;
	int rc;

	do {
		size *= 2;
		buffer = ocs_realloc(buffer, size);
		rc = getpwnam_r(name, &entry, buffer, size, &found);
	} while (rc == EINTR || (rc == ERANGE && size < BUFFER_MAX));
	if (found)
		*uid = found->pw_uid;
	free(buffer);
	if (found)
		return 0;
	/* Some name services say so where others say nothing. */
	if (!rc || rc == ENOENT || rc == ESRCH)
		return 1;
	errno = rc;
	return -1;
}

int ocs_account_uid(const char *user, uid_t *uid, struct ocs_error *err)
{
	const char *name = user ? user : OCS_ACCOUNT;
	long number;
	int rc;

	if (ocs_number_parse(name, 0, UINT_MAX - 1, &number) == 0) {
		*uid = (uid_t)number;
		return 0;
	}
	rc = name_lookup(name, uid);
	if (rc > 0 && !user) {
		*uid = 0;
		return 0;
	}
	if (rc > 0)
		return ocs_error_set(err, OCS_USAGE,
				     "ocsd.user: this host has no account %s; write "
				     "its number if it exists only where ocsd runs",
				     name);
	if (rc < 0)
		return ocs_error_set(err, OCS_USAGE,
				     "the account %s of ocsd cannot be looked up: %s", name,
				     strerror(errno));
	return 0;
}

int ocs_account_check(const char *user, uid_t uid, struct ocs_error *err)
{
	uid_t right;

	if (uid == 0 || uid == geteuid())
		return 0;
	if (ocs_account_uid(user, &right, err)) {
		if (err)
			err->code = OCS_UNREACHABLE;
		return -1;
	}
	if (uid == right)
		return 0;
	return ocs_error_set(
		err, OCS_UNREACHABLE,
		"what answers there runs as uid %u, but ocsd as "
		"uid %u (%s): nothing was sent to it; if it is ocsd, write its account as "
		"ocsd.user in ocs.yaml",
		(unsigned int)uid, (unsigned int)right,
		user  ? user :
		right ? OCS_ACCOUNT :
			"root, as this host has no account " OCS_ACCOUNT);
}
