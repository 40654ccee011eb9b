/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_NCCL_CIRCUITS_H
#define OCS_NCCL_CIRCUITS_H

/* What one server has to know of its job's plan.  Reads the JSON itself: the planner
 * links graph libraries that a prolog has no time to load. */

struct json_object;
struct ocs_error;

/* A circuit at INTERFACE of this server. */
struct ocs_nccl_circuit {
	int interface;
	char *peer; /* name of the server at the other end */
	int peer_interface;
};

/* The way in and out of this server for one NCCL channel along ring +1. */
struct ocs_nccl_passage {
	int in, out; /* interfaces */
};

struct ocs_nccl_circuits {
	struct ocs_nccl_circuit *list; /* ascending by interface */
	int count;
	struct ocs_nccl_passage *passages; /* one for each circuit that every edge
						 * of ring +1 has; none: not in a ring */
	int npassages;
	/* What becomes of that ring with a topology file alone, where every channel enters and leaves
	 * each server by one of its ports with circuits: hops from server to server, and those whose
	 * port has no circuit to the next server's port. */
	int hops, astray;
};

/* Reads the circuits of server NODE from PLAN (plan.json).  0, or -1 with ERR
 * (OCS_USAGE): not a plan, or NODE is not in it.  Free either way. */
int ocs_nccl_circuits_read(struct json_object *plan, const char *node,
			   struct ocs_nccl_circuits *circuits, struct ocs_error *err);
void ocs_nccl_circuits_free(struct ocs_nccl_circuits *circuits);

#endif
