/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_CONFIG_DOCUMENT_H
#define OCS_CONFIG_DOCUMENT_H

/* Reading a YAML document strictly: every refusal says FILE:LINE. */

#include <stdbool.h>
#include <stddef.h>
#include <yaml.h>

struct ocs_error;

struct ocs_yaml {
	yaml_document_t document;
	const char *source;
	struct ocs_error *err;
};

/* A key a mapping may have. */
struct ocs_field {
	const char *name;
	bool required;
	yaml_node_t *node; /* its value, NULL if absent */
};

/* Parses exactly one document.  Returns 0 (then ocs_yaml_close), or -1 with ERR. */
int ocs_yaml_open(struct ocs_yaml *yaml, const char *text, size_t length, const char *source,
		  struct ocs_error *err);
void ocs_yaml_close(struct ocs_yaml *yaml);

/* "FILE:LINE: ..." of NODE into the error; returns -1 always. */
int ocs_yaml_fail(struct ocs_yaml *yaml, const yaml_node_t *node, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Puts "FILE:LINE: " before the error that is there; returns -1 always. */
int ocs_yaml_prefix(struct ocs_yaml *yaml, const yaml_node_t *node);

/* Finds the fields of MAP, which WHAT names in messages ("a switch").  Unknown,
 * duplicate, empty and missing keys are refused.  0 or -1. */
int ocs_yaml_fields(struct ocs_yaml *yaml, yaml_node_t *map, const char *what,
		    struct ocs_field *fields, size_t count);

/* Scalars; KEY names them in messages.  Return NULL or -1 with the error set. */
const char *ocs_yaml_text(struct ocs_yaml *yaml, const yaml_node_t *node, const char *key);
int ocs_yaml_number(struct ocs_yaml *yaml, const yaml_node_t *node, const char *key, int min,
		    int max, int *value);
int ocs_yaml_bool(struct ocs_yaml *yaml, const yaml_node_t *node, const char *key, bool *value);
/* "500ms", "5s", "5m" into ms. */
int ocs_yaml_duration(struct ocs_yaml *yaml, const yaml_node_t *node, const char *key, int min_ms,
		      int max_ms, int *ms);
/* The index of the text in CHOICES, or -1. */
int ocs_yaml_choice(struct ocs_yaml *yaml, const yaml_node_t *node, const char *key,
		    const char *const *choices, size_t count);

/* Items of a sequence, or -1; and one of them. */
int ocs_yaml_length(struct ocs_yaml *yaml, const yaml_node_t *node, const char *key);
yaml_node_t *ocs_yaml_item(struct ocs_yaml *yaml, const yaml_node_t *node, int i);

/* A name or host list, or a sequence of them, expanded: at least 1 and at most
 * LIMIT names of letters, digits, '.', '_' and '-'.  The caller frees the names
 * (ocs_names_free).  Returns the count, or -1. */
int ocs_yaml_names(struct ocs_yaml *yaml, const yaml_node_t *node, const char *key, size_t limit,
		   char ***names);

#endif
