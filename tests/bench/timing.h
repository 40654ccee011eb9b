/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_BENCH_TIMING_H
#define OCS_BENCH_TIMING_H

#include <sys/types.h>

double timing_now_ms(void);
/* CPU time of a process so far, in ms. */
double timing_cpu_ms(pid_t pid);
/* A line for WHAT with the least, the median and p99 of VALUES, N of them in ms; sorts them. */
void timing_show(const char *what, double *values, int n);

#endif
