/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef TESTS_UNIT_RAILS_INTERLEAVE_H
#define TESTS_UNIT_RAILS_INTERLEAVE_H

/* A job, its switches and its frames, in one of many orders: ranks with programs of operations, an
 * ocsd that loses, delays, doubles and refuses, ranks that die, wrong wishes.  The judge counts frames
 * on circuits by itself, and asks the coordinator for nothing but its outputs. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct interleave_result {
	const char *violation; /* NULL: none */
	unsigned long steps, changes, grants, errors, rings, retries, provisioned;
};

/* Runs the job that SEED draws, in the order that it draws. */
struct interleave_result interleave_run(uint64_t seed);
/* The same with choices from DATA, which are zeros after its end. */
struct interleave_result interleave_run_bytes(const uint8_t *data, size_t size);

#endif
