/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Datagrams of gates: whatever processes of the user send to the agent's socket, what is taken for a row or a
 * step is one to the last field.  An input is lengths of two bytes, each with its datagram behind it. */

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "src/moe/job/ocs_moe_gate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

static void sockets_make(int pair[2])
{
	int one = 1, room = 1 << 20;

	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair) ||
	    setsockopt(pair[0], SOL_SOCKET, SO_PASSCRED, &one, sizeof(one)) ||
	    setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)))
		abort();
}

static void row_check(const struct ocs_moe_gate_head *head, const int64_t *counts, size_t size)
{
	if (head->magic != OCS_MOE_GATE_MAGIC || head->rank < 0 || head->rank >= head->ranks ||
	    head->layer < 0 || head->microbatch < 0 || head->counts > OCS_MOE_GATE_COUNTS ||
	    size != sizeof(*head) + head->counts * sizeof(*counts))
		abort();
	if (head->kind == OCS_MOE_GATE_ROW ? !head->counts || head->step :
					     head->counts || head->step < 0 || head->step > 3)
		abort();
	for (int k = 0; k < head->counts; k++)
		if (counts[k] < 0)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
	static int pair[2] = { -1, -1 };
	static int64_t counts[OCS_MOE_GATE_COUNTS];
	struct ocs_moe_gate_head head;

	if (pair[0] < 0)
		sockets_make(pair);
	while (length >= 2) {
		size_t size = (size_t)data[0] << 8 | data[1];

		data += 2;
		length -= 2;
		if (size > length)
			size = length;
		if (send(pair[1], data, size, MSG_DONTWAIT) != (ssize_t)size)
			abort();
		if (ocs_moe_gate_read(pair[0], &head, counts) == 1)
			row_check(&head, counts, size);
		data += size;
		length -= size;
	}
	if (ocs_moe_gate_read(pair[0], &head, counts) != 0)
		abort();
	return 0;
}
