/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/plugins/spank/job_program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/plugins/compat/slurm_api.h"
#include "src/util/text.h"

#define PROGRAMS_MAX 4
#define ARGUMENTS_MAX 32
#define END_MS 5000

/* slurmstepd; where slurm.conf has contain_spank it calls plugins in another process with the same memory. */
static pid_t daemon_pid;
static int programs[PROGRAMS_MAX]; /* pidfds */
static int nprograms;

static int process_open(pid_t pid)
{
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

void ocs_job_programs_init(void)
{
	daemon_pid = getpid();
}

/* In the child.  slurmstepd has put on the user's identity only for the moment. */
static void __attribute__((noreturn)) program_become(const char *const *argv, int fd, int parent_fd,
						     char **env, uid_t uid, gid_t gid, pid_t parent)
{
	int null = open("/dev/null", O_RDWR);

	signal(SIGPIPE, SIG_DFL);
	setsid();
	/* Neither of the two is where the other one goes. */
	fd = fcntl(fd, F_DUPFD, OCS_JOB_PROGRAM_FD + 2);
	if (parent_fd >= 0)
		parent_fd = fcntl(parent_fd, F_DUPFD, OCS_JOB_PROGRAM_FD + 2);
	if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0 ||
	    dup2(fd, OCS_JOB_PROGRAM_FD) < 0 ||
	    (parent_fd >= 0 && dup2(parent_fd, OCS_JOB_PROGRAM_FD + 1) < 0) ||
	    setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0 ||
	    (uid && setresuid(-1, 0, -1) == 0))
		_exit(126);
	close_range(OCS_JOB_PROGRAM_FD + 1 + (parent_fd >= 0), ~0U, 0);
	/* after the change of identity, which would undo it */
	if (parent_fd < 0)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (parent_fd >= 0 || getppid() == parent)
		execve(argv[0], (char *const *)(uintptr_t)argv, env);
	_exit(127);
}

/* ARGV, and the descriptor of the process with which the program ends, in MORE. */
static void parent_add(const char *const *argv, const char **more, char number[16])
{
	int n = 0;

	for (; argv[n] && n < ARGUMENTS_MAX; n++)
		more[n] = argv[n];
	snprintf(number, 16, "%d", OCS_JOB_PROGRAM_FD + 1);
	more[n++] = "--parent-fd";
	more[n++] = number;
	more[n] = NULL;
}

/* In slurmstepd: to end it before the step is over. */
static void program_keep(pid_t child)
{
	int fd = nprograms < PROGRAMS_MAX ? process_open(child) : -1;

	if (fd < 0)
		return;
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	programs[nprograms++] = fd;
}

int ocs_job_program_start(spank_t spank, const char *const *argv, int fd)
{
	const char *more[ARGUMENTS_MAX + 3];
	pid_t parent = getpid(), child;
	char **env = NULL, number[16];
	int parent_fd = -1;
	uid_t uid;
	gid_t gid;

	if (spank_get_item(spank, S_JOB_UID, &uid) != ESPANK_SUCCESS ||
	    spank_get_item(spank, S_JOB_GID, &gid) != ESPANK_SUCCESS ||
	    spank_get_item(spank, S_JOB_ENV, &env) != ESPANK_SUCCESS)
		return -1;
	/* This process ends at once, and what it starts is not to end with it. */
	if (daemon_pid && parent != daemon_pid) {
		parent_fd = process_open(daemon_pid);
		if (parent_fd < 0) {
			slurm_error(
				"spank_ocs: cannot start %s: no pidfd of slurmstepd: %s; take contain_spank out of slurm.conf",
				argv[0], strerror(errno));
			return -1;
		}
		parent_add(argv, more, number);
		argv = more;
	}
	child = fork();
	if (!child)
		program_become(argv, fd, parent_fd, env, uid, gid, parent);
	if (parent_fd >= 0)
		close(parent_fd);
	else if (child > 0)
		program_keep(child);
	if (child > 0)
		return 0;
	slurm_error("spank_ocs: cannot start %s: %s", argv[0], strerror(errno));
	return -1;
}

void ocs_job_programs_end(void)
{
	for (int i = 0; i < nprograms; i++)
		syscall(SYS_pidfd_send_signal, programs[i], SIGKILL, NULL, 0);
	while (nprograms) {
		struct pollfd end = { .fd = programs[--nprograms], .events = POLLIN };

		poll(&end, 1, END_MS);
		close(end.fd);
	}
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
