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

static const char *field(const struct ocs_emu_command *command, int i)
{
	return i < command->nfields ? command->field[i] : "";
}

static void deny(struct ocs_emu_command *command, const char *error, const char *comment)
{
	command->code = "DENY";
	command->error = error;
	ocs_text_free(&command->comment);
	ocs_text_add(&command->comment, "%s", comment);
}

static void deny_port(struct ocs_emu_command *command, const char *what, long port)
{
	char *comment = ocs_asprintf("%s: %ld", what, port);

	deny(command, "IDNV", comment);
	free(comment);
}

void ocs_emu_tl1_split(struct ocs_emu_command *command)
{
	bool quote = false;
	char *to, *at;

	command->copy = to = at = ocs_strdup(command->text);
	command->field[command->nfields++] = to;
	for (; *at; at++) {
		if (*at == '"') {
			quote = !quote;
		} else if (*at == ':' && !quote && command->nfields < OCS_EMU_FIELDS) {
			*to++ = '\0';
			command->field[command->nfields++] = to;
		} else {
			*to++ = *at;
		}
	}
	*to = '\0';
}

static bool is_verb(const struct ocs_emu_command *command, const char *verb)
{
	return !strcasecmp(command->field[0], verb);
}

bool ocs_emu_tl1_changes(const struct ocs_emu_command *command)
{
	return is_verb(command, "ENT-PATCH") || is_verb(command, "DLT-PATCH");
}

char *ocs_emu_tl1_masked(const struct ocs_emu_command *command)
{
	const char *verb = command->field[0];

	/* Whatever looks as if it deals with users may hold a password. */
	if (!strcasestr(verb, "USER") && !strcasestr(verb, "PID") && !strcasestr(command->text, "ACT-"))
		return ocs_strdup(command->text);
	if (command->nfields < 4)
		return ocs_strdup("********");
	return ocs_asprintf("%s:%s:%s:%s::********", verb, command->field[1],
			    command->field[2], command->field[3]);
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
			if (port < 1 || port > 2 * sw->size) {
				deny_port(command, "Invalid OXC port", port);
				goto failed;
			}
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

/* What stands in the way of a patch: a port that has another peer. */
static long taken_port(const struct ocs_emu_switch *sw, const struct ocs_patch *patch)
{
	int peer = ocs_emu_peer(sw, patch->in);

	if (peer && peer != patch->out)
		return patch->in;
	peer = ocs_emu_peer(sw, patch->out);
	return peer && peer != patch->in ? patch->out : 0;
}

/* Pairs up the two lists; every port once, ingress left and egress right. */
static bool pair_up(struct ocs_emu_switch *sw, struct ocs_emu_command *command,
		    const int *in, const int *out, int count)
{
	bool *seen = ocs_calloc(2 * (size_t)sw->size + 1, sizeof(*seen));
	bool good = true;

	command->patches = ocs_calloc((size_t)count, sizeof(*command->patches));
	for (int i = 0; i < count && good; i++) {
		long wrong = in[i] > sw->size ? in[i] : out[i] <= sw->size ? out[i] : 0;

		good = false;
		if (wrong)
			deny_port(command, "Port on the wrong side", wrong);
		else if (seen[in[i]] || seen[out[i]])
			deny_port(command, "Port named twice", seen[in[i]] ? in[i] : out[i]);
		else
			good = true;
		seen[in[i]] = seen[out[i]] = true;
		command->patches[i] = (struct ocs_patch){ in[i], out[i] };
	}
	free(seen);
	if (good)
		command->npatches = (size_t)count;
	return good;
}

static bool ports_are_free(struct ocs_emu_switch *sw, struct ocs_emu_command *command)
{
	for (size_t i = 0; !sw->emu->replace && i < command->npatches; i++) {
		long port = taken_port(sw, &command->patches[i]);

		if (port) {
			char *comment = ocs_asprintf("Port is already patched: %ld", port);

			deny(command, "SSTP", comment);
			free(comment);
			return false;
		}
	}
	return true;
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
		else if (nout >= 0 && pair_up(sw, command, in, out, nin))
			ports_are_free(sw, command);
	}
	free(in);
	free(out);
	free(aid);
	if (!strcmp(command->code, "PRTL"))
		command->npatches /= 2;
	if (strcmp(command->code, "DENY"))
		command->delay_ms = ocs_emu_delay(sw, command->npatches);
}

/* The mirrors have settled.  Somebody's hand may have been there meanwhile. */
static void finish_enter(struct ocs_emu_switch *sw, struct ocs_emu_command *command)
{
	if (!ports_are_free(sw, command))
		return;
	for (size_t i = 0; i < command->npatches; i++)
		ocs_emu_make(sw, command->patches[i].in, command->patches[i].out, "command");
	ocs_emu_save(sw);
}

static bool means_all(const char *aid)
{
	return !*aid || !strcasecmp(aid, "ALL");
}

/* The light goes as soon as the mirrors move: before the delay. */
static void begin_delete(struct ocs_emu_switch *sw, struct ocs_emu_command *command)
{
	const char *aid = field(command, 2);
	int *ports = NULL, count;

	if (means_all(aid)) {
		/* As dangerous as on the real switch. */
		ocs_emu_log(sw->emu, sw->name, "deleted-all", 0, 0, "command", NULL);
		for (int in = 1; in <= sw->size; in++)
			ocs_emu_break(sw, in, "command");
		count = sw->size;
	} else {
		count = take_ports(sw, command, aid, &ports);
		if (count < 0)
			return;
		if (!strcmp(command->code, "PRTL"))
			count /= 2;
		for (int i = 0; i < count; i++) {
			int in = ports[i] <= sw->size ? ports[i] : ocs_emu_peer(sw, ports[i]);

			if (in)
				ocs_emu_break(sw, in, "command");
		}
	}
	free(ports);
	ocs_emu_save(sw);
	command->delay_ms = ocs_emu_delay(sw, (size_t)count);
}

static void retrieve_patches(struct ocs_emu_switch *sw, struct ocs_emu_command *command)
{
	const char *aid = field(command, 2);
	int *ports = NULL, count;

	if (means_all(aid)) {
		for (int in = 1; in <= sw->size; in++)
			if (sw->out[in])
				ocs_text_add(&command->body, "%d,%d\n", in, sw->out[in]);
		return;
	}
	count = take_ports(sw, command, aid, &ports);
	for (int i = 0; i < count; i++) {
		int peer = ocs_emu_peer(sw, ports[i]);
		bool ingress = ports[i] <= sw->size;

		if (peer)
			ocs_text_add(&command->body, "%d,%d\n", ingress ? ports[i] : peer,
				     ingress ? peer : ports[i]);
	}
	free(ports);
}

/* A made-up but steady optical power: what a laser and the way lose. */
static double power(const struct ocs_emu_switch *sw, int port)
{
	int peer = ocs_emu_peer(sw, port);

	if (port <= sw->size)
		return -1.0 - (double)(port * 37 % 100) / 100;
	if (!peer || sw->closed[port] || sw->closed[peer])
		return -60.0;
	return power(sw, peer) - 1.0 - (double)(port * 53 % 50) / 100;
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
	ocs_text_add(&command->body, "%d:%s\n", port, sw->closed[port] ? "CLOSED" : "OPEN");
}

static void close_shutter(struct ocs_emu_switch *sw, struct ocs_emu_command *command, int port)
{
	(void)command;
	sw->closed[port] = true;
	ocs_emu_plane_shutter(sw, port);
}

static void open_shutter(struct ocs_emu_switch *sw, struct ocs_emu_command *command, int port)
{
	(void)command;
	sw->closed[port] = false;
	ocs_emu_plane_shutter(sw, port);
}

static void show_power(struct ocs_emu_switch *sw, struct ocs_emu_command *command, int port)
{
	ocs_text_add(&command->body, "%d:%.2f\n", port, power(sw, port));
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
	ocs_text_add(&command->body, "slurm-ocs,emulator-%dx%d,OCS,%s\n", sw->size, sw->size,
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
		ocs_text_add(&command->body, "SYSTEM:SIZE=%dx%d\n", sw->size, sw->size);
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
	(void)command;
	ocs_emu_log(sw->emu, sw->name, "deleted-all", 0, 0, "command", "INIT-SYS");
	for (int in = 1; in <= sw->size; in++)
		ocs_emu_break(sw, in, "command");
	ocs_emu_save(sw);
}

typedef void (*verb_function)(struct ocs_emu_switch *sw, struct ocs_emu_command *command);

static const struct verb {
	const char *name;
	bool anybody;			/* without login */
	verb_function begin, finish;	/* before, after the delay */
} verbs[] = {
	{ "ACT-USER", true, NULL, activate_user },
	{ "CANC-USER", true, NULL, cancel_user },
	{ "RTRV-NETYPE", false, NULL, retrieve_type },
	{ "RTRV-EQPT", false, NULL, retrieve_equipment },
	{ "ENT-PATCH", false, begin_enter, finish_enter },
	{ "DLT-PATCH", false, begin_delete, NULL },
	{ "RTRV-PATCH", false, NULL, retrieve_patches },
	{ "RTRV-PORT-SHUTTER", false, NULL, retrieve_shutters },
	{ "OPR-PORT-SHUTTER", false, NULL, operate_shutters },
	{ "RLS-PORT-SHUTTER", false, NULL, release_shutters },
	{ "RTRV-PORT-POWER", false, NULL, retrieve_power },
	{ "RTRV-ALM-ALL", false, NULL, retrieve_alarms },
	{ "OPR-ARC-EQPT", false, NULL, operate_mute },
	{ "RLS-ARC-EQPT", false, NULL, release_mute },
	{ "INIT-SYS", false, NULL, initialise },
};

static const struct verb *find_verb(const struct ocs_emu_command *command)
{
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (is_verb(command, verbs[i].name))
			return &verbs[i];
	return NULL;
}

void ocs_emu_tl1_begin(struct ocs_emu_switch *sw, struct ocs_emu_command *command)
{
	const struct verb *verb = find_verb(command);

	if (command->code && !strcmp(command->code, "DENY"))
		return;
	if (!command->code)
		command->code = "COMPLD";
	if (command->too_long)
		deny(command, "IICT", "Command line too long");
	else if (command->nfields < 4 || !*field(command, 3))
		deny(command, "IICT", "Parse error");
	else if (!verb)
		deny(command, "IICT", "Unknown command");
	else if (*field(command, 1) && strcasecmp(field(command, 1), sw->name))
		deny(command, "IITA", "Not the name of this switch");
	else if (command->client && !command->client->logged_in && !verb->anybody)
		deny(command, "PICC", "Not logged in");
	else if (verb->begin)
		verb->begin(sw, command);
}

void ocs_emu_tl1_finish(struct ocs_emu_switch *sw, struct ocs_emu_command *command)
{
	const struct verb *verb = find_verb(command);

	if (strcmp(command->code, "DENY") && verb && verb->finish)
		verb->finish(sw, command);
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

char *ocs_emu_tl1_notice(struct ocs_emu_switch *sw, const char *text)
{
	struct ocs_text bytes = { 0 };

	add_notice(&bytes, sw, text);
	return ocs_text_take(&bytes);
}

/* Quoted lines, a page at a time; autonomous messages may come between pages. */
static void add_body(struct ocs_text *text, struct ocs_emu_switch *sw,
		     const struct ocs_emu_command *command)
{
	const char *at = command->body.data;
	int lines = 0, page = sw->emu->page;

	for (const char *end; at && (end = strchr(at, '\n')); at = end + 1) {
		if (page && lines && lines % page == 0) {
			ocs_text_add(text, ">");
			if (sw->emu->notice_ms && command->client && !command->client->muted)
				add_notice(text, sw, "between two pages");
			add_header(text, sw);
			ocs_text_add(text, "M  %s %s\r\n", field(command, 3), command->code);
		}
		ocs_text_add(text, "   \"%.*s\"\r\n", (int)(end - at), at);
		lines++;
	}
}

char *ocs_emu_tl1_answer(struct ocs_emu_switch *sw, const struct ocs_emu_command *command)
{
	struct ocs_text text = { 0 };

	add_header(&text, sw);
	ocs_text_add(&text, "M  %s %s\r\n", *field(command, 3) ? field(command, 3) : "0",
		     command->code);
	if (command->error)
		ocs_text_add(&text, "   %s\r\n", command->error);
	if (command->comment.length)
		ocs_text_add(&text, "   /* %s */\r\n", command->comment.data);
	if (strcmp(command->code, "DENY"))
		add_body(&text, sw, command);
	ocs_text_add(&text, ";");
	return ocs_text_take(&text);
}
