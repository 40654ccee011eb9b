/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_RAILS_SHIM_NCCL_INTERNAL_H
#define OCS_RAILS_SHIM_NCCL_INTERNAL_H

/* The gates of NCCL by interposition (doc/rails.md): libocs-rails-nccl.so is loaded before a program's
 * libraries under NCCL's own name, exports all its functions, and calls the real library.
 *
 * It is built without NCCL's header, whose types are named here by what they are in its binary
 * interface: handles are pointers, enumerations int. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/rails/shim/gate.h"
#include "src/rails/shim/stream.h"

/* Values of ncclResult_t. */
enum {
	OCS_NCCL_SUCCESS = 0,
	OCS_NCCL_SYSTEM_ERROR = 2,
	OCS_NCCL_INVALID_ARGUMENT = 4,
	OCS_NCCL_INVALID_USAGE = 5,
	OCS_NCCL_IN_PROGRESS = 7,
};

#define OCS_NCCL_ID_BYTES 128
#define OCS_NCCL_NO_COLOR (-1)

/* ncclUniqueId, passed by value. */
struct ocs_nccl_id {
	unsigned char byte[OCS_NCCL_ID_BYTES];
};

/* A function of the real library; REFUSED: not for a job with gates. */
struct ocs_nccl_slot {
	void *_Atomic real;
	const char *name;
	bool refused;
};

/* Finds NAME in the real library, which is loaded at the first call; NULL with a line on stderr. */
void *ocs_nccl_find(const char *name);
/* As ocs_nccl_find, or the function that refuses; called by the forwarders, never NULL. */
void *ocs_nccl_resolve(struct ocs_nccl_slot *slot);

/* What this process says of itself: text on stderr, and of ncclGetLastError.  FATAL: nothing is sent
 * any more, all later operations fail with the same text. */
void ocs_nccl_say(bool fatal, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The text of the last failure; NULL: there was none. */
const char *ocs_nccl_said(void);
/* Whether ocs_nccl_say was called with FATAL, or a stream's operation was refused. */
bool ocs_nccl_failed(void);

/* The gate, or NULL: all calls go straight through.  That includes calls which NCCL makes to itself. */
struct ocs_gate *ocs_nccl_gate(void);
/* Around calls into the real library, so that those it makes to itself are not gated. */
void ocs_nccl_inside(int step);

/* A communicator.  MEMBERS: the world rank of each of its ranks. */
struct ocs_nccl_communicator {
	void *handle;
	uint64_t name;	       /* the same at all members */
	struct ocs_nccl_id id; /* where ocs_nccl_exchange finds its members */
	int rank, ranks, group;
	uint32_t splits;
	int32_t *members;
	struct ocs_nccl_communicator *next;
};

/* Keeps a copy of what is known of HANDLE, which has just been made.  Returns -1: no memory. */
int ocs_nccl_communicator_add(const struct ocs_nccl_communicator *communicator);
/* What is known of HANDLE, which lives until HANDLE is destroyed; NULL: made where nothing is gated. */
struct ocs_nccl_communicator *ocs_nccl_communicator_find(void *handle);
void ocs_nccl_communicator_remove(void *handle);

/* All RANKS members of what NAME names give their VALUE and learn those of all: VALUES[i] is that of
 * rank i.  ID is what ncclGetUniqueId gave, with the address of a listener behind NCCL's part.  Blocks
 * until all have come.  Returns 0, or -1 with text in WHY. */
int ocs_nccl_exchange(const struct ocs_nccl_id *id, uint64_t name, int rank, int ranks,
		      uint64_t value, uint64_t *values, char why[OCS_STREAM_WHY]);
/* Makes this process's listener known in ID.  Returns 0, or -1 with text in WHY: no address, no room. */
int ocs_nccl_exchange_offer(struct ocs_nccl_id *id, char why[OCS_STREAM_WHY]);
uint64_t ocs_nccl_hash(uint64_t seed, const void *bytes, size_t size);

/* Waits while HANDLE's last call is in progress; returns its result. */
int ocs_nccl_settle(void *handle, int result);
/* How deep this thread is in ncclGroupStart. */
int ocs_nccl_depth(void);

#endif
