/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_RAILS_DRAIN_H
#define OCS_RAILS_DRAIN_H

#include <stdbool.h>
#include <stddef.h>

/* Waits until nothing that was written to the COUNT sockets FDS is unacknowledged, and acknowledges what they received.
 * What is no socket is passed over.  Returns false after LIMIT_MS. */
bool ocs_drain(const int *fds, size_t count, int limit_ms);

#endif
