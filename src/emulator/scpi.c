/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* SCPI of a Polatis switch, seen from its side.  A line holds one or more units,
 * separated by semicolons; each connection has its own error queue. */

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "ocs_config.h"
#include "src/emulator/emulator.h"

#define ERRORS_MAX 16

struct error {
	int code;
	char *text;
};

/* State of a connection. */
struct session {
	bool too_long; /* skip to the end of the line */
	struct error errors[ERRORS_MAX];
	int nerrors;
};

/* State of a command. */
struct line {
	bool too_long;
	bool failed; /* a unit was not understood: the rest is void */
	bool making; /* patches are to be made when the delay is over */
	struct ocs_text answer;
};

static struct line *line_of(const struct ocs_emu_command *command)
{
	return command->state;
}

static void error_queue(struct ocs_emu_command *command, int code, const char *text, long port)
{
	struct session *session = command->client ? command->client->state : NULL;

	if (code > -200)
		line_of(command)->failed = true;
	if (!session || session->nerrors == ERRORS_MAX)
		return;
	session->errors[session->nerrors++] =
		(struct error){ code,
				port ? ocs_asprintf("%s: %ld", text, port) : ocs_strdup(text) };
}

static void errors_clear(struct session *session)
{
	for (int i = 0; i < session->nerrors; i++)
		free(session->errors[i].text);
	session->nerrors = 0;
}

/* The model's verdict goes to the error queue. */
static void command_judge(struct ocs_emu_command *command)
{
	static const struct {
		int code;
		const char *text;
	} words[] = {
		[OCS_EMU_PART] = { -200, "Execution error; partly done" },
		[OCS_EMU_BUSY] = { -300, "Device-specific error; busy" },
		[OCS_EMU_NO_PORT] = { -222, "Data out of range; port" },
		[OCS_EMU_WRONG_SIDE] = { -222, "Data out of range; port on the wrong side" },
		[OCS_EMU_TWICE] = { -222, "Data out of range; port named twice" },
		[OCS_EMU_TAKEN] = { -221, "Settings conflict; port in use" },
		[OCS_EMU_BAD_PORT] = { -240, "Hardware error; port" },
	};
	enum ocs_emu_verdict verdict = command->verdict;

	if (verdict == OCS_EMU_DONE)
		return;
	error_queue(command, words[verdict].code, words[verdict].text, command->port);
	command->verdict = OCS_EMU_DONE;
	command->npatches = verdict == OCS_EMU_PART ? command->npatches : 0;
}

/* "(@1,2,5:8)" at *AT; the count (LIST freed by the caller), or -1: no such list. */
static int take_list(const struct ocs_emu_switch *sw, const char **at, int **list)
{
	int count = 0, most = 4 * sw->size;

	*list = ocs_calloc((size_t)most + 1, sizeof(int));
	*at += strspn(*at, " ");
	if (strncmp(*at, "(@", 2) != 0)
		return -1;
	*at += 2;
	while (**at != ')') {
		char *end;
		long first, last;

		if (!isdigit((unsigned char)**at))
			return -1;
		first = last = strtol(*at, &end, 10);
		if (*end == ':')
			last = strtol(end + 1, &end, 10);
		*at = end + (*end == ',');
		if ((*end != ',' && *end != ')') || last < first || last - first > most)
			return -1;
		for (long port = first; port <= last; port++) {
			if (count == most)
				return -1;
			(*list)[count++] = port > 1000000 ? 1000000 : (int)port;
		}
	}
	(*at)++;
	return count;
}

typedef void (*unit_function)(struct ocs_emu_switch *sw, struct ocs_emu_command *command,
			      const char *rest);

static void identity_reply(struct ocs_emu_switch *sw, struct ocs_emu_command *command,
			   const char *rest)
{
	(void)rest;
	ocs_text_add(&line_of(command)->answer, "slurm-ocs,emulator-%dx%d,%s,%s", sw->size,
		     sw->size, sw->name, PACKAGE_VERSION);
}

static void completion_reply(struct ocs_emu_switch *sw, struct ocs_emu_command *command,
			     const char *rest)
{
	(void)sw;
	(void)rest;
	ocs_text_add(&line_of(command)->answer, "1");
}

static void clear_errors(struct ocs_emu_switch *sw, struct ocs_emu_command *command,
			 const char *rest)
{
	(void)sw;
	(void)rest;
	if (command->client)
		errors_clear(command->client->state);
}

static void show_errors(struct ocs_emu_switch *sw, struct ocs_emu_command *command,
			const char *rest)
{
	struct session *session = command->client ? command->client->state : NULL;
	struct ocs_text *answer = &line_of(command)->answer;

	(void)rest;
	if (!session || !session->nerrors) {
		ocs_text_add(answer, "0,\"No error\"");
		return;
	}
	for (int i = 0; i < session->nerrors; i++)
		ocs_text_add(answer, "%s%d,\"%s%s%s\"", i ? "," : "", session->errors[i].code,
			     session->errors[i].text, sw->says ? ": " : "",
			     sw->says ? sw->says : "");
	errors_clear(session);
}

static void show_size(struct ocs_emu_switch *sw, struct ocs_emu_command *command, const char *rest)
{
	(void)rest;
	ocs_text_add(&line_of(command)->answer, "%d,%d", sw->size, sw->size);
}

static void show_table(struct ocs_emu_switch *sw, struct ocs_emu_command *command, const char *rest)
{
	struct ocs_text *answer = &line_of(command)->answer;

	(void)rest;
	for (int side = 0; side < 2; side++) {
		const char *comma = "";

		ocs_text_add(answer, "%s(@", side ? "," : "");
		for (int in = 1; in <= sw->size; in++) {
			if (!sw->out[in])
				continue;
			ocs_text_add(answer, "%s%d", comma, side ? sw->out[in] : in);
			comma = ",";
		}
		ocs_text_add(answer, ")");
	}
}

/* One value a port, made by ONE. */
static void show_ports(struct ocs_emu_switch *sw, struct ocs_emu_command *command, const char *rest,
		       void (*one)(const struct ocs_emu_switch *, int, struct ocs_text *))
{
	struct ocs_text *answer = &line_of(command)->answer;
	int *ports = NULL, count = take_list(sw, &rest, &ports);

	if (count < 0)
		error_queue(command, -109, "Missing parameter", 0);
	for (int i = 0; i < count; i++)
		if (!ocs_emu_check_port(sw, command, ports[i])) {
			command_judge(command);
			count = -1;
		}
	if (count >= 0) {
		ocs_text_add(answer, "(");
		for (int i = 0; i < count; i++) {
			ocs_text_add(answer, "%s", i ? "," : "");
			one(sw, ports[i], answer);
		}
		ocs_text_add(answer, ")");
	}
	free(ports);
}

static void one_status(const struct ocs_emu_switch *sw, int port, struct ocs_text *answer)
{
	const struct ocs_emu_port *state = &sw->ports[port];

	ocs_text_add(answer, "%s", state->failed ? "F" : state->closed ? "D" : "E");
}

static void one_power(const struct ocs_emu_switch *sw, int port, struct ocs_text *answer)
{
	ocs_text_add(answer, "%.2f", ocs_emu_power(sw, port));
}

static void show_status(struct ocs_emu_switch *sw, struct ocs_emu_command *command,
			const char *rest)
{
	show_ports(sw, command, rest, one_status);
}

static void show_power(struct ocs_emu_switch *sw, struct ocs_emu_command *command, const char *rest)
{
	show_ports(sw, command, rest, one_power);
}

static void set_shutters(struct ocs_emu_switch *sw, struct ocs_emu_command *command,
			 const char *rest, bool closed)
{
	int *ports = NULL, count = take_list(sw, &rest, &ports);

	if (count < 0)
		error_queue(command, -109, "Missing parameter", 0);
	for (int i = 0; i < count && ocs_emu_check_port(sw, command, ports[i]); i++)
		ocs_emu_shutter(sw, ports[i], closed);
	command_judge(command);
	free(ports);
}

static void channels_enable(struct ocs_emu_switch *sw, struct ocs_emu_command *command,
			    const char *rest)
{
	set_shutters(sw, command, rest, false);
}

static void channels_disable(struct ocs_emu_switch *sw, struct ocs_emu_command *command,
			     const char *rest)
{
	set_shutters(sw, command, rest, true);
}

/* Two lists of the same length; -1 and a complaint if they are not there. */
static int take_pairs(struct ocs_emu_switch *sw, struct ocs_emu_command *command, const char *rest,
		      int **in, int **out)
{
	int n = take_list(sw, &rest, in), m = -1;

	*out = NULL;
	if (n >= 0 && *rest == ',') {
		rest++;
		m = take_list(sw, &rest, out);
	}
	if (n < 0 || n != m || rest[strspn(rest, " ")]) {
		error_queue(command, -109, "Missing parameter", 0);
		return -1;
	}
	return n;
}

static void channels_add(struct ocs_emu_switch *sw, struct ocs_emu_command *command,
			 const char *rest)
{
	int *in, *out, count = take_pairs(sw, command, rest, &in, &out);

	if (count > 0) {
		ocs_emu_begin_make(sw, command, in, out, count);
		line_of(command)->making = true;
	}
	command_judge(command);
	free(in);
	free(out);
}

/* Only patches that are there as named go. */
static void channels_subtract(struct ocs_emu_switch *sw, struct ocs_emu_command *command,
			      const char *rest)
{
	int *in, *out, count = take_pairs(sw, command, rest, &in, &out), there = 0;

	for (int i = 0; i < count && !ocs_emu_refused(command); i++) {
		if (!ocs_emu_check_port(sw, command, in[i]) ||
		    !ocs_emu_check_port(sw, command, out[i]))
			break;
		if (ocs_emu_peer(sw, in[i]) == out[i])
			in[there++] = in[i];
	}
	if (count > 0)
		ocs_emu_begin_break(sw, command, in, there);
	command_judge(command);
	free(in);
	free(out);
}

/* As dangerous as on a real switch: everything goes. */
static void remove_all(struct ocs_emu_switch *sw, struct ocs_emu_command *command, const char *rest)
{
	(void)rest;
	ocs_emu_break_all(sw, command, command->text);
	command_judge(command);
}

static void channels_only(struct ocs_emu_switch *sw, struct ocs_emu_command *command,
			  const char *rest)
{
	ocs_emu_break_all(sw, command, command->text);
	channels_add(sw, command, rest);
}

static const struct unit {
	const char *name;
	bool changes;
	unit_function run;
} units[] = {
	{ "*idn?", false, identity_reply },
	{ "*opc?", false, completion_reply },
	{ "*cls", false, clear_errors },
	{ "*rst", true, remove_all },
	{ ":syst:err:all?", false, show_errors },
	{ ":oxc:swit:size?", false, show_size },
	{ ":oxc:swit:conn:stat?", false, show_table },
	{ ":oxc:swit:conn:add", true, channels_add },
	{ ":oxc:swit:conn:sub", true, channels_subtract },
	{ ":oxc:swit:conn:only", true, channels_only },
	{ ":oxc:swit:disc:all", true, remove_all },
	{ ":oxc:swit:port:stat?", false, show_status },
	{ ":oxc:swit:port:enab", false, channels_enable },
	{ ":oxc:swit:port:dis", false, channels_disable },
	{ ":opm:pow?", false, show_power },
};

/* The unit that TEXT begins with, its parameters behind it at *REST. */
static const struct unit *verb_find(const char *text, const char **rest)
{
	size_t length = strcspn(text, " ");

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		const char *name = units[i].name;
		bool bare = *text != ':' && *text != '*' && *name == ':';

		if (strlen(name) - bare == length && !strncasecmp(text, name + bare, length)) {
			*rest = text + length;
			return &units[i];
		}
	}
	return NULL;
}

static void scpi_open(struct ocs_emu_client *client)
{
	client->state = ocs_calloc(1, sizeof(struct session));
}

static void scpi_close(struct ocs_emu_client *client)
{
	errors_clear(client->state);
	free(client->state);
}

static void scpi_bytes(struct ocs_emu_client *client, const char *data, size_t length)
{
	struct session *session = client->state;

	for (size_t i = 0; i < length; i++) {
		struct line *line;

		if (data[i] == '\r' || data[i] == '\0')
			continue;
		if (data[i] != '\n') {
			if (client->line.length + 1 >= client->sw->emu->line_limit)
				session->too_long = true;
			else
				ocs_text_add(&client->line, "%c", data[i]);
			continue;
		}
		line = ocs_calloc(1, sizeof(*line));
		line->too_long = session->too_long;
		session->too_long = false;
		ocs_emu_queue(client, ocs_text_take(&client->line), line);
	}
}

static bool scpi_changes(const struct ocs_emu_switch *sw, const struct ocs_emu_command *command)
{
	char *copy = ocs_strdup(command->text), *rest = copy, *text;
	bool changes = false;

	(void)sw;
	while ((text = strsep(&rest, ";"))) {
		const char *parameters;
		const struct unit *unit = verb_find(text + strspn(text, " "), &parameters);

		changes = changes || (unit && unit->changes);
	}
	free(copy);
	return changes;
}

/* Runs the units; a change that takes its time is waited for as a whole. */
static void scpi_begin(struct ocs_emu_switch *sw, struct ocs_emu_command *command)
{
	struct line *line = line_of(command);
	char *copy = ocs_strdup(command->text), *rest = copy, *text;

	if (line->too_long)
		error_queue(command, -363, "Input buffer overrun", 0);
	while (!line->too_long && !line->failed && (text = strsep(&rest, ";"))) {
		const char *parameters;
		const struct unit *unit;

		text += strspn(text, " ");
		if (!*text)
			continue;
		unit = verb_find(text, &parameters);
		if (!unit) {
			error_queue(command, -113, "Undefined header", 0);
			continue;
		}
		if (line->answer.length && text[strlen(text) - 1] == '?')
			ocs_text_add(&line->answer, ";");
		unit->run(sw, command, parameters);
	}
	free(copy);
}

static void scpi_finish(struct ocs_emu_switch *sw, struct ocs_emu_command *command)
{
	if (line_of(command)->making)
		ocs_emu_finish_make(sw, command);
	command_judge(command);
}

static void scpi_answer(struct ocs_emu_switch *sw, const struct ocs_emu_command *command,
			struct ocs_text *bytes)
{
	(void)sw;
	if (line_of(command)->answer.length)
		ocs_text_add(bytes, "%s\n", line_of(command)->answer.data);
}

static char *scpi_masked(const struct ocs_emu_command *command)
{
	return ocs_strdup(command->text); /* there are no secrets */
}

static char *scpi_summary(const struct ocs_emu_command *command)
{
	const struct ocs_text *answer = &line_of(command)->answer;

	return ocs_strdup(answer->length ? answer->data : "nothing");
}

static void scpi_forget(struct ocs_emu_command *command)
{
	ocs_text_free(&line_of(command)->answer);
	free(command->state);
}

const struct ocs_emu_protocol ocs_emu_scpi = {
	.name = "scpi",
	.open = scpi_open,
	.close = scpi_close,
	.bytes = scpi_bytes,
	.changes = scpi_changes,
	.begin = scpi_begin,
	.finish = scpi_finish,
	.answer = scpi_answer,
	.masked = scpi_masked,
	.summary = scpi_summary,
	.forget = scpi_forget,
};
