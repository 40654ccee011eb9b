/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include <stdlib.h>
#include <string.h>

#include "src/nccl/subnet.h"
#include "src/nccl/topology.h"
#include "src/util/text.h"

#define VARIABLES_MAX 24

static int name_compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* "=mlx5_0:1,mlx5_1:1": the first = asks for exact names, mlx5_1 must not match
 * mlx5_10.  NULL if no port is of this kind. */
static char *port_list(const struct ocs_nccl_setting *setting, bool rdma)
{
	struct ocs_text text = { 0 };

	for (int i = 0; i < setting->nports; i++) {
		const struct ocs_nccl_port *port = &setting->ports[i];

		if (port->rdma != rdma)
			continue;
		ocs_text_add(&text, "%s%s", text.length ? "," : "=", port->device);
		if (port->number)
			ocs_text_add(&text, ":%d", port->number);
	}
	return text.length ? ocs_text_take(&text) : NULL;
}

int ocs_nccl_environment(const struct ocs_nccl_setting *setting, char ***env)
{
	char **list = ocs_calloc(VARIABLES_MAX, sizeof(*list));
	char *rdma = port_list(setting, true), *net = port_list(setting, false);
	int count = 0;

	/* trees want neighbours that have no circuit */
	list[count++] = ocs_strdup("NCCL_ALGO=Ring");
	/* ports of one NIC are ports of different switches: never fuse them */
	list[count++] = ocs_strdup("NCCL_NET_MERGE_LEVEL=LOC");
	/* the same for NCCL before 2.24 */
	list[count++] = ocs_strdup("NCCL_IB_MERGE_NICS=0");
	/* Without NVLink a port can look faster than the way to the other processor: NCCL would divide
	 * the server in two, and its rings would leave by a port for the way inside. */
	list[count++] = ocs_strdup("NCCL_NET_DISABLE_INTRA=1");
	/* survive a reconfiguration: about 16 s a try, seven tries */
	list[count++] = ocs_strdup("NCCL_IB_TIMEOUT=22");
	list[count++] = ocs_strdup("NCCL_IB_RETRY_CNT=7");
	if (setting->rails)
		list[count++] = ocs_strdup("NCCL_CROSS_NIC=0");
	if (setting->topology_file)
		list[count++] = ocs_asprintf("NCCL_TOPO_FILE=%s", setting->topology_file);
	if (setting->graph_file)
		list[count++] = ocs_asprintf("NCCL_GRAPH_FILE=%s", setting->graph_file);
	if (rdma)
		list[count++] = ocs_asprintf("NCCL_IB_HCA=%s", rdma);
	/* without RDMA, NCCL's sockets carry the data too */
	if (!rdma && net)
		list[count++] = ocs_asprintf("NCCL_SOCKET_IFNAME=%s", net);
	else if (setting->management)
		list[count++] = ocs_asprintf("NCCL_SOCKET_IFNAME==%s", setting->management);
	if (rdma && setting->subnets) {
		list[count++] = ocs_strdup("NCCL_IB_SUBNET_AWARE_ROUTING=1");
		list[count++] =
			ocs_asprintf("NCCL_IB_SUBNET_PREFIX_LEN=%d", OCS_NCCL_SUBNET_PREFIX);
		/* of several addresses of a port, the one of its circuit */
		list[count++] = ocs_asprintf("NCCL_IB_ADDR_RANGE=%s", setting->subnets);
	}
	free(rdma);
	free(net);
	qsort(list, count, sizeof(*list), name_compare);
	*env = list;
	return count;
}
