/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* The all-to-all as group calls of NCCL, run against a stand-in that matches sends and receives: in each
 * group every send meets a receive of its size at its peer, in order, and every byte arrives once. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/moe/job/ocs_moe_nccl.h"
#include "tests/unit/moe/gates.h"

#define RANKS 8
#define GROUPS OCS_MOE_HOPS
#define CALLS 20000
#define LINKS 10
#define SHARES 30

/* One call of one rank. */
struct call {
	int rank, group, peer, sends, met;
	size_t bytes;
	const void *from;
	void *to;
};

struct ncclComm {
	int rank;
};

static struct call calls[CALLS];
static int ncalls, group, inside, fail_at;
static struct ncclComm *within;

ncclResult_t ncclGroupStart(void)
{
	assert_false(inside);
	inside = 1;
	return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void)
{
	assert_true(inside);
	inside = 0;
	group++;
	return ncclSuccess;
}

static ncclResult_t call_add(const void *from, void *to, size_t bytes, int peer, ncclComm_t comm)
{
	assert_true(inside && peer >= 0 && peer < RANKS && bytes > 0);
	assert_ptr_equal(comm, within);
	if (fail_at && ncalls + 1 >= fail_at)
		return ncclInternalError;
	calls[ncalls++] =
		(struct call){ comm->rank, group, peer, from != NULL, 0, bytes, from, to };
	return ncclSuccess;
}

ncclResult_t ncclSend(const void *sendbuff, size_t count, ncclDataType_t datatype, int peer,
		      ncclComm_t comm, cudaStream_t stream)
{
	(void)stream;
	assert_int_equal(datatype, ncclInt8);
	return call_add(sendbuff, NULL, count, peer, comm);
}

ncclResult_t ncclRecv(void *recvbuff, size_t count, ncclDataType_t datatype, int peer,
		      ncclComm_t comm, cudaStream_t stream)
{
	(void)stream;
	assert_int_equal(datatype, ncclInt8);
	return call_add(NULL, recvbuff, count, peer, comm);
}

/* The receive of this group that meets a send: the first one of its pair that is left. */
static struct call *partner_find(const struct call *send)
{
	for (int k = 0; k < ncalls; k++) {
		struct call *c = &calls[k];

		if (c->group == send->group && !c->sends && !c->met && c->rank == send->peer &&
		    c->peer == send->rank)
			return c;
	}
	return NULL;
}

static void groups_run(void)
{
	for (int g = 0; g < GROUPS; g++) {
		for (int k = 0; k < ncalls; k++) {
			struct call *receive;

			if (calls[k].group != g || !calls[k].sends)
				continue;
			receive = partner_find(&calls[k]);
			assert_non_null(receive);
			assert_true(receive->bytes == calls[k].bytes);
			receive->met = 1;
			memcpy(receive->to, calls[k].from, calls[k].bytes);
		}
		for (int k = 0; k < ncalls; k++)
			assert_true(calls[k].group != g || calls[k].sends || calls[k].met);
	}
}

struct plan {
	int ranks, each, links, shares, n, count[RANKS];
	struct ocs_moe_link link[LINKS];
	struct ocs_moe_share share[SHARES];
	struct ocs_moe_way *way[RANKS];
	size_t bytes[RANKS * RANKS];
	struct ocs_moe_nccl_part *part;
};

static void plan_make(struct plan *p, int seed)
{
	uint64_t state = (uint64_t)seed * 7919 + 3;
	int room = 0, servers;

	memset(p, 0, sizeof(*p));
	p->each = 1 + seed % 2;
	servers = 2 + seed / 2 % (RANKS / p->each - 1);
	p->ranks = servers * p->each;
	while (p->links < LINKS) {
		int a = (int)(gate_random(&state) * p->ranks),
		    b = (int)(gate_random(&state) * p->ranks);

		if (a / p->each != b / p->each) {
			p->link[p->links] =
				(struct ocs_moe_link){ (uint32_t)p->links + 1, a, b, "", "" };
			p->links++;
		}
	}
	while (p->shares < SHARES) {
		struct ocs_moe_share s = { (int)(gate_random(&state) * servers),
					   (int)(gate_random(&state) * servers),
					   (int)(gate_random(&state) * (servers + 1)) - 1,
					   gate_random(&state) < 0.7,
					   gate_random(&state) < 0.7,
					   gate_random(&state) * 0.4 };

		if (s.relay == s.from || s.relay == s.to)
			s.relay = -1;
		p->share[p->shares++] = s;
	}
	for (int r = 0; r < p->ranks; r++) {
		p->way[r] = ocs_moe_ways_make(r, p->ranks, p->each, p->share, p->shares, p->link,
					      p->links, &p->count[r]);
		room += p->count[r];
	}
	for (int k = 0; k < p->ranks * p->ranks; k++)
		p->bytes[k] = gate_random(&state) < 0.2 ? 0 : (size_t)(gate_random(&state) * 5000);
	p->part = calloc((size_t)(room + RANKS * RANKS), sizeof(*p->part));
	p->n = ocs_moe_nccl_parts(p->ranks, p->bytes, p->way, p->count, p->part);
}

static void plan_free(struct plan *p)
{
	for (int r = 0; r < p->ranks; r++)
		free(p->way[r]);
	free(p->part);
}

/* Each rank's calls, and its memory. */
static ncclResult_t rank_run(struct plan *p, int rank, unsigned char *send, unsigned char *receive,
			     unsigned char **scratch)
{
	struct ncclComm comm = { rank };
	size_t send_at[RANKS], receive_at[RANKS], out = 0, in = 0;
	ncclResult_t result;

	for (int j = 0; j < p->ranks; j++) {
		send_at[j] = out;
		receive_at[j] = in;
		out += p->bytes[rank * p->ranks + j];
		in += p->bytes[j * p->ranks + rank];
	}
	*scratch = malloc(ocs_moe_nccl_scratch(p->part, p->n, rank) + 1);
	within = &comm;
	group = 0;
	result = ocs_moe_nccl_run(p->part, p->n, rank, send, send_at, receive, receive_at, *scratch,
				  &comm, NULL);
	within = NULL;
	return result;
}

static unsigned char byte_of(int from, int to, size_t k)
{
	return (unsigned char)(k * 13 + (size_t)from * 41 + (size_t)to * 97 + k / 256);
}

static void every_byte_arrives_once(void **state)
{
	long passed = 0;

	(void)state;
	for (int seed = 0; seed < 60; seed++) {
		unsigned char *send[RANKS], *receive[RANKS], *scratch[RANKS];
		struct plan p;

		plan_make(&p, seed);
		ncalls = 0;
		for (int r = 0; r < p.ranks; r++) {
			size_t at = 0;

			send[r] = malloc(RANKS * 5000);
			receive[r] = calloc(1, RANKS * 5000);
			for (int j = 0; j < p.ranks; j++)
				for (size_t k = 0; k < p.bytes[r * p.ranks + j]; k++)
					send[r][at++] = byte_of(r, j, k);
			assert_int_equal(rank_run(&p, r, send[r], receive[r], &scratch[r]),
					 ncclSuccess);
			passed += (long)ocs_moe_nccl_scratch(p.part, p.n, r);
		}
		groups_run();
		for (int r = 0; r < p.ranks; r++) {
			size_t at = 0;

			for (int j = 0; j < p.ranks; j++)
				for (size_t k = 0; k < p.bytes[j * p.ranks + r]; k++)
					assert_int_equal(receive[r][at++], byte_of(j, r, k));
			free(send[r]);
			free(receive[r]);
			free(scratch[r]);
		}
		plan_free(&p);
	}
	assert_true(passed > 100000);
}

/* A call that fails ends it, and the group is closed. */
static void an_error_comes_back(void **state)
{
	static unsigned char send[RANKS * 5000], receive[RANKS * 5000];
	unsigned char *scratch;
	struct plan p;

	(void)state;
	plan_make(&p, 4);
	ncalls = 0;
	fail_at = 3;
	assert_int_equal(rank_run(&p, 0, send, receive, &scratch), ncclInternalError);
	assert_false(inside);
	fail_at = 0;
	free(scratch);
	plan_free(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_byte_arrives_once),
		cmocka_unit_test(an_error_comes_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
