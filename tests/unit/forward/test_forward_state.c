/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The memory of what a host forwards, in a folder that every user can look into. */

#include <fcntl.h>
#include <grp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/forward/forward.h"
#include "src/util/error.h"
#include "src/util/text.h"

#define STRANGER 65534
#define ALARM_S 20

static char folder[] = "/tmp/ocs-forward-XXXXXX";

static int setup(void **state)
{
	static const char note[] =
		"{\"job\":7,\"epoch\":70,\"revision\":1,\"settled\":true,\"things\":[]}";
	char *path;
	struct ocs_error err;

	(void)state;
	assert_non_null(mkdtemp(folder));
	assert_int_equal(chmod(folder, 0755), 0);
	path = ocs_asprintf("%s/forward.json", folder);
	assert_int_equal(ocs_file_write(path, note, strlen(note), 0644, &err), 0);
	free(path);
	return 0;
}

static int teardown(void **state)
{
	static const char *const names[] = { "forward.json", "forward.lock" };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		char *path = ocs_asprintf("%s/%s", folder, names[i]);

		unlink(path);
		free(path);
	}
	return rmdir(folder);
}

/* Somebody else locks all that he can open in FOLDER, and stays; *READY is closed then. */
static pid_t obstruct(int *ready)
{
	static const char *const names[] = { "", "/forward.json", "/forward.lock" };
	int ends[2];
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	if (pid == 0) {
		alarm(ALARM_S);
		if (geteuid() == 0 && (setgroups(0, NULL) || setgid(STRANGER) || setuid(STRANGER)))
			_exit(1);
		for (size_t i = 0; i < 3; i++) {
			char *path = ocs_asprintf("%s%s", folder, names[i]);
			int fd = open(path, O_RDONLY);

			if (fd >= 0)
				flock(fd, LOCK_EX);
			free(path);
		}
		close(ends[0]);
		close(ends[1]);
		pause();
		_exit(0);
	}
	close(ends[1]);
	*ready = ends[0];
	return pid;
}

/* Whoever may read a folder may lock it: prologs and epilogs must not wait for that. */
static void locked_by_a_user(void **state)
{
	struct ocs_forward_owner owner = { 0 };
	struct ocs_error err;
	int ready, status = 0;
	pid_t user, root;
	char byte;

	(void)state;
	if (geteuid() != 0)
		skip();
	/* the file of locks is there before */
	assert_int_equal(ocs_forward_owner_read(folder, &owner, &err), 1);
	assert_int_equal(owner.job, 7);
	user = obstruct(&ready);
	assert_int_equal(read(ready, &byte, 1), 0);
	close(ready);
	root = fork();
	if (root == 0) {
		alarm(ALARM_S / 2);
		_exit(ocs_forward_owner_read(folder, &owner, &err) == 1 ? 0 : 1);
	}
	assert_int_equal(waitpid(root, &status, 0), root);
	kill(user, SIGKILL);
	waitpid(user, NULL, 0);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		fail_msg("a user's lock keeps root waiting: status %x", status);
}

/* One process follows a plan; another allocation's is no concern of its. */
static void one_watcher(void **state)
{
	int first = ocs_forward_watch_alone(folder, 70), other;

	(void)state;
	assert_true(first >= 0);
	assert_int_equal(ocs_forward_watch_alone(folder, 70), -1);
	other = ocs_forward_watch_alone(folder, UINT64_C(0x7fffffffffff));
	assert_true(other >= 0);
	close(other);
	close(first);
	first = ocs_forward_watch_alone(folder, 70);
	assert_true(first >= 0);
	close(first);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(locked_by_a_user),
		cmocka_unit_test(one_watcher),
	};

	return cmocka_run_group_tests_name("forward: state", tests, setup, teardown);
}
