/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/util/base64.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/util/text.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

char *ocs_base64_encode(const char *data, size_t length)
{
	const unsigned char *in = (const unsigned char *)data;
	char *text = ocs_calloc((length + 2) / 3 * 4 + 1, 1), *out = text;

	for (size_t i = 0; i < length; i += 3) {
		uint32_t group = (uint32_t)in[i] << 16;

		if (i + 1 < length)
			group |= (uint32_t)in[i + 1] << 8;
		if (i + 2 < length)
			group |= in[i + 2];
		*out++ = digits[group >> 18];
		*out++ = digits[group >> 12 & 63];
		*out++ = i + 1 < length ? digits[group >> 6 & 63] : '=';
		*out++ = i + 2 < length ? digits[group & 63] : '=';
	}
	return text;
}

char *ocs_base64_decode(const char *text)
{
	size_t length = strlen(text);
	char *data, *out;

	if (length % 4)
		return NULL;
	data = out = ocs_calloc(length / 4 * 3 + 1, 1);
	for (size_t i = 0; i < length; i += 4) {
		uint32_t group = 0;
		int pad = 0;

		for (int k = 0; k < 4; k++) {
			char c = text[i + k];
			const char *at = c ? strchr(digits, c) : NULL;

			if (c == '=' && i + 4 == length && k >= 2)
				pad++;
			else if (!at || pad) {
				free(data);
				return NULL;
			}
			group = group << 6 | (at ? (uint32_t)(at - digits) : 0);
		}
		*out++ = group >> 16;
		if (pad < 2)
			*out++ = group >> 8;
		if (!pad)
			*out++ = group;
	}
	*out = '\0';
	return data;
}
