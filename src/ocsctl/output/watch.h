/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSCTL_OUTPUT_WATCH_H
#define OCS_OCSCTL_OUTPUT_WATCH_H

/* A picture that is drawn again and again. */

#include <stdbool.h>
#include <stdio.h>

struct ocs_error;

/* Writes one picture to OUT.  Returns 0, or -1 with ERR. */
typedef int ocs_ctl_draw(void *arg, FILE *out, struct ocs_error *err);

/* Calls DRAW with ARG every SECONDS until it is interrupted.  With SCREEN, on a
 * terminal, a picture takes the place of the one before, is cut where the screen ends and
 * is drawn anew when the screen changes its size; an interrupt gives the terminal back as
 * it was and ends the program with 0; while ocsd cannot be reached the last picture stays
 * and says so.  Elsewhere pictures follow each other, with SCREEN an empty line between
 * them, and what is wrong goes to standard error.
 * Returns 0 when standard output is gone, or -1 with ERR: what else went wrong. */
int ocs_ctl_watch(ocs_ctl_draw *draw, void *arg, long seconds, bool screen, struct ocs_error *err);

#endif
