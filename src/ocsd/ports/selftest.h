/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_PORTS_SELFTEST_H
#define OCS_OCSD_PORTS_SELFTEST_H

/* A port in quarantine on a spare loop port. */

#include "src/ocsd/state/ocsd.h"

/* Whether the drain NAME of a port of SW ends only with a self-test. */
bool ocsd_selftest_needed(struct ocsd *d, const struct ocsd_switch *sw, int port);

/* Queues the test of PORT, for WHO.  0, or -1 with ERR: it cannot be tested now. */
int ocsd_selftest_start(struct ocsd *d, struct ocsd_switch *sw, int port, uid_t who,
			struct ocs_error *err);

/* How the first test of port NAME ended that ended after AFTER others (d->replies.ntested) had;
 * NULL: none has, or it is forgotten. */
const struct ocsd_test_result *ocsd_selftest_result(const struct ocsd *d, const char *name,
						    uint64_t after);

/* Those who waited for tests that have ended are answered. */
void ocsd_selftest_results_forget(struct ocsd *d);

/* A patch on a loop port that no test knows: left by an ocsd that ended. */
void ocsd_selftest_leftover(struct ocsd_switch *sw, int in, int out);

/* The next test of SW into TEST; false: there is none. */
bool ocsd_selftest_next(struct ocsd *d, struct ocsd_switch *sw, struct ocsd_test *test);

/* Its end; TEXT: what was measured, or what is wrong. */
void ocsd_selftest_done(struct ocsd *d, struct ocsd_switch *sw, int result, const char *text);
void ocsd_selftests_free(struct ocsd_switch *sw);

#endif
