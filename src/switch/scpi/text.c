/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "src/switch/scpi/scpi.h"
#include "src/util/error.h"
#include "src/util/text.h"

/* ":oxc:swit:conn:add (@),(@);*opc?" and a newline. */
#define CHANGE_FRAME 40

static size_t port_digits(int port)
{
	return (size_t)snprintf(NULL, 0, "%d", port);
}

char *ocs_scpi_change(bool add, int size, const struct ocs_patch *patches, size_t count,
		      size_t *used, struct ocs_error *err)
{
	struct ocs_text in = { 0 }, out = { 0 };
	size_t length = CHANGE_FRAME, n;
	char *line;

	*used = 0;
	if (!count) {
		ocs_error_set(err, OCS_USAGE,
			      "an empty batch is never sent: a switch could take it for all ports");
		return NULL;
	}
	for (size_t i = 0; i < count; i++) {
		if (patches[i].in >= 1 && patches[i].in <= size && patches[i].out > size &&
		    patches[i].out <= 2 * size)
			continue;
		ocs_error_set(err, OCS_USAGE, "patch %d>%d does not exist on a %dx%d switch",
			      patches[i].in, patches[i].out, size, size);
		return NULL;
	}
	for (n = 0; n < count; n++) {
		length += port_digits(patches[n].in) + port_digits(patches[n].out) + 2;
		if (n && length > OCS_SCPI_LINE)
			break;
		ocs_text_add(&in, "%s%d", n ? "," : "", patches[n].in);
		ocs_text_add(&out, "%s%d", n ? "," : "", patches[n].out);
	}
	*used = n;
	line = ocs_asprintf(":oxc:swit:conn:%s (@%s),(@%s);*opc?", add ? "add" : "sub", in.data,
			    out.data);
	ocs_text_free(&in);
	ocs_text_free(&out);
	return line;
}

char *ocs_scpi_ask(const char *what, int first, int *count)
{
	struct ocs_text line = { 0 };
	int n;

	ocs_text_add(&line, "%s (@", what);
	for (n = 0; n < *count; n++) {
		if (n && line.length + port_digits(first + n) + 3 > OCS_SCPI_LINE)
			break;
		ocs_text_add(&line, "%s%d", n ? "," : "", first + n);
	}
	ocs_text_add(&line, ")");
	*count = n;
	return ocs_text_take(&line);
}

/* Steps over WORD at *AT. */
static bool word_take(const char **at, const char *word)
{
	size_t length = strlen(word);

	if (strncasecmp(*at, word, length) != 0)
		return false;
	*at += length;
	return true;
}

/* A list "(@1,2,3)" of at least one number; returns how many, 0: it is not that. */
static int skip_list(const char **at)
{
	int count = 0;

	if (!word_take(at, "(@"))
		return 0;
	do {
		size_t length = strspn(*at, "0123456789");

		if (!length || length > 6 || **at == '0')
			return 0;
		*at += length;
		count++;
	} while (word_take(at, ","));
	return word_take(at, ")") ? count : 0;
}

bool ocs_scpi_dangerous(const char *line)
{
	static const char *const queries[] = {
		"*idn?",	  "*opc?", "*cls", ":oxc:swit:size?", ":oxc:swit:conn:stat?",
		":syst:err:all?",
	};
	const char *at = line;
	int in;

	for (size_t i = 0; i < sizeof(queries) / sizeof(queries[0]); i++)
		if (!strcmp(line, queries[i]))
			return false;
	if (word_take(&at, ":oxc:swit:port:stat? ") || word_take(&at, ":opm:pow? "))
		return !skip_list(&at) || *at;
	if (!word_take(&at, ":oxc:swit:conn:add ") && !word_take(&at, ":oxc:swit:conn:sub "))
		return true;
	in = skip_list(&at);
	if (!in || !word_take(&at, ",") || skip_list(&at) != in)
		return true;
	return strcmp(at, ";*opc?") != 0;
}

static const char *skip_blanks(const char *at)
{
	while (*at == ' ' || *at == '\t')
		at++;
	return at;
}

int ocs_scpi_parse_errors(const char *line, struct ocs_scpi_error *error)
{
	bool first = true;

	error->code = 0;
	error->text[0] = '\0';
	do {
		char *end;
		long code = strtol(skip_blanks(line), &end, 10);
		size_t used = 0;

		if (end == line || code < -100000 || code > 100000 || *end != ',')
			return -1;
		line = skip_blanks(end + 1);
		if (*line++ != '"')
			return -1;
		for (; *line && (*line != '"' || line[1] == '"'); line++) {
			char c = *line;

			if (c == '"')
				line++;
			if (first && used + 1 < sizeof(error->text))
				error->text[used++] = c >= ' ' && c <= '~' ? c : '?';
		}
		if (*line++ != '"')
			return -1;
		if (first) {
			error->code = (int)code;
			error->text[used] = '\0';
		}
		first = false;
		line = skip_blanks(line);
	} while (*line++ == ',');
	return line[-1] ? -1 : 0;
}

/* A number at *AT, blanks around it; 0 if there is none. */
static int take_number(const char **at)
{
	const char *start = skip_blanks(*at);
	size_t length = strspn(start, "0123456789");
	int value = length && length < 7 ? atoi(start) : 0;

	*at = skip_blanks(start + length);
	return value;
}

int ocs_scpi_parse_size(const char *line, int *size, struct ocs_error *err)
{
	const char *at = line;
	int n = take_number(&at), m = 0;

	if (n && *at == ',') {
		at++;
		m = take_number(&at);
	}
	if (!n || n != m || n > 100000 || *at)
		return ocs_error_set(err, OCS_ERROR,
				     "answered '%.60s' where a size N,N was expected", line);
	*size = n;
	return 0;
}

/* The ports of "(@...)" at *AT into LIST, at most MAX; how many, or -1. */
static int take_list(const char **at, int *list, int max)
{
	int count = 0;

	*at = skip_blanks(*at);
	if (strncmp(*at, "(@", 2) != 0)
		return -1;
	*at = skip_blanks(*at + 2);
	while (**at != ')') {
		int port = take_number(at);

		if (!port || count == max)
			return -1;
		list[count++] = port;
		if (**at == ',')
			(*at)++;
		else if (**at != ')')
			return -1;
	}
	*at = skip_blanks(*at + 1);
	return count;
}

/* The patches in[i]>out[i]. */
static int table_fill(struct ocs_table *table, const int *in, const int *out, int count,
		      struct ocs_error *err)
{
	int size = table->size, rc = 0;
	bool *taken = ocs_calloc((size_t)size + 1, sizeof(*taken));

	for (int i = 0; i < count && !rc; i++) {
		if (in[i] > size || out[i] <= size || out[i] > 2 * size)
			rc = ocs_error_set(
				err, OCS_ERROR,
				"reports the patch %d>%d, which a %dx%d switch cannot have", in[i],
				out[i], size, size);
		else if (table->out[in[i]] || taken[out[i] - size])
			rc = ocs_error_set(
				err, OCS_ERROR,
				"reports the patch %d>%d for a port that has another peer", in[i],
				out[i]);
		else
			table->out[in[i]] = out[i];
		if (!rc)
			taken[out[i] - size] = true;
	}
	free(taken);
	return rc;
}

int ocs_scpi_parse_table(const char *line, struct ocs_table *table, struct ocs_error *err)
{
	int *in = ocs_calloc((size_t)table->size + 1, sizeof(int));
	int *out = ocs_calloc((size_t)table->size + 1, sizeof(int));
	const char *at = line;
	int n = take_list(&at, in, table->size), m = -1, rc;

	if (n >= 0 && *at == ',') {
		at++;
		m = take_list(&at, out, table->size);
	}
	if (n < 0 || n != m || *at)
		rc = ocs_error_set(err, OCS_ERROR,
				   "answered '%.60s' where two lists of ports were expected", line);
	else
		rc = table_fill(table, in, out, n, err);
	free(in);
	free(out);
	return rc;
}

typedef bool (*value_function)(const char *text, struct ocs_port_health *port);

static int parse_values(const char *line, value_function take_value, struct ocs_health *health,
			int first, int count, struct ocs_error *err)
{
	const char *at = skip_blanks(line);
	int n = 0;
	bool good = *at == '(';

	while (good && *at && *at != ')') {
		size_t length;
		char value[32];

		at = skip_blanks(at + 1);
		length = strcspn(at, " ,)");
		good = length && length < sizeof(value) && n < count;
		if (!good)
			break;
		memcpy(value, at, length);
		value[length] = '\0';
		good = take_value(value, &health->port[first + n++]);
		at = skip_blanks(at + length);
		good = good && (*at == ',' || *at == ')');
	}
	if (!good || n != count || *at != ')' || *skip_blanks(at + 1))
		return ocs_error_set(err, OCS_ERROR,
				     "answered '%.60s' where %d values for ports were expected",
				     line, count);
	return 0;
}

static bool take_status(const char *text, struct ocs_port_health *port)
{
	if (!strcmp(text, "E"))
		port->status = OCS_PORT_TUNED;
	else if (!strcmp(text, "D"))
		port->status = OCS_PORT_BLOCKED;
	else if (!strcmp(text, "F"))
		port->status = OCS_PORT_FAILED;
	else
		port->status = OCS_PORT_UNKNOWN;
	return text[0] && !text[1] && isupper((unsigned char)text[0]);
}

static bool take_power(const char *text, struct ocs_port_health *port)
{
	char *end;
	double dbm = strtod(text, &end);

	/* A switch without a monitor there says something else than a number. */
	port->dbm = end != text && !*end && dbm > -200 && dbm < 100 ? dbm : NAN;
	return true;
}

int ocs_scpi_parse_status(const char *line, struct ocs_health *health, int first, int count,
			  struct ocs_error *err)
{
	return parse_values(line, take_status, health, first, count, err);
}

int ocs_scpi_parse_power(const char *line, struct ocs_health *health, int first, int count,
			 struct ocs_error *err)
{
	return parse_values(line, take_power, health, first, count, err);
}
