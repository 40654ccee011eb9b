/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_MOE_JOB_FRAME_H
#define OCS_MOE_JOB_FRAME_H

/* What ranks send each other.  Numbers have the byte order of the machine, which the greeting
 * checks. */

#include <stdint.h>

#include "src/moe/job/ocs_moe.h"

#define OCS_MOE_MAGIC UINT32_C(0x4f43534d) /* reads otherwise in another byte order */
#define OCS_MOE_VERSION 2
#define OCS_MOE_TEXT 256 /* of an OCS_MOE_ABORT */

/* First on each connection, from the end that connects. */
struct ocs_moe_greeting {
	uint32_t magic, version;
	uint32_t from, to, ranks;
	uint32_t link;
	uint32_t chunk;
	uint32_t zero;
	unsigned char key[OCS_MOE_KEY];
};

enum ocs_moe_frame_kind {
	OCS_MOE_DATA = 1, /* LENGTH bytes of FROM for TO follow, at AT of the pair's bytes */
	OCS_MOE_ACK,	  /* TO, which sent it, has got the chunk at AT: to FROM, by packets */
	OCS_MOE_CREDIT,	  /* room for one more chunk of class HOP on LINK, by packets */
	OCS_MOE_DONE,	  /* FROM has sent and got all of CALL, by packets */
	OCS_MOE_DOWN,	  /* LINK carries nothing any more, by packets */
	OCS_MOE_ABORT,	  /* LENGTH bytes of text follow: FROM gives up, by packets */
	OCS_MOE_BYE,	  /* FROM closes its handle, by packets */
	OCS_MOE_HERE,	  /* FROM waits for others, by packets */
};

/* A chunk follows the hops of its frame: the rank that gets it looks at hop[hop].  Its class is how many
 * ranks it has still to pass: one that has to pass a rank needs a credit of that rank, so that what
 * arrives there always has room, and a rank with classes 1, 2 ... of its own for each connection
 * never waits for itself. */
struct ocs_moe_frame {
	uint8_t kind, hop, hops, zero;
	uint32_t call, from, to;
	uint32_t link, length;
	uint64_t at;
	struct ocs_moe_route_hop {
		uint32_t rank, link;
	} route[OCS_MOE_HOPS];
};

#endif
