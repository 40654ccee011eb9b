/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/fold/shape.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "src/util/error.h"
#include "src/util/text.h"

/* More than any machine; keeps every product and node count within an int. */
#define XPUS_MAX (1L << 30)

#define TWISTED "_twisted"
#define LIKE "write it like 4x4x2"
#define LIKE_NAMED "write it like pp:3,dp:2,tp:8"

/* TEXT as it may appear in a message: short, one line, printable. */
static const char *text_shown(const char *text, size_t length, char buffer[48])
{
	size_t i;

	for (i = 0; i < length && i < 40; i++)
		buffer[i] = isprint((unsigned char)text[i]) ? text[i] : '?';
	buffer[i] = '\0';
	if (i < length)
		strcpy(buffer + i, "...");
	return buffer;
}

/* One extent, TEXT[0..LENGTH). */
static int extent_parse(const char *text, size_t length, const char *whole, int dim, int *extent,
			struct ocs_error *err)
{
	char word[48];
	long value = 0;
	size_t i;

	if (!length)
		return ocs_error_set(err, OCS_USAGE,
				     "%s: the extent of dimension %d is missing; " LIKE, whole,
				     dim + 1);
	text_shown(text, length, word);
	if (text[0] == '-' && length > 1 && isdigit((unsigned char)text[1]))
		return ocs_error_set(err, OCS_USAGE,
				     "%s: extent %s is negative; extents are at "
				     "least 1, " LIKE,
				     whole, word);
	for (i = 0; i < length; i++) {
		if (!isdigit((unsigned char)text[i]))
			return ocs_error_set(err, OCS_USAGE, "%s: '%s' is not a number; " LIKE,
					     whole, word);
	}
	for (i = 0; i < length; i++) {
		value = value * 10 + (text[i] - '0');
		if (value > OCS_SHAPE_EXTENT_MAX)
			return ocs_error_set(err, OCS_USAGE,
					     "%s: extent %s is too large; the "
					     "largest is %d",
					     whole, word, OCS_SHAPE_EXTENT_MAX);
	}
	if (!value)
		return ocs_error_set(err, OCS_USAGE,
				     "%s: extent 0 in dimension %d; extents are "
				     "at least 1, " LIKE,
				     whole, dim + 1);
	*extent = (int)value;
	return 0;
}

/* Between extents: 4X4 means 4x4, and is written so from there on. */
static bool is_between(char c)
{
	return c == 'x' || c == 'X';
}

/* Takes "NAME:" or, for the stages, "NAME+:" off *TEXT[0..*LENGTH). */
static int name_parse(const char **text, size_t *length, const char *whole, int dim,
		      struct ocs_shape *shape, struct ocs_error *err)
{
	const char *colon = memchr(*text, ':', *length);
	size_t i, letters = colon ? (size_t)(colon - *text) : 0;
	char word[48];

	if (!colon)
		return ocs_error_set(
			err, OCS_USAGE,
			"%s: '%s' has no name; all dimensions have one or none, " LIKE_NAMED, whole,
			text_shown(*text, *length, word));
	text_shown(*text, letters, word);
	if (letters > 1 && colon[-1] == '+') {
		if (shape->marked)
			return ocs_error_set(
				err, OCS_USAGE,
				"%s: two dimensions are marked with +; only one can be that of the pipeline stages",
				whole);
		shape->marked = dim + 1;
		letters--;
	}
	for (i = 0; i < letters && isalnum((unsigned char)(*text)[i]); i++)
		;
	if (!letters || letters > OCS_SHAPE_NAME || i < letters || !isalpha((unsigned char)**text))
		return ocs_error_set(
			err, OCS_USAGE,
			"%s: '%s' cannot be the name of a dimension: a letter, then letters and digits, %d at most; " LIKE_NAMED,
			whole, word, OCS_SHAPE_NAME);
	if (dim < OCS_SHAPE_DIMS) {
		memcpy(shape->name[dim], *text, letters);
		shape->name[dim][letters] = '\0';
	}
	for (int other = 0; other < dim && dim < OCS_SHAPE_DIMS; other++)
		if (!strcasecmp(shape->name[other], shape->name[dim]))
			return ocs_error_set(
				err, OCS_USAGE,
				"%s: two dimensions are called %s; give each its own name", whole,
				shape->name[dim]);
	*length -= (size_t)(colon + 1 - *text);
	*text = colon + 1;
	return 0;
}

static int extents_parse(const char *text, size_t length, const char *whole,
			 struct ocs_shape *shape, struct ocs_error *err)
{
	const char *end = text + length, *next;
	bool named = memchr(text, ':', length);
	int ndim = 1, i;
	const char *p;

	for (p = text; p < end; p++)
		ndim += named ? *p == ',' : is_between(*p);
	shape->ndim = ndim;
	shape->xpus = 1;
	for (i = 0; i < ndim; i++, text = next + 1) {
		size_t letters;
		int extent = 0;

		for (next = text; next < end && (named ? *next != ',' : !is_between(*next)); next++)
			;
		letters = (size_t)(next - text);
		if (named && name_parse(&text, &letters, whole, i, shape, err))
			return -1;
		if (extent_parse(text, letters, whole, i, &extent, err))
			return -1;
		if (i >= OCS_SHAPE_DIMS)
			continue;
		shape->extent[i] = extent;
		if (shape->xpus > XPUS_MAX / extent)
			return ocs_error_set(err, OCS_USAGE,
					     "%s: more than %ld XPUs; no machine is "
					     "that large",
					     whole, XPUS_MAX);
		shape->xpus *= extent;
	}
	if (ndim > OCS_SHAPE_DIMS)
		return ocs_error_set(err, OCS_USAGE,
				     "%s: %d dimensions; at most %d are possible, " LIKE, whole,
				     ndim, OCS_SHAPE_DIMS);
	return 0;
}

static int conn_parse(const char *conn, struct ocs_shape *shape, struct ocs_error *err)
{
	const char *p = conn;
	char word[48];
	int i = 0;

	while (true) {
		size_t length = strcspn(p, ",");
		bool mesh = length == 4 && !memcmp(p, "mesh", 4);

		if (!mesh && !(length == 5 && !memcmp(p, "torus", 5)))
			return ocs_error_set(err, OCS_USAGE,
					     "connection type '%s' is unknown; write "
					     "torus, mesh or one of them per dimension, like "
					     "torus,torus,mesh",
					     text_shown(p, length, word));
		if (i < shape->ndim)
			shape->mesh[i] = mesh;
		i++;
		if (!p[length])
			break;
		p += length + 1;
	}
	if (i == 1) {
		for (; i < shape->ndim; i++)
			shape->mesh[i] = shape->mesh[0];
		return 0;
	}
	if (i != shape->ndim)
		return ocs_error_set(err, OCS_USAGE,
				     "%d connection types for %d dimensions; give one "
				     "for all or one per dimension, like torus,torus,mesh",
				     i, shape->ndim);
	return 0;
}

/* kxkx2k and kx2kx2k in any order: the twists that TPU pods admit. */
static bool twist_known(const struct ocs_shape *shape)
{
	int low = shape->extent[0], twice = 0, i;

	if (shape->ndim != 3)
		return false;
	for (i = 1; i < 3; i++)
		low = shape->extent[i] < low ? shape->extent[i] : low;
	for (i = 0; i < 3; i++) {
		if (shape->mesh[i])
			return false;
		if (shape->extent[i] == 2 * low)
			twice++;
		else if (shape->extent[i] != low)
			return false;
	}
	return low >= 2 && twice >= 1 && twice <= 2;
}

int ocs_shape_parse(const char *text, const char *conn, struct ocs_shape *shape,
		    struct ocs_error *err)
{
	struct ocs_shape parsed = { 0 };
	size_t length = strlen(text), suffix = strlen(TWISTED);
	char whole[48];

	if (!length)
		return ocs_error_set(err, OCS_USAGE, "the shape is empty; " LIKE);
	text_shown(text, length, whole);
	if (length > suffix && !strcmp(text + length - suffix, TWISTED)) {
		parsed.twisted = true;
		length -= suffix;
	}
	if (extents_parse(text, length, whole, &parsed, err))
		return -1;
	if (conn && conn_parse(conn, &parsed, err))
		return -1;
	for (int i = 0; parsed.twisted && i < parsed.ndim && i < OCS_SHAPE_DIMS; i++) {
		if (parsed.mesh[i])
			return ocs_error_set(err, OCS_USAGE,
					     "%s: a twisted torus has rings in every "
					     "dimension; leave mesh out",
					     whole);
	}
	if (parsed.twisted && !twist_known(&parsed))
		return ocs_error_set(err, OCS_USAGE,
				     "%s: only tori of the forms kxkx2k and kx2kx2k "
				     "can be twisted, like 4x4x8" TWISTED,
				     whole);
	*shape = parsed;
	return 0;
}

char *ocs_shape_format(const struct ocs_shape *shape, char *buffer)
{
	int used = 0, i;

	for (i = 0; i < shape->ndim; i++)
		used += snprintf(buffer + used, (size_t)(OCS_SHAPE_TEXT - used), "%s%d",
				 i ? "x" : "", shape->extent[i]);
	if (shape->twisted)
		snprintf(buffer + used, (size_t)(OCS_SHAPE_TEXT - used), TWISTED);
	return buffer;
}

bool ocs_shape_named(const struct ocs_shape *shape)
{
	return shape->ndim > 0 && shape->name[0][0];
}

char *ocs_shape_named_format(const struct ocs_shape *shape, char *buffer)
{
	int used = 0, i;

	if (!ocs_shape_named(shape))
		return ocs_shape_format(shape, buffer);
	for (i = 0; i < shape->ndim; i++)
		used += snprintf(buffer + used, (size_t)(OCS_SHAPE_TEXT - used), "%s%s%s:%d",
				 i ? "," : "", shape->name[i], shape->marked == i + 1 ? "+" : "",
				 shape->extent[i]);
	if (shape->twisted)
		snprintf(buffer + used, (size_t)(OCS_SHAPE_TEXT - used), TWISTED);
	return buffer;
}

void ocs_shape_names_copy(const struct ocs_shape *from, struct ocs_shape *to)
{
	memcpy(to->name, from->name, sizeof(to->name));
	to->marked = from->marked;
}

int ocs_shape_stages(const struct ocs_shape *shape)
{
	if (shape->marked)
		return shape->marked - 1;
	for (int i = 0; i < shape->ndim; i++)
		if (!strcasecmp(shape->name[i], "pp"))
			return i;
	return -1;
}

int ocs_shape_experts(const struct ocs_shape *shape)
{
	for (int i = 0; i < shape->ndim; i++)
		if (!strcasecmp(shape->name[i], "ep"))
			return i;
	return -1;
}

char *ocs_shape_conn_format(const struct ocs_shape *shape, char *buffer)
{
	int used = 0, i;

	for (i = 0; i < shape->ndim; i++)
		used += snprintf(buffer + used, (size_t)(OCS_SHAPE_TEXT - used), "%s%s",
				 i ? "," : "", shape->mesh[i] ? "mesh" : "torus");
	return buffer;
}

static int extent_shortest(const struct ocs_shape *shape)
{
	int low = shape->extent[0], i;

	for (i = 1; i < shape->ndim; i++)
		low = shape->extent[i] < low ? shape->extent[i] : low;
	return low;
}

bool ocs_shape_shifts(const struct ocs_shape *shape, int dim)
{
	return shape->twisted && shape->extent[dim] == extent_shortest(shape);
}

int ocs_shape_shift(const struct ocs_shape *shape, int dim, int other)
{
	int low = extent_shortest(shape);

	return ocs_shape_shifts(shape, dim) && shape->extent[other] != low ? low : 0;
}

bool ocs_shape_same(const struct ocs_shape *a, const struct ocs_shape *b)
{
	return a->ndim == b->ndim && a->no_rotate == b->no_rotate && a->no_fold == b->no_fold &&
	       a->twisted == b->twisted &&
	       !memcmp(a->extent, b->extent, sizeof(a->extent[0]) * (size_t)a->ndim) &&
	       !memcmp(a->mesh, b->mesh, sizeof(a->mesh[0]) * (size_t)a->ndim);
}

long ocs_shape_rank(const struct ocs_shape *shape, const int *coord)
{
	long rank = 0;
	int i;

	for (i = 0; i < shape->ndim; i++)
		rank = rank * shape->extent[i] + coord[i];
	return rank;
}

void ocs_shape_coord(const struct ocs_shape *shape, long rank, int *coord)
{
	int i;

	for (i = shape->ndim - 1; i >= 0; i--) {
		coord[i] = (int)(rank % shape->extent[i]);
		rank /= shape->extent[i];
	}
}

char *ocs_shape_extra_format(const struct ocs_shape *shape)
{
	char extents[OCS_SHAPE_TEXT], conn[OCS_SHAPE_TEXT];
	char moe[OCS_MOE_WISH_TEXT];
	bool mesh = false;
	int i;

	for (i = 0; i < shape->ndim; i++)
		mesh |= shape->mesh[i];
	ocs_shape_named_format(shape, extents);
	ocs_shape_conn_format(shape, conn);
	return ocs_asprintf("shape=%s%s%s%s%s%s%s%s%s", extents, mesh ? " conn=" : "",
			    mesh ? conn : "", shape->no_rotate ? " no-rotate" : "",
			    shape->no_fold ? " no-fold" : "", shape->phases ? " phases=" : "",
			    shape->phases ? ocs_phases_name(shape->phases) : "",
			    shape->moe ? " moe=" : "",
			    shape->moe ? ocs_moe_wish_format(shape->moe, moe) : "");
}

const char *ocs_phases_name(enum ocs_phases phases)
{
	static const char *const names[] = { "off", "provisioned", "on-demand" };

	return names[phases];
}

int ocs_phases_parse(const char *text, enum ocs_phases *phases, struct ocs_error *err)
{
	char word[48];

	for (int i = OCS_PHASES_OFF; i <= OCS_PHASES_ON_DEMAND; i++)
		if (!strcmp(text, ocs_phases_name(i))) {
			*phases = i;
			return 0;
		}
	return ocs_error_set(err, OCS_USAGE,
			     "--ocs-phases=%s is unknown; write provisioned, on-demand or off",
			     text_shown(text, strlen(text), word));
}

static const struct {
	const char *word;
	int wish;
} moe_words[] = {
	{ "follow", OCS_MOE_WISH },
	{ "static", OCS_MOE_WISH | OCS_MOE_WISH_STATIC },
	{ "no-predict", OCS_MOE_WISH_NO_PREDICT },
	{ "no-relay", OCS_MOE_WISH_NO_RELAY },
	{ "balanced", OCS_MOE_WISH_BALANCED },
};

#define MOE_WORDS (sizeof(moe_words) / sizeof(*moe_words))

char *ocs_moe_wish_format(int wish, char *buffer)
{
	strcpy(buffer, moe_words[wish & OCS_MOE_WISH_STATIC ? 1 : 0].word);
	for (size_t i = 2; i < MOE_WORDS; i++)
		if (wish & moe_words[i].wish) {
			strcat(buffer, ",");
			strcat(buffer, moe_words[i].word);
		}
	return buffer;
}

int ocs_moe_wish_parse(const char *text, int *wish, struct ocs_error *err)
{
	bool named[MOE_WORDS] = { false };
	char word[48];

	*wish = OCS_MOE_WISH;
	while (text && *text) {
		size_t length = strcspn(text, ","), i = 0;

		while (i < MOE_WORDS && (strlen(moe_words[i].word) != length ||
					 memcmp(moe_words[i].word, text, length) != 0))
			i++;
		if (i == MOE_WORDS || named[i] || (i < 2 && named[1 - i]))
			return ocs_error_set(
				err, OCS_USAGE,
				"--ocs-moe: \"%s\" %s; write follow or static, and behind it no-predict, no-relay or balanced, with commas",
				text_shown(text, length, word),
				i == MOE_WORDS ? "is unknown" :
						 "does not go with what stands before it");
		named[i] = true;
		*wish |= moe_words[i].wish;
		text += length + (text[length] == ',');
	}
	return 0;
}

#define BLANKS " \t\r\n"

/* A word of a job's Extra into BUFFER; false if it is too long to be one of ours. */
static bool word_copy(const char *word, size_t length, char buffer[OCS_SHAPE_TEXT])
{
	if (length >= OCS_SHAPE_TEXT)
		return false;
	memcpy(buffer, word, length);
	buffer[length] = '\0';
	return true;
}

int ocs_shape_extra_parse(const char *extra, struct ocs_shape *shape, struct ocs_error *err)
{
	char extents[OCS_SHAPE_TEXT] = "", conn[OCS_SHAPE_TEXT] = "", phases[OCS_SHAPE_TEXT] = "";
	char moe[OCS_SHAPE_TEXT] = "";
	bool found = false, no_rotate = false, no_fold = false;
	struct ocs_shape parsed;
	size_t length;
	const char *p;

	/* Options follow their shape, so each shape= starts afresh. */
	for (p = extra ? extra : ""; *(p += strspn(p, BLANKS)); p += length) {
		length = strcspn(p, BLANKS);
		if (length >= 6 && !memcmp(p, "shape=", 6)) {
			found = true;
			no_rotate = no_fold = false;
			conn[0] = phases[0] = moe[0] = '\0';
			if (!word_copy(p + 6, length - 6, extents))
				return ocs_error_set(err, OCS_USAGE,
						     "the word shape= of Extra is too "
						     "long to be a shape; " LIKE);
		} else if (length >= 5 && !memcmp(p, "conn=", 5)) {
			if (found && !word_copy(p + 5, length - 5, conn))
				return ocs_error_set(err, OCS_USAGE,
						     "the word conn= of Extra is too "
						     "long to be a connection type");
		} else if (length >= 7 && !memcmp(p, "phases=", 7)) {
			if (found && !word_copy(p + 7, length - 7, phases))
				return ocs_error_set(err, OCS_USAGE,
						     "the word phases= of Extra is too "
						     "long to be a mode");
		} else if (length >= 4 && !memcmp(p, "moe=", 4)) {
			if (found && !word_copy(p + 4, length - 4, moe))
				return ocs_error_set(err, OCS_USAGE,
						     "the word moe= of Extra is too "
						     "long to be one of --ocs-moe");
		} else if (length == 9 && !memcmp(p, "no-rotate", 9)) {
			no_rotate = true;
		} else if (length == 7 && !memcmp(p, "no-fold", 7)) {
			no_fold = true;
		}
	}
	if (!found)
		return 0;
	if (ocs_shape_parse(extents, conn[0] ? conn : NULL, &parsed, err) ||
	    (phases[0] && ocs_phases_parse(phases, &parsed.phases, err)) ||
	    (moe[0] && ocs_moe_wish_parse(moe, &parsed.moe, err)))
		return -1;
	*shape = parsed;
	shape->no_rotate = no_rotate;
	shape->no_fold = no_fold;
	return 1;
}
