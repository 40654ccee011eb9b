/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#include "src/plugins/spank/job_nodes.h"

#include <dlfcn.h>
#include <netdb.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include "src/layout/task_map.h"
#include "src/util/text.h"

char *ocs_node_address(const char *node)
{
	/* Not in Slurm's public headers; alike in all its versions that this plugin is for. */
	int (*get)(const char *, struct sockaddr_storage *, uint16_t);
	struct sockaddr_storage address = { 0 };
	char host[256];
	socklen_t length;

	*(void **)&get = dlsym(RTLD_DEFAULT, "slurm_conf_get_addr");
	if (!get || get(node, &address, 0) != 0)
		return ocs_strdup(node);
	length = address.ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) :
						 sizeof(struct sockaddr_in);
	if (getnameinfo((struct sockaddr *)&address, length, host, sizeof(host), NULL, 0,
			NI_NUMERICHOST) != 0)
		return ocs_strdup(node);
	return ocs_strdup(host);
}

int ocs_job_node_number(const struct ocs_ranks *ranks, const char *node)
{
	for (int i = 0; i < ranks->nnodes; i++)
		if (strcmp(ranks->nodes[i], node) == 0)
			return i;
	return -1;
}
