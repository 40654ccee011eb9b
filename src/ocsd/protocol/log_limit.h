/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_PROTOCOL_LOG_LIMIT_H
#define OCS_OCSD_PROTOCOL_LOG_LIMIT_H

/* Warnings that a peer can cause as often as it likes. */

#include "src/ocsd/state/ocsd.h"

/* Logs "PEER: ..." as a warning: the first five about PEER in a minute; of the others only
 * how many there were. */
void ocsd_log_limited(struct ocsd *d, const char *peer, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Says what is left to be said; before the event base goes. */
void ocsd_log_limit_end(struct ocsd *d);

#endif
