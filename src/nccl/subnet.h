/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_NCCL_SUBNET_H
#define OCS_NCCL_SUBNET_H

/* One IP subnet of two addresses per circuit, so that the sender finds the port whose
 * circuit leads to the listener (NCCL_IB_SUBNET_AWARE_ROUTING). */

#include <stdint.h>

#define OCS_NCCL_SUBNET_PREFIX 31

/* An interface of a server, both counted from 0 in their section of ocs.yaml. */
struct ocs_nccl_end {
	int server, interface;
};

/* The address of END on its circuit to PEER, host byte order; servers have DEGREE
 * interfaces, BASE is the first address of the range, which holds two for each
 * interface.  A circuit is known by the lower of its ends, and an interface is the
 * end of one circuit at a time: no two circuits that exist together share a subnet,
 * whosever they are, and nothing has to be remembered. */
uint32_t ocs_nccl_subnet_address(uint32_t base, int degree, struct ocs_nccl_end end,
				 struct ocs_nccl_end peer);

#endif
