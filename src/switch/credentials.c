/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "src/switch/driver.h"
#include "src/util/error.h"
#include "src/util/secret.h"
#include "src/util/text.h"

#define FILE_LIMIT 2048

void ocs_credentials_wipe(struct ocs_credentials *credentials)
{
	explicit_bzero(credentials, sizeof(*credentials));
}

/* TL1 has no way to write these, and a newline would start a new command. */
static bool value_usable(const char *value)
{
	if (!*value)
		return false;
	for (; *value; value++)
		if ((unsigned char)*value < 0x20 || (unsigned char)*value >= 0x7f ||
		    *value == '"' || *value == '\\')
			return false;
	return true;
}

static int value_take(char *to, size_t size, const char *value, const char *path, int number,
		      struct ocs_error *err)
{
	if (strlen(value) >= size || !value_usable(value))
		return ocs_error_set(
			err, OCS_USAGE,
			"%s:%d: the value must be 1 to %zu printable ASCII characters without quotes and backslashes",
			path, number, size - 1);
	strcpy(to, value);
	return 0;
}

static int credentials_parse(char *data, bool keys, struct ocs_credentials *credentials,
			     const char *path, struct ocs_error *err)
{
	char *line, *save = NULL;
	int number = 0;

	/* strsep keeps empty lines, so that line numbers are right. */
	save = data;
	while ((line = strsep(&save, "\n"))) {
		size_t length = strlen(line);

		number++;
		if (length && line[length - 1] == '\r')
			line[length - 1] = '\0';
		if (!*line || *line == '#')
			continue;
		if (!strncmp(line, "user=", 5)) {
			if (value_take(credentials->user, sizeof(credentials->user), line + 5, path,
				       number, err))
				return -1;
		} else if (!strncmp(line, "password=", 9)) {
			if (value_take(credentials->password, sizeof(credentials->password),
				       line + 9, path, number, err))
				return -1;
		} else if (keys && !strncmp(line, "key=/", 5)) {
			if (value_take(credentials->key, sizeof(credentials->key), line + 4, path,
				       number, err))
				return -1;
		} else {
			/* The line itself may be a secret: not in the sentence. */
			return ocs_error_set(
				err, OCS_USAGE, "%s:%d: expected a line user=... or password=...%s",
				path, number,
				keys ? " or key=/... (the path of a private key)" : "");
		}
	}
	if (!credentials->user[0] || (!credentials->password[0] && !credentials->key[0]))
		return ocs_error_set(err, OCS_USAGE, "%s: the line %s=... is missing", path,
				     !credentials->user[0] ? "user" :
				     keys		   ? "password=... or key" :
							     "password");
	return 0;
}

char *ocs_credentials_secret(const char *path, size_t limit, struct ocs_error *err)
{
	char *data = ocs_calloc(1, limit + 1);
	size_t length;
	int rc = ocs_secret_read(path, data, limit, &length, err);

	if (!rc && length >= limit)
		rc = ocs_error_set(err, OCS_USAGE, "%s: longer than %zu bytes", path, limit - 1);
	if (!rc)
		return data;
	explicit_bzero(data, limit);
	free(data);
	return NULL;
}

static int read_credentials(const char *path, bool keys, struct ocs_credentials *credentials,
			    struct ocs_error *err)
{
	char *data = ocs_credentials_secret(path, FILE_LIMIT, err);
	int rc;

	memset(credentials, 0, sizeof(*credentials));
	if (!data)
		return -1;
	rc = credentials_parse(data, keys, credentials, path, err);
	explicit_bzero(data, FILE_LIMIT);
	free(data);
	if (rc)
		ocs_credentials_wipe(credentials);
	return rc;
}

int ocs_credentials_read(const char *path, struct ocs_credentials *credentials,
			 struct ocs_error *err)
{
	return read_credentials(path, false, credentials, err);
}

int ocs_credentials_read_ssh(const char *path, struct ocs_credentials *credentials,
			     struct ocs_error *err)
{
	return read_credentials(path, true, credentials, err);
}
