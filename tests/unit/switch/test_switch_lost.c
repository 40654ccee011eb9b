/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Drivers that give up on a switch take back what it has not got: the connection is
 * aborted, not closed in good order behind what the kernel would go on sending. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/switch/driver.h"
#include "src/util/error.h"
#include "src/util/net.h"
#include "src/util/text.h"

#define SECOND INT64_C(1000000000)

/* Listens on a port of the loopback interface, whose address goes to ADDRESS. */
static int listen_here(char *address, size_t size)
{
	struct sockaddr_in bound;
	socklen_t length = sizeof(bound);
	struct ocs_error err;
	int fd = ocs_net_listen("127.0.0.1:0", &err);

	if (fd < 0)
		fail_msg("%s", err.text);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&bound, &length), 0);
	snprintf(address, size, "127.0.0.1:%d", ntohs(bound.sin_port));
	return fd;
}

/* How the connection that waits at LISTENER ends: 0 in good order, or an errno. */
static int end_of(int listener)
{
	int fd = accept(listener, NULL, NULL), result;
	struct ocs_error err;
	char data[4096];
	long n;

	assert_true(fd >= 0);
	do {
		errno = 0;
		n = ocs_net_read(fd, data, sizeof(data), ocs_now_ns() + 20 * SECOND, &err);
		result = n < 0 ? errno : 0;
	} while (n > 0);
	close(fd);
	return result;
}

static void given_up(void **state)
{
	static const char *const drivers[] = { "tl1", "scpi", "netconf" };
	char path[] = "/tmp/ocs-test-lost.XXXXXX", address[64];
	int file = mkstemp(path), listener = listen_here(address, sizeof(address));

	(void)state;
	assert_true(write(file, "user=a\npassword=b\n", 18) == 18);
	close(file);
	for (size_t i = 0; i < sizeof(drivers) / sizeof(drivers[0]); i++) {
		struct ocs_switch sw = {
			.name = (char *)"mute",
			.driver = (char *)drivers[i],
			.address = address,
			.credentials = path,
			.host_key = (char *)"SHA256:none",
			.size = 16,
		};
		struct ocs_error err;

		if (!ocs_switch_driver_find(drivers[i]))
			continue;
		assert_null(ocs_switch_open(&sw, 100, NULL, NULL, &err));
		assert_int_equal(err.code, OCS_UNREACHABLE);
		assert_int_equal(end_of(listener), ECONNRESET);
	}
	close(listener);
	unlink(path);
}

/* The same where the whole process is killed. */
static void killed(void **state)
{
	char address[64];
	int listener = listen_here(address, sizeof(address));
	pid_t child = fork();

	(void)state;
	assert_true(child >= 0);
	if (child == 0) {
		struct ocs_switch sw = { .name = (char *)"mute",
					 .driver = (char *)"scpi",
					 .address = address,
					 .size = 16 };
		struct ocs_error err;

		alarm(1);
		ocs_switch_open(&sw, 60000, NULL, NULL, &err);
		_exit(0);
	}
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(end_of(listener), ECONNRESET);
	close(listener);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(given_up), cmocka_unit_test(killed) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
