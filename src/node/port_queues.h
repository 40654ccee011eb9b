/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_NODE_PORT_QUEUES_H
#define OCS_NODE_PORT_QUEUES_H

/* Frames that were sent by a port and have not left it: what its queueing discipline holds (`tc -s
 * qdisc`), and what the driver has given the NIC to send, where the driver counts that
 * (byte_queue_limits in sysfs). */

#include <stddef.h>
#include <stdint.h>

struct ocs_error;
struct ocs_port_queues;
struct ocs_route_cache;

/* Of COUNT (at most 64) interfaces, INDICES as if_nametoindex says, in the network namespace of the
 * caller.  NULL with ERR. */
struct ocs_port_queues *ocs_port_queues_create(const char *const *names,
					       const unsigned int *indices, size_t count,
					       struct ocs_error *err);
void ocs_port_queues_destroy(struct ocs_port_queues *queues);

/* Bytes that PORT has to send; 0 also where it is gone.  -1 with ERR. */
int64_t ocs_port_queues_held(struct ocs_port_queues *queues, size_t port, struct ocs_error *err);

/* Waits until each of PORTS (a bit each), to which nothing new is sent, has sent what it had; CACHE is that
 * of the routes which led there.  Bits of those that have are taken out.  0: all have; 1: those left
 * had not at DEADLINE_NS (of ocs_now_ns); -1 with ERR. */
int ocs_port_queues_wait(struct ocs_port_queues *queues, struct ocs_route_cache *cache,
			 uint64_t *ports, int64_t deadline_ns, struct ocs_error *err);

#endif
