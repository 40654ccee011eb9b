/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Which NCCL a program will load, in trees of files as pip, conda and packages leave them. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/nccl/installed.h"
#include "src/util/text.h"

static char base[] = "/tmp/test_nccl_installed.XXXXXX";

/* Runs COMMAND in the tree. */
static void shell(const char *command)
{
	char *whole = ocs_asprintf("cd %s && { %s; }", base, command);

	assert_int_equal(system(whole), 0);
	free(whole);
}

/* Makes the wheel of RELEASE (NULL: without what pip writes) in folder SITE. */
static void wheel_make(const char *site, const char *release)
{
	char *command = ocs_asprintf(
		"mkdir -p %s/nvidia/nccl/lib && : > %s/nvidia/nccl/lib/libnccl.so.2", site, site);

	shell(command);
	free(command);
	if (!release)
		return;
	command = ocs_asprintf("mkdir %s/nvidia_nccl_cu12-%s.dist-info", site, release);
	shell(command);
	free(command);
}

static void library_make(const char *folder, const char *target)
{
	char *command =
		ocs_asprintf("mkdir -p %s && : > %s/libnccl.so.2.0.0 && "
			     "cp %s/libnccl.so.2.0.0 %s/%s 2>/dev/null; ln -sf %s %s/libnccl.so.2",
			     folder, folder, folder, folder, target, target, folder);

	shell(command);
	free(command);
}

/* Lines NAME=VALUE, where % is the tree. */
static char *variable(void *arg, const char *name)
{
	const char *at = arg;
	size_t length = strlen(name);

	for (; *at; at += strcspn(at, "\n"), at += *at == '\n') {
		struct ocs_text text = { 0 };

		if (strncmp(at, name, length) || at[length] != '=')
			continue;
		for (const char *c = at + length + 1; *c && *c != '\n'; c++)
			if (*c == '%')
				ocs_text_add(&text, "%s", base);
			else
				ocs_text_add(&text, "%c", *c);
		return ocs_text_take(&text);
	}
	return NULL;
}

/* What is found with the lines ENV and a system that is folder ROOT of the tree; PART is in the path. */
static int found(const char *env, const char *root, const char *part)
{
	char *whole = ocs_asprintf("%s/%s", base, root), *path;
	const struct ocs_nccl_places places = { .root = whole,
						.variable = variable,
						.arg = (void *)env };
	int release = ocs_nccl_installed(&places, &path);

	if (!part)
		assert_null(path);
	else if (!path || !strstr(path, part))
		fail_msg("%s: not in %s but in %s", env, part, path ? path : "none");
	free(path);
	free(whole);
	return release;
}

static void test_places(void **state)
{
	(void)state;
	assert_int_equal(found("", "none", NULL), 0);
	assert_int_equal(found("HOME=/nowhere\nPATH=/nowhere:\nLD_LIBRARY_PATH=::\n", "none", NULL),
			 0);
	wheel_make("venv/lib/python3.11/site-packages", "2.27.5");
	shell("mkdir venv/bin && ln -s /bin/true venv/bin/python3");
	assert_int_equal(found("VIRTUAL_ENV=%/venv\n", "none", "venv/"), 22705);
	/* a venv that is not named, only first in PATH; others behind it do not count */
	wheel_make("other/lib/python3.9/site-packages", "2.18.1");
	shell("mkdir other/bin && ln -s /bin/true other/bin/python");
	assert_int_equal(found("PATH=/nowhere:%/venv/bin/:%/other/bin\n", "none", "venv/"), 22705);
	assert_int_equal(found("PATH=%/other/bin:%/venv/bin\n", "none", "other/"), 21801);
	library_make("conda/lib", "libnccl.so.2.30.7");
	assert_int_equal(found("CONDA_PREFIX=%/conda\n", "none", "conda/lib/libnccl"), 23007);
	wheel_make("site", "2.28.9.post1");
	assert_int_equal(found("PYTHONPATH=/nowhere:%/site\n", "none", "site/"), 22809);
	wheel_make("home/.local/lib/python3.12/site-packages", "2.29.7");
	assert_int_equal(found("HOME=%/home\n", "none", ".local"), 22907);
	library_make("root/usr/lib/x86_64-linux-gnu", "libnccl.so.2.26.2");
	assert_int_equal(found("", "root", "x86_64-linux-gnu/"), 22602);
}

/* The program decides: the lowest counts, and one that is not known. */
static void test_lowest(void **state)
{
	(void)state;
	assert_int_equal(found("VIRTUAL_ENV=%/venv\nCONDA_PREFIX=%/conda\n", "none", "venv/"),
			 22705);
	assert_int_equal(found("CONDA_PREFIX=%/conda\n", "root", "x86_64"), 22602);
	wheel_make("bare", NULL);
	assert_int_equal(found("CONDA_PREFIX=%/conda\nPYTHONPATH=%/bare\n", "none", "bare/"), 0);
	library_make("unnumbered", "nccl.so");
	assert_int_equal(found("CONDA_PREFIX=%/conda\nLD_LIBRARY_PATH=%/unnumbered\n", "none",
			       "unnumbered/"),
			 0);
	/* what an update left behind */
	wheel_make("twice", "2.30.7");
	wheel_make("twice", "2.21.5");
	assert_int_equal(found("PYTHONPATH=%/twice\n", "none", "twice/"), 22105);
	wheel_make("odd", "new");
	assert_int_equal(found("PYTHONPATH=%/odd\n", "none", "odd/"), 0);
}

static int setup(void **state)
{
	(void)state;
	return mkdtemp(base) ? 0 : -1;
}

static int teardown(void **state)
{
	char *command = ocs_asprintf("rm -r %s", base);
	int rc = system(command);

	(void)state;
	free(command);
	return rc;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_lowest),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
