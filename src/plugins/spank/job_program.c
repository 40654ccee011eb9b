/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/plugins/spank/job_program.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "src/plugins/compat/slurm_api.h"
#include "src/util/text.h"

/* In the child.  slurmstepd has put on the user's identity only for the moment. */
static void __attribute__((noreturn))
program_become(const char *const *argv, int fd, char **env, uid_t uid, gid_t gid, pid_t parent)
{
	int null = open("/dev/null", O_RDWR);

	signal(SIGPIPE, SIG_DFL);
	setsid();
	if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0 ||
	    (fd != OCS_JOB_PROGRAM_FD && dup2(fd, OCS_JOB_PROGRAM_FD) < 0) ||
	    fcntl(OCS_JOB_PROGRAM_FD, F_SETFD, 0) < 0 || setresgid(gid, gid, gid) < 0 ||
	    setresuid(uid, uid, uid) < 0 || (uid && setresuid(-1, 0, -1) == 0))
		_exit(126);
	close_range(OCS_JOB_PROGRAM_FD + 1, ~0U, 0);
	/* after the change of identity, which would undo it */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() == parent)
		execve(argv[0], (char *const *)(uintptr_t)argv, env);
	_exit(127);
}

int ocs_job_program_start(spank_t spank, const char *const *argv, int fd)
{
	pid_t parent = getpid(), child;
	char **env = NULL;
	uid_t uid;
	gid_t gid;

	if (spank_get_item(spank, S_JOB_UID, &uid) != ESPANK_SUCCESS ||
	    spank_get_item(spank, S_JOB_GID, &gid) != ESPANK_SUCCESS ||
	    spank_get_item(spank, S_JOB_ENV, &env) != ESPANK_SUCCESS)
		return -1;
	child = fork();
	if (!child)
		program_become(argv, fd, env, uid, gid, parent);
	if (child > 0)
		return 0;
	slurm_error("spank_ocs: cannot start %s: %s", argv[0], strerror(errno));
	return -1;
}

uint64_t ocs_job_epoch(const char *dir)
{
	char *path = ocs_asprintf("%s/epoch", dir);
	char *text = ocs_file_read(path, 64, NULL, NULL);
	uint64_t epoch = text ? strtoull(text, NULL, 10) : 0;

	free(text);
	free(path);
	return epoch;
}
