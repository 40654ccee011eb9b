/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* TL1 of a Polatis switch, seen from its side. */

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "ocs_config.h"
#include "src/emulator/emulator.h"

#define FIELDS 12

/* State of a connection and of a command. */
struct session {
	bool quote;		/* within a quoted string */
	bool too_long;		/* skip to the next ';' */
};

struct parsed {
	bool too_long;
	char *copy;		/* what the fields point into */
	char *field[FIELDS];	/* verb, tid, aid, ctag, general block, ... */
	int nfields;
	/* the answer */
	const char *code;	/* COMPLD, DENY, PRTL */
	const char *error;	/* IDNV, ... or NULL */
	struct ocs_text comment;
	struct ocs_text body;	/* one line each */
};

static struct parsed *parsed(const struct ocs_emu_command *command)
{
	return command->state;
}

static const char *field(const struct ocs_emu_command *command, int i)
{
	return i < parsed(command)->nfields ? parsed(command)->field[i] : "";
}

static void deny(struct ocs_emu_command *command, const char *error, const char *comment)
{
	struct parsed *p = parsed(command);

	p->code = "DENY";
	p->error = error;
	ocs_text_free(&p->comment);
	ocs_text_add(&p->comment, "%s", comment);
}

static bool denied(const struct ocs_emu_command *command)
{
	return parsed(command)->code && !strcmp(parsed(command)->code, "DENY");
}

/* The model's verdict in TL1's words. */
static void judge(struct ocs_emu_command *command)
{
	static const struct {
		const char *error, *comment;
	} words[] = {
		[OCS_EMU_BUSY] = { "SSTP", "The switch cannot do this now" },
		[OCS_EMU_NO_PORT] = { "IDNV", "Invalid OXC port" },
		[OCS_EMU_WRONG_SIDE] = { "IDNV", "Port on the wrong side" },
		[OCS_EMU_TWICE] = { "IDNV", "Port named twice" },
		[OCS_EMU_TAKEN] = { "SSTP", "Port is already patched" },
		[OCS_EMU_BAD_PORT] = { "SSTP", "Port is out of order" },
	};
	char *comment;

	if (denied(command))
		return;
	if (command->verdict == OCS_EMU_PART)
		parsed(command)->code = "PRTL";
	if (!ocs_emu_refused(command))
		return;
	comment = command->verdict == OCS_EMU_BUSY ?
			  ocs_strdup(words[OCS_EMU_BUSY].comment) :
			  ocs_asprintf("%s: %ld", words[command->verdict].comment, command->port);
	deny(command, words[command->verdict].error, comment);
	free(comment);
}

static void split(struct parsed *p, const char *text)
{
	bool quote = false;
	char *to, *at;

	p->copy = to = at = ocs_strdup(text);
	p->field[p->nfields++] = to;
	for (; *at; at++) {
		if (*at == '"') {
			quote = !quote;
		} else if (*at == ':' && !quote && p->nfields < FIELDS) {
			*to++ = '\0';
			p->field[p->nfields++] = to;
		} else {
			*to++ = *at;
		}
	}
	*to = '\0';
}

static void tl1_open(struct ocs_emu_client *client)
{
	client->state = ocs_calloc(1, sizeof(struct session));
}

static void tl1_close(struct ocs_emu_client *client)
{
	free(client->state);
}

static void queue(struct ocs_emu_client *client)
{
	struct session *session = client->state;
	struct parsed *p = ocs_calloc(1, sizeof(*p));
	char *text = ocs_text_take(&client->line);

	p->too_long = session->too_long;
	session->too_long = session->quote = false;
	split(p, text);
	ocs_emu_queue(client, text, p);
}

static void tl1_bytes(struct ocs_emu_client *client, const char *data, size_t length)
{
	struct session *session = client->state;

	for (size_t i = 0; i < length; i++) {
		char c = data[i];

		if (c == ';' && !session->quote) {
			queue(client);
			continue;
		}
		if (c == '\r' || c == '\n' || c == '\0' ||
		    (!client->line.length && c == ' '))
			continue;
		if (c == '"')
			session->quote = !session->quote;
		if (client->line.length + 1 >= client->sw->emu->line_limit)
			session->too_long = true;
		else
			ocs_text_add(&client->line, "%c", c);
	}
}

static void tl1_forget(struct ocs_emu_command *command)
{
	struct parsed *p = parsed(command);

	free(p->copy);
	ocs_text_free(&p->comment);
	ocs_text_free(&p->body);
	free(p);
}

static bool is_verb(const struct ocs_emu_command *command, const char *verb)
{
	return !strcasecmp(parsed(command)->field[0], verb);
}

static char *tl1_masked(const struct ocs_emu_command *command)
{
	const char *verb = field(command, 0);

	/* Whatever looks as if it deals with users may hold a password. */
	if (!strcasestr(verb, "USER") && !strcasestr(verb, "PID") && !strcasestr(command->text, "ACT-"))
		return ocs_strdup(command->text);
	if (parsed(command)->nfields < 4)
		return ocs_strdup("********");
	return ocs_asprintf("%s:%s:%s:%s::********", verb, field(command, 1),
			    field(command, 2), field(command, 3));
}

static char *tl1_summary(const struct ocs_emu_command *command)
{
	const struct parsed *p = parsed(command);

	return ocs_asprintf("%s %s%s%s%s%s", p->nfields > 3 ? p->field[3] : "0", p->code,
			    p->error ? " " : "", p->error ? p->error : "",
			    p->comment.length ? " " : "",
			    p->comment.length ? p->comment.data : "");
}

/* A list "1&2&5&&8" into PORTS (the caller frees it); the count, or -1 after a
 * denial.  An empty text and ALL are no list. */
static int take_ports(const struct ocs_emu_switch *sw, struct ocs_emu_command *command,
		      const char *at, int **ports)
{
	int count = 0, size = 0;

	*ports = NULL;
	for (;;) {
		long first, last;
		char *end;

		if (!isdigit((unsigned char)*at))
			goto malformed;
		first = last = strtol(at, &end, 10);
		if (end[0] == '&' && end[1] == '&') {
			if (!isdigit((unsigned char)end[2]))
				goto malformed;
			last = strtol(end + 2, &end, 10);
		}
		for (long port = first; port <= last; port++) {
			if (!ocs_emu_check_port(sw, command, port))
				goto failed;
			if (count == size) {
				size = size ? 2 * size : 16;
				*ports = ocs_realloc(*ports, (size_t)size * sizeof(int));
			}
			(*ports)[count++] = (int)port;
			if (count > 2 * sw->size) {
				deny(command, "IIAC", "Too many ports");
				goto failed;
			}
		}
		if (first > last)
			goto malformed;
		if (!*end)
			return count;
		if (*end != '&')
			goto malformed;
		at = end + 1;
	}
malformed:
	deny(command, "IICT", "Not a list of ports");
failed:
	free(*ports);
	*ports = NULL;
	return -1;
}

static void begin_enter(struct ocs_emu_switch *sw, struct ocs_emu_command *command)
{
	char *aid = ocs_strdup(field(command, 2)), *comma = strchr(aid, ',');
	int *in = NULL, *out = NULL, nin, nout;

	if (!comma || strchr(comma + 1, ',')) {
		deny(command, "IIAC", "Two lists of ports are needed");
	} else {
		*comma = '\0';
		nin = take_ports(sw, command, aid, &in);
		nout = nin < 0 ? -1 : take_ports(sw, command, comma + 1, &out);
		if (nout >= 0 && nin != nout)
			deny(command, "IIAC", "The lists differ in length");
		else if (nout >= 0)
			ocs_emu_begin_make(sw, command, in, out, nin);
	}
	free(in);
	free(out);
	free(aid);
}

static bool means_all(const char *aid)
{
	return !*aid || !strcasecmp(aid, "ALL");
}

static void begin_delete(struct ocs_emu_switch *sw, struct ocs_emu_command *command)
{
	const char *aid = field(command, 2);
	int *ports = NULL, count;

	if (means_all(aid)) {
		ocs_emu_break_all(sw, command, NULL);
		return;
	}
	count = take_ports(sw, command, aid, &ports);
	if (count >= 0)
		ocs_emu_begin_break(sw, command, ports, count);
	free(ports);
}

static void retrieve_patches(struct ocs_emu_switch *sw, struct ocs_emu_command *command)
{
	const char *aid = field(command, 2);
	int *ports = NULL, count;

	if (means_all(aid)) {
		for (int in = 1; in <= sw->size; in++)
			if (sw->out[in])
				ocs_text_add(&parsed(command)->body, "%d,%d\n", in, sw->out[in]);
		return;
	}
	count = take_ports(sw, command, aid, &ports);
	for (int i = 0; i < count; i++) {
		int peer = ocs_emu_peer(sw, ports[i]);
		bool ingress = ports[i] <= sw->size;

		if (peer)
			ocs_text_add(&parsed(command)->body, "%d,%d\n", ingress ? ports[i] : peer,
				     ingress ? peer : ports[i]);
	}
	free(ports);
}

static void for_ports(struct ocs_emu_switch *sw, struct ocs_emu_command *command,
		      void (*one)(struct ocs_emu_switch *, struct ocs_emu_command *, int))
{
	const char *aid = field(command, 2);
	int *ports = NULL, count;

	if (means_all(aid)) {
		for (int port = 1; port <= 2 * sw->size; port++)
			one(sw, command, port);
		return;
	}
	count = take_ports(sw, command, aid, &ports);
	for (int i = 0; i < count; i++)
		one(sw, command, ports[i]);
	free(ports);
}

static void show_shutter(struct ocs_emu_switch *sw, struct ocs_emu_command *command, int port)
{
	ocs_text_add(&parsed(command)->body, "%d:%s\n", port, sw->ports[port].closed ? "CLOSED" : "OPEN");
}

static void close_shutter(struct ocs_emu_switch *sw, struct ocs_emu_command *command, int port)
{
	(void)command;
	ocs_emu_shutter(sw, port, true);
}

static void open_shutter(struct ocs_emu_switch *sw, struct ocs_emu_command *command, int port)
{
	(void)command;
	ocs_emu_shutter(sw, port, false);
}

static void show_power(struct ocs_emu_switch *sw, struct ocs_emu_command *command, int port)
{
	ocs_text_add(&parsed(command)->body, "%d:%.2f\n", port, ocs_emu_power(sw, port));
}

static void retrieve_shutters(struct ocs_emu_switch *sw, struct ocs_emu_command *command)
{
	for_ports(sw, command, show_shutter);
}

static void operate_shutters(struct ocs_emu_switch *sw, struct ocs_emu_command *command)
{
	for_ports(sw, command, close_shutter);
}

static void release_shutters(struct ocs_emu_switch *sw, struct ocs_emu_command *command)
{
	for_ports(sw, command, open_shutter);
}

static void retrieve_power(struct ocs_emu_switch *sw, struct ocs_emu_command *command)
{
	for_ports(sw, command, show_power);
}

static void activate_user(struct ocs_emu_switch *sw, struct ocs_emu_command *command)
{
	if (sw->user && (strcmp(field(command, 2), sw->user) ||
			 strcmp(field(command, 5), sw->password)))
		deny(command, "PICC", "Invalid user or password");
	else if (command->client)
		command->client->logged_in = true;
}

static void cancel_user(struct ocs_emu_switch *sw, struct ocs_emu_command *command)
{
	if (command->client)
		command->client->logged_in = !sw->user;
}

static void retrieve_type(struct ocs_emu_switch *sw, struct ocs_emu_command *command)
{
	ocs_text_add(&parsed(command)->body, "slurm-ocs,emulator-%dx%d,OCS,%s\n", sw->size, sw->size,
		     PACKAGE_VERSION);
}

static void retrieve_equipment(struct ocs_emu_switch *sw, struct ocs_emu_command *command)
{
	if (strcasecmp(field(command, 2), "SYSTEM"))
		deny(command, "IDNV", "Unknown equipment");
	else if (!*field(command, 6))
		deny(command, "IPMS", "PARAMETER is missing");
	else if (strcasecmp(field(command, 6), "PARAMETER=SIZE"))
		deny(command, "IPNV", "Unknown parameter");
	else
		ocs_text_add(&parsed(command)->body, "SYSTEM:SIZE=%dx%d\n", sw->size, sw->size);
}

static void retrieve_alarms(struct ocs_emu_switch *sw, struct ocs_emu_command *command)
{
	(void)sw;	/* no alarm stands */
	(void)command;
}

static void operate_mute(struct ocs_emu_switch *sw, struct ocs_emu_command *command)
{
	(void)sw;
	if (strcasecmp(field(command, 2), "REPMGR"))
		deny(command, "IDNV", "Unknown equipment");
	else if (command->client)
		command->client->muted = true;
}

static void release_mute(struct ocs_emu_switch *sw, struct ocs_emu_command *command)
{
	(void)sw;
	if (command->client)
		command->client->muted = false;
}

static void initialise(struct ocs_emu_switch *sw, struct ocs_emu_command *command)
{
	ocs_emu_break_all(sw, command, "INIT-SYS");
}

typedef void (*verb_function)(struct ocs_emu_switch *sw, struct ocs_emu_command *command);

static const struct verb {
	const char *name;
	bool anybody;			/* without login */
	bool changes;
	verb_function begin, finish;	/* before, after the delay */
} verbs[] = {
	{ "ACT-USER", true, false, NULL, activate_user },
	{ "CANC-USER", true, false, NULL, cancel_user },
	{ "RTRV-NETYPE", false, false, NULL, retrieve_type },
	{ "RTRV-EQPT", false, false, NULL, retrieve_equipment },
	{ "ENT-PATCH", false, true, begin_enter, ocs_emu_finish_make },
	{ "DLT-PATCH", false, true, begin_delete, NULL },
	{ "RTRV-PATCH", false, false, NULL, retrieve_patches },
	{ "RTRV-PORT-SHUTTER", false, false, NULL, retrieve_shutters },
	{ "OPR-PORT-SHUTTER", false, false, NULL, operate_shutters },
	{ "RLS-PORT-SHUTTER", false, false, NULL, release_shutters },
	{ "RTRV-PORT-POWER", false, false, NULL, retrieve_power },
	{ "RTRV-ALM-ALL", false, false, NULL, retrieve_alarms },
	{ "OPR-ARC-EQPT", false, false, NULL, operate_mute },
	{ "RLS-ARC-EQPT", false, false, NULL, release_mute },
	{ "INIT-SYS", false, false, initialise, NULL },
};

static const struct verb *find_verb(const struct ocs_emu_command *command)
{
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (is_verb(command, verbs[i].name))
			return &verbs[i];
	return NULL;
}

static bool tl1_changes(const struct ocs_emu_command *command)
{
	const struct verb *verb = find_verb(command);

	return verb && verb->changes;
}

static void tl1_begin(struct ocs_emu_switch *sw, struct ocs_emu_command *command)
{
	const struct verb *verb = find_verb(command);
	struct parsed *p = parsed(command);

	p->code = "COMPLD";
	judge(command);
	if (denied(command))
		return;
	if (p->too_long)
		deny(command, "IICT", "Command line too long");
	else if (p->nfields < 4 || !*field(command, 3))
		deny(command, "IICT", "Parse error");
	else if (!verb)
		deny(command, "IICT", "Unknown command");
	else if (*field(command, 1) && strcasecmp(field(command, 1), sw->name))
		deny(command, "IITA", "Not the name of this switch");
	else if (command->client && !command->client->logged_in && !verb->anybody)
		deny(command, "PICC", "Not logged in");
	else if (verb->begin)
		verb->begin(sw, command);
	judge(command);
}

static void tl1_finish(struct ocs_emu_switch *sw, struct ocs_emu_command *command)
{
	const struct verb *verb = find_verb(command);

	if (!denied(command) && verb && verb->finish)
		verb->finish(sw, command);
	judge(command);
}

static void add_header(struct ocs_text *text, const struct ocs_emu_switch *sw)
{
	time_t now = time(NULL);
	struct tm tm;
	char date[32];

	localtime_r(&now, &tm);
	strftime(date, sizeof(date), "%y-%m-%d %H:%M:%S", &tm);
	ocs_text_add(text, "\r\n   %s %s\r\n", sw->emu->nil_sid ? "( nil )" : sw->name, date);
}

static void add_notice(struct ocs_text *bytes, struct ocs_emu_switch *sw, const char *text)
{
	add_header(bytes, sw);
	ocs_text_add(bytes, "A  %u REPT EVT SYSTEM\r\n   \"", ++sw->notices);
	for (; *text; text++)
		ocs_text_add(bytes, *text == '"' || *text == '\\' ? "\\%c" : "%c",
			     (unsigned char)*text < 0x20 ? '?' : *text);
	ocs_text_add(bytes, "\"\r\n;");
}

static char *tl1_notice(struct ocs_emu_client *client, const char *text)
{
	struct ocs_text bytes = { 0 };

	add_notice(&bytes, client->sw, text);
	return ocs_text_take(&bytes);
}

/* Quoted lines, a page at a time; autonomous messages may come between pages. */
static void add_body(struct ocs_text *text, struct ocs_emu_switch *sw,
		     const struct ocs_emu_command *command)
{
	const char *at = parsed(command)->body.data;
	int lines = 0, page = sw->emu->page;

	for (const char *end; at && (end = strchr(at, '\n')); at = end + 1) {
		if (page && lines && lines % page == 0) {
			ocs_text_add(text, ">");
			if (sw->emu->notice_ms && command->client && !command->client->muted)
				add_notice(text, sw, "between two pages");
			add_header(text, sw);
			ocs_text_add(text, "M  %s %s\r\n", field(command, 3),
				     parsed(command)->code);
		}
		ocs_text_add(text, "   \"%.*s\"\r\n", (int)(end - at), at);
		lines++;
	}
}

static void tl1_answer(struct ocs_emu_switch *sw, const struct ocs_emu_command *command,
		       struct ocs_text *text)
{
	const struct parsed *p = parsed(command);

	add_header(text, sw);
	ocs_text_add(text, "M  %s %s\r\n", *field(command, 3) ? field(command, 3) : "0",
		     p->code);
	if (p->error)
		ocs_text_add(text, "   %s\r\n", p->error);
	if (p->comment.length)
		ocs_text_add(text, "   /* %s */\r\n", p->comment.data);
	if (!denied(command))
		add_body(text, sw, command);
	ocs_text_add(text, ";");
}

const struct ocs_emu_protocol ocs_emu_tl1 = {
	.name = "tl1",
	.open = tl1_open,
	.close = tl1_close,
	.bytes = tl1_bytes,
	.changes = tl1_changes,
	.begin = tl1_begin,
	.finish = tl1_finish,
	.answer = tl1_answer,
	.masked = tl1_masked,
	.summary = tl1_summary,
	.forget = tl1_forget,
	.notice = tl1_notice,
};
