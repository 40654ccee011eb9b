/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The other files of this machine: plugstack.conf and what it includes, and the secrets of ocsd. */

#include <errno.h>
#include <glob.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "src/protocol/account.h"
#include "src/config/config.h"
#include "src/ocsctl/cmd/config_check.h"
#include "src/ocsctl/slurm/slurm_conf.h"
#include "src/util/error.h"
#include "src/util/secret.h"
#include "src/util/text.h"

/* The words of a line of plugstack.conf that loads our plugin. */
static void compare_spank(struct ocs_site *site, const char *where, char *words)
{
	char *save = NULL, *word = strtok_r(words, " \t", &save);
	bool scripts = false;

	if (strcasecmp(word, "required") != 0)
		ocs_site_find(site, false, where,
			      "spank_ocs.so is %s: a task would start without"
			      " its circuits when it fails; write 'required'",
			      word);
	for (word = strtok_r(NULL, " \t", &save); word; word = strtok_r(NULL, " \t", &save)) {
		if (!strcmp(word, "prolog=no"))
			scripts = true;
		if (!strncmp(word, "conf=", 5) && access(word + 5, R_OK))
			ocs_site_find(site, true, where, "%s cannot be read here", word);
		if (!strncmp(word, "ocsd_key=", 9) && ocs_site_config(site)->ocsd.key &&
		    strcmp(word + 9, ocs_site_config(site)->ocsd.key) != 0)
			ocs_site_find(site, true, where, "%s, but ocsd.key of %s is %s", word,
				      ocs_site_config(site)->fabric->source,
				      ocs_site_config(site)->ocsd.key);
	}
	if (scripts && (!ocs_site_value(site, "Prolog") || !ocs_site_value(site, "Epilog")))
		ocs_site_find(site, false, where,
			      "prolog=no, but slurm.conf names no Prolog= and"
			      " Epilog=: no circuits would be made or cut");
}

/* What is found in plugstack.conf and what it includes. */
struct plugstack {
	struct ocs_site *site;
	struct ocs_text files; /* those that were read */
	const char *within; /* "file:line" of the outermost include that is being read, or NULL */
	bool found;
};

static void read_plugstack(struct plugstack *p, const char *path, int depth);

/* PATTERN at WHERE, "file:line" of PATH: all that it matches. */
static void read_included(struct plugstack *p, const char *path, const char *where,
			  const char *pattern, int depth)
{
	const char *slash = strrchr(path, '/');
	/* As Slurm does it: beside the file that includes. */
	char *names_of = ocs_asprintf(
		"%.*s%s", *pattern != '/' && slash ? (int)(slash - path + 1) : 0, path, pattern);
	bool outermost = !p->within;
	glob_t names = { 0 };

	if (outermost)
		p->within = where;
	if (glob(names_of, 0, NULL, &names) || !names.gl_pathc)
		ocs_site_find(p->site, true, where, "includes %s, and there is no such file here",
			      names_of);
	for (size_t i = 0; i < names.gl_pathc; i++)
		read_plugstack(p, names.gl_pathv[i], depth + 1);
	if (outermost)
		p->within = NULL;
	globfree(&names);
	free(names_of);
}

/* Slurmds without files of their own get plugstack.conf from slurmctld, and no other. */
static void compare_configless(struct plugstack *p)
{
	if (p->within &&
	    ocs_slurm_list_has(ocs_site_value(p->site, "SlurmctldParameters"), "enable_configless"))
		ocs_site_find(p->site, false, p->within,
			      "spank_ocs.so is in a file that this includes,"
			      " which nodes do not get from slurmctld (enable_configless in"
			      " SlurmctldParameters): write 'required spank_ocs.so' here");
}

static void read_plugstack(struct plugstack *p, const char *path, int depth)
{
	struct ocs_error err;
	int number = 0;
	char *text = depth < 8 ? ocs_file_read(path, 1 << 20, NULL, &err) : NULL, *save = NULL;

	if (!text) {
		if (depth)
			ocs_site_find(p->site, true, path, "cannot be read here");
		return;
	}
	ocs_text_add(&p->files, "%s%s", p->files.length ? ", " : "", path);
	for (char *at = text, *end; at; at = end) {
		char *where;

		end = strchr(at, '\n');
		if (end)
			*end++ = '\0';
		number++;
		at += strspn(at, " \t");
		at[strcspn(at, "#\r")] = '\0';
		where = ocs_asprintf("%s:%d", path, number);
		if (!strncasecmp(at, "include", 7) && strchr(" \t", at[7])) {
			char *pattern = strtok_r(at + 7, " \t", &save);

			if (pattern)
				read_included(p, path, where, pattern, depth);
		} else if (strstr(at, "spank_ocs.so")) {
			p->found = true;
			compare_spank(p->site, where, at);
			compare_configless(p);
		}
		free(where);
	}
	free(text);
}

static void compare_plugstack(struct ocs_site *site, const char *conf)
{
	const char *given = ocs_site_value(site, "PlugStackConfig");
	const char *slash = strrchr(conf, '/');
	char *path = given ? ocs_strdup(given) :
			     ocs_asprintf("%.*splugstack.conf", slash ? (int)(slash - conf + 1) : 0,
					  conf);
	struct plugstack p = { .site = site };

	read_plugstack(&p, path, 0);
	if (!p.files.length)
		ocs_site_find(site, false, path,
			      "cannot be read: without 'required spank_ocs.so' in"
			      " it there is no --shape and no circuit");
	else if (!p.found)
		ocs_site_find(site, false, path,
			      "holds no 'required spank_ocs.so': there is no"
			      " --shape and no circuit");
	if (p.files.length)
		ocs_site_looked(site, "%s", p.files.data);
	ocs_text_free(&p.files);
	free(path);
}

/* ---- secrets ---- */

/* Whether ocsd is, or was, on this machine. */
static bool has_ocsd(const struct ocs_config_ocsd *ocsd)
{
	return strncmp(ocsd->socket, "unix:", 5) == 0 && !access(ocsd->socket + 5, F_OK);
}

/* One file that only ocsd, as UID, may read.  Who cannot look says nothing. */
static void compare_secret(struct ocs_site *site, const char *path, const char *whose, uid_t uid,
			   gid_t gid)
{
	struct ocs_error err = { 0 };

	if (access(path, F_OK) && (errno != ENOENT || !has_ocsd(&ocs_site_config(site)->ocsd)))
		return;
	if (ocs_secret_check(path, uid, gid, &err))
		ocs_site_find(site, false, whose, "ocsd, uid %u, does not take %s",
			      (unsigned int)uid, err.text);
}

static void compare_secrets(struct ocs_site *site)
{
	const struct ocs_config_ocsd *ocsd = &ocs_site_config(site)->ocsd;
	const struct ocs_fabric *fabric = ocs_site_config(site)->fabric;
	const struct passwd *account;
	struct ocs_error ignored;
	uid_t uid;
	gid_t gid;

	if (ocs_account_uid(ocsd->user, &uid, &ignored))
		return;
	account = getpwuid(uid);
	gid = account ? account->pw_gid : (gid_t)-1;
	for (int i = 0; i < fabric->nswitches; i++) {
		const char *path = fabric->switches[i].credentials;
		bool seen = false;

		for (int k = 0; k < i && path && !seen; k++)
			seen = fabric->switches[k].credentials &&
			       !strcmp(fabric->switches[k].credentials, path);
		if (path && !seen)
			compare_secret(site, path, "credentials", uid, gid);
	}
	/* On other machines it is for others. */
	if (ocsd->key && has_ocsd(ocsd))
		compare_secret(site, ocsd->key, "ocsd.key", uid, gid);
}

void ocs_site_compare_files(struct ocs_site *site, const char *conf)
{
	compare_plugstack(site, conf);
	compare_secrets(site);
}
