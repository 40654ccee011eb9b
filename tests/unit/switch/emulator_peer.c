/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "src/util/error.h"
#include "src/util/net.h"
#include "src/util/text.h"
#include "tests/unit/switch/emulator_peer.h"

const char *emulator_program(void)
{
	static char path[512];
	const char *build = getenv("OCS_BUILD_DIR");

	snprintf(path, sizeof(path), "%s/src/emulator/ocs-emulator",
		 build ? build : TEST_BUILD_DIR);
	return path;
}

void emulator_folder(struct emulator *emulator)
{
	memset(emulator, 0, sizeof(*emulator));
	strcpy(emulator->folder, "/tmp/ocs-emu-XXXXXX");
	assert_non_null(mkdtemp(emulator->folder));
	snprintf(emulator->control, sizeof(emulator->control), "unix:%s/ctl", emulator->folder);
}

/* ARGUMENT with its %s replaced. */
static char *expand(const char *argument, const char *folder)
{
	const char *at = strstr(argument, "%s");

	return at ? ocs_asprintf("%.*s%s%s", (int)(at - argument), argument, folder, at + 2) :
		    ocs_strdup(argument);
}

static void become(int out, char **argv)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(out, 1);
	execv(argv[0], argv);
	_exit(127);
}

static void read_until_ready(struct emulator *emulator, int fd)
{
	size_t used = 0;
	ssize_t n;

	while (used + 1 < sizeof(emulator->addresses) &&
	       (n = read(fd, emulator->addresses + used, sizeof(emulator->addresses) - used - 1)) >
		       0) {
		used += (size_t)n;
		emulator->addresses[used] = '\0';
		if (strstr(emulator->addresses, "ready\n"))
			return;
	}
	fail_msg("the emulator is not ready; it printed '%s'", emulator->addresses);
}

void emulator_start(struct emulator *emulator, const char *const *arguments)
{
	char *argv[40] = { ocs_strdup(emulator_program()), ocs_strdup("--log"),
			   ocs_asprintf("%s/log", emulator->folder), ocs_strdup("--control"),
			   ocs_strdup(emulator->control) };
	int argc = 5, ends[2];

	for (; *arguments; arguments++)
		argv[argc++] = expand(*arguments, emulator->folder);
	assert_int_equal(pipe(ends), 0);
	memset(emulator->addresses, 0, sizeof(emulator->addresses));
	emulator->pid = fork();
	assert_true(emulator->pid >= 0);
	if (!emulator->pid)
		become(ends[1], argv);
	close(ends[1]);
	for (int i = 0; i < argc; i++)
		free(argv[i]);
	read_until_ready(emulator, ends[0]);
	close(ends[0]);
}

int emulator_stop(struct emulator *emulator, int number)
{
	int status = 0;

	if (number)
		kill(emulator->pid, number);
	assert_int_equal(waitpid(emulator->pid, &status, 0), emulator->pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void emulator_remove(struct emulator *emulator)
{
	char *command = ocs_asprintf("rm -r '%s'", emulator->folder);

	assert_int_equal(system(command), 0);
	free(command);
}

const char *emulator_address(struct emulator *emulator, const char *name)
{
	static char address[256];
	const char *at = emulator->addresses;
	size_t length = strlen(name);

	while (at && (strncmp(at, name, length) || at[length] != ' ')) {
		at = strchr(at, '\n');
		at = at ? at + 1 : NULL;
	}
	assert_non_null(at);
	assert_int_equal(sscanf(at + length, " %255s", address), 1);
	return address;
}

char *emulator_control(struct emulator *emulator, const char *command)
{
	struct ocs_error err = { 0 };
	struct ocs_lines lines = { .fd = ocs_net_connect(emulator->control, 5000, &err) };
	int64_t deadline = ocs_now_ns() + 10000000000LL;
	char *line = ocs_asprintf("%s\n", command), *answer;

	assert_true(lines.fd >= 0);
	assert_int_equal(ocs_net_write(lines.fd, line, strlen(line), deadline, &err), 0);
	answer = ocs_lines_next(&lines, 1 << 24, deadline, &err);
	if (!answer)
		fail_msg("%s: %s", command, err.text);
	ocs_lines_free(&lines);
	close(lines.fd);
	free(line);
	return answer;
}

void emulator_says(struct emulator *emulator, const char *command, const char *wanted)
{
	char *answer = emulator_control(emulator, command);

	assert_string_equal(answer, wanted);
	free(answer);
}

int emulator_run(const char *option, const char *value, char **output)
{
	char *argv[] = { (char *)emulator_program(), (char *)option, (char *)value, NULL };
	struct ocs_text text = { 0 };
	char data[512];
	int ends[2], status = 0;
	ssize_t n;
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	if (!pid) {
		/* What it complains about is for people. */
		if (!freopen("/dev/null", "w", stderr))
			_exit(126);
		become(ends[1], argv);
	}
	close(ends[1]);
	while ((n = read(ends[0], data, sizeof(data))) > 0)
		ocs_text_add(&text, "%.*s", (int)n, data);
	close(ends[0]);
	waitpid(pid, &status, 0);
	if (output)
		*output = ocs_text_take(&text);
	ocs_text_free(&text);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

char *emulator_log(struct emulator *emulator)
{
	char *path = ocs_asprintf("%s/log", emulator->folder), *data;
	struct ocs_error err;

	data = ocs_file_read(path, 1 << 24, NULL, &err);
	free(path);
	assert_non_null(data);
	return data;
}

int emulator_dial(struct emulator *emulator, const char *name)
{
	struct ocs_error err = { 0 };
	int fd = ocs_net_connect(emulator_address(emulator, name), 5000, &err);

	assert_true(fd >= 0);
	return fd;
}

char *emulator_ask(int fd, const char *command, int count)
{
	int64_t deadline = ocs_now_ns() + 5000000000LL;
	struct ocs_text text = { 0 };
	struct ocs_error err = { 0 };
	char c;

	assert_int_equal(ocs_net_write(fd, command, strlen(command), deadline, &err), 0);
	while (count) {
		if (ocs_net_read(fd, &c, 1, deadline, &err) != 1)
			fail_msg("%s: only '%s' came back", command, text.data);
		if (c == '\r' || (c == '\n' && !text.length))
			continue;
		if (c == ' ' && (!text.length || text.data[text.length - 1] == '\n'))
			continue;
		if (c == '\n' && text.data[text.length - 1] == '\n')
			continue;
		ocs_text_add(&text, "%c", c);
		if (c == ';' && (text.length == 1 || text.data[text.length - 2] == '\n'))
			count--;
	}
	return ocs_text_take(&text);
}

void emulator_answers(int fd, const char *command, const char *wanted)
{
	char *text = emulator_ask(fd, command, 1);
	const char *at = strchr(text, '\n'); /* the SID line */

	assert_non_null(at);
	assert_string_equal(at + 1, wanted);
	free(text);
}

void emulator_denies(int fd, const char *command, const char *ctag, const char *code,
		     const char *comment)
{
	char *wanted = ocs_asprintf("M  %s DENY\n%s\n/* %s */\n;", ctag, code, comment);

	emulator_answers(fd, command, wanted);
	free(wanted);
}
