/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Starts the program that changes the circuits of a job on rails (controller= in plugstack.conf): as
 * the user, on the job's first node, in the first step there that finds none.  It is in the job's
 * cgroup, and ends with its step at the latest. */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "src/plugins/compat/slurm_api.h"
#include "src/plugins/spank/nodeside.h"
#include "src/plugins/spank/settings.h"
#include "src/util/text.h"

#define LOCK_FD 3

/* In the child.  slurmstepd has put on the user's identity only for the moment. */
static void __attribute__((noreturn))
program_become(const char *program, int lock, char **env, uid_t uid, gid_t gid, pid_t parent)
{
	char *const argv[] = { (char *)program, NULL };
	int null = open("/dev/null", O_RDWR);

	signal(SIGPIPE, SIG_DFL);
	setsid();
	if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0 ||
	    (lock != LOCK_FD && dup2(lock, LOCK_FD) < 0) || fcntl(LOCK_FD, F_SETFD, 0) < 0 ||
	    setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0 ||
	    (uid && setresuid(-1, 0, -1) == 0))
		_exit(126);
	close_range(LOCK_FD + 1, ~0U, 0);
	/* after the change of identity, which would undo it */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() == parent)
		execve(program, argv, env);
	_exit(127);
}

void ocs_controller_start(spank_t spank, const struct ocs_settings *settings, const char *dir)
{
	char *path, **env = NULL;
	uid_t uid;
	gid_t gid;
	pid_t parent = getpid(), child;
	int lock;

	if (!settings->controller || spank_get_item(spank, S_JOB_UID, &uid) != ESPANK_SUCCESS ||
	    spank_get_item(spank, S_JOB_GID, &gid) != ESPANK_SUCCESS ||
	    spank_get_item(spank, S_JOB_ENV, &env) != ESPANK_SUCCESS)
		return;
	path = ocs_asprintf("%s/rails.key", dir);
	/* Only the first node of a job whose circuits follow its phases has one. */
	lock = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	free(path);
	if (lock < 0)
		return;
	/* The program keeps the lock as long as it lives: one at a time. */
	if (flock(lock, LOCK_EX | LOCK_NB) == 0) {
		child = fork();
		if (!child)
			program_become(settings->controller, lock, env, uid, gid, parent);
		if (child < 0)
			slurm_error("spank_ocs: cannot start %s: %s", settings->controller,
				    strerror(errno));
	}
	close(lock);
}
