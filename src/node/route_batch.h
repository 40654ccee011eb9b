/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_NODE_ROUTE_BATCH_H
#define OCS_NODE_ROUTE_BATCH_H

/* Routes are replaced by rtnetlink, many at once: a few microseconds each, where a start of ip takes
 * milliseconds. */

#include <stddef.h>
#include <stdint.h>

struct ocs_error;
struct ocs_route_batch;

/* Routes in TABLE with the mark PROTOCOL, SOURCE (network order) being the host's own address.  NULL
 * with ERR. */
struct ocs_route_batch *ocs_route_batch_create(uint32_t table, uint8_t protocol, uint32_t source,
					       struct ocs_error *err);
void ocs_route_batch_destroy(struct ocs_route_batch *batch);

/* The route to DESTINATION leads over all of the COUNT interfaces DEVICES, which have it as a
 * neighbour; or over the one there is by the GATEWAY, if that is not 0.  Replaces the one before. */
void ocs_route_batch_add(struct ocs_route_batch *batch, uint32_t destination,
			 const unsigned int *devices, size_t count, uint32_t gateway);

/* Makes what was added so, and is empty again.  When it returns the kernel finds the new routes; see
 * route_cache.h for sockets.  0, or -1 with ERR: what the kernel says of the first that failed; the
 * others are made. */
int ocs_route_batch_run(struct ocs_route_batch *batch, struct ocs_error *err);

#endif
