/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_RAILS_SHIM_GATE_H
#define OCS_RAILS_SHIM_GATE_H

/* What the shims of a communication library ask: may this operation send now?  The gate core of a
 * task (doc/rails.md); it links libc and src/rails/mailbox.h alone.
 *
 * Functions may be called by several threads at once.  They never end the process.  A fault of
 * the job is one line on the stderr of one rank (OCS_RAILS_VERBOSE=0: none), and a signal where the job asked
 * for one (OCS_RAILS_SIGNAL).  In a child of fork() the gate is
 * closed: ocs_gate_get returns NULL. */

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* Several shims in one process use one gate: that of the library that was loaded first. */
#pragma GCC visibility push(default)

struct ocs_gate;

/* The gate of this process, connected at the first call; NULL where nothing is gated: no
 * OCS_RAILS_AGENT, no rank (SLURM_PROCID), or a child of fork.  A task whose job has gates and that
 * has none of its own would send in the dark: where OCS_RAILS_AGENT is set and the agent does not
 * answer within 10 s, refuses, or has another version, this says so once on stderr and every
 * ocs_gate_enter fails. */
struct ocs_gate *ocs_gate_get(void);
int ocs_gate_rank(const struct ocs_gate *gate);
int ocs_gate_ranks(const struct ocs_gate *gate);

/* A group of one communicator: COUNT world ranks MEMBERS in any order, of which this one is one.
 * All members make the groups that they share in the same order.  The number of a group stays valid
 * until the process ends; a group within one node is OCS_GATE_FREE, and needs no further calls.
 * Blocks for the agent's answer.  Returns a number >= 0, or a negative one:
 * OCS_GATE_FREE, or OCS_GATE_ERROR with the text in ocs_gate_error. */
#define OCS_GATE_FREE (-1)
#define OCS_GATE_ERROR (-2)
int ocs_gate_group(struct ocs_gate *gate, const int32_t *members, size_t count);
/* A pair for sends from world rank FROM to TO: one for each direction and TAG (which a shim counts by
 * communicator), made at first use on either side alone; the number as above. */
int ocs_gate_pair(struct ocs_gate *gate, int from, int to, uint32_t tag);

/* Reaches the next operation of GROUP (its index is counted here, from 0) and waits until it is
 * granted.  Returns 0 with *IDX, or -1: text in ocs_gate_error.  An operation that failed needs no
 * ocs_gate_leave. */
int ocs_gate_enter(struct ocs_gate *gate, int group, uint64_t *idx);

/* As ocs_gate_enter without the wait: *WORD, 0 before, becomes 1 at the grant and 2 at an error, by a
 * thread of the gate; it stays the caller's until then.  WORD may be memory that a GPU reads.  The
 * index is taken here, the letter is sent by ocs_gate_arrive_now: a GPU's stream reaches an
 * operation later than its launch (facts of NCCL: a host function that only tells). */
int ocs_gate_reserve(struct ocs_gate *gate, int group, uint64_t *idx);
int ocs_gate_arrive_now(struct ocs_gate *gate, int group, uint64_t idx, _Atomic uint32_t *word);

/* The operation is over and everything that this rank had to send has left: with the COUNT data
 * sockets FDS drained (SIOCOUTQ is 0) where it is known which they are.  Waits for that, at most the
 * gate's time limit, and ends the lease all the same then, counted as overdue. */
void ocs_gate_leave(struct ocs_gate *gate, int group, uint64_t idx, const int *fds, size_t count);

/* What this rank will send in next. */
void ocs_gate_wish(struct ocs_gate *gate, int group);

/* Why an operation whose word became 2 was refused: of the last one of the process; never NULL. */
const char *ocs_gate_refusal(const struct ocs_gate *gate);

/* Of the last failed call of this thread; never NULL. */
const char *ocs_gate_error(void);

#pragma GCC visibility pop

#endif
