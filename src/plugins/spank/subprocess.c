/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/plugins/spank/subprocess.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/util/error.h"
#include "src/util/net.h"

/* Nothing of the job's or the daemon's environment reaches a root helper. */
static char *const environment[] = {
	(char *)"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
	(char *)"LC_ALL=C", NULL
};

static void program_become(char *const *argv, int output)
{
	sigset_t none;
	int null = open("/dev/null", O_RDWR);

	setpgid(0, 0);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	if (null >= 0)
		dup2(null, 0);
	dup2(output, 1);
	dup2(output, 2);
	execve(argv[0], argv, environment);
	dprintf(2, "cannot run %s: %s\n", argv[0], strerror(errno));
	_exit(127);
}

/* Splits what arrived into lines; LAST keeps the latest one. */
struct output {
	char text[1024], last[512];
	size_t used;
	void (*line)(const char *text);
};

static void line_flush(struct output *output)
{
	if (!output->used)
		return;
	output->text[output->used] = '\0';
	output->used = 0;
	snprintf(output->last, sizeof(output->last), "%.500s", output->text);
	if (output->line)
		output->line(output->text);
}

static void output_feed(struct output *output, const char *data, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		if (data[i] == '\n') {
			line_flush(output);
			continue;
		}
		if (output->used == sizeof(output->text) - 1)
			line_flush(output);
		output->text[output->used++] = data[i];
	}
}

/* Reads until the end of output or the deadline.  0, or -1 at the deadline. */
static int output_drain(int fd, int64_t deadline, struct output *output)
{
	for (;;) {
		int64_t left = (deadline - ocs_now_ns()) / 1000000;
		struct pollfd wait = { .fd = fd, .events = POLLIN };
		char data[512];
		ssize_t n;

		if (left <= 0)
			return -1;
		if (poll(&wait, 1, left > 60000 ? 60000 : (int)left) <= 0)
			continue;
		n = read(fd, data, sizeof(data));
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n <= 0)
			return 0;
		output_feed(output, data, n);
	}
}

int ocs_child_run(char *const *argv, int timeout_ms, void (*line)(const char *text),
		  struct ocs_error *err)
{
	int64_t deadline = ocs_now_ns() + (int64_t)timeout_ms * 1000000;
	struct output output = { .line = line };
	int pipes[2], status, late;
	pid_t pid, done;

	if (pipe2(pipes, O_CLOEXEC) < 0)
		return ocs_error_set(err, OCS_ERROR, "cannot make a pipe: %s", strerror(errno));
	pid = fork();
	if (pid < 0) {
		close(pipes[0]);
		close(pipes[1]);
		return ocs_error_set(err, OCS_ERROR, "cannot fork: %s", strerror(errno));
	}
	if (!pid)
		program_become(argv, pipes[1]);
	setpgid(pid, pid);
	close(pipes[1]);
	late = output_drain(pipes[0], deadline, &output);
	line_flush(&output);
	/* A helper that closed its output gets a moment to end. */
	for (done = 0; !late && !done && ocs_now_ns() < deadline;) {
		done = waitpid(pid, &status, WNOHANG);
		if (!done)
			poll(NULL, 0, 5);
	}
	if (done <= 0) {
		kill(-pid, SIGKILL);
		waitpid(pid, &status, 0);
		late = -1;
	}
	close(pipes[0]);
	if (late)
		return ocs_error_set(err, OCS_ERROR, "%s did not end within %d s", argv[0],
				     timeout_ms / 1000);
	if (WIFSIGNALED(status))
		return ocs_error_set(err, OCS_ERROR, "%s was killed by signal %d", argv[0],
				     WTERMSIG(status));
	if (WEXITSTATUS(status))
		return ocs_error_set(err, OCS_ERROR, "%s failed: %s", argv[0],
				     output.last[0] ? output.last : "no message");
	return 0;
}
