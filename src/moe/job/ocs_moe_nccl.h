/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_MOE_NCCL_H
#define OCS_MOE_NCCL_H

/* The all-to-all of a plan as group calls of NCCL, from one rank's memory on a GPU to another's.  All ranks
 * know the whole plan (the ways of every rank) and all sizes, and make the same list of parts of it; hop by
 * hop each rank sends and receives its own of them, a group of calls a hop.  Which NIC a hop takes is up to
 * the topology file and routes; a plan only says which ranks it joins. */

#include <nccl.h>
#include <stdlib.h>

#include "ocs_moe.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The bytes BEGIN to END of what FROM sends to TO; hop h leads to RANK[h], the last one to TO. */
struct ocs_moe_nccl_part {
	int from, to;
	size_t begin, end;
	int hops;
	int rank[OCS_MOE_HOPS];
};

/* The list for RANKS ranks: BYTES[i * RANKS + j] go from i to j, WAYS[i] has the COUNT[i] ways of rank i.
 * PARTS has room for RANKS * RANKS + all ways.  Returns how many. */
static inline int ocs_moe_nccl_parts(int ranks, const size_t *bytes,
				     struct ocs_moe_way *const *ways, const int *count,
				     struct ocs_moe_nccl_part *parts)
{
	int n = 0;

	for (int i = 0; i < ranks; i++) {
		for (int j = 0; j < ranks; j++) {
			size_t all = bytes[(size_t)i * (size_t)ranks + (size_t)j], begin = 0, end;
			double share = 0;

			for (int k = 0; k < count[i] && i != j; k++) {
				const struct ocs_moe_way *way = &ways[i][k];

				if (way->to != j)
					continue;
				share += way->share;
				end = share < 1 ? (size_t)(share * (double)all) : all;
				if (end <= begin)
					continue;
				parts[n] = (struct ocs_moe_nccl_part){ i,   j,	       begin,
								       end, way->hops, { 0 } };
				for (int h = 0; h < way->hops; h++)
					parts[n].rank[h] = way->hop[h].rank;
				begin = end;
				n++;
			}
			if (begin < all)
				parts[n++] =
					(struct ocs_moe_nccl_part){ i, j, begin, all, 1, { j } };
		}
	}
	return n;
}

/* Bytes that RANK has to hold for others. */
static inline size_t ocs_moe_nccl_scratch(const struct ocs_moe_nccl_part *parts, int n, int rank)
{
	size_t size = 0;

	for (int k = 0; k < n; k++)
		for (int h = 0; h + 1 < parts[k].hops; h++)
			size += parts[k].rank[h] == rank ? parts[k].end - parts[k].begin : 0;
	return size;
}

/* Puts the calls of RANK on STREAM: what it sends to j lies at SEND + SEND_AT[j], what it gets from j at
 * RECEIVE + RECEIVE_AT[j]; SCRATCH has ocs_moe_nccl_scratch bytes.  Returns the first result that is not
 * ncclSuccess. */
static inline ncclResult_t ocs_moe_nccl_run(const struct ocs_moe_nccl_part *parts, int n, int rank,
					    const void *send, const size_t *send_at, void *receive,
					    const size_t *receive_at, void *scratch,
					    ncclComm_t comm, cudaStream_t stream)
{
	ncclResult_t result = ncclSuccess;
	int most = 0;

	for (int k = 0; k < n; k++)
		most = parts[k].hops > most ? parts[k].hops : most;
	for (int h = 0; h < most && result == ncclSuccess; h++) {
		size_t held = 0; /* of scratch, before this part's hop */

		result = ncclGroupStart();
		for (int k = 0; k < n && result == ncclSuccess; k++) {
			const struct ocs_moe_nccl_part *part = &parts[k];
			size_t length = part->end - part->begin;
			const char *from = (const char *)send + send_at[part->to] + part->begin;
			char *to = (char *)receive + receive_at[part->from] + part->begin;

			for (int g = 0; g + 1 < part->hops; g++) {
				if (part->rank[g] != rank)
					continue;
				if (g == h - 1)
					from = (char *)scratch + held;
				if (g == h)
					to = (char *)scratch + held;
				held += length;
			}
			if (h >= part->hops)
				continue;
			if ((h ? part->rank[h - 1] : part->from) == rank)
				result = ncclSend(from, length, ncclInt8, part->rank[h], comm,
						  stream);
			if (part->rank[h] == rank && result == ncclSuccess)
				result = ncclRecv(to, length, ncclInt8,
						  h ? part->rank[h - 1] : part->from, comm, stream);
		}
		if (result == ncclSuccess)
			result = ncclGroupEnd();
		else
			ncclGroupEnd();
	}
	return result;
}

#ifdef __cplusplus
}
#endif

#endif
