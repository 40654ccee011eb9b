/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Whatever a switch answers, each parser takes it or refuses it within its memory; a
 * table that is accepted has one peer for each port; and no line that passes the
 * last look before it is sent names anything but ports. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "src/switch/scpi/scpi.h"

#define SIZE 32

static void check_line(const char *line)
{
	static const char *const words[] = { "only", "disc", "rst", "all" };

	if (ocs_scpi_dangerous(line) || !strcmp(line, ":syst:err:all?"))
		return;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcasestr(line, words[i]))
			abort();
	if (strchr(line, '\n') || strstr(line, "(@)"))
		abort();
}

static void check_table(const char *line)
{
	bool used[SIZE + 1] = { false };
	struct ocs_table table;

	ocs_table_init(&table, SIZE);
	if (ocs_scpi_parse_table(line, &table, NULL) == 0) {
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

static void check_health(const char *line, int first, int count)
{
	struct ocs_health health;

	ocs_health_init(&health, SIZE);
	ocs_scpi_parse_status(line, &health, first, count, NULL);
	ocs_scpi_parse_power(line, &health, first, count, NULL);
	for (int port = 1; port <= health.ports; port++)
		if ((unsigned int)health.port[port].status > OCS_PORT_FAILED ||
		    health.port[port].dbm > 100)
			abort();
	ocs_health_free(&health);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
	char *line = strndup((const char *)data, length);
	struct ocs_scpi_error error;
	int size = 0;

	check_line(line);
	check_table(line);
	check_health(line, 1, 2 * SIZE);
	check_health(line, 2 * SIZE - 2, 3);
	if (ocs_scpi_parse_size(line, &size, NULL) == 0 && size < 1)
		abort();
	if (ocs_scpi_parse_errors(line, &error) == 0 && strlen(error.text) >= sizeof(error.text))
		abort();
	free(line);
	return 0;
}
