/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/moe/controller/relay_frames.h"

#include <endian.h>
#include <string.h>

#include "src/moe/controller/sockets.h"

struct row {
	uint32_t group, zero;
	struct ocs_moe_gate_head head;
	int64_t counts[OCS_MOE_GATE_COUNTS];
};

_Static_assert(offsetof(struct row, counts) == 8 + sizeof(struct ocs_moe_gate_head),
	       "a row has no holes");
_Static_assert(sizeof(struct relay_ask) == 32 && sizeof(struct relay_plan) == 16,
	       "frames have no holes");

/* Into the order of the wire, and back. */
static void head_swap(struct ocs_moe_gate_head *head)
{
	head->magic = htole32(head->magic);
	head->kind = htole16(head->kind);
	head->counts = htole16(head->counts);
	head->rank = (int32_t)htole32((uint32_t)head->rank);
	head->ranks = (int32_t)htole32((uint32_t)head->ranks);
	head->layer = (int32_t)htole32((uint32_t)head->layer);
	head->step = (int32_t)htole32((uint32_t)head->step);
	head->microbatch = (int64_t)htole64((uint64_t)head->microbatch);
	head->dropped = htole64(head->dropped);
}

void relay_row_add(struct ocs_outbox *outbox, int group, const struct ocs_moe_gate_head *head,
		   const int64_t *counts)
{
	struct row row = { .group = htole32((uint32_t)group), .head = *head };

	for (int i = 0; i < head->counts; i++)
		row.counts[i] = (int64_t)htole64((uint64_t)counts[i]);
	head_swap(&row.head);
	ocs_outbox_frame(outbox, (enum ocs_frame_kind)RELAY_ROW, &row,
			 offsetof(struct row, counts) + head->counts * sizeof(*counts), NULL, 0);
}

int relay_row_read(const struct ocs_frame *frame, uint32_t *group, struct ocs_moe_gate_head *head,
		   int64_t *counts)
{
	size_t before = offsetof(struct row, counts), size = frame->length - before;

	if (frame->kind != RELAY_ROW || frame->length < before ||
	    size > OCS_MOE_GATE_COUNTS * sizeof(*counts))
		return -1;
	memcpy(group, frame->body, sizeof(*group));
	memcpy(head, frame->body + offsetof(struct row, head), sizeof(*head));
	memcpy(counts, frame->body + before, size);
	*group = le32toh(*group);
	head_swap(head);
	for (size_t i = 0; i < size / sizeof(*counts); i++)
		counts[i] = (int64_t)le64toh((uint64_t)counts[i]);
	return ocs_moe_gate_check(head, counts, size);
}

void relay_ask_add(struct ocs_outbox *outbox, int group, uint64_t token,
		   const struct ocs_moe_step *step)
{
	struct relay_ask ask = {
		.token = htole64(token),
		.microbatch = (int64_t)htole64((uint64_t)step->microbatch),
		.group = htole32((uint32_t)group),
		.layer = (int32_t)htole32((uint32_t)step->layer),
		.step = htole32(2 * (step->pass == OCS_MOE_BACKWARD) + !!step->second),
	};

	ocs_outbox_frame(outbox, (enum ocs_frame_kind)RELAY_ASK, &ask, sizeof(ask), NULL, 0);
}

int relay_ask_read(const struct ocs_frame *frame, uint32_t *group, uint64_t *token,
		   struct ocs_moe_step *step)
{
	struct relay_ask ask;
	uint32_t which;

	if (frame->kind != RELAY_ASK || frame->length != sizeof(ask))
		return -1;
	memcpy(&ask, frame->body, sizeof(ask));
	which = le32toh(ask.step);
	*group = le32toh(ask.group);
	*token = le64toh(ask.token);
	*step = (struct ocs_moe_step){
		.layer = (int)le32toh((uint32_t)ask.layer),
		.microbatch = (int64_t)le64toh((uint64_t)ask.microbatch),
		.pass = which & 2 ? OCS_MOE_BACKWARD : OCS_MOE_FORWARD,
		.second = which & 1,
	};
	return which > 3 || step->layer < 0 || step->microbatch < 0 ||
			       step->microbatch > MICROBATCHES_MAX ?
		       -1 :
		       0;
}

void relay_plan_add(struct ocs_outbox *outbox, uint64_t token, const char *text, size_t length)
{
	for (;;) {
		size_t part = length < RELAY_PART ? length : RELAY_PART;
		struct relay_plan plan = { .token = htole64(token),
					   .more = htole32(part < length) };

		ocs_outbox_frame(outbox, (enum ocs_frame_kind)RELAY_PLAN, &plan, sizeof(plan), text,
				 part);
		text += part;
		length -= part;
		if (!length)
			return;
	}
}

int relay_plan_read(const struct ocs_frame *frame, struct relay_plan *plan, const char **text,
		    size_t *length)
{
	if (frame->kind != RELAY_PLAN || frame->length < sizeof(*plan))
		return -1;
	memcpy(plan, frame->body, sizeof(*plan));
	plan->token = le64toh(plan->token);
	plan->more = le32toh(plan->more);
	*text = (const char *)frame->body + sizeof(*plan);
	*length = frame->length - sizeof(*plan);
	return 0;
}

void relay_beat_add(struct ocs_outbox *outbox)
{
	ocs_outbox_frame(outbox, (enum ocs_frame_kind)RELAY_BEAT, NULL, 0, NULL, 0);
}
