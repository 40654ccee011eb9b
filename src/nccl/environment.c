/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <stdlib.h>
#include <string.h>

#include "src/nccl/topology.h"
#include "src/util/text.h"

#define VARIABLES_MAX 16

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int ocs_nccl_environment(const char *topo_file, char *const *nets, int nnets,
			 const char *socket_interface, bool rails, char ***env)
{
	char **list = ocs_calloc(VARIABLES_MAX, sizeof(*list));
	int count = 0;

	/* trees want neighbours that have no circuit */
	list[count++] = ocs_strdup("NCCL_ALGO=Ring");
	/* ports of one NIC are ports of different switches: never fuse them */
	list[count++] = ocs_strdup("NCCL_NET_MERGE_LEVEL=LOC");
	/* survive a reconfiguration: about 16 s a try, seven tries */
	list[count++] = ocs_strdup("NCCL_IB_TIMEOUT=22");
	list[count++] = ocs_strdup("NCCL_IB_RETRY_CNT=7");
	if (rails)
		list[count++] = ocs_strdup("NCCL_CROSS_NIC=0");
	if (topo_file)
		list[count++] = ocs_asprintf("NCCL_TOPO_FILE=%s", topo_file);
	if (socket_interface)
		list[count++] = ocs_asprintf("NCCL_SOCKET_IFNAME==%s", socket_interface);
	if (nnets > 0) {
		struct ocs_text text = { 0 };

		/* the second = asks for exact names: mlx5_1 must not match mlx5_10 */
		ocs_text_add(&text, "NCCL_IB_HCA==");
		for (int i = 0; i < nnets; i++)
			ocs_text_add(&text, "%s%s", i ? "," : "", nets[i]);
		list[count++] = ocs_text_take(&text);
	}
	qsort(list, count, sizeof(*list), compare);
	*env = list;
	return count;
}
