/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_MOE_RELAY_FRAMES_H
#define OCS_MOE_RELAY_FRAMES_H

/* Between the controller of a job with experts and its relays on other nodes: a TCP connection a node, frames of
 * src/rails/frames.h, numbers least significant byte first.  It begins with CHALLENGE, HELLO and WELCOME as there; a
 * relay is one rank, the number of its node.  Then:
 *
 *   relay        ROW, a datagram of a gate; ASK, a question for a plan; BEAT, each second
 *   controller   PLAN, the answer in parts; BEAT, to each */

#include <stddef.h>
#include <stdint.h>

#include "src/moe/control.h"
#include "src/moe/job/ocs_moe_gate.h"
#include "src/rails/frames.h"

enum relay_frame_kind {
	RELAY_ROW = 32, /* apart from those of rails */
	RELAY_ASK,
	RELAY_PLAN,
	RELAY_BEAT,
};

#define RELAY_PART (256 * 1024) /* bytes of a plan in a frame */

struct relay_ask {
	uint64_t token; /* of the relay's, in the answer again */
	int64_t microbatch;
	uint32_t group;
	int32_t layer;
	uint32_t step; /* 2 * backward + second */
	uint32_t zero;
};

struct relay_plan {
	uint64_t token;
	uint32_t more; /* another part follows */
	uint32_t zero; /* text of the part follows */
};

/* Each appends one frame. */
void relay_row_add(struct ocs_outbox *outbox, int group, const struct ocs_moe_gate_head *head,
		   const int64_t *counts);
void relay_ask_add(struct ocs_outbox *outbox, int group, uint64_t token,
		   const struct ocs_moe_step *step);
/* TEXT of LENGTH bytes, in as many frames as it takes. */
void relay_plan_add(struct ocs_outbox *outbox, uint64_t token, const char *text, size_t length);
void relay_beat_add(struct ocs_outbox *outbox);

/* Each takes a frame of its kind apart.  0, or -1: it is none. */
/* COUNTS has room for OCS_MOE_GATE_COUNTS. */
int relay_row_read(const struct ocs_frame *frame, uint32_t *group, struct ocs_moe_gate_head *head,
		   int64_t *counts);
int relay_ask_read(const struct ocs_frame *frame, uint32_t *group, uint64_t *token,
		   struct ocs_moe_step *step);
/* *TEXT and *LENGTH are in the frame. */
int relay_plan_read(const struct ocs_frame *frame, struct relay_plan *plan, const char **text,
		    size_t *length);

#endif
