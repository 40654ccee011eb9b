/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef TESTS_UNIT_NCCL_RIG_H
#define TESTS_UNIT_NCCL_RIG_H

/* How often WHAT is in TEXT. */
int nccl_count(const char *text, const char *what);
/* The path of our own description of a server: 8 GPUs and ports mlx5_0 to mlx5_3 (ens3 to ens6),
 * two GPUs and a port on each of four switches, two switches a processor.  The caller frees it. */
char *nccl_server(void);
/* Fails the test NAME if nccl-check says anything of TEXT, a note included. */
void nccl_spotless(const char *name, const char *text);

#endif
