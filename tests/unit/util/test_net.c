/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/util/error.h"
#include "src/util/net.h"
#include "src/util/text.h"

#define SECOND 1000000000LL

static char folder[] = "/tmp/ocs-test-net.XXXXXX";

static int folder_make(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int folder_remove(void **state)
{
	(void)state;
	return rmdir(folder);
}

static char *socket_address(const char *name)
{
	return ocs_asprintf("unix:%s/%s", folder, name);
}

static int accept_wait(int fd)
{
	struct pollfd entry = { .fd = fd, .events = POLLIN };

	assert_int_equal(poll(&entry, 1, 5000), 1);
	return accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

/* A connected pair over ADDRESS. */
static void pair(const char *address, int listener, int fds[2])
{
	struct ocs_error err = { 0 };

	fds[0] = ocs_net_connect(address, 2000, &err);
	if (fds[0] < 0)
		fail_msg("%s", err.text);
	fds[1] = accept_wait(listener);
	assert_true(fds[1] >= 0);
	assert_true(fcntl(fds[0], F_GETFL) & O_NONBLOCK);
	assert_true(fcntl(fds[0], F_GETFD) & FD_CLOEXEC);
}

static void talk(int fds[2])
{
	struct ocs_error err = { 0 };
	char buffer[16];

	assert_int_equal(ocs_net_write(fds[0], "hello", 5, ocs_now_ns() + SECOND, &err), 0);
	assert_int_equal(ocs_net_read(fds[1], buffer, sizeof(buffer), ocs_now_ns() + SECOND, &err),
			 5);
	assert_memory_equal(buffer, "hello", 5);
	close(fds[0]);
	assert_int_equal(ocs_net_read(fds[1], buffer, sizeof(buffer), ocs_now_ns() + SECOND, &err),
			 0);
	close(fds[1]);
}

static void unix_sockets(void **state)
{
	char *address = socket_address("a");
	struct ocs_error err = { 0 };
	int listener, fds[2];

	(void)state;
	assert_int_equal(ocs_net_connect(address, 100, &err), -1);
	assert_int_equal(err.code, OCS_UNREACHABLE);
	assert_non_null(strstr(err.text, address));
	listener = ocs_net_listen(address, &err);
	assert_true(listener >= 0);
	pair(address, listener, fds);
	talk(fds);
	/* somebody answers: refused */
	assert_int_equal(ocs_net_listen(address, &err), -1);
	assert_non_null(strstr(err.text, "already listens"));
	/* nobody does any more: replaced */
	close(listener);
	assert_int_equal(access(address + 5, F_OK), 0);
	assert_int_equal(ocs_net_connect(address, 100, &err), -1);
	listener = ocs_net_listen(address, &err);
	assert_true(listener >= 0);
	pair(address, listener, fds);
	talk(fds);
	close(listener);
	unlink(address + 5);
	free(address);
}

static void unix_never_removes_files(void **state)
{
	char *address = socket_address("file");
	struct ocs_error err = { 0 };

	(void)state;
	assert_int_equal(ocs_file_write(address + 5, "x", 1, 0600, &err), 0);
	assert_int_equal(ocs_net_listen(address, &err), -1);
	assert_non_null(strstr(err.text, "not a socket"));
	assert_int_equal(access(address + 5, F_OK), 0);
	unlink(address + 5);
	free(address);
}

static void tcp_sockets(void **state)
{
	struct ocs_error err = { 0 };
	struct sockaddr_in local;
	socklen_t size = sizeof(local);
	int listener = ocs_net_listen("127.0.0.1:0", &err), fds[2];
	char *address;

	(void)state;
	assert_true(listener >= 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&local, &size), 0);
	address = ocs_asprintf("localhost:%d", ntohs(local.sin_port));
	pair(address, listener, fds);
	talk(fds);
	close(listener);
	assert_int_equal(ocs_net_connect(address, 500, &err), -1);
	assert_int_equal(err.code, OCS_UNREACHABLE);
	free(address);
}

static void addresses_refused(void **state)
{
	static const char *const bad[] = {
		"",	  "unix:",	"host",	     "host:",  ":80",
		"host:0", "host:65536", "host:http", "::1:80", "host: 80"
	};
	char *long_path = ocs_asprintf("unix:/%0*d", 200, 0);
	struct ocs_error err;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		err.code = 0;
		assert_int_equal(ocs_net_connect(bad[i], 100, &err), -1);
		assert_int_equal(err.code, OCS_USAGE);
	}
	err.code = 0;
	assert_int_equal(ocs_net_connect(long_path, 100, &err), -1);
	assert_int_equal(err.code, OCS_USAGE);
	assert_int_equal(ocs_net_listen(long_path, &err), -1);
	free(long_path);
}

static void read_times_out(void **state)
{
	struct ocs_error err = { 0 };
	int64_t start = ocs_now_ns();
	int fds[2];
	char c;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
	assert_int_equal(ocs_net_read(fds[0], &c, 1, start + SECOND / 20, &err), -1);
	assert_int_equal(errno, ETIMEDOUT);
	assert_string_equal(err.text, "timed out");
	assert_true(ocs_now_ns() - start >= SECOND / 20);
	assert_true(ocs_now_ns() - start < 2 * SECOND);
	/* a deadline in the past still takes what is there */
	assert_int_equal(ocs_net_write(fds[1], "x", 1, 0, &err), 0);
	assert_int_equal(ocs_net_read(fds[0], &c, 1, 0, &err), 1);
	close(fds[0]);
	close(fds[1]);
}

static void *drain(void *argument)
{
	static char buffer[65536];
	size_t *total = argument;
	int fd = (int)total[1];
	long count;

	while ((count = ocs_net_read(fd, buffer, sizeof(buffer), ocs_now_ns() + 5 * SECOND, NULL)) >
	       0)
		*total += (size_t)count;
	return NULL;
}

static void write_all_or_fail(void **state)
{
	size_t length = 4 << 20, total[2] = { 0 };
	char *data = ocs_calloc(1, length);
	struct ocs_error err = { 0 };
	pthread_t thread;
	int fds[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
	/* nobody reads */
	assert_int_equal(ocs_net_write(fds[0], data, length, ocs_now_ns() + SECOND / 20, &err), -1);
	assert_string_equal(err.text, "timed out");
	close(fds[0]);
	close(fds[1]);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
	total[1] = (size_t)fds[1];
	pthread_create(&thread, NULL, drain, total);
	assert_int_equal(ocs_net_write(fds[0], data, length, ocs_now_ns() + 10 * SECOND, &err), 0);
	close(fds[0]);
	pthread_join(thread, NULL);
	assert_int_equal(total[0], length);
	close(fds[1]);
	/* the peer is gone: an error, not a signal */
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
	close(fds[1]);
	assert_int_equal(ocs_net_write(fds[0], data, 10, ocs_now_ns() + SECOND, &err), -1);
	assert_int_equal(err.code, OCS_UNREACHABLE);
	close(fds[0]);
	free(data);
}

static void lines_come_whole(void **state)
{
	struct ocs_lines lines = { 0 };
	struct ocs_error err = { 0 };
	int64_t soon = ocs_now_ns() + 2 * SECOND;
	int fds[2];
	char *line;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
	lines.fd = fds[0];
	assert_int_equal(ocs_net_write(fds[1], "one\n\nthree\nfo", 13, soon, &err), 0);
	line = ocs_lines_next(&lines, 10, soon, &err);
	assert_string_equal(line, "one");
	free(line);
	line = ocs_lines_next(&lines, 10, soon, &err);
	assert_string_equal(line, "");
	free(line);
	line = ocs_lines_next(&lines, 10, soon, &err);
	assert_string_equal(line, "three");
	free(line);
	assert_null(ocs_lines_next(&lines, 10, ocs_now_ns() + SECOND / 50, &err));
	assert_string_equal(err.text, "timed out");
	assert_int_equal(ocs_net_write(fds[1], "ur\n1234567890\n12345678901\n", 26, soon, &err), 0);
	line = ocs_lines_next(&lines, 10, soon, &err);
	assert_string_equal(line, "four");
	free(line);
	line = ocs_lines_next(&lines, 10, soon, &err);
	assert_string_equal(line, "1234567890");
	free(line);
	assert_null(ocs_lines_next(&lines, 10, soon, &err));
	assert_non_null(strstr(err.text, "longer than the 10 bytes"));
	line = ocs_lines_next(&lines, 11, soon, &err);
	assert_string_equal(line, "12345678901");
	free(line);
	assert_int_equal(ocs_net_write(fds[1], "half", 4, soon, &err), 0);
	close(fds[1]);
	assert_null(ocs_lines_next(&lines, 10, soon, &err));
	assert_non_null(strstr(err.text, "closed in the middle of a line"));
	assert_int_equal(err.code, OCS_UNREACHABLE);
	ocs_lines_free(&lines);
	close(fds[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unix_sockets),	    cmocka_unit_test(unix_never_removes_files),
		cmocka_unit_test(tcp_sockets),	    cmocka_unit_test(addresses_refused),
		cmocka_unit_test(read_times_out),   cmocka_unit_test(write_all_or_fail),
		cmocka_unit_test(lines_come_whole),
	};

	return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
