/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_RAILS_SHIM_SOCKETS_H
#define OCS_RAILS_SHIM_SOCKETS_H

/* The TCP connections that this process has made or taken, loopback aside: connect, accept and
 * accept4 of the C library are interposed. */

#include <stdbool.h>
#include <stddef.h>

/* Up to ROOM of them in FDS.  Returns their number. */
size_t ocs_shim_sockets(int *fds, size_t room);
/* Whether all that was written to them has been acknowledged.  What they received is acknowledged. */
bool ocs_shim_sockets_drained(void);

#endif
