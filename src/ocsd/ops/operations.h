/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_OCSD_OPS_OPERATIONS_H
#define OCS_OCSD_OPS_OPERATIONS_H

/* What clients may ask; doc/protocol.md tells the fields. */

#include "src/ocsd/protocol/dispatch.h"

/* The table, for d->server.operations. */
extern const struct ocsd_operation_entry ocsd_operations[];

/* allocations, from prologs and epilogs */
void ocsd_op_apply(struct ocsd *d, struct ocsd_client *client, int64_t id,
		   struct json_object *request);
void ocsd_op_release(struct ocsd *d, struct ocsd_client *client, int64_t id,
		     struct json_object *request);
void ocsd_op_unable(struct ocsd *d, struct ocsd_client *client, int64_t id,
		    struct json_object *request);
void ocsd_op_present(struct ocsd *d, struct ocsd_client *client, int64_t id,
		     struct json_object *request);
void ocsd_op_unheard(struct ocsd *d, struct ocsd_client *client, int64_t id,
		     struct json_object *request);

/* allocations and nodes, from slurmctld */
void ocsd_op_commit(struct ocsd *d, struct ocsd_client *client, int64_t id,
		    struct json_object *request);
void ocsd_op_prepare(struct ocsd *d, struct ocsd_client *client, int64_t id,
		     struct json_object *request);
void ocsd_op_end(struct ocsd *d, struct ocsd_client *client, int64_t id,
		 struct json_object *request);
void ocsd_op_gone(struct ocsd *d, struct ocsd_client *client, int64_t id,
		  struct json_object *request);
void ocsd_op_subscribe(struct ocsd *d, struct ocsd_client *client, int64_t id,
		       struct json_object *request);
void ocsd_op_pending(struct ocsd *d, struct ocsd_client *client, int64_t id,
		     struct json_object *request);
void ocsd_op_nodes(struct ocsd *d, struct ocsd_client *client, int64_t id,
		   struct json_object *request);

/* routes, from the nodes of jobs on rails */
void ocsd_op_routes(struct ocsd *d, struct ocsd_client *client, int64_t id,
		    struct json_object *request);

/* topologies, from the controllers of jobs */
void ocsd_op_topo(struct ocsd *d, struct ocsd_client *client, int64_t id,
		  struct json_object *request);
void ocsd_op_region(struct ocsd *d, struct ocsd_client *client, int64_t id,
		    struct json_object *request);
void ocsd_op_gates(struct ocsd *d, struct ocsd_client *client, int64_t id,
		   struct json_object *request);

/* administrators, tools */
void ocsd_op_show(struct ocsd *d, struct ocsd_client *client, int64_t id,
		  struct json_object *request);
void ocsd_op_show_phases(struct ocsd *d, struct ocsd_client *client, int64_t id,
			 struct json_object *request);
void ocsd_op_show_region(struct ocsd *d, struct ocsd_client *client, int64_t id,
			 struct json_object *request);
void ocsd_op_drain(struct ocsd *d, struct ocsd_client *client, int64_t id,
		   struct json_object *request);
void ocsd_op_fail(struct ocsd *d, struct ocsd_client *client, int64_t id,
		  struct json_object *request);
void ocsd_op_resume(struct ocsd *d, struct ocsd_client *client, int64_t id,
		    struct json_object *request);
void ocsd_op_reconcile(struct ocsd *d, struct ocsd_client *client, int64_t id,
		       struct json_object *request);

#endif
