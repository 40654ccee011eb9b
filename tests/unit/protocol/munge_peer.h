/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_TESTS_UNIT_PROTOCOL_MUNGE_PEER_H
#define OCS_TESTS_UNIT_PROTOCOL_MUNGE_PEER_H

/* MUNGE for tests: the host's munged, or one of our own. */

#include <stdbool.h>
#include <sys/types.h>

/* Whether this process gets a credential. */
bool munge_works(void);
/* A munged of our own, in a mount namespace that this process enters; for root.  0 if there
 * is none. */
pid_t munge_start(void);
/* Ends it; fine with 0. */
void munge_stop(pid_t munged);
/* What CREDENTIAL says to this process (free it), or NULL: it cannot read it. */
char *munge_payload(const char *credential);

#endif
