/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_NODE_ROUTE_CACHE_H
#define OCS_NODE_ROUTE_CACHE_H

/* Each socket keeps the route that it found last, until the kernel declares all such routes old.  On a
 * change of a route it does so only if it has seen the one before in use.  A sender that looked the
 * old one up at this moment may mark it too late, or be interrupted between the lookup and the
 * note of how old its route is: then the socket uses the old route until some other route changes.
 * So it is to be done once more, when no lookup from before is under way. */

struct ocs_error;
struct ocs_route_cache;

/* For the network namespace of the caller, whose user must be root.  NULL with ERR. */
struct ocs_route_cache *ocs_route_cache_create(struct ocs_error *err);
void ocs_route_cache_destroy(struct ocs_route_cache *cache);

/* Waits until whoever was in the middle of sending a packet, on any CPU, has done so: it is in the
 * interface's queue, or with its driver.  Some 50 us.  0, or -1 with ERR. */
int ocs_route_cache_await(const struct ocs_route_cache *cache, struct ocs_error *err);

/* To be called when routes have changed: afterwards no TCP socket sends by the routes from before, and
 * nothing of it is between lookup and interface.  What an interface's queue holds may still leave
 * (port_queues.h), and a datagram that waits for room in its socket.  0, or -1 with ERR. */
int ocs_route_cache_renew(struct ocs_route_cache *cache, struct ocs_error *err);

#endif
