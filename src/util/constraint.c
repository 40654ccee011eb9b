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

static bool expect(struct scan *scan, char c)
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

static bool word(struct scan *scan)
{
	size_t length = strcspn(scan->at, "&|,()[]*");
	bool met = ocs_list_has(scan->have, scan->at, length);

	if (!length)
		scan->bad = true;
	scan->at += length;
	return met;
}

/* Words, without groups: there are none within groups. */
static bool group(struct scan *scan)
{
	bool met = word(scan);

	while (!scan->bad && *scan->at && strchr("&|,", *scan->at)) {
		bool either = *scan->at++ == '|', next = word(scan);

		met = either ? met || next : met && next;
	}
	return met;
}

static bool word_or_group(struct scan *scan)
{
	bool met;

	if (*scan->at == '(') {
		scan->at++;
		met = group(scan);
		expect(scan, ')');
	} else {
		met = word(scan);
	}
	skip_count(scan);
	return met;
}

static bool brackets(struct scan *scan)
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
	expect(scan, ']');
	return met;
}

static bool operand(struct scan *scan)
{
	return *scan->at == '[' ? brackets(scan) : word_or_group(scan);
}

static bool evaluate(struct scan *scan)
{
	bool met = operand(scan);

	while (!scan->bad && *scan->at) {
		bool either = *scan->at == '|', next;

		if (!strchr("&|,", *scan->at)) {
			scan->bad = true;
			break;
		}
		scan->at++;
		next = operand(scan);
		met = either ? met || next : met && next;
	}
	return met;
}

int ocs_constraint_alternatives(const char *wanted)
{
	struct scan scan = { .at = wanted };

	evaluate(&scan);
	if (scan.bad)
		return -1;
	return scan.counts ? 0 : scan.alternatives ? scan.alternatives : 1;
}

bool ocs_constraint_meet(const char *wanted, int index, const char *have)
{
	struct scan scan = { .at = wanted, .have = have, .index = index };
	bool met = evaluate(&scan);

	return met && !scan.bad && !scan.counts && index >= 0 &&
	       index < (scan.alternatives ? scan.alternatives : 1);
}
