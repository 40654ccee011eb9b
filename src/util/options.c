/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "ocs_config.h"

#include "src/util/options.h"

#include <stdio.h>
#include <string.h>

#include "src/util/error.h"
#include "src/util/nearest.h"

#define SHORTS_MAX 64 /* bytes for getopt's string */
#define LONGS_MAX 128 /* that are compared with what was typed */

const char *ocs_options_name(const struct option *longs, int option)
{
	for (; longs->name; longs++)
		if (longs->val == option)
			return longs->name;
	return "";
}

/* TYPED is the word that getopt_long refused, with C. */
static int option_refuse(const struct ocs_options *options, int c, const char *typed,
			 struct ocs_error *err)
{
	const char *names[LONGS_MAX], *near = NULL;
	size_t n = 0;
	char word[64];

	if (c == ':')
		return ocs_error_set(err, OCS_USAGE, "%s needs a value; see %s --help", typed,
				     options->program);
	if (strncmp(typed, "--", 2) != 0)
		return ocs_error_set(err, OCS_USAGE, "there is no option %s; see %s --help", typed,
				     options->program);
	if (optopt)
		return ocs_error_set(err, OCS_USAGE, "%s takes no value", typed);
	for (; n < LONGS_MAX && options->longs[n].name; n++)
		names[n] = options->longs[n].name;
	snprintf(word, sizeof(word), "%.*s", (int)strcspn(typed + 2, "="), typed + 2);
	near = ocs_nearest(word, names, n);
	return ocs_error_set(err, OCS_USAGE, "there is no option %s; %s%s%s%s", typed,
			     near ? "did you mean --" : "see ", near ? near : options->program,
			     near ? "" : " --help", near ? "?" : "");
}

int ocs_options_next(const struct ocs_options *options, int argc, char **argv,
		     struct ocs_error *err)
{
	const char *shorts = options->shorts, *plus = *shorts == '+' ? "+" : "";
	/* In the middle of a word of short options optind has not moved yet. */
	int at = optind, c;
	char text[SHORTS_MAX];

	snprintf(text, sizeof(text), "%s:%shV", plus, shorts + strlen(plus));
	opterr = 0;
	c = getopt_long(argc, argv, text, options->longs, NULL);
	switch (c) {
	case -1:
		return OCS_OPTIONS_END;
	case 'h':
		fputs(options->help, stdout);
		return OCS_OPTIONS_SAID;
	case 'V':
		puts(PACKAGE_STRING);
		return OCS_OPTIONS_SAID;
	case ':':
	case '?':
		option_refuse(options, c, optind > at ? argv[optind - 1] : argv[optind], err);
		return OCS_OPTIONS_WRONG;
	default:
		return c;
	}
}
