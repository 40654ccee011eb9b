/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/util/release.h"

#include <ctype.h>

int ocs_release_parse(const char *text, int loose)
{
	int part[3] = { 0 }, count = 0;

	for (;;) {
		int digits = 0;

		for (; isdigit((unsigned char)*text) && digits < 2; text++, digits++)
			part[count] = 10 * part[count] + (*text - '0');
		if (!digits || isdigit((unsigned char)*text))
			return 0;
		count++;
		if (*text != '.' || count == 3)
			break;
		text++;
	}
	if (count < 2 || part[0] == 0 || (*text && (!loose || !ispunct((unsigned char)*text))))
		return 0;
	return OCS_RELEASE(part[0], part[1], part[2]);
}
