/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* TL1, seen from the side of the switch; verbs are the dialects' (tl1_*.c). */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "src/emulator/tl1.h"

/* State of a connection. */
struct session {
	bool quote;    /* within a quoted string */
	bool too_long; /* skip to the next ';' */
};

static struct ocs_emu_tl1_command *state_of(const struct ocs_emu_command *command)
{
	return command->state;
}

const char *ocs_emu_tl1_field(const struct ocs_emu_command *command, int i)
{
	const struct ocs_emu_tl1_command *p = command->state;

	return i < p->nfields ? p->field[i] : "";
}

bool ocs_emu_tl1_all(const char *aid)
{
	return !*aid || !strcasecmp(aid, "ALL");
}

void ocs_emu_tl1_deny(struct ocs_emu_command *command, const char *error, const char *comment)
{
	struct ocs_emu_tl1_command *p = command->state;

	p->code = "DENY";
	p->error = error;
	ocs_text_free(&p->comment);
	ocs_text_add(&p->comment, "%s", comment);
}

void ocs_emu_tl1_say(struct ocs_emu_command *command, const char *format, ...)
{
	va_list arguments;
	char line[512];

	va_start(arguments, format);
	vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	ocs_text_add(&state_of(command)->body, "%s\n", line);
}

/* The dialect of a switch; the first is the default. */
static const struct ocs_emu_tl1_dialect *dialect_of(const struct ocs_emu_switch *sw)
{
	static const struct ocs_emu_tl1_dialect *const dialects[] = {
		&ocs_emu_tl1_polatis,
		&ocs_emu_tl1_calient,
		&ocs_emu_tl1_glimmerglass,
	};

	for (size_t i = 0; sw->dialect && i < sizeof(dialects) / sizeof(dialects[0]); i++)
		if (!strcasecmp(dialects[i]->name, sw->dialect))
			return dialects[i];
	return sw->dialect ? NULL : dialects[0];
}

static bool tl1_speaks(const struct ocs_emu_switch *sw)
{
	return dialect_of(sw) != NULL;
}

static bool denial_text(const struct ocs_emu_command *command)
{
	return state_of(command)->code && !strcmp(state_of(command)->code, "DENY");
}

/* The model's verdict in TL1's words. */
static void command_judge(const struct ocs_emu_switch *sw, struct ocs_emu_command *command)
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
	struct ocs_text comment = { 0 };

	if (denial_text(command))
		return;
	if (command->verdict == OCS_EMU_PART)
		state_of(command)->code = "PRTL";
	if (!ocs_emu_refused(command))
		return;
	ocs_text_add(&comment, "%s", words[command->verdict].comment);
	if (command->verdict != OCS_EMU_BUSY) {
		ocs_text_add(&comment, ": ");
		dialect_of(sw)->name_port(sw, command->port, &comment);
	}
	ocs_emu_tl1_deny(command, words[command->verdict].error, comment.data);
	ocs_text_free(&comment);
}

static void fields_split(struct ocs_emu_tl1_command *p, const char *text)
{
	bool quote = false;
	char *to, *at;

	p->copy = to = at = ocs_strdup(text);
	p->field[p->nfields++] = to;
	for (; *at; at++) {
		if (*at == '"') {
			quote = !quote;
		} else if (*at == ':' && !quote && p->nfields < OCS_EMU_TL1_FIELDS) {
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

static void notice_queue(struct ocs_emu_client *client)
{
	struct session *session = client->state;
	struct ocs_emu_tl1_command *p = ocs_calloc(1, sizeof(*p));
	char *text = ocs_text_take(&client->line);

	p->too_long = session->too_long;
	session->too_long = session->quote = false;
	fields_split(p, text);
	ocs_emu_queue(client, text, p);
}

static void tl1_bytes(struct ocs_emu_client *client, const char *data, size_t length)
{
	struct session *session = client->state;

	for (size_t i = 0; i < length; i++) {
		char c = data[i];

		if (c == ';' && !session->quote) {
			notice_queue(client);
			continue;
		}
		if (c == '\r' || c == '\n' || c == '\0' || (!client->line.length && c == ' '))
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
	struct ocs_emu_tl1_command *p = state_of(command);

	free(p->copy);
	ocs_text_free(&p->comment);
	ocs_text_free(&p->body);
	free(p);
}

static char *tl1_masked(const struct ocs_emu_command *command)
{
	const char *verb = ocs_emu_tl1_field(command, 0);

	/* Whatever looks as if it deals with users may hold a password. */
	if (!strcasestr(verb, "USER") && !strcasestr(verb, "PID") &&
	    !strcasestr(command->text, "ACT-"))
		return ocs_strdup(command->text);
	if (state_of(command)->nfields < 4)
		return ocs_strdup("********");
	return ocs_asprintf("%s:%s:%s:%s::********", verb, ocs_emu_tl1_field(command, 1),
			    ocs_emu_tl1_field(command, 2), ocs_emu_tl1_field(command, 3));
}

static char *tl1_summary(const struct ocs_emu_command *command)
{
	const struct ocs_emu_tl1_command *p = state_of(command);

	return ocs_asprintf("%s %s%s%s%s%s", p->nfields > 3 ? p->field[3] : "0", p->code,
			    p->error ? " " : "", p->error ? p->error : "",
			    p->comment.length ? " " : "", p->comment.length ? p->comment.data : "");
}

static void activate_user(struct ocs_emu_switch *sw, struct ocs_emu_command *command)
{
	if (sw->fault == OCS_EMU_LOGIN ||
	    (sw->user && (strcmp(ocs_emu_tl1_field(command, 2), sw->user) ||
			  strcmp(ocs_emu_tl1_field(command, 5), sw->password))))
		ocs_emu_tl1_deny(command, "PICC", "Invalid user or password");
	else if (command->client)
		command->client->logged_in = true;
}

static void cancel_user(struct ocs_emu_switch *sw, struct ocs_emu_command *command)
{
	if (command->client)
		command->client->logged_in = !sw->user;
}

static const struct ocs_emu_tl1_verb common[] = {
	{ "ACT-USER", true, false, NULL, activate_user },
	{ "CANC-USER", true, false, NULL, cancel_user },
	{ NULL, false, false, NULL, NULL },
};

static const struct ocs_emu_tl1_verb *find_in(const struct ocs_emu_tl1_verb *verbs,
					      const char *name)
{
	while (verbs->name && strcasecmp(verbs->name, name) != 0)
		verbs++;
	return verbs->name ? verbs : NULL;
}

static const struct ocs_emu_tl1_verb *find_verb(const struct ocs_emu_switch *sw,
						const struct ocs_emu_command *command)
{
	const struct ocs_emu_tl1_verb *verb = find_in(common, ocs_emu_tl1_field(command, 0));

	return verb ? verb : find_in(dialect_of(sw)->verbs, ocs_emu_tl1_field(command, 0));
}

static bool tl1_changes(const struct ocs_emu_switch *sw, const struct ocs_emu_command *command)
{
	const struct ocs_emu_tl1_verb *verb = find_verb(sw, command);

	return verb && verb->changes;
}

static void tl1_begin(struct ocs_emu_switch *sw, struct ocs_emu_command *command)
{
	const struct ocs_emu_tl1_verb *verb = find_verb(sw, command);
	struct ocs_emu_tl1_command *p = state_of(command);

	p->code = "COMPLD";
	command_judge(sw, command);
	if (denial_text(command))
		return;
	if (p->too_long)
		ocs_emu_tl1_deny(command, "IICT", "Command line too long");
	else if (p->nfields < 4 || !*ocs_emu_tl1_field(command, 3))
		ocs_emu_tl1_deny(command, "IICT", "Parse error");
	else if (!verb)
		ocs_emu_tl1_deny(command, "IICT", "Unknown command");
	else if (*ocs_emu_tl1_field(command, 1) &&
		 strcasecmp(ocs_emu_tl1_field(command, 1), sw->name))
		ocs_emu_tl1_deny(command, "IITA", "Not the name of this switch");
	else if (command->client && !command->client->logged_in && !verb->public)
		ocs_emu_tl1_deny(command, "PICC", "Not logged in");
	else if (verb->begin)
		verb->begin(sw, command);
	command_judge(sw, command);
}

static void tl1_finish(struct ocs_emu_switch *sw, struct ocs_emu_command *command)
{
	const struct ocs_emu_tl1_verb *verb = find_verb(sw, command);

	if (!denial_text(command) && verb && verb->finish)
		verb->finish(sw, command);
	command_judge(sw, command);
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

static void add_notice(struct ocs_text *bytes, struct ocs_emu_switch *sw, enum ocs_emu_notice kind,
		       const char *text)
{
	static const char *const heads[][2] = {
		[OCS_EMU_EVENT] = { "A ", "EVT SYSTEM" },
		[OCS_EMU_ALARM] = { "**", "ALM EQPT" },
		[OCS_EMU_CLEARED] = { "A ", "ALM EQPT" },
	};

	add_header(bytes, sw);
	ocs_text_add(bytes, "%s %u REPT %s\r\n   \"", heads[kind][0], ++sw->notices,
		     heads[kind][1]);
	for (; *text; text++)
		ocs_text_add(bytes, *text == '"' || *text == '\\' ? "\\%c" : "%c",
			     (unsigned char)*text < 0x20 ? '?' : *text);
	ocs_text_add(bytes, "\"\r\n;");
}

static char *tl1_notice(struct ocs_emu_client *client, enum ocs_emu_notice kind, const char *text)
{
	struct ocs_text bytes = { 0 };

	add_notice(&bytes, client->sw, kind, text);
	return ocs_text_take(&bytes);
}

/* Quoted lines, a page at a time; autonomous messages may come between pages. */
static void add_body(struct ocs_text *text, struct ocs_emu_switch *sw,
		     const struct ocs_emu_command *command)
{
	const char *at = state_of(command)->body.data;
	int lines = 0, page = sw->emu->page;

	for (const char *end; at && (end = strchr(at, '\n')); at = end + 1) {
		if (page && lines && lines % page == 0) {
			ocs_text_add(text, ">");
			if (sw->emu->notice_ms && command->client && !command->client->muted)
				add_notice(text, sw, OCS_EMU_EVENT, "between two pages");
			add_header(text, sw);
			ocs_text_add(text, "M  %s %s\r\n", ocs_emu_tl1_field(command, 3),
				     state_of(command)->code);
		}
		ocs_text_add(text, "   \"%.*s\"\r\n", (int)(end - at), at);
		lines++;
	}
}

static void tl1_answer(struct ocs_emu_switch *sw, const struct ocs_emu_command *command,
		       struct ocs_text *text)
{
	const struct ocs_emu_tl1_command *p = state_of(command);

	add_header(text, sw);
	ocs_text_add(text, "M  %s %s\r\n",
		     *ocs_emu_tl1_field(command, 3) ? ocs_emu_tl1_field(command, 3) : "0", p->code);
	if (p->error)
		ocs_text_add(text, "   %s\r\n", p->error);
	if (p->comment.length)
		ocs_text_add(text, "   /* %s%s%s */\r\n", p->comment.data, sw->says ? ": " : "",
			     sw->says ? sw->says : "");
	if (!denial_text(command))
		add_body(text, sw, command);
	ocs_text_add(text, ";");
}

const struct ocs_emu_protocol ocs_emu_tl1 = {
	.name = "tl1",
	.speaks = tl1_speaks,
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
