/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSCTL_OUTPUT_REPORT_PAGE_H
#define OCS_OCSCTL_OUTPUT_REPORT_PAGE_H

/* The text of report.html: a page that draws what stands for @DATA@ in it, JSON whose members are
 * those of "map --json" and, besides them, what cmd/report.c adds.  @REFRESH@ is the place of an
 * element that loads it anew. */
extern const char ocs_report_page[];

#endif
