/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Folders of sockets whose owner means harm: the epilog goes on, and nothing outside them is touched. */

#include <setjmp.h>
#include <signal.h>
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

#include "src/node/node.h"
#include "src/util/text.h"

#define MANY 10000 /* more entries than are looked at */
#define HANGS_S 300

/* In place of directory.c, which this test does not need. */
const char *const ocs_node_names[OCS_NODE_FILES] = { [OCS_NODE_ENV] = "env" };

/* No process of another run has it. */
static uid_t user;

static char base[] = "/tmp/test_node_sockets-XXXXXX", *folder, *victim;

static uid_t owner(void)
{
	return geteuid() ? geteuid() : user;
}

static char *inside(const char *name)
{
	return ocs_asprintf("%s/%s", folder, name);
}

static void file_make(const char *path)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fclose(file);
}

static int folder_make(void **state)
{
	(void)state;
	assert_int_equal(mkdir(folder, 0700), 0);
	file_make(victim);
	return chown(folder, owner(), (gid_t)-1);
}

static int folder_clear(void **state)
{
	char *command = ocs_asprintf("rm -rf '%s' '%s'", folder, victim);
	int rc = system(command);

	(void)state;
	free(command);
	return rc;
}

/* Links that lead out, a pipe, a folder with the name of a socket: links and pipes go, what they lead to stays. */
static void hostile_entries(void **state)
{
	char *link = inside("gate.0"), *pipe = inside("gate.1"), *sub = inside("plan.2");

	(void)state;
	assert_int_equal(symlink(victim, link), 0);
	assert_int_equal(mkfifo(pipe, 0600), 0);
	assert_int_equal(mkdir(sub, 0700), 0);
	ocs_node_sockets_remove(folder, owner());
	assert_int_equal(access(victim, F_OK), 0);
	assert_int_equal(access(link, F_OK) + access(pipe, F_OK), -2);
	assert_int_equal(access(sub, F_OK), 0);
	free(link);
	free(pipe);
	free(sub);
}

/* In the folder's place: a link to another one, a pipe, a file. */
static void hostile_folder(void **state)
{
	char *elsewhere = ocs_asprintf("%s/elsewhere", base);
	char *kept = ocs_asprintf("%s/gate.0", elsewhere);

	(void)state;
	assert_int_equal(rmdir(folder), 0);
	assert_int_equal(mkdir(elsewhere, 0777), 0);
	assert_int_equal(chown(elsewhere, owner(), (gid_t)-1), 0);
	file_make(kept);
	assert_int_equal(symlink(elsewhere, folder), 0);
	ocs_node_sockets_remove(folder, owner());
	assert_int_equal(access(kept, F_OK), 0);
	assert_int_equal(unlink(folder), 0);
	assert_int_equal(mkfifo(folder, 0600), 0);
	ocs_node_sockets_remove(folder, owner());
	assert_int_equal(unlink(folder), 0);
	file_make(folder);
	ocs_node_sockets_remove(folder, owner());
	assert_int_equal(access(folder, F_OK), 0);
	assert_int_equal(unlink(kept), 0);
	assert_int_equal(rmdir(elsewhere), 0);
	free(kept);
	free(elsewhere);
}

static void many_make(void)
{
	for (int i = 0; i < MANY; i++) {
		char name[24], *path;

		snprintf(name, sizeof(name), "gate.%d", i);
		path = inside(name);
		file_make(path);
		free(path);
	}
}

/* A folder that is too full stays, and is left in time. */
static void many_entries(void **state)
{
	(void)state;
	many_make();
	ocs_node_sockets_remove(folder, owner());
	assert_int_equal(access(folder, F_OK), 0);
}

/* The user stops every process that gets his rights, and the caller has alarms ignored. */
static void stopped_child(void **state)
{
	pid_t saboteur;
	int ready[2];
	char byte;

	(void)state;
	if (geteuid() != 0)
		skip();
	many_make();
	assert_int_equal(pipe(ready), 0);
	saboteur = fork();
	assert_true(saboteur >= 0);
	if (saboteur == 0) {
		alarm(HANGS_S); /* not beyond a test that was killed */
		if (setresuid(user, user, user) || write(ready[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			kill(-1, SIGSTOP);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	signal(SIGALRM, SIG_IGN);
	ocs_node_sockets_remove(folder, user);
	signal(SIGALRM, SIG_DFL);
	kill(saboteur, SIGKILL);
	assert_int_equal(waitpid(saboteur, NULL, 0), saboteur);
	close(ready[0]);
	close(ready[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(hostile_entries, folder_make, folder_clear),
		cmocka_unit_test_setup_teardown(hostile_folder, folder_make, folder_clear),
		cmocka_unit_test_setup_teardown(many_entries, folder_make, folder_clear),
		cmocka_unit_test_setup_teardown(stopped_child, folder_make, folder_clear),
	};
	int rc;

	user = 20000000 + (uid_t)getpid();
	if (!mkdtemp(base) || chmod(base, 0777))
		return 99;
	folder = ocs_asprintf("%s/ocs-moe-7.4-0", base);
	victim = ocs_asprintf("%s/victim", base);
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(base);
	free(folder);
	free(victim);
	return rc;
}
