/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/switch/tl1/tl1.h"

#define LINE_LIMIT (64 * 1024)
#define MESSAGE_LIMIT (1024 * 1024)

void ocs_tl1_message_free(struct ocs_tl1_message *message)
{
	ocs_text_free(&message->body);
	ocs_text_free(&message->comment);
	memset(message, 0, sizeof(*message));
}

void ocs_tl1_parser_free(struct ocs_tl1_parser *parser)
{
	free(parser->line);
	ocs_tl1_message_free(&parser->answer);
	ocs_tl1_message_free(&parser->notice);
	memset(parser, 0, sizeof(*parser));
}

static const char *skip_blanks(const char *at)
{
	while (*at == ' ' || *at == '\t')
		at++;
	return at;
}

/* Copies the word at *AT, cut to SIZE - 1 characters, and steps over it. */
static void take_word(const char **at, char *to, size_t size)
{
	size_t n = 0;

	for (; **at && **at != ' '; (*at)++)
		if (n + 1 < size)
			to[n++] = **at;
	to[n] = '\0';
}

/* "M  CTAG CODE" opens an answer, or the next page of the open one. */
static bool open_answer(struct ocs_tl1_parser *parser, const char *line)
{
	struct ocs_tl1_message *answer = &parser->answer;
	char ctag[sizeof(answer->ctag)], code[sizeof(answer->code)];
	const char *at;

	if (line[0] != 'M' || line[1] != ' ')
		return false;
	at = skip_blanks(line + 1);
	take_word(&at, ctag, sizeof(ctag));
	at = skip_blanks(at);
	take_word(&at, code, sizeof(code));
	if (!ctag[0] || !isupper((unsigned char)code[0]))
		return false;
	/* Another answer's header while one is open: its end was lost, and what
	 * it said so far cannot be trusted. */
	if (parser->answering && strcmp(ctag, answer->ctag))
		ocs_tl1_message_free(answer);
	/* Its end was lost as well. */
	if (parser->telling)
		ocs_tl1_message_free(&parser->notice);
	parser->telling = false;
	parser->answering = true;
	parser->between_pages = false;
	strcpy(answer->ctag, ctag);
	strcpy(answer->code, code);
	return true;
}

/* "A ", "*C", "**" or "* ", an atag, and the verb: an autonomous message. */
static bool open_notice(struct ocs_tl1_parser *parser, const char *line)
{
	const char *at;

	if (strncmp(line, "A ", 2) && strncmp(line, "*C", 2) && strncmp(line, "**", 2) &&
	    strncmp(line, "* ", 2))
		return false;
	at = skip_blanks(line + 2);
	if (!isdigit((unsigned char)*at))
		return false;
	while (isdigit((unsigned char)*at) || *at == '.')
		at++;
	if (*at != ' ' || !isupper((unsigned char)*skip_blanks(at)))
		return false;
	if (parser->telling)
		ocs_tl1_message_free(&parser->notice);
	parser->telling = true;
	parser->notice.autonomous = true;
	ocs_text_add(&parser->notice.body, "%s", line);
	return true;
}

/* "SID 26-11-21 10:00:00": says nothing that is needed. */
static bool is_identity(const char *line)
{
	size_t length = strlen(line);
	int y, month, day, h, m, s, end = 0;

	while (length && line[length - 1] == ' ')
		length--;
	return length >= 17 && !strchr(line, '"') &&
	       sscanf(line + length - 17, "%2d-%2d-%2d %2d:%2d:%2d%n", &y, &month, &day, &h, &m, &s,
		      &end) == 6 &&
	       end == 17;
}

static void add_comment(struct ocs_tl1_message *answer, const char *text, size_t length)
{
	while (length && text[length - 1] == ' ')
		length--;
	while (length && *text == ' ') {
		text++;
		length--;
	}
	if (!length || (length == 1 && *text == ','))
		return;
	ocs_text_add(&answer->comment, "%s%.*s", answer->comment.length ? " " : "", (int)length,
		     text);
}

/* A quoted string, AT behind its first quote; returns what follows it. */
static const char *add_quoted(struct ocs_tl1_message *answer, const char *at)
{
	char *plain = ocs_strdup(at);
	size_t n = 0;

	for (; *at && *at != '"'; at++) {
		if (*at == '\\' && at[1])
			at++;
		plain[n++] = *at;
	}
	if (answer->body.length)
		ocs_text_put(&answer->body, "\n", 1);
	ocs_text_put(&answer->body, plain, (size_t)n);
	free(plain);
	return *at ? at + 1 : at;
}

static bool is_code(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (!isupper((unsigned char)text[i]))
			return false;
	return length == 4;
}

/* A line within an answer: quoted strings, comments, an error code, words. */
static void add_line(struct ocs_tl1_message *answer, const char *at)
{
	while (*(at = skip_blanks(at))) {
		if (*at == '"') {
			at = add_quoted(answer, at + 1);
		} else if (!strncmp(at, "/*", 2)) {
			const char *end = strstr(at + 2, "*/");
			size_t length = end ? (size_t)(end - at - 2) : strlen(at + 2);

			add_comment(answer, at + 2, length);
			at += 2 + length + (end ? 2 : 0);
		} else {
			size_t length = 1;

			while (at[length] && at[length] != '"' && strncmp(at + length, "/*", 2))
				length++;
			if (!answer->error[0] && is_code(at, strcspn(at, " "))) {
				memcpy(answer->error, at, 4);
				at += 4;
				continue;
			}
			add_comment(answer, at, length);
			at += length;
		}
	}
}

static int end_of_line(struct ocs_tl1_parser *parser)
{
	const char *line = parser->line;
	const char *text;

	parser->quote = parser->escape = false;
	if (!parser->used)
		return 0;
	parser->used = 0;
	text = skip_blanks(line);
	if (!*text || open_answer(parser, line) || open_notice(parser, line) || is_identity(text))
		return 0;
	if (parser->telling) {
		if (parser->notice.body.length + strlen(text) > MESSAGE_LIMIT)
			return -1;
		ocs_text_add(&parser->notice.body, " %s", text);
	} else if (parser->answering) {
		if (parser->answer.body.length + parser->answer.comment.length + strlen(text) >
		    MESSAGE_LIMIT)
			return -1;
		add_line(&parser->answer, text);
	}
	/* Everything else is an echo, a greeting, an acknowledgement. */
	return 0;
}

static int message_finish(struct ocs_tl1_parser *parser, struct ocs_tl1_message *message)
{
	if (parser->telling) {
		*message = parser->notice;
		memset(&parser->notice, 0, sizeof(parser->notice));
		parser->telling = false;
		return 1;
	}
	if (parser->answering) {
		*message = parser->answer;
		memset(&parser->answer, 0, sizeof(parser->answer));
		parser->answering = parser->between_pages = false;
		return 1;
	}
	return 0;
}

static int character_append(struct ocs_tl1_parser *parser, char c)
{
	if (parser->used >= LINE_LIMIT)
		return -1;
	if (parser->used + 2 > parser->size) {
		parser->size = parser->size ? 2 * parser->size : 256;
		parser->line = ocs_realloc(parser->line, parser->size);
	}
	parser->line[parser->used++] = c;
	parser->line[parser->used] = '\0';
	return 0;
}

/* Where quotes and comments begin and end; only outside of both do ';' and '>'
 * mean anything. */
static void character_track(struct ocs_tl1_parser *parser, char c)
{
	char before = parser->used ? parser->line[parser->used - 1] : '\0';

	if (parser->comment) {
		if (c == '/' && before == '*' && parser->used >= parser->comment_at + 3)
			parser->comment = false;
	} else if (parser->quote) {
		if (parser->escape)
			parser->escape = false;
		else if (c == '\\')
			parser->escape = true;
		else if (c == '"')
			parser->quote = false;
	} else if (c == '"') {
		parser->quote = true;
	} else if (c == '*' && before == '/') {
		parser->comment = true;
		parser->comment_at = parser->used - 1;
	}
}

int ocs_tl1_parser_byte(struct ocs_tl1_parser *parser, char c, struct ocs_tl1_message *message)
{
	bool open = parser->comment || parser->quote, blank;

	if (c == '\0' || c == '\r')
		return 0;
	if (c == '\n') {
		if (!parser->comment)
			return end_of_line(parser);
		c = ' '; /* a comment may go on */
	}
	if (c == '\t')
		c = ' ';
	else if ((unsigned char)c < 0x20 || (unsigned char)c >= 0x7f)
		c = '?';
	blank = !parser->used || !*skip_blanks(parser->line);
	if (!open && blank && (c == '>' || c == '<' || c == ';')) {
		parser->used = 0;
		if (c == '>' && parser->answering && !parser->telling)
			parser->between_pages = true;
		return c == ';' ? message_finish(parser, message) : 0;
	}
	if (!open && c == ';') {
		/* Within a message it ends it even behind text; in an echoed
		 * command, which stands outside of messages, it does not. */
		if (end_of_line(parser))
			return -1;
		if (parser->telling || !parser->between_pages)
			return message_finish(parser, message);
		return 0;
	}
	character_track(parser, c);
	return character_append(parser, c);
}
