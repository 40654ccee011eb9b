/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Whatever a switch sends by NETCONF: the framing stays within its memory, what is
 * told of a message is printable, and a table that is accepted has one peer for each
 * port.  The first byte says which framing and which dialect. */

#include <libxml/parser.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/switch/netconf/netconf.h"
#include "src/util/error.h"

#define SIZE 32

static void check_text(const char *text, size_t size)
{
	if (strnlen(text, size) >= size)
		abort();
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			abort();
}

static void check_table(const struct ocs_netconf_dialect *dialect,
			const struct ocs_netconf_message *message)
{
	bool used[SIZE + 1] = { false };
	struct ocs_table table;
	int pending;

	ocs_table_init(&table, SIZE);
	if (ocs_netconf_parse_table(dialect, message, &table, &pending, NULL) == 0) {
		for (int in = 1; in <= SIZE; in++) {
			int out = table.out[in];

			if (out && (out <= SIZE || out > 2 * SIZE || used[out - SIZE]))
				abort();
			if (out)
				used[out - SIZE] = true;
		}
	}
	ocs_table_free(&table);
}

static void check_message(const struct ocs_netconf_dialect *dialect, const char *text,
			  size_t length)
{
	struct ocs_netconf_message message;
	struct ocs_netconf_hello hello;
	struct ocs_health health;
	struct ocs_error err = { 0 };
	int size;

	ocs_netconf_dangerous(text, length);
	if (ocs_netconf_parse_hello(dialect, text, length, &hello, &err) == 0 && !hello.session)
		abort();
	if (ocs_netconf_parse(text, length, &message, &err) == 0) {
		check_text(message.fault.tag, sizeof(message.fault.tag));
		check_text(message.fault.message, sizeof(message.fault.message));
		check_text(message.fault.path, sizeof(message.fault.path));
		if (message.notice)
			check_text(message.notice, strlen(message.notice) + 1);
		if ((message.kind == OCS_NETCONF_NOTIFICATION) != (message.notice != NULL))
			abort();
		check_table(dialect, &message);
		if (ocs_netconf_parse_size(dialect, &message, &size, &err) == 0 && size < 1)
			abort();
		ocs_health_init(&health, SIZE);
		ocs_netconf_parse_status(dialect, &message, &health, &err);
		ocs_netconf_parse_power(dialect, &message, &health, &err);
		ocs_health_free(&health);
	}
	ocs_netconf_message_free(&message);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
	struct ocs_netconf_framer framer = { 0 };
	const struct ocs_netconf_dialect *dialect;
	const char *at = (const char *)data + 1;
	struct ocs_error err;

	if (!length--)
		return 0;
	framer.chunked = data[0] & 1;
	dialect = ocs_netconf_dialect_find(data[0] & 2 ? "ocp" : "polatis");
	for (;;) {
		char *text;
		size_t n;
		int rc = ocs_netconf_framer_take(&framer, &at, &length, &text, &n, &err);

		if (rc <= 0)
			break;
		if (strlen(text) != n)
			abort();
		check_message(dialect, text, n);
		free(text);
	}
	ocs_netconf_framer_free(&framer);
	return 0;
}
