/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/util/error.h"
#include "src/util/text.h"
#include "tests/unit/node/node_rig.h"

#define ARGUMENTS_MAX 40

char node_base[] = "/tmp/test_node.XXXXXX";
char *node_dir;
char node_output[4096];

int node_run(const char *command, ...)
{
	const char *build = getenv("OCS_BUILD_DIR");
	char *program = ocs_asprintf("%s/src/node/ocs-node", build ? build : TEST_BUILD_DIR);
	char *argv[ARGUMENTS_MAX] = { program, (char *)command };
	int n = 2, status, pipes[2];
	size_t used = 0;
	ssize_t got;
	va_list list;
	pid_t child;

	va_start(list, command);
	while (n < ARGUMENTS_MAX - 1 && (argv[n] = va_arg(list, char *)))
		n++;
	va_end(list);
	assert_int_equal(pipe(pipes), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		dup2(pipes[1], STDERR_FILENO);
		dup2(pipes[1], STDOUT_FILENO);
		close(pipes[0]);
		close(pipes[1]);
		umask(077);
		execv(program, argv);
		_exit(127);
	}
	close(pipes[1]);
	while ((got = read(pipes[0], node_output + used, sizeof(node_output) - 1 - used)) > 0)
		used += (size_t)got;
	node_output[used] = '\0';
	close(pipes[0]);
	waitpid(child, &status, 0);
	free(program);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

char *node_file(const char *name)
{
	char *path = ocs_asprintf("%s/%s", node_dir, name);
	char *text = ocs_file_read(path, 1 << 20, NULL, NULL);

	free(path);
	return text;
}

void node_has_line(const char *text, const char *line)
{
	const char *at = strstr(text, line);

	if (!at || (at != text && at[-1] != '\n') || at[strlen(line)] != '\n')
		fail_msg("no line '%s' in:\n%s", line, text);
}

void node_put(const char *path, const char *text)
{
	struct ocs_error err = { 0 };

	if (ocs_file_write(path, text, strlen(text), 0600, &err) < 0)
		fail_msg("%s", err.text);
}

void node_absent(const char *text, const char *what)
{
	if (strstr(text, what))
		fail_msg("'%s' in:\n%s", what, text);
}

int node_setup(void **state)
{
	(void)state;
	if (!mkdtemp(node_base))
		return -1;
	node_dir = ocs_asprintf("%s/run/ocs/7", node_base);
	return 0;
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *at)
{
	(void)info;
	(void)kind;
	(void)at;
	return remove(path);
}

int node_teardown(void **state)
{
	(void)state;
	node_run("remove", "--dir", node_dir, NULL);
	free(node_dir);
	return nftw(node_base, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}
