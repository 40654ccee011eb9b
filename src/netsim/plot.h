/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_NETSIM_PLOT_H
#define OCS_NETSIM_PLOT_H

#include "src/netsim/step.h"

/* Parts of a run for which a picture has the load of links. */
#define OCS_NETSIM_PLOT_SAMPLES 240

/* Writes PREFIX-timeline.svg (what devices, collectives and the busiest links do; RESULT has
 * samples) and PREFIX-links.svg (bytes of each link, and how many links have at most so many).
 * TITLE stands above.  0, or -1 with ERR. */
int ocs_netsim_plot(const struct ocs_netsim_request *request,
		    const struct ocs_netsim_result *result, const char *title, const char *prefix,
		    struct ocs_error *err);

#endif
