/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef TEST_NCCL_SHIM_STAND_IN_H
#define TEST_NCCL_SHIM_STAND_IN_H

/* Stand-ins for NCCL, the CUDA driver and the gate, which share one record of what happened in all ranks. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum event_kind {
	EVENT_ARRIVE = 1, /* rank, group, idx */
	EVENT_GRANT,	  /* group, idx */
	EVENT_LEAVE,	  /* rank, group, idx */
	EVENT_KERNEL,	  /* rank, what, communicator, peer: a kernel runs, and sends */
	EVENT_CALL,	  /* rank, what: a function of NCCL was called */
	EVENT_REACHED,	  /* rank: a stream ran a host function */
};

struct event {
	enum event_kind kind;
	int rank, group, communicator, peer;
	uint64_t idx;
	char what[32];
};

/* In the program, for the libraries. */
void event_add(struct event event);
void receive_wait(int peer); /* until PEER has sent what is received next */
extern _Thread_local bool in_host_function;

/* In the stand-in of the driver. */
void *stream_make(void);
void stream_launch(void *stream, void (*function)(void *), void *data); /* a kernel */
void stream_capture(void *stream, bool on);
void stream_wait(void *stream); /* until it is empty */
bool stream_held(void *stream); /* it waits for a value */

/* In the stand-in of NCCL. */
extern int nccl_loads; /* how often a process has it */

#endif
