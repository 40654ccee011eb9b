/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSCTL_CMD_CONFIG_CHECK_H
#define OCS_OCSCTL_CMD_CONFIG_CHECK_H

/* Does the rest of the site say what ocs.yaml says: slurm.conf, plugstack.conf, the
 * running ocsd and slurmctld. */

#include <stdbool.h>
#include <stdio.h>

struct json_object;
struct ocs_ctl_args;
struct ocs_error;
struct ocs_config;
struct ocs_site;

/* CONFIG stays the caller's and outlives the site. */
struct ocs_site *ocs_site_create(const struct ocs_config *config);
void ocs_site_destroy(struct ocs_site *site);

/* A contradiction, or with NOTE only something worth knowing.  WHERE is "file:line", or
 * who was asked. */
void ocs_site_find(struct ocs_site *site, bool note, const char *where, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* What was looked at, for the last line of the report. */
void ocs_site_looked(struct ocs_site *site, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Compares with the slurm.conf at PATH and the plugstack.conf that it names or that lies
 * beside it.  0, also with findings; -1 with ERR if a file cannot be read. */
int ocs_site_compare(struct ocs_site *site, const char *path, struct ocs_error *err);

/* config_check_files.c: plugstack.conf and the secrets of ocsd; CONF is the path of slurm.conf.  Part of
 * ocs_site_compare. */
void ocs_site_compare_files(struct ocs_site *site, const char *conf);

/* Compares with what ocsd and slurmctld run with; one that does not answer is a note. */
void ocs_site_ask_live(struct ocs_site *site, const struct ocs_ctl_args *args);

/* What the running slurmctld does where it could not read ocs.yaml, a sentence that the caller
 * frees; NULL: it could, or does not answer. */
char *ocs_site_running(void);

const struct ocs_config *ocs_site_config(const struct ocs_site *site);
/* What slurm.conf said for KEY, or NULL (none, or not compared). */
const char *ocs_site_value(const struct ocs_site *site, const char *key);

/* One line a finding, and what was compared. */
void ocs_site_print(const struct ocs_site *site, FILE *out);
/* {"compared":[...],"findings":[{"where","note","text"}]}; the caller puts it. */
struct json_object *ocs_site_json(const struct ocs_site *site);
/* How many findings are contradictions. */
int ocs_site_errors(const struct ocs_site *site);

#endif
