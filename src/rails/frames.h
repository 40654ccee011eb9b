/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_RAILS_FRAMES_H
#define OCS_RAILS_FRAMES_H

/* Between the agents of a step's nodes and the controller of the job: one TCP connection a node, frames
 * of a head and a body, numbers least significant byte first.  Letters and grants are records of 32
 * bytes, as many in a frame as there are at the time.
 *
 *   controller   CHALLENGE
 *   agent        HELLO      proves the job's secret, says which node and ranks it is
 *   controller   WELCOME    proves it, too; nothing that came before counts
 *   then         GROUP, LETTERS, GONE from the agent; KNOWN, GRANTS, LOST, NOTE, FAULT from the controller
 *
 * The secret itself is on no wire: a proof is HMAC-SHA-256 under it of a label, both nonces, and the
 * body of the hello. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct ocs_error;

#define OCS_FRAMES_VERSION 1
#define OCS_FRAME_MAX (1U << 20)
#define OCS_FRAMES_MAGIC "ocsrails"
#define OCS_FRAMES_NONCE 16
#define OCS_FRAMES_PROOF 32
#define OCS_STEP_RANKS (1 << 20)
#define OCS_NOTE_MAX 1024

enum ocs_frame_kind {
	OCS_FRAME_CHALLENGE = 1,
	OCS_FRAME_HELLO,
	OCS_FRAME_WELCOME,
	OCS_FRAME_GROUP,
	OCS_FRAME_KNOWN,
	OCS_FRAME_LETTERS,
	OCS_FRAME_GRANTS,
	OCS_FRAME_GONE,
	OCS_FRAME_LOST,
	OCS_FRAME_NOTE,	 /* text for people who ask for it */
	OCS_FRAME_FAULT, /* a fault of which the job is told: struct ocs_frame_fault and text */
};

struct ocs_frame_head {
	uint32_t length; /* of the frame, this head included */
	uint16_t kind, zero;
};

struct ocs_frame_challenge {
	char magic[8];
	uint32_t version, zero;
	uint8_t nonce[OCS_FRAMES_NONCE];
};

struct ocs_frame_hello {
	uint8_t proof[OCS_FRAMES_PROOF]; /* covers all that follows */
	uint8_t nonce[OCS_FRAMES_NONCE];
	uint32_t version, job;
	uint64_t epoch;
	uint32_t step, node; /* the node's place in the job */
	uint32_t total;	     /* ranks of the step */
	uint32_t count;	     /* those of this node, which follow: uint32_t, ascending */
};

struct ocs_frame_welcome {
	uint8_t proof[OCS_FRAMES_PROOF];
	uint32_t free; /* another step has the circuits: this one runs without gates */
	uint32_t zero;
};

struct ocs_frame_group {
	uint64_t group;
	uint32_t count, zero; /* uint32_t ranks follow, ascending */
};

struct ocs_frame_known {
	uint64_t group;
	int32_t error;
	uint32_t need; /* enum ocs_rails_group_need */
};

struct ocs_frame_letter {
	uint64_t group, idx, stamp;
	uint32_t rank, kind; /* enum ocs_rails_letter_kind */
};

struct ocs_frame_grant {
	uint64_t group, idx, rails;
	int32_t rank; /* -1: all members of this node */
	int32_t error;
};

struct ocs_frame_gone {
	uint32_t rank;
	uint32_t clean; /* it said goodbye */
};

struct ocs_frame_fault {
	uint32_t rank; /* that writes it; others only know that there is one */
	uint32_t zero;
};

struct ocs_frame_lost {
	int32_t error;
	uint32_t zero;
};

/* ---- to send ---- */

/* Zero-initialise. */
struct ocs_outbox {
	uint8_t *data;
	size_t used, sent, size;
	size_t last; /* where the last frame begins */
};

/* Appends a frame of LENGTH bytes BODY, and TAIL bytes MORE (NULL and 0: none). */
void ocs_outbox_frame(struct ocs_outbox *outbox, enum ocs_frame_kind kind, const void *body,
		      size_t length, const void *more, size_t tail);
/* Appends one record to the last frame where it is of KIND, has room and is not on its way yet; else
 * begins one. */
void ocs_outbox_record(struct ocs_outbox *outbox, enum ocs_frame_kind kind, const void *record,
		       size_t length);
/* Sends what the socket FD takes.  1: all, 0: some are left, -1: the connection is gone. */
int ocs_outbox_flush(struct ocs_outbox *outbox, int fd);
void ocs_outbox_free(struct ocs_outbox *outbox);

/* ---- what arrives ---- */

/* Zero-initialise. */
struct ocs_inbox {
	uint8_t *data;
	size_t used, at, size;
};

struct ocs_frame {
	unsigned int kind;
	const uint8_t *body; /* of the inbox, until the next call */
	size_t length;
};

/* Reads once what is there.  1: something came, 0: nothing, -1: the connection is gone, or more than
 * LIMIT bytes are unread. */
int ocs_inbox_fill(struct ocs_inbox *inbox, int fd, size_t limit);
/* The same of DATA, LENGTH bytes that have been read. */
void ocs_inbox_put(struct ocs_inbox *inbox, const void *data, size_t length);
/* 1: FRAME is the next one, 0: it is not complete, -1: this is no frame. */
int ocs_inbox_next(struct ocs_inbox *inbox, struct ocs_frame *frame);
void ocs_inbox_free(struct ocs_inbox *inbox);

/* Each takes a frame of its kind apart, into the order of the machine.  0, or -1: it is none.  Lists
 * (*RANKS, of the count in the struct) are memory of their own, ascending, below TOTAL; the caller
 * frees them. */
int ocs_frame_challenge_read(const struct ocs_frame *frame, struct ocs_frame_challenge *challenge);
int ocs_frame_hello_read(const struct ocs_frame *frame, struct ocs_frame_hello *hello, int **ranks);
int ocs_frame_welcome_read(const struct ocs_frame *frame, struct ocs_frame_welcome *welcome);
int ocs_frame_group_read(const struct ocs_frame *frame, uint32_t total,
			 struct ocs_frame_group *group, int **ranks);
int ocs_frame_known_read(const struct ocs_frame *frame, struct ocs_frame_known *known);
int ocs_frame_gone_read(const struct ocs_frame *frame, struct ocs_frame_gone *gone);
int ocs_frame_lost_read(const struct ocs_frame *frame, struct ocs_frame_lost *lost);
/* *TEXT of *LENGTH bytes (at most OCS_NOTE_MAX) lies in FRAME. */
int ocs_frame_fault_read(const struct ocs_frame *frame, struct ocs_frame_fault *fault,
			 const char **text, size_t *length);
/* Records of a frame; -1: it has none. */
long ocs_frame_records(const struct ocs_frame *frame, enum ocs_frame_kind kind);
void ocs_frame_letter_at(const struct ocs_frame *frame, size_t index,
			 struct ocs_frame_letter *letter);
void ocs_frame_grant_at(const struct ocs_frame *frame, size_t index, struct ocs_frame_grant *grant);

/* The members of a struct in the order of the wire; each is its own inverse. */
void ocs_frame_hello_swap(struct ocs_frame_hello *hello);
void ocs_frame_group_swap(struct ocs_frame_group *group);
void ocs_frame_known_swap(struct ocs_frame_known *known);
void ocs_frame_letter_swap(struct ocs_frame_letter *letter);
void ocs_frame_grant_swap(struct ocs_frame_grant *grant);

/* What proves SECRET (text) to who drew OTHER: LABEL is "agent" or "controller". */
void ocs_frames_prove(const char *secret, const char *label,
		      const uint8_t controller[OCS_FRAMES_NONCE],
		      const uint8_t agent[OCS_FRAMES_NONCE], const void *body, size_t length,
		      uint8_t proof[OCS_FRAMES_PROOF]);
bool ocs_frames_same(const uint8_t a[OCS_FRAMES_PROOF], const uint8_t b[OCS_FRAMES_PROOF]);
/* 0, or -1. */
int ocs_frames_nonce(uint8_t nonce[OCS_FRAMES_NONCE]);

#endif
