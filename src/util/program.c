/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/util/program.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/util/text.h"

int ocs_program_run(char *const *words, const char *input, size_t length, size_t limit,
		    char **said)
{
	int in = memfd_create("input", MFD_CLOEXEC), out = memfd_create("said", MFD_CLOEXEC);
	int status = -1;
	ssize_t got = 0;
	pid_t child;

	*said = ocs_calloc(limit + 1, 1);
	if (in < 0 || out < 0 || write(in, input, length) != (ssize_t)length) {
		snprintf(*said, limit, "%s", strerror(errno));
	} else {
		lseek(in, 0, SEEK_SET);
		child = fork();
		if (child == 0) {
			dup2(in, 0);
			dup2(out, 1);
			dup2(out, 2);
			setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin", 1);
			execvp(words[0], words);
			dprintf(2, "cannot run %s: %s\n", words[0], strerror(errno));
			_exit(127);
		}
		while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
			;
		got = pread(out, *said, limit, 0);
		(*said)[got > 0 ? got : 0] = '\0';
	}
	if (in >= 0)
		close(in);
	if (out >= 0)
		close(out);
	return status;
}
