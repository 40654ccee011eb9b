/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/ocsctl/slurm/slurm_time.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "src/util/error.h"
#include "src/util/text.h"

#define SECONDS_MAX (100L * 366 * 86400)

/* The number at *AT, and moves on.  -1 if there is none, or more than MAX. */
static long number_parse(const char **at, long max)
{
	size_t length = strspn(*at, "0123456789");
	char word[16];
	long value;

	if (!length || length >= sizeof(word))
		return -1;
	memcpy(word, *at, length);
	word[length] = '\0';
	*at += length;
	/* "08" is a number here, too. */
	return ocs_number_parse(word, 0, max, &value) ? -1 : value;
}

long ocs_ctl_duration_parse(const char *text, struct ocs_error *err)
{
	long part[3] = { 0 }, days = 0, seconds = -1;
	const char *at = text;
	int n = 0;
	bool good = true, dash = strchr(text, '-') != NULL;

	if (!strcasecmp(text, "unlimited") || !strcasecmp(text, "infinite"))
		return 0;
	if (dash) {
		days = number_parse(&at, 36600);
		good = days >= 0 && *at++ == '-';
	}
	while (good && n < 3) {
		part[n] = number_parse(&at, SECONDS_MAX);
		good = part[n++] >= 0;
		if (*at != ':')
			break;
		at++;
	}
	if (good && !*at && (n || dash)) {
		if (dash) /* hours first */
			seconds = 86400 * days + 3600 * part[0] + 60 * part[1] + part[2];
		else if (n == 3)
			seconds = 3600 * part[0] + 60 * part[1] + part[2];
		else /* minutes first */
			seconds = 60 * part[0] + part[1];
	}
	if (seconds > 0 && seconds <= SECONDS_MAX)
		return seconds;
	return ocs_error_set(err, OCS_USAGE,
			     "'%s' is not a duration; write minutes (90), 1:30:00,"
			     " 2-12 (days and hours) or unlimited",
			     text);
}

/* "+90", "+2hours" in seconds, or -1. */
static long zone_offset(const char *text)
{
	static const struct {
		const char *name;
		long seconds;
	} units[] = {
		{ "seconds", 1 },  { "minutes", 60 },	{ "hours", 3600 },
		{ "days", 86400 }, { "weeks", 604800 },
	};
	const char *at = text + 1;
	long value = number_parse(&at, SECONDS_MAX);

	if (*text != '+' || value < 0)
		return -1;
	if (!*at)
		return value;
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		if (!strncasecmp(at, units[i].name, strlen(at)) &&
		    value <= SECONDS_MAX / units[i].seconds)
			return value * units[i].seconds;
	}
	return -1;
}

/* What is left of TEXT after FORMAT must be nothing; numbers out of range are refused. */
static bool format_matches(const char *text, const char *format, struct tm *tm)
{
	const char *rest = strptime(text, format, tm);

	return rest && !*rest;
}

int ocs_ctl_moment_parse(const char *text, time_t now, time_t *moment, struct ocs_error *err)
{
	static const char *const dated[] = { "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d" };
	static const char *const timed[] = { "%H:%M:%S", "%H:%M" };
	struct tm tm;
	long later;

	if (!strncasecmp(text, "now", 3)) {
		later = text[3] ? zone_offset(text + 3) : 0;
		if (later < 0)
			goto bad;
		*moment = now + later;
		return 0;
	}
	for (size_t i = 0; i < sizeof(dated) / sizeof(*dated); i++) {
		int day;

		memset(&tm, 0, sizeof(tm));
		if (!format_matches(text, dated[i], &tm))
			continue;
		tm.tm_isdst = -1;
		day = tm.tm_mday;
		*moment = mktime(&tm);
		/* 31 February would be some day of March. */
		if (tm.tm_mday != day)
			break;
		return 0;
	}
	for (size_t i = 0; i < sizeof(timed) / sizeof(*timed); i++) {
		localtime_r(&now, &tm);
		tm.tm_sec = 0;
		if (!format_matches(text, timed[i], &tm))
			continue;
		tm.tm_isdst = -1;
		*moment = mktime(&tm);
		if (*moment <= now) {
			tm.tm_mday++;
			tm.tm_isdst = -1;
			*moment = mktime(&tm);
		}
		return 0;
	}
bad:
	return ocs_error_set(err, OCS_USAGE,
			     "'%s' is not a time; write now, now+2hours, 16:30,"
			     " 2026-12-01 or 2026-12-01T16:30",
			     text);
}

const char *ocs_ctl_moment_format(time_t moment, const char *otherwise, char *buffer)
{
	struct tm tm;

	if (!moment)
		return otherwise;
	localtime_r(&moment, &tm);
	strftime(buffer, OCS_CTL_WHEN_TEXT, "%Y-%m-%dT%H:%M:%S", &tm);
	return buffer;
}
