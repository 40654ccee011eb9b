/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_NCCL_GRAPH_H
#define OCS_NCCL_GRAPH_H

/* Graph files: which port each channel of NCCL's ring comes in and goes out by. */

#include "src/nccl/topology.h"

struct ocs_nccl_channel {
	int in, out; /* indexes of ports */
	const int *
		gpus; /* NGPUS of them by NCCL's numbers, the first at IN, the last at OUT; NULL: all,
			  * as they are near the ports */
	int ngpus;    /* the same in all channels */
};

/* What a graph file presumes. */
struct ocs_nccl_graph_needs {
	int gpus;	 /* that the communicator uses of the node */
	int since;	 /* the first release of NCCL (release.h) that follows it, or 0: any */
	const char *why; /* of SINCE, or NULL */
};

/* The text of a graph file for the GPUs of CHANNELS of MACHINE.  PORTS: all that NCCL_IB_HCA will
 * name, in any order.  CHANNELS are repeated where ports are faster than one channel.  With one GPU
 * NCCL takes the port in for both directions: that serves only if the sender is STEERED to the
 * right port otherwise (a subnet per circuit).  NEEDS is filled in.  The caller frees the text; NULL
 * with ERR (OCS_USAGE) where NCCL's numbers of the ports are not known beforehand, or where it
 * would not obey. */
char *ocs_nccl_graph(const struct ocs_nccl_machine *machine, const struct ocs_nccl_port *ports,
		     int nports, const struct ocs_nccl_channel *channels, int nchannels,
		     bool steered, struct ocs_nccl_graph_needs *needs, struct ocs_error *err);

#endif
