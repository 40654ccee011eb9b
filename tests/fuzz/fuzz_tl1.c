/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Whatever a switch sends, in every dialect: the parser stays within its memory, its
 * messages are printable, a table that is accepted has one peer for each port, and
 * what is told of ports is told of ports that exist. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/switch/tl1/tl1.h"

#define SIZE 32

static void check_text(const struct ocs_text *text)
{
	if (text->length && strlen(text->data) != text->length)
		abort();
	for (size_t i = 0; i < text->length; i++)
		if ((text->data[i] < ' ' && text->data[i] != '\n') || text->data[i] > '~')
			abort();
}

static void check_table(const struct ocs_table *table)
{
	bool used[SIZE + 1] = { false };

	for (int in = 1; in <= SIZE; in++) {
		int out = table->out[in];

		if (out && (out <= SIZE || out > 2 * SIZE || used[out - SIZE]))
			abort();
		if (out)
			used[out - SIZE] = true;
	}
}

static void check_body(const struct ocs_tl1_dialect *dialect, const char *body)
{
	struct ocs_health health;
	struct ocs_table table;
	int size;

	if (dialect->size_key)
		ocs_tl1_parse_size(dialect, body, &size, NULL);
	ocs_table_init(&table, SIZE);
	if (ocs_tl1_parse_table(dialect, body, &table, NULL) == 0)
		check_table(&table);
	ocs_table_free(&table);
	if (dialect->ours) {
		ocs_table_init(&table, SIZE);
		if (ocs_tl1_parse_idle(dialect, body, &table, NULL) == 0)
			check_table(&table);
		ocs_table_free(&table);
	}
	ocs_health_init(&health, SIZE);
	ocs_tl1_parse_status(dialect, body, &health, NULL);
	ocs_tl1_parse_power(dialect, body, &health, NULL);
	for (int port = 1; port <= health.ports; port++)
		if ((unsigned int)health.port[port].status > OCS_PORT_FAILED ||
		    health.port[port].dbm > 100)
			abort();
	ocs_health_free(&health);
}

static void check_message(const struct ocs_tl1_message *message)
{
	const struct ocs_tl1_dialect *dialect;
	const struct ocs_patch patches[] = { { 1, SIZE + 1 }, { SIZE, 2 * SIZE } };

	check_text(&message->body);
	check_text(&message->comment);
	if (message->autonomous ? !message->body.length : !message->code[0] || !message->ctag[0])
		abort();
	for (size_t i = 0; (dialect = ocs_tl1_dialect(i)); i++) {
		check_body(dialect, message->body.data);
		if (message->comment.length)
			ocs_tl1_names_port(dialect, SIZE, message->comment.data, patches, 2);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
	struct ocs_tl1_parser parser = { 0 };
	struct ocs_tl1_message message;
	char *command = strndup((const char *)data, length);

	/* Must not read past the end of anything either. */
	ocs_tl1_dangerous(command);
	free(command);
	for (size_t i = 0; i < length; i++) {
		int rc = ocs_tl1_parser_byte(&parser, (char)data[i], &message);

		if (rc < 0)
			break;
		if (rc) {
			check_message(&message);
			ocs_tl1_message_free(&message);
		}
	}
	ocs_tl1_parser_free(&parser);
	return 0;
}
