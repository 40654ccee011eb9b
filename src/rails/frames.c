/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/rails/frames.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/util/secret.h"
#include "src/util/text.h"

#define RECORD 32
#define READ_AT_ONCE 65536

_Static_assert(sizeof(struct ocs_frame_letter) == RECORD, "records have one size");
_Static_assert(sizeof(struct ocs_frame_grant) == RECORD, "records have one size");
_Static_assert(sizeof(struct ocs_frame_head) == 8, "a head has no holes");
_Static_assert(sizeof(struct ocs_frame_hello) == 80, "a hello has no holes");

/* ---- to send ---- */

static void outbox_put(struct ocs_outbox *outbox, const void *data, size_t length)
{
	if (!length)
		return;
	if (outbox->used + length > outbox->size) {
		outbox->size = (outbox->used + length) * 2;
		outbox->data = ocs_realloc(outbox->data, outbox->size);
	}
	memcpy(outbox->data + outbox->used, data, length);
	outbox->used += length;
}

void ocs_outbox_frame(struct ocs_outbox *outbox, enum ocs_frame_kind kind, const void *body,
		      size_t length, const void *more, size_t tail)
{
	struct ocs_frame_head head = {
		.length = htole32((uint32_t)(sizeof(head) + length + tail)),
		.kind = htole16((uint16_t)kind),
	};

	outbox->last = outbox->used;
	outbox_put(outbox, &head, sizeof(head));
	outbox_put(outbox, body, length);
	outbox_put(outbox, more, tail);
}

void ocs_outbox_record(struct ocs_outbox *outbox, enum ocs_frame_kind kind, const void *record,
		       size_t length)
{
	struct ocs_frame_head head;

	if (outbox->used > outbox->sent && outbox->last >= outbox->sent) {
		memcpy(&head, outbox->data + outbox->last, sizeof(head));
		if (le16toh(head.kind) == kind &&
		    le32toh(head.length) + length <= OCS_FRAME_MAX / 2) {
			head.length = htole32((uint32_t)(le32toh(head.length) + length));
			memcpy(outbox->data + outbox->last, &head, sizeof(head));
			outbox_put(outbox, record, length);
			return;
		}
	}
	ocs_outbox_frame(outbox, kind, record, length, NULL, 0);
}

int ocs_outbox_flush(struct ocs_outbox *outbox, int fd)
{
	while (outbox->sent < outbox->used) {
		ssize_t count = send(fd, outbox->data + outbox->sent, outbox->used - outbox->sent,
				     MSG_NOSIGNAL | MSG_DONTWAIT);

		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0)
			return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -1;
		outbox->sent += (size_t)count;
	}
	outbox->used = outbox->sent = outbox->last = 0;
	return 1;
}

void ocs_outbox_free(struct ocs_outbox *outbox)
{
	free(outbox->data);
	*outbox = (struct ocs_outbox){ 0 };
}

/* ---- what arrives ---- */

static void inbox_room(struct ocs_inbox *inbox, size_t length)
{
	if (inbox->at) {
		inbox->used -= inbox->at;
		memmove(inbox->data, inbox->data + inbox->at, inbox->used);
		inbox->at = 0;
	}
	if (inbox->used + length > inbox->size) {
		inbox->size = (inbox->used + length) * 2;
		inbox->data = ocs_realloc(inbox->data, inbox->size);
	}
}

int ocs_inbox_fill(struct ocs_inbox *inbox, int fd, size_t limit)
{
	ssize_t count;

	inbox_room(inbox, READ_AT_ONCE);
	if (inbox->used > limit)
		return -1;
	count = recv(fd, inbox->data + inbox->used, READ_AT_ONCE, MSG_DONTWAIT);
	if (count > 0) {
		inbox->used += (size_t)count;
		return 1;
	}
	return count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) ? 0 : -1;
}

void ocs_inbox_put(struct ocs_inbox *inbox, const void *data, size_t length)
{
	inbox_room(inbox, length);
	if (length)
		memcpy(inbox->data + inbox->used, data, length);
	inbox->used += length;
}

int ocs_inbox_next(struct ocs_inbox *inbox, struct ocs_frame *frame)
{
	struct ocs_frame_head head;
	size_t length;

	if (inbox->used - inbox->at < sizeof(head))
		return 0;
	memcpy(&head, inbox->data + inbox->at, sizeof(head));
	length = le32toh(head.length);
	if (length < sizeof(head) || length > OCS_FRAME_MAX || head.zero)
		return -1;
	if (inbox->used - inbox->at < length)
		return 0;
	frame->kind = le16toh(head.kind);
	frame->body = inbox->data + inbox->at + sizeof(head);
	frame->length = length - sizeof(head);
	inbox->at += length;
	return 1;
}

void ocs_inbox_free(struct ocs_inbox *inbox)
{
	free(inbox->data);
	*inbox = (struct ocs_inbox){ 0 };
}

void ocs_frame_hello_swap(struct ocs_frame_hello *hello)
{
	hello->version = htole32(hello->version);
	hello->job = htole32(hello->job);
	hello->epoch = htole64(hello->epoch);
	hello->step = htole32(hello->step);
	hello->node = htole32(hello->node);
	hello->total = htole32(hello->total);
	hello->count = htole32(hello->count);
}

void ocs_frame_group_swap(struct ocs_frame_group *group)
{
	group->group = htole64(group->group);
	group->count = htole32(group->count);
}

void ocs_frame_known_swap(struct ocs_frame_known *known)
{
	known->group = htole64(known->group);
	known->error = (int32_t)htole32((uint32_t)known->error);
	known->need = htole32(known->need);
}

void ocs_frame_letter_swap(struct ocs_frame_letter *letter)
{
	letter->group = htole64(letter->group);
	letter->idx = htole64(letter->idx);
	letter->stamp = htole64(letter->stamp);
	letter->rank = htole32(letter->rank);
	letter->kind = htole32(letter->kind);
}

void ocs_frame_grant_swap(struct ocs_frame_grant *grant)
{
	grant->group = htole64(grant->group);
	grant->idx = htole64(grant->idx);
	grant->rails = htole64(grant->rails);
	grant->rank = (int32_t)htole32((uint32_t)grant->rank);
	grant->error = (int32_t)htole32((uint32_t)grant->error);
}

/* COUNT ranks after HEAD bytes of FRAME, ascending and below TOTAL. */
static int ranks_read(const struct ocs_frame *frame, size_t head, uint32_t count, uint32_t total,
		      int **ranks)
{
	int *list;

	if (!count || count > total || total > OCS_STEP_RANKS ||
	    frame->length != head + (size_t)count * sizeof(uint32_t))
		return -1;
	list = ocs_calloc(count, sizeof(*list));
	for (uint32_t i = 0; i < count; i++) {
		uint32_t rank;

		memcpy(&rank, frame->body + head + i * sizeof(rank), sizeof(rank));
		rank = le32toh(rank);
		if (rank >= total || (i && (int)rank <= list[i - 1])) {
			free(list);
			return -1;
		}
		list[i] = (int)rank;
	}
	*ranks = list;
	return 0;
}

static int body_read(const struct ocs_frame *frame, enum ocs_frame_kind kind, void *body,
		     size_t length)
{
	if (frame->kind != kind || frame->length != length)
		return -1;
	memcpy(body, frame->body, length);
	return 0;
}

int ocs_frame_challenge_read(const struct ocs_frame *frame, struct ocs_frame_challenge *challenge)
{
	if (body_read(frame, OCS_FRAME_CHALLENGE, challenge, sizeof(*challenge)))
		return -1;
	challenge->version = le32toh(challenge->version);
	return memcmp(challenge->magic, OCS_FRAMES_MAGIC, sizeof(challenge->magic)) ? -1 : 0;
}

int ocs_frame_hello_read(const struct ocs_frame *frame, struct ocs_frame_hello *hello, int **ranks)
{
	if (frame->kind != OCS_FRAME_HELLO || frame->length < sizeof(*hello))
		return -1;
	memcpy(hello, frame->body, sizeof(*hello));
	ocs_frame_hello_swap(hello);
	return ranks_read(frame, sizeof(*hello), hello->count, hello->total, ranks);
}

int ocs_frame_welcome_read(const struct ocs_frame *frame, struct ocs_frame_welcome *welcome)
{
	if (body_read(frame, OCS_FRAME_WELCOME, welcome, sizeof(*welcome)))
		return -1;
	welcome->free = le32toh(welcome->free);
	return 0;
}

int ocs_frame_group_read(const struct ocs_frame *frame, uint32_t total,
			 struct ocs_frame_group *group, int **ranks)
{
	if (frame->kind != OCS_FRAME_GROUP || frame->length < sizeof(*group))
		return -1;
	memcpy(group, frame->body, sizeof(*group));
	ocs_frame_group_swap(group);
	return ranks_read(frame, sizeof(*group), group->count, total, ranks);
}

int ocs_frame_known_read(const struct ocs_frame *frame, struct ocs_frame_known *known)
{
	if (body_read(frame, OCS_FRAME_KNOWN, known, sizeof(*known)))
		return -1;
	ocs_frame_known_swap(known);
	return 0;
}

int ocs_frame_gone_read(const struct ocs_frame *frame, struct ocs_frame_gone *gone)
{
	if (body_read(frame, OCS_FRAME_GONE, gone, sizeof(*gone)))
		return -1;
	gone->rank = le32toh(gone->rank);
	gone->clean = le32toh(gone->clean);
	return 0;
}

int ocs_frame_lost_read(const struct ocs_frame *frame, struct ocs_frame_lost *lost)
{
	if (body_read(frame, OCS_FRAME_LOST, lost, sizeof(*lost)))
		return -1;
	lost->error = (int32_t)le32toh((uint32_t)lost->error);
	return 0;
}

int ocs_frame_fault_read(const struct ocs_frame *frame, struct ocs_frame_fault *fault,
			 const char **text, size_t *length)
{
	if (frame->kind != OCS_FRAME_FAULT || frame->length < sizeof(*fault) ||
	    frame->length - sizeof(*fault) > OCS_NOTE_MAX)
		return -1;
	memcpy(fault, frame->body, sizeof(*fault));
	fault->rank = le32toh(fault->rank);
	*text = (const char *)frame->body + sizeof(*fault);
	*length = frame->length - sizeof(*fault);
	return 0;
}

long ocs_frame_records(const struct ocs_frame *frame, enum ocs_frame_kind kind)
{
	return frame->kind != kind || !frame->length || frame->length % RECORD ?
		       -1 :
		       (long)(frame->length / RECORD);
}

void ocs_frame_letter_at(const struct ocs_frame *frame, size_t index,
			 struct ocs_frame_letter *letter)
{
	memcpy(letter, frame->body + index * RECORD, RECORD);
	ocs_frame_letter_swap(letter);
}

void ocs_frame_grant_at(const struct ocs_frame *frame, size_t index, struct ocs_frame_grant *grant)
{
	memcpy(grant, frame->body + index * RECORD, RECORD);
	ocs_frame_grant_swap(grant);
}

/* ---- proofs ---- */

void ocs_frames_prove(const char *secret, const char *label,
		      const uint8_t controller[OCS_FRAMES_NONCE],
		      const uint8_t agent[OCS_FRAMES_NONCE], const void *body, size_t length,
		      uint8_t proof[OCS_FRAMES_PROOF])
{
	size_t named = strlen(label) + 1, total = named + 2 * OCS_FRAMES_NONCE + length;
	uint8_t *text = ocs_calloc(total, 1);

	memcpy(text, label, named);
	memcpy(text + named, controller, OCS_FRAMES_NONCE);
	memcpy(text + named + OCS_FRAMES_NONCE, agent, OCS_FRAMES_NONCE);
	if (length)
		memcpy(text + named + 2 * OCS_FRAMES_NONCE, body, length);
	ocs_mac(secret, strlen(secret), text, total, proof);
	free(text);
}

bool ocs_frames_same(const uint8_t a[OCS_FRAMES_PROOF], const uint8_t b[OCS_FRAMES_PROOF])
{
	uint8_t differ = 0;

	for (int i = 0; i < OCS_FRAMES_PROOF; i++)
		differ |= a[i] ^ b[i];
	return !differ;
}

int ocs_frames_nonce(uint8_t nonce[OCS_FRAMES_NONCE])
{
	return getrandom(nonce, OCS_FRAMES_NONCE, 0) == OCS_FRAMES_NONCE ? 0 : -1;
}
