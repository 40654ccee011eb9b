/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSCTL_SLURM_SLURM_CONF_H
#define OCS_OCSCTL_SLURM_SLURM_CONF_H

/* The lines of slurm.conf and topology.conf, as slurm.conf(5) writes them: Key=Value
 * pairs, keys in any case, # comments, \ at the end of a line, Include. */

#include <stdbool.h>
#include <stddef.h>

struct ocs_error;

/* The pairs of one line. */
struct ocs_slurm_line {
	const char *file; /* the file it stands in, */
	int number;	  /* and where */
	size_t count;
	char **keys, **values; /* values without their quotes */
};

struct ocs_slurm_conf {
	char *path;
	struct ocs_slurm_line *lines;
	size_t count;
	char **files; /* what the lines' `file` points to */
	size_t nfiles;
};

/* Reads PATH and what it includes.  NULL with ERR: a file that cannot be read, or a
 * line that is no pairs, by name and number.  Free with ocs_slurm_conf_destroy. */
struct ocs_slurm_conf *ocs_slurm_conf_read(const char *path, struct ocs_error *err);
void ocs_slurm_conf_destroy(struct ocs_slurm_conf *conf);

/* The value of KEY, as Slurm takes it: the last one given; NULL if there is none.  LINE
 * (may be NULL) receives where it stands. */
const char *ocs_slurm_conf_value(const struct ocs_slurm_conf *conf, const char *key,
				 const struct ocs_slurm_line **line);

/* The value of KEY on one line, or NULL. */
const char *ocs_slurm_line_value(const struct ocs_slurm_line *line, const char *key);

/* Whether WORD (in any case) is one of the words of LIST, "a,b,c=1"; a word with a value
 * counts too.  NULL has none. */
bool ocs_slurm_list_has(const char *list, const char *word);

#endif
