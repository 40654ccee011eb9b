/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Rows on their way from a rank to the agent of its node. */

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/moe/job/ocs_moe_gate.h"
#include "tests/unit/moe/gates.h"

static char folder[64], path[96];
static int64_t counts[OCS_MOE_GATE_COUNTS];

static int folder_make(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/ocs-gate-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/agent", folder);
	return 0;
}

static int folder_remove(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(folder);
}

static void rows_arrive(void **state)
{
	int64_t row[OCS_MOE_GATE_COUNTS];
	struct ocs_moe_gate_head head;
	struct ocs_moe_gate *gate;
	struct stat what;
	int fd = ocs_moe_gate_listen(path);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(stat(path, &what), 0);
	assert_int_equal(what.st_mode & 0777, 0600);
	gate = ocs_moe_gate_open(path, 3, 8);
	for (int n = 1; n <= OCS_MOE_GATE_COUNTS; n *= 4) {
		for (int e = 0; e < n; e++)
			row[e] = INT64_C(1) << e % 62;
		ocs_moe_gate(gate, n % 7, n + INT64_C(5000000000), row, n);
		assert_int_equal(ocs_moe_gate_read(fd, &head, counts), 1);
		assert_int_equal(head.kind, OCS_MOE_GATE_ROW);
		assert_int_equal(head.counts, n);
		assert_int_equal(head.rank, 3);
		assert_int_equal(head.ranks, 8);
		assert_int_equal(head.layer, n % 7);
		assert_true(head.microbatch == n + INT64_C(5000000000));
		assert_memory_equal(row, counts, sizeof(*row) * (size_t)n);
	}
	for (int step = 0; step < 8; step++) {
		ocs_moe_gate_step(gate, 1, 2, step >> 2, step >> 1 & 1, step & 1);
		assert_int_equal(ocs_moe_gate_read(fd, &head, counts), 1);
		assert_int_equal(head.kind, step & 1 ? OCS_MOE_GATE_END : OCS_MOE_GATE_BEGIN);
		assert_int_equal(head.step, step >> 1);
	}
	assert_int_equal(ocs_moe_gate_read(fd, &head, counts), 0);
	assert_int_equal(ocs_moe_gate_dropped(gate), 0);
	ocs_moe_gate_close(gate);
	close(fd);
}

static void drops_are_counted(void **state)
{
	int64_t row[512] = { 1 };
	struct ocs_moe_gate_head head;
	struct ocs_moe_gate *gate = ocs_moe_gate_open(path, 0, 1);
	uint64_t dropped, taken = 0;
	int fd;

	(void)state;
	/* No agent; one that reads nothing; one that came back. */
	unlink(path);
	ocs_moe_gate(gate, 0, 0, row, 512);
	assert_int_equal(ocs_moe_gate_dropped(gate), 1);
	fd = ocs_moe_gate_listen(path);
	for (int k = 0; k < 20000; k++)
		ocs_moe_gate(gate, 0, k, row, 512);
	dropped = ocs_moe_gate_dropped(gate);
	while (ocs_moe_gate_read(fd, &head, counts) == 1)
		taken++;
	assert_true(taken > 1);
	assert_int_equal(dropped + taken, 20001);
	close(fd);
	ocs_moe_gate(gate, 0, 0, row, 512);
	assert_int_equal(ocs_moe_gate_dropped(gate), dropped + 1);
	fd = ocs_moe_gate_listen(path); /* over the socket that was left */
	assert_true(fd >= 0);
	ocs_moe_gate(gate, 0, 0, row, 512);
	assert_int_equal(ocs_moe_gate_read(fd, &head, counts), 1);
	assert_int_equal(head.dropped, dropped + 1);
	ocs_moe_gate(gate, 0, 0, row, 0);
	ocs_moe_gate(gate, 0, 0, row, OCS_MOE_GATE_COUNTS + 1);
	assert_int_equal(ocs_moe_gate_dropped(gate), dropped + 3);
	ocs_moe_gate_close(gate);
	close(fd);
	unsetenv("OCS_MOE_AGENT");
	gate = ocs_moe_gate_open(NULL, 0, 1);
	ocs_moe_gate(gate, 0, 0, row, 4);
	assert_int_equal(ocs_moe_gate_dropped(gate), 1);
	ocs_moe_gate_close(gate);
	ocs_moe_gate(NULL, 0, 0, row, 4);
	ocs_moe_gate_close(NULL);
}

/* Datagrams of right length with random bytes in random places: what is taken makes sense. */
static void lies_are_refused(void **state)
{
	static unsigned char bytes[sizeof(struct ocs_moe_gate_head) + 8 * 64];
	struct ocs_moe_gate_head *head = (struct ocs_moe_gate_head *)bytes, got;
	int fd = ocs_moe_gate_listen(path), out = socket(AF_UNIX, SOCK_DGRAM, 0), taken = 0;
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	uint64_t random = 1;

	(void)state;
	strcpy(address.sun_path, path);
	assert_int_equal(connect(out, (struct sockaddr *)&address, sizeof(address)), 0);
	for (int k = 0; k < 20000; k++) {
		size_t size;
		int rc;

		memset(bytes, 0, sizeof(bytes));
		*head = (struct ocs_moe_gate_head){ .magic = OCS_MOE_GATE_MAGIC,
						    .kind = (uint16_t)(1 + k % 3),
						    .rank = 1,
						    .ranks = 4,
						    .layer = 2,
						    .microbatch = 7 };
		if (head->kind == OCS_MOE_GATE_ROW)
			head->counts = (uint16_t)(1 + k % 64);
		size = sizeof(*head) + head->counts * 8u;
		if (k % 2)
			bytes[(size_t)(gate_random(&random) * (double)size)] ^=
				(unsigned char)(1 << k / 2 % 8);
		if (k % 10 == 9)
			size = (size_t)(gate_random(&random) * sizeof(bytes));
		assert_true(send(out, bytes, size, 0) == (ssize_t)size);
		rc = ocs_moe_gate_read(fd, &got, counts);
		assert_int_not_equal(rc, 0);
		if (rc < 0)
			continue;
		taken++;
		assert_true(got.rank >= 0 && got.rank < got.ranks && got.layer >= 0);
		assert_true(got.counts <= OCS_MOE_GATE_COUNTS &&
			    size == sizeof(got) + got.counts * 8u);
		assert_true((got.kind == OCS_MOE_GATE_ROW) == (got.counts > 0));
		for (int e = 0; e < got.counts; e++)
			assert_true(counts[e] >= 0);
	}
	assert_true(taken > 9000);
	close(out);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_arrive),
		cmocka_unit_test(drops_are_counted),
		cmocka_unit_test(lies_are_refused),
	};

	return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
