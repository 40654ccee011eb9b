/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/util/constraint.h"

#include <stddef.h>
#include <string.h>

#include "src/util/text.h"

struct scan {
	const char *at;
	const char *have;
	int index;	  /* of the alternative */
	int alternatives; /* 0: no brackets seen */
	bool counts, bad;
};

static bool character_expect(struct scan *scan, char c)
{
	if (*scan->at != c)
		scan->bad = true;
	else
		scan->at++;
	return !scan->bad;
}

static void skip_count(struct scan *scan)
{
	if (*scan->at != '*')
		return;
	scan->at++;
	scan->counts = true;
	if (!strspn(scan->at, "0123456789"))
		scan->bad = true;
	scan->at += strspn(scan->at, "0123456789");
}

static bool word_scan(struct scan *scan)
{
	size_t length = strcspn(scan->at, "&|,()[]*");
	bool met = ocs_list_has(scan->have, scan->at, length);

	if (!length)
		scan->bad = true;
	scan->at += length;
	return met;
}

/* Words, without groups: there are none within groups. */
static bool group_scan(struct scan *scan)
{
	bool met = word_scan(scan);

	while (!scan->bad && *scan->at && strchr("&|,", *scan->at)) {
		bool either = *scan->at++ == '|', next = word_scan(scan);

		met = either ? met || next : met && next;
	}
	return met;
}

static bool word_or_group(struct scan *scan)
{
	bool met;

	if (*scan->at == '(') {
		scan->at++;
		met = group_scan(scan);
		character_expect(scan, ')');
	} else {
		met = word_scan(scan);
	}
	skip_count(scan);
	return met;
}

static bool brackets_scan(struct scan *scan)
{
	bool met = false, more;

	scan->at++;
	if (scan->alternatives)
		scan->bad = true;
	do {
		bool this = word_or_group(scan);

		if (scan->alternatives++ == scan->index)
			met = this;
		more = *scan->at == '|';
		/* within brackets these join counts */
		if (*scan->at == '&' || *scan->at == ',')
			more = scan->counts = true;
		scan->at += more;
	} while (more && !scan->bad);
	character_expect(scan, ']');
	return met;
}

static bool operand_scan(struct scan *scan)
{
	return *scan->at == '[' ? brackets_scan(scan) : word_or_group(scan);
}

static bool text_evaluate(struct scan *scan)
{
	bool met = operand_scan(scan);

	while (!scan->bad && *scan->at) {
		bool either = *scan->at == '|', next;

		if (!strchr("&|,", *scan->at)) {
			scan->bad = true;
			break;
		}
		scan->at++;
		next = operand_scan(scan);
		met = either ? met || next : met && next;
	}
	return met;
}

int ocs_constraint_alternatives(const char *wanted)
{
	struct scan scan = { .at = wanted };

	text_evaluate(&scan);
	if (scan.bad)
		return -1;
	return scan.counts ? 0 : scan.alternatives ? scan.alternatives : 1;
}

bool ocs_constraint_meet(const char *wanted, int index, const char *have)
{
	struct scan scan = { .at = wanted, .have = have, .index = index };
	bool met = text_evaluate(&scan);

	return met && !scan.bad && !scan.counts && index >= 0 &&
	       index < (scan.alternatives ? scan.alternatives : 1);
}
