/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* RFC 6242: "]]>]]>" behind each message, or chunks "\n#LENGTH\n" ... "\n##\n". */

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "src/switch/netconf/netconf.h"
#include "src/util/error.h"
#include "src/util/text.h"

static const char END[] = "]]>]]>";
#define END_LENGTH 6

/* Of a chunk header, in the order they come: */
enum { NEWLINE, HASH, FIRST, DIGITS, LAST, INSIDE };

void ocs_netconf_framer_free(struct ocs_netconf_framer *framer)
{
	free(framer->data);
	memset(framer, 0, sizeof(*framer));
}

static int framing_broken(struct ocs_error *err, const char *what)
{
	return ocs_error_set(err, OCS_ERROR, "%s", what);
}

static int data_append(struct ocs_netconf_framer *framer, const char *data, size_t length,
		       struct ocs_error *err)
{
	if (length > OCS_NETCONF_MESSAGE_LIMIT - framer->used)
		return framing_broken(err, "sends a message that has no end");
	if (memchr(data, '\0', length))
		return framing_broken(err, "sends zero bytes where XML was expected");
	if (framer->used + length + 1 > framer->size) {
		framer->size = 2 * (framer->used + length) + 256;
		framer->data = ocs_realloc(framer->data, framer->size);
	}
	memcpy(framer->data + framer->used, data, length);
	framer->used += length;
	framer->data[framer->used] = '\0';
	return 0;
}

static int message_finish(struct ocs_netconf_framer *framer, char **message, size_t *length)
{
	if (!framer->data)
		framer->data = ocs_calloc(1, 1);
	*message = framer->data;
	*length = framer->used;
	framer->data = NULL;
	framer->used = framer->size = framer->chunks = 0;
	framer->state = 0;
	return 1;
}

/* The mark stands within what was appended: it is cut off again. */
static int take_plain(struct ocs_netconf_framer *framer, const char **data, size_t *length,
		      char **message, size_t *message_length, struct ocs_error *err)
{
	while (*length) {
		char c = *(*data)++;

		(*length)--;
		if (data_append(framer, &c, 1, err))
			return -1;
		if (c != '>' || framer->used < END_LENGTH ||
		    memcmp(framer->data + framer->used - END_LENGTH, END, END_LENGTH))
			continue;
		framer->used -= END_LENGTH;
		framer->data[framer->used] = '\0';
		return message_finish(framer, message, message_length);
	}
	return 0;
}

/* One byte of a header.  Returns 1 at the end of a message, 0, or -1. */
static int header_byte(struct ocs_netconf_framer *framer, char c)
{
	switch (framer->state) {
	case NEWLINE:
		framer->state = HASH;
		return c == '\n' ? 0 : -1;
	case HASH:
		framer->state = FIRST;
		return c == '#' ? 0 : -1;
	case FIRST:
		if (c == '#' && framer->chunks) {
			framer->state = LAST;
			return 0;
		}
		framer->state = DIGITS;
		framer->left = (size_t)(c - '0');
		return c >= '1' && c <= '9' ? 0 : -1;
	case DIGITS:
		if (c == '\n') {
			framer->state = INSIDE;
			framer->chunks++;
			return 0;
		}
		if (!isdigit((unsigned char)c))
			return -1;
		framer->left = 10 * framer->left + (size_t)(c - '0');
		return framer->left <= OCS_NETCONF_MESSAGE_LIMIT ? 0 : -1;
	default:
		return c == '\n' ? 1 : -1;
	}
}

static int take_chunks(struct ocs_netconf_framer *framer, const char **data, size_t *length,
		       char **message, size_t *message_length, struct ocs_error *err)
{
	while (*length) {
		size_t part = *length < framer->left ? *length : framer->left;
		int rc;

		if (framer->state != INSIDE) {
			rc = header_byte(framer, **data);
			if (rc < 0)
				return framing_broken(
					err, "sends no valid chunk where one was expected");
			(*data)++;
			(*length)--;
			if (rc > 0)
				return message_finish(framer, message, message_length);
			continue;
		}
		if (data_append(framer, *data, part, err))
			return -1;
		*data += part;
		*length -= part;
		framer->left -= part;
		if (!framer->left)
			framer->state = NEWLINE;
	}
	return 0;
}

int ocs_netconf_framer_take(struct ocs_netconf_framer *framer, const char **data, size_t *length,
			    char **message, size_t *message_length, struct ocs_error *err)
{
	if (framer->chunked)
		return take_chunks(framer, data, length, message, message_length, err);
	return take_plain(framer, data, length, message, message_length, err);
}

char *ocs_netconf_frame(bool chunked, const char *message, size_t *length)
{
	char *framed = chunked ? ocs_asprintf("\n#%zu\n%s\n##\n", strlen(message), message) :
				 ocs_asprintf("%s%s", message, END);

	*length = strlen(framed);
	return framed;
}
