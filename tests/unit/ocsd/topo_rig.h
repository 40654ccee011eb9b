/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef TESTS_TOPO_RIG_H
#define TESTS_TOPO_RIG_H

/* Jobs on rails for tests: six nodes each (three stages, rings of two) on the same two switches with two
 * ports per NIC.  What has to be on the switches is worked out here, from the names of topologies
 * alone. */

#include "tests/unit/ocsd/ocsd_rig.h"

#define TOPO_SIZE 32
#define TOPO_STAGES 3
#define TOPO_WIDTH 2
#define TOPO_NODES (TOPO_STAGES * TOPO_WIDTH)
#define TOPO_RAILS 2
#define TOPO_FULL 12 /* patches of a job on one switch in any of its topologies */
#define TOPO_OWNER 1234

/* A job whose first node is p<FIRST>. */
struct tenant {
	unsigned int job;
	int first;
	char key[64];
};

#define TOPO_REQUEST "{'op':'topo','job':%u,'epoch':%u,'seq':%d,'key':'%s','rails':[%s]}"
#define TOPO_BOTH "{'rail':0,'topo':'%s'},{'rail':1,'topo':'%s'}"

/* cmocka set-up: the usual rig, these switches, and nodes p0 to p11. */
int topo_setup(void **state);
/* The same, where a new patch takes the place of those on its ports. */
int topo_setup_replace(void **state);
/* The same, where ocsd waits long for what a switch says. */
int topo_setup_patient(void **state);
/* The same, where routes of TCP jobs follow the circuits. */
int topo_setup_tcp(void **state);

/* Commits T; then also has its first node ask for the circuits, and takes the key. */
void topo_commit(struct ocs_client *client, const struct tenant *t, const char *phases);
void topo_start(struct ocs_client *client, struct tenant *t, const char *phases);
/* Ends and releases T, and waits until it is forgotten. */
void topo_end(struct ocs_client *client, const struct tenant *t);

/* Both rails of T go to TOPO, and say so. */
void topo_change(struct ocs_client *client, const struct tenant *t, int seq, const char *topo);
/* Entry INDEX of rails in a reply. */
struct json_object *topo_row(struct json_object *reply, size_t index);

/* The switch port of NIC_PORT of node NODE of T. */
int topo_port(const struct tenant *t, int node, int nic_port);
/* Enters what T has in TOPO into OUT, TOPO_SIZE + 1 entries: the egress of each ingress. */
void topo_add(const struct tenant *t, const char *topo, int *out);
/* What switch SW has. */
void topo_table(struct rig *rig, int sw, int *out);
/* It has exactly the topologies of both jobs (NULL: nothing of that job). */
void topo_table_is(struct rig *rig, int sw, const struct tenant *one, const char *topo,
		   const struct tenant *two, const char *other);

int64_t topo_revision(struct ocs_client *client);

#endif
