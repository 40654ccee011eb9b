/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "src/switch/driver.h"
#include "src/switch/tl1/tl1.h"
#include "src/util/error.h"

/* A name or password with characters that separate TL1 fields goes in quotes. */
static void add_value(struct ocs_text *text, const char *value)
{
	ocs_text_add(text, strpbrk(value, ":;,&= ") ? "\"%s\"" : "%s", value);
}

static void add_port(struct ocs_text *text, const struct ocs_tl1_dialect *dialect, int size,
		     int port)
{
	int number = port, slots = dialect->radix[0], ports = dialect->radix[1];

	if (port <= size)
		number = dialect->ingress_first + port - 1;
	else if (dialect->egress_first)
		number = dialect->egress_first + port - size - 1;
	if (ports)
		ocs_text_add(text, "%d.%d.%d", (number - 1) / (slots * ports) + 1,
			     (number - 1) / ports % slots + 1, (number - 1) % ports + 1);
	else
		ocs_text_number(text, number);
}

static void add_list(struct ocs_text *text, const struct ocs_tl1_dialect *dialect, int size,
		     const struct ocs_patch *patches, size_t count, bool egress)
{
	for (size_t i = 0; i < count; i++) {
		if (i)
			ocs_text_put(text, dialect->list, strlen(dialect->list));
		add_port(text, dialect, size, egress ? patches[i].out : patches[i].in);
	}
}

char *ocs_tl1_format(const char *template, unsigned int ctag, int size,
		     const struct ocs_credentials *credentials)
{
	struct ocs_text text = { 0 };

	for (const char *at = template; *at; at++) {
		if (*at != '%')
			ocs_text_put(&text, at, 1);
		else if (*++at == 't')
			ocs_text_number(&text, ctag);
		else if (*at == 'x')
			ocs_text_add(&text, "%d", 2 * size);
		else if (*at == 'u')
			add_value(&text, credentials->user);
		else
			add_value(&text, credentials->password);
	}
	return ocs_text_take(&text);
}

static void add_name(struct ocs_text *text, const struct ocs_tl1_dialect *dialect, int size,
		     const struct ocs_patch *patch)
{
	add_port(text, dialect, size, patch->in);
	ocs_text_put(text, dialect->between, 1);
	add_port(text, dialect, size, patch->out);
}

/* Whether NAME stands in TEXT, not as part of a longer name. */
static bool template_names(const char *text, const char *name)
{
	size_t length = strlen(name);

	for (const char *at = text; (at = strstr(at, name)); at++)
		if ((at == text || !strchr("0123456789.", at[-1])) &&
		    !isdigit((unsigned char)at[length]) &&
		    !(at[length] == '.' && isdigit((unsigned char)at[length + 1])))
			return true;
	return false;
}

int ocs_tl1_names_port(const struct ocs_tl1_dialect *dialect, int size, const char *text,
		       const struct ocs_patch *patches, size_t count)
{
	int found = 0;

	for (size_t i = 0; i < 2 * count && !found; i++) {
		int port = i % 2 ? patches[i / 2].out : patches[i / 2].in;
		struct ocs_text name = { 0 };

		add_port(&name, dialect, size, port);
		found = template_names(text, name.data) ? port : 0;
		ocs_text_free(&name);
	}
	return found;
}

static char *format_patches(const struct ocs_tl1_dialect *dialect, const char *template,
			    unsigned int ctag, int size, const struct ocs_patch *patches,
			    size_t count)
{
	struct ocs_text text = { 0 };

	for (const char *at = template; *at; at++) {
		if (*at != '%')
			ocs_text_put(&text, at, 1);
		else if (*++at == 't')
			ocs_text_number(&text, ctag);
		else if (*at == 'n')
			add_name(&text, dialect, size, patches);
		else
			add_list(&text, dialect, size, patches, count, *at == 'e');
	}
	return ocs_text_take(&text);
}

/* How many of COUNT patches fit into one command, at least one. */
static size_t ports_fitting(const struct ocs_tl1_dialect *dialect, const char *template, int size,
			    const struct ocs_patch *patches, size_t count)
{
	bool both = strstr(template, "%i") && strstr(template, "%e");
	size_t length = strlen(template) + 16, n;

	for (n = 0; n < count; n++) {
		char *one = format_patches(dialect, both ? "%i%e" : "%i", 0, size, &patches[n], 1);

		length += strlen(one) + (both ? 2 : 1) * strlen(dialect->list);
		free(one);
		if (n && (length > dialect->line || (dialect->batch && n >= dialect->batch)))
			break;
	}
	return n;
}

char *ocs_tl1_format_batch(const struct ocs_tl1_dialect *dialect, const char *template,
			   unsigned int ctag, int size, const struct ocs_patch *patches,
			   size_t count, size_t *used, struct ocs_error *err)
{
	if (!count) {
		ocs_error_set(err, OCS_USAGE,
			      "an empty batch is never sent: a switch could take it for all ports");
		return NULL;
	}
	for (size_t i = 0; i < count; i++) {
		if (patches[i].in < 1 || patches[i].in > size || patches[i].out <= size ||
		    patches[i].out > 2 * size) {
			ocs_error_set(err, OCS_USAGE,
				      "patch %d>%d does not exist on a %dx%d switch", patches[i].in,
				      patches[i].out, size, size);
			return NULL;
		}
	}
	*used = ports_fitting(dialect, template, size, patches, count);
	return format_patches(dialect, template, ctag, size, patches, *used);
}

/* A list of ports: digits and the characters that join port names, and at least
 * one digit in each element; so no ALL, no empty list, no empty element. */
static bool names_ports(const char *at, size_t length)
{
	bool digit = false;

	for (size_t i = 0; i < length; i++) {
		if (isdigit((unsigned char)at[i])) {
			digit = true;
		} else if (strchr("&,", at[i])) {
			if (!digit)
				return false;
			digit = false;
		} else if (!strchr(".->", at[i])) {
			return false;
		}
	}
	return digit;
}

bool ocs_tl1_dangerous(const char *command)
{
	const char *tid, *aid, *end;
	bool quote = false;

	/* One command at a time: what follows the first ';' was smuggled in. */
	for (end = command; *end && (quote || *end != ';'); end++)
		if (*end == '"')
			quote = !quote;
	if (*end != ';' || end[1])
		return true;
	command += strspn(command, " \t\r\n");
	if (!strncasecmp(command, "INIT-", 5))
		return true;
	if (strncasecmp(command, "DLT-", 4) && strncasecmp(command, "CANC-CRS", 8))
		return false;
	tid = strchr(command, ':');
	aid = tid ? strchr(tid + 1, ':') : NULL;
	end = aid ? strchr(aid + 1, ':') : NULL;
	return !end || !names_ports(aid + 1, (size_t)(end - aid - 1));
}
