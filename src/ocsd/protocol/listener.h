/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_PROTOCOL_LISTENER_H
#define OCS_OCSD_PROTOCOL_LISTENER_H

/* Sockets that clients come in by, and what is done when too many come. */

#include <event2/listener.h>
#include <stddef.h>

struct bufferevent;
struct sockaddr;
struct event_base;
struct ocs_error;

/* Listens on ADDRESS (unix:/path, host:port); CALLBACK gets CONTEXT.
 * What cannot be accepted waits.  NULL with ERR.  evconnlistener_free. */
struct evconnlistener *ocsd_listener_open(struct event_base *base, const char *address,
					  evconnlistener_cb callback, void *context,
					  struct ocs_error *err);
/* Takes nobody for a moment: who knocks waits in the kernel. */
void ocsd_listener_rest(struct evconnlistener *listener);

/* Frees STREAM and closes its descriptor at once; libevent would do so in the next turn of the
 * loop, when the listener may have accepted hundreds. */
void ocsd_stream_free(struct bufferevent *stream);

/* A client may have a descriptor below this: RESERVED are left for others (the database,
 * connections to switches). */
int ocsd_descriptor_end(int reserved);

/* "address A" for who comes from ADDRESS; of IPv6 the first half, since nobody has less. */
void ocsd_peer_name(const struct sockaddr *address, char *name, size_t size);

#endif
