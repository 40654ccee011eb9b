/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_SWITCHES_NOTIFICATION_H
#define OCS_OCSD_SWITCHES_NOTIFICATION_H

/* What switches say of themselves between two commands. */

#include "src/ocsd/state/ocsd.h"

/* SW said TEXT without being asked, or (NULL) closed its idle connection. */
void ocsd_switch_heard(struct ocsd *d, struct ocsd_switch *sw, const char *text);

#endif
