/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/nccl/subnet.h"

uint32_t ocs_nccl_subnet_address(uint32_t base, int degree, struct ocs_nccl_end end,
				 struct ocs_nccl_end peer)
{
	uint32_t here = (uint32_t)end.server * (uint32_t)degree + (uint32_t)end.interface;
	uint32_t there = (uint32_t)peer.server * (uint32_t)degree + (uint32_t)peer.interface;

	return here < there ? base + 2 * here : base + 2 * there + 1;
}
