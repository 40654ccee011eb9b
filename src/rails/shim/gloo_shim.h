/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_RAILS_SHIM_GLOO_SHIM_H
#define OCS_RAILS_SHIM_GLOO_SHIM_H

/* The shim of Gloo, as PyTorch uses it: functions of libgloo.so.0 are interposed by their C++ names.
 *
 *   gloo_library.c      the library itself
 *   gloo_contexts.c     contexts (process groups) and their ranks
 *   gloo_collectives.c  held until all members have reached them
 *   gloo_messages.c     sends and receives, started by a thread when they are granted
 *
 * This is C: libstdc++ comes with Gloo or not at all.  It is compiled so that exceptions of Gloo may
 * pass through it.  What it knows of the layout of Gloo's objects is checked when a context connects. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/rails/shim/gate.h"
#include "src/rails/shim/gloo_library.h"

struct gloo_context {
	void *gloo, *transport; /* gloo::Context, gloo::transport::Context */
	int group;		/* of the gate */
	uint32_t identity;	/* the same at all members */
	int rank, size;
	int32_t *world; /* ranks of the job */
	struct gloo_context *next;
};

/* The context of one of these objects; NULL where it is not gated. */
const struct gloo_context *ocs_gloo_context(const void *gloo, const void *transport);

/* This thread is in a collective: what it sends is part of that. */
extern _Thread_local int ocs_gloo_inside;

struct gloo_pass {
	int group;
	uint64_t idx;
};

/* Waits for all members; throws where it is refused.  PASS has ocs_gloo_leave as its cleanup. */
void ocs_gloo_enter(int group, struct gloo_pass *pass);
void ocs_gloo_leave(struct gloo_pass *pass);
#define GLOO_PASS struct gloo_pass __attribute__((cleanup(ocs_gloo_leave)))

#endif
