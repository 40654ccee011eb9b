/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_NODE_RAILS_H
#define OCS_NODE_RAILS_H

/* A host's part in the network of a TCP job on rails: permanent neighbours for every circuit that the
 * job may have, and routes that follow those that it has (doc/rails.md). */

#include "src/node/forward_work.h"
#include "src/rails/menu.h"

struct json_object;

/* What a host knows of a job. */
struct ocs_node_rails {
	struct ocs_rails_layout layout;
	int nrails;
	char first[OCS_RAILS_TOPOLOGY];
	struct ocs_forward_hosts *hosts; /* in the order of the layout */
	int self;
	char (*via)[OCS_ADDRESS_TEXT]; /* of each host, on the management network */
};

/* Reads the reply to `apply` into work->rails.  0, or -1 with ERR. */
int ocs_node_rails_read(struct ocs_node_work *work, struct json_object *reply,
			struct ocs_error *err);
void ocs_node_rails_free(struct ocs_node_rails *rails);

/* Finds this host's address on the management network.  0, or -1 with ERR. */
int ocs_node_rails_address(struct ocs_node_work *work, struct ocs_error *err);

/* Makes the neighbours, and routes over the management network; waits for the links of the circuits
 * that the job begins with.  REPLY: as above.  0, or -1 with ERR: nothing is left. */
int ocs_node_rails_hold(struct ocs_node_work *work, struct json_object *reply,
			struct ocs_error *err);

/* Lets the routes follow what ocsd says, until the job is over.  A process that does this and is killed
 * is replaced by its parent. */
void ocs_node_rails_watch(struct ocs_node_work *work);

#endif
