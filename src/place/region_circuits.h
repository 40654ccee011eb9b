/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_PLACE_REGION_CIRCUITS_H
#define OCS_PLACE_REGION_CIRCUITS_H

/* Circuits between the servers of a group in a region: any pairing of their optical NICs. */

#include <stddef.h>

struct ocs_error;

#define OCS_REGION_DIGEST 17

/* Members of region.json, which ocs-node writes for the controller of a job; the others are named as on
 * the wire. */
#define OCS_REGION_ADDRESSES "addresses"
#define OCS_REGION_NUMA "numa"
#define OCS_REGION_PACKET_NICS "packet_nics"
#define OCS_REGION_SPEED "speed"

#define OCS_REGION_PORT 7100 /* at which ranks listen on optical NICs */

struct ocs_region_circuit {
	int a, a_nic; /* server of the group and its optical NIC, both from 0; a < b */
	int b, b_nic;
};

struct ocs_region_circuits {
	struct ocs_region_circuit *items;
	size_t count;
};

void ocs_region_circuits_free(struct ocs_region_circuits *circuits);

/* Adds one. */
void ocs_region_circuits_add(struct ocs_region_circuits *circuits, int a, int a_nic, int b,
			     int b_nic);

/* Puts the ends of each and all of them in order.  0, or -1 with ERR (OCS_USAGE): a server or NIC that is
 * not there, a server joined with itself, a NIC that stands twice. */
int ocs_region_circuits_check(struct ocs_region_circuits *circuits, int servers, int nics,
			      struct ocs_error *err);

/* As many as SERVERS with NICS each can have, so that all pairs have the same number, or one more or less.
 * The caller frees them. */
void ocs_region_circuits_balanced(int servers, int nics, struct ocs_region_circuits *circuits);

/* "0.0-1.2,1.3-2.1"; "" for none.  The caller frees it. */
char *ocs_region_circuits_format(const struct ocs_region_circuits *circuits);
/* Back: LENGTH bytes of TEXT, checked.  0 (the caller frees them), or -1 with ERR. */
int ocs_region_circuits_parse(const char *text, size_t length, int servers, int nics,
			      struct ocs_region_circuits *circuits, struct ocs_error *err);

/* A name for circuits that were checked. */
void ocs_region_circuits_digest(const struct ocs_region_circuits *circuits,
				char digest[OCS_REGION_DIGEST]);

#endif
