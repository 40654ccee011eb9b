/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/util/program.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/util/text.h"

static void program_become(const struct ocs_program *program, int in, int out, int said)
{
	alarm(program->seconds);
	dup2(in, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(said, STDERR_FILENO);
	if (program->path)
		setenv("PATH", program->path, 1);
	execvp(program->words[0], program->words);
	dprintf(STDERR_FILENO, "cannot run %s: %s\n", program->words[0], strerror(errno));
	_exit(127);
}

/* What FD holds, closed afterwards. */
static char *descriptor_content(int fd)
{
	struct ocs_text text = { 0 };
	char part[65536];
	off_t at = 0;
	ssize_t n;

	while ((n = pread(fd, part, sizeof(part), at)) > 0) {
		ocs_text_put(&text, part, (size_t)n);
		at += n;
	}
	close(fd);
	return ocs_text_take(&text);
}

int ocs_program_run(const struct ocs_program *program, char **out, char **said)
{
	/* What is written there is complete when the program has ended, and blocks no program. */
	int in = memfd_create("in", MFD_CLOEXEC), all = memfd_create("out", MFD_CLOEXEC);
	int other = said ? memfd_create("said", MFD_CLOEXEC) : all, status = -1;
	pid_t child = -1;

	if (in >= 0 && all >= 0 && other >= 0 &&
	    write(in, program->input ? program->input : "", program->length) ==
		    (ssize_t)program->length) {
		lseek(in, 0, SEEK_SET);
		child = fork();
	}
	if (!child)
		program_become(program, in, all, other);
	if (child < 0)
		dprintf(other, "cannot run %s: %s\n", program->words[0], strerror(errno));
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	*out = descriptor_content(all);
	if (said)
		*said = descriptor_content(other);
	if (in >= 0)
		close(in);
	return status;
}

bool ocs_program_detach(void)
{
	int null;

	fflush(NULL);
	if (fork() != 0)
		return false;
	setsid();
	if (fork() != 0)
		_exit(0);
	null = open("/dev/null", O_RDWR);
	for (int fd = 0; null >= 0 && fd < 3; fd++)
		dup2(null, fd);
	for (int fd = 3; fd < 1024; fd++)
		close(fd);
	if (chdir("/") < 0)
		_exit(1);
	return true;
}
