/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_RAILS_MAILBOX_H
#define OCS_RAILS_MAILBOX_H

/* Between a rank and its node's agent (doc/rails.md, rule 8): words on a socket for what is rare,
 * letters in shared memory for what is at every operation.
 *
 * The agent listens at OCS_RAILS_AGENT, a SOCK_SEQPACKET socket of AF_UNIX: a path in a directory that
 * only the user may enter or, after "@", an abstract name, which containers see, too.  Any process can
 * take an abstract name: each side checks that the other one is of its user (SO_PEERCRED).  A rank connects once and says hello; the agent answers with a sealed
 * memfd, which holds one struct ocs_rails_mailbox, and an eventfd (SCM_RIGHTS, in this order).  The
 * connection is the rank's life: where it closes, the rank is gone.  A child of fork() is another
 * process with the parent's memory: it must not touch either (MADV_DONTFORK, pthread_atfork), and
 * runs ungated.
 *
 * Each direction of a mailbox is a ring with one writer and one reader.  The writer fills a letter,
 * then stores HEAD (release), then rings: the rank writes 1 to the eventfd, the agent does
 * FUTEX_WAKE on the ring's HEAD where READER_WAITS is set.  A reader that is late finds the ring
 * full: the writer then waits on TAIL the same way, the agent by its timer.  Nothing here is trusted:
 * each side checks every number that it reads.
 *
 * Numbers have the byte order of the machine. */

#include <stdatomic.h>
#include <stdint.h>

#define OCS_RAILS_AGENT "OCS_RAILS_AGENT" /* in the environment of tasks: path of the socket */
#define OCS_RAILS_AGENT_VERSION 1
#define OCS_RAILS_LETTERS 1024	    /* of a ring, a power of two */
#define OCS_RAILS_GROUP_RANKS 16384 /* of one group */

enum ocs_rails_word_kind {
	OCS_RAILS_HELLO = 1, /* rank to agent, first: VERSION, RANK, RANKS */
	OCS_RAILS_WELCOME,   /* agent to rank: VERSION, ERROR; descriptors come with it where 0 */
	OCS_RAILS_GROUP,     /* rank to agent: GROUP, COUNT, and COUNT world ranks, ascending */
	OCS_RAILS_KNOWN,     /* agent to rank: GROUP, ERROR, NEED: operations of it may come */
	OCS_RAILS_GOODBYE,   /* rank to agent: it ends in good order */
	/* Agent to rank, for the job's people: TEXT follows, COUNT bytes.  ERROR not 0: of a fault, which every rank is
	 * told, and RANK writes to its stderr. */
	OCS_RAILS_NOTE,
};

/* Whether a group's operations have to pass the gate at all. */
enum ocs_rails_group_need {
	OCS_RAILS_GATED,
	OCS_RAILS_FREE, /* inside a node, or no circuits are concerned: go on without letters */
};

struct ocs_rails_word {
	uint32_t kind, version;
	uint32_t rank, ranks;
	uint64_t group;
	uint32_t count, need;
	int32_t error; /* 0, or as in a letter */
	uint32_t zero;
	/* int32_t world ranks, or text */
};

enum ocs_rails_letter_kind {
	OCS_RAILS_ARRIVE =
		1,	 /* rank: reached operation IDX of GROUP and sends nothing before GRANT */
	OCS_RAILS_END,	 /* rank: the operation is over, and all that it had to send has left */
	OCS_RAILS_WISH,	 /* rank: GROUP is what it expects to send in next */
	OCS_RAILS_GRANT, /* agent: operation IDX of GROUP may begin, or ERROR */
	OCS_RAILS_LOST,	 /* agent: nothing will be granted any more: ERROR */
};

/* As ocs_coordinator_error, and: */
#define OCS_RAILS_ERROR_AGENT 100   /* the agent or the controller is gone */
#define OCS_RAILS_ERROR_REFUSED 101 /* an unknown version, rank or group */

struct ocs_rails_letter {
	uint32_t kind;
	int32_t error;
	uint64_t group, idx;
	uint64_t rails; /* of a grant: those that carry it */
	uint64_t stamp; /* ns of CLOCK_MONOTONIC at the writer: of an arrival, when the rank came */
	uint64_t zero[3];
};

struct ocs_rails_ring {
	_Atomic uint32_t head; /* letters written so far, modulo 2^32 */
	uint32_t pad0[15];
	_Atomic uint32_t tail; /* letters read so far */
	_Atomic uint32_t reader_waits, writer_waits;
	uint32_t pad1[13];
	struct ocs_rails_letter letter[OCS_RAILS_LETTERS];
};

struct ocs_rails_mailbox {
	struct ocs_rails_ring to_agent, to_rank;
};

/* The name of a group: the COUNT world ranks MEMBERS, ascending, and how many communicators with
 * these members the rank made before (all members make them in the same order).  FNV-1a over the
 * ranks and INSTANCE as 32-bit numbers, least significant byte first.  A send from A to B is the
 * group {A, B} of an instance with bit 31 set, bit 30 where A is the greater one. */
static inline uint64_t ocs_rails_group_name(const int32_t *members, uint32_t count,
					    uint32_t instance)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (uint32_t i = 0; i <= count; i++) {
		uint32_t word = i < count ? (uint32_t)members[i] : instance;

		for (int k = 0; k < 4; k++, word >>= 8)
			hash = (hash ^ (word & 0xff)) * UINT64_C(0x100000001b3);
	}
	return hash;
}

#endif
