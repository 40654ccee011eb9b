/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

/* Frames between agents and controllers: what is taken apart is put together again as it was, and
 * nothing that is no frame is read as one. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/rails/frames.h"

#define TOTAL 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

static void list_check(const int *ranks, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (ranks[i] < 0 || ranks[i] >= OCS_STEP_RANKS || (i && ranks[i] <= ranks[i - 1]))
			abort();
}

static void records_check(const struct ocs_frame *frame)
{
	struct ocs_outbox outbox = { 0 };
	struct ocs_frame_letter letter;
	long count = ocs_frame_records(frame, OCS_FRAME_LETTERS);

	for (long i = 0; i < count; i++) {
		ocs_frame_letter_at(frame, (size_t)i, &letter);
		ocs_frame_letter_swap(&letter);
		ocs_outbox_record(&outbox, OCS_FRAME_LETTERS, &letter, sizeof(letter));
	}
	if (count > 0 && frame->length <= OCS_FRAME_MAX / 2 - sizeof(struct ocs_frame_head) &&
	    (outbox.used != frame->length + sizeof(struct ocs_frame_head) ||
	     memcmp(outbox.data + sizeof(struct ocs_frame_head), frame->body, frame->length) != 0))
		abort();
	ocs_outbox_free(&outbox);
}

static void frame_check(const struct ocs_frame *frame)
{
	struct ocs_frame_challenge challenge;
	struct ocs_frame_welcome welcome;
	struct ocs_frame_hello hello;
	struct ocs_frame_group group;
	struct ocs_frame_known known;
	struct ocs_frame_gone gone;
	struct ocs_frame_lost lost;
	int *ranks, kinds = 0;

	if (ocs_frame_hello_read(frame, &hello, &ranks) == 0) {
		list_check(ranks, hello.count);
		free(ranks);
		kinds++;
	}
	if (ocs_frame_group_read(frame, TOTAL, &group, &ranks) == 0) {
		list_check(ranks, group.count);
		free(ranks);
		kinds++;
	}
	kinds += ocs_frame_challenge_read(frame, &challenge) == 0;
	kinds += ocs_frame_welcome_read(frame, &welcome) == 0;
	kinds += ocs_frame_known_read(frame, &known) == 0;
	kinds += ocs_frame_gone_read(frame, &gone) == 0;
	kinds += ocs_frame_lost_read(frame, &lost) == 0;
	kinds += ocs_frame_records(frame, OCS_FRAME_LETTERS) > 0;
	kinds += ocs_frame_records(frame, OCS_FRAME_GRANTS) > 0;
	if (kinds > 1)
		abort();
	records_check(frame);
}

/* The first byte says in what pieces the others arrive. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length)
{
	struct ocs_inbox inbox = { 0 };
	struct ocs_frame frame;
	size_t piece = length ? data[0] + 1U : 1;
	int got = 0;

	for (size_t at = 1; at < length && got >= 0; at += piece) {
		ocs_inbox_put(&inbox, data + at, length - at < piece ? length - at : piece);
		while ((got = ocs_inbox_next(&inbox, &frame)) > 0)
			frame_check(&frame);
	}
	ocs_inbox_free(&inbox);
	return 0;
}
