/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef TESTS_NETSIM_FLOW_REPLAY_H
#define TESTS_NETSIM_FLOW_REPLAY_H

/* Runs the lines "link RATE", "flow TIME BYTES COUNT LINK LINK ...", "change TIME LINK RATE",
 * "pause TIME FLOW", "resume TIME FLOW" and "reroute TIME FLOW LINK LINK ..." of the file PATH and
 * prints when each flow ends, then the bytes that each link carried.  After each event no link may
 * carry more than its rate, shares must be fair at TOLERANCE 0, and the bytes that links carried
 * must be those that flows no longer have.  Returns 0, or 1 and says what is wrong. */
int flow_replay(const char *path, double tolerance);

#endif
