/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Routes by rtnetlink, with a kernel that answers late, twice, or not at all. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "src/node/route_batch.h"
#include "src/util/error.h"

static int kernel = -1; /* the other end of the batch's socket */

/* In the place of the C library's: the kernel is here. */
int socket(int domain, int type, int protocol)
{
	int ends[2];

	if (domain != AF_NETLINK)
		return (int)syscall(SYS_socket, domain, type, protocol);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return -1;
	kernel = ends[1];
	return ends[0];
}

/* A batch gives up at once instead of in 5 s. */
int setsockopt(int fd, int level, int option, const void *value, socklen_t size)
{
	static const struct timeval soon = { .tv_usec = 50000 };

	if (level == SOL_SOCKET && option == SO_RCVTIMEO && size == sizeof(soon))
		value = &soon;
	return (int)syscall(SYS_setsockopt, fd, level, option, value, size);
}

/* The answer to message NUMBER. */
static void answer(uint32_t number, int error)
{
	struct {
		struct nlmsghdr header;
		struct nlmsgerr said;
	} message = { .header = { .nlmsg_type = NLMSG_ERROR,
				  .nlmsg_len = sizeof(message),
				  .nlmsg_seq = number },
		      .said.error = -error };

	assert_int_equal(write(kernel, &message, sizeof(message)), sizeof(message));
}

static int routes_run(struct ocs_route_batch *batch, int count, struct ocs_error *err)
{
	static const unsigned int device = 1;

	for (int i = 0; i < count; i++)
		ocs_route_batch_add(batch, (uint32_t)i, &device, 1, 0);
	return ocs_route_batch_run(batch, err);
}

static struct ocs_route_batch *batch_open(void)
{
	struct ocs_error err;
	struct ocs_route_batch *batch = ocs_route_batch_create(7, 99, 1, &err);

	assert_non_null(batch);
	return batch;
}

static void batch_close(struct ocs_route_batch *batch)
{
	ocs_route_batch_destroy(batch);
	close(kernel);
}

static void answered_twice(void **state)
{
	struct ocs_route_batch *batch = batch_open();
	struct ocs_error err = { 0 };

	(void)state;
	answer(1, 0);
	answer(2, 0);
	answer(2, 0);
	assert_int_equal(routes_run(batch, 2, &err), 0);
	/* The second answer to message 2 is none to message 3. */
	answer(3, ENETDOWN);
	assert_int_equal(routes_run(batch, 1, &err), -1);
	assert_non_null(strstr(err.text, strerror(ENETDOWN)));
	batch_close(batch);
}

static void answered_late(void **state)
{
	struct ocs_route_batch *batch = batch_open();
	struct ocs_error err = { 0 };

	(void)state;
	answer(1, 0);
	assert_int_equal(routes_run(batch, 2, &err), -1);
	assert_non_null(strstr(err.text, strerror(EAGAIN)));
	/* That of message 2 comes after its batch has given up. */
	answer(2, ENETDOWN);
	answer(3, 0);
	assert_int_equal(routes_run(batch, 1, &err), 0);
	answer(3, 0);
	assert_int_equal(routes_run(batch, 1, &err), -1);
	assert_non_null(strstr(err.text, strerror(EAGAIN)));
	batch_close(batch);
}

static void answer_missing(void **state)
{
	struct ocs_route_batch *batch = batch_open();
	struct ocs_error err = { 0 };

	(void)state;
	answer(1, 0);
	answer(3, 0);
	assert_int_equal(routes_run(batch, 3, &err), -1);
	assert_non_null(strstr(err.text, strerror(EPROTO)));
	batch_close(batch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answered_twice),
		cmocka_unit_test(answered_late),
		cmocka_unit_test(answer_missing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
