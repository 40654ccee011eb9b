/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "src/ocsctl/slurm/slurm_conf.h"
#include "src/util/error.h"
#include "src/util/text.h"

#define READ_LIMIT (64u << 20)
#define DEPTH_MAX 8 /* of files that include files */

static int read_file(struct ocs_slurm_conf *conf, const char *path, int depth,
		     struct ocs_error *err);

static void add_pair(struct ocs_slurm_line *line, const char *key, size_t length, const char *value,
		     size_t value_length)
{
	line->keys = ocs_realloc(line->keys, (line->count + 1) * sizeof(*line->keys));
	line->values = ocs_realloc(line->values, (line->count + 1) * sizeof(*line->values));
	line->keys[line->count] = ocs_asprintf("%.*s", (int)length, key);
	line->values[line->count++] = ocs_asprintf("%.*s", (int)value_length, value);
}

static void free_line(struct ocs_slurm_line *line)
{
	for (size_t i = 0; i < line->count; i++) {
		free(line->keys[i]);
		free(line->values[i]);
	}
	free(line->keys);
	free(line->values);
}

/* TEXT without its comment and the blanks before it; \# is a plain one. */
static void text_strip(char *text)
{
	char *in = text, *out = text;

	for (; *in && *in != '#'; in++) {
		if (in[0] == '\\' && in[1] == '#')
			in++;
		*out++ = *in;
	}
	while (out > text && isspace((unsigned char)out[-1]))
		out--;
	*out = '\0';
}

static int pairs_parse(struct ocs_slurm_line *line, const char *text, struct ocs_error *err)
{
	while (*text) {
		const char *key = text, *value;
		size_t length, value_length;

		length = strcspn(text, "= \t");
		text += length;
		if (length && (key[length - 1] == '+' || key[length - 1] == '-'))
			length--; /* Key+=value */
		text += strspn(text, " \t");
		if (!length || *text != '=')
			return ocs_error_set(err, OCS_USAGE, "%s:%d: '%.*s' is not Key=Value",
					     line->file, line->number, (int)strcspn(key, " \t"),
					     key);
		text++;
		text += strspn(text, " \t");
		if (*text == '"') {
			value = ++text;
			value_length = strcspn(text, "\"");
			text += value_length;
			if (*text != '"')
				return ocs_error_set(err, OCS_USAGE,
						     "%s:%d: the quote after %.*s="
						     " is not closed",
						     line->file, line->number, (int)length, key);
			text++;
		} else {
			value = text;
			value_length = strcspn(text, " \t");
			text += value_length;
		}
		add_pair(line, key, length, value, value_length);
		text += strspn(text, " \t");
	}
	return 0;
}

/* The file that an Include names: relative to slurm.conf's folder, %c the cluster. */
static char *file_included(const struct ocs_slurm_conf *conf, const char *name)
{
	const char *slash = strrchr(conf->path, '/');
	const char *cluster = ocs_slurm_conf_value(conf, "ClusterName", NULL);
	struct ocs_text path = { 0 };

	if (*name != '/' && slash)
		ocs_text_add(&path, "%.*s", (int)(slash - conf->path + 1), conf->path);
	for (; *name; name++) {
		if (name[0] == '%' && name[1] == 'c') {
			ocs_text_add(&path, "%s", cluster ? cluster : "");
			name++;
		} else {
			ocs_text_add(&path, "%c", *name);
		}
	}
	return ocs_text_take(&path);
}

static int one_line(struct ocs_slurm_conf *conf, char *text, const char *file, int number,
		    int depth, struct ocs_error *err)
{
	struct ocs_slurm_line line = { .file = file, .number = number };
	int rc;

	text_strip(text);
	text += strspn(text, " \t\r");
	if (!*text)
		return 0;
	if (!strncasecmp(text, "include", 7) && isspace((unsigned char)text[7])) {
		char *path = file_included(conf, text + 7 + strspn(text + 7, " \t"));

		rc = read_file(conf, path, depth + 1, err);
		if (rc)
			ocs_error_prefix(err, "%s:%d", file, number);
		free(path);
		return rc;
	}
	if (pairs_parse(&line, text, err)) {
		free_line(&line);
		return -1;
	}
	conf->lines = ocs_realloc(conf->lines, (conf->count + 1) * sizeof(line));
	conf->lines[conf->count++] = line;
	return 0;
}

static int read_file(struct ocs_slurm_conf *conf, const char *path, int depth,
		     struct ocs_error *err)
{
	struct ocs_text joined = { 0 };
	int number = 0, first = 0, rc = 0;
	char *text, *next, *file;

	if (depth > DEPTH_MAX)
		return ocs_error_set(err, OCS_USAGE, "files include each other more than %d deep",
				     DEPTH_MAX);
	text = ocs_file_read(path, READ_LIMIT, NULL, err);
	if (!text)
		return -1;
	file = ocs_strdup(path);
	conf->files = ocs_realloc(conf->files, (conf->nfiles + 1) * sizeof(*conf->files));
	conf->files[conf->nfiles++] = file;
	for (char *at = text; at && !rc; at = next) {
		size_t length;

		next = strchr(at, '\n');
		if (next)
			*next++ = '\0';
		number++;
		if (!joined.length)
			first = number;
		length = strlen(at);
		if (length && at[length - 1] == '\r')
			at[--length] = '\0';
		if (length && at[length - 1] == '\\' && next) {
			at[length - 1] = '\0';
			ocs_text_add(&joined, "%s ", at);
			continue;
		}
		ocs_text_add(&joined, "%s", at);
		if (joined.data)
			rc = one_line(conf, joined.data, file, first, depth, err);
		ocs_text_free(&joined);
	}
	ocs_text_free(&joined);
	free(text);
	return rc;
}

struct ocs_slurm_conf *ocs_slurm_conf_read(const char *path, struct ocs_error *err)
{
	struct ocs_slurm_conf *conf = ocs_calloc(1, sizeof(*conf));

	conf->path = ocs_strdup(path);
	if (read_file(conf, path, 0, err)) {
		ocs_slurm_conf_destroy(conf);
		return NULL;
	}
	return conf;
}

void ocs_slurm_conf_destroy(struct ocs_slurm_conf *conf)
{
	if (!conf)
		return;
	for (size_t i = 0; i < conf->count; i++)
		free_line(&conf->lines[i]);
	for (size_t i = 0; i < conf->nfiles; i++)
		free(conf->files[i]);
	free(conf->lines);
	free(conf->files);
	free(conf->path);
	free(conf);
}

const char *ocs_slurm_line_value(const struct ocs_slurm_line *line, const char *key)
{
	for (size_t i = line->count; i-- > 0;)
		if (!strcasecmp(line->keys[i], key))
			return line->values[i];
	return NULL;
}

const char *ocs_slurm_conf_value(const struct ocs_slurm_conf *conf, const char *key,
				 const struct ocs_slurm_line **line)
{
	for (size_t i = conf->count; i-- > 0;) {
		const char *value = ocs_slurm_line_value(&conf->lines[i], key);

		if (!value)
			continue;
		if (line)
			*line = &conf->lines[i];
		return value;
	}
	if (line)
		*line = NULL;
	return NULL;
}

bool ocs_slurm_list_has(const char *list, const char *word)
{
	size_t length = strlen(word);

	while (list && *list) {
		if (!strncasecmp(list, word, length) && strchr(",=: ", list[length]))
			return true;
		list += strcspn(list, ",");
		list += *list == ',';
	}
	return false;
}
