/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_MOE_DEMAND_H
#define OCS_MOE_DEMAND_H

/* What the servers of a region send each other in one all-to-all of a mixture of experts:
 * the gate's choice, counted. */

struct json_object;
struct ocs_error;

#define OCS_MOE_SERVERS_MAX 512

struct ocs_moe_demand {
	int n;		/* servers, 1 to OCS_MOE_SERVERS_MAX */
	double *tokens; /* n x n, row-major: [i * n + j] go from server i to server j; at least 0.
			 * The diagonal stays inside a server and is 0. */
};

/* N servers that send nothing.  The caller destroys it. */
struct ocs_moe_demand *ocs_moe_demand_create(int n);
void ocs_moe_demand_destroy(struct ocs_moe_demand *demand);

/* Reads a matrix, [[0,5],[7,0]] or {"tokens":[[...]]}: row i holds what rank i sends to each of
 * the others, or, if rows are some times as long, to the experts of each rank in turn.  The servers
 * are SERVERS runs of equal length of these ranks; 0: one rank each.
 * NULL with ERR (OCS_USAGE) that names the first row and column that are wrong. */
struct ocs_moe_demand *ocs_moe_demand_from_json(struct json_object *json, int servers,
						struct ocs_error *err);

#endif
