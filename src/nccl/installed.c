/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/nccl/installed.h"

#include <glob.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/util/release.h"
#include "src/util/text.h"

#define LIBRARY "libnccl.so.2"

/* What was found. */
struct search {
	const struct ocs_nccl_places *places;
	int lowest; /* release, 0: not known, INT_MAX: none found */
	char *path;
};

static void library_count(struct search *search, const char *path, int release)
{
	if (release >= search->lowest)
		return;
	search->lowest = release;
	free(search->path);
	search->path = ocs_strdup(path);
}

/* The release that a link such as libnccl.so.2 -> libnccl.so.2.28.9 names, or 0. */
static int link_release(const char *path)
{
	static const char before[] = "libnccl.so.";
	char target[PATH_MAX], *name;
	ssize_t got = readlink(path, target, sizeof(target) - 1);

	if (got < 0)
		return 0;
	target[got] = '\0';
	name = strrchr(target, '/') ? strrchr(target, '/') + 1 : target;
	return strncmp(name, before, sizeof(before) - 1) == 0 ?
		       ocs_release_parse(name + sizeof(before) - 1, 0) :
		       0;
}

static void folder_look(struct search *search, const char *folder)
{
	char *path = ocs_asprintf("%s/" LIBRARY, folder);

	if (access(path, F_OK) == 0)
		library_count(search, path, link_release(path));
	free(path);
}

/* The release in ".../nvidia_nccl_cu12-2.28.9.dist-info", or 0. */
static int info_release(const char *path)
{
	const char *dot = strrchr(path, '.'), *dash = dot;
	char *text;
	int release;

	while (dash > path && *dash != '-')
		dash--;
	/* the dash of dist-info is behind the dot */
	text = ocs_asprintf("%.*s", (int)(dot - dash - 1), dash + 1);
	release = ocs_release_parse(text, 1);
	free(text);
	return release;
}

/* The wheel in SITE (a site-packages): its library has no number, but what pip wrote beside it has. */
static void wheel_look(struct search *search, const char *site)
{
	char *path = ocs_asprintf("%s/nvidia/nccl/lib/" LIBRARY, site);
	char *pattern = ocs_asprintf("%s/nvidia_nccl_cu*-*.dist-info", site);
	bool there = access(path, F_OK) == 0;
	glob_t found;

	if (there && glob(pattern, 0, NULL, &found) == 0) {
		for (size_t i = 0; i < found.gl_pathc; i++)
			library_count(search, path, info_release(found.gl_pathv[i]));
		globfree(&found);
	} else if (there) {
		library_count(search, path, 0);
	}
	free(pattern);
	free(path);
}

/* Calls LOOK with all that matches PATTERN. */
static void pattern_look(struct search *search, const char *pattern,
			 void (*look)(struct search *search, const char *path))
{
	glob_t found;

	if (glob(pattern, 0, NULL, &found) != 0)
		return;
	for (size_t i = 0; i < found.gl_pathc; i++)
		look(search, found.gl_pathv[i]);
	globfree(&found);
}

/* An environment of Python or conda. */
static void prefix_look(struct search *search, const char *prefix)
{
	char *sites = ocs_asprintf("%s/lib*/python3*/site-packages", prefix);
	char *lib = ocs_asprintf("%s/lib", prefix);

	pattern_look(search, sites, wheel_look);
	folder_look(search, lib);
	free(sites);
	free(lib);
}

/* Calls LOOK with the value of variable NAME and SUFFIX. */
static void variable_look(struct search *search, const char *name, const char *suffix,
			  void (*look)(struct search *search, const char *path))
{
	char *value = search->places->variable(search->places->arg, name), *path;

	if (value && *value) {
		path = ocs_asprintf("%s%s", value, suffix);
		look(search, path);
		free(path);
	}
	free(value);
}

/* Calls LOOK with the folders in variable NAME, until it returns true. */
static void folders_look(struct search *search, const char *name,
			 bool (*look)(struct search *search, const char *path))
{
	char *value = search->places->variable(search->places->arg, name), *save = NULL;

	for (char *one = value ? strtok_r(value, ":", &save) : NULL; one;
	     one = strtok_r(NULL, ":", &save))
		if (look(search, one))
			break;
	free(value);
}

static bool library_folder(struct search *search, const char *folder)
{
	folder_look(search, folder);
	return false;
}

static bool site_folder(struct search *search, const char *folder)
{
	wheel_look(search, folder);
	return false;
}

/* The first folder with a Python: the environment is the folder around it. */
static bool program_folder(struct search *search, const char *folder)
{
	static const char *const names[] = { "python3", "python" };
	char *copy = ocs_strdup(folder), *slash;
	bool there = false;

	for (size_t i = 0; i < 2 && !there; i++) {
		char *path = ocs_asprintf("%s/%s", folder, names[i]);

		there = access(path, X_OK) == 0;
		free(path);
	}
	while (copy[0] && copy[strlen(copy) - 1] == '/')
		copy[strlen(copy) - 1] = '\0';
	slash = strrchr(copy, '/');
	if (there && slash) {
		*slash = '\0';
		prefix_look(search, copy);
	}
	free(copy);
	return there;
}

static void system_look(struct search *search)
{
	static const char *const folders[] = { "/usr/lib/*-linux-gnu", "/usr/lib64", "/usr/lib",
					       "/usr/local/lib" };

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		char *pattern = ocs_asprintf("%s%s", search->places->root, folders[i]);

		pattern_look(search, pattern, folder_look);
		free(pattern);
	}
}

int ocs_nccl_installed(const struct ocs_nccl_places *places, char **path)
{
	struct search search = { .places = places, .lowest = INT_MAX };

	folders_look(&search, "LD_LIBRARY_PATH", library_folder);
	variable_look(&search, "VIRTUAL_ENV", "", prefix_look);
	variable_look(&search, "CONDA_PREFIX", "", prefix_look);
	folders_look(&search, "PATH", program_folder);
	folders_look(&search, "PYTHONPATH", site_folder);
	variable_look(&search, "PYTHONUSERBASE", "", prefix_look);
	variable_look(&search, "HOME", "/.local", prefix_look);
	system_look(&search);
	if (path)
		*path = search.path;
	else
		free(search.path);
	return search.lowest == INT_MAX ? 0 : search.lowest;
}
