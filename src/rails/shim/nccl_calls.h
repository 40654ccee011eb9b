/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_RAILS_SHIM_NCCL_CALLS_H
#define OCS_RAILS_SHIM_NCCL_CALLS_H

#include "src/rails/shim/nccl_internal.h"

/* Defines ncclNAME and, with the same effect, pncclNAME. */
#define OCS_NCCL_ENTRY(type, name, parameters)                                                   \
	__attribute__((visibility("default"))) type nccl##name parameters;                       \
	__attribute__((visibility("default"), alias("nccl" #name))) type pnccl##name parameters; \
	type nccl##name parameters

/* At the end of a group with RESULT: the communicators that were begun in it are known by now. */
void ocs_nccl_pending_keep(int result);

#endif
