/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Phase tables are refused, or their replay grants nothing without circuits.  Tables of an input are
 * separated by a line "==". */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/rails/replay.h"
#include "src/util/error.h"

#define TABLES 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

static char folder[] = "/tmp/fuzz_phases-XXXXXX";

static void table_path(int node, char *path, size_t size)
{
	snprintf(path, size, "%s/comm_pattern_%d_rank0.txt", folder, node);
}

static void folder_remove(void)
{
	rmdir(folder);
}

static int tables_write(const uint8_t *data, size_t length)
{
	int nodes = 0;

	while (length && nodes < TABLES) {
		const uint8_t *next = memmem(data, length, "==\n", 3);
		size_t part = next ? (size_t)(next - data) : length;
		char path[128];
		FILE *file;

		table_path(nodes++, path, sizeof(path));
		file = fopen(path, "w");
		if (!file || fwrite(data, 1, part, file) != part || fclose(file))
			abort();
		part += next ? 3 : 0;
		data += part;
		length -= part;
	}
	return nodes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
	struct ocs_replay_options options = { .switch_ms = 1, .operation_ms = 1 };
	struct ocs_replay_result result;
	struct ocs_phase_tables *tables;
	struct ocs_error err = { 0 };
	static bool made;
	int nodes;

	if (!made && !mkdtemp(folder))
		abort();
	if (!made)
		atexit(folder_remove);
	made = true;
	nodes = tables_write(data, length);
	options.provisioned = length % 2;
	tables = ocs_phase_tables_read(folder, 0, &err);
	if (!tables && !err.code)
		abort();
	if (tables && ocs_replay_run(tables, &options, &result, &err) == 0) {
		for (int i = 0; i < result.nviolations; i++)
			if (result.violations[i][0] == 'G')
				abort();
		ocs_replay_result_free(&result);
	}
	ocs_phase_tables_free(tables);
	for (int node = 0; node < nodes; node++) {
		char path[128];

		table_path(node, path, sizeof(path));
		unlink(path);
	}
	return 0;
}
