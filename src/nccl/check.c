/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Reads a topology file the way NCCL does, which is not the way of XML: no prolog,
 * no DOCTYPE, one blank before each attribute, quotes around every value, fixed
 * limits.  Where NCCL would go on with nonsense, this refuses. */

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "src/nccl/topology.h"
#include "src/util/error.h"
#include "src/util/text.h"

#define STRING_MAX 254		/* characters of a name or value */
#define ATTRIBUTES_MAX 16
#define ELEMENTS_MAX 255
#define DEPTH_MAX 64
#define BUSID_LENGTH 12		/* 0000:ab:00.0 */

struct attribute {
	char key[STRING_MAX + 1], value[STRING_MAX + 1];
};

struct element {
	char name[STRING_MAX + 1];
	struct attribute attributes[ATTRIBUTES_MAX];
	int nattributes;
	enum { TAG_OPEN, TAG_CLOSE, TAG_SINGLE, TAG_END } tag;
};

struct parser {
	const char *text;
	size_t at;
	int elements, cpus, depth;
	char busids[ELEMENTS_MAX][BUSID_LENGTH + 1];
	int nbusids;
	struct ocs_error *err;
};

static int fault(struct parser *p, const char *what, const char *detail)
{
	int line = 1;

	for (size_t i = 0; i < p->at && p->text[i]; i++)
		line += p->text[i] == '\n';
	return ocs_error_set(p->err, OCS_USAGE, "byte %zu, line %d: %s%s%.60s", p->at, line,
			     what, *detail ? ": " : "", detail);
}

/* The next character, or -1 with the error set at the end of the text. */
static int next(struct parser *p)
{
	unsigned char c = (unsigned char)p->text[p->at];

	if (!c)
		return fault(p, "the text ends inside an element", "");
	p->at++;
	return c;
}

/* A quoted value and the character after it. */
static int value_read(struct parser *p, char *value, int *last)
{
	int quote = next(p), c, length = 0;

	if (quote < 0)
		return -1;
	if (quote != '"' && quote != '\'')
		return fault(p, "a value must be in quotes", "");
	while ((c = next(p)) != quote) {
		if (c < 0)
			return -1;
		if (length == STRING_MAX)
			return fault(p, "a value is longer than 254 characters", "");
		value[length++] = (char)c;
	}
	value[length] = '\0';
	*last = next(p);
	return *last < 0 ? -1 : 0;
}

/* A name, up to a blank, '>', '/', or the end of the line; with VALUE also
 * NAME="VALUE".  *LAST is the character that ended it.  Returns 1 if there was a
 * value, 0 if not. */
static int token_read(struct parser *p, char *name, char *value, int *last)
{
	int length = 0, c;

	for (;;) {
		c = next(p);
		if (c < 0)
			return -1;
		if (c == '=') {
			name[length] = '\0';
			if (!value)
				return fault(p, "'=' where none may be, as in an XML prolog or the "
						"first word of a comment", name);
			return value_read(p, value, last) < 0 ? -1 : 1;
		}
		if (c == ' ' || c == '>' || c == '/' || c == '\n' || c == '\r')
			break;
		if (c == '\t')
			return fault(p, "a tab; NCCL takes blanks only", "");
		if (length == STRING_MAX)
			return fault(p, "a name is longer than 254 characters", "");
		name[length++] = (char)c;
	}
	name[length] = '\0';
	*last = c;
	return 0;
}

/* To the end of a comment whose first word is WORD, ended by LAST. */
static int comment_skip(struct parser *p, const char *word, int last)
{
	char window[4] = "...";
	size_t i = 0, length = strlen(word);

	for (;;) {
		int c = i < length ? word[i] : i == length ? last : next(p);

		if (c < 0)
			return -1;
		i++;
		memmove(window, window + 1, 2);
		window[2] = (char)c;
		if (i > length && strcmp(window, "-->") == 0)
			return 0;
	}
}

static int attributes_read(struct parser *p, struct element *element, int *last)
{
	while (*last == ' ') {
		struct attribute *attribute = &element->attributes[element->nattributes];
		int rc;

		if (element->nattributes == ATTRIBUTES_MAX)
			return fault(p, "more than 16 attributes", element->name);
		rc = token_read(p, attribute->key, attribute->value, last);
		if (rc < 0)
			return -1;
		/* a blank before "/>" makes NCCL see one without a name */
		if (rc == 0 && attribute->key[0])
			return fault(p, "an attribute without a value", attribute->key);
		element->nattributes++;
	}
	return 0;
}

static int element_read(struct parser *p, struct element *element)
{
	int c;

	for (;;) {
		memset(element, 0, sizeof(*element));
		while (p->text[p->at] == ' ' || p->text[p->at] == '\n' || p->text[p->at] == '\r')
			p->at++;
		if (!p->text[p->at]) {
			element->tag = TAG_END;
			return 0;
		}
		if (p->text[p->at] != '<')
			return fault(p, p->text[p->at] == '\t' ? "a tab; NCCL takes blanks only" :
								 "expected '<'", "");
		p->at++;
		if (token_read(p, element->name, NULL, &c) < 0)
			return -1;
		if (strncmp(element->name, "!--", 3) != 0)
			break;
		if (comment_skip(p, element->name + 3, c) < 0)
			return -1;
	}
	if (element->name[0] == '\0' && c == '/') {
		element->tag = TAG_CLOSE;
		if (token_read(p, element->name, NULL, &c) < 0)
			return -1;
		return c == '>' ? 0 : fault(p, "expected '>' after the name of a closing tag",
					    element->name);
	}
	element->tag = TAG_OPEN;
	if (attributes_read(p, element, &c) < 0)
		return -1;
	if (c == '/') {
		char rest[STRING_MAX + 1];

		element->tag = TAG_SINGLE;
		if (token_read(p, rest, NULL, &c) < 0)
			return -1;
	}
	if (c != '>')
		return fault(p, c == '\n' || c == '\r' ? "an attribute on a new line" : "expected '>'",
			     element->name);
	return 0;
}

static const char *attribute_get(const struct element *element, const char *key)
{
	for (int i = 0; i < element->nattributes; i++)
		if (strcmp(element->attributes[i].key, key) == 0)
			return element->attributes[i].value;
	return NULL;
}

/* A whole number, decimal or 0x. */
static bool number(const char *text)
{
	char *end;

	if (!text || !*text || isspace((unsigned char)*text))
		return false;
	strtol(text, &end, 0);
	return *end == '\0';
}

static int cpu_check(struct parser *p, const struct element *element)
{
	const char *arch = attribute_get(element, "arch");
	const char *vendor = attribute_get(element, "vendor");

	p->cpus++;
	if (!number(attribute_get(element, "numaid")))
		return fault(p, "a cpu needs a numaid, a number", "");
	if (!arch || (strcmp(arch, "x86_64") != 0 && strcmp(arch, "arm64") != 0 &&
		      strcmp(arch, "ppc64") != 0))
		return fault(p, "a cpu needs arch x86_64, arm64 or ppc64", arch ? arch : "");
	if (strcmp(arch, "x86_64") != 0)
		return 0;
	if (!vendor || !*vendor)
		return fault(p, "an x86_64 cpu needs a vendor", "");
	if (!number(attribute_get(element, "familyid")) ||
	    !number(attribute_get(element, "modelid")))
		return fault(p, "an x86_64 cpu needs familyid and modelid, numbers", "");
	return 0;
}

static bool busid_valid(const char *busid)
{
	static const char form[] = "hhhh:hh:hh.h";

	if (strlen(busid) != BUSID_LENGTH)
		return false;
	for (int i = 0; i < BUSID_LENGTH; i++)
		if (form[i] == 'h' ? !(isdigit((unsigned char)busid[i]) ||
				       (busid[i] >= 'a' && busid[i] <= 'f')) :
				     busid[i] != form[i])
			return false;
	return true;
}

static int pci_check(struct parser *p, const struct element *element)
{
	const char *busid = attribute_get(element, "busid");
	const char *class = attribute_get(element, "class");

	if (!busid || !busid_valid(busid))
		return fault(p, "a pci needs a busid like 0000:ab:00.0, in lower case",
			     busid ? busid : "");
	for (int i = 0; i < p->nbusids; i++)
		if (strcmp(p->busids[i], busid) == 0)
			return fault(p, "a busid occurs twice", busid);
	strcpy(p->busids[p->nbusids++], busid);
	if (!class || strncmp(class, "0x", 2) != 0 || !number(class))
		return fault(p, "a pci needs a class like 0x060400", busid);
	if (!number(attribute_get(element, "link_width")))
		return fault(p, "a pci needs a link_width, a number", busid);
	if (!attribute_get(element, "link_speed"))
		return fault(p, "a pci needs a link_speed", busid);
	return 0;
}

static int element_check(struct parser *p, const struct element *element)
{
	const char *speed;

	if (++p->elements > ELEMENTS_MAX)
		return fault(p, "more than 255 elements", "");
	if (strcmp(element->name, "system") == 0) {
		const char *version = attribute_get(element, "version");

		if (!number(version) || strtol(version, NULL, 0) != 1)
			return fault(p, "system needs version=\"1\"", "");
	} else if (strcmp(element->name, "cpu") == 0) {
		return cpu_check(p, element);
	} else if (strcmp(element->name, "pci") == 0) {
		return pci_check(p, element);
	} else if (strcmp(element->name, "net") == 0) {
		speed = attribute_get(element, "speed");
		if (!attribute_get(element, "name"))
			return fault(p, "a net needs a name", "");
		if (!number(speed))
			return fault(p, "a net needs a speed in Mb/s", "");
	}
	return 0;
}

static bool may_hold(const char *parent, const char *child)
{
	static const struct {
		const char *parent, *child;
	} grammar[] = {
		{ "", "system" },   { "system", "cpu" },  { "cpu", "pci" },  { "cpu", "nic" },
		{ "pci", "pci" },   { "pci", "gpu" },	  { "pci", "nic" },  { "pci", "pcilink" },
		{ "gpu", "nvlink" }, { "gpu", "c2c" },	  { "nic", "net" },
	};

	for (size_t i = 0; i < sizeof(grammar) / sizeof(grammar[0]); i++)
		if (strcmp(grammar[i].parent, parent) == 0 && strcmp(grammar[i].child, child) == 0)
			return true;
	return false;
}

/* The elements inside PARENT, to its closing tag ("": to the end of the text). */
static int content_check(struct parser *p, const char *parent)
{
	struct element *element = ocs_calloc(1, sizeof(*element));
	int rc = 0;

	if (++p->depth > DEPTH_MAX)
		rc = fault(p, "elements nested too deep", parent);
	while (rc == 0) {
		rc = element_read(p, element);
		if (rc < 0)
			break;
		if (element->tag == TAG_END || element->tag == TAG_CLOSE) {
			if (element->tag == TAG_END ? *parent : strcmp(element->name, parent))
				rc = fault(p, element->tag == TAG_END ? "never closed" :
						"a closing tag that does not match the open one",
					   element->tag == TAG_END ? parent : element->name);
			break;
		}
		if (!may_hold(parent, element->name) || (!*parent && p->elements))
			rc = fault(p, *parent ? "an element NCCL does not expect here" :
						"expected one system element", element->name);
		else
			rc = element_check(p, element);
		if (rc == 0 && element->tag == TAG_OPEN)
			rc = content_check(p, element->name);
	}
	p->depth--;
	free(element);
	return rc;
}

int ocs_nccl_topology_check(const char *text, struct ocs_error *err)
{
	struct parser *p = ocs_calloc(1, sizeof(*p));
	int rc;

	p->text = text;
	p->err = err;
	rc = content_check(p, "");
	if (rc == 0 && p->elements == 0)
		rc = fault(p, "no system element", "");
	if (rc == 0 && p->cpus == 0)
		rc = fault(p, "a system without a cpu", "");
	free(p);
	return rc;
}
