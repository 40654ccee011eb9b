/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Plans of all-to-alls: lines that a controller sends are refused with a reason, or are connections of this rank and ways
 * of which every one begins here.  No socket can be made, so that no address of an input is ever called. */

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "src/moe/job/ocs_moe.h"
#include "src/moe/job/state.h"

#define RANKS 8
#define RANK 3

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

/* In place of the C library's. */
int socket(int domain, int type, int protocol)
{
	(void)domain;
	(void)type;
	(void)protocol;
	errno = EACCES;
	return -1;
}

static struct ocs_moe *handle_make(void)
{
	struct ocs_moe *moe = calloc(1, sizeof(*moe));

	if (!moe)
		abort();
	moe->rank = RANK;
	moe->ranks = moe->conns = RANKS;
	moe->listen_fd = -1;
	moe->chunk = 65536;
	moe->conn = calloc(RANKS, sizeof(struct ocs_moe_conn *));
	moe->got = calloc(RANKS, sizeof(*moe->got));
	moe->acked = calloc(RANKS, sizeof(*moe->acked));
	for (int j = 0; j < RANKS; j++)
		if (j != RANK && !(moe->conn[j] = ocs_moe_conn_create(j, OCS_MOE_LINK_PACKETS)))
			abort();
	return moe;
}

static void handle_check(const struct ocs_moe *moe)
{
	for (int k = moe->ranks; k < moe->conns; k++)
		if (moe->conn[k]->peer < 0 || moe->conn[k]->peer >= RANKS ||
		    moe->conn[k]->peer == RANK || moe->conn[k]->link == OCS_MOE_LINK_PACKETS)
			abort();
	for (int w = 0; w < moe->ways; w++)
		if (moe->way[w].to < 0 || moe->way[w].to >= RANKS || !(moe->way[w].share >= 0))
			abort();
}

/* The first byte says how many ranks a server has; a second plan follows a line "==". */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
	struct ocs_moe *moe;
	int each;

	if (!length)
		return 0;
	each = 1 << data[0] % 4;
	moe = handle_make();
	data++;
	length--;
	for (int plans = 0; plans < 3; plans++) {
		const uint8_t *next = length ? memmem(data, length, "==\n", 3) : NULL;
		size_t part = next ? (size_t)(next - data) : length;
		char *text = strndup((const char *)data, part);

		if (!text)
			abort();
		if (ocs_moe_plan(moe, text, each, 0) < 0 && !ocs_moe_error(moe)[0])
			abort();
		free(text);
		handle_check(moe);
		if (!next)
			break;
		data = next + 3;
		length -= part + 3;
	}
	ocs_moe_close(moe);
	return 0;
}
