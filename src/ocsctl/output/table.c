/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "src/ocsctl/output/table.h"
#include "src/util/text.h"

struct ocs_text_table {
	char **cells; /* the headings, then the rows */
	size_t count, size;
	size_t columns;
	bool *right;
};

static void cell_push(struct ocs_text_table *table, char *cell)
{
	if (table->count == table->size) {
		table->size = table->size ? 2 * table->size : 64;
		table->cells = ocs_realloc(table->cells, table->size * sizeof(*table->cells));
	}
	table->cells[table->count++] = cell;
}

struct ocs_text_table *ocs_text_table_create(const char *columns)
{
	struct ocs_text_table *table = ocs_calloc(1, sizeof(*table));

	table->columns = 1;
	for (const char *p = columns; *p; p++)
		table->columns += *p == '|';
	table->right = ocs_calloc(table->columns, sizeof(*table->right));
	for (size_t i = 0; i < table->columns; i++) {
		size_t length;

		table->right[i] = *columns == '>';
		columns += table->right[i];
		length = strcspn(columns, "|");
		cell_push(table, ocs_asprintf("%.*s", (int)length, columns));
		columns += length + 1;
	}
	return table;
}

void ocs_text_table_destroy(struct ocs_text_table *table)
{
	if (!table)
		return;
	for (size_t i = 0; i < table->count; i++)
		free(table->cells[i]);
	free(table->cells);
	free(table->right);
	free(table);
}

void ocs_text_table_add(struct ocs_text_table *table, const char *cell)
{
	cell_push(table, ocs_strdup(cell && *cell ? cell : "-"));
}

void ocs_text_table_format(struct ocs_text_table *table, const char *format, ...)
{
	va_list list;
	char *text;

	va_start(list, format);
	text = ocs_vasprintf(format, list);
	va_end(list);
	ocs_text_table_add(table, text);
	free(text);
}

void ocs_text_table_print(const struct ocs_text_table *table, FILE *out)
{
	size_t *width = ocs_calloc(table->columns, sizeof(*width));

	for (size_t i = 0; i < table->count; i++) {
		size_t length = strlen(table->cells[i]);

		if (length > width[i % table->columns])
			width[i % table->columns] = length;
	}
	for (size_t i = 0; i < table->count; i++) {
		size_t column = i % table->columns;
		bool last = column == table->columns - 1;

		if (table->right[column])
			fprintf(out, "%*s", (int)width[column], table->cells[i]);
		else if (last)
			fputs(table->cells[i], out);
		else
			fprintf(out, "%-*s", (int)width[column], table->cells[i]);
		fputs(last ? "\n" : "  ", out);
	}
	free(width);
}
