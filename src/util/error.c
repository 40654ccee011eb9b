/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/util/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "src/util/text.h"

int ocs_error_set(struct ocs_error *err, int code, const char *format, ...)
{
	va_list args;

	if (!err)
		return -1;
	err->code = code;
	va_start(args, format);
	vsnprintf(err->text, sizeof(err->text), format, args);
	va_end(args);
	/* What a file or a peer sent may be quoted: keep it one printable line. */
	ocs_text_clean(err->text);
	return -1;
}

int ocs_error_prefix(struct ocs_error *err, const char *format, ...)
{
	char prefix[256];
	char rest[OCS_ERROR_TEXT];
	va_list args;

	if (!err)
		return -1;
	va_start(args, format);
	vsnprintf(prefix, sizeof(prefix), format, args);
	va_end(args);
	memcpy(rest, err->text, sizeof(rest));
	rest[sizeof(rest) - 1] = '\0';
	snprintf(err->text, sizeof(err->text), "%s: %.*s", prefix,
		 (int)(sizeof(err->text) - strlen(prefix) - 3), rest);
	return -1;
}

const char *ocs_error_cause(const char *text, const char *subject)
{
	size_t length = strlen(subject);

	if (strncmp(text, subject, length) != 0)
		return text;
	if (strncmp(text + length, ": ", 2) == 0)
		return text + length + 2;
	return strncmp(text + length, " failed: ", 9) == 0 ? text + length + 9 : text;
}
