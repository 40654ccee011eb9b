/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/plugins/job_submit/script.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "src/scheduler/submit_options.h"
#include "src/util/error.h"

#define DIRECTIVE "#SBATCH"
#define BLANKS " \t\r"

/* The end of the word at AT: blanks within quotes are part of it. */
static const char *word_end(const char *at, const char *end)
{
	char quote = '\0';

	for (; at < end && (quote || !strchr(BLANKS, *at)); at++) {
		if (*at == '\\' && at + 1 < end)
			at++;
		else if (quote)
			quote = *at == quote ? '\0' : quote;
		else if (*at == '"' || *at == '\'')
			quote = *at;
		else if (*at == '#')
			break;
	}
	return at;
}

/* The option of ours that the word is, or OCS_OPTIONS. */
static int option_find(const char *word, size_t length)
{
	int o;

	for (o = 0; o < OCS_OPTIONS; o++) {
		const char *name = ocs_option_name(o);
		size_t size = strlen(name);

		if (length >= size + 2 && !memcmp(word, "--", 2) && !memcmp(word + 2, name, size) &&
		    (length == size + 2 || word[size + 2] == '='))
			break;
	}
	return o;
}

/* The words behind #SBATCH, up to a comment.  What belongs to the next component of a het job
 * ends the search: *LAST. */
static int directive_search(const char *at, const char *end, bool *last)
{
	int found = OCS_OPTIONS;

	while (at < end && found == OCS_OPTIONS) {
		const char *word = at += strspn(at, BLANKS);

		at = word_end(word, end);
		*last = (at - word == 6 && !strncasecmp(word, "hetjob", 6)) ||
			(at - word == 7 && !strncasecmp(word, "packjob", 7));
		if (at == word || *last)
			break;
		found = option_find(word, (size_t)(at - word));
	}
	return found;
}

/* Neither a comment nor blank: from here on sbatch does not look. */
static bool is_command(const char *line, const char *end)
{
	line += strspn(line, BLANKS);
	return line < end && *line != '#';
}

int ocs_script_check(const char *script, struct ocs_error *err)
{
	const char *line = script ? script : "", *end;
	bool last = false;
	int number = 1, found;

	for (; *line && !last; line = end + (*end != '\0'), number++) {
		end = line + strcspn(line, "\n");
		if (!strncmp(line, DIRECTIVE, strlen(DIRECTIVE))) {
			found = directive_search(line + strlen(DIRECTIVE), end, &last);
			if (found < OCS_OPTIONS)
				return ocs_error_set(
					err, OCS_USAGE,
					"line %d of the script, " DIRECTIVE
					" --%s: only sbatch reads such lines, and this job came without it; write \"extra\": \"shape=4x4x4\" or \"spank_environment\": [\"%s=...\"] into the request",
					number, ocs_option_name(found),
					ocs_option_variable(found, false));
		} else if (is_command(line, end)) {
			break;
		}
	}
	return 0;
}
