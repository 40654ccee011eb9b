/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* What the lines within an answer say, by the dialect's table. */

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/switch/tl1/tl1.h"
#include "src/util/error.h"

static const char *skip_blanks(const char *at)
{
	while (*at == ' ' || *at == '\t')
		at++;
	return at;
}

static int take_number(const char **at)
{
	char *end;
	long value;

	if (!isdigit((unsigned char)**at))
		return 0;
	value = strtol(*at, &end, 10);
	*at = end;
	return value > 0 && value < 1000000000 ? (int)value : 0;
}

/* A port name of the dialect at *AT as a number; 0 if there is none. */
static int take_port(const struct ocs_tl1_dialect *dialect, const char **at)
{
	int part[3], slots = dialect->radix[0], ports = dialect->radix[1];

	if (!ports)
		return take_number(at);
	for (int i = 0; i < 3; i++) {
		if (i && *(*at)++ != '.')
			return 0;
		part[i] = take_number(at);
		if (!part[i])
			return 0;
	}
	if (part[0] > 100000 || part[1] > slots || part[2] > ports)
		return 0;
	return ((part[0] - 1) * slots + part[1] - 1) * ports + part[2];
}

/* The ports that a line is about, as the dialect numbers them. */
struct subject {
	int in, out; /* 0: none */
	bool single; /* IN is a port of either side */
	bool both;   /* and the way back */
};

/* Returns 0, or -1: the line is about no ports. */
static int take_subject(const struct ocs_tl1_dialect *dialect, const char *line,
			struct subject *subject)
{
	const char *at = skip_blanks(line), *value;

	memset(subject, 0, sizeof(*subject));
	if (dialect->in_key) {
		const char *in = strstr(line, dialect->in_key);
		const char *out = strstr(line, dialect->out_key);

		if (!in || !out)
			return -1;
		value = in + strlen(dialect->in_key);
		subject->in = take_port(dialect, &value);
		value = out + strlen(dialect->out_key);
		subject->out = take_port(dialect, &value);
		return subject->in || subject->out ? 0 : -1;
	}
	subject->in = take_port(dialect, &at);
	if (!subject->in)
		return -1;
	if (*at && strchr(dialect->between, *at)) {
		at++;
		subject->out = take_port(dialect, &at);
	} else if (*at && dialect->both && strchr(dialect->both, *at)) {
		at++;
		subject->out = take_port(dialect, &at);
		subject->both = true;
	} else {
		subject->single = true;
	}
	return (!subject->single && !subject->out) || (*at && !strchr(" :,", *at)) ? -1 : 0;
}

static int ingress_of(const struct ocs_tl1_dialect *dialect, int size, int number)
{
	int port = number - dialect->ingress_first + 1;

	return number && port >= 1 && port <= size ? port : 0;
}

static int egress_of(const struct ocs_tl1_dialect *dialect, int size, int number)
{
	int port = dialect->egress_first ? number - dialect->egress_first + 1 + size : number;

	return number && port > size && port <= 2 * size ? port : 0;
}

static int add_patch(struct ocs_table *table, int *peer, int in, int out, const char *line,
		     struct ocs_error *err)
{
	if (!in || !out)
		return ocs_error_set(err, OCS_ERROR,
				     "reports the patch '%.60s', which a %dx%d switch cannot have",
				     line, table->size, table->size);
	if ((table->out[in] && table->out[in] != out) ||
	    (peer[out - table->size] && peer[out - table->size] != in))
		return ocs_error_set(err, OCS_ERROR,
				     "reports the patch '%.60s' for a port that has another peer",
				     line);
	table->out[in] = out;
	peer[out - table->size] = in;
	return 0;
}

/* What stands behind KEY (NULL: the first colon) up to the next comma or colon, or
 * an empty text. */
static void value_of(const char *line, const char *key, char *value, size_t size)
{
	const char *at = strstr(line, key ? key : ":");
	size_t length = 0;

	if (at) {
		at = skip_blanks(at + strlen(key ? key : ":"));
		length = strcspn(at, " ,:\n");
	}
	if (length >= size)
		length = size - 1;
	if (length)
		memcpy(value, at, length);
	value[length] = '\0';
}

static enum ocs_port_status status_of(const struct ocs_tl1_dialect *dialect, const char *line)
{
	char word[32];

	value_of(line, dialect->status_key, word, sizeof(word));
	for (size_t i = 0; i < 4 && dialect->words[i].word; i++)
		if (!strcmp(dialect->words[i].word, word))
			return dialect->words[i].status;
	return OCS_PORT_UNKNOWN;
}

/* IDLE: the line counts if it is entered in our name, but not activated; otherwise
 * if it is joined. */
static int table_line(const struct ocs_tl1_dialect *dialect, const char *line, bool idle,
		      struct ocs_table *table, int *peer, struct ocs_error *err)
{
	bool tuning = dialect->status_key && status_of(dialect, line) == OCS_PORT_TUNING;
	int size = table->size;
	struct subject subject;

	if (take_subject(dialect, line, &subject) || subject.single)
		return ocs_error_set(err, OCS_ERROR, "answered '%.60s' where a patch was expected",
				     line);
	if (tuning != idle || (idle && !strstr(line, dialect->ours)))
		return 0;
	/* Some list their ports, joined or not. */
	if (dialect->in_key && (!subject.in || !subject.out))
		return 0;
	if (add_patch(table, peer, ingress_of(dialect, size, subject.in),
		      egress_of(dialect, size, subject.out), line, err))
		return -1;
	if (!subject.both)
		return 0;
	return add_patch(table, peer, ingress_of(dialect, size, subject.out),
			 egress_of(dialect, size, subject.in), line, err);
}

static int parse_lines(const struct ocs_tl1_dialect *dialect, const char *body, bool idle,
		       struct ocs_table *table, struct ocs_error *err)
{
	char *copy = ocs_strdup(body ? body : ""), *rest = copy, *line;
	int *peer = ocs_calloc((size_t)table->size + 1, sizeof(*peer));
	int rc = 0;

	while (!rc && (line = strsep(&rest, "\n")))
		if (*skip_blanks(line))
			rc = table_line(dialect, line, idle, table, peer, err);
	free(peer);
	free(copy);
	return rc;
}

int ocs_tl1_parse_table(const struct ocs_tl1_dialect *dialect, const char *body,
			struct ocs_table *table, struct ocs_error *err)
{
	return parse_lines(dialect, body, false, table, err);
}

int ocs_tl1_parse_idle(const struct ocs_tl1_dialect *dialect, const char *body,
		       struct ocs_table *table, struct ocs_error *err)
{
	return parse_lines(dialect, body, true, table, err);
}

typedef void (*line_function)(const struct ocs_tl1_dialect *dialect, const char *line,
			      const int *ingress, const int *egress, struct ocs_health *health);

/* The up to two ingress and two egress ports of a line: 0 where there is none. */
static int health_line(const struct ocs_tl1_dialect *dialect, const char *line, line_function take,
		       struct ocs_health *health, struct ocs_error *err)
{
	int size = health->ports / 2, ingress[2] = { 0 }, egress[2] = { 0 };
	struct subject subject;

	if (take_subject(dialect, line, &subject))
		return 0;
	ingress[0] = ingress_of(dialect, size, subject.in);
	egress[0] = egress_of(dialect, size, subject.single ? subject.in : subject.out);
	if (subject.both) {
		ingress[1] = ingress_of(dialect, size, subject.out);
		egress[1] = egress_of(dialect, size, subject.in);
	}
	if (!ingress[0] && !egress[0])
		return ocs_error_set(
			err, OCS_ERROR,
			"answered '%.60s' about a port that a %dx%d switch does not have", line,
			size, size);
	take(dialect, line, ingress, egress, health);
	return 0;
}

static int health_lines(const struct ocs_tl1_dialect *dialect, const char *body, line_function take,
			struct ocs_health *health, struct ocs_error *err)
{
	char *copy = ocs_strdup(body ? body : ""), *rest = copy, *line;
	int rc = 0;

	while (!rc && (line = strsep(&rest, "\n")))
		rc = health_line(dialect, line, take, health, err);
	free(copy);
	return rc;
}

static void take_status(const struct ocs_tl1_dialect *dialect, const char *line, const int *ingress,
			const int *egress, struct ocs_health *health)
{
	enum ocs_port_status status = status_of(dialect, line);

	for (int i = 0; i < 2; i++) {
		if (ingress[i])
			health->port[ingress[i]].status = status;
		if (egress[i])
			health->port[egress[i]].status = status;
	}
}

int ocs_tl1_parse_status(const struct ocs_tl1_dialect *dialect, const char *body,
			 struct ocs_health *health, struct ocs_error *err)
{
	return health_lines(dialect, body, take_status, health, err);
}

/* NAN: no number there, as where there is no monitor. */
static double dbm_of(const char *line, const char *key)
{
	char text[32], *end;
	double dbm;

	value_of(line, key, text, sizeof(text));
	dbm = strtod(text, &end);
	return end != text && !*end && dbm > -200 && dbm < 100 ? dbm : NAN;
}

static void take_power(const struct ocs_tl1_dialect *dialect, const char *line, const int *ingress,
		       const int *egress, struct ocs_health *health)
{
	double in = dbm_of(line, dialect->in_power_key);
	double out = dbm_of(line, dialect->out_power_key);

	if (ingress[0])
		health->port[ingress[0]].dbm = in;
	if (egress[0])
		health->port[egress[0]].dbm = out;
}

int ocs_tl1_parse_power(const struct ocs_tl1_dialect *dialect, const char *body,
			struct ocs_health *health, struct ocs_error *err)
{
	return health_lines(dialect, body, take_power, health, err);
}

int ocs_tl1_parse_size(const struct ocs_tl1_dialect *dialect, const char *body, int *size,
		       struct ocs_error *err)
{
	const char *at = body ? strstr(body, dialect->size_key) : NULL;
	int n = 0, m = 0;

	if (at) {
		at += strlen(dialect->size_key);
		n = take_number(&at);
		if (n && (*at == 'x' || *at == 'X')) {
			at++;
			m = take_number(&at);
		}
	}
	if (!n || n != m || n > 100000)
		return ocs_error_set(err, OCS_ERROR,
				     "answered '%.60s' where a size NxN was expected",
				     body ? body : "");
	*size = n;
	return 0;
}
