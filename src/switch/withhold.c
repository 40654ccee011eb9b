/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* What a switch says reaches logs, the database and every user of the cluster; a switch
 * knows the password that it was given.  So everything it says passes here before a word
 * of it leaves the driver, and a sentence about a text that holds a piece of the
 * credentials is replaced as a whole: what was cut off or escaped cannot leak then. */

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "src/switch/driver.h"
#include "src/util/error.h"
#include "src/util/text.h"

/* So many characters in a row give a secret away. */
#define PIECE 6

/* A form that the secret may have. */
struct form {
	char *text;
	size_t length;
	size_t piece;
};

/* Plain, without punctuation, in hex, and in base64 from each of three places. */
#define FORMS 6

struct ocs_withheld {
	struct form forms[FORMS];
	struct ocs_text heard; /* since the operation began */
};

static void form_set(struct form *form, char *text, size_t piece)
{
	for (char *at = text; *at; at++)
		*at = (char)tolower((unsigned char)*at);
	form->text = text;
	form->length = strlen(text);
	form->piece = form->length < piece ? form->length : piece;
}

/* TEXT without what is no letter and no digit. */
static char *text_bare(const char *text)
{
	char *bare = ocs_strdup(text), *to = bare;

	for (; *text; text++)
		if (isalnum((unsigned char)*text))
			*to++ = *text;
	*to = '\0';
	return bare;
}

static char *text_hex(const char *text)
{
	static const char digits[] = "0123456789abcdef";
	char *hex = ocs_calloc(2 * strlen(text) + 1, 1), *to = hex;

	for (; *text; text++) {
		*to++ = digits[(unsigned char)*text >> 4];
		*to++ = digits[*text & 15];
	}
	return hex;
}

/* What base64 makes of TEXT wherever it stands behind SHIFT bytes modulo three; the
 * digits that depend on what surrounds it are left out. */
static char *text_base64(const char *text, size_t shift)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	size_t bits = 8 * strlen(text), first = (6 - 8 * shift % 6) % 6;
	char *base64 = ocs_calloc(bits / 6 + 2, 1), *to = base64;

	for (size_t bit = first; bit + 6 <= bits; bit += 6) {
		unsigned int value = (unsigned int)(unsigned char)text[bit / 8] << 8 |
				     (unsigned char)text[bit / 8 + 1];

		*to++ = digits[value >> (10 - bit % 8) & 63];
	}
	return base64;
}

void ocs_switch_guard(struct ocs_switch_connection *connection,
		      const struct ocs_credentials *credentials)
{
	const char *secret = credentials->password;
	struct ocs_withheld *withheld;

	ocs_switch_unguard(connection);
	if (!*secret)
		return;
	withheld = ocs_calloc(1, sizeof(*withheld));
	form_set(&withheld->forms[0], ocs_strdup(secret), PIECE);
	form_set(&withheld->forms[1], text_bare(secret), PIECE);
	form_set(&withheld->forms[2], text_hex(secret), 2 * PIECE);
	for (size_t shift = 0; shift < 3; shift++)
		form_set(&withheld->forms[3 + shift], text_base64(secret, shift), PIECE + 2);
	connection->withheld = withheld;
}

void ocs_switch_unguard(struct ocs_switch_connection *connection)
{
	struct ocs_withheld *withheld = connection->withheld;

	if (!withheld)
		return;
	for (size_t i = 0; i < FORMS; i++) {
		explicit_bzero(withheld->forms[i].text, withheld->forms[i].length);
		free(withheld->forms[i].text);
	}
	ocs_switch_forget(connection);
	free(withheld);
	connection->withheld = NULL;
}

static int digit_value(char c)
{
	return isdigit((unsigned char)c)  ? c - '0' :
	       isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10 :
					    -1;
}

/* The byte that an escape at *AT stands for: %41, \x41, \A, &#65; or &#x41;. */
static char escape_take(const char **at)
{
	const char *from = *at;
	bool hex = false;
	int value = 0, digits = 0;

	if (*from == '%' || (from[0] == '\\' && tolower((unsigned char)from[1]) == 'x')) {
		from += *from == '%' ? 1 : 2;
		hex = true;
		for (; digits < 2 && digit_value(*from) >= 0; digits++)
			value = 16 * value + digit_value(*from++);
		if (digits == 2) {
			*at = from;
			return (char)value;
		}
	} else if (from[0] == '&' && from[1] == '#') {
		from += 2;
		hex = tolower((unsigned char)*from) == 'x';
		from += hex;
		for (; digits < 6 && digit_value(*from) >= 0 && (hex || digit_value(*from) < 10);
		     digits++)
			value = (hex ? 16 : 10) * value + digit_value(*from++);
		if (digits && *from == ';' && value > 0 && value < 128) {
			*at = from + 1;
			return (char)value;
		}
	}
	from = *at + (**at == '\\' && (*at)[1]);
	*at = from + 1;
	return *from;
}

static char *text_unescape(const char *text)
{
	char *plain = ocs_strdup(text), *to = plain;

	while (*text)
		if ((*to = escape_take(&text)))
			to++;
	*to = '\0';
	return plain;
}

static bool form_shows(const struct form *form, const char *text)
{
	size_t length = strlen(text);

	for (size_t i = 0; form->piece && i + form->piece <= form->length; i++)
		if (memmem(text, length, form->text + i, form->piece))
			return true;
	return false;
}

/* TEXT in small letters, wiped and freed here. */
static bool forms_show(const struct ocs_withheld *withheld, char *text)
{
	bool shown = false;

	for (char *at = text; *at; at++)
		*at = *at == '-' ? '+' : *at == '_' ? '/' : (char)tolower((unsigned char)*at);
	for (size_t i = 3; i < FORMS; i++)
		shown |= form_shows(&withheld->forms[i], text);
	explicit_bzero(text, strlen(text));
	free(text);
	return shown;
}

static bool view_shows(const struct ocs_withheld *withheld, char *text)
{
	bool shown;
	char *bare;

	for (char *at = text; *at; at++)
		*at = (char)tolower((unsigned char)*at);
	bare = text_bare(text);
	shown = form_shows(&withheld->forms[0], text) || form_shows(&withheld->forms[2], bare) ||
		(withheld->forms[1].length >= PIECE && form_shows(&withheld->forms[1], bare));
	explicit_bzero(bare, strlen(bare));
	free(bare);
	return forms_show(withheld, text) || shown;
}

static bool withheld_shows(const struct ocs_withheld *withheld, const char *text)
{
	return withheld && text &&
	       (view_shows(withheld, ocs_strdup(text)) ||
		view_shows(withheld, text_unescape(text)));
}

void ocs_switch_hear(struct ocs_switch_connection *connection, const char *text)
{
	if (connection->withheld && text)
		ocs_text_add(&connection->withheld->heard, "%s\n", text);
}

void ocs_switch_forget(struct ocs_switch_connection *connection)
{
	struct ocs_text *heard = connection->withheld ? &connection->withheld->heard : NULL;

	if (!heard || !heard->data)
		return;
	explicit_bzero(heard->data, heard->length);
	ocs_text_free(heard);
}

void ocs_switch_notify(struct ocs_switch_connection *connection, const char *text)
{
	char *copy;

	if (!connection->notice)
		return;
	/* "port": what it is about is read again. */
	if (withheld_shows(connection->withheld, text))
		text = "(not shown: it repeats the credentials of this switch; its ports are read again)";
	copy = ocs_text_clean(ocs_strdup(text ? text : ""));
	connection->notice(connection->context, copy);
	free(copy);
}

static const char *result_words(int rc)
{
	switch (rc) {
	case OCS_SWITCH_DENIED:
	case OCS_SWITCH_REFUSED:
		return "refused what it was asked";
	case OCS_SWITCH_REJECTED:
		return "is not as described";
	default:
		return "said what is not understood";
	}
}

int ocs_switch_fail(struct ocs_switch_connection *connection, int rc, struct ocs_error *err)
{
	struct ocs_withheld *withheld = connection->withheld;

	if (rc != OCS_SWITCH_OK) {
		if (withheld && withheld_shows(withheld, withheld->heard.data))
			ocs_error_set(err, err ? err->code : OCS_ERROR,
				      "%s; its words are not shown, as they repeat its credentials",
				      result_words(rc));
		ocs_error_prefix(err, "switch %s", connection->description->name);
		if (err)
			ocs_text_clean(err->text);
	}
	ocs_switch_forget(connection);
	return rc;
}
