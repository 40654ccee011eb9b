/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* What NCCL's parser is, in short: bytes, one at a time; a tag is a name, then for
 * every blank one attribute; anything that is not a known element in a known place
 * is skipped by counting tags.  No prolog, no DOCTYPE, no entities, no tabs, no line
 * ends inside a tag. */

#include "src/nccl/xml.h"

#include <stdlib.h>
#include <string.h>

#include "src/util/text.h"

/* NCCL stores what ends a string before it cuts it off, in 255 bytes: 254 characters
 * before the '=' of an attribute, 253 anywhere else. */
#define STRING_MAX 254

struct reader {
	const char *text;
	size_t length, at;
	int line;
	bool truncated; /* the rest is not read; said so */
	struct ocs_nccl_faults *faults;
	char name[STRING_MAX + 1], value[STRING_MAX + 1];
};

enum tag { TAG_OPEN, TAG_CLOSE, TAG_SINGLE, TAG_END, TAG_SKIP };

#define END (-1)

/* The next byte, or END. */
static int byte_next(struct reader *r)
{
	unsigned char c;

	if (r->at >= r->length)
		return END;
	c = (unsigned char)r->text[r->at++];
	r->line += c == '\n';
	return c;
}

/* The byte that next would return, or END. */
static int byte_peek(const struct reader *r)
{
	return r->at < r->length ? (unsigned char)r->text[r->at] : END;
}

static void fault_fatal(struct reader *r, const char *what, const char *name)
{
	ocs_nccl_fault(r->faults, r->line, OCS_NCCL_FATAL, "%s%s%s", what, *name ? ": " : "", name);
}

static void value_truncated(struct reader *r)
{
	r->truncated = true;
	fault_fatal(r, "the file ends inside a tag or a comment", "");
}

/* Goes on behind the next C; END if there is none. */
static int skip_past(struct reader *r, int c)
{
	int got;

	do {
		got = byte_next(r);
	} while (got != c && got != END);
	return got;
}

static bool ends_token(int c)
{
	return c == ' ' || c == '>' || c == '/' || c == '\n' || c == '\r';
}

/* A name into r->name.  Returns the byte that ended it: '=', blank, '>', '/', a line
 * end; or END. */
static int token_read(struct reader *r)
{
	int length = 0, c;
	bool complained = false;

	for (;;) {
		c = byte_next(r);
		if (c == END || c == '=')
			break;
		if (length == STRING_MAX && !complained) {
			complained = true;
			fault_fatal(r, "a name of more than 253 characters", "");
		}
		if (ends_token(c))
			break;
		if (length < STRING_MAX)
			r->name[length++] = (char)c;
	}
	r->name[length] = '\0';
	return c;
}

/* A value into r->value.  Returns the byte after it, or END. */
static int value_read(struct reader *r)
{
	int length = 0, quote = byte_next(r), c;
	bool complained = false;

	r->value[0] = '\0';
	if (quote == END)
		return END;
	if (quote != '"' && quote != '\'') {
		fault_fatal(r, "a value without quotes; write NAME=\"VALUE\"", r->name);
		for (c = quote; c != END && !ends_token(c); c = byte_next(r))
			if (length < STRING_MAX)
				r->value[length++] = (char)c;
		r->value[length] = '\0';
		return c;
	}
	for (;;) {
		c = byte_next(r);
		if (c == END)
			return END;
		if (length == STRING_MAX && !complained) {
			complained = true;
			fault_fatal(r, "a value of more than 253 characters", r->name);
		}
		if (c == quote)
			break;
		if (length < STRING_MAX)
			r->value[length++] = (char)c;
	}
	r->value[length] = '\0';
	if ((int)strlen(r->value) < length)
		ocs_nccl_fault(r->faults, r->line, OCS_NCCL_MISREAD,
			       "a NUL byte in a value, which ends there for NCCL: %s", r->name);
	return byte_next(r);
}

/* To the end of the comment that starts with r->name and LAST.  False at the end of
 * the file. */
static bool comment_skip(struct reader *r, int last)
{
	char window[4] = "...";
	const char *word = r->name + strlen("!--");
	int c;

	for (; *word; word++) {
		memmove(window, window + 1, 2);
		window[2] = *word;
	}
	for (c = last; c != END; c = byte_next(r)) {
		memmove(window, window + 1, 2);
		window[2] = (char)c;
		if (memcmp(window, "-->", 3) == 0)
			return true;
	}
	return false;
}

static void attribute_add(struct reader *r, struct ocs_nccl_element *element, bool valued)
{
	const char *key = r->name + strspn(r->name, "\t");

	if (key != r->name)
		ocs_nccl_fault(r->faults, r->line, OCS_NCCL_MISREAD,
			       "a tab before attribute %s, "
			       "which NCCL does not find then; write one blank",
			       key);
	if (!valued && *key)
		ocs_nccl_fault(r->faults, r->line, OCS_NCCL_MISREAD,
			       "an attribute without a value: %s", key);
	if (element->nattributes == OCS_NCCL_ATTRIBUTES_MAX) {
		/* a blank before "/>" is no loss */
		if (*key)
			ocs_nccl_fault(r->faults, r->line, OCS_NCCL_MISREAD,
				       "more than 16 "
				       "attributes (two blanks in a row count as one): NCCL "
				       "ignores %s",
				       key);
		return;
	}
	element->attributes[element->nattributes++] =
		(struct ocs_nccl_attribute){ ocs_strdup(key), ocs_strdup(valued ? r->value : "") };
}

/* Behind a value or a name only a blank, '/' or '>' may stand.  C is what does: says
 * so, and returns what the author meant. */
static int separator_check(struct reader *r, struct ocs_nccl_element *element, int c)
{
	if (c == ' ' || c == '/' || c == '>' || c == END)
		return c;
	element->broken = true;
	if (c != '\t' && c != '\n' && c != '\r') {
		ocs_nccl_fault(r->faults, r->line, OCS_NCCL_FATAL,
			       "'%c' where a blank, '/' or '>' "
			       "must follow in a tag",
			       c < 0x20 || c > 0x7e ? '?' : c);
		if (c == '?')
			return skip_past(r, '>');
		r->at--;
		return ' ';
	}
	/* the line where the reading stopped, not the one after it */
	ocs_nccl_fault(
		r->faults, r->line - (c == '\n'), OCS_NCCL_FATAL,
		c == '\t' ?
			"a tab between attributes; NCCL takes one blank" :
			"a line end inside a tag; all attributes go on one line, one blank before each");
	while (byte_peek(r) == ' ' || byte_peek(r) == '\t' || byte_peek(r) == '\n' ||
	       byte_peek(r) == '\r')
		byte_next(r);
	return byte_peek(r) == '>' || byte_peek(r) == '/' ? byte_next(r) : ' ';
}

/* What follows the name of an opening tag; C ended the name. */
static enum tag attributes_read(struct reader *r, struct ocs_nccl_element *element, int c)
{
	enum tag tag = TAG_OPEN;

	element->attributes = ocs_calloc(OCS_NCCL_ATTRIBUTES_MAX, sizeof(*element->attributes));
	c = separator_check(r, element, c);
	while (c == ' ') {
		bool valued = false;

		c = token_read(r);
		if (c == '=') {
			valued = true;
			c = value_read(r);
		}
		if (c == END)
			break;
		attribute_add(r, element, valued);
		c = separator_check(r, element, c);
	}
	if (c == '/') {
		tag = TAG_SINGLE;
		c = token_read(r);
		if (c == '>' && r->name[0])
			ocs_nccl_fault(r->faults, r->line, OCS_NCCL_MISREAD,
				       "text between '/' and '>', which NCCL drops: %s", r->name);
		if (c != '>' && c != END) {
			fault_fatal(r, "'>' must follow '/' at once", element->name);
			c = skip_past(r, '>');
		}
	}
	if (c == END) {
		value_truncated(r);
		return TAG_END;
	}
	return tag;
}

/* What makes NCCL stop at a tag whose name has '=' in it. */
static enum tag name_with_value(struct reader *r, struct ocs_nccl_element *element)
{
	size_t tab = strcspn(r->name, "\t"), length = strlen(r->name);

	if (strncmp(r->name, "!--", 3) == 0) {
		fault_fatal(r, "a comment whose first word holds '='; put a blank after <!--", "");
		if (!comment_skip(r, '='))
			value_truncated(r);
		return TAG_SKIP;
	}
	if (r->name[tab] && length < r->at) {
		fault_fatal(r, "a tab after the name of an element; NCCL takes one blank", "");
		r->at -= length - tab;
		r->name[tab] = '\0';
		element->name = ocs_strdup(r->name);
		element->broken = true;
		return attributes_read(r, element, ' ');
	}
	fault_fatal(r, "'=' in the name of an element", r->name);
	skip_past(r, '>');
	return TAG_SKIP;
}

/* A prolog or DOCTYPE in the way it is usually written: said in one line. */
static bool declaration_skip(struct reader *r, int c)
{
	if (strcmp(r->name, "?xml") != 0 && strcmp(r->name, "!DOCTYPE") != 0)
		return false;
	fault_fatal(r,
		    r->name[0] == '?' ? "an XML prolog; NCCL's files have none, take it out" :
					"a DOCTYPE; NCCL's files have none, take it out",
		    "");
	if (c != '>')
		skip_past(r, '>');
	return true;
}

/* To the next '<', which is consumed.  False at the end of the file. */
static bool tag_find(struct reader *r)
{
	bool complained = false;
	int c;

	while ((c = byte_next(r)) != '<') {
		if (c == END)
			return false;
		if (c == ' ' || c == '\n' || c == '\r' || complained)
			continue;
		complained = true;
		fault_fatal(
			r,
			c == '\t' ?
				"a tab; NCCL takes blanks and line ends only" :
			c == 0xef ?
				"a byte order mark or other text before '<'; save the file as plain "
				"ASCII" :
				"text outside a tag; NCCL expects '<'",
			"");
	}
	return true;
}

/* The next tag; comments are skipped.  ELEMENT is empty before. */
static enum tag tag_read(struct reader *r, struct ocs_nccl_element *element)
{
	int c;

	if (!tag_find(r))
		return TAG_END;
	element->line = r->line;
	c = token_read(r);
	if (c == END) {
		value_truncated(r);
		return TAG_END;
	}
	if (c == '=')
		return name_with_value(r, element);
	if (strncmp(r->name, "!--", 3) == 0) {
		if (!comment_skip(r, c))
			value_truncated(r);
		return TAG_SKIP;
	}
	if (declaration_skip(r, c))
		return TAG_SKIP;
	if (r->name[0] == '\0' && c == '/') {
		c = token_read(r);
		element->name = ocs_strdup(r->name);
		if (c == END) {
			value_truncated(r);
			return TAG_END;
		}
		if (c != '>') {
			fault_fatal(r, "a closing tag is </NAME> without blanks", r->name);
			skip_past(r, '>');
		}
		return TAG_CLOSE;
	}
	element->name = ocs_strdup(r->name);
	return attributes_read(r, element, c);
}

static bool may_hold(enum ocs_nccl_kind kind, const char *parent, const char *child)
{
	static const struct {
		enum ocs_nccl_kind kind;
		const char *parent, *child;
	} grammar[] = {
		{ OCS_NCCL_TOPOLOGY, "", "system" },	{ OCS_NCCL_TOPOLOGY, "system", "cpu" },
		{ OCS_NCCL_TOPOLOGY, "cpu", "pci" },	{ OCS_NCCL_TOPOLOGY, "cpu", "nic" },
		{ OCS_NCCL_TOPOLOGY, "pci", "pci" },	{ OCS_NCCL_TOPOLOGY, "pci", "gpu" },
		{ OCS_NCCL_TOPOLOGY, "pci", "nic" },	{ OCS_NCCL_TOPOLOGY, "pci", "pcilink" },
		{ OCS_NCCL_TOPOLOGY, "gpu", "nvlink" }, { OCS_NCCL_TOPOLOGY, "gpu", "c2c" },
		{ OCS_NCCL_TOPOLOGY, "nic", "net" },	{ OCS_NCCL_GRAPH, "", "graphs" },
		{ OCS_NCCL_GRAPH, "graphs", "graph" },	{ OCS_NCCL_GRAPH, "graph", "channel" },
		{ OCS_NCCL_GRAPH, "channel", "net" },	{ OCS_NCCL_GRAPH, "channel", "gpu" },
	};

	for (size_t i = 0; i < sizeof(grammar) / sizeof(grammar[0]); i++)
		if (grammar[i].kind == kind && strcmp(grammar[i].parent, parent) == 0 &&
		    strcmp(grammar[i].child, child) == 0)
			return true;
	return false;
}

static void element_clear(struct ocs_nccl_element *element)
{
	for (int i = 0; i < element->nattributes; i++) {
		free(element->attributes[i].key);
		free(element->attributes[i].value);
	}
	free(element->attributes);
	free(element->children);
	free(element->name);
}

void ocs_nccl_xml_free(struct ocs_nccl_element *root)
{
	/* without recursion: pci elements nest as deep as the file likes */
	while (root) {
		struct ocs_nccl_element *parent = root->parent;

		if (root->nchildren) {
			root = root->children[--root->nchildren];
			continue;
		}
		element_clear(root);
		free(root);
		root = parent;
	}
}

/* Moves FOUND into the tree below PARENT. */
static struct ocs_nccl_element *element_add(struct ocs_nccl_element *parent,
					    struct ocs_nccl_element *found)
{
	struct ocs_nccl_element *element = ocs_calloc(1, sizeof(*element));

	*element = *found;
	memset(found, 0, sizeof(*found));
	element->parent = parent;
	/* powers of two: room is made when the old is full */
	if ((parent->nchildren & (parent->nchildren - 1)) == 0)
		parent->children = ocs_realloc(
			parent->children, (parent->nchildren ? 2 * (size_t)parent->nchildren : 1) *
						  sizeof(struct ocs_nccl_element *));
	parent->children[parent->nchildren++] = element;
	return element;
}

/* A closing tag inside CURRENT.  Returns the element that is open afterwards. */
static struct ocs_nccl_element *close_tag(struct reader *r, struct ocs_nccl_element *current,
					  const struct ocs_nccl_element *tag)
{
	struct ocs_nccl_element *open = current;

	if (strcmp(current->name, tag->name) == 0)
		return current->parent;
	ocs_nccl_fault(r->faults, tag->line, OCS_NCCL_FATAL,
		       "</%.60s> where <%.60s> of line %d is "
		       "open",
		       tag->name, current->name, current->line);
	while (open->parent && strcmp(open->name, tag->name) != 0)
		open = open->parent;
	return open->parent ? open->parent : current;
}

/* TAG is none that NCCL expects in CURRENT. */
static void tag_misplaced(struct reader *r, enum ocs_nccl_kind kind,
			  const struct ocs_nccl_element *current,
			  const struct ocs_nccl_element *tag)
{
	if (*current->name)
		ocs_nccl_fault(r->faults, tag->line, OCS_NCCL_MISREAD,
			       "<%.60s> inside <%.60s>, where "
			       "NCCL ignores it and all that is in it",
			       tag->name, current->name);
	else
		ocs_nccl_fault(r->faults, tag->line, OCS_NCCL_MISREAD,
			       "<%.60s> is no outermost element "
			       "of NCCL's; write <%s>",
			       tag->name, kind == OCS_NCCL_GRAPH ? "graphs" : "system");
}

/* NCCL's table, or that of CURRENT, is full. */
static bool no_room(struct reader *r, enum ocs_nccl_kind kind, int elements,
		    const struct ocs_nccl_element *current, const struct ocs_nccl_element *tag)
{
	const int most =
		kind == OCS_NCCL_GRAPH ? OCS_NCCL_GRAPH_ELEMENTS_MAX : OCS_NCCL_ELEMENTS_MAX;

	if (elements == most)
		ocs_nccl_fault(r->faults, tag->line, OCS_NCCL_FATAL,
			       "more than %d elements, the most that NCCL reads", most);
	else if (current->nchildren == OCS_NCCL_CHILDREN_MAX)
		ocs_nccl_fault(r->faults, tag->line, OCS_NCCL_FATAL,
			       "more than %d elements inside one, "
			       "the most that NCCL reads",
			       OCS_NCCL_CHILDREN_MAX);
	else
		return false;
	r->truncated = true;
	return true;
}

struct ocs_nccl_element *ocs_nccl_xml_read(const char *text, size_t length, enum ocs_nccl_kind kind,
					   int *elements, struct ocs_nccl_faults *faults)
{
	struct reader *r = ocs_calloc(1, sizeof(*r));
	struct ocs_nccl_element *root = ocs_calloc(1, sizeof(*root)), *current = root, tag;
	int ignored = 0; /* tags open in what NCCL skips */
	enum tag type;

	*r = (struct reader){ .text = text, .length = length, .line = 1, .faults = faults };
	root->name = ocs_strdup("");
	*elements = 0;
	for (;; element_clear(&tag)) {
		memset(&tag, 0, sizeof(tag));
		type = tag_read(r, &tag);
		if (type == TAG_END)
			break;
		if (type == TAG_SKIP)
			continue;
		if (ignored) {
			ignored += type == TAG_OPEN ? 1 : type == TAG_CLOSE ? -1 : 0;
			continue;
		}
		if (type == TAG_CLOSE && current != root) {
			current = close_tag(r, current, &tag);
			continue;
		}
		if (type == TAG_CLOSE && may_hold(kind, "", tag.name)) {
			fault_fatal(r, "a closing tag with nothing open", tag.name);
			continue;
		}
		if (!may_hold(kind, current->name, tag.name)) {
			tag_misplaced(r, kind, current, &tag);
			/* a stray closing tag opens one for NCCL */
			ignored = type != TAG_SINGLE;
			continue;
		}
		if (no_room(r, kind, *elements, current, &tag))
			break;
		++*elements;
		if (type == TAG_OPEN)
			current = element_add(current, &tag);
		else
			element_add(current, &tag);
	}
	element_clear(&tag);
	if (ignored && !r->truncated)
		ocs_nccl_fault(faults, r->line, OCS_NCCL_FATAL,
			       "the file ends inside an element that "
			       "NCCL does not know");
	else if (current != root && !r->truncated)
		ocs_nccl_fault(faults, current->line, OCS_NCCL_FATAL, "<%.60s> is never closed",
			       current->name);
	free(r);
	return root;
}

const char *ocs_nccl_attribute(const struct ocs_nccl_element *element, const char *key)
{
	for (int i = 0; i < element->nattributes; i++)
		if (strcmp(element->attributes[i].key, key) == 0)
			return element->attributes[i].value;
	return NULL;
}
