/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_RAILS_SHIM_STREAM_H
#define OCS_RAILS_SHIM_STREAM_H

/* Operations of a GPU's streams: they arrive at the gate when their streams do, and their streams wait
 * for the grant.  On each stream, in this order: a host function that says "reached", a wait for the
 * value 1 of each word, what is launched between ocs_stream_before and ocs_stream_after, a host function
 * that says "over".  No host function waits; a thread of this file talks to the gate.
 *
 * The driver is found by dlopen: a program without GPUs needs none. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/rails/shim/gate.h"

#define OCS_STREAM_WHY 240

struct ocs_stream_ticket;

/* An operation of GROUP.  NEXT: another one of the same group follows the first in one launch; it arrives
 * with it and its circuits stand by then, so that the streams do not wait for it. */
struct ocs_stream_operation {
	int group;
	bool next;
};

/* Puts the gate's part before a launch on the COUNT STREAMS.  Returns the ticket that ocs_stream_after
 * wants, or NULL with text in WHY: nothing may be launched.  A stream that is being captured into a graph
 * is refused: the graph would be sent again and again with one operation. */
struct ocs_stream_ticket *ocs_stream_before(struct ocs_gate *gate,
					    const struct ocs_stream_operation *operations,
					    size_t operation_count, void *const *streams,
					    size_t count, char why[OCS_STREAM_WHY]);
/* Puts the end of TICKET, which is gone afterwards, behind what was launched.  Returns -1 with text in WHY:
 * its end will not be known. */
int ocs_stream_after(struct ocs_stream_ticket *ticket, char why[OCS_STREAM_WHY]);
/* Whether an operation was refused after its stream had reached it: that stream waits for ever, since
 * what is behind the wait must not be sent. */
bool ocs_stream_refused(void);
/* Has FUNCTION called, once and by a thread of this file, when that happens. */
void ocs_stream_refused_call(void (*function)(void));

#endif
